"""Whole races with several limits of the probability, on the development families.

    OMP_NUM_THREADS=1 python -m benchmarks.racing_limits

`benchmarks.racing_rules` simulates races on recorded searches, whose proposals do not depend on
what was stopped. Here each race proposes for itself. The limit of the package is the largest one
whose mean loss is below that of the aim with either number of folds.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.data import data_folder
from benchmarks.pools import PROBLEMS
from benchmarks.racing import (
    FIELDS,
    MAX_LOSS,
    MAX_ROWS,
    N_ITER,
    interval,
    load,
    loss_of,
    missed_by,
    score_random,
    search,
    targets,
)
from benchmarks.runner import (
    RESULTS,
    format_page,
    make_parser,
    markdown_table,
    packed_file,
    run_all,
    update_runs,
)

LIMITS = (0.05, 0.1, 0.18)
ESTIMATORS = ("svc", "tree", "svr")
N_SETS = 5
STORE = "racing-limits.jsonl"
PAGE = RESULTS / "racing_limits.md"


def run(estimator: str, data: str, n_folds: int, folder: Path) -> dict[str, Any]:
    """A search without racing, random configurations, and a race with each limit."""
    X, y = load(PROBLEMS[estimator].kind, data, folder)
    races = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for limit in LIMITS:
            with mock.patch("sktransfer.model_selection._racing.MAX_PROBABILITY", limit):
                races[str(limit)] = search(estimator, X, y, n_folds, racing=True)
        return {
            "races": races,
            "all": search(estimator, X, y, n_folds, racing=False),
            "random": score_random(estimator, data, n_folds, folder),
        }


def cells(folder: Path) -> list[tuple[str, str, int]]:
    found = []
    for estimator in ESTIMATORS:
        names = targets(PROBLEMS[estimator].kind, "development", folder)
        for data in np.random.default_rng(0).permutation(names)[:N_SETS].tolist():
            found += [(estimator, data, n_folds) for n_folds in (5, 10)]
    return found


def table(rows: list[dict[str, Any]]) -> list[str]:
    body = []
    for limit in LIMITS:
        for n_folds in (5, 10):
            own = [
                row | {"racing": row["races"][str(limit)]}
                for row in rows
                if row["n_folds"] == n_folds
            ]
            saved = [1 - row["racing"]["fits"] / row["all"]["fits"] for row in own]
            missed, losses = ([each(row) for row in own] for each in (missed_by, loss_of))
            body.append(
                [f"{limit}", str(n_folds), str(len(own))]
                + [interval(each) for each in (saved, missed, losses)]
            )
    head = ["probability below", "folds", "searches", "fits saved", "missed", "loss"]
    return markdown_table(head, body)


def write_page(rows: list[dict[str, Any]]) -> None:
    lines = [
        "# Limits for racing",
        "",
        "Whole races of the default surrogate with several limits of the probability, below which "
        f"a candidate is stopped. {N_ITER} candidates, data sets of the development families with "
        f"at most {MAX_ROWS} rows: {', '.join(ESTIMATORS)}. Columns are as in [racing](racing.md), "
        "with 95 % intervals.",
        "",
        *table(rows),
        "",
        "The package uses the largest limit whose mean loss is below "
        f"{MAX_LOSS} with 5 and with 10 folds, in both columns.",
        "",
        "```",
        "OMP_NUM_THREADS=1 python -m benchmarks.racing_limits",
        "```",
    ]
    PAGE.write_text(format_page(lines))


def main() -> None:
    options = make_parser(__doc__, "data", "work", "jobs").parse_args()
    folder = data_folder(options.data)
    store = options.work / STORE
    rows = run_all(
        store, FIELDS, cells(folder), run, options.jobs, lambda key: (folder,), packed_file(PAGE)
    )
    update_runs(rows, packed_file(PAGE), FIELDS)
    write_page(rows)


if __name__ == "__main__":
    main()
