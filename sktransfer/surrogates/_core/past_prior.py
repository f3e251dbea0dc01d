"""`PastPrior`: the prior of the target's scores from past tasks and from a pretrained prediction.

Notation of `task_prior` and `transported_past`: m past tasks with weights w (m,); rho_i what task i
adds to the prediction from its data (the mean of its process, if there is no prediction).

    mean         g h(theta) + sum_i w_i rho_i(theta)
    covariance   sum_i c w_i (rho_i - rho)(theta) (rho_i - rho)(theta') + r k(theta, theta')
                 + u k_U(theta, theta')

with the variance r of what neither shows. If it was learned what the prediction misses, this is
a process whose draws on several data sets are correlated (`SimilarTasks`). Then the weights are
those of the best linear prediction, and the covariance is

    covariance   v a(theta) a(theta') k(theta, theta') + u k_U(theta, theta')

with the deviation a that the prediction has, the kernel k that was learned, and the share v that
remains when the past tasks are known.

k_U depends on the columns that neither knows,
such as the number of selected columns in front of a known estimator. It makes a score far from the
prediction the effect of such a parameter, the same for all settings of the others, before it makes
the prediction wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sktransfer.surrogates._core.kernels import kernel_matrix
from sktransfer.surrogates._core.leave_one_out import weighted_deviations
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.task_gaussian_processes import CONSTANT_LOG_LENGTH
from sktransfer.surrogates._core.transported_past import TargetPrediction

MAX_POINTS = 400  # at which the means of past tasks are kept; in between they are interpolated
PRETRAINED_LENGTH, PRETRAINED_CATEGORY_LENGTH = 0.3, 1.0
UNKNOWN_VARIANCE, UNKNOWN_LENGTH = 0.3, 0.5  # of the effect of columns that nothing knows

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


class UnknownEffect:
    """The effect of columns that neither past tasks nor a prediction know, equal for all settings.

    Parameters
    ----------
    unknown : ndarray of bool, shape (d,)
    categorical : ndarray of bool, shape (d,)
    kernel : str

    Examples
    --------
    >>> effect = UnknownEffect(np.array([False, True]), np.array([False, False]), "matern52")
    >>> theta = np.array([[0.1, 0.5], [0.9, 0.5]])  # the same in the unknown column
    >>> effect.covariance(theta, theta).round(2).tolist()
    [[0.3, 0.3], [0.3, 0.3]]
    """

    def __init__(self, unknown: np.ndarray, categorical: np.ndarray, kernel: str):
        self._columns, self._categorical = np.flatnonzero(unknown), categorical[unknown]
        self._kernel = kernel
        self.variance = UNKNOWN_VARIANCE if len(self._columns) else 0.0

    def covariance(self, A: np.ndarray, B: np.ndarray) -> np.ndarray | float:
        """(n, d), (k, d) -> (n, k); 0 if every column is known."""
        if not len(self._columns):
            return 0.0
        A, B = A[:, self._columns], B[:, self._columns]
        lengths = np.full(len(self._columns), UNKNOWN_LENGTH)
        return self.variance * kernel_matrix(A, B, lengths, self._categorical, self._kernel)


class PastMeans:
    """What past tasks add, interpolated between representative trials.

    Evaluating each process at each configuration would take most of the time of a proposal. The
    means are smooth, so their values at some of the trials are nearly as good, and need one kernel
    for all tasks.

    Parameters
    ----------
    trials : PastTrials
        The trials of these tasks, all with the same owner.
    lengths : ndarray of shape (d,)
        Average lengthscales of the tasks.
    unknown : ndarray of bool, shape (d,)
        Columns that none of the tasks knows. The means are constant there.
    kernel : str
    evaluate : callable
        The functions rho; (n, d) -> (m, n).
    """

    def __init__(
        self,
        trials: PastTrials,
        lengths: np.ndarray,
        unknown: np.ndarray,
        kernel: str,
        evaluate: Callable[[np.ndarray], np.ndarray],
    ):
        self._categorical, self._kernel, self.lengths = trials.categorical, kernel, lengths
        self.unknown = unknown
        self._smooth_lengths = np.where(unknown, np.exp(CONSTANT_LOG_LENGTH), lengths)
        order = trials.farthest_point_order(lengths, MAX_POINTS)
        self._points = trials.theta[order < MAX_POINTS]
        K = self._smooth_kernel(self._points) + 1e-4 * np.eye(len(self._points))
        self._weights = np.linalg.solve(K, evaluate(self._points).T)

    def unknown_effect(self, prediction: TargetPrediction | None) -> UnknownEffect:
        """The effect of the columns that neither these tasks nor the prediction know."""
        unknown = self.unknown & (True if prediction is None else prediction.unknown)
        return UnknownEffect(unknown, self._categorical, self._kernel)

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Kernel with the average lengthscales of the past tasks; (n, d), (k, d) -> (n, k)."""
        return kernel_matrix(A, B, self.lengths, self._categorical, self._kernel)

    def _smooth_kernel(self, theta: np.ndarray) -> np.ndarray:
        points, lengths = self._points, self._smooth_lengths
        return kernel_matrix(theta, points, lengths, self._categorical, self._kernel)

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) -> (m, n)."""
        return (self._smooth_kernel(theta) @ self._weights).T


def join_trials(past: PastTrials, is_used: np.ndarray) -> PastTrials:
    """Some rows of past trials as if they were of one task; (N,), bool."""
    owner = np.zeros(is_used.sum(), dtype=int)
    return replace(
        past, theta=past.theta[is_used], z=past.z[is_used], owner=owner, ids=past.ids[:1]
    )


class PastPrior:
    """The prior at one data set, as `ConditionedPosterior` needs it.

    Parameters
    ----------
    means : PastMeans
        What past tasks add.
    weights : ndarray of shape (m,)
        Of the past tasks.
    residual, noise : float
        Variances.
    prediction : TargetPrediction or None
    rest : float
        Share of the variance of what the prediction misses that remains with these past tasks.
    """

    def __init__(
        self,
        means: PastMeans,
        weights: np.ndarray,
        residual: float,
        noise: float,
        prediction: TargetPrediction | None = None,
        rest: float = 1.0,
    ):
        self._means, self._w, self._prediction = means, weights, prediction
        self._residual, self._rest = residual, rest
        # What was learned with the prediction is known better than from a few past tasks.
        if prediction is not None and prediction.is_residual_learned:
            noise = prediction.residual_noise
        self.noise = noise
        self._effect = means.unknown_effect(prediction)
        self._anchors: tuple[np.ndarray, np.ndarray] | None = None

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        F = self._means(theta)
        mean, K = self._w @ F, None
        if (prediction := self._prediction) is not None:
            predicted, std = prediction.predict(theta)
            mean, K = mean + predicted, prediction.correlation(theta, anchors)
        if prediction is not None and K is not None:
            own, joint = prediction.residual(theta, anchors, std, K)
            variance, covariance = self._rest * own, self._rest * joint
        else:
            variance, covariance = self._past_moments(theta, anchors, F)
        covariance = covariance + self._effect.covariance(theta, anchors)
        return mean, variance + self._effect.variance, covariance

    def _past_moments(
        self, theta: np.ndarray, anchors: np.ndarray, F: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Variances and covariances by how past tasks differ, given their means F (m, n)."""
        if self._anchors is None or self._anchors[0] is not anchors:
            G = F if theta is anchors else self._means(anchors)
            self._anchors = anchors, weighted_deviations(self._w, G)
        D = weighted_deviations(self._w, F)
        covariance = D.T @ self._anchors[1] + self._residual * self._means.kernel(theta, anchors)
        return (D * D).sum(axis=0) + self._residual, covariance


class PretrainedPrior:
    """The prior at one data set without past tasks: the pretrained prediction and its deviation.

    Parameters
    ----------
    prediction : TargetPrediction
    categorical : ndarray of bool, shape (d,)
    kernel : str
    """

    def __init__(self, prediction: TargetPrediction, categorical: np.ndarray, kernel: str):
        self._prediction, self._categorical, self._kernel = prediction, categorical, kernel
        self.noise = prediction.residual_noise
        self._lengths = np.where(categorical, PRETRAINED_CATEGORY_LENGTH, PRETRAINED_LENGTH)
        unknown = prediction.unknown & np.ones_like(categorical)
        self._effect = UnknownEffect(unknown, categorical, kernel)

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean, std = self._prediction.predict(theta)
        K = self._prediction.correlation(theta, anchors)
        if K is None:
            K = kernel_matrix(theta, anchors, self._lengths, self._categorical, self._kernel)
        variance, covariance = self._prediction.residual(theta, anchors, std, K)
        covariance = covariance + self._effect.covariance(theta, anchors)
        return mean, variance + self._effect.variance, covariance
