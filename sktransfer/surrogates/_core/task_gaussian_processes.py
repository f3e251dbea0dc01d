"""The Gaussian processes of many past tasks, one each, computed all at once.

Notation: m tasks of at most N trials: theta (m, N, d), z (m, N), real (m, N) bool, h (m, d + 2) as in
`_gp_core`; k points. Shorter tasks are padded with trials that have a score of 0, variance 1 and no
covariance with anything: they change nothing. Real trials come first.
"""

from __future__ import annotations

import numpy as np
import torch

from sktransfer.surrogates._core.gaussian_process import KERNELS, differences, scaled_distances
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.training import train
from sktransfer.surrogates.gp import default_priors
from sktransfer.utils._threads import single_threaded
from sktransfer.utils._torch import eye, tensor

_JITTER = 1e-9
_DRAW_JITTER = 1e-6  # of the signal variance: what two all but equal points differ by in a draw
_GROUP = (
    60_000  # entries of covariance matrices that a training step works on: what fits into the cache
)
_RATE, _STEPS = 0.2, 40  # ends within 0.1 of the best log posterior


def pad_tasks(past: PastTrials, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The kept trials, (N,) bool, of each past task side by side; -> theta, z, real of the notation."""
    rows = [np.flatnonzero(kept & (past.owner == task)) for task in range(len(past))]
    N = max((len(own) for own in rows), default=0)
    real = np.arange(N) < np.array([len(own) for own in rows])[:, None]
    theta, z = np.zeros((len(past), N, past.theta.shape[1])), np.zeros((len(past), N))
    theta[real], z[real] = past.theta[np.concatenate(rows)], past.z[np.concatenate(rows)]
    return theta, z, real


def select_trials(past: PastTrials, max_trials: int) -> np.ndarray:
    """Which trials a process is made of: at most so many of each task, the best and the farthest apart."""
    if len(past) == 0 or np.bincount(past.owner).max() <= max_trials:
        return np.ones(len(past.z), dtype=bool)
    return past.farthest_point_order(np.ones(past.theta.shape[1]), max_trials) < max_trials


def fit_tasks(
    theta: np.ndarray, z: np.ndarray, real: np.ndarray, categorical: np.ndarray, kernel: str
) -> np.ndarray:
    """Most probable hyperparameters of each task, as the `GP` has them for the target; -> h (m, d + 2).

    Adam, on all tasks of a group at once: each has its own hyperparameters and its own steps. A task of
    one trial keeps the medians of the priors.
    """
    m, _, d = theta.shape
    h = np.tile(default_priors(d).medians(d), (m, 1))
    lengths = real.sum(axis=1)
    for group in _groups(lengths):
        N = lengths[group[-1]]
        h[group] = _fit_group(theta[group, :N], z[group, :N], real[group, :N], categorical, kernel)
    return h


def _groups(lengths: np.ndarray) -> list[np.ndarray]:
    """Tasks of two or more trials in groups of about equal length, so that little is padding."""
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] >= 2]
    groups: list[np.ndarray] = []
    while len(order):
        # All in a group are as long as its longest; one that is much shorter goes to the next.
        longest = lengths[order[-1]]
        fits = (lengths[order] > 0.7 * longest).sum()
        size = int(min(fits, max(1, _GROUP // longest**2)))
        groups.append(order[-size:])
        order = order[:-size]
    return groups


def _fit_group(
    theta: np.ndarray, z: np.ndarray, real: np.ndarray, categorical: np.ndarray, kernel: str
) -> np.ndarray:
    m, N, d = theta.shape
    priors, z_t, both, own = default_priors(d), tensor(z), *_masks(real)
    squares = torch.stack([differences(tensor(t), tensor(t), categorical) for t in theta])
    squares = squares.reshape(m, N * N, d)
    h = tensor(np.tile(priors.medians(d), (m, 1))).requires_grad_(True)

    def loss() -> torch.Tensor:
        r2 = (squares @ torch.exp(-2 * h[:, :d, None])).reshape(m, N, N)
        K = torch.exp(h[:, -2])[:, None, None] * KERNELS[kernel](r2)
        K = K * both + torch.diag_embed(own * (torch.exp(h[:, -1:]) + _JITTER) + (1 - own))
        log_prior = (
            priors.lengthscale.log_density(h[:, :d])
            + priors.signal.log_density(h[:, -2])
            + priors.noise.log_density(h[:, -1])
        )
        # Of the log likelihood only the gradient is needed, and by K it is (a a' - K^-1) / 2, a = K^-1 z:
        # going back through the factorisation would take most of the time.
        with torch.no_grad():
            inverse = torch.cholesky_inverse(torch.linalg.cholesky(K))
            a = inverse @ z_t[..., None]
            by_K = 0.5 * (a @ a.mT - inverse)
        return -((by_K * K).sum() + log_prior)

    train(loss, [([h], _RATE)], _STEPS)
    return h.detach().numpy()


def _masks(real: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """1 for pairs of real trials, and for real trials; (m, N) -> (m, N, N), (m, N)."""
    own = tensor(real)
    return own[:, :, None] * own[:, None, :], own


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
        self._theta, self._real, self._h = tensor(theta), torch.from_numpy(real), tensor(h)
        self._categorical, self._kernel = categorical, kernel
        with torch.no_grad(), single_threaded:
            both, own = _masks(real)
            noise = torch.exp(self._h[:, -1:]) + _JITTER
            K = self._covariance(self._theta, self._theta) * both
            L = torch.linalg.cholesky(K + torch.diag_embed(own * noise + (1 - own)))
            self._a = torch.cholesky_solve(tensor(z)[..., None], L)[..., 0]
            # The inverse of the factor: predictions are then products of matrices, several times faster.
            unit = eye(L.shape[-1]).expand_as(L)
            self._whiten = torch.linalg.solve_triangular(L, unit, upper=False)

    def take(self, numbers: np.ndarray) -> TaskGPs:
        """Some of the processes, without the padding that these do not need."""
        chosen, index = (
            object.__new__(TaskGPs),
            torch.from_numpy(np.asarray(numbers, dtype=np.int64)),
        )
        chosen._categorical, chosen._kernel, chosen._h = (
            self._categorical,
            self._kernel,
            self._h[index],
        )
        N = int(self._real[index].sum(1).max()) if len(index) else 0
        chosen._theta, chosen._real = self._theta[index, :N], self._real[index, :N]
        chosen._a, chosen._whiten = self._a[index, :N], self._whiten[index, :N, :N]
        return chosen

    def __len__(self) -> int:
        return len(self._h)

    @property
    def sizes(self) -> np.ndarray:
        """Number of trials of each; (m,)."""
        return self._real.sum(1).numpy()

    def _covariance(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(m, n, d), (m, k, d) -> (m, n, k)."""
        r2 = scaled_distances(A, B, torch.exp(-2 * self._h[:, :-2]), self._categorical)
        return torch.exp(self._h[:, -2])[:, None, None] * KERNELS[self._kernel](r2)

    def _to_trials(self, theta: np.ndarray) -> torch.Tensor:
        """Covariances of points with the trials; (k, d) -> (m, k, N)."""
        return self._covariance(tensor(theta)[None], self._theta) * self._real[:, None, :]

    @torch.no_grad()
    def mean(self, theta: np.ndarray) -> np.ndarray:
        """(k, d) -> (m, k)."""
        with single_threaded:
            return (self._to_trials(theta) @ self._a[..., None])[..., 0].numpy()

    @torch.no_grad()
    def moments(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances, without noise; (k, d) -> (m, k), (m, k)."""
        with single_threaded:
            k = self._to_trials(theta)
            white = k @ self._whiten.mT
            signal = torch.exp(self._h[:, -2:-1])
            variance = torch.maximum(signal - (white * white).sum(-1), 1e-12 * signal)
            return (k @ self._a[..., None])[..., 0].numpy(), variance.numpy()

    @torch.no_grad()
    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of each process, independent of each other; (k, d) -> (m, n, k)."""
        with single_threaded:
            k = self._to_trials(theta)
            white = k @ self._whiten.mT
            points = tensor(theta)[None]
            joint = self._covariance(points, points) - white @ white.mT
            jitter = _DRAW_JITTER * torch.exp(self._h[:, -2])[:, None, None]
            root = torch.linalg.cholesky(joint + jitter * eye(len(theta)))
            noise = tensor(rng.standard_normal((len(self), n, len(theta))))
            return (self._a[:, None, :] @ k.mT + noise @ root.mT).numpy()
