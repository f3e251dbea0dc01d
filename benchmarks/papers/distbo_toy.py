"""Law et al. 2019, section 5.1: the optimum is the mean of the data, 3 of 15 tasks are similar."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

from benchmarks.papers import _distbo
from benchmarks.papers._distbo import METHODS, N_RANDOM, search, surrogate_of
from benchmarks.papers._distbo_tasks import Problem, by_plain_search, toy_problem
from benchmarks.papers._experiment import Experiment, Rows
from sktransfer.encoders import DistributionEncoder

N_TRIALS = 15
SPREADS = {"code": 0.5, "text": 1.0}
"""Standard deviation of the means of similar data sets: in the authors' code and in the paper."""


@lru_cache(maxsize=1)
def problem(source: str, seed: int) -> Problem:
    return toy_problem(seed, partial(by_plain_search, random_share=1 / 3), SPREADS[source])


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    sources = ["code"] if quick else list(SPREADS)
    return [
        (source, seed, method) for source in sources for seed in range(seeds) for method in METHODS
    ]


def run(source: str, seed: int, method: str, folder: Path) -> dict:
    # The mean of the data is the optimum and must not be removed by standardization.
    surrogate = surrogate_of(method, DistributionEncoder(standardize=False))
    return search(problem(source, seed), surrogate, N_TRIALS, seed, N_RANDOM.get(method, 0))


def rows_of(rows: Rows, source: str) -> Rows:
    return [row for row in rows if row["source"] == source]


def tables(rows: Rows) -> list[str]:
    lines = []
    for source in dict.fromkeys(row["source"] for row in rows):
        heading = f"Means with a standard deviation of {SPREADS[source]:g}, as in the "
        heading += "authors' code" if source == "code" else "paper's text"
        lines += [
            f"## {heading}",
            "",
            *("#" * line.startswith("#") + line for line in _distbo.tables(rows_of(rows, source))),
        ]
    return lines


EXPERIMENT = Experiment(
    title="distBO, section 5.1: the toy (Law et al. 2019)",
    about=(
        "A data set has 500 draws from N(μ, 1), μ ~ N(γ, σ²), and the score is exp(−(θ − "
        "mean)²/2) for θ in [−8, 8]. Three past tasks have γ = 0 like the target, twelve have γ = "
        "4. Each has 30 trials: 10 random ones and 20 of a plain GP search. σ is 1 in the text of "
        "the paper and 0.5 in the code of its authors (github.com/hcllaw/distBO, `mu_sd`), which "
        "also determines the number of random trials. The tables show both, the figure shows 0.5. "
        "With 1 the optimum of the target often lies outside the optima of the three. In the "
        "paper (Figures 1 and 2) distGP and manualGP find the optimum within a few trials, initGP "
        "starts well and converges slowly, and multiGP needs trials of the target first. "
        f"Similarity is high for the three and low for the twelve. {_distbo.NAMES} A draw in "
        "which one of the twelve is closer to the target than one of the three is repeated."
    ),
    seeds=30,
    fields=("source", "seed", "method"),
    keys=keys,
    run=run,
    tables=tables,
    figure=lambda rows, file: _distbo.figure(rows_of(rows, rows[0]["source"]), file),
)
