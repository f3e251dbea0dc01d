"""Which rule to stop candidates by: simulated on searches that were recorded without racing.

    OMP_NUM_THREADS=1 python -m benchmarks.racing_rules --jobs 2      # resumes

The searches are those of `benchmarks.racing` without racing, on data sets of the development
families. Each rule goes through the candidates of a search in their order. The loss is that of the
candidate that it ends with against the best one of the same search, in the units of
`benchmarks.racing`. `benchmarks.racing_kinds` has the rules that are not the package's.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from benchmarks.data import data_folder
from benchmarks.pools import PROBLEMS, SCORING, load, space_of, targets
from benchmarks.racing import ESTIMATORS, FIELDS, N_ITER, N_RANDOM, interval, make_folds
from benchmarks.racing_kinds import Rule, RuleRace
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
from sktransfer.model_selection._racing import Prediction, Race

N_SETS, N_VARIATIONS, DROPPED = 10, 4, 0.1
PAGE = RESULTS / "racing_rules.md"
FORMER = Rule(0.1, gain=0.2, knows_repeats=False)
PRIOR = Rule(0.1, prior="surrogate", is_forgiving=True)
RULES: dict[str, Rule | None] = {
    "paired differences by 0.2 standard errors, below 0.1 (the former rule)": FORMER,
    "the same with repeats": FORMER._replace(knows_repeats=True),
    "paired differences with repeats, below 0.1": Rule(0.1),
    "fold levels with repeats, below 0.1": Rule(0.1, fold_levels=True),
    "expected improvement with repeats, below 0.02": Rule(0.02, is_improvement=True),
    "fold levels with repeats, limit rises from 0.05 to 0.2": Rule(0.05, 0.2, fold_levels=True),
    "fold levels with repeats, below 0.5, continued at the end above 0.08": Rule(
        0.5, fold_levels=True, resume_above=0.08
    ),
    "fold levels with repeats, prior from candidates, below 0.1": Rule(
        0.1, fold_levels=True, prior="candidates"
    ),
    "paired differences, prior from the surrogate, below 0.18": PRIOR._replace(
        limit=0.18, knows_repeats=False
    ),
    "paired differences with repeats, unforgiving prior from the surrogate, below 0.18": Rule(
        0.18, prior="surrogate"
    ),
    **{
        f"paired differences with repeats, prior from the surrogate, below {limit}": PRIOR._replace(
            limit=limit
        )
        for limit in (0.12, 0.15, 0.18, 0.2)
    },
    f"**the package**: the same, below {_racing.MAX_PROBABILITY}": None,
}


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
    results = search.cv_results_
    columns = [results[f"split{fold}_test_score"] for fold in range(n_folds)]
    predicted = [results["predicted_mean"], results["predicted_std"]]
    return {
        "scores": np.array(columns).T.round(6).tolist(),
        "predicted": np.array(predicted, dtype=float).T.round(6).tolist(),
        "median": float(np.median(random)),
    }


def simulate(scores: np.ndarray, predicted: np.ndarray, rule: Rule | None) -> tuple[float, float]:
    """Share of the fits saved, and the mean score of the candidate that the race ends with.

    Without a rule, the race is that of the package.
    """
    (m, n_folds), stopped = scores.shape, list[tuple[np.ndarray, int]]()
    race = Race([1] * n_folds) if rule is None else RuleRace(n_folds, rule)
    n_seen = 0
    for number, own in enumerate(scores):
        before = math.nan if race.incumbent is None else float(race.incumbent.mean())
        limit, seen = limit_of(rule, number / (m - 1)), np.full(n_folds, math.nan)
        for fold in race.fold_order():
            is_racing = race.incumbent is not None and np.isfinite(seen).any()
            if is_racing and race.probability(seen, Prediction(*predicted[number])) < limit:
                stopped.append((seen, number))
                break
            seen[fold], n_seen = own[fold], n_seen + 1
            if not math.isfinite(own[fold]):
                break
        else:
            race.add(own)
        if isinstance(race, RuleRace) and np.isfinite(own).all():
            race.end(seen, before)
    if rule is not None and rule.resume_above is not None:
        n_seen += resume(race, scores, stopped, rule.resume_above)
    assert race.incumbent is not None
    return 1 - n_seen / scores.size, float(race.incumbent.mean())


def limit_of(rule: Rule | None, progress: float) -> float:
    """The limit for a candidate after a share of the others."""
    if rule is None:
        return _racing.MAX_PROBABILITY
    return rule.limit * ((rule.last_limit or rule.limit) / rule.limit) ** progress


def resume(
    race: Race, scores: np.ndarray, stopped: list[tuple[np.ndarray, int]], limit: float
) -> int:
    """Continue stopped candidates, the most probable one first; returns the number of fits."""
    n_fits = 0
    while stopped:
        found = [race.probability(seen) for seen, _ in stopped]
        best = int(np.argmax(found))
        if found[best] < limit:
            break
        seen, number = stopped[best]
        fold = next(fold for fold in race.fold_order() if not math.isfinite(seen[fold]))
        seen[fold], n_fits = scores[number, fold], n_fits + 1
        if not math.isfinite(seen[fold]) or np.isfinite(seen).all():
            stopped.pop(best)
        if np.isfinite(seen).all():
            race.add(seen)
    return n_fits


def measure(row: dict[str, Any], seed: int, rule: Rule | None) -> tuple[float, float]:
    """Fits saved and loss in one search, averaged over its variations.

    Variations have their folds in another order and leave out a tenth of the candidates, so that
    the figures depend less on the luck of a few folds.
    """
    found = []
    for variation in range(N_VARIATIONS):
        rng = np.random.default_rng([variation, seed])
        scores, predicted = np.array(row["scores"], float), np.array(row["predicted"], float)
        if variation:
            folds, kept = rng.permutation(scores.shape[1]), rng.random(len(scores)) > DROPPED
            kept[0] = True
            scores, predicted = scores[kept][:, folds], predicted[kept]
        saved, reached = simulate(scores, predicted, rule)
        best = np.nanmax(scores.mean(axis=1))
        spread = best - row["median"]
        found.append((saved, (best - reached) / spread if spread > 1e-6 else 0.0))
    return tuple(np.mean(found, axis=0).tolist())


def row_of(name: str, rule: Rule | None, rows: list[dict[str, Any]]) -> list[str]:
    """What a rule saves and loses with each number of folds."""
    measured = [measure(row, number, rule) for number, row in enumerate(rows)]
    cells = []
    for n_folds in (5, 10):
        own = [each for each, row in zip(measured, rows, strict=True) if row["n_folds"] == n_folds]
        saved, losses = zip(*own, strict=True)
        cells += [f"{np.mean(saved):.3f}", interval(list(losses))]
    return [name, *cells]


def oracle(rows: list[dict[str, Any]]) -> list[str]:
    """What a rule would save that knows all scores: one fold of all that do not become the best."""
    cells = []
    for n_folds in (5, 10):
        shares = []
        for row in rows:
            if row["n_folds"] == n_folds:
                means = np.array(row["scores"], float).mean(axis=1)
                best = np.fmax.accumulate(means)
                is_better = np.append(True, means[1:] > best[:-1])
                shares.append((~is_better).mean() * (1 - 1 / n_folds))
        cells += [f"{np.mean(shares):.3f}", "0"]
    return ["knows all scores", *cells]


def write_page(rows: list[dict[str, Any]], page: Path, n_jobs: int) -> None:
    """Write the page of results."""
    head = ["rule", *(f"{name}, {n} folds" for n in (5, 10) for name in ("saved", "loss"))]
    n = {folds: sum(row["n_folds"] == folds for row in rows) for folds in (5, 10)}
    table = Parallel(n_jobs)(delayed(row_of)(name, rule, rows) for name, rule in RULES.items())
    lines = [
        "# Rules for racing",
        "",
        "Rules that stop candidates, simulated on "
        f"{n[5]} searches with 5 folds and {n[10]} with 10, recorded without racing on data sets "
        f"of the development families. Each search is simulated {N_VARIATIONS} times: as recorded, "
        "and with another order of the folds and a tenth of the candidates left out. *Loss* is "
        "against the best candidate of the same search, where 1 is the distance to the median of "
        "random configurations, with a 95 % interval over the searches.",
        "",
        *markdown_table(head, [*table, oracle(rows)]),
        "",
        "* *Paired differences*: the probability that the candidate becomes better than the best "
        "one, given the differences on the folds that both have, by 0.2 standard errors of the "
        "best mean where the name says so.",
        "* *Repeats*: equal scores on the folds seen tell of equal scores on all.",
        "* *Fold levels*: a two-way model of candidates and folds in place of the best candidate's "
        "scores.",
        "* *Expected improvement*: in units of the distance of earlier candidates to the best.",
        "* *Limit that rises*: a budget of probability that is spent late.",
        "* *Continued at the end*: stopped candidates are continued after the last one, the most "
        "probable one first, until none is above the limit.",
        "* *Prior*: what is known before the first fold, from the earlier candidates of the search "
        "or from the prediction of the surrogate. Unless it is called unforgiving, a prediction "
        "that is too low for the folds seen counts as less sure than it says.",
        "* *Knows all scores*: the bound. Such a rule gives one fold to every candidate that does "
        "not become the best.",
        "",
        "In these simulations a limit of 0.18 has a mean loss below 0.01. They do not show what a "
        "race does to the proposals: the surrogate knows less of stopped candidates, and its "
        "predictions, which the rule relies on, are those of a search that evaluated everything. "
        f"So the limit of the package, {_racing.MAX_PROBABILITY}, was chosen by whole races "
        "([racing_limits](racing_limits.md)).",
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
        for number in range(N_SETS)
        for n_folds in (5, 10)
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
    write_page(rows, options.report or PAGE, options.jobs)


if __name__ == "__main__":
    main()
