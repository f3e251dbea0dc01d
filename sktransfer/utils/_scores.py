"""Scores of different tasks made comparable.

Notation: z the scores of one task, shape (n,), to be maximized, NaN where a trial failed.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri


def standardize(z: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Zero mean and unit variance, with the mean and the scale (Yogatama & Mann, section 3.1).

    A standard deviation of zero (one trial, or all equal) counts as 1. Failed trials count neither in
    the mean nor in the scale; they come out one standard deviation below the worst success, so that a
    model learns to stay away from them even where all successes are alike.

    >>> standardize(np.array([1.0, 2.0, 3.0]))[1:]
    (2.0, 0.816496580927726)
    >>> standardize(np.array([5.0, np.nan]))
    (array([ 0., -1.]), 5.0, 1.0)
    """
    z = np.asarray(z, dtype=float)
    ok = np.isfinite(z)
    if not ok.any():
        return np.full(len(z), -1.0), 0.0, 1.0
    mean, spread = float(z[ok].mean()), float(z[ok].std())
    # Scores that differ in the last bits only are equal: dividing by rounding errors would invent a scale.
    alike = spread <= max(1e-12 * abs(mean), 1e-300)
    scale = 1.0 if alike else spread
    standard = np.zeros(len(z)) if alike else (z - mean) / scale
    return np.where(ok, standard, standard[ok].min() - 1), mean, scale


def clip_low_outliers(z: np.ndarray, reach: float = 2.0) -> np.ndarray:
    """Pull scores far below the median up, to `reach` times the distance of the best from the median.

    How bad the bad ones are is of no interest, but on their scale the differences at the top vanish.

    >>> clip_low_outliers(np.array([0.1, 0.80, 0.81, 0.82, 0.83])).round(2).tolist()
    [0.77, 0.8, 0.81, 0.82, 0.83]
    """
    z = np.asarray(z, dtype=float)
    ok = z[np.isfinite(z)]
    if not len(ok) or ok.max() == np.median(ok):
        return z  # half of them are the best: there is nothing to measure "far" by
    median = np.median(ok)
    return np.maximum(z, median - reach * (ok.max() - median))  # NaN stays NaN


def impute_failures(z: np.ndarray, usual: float = 1.0) -> np.ndarray:
    """Scores with their floor raised, and failed trials one standard deviation below the worst success.

    Where all successes are alike they have no such scale: `usual` is the deviation then.

    >>> impute_failures(np.array([0.2, 0.4, np.nan])).round(2).tolist()
    [0.2, 0.4, 0.1]
    >>> impute_failures(np.array([0.2, np.nan]), usual=0.05).round(2).tolist()
    [0.2, 0.15]
    """
    raised = clip_low_outliers(z)
    standard, shift, scale = standardize(raised)
    ok = np.isfinite(raised)
    if ok.any() and np.ptp(standard[ok]) < 1e-6:
        scale = usual
    return np.where(ok, raised, shift + scale * standard)


def normal_scores(z: np.ndarray) -> np.ndarray:
    """Normal scores: Phi^-1 of the empirical distribution (Salinas et al. 2020, section 4.1).

    F(z) is the share of trials that are no better, so ties have one value; it is clipped to
    [delta, 1 - delta], ``delta = 1 / (4 n^(1/4) sqrt(pi log n))``. Failed trials are tied below the worst
    success. Where all are alike, one trial among them, nothing is known of their rank: all are 0, the middle.

    >>> normal_scores(np.array([0.3, 0.1, 0.2])).round(2).tolist()
    [1.27, -0.43, 0.43]
    >>> normal_scores(np.array([0.9])).tolist()
    [0.0]
    """
    z = np.where(np.isfinite(z), np.asarray(z, dtype=float), -np.inf)
    n = len(z)
    if n == 0 or (z == z[0]).all():
        return np.zeros(n)
    share = np.searchsorted(np.sort(z), z, side="right") / n
    delta = 1 / (4 * n**0.25 * np.sqrt(np.pi * np.log(n)))
    return ndtri(np.clip(share, delta, 1 - delta))
