"""Law et al. 2019, section 5.2: a three-way interaction that handcrafted features cannot see."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from benchmarks.papers import _distbo
from benchmarks.papers._distbo import METHODS, N_RANDOM, PAPER, PAPER_BLR, search, surrogate_of
from benchmarks.papers._distbo_tasks import Problem, by_plain_search, counter_problem
from benchmarks.papers._experiment import Experiment
from sktransfer.encoders import DistributionEncoder

N_TRIALS = 20


@lru_cache(maxsize=1)
def problem(seed: int) -> Problem:
    return counter_problem(seed, by_plain_search)


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    return [(seed, method) for seed in range(seeds) for method in [*PAPER, *PAPER_BLR, *METHODS]]


def run(seed: int, method: str, folder: Path) -> dict:
    wide = {"hidden": 40, "features": 20} if method.islower() else {}
    surrogate = surrogate_of(method, DistributionEncoder(**wide))
    return search(problem(seed), surrogate, N_TRIALS, seed, N_RANDOM.get(method, 0))


EXPERIMENT = Experiment(
    title="distBO, section 5.2: where handcrafted features fail (Law et al. 2019)",
    about=(
        "Equation (1): of six columns, 1, 2 and i + 2 matter. Neither single columns nor pairs of "
        "columns reveal which ones. There are four past tasks, i = 1..4, with 125 trials of a "
        "plain GP search each. The target is another draw of i = 2. The score is the R² of kernel "
        "ridge regression with seven hyperparameters. In the paper (Figure 3) distGP finds the "
        "optimum with the first trial, manualGP behaves like multiGP, initGP converges slowly, "
        f"and similarity is high for i = 2. {_distbo.NAMES} {_distbo.CAPTION} "
        "Here a data set has 1000 rows (paper: "
        "5000), of which 250 train and 250 test the regression. The embedding of `distGP` and "
        "`distBLR` has the paper's 20 hidden units and 10 features, that of `dist-gp` and "
        f"`dist-blr` 40 and 20. A search has {N_TRIALS} trials (paper: 50)."
    ),
    seeds=30,
    fields=("seed", "method"),
    keys=keys,
    run=run,
    tables=_distbo.tables,
    figure=_distbo.figure,
)
