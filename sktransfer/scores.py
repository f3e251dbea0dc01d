"""Scores of different tasks made comparable.

Notation: z the scores of one task, shape (n,), to be maximised, NaN where a trial failed.
"""

from __future__ import annotations

import numpy as np


def fill_failures(z: np.ndarray) -> np.ndarray:
    """Give failed trials the worst score seen, so that a model learns to stay away.

    If nothing has succeeded yet there is no scale: failures count -1 against a prior mean of 0.
    """
    z = np.asarray(z, dtype=float)
    ok = np.isfinite(z)
    return np.where(ok, z, z[ok].min() if ok.any() else -1.0)


def standardise(z: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Zero mean and unit variance, with the mean and the scale (Yogatama & Mann, section 3.1).

    A standard deviation of zero (one trial, or all equal) counts as 1. Failed trials neither count in
    the mean nor in the scale; see `fill_failures` for what becomes of them.

    >>> standardise(np.array([1.0, 2.0, 3.0]))[1:]
    (2.0, 0.816496580927726)
    >>> standardise(np.array([5.0]))
    (array([0.]), 5.0, 1.0)
    """
    z = np.asarray(z, dtype=float)
    ok = z[np.isfinite(z)]
    if not len(ok):
        return fill_failures(z), 0.0, 1.0
    mean = float(ok.mean())
    # Scores that differ in the last bits only are equal: dividing by rounding errors would invent a scale.
    spread = float(ok.std())
    scale = spread if spread > 1e-12 * max(1.0, abs(mean)) else 1.0
    return (fill_failures(z) - mean) / scale, mean, scale
