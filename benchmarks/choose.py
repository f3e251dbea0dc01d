"""All surrogates on the same targets: regret after each number of trials, and seconds.

    OMP_NUM_THREADS=1 python -m benchmarks.choose [--report docs/results/choose.md]

Needs the tables of `benchmarks.evaluations`. Splits, past tasks and regret are those of
`benchmarks.first_trial`, but a search continues for N_TRIALS trials on the 100 evaluated
configurations of the target. The page also reports the seconds of training on the past tasks and
the median seconds of a proposal. With `--search` it reports the seconds of a whole
`TransferSearchCV` with default parameters on the breast-cancer data, with an archive of 20 tasks.

Runs are stored in `choose.jsonl` in the work folder and packed beside the report.
"""

from __future__ import annotations

import tempfile
import time
import warnings

import numpy as np
from scipy.stats import loguniform, rankdata
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.data import data_folder, load_classification
from benchmarks.evaluations import ESTIMATORS, MAX_ROWS, families, load
from benchmarks.first_trial import N_TRIALS as PAST_TRIALS
from benchmarks.first_trial import (
    interval,
    past_task,
    regrets,
    source_names,
    space_of,
    split_families,
)
from benchmarks.runner import format_page, make_parser, packed_file, run_all, update_runs
from sktransfer import Archive, Task, TransferOptimizer, TransferSearchCV, profile
from sktransfer.surrogates import REGISTRY

METHODS = sorted(set(REGISTRY) - {"auto"})
N_TRIALS = 20
SHOWN = (1, 2, 3, 5, 10, 20)
FIELDS = ("split", "estimator", "target", "method")


def run(
    split: str,
    estimator: str,
    target: str,
    method: str,
    record: dict,
    data_profile,
    past: list[Task],
) -> dict:
    """Run one search; return its best normalized regret after each trial, and seconds."""
    regret, params = regrets(record["scores"]), record["params"]
    assert regret is not None
    optimizer = TransferOptimizer(
        space_of(estimator), past, profile=data_profile, surrogate=method, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        optimizer.fit_surrogate()
        learning, found, proposing = time.perf_counter() - begun, [], []
        for _ in range(N_TRIALS):
            begun = time.perf_counter()
            [proposal] = optimizer.ask(pool=params)
            proposing.append(time.perf_counter() - begun)
            row = params.index(proposal)
            optimizer.tell(proposal, record["scores"][row], cost=record["seconds"][row])
            found.append(float(regret[row]))
    best = np.minimum.accumulate(found)
    return {
        "regret": [round(float(b), 6) for b in best],
        "learning": round(learning, 3),
        "proposing": round(float(np.median(proposing)), 4),
    }


def past_search(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the data of a past task of the search on the breast-cancer data."""
    return make_classification(150, 8, n_informative=4, random_state=seed)


def search_seconds(methods: list[str]) -> dict[str, float]:
    """Return the seconds of a default search on the breast-cancer data, with 20 past tasks."""
    X, y = load_breast_cancer(return_X_y=True)
    estimator = make_pipeline(StandardScaler(), SVC())
    space = {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 10)}
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(20):
            past = TransferSearchCV(
                estimator, space, archive=folder, surrogate="random", random_state=seed
            )
            past.fit(*past_search(seed))
        for method in methods:
            archive = Archive(folder, readonly=True)
            search = TransferSearchCV(
                estimator, space, archive=archive, surrogate=method, random_state=0
            )
            begun = time.perf_counter()
            search.fit(X, y)
            seconds[method] = time.perf_counter() - begun
            print(f"{method}: {seconds[method]:.1f} s, best {search.best_score_:.4f}", flush=True)
    return seconds


def table(rows: list[dict], methods: list[str]) -> list[str]:
    """Return a table with one row per method, ordered by the regret after five trials."""
    units = sorted({(row["estimator"], row["target"]) for row in rows})
    by = {(row["estimator"], row["target"], row["method"]): row for row in rows}
    regret = {
        m: np.array([by[*unit, m]["regret"] for unit in units]) for m in methods
    }  # (units, trials)
    ranks = rankdata(np.array([regret[m] for m in methods]), axis=0).mean(
        axis=1
    )  # (methods, trials)
    lines = [
        "| surrogate | "
        + " | ".join(f"k = {k}" for k in SHOWN)
        + " | mean rank at 5 | training, s | proposal, s |",
        "|---|" + "---|" * (len(SHOWN) + 3),
    ]
    for place in np.argsort([regret[m][:, 4].mean() for m in methods]):
        method = methods[place]
        own = [row for row in rows if row["method"] == method]
        cells = [interval(regret[method][:, k - 1]) for k in SHOWN]
        times = [np.median([row[part] for row in own]) for part in ("learning", "proposing")]
        lines.append(
            f"| {method} | {' | '.join(cells)} | {ranks[place, 4]:.1f} | {times[0]:.2f} | "
            f"{times[1]:.3f} |"
        )
    return lines


def report(rows: list[dict], methods: list[str], command: str, seconds: dict[str, float]) -> str:
    """Return the page of results."""
    units = {(row["estimator"], row["target"]) for row in rows}
    lines = [
        "# All surrogates on the same targets",
        "",
        f"Made by `{command}`.",
        "",
        f"{len(units)} targets, {len({target for _, target in units})} data sets (split: "
        f"{rows[0]['split']}) for {' and '.join(sorted({e for e, _ in units}))}. The past tasks "
        f"of a target are three quarters of the data sets of other families, with {PAST_TRIALS} "
        "trials each. Each search has one seed and chooses among the 100 evaluated configurations "
        "of the target. The table shows the best normalized regret after k trials (0 is the best "
        "configuration, 1 the median), as mean ± 1.96 standard errors over targets, and the mean "
        "rank among all surrogates after 5 trials. Seconds are medians on the machine of the run: "
        "training happens once for each state of the archive, a proposal is needed for each trial.",
        "",
        *table(rows, methods),
        "",
    ]
    for estimator in sorted({e for e, _ in units}):
        own = [row for row in rows if row["estimator"] == estimator]
        lines += [f"## {estimator}", "", *table(own, methods), ""]
    if seconds:
        lines += [
            "## A whole search",
            "",
            "Seconds of `TransferSearchCV(make_pipeline(StandardScaler(), SVC()), space).fit` on "
            "the breast-cancer data with default parameters (25 trials, 5 folds, n_jobs=None) and "
            "an archive of 20 past tasks of 25 trials. They include training and cross-validation.",
            "",
            "| surrogate | seconds |",
            "|---|---|",
            *(f"| {method} | {value:.1f} |" for method, value in seconds.items()),
            "",
        ]
    return format_page(lines)


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "split", "jobs", "report")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--targets", type=int, help="only this many data sets of the split")
    parser.add_argument("--search", action="store_true", help="also time whole searches")
    options = parser.parse_args()
    folder = data_folder(options.data)
    family, records = families(folder), load(options.work)
    names = sorted(n for n in family if family[n] in split_families(family)[options.split])
    if options.targets:
        names = np.random.default_rng(0).permutation(names)[: options.targets].tolist()
    cells = [
        (e, n) for e in ESTIMATORS for n in names if regrets(records[e, n]["scores"]) is not None
    ]
    profiles = {
        name: profile(*load_classification(name, folder, MAX_ROWS), keep="sketch")
        for name in family
    }
    tasks = {cell: past_task(record, profiles[cell[1]]) for cell, record in records.items()}

    def arguments(key: tuple) -> tuple:
        _, estimator, target, _ = key
        past = [tasks[estimator, name] for name in source_names(target, 0, family)]
        return records[estimator, target], profiles[target], past

    keys = [(options.split, *cell, method) for cell in cells for method in options.methods]
    packed = packed_file(options.report) if options.report else None
    rows = run_all(
        options.work / "choose.jsonl", FIELDS, keys, run, options.jobs, arguments, packed
    )
    seconds = search_seconds(options.methods) if options.search else {}
    command = "OMP_NUM_THREADS=1 python -m benchmarks.choose"
    command += f" --targets {options.targets}" if options.targets else ""
    command += f" --methods {' '.join(options.methods)}" if options.methods != METHODS else ""
    text = report(rows, options.methods, command + " --search" * options.search, seconds)
    if packed:
        options.report.write_text(text)
        update_runs(rows, packed, FIELDS)
    print(text)


if __name__ == "__main__":
    main()
