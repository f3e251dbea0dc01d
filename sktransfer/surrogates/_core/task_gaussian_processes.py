"""The Gaussian processes of many past tasks, one each, computed together.

Notation: m tasks of at most N trials, theta (m, N, d), z (m, N), real (m, N) bool, h (m, d + 2) as
in `gaussian_process`. Shorter tasks are padded with trials of score 0 and variance 1 that have no
covariance with any other, so padding changes nothing. Real trials come first.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import lapack

from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates._core.defaults import GP_JITTER
from sktransfer.surrogates._core.gaussian_process import Priors
from sktransfer.surrogates._core.kernels import KERNELS, kernel_matrix
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates.gp import default_priors
from sktransfer.utils._threads import single_threaded

CONSTANT_LOG_LENGTH = np.log(1e4)  # in a column that a task does not know: it is constant there
_SAMPLE_JITTER = 1e-6  # relative to the signal variance, for draws at nearly equal points
_MAX_GROUP_ENTRIES = (
    60_000  # covariances that a training step works on, so that they fit into the cache
)
_MIN_LENGTH_RATIO = 0.7  # of the shortest and the longest task of a group
_LEARNING_RATE, _STEPS = 0.2, 40  # they end within 0.1 of the best log posterior
_RATE_DECAY = 0.9  # share of the learning rate that is lost over all steps


def pad_tasks(past: PastTrials, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The kept trials, (N,) bool, of each past task; -> theta, z, real of the notation."""
    rows = [np.flatnonzero(kept & (past.owner == task)) for task in range(len(past))]
    N = max((len(own) for own in rows), default=0)
    real = np.arange(N) < np.array([len(own) for own in rows])[:, None]
    theta, z = np.zeros((len(past), N, past.theta.shape[1])), np.zeros((len(past), N))
    theta[real], z[real] = past.theta[np.concatenate(rows)], past.z[np.concatenate(rows)]
    return theta, z, real


def select_trials(past: PastTrials, max_trials: int) -> np.ndarray:
    """Select at most `max_trials` of each task, the best and most distant; -> (N,) bool."""
    if len(past) == 0 or np.bincount(past.owner).max() <= max_trials:
        return np.ones(len(past.z), dtype=bool)
    return past.farthest_point_order(np.ones(past.theta.shape[1]), max_trials) < max_trials


# -- hyperparameters ------------------------------------------------------------------------------


def fit_tasks(
    theta: np.ndarray, z: np.ndarray, real: np.ndarray, categorical: np.ndarray, kernel: str
) -> np.ndarray:
    """Most probable hyperparameters of each task, under the priors of `GP`; -> h (m, d + 2).

    Adam runs on all tasks of a group at once. A task of one trial keeps the medians of the priors.
    """
    m, _, d = theta.shape
    h = np.tile(default_priors(d).medians(d), (m, 1))
    lengths = real.sum(axis=1)
    for group in _group_by_length(lengths):
        N = lengths[group[-1]]
        h[group] = _fit_group(theta[group, :N], z[group, :N], real[group, :N], categorical, kernel)
    return h


def _group_by_length(lengths: np.ndarray) -> list[np.ndarray]:
    """Tasks of two or more trials, in groups of similar length so that there is little padding."""
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] >= 2]
    groups: list[np.ndarray] = []
    while len(order):
        longest = lengths[order[-1]]
        similar = (lengths[order] > _MIN_LENGTH_RATIO * longest).sum()
        size = int(min(similar, max(1, _MAX_GROUP_ENTRIES // longest**2)))
        groups.append(order[-size:])
        order = order[:-size]
    return groups


def _fit_group(
    theta: np.ndarray, z: np.ndarray, real: np.ndarray, categorical: np.ndarray, kernel: str
) -> np.ndarray:
    """Adam (Kingma & Ba 2015) on each task's log posterior; -> h (m, d + 2)."""
    m, N, d = theta.shape
    priors = default_priors(d)
    pairs = np.triu_indices(N, k=1)  # half of a symmetric matrix is enough
    squares = _squares_of_pairs(theta, pairs, categorical)
    h = np.tile(priors.medians(d), (m, 1))
    first, second, good = np.zeros_like(h), np.zeros_like(h), h.copy()
    for step in range(1, _STEPS + 1):
        gradient = _gradient(h, pairs, squares, z, real, kernel, priors)
        if gradient is None or not np.isfinite(gradient).all():
            warnings.warn(
                "The processes of past tasks were not fully trained: the likelihood is not finite.",
                SurrogateWarning,
                stacklevel=2,
            )
            return good
        good = h.copy()
        first += 0.1 * (gradient - first)
        second += 0.001 * (gradient * gradient - second)
        scale = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        rate = _LEARNING_RATE * (1 - _RATE_DECAY * step / _STEPS)
        h -= rate / (1 - 0.9**step) * first / scale
    return h


def _squares_of_pairs(
    theta: np.ndarray, pairs: tuple[np.ndarray, np.ndarray], categorical: np.ndarray
) -> np.ndarray:
    """Squared differences of pairs of trials, 0 or 1 in categorical columns; -> (m, d, P)."""
    differences = np.swapaxes(theta[:, pairs[0]] - theta[:, pairs[1]], 1, 2)
    return np.where(categorical[:, None], differences != 0, differences * differences)


def _gradient(
    h: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray],
    squares: np.ndarray,
    z: np.ndarray,
    real: np.ndarray,
    kernel: str,
    priors: Priors,
) -> np.ndarray | None:
    """Gradient of the negative log posterior, as in `value_and_gradient`; -> (m, d + 2).

    None if a covariance has no Cholesky factor. `squares` are those of P pairs of trials.
    """
    (m, N), (first, second), d = z.shape, pairs, h.shape[1] - 2
    inverse_squares, signal, noise = np.exp(-2 * h[:, :d]), np.exp(h[:, -2:-1]), np.exp(h[:, -1:])
    k, slope = KERNELS[kernel]((inverse_squares[:, None] @ squares)[:, 0], True)
    assert slope is not None
    both = real[:, first] & real[:, second]
    k *= both
    slope *= both
    K = np.zeros((m, N, N))
    K[:, first, second] = signal * k
    K[:, np.arange(N), np.arange(N)] = np.where(real, signal + noise + GP_JITTER, 1.0)
    a = _solve_and_invert(K, z)
    if a is None:
        return None
    # 2 G of the notation there, of the pairs and on the diagonal. Each pair stands for two entries.
    G = a[:, first] * a[:, second] - K[:, first, second]
    own = (a * a - np.diagonal(K, axis1=1, axis2=2)) * real
    gradient = np.empty_like(h)
    slope *= signal * G
    gradient[:, :d] = -2 * inverse_squares * (squares @ slope[:, :, None])[..., 0]
    gradient[:, -2] = signal[:, 0] * ((G * k).sum(axis=1) + 0.5 * own.sum(axis=1))
    gradient[:, -1] = 0.5 * noise[:, 0] * own.sum(axis=1)
    gradient -= (h - priors.medians(d)) / priors.spreads(d) ** 2
    return -gradient


def _solve_and_invert(K: np.ndarray, z: np.ndarray) -> np.ndarray | None:
    """K^-1 z of matrices that are given by their upper halves, which become those of the inverses.

    LAPACK reads the upper half of a table by rows as the lower half by columns, and works in place.
    None if a matrix is not positive definite; (m, N, N), (m, N) -> (m, N).
    """
    a = np.empty_like(z)
    for number, each in enumerate(K):
        L, failed = lapack.dpotrf(each.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            return None
        a[number] = lapack.dpotrs(L, z[number], lower=1)[0]
        each[:] = lapack.dpotri(L, lower=1, overwrite_c=1)[0].T
    return a


def average_lengths(log_lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Typical lengthscales of some tasks, in columns that none of them knows the usual ones.

    Returns
    -------
    lengths : ndarray of shape (d,)
    unknown : ndarray of bool, shape (d,)
        Columns that none of the tasks knows.

    Examples
    --------
    >>> lengths, unknown = average_lengths(np.array([[0.0, CONSTANT_LOG_LENGTH], [1.0, 0.5]]))
    >>> np.log(lengths).round(2).tolist(), unknown.tolist()
    ([0.5, 0.5], [False, False])
    """
    d = log_lengths.shape[1]
    known = log_lengths < CONSTANT_LOG_LENGTH
    sums, counts = np.where(known, log_lengths, 0).sum(axis=0), known.sum(axis=0)
    usual = default_priors(d).medians(d)[:d]
    return np.exp(np.where(counts, sums / np.maximum(counts, 1), usual)), counts == 0


# -- posteriors -----------------------------------------------------------------------------------


class TaskGPs:
    """Posteriors of the tasks' processes, in units of each task's standardized scores.

    Parameters
    ----------
    theta, z, real, h : ndarray
        As in the notation.
    categorical : ndarray of bool, shape (d,)
    kernel : str
    """

    def __init__(
        self,
        theta: np.ndarray,
        z: np.ndarray,
        real: np.ndarray,
        h: np.ndarray,
        categorical: np.ndarray,
        kernel: str,
    ):
        self._theta, self._real, self._h = theta, real, h
        self._categorical, self._kernel = categorical, kernel
        with single_threaded:
            K = self._covariance(theta, theta) * (real[:, :, None] & real[:, None, :])
            N = theta.shape[1]
            K[:, np.arange(N), np.arange(N)] += np.where(real, np.exp(h[:, -1:]) + GP_JITTER, 1.0)
            # With the inverse of the factor predictions are products of matrices, several times
            # faster.
            self._whiten = np.linalg.inv(np.linalg.cholesky(K))
            white = self._whiten @ z[..., None]
            self._a = (np.swapaxes(self._whiten, 1, 2) @ white)[..., 0]

    def take(self, numbers: np.ndarray) -> TaskGPs:
        """Some of the processes, without the padding that they do not need."""
        chosen, index = object.__new__(TaskGPs), np.asarray(numbers, dtype=np.int64)
        chosen._categorical, chosen._kernel, chosen._h = (
            self._categorical,
            self._kernel,
            self._h[index],
        )
        N = int(self._real[index].sum(axis=1).max()) if len(index) else 0
        chosen._theta, chosen._real = self._theta[index, :N], self._real[index, :N]
        chosen._a, chosen._whiten = self._a[index, :N], self._whiten[index, :N, :N]
        return chosen

    def __len__(self) -> int:
        return len(self._h)

    @property
    def sizes(self) -> np.ndarray:
        """Number of trials of each task; (m,)."""
        return self._real.sum(axis=1)

    def _covariance(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """(m, n, d), (m, k, d) -> (m, n, k)."""
        lengths = np.exp(self._h[:, :-2])
        k = kernel_matrix(A, B, lengths, self._categorical, self._kernel)
        k *= np.exp(self._h[:, -2])[:, None, None]
        return k

    def _to_trials(self, theta: np.ndarray) -> np.ndarray:
        """Covariances of points with the trials; (k, d) -> (m, k, N)."""
        k = self._covariance(theta[None], self._theta)
        k *= self._real[:, None, :]
        return k

    def mean(self, theta: np.ndarray) -> np.ndarray:
        """(k, d) -> (m, k)."""
        with single_threaded:
            return (self._to_trials(theta) @ self._a[..., None])[..., 0]

    def moments(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances, without noise; (k, d) -> (m, k), (m, k)."""
        with single_threaded:
            k = self._to_trials(theta)
            white = k @ np.swapaxes(self._whiten, 1, 2)
            signal = np.exp(self._h[:, -2:-1])
            variance = np.maximum(signal - (white * white).sum(axis=-1), 1e-12 * signal)
            return (k @ self._a[..., None])[..., 0], variance

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of each process, independent of each other; (k, d) -> (m, n, k)."""
        with single_threaded:
            k = self._to_trials(theta)
            white = k @ np.swapaxes(self._whiten, 1, 2)
            points = np.broadcast_to(theta, (len(self), *theta.shape))
            joint = self._covariance(points, points) - white @ np.swapaxes(white, 1, 2)
            jitter = _SAMPLE_JITTER * np.exp(self._h[:, -2])[:, None, None]
            root = np.linalg.cholesky(joint + jitter * np.eye(len(theta)))
            noise = rng.standard_normal((len(self), n, len(theta)))
            return self._a[:, None, :] @ np.swapaxes(k, 1, 2) + noise @ np.swapaxes(root, 1, 2)
