"""Fits that are killed at random moments, and what is left of them.

Each round starts a search in a process of its own, kills it (SIGKILL) when a random number of its fits have
begun, and a random few milliseconds later. Then, in this process:

* the archive must be readable, without a warning;
* every candidate whose successor had begun must be in it, with the score that it has;
* the search, taken up again, must evaluate only what is missing and end as if nothing had happened.

    python -m benchmarks.faults [--n 300] [--seed 0] [--report FILE]
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin

from sktransfer import Archive, TransferSearchCV
from sktransfer.model_selection import _evaluator

N_ITER, N_SPLITS, SECONDS = 10, 2, 0.004
GRID = {"a": [i / 10 for i in range(N_ITER)]}
KINDS = {
    "random search": {"surrogate": "random"},
    "batches": {"surrogate": "random", "batch_size": 3},
    "grid": {"space": GRID},
    "model": {"surrogate": "gp"},
}
LIGHT = ("random search", "batches", "grid")  # without torch, which takes seconds to load


class Logged(ClassifierMixin, BaseEstimator):
    """Takes its time, and writes down in `log` that it has begun."""

    log: Path | None = None
    n_fits = 0

    def __init__(self, a: float = 0.5):
        self.a = a

    def fit(self, X, y):
        Logged.n_fits += 1
        if Logged.log is not None:
            with Logged.log.open("a") as file:
                file.write(f"{self.a!r}\n")
            time.sleep(SECONDS)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.resize(self.classes_, len(X))

    def score(self, X, y):
        return -((self.a - 0.3) ** 2) + X[0, 0] / 100


def search(archive: Path, kind: str, **params) -> TransferSearchCV:
    params = {"space": {"a": uniform(0, 1)}, "n_iter": N_ITER, "random_state": 0} | KINDS[kind] | params
    return TransferSearchCV(
        Logged(), params.pop("space"), archive=archive, cv=N_SPLITS, refit=False, **params
    )


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), np.arange(40) % 2


def child(folder: str, kind: str) -> None:
    """What runs until it is killed, once it is told to begin."""
    if kind in ("batches", "grid"):
        _evaluator.SHORT_SECONDS = 0  # otherwise up to half a second of fast fits are lost by design
    Logged.log = Path(folder) / "log"
    sys.stdin.readline()
    search(Path(folder) / "archive", kind).fit(*data())


def started(folder: Path, kind: str) -> subprocess.Popen:
    """A process that is ready to search."""
    folder.mkdir()
    (folder / "log").touch()
    code = f"from benchmarks.faults import child; child({str(folder)!r}, {kind!r})"
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)


def killed_fit(process: subprocess.Popen, log: Path, after: int, delay: float) -> list[float]:
    """Let it search until so many fits have begun and a moment has passed; the values that were begun."""
    with process:
        process.stdin.write(b"\n")
        process.stdin.flush()
        while process.poll() is None and log.read_bytes().count(b"\n") < after:
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    if process.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"The search itself failed with {process.returncode}.")
    lines = log.read_text().split("\n")[:-1]  # the last one may be torn
    return [float(line) for line in lines]


def faults(folder: Path, kind: str, begun: list[float], whole: TransferSearchCV) -> tuple[list[str], int]:
    """What went wrong, and how many candidates were found again."""
    archive, wrong = Archive(folder / "archive"), []
    scores = dict(zip(whole.cv_results_["param_a"], whole.cv_results_["mean_test_score"], strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            tasks = {task.id: task for task in [*archive.journals.tasks(), *archive]}
        except Exception as error:
            return [f"unreadable: {error!r}"], 0
    if len(tasks) > 1:
        wrong.append(f"{len(tasks)} tasks of one search")
    found = {trial.params["a"]: trial.score for task in tasks.values() for trial in task.trials}
    order = list(dict.fromkeys(begun))
    if lost := [a for a in order[:-1] if a not in found]:
        wrong.append(f"lost: {lost}")
    if any(scores[a] != score for a, score in found.items()):
        wrong.append("a wrong score")
    n_fits = Logged.n_fits
    resumed = search(folder / "archive", kind, resume=True).fit(*data())
    if Logged.n_fits - n_fits != (N_ITER - len(found)) * N_SPLITS:
        wrong.append("something that was known was evaluated again")
    for key, values in whole.cv_results_.items():
        if not key.endswith("_time"):
            try:
                np.testing.assert_array_equal(resumed.cv_results_[key], values)
            except AssertionError:
                wrong.append(f"another result: {key}")
    if [len(task.trials) for task in archive.select().used] != [N_ITER]:
        wrong.append("the record does not hold each trial once")
    return wrong, len(found)


def run(n: int, seed: int, kinds: tuple[str, ...]) -> tuple[Counter, list[str]]:
    """Kill `n` fits; counts of what was seen, and what went wrong."""
    generator, counts, wrong = random.Random(seed), Counter(), []
    with tempfile.TemporaryDirectory() as top:
        whole = {kind: search(Path(top) / f"whole {kind}", kind).fit(*data()) for kind in kinds}
        plan = [(Path(top) / str(i), kinds[i % len(kinds)]) for i in range(n)]
        ready = started(*plan[0])
        for i, (folder, kind) in enumerate(plan):
            # The next one loads its libraries meanwhile, which takes longest.
            process, ready = ready, started(*plan[i + 1]) if i + 1 < n else None
            after, delay = generator.randrange(N_ITER * N_SPLITS + 1), generator.uniform(0, 3 * SECONDS)
            begun = killed_fit(process, folder / "log", after, delay)
            problems, found = faults(folder, kind, begun, whole[kind])
            wrong += [f"round {i} ({kind}): {problem}" for problem in problems]
            ended = len(begun) == N_ITER * N_SPLITS
            counts += Counter(fits=1, in_the_midst=bool(begun) and not ended, found=found)
            counts["reported"] += max(0, len(dict.fromkeys(begun)) - 1)
    return counts, wrong


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path)
    given = parser.parse_args()
    counts, wrong = run(given.n, given.seed, tuple(KINDS))
    text = (
        f"{counts['fits']} fits killed, {counts['in_the_midst']} of them between their first and their last "
        f"evaluation. {counts['reported']} candidates were known to be finished; {counts['found']} were in "
        f"the archives, which hold those as well that had just been finished. Faults: {len(wrong)}.\n"
    )
    print(text + "\n".join(wrong))
    if given.report:
        given.report.write_text(text)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    # Under its own name: in the process that is killed the class of the estimator is not that of __main__.
    from benchmarks import faults as this

    this.main()
