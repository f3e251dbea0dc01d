"""Transform the scores of different tasks to comparable scales.

Notation: z the scores of one task, shape (n,), to be maximized, NaN where a trial failed.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri


def standardize(z: np.ndarray, *, winsorize: bool = False) -> tuple[np.ndarray, float, float]:
    """Scale to zero mean and unit variance; return the mean and the scale too.

    See Yogatama & Mann 2014, section 3.2. A standard deviation of zero (one trial, or equal scores)
    counts as 1. Failed trials affect neither the mean nor the scale. They are placed one standard
    deviation below the worst success, so that a model learns to avoid them even where all
    successes are equal.

    Parameters
    ----------
    z : ndarray of shape (n,)
    winsorize : bool
        Whether scores far below the median are raised first, by `clip_low_outliers`.

    Returns
    -------
    standard : ndarray of shape (n,)
    mean, scale : float
        ``z = mean + scale * standard`` where z is finite and was not raised.

    Examples
    --------
    >>> standardize(np.array([1.0, 2.0, 3.0]))[1:]
    (2.0, 0.816496580927726)
    >>> standardize(np.array([5.0, np.nan]))
    (array([ 0., -1.]), 5.0, 1.0)
    """
    z = clip_low_outliers(z) if winsorize else np.asarray(z, dtype=float)
    ok = np.isfinite(z)
    if not ok.any():
        return np.full(len(z), -1.0), 0.0, 1.0
    mean, spread = float(z[ok].mean()), float(z[ok].std())
    # Scores that differ in the last bits only are equal: their scale would be a rounding error.
    are_equal = spread <= max(1e-12 * abs(mean), 1e-300)
    scale = 1.0 if are_equal else spread
    standard = np.zeros(len(z)) if are_equal else (z - mean) / scale
    return np.where(ok, standard, standard[ok].min() - 1), mean, scale


def clip_low_outliers(z: np.ndarray, reach: float = 2.0) -> np.ndarray:
    """Raise scores far below the median.

    The lowest score allowed lies `reach` times the distance between the best score and the median
    below the median. It does not matter how bad the bad scores are, but on their scale the
    differences between the good ones vanish.

    >>> clip_low_outliers(np.array([0.1, 0.80, 0.81, 0.82, 0.83])).round(2).tolist()
    [0.77, 0.8, 0.81, 0.82, 0.83]
    """
    z = np.asarray(z, dtype=float)
    ok = z[np.isfinite(z)]
    if not len(ok) or ok.max() == np.median(ok):
        return z  # at least half of the scores are the best one: there is no distance to measure by
    median = np.median(ok)
    return np.maximum(z, median - reach * (ok.max() - median))  # NaN stays NaN


def impute_failures(z: np.ndarray, usual: float = 1.0, *, winsorize: bool = True) -> np.ndarray:
    """Place failures one standard deviation below the worst success.

    If all successes are equal, `usual` is used in place of their standard deviation. With
    `winsorize` low outliers are raised first (`clip_low_outliers`).

    >>> impute_failures(np.array([0.2, 0.4, np.nan])).round(2).tolist()
    [0.2, 0.4, 0.1]
    >>> impute_failures(np.array([0.2, np.nan]), usual=0.05).round(2).tolist()
    [0.2, 0.15]
    """
    clipped = clip_low_outliers(z) if winsorize else np.asarray(z, dtype=float)
    standard, shift, scale = standardize(clipped)
    ok = np.isfinite(clipped)
    if ok.any() and np.ptp(standard[ok]) < 1e-6:
        scale = usual
    return np.where(ok, clipped, shift + scale * standard)


def normal_scores(z: np.ndarray, *, rank_errors: bool = False) -> np.ndarray:
    """Map scores to quantiles of the normal distribution (Salinas et al. 2020, section 3).

    The result is Phi^-1(F(z)), where F(z) is the share of trials with a score of at most z, so
    tied scores get one value. F is clipped to [delta, 1 - delta] with ``delta = 1 / (4 n^(1/4)
    sqrt(pi log n))``. Failed trials are tied below the worst success. If all scores are equal, or
    there is only one, the ranks carry no information and all results are 0.

    The paper ranks errors, -z. With `rank_errors` the result is -Phi^-1(F(-z)). The two differ by
    up to one rank: the best trial has 1 - delta, or 1 - 1/n if that is less.

    >>> normal_scores(np.array([0.3, 0.1, 0.2])).round(2).tolist()
    [1.27, -0.43, 0.43]
    >>> normal_scores(np.array([0.9])).tolist()
    [0.0]
    >>> normal_scores(np.array([0.3, 0.1, 0.2]), rank_errors=True).round(2).tolist()
    [0.43, -1.27, -0.43]
    """
    z = np.where(np.isfinite(z), np.asarray(z, dtype=float), -np.inf)
    if rank_errors:
        return -_normal_quantiles(-z)
    return _normal_quantiles(z)


def _normal_quantiles(z: np.ndarray) -> np.ndarray:
    n = len(z)
    if n == 0 or (z == z[0]).all():
        return np.zeros(n)
    share = np.searchsorted(np.sort(z), z, side="right") / n
    delta = 1 / (4 * n**0.25 * np.sqrt(np.pi * np.log(n)))
    return ndtri(np.clip(share, delta, 1 - delta))
