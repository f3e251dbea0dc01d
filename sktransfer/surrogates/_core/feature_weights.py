"""Which differences of the data foretell that tasks differ: a weight for each meta-feature.

Notation: m tasks, psi (m, p) their meta-features, F (m, k) what each task's process expects at k settings.

    d_ij = mean_k (F_ik - F_jk)²  ~  b + sum_q a_q (psi_iq - psi_jq)²,   a, b >= 0

fitted to all pairs by least squares, the a shrunk: there are many pairs, but only m tasks. A feature that
told nothing keeps a small weight: of tasks that are alike in all else, the nearer one should count more.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

MIN_TASKS = 5
"""With fewer tasks than this, nothing is learned of the features: all count the same."""

MAX_TASKS = 100
"""Of more tasks, so many are enough to learn from."""

MIN_RELATIVE_WEIGHT = 0.1  # weight that a feature keeps, as a share of the mean weight
SHRINKAGE = 0.02  # a squared weight costs as much as an error of this size in each pair


def fit_feature_weights(psi: np.ndarray, F: np.ndarray) -> np.ndarray:
    """sqrt(a), to multiply the meta-features with; (m, p), (m, k) -> (p,).

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
    apart = ((F[i] - F[j]) ** 2).mean(axis=1)
    if not apart.any():
        return np.ones(p)
    columns = np.column_stack([(psi[i] - psi[j]) ** 2, np.ones(len(i))])
    shrink = np.sqrt(SHRINKAGE * len(i)) * np.eye(p, p + 1)
    a, _ = nnls(np.vstack([columns, shrink]), np.append(apart / apart.mean(), np.zeros(p)))
    return np.sqrt(a[:-1] + MIN_RELATIVE_WEIGHT * a[:-1].mean()) if a[:-1].any() else np.ones(p)
