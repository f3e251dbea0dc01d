"""`TaskComparison`: hyperparameters of `TaskPrior`, selected by how past tasks predict each other.

Notation of `leave_one_out`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sktransfer.surrogates._core.feature_weights import median_distance, squared_distances
from sktransfer.surrogates._core.kernels import kernel_matrix
from sktransfer.surrogates._core.leave_one_out import (
    DEFAULT_HYPERPARAMETERS,
    loo_log_likelihood,
    select_by_likelihood,
)
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.task_gaussian_processes import TaskGPs, average_lengths

MAX_VALIDATION_TASKS = 40  # past tasks that the hyperparameters are selected on


@dataclass(frozen=True)
class TaskComparison:
    """Compares past tasks with each other.

    Parameters
    ----------
    past : PastTrials
        Its scores may be residuals of predictions.
    processes : TaskGPs
        One for each past task.
    kept : ndarray of bool, shape (N,)
        The trials that the processes know.
    lengths : ndarray of shape (m, d)
        Logarithms of the lengthscales of the processes.
    kernel : str
    max_tasks : int
        Maximum number of other tasks that a task is predicted from.
    prior_count : float
        As in `kernel_weights`.
    """

    past: PastTrials
    processes: TaskGPs
    kept: np.ndarray
    lengths: np.ndarray
    kernel: str
    max_tasks: int
    prior_count: float = 0.0

    @property
    def validation_tasks(self) -> list[int]:
        """Numbers of the past tasks that hyperparameters are selected on."""
        m = len(self.past)
        chosen = np.linspace(0, m - 1, min(m, MAX_VALIDATION_TASKS)).astype(int)
        return np.unique(chosen).tolist()

    def rows_of(self, task: int) -> np.ndarray:
        """Rows of the trials that the process of a past task knows."""
        return np.flatnonzero((self.past.owner == task) & self.kept)

    def nearest_to(self, task: int, squares: np.ndarray) -> np.ndarray:
        """Numbers of the other tasks that a task is predicted from, by squared distances (m, m)."""
        m = len(self.past)
        excluded = np.where(np.arange(m) == task, np.inf, 0)
        order = np.argsort(squares[task] + excluded, kind="stable")
        return order[: min(m - 1, self.max_tasks)]

    def choose_distance(
        self, embedded: np.ndarray, by_features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Compare data sets by the embedding, or by meta-features where these predict better.

        Parameters
        ----------
        embedded : ndarray of shape (m, p)
            NaN where data are not known.
        by_features : ndarray of shape (m, m)
            Squared distances of the meta-features.
        """
        squares, unit = compare_embeddings(embedded)
        found = [self.fit_hyperparameters(each) for each in (squares / unit, by_features)]
        uses_embedding = np.isfinite(embedded).any() and found[0][1] >= found[1][1]
        chosen = found[0] if uses_embedding else found[1]
        return chosen[0] | {
            "uses_embedding": np.array(uses_embedding),
            "embedding_unit": np.array(unit),
        }

    def fit_hyperparameters(self, squares: np.ndarray) -> tuple[dict[str, np.ndarray], float]:
        """Hyperparameters that predict past tasks best, whether all scores are noise; likelihood.

        Parameters
        ----------
        squares : ndarray of shape (m, m)
            Squared distances of past tasks.
        """
        m = len(self.past)
        if m < 3:
            default = np.array(DEFAULT_HYPERPARAMETERS)
            return {"hyperparameters": default, "noise": np.array(False)}, 0.0
        found, n_trials = [], []
        for task in self.validation_tasks:
            others, rows = self.nearest_to(task, squares), self.rows_of(task)
            theta, z = self.past.theta[rows], self.past.z[rows]
            lengths, _ = average_lengths(self.lengths[others])
            K = kernel_matrix(theta, theta, lengths, self.past.categorical, self.kernel)
            F = self.processes.take(others).mean(theta)
            found.append(loo_log_likelihood(z, K, F, squares[task][others], self.prior_count))
            n_trials.append(len(z))
        best, is_noise, value = select_by_likelihood(np.array(found), np.array(n_trials))
        return {"hyperparameters": best, "noise": np.array(is_noise)}, value


def compare_embeddings(embedded: np.ndarray) -> tuple[np.ndarray, float]:
    """Squared distances, and their median; (m, p), NaN where data are not known -> (m, m).

    Data that are not known have the mean of the others.
    """
    is_known = np.isfinite(embedded).all(axis=1)
    if not is_known.any():
        return np.zeros((len(embedded), len(embedded))), 1.0
    filled = np.where(is_known[:, None], embedded, embedded[is_known].mean(axis=0))
    squares = squared_distances(filled, filled, np.ones(filled.shape[1]))
    return squares, median_distance(squares)
