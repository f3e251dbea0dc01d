"""Every surrogate on the same targets: how good after how many trials, and what it costs.

    OMP_NUM_THREADS=1 python -m benchmarks.choose [--report docs/results/choose.md]

Needs the tables of `benchmarks.evaluations`. As `benchmarks.first_trial` (its splits, its pasts, its regret),
but a search goes on for N_TRIALS trials on the target's 100 evaluated configurations. Beside it, the seconds
that learning from the past takes and those of a proposal, the median over trials. With `--search`, those of
a whole `TransferSearchCV` with the defaults on the breast-cancer data, from an archive of 20 tasks.

Writes `choose.jsonl` in the work folder; an interrupted run goes on from there.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import loguniform, rankdata
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.data import data_folder, load_classification
from benchmarks.evaluations import ESTIMATORS, MAX_ROWS, WORK, families, load
from benchmarks.first_trial import N_TRIALS as PAST_TRIALS
from benchmarks.first_trial import interval, past_task, regrets, sources, space_of, split_families
from benchmarks.runner import run_all
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
    """One search: best normalized regret so far after each trial, and the seconds."""
    regret, params = regrets(record["scores"]), record["params"]
    assert regret is not None
    optimizer = TransferOptimizer(
        space_of(estimator), past, profile=data_profile, surrogate=method, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        optimizer.learn()
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
    """Data of a past task for the search on the breast-cancer data."""
    return make_classification(150, 8, n_informative=4, random_state=seed)


def search_seconds(methods: list[str]) -> dict[str, float]:
    """Seconds of a search with the defaults on the breast-cancer data, from an archive of 20 tasks."""
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
    """Rows of Markdown, one per method, by the regret after five trials."""
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
        + " | mean rank at 5 | learning, s | proposal, s |",
        "|---|" + "---|" * (len(SHOWN) + 3),
    ]
    for place in np.argsort([regret[m][:, 4].mean() for m in methods]):
        method = methods[place]
        own = [row for row in rows if row["method"] == method]
        cells = [interval(regret[method][:, k - 1]) for k in SHOWN]
        times = [np.median([row[part] for row in own]) for part in ("learning", "proposing")]
        lines.append(
            f"| {method} | {' | '.join(cells)} | {ranks[place, 4]:.1f} | {times[0]:.2f} | {times[1]:.3f} |"
        )
    return lines


def report(rows: list[dict], methods: list[str], command: str, seconds: dict[str, float]) -> str:
    """The tables as Markdown."""
    units = {(row["estimator"], row["target"]) for row in rows}
    lines = [
        "# Every surrogate on the same targets",
        "",
        f"Made by `{command}`.",
        "",
        f"{len(units)} targets, {len({target for _, target in units})} data sets (split: {rows[0]['split']}) "
        f"for {' and '.join(sorted({e for e, _ in units}))}. The past of a target are three quarters of the "
        f"data sets of other families, {PAST_TRIALS} trials each. Every search has one seed and chooses "
        "among the target's 100 evaluated configurations. Best normalized regret after k trials, 0 the best "
        "configuration, 1 the median, mean ± 1.96 standard errors over targets; mean rank among all "
        "surrogates after 5 trials. Seconds are medians on the machine that ran it, learning once for a "
        "state of the archive, proposing for each trial.",
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
            "Seconds of `TransferSearchCV(make_pipeline(StandardScaler(), SVC()), space).fit` on the "
            "breast-cancer data with the defaults (25 trials, 5 folds, n_jobs=None), from an archive of 20 "
            "past tasks of 25 trials, learning and cross-validation included.",
            "",
            "| surrogate | seconds |",
            "|---|---|",
            *(f"| {method} | {value:.1f} |" for method, value in seconds.items()),
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument(
        "--work", type=Path, default=WORK, help="folder of the tables and of the runs"
    )
    parser.add_argument("--split", choices=["report", "development"], default="report")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--targets", type=int, help="only this many data sets of the split")
    parser.add_argument("--search", action="store_true", help="also time whole searches")
    parser.add_argument("--report", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    folder = data_folder(options.data)
    family, records = families(folder), load(options.work)
    ours = sorted(n for n in family if family[n] in split_families(family)[options.split])
    if options.targets:
        ours = np.random.default_rng(0).permutation(ours)[: options.targets].tolist()
    cells = [
        (e, n) for e in ESTIMATORS for n in ours if regrets(records[e, n]["scores"]) is not None
    ]
    profiles = {
        name: profile(*load_classification(name, folder, MAX_ROWS), keep="sketch")
        for name in family
    }
    tasks = {cell: past_task(record, profiles[cell[1]]) for cell, record in records.items()}

    def arguments(key: tuple) -> tuple:
        _, estimator, target, _ = key
        past = [tasks[estimator, name] for name in sources(target, 0, family)]
        return records[estimator, target], profiles[target], past

    keys = [(options.split, *cell, method) for cell in cells for method in options.methods]
    rows = run_all(options.work / "choose.jsonl", FIELDS, keys, run, options.jobs, arguments)
    seconds = search_seconds(options.methods) if options.search else {}
    command = "OMP_NUM_THREADS=1 python -m benchmarks.choose"
    command += f" --targets {options.targets}" if options.targets else ""
    command += f" --methods {' '.join(options.methods)}" if options.methods != METHODS else ""
    text = report(rows, options.methods, command + " --search" * options.search, seconds)
    if options.report:
        options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
