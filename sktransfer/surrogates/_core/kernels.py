"""Kernels of unit variance in numpy, with their derivatives.

Notation: r² (...) scaled squared distances, r² = sum over numeric columns of (x - x')² / l² plus
sum over categorical columns of [x != x'] / l². Both are squared Euclidean distances (a category is
a corner of a simplex), so every kernel here is positive definite. `torch_kernels` has the same
functions for autograd.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Kernel = Callable[[np.ndarray, bool], tuple[np.ndarray, np.ndarray | None]]


def squared_differences(A: np.ndarray, B: np.ndarray, categorical: np.ndarray) -> np.ndarray:
    """Squared differences by column, 0 or 1 in categorical ones.

    (..., n, d), (..., m, d) -> (..., n, m, d)
    """
    differences = A[..., :, None, :] - B[..., None, :, :]
    if categorical.any():
        return np.where(categorical, differences != 0, differences * differences)
    return differences * differences


def scaled_distances(
    A: np.ndarray, B: np.ndarray, lengths: np.ndarray, categorical: np.ndarray
) -> np.ndarray:
    """r² without the table of differences; (..., n, d), (..., m, d), (..., d) -> (..., n, m)."""
    numeric = ~categorical
    scale = lengths[..., None, numeric]
    a, b = A[..., numeric] / scale, B[..., numeric] / scale
    r2 = (a * a).sum(axis=-1)[..., :, None] + (b * b).sum(axis=-1)[..., None, :]
    r2 -= 2 * a @ np.swapaxes(b, -1, -2)
    for column in np.flatnonzero(categorical):
        differs = A[..., :, None, column] != B[..., None, :, column]
        r2 += differs * lengths[..., column, None, None] ** -2.0
    return np.maximum(r2, 0, out=r2)


def kernel_matrix(
    A: np.ndarray, B: np.ndarray, lengths: np.ndarray, categorical: np.ndarray, kernel: str
) -> np.ndarray:
    """Kernel of two sets of points, or of stacks of them; (n, d), (m, d), (d,) -> (n, m).

    >>> points, numbers = np.array([[0.0], [1.0]]), np.array([False])
    >>> kernel_matrix(points, points, np.ones(1), numbers, "se").round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]
    """
    return KERNELS[kernel](scaled_distances(A, B, lengths, categorical), False)[0]


# The kernels compute in place, in the memory of r²: a proposal needs millions of values, and most
# of its time would go into intermediate tables.


def _squared_exponential(r2: np.ndarray, with_slope: bool) -> tuple[np.ndarray, np.ndarray | None]:
    r2 *= -0.5
    k = np.exp(r2, out=r2)
    return k, -0.5 * k if with_slope else None


def _matern32(r2: np.ndarray, with_slope: bool) -> tuple[np.ndarray, np.ndarray | None]:
    r2 *= 3
    r = np.sqrt(r2, out=r2)
    decay = np.exp(-r)
    r += 1
    r *= decay
    return r, -1.5 * decay if with_slope else None


def _matern52(r2: np.ndarray, with_slope: bool) -> tuple[np.ndarray, np.ndarray | None]:
    r2 *= 5
    r = np.sqrt(r2)
    decay = np.exp(-r)
    slope = -5 / 6 * (1 + r) * decay if with_slope else None
    r2 /= 3
    r2 += r
    r2 += 1
    r2 *= decay
    return r2, slope


KERNELS: dict[str, Kernel] = {
    "se": _squared_exponential,
    "matern32": _matern32,
    "matern52": _matern52,
}
"""Name -> function of r², which it overwrites, and of whether to compute dk/dr²; -> k, dk/dr²."""
