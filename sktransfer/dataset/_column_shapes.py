"""What is left of a column whatever its unit and its zero: rows that were rescaled are known again by it.

Row hashes go by the cells as they are, so data behind a scaler are other rows to them. The moments of a
standardized column stay the same under x -> a x + b and under any order of the rows, and each column has its
own: they also tell when columns were left out. They belong to a set of rows as a whole, so they say nothing
about a part of the rows.

Notation: z = (x - mean) / std of a column; the shape is |E z^3|, E z^4, E z^6, to five digits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sktransfer.dataset._fingerprint import NUMERIC, Table, as_floats, kernel_hashes, row_hashes, sketch

MAX_CELLS = 1 << 20  # of larger tables the shapes are not taken
MIN_DISTINCT = 20  # among `PROBED` rows; columns of few values have their shapes in common with strangers
PROBED = 200
DIGITS = 5


def column_hashes(table: Table) -> np.ndarray:
    """A hash of each column's shape, of those that vary enough; of shape (k,), uint64."""
    n, p = table.n_rows, table.n_columns or 0
    if table.is_kernel or not p or n * p > MAX_CELLS or n < MIN_DISTINCT:
        return np.empty(0, dtype=np.uint64)
    shapes = [shape for column in _columns(table) if (shape := _shape(column)) is not None]
    digests = [hashlib.blake2b(shape.tobytes(), digest_size=8).digest() for shape in shapes]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


def fingerprints(table: Table) -> dict[str, Any]:
    """All that is kept to know rows again, by the names that it has in a profile."""
    if table.form == "unknown":
        return {}
    if table.is_kernel:
        cells, n_cells = sketch(kernel_hashes(table))
        return {"fingerprint": cells, "n_distinct": n_cells}
    (free, n_free), (ordered, n_ordered) = map(sketch, row_hashes(table))
    return {
        "fingerprint": free,
        "n_distinct": n_free,
        "ordered_fingerprint": ordered,
        "n_ordered": n_ordered,
        "column_fingerprint": sketch(column_hashes(table))[0],
    }


def _columns(table: Table) -> Iterator[np.ndarray]:
    """The columns of numbers, as float64."""
    if table.form == "sparse":
        table = Table("dense", table.n_rows, table.n_columns, table.data.toarray())
    for j in range(table.n_columns or 0) if table.form in ("dense", "frame") else ():
        column = table.column(j)
        if column.dtype.kind in NUMERIC:
            yield as_floats(column)


def _shape(x: np.ndarray) -> np.ndarray | None:
    if len(np.unique(x[:: max(1, len(x) // PROBED)])) < MIN_DISTINCT:
        return None
    with np.errstate(all="ignore"):
        x = x[~np.isnan(x)]
        z = x - x.mean()
        z /= np.sqrt(np.mean(z * z))
        square = z * z
        moments = abs(np.mean(square * z)), np.mean(square**2), np.mean(square**3)
        # On a logarithmic scale, because rounding errors are relative to the size of a moment.
        shape = np.round(np.arcsinh(moments), DIGITS) + 0.0
    return shape if np.isfinite(shape).all() else None
