"""Comparison of methods: best so far, ranks and critical differences.

A cell is a problem that every method was run on, such as a task and a seed. `best` maps each method
to its best score so far after each trial, (cells, trials), to be maximized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata, studentized_range

from benchmarks.papers._experiment import Rows, markdown


def common_cells(rows: Rows, cell: Sequence[str]) -> list[tuple]:
    """Return the cells on which every method was run, in order of appearance."""
    done: dict[tuple, set[str]] = {}
    for row in rows:
        done.setdefault(tuple(row[field] for field in cell), set()).add(row["method"])
    methods = {row["method"] for row in rows}
    return [key for key, by in done.items() if by == methods]


def best_so_far(
    rows: Rows, cell: Sequence[str], value: str = "score", *, lower: bool = False
) -> dict[str, np.ndarray]:
    """Map method to the best `value` after each trial in the common cells, (cells, trials).

    With `lower` the values are losses, and their negatives are returned. Runs are truncated to the
    shortest one.
    """
    found = {(row["method"], *(row[field] for field in cell)): row[value] for row in rows}
    cells, sign = common_cells(rows, cell), -1.0 if lower else 1.0
    length = min(len(values) for key, values in found.items() if key[1:] in cells)
    return {
        method: np.maximum.accumulate(
            sign * np.array([found[method, *key][:length] for key in cells]), axis=1
        )
        for method in dict.fromkeys(row["method"] for row in rows)
    }


def ranks(best: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Map method to its rank in each cell after each trial; 1 is best, ties are averaged."""
    # Values that differ only by rounding errors are ties.
    ranked = rankdata([-values.round(9) for values in best.values()], axis=0)
    return dict(zip(best, ranked, strict=True))


def without_levels(best: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the same means without the differences between cells that all methods share.

    These differences would hide those between methods.
    """
    level = np.mean(list(best.values()), axis=0)  # (cells, trials)
    return {method: values - level + level.mean(axis=0) for method, values in best.items()}


def mean_over(values: np.ndarray, groups: Sequence) -> np.ndarray:
    """Average the cells of each group, in order of appearance; (cells, ...) -> (groups, ...)."""
    names = list(dict.fromkeys(groups))
    return np.array([values[[g == name for g in groups]].mean(axis=0) for name in names])


def critical_difference(n_methods: int, n_cells: int, level: float = 0.05) -> float:
    """Return the critical difference of mean ranks over all pairs (Nemenyi's test)."""
    q = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_cells)))


def not_apart(mean_ranks: Mapping[str, float], difference: float) -> list[list[str]]:
    """Return the largest groups of methods whose mean ranks differ by less than `difference`."""
    order = sorted(mean_ranks, key=lambda method: mean_ranks[method])
    groups: list[list[str]] = []
    for first, method in enumerate(order):
        group = [m for m in order[first:] if mean_ranks[m] - mean_ranks[method] < difference]
        if len(group) > 1 and not (groups and set(group) <= set(groups[-1])):
            groups.append(group)
    return groups


def trials_table(
    values: Mapping[str, np.ndarray], at: Sequence[int], first: str = "method"
) -> list[str]:
    """Return a table of means over the cells after the numbers of trials that exist."""
    length = min(v.shape[1] for v in values.values())
    at = [k for k in at if k <= length]
    body = [[name, *(float(v[:, k - 1].mean()) for k in at)] for name, v in values.items()]
    return markdown([first, *(f"k = {k}" for k in at)], body)
