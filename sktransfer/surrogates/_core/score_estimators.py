"""Estimators of normal scores other than a network: linear and nearest neighbors.

Salinas et al. 2020, section 5.2 and Table 6, compare them with the network. Notation of
`copula_gp`: x (n, p) inputs, z (n,) normal scores of all past trials.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

RIDGE = 1e-3  # per trial: it decides between equivalent weights of indicators
MIN_STD = 0.01


def fit_linear(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Weights, intercept and residual deviation of a linear regression; -> (p + 2,).

    >>> fit_linear(np.array([[-1.0], [0.0], [1.0]]), np.array([1.0, 3.0, 5.0])).round(1).tolist()
    [2.0, 3.0, 0.0]
    """
    mean = x.mean(axis=0)
    X = x - mean
    weights = np.linalg.solve(X.T @ X + RIDGE * len(z) * np.eye(X.shape[1]), X.T @ (z - z.mean()))
    intercept = z.mean() - mean @ weights
    residuals = z - x @ weights - intercept
    return np.concatenate([weights, [intercept, max(residuals.std(), MIN_STD)]])


def predict_linear(weights: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations; (p + 2,), (n, p) -> (n,), (n,)."""
    return x @ weights[:-2] + weights[-2], np.full(len(x), weights[-1])


def predict_neighbors(
    tree: cKDTree, z: np.ndarray, x: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations of the k nearest trials' scores; (N,), (n, p) -> (n,), (n,)."""
    k = min(k, len(z))
    _, rows = tree.query(x, k)
    near = z[rows.reshape(len(x), k)]
    # A few scores that are equal by chance do not make the next one certain.
    std = np.sqrt((near.var(axis=1) * k + z.var()) / (k + 1))
    return near.mean(axis=1), np.maximum(std, MIN_STD)
