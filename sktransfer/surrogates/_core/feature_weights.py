"""Weights of meta-features by how well their differences predict that tasks differ.

Notation: m tasks, psi (m, p) their meta-features, F (m, k) the means of the tasks' processes at k
settings.

    d_ij = mean_k (F_ik - F_jk)²  ~  b + sum_q a_q (psi_iq - psi_jq)²,   a, b >= 0

is fitted to all pairs by least squares. The a are shrunk, because there are many pairs but only m
tasks. Features without an effect keep a small weight: if all else is equal, the task with the
nearer features should count more.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

MIN_TASKS = 5
"""With fewer tasks, all features have weight 1."""

MAX_TASKS = 100
"""Of more tasks, so many are used."""

MIN_RELATIVE_WEIGHT = 0.1  # share of the mean weight that each feature keeps
SHRINKAGE = 0.02  # cost of a squared weight, in squared errors of each pair


def fit_feature_weights(psi: np.ndarray, F: np.ndarray) -> np.ndarray:
    """sqrt(a), the factors of the meta-features; (m, p), (m, k) -> (p,).

    >>> rng = np.random.default_rng(0)
    >>> psi = rng.random((20, 2))
    >>> weights = fit_feature_weights(psi, 3 * psi[:, :1] + np.zeros((20, 4)))
    >>> bool(weights[0] > 3 * weights[1])
    True
    """
    p = psi.shape[1]
    if len(psi) < MIN_TASKS:
        return np.ones(p)
    chosen = np.unique(np.linspace(0, len(psi) - 1, min(len(psi), MAX_TASKS)).astype(int))
    i, j = (chosen[side] for side in np.triu_indices(len(chosen), 1))
    distances = ((F[i] - F[j]) ** 2).mean(axis=1)
    if not distances.any():
        return np.ones(p)
    columns = np.column_stack([(psi[i] - psi[j]) ** 2, np.ones(len(i))])
    shrink = np.sqrt(SHRINKAGE * len(i)) * np.eye(p, p + 1)
    a, _ = nnls(np.vstack([columns, shrink]), np.append(distances / distances.mean(), np.zeros(p)))
    a = a[:-1]
    return np.sqrt(a + MIN_RELATIVE_WEIGHT * a.mean()) if a.any() else np.ones(p)


def squared_distances(A: np.ndarray, B: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared distances of rows with weighted columns; (n, p), (k, p), (p,) -> (n, k)."""
    A, B = A * weights, B * weights
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * A @ B.T
    return np.where(squares > 1e-12, squares, 0)  # equal rows differ by rounding errors


def median_distance(squares: np.ndarray) -> float:
    """The median over pairs of different tasks, (m, m); 1 if there are none or the median is 0."""
    distances = squares[~np.eye(len(squares), dtype=bool)]
    return (float(np.median(distances)) or 1.0) if len(distances) else 1.0
