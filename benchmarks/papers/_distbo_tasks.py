"""Synthetic tasks of Law et al. 2019: section 5.1 (toy) and section 5.2 (counterexample)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from scipy.stats import loguniform, uniform

from sktransfer import Space, Task, TransferOptimizer, profile

Score = Callable[[dict[str, Any]], float]
Choose = Callable[[Any, Score, int, np.random.Generator, float], list]


@dataclass(frozen=True)
class Problem:
    """A target and its past tasks: space, past tasks, profile of the target's data, and score.

    `similar` holds the indices of the past tasks that are known to be similar to the target,
    `rejected` the number of draws of the data that were rejected.
    """

    space: dict[str, Any]
    tasks: list[Task]
    profile: Any
    score: Score
    similar: tuple[int, ...] = ()
    rejected: int = 0


# -- choice of the trials of a past task -----------------------------------------------------------


def around_the_best(
    space: Any, score: Score, n: int, rng: np.random.Generator, step: float
) -> list:
    """Return random trials and trials around the best so far: a fast substitute for a search."""
    parsed, trials = Space.parse(space), []
    for number in range(n):
        [params] = parsed.sample(1, rng)
        if number > n // 3 and rng.random() < 0.6:
            best = parsed.encode([max(trials, key=lambda trial: trial[1])[0]])
            moved = best + step * rng.standard_normal(best.shape) * (rng.random(best.shape) < 0.5)
            [params] = parsed.decode(np.clip(moved, 0, 1))
        trials.append((params, float(score(params))))
    return trials


def by_plain_search(
    space: Any,
    score: Score,
    n: int,
    rng: np.random.Generator,
    step: float = 0.0,
    random_share: float = 0.5,
) -> list:
    """Return random trials, then those of a plain Gaussian process, as in the paper.

    The paper does not state the number of random trials. In its authors' code
    (github.com/hcllaw/distBO) it is 10 of 30 in section 5.1, and half in 5.2 and 5.3.
    """
    optimizer = TransferOptimizer(space, surrogate="gp", random_state=int(rng.integers(2**31)))
    trials: list = []
    while len(trials) < n:
        [params] = (
            optimizer.space.sample(1, rng) if len(trials) < random_share * n else optimizer.ask()
        )
        trials.append((params, float(score(params))))
        optimizer.tell(*trials[-1])
    return trials


# -- 5.1: the optimum is the mean of the data ------------------------------------------------------

LINE = {"theta": uniform(-8, 16)}
N_SIMILAR, N_OTHERS = 3, 12


def line_data(
    rng: np.random.Generator, spread: float = 1.0, has_similar: bool = True
) -> tuple[list[np.ndarray], np.ndarray, int]:
    """Return 15 past data sets, the target, and the number of rejected draws.

    The first three are similar to the target. They are drawn again if, by chance, one of the others
    is closer to it. Without `has_similar` (appendix C.4) all have another mean than the target.
    """
    gammas = [0 if has_similar else 4] * N_SIMILAR + [4] * N_OTHERS + [0]
    for rejected in count():
        drawn = [rng.normal(rng.normal(gamma, spread), 1, (500, 1)) for gamma in gammas]
        apart = [abs(X.mean() - drawn[-1].mean()) for X in drawn[:-1]]
        if not has_similar or max(apart[:N_SIMILAR]) < min(apart[N_SIMILAR:]):
            return drawn[:-1], drawn[-1], rejected
    raise AssertionError  # the loop has no end


def line_score(X: np.ndarray) -> Score:
    """Return the score: its optimum is the mean of the data."""
    return lambda params: np.exp(-((params["theta"] - X.mean()) ** 2) / 2)


def line_profile(X: np.ndarray) -> Any:
    """Return a profile with the mean among the meta-features, as in the paper."""
    seen = profile(X, keep="sample")
    return replace(seen, meta_features={**seen.meta_features, "mean": float(X.mean())})


def toy_problem(
    seed: int, choose: Choose = around_the_best, spread: float = 1.0, has_similar: bool = True
) -> Problem:
    """Section 5.1; `spread` is the standard deviation of the means of similar data sets."""
    rng = np.random.default_rng(seed)
    sources, target, rejected = line_data(rng, spread, has_similar)
    tasks = [
        Task.from_trials(LINE, choose(LINE, line_score(X), 30, rng, 0.05), line_profile(X))
        for X in sources
    ]
    similar = tuple(range(N_SIMILAR)) if has_similar else ()
    return Problem(LINE, tasks, line_profile(target), line_score(target), similar, rejected)


# -- 5.2: which columns matter is a three-way interaction, invisible to handcrafted features -------

RIDGE = {"alpha": loguniform(1e-3, 1e1)} | {f"sigma{j}": loguniform(0.5, 50) for j in range(6)}
SIMILAR = 2  # number of the similar past task, of 1 to 4


def interaction_data(
    i: int, rng: np.random.Generator, n: int = 1000
) -> tuple[np.ndarray, np.ndarray]:
    """Return data in which columns 0, 1 and i + 1 interact."""
    X = rng.normal(0, 2, (n, 6))
    X[:, i + 1] = np.sign(X[:, 0] * X[:, 1]) * np.abs(X[:, i + 1])
    return X, np.log1p((X[:, 0] * X[:, 1] * X[:, i + 1]) ** 3) + rng.normal(0, 0.5, n)


def ridge_score(X: np.ndarray, y: np.ndarray, n: int = 250) -> Score:
    """Return the R² on n rows of kernel ridge regression fitted to n others, with column widths."""

    def score(params: dict[str, Any]) -> float:
        Z = X[: 2 * n] / [params[f"sigma{j}"] for j in range(6)]
        norms = (Z * Z).sum(axis=1)
        K = np.exp(-0.5 * np.maximum(norms[:, None] + norms - 2 * Z @ Z.T, 0))
        level = y[:n].mean()
        weights = np.linalg.solve(K[:n, :n] + params["alpha"] * np.eye(n), y[:n] - level)
        residuals = y[n : 2 * n] - level - K[n:, :n] @ weights
        return 1 - (residuals**2).mean() / y[n : 2 * n].var()

    return score


def counter_problem(seed: int, choose: Choose = around_the_best) -> Problem:
    """Section 5.2."""
    rng = np.random.default_rng(seed)
    sources = [interaction_data(i, rng) for i in (1, 2, 3, 4)]
    tasks = [
        Task.from_trials(
            RIDGE, choose(RIDGE, ridge_score(X, y), 125, rng, 0.25), profile(X, y, keep="sample")
        )
        for X, y in sources
    ]
    X, y = interaction_data(SIMILAR, rng)
    return Problem(RIDGE, tasks, profile(X, y, keep="sample"), ridge_score(X, y), (SIMILAR - 1,))
