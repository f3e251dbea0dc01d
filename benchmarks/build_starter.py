"""Build the starter archive: trials of many estimators on many data sets.

    OMP_NUM_THREADS=1 python -m benchmarks.build_starter --jobs 2    # about three hours, two cores
    python -m benchmarks.build_starter --pack                        # write it into the package

A cell is a data set, an estimator of `starter_spaces`, and whether a StandardScaler comes first. It
becomes one record in the archive of the work folder. Existing cells are skipped, so an interrupted
run resumes, and a new data set or estimator adds only its own cells. Cheap cells come first.

Categories are codes in alphabetical order: trees and neighbors accept them, and one-hot encoding
would multiply the columns. Scores are means of three folds. Half of the trials fill the space: ten
are the same for all data sets, so that these can be compared point by point, and ten belong to the
cell. The package's own Gaussian process proposes the other half. A trial that exceeds the time
limit counts as failed.
"""

from __future__ import annotations

import math
import signal
import threading
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import runner
from benchmarks.data import data_folder, load_classification, load_regression
from benchmarks.pack_starter import pack_starter
from benchmarks.runner import make_parser
from benchmarks.starter_scores import score_classifier, score_regressor
from benchmarks.starter_spaces import Branch, Spec, specs
from sktransfer import Archive, DatasetProfile, Space, Task, TransferOptimizer, Trial, profile
from sktransfer.archive import library_versions
from sktransfer.archive._locations import PACKAGED_STARTER
from sktransfer.surrogates.gp import GP

WORK = runner.WORK / "starter"
KINDS = {"classification": load_classification, "regression": load_regression}
MAX_ROWS = 1000
# One or two data sets that share rows are enough, and tiny classes are not informative.
LEFT_OUT = {
    "abalone19",
    "crx",  # australian in another encoding
    "ecoli-0_vs_1",
    "kddcup-buffer_overflow_vs_back",
    "kr-vs-k-one_vs_fifteen",
    "new-thyroid2",
    "poker-8-9_vs_5",
    "poker-8-9_vs_6",
    "shuttle-2_vs_5",
    "winequality-white-3-9_vs_5",
}

# scikit-learn's versions have other digits or a corrected row, and must be recognized too.
TWINS = {"iris": load_iris, "optdigits": load_digits, "wdbc": load_breast_cancer, "wine": load_wine}


@dataclass(frozen=True)
class Numbers:
    """Numbers of trials of a cell, and the time limit of a trial."""

    shared: int = 10
    own: int = 10
    searched: int = 20
    further: int = 10  # in each further branch
    seconds: float = 20.0


class Cell(NamedTuple):
    """The subject of one record."""

    kind: str
    data: str
    estimator: str
    scaled: bool

    @property
    def id(self) -> str:
        return f"{self.data}-{self.estimator}-{'scaled' if self.scaled else 'bare'}"


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    profile: DatasetProfile


@lru_cache(maxsize=128)
def load(kind: str, name: str, folder: Path) -> Data:
    """Return at most MAX_ROWS rows of a data set, and their profile.

    The profile also holds the fingerprints of the whole data set, and of its uncoded categories. So
    the check for shared rows recognizes the data set in any form.
    """
    X, y = KINDS[kind](name, folder, MAX_ROWS)
    whole, _ = KINDS[kind](name, folder, 10**9)
    table = pd.read_csv(folder / kind / f"{name}.csv.gz", dtype={"target": str}).drop(
        columns="target"
    )
    uncoded = [] if table.select_dtypes(exclude="number").empty else [table]
    return Data(X, y, profile(X, y, enclosing=[whole, *uncoded]))


# -- the trials of a cell ------------------------------------------------------------------------


def evaluate(cell: Cell, spec: Spec, data: Data, numbers: Numbers) -> Task:
    """Return the record of a cell."""
    estimator = make_pipeline(StandardScaler(), spec.estimator) if cell.scaled else spec.estimator
    prefix = f"{estimator.steps[-1][0]}__" if cell.scaled else ""
    space, *further = (
        {prefix + key: value for key, value in branch.items()} for branch in branches(spec)
    )
    judge = Judge(estimator, *first_rows(data, spec), cell.kind, numbers.seconds)
    trials = search(Space.parse(space, estimator), judge, numbers, seed_of(cell))
    for branch in further:
        own = Space.parse(branch, estimator)
        n = min(numbers.further, own.size or numbers.further)
        trials += [judge(params) for params in fill(own, n, seed_of(cell))]
    return Task.from_trials(
        [space, *further],
        trials,
        data.profile,
        estimator=estimator,
        metrics=judge.metrics,
        versions=library_versions(),
        id=cell.id,
    )


def branches(spec: Spec) -> list[Branch]:
    """Return all branches of a search space."""
    return [spec.space, *spec.further]


def seed_of(cell: Cell) -> int:
    """Return a reproducible seed; hash() differs between processes."""
    return zlib.crc32(cell.id.encode())


def fill(space: Space, n: int, seed: int) -> list[dict[str, Any]]:
    """Return quasi-random configurations: the first ones of a search without observations."""
    return TransferOptimizer(space, surrogate=GP(n_initial=n), random_state=seed).ask(n)


def search(space: Space, judge: Judge, numbers: Numbers, seed: int) -> list[Trial]:
    """Return trials that fill the space, and as many proposed by a Gaussian process."""
    n_filling = numbers.shared + numbers.own
    surrogate = GP(n_initial=n_filling, max_iter=20)
    optimizer = TransferOptimizer(space, surrogate=surrogate, random_state=seed)
    wanted = fill(space, numbers.shared, seed=0)
    trials: list[Trial] = []
    while len(trials) < n_filling + numbers.searched and not optimizer.is_exhausted:
        params = wanted[len(trials)] if len(trials) < len(wanted) else optimizer.ask()[0]
        trials.append(judge(params))
        optimizer.tell(params, trials[-1].score)
    return trials


def first_rows(data: Data, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    """Return as many rows as the estimator can handle, in random order."""
    rows = np.random.default_rng(0).permutation(len(data.y))[: spec.max_rows]
    return data.X[rows], data.y[rows]


class Judge:
    """Cross-validation of configurations of one estimator on one data set."""

    def __init__(self, estimator: Any, X: np.ndarray, y: np.ndarray, kind: str, seconds: float):
        self._estimator, self._X, self._y, self._seconds = estimator, X, y, seconds
        classes = kind == "classification"
        self._score = score_classifier if classes else score_regressor
        self.metrics = (
            "balanced_accuracy" if classes else "r2",
        )  # further metrics follow from the first trial
        folds = StratifiedKFold if classes else KFold
        self._folds = list(folds(3, shuffle=True, random_state=0).split(X, y))

    def __call__(self, params: dict[str, Any]) -> Trial:
        seconds, found = [], []
        try:
            with at_most(self._seconds), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # convergence warnings: max_iter is intended
                for train, test in self._folds:
                    estimator, begun = (
                        clone(self._estimator).set_params(**params),
                        time.perf_counter(),
                    )
                    estimator.fit(self._X[train], self._y[train])
                    seconds.append(time.perf_counter() - begun)
                    found.append(self._score(estimator, self._X[test], self._y[test]))
        except Exception:  # too slow or invalid: a failed trial, as in any search
            return Trial.make(params, math.nan, fit_time=float(np.mean(seconds or [self._seconds])))
        self.metrics = tuple(found[0])
        table = np.array([list(row.values()) for row in found])
        means = dict(zip(self.metrics, table.mean(axis=0).tolist(), strict=True))
        score = means.pop(self.metrics[0])
        std, mean_seconds = float(table[:, 0].std()), float(np.mean(seconds))
        return Trial.make(params, score, std=std, fit_time=mean_seconds, metrics=means)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise a TimeoutError in a block that takes longer, as soon as it returns to Python.

    Without such signals there is no limit except those of the estimators.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- all cells -----------------------------------------------------------------------------------


def data_sets(kind: str, folder: Path) -> list[str]:
    """Return the names of the data sets of one kind."""
    names = sorted(path.name.removesuffix(".csv.gz") for path in (folder / kind).glob("*.csv.gz"))
    return [name for name in names if name not in LEFT_OUT]


def cells_in_order(folder: Path, extras: bool, only: list[str] | None = None) -> list[Cell]:
    """Return all cells, cheap and popular ones first."""
    costs: dict[Cell, float] = {}
    for kind, kind_specs in {kind: specs(kind, extras) for kind in KINDS}.items():
        for name in data_sets(kind, folder):
            X, y, _ = load(kind, name, folder)
            for estimator, spec in kind_specs.items():
                if only and estimator not in only:
                    continue
                rows, n_classes = (
                    min(len(X), spec.max_rows),
                    len(np.unique(y)) if spec.per_class else 1,
                )
                cost = spec.cost * (0.2 + rows / 1000) * (1 + X.shape[1] / 50) * n_classes
                for scaled in (False, True) if spec.scaled else (False,):
                    costs[Cell(kind, name, estimator, scaled)] = cost / spec.wanted
    return sorted(costs, key=costs.__getitem__)


def run_cell(cell: Cell, folder: Path, work: Path, numbers: Numbers, extras: bool) -> str:
    """Evaluate a cell and append its record; return a line that describes the result."""
    begun = time.time()
    try:
        task = evaluate(
            cell, specs(cell.kind, extras)[cell.estimator], load(*cell[:2], folder), numbers
        )
        Archive(work).append(task)
    except Exception as error:  # other cells continue, a new run repeats this one
        return f"{cell.id}: {error!r}"
    scores = task.scores[np.isfinite(task.scores)]
    span = f"{scores.min():.3f} to {scores.max():.3f}" if len(scores) else "all trials failed"
    failed = f", {len(task.trials) - len(scores)} failed" if len(scores) < len(task.trials) else ""
    return f"{cell.id}: {len(task.trials)} trials, {span}{failed}, {time.time() - begun:.1f} s"


def run(
    folder: Path, work: Path, n_jobs: int, numbers: Numbers, extras: bool, only: list[str] | None
) -> None:
    """Evaluate the missing cells."""
    archive = Archive(work)
    cells = cells_in_order(folder, extras, only)
    todo = [cell for cell in cells if cell.id not in archive]
    print(f"{len(cells) - len(todo)} of {len(cells)} cells are done", flush=True)
    begun = time.time()
    rest = folder, work, numbers, extras
    if n_jobs == 1:
        lines: Iterable[str] = (run_cell(cell, *rest) for cell in todo)
    else:
        jobs = (delayed(run_cell)(cell, *rest) for cell in todo)
        lines = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            jobs
        )  # joblib 1.4 or newer
    for number, line in enumerate(lines, 1):
        print(f"{number}/{len(todo)} {line}; {time.time() - begun:.0f} s in total", flush=True)


def with_twin(task: Task) -> Task:
    """Return the task with the fingerprint of scikit-learn's version of its data, if any."""
    known, data = DatasetProfile.from_dict(task.profile or {}), task.id.rsplit("-", 2)[0]
    if known.kind != "classification" or data not in TWINS:
        return task
    X, _ = TWINS[data](return_X_y=True)
    whole = replace(known, enclosing=(*known.enclosing, profile(X)))
    return replace(task, profile=whole.to_dict())


def pack_all(work: Path, folder: Path) -> None:
    """Write all records with a successful trial as the starter archive."""
    tasks = [with_twin(task) for task in Archive(work, readonly=True) if task.succeeded]
    pack_starter(tasks, folder)
    size = sum(file.stat().st_size for file in folder.glob("*.joblib"))
    print(f"{len(tasks)} tasks, {size / 1e6:.1f} MB in {folder}")


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "jobs")
    parser.set_defaults(work=WORK)
    parser.add_argument(
        "--seconds", type=float, default=Numbers.seconds, help="time limit of a trial"
    )
    parser.add_argument("--estimators", nargs="+", help="class names; all by default")
    parser.add_argument("--extras", action="store_true", help="LightGBM and XGBoost as well")
    parser.add_argument(
        "--pack",
        nargs="?",
        type=Path,
        const=PACKAGED_STARTER,
        help="only write the starter archive, to the package or to this folder",
    )
    options = parser.parse_args()
    if options.pack:
        pack_all(options.work, options.pack)
        return
    numbers = Numbers(seconds=options.seconds)
    folder = data_folder(options.data)
    run(folder, options.work, options.jobs, numbers, options.extras, options.estimators)


if __name__ == "__main__":
    main()
