"""`WarmStart`: best settings of similar past tasks first, then a GP (the papers' initBO).

Similarity is the Euclidean distance of the handcrafted meta-features, each scaled to [0, 1] over
the past tasks and the target. Notation: m past tasks, F meta-features.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP


class WarmStart(GP):
    """Best settings of the nearest past tasks, then a Gaussian process on the target's trials.

    Past tasks are used for at most the first ``n_tasks * n_settings`` trials, the best setting of
    each task before the second best of any. Misleading past tasks cost these trials and nothing
    more.

    Parameters
    ----------
    n_tasks : int
        Number of the most similar past tasks to use.
    n_settings : int
        Maximum number of settings of each of them.
    min_distance : float
        Settings that are closer than this to a selected one, in every column, are skipped: the best
        trials of a past search are often nearly equal.
    model : {"gp", "blr"}
        What follows the past settings: a Gaussian process, or the regression of `TargetBLR` (the
        paper's initBLR).
    kernel, n_initial, max_iter, winsorize
        As in `GP`.

    Examples
    --------
    >>> import numpy as np
    >>> theta, z, number = np.array([[0.2], [0.8]]), np.array([0.5, 0.9]), np.array([False])
    >>> past = EncodedTask(theta, z, number, id="a")
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> hints = WarmStart().fit([past]).hints(target)
    >>> hints.first_settings.tolist(), hints.sources
    ([[0.8], [0.2]], ('a', 'a'))
    """

    uses_past_tasks = True

    def __init__(
        self,
        n_tasks: int = 3,
        n_settings: int = 3,
        min_distance: float = 0.05,
        model: str = "gp",
        kernel: str = "matern52",
        n_initial: int = 4,
        max_iter: int = 50,
        winsorize: bool = True,
    ):
        super().__init__(kernel, n_initial, max_iter, winsorize)
        self.n_tasks = n_tasks
        self.n_settings = n_settings
        self.min_distance = min_distance
        self.model = model

    def check_params(self) -> None:
        super().check_params()
        if self.model not in ("gp", "blr"):
            raise ValueError(f"model={self.model!r} must be 'gp' or 'blr'.")

    def posterior(self, target: EncodedTask) -> Posterior | None:  # type: ignore[override]
        """Fit the model to the target's trials."""
        if self.model == "gp":
            return super().posterior(target)
        from sktransfer.surrogates.reference.target_blr import TargetBLR  # needs torch

        return TargetBLR(winsorize=self.winsorize).posterior(target)

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> Self:
        """Store the settings and the meta-features of the past tasks."""
        super().fit(tasks, warm_from)
        names, features = feature_table([task.profile for task in tasks])
        ranked = [_best_first(task) for task in tasks]
        return self.set_state(
            {
                "ids": np.array([task.id for task in tasks], dtype=str),
                "settings": np.vstack(ranked) if ranked else np.empty((0, 0)),
                "owner": np.repeat(np.arange(len(tasks)), [len(rows) for rows in ranked]),
                "names": names,
                "features": features,
            }
        )

    def get_state(self) -> dict[str, np.ndarray]:
        """Past settings, best first, and the number, id and meta-features of their tasks."""
        return dict(self.past_)

    def set_state(self, state: dict[str, np.ndarray]) -> Self:
        self.past_ = dict(state)
        self.n_tasks_ = len(state["ids"])
        return self

    def hints(self, target: EncodedTask) -> SearchHints:
        """The first trials are the best settings of the nearest past tasks."""
        settings, sources = self._first_settings(target)
        return replace(super().hints(target), first_settings=settings, sources=sources)

    def _first_settings(self, target: EncodedTask) -> tuple[np.ndarray, tuple[str, ...]]:
        """Codes, best first, and the id of the past task of each."""
        past = self.past_
        order = np.argsort(self._distances(target), kind="stable")
        order = order[np.isin(order, past["owner"])][: self.n_tasks]  # tasks that have a setting
        taken: list[np.ndarray] = []
        sources: list[str] = []
        for _ in range(self.n_settings):
            for number in order:
                settings = past["settings"][past["owner"] == number]
                fresh = (
                    row for row in settings if not self._is_near_any(row, taken, target.categorical)
                )
                for row in itertools.islice(fresh, 1):
                    taken.append(row)
                    sources.append(str(past["ids"][number]))
        return np.array(taken).reshape(-1, target.theta.shape[1]), tuple(sources)

    def _is_near_any(
        self, row: np.ndarray, taken: list[np.ndarray], categorical: np.ndarray
    ) -> bool:
        tolerance = np.where(categorical, 0.0, self.min_distance)
        return any((np.abs(row - other) <= tolerance).all() for other in taken)

    def similarity(self, target: EncodedTask) -> np.ndarray | None:
        """exp(-distance) of the meta-features; 0 for a task without meta-features."""
        return np.exp(-self._distances(target))

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        known = np.isfinite(self.past_["features"]).sum(axis=1)
        return [f"{n} of {len(self.past_['names'])} handcrafted meta-features" for n in known]

    def _distances(self, target: EncodedTask) -> np.ndarray:
        own = feature_table([target.profile], self.past_["names"])[1][0]
        return feature_distances(self.past_["features"], own)


def _best_first(task: EncodedTask) -> np.ndarray:
    """Codes of the successful trials that exist in the target's space, best first."""
    known = ~(task.theta[:, task.categorical] < 0).any(axis=1)
    ok = np.flatnonzero(np.isfinite(task.z) & known)
    return task.theta[ok[np.argsort(-task.z[ok], kind="stable")]]


def feature_table(
    profiles: Sequence[DatasetProfile | None], names: Iterable[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Names of meta-features, and a row of them for each task, NaN if unknown; -> (F,), (m, F).

    Without `names` they are all features that some task has.
    """
    features = [{} if each is None else each.meta_features for each in profiles]
    chosen = list(sorted(set().union(*features)) if names is None else names)
    columns = [[row.get(name, np.nan) for row in features] for name in chosen]
    table = np.array(columns, dtype=float).reshape(len(columns), len(features)).T
    return np.array(chosen, dtype=str), table


def feature_distances(past: np.ndarray, target: np.ndarray, order: int = 2) -> np.ndarray:
    """Mean difference of the shared features, each scaled; (m, F), (F,) -> (m,), inf if none.

    Of `order` 2 it is the root of the mean square, of `order` 1 the mean absolute difference.
    """
    both = np.vstack([past, target])
    if not both.shape[1]:
        return np.full(len(past), np.inf)
    seen = np.isfinite(both)
    low = np.where(seen, both, np.inf).min(axis=0)
    span = np.where(seen, both, -np.inf).max(axis=0) - low
    scaled = (both - low) / np.where(span > 0, span, 1.0)
    powers = np.abs(scaled[:-1] - scaled[-1]) ** order
    shared = np.isfinite(powers)
    mean = np.where(shared, powers, 0).sum(axis=1) / np.maximum(shared.sum(axis=1), 1)
    return np.where(shared.any(axis=1), mean ** (1 / order), np.inf)
