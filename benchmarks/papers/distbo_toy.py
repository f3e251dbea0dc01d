"""Law et al. 2019, section 5.1: the optimum is the mean of the data, three of 15 past tasks are alike."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from benchmarks.papers import _distbo
from benchmarks.papers._distbo import METHODS, search, surrogate_of
from benchmarks.papers._distbo_tasks import Problem, by_plain_search, toy_problem
from benchmarks.papers._experiment import Experiment
from sktransfer.encoders import DistributionEncoder

N_TRIALS = 20


@lru_cache(maxsize=1)
def problem(seed: int) -> Problem:
    return toy_problem(seed, by_plain_search)


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    return [(seed, method) for seed in range(seeds) for method in METHODS]


def run(seed: int, method: str, folder: Path) -> dict:
    # The mean of the data is the answer here: it must not be standardised away.
    surrogate = surrogate_of(method, DistributionEncoder(standardise=False))
    return search(problem(seed), surrogate, N_TRIALS, seed)


EXPERIMENT = Experiment(
    title="distBO, section 5.1: the toy (Law et al. 2019)",
    about=(
        "A data set is 500 draws of N(μ, 1), μ ~ N(γ, 1), and the score is exp(−(θ − mean)²/2) for θ in "
        "[−8, 8]. Three past tasks have γ = 0 like the target, twelve have γ = 4; each has 30 trials of a "
        "plain GP search. The paper (Figures 1 and 2): distGP and manualGP have the optimum within a few "
        "trials, initGP starts well and converges slowly, multiGP needs trials of the target first; "
        f"similarity is high on the three and low on the twelve. {_distbo.NAMES} A draw in which one of the "
        "twelve is nearer to the target than one of the three is drawn again."
    ),
    seeds=30,
    fields=("seed", "method"),
    keys=keys,
    run=run,
    tables=_distbo.tables,
    figure=_distbo.figure,
)
