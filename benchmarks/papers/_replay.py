"""A search on a table: each trial is one of the configurations that were evaluated in advance."""

from __future__ import annotations

import time
import warnings
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers._logistic import LOGISTIC, logistic_suite
from benchmarks.papers._starter_tables import PREFIX, starter_suite
from benchmarks.tables import Suite, load_suite
from sktransfer import Task, TransferOptimizer
from sktransfer.optimizer import Pool
from sktransfer.surrogates import Surrogate, make_surrogate

N_CANDIDATES = 1000  # candidates of a larger table, drawn for each trial, as in the papers


@lru_cache(maxsize=5)
def suite(name: str, folder: Path) -> Suite:
    """Load a suite, once."""
    if name.startswith(PREFIX):
        return starter_suite(name, folder)
    return logistic_suite(folder) if name == LOGISTIC else load_suite(name, folder)


@lru_cache(maxsize=32)
def past(name: str, target: str, n: int, folder: Path) -> list[Task]:
    """Return the other tasks of the suite with `n` random rows each, the same for all runs."""
    source = suite(name, folder)
    tasks = []
    for other, table in source.tables.items():
        if other != target:
            rng = np.random.default_rng(zlib.crc32(other.encode()))
            tasks.append(table.task(source.space, rng.permutation(len(table.loss))[:n]))
    return tasks


@lru_cache(maxsize=16)
def whole_table(name: str, target: str, folder: Path) -> Pool:
    """Return all configurations of a table; encoding them is slower than choosing."""
    source = suite(name, folder)
    return Pool(source.space, source.tables[target].params)


def with_seed(surrogate: str | Surrogate, seed: int) -> Surrogate:
    """Return the surrogate with the random weights and draws of this seed, its encoder included."""
    made = make_surrogate(surrogate)
    seeded = [name for name in made.get_params() if name.split("__")[-1] == "random_state"]
    return made.set_params(**dict.fromkeys(seeded, seed))


@lru_cache(maxsize=256)
def learned(
    name: str, target: str, surrogate: str | Surrogate, seed: int, n: int, folder: Path
) -> tuple[Surrogate, float]:
    """Return a surrogate trained on the past tasks of a target, and its training seconds."""
    optimizer = TransferOptimizer(
        suite(name, folder).space,
        past(name, target, n, folder),
        surrogate=with_seed(surrogate, seed),
    )
    begun = time.perf_counter()
    optimizer.fit_surrogate()
    return optimizer.surrogate, time.perf_counter() - begun


def replay_search(
    name: str,
    target: str,
    surrogate: str | Surrogate,
    folder: Path,
    *,
    seed: int,
    n_trials: int,
    n_past: int,
    n_initial: int = 0,
) -> dict[str, Any]:
    """Search one table of a suite, given the others.

    The first `n_initial` trials are random, and equal for all methods of one seed. Networks start
    from the weights of the seed.

    Returns
    -------
    dict
        "loss" of each trial in order, "seconds" of the trials when they were evaluated (where
        known), and our own seconds: "learning", "proposing" and "wall".
    """
    begun = time.perf_counter()
    source, tasks = suite(name, folder), past(name, target, n_past, folder)
    table = source.tables[target]
    rng = np.random.default_rng([seed, zlib.crc32(target.encode())])
    optimizer = TransferOptimizer(
        source.space, tasks, profile=table.profile, surrogate=surrogate, random_state=seed
    )
    whole, left = whole_table(name, target, folder), np.ones(len(table.loss), dtype=bool)
    rows: list[int] = rng.choice(len(left), n_initial, replace=False).tolist()

    def tell(row: int) -> None:
        left[row] = False
        cost = None if table.seconds is None else float(table.seconds[row])
        optimizer.tell(table.params[row], -float(table.loss[row]), cost=cost)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # What does not depend on the seed is learned once.
        own_seed = seed if "random_state" in make_surrogate(surrogate).get_params() else 0
        optimizer.surrogate, learning = learned(name, target, surrogate, own_seed, n_past, folder)
        optimizer.is_fitted, proposing = True, 0.0
        for row in rows:
            tell(row)
        while len(rows) < min(n_trials, len(left)):
            candidates = np.flatnonzero(left)
            if len(candidates) > N_CANDIDATES:
                candidates = np.sort(rng.choice(candidates, N_CANDIDATES, replace=False))
            pool = whole.subset(candidates.tolist())
            started = time.perf_counter()
            [params] = optimizer.ask(pool=pool)
            proposing += time.perf_counter() - started
            rows.append(int(candidates[next(i for i, p in enumerate(pool.params) if p == params)]))
            tell(rows[-1])
    measured: dict[str, Any] = {"loss": [float(table.loss[row]) for row in rows]}
    if table.seconds is not None:
        measured["seconds"] = [float(table.seconds[row]) for row in rows]
    return measured | {
        "learning": round(learning, 3),
        "proposing": round(proposing / n_trials, 4),
        "wall": round(time.perf_counter() - begun, 2),
    }


def expected_best(loss: np.ndarray, n: int) -> np.ndarray:
    """Return the expected lowest loss of k draws without replacement, k = 1..n; -> (n,)."""
    ordered, total = np.sort(loss), len(loss)
    found = np.empty(n)
    for k in range(1, n + 1):
        # From r - 1 to r, P(the r-th best is the best of k) changes by this factor:
        # (total - r - k + 1) / (total - r)
        chance = np.empty(total)
        chance[0] = k / total
        ranks = np.arange(1, total)
        with np.errstate(divide="ignore"):
            chance[1:] = np.maximum(total - k - ranks + 1, 0) / (total - ranks)
        found[k - 1] = np.cumprod(chance) @ ordered
    return found
