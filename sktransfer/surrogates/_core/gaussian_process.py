"""A Gaussian process: likelihood, hyperparameters, posterior.

Notation
--------
X  (n, d) inputs            z  (n,) targets, zero mean assumed
l  (d,)   lengthscales      s  signal variance          v  noise variance
e  (n,)   noise variance of single trials beyond v
K  = s k(r²) + v I + diag e,  r² as in `kernels`,  L the Cholesky factor of K,  a = K⁻¹ z
Hyperparameters are optimized as h = log [l, s, v], shape (d + 2,).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates._core.defaults import GP_JITTER
from sktransfer.surrogates._core.kernels import KERNELS, kernel_matrix
from sktransfer.surrogates.base import Posterior
from sktransfer.utils._threads import single_threaded

MAX_FIRST_FIT = 200
"""Trials above which the hyperparameters are fitted to a part of the trials first."""

_NOT_DEFINITE = 1e10  # loss of hyperparameters whose K has no Cholesky factor
_MAX_LOG_FACTOR = 12  # hyperparameters stay within this distance of their medians
_MIN_VARIANCE = 1e-12  # of a prediction, relative to the signal variance
_SAMPLE_JITTERS = (1e-8, 1e-6, 1e-4)  # relative to the signal variance, tried in turn


@dataclass(frozen=True)
class LogNormal:
    """Prior of a positive hyperparameter whose logarithm is normal."""

    median: float
    spread: float

    def log_density(self, log_value: Any) -> Any:
        """Summed over an array or a tensor, up to a constant: 0 at the median."""
        return -0.5 * (((log_value - np.log(self.median)) / self.spread) ** 2).sum()


@dataclass(frozen=True)
class Priors:
    """Priors of lengthscales, signal variance and noise variance, for scores of unit variance."""

    lengthscale: LogNormal
    signal: LogNormal
    noise: LogNormal

    def medians(self, d: int) -> np.ndarray:
        """Logarithms of the medians for d columns; -> (d + 2,)."""
        return np.log([self.lengthscale.median] * d + [self.signal.median, self.noise.median])

    def spreads(self, d: int) -> np.ndarray:
        """Standard deviations of the logarithms for d columns; -> (d + 2,)."""
        return np.array([self.lengthscale.spread] * d + [self.signal.spread, self.noise.spread])

    def log_density(self, h: Any) -> Any:
        """Log density of h, an array or a tensor, up to a constant: 0 at the medians."""
        return (
            self.lengthscale.log_density(h[:-2])
            + self.signal.log_density(h[-2])
            + self.noise.log_density(h[-1])
        )


class Pairs:
    """Squared differences of the pairs i < j of some inputs.

    Covariances are symmetric, so half of a matrix is enough for the likelihood. LAPACK reads the
    upper half of a table by rows as the lower half by columns.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    categorical : ndarray of bool, shape (d,)

    Attributes
    ----------
    squares : ndarray of shape (d, n (n - 1) / 2)
        0 or 1 in categorical columns.
    first, second : ndarray of int
        The numbers i and j.
    """

    def __init__(self, X: np.ndarray, categorical: np.ndarray):
        self.n = len(X)
        self.first, self.second = np.triu_indices(self.n, k=1)
        self._places = self.first * self.n + self.second
        self.squares = np.empty((X.shape[1], len(self._places)))
        for own, x, is_categorical in zip(self.squares, X.T, categorical, strict=True):
            differences = x[self.first] - x[self.second]
            own[:] = differences != 0 if is_categorical else differences * differences

    def fill(self, values: np.ndarray, diagonal: np.ndarray | float) -> np.ndarray:
        """A matrix by columns, whose lower half has these values; (n, n)."""
        table = np.zeros((self.n, self.n))
        table.ravel()[self._places] = values
        table[np.diag_indices(self.n)] = diagonal
        return table.T

    def take(self, matrix: np.ndarray) -> np.ndarray:
        """The values of all pairs in the lower half of a matrix by columns."""
        return matrix.T.ravel()[self._places]


def value_and_gradient(
    h: np.ndarray,
    pairs: Pairs,
    z: np.ndarray,
    kernel: str,
    priors: Priors,
    jitter: float | np.ndarray = GP_JITTER,
) -> tuple[float, np.ndarray] | None:
    """Minus log p(z | h) p(h), up to a constant, and its gradient (d + 2,).

    It is None if K has no Cholesky factor. The gradient is in closed form. With G = dl/dK for the
    log likelihood l (Rasmussen & Williams 2006, eq. 5.9),

        G = (a a' - K⁻¹) / 2,   dl/d log l_j = -2 l_j⁻² sum (G s dk/dr²) D_j,
        dl/d log s = sum G s k,   dl/d log v = v trace G,

    D_j the squared differences in column j.

    Parameters
    ----------
    h : ndarray of shape (d + 2,)
    pairs : Pairs
        Of the inputs.
    z : ndarray of shape (n,)
    kernel : str
    priors : Priors
    jitter : float or ndarray of shape (n,)
        Added to the noise variance.
    """
    d = len(h) - 2
    inverse, signal, noise = np.exp(-2 * h[:-2]), np.exp(h[-2]), np.exp(h[-1])
    k, slope = KERNELS[kernel](inverse @ pairs.squares, True)
    assert slope is not None
    K = pairs.fill(signal * k, signal + noise + jitter)
    L, failed = lapack.dpotrf(K, lower=1, overwrite_a=1, clean=0)
    if failed or not np.isfinite(L[-1, -1]):
        return None
    a, _ = lapack.dpotrs(L, z, lower=1)
    log_likelihood = -0.5 * z @ a - np.log(np.diag(L)).sum()
    inverse_K, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
    # 2 G, of the pairs and on the diagonal. Each pair stands for two entries.
    G, own = a[pairs.first] * a[pairs.second] - pairs.take(inverse_K), a * a - np.diag(inverse_K)
    gradient = np.empty(d + 2)
    gradient[-2] = signal * (G @ k + 0.5 * own.sum())
    gradient[:-2] = -2 * signal * inverse * (pairs.squares @ np.multiply(G, slope, out=slope))
    gradient[-1] = 0.5 * noise * own.sum()
    spreads = priors.spreads(d)
    deviations = (h - priors.medians(d)) / spreads
    gradient -= deviations / spreads
    return -float(log_likelihood - 0.5 * deviations @ deviations), -gradient


def fit_hyperparameters(
    X: np.ndarray,
    z: np.ndarray,
    categorical: np.ndarray,
    *,
    kernel: str,
    priors: Priors,
    max_iter: int = 50,
    extra: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Most probable hyperparameters h, by L-BFGS from the priors' medians.

    Of more than MAX_FIRST_FIT trials, a part is fitted first, and L-BFGS goes on from there with
    all of them. The start does not depend on an earlier fit. So the result depends on the data
    alone, and a resumed search sees the same model. If the fit fails, the medians are returned with
    a warning.
    """
    medians, noise = priors.medians(X.shape[1]), GP_JITTER + np.broadcast_to(extra, len(z))

    def fit(rows: slice, start: np.ndarray) -> np.ndarray | None:
        pairs = Pairs(X[rows], categorical)

        def loss(h: np.ndarray) -> tuple[float, np.ndarray]:
            found = value_and_gradient(h, pairs, z[rows], kernel, priors, noise[rows])
            return (_NOT_DEFINITE, np.zeros_like(h)) if found is None else found

        best = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(m - _MAX_LOG_FACTOR, m + _MAX_LOG_FACTOR) for m in medians],
            options={"maxiter": max_iter, "ftol": 1e-6},
        )
        return best.x if best.fun < _NOT_DEFINITE else None

    with single_threaded:
        step, start = -(-len(z) // MAX_FIRST_FIT), None
        if step > 1:
            start = fit(slice(None, None, step), medians)
        found = fit(slice(None), medians if start is None else start)
    if found is not None:
        return found
    warnings.warn(
        "The Gaussian process could not be fitted. Its default hyperparameters are used.",
        SurrogateWarning,
        stacklevel=2,
    )
    return medians


class GaussianProcess(Posterior):
    """Posterior of a Gaussian process with given hyperparameters.

    Parameters
    ----------
    X, z : ndarray of shape (n, d) and (n,)
        Without trials, n = 0, it is the prior.
    h : ndarray of shape (d + 2,)
        Logarithms of lengthscales, signal variance and noise variance.
    categorical : ndarray of bool, shape (d,)
    kernel : {"se", "matern32", "matern52"}
    shift, scale : float
        They turn z back into scores, ``shift + scale * z``.
    extra : ndarray of shape (n,) or float
        Noise variance of each trial beyond that of all.

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
        extra: np.ndarray | float = 0.0,
    ):
        self.X, self.z, self.h, self.categorical = X, z, h, categorical
        self.kernel, self.shift, self.scale = kernel, shift, scale
        self._lengths = np.exp(h[:-2])
        self._signal, self._noise = float(np.exp(h[-2])), float(np.exp(h[-1]))
        with single_threaded:
            K = self.prior_covariance(X, X) + (self._noise + GP_JITTER + extra) * np.eye(len(X))
            self._L = np.linalg.cholesky(K)
            white = whiten(self._L, z)
            self._a = whiten(self._L, white, transposed=True)
            self.log_evidence = float(-0.5 * white @ white - np.log(np.diag(self._L)).sum())

    def prior_covariance(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Covariance without any trial, on the scale of z; (n, d), (m, d) -> (n, m)."""
        k = kernel_matrix(A, B, self._lengths, self.categorical, self.kernel)
        k *= self._signal
        return k

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, variances, and covariances with the anchors, given the trials, on the scale of z.

        (n, d), (k, d) -> (n,), (n,), (n, k)
        """
        with single_threaded:
            mean, variance, white = self._predict(theta)
            other = whiten(self._L, self.prior_covariance(self.X, anchors))
            return mean, variance, self.prior_covariance(theta, anchors) - white.T @ other

    def _predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means and variances on the scale of z, and L⁻¹ k; (m, d) -> (m,), (m,), (n, m)."""
        k = self.prior_covariance(theta, self.X)
        white = whiten(self._L, k.T)
        variance = np.maximum(
            self._signal - (white * white).sum(axis=0), _MIN_VARIANCE * self._signal
        )
        return k @ self._a, variance, white

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the noise-free score; (m, d) -> (m,), (m,)."""
        with single_threaded:
            mean, variance, _ = self._predict(theta)
        return self.shift + self.scale * mean, self.scale * np.sqrt(variance)

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the noise-free score; (m, d) -> (n, m)."""
        with single_threaded:
            mean, _, white = self._predict(theta)
            root = _factor(self.prior_covariance(theta, theta) - white.T @ white, self._signal)
            draws = mean + rng.standard_normal((n, len(theta))) @ root.T
        return self.shift + self.scale * draws


def whiten(L: np.ndarray, b: np.ndarray, transposed: bool = False) -> np.ndarray:
    """L⁻¹ b, or L'⁻¹ b, for a lower triangular L; (n, n), (n, ...) -> (n, ...)."""
    if not b.size:
        return b  # some versions of scipy cannot solve an empty system
    # As scipy.linalg.solve_triangular, which takes longer to start than for a few trials. LAPACK
    # reads tables by columns, so this is its transposed problem.
    return lapack.dtrtrs(L.T, b, lower=0, trans=int(not transposed))[0]


def _factor(K: np.ndarray, scale: float) -> np.ndarray:
    """Cholesky factor of a covariance, with as much jitter as rounding errors need."""
    for jitter in _SAMPLE_JITTERS:
        L, failed = lapack.dpotrf(K + jitter * scale * np.eye(len(K)), lower=1, clean=1)
        if not failed:
            return L
    return np.diag(np.sqrt(np.maximum(np.diag(K), 0)))


class GPPrior:
    """The prior of a plain GP, to compute the evidence of the target's scores."""

    def __init__(self, gp: GaussianProcess):
        self._gp, self.noise = gp, float(np.exp(gp.h[-1]))

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = np.full(len(theta), np.exp(self._gp.h[-2]))
        return np.zeros(len(theta)), variance, self._gp.prior_covariance(theta, anchors)
