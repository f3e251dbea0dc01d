"""`ConditionedPosterior`: a prior from past tasks, conditioned on the target's trials.

Notation: the prior is a Gaussian process on the comparable scale with mean m(theta), covariance
S(theta, theta') and noise variance v. The scores y of the target's n trials have a scale of their
own,

    y = a + b (f(theta) + e),   f ~ GP(m, S),   e ~ N(0, v),   a ~ N(a0, A²),   log b ~ N(b0, B²),

with (a0, A, b0, B) from the past tasks. Some trials have a noise variance beyond v. b is the most
probable value of a grid, with a integrated out. Then a is normal given b, with variance A² / (1 +
A² 1'K⁻¹1 / b²), K the covariance of the trials with their noise. Its uncertainty is part of that of
a score: the score at theta changes with a by 1 - k'K⁻¹1, k the covariances with the trials. That is
0 at a trial and 1 far from all of them.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sktransfer.surrogates._core.defaults import PRIOR_JITTER
from sktransfer.surrogates._core.gaussian_process import whiten
from sktransfer.surrogates._core.past_trials import Level
from sktransfer.surrogates.base import Posterior

_GRID = np.linspace(-3, 3, 25)  # of log b, in standard deviations
_BLOCK = 256  # configurations predicted at once
_MIN_VARIANCE = 1e-12


class Prior(Protocol):
    """A prior of the target's scores on the comparable scale."""

    noise: float

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, variances, and covariances with the anchors.

        (n, d), (k, d) -> (n,), (n,), (n, k)
        """


class ConditionedPosterior(Posterior):
    """Posterior of the target's scores.

    Parameters
    ----------
    prior : Prior
    theta, y : ndarray of shape (n, d) and (n,)
        The target's trials, all finite; n may be 0.
    level : Level
    std_error : ndarray of shape (n,) or None
        Standard errors of y beyond the noise of all trials.

    Attributes
    ----------
    log_evidence : float
        Log probability of the target's scores under the prior.
    shift, scale : float
        The a and b that turn comparable scores into the target's.
    level_std : float
        Standard deviation of a before the first trial, 0 afterwards. `predict` leaves it out,
        because it is the same for all configurations. With trials it is not, and `predict` includes
        it.
    """

    def __init__(
        self,
        prior: Prior,
        theta: np.ndarray,
        y: np.ndarray,
        level: Level,
        std_error: np.ndarray | None = None,
    ):
        self._prior, self._theta = prior, theta
        m, _, S = prior.moments(theta, theta)
        # In units of the usual b, so that one factor serves all values of the grid.
        extra = 0.0 if std_error is None else (std_error / np.exp(level.log_scale)) ** 2
        self._L = np.linalg.cholesky(S + (prior.noise + PRIOR_JITTER + extra) * np.eye(len(y)))
        columns = (np.ones(len(y)), m, y - level.shift)
        ones, means, residuals = (whiten(self._L, v) for v in columns)
        grid = _GRID if level.log_scale_std and len(y) else np.zeros(1)
        scales = np.exp(level.log_scale + level.log_scale_std * grid)
        found = self._log_densities(residuals, means, ones, level.shift_std, scales)
        best = int(np.argmax(found - 0.5 * grid * grid))
        self.log_evidence = float(found[best] - 0.5 * grid[best] ** 2)
        self.scale = b = float(scales[best])
        # a given b: a normal mean with the prior N(a0, A²)
        spread = level.shift_std / b
        information = ones @ ones * spread**2
        moved = level.shift_std * spread * (ones @ (residuals / b - means)) / (1 + information)
        self.shift = float(level.shift + moved)
        shift_std = float(level.shift_std / np.sqrt(1 + information))
        self.level_std = 0.0 if len(y) else shift_std
        self._ones, self._shift_std = ones, shift_std / b if len(y) else 0.0
        self._a = whiten(self._L, whiten(self._L, (y - self.shift) / b - m), transposed=True)

    def _log_densities(
        self,
        residuals: np.ndarray,
        means: np.ndarray,
        ones: np.ndarray,
        shift_std: float,
        b: np.ndarray,
    ) -> np.ndarray:
        """log p(y | b) for several b, a integrated out; (n,), (n,), (n,), (G,) -> (G,).

        The covariance is K + (shift_std / b)² 11', by the matrix determinant lemma.
        """
        white = residuals[:, None] / b - means[:, None]
        spread = (shift_std / b) ** 2
        information = spread * (ones @ ones)
        square = (white * white).sum(axis=0) - spread * (ones @ white) ** 2 / (1 + information)
        log_det = 2 * np.log(np.diag(self._L)).sum() + np.log1p(information)
        densities = square + log_det + len(white) * (np.log(2 * np.pi) + 2 * np.log(b))
        return np.asarray(-0.5 * densities)

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the noise-free score; (m, d) -> (m,), (m,)."""
        # In blocks: the covariances with many past trials should stay in the processor's cache.
        starts = range(0, len(theta), _BLOCK)
        blocks = [self._predict(theta[start : start + _BLOCK]) for start in starts]
        means, stds = zip(*blocks, strict=True) if blocks else ([np.empty(0)], [np.empty(0)])
        return np.concatenate(means), np.concatenate(stds)

    def _predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, variance, k = self._prior.moments(theta, self._theta)
        white = whiten(self._L, k.T)
        variance = variance - (white * white).sum(axis=0) + self._effect_of_level(white) ** 2
        std = np.sqrt(np.maximum(variance, _MIN_VARIANCE))
        return self.shift + self.scale * (mean + k @ self._a), self.scale * std

    def _effect_of_level(self, white: np.ndarray) -> np.ndarray:
        """(1 - k'K⁻¹1) std(a) / b, given L⁻¹ k; (n, m) -> (m,)."""
        return self._shift_std * (1 - self._ones @ white)

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the noise-free score; (m, d) -> (n, m)."""
        joint = self._prior.moments(theta, theta)[2]
        mean, _, k = self._prior.moments(theta, self._theta)
        white = whiten(self._L, k.T)
        level = self._effect_of_level(white)
        values, vectors = np.linalg.eigh(joint - white.T @ white + np.outer(level, level))
        root = vectors * np.sqrt(np.maximum(values, 0))
        draws = mean + k @ self._a + rng.standard_normal((n, len(theta))) @ root.T
        return self.shift + self.scale * draws
