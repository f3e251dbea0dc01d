"""`Race`: whether a candidate can still become the best, given the folds that were evaluated.

Notation: n folds; s (n,) the fold scores of a candidate, NaN where a fold was not evaluated; b (n,)
those of the incumbent, the best candidate with all folds; k the number of folds seen, and d = s - b
the paired differences on them. All candidates are scored on the same folds, so what makes a fold
easy or hard cancels in d. With differences ~ N(delta, v) and nothing known of delta, the mean of
all n differences given those seen is

    D ~ mean(d) + t(nu) sqrt(v (n - k) / (n k))

with v the variance within the candidate, pooled with that of earlier candidates. The candidate is
stopped when D is unlikely to exceed a small part of the standard error of the incumbent's mean: a
smaller gain says more about the split into folds than about the candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr

MAX_PROBABILITY = 0.1  # of becoming the best, below which a candidate is stopped
MIN_GAIN = 0.2  # that counts as becoming the best, in standard errors of the incumbent's mean
PRIOR_COUNT = 4  # differences that the variance within earlier candidates counts for
MIN_FOR_ORDER = 4  # candidates with all folds from which on the folds are ordered by what they tell


class Race:
    """The fold scores of the candidates that have all folds, and the best of them.

    Parameters
    ----------
    n_test : sequence of int
        Number of test rows of each fold.

    Attributes
    ----------
    incumbent : ndarray of shape (n,) or None
        Fold scores of the best candidate so far.

    Examples
    --------
    >>> race = Race([10, 10, 10, 10, 10])
    >>> race.add(np.array([0.90, 0.80, 0.85, 0.95, 0.90]))
    >>> race.is_lost(np.array([0.30, math.nan, math.nan, math.nan, math.nan]))
    True
    >>> race.is_lost(np.array([0.91, math.nan, math.nan, math.nan, math.nan]))
    False
    """

    def __init__(self, n_test: Sequence[int]):
        # Before anything is known of the folds, the largest tell most.
        self._by_size = np.argsort(-np.asarray(n_test), kind="stable")
        self._known: list[np.ndarray] = []
        self.incumbent: np.ndarray | None = None

    def add(self, scores: np.ndarray) -> None:
        """Add a candidate with all folds, none of them failed."""
        self._known.append(scores)
        if self.incumbent is None or scores.mean() > self.incumbent.mean():
            self.incumbent = scores

    def fold_order(self) -> list[int]:
        """The folds, those first whose scores agree best with the mean of the others."""
        if len(self._known) < MIN_FOR_ORDER:
            return self._by_size.tolist()
        known = np.array(self._known)  # (m, n)
        others = (known.sum(axis=1, keepdims=True) - known) / max(1, known.shape[1] - 1)
        a, b = (each - each.mean(axis=0) for each in (known, others))
        scale = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
        agreement = (a * b).sum(axis=0) / np.where(scale > 0, scale, np.inf)
        return self._by_size[np.argsort(-agreement[self._by_size], kind="stable")].tolist()

    def is_lost(self, scores: np.ndarray) -> bool:
        """Whether a candidate with these fold scores is unlikely to become the best."""
        b, n = self.incumbent, len(scores)
        if b is None or not 0 < (k := int(np.isfinite(scores).sum())) < n:
            return False
        difference, spread = self._predict(scores, b)
        least = MIN_GAIN * float(b.std(ddof=1)) / math.sqrt(n)
        if spread == 0:
            return difference < least
        return float(stdtr(PRIOR_COUNT + k - 1, (difference - least) / spread)) < MAX_PROBABILITY

    def std_error(self, scores: np.ndarray) -> float:
        """Standard deviation of the expected mean score, because of the folds not evaluated."""
        assert self.incumbent is not None
        return self._predict(scores, self.incumbent)[1]

    def _predict(self, scores: np.ndarray, incumbent: np.ndarray) -> tuple[float, float]:
        """Mean and scale of the mean difference D over all folds."""
        is_seen = np.isfinite(scores)
        n, k = len(scores), int(is_seen.sum())
        d = (scores - incumbent)[is_seen]
        within = ((d - d.mean()) ** 2).sum()
        variance = (PRIOR_COUNT * self._usual_variance() + within) / (PRIOR_COUNT + k - 1)
        return float(d.mean()), math.sqrt(variance * (n - k) / (n * k))

    def _usual_variance(self) -> float:
        """Variance of the differences to the incumbent within a candidate.

        That of the half of the candidates whose means are nearest, because bad candidates vary
        more. Without another candidate, folds count as independent.
        """
        b = self.incumbent
        assert b is not None
        d = np.array([each - b for each in self._known if each is not b and (each != b).any()])
        if not len(d):
            return 2 * float(b.var(ddof=1))
        nearest = np.argsort(np.abs(d.mean(axis=1)), kind="stable")[: (len(d) + 1) // 2]
        return float(d[nearest].var(axis=1, ddof=1).mean())
