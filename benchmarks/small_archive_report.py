"""Tables of `benchmarks.small_archives`: differences to the search without an archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.runner import markdown_table

NONE = "no archive"
AT = (1, 3, 5, 10, 15)
MAX_LOSS = 0.03  # that a single case may be behind after ten trials


class Case(NamedTuple):
    """A search with an archive beside the one without, both averaged over the same seeds.

    Parameters
    ----------
    data : str
    best, without : ndarray of shape (len(AT),)
        Best scores after some trials.
    """

    data: str
    best: np.ndarray
    without: np.ndarray


def best_after(row: Mapping[str, Any]) -> np.ndarray:
    """The best score after the numbers of trials in AT."""
    scores = np.maximum.accumulate(np.nan_to_num(row["scores"], nan=0.0))
    return scores[np.array(AT) - 1]


def collect(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, int], list[Case]]:
    """(problem, archive, number of past searches) -> cases."""
    without = {
        (row["problem"], row["data"], row["seed"]): best_after(row)
        for row in rows
        if row["archive"] == NONE
    }
    found: dict[tuple, dict[str, list[tuple[np.ndarray, np.ndarray]]]] = {}
    for row in rows:
        if row["archive"] == NONE:
            continue
        key = row["problem"], row["archive"], row["n_past"]
        pair = best_after(row), without[row["problem"], row["data"], row["seed"]]
        found.setdefault(key, {}).setdefault(row["data"], []).append(pair)
    return {
        key: [Case(data, *np.mean(pairs, axis=0)) for data, pairs in by.items()]
        for key, by in found.items()
    }


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Mean and half of the 95 % interval over data sets."""
    return float(differences.mean()), float(
        1.96 * differences.std(ddof=1) / np.sqrt(len(differences))
    )


def write_differences(cases: Mapping[tuple, Sequence[Case]]) -> list[str]:
    """A table of mean differences to the search without an archive."""
    body = []
    for (problem, archive, n), own in cases.items():
        apart = np.array([case.best - case.without for case in own])
        cells = [f"{m:+.3f} ± {half:.3f}" for m, half in map(interval, apart.T)]
        body.append([problem, archive, str(n), *cells])
    return markdown_table(["problem", "archive", "past searches", *map(str, AT)], body)


def count_behind(cases: Mapping[tuple, Sequence[Case]]) -> list[str]:
    """The combinations that are behind beyond the noise."""
    found = []
    for (problem, archive, n), own in cases.items():
        for column, k in enumerate(AT):
            mean, half = interval(np.array([(c.best - c.without)[column] for c in own]))
            if mean + half < 0:
                found.append(f"{problem}, {archive}, {n} past, trial {k}: {mean:+.3f} ± {half:.3f}")
    return found


def write_worst(cases: Mapping[tuple, Sequence[Case]], n_shown: int = 10) -> list[str]:
    """The cases that are farthest behind after ten trials."""
    column = AT.index(10)
    ranked = sorted(
        (float((case.best - case.without)[column]), key, case.data)
        for key, own in cases.items()
        for case in own
    )
    body = [
        [problem, archive, str(n), data, f"{apart:+.3f}"]
        for apart, (problem, archive, n), data in ranked[:n_shown]
    ]
    below = sum(apart < -MAX_LOSS for apart, _, _ in ranked)
    return [
        f"{below} of {len(ranked)} cases are more than {MAX_LOSS} behind after ten trials, "
        f"{sum(apart > MAX_LOSS for apart, _, _ in ranked)} more than {MAX_LOSS} ahead. "
        "Those farthest behind:",
        "",
        *markdown_table(["problem", "archive", "past searches", "data", "difference"], body),
    ]


def write_noise(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table of how far two seeds of the search without an archive differ after ten trials."""
    column = AT.index(10)
    by_seed: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["archive"] == NONE:
            values = by_seed.setdefault((row["problem"], row["data"]), [])
            values.append(float(best_after(row)[column]))
    apart: dict[str, list[float]] = {}
    for (problem, _), values in by_seed.items():
        if len(values) > 1:
            apart.setdefault(problem, []).append(abs(values[0] - values[1]))
    body = [
        [
            problem,
            f"{np.mean(own):.3f}",
            f"{np.max(own):.3f}",
            f"{sum(each > MAX_LOSS for each in own)} of {len(own)}",
        ]
        for problem, own in apart.items()
    ]
    head = ["problem", "mean difference", "largest", f"more than {MAX_LOSS}"]
    return markdown_table(head, body)


def write_defaults(
    rows: Sequence[Mapping[str, Any]], default_rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """A table of searches without an archive that begin with the estimator's own settings."""
    default = {(row["problem"], row["data"]): row["scores"][0] for row in default_rows}
    body = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        own = [
            row
            for row in rows
            if row["problem"] == problem and row["archive"] == NONE and row["seed"] == 0
        ]
        own_settings = np.array([default[problem, row["data"]] for row in own])
        scores = np.nan_to_num([row["scores"] for row in own], nan=0.0)
        best = np.maximum.accumulate(scores, axis=1)
        later = np.maximum.accumulate(np.column_stack([own_settings, scores[:, :-1]]), axis=1)
        columns = np.array(AT) - 1
        apart = (later - best)[:, columns]
        below = [int((best[:, k - 1] < own_settings).sum()) for k in (1, 10)]
        cells = [f"{m:+.3f} ± {half:.3f}" for m, half in map(interval, apart.T)]
        body.append([problem, f"{below[0]} of {len(own)}", f"{below[1]} of {len(own)}", *cells])
    head = ["problem", "first trial below", "best of ten below", *map(str, AT)]
    return markdown_table(head, body)
