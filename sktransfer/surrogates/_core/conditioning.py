"""From a belief about the target that comes from the past to one that knows the target's own trials.

Notation: the past gives a Gaussian process on the comparable scale, mean m(theta), covariance
S(theta, theta'), noise variance v; the target's n trials have scores y on a scale of their own,

    y = a + b (f(theta) + e),   f ~ GP(m, S),   e ~ N(0, v),   a ~ N(a0, A²),   log b ~ N(b0, B²),

(a0, A, b0, B) from the past tasks. b is the most probable of a grid, a integrated out; then a's mean given b.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from sktransfer.surrogates._core.past_trials import Level
from sktransfer.surrogates.base import Posterior

_GRID = np.linspace(-3, 3, 25)
_JITTER = 1e-8
_BLOCK = 256  # configurations predicted at once


class Prior(Protocol):
    """What the past says of the target, on the comparable scale."""

    noise: float

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, variances, and covariances with the anchors; (n, d), (k, d) -> (n,), (n,), (n, k)."""


class ConditionedPosterior(Posterior):
    """Posterior of the target's scores.

    Parameters
    ----------
    prior : Prior
    theta, y : ndarray of shape (n, d) and (n,)
        The target's trials, all finite; n may be 0.
    level : Level

    Attributes
    ----------
    log_evidence : float
        Logarithm of how probable the target's scores were, by the past's belief.
    level_std : float
        Uncertainty of a, common to all predictions; `predict` leaves it out, since it favors no trial.
    """

    def __init__(self, prior: Prior, theta: np.ndarray, y: np.ndarray, level: Level):
        self._prior, self._theta = prior, theta
        m, _, S = prior.moments(theta, theta)
        self._L = np.linalg.cholesky(S + (prior.noise + _JITTER) * np.eye(len(y)))
        ones, means, residuals = (self._whiten(v) for v in (np.ones(len(y)), m, y - level.shift))
        grid = _GRID if level.log_scale_std and len(y) else np.zeros(1)
        scales = np.exp(level.log_scale + level.log_scale_std * grid)
        found = [
            self._log_density(residuals / b - means, ones, level.shift_std / b, b) for b in scales
        ]
        best = int(np.argmax(found - 0.5 * grid * grid))
        self.log_evidence = float(found[best] - 0.5 * grid[best] ** 2)
        self._scale = b = float(scales[best])
        # a given b: a normal mean, its prior N(a0, A²)
        information = ones @ ones * (level.shift_std / b) ** 2
        moved = (
            level.shift_std
            * (level.shift_std / b)
            * (ones @ (residuals / b - means))
            / (1 + information)
        )
        self._shift = float(level.shift + moved)
        self.level_std = float(level.shift_std / np.sqrt(1 + information))
        self._a = self._whiten(self._whiten((y - self._shift) / b - m), transposed=True)

    def _whiten(self, v: np.ndarray, transposed: bool = False) -> np.ndarray:
        """L^-1 v; without trials there is nothing to solve, and some versions of scipy would not."""
        return solve_triangular(self._L, v, lower=True, trans=int(transposed)) if len(v) else v

    def _log_density(self, white: np.ndarray, ones: np.ndarray, spread: float, b: float) -> float:
        """log p(y | b), a integrated out: K + spread² 11', by the matrix determinant lemma, scaled by b."""
        information = spread**2 * (ones @ ones)
        square = white @ white - spread**2 * (ones @ white) ** 2 / (1 + information)
        log_det = 2 * np.log(np.diag(self._L)).sum() + np.log1p(information)
        return float(-0.5 * (square + log_det + len(white) * (np.log(2 * np.pi) + 2 * np.log(b))))

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the noise-free score; (m, d) -> (m,), (m,)."""
        # Some at a time: what is known of the past is a long row for each, and should stay in the cache.
        blocks = [
            self._predict(theta[start : start + _BLOCK]) for start in range(0, len(theta), _BLOCK)
        ]
        means, stds = zip(*blocks, strict=True) if blocks else ([np.empty(0)], [np.empty(0)])
        return np.concatenate(means), np.concatenate(stds)

    def _predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, variance, k = self._prior.moments(theta, self._theta)
        white = self._whiten(k.T)
        std = np.sqrt(np.maximum(variance - (white * white).sum(axis=0), 1e-12))
        return self._shift + self._scale * (mean + k @ self._a), self._scale * std

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the noise-free score; (m, d) -> (n, m)."""
        joint = self._prior.moments(theta, theta)[2]
        mean, _, k = self._prior.moments(theta, self._theta)
        white = self._whiten(k.T)
        values, vectors = np.linalg.eigh(joint - white.T @ white)
        root = vectors * np.sqrt(np.maximum(values, 0))
        draws = mean + k @ self._a + rng.standard_normal((n, len(theta))) @ root.T
        return self._shift + self._scale * draws
