"""Synthetic past tasks and targets with two parameters whose best values are near (0.75, 0.3)."""

import warnings

import numpy as np
from scipy.stats import uniform

from sktransfer import TransferOptimizer, profile
from sktransfer.surrogates import EncodedTask

SPACE = {"a": uniform(0, 1), "b": uniform(0, 1)}
NUMBERS = np.array([False, False])
BEST = np.array([0.75, 0.3])


def data(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return profile(X, (X[:, 0] > 0).astype(int))


def score(theta, shift=0.0):
    """1 at the best setting; 0.5 in the average corner."""
    apart = np.asarray(theta) - BEST - shift
    return 1 - 3 * (apart[..., 0] ** 2 + 0.5 * apart[..., 1] ** 2)


def past_tasks(n=10, trials=20, sign=1.0, shuffled=False, profiles=True):
    """Tasks with best settings near the target's, each with a score level of its own."""
    tasks = []
    for seed in range(n):
        rng = np.random.default_rng(100 + seed)
        theta = rng.random((trials, 2))
        z = sign * score(theta, rng.normal(0, 0.03, 2))
        z = rng.permutation(z) if shuffled else z
        metrics = {"fit_time": 1 + 10 * theta[:, 1]}
        known = data(seed) if profiles else None
        tasks.append(EncodedTask(theta, 10 * seed + z, NUMBERS, known, f"t{seed}", metrics))
    return tasks


def target(trials=0, seed=50):
    theta = np.random.default_rng(seed).random((trials, 2))
    return EncodedTask(
        theta, score(theta), NUMBERS, data(seed), metrics={"fit_time": 1 + 10 * theta[:, 1]}
    )


def search(surrogate, tasks, n, seed=0):
    """Best score after each trial of a search from these past tasks."""
    optimizer = TransferOptimizer(SPACE, surrogate=surrogate, profile=data(77), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing past trials
        optimizer.surrogate.fit(tasks)
    optimizer.is_fitted = True
    best = []
    for _ in range(n):
        [params] = optimizer.ask()
        optimizer.tell(
            params, float(score(np.array([params["a"], params["b"]]))), cost=1 + 10 * params["b"]
        )
        best.append(optimizer.to_task().best.score)
    return np.array(best)
