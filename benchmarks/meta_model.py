"""Two promised times: training a meta-model from scratch, and the first proposal with a cached one.

    python -m benchmarks.meta_model

There are N_TASKS synthetic past tasks with N_TRIALS trials each: random smooth functions of four
parameters that change smoothly with the data set. The first proposal is timed in
`TransferSearchCV.fit`, from the call to the first fit of the estimator, in new processes: once
without a cached model, then with it on other data. Estimators of the starter archive are timed in
the same way with an otherwise empty archive. Machines differ, so each time is also given as a ratio
to a Cholesky decomposition.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.runner import RESULTS, format_page, make_parser, markdown_table
from sktransfer import Archive, Task, TransferOptimizer, TransferSearchCV, profile
from sktransfer.archive import _index, _lazy_task
from sktransfer.archive._model_cache import ModelCache
from sktransfer.dataset._meta_features import landmark_models
from sktransfer.model_selection import _history
from sktransfer.surrogates import make_surrogate

SURROGATES = ["dist-gp", "dist-blr", "auto"]
STARTER = {"SVC": SVC, "RandomForestClassifier": RandomForestClassifier}  # with default parameters
SPACE = {name: uniform(0, 1) for name in "abcd"}
N_TASKS, N_TRIALS, N_ROWS, N_FEATURES = 100, 50, 1000, 20
MAX_TRAINING_SECONDS, MAX_PROPOSAL_SECONDS = 15.0, 0.3  # seconds
N_REFERENCE = 2000  # rows of the matrix in the reference computation
PARTS = ["profile", "reading", "guard", "training", "model file", "restoring", "proposal", "rest"]


class Probe(ClassifierMixin, BaseEstimator):
    """An estimator that only records the time of its first fit."""

    first: ClassVar[float | None] = None

    def __init__(self, a: float = 0.5, b: float = 0.5, c: float = 0.5, d: float = 0.5):
        self.a, self.b, self.c, self.d = a, b, c, d

    def fit(self, X, y):
        if Probe.first is None:
            Probe.first = time.perf_counter()
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return 0.5


def make_tasks(n_tasks: int, n_trials: int) -> list[Task]:
    """Return past searches on synthetic data sets of various sizes; optima depend on the data."""
    rng, tasks = np.random.default_rng(0), []
    W, V, phase = (
        2 * rng.normal(size=(4, 20)),
        rng.normal(size=(4, 20)),
        rng.uniform(0, 2 * np.pi, 20),
    )
    for number in range(n_tasks):
        n, p, k = int(10 ** rng.uniform(2, 3)), int(rng.integers(6, 41)), int(rng.integers(2, 5))
        apart = rng.uniform(0.5, 2)
        kind = {"n_informative": 4, "n_classes": k, "n_clusters_per_class": 1, "class_sep": apart}
        seen = profile(*make_classification(n, p, **kind, random_state=number))
        about = np.array([np.log10(n) - 2, p / 40, k / 4, apart / 2])
        theta = rng.uniform(size=(n_trials, 4))
        scores = 0.7 + 0.02 * np.cos(theta @ W + about @ V + phase).sum(axis=1)
        params = [dict(zip(SPACE, row, strict=True)) for row in theta.tolist()]
        trials = zip(params, scores, strict=True)
        tasks.append(
            Task.from_trials(SPACE, trials, seen, estimator=Probe(), id=f"task-{number:03}")
        )
    return tasks


def measure_reference(repeats: int = 5) -> list[float]:
    """Return the seconds of a Cholesky decomposition on one thread."""
    A = np.random.default_rng(0).normal(size=(N_REFERENCE, N_REFERENCE))
    A = A @ A.T + N_REFERENCE * np.eye(N_REFERENCE)
    seconds = []
    with threadpool_limits(1):
        for _ in range(repeats):
            begun = time.perf_counter()
            cholesky(A)
            seconds.append(time.perf_counter() - begun)
    return seconds


def measure_training(tasks: list[Task], surrogate: str) -> float:
    """Return the seconds of training from scratch, including the encoding of tasks."""
    optimizer = TransferOptimizer(SPACE, tasks, surrogate=surrogate, random_state=0)
    begun = time.perf_counter()
    optimizer.fit_surrogate()
    return time.perf_counter() - begun


# -- the first proposal ------------------------------------------------------------------------


class Clock:
    """Seconds spent in some functions before the first fit, without nested watched functions."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inside = [0.0]  # for each active function: seconds spent in nested ones

    def watch(self, part: str, owner: Any, *names: str) -> None:
        for name in names:
            setattr(owner, name, self._timed(part, getattr(owner, name)))

    def _timed(self, part: str, function: Any) -> Any:
        @functools.wraps(function)
        def timed(*args: Any, **keywords: Any) -> Any:
            begun = time.perf_counter()
            self._inside.append(0.0)
            try:
                return function(*args, **keywords)
            finally:
                seconds = time.perf_counter() - begun
                own = seconds - self._inside.pop()
                self._inside[-1] += seconds
                if Probe.first is None:
                    self.seconds[part] += own

        return timed


def note_first_fit(estimator: type) -> None:
    """Make a scikit-learn estimator record the time of its first fit, as `Probe` does."""
    fit = estimator.fit

    @functools.wraps(fit)
    def noted(self: Any, *args: Any, **keywords: Any) -> Any:
        if Probe.first is None:
            Probe.first = time.perf_counter()
        return fit(self, *args, **keywords)

    estimator.fit = noted


def measure_first_proposals(
    path: Path, surrogate: str, estimator: str, seeds: list[int]
) -> list[dict]:
    """Run one search after another in this process; each record is removed afterwards."""
    clock, begun = Clock(), time.perf_counter()
    landmark_models(True)
    model = type(make_surrogate(surrogate))  # both trigger lazy imports, mainly of torch
    imports = time.perf_counter() - begun
    clock.watch("profile", _history, "profile")
    clock.watch("reading", _lazy_task, "read_task")
    clock.watch("reading", _index, "read_task")
    clock.watch("guard", Archive, "select")
    clock.watch("model file", ModelCache, "has", "get", "nearest", "put")
    clock.watch("training", TransferOptimizer, "fit_surrogate")
    clock.watch("proposal", TransferOptimizer, "propose")
    clock.watch("restoring", model, "set_state")
    if estimator in STARTER:
        note_first_fit(STARTER[estimator])
    results = []
    for seed in seeds:
        X, y = make_classification(N_ROWS, N_FEATURES, random_state=seed)
        search = TransferSearchCV(
            STARTER.get(estimator, Probe)(),
            "auto" if estimator in STARTER else SPACE,
            n_iter=1,
            cv=3,
            refit=False,
            archive=Archive(path, starter=estimator in STARTER),
            surrogate=surrogate,
            random_state=0,
        )
        Probe.first = None
        clock.seconds.clear()
        begun = time.perf_counter()
        search.fit(X, y)
        total = Probe.first - begun
        (path / "tasks" / f"{search.task_id_}.joblib").unlink()
        used = [row for row in search.source_tasks_ if row["excluded"] is None]
        n_past = 1 if estimator in STARTER else len(Archive(path))
        if not search.cv_results_["origin"][0].startswith(("model", "task")) or len(used) < n_past:
            raise RuntimeError("The model did not propose, or not all past tasks were used.")
        parts = dict(clock.seconds)
        rest = total - sum(parts.values())
        results.append({"imports": imports, "total": total, **parts, "rest": rest})
    return results


def measure_in_processes(
    path: Path, surrogate: str, estimator: str, n_processes: int
) -> list[list[dict]]:
    """Run `measure_first_proposals` on two data sets each in new processes."""
    results = []
    for number in range(n_processes):
        seeds = [str(10_000 + 2 * number), str(10_001 + 2 * number)]
        what = [str(path), surrogate, estimator, *seeds]
        command = [sys.executable, "-m", "benchmarks.meta_model", "--first", *what]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=Path(__file__).parents[1]
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return results


def measure_situations(
    path: Path, n_processes: int, surrogate: str = "auto", estimator: str = "Probe"
) -> dict[str, dict[str, float]]:
    """Map situation -> median seconds, in total and of each part."""
    runs = measure_in_processes(path, surrogate, estimator, n_processes)
    kinds = {
        "no cached model": [runs[0][0]],
        "cached, new process": [first for first, _ in runs[1:]],
        "cached, same process": [second for _, second in runs],
    }
    return {
        kind: {
            part: float(np.median([row.get(part, 0.0) for row in rows]))
            for part in ["imports", "total", *PARTS]
        }
        for kind, rows in kinds.items()
    }


# -- the report --------------------------------------------------------------------------------


def training_table(training: dict[str, list[float]], reference: float) -> list[str]:
    """Return the table of training times."""
    rows = []
    for surrogate, seconds in training.items():
        middle = np.median(seconds)
        kept = "yes" if middle < MAX_TRAINING_SECONDS else "no"
        each = ", ".join(f"{s:.1f}" for s in seconds)
        rows.append([surrogate, f"{middle:.1f}", f"{middle / reference:.0f}", kept, each])
    return markdown_table(
        ["surrogate", "seconds", "ratio", f"under {MAX_TRAINING_SECONDS:g} s", "each"], rows
    )


def proposal_table(
    proposals: dict[str, dict[str, dict[str, float]]], reference: float, what: str
) -> list[str]:
    """Return the table of first proposals."""
    rows = []
    for name, kinds in proposals.items():
        for kind, seconds in kinds.items():
            total = seconds["total"]
            kept = (
                ("yes" if total < MAX_PROPOSAL_SECONDS else "no")
                if kind.startswith("cached")
                else ""
            )
            parts = [f"{seconds[part]:.3f}" for part in PARTS]
            rows.append([name, kind, f"{total:.3f}", f"{total / reference:.1f}", kept, *parts])
    return markdown_table(
        [what, "", "seconds", "ratio", f"under {MAX_PROPOSAL_SECONDS:g} s", *PARTS], rows
    )


def report(
    training, proposals, starter, reference: list[float], options: argparse.Namespace, command: str
):
    """Return the page of results."""
    middle = float(np.median(reference))
    imports = np.median(
        [seconds["imports"] for kinds in proposals.values() for seconds in kinds.values()]
    )
    lines = [
        "# Times of the meta-model",
        "",
        f"Made by `{command}`.",
        "",
        f"There are {options.tasks} synthetic tasks of {options.trials} trials and four "
        f"parameters. Ratios are to the Cholesky decomposition of a {N_REFERENCE} × {N_REFERENCE} "
        f"matrix on one thread, which took {middle:.3f} s (median of {len(reference)}, "
        f"{min(reference):.3f} to {max(reference):.3f}, measured before, between and after the "
        "other measurements).",
        "",
        "## Training from scratch",
        "",
        f"Median of {options.repeats}.",
        "",
        *training_table(training, middle),
        "",
        "## First proposal",
        "",
        f"`TransferSearchCV.fit` on {N_ROWS} × {N_FEATURES} data, from the call to the first fit "
        f"of the estimator. Modules are imported before, which took {imports:.1f} s in addition "
        "to `import sktransfer`. Each process runs two searches on different data with the same "
        "past tasks. The first one opens the archive, the second one finds it open. Medians of "
        f"{options.repeats} processes, after one that finds no cached model. Seconds:",
        "",
        *proposal_table(proposals, middle, "surrogate"),
        "",
        "Profile: profile of the target's data. Reading: opening records. Guard: reading the "
        "index, selecting past tasks and checking for shared rows. Model file: finding, reading "
        "and writing it. Restoring: the model from its arrays. Proposal: the posterior and its "
        "maximization. Rest: scikit-learn, the space and the optimizer.",
        "",
        "## First proposal from the starter archive",
        "",
        'The same with `TransferSearchCV(estimator, "auto")` and only the records that ship with '
        "the "
        "package. The space is learned from them too, which is part of the rest.",
        "",
        *proposal_table(starter, middle, "estimator"),
    ]
    return format_page(lines)


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.add_argument("--tasks", type=int, default=N_TASKS)
    parser.add_argument("--trials", type=int, default=N_TRIALS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--first", nargs="+", help=argparse.SUPPRESS
    )  # arguments of `measure_first_proposals`, in a new process
    options = parser.parse_args()
    if options.first:
        path, surrogate, estimator, *seeds = options.first
        print(
            json.dumps(
                measure_first_proposals(
                    Path(path), surrogate, estimator, [int(seed) for seed in seeds]
                )
            )
        )
        return
    whole = (options.tasks, options.trials) == (N_TASKS, N_TRIALS)
    tasks, reference = make_tasks(options.tasks, options.trials), measure_reference()
    make_surrogate(SURROGATES[0])  # imports torch
    training = {s: [measure_training(tasks, s) for _ in range(options.repeats)] for s in SURROGATES}
    reference += measure_reference()
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            Archive(folder).append(task)
        proposals = {
            s: measure_situations(Path(folder), options.repeats + 1, surrogate=s)
            for s in SURROGATES
        }
    with tempfile.TemporaryDirectory() as folder:
        starter = {
            e: measure_situations(Path(folder), options.repeats + 1, estimator=e) for e in STARTER
        }
    reference += measure_reference()
    command = "python -m benchmarks.meta_model"
    command += f" --tasks {options.tasks} --trials {options.trials}" * (not whole)
    text = report(training, proposals, starter, reference, options, command)
    if whole:
        options.report = options.report or RESULTS / "meta_model.md"
    if options.report:
        options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
