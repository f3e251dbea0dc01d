"""Searches on the pools of `benchmarks.pools`: regret after each number of trials.

    OMP_NUM_THREADS=1 python -m benchmarks.pool_searches --report docs/results/first_trials.md

Every search chooses from the pool of its cell and sees the scores of one split into folds. After
each trial, the configuration that it would return, the best so far, is measured on the other
splits. Regret 0 is the best of the pool there, 1 its median. Random search is computed.

"Shipped" is the package as installed. Where pretrained models predict scores, as here, it does not
read the starter archive. "With the starter archive" is the same with these past searches, without
those of the target's family. "30 past" has searches of the package without any past on 30 data sets
of other families. Past settings that a portfolio or the nearest tasks propose are replaced by the
nearest configuration of the pool. In a misleading archive, scores belong to other configurations.

On the development families, the pretrained models are those of four trainings that leave the
target's family out (`--models`, made by `benchmarks.pretraining.train --leave-out`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import peer_methods, pools
from benchmarks.data import data_folder
from benchmarks.first_trial import seed_of
from benchmarks.peers import data_of
from benchmarks.pool_report import PLAIN, STARTER, Regrets, write_kind
from benchmarks.pretraining.choose import Cell, read_cells
from benchmarks.pretraining.train import models_without
from benchmarks.runner import (
    RESULTS,
    format_page,
    make_parser,
    packed_file,
    run_all,
    update_runs,
)
from sktransfer import Archive, Task, TransferOptimizer
from sktransfer.surrogates import make_surrogate

FIELDS = ("estimator", "data", "method", "seed")
STORE = "pool-searches.jsonl"
N_TRIALS = 30
PAGE = RESULTS / "first_trials.md"
COMMAND = (
    "OMP_NUM_THREADS=1 python -m benchmarks.pool_searches --report docs/results/first_trials.md"
)
INTRODUCTION = (
    "Searches on pools of evaluated configurations (`benchmarks/pools.py`), on the families of the "
    "report, which had no part in pretraining. A search sees the scores of one split into three "
    "folds. What it would return after k trials is measured on two other splits: 0 is the best of "
    "the pool there, 1 its median. Random search is the expected result of k draws. *Shipped* is "
    "the package as installed. It does not read the starter archive, because pretrained models "
    "predict the scores of these estimators. *With the starter archive* is the same with its "
    "searches, without those on the target's family. *30 past* has searches of plain Bayesian "
    "optimization on other data sets. Intervals are 95 % over families, of paired differences."
)
SHIPPED, STARTER_PRIOR = "shipped", "starter archive, task-prior"
PAST, MISLEADING = "30 past", "30 past, misleading"
SURROGATES = {  # method -> surrogate
    PLAIN: "gp",
    SHIPPED: "auto",
    STARTER: "auto",
    PAST: "auto",
    "3 past": "auto",
    "1 past": "auto",
    MISLEADING: "auto",
    "30 past, task-prior": "task-prior",
    STARTER_PRIOR: "task-prior",
    "30 past, dist-gp": "dist-gp",
    "30 past, manual-gp": "manual-gp",
}
LISTED = {"30 past, portfolio": "portfolio", "30 past, nearest": "nearest"}
METHODS = [*SURROGATES, *LISTED]


def n_past(method: str) -> int:
    """Number of past searches of a method."""
    number = method.partition(" past")[0]
    return int(number) if number.isdigit() else 0


@lru_cache(maxsize=64)
def pool_of(estimator: str, data: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The configurations of a cell, and their positions."""
    drawn = pools.draw_pool(estimator, data)
    return drawn, {repr(params): i for i, params in enumerate(drawn)}


def search_pool(
    cell: Cell,
    surrogate: str,
    past: Sequence[Task],
    folder: Path,
    models: Path | None,
    seed: int,
    n_trials: int = N_TRIALS,
) -> tuple[list[int], list[float]]:
    """Positions of the trials of a search, and the seconds of each proposal."""
    drawn, position = pool_of(cell.estimator, cell.data)
    kind = pools.PROBLEMS[cell.estimator].kind
    optimizer = TransferOptimizer(
        pools.space_of(cell.estimator),
        past,
        profile=pools.profile_of(kind, cell.data, folder),
        surrogate=make_surrogate(surrogate),
        metric=pools.SCORING[kind],
        random_state=seed,
    )
    optimizer.model_folders = () if models is None else (models,)
    order, seconds = [], []
    for _ in range(min(n_trials, len(drawn))):
        begun = time.perf_counter()
        [params] = optimizer.ask(pool=drawn)
        seconds.append(time.perf_counter() - begun)
        order.append(position[repr(params)])
        optimizer.tell(params, cell.seen[order[-1]])
    return order, seconds


def list_pool(cell: Cell, method: str, past: Sequence[Task], folder: Path, seed: int) -> list[int]:
    """Positions of the trials of a method that lists past settings."""
    drawn, _ = pool_of(cell.estimator, cell.data)
    kind, space = pools.PROBLEMS[cell.estimator].kind, pools.space_of(cell.estimator)
    problem = peer_methods.Problem(
        dict(pools.PROBLEMS[cell.estimator].space),
        space,
        pools.profile_of(kind, cell.data, folder),
        past,
        seed,
    )
    codes, order = space.encode(drawn), []
    for params in getattr(peer_methods, method)(problem):
        apart = codes - space.encode([params])
        apart = np.where(space.categorical, apart != 0, apart)
        distance = (apart**2).sum(axis=1)
        distance[order] = np.inf
        order.append(int(distance.argmin()))
        if len(order) == min(N_TRIALS, len(drawn)):
            break
    return order


def best_so_far(cell: Cell, order: Sequence[int]) -> list[float]:
    """Regret, on the folds that were not seen, of what a search returns after each trial."""
    seen = np.nan_to_num(cell.seen[list(order)], nan=-np.inf)
    returned = [order[int(seen[: k + 1].argmax())] for k in range(len(order))]
    return [round(float(cell.regret[i]), 4) for i in returned]


class Comparison:
    """All cells of a kind, and the past tasks of each."""

    def __init__(self, kind: str, folder: Path, work: Path, models: Path | None):
        self.kind, self.folder, self._work, self._models = kind, folder, work, models
        self.cells = {
            (cell.estimator, cell.data): cell
            for split in ("development", "report")
            for cell in read_cells(kind, split, folder, work)
        }
        self.family = pools.family_of(kind, folder)

    def run(
        self, estimators: Iterable[str], methods: Sequence[str], split: str, n_seeds: int, jobs: int
    ) -> list[dict[str, Any]]:
        """Rows of all searches on a split; the past searches are made first."""
        wanted = [key for key in self.cells if key[0] in set(estimators)]
        self._past = self._search([(*key, PLAIN, 0) for key in wanted], jobs)
        targets = set(pools.targets(self.kind, split, self.folder))
        keys = [
            (*key, method, seed)
            for method in methods
            for seed in range(n_seeds)
            for key in wanted
            if key[1] in targets
        ]
        return self._search(keys, jobs)

    def _search(self, keys: list[tuple], jobs: int) -> list[dict[str, Any]]:
        return run_all(
            self._work / STORE,
            FIELDS,
            keys,
            _run,
            jobs,
            lambda key: (self._prepare(key),),
            packed_file(PAGE),
        )

    def _prepare(self, key: tuple) -> tuple:
        estimator, data = key[:2]
        models = models_without(self.family[data], self._models, self.kind, self.folder)
        return self.cells[estimator, data], self._tasks(key), self.folder, models

    def _tasks(self, key: tuple) -> list[Task]:
        estimator, data, method, seed = key
        if method in (STARTER, STARTER_PRIOR):
            return self._starter(estimator, data)
        others = [
            row
            for row in getattr(self, "_past", ())
            if row["estimator"] == estimator and self.family[row["data"]] != self.family[data]
        ]
        order = np.random.default_rng([seed, seed_of(data)]).permutation(len(others))
        tasks = [self._task(others[i]) for i in order[: n_past(method)]]
        if method == MISLEADING:
            return [peer_methods.shuffled(task, seed) for task in tasks]
        return tasks

    def _task(self, row: Mapping[str, Any]) -> Task:
        estimator, data = row["estimator"], row["data"]
        drawn, _ = pool_of(estimator, data)
        seen = self.cells[estimator, data].seen
        trials = [(drawn[i], float(seen[i])) for i in row["order"]]
        return Task.from_trials(
            pools.space_of(estimator),
            trials,
            pools.profile_of(self.kind, data, self.folder),
            metrics=[pools.SCORING[self.kind]],
            id=data,
        )

    def _starter(self, estimator: str, data: str) -> list[Task]:
        with TemporaryDirectory() as empty, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive = Archive(empty, readonly=True, starter=True)
            own = pools.profile_of(self.kind, data, self.folder)
            tasks = archive.select(pools.space_of(estimator), own).loaded().used
        return [task for task in tasks if self.family.get(data_of(task)) != self.family[data]]


def _run(estimator: str, data: str, method: str, seed: int, given: tuple) -> dict[str, Any]:
    cell, past, folder, models = given
    seconds: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method in LISTED:
            order = list_pool(cell, LISTED[method], past, folder, seed)
        else:
            order, seconds = search_pool(cell, SURROGATES[method], past, folder, models, seed)
    found = {"order": order, "regret": best_so_far(cell, order)}
    return found | {"seconds": round(float(np.median(seconds)), 4) if seconds else None}


def write_page(page: Path, kinds: Mapping[str, tuple[list[dict], Comparison]]) -> None:
    """Write the page, and pack the single runs beside it."""
    lines = ["# First trials", "", INTRODUCTION, ""]
    lines += ["```", "OMP_NUM_THREADS=1 python -m benchmarks.pools", COMMAND, "```"]
    for kind, (rows, comparison) in kinds.items():
        lines += write_kind(kind, Regrets(rows, comparison.cells))
    notes = page.with_name(f"{page.stem}-notes.md")
    if notes.exists():
        lines += ["", notes.read_text().strip()]
    page.write_text(format_page(lines))
    every = [row for rows, _ in kinds.values() for row in rows]
    update_runs(every, packed_file(page), FIELDS)


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "split", "jobs", "report")
    kinds = ["classification", "regression"]
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds)
    parser.add_argument(
        "--estimators", nargs="+", choices=list(pools.PROBLEMS), default=list(pools.PROBLEMS)
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--models", type=Path, help="models without a development family")
    options = parser.parse_args()
    found = {}
    for kind in options.kinds:
        comparison = Comparison(kind, data_folder(options.data), options.work, options.models)
        rows = comparison.run(
            options.estimators, options.methods, options.split, options.seeds, options.jobs
        )
        found[kind] = rows, comparison
        print("\n".join(write_kind(kind, Regrets(rows, comparison.cells))))
    if options.report:
        write_page(options.report, found)


if __name__ == "__main__":
    from benchmarks import pool_searches  # worker processes look functions up in the module

    pool_searches.main()
