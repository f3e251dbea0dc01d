"""Acquisition: how much a trial promises, and which configurations promise most.

Notation: mean and std of the score, (n,); best the score to beat;  v = (mean - best) / std. EI =
std h(v),  h(v) = v Phi(v) + phi(v)  (some papers misprint the deviation as a variance). Where the
incumbent is far ahead, h underflows although its logarithm is harmless, and a maximizer on a
plateau of zeros is no better than random search; hence log h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from sktransfer.optimizer._maximize import maximize, sample
from sktransfer.space import Space
from sktransfer.surrogates import EncodedTask, Posterior, SearchHints

MIN_BATCH_DISTANCE = 0.02  # in widths of the space, between configurations of one batch
N_THOMPSON = 1024  # configurations that a posterior draw chooses from
_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


def log_expected_improvement(mean: np.ndarray, std: np.ndarray, best: float) -> np.ndarray:
    """Logarithm of the expected improvement over `best`; (n,), (n,) -> (n,).

    >>> log_ei = log_expected_improvement(np.array([0.0]), np.array([1.0]), 0.0)
    >>> bool(np.isclose(np.exp(log_ei[0]), 1 / np.sqrt(2 * np.pi)))
    True
    """
    return np.log(std) + _log_h((mean - best) / std)


def _log_h(v: np.ndarray) -> np.ndarray:
    v = np.asarray(v, dtype=float)
    out = np.empty_like(v)
    near, far = v > -1, v <= -1e5
    middle = ~near & ~far
    x = v[near]
    out[near] = np.log(x * ndtr(x) + np.exp(-0.5 * x * x - _LOG_SQRT_2PI))
    x = v[middle]
    # h = phi(v) (1 + v Phi(v)/phi(v)), and Phi/phi = sqrt(pi/2) erfcx(-v/sqrt 2)
    out[middle] = (
        -0.5 * x * x - _LOG_SQRT_2PI + np.log1p(x * np.sqrt(np.pi / 2) * erfcx(-x / np.sqrt(2)))
    )
    x = v[far]
    out[far] = log_ndtr(x) - np.log(-x)  # h ~ phi / v², Phi ~ phi / |v|
    return out


def lower_confidence_bound(mean: np.ndarray, std: np.ndarray, kappa: float = 1.0) -> np.ndarray:
    """mean - kappa std; (n,), (n,) -> (n,).

    For the first trial: nothing was observed, so there is no score to improve on, and the bound
    takes what past tasks agree on.

    >>> lower_confidence_bound(np.array([1.0, 0.9]), np.array([0.5, 0.1])).tolist()
    [0.5, 0.8]
    """
    return mean - kappa * std


def thompson_sample(
    posterior: Posterior, theta: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """One joint draw of the scores of some configurations; (n, d) -> (n,)."""
    return posterior.sample(theta, 1, rng)[0]


class AcquisitionModel:
    """A posterior, the value to beat, and how the surrogate wants the space to be searched.

    Parameters
    ----------
    posterior : Posterior
    target : EncodedTask
        The trials that the posterior has seen, pending ones included.
    hints : SearchHints
    avoid : sequence of ndarray of shape (d,)
        Codes of the same batch. Configurations next to them are proposed last.
    """

    def __init__(
        self,
        posterior: Posterior,
        target: EncodedTask,
        hints: SearchHints,
        avoid: Sequence[np.ndarray] = (),
    ):
        self._posterior, self._hints, self._avoid = posterior, hints, avoid
        self._categorical = target.categorical
        self.best = posterior.incumbent(target.z)

    def predict(self, code: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of one score, that of the common level included; (1, d).

        NaN if the unit of the scores is not known yet.
        """
        if not self._posterior.has_unit:
            return math.nan, math.nan
        [mean], [std] = self.predict_scores(code)
        return float(mean), math.hypot(std, self._posterior.level_std)

    def predict_scores(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation on the scale of the scores; (n, d) -> (n,), (n,)."""
        return self._posterior.to_scores(*self._posterior.predict(codes))

    def rank(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Indices of codes in the order in which they should be tried; (n, d) -> (k,), k <= n."""
        chosen = np.arange(len(codes))
        if self._hints.thompson and len(codes) > N_THOMPSON:  # a joint draw of very many is slow
            chosen = np.sort(rng.choice(len(codes), N_THOMPSON, replace=False))
        if self._hints.thompson:
            values = thompson_sample(self._posterior, codes[chosen], rng)
        else:
            values = self.evaluate(codes[chosen])
        # Codes outside of the region come last: they are proposed when the region is exhausted.
        region = self._hints.region
        outside = np.zeros(len(chosen)) if region is None else ~region.contains(codes[chosen])
        return chosen[np.lexsort((-values, outside))]

    def candidates(self, space: Space, near: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Codes to try, best first, given codes worth searching around; (m, d) -> (k, d)."""
        if self._hints.thompson:
            codes = sample(space, rng, N_THOMPSON, self._hints.region)
            return codes[self.rank(codes, rng)[:64]]
        return maximize(self.evaluate, space, rng, near=near, region=self._hints.region)

    def evaluate(self, theta: np.ndarray) -> np.ndarray:
        """Acquisition; (n, d) -> (n,)."""
        mean, std = self._posterior.predict(theta)
        if self.best is None:
            value = lower_confidence_bound(mean, std)
        else:
            value = log_expected_improvement(mean, std, self.best)
        return value - 1e9 * self._is_in_batch(theta)  # if nothing else is left, their order stays

    def _is_in_batch(self, theta: np.ndarray) -> np.ndarray:
        """Whether nearly the same configuration is in the batch; (n, d) -> (n,), bool.

        Taking pending trials as predicted keeps a nearly noise-free model from the very same
        configuration, but not from its neighbors, and a batch of near copies wastes trials.
        """
        found = np.zeros(len(theta), dtype=bool)
        # The more configurations there are, the less room each takes.
        radius = min(MIN_BATCH_DISTANCE, 0.2 / max(len(self._avoid), 1))
        for code in self._avoid:
            distance = np.where(self._categorical, theta != code, np.abs(theta - code))
            found |= (distance < radius).all(axis=1)
        return found
