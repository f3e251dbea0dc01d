"""Law et al. 2019, section 5.1: the optimum is the mean of the data, 3 of 15 tasks are similar."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from benchmarks.papers import _distbo
from benchmarks.papers._distbo import METHODS, N_RANDOM, PAPER, PAPER_BLR, search, surrogate_of
from benchmarks.papers._distbo_tasks import Problem, by_plain_search, line_data, toy_problem
from benchmarks.papers._experiment import Experiment, Rows
from sktransfer.encoders import DistributionEncoder

N_TRIALS = 15
SPREADS = {"code": 0.5, "text": 1.0}
"""Standard deviation of the means of similar data sets: in the authors' code and in the paper."""
NO_SIMILAR = "no similar task"  # appendix C.4


@lru_cache(maxsize=1)
def problem(source: str, seed: int) -> Problem:
    choose = partial(by_plain_search, random_share=1 / 3)
    spread = SPREADS.get(source, SPREADS["code"])
    return toy_problem(seed, choose, spread, has_similar=source != NO_SIMILAR)


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    paper = [*PAPER, *PAPER_BLR, "random"]
    plan = {"code": [*paper, *METHODS], NO_SIMILAR: paper, "text": [*paper, *METHODS]}
    if quick:
        plan = {"code": paper}
    return list(
        dict.fromkeys(
            (source, seed, method)
            for source, methods in plan.items()
            for seed in range(seeds)
            for method in methods
        )
    )


def run(source: str, seed: int, method: str, folder: Path) -> dict:
    # The mean of the data is the optimum and must not be removed by standardization.
    surrogate = surrogate_of(method, DistributionEncoder(standardize=False))
    made = problem(source, seed)
    row = search(made, surrogate, N_TRIALS, seed, N_RANDOM.get(method, 0))
    return row | {"rejected": made.rejected}


def rows_of(rows: Rows, source: str) -> Rows:
    return [row for row in rows if row["source"] == source]


def rejections(rows: Rows) -> list[str]:
    """Say how many draws of the data sets were rejected, where it was counted."""
    by_seed = {row["seed"]: row["rejected"] for row in rows if "rejected" in row}
    rejected, drawn = sum(by_seed.values()), sum(by_seed.values()) + len(by_seed)
    if not by_seed:
        return []
    return [f"In these runs {rejected} of {drawn} draws of the data sets were rejected.", ""]


def rejected_share(spread: float, n: int = 1000) -> list[str]:
    """Say which share of draws is rejected, by drawing data sets without a search."""
    rng = np.random.default_rng(0)
    rejected = sum(line_data(rng, spread)[2] for _ in range(n))
    share = 100 * rejected / (n + rejected)
    return [f"Of {n + rejected} draws of the data sets {share:.1f} % are rejected.", ""]


def tables(rows: Rows) -> list[str]:
    lines = []
    for source in dict.fromkeys(row["source"] for row in rows):
        heading = f"Means with a standard deviation of {SPREADS.get(source, 0.5):g}, as in the "
        heading += "paper's text" if source == "text" else "authors' code"
        if source == NO_SIMILAR:
            heading = "No past task is similar (appendix C.4)"
        lines += [f"## {heading}", "", *rejections(rows_of(rows, source))]
        lines += rejected_share(SPREADS[source]) if source in SPREADS else []
        lines += [
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
        f"Similarity is high for the three and low for the twelve. {_distbo.NAMES} "
        f"{_distbo.CAPTION} A draw in "
        "which one of the twelve is closer to the target than one of the three is repeated. The "
        "tables count these draws. In appendix C.4 all 15 past tasks have γ = 4."
    ),
    seeds=30,
    fields=("source", "seed", "method"),
    keys=keys,
    run=run,
    tables=tables,
    figure=lambda rows, file: _distbo.figure(rows_of(rows, rows[0]["source"]), file, optimum=1.0),
)
