"""The search against its peers: how good after how many trials, and at what cost.

    OMP_NUM_THREADS=1 python -m benchmarks.peers                 # docs/results/peers.md, some hours

Cells, estimators and scores are those of `peer_cells`, the searches those of `peer_methods`. The past of a
target are data sets of other families, each with the trials that the package made there without an archive;
the starter archive is stripped of the target's family. Random search is the expected best of k of N_RANDOM
configurations. Halving has no trials: it gets as many rows to learn from as N_TRIALS trials, and what it
finds is evaluated once.

What was chosen was chosen on the families of the split "development"; what is reported is measured on the
others. Every run is kept in the work folder with all that it evaluated, an interrupted program goes on from
there, and no configuration of a cell is evaluated twice. Remove the file when the methods change; what does
not depend on the package, the peers without a past, can be taken from the last report (--kept).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV

from benchmarks.data import data_folder
from benchmarks.evaluations import WORK, families
from benchmarks.first_trial import seed as seed_of
from benchmarks.first_trial import split_families
from benchmarks.peer_cells import ESTIMATORS, FOLDS, SCORING, Data, evaluate, load, space_of, suits
from benchmarks.peer_methods import (
    HALVING,
    INDEPENDENT,
    MAKERS,
    METHODS,
    NO_ARCHIVE,
    PAST,
    RANDOM,
    SHUFFLED,
    STARTER,
    Ours,
    Problem,
    shuffled,
)
from benchmarks.peer_report import write_report
from benchmarks.runner import read_rows, run_all
from sktransfer import Archive, Task

FIELDS = ("estimator", "data", "method", "seed")
N_TRIALS, N_RANDOM, N_SEEDS, N_PAST = 30, 300, 3, 30
ONE_SEED = ("optuna GP", "skopt GP")  # the slow ones
Known = dict[str, float]


def run(
    estimator: str, data: str, method: str, seed: int, folder: Path, past: list[Task], known: Known
) -> dict[str, Any]:
    """One search: its configurations, their scores, and the seconds outside the evaluations."""
    cell, space = load(estimator, data, folder), ESTIMATORS[estimator][1]

    def score(params: dict[str, Any]) -> float:
        name = identity(params)
        return known[name] if name in known else evaluate(estimator, params, cell)

    if method == RANDOM:
        tried = space_of(estimator).sample(N_RANDOM, 12345)
        return {"params": tried, "scores": [score(params) for params in tried]}
    if method == HALVING:
        best = halving(estimator, cell, seed)
        return {"params": [best], "scores": [score(best)]}
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = MAKERS.get(method, Ours)(Problem(space, space_of(estimator), cell.profile, past, seed))
        learning, seconds, tried, scores = time.perf_counter() - begun, [], [], []
        for _ in range(N_TRIALS):
            begun = time.perf_counter()
            tried.append(search.ask())
            asked = time.perf_counter()
            scores.append(score(tried[-1]))
            evaluated = time.perf_counter()
            search.tell(tried[-1], scores[-1])
            seconds.append(time.perf_counter() - evaluated + asked - begun)
    return {"params": tried, "scores": scores, "learning": learning, "seconds": float(np.median(seconds))}


def identity(params: dict[str, Any]) -> str:
    return json.dumps(params, sort_keys=True)


def halving(estimator: str, data: Data, seed: int) -> dict[str, Any]:
    """What successive halving finds.

    A third of N_TRIALS candidates see all rows; in each round before, three times as many see a third.
    """
    n_rows, n_classes = len(data.y), len(np.unique(data.y))
    search = HalvingRandomSearchCV(
        clone(ESTIMATORS[estimator][0]),
        ESTIMATORS[estimator][1],
        n_candidates=3 * N_TRIALS,
        min_resources=max(n_rows // 9, 2 * FOLDS.n_splits * n_classes),
        max_resources=n_rows,
        cv=FOLDS,
        scoring=SCORING,
        refit=False,
        random_state=seed,
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = search.fit(data.X, data.y).best_params_
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in found.items()}


class Comparison:
    """The runs: which there are, what each may know of the past, and what has been evaluated already."""

    def __init__(self, folder: Path, store: Path, n_jobs: int):
        self._folder, self._store, self._n_jobs = folder, store, n_jobs
        self.family = families(folder)

    def targets(self, split: str, n: int | None) -> list[str]:
        """Data sets of a split, at most two of a family."""
        chosen: dict[str, list[str]] = {}
        for name in sorted(self.family):
            if self.family[name] in split_families(self.family)[split]:
                chosen.setdefault(self.family[name], []).append(name)
        names = [name for members in chosen.values() for name in members[:2]]
        return sorted(np.random.default_rng(0).permutation(names)[:n].tolist())

    def run(self, targets: list[str], estimators: list[str], methods: list[str], n_seeds: int) -> list[dict]:
        """The rows of all searches on the targets; the past tasks are made before."""
        cells = [(e, name) for e in estimators for name in targets if suits(e, name, self._folder)]
        past = [(e, name) for e in estimators for name in self.family]
        self._rows([(*cell, NO_ARCHIVE, 0) for cell in past])
        keys = []
        for method in methods:
            n = 1 if method == RANDOM or method in ONE_SEED else n_seeds
            keys += [(*cell, method, seed) for cell in cells for seed in range(n)]
        return self._rows(sorted(keys, key=lambda key: (key[3], key[1])))

    def _rows(self, keys: list[tuple]) -> list[dict]:
        self._done = read_rows(self._store, FIELDS)
        self._known: dict[tuple[str, str], Known] = {}
        for row in self._done.values():
            pairs = zip(row.get("params", ()), row["scores"], strict=False)  # none, where it was taken over
            known = self._known.setdefault((row["estimator"], row["data"]), {})
            known |= {identity(params): score for params, score in pairs}
        return run_all(self._store, FIELDS, keys, run, self._n_jobs, self._arguments)

    def _arguments(self, key: tuple) -> tuple:
        estimator, data, method, seed = key
        past: list[Task] = []
        if method == STARTER:
            past = self._of_starter(estimator, data)
        elif method in PAST or method == SHUFFLED:
            past = self._of_searches(estimator, data, seed, PAST.get(method, N_PAST))
        if method == SHUFFLED:
            past = [shuffled(task, seed) for task in past]
        return self._folder, past, self._known.get((estimator, data), {})

    def _of_searches(self, estimator: str, target: str, seed: int, n: int) -> list[Task]:
        """Past searches on n data sets of other families, drawn by the seed."""
        others = [
            name
            for name in sorted(self.family)
            if self.family[name] != self.family[target] and (estimator, name, NO_ARCHIVE, 0) in self._done
        ]
        order = np.random.default_rng([seed, seed_of(target)]).permutation(others)
        return [self._task(estimator, str(name)) for name in order[:n]]

    def _task(self, estimator: str, name: str) -> Task:
        row = self._done[estimator, name, NO_ARCHIVE, 0]
        trials = list(zip(row["params"], row["scores"], strict=True))
        data = load(estimator, name, self._folder)
        return Task.from_trials(space_of(estimator), trials, data.profile, id=name)

    def _of_starter(self, estimator: str, target: str) -> list[Task]:
        """What the starter archive has for the estimator, without the target's family."""
        with TemporaryDirectory() as empty, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive = Archive(empty, readonly=True, starter=True)
            tasks = (
                archive.select(space_of(estimator), load(estimator, target, self._folder).profile)
                .loaded()
                .used
            )
        return [task for task in tasks if self.family.get(data_of(task)) != self.family[target]]


def take_over(kept: Path, store: Path) -> None:
    """Put the runs of searches that owe nothing to the package from a report's file into the store.

    The report keeps scores, not configurations.
    """
    there, rows = read_rows(store, FIELDS), read_rows(kept, FIELDS)
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("a") as file:
        for key, row in rows.items():
            if key not in there and row["method"] in INDEPENDENT:
                file.write(json.dumps(row) + "\n")


def data_of(task: Task) -> str:
    """The data set of a task of the starter archive."""
    return task.id.split("-", 2)[2].rsplit("-", 2)[0]  # starter-ESTIMATOR-DATA-scaled-HASH


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of the runs")
    parser.add_argument("--split", choices=["report", "development"], default="report")
    parser.add_argument("--estimators", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--targets", type=int, help="only this many data sets of the split")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kept", type=Path, help="a report's .jsonl: runs of the peers are taken from there")
    parser.add_argument("--report", type=Path, help="Markdown file to write; its figures are put beside it")
    options = parser.parse_args()
    store = options.work / "peers-runs.jsonl"
    if options.kept:
        take_over(options.kept, store)
    comparison = Comparison(data_folder(options.data), store, options.jobs)
    targets = comparison.targets(options.split, options.targets)
    rows = comparison.run(targets, options.estimators, options.methods, options.seeds)
    command = "OMP_NUM_THREADS=1 python -m benchmarks.peers" + (
        f" --targets {options.targets}" if options.targets else ""
    )
    print(write_report(rows, options.report, command))


if __name__ == "__main__":
    main()
