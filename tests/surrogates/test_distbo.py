"""Two experiments of Law et al. 2019, small: the toy of section 5.1 and the counterexample of section 5.2.

The paper lets a plain Gaussian process choose the sources' trials; here they are drawn at random and around
the best so far, which looks alike and takes no time.
"""

import numpy as np
import pytest
from scipy.stats import loguniform, uniform

from sktransfer import Space, Task, TransferOptimizer, profile
from sktransfer.encoders import DistributionEncoder, ManualEncoder
from sktransfer.surrogates import DistGP

SEEDS = range(10)


def search_trials(space, score, n, rng, step):
    """Half of the trials at random, the others around the best so far."""
    parsed, trials = Space.parse(space), []
    for number in range(n):
        [params] = parsed.sample(1, rng)
        if number > n // 3 and rng.random() < 0.6:
            best = parsed.encode([max(trials, key=lambda trial: trial[1])[0]])
            moved = best + step * rng.standard_normal(best.shape) * (rng.random(best.shape) < 0.5)
            [params] = parsed.decode(np.clip(moved, 0, 1))
        trials.append((params, float(score(params))))
    return trials


# -- 5.1: the optimum is the mean of the data ------------------------------------------------------

LINE = {"theta": uniform(-8, 16)}


def line_data(rng):
    """15 sources, the first three alike the target; drawn again if, by chance, others are more like it."""
    while True:
        drawn = [rng.normal(rng.normal(gamma, 1), 1, (500, 1)) for gamma in [0] * 3 + [4] * 12 + [0]]
        apart = [abs(X.mean() - drawn[-1].mean()) for X in drawn[:-1]]
        if max(apart[:3]) < min(apart[3:]):
            return drawn[:-1], drawn[-1]


def line_score(X):
    return lambda params: np.exp(-((params["theta"] - X.mean()) ** 2) / 2)


def toy(seed):
    """Best score after three trials, and whether the three alike tasks are the most similar ones."""
    rng = np.random.default_rng(seed)
    sources, target = line_data(rng)
    tasks = [
        Task.from_trials(LINE, search_trials(LINE, line_score(X), 30, rng, 0.05), profile(X, keep="sample"))
        for X in sources
    ]
    surrogate = DistGP(DistributionEncoder(standardise=False), scores="raw")
    data = profile(target, keep="sample")
    optimizer = TransferOptimizer(LINE, tasks, profile=data, surrogate=surrogate, random_state=seed)
    for _ in range(3):
        [params] = optimizer.ask()
        optimizer.tell(params, line_score(target)(params))
    similarity = optimizer.similarity()
    return optimizer.to_task().best.score, similarity[:3].min() > similarity[3:].max()


@pytest.mark.slow
def test_toy():
    runs = [toy(seed) for seed in SEEDS]
    assert sum(best >= 0.95 for best, _ in runs) >= 8
    assert sum(ranked for _, ranked in runs) >= 8


# -- 5.2: which columns matter is a three-way interaction, invisible to handcrafted features -------

RIDGE = {"alpha": loguniform(1e-3, 1e1)} | {f"sigma{j}": loguniform(0.5, 50) for j in range(6)}


def interaction_data(i, rng, n=1000):
    X = rng.normal(0, 2, (n, 6))
    X[:, i + 1] = np.sign(X[:, 0] * X[:, 1]) * np.abs(X[:, i + 1])
    return X, np.log1p((X[:, 0] * X[:, 1] * X[:, i + 1]) ** 3) + rng.normal(0, 0.5, n)


def ridge_score(X, y, n=250):
    """R² on n rows of kernel ridge regression with a width for each column, fitted to n others."""

    def score(params):
        Z = X[: 2 * n] / [params[f"sigma{j}"] for j in range(6)]
        norms = (Z * Z).sum(axis=1)
        K = np.exp(-0.5 * np.maximum(norms[:, None] + norms - 2 * Z @ Z.T, 0))
        level = y[:n].mean()
        weights = np.linalg.solve(K[:n, :n] + params["alpha"] * np.eye(n), y[:n] - level)
        residuals = y[n : 2 * n] - level - K[n:, :n] @ weights
        return 1 - (residuals**2).mean() / y[n : 2 * n].var()

    return score


def counterexample(seed):
    """First trial's score by the learned and by the handcrafted embedding."""
    rng = np.random.default_rng(seed)
    sources = [interaction_data(i, rng) for i in (1, 2, 3, 4)]
    tasks = [
        Task.from_trials(
            RIDGE, search_trials(RIDGE, ridge_score(X, y), 125, rng, 0.25), profile(X, y, keep="sample")
        )
        for X, y in sources
    ]
    X, y = interaction_data(2, rng)
    data = profile(X, y, keep="sample")
    found = []
    for encoder in (DistributionEncoder(hidden=40, features=20), ManualEncoder()):
        surrogate = DistGP(encoder, scores="raw")
        optimizer = TransferOptimizer(RIDGE, tasks, profile=data, surrogate=surrogate, random_state=seed)
        [params] = optimizer.ask()
        found.append(ridge_score(X, y)(params))
    return found


@pytest.mark.slow
def test_counterexample():
    runs = [counterexample(seed) for seed in SEEDS]
    assert sum(learned > handcrafted for learned, handcrafted in runs) >= 8
