"""Acquisition functions: how much a trial promises.

Notation: mean and std of the score, (n,); best the score to beat;  v = (mean - best) / std.
EI = std h(v),  h(v) = v Phi(v) + phi(v)  (some papers misprint the deviation as a variance). Where the
incumbent is far ahead, h underflows although its logarithm is harmless, and a maximizer on a plateau of
zeros is no better than random search; hence log h.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from sktransfer.surrogates import Posterior

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
    out[middle] = -0.5 * x * x - _LOG_SQRT_2PI + np.log1p(x * np.sqrt(np.pi / 2) * erfcx(-x / np.sqrt(2)))
    x = v[far]
    out[far] = log_ndtr(x) - np.log(-x)  # h ~ phi / v², Phi ~ phi / |v|
    return out


def lower_confidence_bound(mean: np.ndarray, std: np.ndarray, kappa: float = 1.0) -> np.ndarray:
    """mean - kappa std; (n,), (n,) -> (n,).

    For the first trial: nothing was observed, so there is no score to improve on, and the bound takes
    what past tasks agree on.

    >>> lower_confidence_bound(np.array([1.0, 0.9]), np.array([0.5, 0.1])).tolist()
    [0.5, 0.8]
    """
    return mean - kappa * std


def thompson_sample(posterior: Posterior, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One joint draw of the scores of some configurations; (n, d) -> (n,)."""
    return posterior.sample(theta, 1, rng)[0]
