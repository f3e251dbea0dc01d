"""X as a table of cells, and the fingerprint of its rows.

Notation: n rows, p columns, all hashes unsigned 64-bit, all arithmetic modulo 2**64.

* cell c:  h(c) = mix(bits of float64(c)), so that h(0) = 0 and a zero that is not stored needs no hash;
* row x:   H(sum_j h(x_j)), blind to the order of the columns,
  and      H(sum_j m_j h(x_j)) with an odd m_j for each column, which is not;
* sketch:  the `SKETCH_SIZE` smallest hashes of the distinct rows (a bottom-k sample), sorted.

The target is left out of the hash: a row tuned once with y and once with log(y) is the same row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from scipy import sparse

SKETCH_SIZE = 1024
MAX_FOREIGN = 10_000  # items read one by one from a container of which only len() and [] are known
MAX_COPIED = 1 << 22  # cells of a DataFrame that may be copied at once
BLOCK = 1 << 15  # cells hashed at once: they stay in the processor's cache
NUMERIC = "biufmM"  # dtype kinds that become float64 as a whole


@dataclass(frozen=True)
class Table:
    """X in one of five forms: "dense", "sparse" (CSR), "frame" (columns), "items" (a list) or "unknown"."""

    form: str
    n_rows: int
    n_columns: int | None = None
    data: Any = None
    is_kernel: bool = False

    def column(self, j: int, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Column j as a one-dimensional array; of a table that is dense or a frame."""
        if self.form == "frame":
            return self.data(int(j), rows)
        return self.data[(rows, *np.unravel_index(j, self.data.shape[1:]))]


def read_table(X: Any) -> Table:
    """Find out which form X has, without copying its cells where that can be avoided."""
    if sparse.issparse(X):
        return _read_sparse(X)
    if len(getattr(X, "shape", ())) == 2 and hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _read_frame(X)
    values = _as_array(X)
    if values is None:
        return Table("unknown", len(X))
    if values.ndim == 1 and values.dtype.kind not in NUMERIC:
        return Table("items", len(values), None, values.tolist())
    values = values[:, None] if values.ndim == 1 else values
    return Table("dense", len(values), int(np.prod(values.shape[1:])), values)


def _read_sparse(X: Any) -> Table:
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()  # summing duplicates works in place, and X is the caller's
        rows.sum_duplicates()
    return Table("sparse", int(rows.shape[0]), int(rows.shape[1]), rows)


def _read_frame(X: Any) -> Table:
    """Read a DataFrame of pandas or polars. A wide one is dense if it is all numbers and not too large."""
    n, p = map(int, X.shape)
    if p > 100 and n * p <= MAX_COPIED and all(map(_is_number, X.dtypes)):
        return Table("dense", n, p, np.asarray(X))
    if hasattr(X, "iloc"):
        return Table("frame", n, p, lambda j, rows: _pandas_values(X.iloc[:, j].iloc[rows]))
    return Table("frame", n, p, lambda j, rows: np.asarray(X[:, j][rows]))


def _is_number(dtype: Any) -> bool:
    return getattr(dtype, "is_numeric", lambda: isinstance(dtype, np.dtype) and dtype.kind in "iuf")()


def _pandas_values(series: Any) -> np.ndarray:
    nullable = not isinstance(series.dtype, np.dtype) and getattr(series.dtype, "kind", "O") in "biuf"
    return series.to_numpy(dtype="float64", na_value=np.nan) if nullable else np.asarray(series)


def _as_array(X: Any) -> np.ndarray | None:
    """X as an array; None if it is too long to be read item by item."""
    if isinstance(X, np.ndarray) or hasattr(X, "__array__"):
        return np.asarray(X)
    if not isinstance(X, (list, tuple)):
        if len(X) > MAX_FOREIGN:
            return None
        X = [X[i] for i in range(len(X))]
    # numpy would pad every string to the length of the longest, and turn numbers beside text into text.
    first = X[0] if len(X) and isinstance(X[0], (list, tuple)) else X[:1]
    has_text = any(isinstance(cell, (str, bytes)) for cell in first)
    with suppress(ValueError):  # rows of different lengths
        values = np.asarray(X, dtype=object if has_text else None)
        return np.asarray(X, dtype=object) if values.dtype.kind in "US" else values
    values = np.empty(len(X), dtype=object)
    values[:] = X
    return values


def as_number(value: Any) -> float | None:
    """Return one cell as a float: NaN if it is missing, None if it is no number.

    >>> as_number("1.5"), as_number(True), as_number(None), as_number("red")
    (1.5, 1.0, nan, None)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(value, datetime):
        value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        value = np.datetime64(value, "us")
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return float(as_floats(np.asarray(value)))
    if len(value) > 64 if isinstance(value, str) else not hasattr(type(value), "__float__"):
        return None  # float() of a long text is slow to fail
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def as_floats(values: np.ndarray) -> np.ndarray:
    """Return an array of a `NUMERIC` kind as a new float64 array; times in microseconds."""
    if values.dtype.kind not in "mM":
        return values.astype(np.float64)
    unit = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
    return np.where(np.isnat(values), np.nan, values.astype(unit).astype(np.int64).astype(np.float64))


def row_hashes(table: Table) -> np.ndarray:
    """Hash each row twice, blind to the order of columns and tied to it; of shape (2, n_rows)."""
    sums = _sparse_sums(table.data) if table.form == "sparse" else np.zeros((2, table.n_rows), np.uint64)
    for rows, first, cells in _hashed_cells(table):  # cells: (len(rows), k), of columns first .. first + k
        sums[0, rows] += cells.sum(axis=1, dtype=np.uint64)
        sums[1, rows] += cells @ _multipliers(first, cells.shape[1])
    return _finish(sums)


def kernel_hashes(table: Table) -> np.ndarray:
    """Hash the cells above the diagonal of a symmetric matrix."""
    # Cross-validation cuts a smaller square out of a precomputed kernel: whole rows do not survive that,
    # single cells do. The smaller of K[i, j] and K[j, i] is taken, since rounding can tell them apart.
    kernel = table.data
    if table.form == "sparse":
        return _cell_set(sparse.triu(kernel.minimum(kernel.T), k=1).data.astype(np.float64))
    parts, step = [], BLOCK // table.n_rows + 1
    for start in range(0, table.n_rows, step):
        block = np.minimum(kernel[start : start + step, start:], kernel[start:, start : start + step].T)
        parts.append(_cell_set(block[np.triu(np.ones(block.shape, dtype=bool), k=1)]))
    return np.concatenate(parts)


def looks_like_kernel(table: Table) -> bool:
    """Whether the table is a square symmetric matrix of numbers, up to rounding."""
    n, X = table.n_rows, table.data
    square = table.form in ("dense", "sparse") and X.shape == (n, n) and n >= 3
    if not square or X.dtype.kind not in "biuf":
        return False
    if table.form == "sparse":
        X = X.astype(np.float64)  # truth values cannot be subtracted
        return bool(abs(X - X.T).max() <= 1e-8 * abs(X).max())
    bands = (slice(start, start + BLOCK // n + 1) for start in range(0, n, BLOCK // n + 1))
    return all(np.allclose(X[i], X[:, i].T, rtol=1e-8, atol=0.0, equal_nan=True) for i in bands)


def sketch(hashes: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the smallest distinct hashes and the number of distinct ones."""
    distinct = _distinct(hashes)
    return distinct[:SKETCH_SIZE].copy(), len(distinct)


def sketch_overlap(a: np.ndarray, n_a: int, b: np.ndarray, n_b: int) -> float:
    """Estimate which share of the smaller of two sets is also in the other.

    Up to the threshold t, the smaller of the largest hashes of the sketches that are cut off, both
    sets are known completely, and which hashes lie below t is as good as random. So the share seen
    there is an unbiased estimate; if nothing is cut off, t is infinite and the share exact.
    """
    ends = [hashes[-1] for hashes, n in ((a, n_a), (b, n_b)) if 0 < len(hashes) < n]
    if ends:
        a, b = a[a <= min(ends)], b[b <= min(ends)]
    shared = len(np.intersect1d(a, b, assume_unique=True))
    known = (len(a) + len(b)) / 2 if n_a == n_b else len(a if n_a < n_b else b)
    return min(1.0, shared / known) if known else 0.0


def _hashed_cells(table: Table) -> Iterator[tuple[slice, int, np.ndarray]]:
    """Yield (rows, first column, cell hashes): blocks of rows, or one column at a time."""
    n, p, X = table.n_rows, table.n_columns or 0, table.data
    if table.form == "items":
        yield slice(0, n), 0, _hash_objects(X)[:, None]
    elif table.form == "dense" and X.dtype.kind in NUMERIC:
        step = BLOCK // max(1, p) + 1
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            yield rows, 0, _hash_floats(as_floats(X[rows]).reshape(rows.stop - start, p))
    elif table.form in ("dense", "frame"):
        for j in range(p):
            yield from _hashed_column(table.column(j), j)


def _hashed_column(values: np.ndarray, j: int) -> Iterator[tuple[slice, int, np.ndarray]]:
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError, OverflowError):  # numbers after all: much the faster way
            values = values.astype(np.float64)
    numeric = values.dtype.kind in NUMERIC
    for start in range(0, len(values), BLOCK):
        part = values[start : start + BLOCK]
        cells = _hash_floats(as_floats(part)) if numeric else _hash_objects(part.tolist())
        yield slice(start, start + len(part)), j, cells[:, None]


def _sparse_sums(X: Any) -> np.ndarray:
    """Sum the cell hashes of each row of a CSR matrix; zero cells would add zero."""
    sums = np.zeros((2, X.shape[0]), dtype=np.uint64)
    multipliers = _multipliers(0, X.shape[1])
    step = BLOCK * X.shape[0] // max(1, X.nnz) + 1
    for start in range(0, X.shape[0], step):
        ends = X.indptr[start : start + step + 1]
        stored = slice(ends[0], ends[-1])
        cells = _hash_floats(as_floats(X.data[stored]))
        for k, terms in enumerate((cells, cells * multipliers[X.indices[stored]])):
            # A running sum may wrap round: the difference of two of its values is right all the same.
            running = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
            sums[k, start : start + step] = np.diff(running[ends - ends[0]])
    return sums


def _hash_floats(values: np.ndarray) -> np.ndarray:
    """Hash float64 cells, in their own memory."""
    values += 0.0  # -0.0 becomes 0.0
    missing = np.isnan(values)
    if missing.any():
        values[missing] = np.nan  # NaN has many bit patterns
    return _mix(np.ascontiguousarray(values).view(np.uint64))


def _hash_objects(values: list) -> np.ndarray:
    distinct = values
    with suppress(TypeError):  # something that cannot be a key, such as a dict
        distinct = list(set(values))
    numbers = [as_number(value) for value in distinct]
    hashes = _hash_floats(np.array(numbers, dtype=np.float64))  # None becomes NaN, for the moment
    for i in (i for i, number in enumerate(numbers) if number is None):
        content = _text(distinct[i]).encode("utf-8", "surrogatepass")
        hashes[i] = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
    if distinct is values:
        return hashes
    known = dict(zip(distinct, hashes.tolist(), strict=True))
    return np.fromiter(map(known.__getitem__, values), dtype=np.uint64, count=len(values))


def _text(value: Any) -> str:
    """Write the content of `value`, the same in every process."""
    if isinstance(value, (dict, set, frozenset)):
        return str(sorted(map(_text, value.items() if isinstance(value, dict) else value)))
    if isinstance(value, (list, tuple, np.ndarray)):  # str() of an array leaves out its middle
        return str([_text(part) for part in value])
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        raise ValueError("the object shows its address, not its content")
    return str(value)


def _cell_set(values: np.ndarray) -> np.ndarray:
    cells = _hash_floats(as_floats(values))
    return _distinct(_finish(cells[cells != 0]))


def _distinct(hashes: np.ndarray) -> np.ndarray:
    """Do as np.unique, which is ten times slower on a million hashes since it has a table of its own."""
    hashes = np.sort(hashes)
    return hashes[np.diff(hashes, prepend=~hashes[:1]) != 0]


def _multipliers(first: int, count: int) -> np.ndarray:
    return _mix(np.arange(first + 1, first + count + 1, dtype=np.uint64)) | np.uint64(1)


def _finish(sums: np.ndarray) -> np.ndarray:
    """Hash the sum of a row. `_mix` alone could be run backwards, which would give away one-column rows."""
    return _mix(sums + np.uint64(0x9E3779B97F4A7C15)) ^ sums


def _mix(z: np.ndarray) -> np.ndarray:
    """Scramble 64-bit words in place: the finaliser of SplitMix64, one to one, and 0 stays 0."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
