"""Patterns of neighboring rows, by which rows are recognized after each column was rescaled.

In the commonest hand-written loop, a scaler is fitted in each fold. So the same row has other
values in each fold, and the folds miss different rows. Notation: x a column, a < b < c rows.

    ratio:  r = (x_c - x_b) / (x_b - x_a)

does not change under x -> u x + v, and is the same in every part of the rows that has these three
near each other. A single ratio agrees by chance too often, so patterns are pairs of ratios:

    along a column      ratios of the rows (i, i + 1, i + 2) and (i + 1, i + 2, i + 3)
    across columns      ratios of two adjacent columns in the same rows: three of i, ..., i + 3

The first need no second column and no order of columns. The second survive where rows between them
were left out, as in three folds: two training parts have only every other row in common. Ratios of
small integers occur in many columns and are left out, and so are columns whose patterns repeat.

Columns whose values repeat have no such patterns. If there are any, the ratios of all columns in
the same three rows are one more pattern. For these, the columns must be the same ones in the same
order.

Of a large table, all rows are used for the patterns along columns, and those whose ratios have
certain digits are chosen: the same ones in every part of the rows. The other patterns are taken
from its first rows.

A regression target is not scaled in such a loop. Its patterns are pairs of neighboring values,
except where values grow in equal steps.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from sktransfer.dataset._fingerprint import column_multipliers, mix_bits, numeric_columns
from sktransfer.dataset._table import Table, TargetLike, as_floats

MAX_PATTERNS = 512  # of a table that are kept, and of a target
MAX_CELLS = 1 << 19  # from which patterns are taken
MAX_ALONG = 20_000  # patterns along columns that are computed: see `_choose`
MAX_JOINT_CELLS = 30_000
MAX_TARGETS = 100_000
MAX_CELLS_ACROSS, MIN_ROWS_ACROSS = 8_000, 64
TRIPLES = ((0, 1, 2), (0, 1, 3), (0, 2, 3))
SPAN_ALONE = 6  # neighboring rows of which a pattern along an only column takes four
MIN_ROWS, MAX_COLUMNS = 20, 5000
MIN_CHANGES = 3  # columns that change between three rows, in a joint pattern
MIN_DISTINCT = 0.5  # share of distinct values with which a column has patterns of its own
MIN_DISTINCT_ALONE = 0.75  # if all columns have more, there are no joint patterns
MAX_REPEATED = 0.01  # share of patterns that occur more than once
STEPS = 4e4  # ratios are rounded to one part in 40,000
MULTIPLE, TOLERANCE = 27_720, 0.03  # the smallest multiple of 1, ..., 12: see `_is_simple`
JOINT_DIGITS = 4


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
    if table.is_kernel or n < MIN_ROWS or not 0 < p <= MAX_COLUMNS:
        return np.empty(0, dtype=np.uint64)
    columns = list(numeric_columns(_first_rows(table, min(n, MAX_CELLS // p))))
    if not columns:
        return np.empty(0, dtype=np.uint64)
    with np.errstate(all="ignore"):
        return np.unique(np.concatenate(_hash_patterns(np.stack(columns))))


def _first_rows(table: Table, n: int) -> Table:
    rows = slice(n)
    if table.form == "frame":
        return Table("frame", n, table.n_columns, lambda j, _: table.data(j, rows))
    is_array = table.form in ("dense", "sparse")
    return Table(table.form, n, table.n_columns, table.data[rows] if is_array else None)


def _hash_patterns(x: np.ndarray) -> list[np.ndarray]:
    """Hash all patterns of columns, given as an array of shape (p, n)."""
    p = len(x)
    n_across = max(MIN_ROWS_ACROSS, MAX_CELLS_ACROSS // p)
    distinct = _share_of_distinct(x[:, : MAX_JOINT_CELLS // p])
    single = x[distinct >= MIN_DISTINCT]
    parts = [np.empty(0, dtype=np.uint64)]
    if len(single) == 1:
        quads = [(0, *rest) for rest in combinations(range(1, SPAN_ALONE), 3)]
        parts += [hash_along(single, quad) for quad in quads]
    elif len(single):
        parts.append(hash_along(single))
        parts += [_hash_across(single[:, :n_across], triple) for triple in TRIPLES]
    if (distinct < MIN_DISTINCT_ALONE).any() and p >= MIN_CHANGES:
        parts.append(_hash_jointly([x[:, : MAX_JOINT_CELLS // p], *[x[:, :n_across]] * 2]))
    return parts


def _share_of_distinct(x: np.ndarray) -> np.ndarray:
    """Return the share of distinct values in each column of an array of shape (p, n)."""
    return (np.diff(np.sort(x, axis=1), axis=1) != 0).mean(axis=1)


# -- ratios ----------------------------------------------------------------------------------------


def _differences(x: np.ndarray, triple: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return both differences of each three rows; (p, n) -> 2 x (p, n - c)."""
    a, b, c = triple
    n = max(0, x.shape[1] - c)
    return x[:, b : n + b] - x[:, a : n + a], x[:, c:] - x[:, b : n + b]


def _code_ratios(ratios: np.ndarray) -> np.ndarray:
    """Round ratios on a logarithmic scale, and hash them; 0 where there is none."""
    is_used = np.isfinite(ratios) & ~_is_simple(ratios)
    ratios = np.where(is_used, ratios, 1.0)
    codes = 2 * np.rint(np.log(np.abs(ratios)) * STEPS).astype(np.int64) + (ratios > 0)
    return np.where(is_used, mix_bits(codes.view(np.uint64) + np.uint64(2**40)), np.uint64(0))


def _is_simple(ratios: np.ndarray) -> np.ndarray:
    """Whether ratios are zero or those of small integers, as in the numbers of rows."""
    multiples = ratios * MULTIPLE
    return np.abs(multiples - np.rint(multiples)) < TOLERANCE


def hash_along(x: np.ndarray, quad: tuple[int, ...] = (0, 1, 2, 3)) -> np.ndarray:
    """Hash the patterns of four rows along each column of an array of shape (p, n).

    >>> x = np.sqrt([[2.0, 11.0, 3.0, 7.0, 5.0]])
    >>> bool((hash_along(x) == hash_along(-3 * x + 5)).all()), len(hash_along(x))
    (True, 2)
    """
    _, b, c, d = quad
    n = max(0, x.shape[1] - d)
    rows = [x[:, k : n + k] for k in quad]
    ratios = (rows[2] - rows[1]) / (rows[1] - rows[0])
    columns, starts = _choose(ratios)
    x_b, x_c, x_d = (x[columns, starts + k] for k in (b, c, d))
    first, second = _code_ratios(ratios[columns, starts]), _code_ratios((x_d - x_c) / (x_c - x_b))
    is_used = (first != 0) & (second != 0)
    hashes = mix_bits(first + (second << np.uint64(1)) + np.uint64(1))
    return _keep_rare(hashes[is_used], columns[is_used])


def _choose(ratios: np.ndarray) -> tuple[np.ndarray, ...]:
    """Choose at most about `MAX_ALONG` ratios by their later digits, the same in any part."""
    share = MAX_ALONG / max(1, ratios.size)
    if share >= 1:
        return np.nonzero(np.isfinite(ratios))
    digits = np.abs(ratios) * 1000
    return np.nonzero(digits - np.floor(digits) < share)


def _hash_across(x: np.ndarray, triple: tuple[int, int, int]) -> np.ndarray:
    """Hash the patterns across adjacent columns, in either order, of an array of shape (p, n)."""
    before, after = _differences(x, triple)
    codes = _code_ratios(after / before)
    first, second = codes[:-1], codes[1:]
    columns, rows = np.nonzero((first != 0) & (second != 0) & (first != second))
    return _keep_rare(mix_bits(first[columns, rows] + second[columns, rows]), columns)


def _keep_rare(hashes: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the hashes of those columns in which hardly any hash occurs twice."""
    if not len(hashes):
        return hashes
    n_columns = int(columns.max()) + 1
    # One number for a hash and its column: sorting by two is slow.
    own = mix_bits(hashes + column_multipliers(0, n_columns)[columns])
    order = np.argsort(own)
    is_repeated = np.diff(own[order]) == 0
    n_repeated = np.bincount(columns[order[1:]][is_repeated], minlength=n_columns)
    is_rare = n_repeated <= MAX_REPEATED * np.bincount(columns, minlength=n_columns)
    return hashes[is_rare[columns]]


def _hash_jointly(parts: list[np.ndarray]) -> np.ndarray:
    """Hash the ratios of all columns together, in the rows of each triple; (p, n) -> (m,)."""
    order, found = column_multipliers(0, len(parts[0])), []
    for x, triple in zip(parts, TRIPLES, strict=True):
        first, second = _differences(x, triple)
        ratios = second / first
        is_change = np.isfinite(ratios) & (ratios != 0)
        ratios = np.round(np.where(is_change, ratios, 0.0), JOINT_DIGITS) + 0.0
        # Infinite, missing and zero are different patterns.
        states = (2 * (second != 0) + 4 * (first != 0)).astype(np.uint64)
        cells = mix_bits(mix_bits(ratios.view(np.uint64)) + states)
        sums = (cells * order[:, None]).sum(axis=0, dtype=np.uint64)
        found.append(mix_bits(sums[is_change.sum(axis=0) >= MIN_CHANGES]))
    hashes = np.concatenate(found)
    return _keep_rare(hashes, np.zeros(len(hashes), dtype=int))


# -- the target ------------------------------------------------------------------------------------


def _hash_target(y: TargetLike) -> np.ndarray:
    values = np.asarray(y)
    if values.ndim != 1 or values.dtype.kind not in "fiu" or len(values) < MIN_ROWS:
        return np.empty(0, dtype=np.uint64)
    values = as_floats(values[:MAX_TARGETS])
    values = values[np.isfinite(values)]
    if not len(values) or _share_of_distinct(values[None])[0] < MIN_DISTINCT:
        return np.empty(0, dtype=np.uint64)
    d = np.diff(values)
    with np.errstate(all="ignore"):
        ratios = d[1:] / d[:-1]
        is_used = np.isfinite(ratios) & ~_is_simple(ratios)
    words = (np.stack([values[:-2], values[1:-1]])[:, is_used] + 0.0).view(np.uint64)
    second = mix_bits(words[1].copy())  # -0.0 became 0.0
    return np.unique(mix_bits(mix_bits(words[0].copy()) + (second << np.uint64(1)) + np.uint64(1)))
