"""Patterns of neighboring rows, by which rows are recognized after each column was rescaled.

In the commonest hand-written loop, a scaler is fitted in each fold. So the same row has other
values in each fold, and the folds miss different rows. Notation: x a column, d_i = x_{i+1} - x_i.

    pattern i of a column:  (d_{i+1} / d_i, d_{i+2} / d_{i+1}), to five digits

does not change under x -> a x + b, and is missing only if one of its four rows is. Folds of a
cross-validation keep the order of rows, so two training parts of five folds have one pattern in six
in common. Unrelated columns agree by chance in fewer than one in a thousand, if their values hardly
repeat. Patterns do not say from which column they are, so columns may be missing or added. Columns
whose values repeat have patterns together: d_{i+1} / d_i of all of them, to four digits. They must
be the same columns in the same order. Only the first rows of a large table are used.

A regression target is not scaled in such a loop. Its patterns are pairs of neighboring values,
except where values grow in equal steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sktransfer.dataset._fingerprint import column_multipliers, mix_bits, numeric_columns
from sktransfer.dataset._table import Table, TargetLike, as_floats

MAX_PATTERNS = 512  # of a table that are kept, and of a target
MAX_CELLS = 100_000
MAX_SIMPLE = 12  # largest denominator of a ratio that many unrelated columns have
MIN_ROWS = 20
MIN_CHANGES = 3  # columns that change between three rows, in a joint pattern
MIN_DISTINCT_VALUES = 0.5  # share of the rows
DIGITS = 5


def fingerprint_patterns(table: Table, y: TargetLike) -> dict[str, Any]:
    """Compute the patterns of a table and of its target, by their names in a profile."""
    columns, targets = _hash_table(table), _hash_target(y)
    return {
        "pattern_fingerprint": columns[:MAX_PATTERNS].copy(),
        "n_patterns": len(columns),
        "target_fingerprint": targets[:MAX_PATTERNS].copy(),
        "n_target_patterns": len(targets),
    }


def _hash_table(table: Table) -> np.ndarray:
    n, p = table.n_rows, table.n_columns or 0
    if table.is_kernel or n < MIN_ROWS or not 0 < p <= MAX_CELLS // MIN_ROWS:
        return np.empty(0, dtype=np.uint64)
    columns = list(numeric_columns(_first_rows(table, min(n, MAX_CELLS // p))))
    is_single = [_is_informative(x) for x in columns]
    parts = [hash_ratios(x) for x, single in zip(columns, is_single, strict=True) if single]
    parts.append(_hash_jointly([x for x, s in zip(columns, is_single, strict=True) if not s]))
    return np.unique(np.concatenate(parts))


def _first_rows(table: Table, n: int) -> Table:
    rows = slice(n)
    if table.form == "frame":
        return Table("frame", n, table.n_columns, lambda j, _: table.data(j, rows))
    is_array = table.form in ("dense", "sparse")
    return Table(table.form, n, table.n_columns, table.data[rows] if is_array else None)


def _is_informative(x: np.ndarray) -> bool:
    return len(np.unique(x)) >= MIN_DISTINCT_VALUES * len(x)


def hash_ratios(x: np.ndarray) -> np.ndarray:
    """Hash the patterns of a column, except those with missing values or equal neighbors.

    >>> x = np.array([1.0, 2.3, 4.7, 3.1, 7.8])
    >>> bool((hash_ratios(x) == hash_ratios(-3 * x + 5)).all()), len(hash_ratios(x))
    (True, 2)
    """
    d = np.diff(x)
    with np.errstate(all="ignore"):
        ratios = d[1:] / d[:-1]
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.abs(ratios))))
        rounded = np.round(ratios * scale) / scale
        is_simple = _is_simple(ratios)  # before rounding: a third has no last digit
    pairs = np.stack([rounded[:-1], rounded[1:]])
    is_used = np.isfinite(pairs).all(axis=0) & ~(is_simple[:-1] & is_simple[1:])
    pairs = pairs[:, is_used]
    return _hash_pairs(np.round(np.log(np.abs(pairs)), DIGITS + 1) + 100.0 * np.sign(pairs))


def _is_simple(ratios: np.ndarray) -> np.ndarray:
    """Whether ratios are zero or those of small integers, as in the numbers of rows."""
    multiples = np.multiply.outer(np.arange(1, MAX_SIMPLE + 1), ratios)
    return (np.abs(multiples - np.round(multiples)) < 1e-6).any(axis=0)


def _hash_jointly(columns: list[np.ndarray]) -> np.ndarray:
    """Hash the ratios of several columns together; shape (n,), uint64."""
    if len(columns) < MIN_CHANGES:
        return np.empty(0, dtype=np.uint64)
    d = np.diff(np.stack(columns), axis=1)  # (p, n - 1)
    with np.errstate(all="ignore"):
        ratios = d[:, 1:] / d[:, :-1]
    is_change = np.isfinite(ratios) & (ratios != 0)
    ratios = np.round(np.where(is_change, ratios, 0.0), DIGITS - 1).astype(np.float64)
    # Infinite, missing and zero are different patterns.
    states = (2 * (d[:, 1:] != 0) + 4 * (d[:, :-1] != 0)).astype(np.uint64)
    cells = mix_bits((ratios + 0.0).view(np.uint64)) + states
    order = column_multipliers(0, len(columns))
    sums = (mix_bits(cells) * order[:, None]).sum(axis=0, dtype=np.uint64)
    return mix_bits(sums[is_change.sum(axis=0) >= MIN_CHANGES])


def _hash_target(y: TargetLike) -> np.ndarray:
    values = np.asarray(y)
    if values.ndim != 1 or values.dtype.kind not in "fiu" or len(values) < MIN_ROWS:
        return np.empty(0, dtype=np.uint64)
    values = as_floats(values[:MAX_CELLS])
    values = values[np.isfinite(values)]
    if not len(values) or not _is_informative(values):
        return np.empty(0, dtype=np.uint64)
    d = np.diff(values)
    with np.errstate(all="ignore"):
        ratios = d[1:] / d[:-1]
    is_used = np.isfinite(ratios) & ~_is_simple(ratios)
    return np.unique(_hash_pairs(np.stack([values[:-2], values[1:-1]])[:, is_used]))


def _hash_pairs(pairs: np.ndarray) -> np.ndarray:
    """Hash pairs of numbers, given as an array of shape (2, n); of shape (n,), uint64."""
    words = (pairs + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    second = mix_bits(words[1].copy())
    return mix_bits(mix_bits(words[0].copy()) + (second << np.uint64(1)) + np.uint64(1))
