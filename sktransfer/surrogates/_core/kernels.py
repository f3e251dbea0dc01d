"""Kernels of unit variance between many points, for predictions.

The same functions as `_gp_core.KERNELS` without their gradients, computed in place: a proposal asks for some
million values, and most of its time would go into intermediate tables.
"""

from __future__ import annotations

import numpy as np


def kernel_matrix(
    A: np.ndarray, B: np.ndarray, lengths: np.ndarray, categorical: np.ndarray, kernel: str
) -> np.ndarray:
    """(n, d), (m, d), (d,), (d,) bool -> (n, m).

    >>> points, numbers = np.array([[0.0], [1.0]]), np.array([False])
    >>> kernel_matrix(points, points, np.ones(1), numbers, "se").round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]
    """
    numeric = ~categorical
    a, b = A[:, numeric] / lengths[numeric], B[:, numeric] / lengths[numeric]
    r2 = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)
    r2 -= 2 * a @ b.T
    for column in np.flatnonzero(categorical):
        r2 += (A[:, [column]] != B[:, column]) * lengths[column] ** -2.0
    return _SHAPES[kernel](np.maximum(r2, 0, out=r2))


def _squared_exponential(r2: np.ndarray) -> np.ndarray:
    r2 *= -0.5
    return np.exp(r2, out=r2)


def _matern32(r2: np.ndarray) -> np.ndarray:
    r2 *= 3
    r = np.sqrt(r2, out=r2)
    decay = np.exp(-r)
    r += 1
    r *= decay
    return r


def _matern52(r2: np.ndarray) -> np.ndarray:
    r2 *= 5
    r = np.sqrt(r2)
    r2 /= 3
    r2 += r
    r2 += 1
    np.negative(r, out=r)
    r2 *= np.exp(r, out=r)
    return r2


_SHAPES = {"se": _squared_exponential, "matern32": _matern32, "matern52": _matern52}
