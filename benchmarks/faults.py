"""Searches that are killed at random moments, and what the archive holds afterwards.

Each round forks a process that searches. It kills the process (SIGKILL) a few random milliseconds
after a random number of fits has started. Then three conditions must hold:

* The archive can be read without a warning.
* It holds every candidate whose successor had started, with the correct score.
* The resumed search evaluates only the missing candidates and has the same result as an
  uninterrupted one.

    python -m benchmarks.faults [--n 441] [--seed 0] [--fuzz-seconds 900]
        [--report docs/results/archive.md] [--only attacks fuzzing mishaps files kills]

Before that, the attacks of `benchmarks.attacks`, the mishaps of `benchmarks.mishaps`, the trials of
`benchmarks.damage`, the inputs of `benchmarks.fuzz` and the searches of `benchmarks.file_faults`
are run.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks import attacks, damage, mishaps
from benchmarks.file_faults import describe_faults
from benchmarks.fuzz import describe_fuzzing
from benchmarks.mishaps import FORK
from benchmarks.runner import format_page, make_parser, write_section
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


class Logged(ClassifierMixin, BaseEstimator):
    """An estimator that sleeps and logs the start of each fit."""

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


def make_search(archive: Path, kind: str, **params) -> TransferSearchCV:
    """Return a search of one kind."""
    params = (
        {"space": {"a": uniform(0, 1)}, "n_iter": N_ITER, "random_state": 0} | KINDS[kind] | params
    )
    return TransferSearchCV(
        Logged(), params.pop("space"), archive=archive, cv=N_SPLITS, refit=False, **params
    )


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Return a small data set."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 3)), np.arange(40) % 2


def search_until_killed(folder: Path, kind: str) -> None:
    """Run a search in the process to be killed."""
    if kind in ("batches", "grid"):
        _evaluator.SYNC_SECONDS = 0  # by default, up to half a second of fast fits can be lost
    Logged.log = folder / "log"
    make_search(folder / "archive", kind).fit(*make_data())


def kill_fit(folder: Path, kind: str, after: int, delay: float) -> list[float]:
    """Kill a search `delay` seconds after some fits have started; return the started values."""
    folder.mkdir()
    log = folder / "log"
    log.touch()
    process = FORK.Process(target=search_until_killed, args=(folder, kind))
    process.start()
    while process.is_alive() and log.read_bytes().count(b"\n") < after:
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"The search itself failed with {process.exitcode}.")
    lines = log.read_text().split("\n")[:-1]  # the last line may be incomplete
    return [float(line) for line in lines]


def find_faults(
    folder: Path, kind: str, begun: list[float], whole: TransferSearchCV
) -> tuple[list[str], int]:
    """Return the faults of a round, and the number of candidates in the archive."""
    archive, wrong = Archive(folder / "archive"), []
    scores = dict(
        zip(whole.cv_results_["param_a"], whole.cv_results_["mean_test_score"], strict=True)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            tasks = {task.id: task for task in [*archive.journals.tasks(), *archive]}
        except Exception as error:
            return [f"unreadable: {error!r}"], 0
    if len(tasks) > 1:
        wrong.append(f"one search has {len(tasks)} tasks")
    found = {trial.params["a"]: trial.score for task in tasks.values() for trial in task.trials}
    order = list(dict.fromkeys(begun))
    if lost := [a for a in order[:-1] if a not in found]:
        wrong.append(f"lost candidates: {lost}")
    if any(scores[a] != score for a, score in found.items()):
        wrong.append("a score is wrong")
    n_fits = Logged.n_fits
    resumed = make_search(folder / "archive", kind, resume=True).fit(*make_data())
    if Logged.n_fits - n_fits != (N_ITER - len(found)) * N_SPLITS:
        wrong.append("a known candidate was evaluated again")
    for key, values in whole.cv_results_.items():
        if not key.endswith("_time"):
            try:
                np.testing.assert_array_equal(resumed.cv_results_[key], values)
            except AssertionError:
                wrong.append(f"the resumed search differs in {key}")
    if [len(task.trials) for task in archive.select().used] != [N_ITER]:
        wrong.append("the record does not hold each trial exactly once")
    return wrong, len(found)


def run(n: int, seed: int) -> tuple[Counter, list[str]]:
    """Kill `n` fits; return counts and faults."""
    generator, counts, wrong, kinds = random.Random(seed), Counter(), [], list(KINDS)
    with tempfile.TemporaryDirectory() as top:
        whole = {
            kind: make_search(Path(top) / f"whole {kind}", kind).fit(*make_data()) for kind in kinds
        }
        for i in range(n):
            folder, kind = Path(top) / str(i), kinds[i % len(kinds)]
            after, delay = (
                generator.randrange(N_ITER * N_SPLITS + 1),
                generator.uniform(0, 3 * SECONDS),
            )
            begun = kill_fit(folder, kind, after, delay)
            problems, found = find_faults(folder, kind, begun, whole[kind])
            wrong += [f"round {i} ({kind}): {problem}" for problem in problems]
            ended = len(begun) == N_ITER * N_SPLITS
            counts += Counter(fits=1, interrupted=bool(begun) and not ended, found=found)
            counts["reported"] += max(0, len(dict.fromkeys(begun)) - 1)
    return counts, wrong


def describe_kills(n: int, seed: int) -> tuple[list[str], bool]:
    """Kill fits; return the lines of the report, and whether there was a fault."""
    counts, wrong = run(n, seed)
    text = (
        "Made by `python -m benchmarks.faults`: searches in separate processes are killed with "
        "SIGKILL at random moments. Then the archive is checked and the search is resumed. "
        f"{counts['fits']} fits were killed, {counts['interrupted']} of them between their first "
        f"and their last evaluation. {counts['reported']} candidates were known to be finished. "
        f"The archives hold {counts['found']}, including those that had just been finished. "
        f"Faults: {len(wrong)}."
    )
    more = (
        "For this measurement every candidate of batches and grids is written at once. By default, "
        "up to half a second of fast fits can be lost there."
    )
    return [text, "", more, *wrong], bool(wrong)


def describe_attacks() -> tuple[list[str], bool]:
    """Run the attacks of a stranger's files; return the lines of the report."""
    lines = [
        "Made by `python -m benchmarks.faults`, see `benchmarks/attacks.py` and `damage.py`.",
        "",
    ]
    lines += ["| attack | tried | succeeded |", "|---|---:|---:|"]
    failed = False
    with tempfile.TemporaryDirectory() as top:
        for name, attack in (attacks.ATTACKS | damage.DISGUISES).items():
            tried, succeeded = attack(Path(tempfile.mkdtemp(dir=top)))
            lines.append(f"| {name} | {tried} | {succeeded} |")
            failed |= succeeded > 0
        costs = attacks.measure_costs(Path(top) / "costs")
        costs |= damage.measure_zips(Path(tempfile.mkdtemp(dir=top)))
    limits = f"{attacks.MAX_SECONDS:g} s and {attacks.MAX_MEGABYTES:g} MB"
    lines += ["", f"One file that is expensive to read (limits {limits}), CPU seconds:", ""]
    lines += ["| file | first reading | second | peak MB |", "|---|---:|---:|---:|"]
    for name, (first, second, peak) in costs.items():
        lines.append(f"| {name} | {first:.2f} | {second:.2f} | {peak:.0f} |")
        failed |= first > attacks.MAX_SECONDS or peak > attacks.MAX_MEGABYTES
    return lines, failed


def describe_mishaps() -> tuple[list[str], bool]:
    """Run the mishaps of the environment; return the lines of the report."""
    lines = ["Made by `python -m benchmarks.faults`, see `benchmarks/mishaps.py` and `damage.py`."]
    lines += [""]
    lines += ["| mishap | tried | went wrong |", "|---|---:|---:|"]
    failed = False
    with tempfile.TemporaryDirectory() as top, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, mishap in (mishaps.MISHAPS | damage.FAULTS).items():
            tried, wrong = mishap(Path(tempfile.mkdtemp(dir=top)))
            lines.append(f"| {name} | {tried} | {wrong} |")
            failed |= wrong > 0
    return lines, failed


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.add_argument("--n", type=int, default=441)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fuzz-seconds", type=float, default=900.0)
    names = ["attacks", "fuzzing", "mishaps", "files", "kills"]
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    given = parser.parse_args()
    parts: dict[str, tuple[str, Callable[[], tuple[list[str], bool]]]] = {
        "attacks": ("## Attacks by a stranger's files", describe_attacks),
        "fuzzing": ("## Inputs to the readers", partial(describe_fuzzing, given.fuzz_seconds)),
        "mishaps": ("## Mishaps", describe_mishaps),
        "files": ("## Failing file operations", describe_faults),
        "kills": ("## Killed fits", partial(describe_kills, given.n, given.seed)),
    }
    failed = False
    for heading, describe in map(parts.__getitem__, given.only):
        lines, is_wrong = describe()
        print(format_page([heading, "", *lines]), flush=True)
        failed |= is_wrong
        if given.report:
            write_section(given.report, heading, lines)
    sys.exit(failed)


if __name__ == "__main__":
    main()
