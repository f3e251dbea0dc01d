"""The kernels of `kernels` in torch, for models trained by automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch


def _squared_exponential(r2: torch.Tensor) -> torch.Tensor:
    return torch.exp(-0.5 * r2)


# In the memory of the first result: allocating memory for each step would take longer than the
# steps themselves.


def _matern32(r2: torch.Tensor) -> torch.Tensor:
    r = _root(3 * r2)
    return (1 + r).mul_((-r).exp_())


def _matern52(r2: torch.Tensor) -> torch.Tensor:
    r = _root(5 * r2)
    return (1 + r).add_((r * r).div_(3)).mul_((-r).exp_())


def _root(r2: torch.Tensor) -> torch.Tensor:
    return r2.add_(1e-20).sqrt_()  # the root has no derivative at zero, but the kernel has


TORCH_KERNELS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "se": _squared_exponential,
    "matern32": _matern32,
    "matern52": _matern52,
}
"""Name -> kernel of the scaled squared distance r²."""


def squared_differences(A: torch.Tensor, B: torch.Tensor, categorical: np.ndarray) -> torch.Tensor:
    """Squared differences by column, 0 or 1 in categorical ones; (n, d), (m, d) -> (n, m, d)."""
    differences = A[:, None, :] - B[None, :, :]
    squares = differences * differences
    if categorical.any():
        differs = (differences != 0).to(squares.dtype)
        return torch.where(torch.from_numpy(categorical), differs, squares)
    return squares


def scaled_distances(
    A: torch.Tensor, B: torch.Tensor, weights: torch.Tensor, categorical: np.ndarray
) -> torch.Tensor:
    """``squared_differences(A, B) @ weights`` without the table, not differentiable; -> (n, m)."""
    numeric = torch.from_numpy(~categorical)
    root = torch.sqrt(weights[numeric])
    r2 = torch.cdist(A[:, numeric] * root, B[:, numeric] * root) ** 2
    for column in np.flatnonzero(categorical):
        r2 = r2 + (A[:, None, column] != B[None, :, column]) * weights[column]
    return r2


def log_likelihood(K: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """log N(z; 0, K), up to a constant; (..., n, n), (..., n) -> (...)."""
    L = torch.linalg.cholesky(K)
    white = torch.linalg.solve_triangular(L, z[..., None], upper=False)[..., 0]
    log_det = torch.log(torch.diagonal(L, dim1=-2, dim2=-1)).sum(-1)
    return -0.5 * (white * white).sum(-1) - log_det
