"""`SimilarTasks`: which past tasks `TaskPrior` uses for a target, by the similarity of the data.

Notation of `task_prior`. Data are compared by the pretrained embedding where it predicts past tasks
better, by weighted meta-features otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sktransfer.encoders import ManualEncoder
from sktransfer.surrogates._core.feature_weights import squared_distances
from sktransfer.surrogates._core.leave_one_out import kernel_weights
from sktransfer.surrogates._core.transported_past import describe_target
from sktransfer.surrogates.base import EncodedTask

MAX_DISTANCE = 2.0  # squared, of the most similar past task, in medians over pairs of past tasks
MIN_KNOWN_TASKS = 30  # past tasks with data, below which no target is called dissimilar
CONTAINED_COUNT = 60.0  # past tasks that one counts for whose data are a part of the target's
CONTAINED_SHARE = 0.9  # correlation of what predictions miss there and on the target
MIN_REST = 0.1


class UsedTasks(NamedTuple):
    """The past tasks that are used for a target.

    Parameters
    ----------
    numbers : ndarray of int, shape (K,)
    weights : ndarray of shape (K,)
        They sum to at most 1. The prediction without past tasks has what is left.
    rest : float
        Share of the variance of what predictions miss that remains when these tasks are known.
    """

    numbers: np.ndarray
    weights: np.ndarray
    rest: float = 1.0


@dataclass(frozen=True)
class SimilarTasks:
    """Selects and weighs the past tasks of a target.

    Parameters
    ----------
    ids : ndarray of str, shape (m,)
        Of the past tasks.
    sizes : ndarray of shape (m,)
        Their numbers of trials. Longer tasks are preferred among equally similar ones.
    learned : mapping of str to ndarray
        What `TaskPrior` learned of the tasks and of how to compare them.
    encoder : ManualEncoder
    max_tasks : int
    prior_count : float
        As in `kernel_weights`.
    """

    ids: np.ndarray
    sizes: np.ndarray
    learned: Mapping[str, np.ndarray]
    encoder: ManualEncoder
    max_tasks: int
    prior_count: float

    @property
    def _uses_embedding(self) -> bool:
        return bool(self.learned.get("uses_embedding", False))

    def distances(self, target: EncodedTask, weighted: bool = True) -> np.ndarray:
        """Squared distance of each past task's data to the target's, in medians; (m,)."""
        learned = self.learned
        if target.profile is None or not learned["known"].any():
            return np.zeros(len(self.ids))
        weights = learned["feature_weights"]
        weights = weights if weighted else np.ones_like(weights)
        description = describe_target(target) if weighted and self._uses_embedding else None
        if description is not None:
            assert target.prior is not None
            past, own = map(target.prior.embedding, (learned["descriptions"], description[None]))
            known = np.isfinite(past).all(axis=1)
            squares = squared_distances(np.nan_to_num(past), own, np.ones(own.shape[1]))[:, 0]
            squares = squares / float(learned["embedding_unit"])
        else:
            known = learned["known"]
            own = self.encoder.transform([target.profile])
            squares = squared_distances(learned["features"], own, weights)[:, 0]
            squares = squares / learned["units"][int(weighted)]
        # Tasks whose data are not known are as far as the median of the others.
        return np.where(known, squares, np.median(squares[known]))

    def reason_ignored(self, target: EncodedTask) -> str:
        """Why past tasks are ignored for this target; empty if they are used."""
        if self.learned["noise"]:
            return "past scores look like noise"
        if self.learned["known"].sum() < MIN_KNOWN_TASKS:
            return ""
        # A target is dissimilar by any feature, so features are not weighted.
        if self.distances(target, weighted=False).min() > MAX_DISTANCE:
            return "no past data set is similar"
        return ""

    def is_contained(self, target: EncodedTask) -> np.ndarray:
        """Whether the data of each past task are a part of the target's; (m,)."""
        return np.isin(self.ids, list(target.contained))

    def nearest(self, target: EncodedTask) -> UsedTasks:
        """The past tasks with the most similar data.

        If it was learned how what predictions miss is shared, the weights are those of the best
        linear prediction from the past tasks, S⁻¹ s, with the correlations s of the target with
        them and S among them.
        """
        shared = self._shared(target)
        order, squares, copies = self._rank(target, shared)
        if shared is None:
            bandwidth = self.learned["hyperparameters"][0]
            return UsedTasks(order, kernel_weights(squares, bandwidth, self.prior_count, copies))
        assert target.prior is not None
        past, s = self.learned["descriptions"][order], shared[order]
        S, is_contained = target.prior.shared(past, past), copies > 1.0
        assert S is not None
        both = is_contained[:, None] & is_contained
        S = np.where(both, np.maximum(S, CONTAINED_SHARE), S)
        np.fill_diagonal(S, 1.0)
        weights = np.maximum(np.linalg.solve(S, s), 0.0)
        weights = weights / max(weights.sum(), 1.0)
        rest = 1.0 - 2.0 * s @ weights + weights @ S @ weights
        return UsedTasks(order, weights, max(float(rest), MIN_REST))

    def _shared(self, target: EncodedTask) -> np.ndarray | None:
        """How what predictions miss on past tasks and the target is correlated; (m,) or None."""
        description = describe_target(target)
        if description is None or target.prior is None or not self.prior_count:
            return None
        found = target.prior.shared(description[None], self.learned["descriptions"])
        if found is None:
            return None
        return np.where(self.is_contained(target), CONTAINED_SHARE, found[0])

    def count(self, target: EncodedTask) -> float:
        """Number of past tasks that are used, each as often as it counts."""
        return float(self._rank(target, self._shared(target))[2].sum())

    def _rank(
        self, target: EncodedTask, shared: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of the tasks to use, their squared distances, how often each counts."""
        contained = self.is_contained(target)
        squares = np.where(contained, 0.0, self.distances(target))
        ranking = np.lexsort((-self.sizes, squares if shared is None else -shared, ~contained))
        order = np.sort(ranking[: self.max_tasks])
        return order, squares[order], np.where(contained[order], CONTAINED_COUNT, 1.0)

    def basis(self, target: EncodedTask) -> list[str]:
        """What each past task was compared by, or why it was excluded; (m,)."""
        if reason := self.reason_ignored(target):
            return [f"excluded: {reason}"] * len(self.ids)
        texts = [f"excluded: {self.max_tasks} other tasks are more similar"] * len(self.ids)
        own = target.profile.meta_features if target.profile is not None else {}
        n_known = sum(name in own for name in self.encoder.names_)
        basis, is_known = f"{n_known} meta-features", self.learned["known"] & bool(n_known)
        has_embedding = self._uses_embedding and describe_target(target) is not None
        if has_embedding or self._shared(target) is not None:
            basis = "the pretrained embedding"
            is_known = np.isfinite(self.learned["descriptions"]).all(axis=1)
        for number in self.nearest(target).numbers:
            texts[number] = basis if is_known[number] else "its trials only"
        return texts
