"""Rows of the experiment `copula`: which runs there are, and their gain over random search."""

from __future__ import annotations

import numpy as np

from benchmarks.papers._experiment import Rows

TIMED, OTHERS = ("fcnet", "deepar"), ("xgboost-libsvm", "nasbench201")


def runs_of(rows: Rows, task: str, method: str) -> Rows:
    return [row for row in rows if (row["task"], row["method"]) == (task, method)]


def improvements(rows: Rows, task: str, method: str) -> np.ndarray:
    """Return the improvement over random search in percent, (runs, trials)."""
    random = np.array(
        next(row["random"] for row in rows if row["task"] == task and "random" in row)
    )
    best = np.minimum.accumulate([row["loss"] for row in runs_of(rows, task, method)], axis=1)
    return 100 * (random - best) / random


def tasks_of(rows: Rows, methods: list[str]) -> list[tuple[str, str]]:
    """Return the (suite, task) on which all of these methods were run."""
    found = dict.fromkeys((row["suite"], row["task"]) for row in rows)
    return [(s, t) for s, t in found if all(runs_of(rows, t, method) for method in methods)]


def shared(rows: Rows, methods: list[str]) -> Rows:
    """Return the runs with the tasks and seeds that all of these methods share."""
    of = [{(r["task"], r["seed"]) for r in rows if r["method"] == method} for method in methods]
    both = set.intersection(*of)
    return [
        r
        for r in rows
        if "random" in r or (r["method"] in methods and (r["task"], r["seed"]) in both)
    ]


def run_on(rows: Rows, wanted: list[str]) -> list[str]:
    """Return those of the methods that have runs."""
    done = {row["method"] for row in rows}
    return [method for method in wanted if method in done]
