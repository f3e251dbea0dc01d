"""`Race`: whether a candidate can still become the best, given the folds that were evaluated.

Notation: n folds; s (n,) the fold scores of a candidate, NaN where a fold was not evaluated; b (n,)
those of the incumbent, the best candidate with all folds; k the number of folds seen, and d = s - b
the paired differences on them. All candidates are scored on the same folds, so what makes a fold
easy or hard cancels in d. Three things are known of the mean D of all n differences:

* The folds seen. With differences ~ N(delta, v) and nothing known of delta,
  D ~ mean(d) + t(nu) w with w^2 = v (n - k) / (n k), where v is the variance within the candidate,
  pooled with that of earlier candidates.
* What the surrogate predicted before the first fold, D ~ N(m, p^2). Both are combined as normal
  ones are (Gelman et al., Bayesian Data Analysis, 3rd ed., equation 2.11): precisions add up, and
  the mean is the one weighted by them. A prediction that is lower than mean(d) by more than both
  variances explain was too sure: p^2 is then (mean(d) - m)^2 - w^2, its most likely value.
* Equal scores. Many configurations give the same model, such as trees that are deeper than the data
  allow. If c of the complete candidates repeat the scores of another one on these folds, and a of
  them do so on all folds, a candidate that does so now is the same model with probability
  (a + 1) / (c + 2), Laplace's rule of succession. Then it is no better.

The candidate is stopped when the probability that D > 0 falls below MAX_PROBABILITY.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

MAX_PROBABILITY = 0.05  # of becoming the best, below which a candidate is stopped
PRIOR_COUNT = 4  # differences that the variance within earlier candidates counts for
MIN_FOR_ORDER = 4  # candidates with all folds from which on the folds are ordered by what they tell


class Prediction(NamedTuple):
    """The mean score that a surrogate predicts for a candidate; NaN without a model."""

    mean: float = math.nan
    std: float = math.nan

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.mean) and math.isfinite(self.std) and self.std > 0


NO_PREDICTION = Prediction()


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

    def is_lost(self, scores: np.ndarray, predicted: Prediction = NO_PREDICTION) -> bool:
        """Whether a candidate with these fold scores is unlikely to become the best."""
        k = int(np.isfinite(scores).sum())
        if self.incumbent is None or not 0 < k < len(scores):
            return False
        return self.probability(scores, predicted) < MAX_PROBABILITY

    def probability(self, scores: np.ndarray, predicted: Prediction = NO_PREDICTION) -> float:
        """Probability of becoming better than the incumbent, which there must be."""
        assert self.incumbent is not None
        difference, spread = self._predict(scores, self.incumbent)
        if predicted.is_known and spread > 0:
            prior, variance = predicted.mean - self.incumbent.mean(), predicted.std**2
            if difference > prior:
                variance = max(variance, (difference - prior) ** 2 - spread**2)
            precisions = np.array([spread**-2, 1 / variance])
            difference = float(precisions @ [difference, prior] / precisions.sum())
            spread = float(precisions.sum() ** -0.5)
        if spread == 0:
            return float(difference > 0)
        n_seen = np.isfinite(scores).sum()
        better = float(stdtr(PRIOR_COUNT + n_seen - 1, difference / spread))
        return better * (1 - self._repeat_probability(scores))

    def _repeat_probability(self, scores: np.ndarray) -> float:
        """Probability that a candidate has the same scores as a complete one on all folds."""
        is_seen, known = np.isfinite(scores), np.array(self._known)
        on_seen = known[:, is_seen]
        if not (on_seen == scores[is_seen]).all(axis=1).any():
            return 0.0
        n_repeated, n_repeated_on_seen = (
            len(known) - len(np.unique(each, axis=0)) for each in (known, on_seen)
        )
        return (n_repeated + 1) / (n_repeated_on_seen + 2)

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
