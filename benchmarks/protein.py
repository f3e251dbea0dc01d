"""Protein-ligand binding (Law et al. 2019, section 5.3): seven proteins, each in turn the target.

`python -m benchmarks.papers distbo-protein` makes and reports these runs.

All proteins have the same 166 binary keys, so the distribution encoder can compare them. The six
proteins that are not the target are the past tasks, each with N_SOURCE trials of a plain GP search.
The score of a configuration is its accuracy on the test part of a 60-40 split. The seed of a run is
also the seed of the split. Profiles describe the training part.

The work folder has three kinds of files, one line per entry. `protein/*.jsonl` are evaluations, so
that no configuration is evaluated twice. `protein-sources.jsonl` are the searches on the past
tasks, `protein-runs.jsonl` the runs. An interrupted program resumes there. The files are not
checked: remove the runs when a surrogate has changed, the sources when "gp" has changed, and all of
them when ESTIMATORS has changed. Two programs must not share a work folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from benchmarks.papers._distbo import N_RANDOM, PAPER, surrogate_of
from benchmarks.papers._replay import with_seed
from benchmarks.runner import append_runs, read_runs
from sktransfer import Task, TransferOptimizer, profile
from sktransfer.encoders import DistributionEncoder, PairEncoder
from sktransfer.surrogates import DistBLR, DistGP

PROTEINS = ["adam17", "akt1", "braf", "cox1", "fxa", "gr", "vegfr2"]
ESTIMATORS = {
    "forest": (
        RandomForestClassifier(random_state=0),
        {
            "n_estimators": [5, 10, 20, 40, 80, 120, 200],
            "max_depth": randint(1, 33),
            "min_samples_split": randint(2, 61),
            "min_samples_leaf": randint(1, 61),
        },
    ),
    "svm": (SVC(kernel="precomputed"), {"C": loguniform(2**-7, 2**7)}),
}
PAIRS = "dist-gp, pairs"  # the registry's encoder of any table, with handcrafted features
LEARNED = {
    "dist-gp": DistGP(DistributionEncoder()),
    "dist-blr": DistBLR(DistributionEncoder()),
    PAIRS: DistGP(PairEncoder()),
}
"""Methods that learn from the rows; other names are those of the paper or of the registry."""
METHODS = ["dist-gp", "manual-gp", "multi-gp", "warm-start", "gp", "random", "dist-blr", PAIRS]
N_SOURCE, N_TRIALS = 20, 10
RUNS = "protein-runs.jsonl"


# -- data and evaluations ----------------------------------------------------------------------


def load_split(folder: Path, protein: str, seed: int) -> list[np.ndarray]:
    """Return X_train, X_test, y_train, y_test of a protein."""
    table = pd.read_csv(folder / "distbo" / "protein" / f"{protein}.csv.gz")
    y = table.pop("target").to_numpy()
    return train_test_split(
        table.to_numpy(dtype=float), y, test_size=0.4, stratify=y, random_state=seed
    )


def jaccard(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the share of common keys, 1 for two rows without keys; (n, p), (m, p) -> (n, m)."""
    both = A @ B.T
    either = A.sum(axis=1)[:, None] + B.sum(axis=1) - both
    return np.where(either > 0, both / np.maximum(either, 1), 1.0)


class Evaluate:
    """Accuracy of a configuration on the test part; known evaluations are looked up."""

    def __init__(self, folder: Path, work: Path, estimator: str, protein: str, seed: int):
        self.place = (folder, protein, seed)
        self.estimator = estimator
        self.path = work / "protein" / f"{estimator}-{protein}-{seed}.jsonl"
        self.known = {self._key(row["params"]): row["accuracy"] for row in read_runs(self.path)}
        self.data: list[np.ndarray] | None = None

    @staticmethod
    def _key(params: dict[str, Any]) -> str:
        return json.dumps(params, sort_keys=True)

    def __call__(self, params: dict[str, Any]) -> float:
        if (key := self._key(params)) not in self.known:
            begun = time.perf_counter()
            accuracy = self._evaluate(params)
            seconds = time.perf_counter() - begun
            row = {"params": params, "accuracy": accuracy, "seconds": round(seconds, 4)}
            append_runs([row], self.path)
            self.known[key] = accuracy
        return self.known[key]

    def _evaluate(self, params: dict[str, Any]) -> float:
        if self.data is None:
            X_train, X_test, *y = load_split(*self.place)
            if self.estimator == "svm":
                X_train, X_test = jaccard(X_train, X_train), jaccard(X_test, X_train)
            self.data = [X_train, X_test, *y]
        X_train, X_test, y_train, y_test = self.data
        model = clone(ESTIMATORS[self.estimator][0]).set_params(**params)
        return float(model.fit(X_train, y_train).score(X_test, y_test))


# -- searches ----------------------------------------------------------------------------------


def search(
    optimizer: TransferOptimizer, evaluate: Evaluate, n_trials: int, first: Sequence[dict] = ()
) -> dict:
    """Return configurations, their accuracies and the seconds of each ask; `first` are given."""
    found: dict[str, list] = {"params": [], "scores": [], "ask_seconds": []}
    for number in range(n_trials):
        begun = time.perf_counter()
        [params] = list(first[number : number + 1]) or optimizer.ask()
        found["ask_seconds"].append(round(time.perf_counter() - begun, 4))
        found["params"].append(params)
        found["scores"].append(evaluate(params))
        optimizer.tell(params, found["scores"][-1])
    return found


def run_source(folder: Path, work: Path, estimator: str, protein: str, seed: int) -> list[dict]:
    """Run a plain search on one protein, as a past task of the others."""
    optimizer = TransferOptimizer(ESTIMATORS[estimator][1], surrogate="gp", random_state=seed)
    found = search(optimizer, Evaluate(folder, work, estimator, protein, seed), N_SOURCE)
    return [{"method": "source", "estimator": estimator, "protein": protein, "seed": seed, **found}]


def run_target(
    folder: Path,
    work: Path,
    estimator: str,
    protein: str,
    seed: int,
    methods: list[str],
    sources: list[dict],
) -> list[dict]:
    """Search by each method on one protein, given the searches on the others."""
    evaluate, space = Evaluate(folder, work, estimator, protein, seed), ESTIMATORS[estimator][1]

    def look(name: str) -> Any:
        X, _, y, _ = load_split(folder, name, seed)
        return profile(X, y, keep="sample")

    tasks = [
        Task.from_trials(
            space,
            list(zip(row["params"], row["scores"], strict=True)),
            look(row["protein"]),
            id=row["protein"],
        )
        for row in sources
    ]
    own, rows = look(protein), []
    # With one seed for all proteins, random search would try the same configurations on each.
    own_seed = len(PROTEINS) * seed + PROTEINS.index(protein)
    for method in methods:
        surrogate = clone(LEARNED[method]) if method in LEARNED else method
        n_random = 0
        if method in PAPER:
            surrogate = surrogate_of(method, DistributionEncoder(), scores="standardize")
            n_random = N_RANDOM.get(method, 0)
        optimizer = TransferOptimizer(
            space,
            tasks,
            profile=own,
            surrogate=with_seed(surrogate, seed),
            random_state=own_seed,
        )
        random = optimizer.space.sample(n_random, np.random.default_rng([own_seed, 1]))
        found = search(optimizer, evaluate, N_TRIALS, random)
        rows.append(
            {"method": method, "estimator": estimator, "protein": protein, "seed": seed, **found}
        )
    return rows


def run_cells(
    function: Callable[..., list[dict]], cells: list[tuple], store: Path, n_jobs: int
) -> None:
    """Run the cells and store their rows; only this process writes to the store."""
    begun = time.time()
    # No two cells share a protein and a split, so each file of evaluations has one writer.
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(function)(*cell) for cell in cells
    )
    for number, rows in enumerate(results, 1):
        append_runs(rows, store)
        print(
            f"{number}/{len(cells)} {store.stem}: {rows[0]['estimator']} {rows[0]['protein']} "
            f"seed {rows[0]['seed']}, {time.time() - begun:.0f} s",
            flush=True,
        )


def load_runs(store: Path) -> dict[tuple[str, str, str, int], dict]:
    """Map (method, estimator, protein, seed) to its run."""
    return {(r["method"], r["estimator"], r["protein"], r["seed"]): r for r in read_runs(store)}


def run_all(
    folder: Path, work: Path, estimators: list[str], methods: list[str], seeds: int, n_jobs: int
) -> dict[tuple[str, str, str, int], dict]:
    """Make the missing searches on the past tasks, then those of the methods."""
    cells = [(e, p, s) for e in estimators for s in range(seeds) for p in PROTEINS]
    store = work / "protein-sources.jsonl"
    done = load_runs(store)
    todo = [(folder, work, *cell) for cell in cells if ("source", *cell) not in done]
    run_cells(run_source, todo, store, n_jobs)
    past, store = load_runs(store), work / RUNS
    done, jobs = load_runs(store), []
    for estimator, protein, seed in cells:
        left = [method for method in methods if (method, estimator, protein, seed) not in done]
        others = [past["source", estimator, name, seed] for name in PROTEINS if name != protein]
        if left:
            jobs.append((folder, work, estimator, protein, seed, left, others))
    run_cells(run_target, jobs, store, n_jobs)
    return load_runs(store)
