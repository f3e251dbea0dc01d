"""The contract of a surrogate: score as a function of (configuration, task).

Notation: theta codes of configurations, (n, d), in [0, 1]; z their scores, (n,), maximized, NaN where
a trial failed. Surrogates see arrays and profiles, never spaces, records or estimators.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class EncodedTask:
    """The trials of one task in the coordinates of today's space.

    Parameters
    ----------
    theta : ndarray of shape (n, d)
    z : ndarray of shape (n,)
    categorical : ndarray of bool, shape (d,)
        Columns in which only equality counts.
    profile : DatasetProfile or None
    id : str
    metrics : dict of str to ndarray of shape (n,)
        What else was measured of each trial, maximized, NaN where it was not; "fit_time" are seconds.
    """

    theta: np.ndarray
    z: np.ndarray
    categorical: np.ndarray
    profile: Any = None
    id: str = ""
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def flat(self) -> bool:
        """Whether there are trials and all of them, none failed, have one score: nothing tells them apart."""
        return len(self.z) > 0 and bool((self.z == self.z[0]).all())

    @property
    def on_plateau(self) -> bool:
        """Whether none failed and most trials share the best score: none of them stands out.

        >>> theta, numbers = np.zeros((3, 1)), np.array([False])
        >>> [EncodedTask(theta, np.array([0.5, 0.5, z]), numbers).on_plateau for z in (0.4, 0.6)]
        [True, False]
        """
        best = self.z.max(initial=-np.inf)  # NaN, which equals nothing, if one failed
        return 2 * int((self.z == best).sum()) > len(self.z)


@dataclass(frozen=True)
class Region:
    """A part of the space that the search is to stay in.

    Parameters
    ----------
    low, high : ndarray of shape (d,)
        Bounds of the columns that hold numbers.
    values : dict of int to ndarray
        Codes allowed in a categorical column.
    """

    low: np.ndarray
    high: np.ndarray
    values: Mapping[int, np.ndarray]

    def stretch(self, cube: np.ndarray) -> np.ndarray:
        """Codes in the region, from points of the unit cube; (n, d) -> (n, d).

        A list of numbers has only some of these codes: they are to be snapped to the nearest.
        """
        codes = self.low + cube * (self.high - self.low)
        for column, values in self.values.items():
            part = np.minimum((cube[:, column] * len(values)).astype(int), len(values) - 1)
            codes[:, column] = values[part]
        return codes

    def contains(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) -> (n,), bool."""
        inside = ((theta >= self.low - 1e-9) & (theta <= self.high + 1e-9)).all(axis=1)
        for column, values in self.values.items():
            inside &= np.isin(theta[:, column], values)
        return np.asarray(inside)


class Posterior(Protocol):
    """What a surrogate believes about the target, given its trials so far.

    It may have a ``level_std``: how uncertain the common level of all its predictions is, which `predict`
    leaves out because it favors no trial. One that predicts on another scale than the scores' own says so
    by an ``incumbent``, the value to beat on its scale (None before the first trial), and translates by
    ``to_scores(mean, std)``.
    """

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the score; (n, d) -> (n,), (n,)."""

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the score; (m, d) -> (n, m)."""


class Surrogate(BaseEstimator):
    """Base of all surrogates.

    Attributes
    ----------
    n_initial : int
        How many trials of the target it wants to see, space-filling ones, before its posterior is asked.
    transfers : bool
        Whether it learns from past tasks at all.
    trained : bool
        Whether learning takes long enough for its result to be kept.
    alone : str
        What it is without a past, in words; with them, `fit` warns that there is none.
    redraw : float
        Probability with which each coordinate of a proposal is redrawn at random, once it has seen a trial.
    """

    n_initial: int = 0
    transfers: ClassVar[bool] = False
    trained: ClassVar[bool] = False
    alone: ClassVar[str] = ""
    redraw: float = 0.0

    @property
    def n_initial_(self) -> int:
        """As `n_initial`, now that the past is known: a model that can speak at once needs none."""
        return self.n_initial

    @property
    def redraw_(self) -> float:
        """As `redraw`, now that the past is known."""
        return self.redraw

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> Surrogate:
        """Learn from past tasks, of which there may be none."""
        self.n_tasks_ = len(tasks)
        if self.alone and not any(np.isfinite(task.z).any() for task in tasks):
            warnings.warn(
                f"{type(self).__name__} has no past trials to learn from and works as {self.alone}.",
                stacklevel=2,
            )
        return self

    @property
    def task_ids(self) -> list[str]:
        """Ids of the past tasks it was fitted to, in the order of `similarity`; where it is `trained`."""
        return []

    def posterior(self, target: EncodedTask) -> Posterior | None:
        """Belief about the target given its trials so far, of which there may be none.

        None means that there is no belief, and that any trial is as good as another.
        """
        return None

    def proposals(self, target: EncodedTask) -> tuple[np.ndarray, list[str]]:
        """Configurations to be tried before the posterior is asked, best first, and the past task of each."""
        return np.empty((0, target.theta.shape[1])), []

    def first_choices(self, target: EncodedTask) -> np.ndarray | None:
        """Codes that the first choice of the posterior is limited to; None if it may choose freely."""
        return None

    def draws(self, target: EncodedTask) -> bool:
        """Whether the next trial is the best of a draw from the posterior (Thompson sampling), not of EI."""
        return False

    def region(self, target: EncodedTask) -> Region | None:
        """The part of the space that the next trial is looked for in; None for all of it."""
        return None

    def similarity(self, target: EncodedTask) -> np.ndarray | None:
        """How alike each past task is to the target, in [0, 1]; None if the method has no such notion."""
        return None

    def basis(self, target: EncodedTask) -> list[str] | None:
        """What each past task was compared by, in a few words; None if they are not compared."""
        return None

    def get_state(self) -> dict[str, np.ndarray]:
        """What was learned, as plain arrays."""
        return {}

    def set_state(self, state: dict[str, np.ndarray]) -> Surrogate:
        """Take back what `state` gave."""
        self.n_tasks_ = 0
        return self
