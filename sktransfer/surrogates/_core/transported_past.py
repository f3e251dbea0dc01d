"""Past tasks seen through a `ScorePrior`: what each of them adds to the prediction from its data.

Notation of `task_prior`; h(theta, D) the prediction from the description D of a data set. A past
task says how its scores differ from what its data made one expect. The target is expected to differ
in the same way:

    mu(theta) = g h(theta, D_target) + sum_i w_i rho_i(theta),

rho_i the mean of a process on the residuals r_i = z_i - a_i - g h(theta_i, D_i) of the task's own
trials, a_i their average level. Where a past search did not look, rho_i is 0 and the prediction
stands.

The same setting means different things on data of different scales: C, epsilon and gamma of an SVR
have units. So tasks are compared at comparable codes: theta plus an offset that depends on D.

The gain g is the slope of past scores on their predictions, shrunk to 1. If the predictions are
wrong for this estimator, g tends to 0, and past tasks count as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sktransfer.surrogates._core.past_trials import Level, PastTrials
from sktransfer.surrogates.base import EncodedTask, ScorePrior

GAIN_STRENGTH = 3.0  # variance of predictions that is worth as much as the prior gain of 1
MAX_STRANGENESS = 1.0
LEVEL_SHIFT_STD = 0.15  # of a predicted shift, besides the scale of the scores
LEVEL_LOG_STD = 0.7


class TargetPrediction:
    """The prediction of scores from the target's data.

    Parameters
    ----------
    prior : ScorePrior
    description : ndarray of shape (q,)
        Of the target's data.
    gain : float
    """

    def __init__(self, prior: ScorePrior, description: np.ndarray, gain: float):
        self._prior, self._description, self.gain = prior, description, gain
        self._anchors: tuple[np.ndarray, np.ndarray] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TargetPrediction):
            return NotImplemented
        same_data = np.array_equal(self._description, other._description)
        return same_data and self._prior is other._prior and self.gain == other.gain

    __hash__ = None  # type: ignore[assignment]

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation; (n, d) -> (n,), (n,).

        The deviation is not multiplied by the gain: a prediction that is known to be wrong does
        not say more of the scores.
        """
        [mean], [std] = self._prior.predict(theta, self._description[None])
        return self.gain * mean, std

    def correlation(self, theta: np.ndarray, anchors: np.ndarray) -> np.ndarray | None:
        """How what predictions miss is correlated, if it was learned; (n, d), (k, d) -> (n, k)."""
        return self._prior.correlation(theta, anchors, self._description)

    def residual(
        self, theta: np.ndarray, anchors: np.ndarray, std: np.ndarray, K: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Variances and covariances of what the prediction misses, given its deviations.

        (n, d), (k, d), (n,), correlations (n, k) -> (n,), (n, k)
        """
        if self._anchors is None or self._anchors[0] is not anchors:
            self._anchors = anchors, std if theta is anchors else self.predict(anchors)[1]
        other = self._anchors[1]
        scale = self._prior.residual_variance * std
        return scale * std, scale[:, None] * other * K

    @property
    def is_residual_learned(self) -> bool:
        """Whether it was learned what the prediction misses."""
        return self._prior.has_residual

    @property
    def residual_noise(self) -> float:
        """Variance of the noise of comparable scores."""
        return self._prior.residual_noise

    @property
    def unknown(self) -> np.ndarray | bool:
        """Columns that predictions do not depend on, (d,); False if there are none."""
        return False if self._prior.known is None else ~self._prior.known

    @property
    def has_unit(self) -> bool:
        """Whether the unit of the scores is known before the first trial."""
        return self._prior.level(self._description) is not None

    def level(self, seen: np.ndarray) -> Level:
        """Prior of the target's shift and scale without past tasks, given observed scores (n,)."""
        found = self._prior.level(self._description)
        if found is not None:
            shift, log_scale = found
            std = float(np.hypot(LEVEL_SHIFT_STD, np.exp(log_scale)))
            return Level(shift, std, log_scale, LEVEL_LOG_STD).recentered(seen)
        seen = seen[np.isfinite(seen)]
        if not len(seen):
            return Level(0.0, 1.0, 0.0, 1.0)
        center = float(seen.mean())
        spread = float(seen.std()) or 0.1 * abs(center) or 1.0
        return Level(center, 3 * spread, float(np.log(spread)), 1.0)


def describe_target(target: EncodedTask) -> np.ndarray | None:
    """The description of the target's data; None if there is none, or they are unlike any other."""
    if target.prior is None:
        return None
    description = target.prior.describe(target.profile)
    if description is None or target.prior.strangeness(description) > MAX_STRANGENESS:
        return None
    return description


def describe_past(tasks: Sequence[EncodedTask]) -> np.ndarray | None:
    """Descriptions of the past tasks' data, (m, q), NaN where unknown.

    None if all are unknown and their prior does not know the usual data either.
    """
    found = [None if task.prior is None else task.prior.describe(task.profile) for task in tasks]
    usual = None if tasks[0].prior is None else tasks[0].prior.usual
    q = next((len(each) for each in (*found, usual) if each is not None), None)
    if q is None:
        return None
    return np.array([np.full(q, np.nan) if each is None else each for each in found])


def usual_description(descriptions: np.ndarray, prior: ScorePrior) -> np.ndarray:
    """What stands for the data of past tasks that are unknown, given those of all; (m, q) -> (q,).

    The mean of the known ones, or what the prior takes for usual.
    """
    known = np.isfinite(descriptions).all(axis=1)
    if known.any() or prior.usual is None:
        return np.asarray(descriptions[known].mean(axis=0))
    return prior.usual


def fill_unknown(rows: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Rows with the usual one where one has NaN."""
    return np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, usual)


def offset_target(target: EncodedTask, past: np.ndarray | None) -> np.ndarray:
    """What makes codes of the target comparable, given the offsets of past tasks; -> (1, d).

    It is the mean of these if the data are not known.
    """
    if past is None:
        return np.zeros((1, 1))
    description = None if target.prior is None else target.prior.describe(target.profile)
    if target.prior is None or description is None:
        return past.mean(axis=0, keepdims=True)
    return target.prior.offsets(description[None])


def predict_past(
    prior: ScorePrior, past: PastTrials, descriptions: np.ndarray
) -> list[np.ndarray | None]:
    """Predictions of each past task's own trials, in the order of its rows; None if unknown."""
    found: list[np.ndarray | None] = []
    for task, description in enumerate(descriptions):
        theta = past.theta[past.owner == task]
        is_known = len(theta) and np.isfinite(description).all()
        found.append(prior.predict(theta, description[None])[0][0] if is_known else None)
    return found


def fit_gain(past: PastTrials, predicted: Sequence[np.ndarray | None]) -> float:
    """The slope of past scores on their predictions, shrunk to 1, at least 0."""
    product = variance = GAIN_STRENGTH
    for task, h in enumerate(predicted):
        z = past.z[past.owner == task]
        if h is not None and len(z) > 1:
            h, z = h - h.mean(), z - z.mean()
            product += float(np.mean(h * z))
            variance += float(np.mean(h * h))
    return max(product / variance, 0.0)


def subtract_predictions(
    past: PastTrials, predicted: Sequence[np.ndarray | None], gain: float
) -> np.ndarray:
    """The residuals of all past trials; -> (N,)."""
    residuals = past.z.copy()
    for task, h in enumerate(predicted):
        if h is not None:
            own = past.owner == task
            residuals[own] -= gain * h
            residuals[own] -= residuals[own].mean()
    return residuals
