"""The guard against a misleading past: two beliefs, weighed by how well each foretold the target's scores.

One belief comes from the past, the other from the target's trials alone (the `GP`). Bayesian model
averaging: weight = odds before any trial times the ratio of the evidences. A past that misleads loses its
say within a few trials, and the search goes on as if there had been none.
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.past_trials import Level
from sktransfer.surrogates.base import Posterior

PRIOR_LOG_ODDS = np.log(9.0)  # of the past against the target alone


class GPPrior:
    """A plain GP as a prior, to measure how probable it makes the scores."""

    def __init__(self, gp: GaussianProcess):
        self._gp, self.noise = gp, float(np.exp(gp.h[-1]))

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = np.full(len(theta), np.exp(self._gp.h[-2]))
        return np.zeros(len(theta)), variance, self._gp.prior_covariance(theta, anchors)


class AveragedPosterior(Posterior):
    """The average of two posteriors, matched in mean and variance.

    Attributes
    ----------
    weight : float
        Of the first one, the one that rests on the past.
    """

    def __init__(self, past: Posterior, alone: Posterior, weight: float):
        self._past, self._alone, self.weight = past, alone, weight

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation; (m, d) -> (m,), (m,)."""
        (m1, s1), (m2, s2) = self._past.predict(theta), self._alone.predict(theta)
        w = self.weight
        mean = w * m1 + (1 - w) * m2
        variance = w * (s1**2 + (m1 - mean) ** 2) + (1 - w) * (s2**2 + (m2 - mean) ** 2)
        return mean, np.sqrt(variance)

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws, each from one of the two; (m, d) -> (n, m)."""
        k = int(rng.binomial(n, self.weight))
        draws = [self._past.sample(theta, k, rng), self._alone.sample(theta, n - k, rng)]
        return rng.permutation(np.vstack(draws))


def average_by_evidence(
    past: ConditionedPosterior,
    gp: GaussianProcess,
    theta: np.ndarray,
    y: np.ndarray,
    level: Level,
    prior_log_odds: float = PRIOR_LOG_ODDS,
) -> AveragedPosterior:
    """Weigh what the past believes against a GP on the trials alone, with one guess of the scale for both."""
    if (
        level.shift_std == 0
    ):  # all tasks share one scale, they say; the trials alone need not believe it
        level = Level(level.shift, 3 * float(np.exp(level.log_scale)), level.log_scale, 1.0)
    alone = ConditionedPosterior(GPPrior(gp), theta, y, level)
    return average_posteriors(past, alone, past.log_evidence - alone.log_evidence, prior_log_odds)


def average_posteriors(
    past: Posterior, alone: Posterior, log_ratio: float, prior_log_odds: float = PRIOR_LOG_ODDS
) -> AveragedPosterior:
    """The average of two beliefs on one scale, given the log ratio of their evidences."""
    log_odds = np.clip(prior_log_odds + log_ratio, -50, 50)
    return AveragedPosterior(past, alone, float(1 / (1 + np.exp(-log_odds))))
