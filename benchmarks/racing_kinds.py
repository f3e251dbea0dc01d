"""Rules that stop candidates, other than that of the package, for `benchmarks.racing_rules`.

A `Rule` names its parts, and `RuleRace` is a `Race` that follows it. Notation as in
`sktransfer.model_selection._racing`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr
from scipy.stats import t as student

from sktransfer.model_selection._racing import (
    NO_PREDICTION,
    PRIOR_COUNT,
    Prediction,
    Race,
)

MIN_FOR_PRIOR = 3  # earlier candidates that a prior is made of


class Rule(NamedTuple):
    """What a candidate is stopped by.

    Parameters
    ----------
    limit : float
        Of the probability, or of the expected improvement, below which a candidate is stopped.
    last_limit : float or None
        Limit for the last candidate, if it differs. The limits between are in geometric steps.
    gain : float
        In standard errors of the incumbent's mean, that counts as becoming better.
    fold_levels : bool
        Whether a fold's level is the mean over the better half of the complete candidates (a
        two-way model of candidates and folds), instead of the incumbent's score.
    prior : {"none", "candidates", "surrogate"}
        What is known of a candidate before its first fold.
    is_forgiving : bool
        Whether a prior that is too low for the folds seen counts as less sure than it says.
    knows_repeats : bool
        Whether equal scores on the folds seen tell of equal scores on all.
    is_improvement : bool
        Whether the limit is one of the expected improvement, in units of the root mean squared
        distance of the earlier candidates to the incumbent.
    resume_above : float or None
        If given, stopped candidates whose probability is above this at the end of the search are
        continued, the most probable one first.
    """

    limit: float
    last_limit: float | None = None
    gain: float = 0.0
    fold_levels: bool = False
    prior: str = "none"
    is_forgiving: bool = False
    knows_repeats: bool = True
    is_improvement: bool = False
    resume_above: float | None = None


class RuleRace(Race):
    """A race that follows a rule.

    Attributes
    ----------
    expected : list of float
        Expected means of the candidates so far.
    """

    def __init__(self, n_folds: int, rule: Rule):
        super().__init__([1] * n_folds)
        self.rule, self.expected = rule, list[float]()
        self._behind: list[float] = []

    def end(self, scores: np.ndarray, incumbent_before: float) -> None:
        """Note the expected mean of a candidate that is complete or stopped."""
        assert self.incumbent is not None
        is_whole = bool(np.isfinite(scores).all())
        difference = 0.0 if is_whole else self._difference(scores)[0]
        self.expected.append(scores.mean() if is_whole else self.incumbent.mean() + difference)
        if math.isfinite(incumbent_before):
            self._behind.append(self.expected[-1] - incumbent_before)

    def probability(self, scores: np.ndarray, predicted: Prediction = NO_PREDICTION) -> float:
        """Probability of becoming better, or the expected improvement."""
        assert self.incumbent is not None
        rule, b = self.rule, self.incumbent
        mean, spread = self._difference(scores)
        prior = self._prior(predicted)
        if prior.is_known and spread > 0:
            start, variance = prior.mean - b.mean(), prior.std**2
            if mean > start and rule.is_forgiving:
                variance = max(variance, (mean - start) ** 2 - spread**2)
            weights = np.array([spread**-2, 1 / variance])
            mean = float(weights @ [mean, start] / weights.sum())
            spread = float(weights.sum() ** -0.5)
        mean -= rule.gain * float(b.std(ddof=1)) / math.sqrt(len(b))
        n_seen = int(np.isfinite(scores).sum())
        if rule.is_improvement:
            value = _expected_improvement(mean, spread, PRIOR_COUNT + n_seen - 1) / self._unit()
        elif spread == 0:
            value = float(mean > 0)
        else:
            value = float(stdtr(PRIOR_COUNT + n_seen - 1, mean / spread))
        return value * (1 - self._repeat_probability(scores)) if rule.knows_repeats else value

    def _prior(self, predicted: Prediction) -> Prediction:
        if self.rule.prior == "surrogate":
            return predicted
        if self.rule.prior == "none" or len(self._behind) < MIN_FOR_PRIOR:
            return NO_PREDICTION
        assert self.incumbent is not None
        mean = float(self.incumbent.mean() + np.mean(self._behind))
        return Prediction(mean, 2 * float(np.std(self._behind)))

    def _unit(self) -> float:
        assert self.incumbent is not None
        behind = self.incumbent.mean() - np.array(self.expected)
        return max(math.sqrt(np.mean(behind**2)), 1e-12)

    def _difference(self, scores: np.ndarray) -> tuple[float, float]:
        """Mean and scale of D."""
        assert self.incumbent is not None
        if not self.rule.fold_levels or len(self._known) < MIN_FOR_PRIOR:
            return self._predict(scores, self.incumbent)
        known, best = np.array(self._known), self.incumbent.mean()
        gaps = best - known.mean(axis=1)
        near = known[gaps <= np.median(gaps)]
        near = near - near.mean(axis=1, keepdims=True)  # (q, n)
        levels, (q, n) = near.mean(axis=0), near.shape
        usual = float(((near - levels) ** 2).sum()) / (n - 1) / max(q - 1, 1) * (1 + 1 / q)
        own = (scores - levels)[np.isfinite(scores)]
        k, within = len(own), float(((own - own.mean()) ** 2).sum())
        usual = usual or self._usual_variance()
        variance = (PRIOR_COUNT * usual + within) / (PRIOR_COUNT + k - 1)
        return float(own.mean() - best), math.sqrt(variance * (n - k) / (n * k))


def _expected_improvement(mean: float, spread: float, n_degrees: int) -> float:
    """E[max(mean + spread t, 0)] (Tracey and Wolpert, 2018, equation 12)."""
    if spread == 0:
        return max(mean, 0.0)
    z = mean / spread
    density = (n_degrees + z * z) / (n_degrees - 1) * student.pdf(z, n_degrees)
    return spread * float(z * stdtr(n_degrees, z) + density)
