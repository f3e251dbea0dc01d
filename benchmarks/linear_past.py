"""Whether ten times the past tasks cost at most twelve times the time (Yogatama & Mann 2014, section 3.5).

    python -m benchmarks.linear_past [--report docs/results/linear_past.md]

Each method is timed on 10, 100 and 1000 made-up past tasks of 50 trials each: how long it takes to learn from
them, and how long to take in one more trial of the target (the posterior, without its maximum). `scot`, which
ranks all trials anew at each one, is beside them with its cap lifted, as far as its matrices fit. Seconds are
of the processor, on one thread; the medians of repeated measurements in one process; of interest are their
ratios.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from sktransfer import profile
from sktransfer.surrogates import REGISTRY, EncodedTask, Surrogate, make_surrogate

N_TRIALS, N_COLUMNS, N_PROFILES = 50, 4, 50
SIZES = (10, 100, 1000)
CLAIM = 12.0
LEARNING = ["common-surface", "ablr", "dist-blr", "copula-ts", "copula-gp"]
TAKING_IN = ["common-surface", "common-surface alone", "scot"]
SETTINGS = {"common-surface alone": {"guard": False}, "scot": {"max_trials": 10**9}}
MAX_SCOT = 10_000  # trials; the matrix of more does not fit
NUMBERS = np.zeros(N_COLUMNS, dtype=bool)
Seconds = dict[int, float]


def make_profiles() -> list[Any]:
    """Profiles of small data sets of various shapes; tasks beyond their number use them again."""
    rng, made = np.random.default_rng(0), []
    for seed in range(N_PROFILES):
        n, p, k = int(rng.integers(50, 300)), int(rng.integers(4, 20)), int(rng.integers(2, 5))
        X, y = make_classification(
            n, p, n_informative=4, n_redundant=0, n_classes=k, random_state=seed
        )
        made.append(profile(X, y))
    return made


def make_task(profiles: list[Any], number: int, n_trials: int) -> EncodedTask:
    """A random smooth function, of one shape in all tasks, with an optimum and a scale of the task's own."""
    rng = np.random.default_rng([1, number])
    theta = rng.random((n_trials, N_COLUMNS))
    z = -((theta - 0.5 - 0.2 * rng.standard_normal(N_COLUMNS)) ** 2).sum(axis=1)
    z = rng.normal(0, 5) + np.exp(rng.normal()) * z
    seen = profiles[number % len(profiles)]
    return EncodedTask(theta, z, NUMBERS, seen, str(number), {"fit_time": 1 + theta[:, 0]})


def make(name: str) -> Surrogate:
    return make_surrogate(method(name)).set_params(**SETTINGS.get(name, {}))


def method(name: str) -> str:
    """What the registry calls it."""
    return name.removesuffix(" alone")


def timed(act: Callable[[], Any]) -> float:
    begun = time.process_time()
    act()
    return time.process_time() - begun


def seconds_of_learning(name: str, tasks: list[EncodedTask], repeats: int) -> float:
    return float(np.median([timed(lambda: make(name).fit(tasks)) for _ in range(repeats)]))


def seconds_of_one_more(
    name: str, tasks: list[EncodedTask], target: EncodedTask, repeats: int
) -> float:
    """Of the posterior after trial 11, 12, ..., when there was one before."""
    surrogate = make(name).fit(tasks)

    def first(n: int) -> EncodedTask:
        return EncodedTask(target.theta[:n], target.z[:n], NUMBERS, target.profile)

    surrogate.posterior(first(10))
    return float(
        np.median([timed(lambda n=n: surrogate.posterior(first(11 + n))) for n in range(repeats)])
    )


def measure(repeats: int, sizes: tuple[int, ...]) -> dict[str, dict[str, Seconds]]:
    """What is timed -> name -> number of past tasks -> seconds; what could not be run is left out."""
    profiles = make_profiles()
    tasks = [make_task(profiles, number, N_TRIALS) for number in range(max(sizes))]
    target = make_task(profiles, 10**6, 10 + repeats)
    found: dict[str, dict[str, Seconds]] = {"learning": {}, "taking in": {}}
    known = {kind: [n for n in names if method(n) in REGISTRY] for kind, names in kinds().items()}
    for name in sorted({name for names in known.values() for name in names}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds_of_learning(
                name, tasks[:2], 1
            )  # what is imported at the first call is not timed
    for size in sizes:
        for name in known["learning"]:
            found["learning"].setdefault(name, {})[size] = seconds_of_learning(
                name, tasks[:size], repeats
            )
        for name in known["taking in"]:
            if name != "scot" or size * N_TRIALS <= MAX_SCOT:
                seconds = seconds_of_one_more(name, tasks[:size], target, repeats)
                found["taking in"].setdefault(name, {})[size] = seconds
    return found


def kinds() -> dict[str, list[str]]:
    return {"learning": LEARNING, "taking in": TAKING_IN}


# -- the report --------------------------------------------------------------------------------


def table(names: list[str], found: dict[str, Seconds], sizes: tuple[int, ...]) -> list[str]:
    steps = list(pairwise(sizes))
    head = ["method", *(f"{size} tasks" for size in sizes)]
    head += [f"{after} : {before}" for before, after in steps] + [f"at most {CLAIM:g} times"]
    rows = []
    for name in names:
        if name not in found:
            rows.append([f"`{name}`", *["is not there"] * (len(head) - 1)])
            continue
        seconds = found[name]
        ratios = [seconds[after] / seconds[before] for before, after in steps if after in seconds]
        cells = [f"{seconds[size]:.3f}" if size in seconds else "too large" for size in sizes]
        cells += [f"{ratio:.1f}" for ratio in ratios] + ["–"] * (len(steps) - len(ratios))
        rows.append([f"`{name}`", *cells, "yes" if ratios and max(ratios) <= CLAIM else "no"])
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]


def report(found: dict[str, dict[str, Seconds]], repeats: int, sizes: tuple[int, ...]) -> str:
    """The tables as Markdown."""
    lines = [
        "# Linear in the past",
        "",
        "Made by `python -m benchmarks.linear_past`.",
        "",
        f"Processor seconds on one thread with {', '.join(map(str, sizes))} past tasks of {N_TRIALS} trials, "
        f"medians of {repeats}, and their ratios. The claim: ten times the tasks cost at most {CLAIM:g} "
        "times the time.",
        "",
        "## Taking in one more trial of the target",
        "",
        "The posterior after a trial, when there was one before it; its maximum is not looked for. "
        "`common-surface` has its default kernel, `mkl`, and is conditioned on its 20 nearest tasks, 600 of "
        "their trials at the most: what grows with the past is the search for the nearest. Most of its time "
        'goes to the plain Gaussian process of the guard; "alone" is without. `scot` has its cap lifted, as '
        f"in the paper; beyond {MAX_SCOT} trials its matrices do not fit.",
        "",
        *table(TAKING_IN, found["taking in"], sizes),
        "",
        "## Learning from the past",
        "",
        "`fit` from nothing. A training of a fixed number of steps, each on a part of the trials, takes "
        "about the same time whatever the past: where the ratios are near 1 that is what they say, not that "
        "all of the past was looked at ten times as fast.",
        "",
        *table(LEARNING, found["learning"], sizes),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of past tasks"
    )
    parser.add_argument("--report", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    sizes = tuple(options.sizes)
    with threadpool_limits(1):
        text = report(measure(options.repeats, sizes), options.repeats, sizes)
    if options.report:
        options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
