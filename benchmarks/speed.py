"""Limits on the run time of single functions, as ratios within one run where possible.

    python -m benchmarks.speed        # writes docs/results/speed.md, about a minute

A ratio is that of the fastest of several runs to the fastest run of a reference, measured in
turn. The exit code is 1 if a limit is exceeded. The test suite does not check the clock, so run
this program after changes to the profile, the surrogates, the archive or the imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_diabetes, make_classification
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.build_starter import Judge
from benchmarks.plain_bo import make_asker
from benchmarks.runner import RESULTS, format_page, make_parser, markdown_table
from sktransfer import Archive, Space, TransferOptimizer, profile
from sktransfer.surrogates import ABLR, EncodedTask, make_surrogate
from sktransfer.utils._hashing import digest

PAGE = RESULTS / "speed.md"
IMPORT_TIME = "import time; start = time.process_time(); {}; print(time.process_time() - start)"
NOT_CATEGORICAL = np.array([False, False])
Call = Callable[[], Any]


@dataclass(frozen=True)
class Limit:
    """A measurement and its limit, in the same unit."""

    name: str
    measure: Callable[[], float]
    limit: float
    unit: str


def elapsed(call: Call, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of a call."""
    start = clock()
    call()
    return clock() - start


def ratio(call: Call, reference: Call, repeats: int = 3) -> float:
    """Return the fastest of some calls over the fastest reference, both measured in turn."""
    rounds = [(elapsed(call), elapsed(reference)) for _ in range(repeats)]
    ours, theirs = map(min, zip(*rounds, strict=True))
    return ours / theirs


# -- measurements --------------------------------------------------------------------------------


def hash_texts() -> float:
    """Digest of a large array of texts, over that of a list with a tenth of the texts."""
    table = np.array([f"word {n % 1000}" for n in range(300_000)], dtype=object)
    texts = [str(n) for n in range(30_000)]
    return ratio(lambda: digest(table), lambda: digest(texts))


def profile_small_data() -> float:
    """Profile of 1000 × 20 data, over a 5-fold cross-validation of a decision tree."""
    X, y = make_classification(1000, 20, random_state=0)
    profile(X, y)
    return ratio(
        lambda: profile(X, y), lambda: cross_val_score(DecisionTreeClassifier(), X, y, cv=5)
    )


def profile_large_data() -> float:
    """Profile of a million rows, over sorting one column and the sine of all values."""
    X = np.random.default_rng(0).normal(size=(1_000_000, 20)).astype(np.float32)
    y = X[:, 0] > 0
    return ratio(lambda: profile(X, y), lambda: np.sort(X[:, 0]) + np.sin(X).sum(axis=1))


def import_package(statement: str = "import sktransfer") -> float:
    """CPU seconds of an import, over those of `import sklearn.model_selection`."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def seconds(code: str) -> float:
        command = [sys.executable, "-c", IMPORT_TIME.format(code)]
        root = Path(__file__).parents[1]
        done = subprocess.run(command, cwd=root, env=env, check=True, capture_output=True)
        return float(done.stdout)

    rounds = [(seconds(statement), seconds("import sklearn.model_selection")) for _ in range(5)]
    ours, theirs = map(min, zip(*rounds, strict=True))
    return ours / theirs


def import_search() -> float:
    """The same for the search: `import sktransfer` alone loads no module of the package."""
    return import_package("from sktransfer import TransferSearchCV")


def make_tasks(lengths: np.ndarray) -> list[EncodedTask]:
    """Return past tasks with a smooth score of two parameters, and some trials each."""
    rng, tasks = np.random.default_rng(0), []
    for number, n in enumerate(lengths):
        theta = rng.random((n, 2))
        z = 1 - 3 * ((theta - [0.75, 0.3] - rng.normal(0, 0.03, 2)) ** 2 @ [1.0, 0.5])
        tasks.append(EncodedTask(theta, 10 * number + z, NOT_CATEGORICAL, id=f"t{number}"))
    return tasks


def train_ablr() -> float:
    """CPU seconds of training ABLR on 500 tasks of 1 to 60 trials."""
    tasks = make_tasks(np.random.default_rng(0).integers(1, 61, 500))
    surrogate = ABLR(layers=(20, 20), steps=50, epochs=3)
    return elapsed(lambda: surrogate.fit(tasks), time.process_time)


def train_ablr_on_ten_times_the_tasks() -> float:
    """CPU seconds of training ABLR on 300 tasks of 50 trials, over those on 30 tasks."""

    def seconds(n_tasks: int) -> float:
        tasks = make_tasks(np.full(n_tasks, 50))
        surrogate = ABLR(layers=(20, 20), steps=30, epochs=3)
        return elapsed(lambda: surrogate.fit(tasks), time.process_time)

    seconds(10)
    rounds = [(seconds(300), seconds(30)) for _ in range(3)]
    many, few = map(min, zip(*rounds, strict=True))
    return many / few


def train_dklm() -> float:
    """CPU seconds of training DKLM on 500 tasks of 1 to 60 trials."""
    tasks = make_tasks(np.random.default_rng(0).integers(1, 61, 500))
    return elapsed(lambda: make_surrogate("dklm").fit(tasks), time.process_time)


def read_cached_model() -> float:
    """Seconds of reading a cached model of ten arrays, trained on 100 tasks."""
    arrays = {f"a{n}": np.zeros((500, 10)) for n in range(10)}
    tasks = [f"20250101T120000-{n:016x}" for n in range(100)]
    settings = {"surrogate": "A", "params": {"depth": 2}, "space": ["C", "gamma"]}
    with tempfile.TemporaryDirectory() as folder:
        cache = Archive(folder).model_cache
        cache.put(settings, tasks, arrays)
        if cache.get(settings, tasks) is None:
            raise RuntimeError("The cached model was not found.")
        return min(elapsed(lambda: cache.get(settings, tasks)) for _ in range(10))


FIRST_PROPOSALS = """
import time
start = time.process_time()
from scipy.stats import loguniform
from sklearn.svm import SVC
print(time.process_time() - start)
from sktransfer import suggest
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(1000, 20))
y = (X[:, 0] * X[:, 1] + rng.normal(size=1000) > 0).astype(int)
space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 1e1)}
for shift in (0.0, 1e-3):
    suggest(SVC(), space, X + shift, y)
    print(time.process_time() - start)
    start = time.process_time()
"""


def make_first_proposals() -> list[float]:
    """CPU seconds of imports, the first and the second proposal of a new process, the fastest of 3.

    The imports are those of scipy.stats and sklearn.svm, which a user needs for the search anyway.
    The first proposal includes them. Each run has an archive of its own, empty but for the starter.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    rounds = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", FIRST_PROPOSALS],
                cwd=Path(__file__).parents[1],
                env=env | {"SKTRANSFER_ARCHIVE": folder},
                check=True,
                capture_output=True,
            )
        rounds.append([float(line) for line in done.stdout.split()])
    return [min(column) for column in zip(*rounds, strict=True)]


def first_proposal() -> float:
    """CPU seconds of the first proposal of a new process, imports included."""
    return make_first_proposals()[1]


def first_proposal_itself() -> float:
    """The same without the imports of scipy.stats and sklearn.svm."""
    imports, first, _ = make_first_proposals()
    return first - imports


def second_proposal() -> float:
    """CPU seconds of a proposal for other data in a process that has made one."""
    return make_first_proposals()[2]


def propose_by(method: str, n_trials: int = 25) -> float:
    """Median CPU seconds of a proposal of a search, for an SVC with what ships."""
    X, y = make_classification(300, 10, random_state=0)
    space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 1e1)}
    if method == "sktransfer":
        # The starter archive is not read, because a pretrained model predicts the scores.
        parsed, own = Space.parse(space, SVC()), profile(X, y)
        optimizer = TransferOptimizer(parsed, profile=own, random_state=0)
        optimizer.fit_surrogate()
        ask, tell = lambda: optimizer.ask()[0], optimizer.tell
    else:
        ask, tell = make_asker(method, space, 0)
    seconds = []
    for _ in range(n_trials):
        begun = time.process_time()
        params = ask()
        seconds.append(time.process_time() - begun)
        tell(params, -(np.log10(params["C"]) ** 2) - (np.log10(params["gamma"]) + 1) ** 2)
    return float(np.median(seconds))


def propose() -> float:
    """Median CPU seconds of a proposal with what ships."""
    return propose_by("sktransfer")


def propose_over_optuna() -> float:
    """The same over Optuna's GPSampler in the same run."""
    return propose() / propose_by("optuna GPSampler")


class Sleeping(Ridge):
    """An estimator that does not finish in time."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Sleeping:
        time.sleep(30)
        return self


def stop_slow_trial() -> float:
    """Seconds of a trial of the starter archive that exceeds its time limit of 0.3 s."""
    judge = Judge(Sleeping(), *load_diabetes(return_X_y=True), "regression", seconds=0.3)
    return elapsed(lambda: judge({"alpha": 10.0}))


LIMITS = [
    Limit("digest of 300,000 texts", hash_texts, 10.0, "× digest of a list of 30,000"),
    Limit("profile of 1000 × 20 data", profile_small_data, 1.5, "× 5-fold CV of a decision tree"),
    Limit(
        "profile of 1,000,000 × 20 data", profile_large_data, 20.0, "× sort of a column and sine"
    ),
    Limit("import sktransfer", import_package, 1.3, "× import sklearn.model_selection"),
    Limit("import TransferSearchCV", import_search, 1.3, "× import sklearn.model_selection"),
    Limit("training ABLR, 500 tasks", train_ablr, 20.0, "CPU s"),
    Limit("training ABLR, 300 tasks", train_ablr_on_ten_times_the_tasks, 12.0, "× 30 tasks"),
    Limit("training DKLM, 500 tasks", train_dklm, 40.0, "CPU s"),
    Limit("reading a cached model", read_cached_model, 0.05, "s"),
    Limit("stopping a trial after 0.3 s", stop_slow_trial, 20.0, "s"),
    Limit(
        "first proposal of a process, 1000 × 20 data, with imports", first_proposal, 1.0, "CPU s"
    ),
    # Its limit is what these imports leave of the one above, on a machine without other work.
    Limit(
        "the same, without importing scipy.stats and sklearn.svm",
        first_proposal_itself,
        0.25,
        "CPU s",
    ),
    Limit("second proposal of a process, other data", second_proposal, 0.3, "CPU s"),
    Limit("proposal with what ships, median of 25 trials", propose, 0.03, "CPU s"),
    Limit("the same", propose_over_optuna, 0.2, "× Optuna's GPSampler"),
]


# -- report --------------------------------------------------------------------------------------


def report(measured: dict[str, float]) -> str:
    """Return the page of results."""
    rows = [
        [
            each.name,
            f"{measured[each.name]:.3g}",
            f"{each.limit:g}",
            each.unit,
            "yes" if measured[each.name] <= each.limit else "**no**",
        ]
        for each in LIMITS
    ]
    lines = [
        "# Limits on run time",
        "",
        "Made by `OMP_NUM_THREADS=1 python -m benchmarks.speed`.",
        "",
        "× is a ratio to a reference in the same run: both are measured several times, in turn, "
        "and the fastest runs count. `import sktransfer` is lazy, so `from sktransfer import "
        "TransferSearchCV` is measured too. Limits in seconds are wide, so that a busy machine "
        "does not exceed them.",
        "",
        *markdown_table(["function", "measured", "limit", "unit", "met"], rows),
    ]
    return format_page(lines)


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.set_defaults(report=PAGE)
    options = parser.parse_args()
    measured = {}
    for each in LIMITS:
        measured[each.name] = each.measure()
        print(f"{each.name}: {measured[each.name]:.3g} {each.unit}", file=sys.stderr, flush=True)
    text = report(measured)
    options.report.write_text(text)
    print(text)
    sys.exit(any(measured[each.name] > each.limit for each in LIMITS))


if __name__ == "__main__":
    main()
