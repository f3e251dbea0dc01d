"""How well past tasks foretell each other: how `TaskPrior` listens to them, and whether it should at all.

Notation of `task_prior`: n trials theta of one past task with scores z (n,), standardized; F (m, n) the means
of m others at them; w (m,) the weights of these, by a bandwidth; K (n, n) the Matérn kernel,

    z ~ N(a + w'F, D'D + r K + v I),   D the deviations of F from w'F,

a the level of the scores, integrated out with a flat prior.
"""

from __future__ import annotations

import numpy as np

BANDWIDTHS = np.array([0.15, 0.3, 0.6, 1.2, 100.0])
"""In units of the median distance of two past tasks; the last one: all tasks count alike."""

RESIDUALS = np.array([0.03, 0.1, 0.3, 1.0])
NOISES = np.array([0.001, 0.01, 0.1, 0.3, 1.0])
MAX_NOISE = 0.1
"""More is not believed of the target, but 1, all of the variance, says that past scores are noise."""

DEFAULT_HYPERPARAMETERS = (1.2, 0.3, 0.01)
"""Bandwidth, residual and noise where there are too few past tasks to learn them from."""

MIN_TASKS, MIN_TRIALS = 10, 8  # that it takes to call past scores noise


def kernel_weights(squares: np.ndarray, bandwidth: float) -> np.ndarray:
    """Weights that sum to 1, from squared distances; the nearest counts most, however far it is."""
    w = np.exp(-0.5 * (squares - squares.min()) / bandwidth**2)
    return w / w.sum()


def deviations(w: np.ndarray, F: np.ndarray) -> np.ndarray:
    """sqrt(c w_i) (mu_i - mu), whose products are the covariance; (m,), (m, n) -> (m, n)."""
    c = 1 / max(1 - w @ w, 0.1)
    return np.sqrt(c * w)[:, None] * (F - w @ F)


def loo_log_likelihood(
    z: np.ndarray, K: np.ndarray, F: np.ndarray, squares: np.ndarray
) -> np.ndarray:
    """Log density of a task's trials, per trial, for each of the settings; squares (m,) -> (5, 4, 5)."""
    w = [kernel_weights(squares, bandwidth) for bandwidth in BANDWIDTHS]
    S = np.array([D.T @ D for D in (deviations(each, F) for each in w)])[:, None, None]
    noise = (NOISES[:, None, None] + 1e-8) * np.eye(len(z))
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


def select_by_likelihood(found: np.ndarray, n_trials: np.ndarray) -> tuple[np.ndarray, bool]:
    """The settings by which past tasks are foretold best, and whether their scores are but noise.

    So they are where they stand at the wrong configurations: then nothing is to be learned from any of them,
    and their best settings mislead.

    Parameters
    ----------
    found : ndarray of shape (tasks, 5, 4, 5)
        What `foretold` has of each past task.
    n_trials : ndarray of shape (tasks,)
    """
    believed = found[..., NOISES <= MAX_NOISE].sum(axis=0)
    best = np.unravel_index(believed.argmax(), believed.shape)
    settings = [grid[i] for grid, i in zip((BANDWIDTHS, RESIDUALS, NOISES), best, strict=True)]
    telling = found[n_trials >= MIN_TRIALS]
    likely = telling.sum(axis=0).max(axis=(0, 1))
    return np.array(settings), len(telling) >= MIN_TASKS and int(likely.argmax()) == len(NOISES) - 1
