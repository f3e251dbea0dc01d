"""A Gaussian process, small enough to read: kernel, likelihood, posterior. Torch inside, float64.

Notation
--------
X  (n, d) inputs            z  (n,) targets, zero mean assumed
l  (d,)   lengthscales      s  signal variance          v  noise variance
r² scaled squared distance: sum over numeric columns of (x - x')² / l², plus sum over categorical
   columns of [x != x'] / l². Both are squared Euclidean distances (a category is a corner of a
   simplex), hence every kernel here is positive definite.
K  = s k(r²) + v I,  L its Cholesky factor,  a = K⁻¹ z
Hyperparameters are optimized as h = log [l, s, v], shape (d + 2,).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize

from sktransfer.surrogates._core.gp_gradient import value_and_gradient
from sktransfer.surrogates.base import Posterior
from sktransfer.utils._threads import single_threaded
from sktransfer.utils._torch import eye, tensor, torch_context

_JITTER = 1e-9
_NOT_DEFINITE = 1e10  # value of a kernel matrix that has no Cholesky factor


def _squared_exponential(r2: torch.Tensor) -> torch.Tensor:
    return torch.exp(-0.5 * r2)


# In the memory of the first result: fresh memory for each step would take longer than the steps themselves.


def _matern32(r2: torch.Tensor) -> torch.Tensor:
    r = _root(3 * r2)
    return (1 + r).mul_((-r).exp_())


def _matern52(r2: torch.Tensor) -> torch.Tensor:
    r = _root(5 * r2)
    return (1 + r).add_((r * r).div_(3)).mul_((-r).exp_())


def _root(r2: torch.Tensor) -> torch.Tensor:
    return r2.add_(1e-20).sqrt_()  # the root has no derivative at zero, the kernel has


KERNELS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "se": _squared_exponential,
    "matern32": _matern32,
    "matern52": _matern52,
}


def differences(A: torch.Tensor, B: torch.Tensor, categorical: np.ndarray) -> torch.Tensor:
    """Squared differences by column, before scaling; (n, d), (m, d) -> (n, m, d)."""
    apart = A[:, None, :] - B[None, :, :]
    if categorical.any():
        return torch.where(
            torch.from_numpy(categorical), (apart != 0).to(apart.dtype), apart * apart
        )
    return apart * apart


def scaled_distances(
    A: torch.Tensor, B: torch.Tensor, weights: torch.Tensor, categorical: np.ndarray
) -> torch.Tensor:
    """``differences(A, B) @ weights`` without the table; (n, d), (m, d) -> (n, m), or stacks of them."""
    numeric = torch.from_numpy(~categorical)
    root = torch.sqrt(weights[..., None, numeric])
    r2 = torch.cdist(A[..., numeric] * root, B[..., numeric] * root) ** 2
    for column in np.flatnonzero(categorical):
        other = A[..., :, None, column] != B[..., None, :, column]
        r2 = r2 + other * weights[..., column, None, None]
    return r2


@dataclass(frozen=True)
class LogNormal:
    """Prior of a positive hyperparameter: its log is normal."""

    median: float
    spread: float

    def log_density(self, log_value: torch.Tensor) -> torch.Tensor:
        return -0.5 * (((log_value - np.log(self.median)) / self.spread) ** 2).sum()


@dataclass(frozen=True)
class Priors:
    """Priors of lengthscales, signal variance and noise variance, for scores of unit variance."""

    lengthscale: LogNormal
    signal: LogNormal
    noise: LogNormal

    def medians(self, d: int) -> np.ndarray:
        return np.log([self.lengthscale.median] * d + [self.signal.median, self.noise.median])

    def log_density(self, h: torch.Tensor) -> torch.Tensor:
        """Of hyperparameters h, up to a constant: 0 at the medians."""
        return (
            self.lengthscale.log_density(h[:-2])
            + self.signal.log_density(h[-2])
            + self.noise.log_density(h[-1])
        )


def negative_log_posterior(
    h: torch.Tensor, squares: torch.Tensor, z: torch.Tensor, kernel: str, priors: Priors
) -> torch.Tensor:
    """Minus log p(z | h) p(h), up to a constant; `squares` from `differences`, (n, n, d)."""
    n = len(z)
    r2 = squares @ torch.exp(-2 * h[:-2])
    K = torch.exp(h[-2]) * KERNELS[kernel](r2)
    K = K + (torch.exp(h[-1]) + _JITTER) * eye(n)
    return -(log_likelihood(K, z) + priors.log_density(h))


def log_likelihood(K: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """log N(z; 0, K), up to a constant; (..., n, n), (..., n) -> (...)."""
    L = torch.linalg.cholesky(K)
    white = torch.linalg.solve_triangular(L, z[..., None], upper=False)[..., 0]
    return -0.5 * (white * white).sum(-1) - torch.log(torch.diagonal(L, dim1=-2, dim2=-1)).sum(-1)


def fit_hyperparameters(
    X: np.ndarray,
    z: np.ndarray,
    categorical: np.ndarray,
    *,
    kernel: str,
    priors: Priors,
    max_iter: int = 50,
) -> np.ndarray:
    """Most probable hyperparameters h, by L-BFGS from the priors' medians.

    It always starts there, not where an earlier fit ended: the result depends on the data alone, and a
    search that is taken up again sees the same model. Fitting degrades, it does not die: if it leads
    nowhere, the medians are returned with a warning.
    """
    squares = differences(tensor(X), tensor(X), categorical).numpy()

    def loss(h: np.ndarray) -> tuple[float, np.ndarray]:
        found = value_and_gradient(h, squares, z, kernel, priors, _JITTER)
        return (_NOT_DEFINITE, np.zeros_like(h)) if found is None else found

    medians = priors.medians(X.shape[1])
    with torch_context():
        best = minimize(
            loss,
            medians,
            jac=True,
            method="L-BFGS-B",
            bounds=[(m - 12, m + 12) for m in medians],
            options={"maxiter": max_iter, "ftol": 1e-6},
        )
    if not best.fun < _NOT_DEFINITE:
        warnings.warn(
            "The Gaussian process could not be fitted; its default hyperparameters are used.",
            stacklevel=2,
        )
        return medians
    return best.x


class GaussianProcess(Posterior):
    """Posterior of a GP with given hyperparameters.

    Parameters
    ----------
    X, z : ndarray of shape (n, d) and (n,)
        n may be 0: the prior.
    h : ndarray of shape (d + 2,)
        Logarithms of lengthscales, signal variance and noise variance.
    categorical : ndarray of bool, shape (d,)
    kernel : {"se", "matern32", "matern52"}
    shift, scale : float
        What turns z back into scores: ``shift + scale * z``.

    Attributes
    ----------
    log_evidence : float
        log p(z | h), up to a constant that depends on n alone.
    """

    def __init__(
        self,
        X: np.ndarray,
        z: np.ndarray,
        h: np.ndarray,
        categorical: np.ndarray,
        *,
        kernel: str = "matern52",
        shift: float = 0.0,
        scale: float = 1.0,
    ):
        self.X, self.z, self.h, self.categorical = X, z, h, categorical
        self.kernel, self.shift, self.scale = kernel, shift, scale
        self._weights = torch.exp(-2 * tensor(h[:-2]))
        self._signal, self._noise = float(np.exp(h[-2])), float(np.exp(h[-1]))
        with single_threaded:
            K = self._covariance(tensor(X), tensor(X)) + (self._noise + _JITTER) * eye(len(X))
            self._L = torch.linalg.cholesky(K)
            self._a = torch.cholesky_solve(tensor(z)[:, None], self._L)[:, 0]
            log_det = torch.log(torch.diagonal(self._L)).sum()
            self.log_evidence = float(-0.5 * (tensor(z) * self._a).sum() - log_det)

    def _covariance(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(n, d), (m, d) -> (n, m)."""
        r2 = scaled_distances(A, B, self._weights, self.categorical)
        return self._signal * KERNELS[self.kernel](r2)

    @torch.no_grad()
    def prior_covariance(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Covariance before any trial, on the scale of z; (n, d), (m, d) -> (n, m)."""
        with single_threaded:
            return self._covariance(tensor(A), tensor(B)).numpy()

    @torch.no_grad()
    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, variances, and covariances with the anchors, given the trials, on the scale of z.

        (n, d), (k, d) -> (n,), (n,), (n, k)
        """
        with single_threaded:
            k, others = (
                self._covariance(tensor(each), tensor(self.X)) for each in (theta, anchors)
            )
            white, whites = (
                torch.linalg.solve_triangular(self._L, e.T, upper=False) for e in (k, others)
            )
            variance = (self._signal - (white * white).sum(0)).clamp_min(1e-12 * self._signal)
            covariance = self._covariance(tensor(theta), tensor(anchors)) - white.T @ whites
        return (k @ self._a).numpy(), variance.numpy(), covariance.numpy()

    @torch.no_grad()
    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the noise-free score; (m, d) -> (m,), (m,)."""
        with single_threaded:
            k = self._covariance(tensor(theta), tensor(self.X))  # (m, n)
            mean = k @ self._a
            white = torch.linalg.solve_triangular(self._L, k.T, upper=False)
            std = (self._signal - (white * white).sum(0)).clamp_min(1e-12 * self._signal).sqrt()
        return self.shift + self.scale * mean.numpy(), self.scale * std.numpy()

    @torch.no_grad()
    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the noise-free score; (m, d) -> (n, m)."""
        with single_threaded:
            k = self._covariance(tensor(theta), tensor(self.X))
            white = torch.linalg.solve_triangular(self._L, k.T, upper=False)
            joint = self._covariance(tensor(theta), tensor(theta)) - white.T @ white
            root = _factor(joint, self._signal).numpy()
        draws = (k @ self._a).numpy() + rng.standard_normal((n, len(theta))) @ root.T
        return self.shift + self.scale * draws


def _factor(K: torch.Tensor, scale: float) -> torch.Tensor:
    """Cholesky factor of a covariance, with as much on its diagonal as rounding makes necessary."""
    unit = eye(len(K))
    for jitter in (1e-8, 1e-6, 1e-4):
        L, failed = torch.linalg.cholesky_ex(K + jitter * scale * unit)
        if not failed:
            return L
    return torch.diag(torch.diagonal(K).clamp_min(0).sqrt())
