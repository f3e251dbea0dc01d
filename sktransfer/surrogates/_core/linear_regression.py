"""Bayesian linear regression in torch, differentiable, for a stack of tasks at once.

Notation (Perrone et al. 2018, supplement)
--------
Phi (N, D) features        z (N,) scores          phi (m, D) features to predict at
z | w ~ N(Phi w, 1/beta),   w ~ N(0, 1/alpha),     r = beta / alpha
N > D:   L the Cholesky factor of I + r Phi'Phi,   e = L^-1 Phi'z,   everything O(N D²)
N <= D:  E that of I + r Phi Phi',                 e = E^-1 z,       everything O(D N²)
Rows of zeros only change the number of rows, so tasks of different lengths are padded to one stack.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import minimize

from sktransfer.surrogates._core.gaussian_process import LogNormal
from sktransfer.utils._torch import eye, tensor


class LinearRegression:
    """Posterior of one regression, or of a stack of them.

    Parameters
    ----------
    Phi : tensor of shape (..., N, D)
    z : tensor of shape (..., N)
    alpha, beta : tensor of shape (...)
        Precision of the prior and of the noise.
    n : tensor of shape (...) or None
        Number of rows that are not padding.
    dual : bool or None
        Whether to use the form for N <= D. None decides by N and D. Both are equivalent.
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
        self._n = alpha.new_full(alpha.shape, float(N)) if n is None else n
        self._dual = N <= D if dual is None else dual
        self._r = (beta / alpha)[..., None, None]
        square = Phi @ Phi.mT if self._dual else Phi.mT @ Phi
        self._L = torch.linalg.cholesky(eye(square.shape[-1]) + self._r * square)
        right = z[..., None] if self._dual else Phi.mT @ z[..., None]
        self._e = torch.linalg.solve_triangular(self._L, right, upper=False)[..., 0]

    def loss(self) -> torch.Tensor:
        """Negative log marginal likelihood, up to n log(2 pi) / 2; -> (...)."""
        e2 = (self._e * self._e).sum(-1)
        if not self._dual:
            e2 = (self._z * self._z).sum(-1) - self._r[..., 0, 0] * e2
        log_det = torch.log(torch.diagonal(self._L, dim1=-2, dim2=-1)).sum(-1)
        return 0.5 * (self._beta * e2 - self._n * torch.log(self._beta)) + log_det

    def moments(
        self, phi: torch.Tensor, anchors: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Means, variances, and covariances with the anchors; (m, D), (k, D) -> (m,), (m,), (m, k).

        The supplement misprints |y|² for |phi|² in the variance of the form for N <= D.
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


def fit_precisions(
    Phi: torch.Tensor, z: torch.Tensor, alpha: LogNormal, beta: LogNormal
) -> np.ndarray:
    """Most probable log alpha and log beta, by L-BFGS from the priors' medians; -> (2,)."""
    medians = np.log([alpha.median, beta.median])

    def value_and_gradient(h: np.ndarray) -> tuple[float, np.ndarray]:
        h_t = tensor(h).clone().requires_grad_()
        loss = LinearRegression(Phi, z, *torch.exp(h_t)).loss()
        loss = loss - alpha.log_density(h_t[0]) - beta.log_density(h_t[1])
        (gradient,) = torch.autograd.grad(loss, h_t)
        return float(loss.detach()), gradient.numpy()

    bounds = [(median - 8, median + 8) for median in medians]
    options = {"maxiter": 30, "ftol": 1e-6}
    return minimize(
        value_and_gradient, medians, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x


def feature_correlations(Y: torch.Tensor) -> torch.Tensor:
    """Prior correlation of the first task's scores with each other task's; (m, k, D) -> (m - 1,).

    Y are the features of m tasks at the same k settings. The correlations are averaged over the
    settings and clipped to [0, 1].
    """
    Y = Y - Y.mean(dim=(0, 1))  # the common part distinguishes nothing
    Y = Y / Y.norm(dim=2, keepdim=True).clamp_min(1e-12)
    return (Y[1:] * Y[0]).sum(dim=2).clamp(0, 1).mean(dim=1)
