"""Do ten times the past tasks cost at most twelve times the time?

See Yogatama & Mann 2014, section 3.5.

    python -m benchmarks.linear_past [--report docs/results/linear_past.md]

Each method is timed on 10, 100 and 1000 synthetic past tasks of 50 trials. The program measures the
time to train on them, and the time to condition on one more trial of the target (the posterior
without its maximization). `scot` ranks all trials again for each new one. It is included without
its cap, as far as its matrices fit into memory. Seconds are CPU seconds on one thread, as medians
of repeated measurements in one process. Their ratios matter.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from benchmarks.runner import format_page, make_parser, markdown_table
from sktransfer import profile
from sktransfer.surrogates import REGISTRY, EncodedTask, Surrogate, make_surrogate

N_TRIALS, N_COLUMNS, N_PROFILES = 50, 4, 50
SIZES = (10, 100, 1000)
MAX_RATIO = 12.0
TRAINING = ["common-surface", "ablr", "dist-blr", "copula-ts", "copula-gp"]
CONDITIONING = ["common-surface", "common-surface without guard", "scot"]
SETTINGS = {"common-surface without guard": {"guard": False}, "scot": {"max_trials": 10**9}}
MAX_SCOT = 10_000  # trials; larger matrices do not fit into memory
NOT_CATEGORICAL = np.zeros(N_COLUMNS, dtype=bool)
Seconds = dict[int, float]


def make_profiles() -> list[Any]:
    """Return profiles of small data sets of various shapes; tasks reuse them."""
    rng, made = np.random.default_rng(0), []
    for seed in range(N_PROFILES):
        n, p, k = int(rng.integers(50, 300)), int(rng.integers(4, 20)), int(rng.integers(2, 5))
        X, y = make_classification(
            n, p, n_informative=4, n_redundant=0, n_classes=k, random_state=seed
        )
        made.append(profile(X, y))
    return made


def make_task(profiles: list[Any], number: int, n_trials: int) -> EncodedTask:
    """Return a random smooth function.

    All tasks share its shape. Its optimum and its scale depend on the task.
    """
    rng = np.random.default_rng([1, number])
    theta = rng.random((n_trials, N_COLUMNS))
    z = -((theta - 0.5 - 0.2 * rng.standard_normal(N_COLUMNS)) ** 2).sum(axis=1)
    z = rng.normal(0, 5) + np.exp(rng.normal()) * z
    seen = profiles[number % len(profiles)]
    return EncodedTask(theta, z, NOT_CATEGORICAL, seen, str(number), {"fit_time": 1 + theta[:, 0]})


def make_named(name: str) -> Surrogate:
    """Return the surrogate of a name in the tables."""
    return make_surrogate(registry_name(name)).set_params(**SETTINGS.get(name, {}))


def registry_name(name: str) -> str:
    """Return the registry's name of a method."""
    return name.removesuffix(" without guard")


def cpu_seconds(act: Callable[[], Any]) -> float:
    """Return the CPU seconds of a call."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


def seconds_of_training(name: str, tasks: list[EncodedTask], repeats: int) -> float:
    """Return the median seconds of `fit`."""
    return float(
        np.median([cpu_seconds(lambda: make_named(name).fit(tasks)) for _ in range(repeats)])
    )


def seconds_of_conditioning(
    name: str, tasks: list[EncodedTask], target: EncodedTask, repeats: int
) -> float:
    """Return the median seconds of the posterior after trial 11, 12, ..."""
    surrogate = make_named(name).fit(tasks)

    def first(n: int) -> EncodedTask:
        return EncodedTask(target.theta[:n], target.z[:n], NOT_CATEGORICAL, target.profile)

    surrogate.posterior(first(10))
    return float(
        np.median(
            [cpu_seconds(lambda n=n: surrogate.posterior(first(11 + n))) for n in range(repeats)]
        )
    )


def measure(repeats: int, sizes: tuple[int, ...]) -> dict[str, dict[str, Seconds]]:
    """Map measurement -> name -> number of past tasks -> seconds; impossible ones are left out."""
    profiles = make_profiles()
    tasks = [make_task(profiles, number, N_TRIALS) for number in range(max(sizes))]
    target = make_task(profiles, 10**6, 10 + repeats)
    found: dict[str, dict[str, Seconds]] = {"training": {}, "conditioning": {}}
    known = {
        kind: [n for n in names if registry_name(n) in REGISTRY]
        for kind, names in methods_by_measurement().items()
    }
    for name in sorted({name for names in known.values() for name in names}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds_of_training(name, tasks[:2], 1)  # imports of the first call are not timed
    for size in sizes:
        for name in known["training"]:
            found["training"].setdefault(name, {})[size] = seconds_of_training(
                name, tasks[:size], repeats
            )
        for name in known["conditioning"]:
            if name != "scot" or size * N_TRIALS <= MAX_SCOT:
                seconds = seconds_of_conditioning(name, tasks[:size], target, repeats)
                found["conditioning"].setdefault(name, {})[size] = seconds
    return found


def methods_by_measurement() -> dict[str, list[str]]:
    """Map each measurement to its methods."""
    return {"training": TRAINING, "conditioning": CONDITIONING}


# -- the report --------------------------------------------------------------------------------


def seconds_table(names: list[str], found: dict[str, Seconds], sizes: tuple[int, ...]) -> list[str]:
    """Return a table of seconds and of their ratios."""
    steps = list(pairwise(sizes))
    head = ["method", *(f"{size} tasks" for size in sizes)]
    head += [f"{after} : {before}" for before, after in steps] + [f"at most {MAX_RATIO:g} times"]
    rows = []
    for name in names:
        if name not in found:
            rows.append([f"`{name}`", *["not available"] * (len(head) - 1)])
            continue
        seconds = found[name]
        ratios = [seconds[after] / seconds[before] for before, after in steps if after in seconds]
        cells = [f"{seconds[size]:.3f}" if size in seconds else "too large" for size in sizes]
        cells += [f"{ratio:.1f}" for ratio in ratios] + ["–"] * (len(steps) - len(ratios))
        rows.append([f"`{name}`", *cells, "yes" if ratios and max(ratios) <= MAX_RATIO else "no"])
    return markdown_table(head, rows)


def report(found: dict[str, dict[str, Seconds]], repeats: int, sizes: tuple[int, ...]) -> str:
    """Return the page of results."""
    lines = [
        "# Time as a function of the number of past tasks",
        "",
        "Made by `python -m benchmarks.linear_past`.",
        "",
        f"CPU seconds on one thread with {', '.join(map(str, sizes))} past tasks of {N_TRIALS} "
        f"trials, medians of {repeats}, and their ratios. The claim is that ten times the tasks "
        f"cost at most {MAX_RATIO:g} times the time.",
        "",
        "## Conditioning on one more trial of the target",
        "",
        "The time is that of the posterior after one more trial, without its maximization. "
        "`common-surface` has its default kernel, `mkl`, and is conditioned on at most 600 trials "
        "of its 20 nearest tasks, so only the search for the nearest tasks grows with their "
        "number. Most of its time is spent in the plain Gaussian process of the guard, which the "
        f"second row leaves out. `scot` has no cap, as in the paper. Beyond {MAX_SCOT} trials its "
        "matrices do not fit into memory.",
        "",
        *seconds_table(CONDITIONING, found["conditioning"], sizes),
        "",
        "## Training on the past tasks",
        "",
        "`fit` from scratch. Training with a fixed number of steps, each on a part of the trials, "
        "takes about the same time for any number of past tasks. Where ratios are near 1, this is "
        "the reason: the trials are not read ten times as fast.",
        "",
        *seconds_table(TRAINING, found["training"], sizes),
    ]
    return format_page(lines)


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of past tasks"
    )
    options = parser.parse_args()
    sizes = tuple(options.sizes)
    with threadpool_limits(1):
        text = report(measure(options.repeats, sizes), options.repeats, sizes)
    if options.report:
        options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
