"""Fingerprints of rows and columns, by which data sets that share rows are recognized.

Notation: n rows, p columns, all hashes unsigned 64-bit, all arithmetic modulo 2**64.

Rows
    * cell c: h(c) = mix(bits of float64(c)), so h(0) = 0 and sparse zeros need no hash;
    * row x: H(sum_j h(x_j)), which does not depend on the order of the columns,
      and H(sum_j m_j h(x_j)) with an odd m_j for each column, which does;
    * fingerprint: the `MAX_HASHES` smallest hashes of the distinct rows (a bottom-k sample),
      sorted.

    The target is not part of the hash: a row that was searched with y and with log(y) is one row.

Columns
    Rescaled rows have other hashes. The moments of a standardized column are invariant under
    x -> a x + b and under any order of the rows. Each column has its own moments, so they also
    show that columns were left out. They describe a set of rows as a whole, and say nothing about
    a part of the rows. With z = (x - mean) / std, the shape of a column is |E z^3|, E z^4, E z^6,
    to five digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from sktransfer.dataset._table import BLOCK_CELLS, NUMERIC, Table, as_floats, as_number
from sktransfer.utils._hashing import hash_bytes

MAX_HASHES = 1 << 14
MAX_SHAPE_CELLS = 1 << 20  # larger tables get no column fingerprint
MIN_DISTINCT_VALUES = 20  # unrelated columns of few values often have the same shape
N_PROBED_ROWS = 200  # rows in which distinct values are counted
SHAPE_DIGITS = 5


def fingerprint_table(table: Table) -> dict[str, Any]:
    """Compute all fingerprints of a table, by the names of their fields in a profile."""
    if table.form == "unknown":
        return {}
    if table.is_kernel:
        cells, n_cells = bottom_k(hash_kernel_cells(table))
        return {"fingerprint": cells, "n_distinct": n_cells}
    rows = hash_rows(table)
    (unordered, n_distinct), (ordered, n_ordered) = map(bottom_k, rows)
    return {
        "fingerprint": unordered,
        "n_distinct": n_distinct,
        "ordered_fingerprint": ordered,
        "n_ordered": n_ordered,
        "column_fingerprint": bottom_k(hash_columns(table))[0],
        "row_digest": digest_rows(rows[1]),
        "row_hashes": rows[1],
    }


def digest_rows(hashes: np.ndarray) -> np.ndarray:
    """Digest the hashes of rows, whatever their order; of shape (2,), uint64.

    Two sums of scrambled hashes modulo 2**64: that two tables agree in both by chance has a
    probability of 2**-128.
    """
    scrambled = [mix_bits(hashes + np.uint64(offset)) for offset in (1, 2)]
    return np.array([np.sum(words, dtype=np.uint64) for words in scrambled], dtype=np.uint64)


def bottom_k(hashes: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the smallest distinct hashes, and the number of distinct hashes."""
    distinct = _distinct(hashes)
    return distinct[:MAX_HASHES].copy(), len(distinct)


def estimate_overlap(a: np.ndarray, n_a: int, b: np.ndarray, n_b: int) -> float:
    """Estimate from two fingerprints which share of the smaller set is also in the other.

    Let t be the smaller of the largest hashes of those fingerprints that are truncated. Up to t
    both sets are known completely, and which members have hashes below t is as good as random. So
    the share found there is an unbiased estimate. If neither is truncated, the share is exact.

    Parameters
    ----------
    a, b : ndarray of uint64
        Sorted hashes, as `bottom_k` returns them.
    n_a, n_b : int
        Numbers of distinct hashes.
    """
    ends = [hashes[-1] for hashes, n in ((a, n_a), (b, n_b)) if 0 < len(hashes) < n]
    if ends:
        a, b = a[a <= min(ends)], b[b <= min(ends)]
    n_shared = len(np.intersect1d(a, b, assume_unique=True))
    n_known = (len(a) + len(b)) / 2 if n_a == n_b else len(a if n_a < n_b else b)
    return min(1.0, n_shared / n_known) if n_known else 0.0


# -- rows ------------------------------------------------------------------------------------------


def hash_rows(table: Table) -> np.ndarray:
    """Hash each row without and with the order of the columns; of shape (2, n_rows)."""
    is_sparse = table.form == "sparse"
    sums = _sum_sparse(table.data) if is_sparse else np.zeros((2, table.n_rows), np.uint64)
    multipliers = column_multipliers(0, max(1, table.n_columns or 0))
    for rows, first, cells in _hash_cells(table):  # (len(rows), k), columns first .. first + k
        sums[0, rows] += cells.sum(axis=1, dtype=np.uint64)
        sums[1, rows] += cells @ multipliers[first : first + cells.shape[1]]
    return _finish(sums)


def hash_kernel_cells(table: Table) -> np.ndarray:
    """Hash the cells above the diagonal of a symmetric matrix."""
    # Cross-validation cuts a smaller square out of a precomputed kernel, which keeps single cells
    # but not whole rows. The smaller of K[i, j] and K[j, i] is used, since they can differ by
    # rounding.
    kernel = table.data
    if table.form == "sparse":
        return _hash_cell_set(sparse.triu(kernel.minimum(kernel.T), k=1).data.astype(np.float64))
    parts, step = [], BLOCK_CELLS // table.n_rows + 1
    for start in range(0, table.n_rows, step):
        rows = slice(start, start + step)
        block = np.minimum(kernel[rows, start:], kernel[start:, rows].T)
        parts.append(_hash_cell_set(block[np.triu(np.ones(block.shape, dtype=bool), k=1)]))
    return np.concatenate(parts)


def _hash_cell_set(values: np.ndarray) -> np.ndarray:
    cells = _hash_floats(as_floats(values))
    return _distinct(_finish(cells[cells != 0]))


def _hash_cells(table: Table) -> Iterator[tuple[slice, int, np.ndarray]]:
    """Yield (rows, first column, cell hashes): blocks of rows, or one column at a time."""
    n, p, X = table.n_rows, table.n_columns or 0, table.data
    if table.form == "items":
        yield slice(0, n), 0, _hash_objects(X)[:, None]
    elif table.form == "dense" and X.dtype.kind in NUMERIC:
        step = BLOCK_CELLS // max(1, p) + 1
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            yield rows, 0, _hash_floats(as_floats(X[rows]).reshape(rows.stop - start, p))
    elif table.form in ("dense", "frame"):
        for j in range(p):
            yield from _hash_column_cells(table.column(j), j)


def _hash_column_cells(values: np.ndarray, j: int) -> Iterator[tuple[slice, int, np.ndarray]]:
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError, OverflowError):  # all numbers: this is much faster
            values = values.astype(np.float64)
    is_numeric = values.dtype.kind in NUMERIC
    for start in range(0, len(values), BLOCK_CELLS):
        part = values[start : start + BLOCK_CELLS]
        cells = _hash_floats(as_floats(part)) if is_numeric else _hash_objects(part.tolist())
        yield slice(start, start + len(part)), j, cells[:, None]


def _sum_sparse(X: sparse.csr_matrix) -> np.ndarray:
    """Sum the cell hashes of each row of a CSR matrix. Zero cells would add zero."""
    sums = np.zeros((2, X.shape[0]), dtype=np.uint64)
    multipliers = column_multipliers(0, X.shape[1])
    step = BLOCK_CELLS * X.shape[0] // max(1, X.nnz) + 1
    for start in range(0, X.shape[0], step):
        ends = X.indptr[start : start + step + 1]
        stored = slice(ends[0], ends[-1])
        cells = _hash_floats(as_floats(X.data[stored]))
        for k, terms in enumerate((cells, cells * multipliers[X.indices[stored]])):
            # The running sum may overflow: the difference of two of its values is correct anyway.
            running = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
            sums[k, start : start + step] = np.diff(running[ends - ends[0]])
    return sums


def _hash_floats(values: np.ndarray) -> np.ndarray:
    """Hash float64 cells in place."""
    values += 0.0  # -0.0 becomes 0.0
    missing = np.isnan(values)
    if missing.any():
        values[missing] = np.nan  # NaN has many bit patterns
    return mix_bits(np.ascontiguousarray(values).view(np.uint64))


def _hash_objects(values: list) -> np.ndarray:
    distinct = values
    with suppress(TypeError):  # values that are not hashable, such as dicts
        distinct = list(set(values))
    numbers = [as_number(value) for value in distinct]
    hashes = _hash_floats(np.array(numbers, dtype=np.float64))  # None becomes NaN, replaced below
    for i in (i for i, number in enumerate(numbers) if number is None):
        content = _content_text(distinct[i]).encode("utf-8", "surrogatepass")
        hashes[i] = int.from_bytes(hash_bytes(content, 8), "little")
    if distinct is values:
        return hashes
    known = dict(zip(distinct, hashes.tolist(), strict=True))
    return np.fromiter(map(known.__getitem__, values), dtype=np.uint64, count=len(values))


def _content_text(value: object) -> str:
    """Write the content of a value as text, the same in every process."""
    if isinstance(value, (dict, set, frozenset)):
        items = value.items() if isinstance(value, dict) else value
        return str(sorted(map(_content_text, items)))
    if isinstance(value, (list, tuple, np.ndarray)):  # str() abbreviates long arrays
        return str([_content_text(part) for part in value])
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        raise ValueError("the text of this object is its address, not its content")
    return str(value)


# -- columns ---------------------------------------------------------------------------------------


def hash_columns(table: Table) -> np.ndarray:
    """Hash the shape of each column that varies enough; of shape (k,), uint64."""
    n, p = table.n_rows, table.n_columns or 0
    if table.is_kernel or not p or n * p > MAX_SHAPE_CELLS or n < MIN_DISTINCT_VALUES:
        return np.empty(0, dtype=np.uint64)
    columns = map(_column_shape, numeric_columns(table))
    digests = [hash_bytes(shape.tobytes(), 8) for shape in columns if shape is not None]
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


def numeric_columns(table: Table) -> Iterator[np.ndarray]:
    """Yield the columns of numbers as float64."""
    if table.form == "sparse":
        table = Table("dense", table.n_rows, table.n_columns, table.data.toarray())
    for j in range(table.n_columns or 0) if table.form in ("dense", "frame") else ():
        column = table.column(j)
        if column.dtype.kind in NUMERIC:
            yield as_floats(column)


def _column_shape(x: np.ndarray) -> np.ndarray | None:
    """Moments of a standardized column; None if it has few distinct values or none are finite."""
    is_missing = np.isnan(x)
    probed = slice(None, None, max(1, len(x) // N_PROBED_ROWS))
    # As np.unique, which is slow on so few values: missing ones count as one value.
    values = np.sort(x[probed][~is_missing[probed]])
    n_distinct = np.count_nonzero(values[1:] != values[:-1]) + (len(values) > 0)
    if n_distinct + is_missing[probed].any() < MIN_DISTINCT_VALUES:
        return None
    with np.errstate(all="ignore"):
        x = x[~is_missing] if is_missing.any() else x
        z = x - x.mean()
        z /= np.sqrt(np.mean(z * z))
        square = z * z
        moments = abs(np.mean(square * z)), np.mean(square**2), np.mean(square**3)
        # On a logarithmic scale, because rounding errors are relative to the size of a moment.
        shape = np.round(np.arcsinh(moments), SHAPE_DIGITS) + 0.0
    return shape if np.isfinite(shape).all() else None


# -- hash functions --------------------------------------------------------------------------------


def _distinct(hashes: np.ndarray) -> np.ndarray:
    """Sort and remove duplicates: np.unique is ten times slower on a million hashes."""
    hashes = np.sort(hashes)
    return hashes[np.diff(hashes, prepend=~hashes[:1]) != 0]


def column_multipliers(first: int, count: int) -> np.ndarray:
    return mix_bits(np.arange(first + 1, first + count + 1, dtype=np.uint64)) | np.uint64(1)


def _finish(sums: np.ndarray) -> np.ndarray:
    """Hash the sum of a row.

    `mix_bits` alone is invertible, which would reveal rows of one column.
    """
    return mix_bits(sums + np.uint64(0x9E3779B97F4A7C15)) ^ sums


def mix_bits(z: np.ndarray) -> np.ndarray:
    """Scramble 64-bit words in place: the finalizer of SplitMix64, one to one, and 0 stays 0."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z
