"""Expected improvement, in logarithms, for maximisation.

Notation: mean and std of the score, (n,); best the score to beat;  v = (mean - best) / std.
EI = std h(v),  h(v) = v Phi(v) + phi(v)  (some papers misprint the deviation as a variance). Where the
incumbent is far ahead h underflows although its logarithm is harmless, and a maximiser lost on a plateau
of zeros is no better than random; hence log h.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

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
