"""Bayesian model averaging as a guard against misleading past tasks.

One model learns from past tasks, the other is a plain `GP` on the target's trials. The odds of the
first are its prior odds times the ratio of the evidences of the target's scores. If past tasks
mislead, their weight vanishes within a few trials, and the search continues as if there were none.

The plain GP's hyperparameters are fitted to the very scores that it is judged by. So its evidence
is the joint density of scores and hyperparameters, relative to the priors' medians: a fit that is
far from the medians loses by the prior what it gains by the likelihood.
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.gaussian_process import GaussianProcess, GPPrior
from sktransfer.surrogates._core.past_trials import Level
from sktransfer.surrogates.base import Posterior
from sktransfer.surrogates.gp import default_priors

PRIOR_LOG_ODDS = np.log(9.0)  # of the model with past tasks
_MAX_LOG_ODDS = 50.0


class AveragedPosterior(Posterior):
    """Weighted average of two posteriors, matched in mean and variance.

    Parameters
    ----------
    transfer : Posterior
        The one that learns from past tasks.
    plain : Posterior
        The one that does not.
    weight : float
        Weight of `transfer`.
    """

    def __init__(self, transfer: Posterior, plain: Posterior, weight: float):
        self._transfer, self._plain, self.weight = transfer, plain, weight

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation; (m, d) -> (m,), (m,)."""
        (m1, s1), (m2, s2) = self._transfer.predict(theta), self._plain.predict(theta)
        w = self.weight
        mean = w * m1 + (1 - w) * m2
        variance = w * (s1**2 + (m1 - mean) ** 2) + (1 - w) * (s2**2 + (m2 - mean) ** 2)
        return mean, np.sqrt(variance)

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws, each from one of the two; (m, d) -> (n, m)."""
        k = int(rng.binomial(n, self.weight))
        draws = [self._transfer.sample(theta, k, rng), self._plain.sample(theta, n - k, rng)]
        return rng.permutation(np.vstack(draws))


def average_by_evidence(
    transfer: ConditionedPosterior,
    gp: GaussianProcess,
    theta: np.ndarray,
    y: np.ndarray,
    level: Level,
    prior_log_odds: float = PRIOR_LOG_ODDS,
    std_error: np.ndarray | None = None,
) -> AveragedPosterior:
    """Average with a plain GP by the evidences of the scores under one prior of their scale."""
    if (
        level.shift_std == 0
    ):  # tasks are assumed to share one scale; the plain GP does not assume it
        level = Level(level.shift, 3 * float(np.exp(level.log_scale)), level.log_scale, 1.0)
    plain = ConditionedPosterior(GPPrior(gp), theta, y, level, std_error)
    log_ratio = transfer.log_evidence - plain.log_evidence - log_prior(gp)
    return average_posteriors(transfer, plain, log_ratio, prior_log_odds)


def log_prior(gp: GaussianProcess) -> float:
    """Log prior density of a plain GP's hyperparameters; 0 at the medians, below it elsewhere."""
    return float(default_priors(gp.X.shape[1]).log_density(gp.h))


def plain_evidence(
    gp: GaussianProcess,
    theta: np.ndarray,
    y: np.ndarray,
    level: Level,
    std_error: np.ndarray | None = None,
) -> float:
    """Log evidence of scores whose level is unknown under a plain GP that was fitted to them."""
    plain = ConditionedPosterior(GPPrior(gp), theta, y, level, std_error)
    return plain.log_evidence + log_prior(gp)


def average_posteriors(
    transfer: Posterior, plain: Posterior, log_ratio: float, prior_log_odds: float = PRIOR_LOG_ODDS
) -> AveragedPosterior:
    """Average of two posteriors on one scale, given the log ratio of their evidences."""
    log_odds = np.clip(prior_log_odds + log_ratio, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    return AveragedPosterior(transfer, plain, float(1 / (1 + np.exp(-log_odds))))
