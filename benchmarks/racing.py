"""Racing: how many fits it saves, and what it costs.

    OMP_NUM_THREADS=1 python -m benchmarks.racing --jobs 2      # resumes

Each cell is an estimator with its space, a data set of the report families with at most MAX_ROWS
rows, and a number of folds. `TransferSearchCV` with its default surrogate evaluates N_ITER
configurations, with racing and without. Losses are differences of best scores, all means over all
folds, in units of the distance between the best score and the median of N_RANDOM random
configurations on the same folds: 0 is no difference, and 1 is as bad as random configurations are.
The folds that racing left out are evaluated afterwards. So there are two losses: against the best
of the same candidates, which is what racing missed, and against the search without racing, which
proposes other configurations. The latter is negative where racing happened to find a better one.

The rule that stops candidates was chosen on recorded searches on the development families.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from benchmarks.data import data_folder
from benchmarks.pools import PROBLEMS, SCORING, load, space_of, targets
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

ESTIMATORS = ("svc", "tree", "svr", "forest", "boosting")
N_SETS, N_ITER, N_RANDOM, MAX_ROWS = 8, 25, 24, 400
MAX_LOSS, NARROW = 0.01, 0.05
FIELDS = ("estimator", "data", "n_folds")
PAGE = RESULTS / "racing.md"
STORE = "racing.jsonl"


def make_folds(kind: str, n_folds: int) -> Any:
    """Return the splitter that all configurations of a cell are scored on."""
    splitter = StratifiedKFold if kind == "classification" else KFold
    return splitter(n_folds, shuffle=True, random_state=0)


def search(estimator: str, X: np.ndarray, y: np.ndarray, n_folds: int, racing: bool) -> dict:
    """Search once; returns the scores, the number of fits and the seconds."""
    problem = PROBLEMS[estimator]
    made = TransferSearchCV(
        problem.estimator,
        problem.space,
        n_iter=N_ITER,
        cv=make_folds(problem.kind, n_folds),
        scoring=SCORING[problem.kind],
        archive=None,
        refit=False,
        racing=racing,
        random_state=0,
    )
    start, clock = time.process_time(), time.perf_counter()
    made.fit(X, y)
    seconds, wall = time.process_time() - start, time.perf_counter() - clock
    results = made.cv_results_
    n_fits = int(np.sum(results["n_folds_evaluated"])) if racing else N_ITER * n_folds
    found = {"best": float(made.best_score_), "fits": n_fits}
    found |= {"seconds": round(seconds, 3), "wall": round(wall, 3)}
    if not racing:
        return found
    return found | {"best_of_all": best_of_all(estimator, X, y, n_folds, results)}


def best_of_all(
    estimator: str, X: np.ndarray, y: np.ndarray, n_folds: int, results: dict[str, Any]
) -> float:
    """Best score of the candidates of a race, after their missing folds are evaluated."""
    problem = PROBLEMS[estimator]
    columns = [results[f"split{fold}_test_score"] for fold in range(n_folds)]
    scores = np.array(columns).T  # (N_ITER, n_folds)
    folds = list(make_folds(problem.kind, n_folds).split(X, y))
    for own, params, mean in zip(
        scores, results["params"], results["mean_test_score"], strict=True
    ):
        missing = np.flatnonzero(np.isnan(own))
        if len(missing) and np.isfinite(mean):  # a failed candidate has no score
            candidate = clone(problem.estimator).set_params(**params)
            left = [folds[fold] for fold in missing]
            own[missing] = cross_val_score(candidate, X, y, cv=left, scoring=SCORING[problem.kind])
    return float(np.nanmax(scores.mean(axis=1)))


def score_random(estimator: str, data: str, n_folds: int, folder: Path) -> list[float]:
    """Scores of random configurations."""
    problem = PROBLEMS[estimator]
    X, y = load(problem.kind, data, folder)
    drawn = space_of(estimator).sample(N_RANDOM, np.random.default_rng(0))
    folds, scoring = make_folds(problem.kind, n_folds), SCORING[problem.kind]
    models = [clone(problem.estimator).set_params(**params) for params in drawn]
    scores = [cross_val_score(model, X, y, cv=folds, scoring=scoring).mean() for model in models]
    return [round(float(score), 5) for score in scores]


def run(estimator: str, data: str, n_folds: int, folder: Path) -> dict[str, Any]:
    """Search with racing and without, and score random configurations."""
    X, y = load(PROBLEMS[estimator].kind, data, folder)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {
            "racing": search(estimator, X, y, n_folds, racing=True),
            "all": search(estimator, X, y, n_folds, racing=False),
            "random": score_random(estimator, data, n_folds, folder),
        }


def loss_of(row: dict[str, Any]) -> float:
    """The normalized loss against the search without racing."""
    return _normalize(row["all"]["best"] - row["racing"]["best"], row)


def missed_by(row: dict[str, Any]) -> float:
    """The normalized loss against the best of the candidates that racing proposed."""
    return _normalize(row["racing"]["best_of_all"] - row["racing"]["best"], row)


def _normalize(difference: float, row: dict[str, Any]) -> float:
    """A difference of scores in units of the cell; 0 where all configurations score the same."""
    spread = spread_of(row)
    return difference / spread if spread > 1e-9 else 0.0


def spread_of(row: dict[str, Any]) -> float:
    """The unit of the losses of a cell."""
    best = max(row["all"]["best"], row["racing"]["best_of_all"], np.nanmax(row["random"]))
    return float(best - np.nanmedian(row["random"]))


def interval(values: list[float]) -> str:
    """Mean and 95 % bootstrap interval."""
    drawn = np.random.default_rng(0).choice(values, (2000, len(values))).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{np.mean(values):.3f} ({low:.3f} to {high:.3f})"


def table(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each estimator and number of folds."""
    body = []
    for n_folds in sorted({row["n_folds"] for row in rows}):
        for estimator in (*ESTIMATORS, "all"):
            own = [
                row
                for row in rows
                if row["n_folds"] == n_folds and estimator in (row["estimator"], "all")
            ]
            if not own:
                continue
            saved = [1 - row["racing"]["fits"] / row["all"]["fits"] for row in own]
            seconds, wall = (
                [1 - row["racing"][clock] / row["all"][clock] for row in own]
                for clock in ("seconds", "wall")
            )
            missed = [missed_by(row) for row in own]
            points = [row["racing"]["best_of_all"] - row["racing"]["best"] for row in own]
            body.append(
                [
                    str(n_folds),
                    f"**{estimator}**" if estimator == "all" else estimator,
                    str(len(own)),
                    interval(saved),
                    interval(missed),
                    f"{np.mean(np.array(missed) < 1e-9):.0%}",
                    f"{np.mean(points):.4f}",
                    interval([loss_of(row) for row in own]),
                    f"{np.mean(seconds):.0%}",
                    f"{np.mean(wall):.0%}",
                ]
            )
    head = ["folds", "estimator", "data sets", "fits saved", "missed", "nothing missed"]
    head += ["missed score", "loss", "CPU time saved", "wall clock saved"]
    return markdown_table(head, body)


def verdict(rows: list[dict[str, Any]]) -> list[str]:
    """What was aimed at, and what was reached."""
    lines = [
        "The aims were 40 % of the fits with 5 folds and 60 % with 10, at a mean loss below 0.01."
    ]
    for n_folds, aim in ((5, 0.4), (10, 0.6)):
        own = [row for row in rows if row["n_folds"] == n_folds]
        saved = np.mean([1 - row["racing"]["fits"] / row["all"]["fits"] for row in own])
        missed, loss = (np.mean([each(row) for row in own]) for each in (missed_by, loss_of))
        lines.append(
            f"With {n_folds} folds, the share is {judge(saved >= aim)}. The loss is "
            f"{judge(missed < MAX_LOSS)} within the same candidates ({missed:.3f}) and "
            f"{judge(loss < MAX_LOSS)} against the other search ({loss:.3f}), in the mean."
        )
    narrow = [row for row in rows if spread_of(row) < NARROW]
    share = sum(map(missed_by, narrow)) / max(sum(map(missed_by, rows)), 1e-12)
    lines.append(
        "Where the loss against the other search is larger than what was missed, the race proposed "
        "worse configurations, presumably because the surrogate knows less of stopped candidates. "
        "Simulations on recorded searches, by which the kind of rule was chosen "
        "([racing_rules](racing_rules.md)), do not show this. The limit was chosen by whole races "
        "on the development families ([racing_limits](racing_limits.md)). "
        f"In {len(narrow)} of the {len(rows)} searches, the unit of the loss is smaller than "
        f"{NARROW} of score. They make up {share:.0%} of what was missed."
    )
    return lines


def judge(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def write_page(rows: list[dict[str, Any]], page: Path) -> None:
    """Write the page of results."""
    lines = [
        "# Racing",
        "",
        "`TransferSearchCV(..., racing=True)` stops a candidate after its first folds when it is "
        "unlikely to become the best. Searches with the default surrogate and "
        f"{N_ITER} candidates, with racing and without it, on data sets of the report families "
        f"with at most {MAX_ROWS} rows. {len({row['data'] for row in rows})} data sets were "
        "measured.",
        "",
        "* *Fits saved*: share of the fits that racing left out, with a 95 % interval.",
        "* *Missed*: best score of all candidates of the race, whose missing folds were evaluated "
        "afterwards, minus that of the candidate it ended with. In units of the distance between "
        f"the best score and the median of {N_RANDOM} random configurations.",
        "* *Nothing missed*: share of the searches that ended with the best of their candidates. "
        "*Missed score* is in balanced accuracy or R².",
        "* *Loss*: best score without racing minus best score with it, in the same units. The two "
        "searches propose different configurations once a candidate was stopped, so this includes "
        "the luck of either.",
        "* *CPU time* and *wall clock* saved: those of the whole search, the proposals included. "
        "The fits are short (milliseconds to tens of milliseconds), so the proposals are a large "
        "part of it.",
        "",
        *table(rows),
        "",
        *verdict(rows),
        "",
        "```",
        "OMP_NUM_THREADS=1 python -m benchmarks.racing",
        "```",
    ]
    page.write_text(format_page(lines))


def cells(folder: Path) -> list[tuple[str, str, int]]:
    """All cells, so ordered that the first ones are of all kinds."""
    order = {
        kind: np.random.default_rng(0).permutation(targets(kind, "report", folder)).tolist()
        for kind in SCORING
    }
    return [
        (estimator, order[PROBLEMS[estimator].kind][number], n_folds)
        for number in range(N_SETS)
        for n_folds in (5, 10)
        for estimator in ESTIMATORS
        if number < len(order[PROBLEMS[estimator].kind])
    ]


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "jobs", "report")
    parser.add_argument("--only-report", action="store_true", help="report the finished runs")
    options = parser.parse_args()
    folder, packed = data_folder(options.data), packed_file(PAGE)
    keys, store = cells(folder), options.work / STORE
    if not options.only_report:
        run_all(store, FIELDS, keys, run, options.jobs, lambda key: (folder,), packed)
    done = read_rows(store, FIELDS, packed)
    rows = [done[key] for key in keys if key in done]
    update_runs(rows, packed, FIELDS)
    write_page(rows, options.report or PAGE)


if __name__ == "__main__":
    main()
