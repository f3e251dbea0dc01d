"""`WarmStart`: the best settings of the most similar past tasks first, then the GP (the papers' initBO).

Which tasks are similar is decided by the Euclidean distance of their handcrafted meta-features, each
scaled to [0, 1] over the tasks and the target. Notation: m past tasks, F meta-features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sktransfer.surrogates.base import EncodedTask, Surrogate
from sktransfer.surrogates.gp import GP


class WarmStart(GP):
    """Best settings of the nearest past tasks, then a Gaussian process on the target's trials.

    The past is used for the first ``n_tasks * n_settings`` trials at the most, the best setting of each
    task before the second best of any; after them the search is on its own. A past that misleads costs
    those trials and nothing more.

    Parameters
    ----------
    n_tasks : int
        How many of the most similar past tasks are asked.
    n_settings : int
        How many settings each of them may give.
    min_distance : float
        A setting closer than this to one that was taken already, in every column, is passed over: the
        best trials of a past search are often all but the same.
    kernel, n_initial, max_iter
        As in `GP`.

    Examples
    --------
    >>> import numpy as np
    >>> past = EncodedTask(np.array([[0.2], [0.8]]), np.array([0.5, 0.9]), np.array([False]), id="a")
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> WarmStart().fit([past]).proposals(target)
    (array([[0.8],
           [0.2]]), ['a', 'a'])
    """

    transfers = True

    def __init__(
        self,
        n_tasks: int = 3,
        n_settings: int = 3,
        min_distance: float = 0.05,
        kernel: str = "matern52",
        n_initial: int = 4,
        max_iter: int = 50,
    ):
        super().__init__(kernel=kernel, n_initial=n_initial, max_iter=max_iter)
        self.n_tasks = n_tasks
        self.n_settings = n_settings
        self.min_distance = min_distance

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> WarmStart:
        """Keep the past tasks; there is nothing to train."""
        super().fit(tasks, warm_from)
        self.tasks_ = list(tasks)
        return self

    def proposals(self, target: EncodedTask) -> tuple[np.ndarray, list[str]]:
        """The settings to try first, best first, and the id of the past task each comes from."""
        order = np.argsort(self._distances(target), kind="stable")[: self.n_tasks]
        ranked = [(self.tasks_[i], _best_first(self.tasks_[i])) for i in order]
        taken: list[np.ndarray] = []
        sources: list[str] = []
        counts = dict.fromkeys(range(len(ranked)), 0)
        for _ in range(self.n_settings):
            for number, (task, rows) in enumerate(ranked):
                for row in rows:
                    if not self._near_any(row, taken, target.categorical):
                        taken.append(row)
                        sources.append(task.id)
                        counts[number] += 1
                        break
        return np.array(taken).reshape(-1, target.theta.shape[1]), sources

    def _near_any(self, row: np.ndarray, taken: list[np.ndarray], categorical: np.ndarray) -> bool:
        reach = np.where(categorical, 0.0, self.min_distance)
        return any((np.abs(row - other) <= reach).all() for other in taken)

    def similarity(self, target: EncodedTask) -> np.ndarray | None:
        """exp(-distance) of the meta-features; 0 for a task of which nothing is known."""
        return np.exp(-self._distances(target))

    def _distances(self, target: EncodedTask) -> np.ndarray:
        features = [_meta_features(task.profile) for task in [*self.tasks_, target]]
        names = sorted(set().union(*features))
        table = np.array([[row.get(name, np.nan) for name in names] for row in features])  # (m + 1, F)
        return _scaled_distances(table[:-1], table[-1])


def _best_first(task: EncodedTask) -> list[np.ndarray]:
    """Codes of the successful trials that exist in today's space, highest score first."""
    known = ~(task.theta[:, task.categorical] < 0).any(axis=1)
    ok = np.flatnonzero(np.isfinite(task.z) & known)
    return list(task.theta[ok[np.argsort(-task.z[ok], kind="stable")]])


def _meta_features(profile: Any) -> dict[str, float]:
    return {} if profile is None else profile.meta_features


def _scaled_distances(past: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Root mean squared difference over the features both know; (m, F), (F,) -> (m,), inf if none."""
    both = np.vstack([past, target])
    if not both.shape[1]:
        return np.full(len(past), np.inf)
    seen = np.isfinite(both)
    low = np.where(seen, both, np.inf).min(axis=0)
    span = np.where(seen, both, -np.inf).max(axis=0) - low
    scaled = (both - low) / np.where(span > 0, span, 1.0)
    squares = (scaled[:-1] - scaled[-1]) ** 2
    shared = np.isfinite(squares)
    total = np.where(shared, squares, 0).sum(axis=1)
    return np.where(shared.any(axis=1), np.sqrt(total / np.maximum(shared.sum(axis=1), 1)), np.inf)
