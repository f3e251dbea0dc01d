"""Which rule to stop candidates by: simulated on searches that were recorded without racing.

    OMP_NUM_THREADS=1 python -m benchmarks.racing_rules --jobs 2      # resumes

The searches are those of `benchmarks.racing` without racing, on data sets of the development
families. Each rule goes through the candidates of a search in their order. The loss is that of the
candidate that it ends with against the best one of the same search, in the units of
`benchmarks.racing`.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from benchmarks.data import data_folder
from benchmarks.pools import PROBLEMS, SCORING, load, space_of, targets
from benchmarks.racing import ESTIMATORS, FIELDS, N_ITER, N_RANDOM, make_folds
from benchmarks.runner import (
    RESULTS,
    format_page,
    make_parser,
    markdown_table,
    packed_file,
    read_rows,
    run_all,
    update_runs,
)
from sktransfer import TransferSearchCV
from sktransfer.model_selection import _racing
from sktransfer.model_selection._racing import Race

N_SETS = 7
PAGE = RESULTS / "racing_rules.md"
NEVER = 10**6
RULES = [  # MAX_PROBABILITY, MIN_GAIN, MIN_FOR_ORDER
    (0.05, 0.3, 4),
    (0.1, 0.0, 4),
    (0.1, 0.1, 4),
    (0.1, 0.2, 4),
    (0.1, 0.2, NEVER),
    (0.1, 0.3, 4),
    (0.2, 0.1, 4),
    (0.2, 0.3, 4),
    (0.4, 0.3, 4),
]


def run(estimator: str, data: str, n_folds: int, folder: Path) -> dict[str, Any]:
    """Record a search: the fold scores of its candidates, and the scores of random ones."""
    problem = PROBLEMS[estimator]
    X, y = load(problem.kind, data, folder)
    folds, scoring = make_folds(problem.kind, n_folds), SCORING[problem.kind]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        search = TransferSearchCV(
            problem.estimator,
            problem.space,
            n_iter=N_ITER,
            cv=folds,
            scoring=scoring,
            archive=None,
            refit=False,
            random_state=0,
        ).fit(X, y)
        random = [
            cross_val_score(
                clone(problem.estimator).set_params(**params),
                X,
                y,
                cv=make_folds(problem.kind, 5),  # one unit of the loss for all numbers of folds
                scoring=scoring,
            ).mean()
            for params in space_of(estimator).sample(N_RANDOM, np.random.default_rng(0))
        ]
    columns = [search.cv_results_[f"split{fold}_test_score"] for fold in range(n_folds)]
    return {"scores": np.array(columns).T.round(6).tolist(), "median": float(np.median(random))}


def simulate(scores: np.ndarray) -> tuple[float, float]:
    """Share of the fits saved, and the mean score of the candidate that the race ends with."""
    n_folds = scores.shape[1]
    race, n_seen = Race([1] * n_folds), 0
    for own in scores:
        seen = np.full(n_folds, math.nan)
        for fold in race.fold_order():
            seen[fold], n_seen = own[fold], n_seen + 1
            if not math.isfinite(own[fold]) or race.is_lost(seen):
                break
        else:
            race.add(own)
    assert race.incumbent is not None
    return 1 - n_seen / scores.size, float(race.incumbent.mean())


def row_of(rule: tuple, rows: list[dict[str, Any]]) -> list[str]:
    """What a rule saves and loses with each number of folds."""
    probability, gain, min_for_order = rule
    named = {"MAX_PROBABILITY": probability, "MIN_GAIN": gain, "MIN_FOR_ORDER": min_for_order}
    found: dict[int, list[tuple[float, float]]] = {5: [], 10: []}
    with patch.multiple(_racing, **named):
        for row in rows:
            scores = np.array(row["scores"], dtype=float)
            best = np.nanmax(scores.mean(axis=1))
            saved, reached = simulate(scores)
            spread = best - row["median"]
            found[row["n_folds"]].append((saved, (best - reached) / spread if spread > 1e-6 else 0))
    order = "as given" if min_for_order == NEVER else "most telling first"
    shares = [f"{m:.3f}" for n in found for m in np.mean(found[n], axis=0)]
    return [f"{probability}", f"{gain}", order, *shares]


def write_page(rows: list[dict[str, Any]], page: Path) -> None:
    """Write the page of results."""
    head = ["probability below", "gain in standard errors", "folds"]
    head += [f"{name}, {n} folds" for n in (5, 10) for name in ("saved", "loss")]
    n = {folds: sum(row["n_folds"] == folds for row in rows) for folds in (5, 10)}
    lines = [
        "# Rules for racing",
        "",
        "A candidate is stopped when the probability that it becomes better than the best one, by "
        "a gain in standard errors of the best mean, falls below a limit. Simulated on "
        f"{n[5]} searches with 5 folds and {n[10]} with 10, recorded without racing on data sets "
        "of the development families. *Loss* is against the best candidate of the same search, "
        "where 1 is the distance to the median of random configurations.",
        "",
        f"The package uses {_racing.MAX_PROBABILITY} and {_racing.MIN_GAIN}: the most fits saved "
        "at a loss of at most 0.01 with either number of folds.",
        "",
        *markdown_table(head, [row_of(rule, rows) for rule in RULES]),
        "",
        "```",
        "OMP_NUM_THREADS=1 python -m benchmarks.racing_rules",
        "```",
    ]
    page.write_text(format_page(lines))


def cells(folder: Path) -> list[tuple[str, str, int]]:
    order = {
        kind: np.random.default_rng(1).permutation(targets(kind, "development", folder)).tolist()
        for kind in SCORING
    }
    return [
        (estimator, order[PROBLEMS[estimator].kind][number], n_folds)
        for n_folds in (5, 10)
        for number in range(N_SETS)
        for estimator in ESTIMATORS
    ]


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "jobs", "report")
    parser.add_argument("--only-report", action="store_true", help="report the finished runs")
    options = parser.parse_args()
    folder, packed = data_folder(options.data), packed_file(PAGE)
    keys, store = cells(folder), options.work / "racing_rules.jsonl"
    if not options.only_report:
        run_all(store, FIELDS, keys, run, options.jobs, lambda key: (folder,), packed)
    done = read_rows(store, FIELDS, packed)
    rows = [done[key] for key in keys if key in done]
    update_runs(rows, packed, FIELDS)
    write_page(rows, options.report or PAGE)


if __name__ == "__main__":
    main()
