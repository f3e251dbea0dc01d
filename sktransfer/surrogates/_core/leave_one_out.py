"""How well past tasks predict each other: hyperparameters of `TaskPrior`, exclusion of noise.

Notation of `task_prior`: n trials of one past task with standardized scores z (n,); F (m, n) the
means of m other tasks at these trials; w (m,) the weights of these, by a bandwidth; K (n, n) the
Matérn kernel,

    z ~ N(a + w'F, D'D + r K + v I),   D the deviations of F from w'F,

a the level of the scores, integrated out with a flat prior.
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.defaults import PRIOR_JITTER

BANDWIDTHS = np.array([0.15, 0.3, 0.6, 1.2, 100.0])
"""In medians of the distance of two past tasks. With the last one all tasks have equal weights."""

RESIDUALS = np.array([0.03, 0.1, 0.3, 1.0])
NOISES = np.array([0.001, 0.01, 0.1, 0.3, 1.0])
MAX_NOISE = 0.1
"""Upper limit for a target. A noise of 1, the whole variance, means that past scores are noise."""

DEFAULT_HYPERPARAMETERS = (1.2, 0.3, 0.01)
"""Bandwidth, residual and noise if there are too few past tasks to learn them from."""

MIN_TASKS, MIN_TRIALS = 10, 8  # needed to call past scores noise
_MIN_CORRECTION = 0.1  # lower bound of 1 - sum w²


def kernel_weights(
    squares: np.ndarray,
    bandwidth: float,
    prior_count: float = 0.0,
    copies: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Weights of tasks from squared distances relative to the nearest one.

    They sum to 1 if `prior_count` is 0. Otherwise the prior without past tasks counts as so many
    tasks, and has what is left. The number of past tasks is the effective one, (sum w)² / sum w².
    Each counts as often as `copies` says.
    """
    w = np.exp(-0.5 * (squares - squares.min()) / bandwidth**2)
    total = (copies * w).sum()
    n = total**2 / (copies * w * w).sum()  # the effective number of tasks
    return copies * w / total * (n / (n + prior_count))


def weighted_deviations(w: np.ndarray, F: np.ndarray) -> np.ndarray:
    """sqrt(c w_i) (mu_i - mu), whose products are the covariance; (m,), (m, n) -> (m + 1, n).

    What the weights lack to 1 is that of the prior, whose mean is 0.
    """
    rest = max(1.0 - w.sum(), 0.0)
    c = 1 / max(1 - w @ w - rest * rest, _MIN_CORRECTION)
    mean = w @ F
    return np.vstack([np.sqrt(c * w)[:, None] * (F - mean), -np.sqrt(c * rest) * mean[None]])


def loo_log_likelihood(
    z: np.ndarray, K: np.ndarray, F: np.ndarray, squares: np.ndarray, prior_count: float = 0.0
) -> np.ndarray:
    """Log density of a task's trials, per trial, on the grid of hyperparameters; -> (5, 4, 5).

    Parameters
    ----------
    z, K, F : ndarray of shape (n,), (n, n), (m, n)
        As in the notation.
    squares : ndarray of shape (m,)
        Squared distances of the other tasks.
    prior_count : float
        As in `kernel_weights`.
    """
    w = [kernel_weights(squares, bandwidth, prior_count) for bandwidth in BANDWIDTHS]
    S = np.array([D.T @ D for D in (weighted_deviations(each, F) for each in w)])[:, None, None]
    noise = (NOISES[:, None, None] + PRIOR_JITTER) * np.eye(len(z))
    L = np.linalg.cholesky(S + RESIDUALS[:, None, None, None] * K + noise)
    columns = np.array([np.column_stack([z - each @ F, np.ones(len(z))]) for each in w])[
        :, None, None
    ]
    white = np.linalg.solve(L, np.broadcast_to(columns, (*L.shape[:-1], 2)))
    products = white.swapaxes(-1, -2) @ white
    information = products[..., 1, 1]
    square = products[..., 0, 0] - products[..., 0, 1] ** 2 / information
    log_det = 2 * np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(-1) + np.log(information)
    return -0.5 * (square + log_det) / len(z)


def select_by_likelihood(found: np.ndarray, n_trials: np.ndarray) -> tuple[np.ndarray, bool, float]:
    """The best hyperparameters, whether all past scores look like noise, and the likelihood.

    They look like noise if, for example, they were recorded with the wrong configurations. Then
    nothing can be learned from them, and the best past settings mislead.

    Parameters
    ----------
    found : ndarray of shape (tasks, 5, 4, 5)
        `loo_log_likelihood` of each past task.
    n_trials : ndarray of shape (tasks,)
    """
    allowed = found[..., NOISES <= MAX_NOISE].sum(axis=0)
    best = np.unravel_index(allowed.argmax(), allowed.shape)
    grids = (BANDWIDTHS, RESIDUALS, NOISES)
    hyperparameters = [grid[i] for grid, i in zip(grids, best, strict=True)]
    long = found[n_trials >= MIN_TRIALS]
    by_noise = long.sum(axis=0).max(axis=(0, 1))
    is_noise = len(long) >= MIN_TASKS and int(by_noise.argmax()) == len(NOISES) - 1
    return np.array(hyperparameters), is_noise, float(allowed.max())
