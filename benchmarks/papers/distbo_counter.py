"""Law et al. 2019, section 5.2: a three-way interaction that handcrafted features cannot see."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from benchmarks.papers import _distbo
from benchmarks.papers._distbo import METHODS, N_RANDOM, search, surrogate_of
from benchmarks.papers._distbo_tasks import Problem, by_plain_search, counter_problem
from benchmarks.papers._experiment import Experiment
from sktransfer.encoders import DistributionEncoder

N_TRIALS = 20


@lru_cache(maxsize=1)
def problem(seed: int) -> Problem:
    return counter_problem(seed, by_plain_search)


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    return [(seed, method) for seed in range(seeds) for method in METHODS]


def run(seed: int, method: str, folder: Path) -> dict:
    surrogate = surrogate_of(method, DistributionEncoder(hidden=40, features=20))
    return search(problem(seed), surrogate, N_TRIALS, seed, N_RANDOM.get(method, 0))


EXPERIMENT = Experiment(
    title="distBO, section 5.2: where handcrafted features fail (Law et al. 2019)",
    about=(
        "Equation (1): six columns, of which 1, 2 and i + 2 matter; which they are shows in no column and "
        "no pair of columns. Four past tasks, i = 1..4, with 125 trials each of a plain GP search; the "
        "target is another draw of i = 2. The score is R² of kernel ridge regression with seven "
        "hyperparameters. The paper (Figure 3): distGP has the optimum at the first trial, manualGP "
        f"behaves like multiGP, initGP converges slowly; similarity is high on i = 2. {_distbo.NAMES} Here "
        "a data set has 1000 rows (the paper: 5000), 250 train and 250 test the regression, and the "
        f"embedding has 40 hidden units and 20 features (20 and 10). A search has {N_TRIALS} trials (the "
        "paper: 50)."
    ),
    seeds=30,
    fields=("seed", "method"),
    keys=keys,
    run=run,
    tables=_distbo.tables,
    figure=_distbo.figure,
)
