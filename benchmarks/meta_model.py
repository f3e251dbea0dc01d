"""Two promised times: training a meta-model from nothing, and the first proposal with a cached one.

    python -m benchmarks.meta_model

The past are N_TASKS made-up tasks with N_TRIALS trials each: random smooth functions of four parameters
that change smoothly with the data set. The first proposal is timed in `TransferSearchCV.fit`, from the call
to the first fit of the estimator, in new processes: once without a cached model, then with it, on other
data; and so for estimators of the starter archive, with no past of one's own. Machines differ, so each time
is also given as a ratio to a Cholesky decomposition.
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

from sktransfer import Archive, Task, TransferOptimizer, TransferSearchCV, profile
from sktransfer.archive import _index, _lazy_task
from sktransfer.archive._model_cache import ModelCache
from sktransfer.dataset._meta_features import landmark_models
from sktransfer.model_selection import _run
from sktransfer.surrogates import make_surrogate

SURROGATES = ["dist-gp", "dist-blr", "auto"]
STARTER = {"SVC": SVC, "RandomForestClassifier": RandomForestClassifier}  # as a user would begin
SPACE = {name: uniform(0, 1) for name in "abcd"}
N_TASKS, N_TRIALS, N_ROWS, N_FEATURES = 100, 50, 1000, 20
PROMISE_TRAINING, PROMISE_PROPOSAL = 15.0, 0.3  # seconds
N_REFERENCE = 2000  # rows of the matrix of the reference
PARTS = ["profile", "reading", "guard", "training", "model file", "restoring", "proposal", "rest"]


class Probe(ClassifierMixin, BaseEstimator):
    """An estimator that does nothing but note when it was first fitted."""

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
    """Past searches on made-up data sets of various sizes; their optima move with the data."""
    rng, tasks = np.random.default_rng(0), []
    W, V, phase = 2 * rng.normal(size=(4, 20)), rng.normal(size=(4, 20)), rng.uniform(0, 2 * np.pi, 20)
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
        tasks.append(Task.from_trials(SPACE, trials, seen, estimator=Probe(), id=f"task-{number:03}"))
    return tasks


def reference_seconds(repeats: int = 5) -> list[float]:
    """Seconds of a Cholesky decomposition on one thread."""
    A = np.random.default_rng(0).normal(size=(N_REFERENCE, N_REFERENCE))
    A = A @ A.T + N_REFERENCE * np.eye(N_REFERENCE)
    seconds = []
    with threadpool_limits(1):
        for _ in range(repeats):
            begun = time.perf_counter()
            cholesky(A)
            seconds.append(time.perf_counter() - begun)
    return seconds


def training_seconds(tasks: list[Task], surrogate: str) -> float:
    """Seconds of training from nothing, encoding of the tasks included."""
    optimizer = TransferOptimizer(SPACE, tasks, surrogate=surrogate, random_state=0)
    begun = time.perf_counter()
    optimizer.learn()
    return time.perf_counter() - begun


# -- the first proposal ------------------------------------------------------------------------


class Clock:
    """Seconds spent in some functions up to the first fit, without those spent in another of them."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inside = [0.0]  # for each function under way, and outside: seconds spent in others it called

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
    """Have an estimator of scikit-learn note when it was first fitted, as `Probe` does."""
    fit = estimator.fit

    @functools.wraps(fit)
    def noted(self: Any, *args: Any, **keywords: Any) -> Any:
        if Probe.first is None:
            Probe.first = time.perf_counter()
        return fit(self, *args, **keywords)

    estimator.fit = noted


def first_proposals(path: Path, surrogate: str, estimator: str, seeds: list[int]) -> list[dict]:
    """One search after another in this process; each record is removed, so that all see the same past."""
    clock, begun = Clock(), time.perf_counter()
    landmark_models(True)
    model = type(make_surrogate(surrogate))  # both import what the package leaves for later, torch above all
    imports = time.perf_counter() - begun
    clock.watch("profile", _run, "profile")
    clock.watch("reading", _lazy_task, "read_task")
    clock.watch("reading", _index, "read_task")
    clock.watch("guard", Archive, "select")
    clock.watch("model file", ModelCache, "has", "get", "nearest", "put")
    clock.watch("training", TransferOptimizer, "learn")
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
        heard = [row for row in search.source_tasks_ if row["refused"] is None]
        n_past = 1 if estimator in STARTER else len(Archive(path))
        if not search.cv_results_["origin"][0].startswith(("model", "task")) or len(heard) < n_past:
            raise RuntimeError("The model did not propose, or not all of the past was heard.")
        parts = dict(clock.seconds)
        rest = total - sum(parts.values())
        results.append({"imports": imports, "total": total, **parts, "rest": rest})
    return results


def run_processes(path: Path, surrogate: str, estimator: str, n_processes: int) -> list[list[dict]]:
    """`first_proposals` on two data sets each in new processes."""
    results = []
    for number in range(n_processes):
        seeds = [str(10_000 + 2 * number), str(10_001 + 2 * number)]
        what = [str(path), surrogate, estimator, *seeds]
        command = [sys.executable, "-m", "benchmarks.meta_model", "--first", *what]
        done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
        if done.returncode:
            raise SystemExit(done.stderr)
        results.append(json.loads(done.stdout.splitlines()[-1]))
    return results


def situations(
    path: Path, n_processes: int, surrogate: str = "auto", estimator: str = "Probe"
) -> dict[str, dict[str, float]]:
    """Situation -> median seconds in all and of each part."""
    runs = run_processes(path, surrogate, estimator, n_processes)
    kinds = {
        "no model yet": [runs[0][0]],
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


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]


def training_table(training: dict[str, list[float]], reference: float) -> list[str]:
    rows = []
    for surrogate, seconds in training.items():
        middle = np.median(seconds)
        kept = "yes" if middle < PROMISE_TRAINING else "no"
        each = ", ".join(f"{s:.1f}" for s in seconds)
        rows.append([surrogate, f"{middle:.1f}", f"{middle / reference:.0f}", kept, each])
    return table(["surrogate", "seconds", "ratio", f"under {PROMISE_TRAINING:g} s", "each"], rows)


def proposal_table(
    proposals: dict[str, dict[str, dict[str, float]]], reference: float, what: str
) -> list[str]:
    rows = []
    for name, kinds in proposals.items():
        for kind, seconds in kinds.items():
            total = seconds["total"]
            kept = ("yes" if total < PROMISE_PROPOSAL else "no") if kind.startswith("cached") else ""
            parts = [f"{seconds[part]:.3f}" for part in PARTS]
            rows.append([name, kind, f"{total:.3f}", f"{total / reference:.1f}", kept, *parts])
    return table([what, "", "seconds", "ratio", f"under {PROMISE_PROPOSAL:g} s", *PARTS], rows)


def report(training, proposals, starter, reference: list[float], options: argparse.Namespace, command: str):
    """The tables as Markdown."""
    middle = float(np.median(reference))
    imports = np.median([seconds["imports"] for kinds in proposals.values() for seconds in kinds.values()])
    lines = [
        "# Times of the meta-model",
        "",
        f"Made by `{command}`.",
        "",
        f"{options.tasks} made-up tasks of {options.trials} trials and four parameters. The ratios are to "
        f"the Cholesky decomposition of a {N_REFERENCE} × {N_REFERENCE} matrix on one thread, which took "
        f"{middle:.3f} s here (median of {len(reference)}, {min(reference):.3f} to {max(reference):.3f}, "
        "measured before, between and after).",
        "",
        "## Training from nothing",
        "",
        f"Median of {options.repeats}.",
        "",
        *training_table(training, middle),
        "",
        "## First proposal",
        "",
        f"`TransferSearchCV.fit` on {N_ROWS} × {N_FEATURES} data, from the call to the first fit of the "
        f"estimator. Modules are imported before, which took {imports:.1f} s beside `import sktransfer`. "
        "Each process makes two searches on different data with the same past: in the first the archive has "
        "not been looked at yet, in the second it has. "
        f"Medians of {options.repeats} processes, and one before them that finds no cached model. Seconds:",
        "",
        *proposal_table(proposals, middle, "surrogate"),
        "",
        "Profile: of the data at hand. Reading: records, where they are opened. Guard: the index, which "
        "tasks may speak, and whether they share rows. Model file: looking for it, reading it, writing it. "
        "Restoring: the model from its arrays. Proposal: the posterior and its maximum. Rest: scikit-learn, "
        "the space, the optimizer, whatever else.",
        "",
        "## First proposal from the starter archive",
        "",
        'The same with `TransferSearchCV(estimator, "auto")` and no records but those that ship with the '
        "package. The space is learned from them as well, which is among the rest.",
        "",
        *proposal_table(starter, middle, "estimator"),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=N_TASKS)
    parser.add_argument("--trials", type=int, default=N_TRIALS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--report", type=Path, help="Markdown file to write")
    parser.add_argument("--first", nargs="+", help=argparse.SUPPRESS)  # a process: as `first_proposals`
    options = parser.parse_args()
    if options.first:
        path, surrogate, estimator, *seeds = options.first
        print(json.dumps(first_proposals(Path(path), surrogate, estimator, [int(seed) for seed in seeds])))
        return
    whole = (options.tasks, options.trials) == (N_TASKS, N_TRIALS)
    tasks, reference = make_tasks(options.tasks, options.trials), reference_seconds()
    make_surrogate(SURROGATES[0])  # imports torch
    training = {s: [training_seconds(tasks, s) for _ in range(options.repeats)] for s in SURROGATES}
    reference += reference_seconds()
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            Archive(folder).append(task)
        proposals = {s: situations(Path(folder), options.repeats + 1, surrogate=s) for s in SURROGATES}
    with tempfile.TemporaryDirectory() as folder:
        starter = {e: situations(Path(folder), options.repeats + 1, estimator=e) for e in STARTER}
    reference += reference_seconds()
    command = "python -m benchmarks.meta_model"
    command += f" --tasks {options.tasks} --trials {options.trials}" * (not whole)
    text = report(training, proposals, starter, reference, options, command)
    if whole:
        options.report = options.report or Path("docs/results/meta_model.md")
    if options.report:
        options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
