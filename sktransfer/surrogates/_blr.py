"""Bayesian linear regression, small enough to read. Torch, differentiable, a stack of tasks at once.

Notation (Perrone et al. 2018, supplement)
--------
Phi (N, D) features        z (N,) scores          phi (m, D) features to predict at
z | w ~ N(Phi w, 1/beta),   w ~ N(0, 1/alpha),     r = beta / alpha
N > D:   L the Cholesky factor of I + r Phi'Phi,   e = L^-1 Phi'z,   everything O(N D²)
N <= D:  E that of I + r Phi Phi',                 e = E^-1 z,       everything O(D N²)
Rows of zeros change nothing but their number: tasks of different lengths are padded to one stack.
"""

from __future__ import annotations

import torch


class LinearRegression:
    """Posterior of one regression, or of a stack of them.

    Parameters
    ----------
    Phi : tensor of shape (..., N, D)
    z : tensor of shape (..., N)
    alpha, beta : tensor of shape (...)
        Precision of the prior and of the noise.
    n : tensor of shape (...) or None
        Rows that are not padding.
    dual : bool or None
        Whether to use the form for N <= D; None decides by N and D. Both give the same.
    """

    def __init__(
        self,
        Phi: torch.Tensor,
        z: torch.Tensor,
        alpha: torch.Tensor,
        beta: torch.Tensor,
        n: torch.Tensor | None = None,
        dual: bool | None = None,
    ):
        N, D = Phi.shape[-2:]
        self._Phi, self._z, self._alpha, self._beta = Phi, z, alpha, beta
        self._n = torch.full(alpha.shape, float(N), dtype=Phi.dtype) if n is None else n
        self._dual = N <= D if dual is None else dual
        self._r = (beta / alpha)[..., None, None]
        square = Phi @ Phi.mT if self._dual else Phi.mT @ Phi
        eye = torch.eye(square.shape[-1], dtype=Phi.dtype)
        self._L = torch.linalg.cholesky(eye + self._r * square)
        right = z[..., None] if self._dual else Phi.mT @ z[..., None]
        self._e = torch.linalg.solve_triangular(self._L, right, upper=False)[..., 0]

    def loss(self) -> torch.Tensor:
        """Minus the log marginal likelihood, up to n log(2 pi) / 2; -> (...)."""
        e2 = (self._e * self._e).sum(-1)
        if not self._dual:
            e2 = (self._z * self._z).sum(-1) - self._r[..., 0, 0] * e2
        log_det = torch.log(torch.diagonal(self._L, dim1=-2, dim2=-1)).sum(-1)
        return 0.5 * (self._beta * e2 - self._n * torch.log(self._beta)) + log_det

    def moments(
        self, phi: torch.Tensor, anchors: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Means, variances, and covariances with the anchors; (m, D), (k, D) -> (m,), (m,), (m, k).

        (The supplement prints |y|² for |phi|² in the variance of the form for N <= D.)
        """
        white, others = self._whiten(phi), self._whiten(anchors)
        mean = self._r[0, 0] * (self._e @ white)
        if self._dual:
            variance = (phi * phi).sum(1) - self._r[0, 0] * (white * white).sum(0)
            covariance = phi @ anchors.T - self._r[0, 0] * (white.T @ others)
        else:
            variance, covariance = (white * white).sum(0), white.T @ others
        return mean, variance / self._alpha, covariance / self._alpha

    def _whiten(self, phi: torch.Tensor) -> torch.Tensor:
        """L^-1 phi', or E^-1 Phi phi'; (m, D) -> (D or N, m)."""
        right = self._Phi @ phi.T if self._dual else phi.T
        return torch.linalg.solve_triangular(self._L, right, upper=False)
