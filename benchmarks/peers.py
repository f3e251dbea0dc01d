"""The search and its peers: regret after each number of trials, and seconds.

    OMP_NUM_THREADS=1 python -m benchmarks.peers --report docs/results/peers.md   # some hours

Cells, estimators and scores are defined in `peer_cells`, the searches in `peer_methods`. The past
tasks of a target are data sets of other families, each with the trials of a search of the package
as installed. That does not read the starter archive, because pretrained models predict the scores
of these estimators. Random search is the expected best of k of N_RANDOM configurations. Halving has
no trials: it may fit as many rows as N_TRIALS trials do, and its result is evaluated once.

Choices were made on the families of the split "development", the report uses the others. On the
former, pretrained models are those that leave the target's family out (`--models`, made by
`benchmarks.pretraining.train --leave-out`). All runs
are stored in the work folder with their evaluations. An interrupted program resumes there, and no
configuration of a cell is evaluated twice. Remove the file when the methods change. Peers that do
not depend on the package, and lists of past settings, are taken from an earlier report by `--kept`.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV

from benchmarks.data import data_folder
from benchmarks.evaluations import families
from benchmarks.first_trial import seed_of, split_families
from benchmarks.peer_cells import (
    ESTIMATORS,
    FOLDS,
    SCORING,
    Data,
    evaluate,
    is_suitable,
    load,
    space_of,
)
from benchmarks.peer_methods import (
    HALVING,
    INDEPENDENT,
    INSTALLED,
    MAKERS,
    METHODS,
    PAST,
    RANDOM,
    SHUFFLED,
    Ours,
    Problem,
    shuffled,
)
from benchmarks.peer_report import write_report
from benchmarks.pretraining.train import models_without
from benchmarks.runner import make_parser, read_rows, read_runs, run_all, take_over
from sktransfer import Task

FIELDS = ("estimator", "data", "method", "seed")
N_TRIALS, N_RANDOM, N_SEEDS, N_PAST = 30, 300, 3, 30
ONE_SEED = ("optuna GP", "skopt GP")  # slow methods
Known = dict[str, float]


def run(
    estimator: str,
    data: str,
    method: str,
    seed: int,
    folder: Path,
    past: list[Task],
    known: Known,
    models: Path | None,
) -> dict[str, Any]:
    """Run one search; return its configurations, their scores and the seconds it needed itself."""
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
        search = MAKERS.get(method, Ours)(
            Problem(space, space_of(estimator), cell.profile, past, seed, models)
        )
        learning, seconds, tried, scores = time.perf_counter() - begun, [], [], []
        for _ in range(N_TRIALS):
            begun = time.perf_counter()
            tried.append(search.ask())
            asked = time.perf_counter()
            scores.append(score(tried[-1]))
            evaluated = time.perf_counter()
            search.tell(tried[-1], scores[-1])
            seconds.append(time.perf_counter() - evaluated + asked - begun)
    return {
        "params": tried,
        "scores": scores,
        "learning": learning,
        "seconds": float(np.median(seconds)),
    }


def identity(params: dict[str, Any]) -> str:
    """Return a text that identifies a configuration."""
    return json.dumps(params, sort_keys=True)


def halving(estimator: str, data: Data, seed: int) -> dict[str, Any]:
    """Return the configuration that successive halving finds.

    A third of N_TRIALS candidates use all rows. In each earlier round three times as many
    candidates use a third of the rows.
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
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in found.items()
    }


class Comparison:
    """All runs: their keys, the past tasks of each, and the evaluations known so far."""

    def __init__(self, folder: Path, store: Path, n_jobs: int, models: Path | None = None):
        self._folder, self._store, self._n_jobs, self._models = folder, store, n_jobs, models
        self.family = families(folder)

    def targets(self, split: str, n: int | None) -> list[str]:
        """Return the data sets of a split, at most two of a family."""
        chosen: dict[str, list[str]] = {}
        for name in sorted(self.family):
            if self.family[name] in split_families(self.family)[split]:
                chosen.setdefault(self.family[name], []).append(name)
        names = [name for members in chosen.values() for name in members[:2]]
        return sorted(np.random.default_rng(0).permutation(names)[:n].tolist())

    def run(
        self, targets: list[str], estimators: list[str], methods: list[str], n_seeds: int
    ) -> list[dict]:
        """Return the rows of all searches on the targets; the past tasks are made first."""
        cells = [
            (e, name) for e in estimators for name in targets if is_suitable(e, name, self._folder)
        ]
        if any(method in PAST or method == SHUFFLED for method in methods):
            past = [(e, name) for e in estimators for name in self.family]
            self._rows([(*cell, INSTALLED, 0) for cell in past])
        keys = []
        for method in methods:
            n = 1 if method == RANDOM or method in ONE_SEED else n_seeds
            keys += [(*cell, method, seed) for cell in cells for seed in range(n)]
        return self._rows(sorted(keys, key=lambda key: (key[3], key[1])))

    def _rows(self, keys: list[tuple]) -> list[dict]:
        self._done = read_rows(self._store, FIELDS)
        self._known: dict[tuple[str, str], Known] = {}
        for row in self._done.values():
            pairs = zip(
                row.get("params", ()), row["scores"], strict=False
            )  # reused runs have no params
            known = self._known.setdefault((row["estimator"], row["data"]), {})
            known |= {identity(params): score for params, score in pairs}
        return run_all(self._store, FIELDS, keys, run, self._n_jobs, self._arguments)

    def _arguments(self, key: tuple) -> tuple:
        estimator, data, method, seed = key
        past: list[Task] = []
        if method in PAST or method == SHUFFLED:
            past = self._of_searches(estimator, data, seed, PAST.get(method, N_PAST))
        if method == SHUFFLED:
            past = [shuffled(task, seed) for task in past]
        models = models_without(self.family[data], self._models, "classification", self._folder)
        return self._folder, past, self._known.get((estimator, data), {}), models

    def _of_searches(self, estimator: str, target: str, seed: int, n: int) -> list[Task]:
        """Return past searches on n data sets of other families, drawn by the seed."""
        others = [
            name
            for name in sorted(self.family)
            if self.family[name] != self.family[target]
            and (estimator, name, INSTALLED, 0) in self._done
        ]
        order = np.random.default_rng([seed, seed_of(target)]).permutation(others)
        return [self._task(estimator, str(name)) for name in order[:n]]

    def _task(self, estimator: str, name: str) -> Task:
        row = self._done[estimator, name, INSTALLED, 0]
        trials = list(zip(row["params"], row["scores"], strict=True))
        data = load(estimator, name, self._folder)
        return Task.from_trials(
            space_of(estimator), trials, data.profile, metrics=[SCORING], id=name
        )


def take_over_peers(kept: Path, store: Path) -> None:
    """Copy runs that need not be made again from the packed file of a report to the store.

    A report keeps scores, but not configurations.
    """
    take_over(store, FIELDS, (row for row in read_runs(kept) if row["method"] in INDEPENDENT))


def data_of(task: Task) -> str:
    """Return the data set of a task of the starter archive."""
    return task.id.split("-", 2)[2].rsplit("-", 2)[0]  # starter-ESTIMATOR-DATA-scaled-HASH


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "split", "jobs", "report")
    parser.add_argument(
        "--estimators", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS)
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--targets", type=int, help="only this many data sets of the split")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--models", type=Path, help="models without a development family")
    parser.add_argument(
        "--kept", type=Path, help="packed runs of a report, to reuse those of the peers"
    )
    options = parser.parse_args()
    store = options.work / "peers-runs.jsonl"
    if options.kept:
        take_over_peers(options.kept, store)
    comparison = Comparison(data_folder(options.data), store, options.jobs, options.models)
    targets = comparison.targets(options.split, options.targets)
    rows = comparison.run(targets, options.estimators, options.methods, options.seeds)
    command = "OMP_NUM_THREADS=1 python -m benchmarks.peers" + (
        f" --targets {options.targets}" if options.targets else ""
    )
    print(write_report(rows, options.report, command))


if __name__ == "__main__":
    main()
