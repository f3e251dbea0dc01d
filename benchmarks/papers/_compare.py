"""Methods beside each other: best so far, ranks, and from which difference on two mean ranks are apart.

A cell is what every method was run on, such as a task and a seed. `best` maps each method to its best score
so far after each trial, (cells, trials), to be maximized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata, studentized_range

from benchmarks.papers._experiment import Rows, markdown


def common_cells(rows: Rows, cell: Sequence[str]) -> list[tuple]:
    """The cells on which every method was run, in the order in which they appear."""
    done: dict[tuple, set[str]] = {}
    for row in rows:
        done.setdefault(tuple(row[field] for field in cell), set()).add(row["method"])
    methods = {row["method"] for row in rows}
    return [key for key, by in done.items() if by == methods]


def best_so_far(
    rows: Rows, cell: Sequence[str], value: str = "score", *, lower: bool = False
) -> dict[str, np.ndarray]:
    """Method -> best `value` after each trial in the common cells, (cells, trials).

    With `lower` the values are losses, and their negatives are returned. Of runs of different lengths the
    shortest counts.
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
    """Method -> its rank among the methods in each cell after each trial; 1 is best, ties are averaged."""
    # Rounded, since two sums of the same numbers may differ in the last digit and are a tie.
    ranked = rankdata([-values.round(9) for values in best.values()], axis=0)
    return dict(zip(best, ranked, strict=True))


def without_levels(best: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same means, without what the cells differ by for all methods alike, which would hide the rest."""
    level = np.mean(list(best.values()), axis=0)  # (cells, trials)
    return {method: values - level + level.mean(axis=0) for method, values in best.items()}


def mean_over(values: np.ndarray, groups: Sequence) -> np.ndarray:
    """Mean of the cells of each group, in order of appearance; (cells, ...) -> (groups, ...)."""
    names = list(dict.fromkeys(groups))
    return np.array([values[[g == name for g in groups]].mean(axis=0) for name in names])


def critical_difference(n_methods: int, n_cells: int, level: float = 0.05) -> float:
    """From here on two mean ranks are apart at this level, all pairs considered (Nemenyi's test)."""
    q = studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_cells)))


def not_apart(mean_ranks: Mapping[str, float], difference: float) -> list[list[str]]:
    """The largest groups of methods whose mean ranks are all less than `difference` from each other."""
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
    """Mean over the cells after some numbers of trials, as Markdown; those beyond the last are left out."""
    length = min(v.shape[1] for v in values.values())
    at = [k for k in at if k <= length]
    body = [[name, *(float(v[:, k - 1].mean()) for k in at)] for name, v in values.items()]
    return markdown([first, *(f"k = {k}" for k in at)], body)
