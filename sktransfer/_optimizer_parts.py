"""Small parts of the optimiser: what it proposes, what it believes, what it can list."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktransfer._values import params_identity
from sktransfer.acquisition import log_expected_improvement, lower_confidence_bound
from sktransfer.space import Space
from sktransfer.surrogates import Posterior


@dataclass(frozen=True)
class Proposal:
    """A configuration, where it came from, and what was predicted of it (NaN without a model)."""

    params: dict[str, Any]
    origin: str
    mean: float = math.nan
    std: float = math.nan


@dataclass(frozen=True)
class Suggestion:
    """A configuration for data that nothing was evaluated on.

    Parameters
    ----------
    params : dict
    mean, std : float
        Predicted score and its standard deviation; NaN where no model predicts.
    sources : tuple of (str, float)
        Ids of the past tasks it rests on and their similarity, most similar first.
    note : str
        What it rests on, in words.
    """

    params: dict[str, Any]
    mean: float
    std: float
    sources: tuple[tuple[str, float], ...]
    note: str


@dataclass(frozen=True)
class Belief:
    """A posterior, and the score to beat if there is one."""

    posterior: Posterior
    best: float | None

    def predict(self, code: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of one configuration's score, (1, d), with that of the common level."""
        [mean], [std] = self.posterior.predict(code)
        return float(mean), math.hypot(std, getattr(self.posterior, "level_std", 0.0))

    def acquisition(self, theta: np.ndarray) -> np.ndarray:
        """How much a trial promises; (n, d) -> (n,)."""
        mean, std = self.posterior.predict(theta)
        if self.best is None:
            return lower_confidence_bound(mean, std)
        return log_expected_improvement(mean, std, self.best)


class Pool:
    """Configurations that can be enumerated, with their codes."""

    def __init__(self, space: Space, params: Sequence[Mapping[str, Any]], source: Any):
        self._source = None if source is None else list(source)
        self.params = [dict(p) for p in params]
        self.codes = space.encode(self.params) if self.params else np.empty((0, space.n_columns))
        self._keys = [params_identity(p) for p in self.params]
        self._categorical = space.categorical

    def is_made_of(self, source: Sequence[Mapping[str, Any]] | None) -> bool:
        """Whether the caller's pool is still the one that this was made of, member by member."""
        if source is None or self._source is None:
            return source is self._source
        return len(source) == len(self._source) and all(map(operator.is_, source, self._source))

    def fresh(self, seen: set[frozenset]) -> list[int]:
        """Indices of the members that are not in `seen`."""
        return [i for i, key in enumerate(self._keys) if key not in seen]

    def nearest(self, code: np.ndarray) -> dict[str, Any]:
        apart = np.where(self._categorical, self.codes != code, np.abs(self.codes - code))
        return self.params[int(apart.sum(axis=1).argmin())]


def as_seed(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().entropy % 2**32)  # type: ignore[operator]
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ValueError(f"random_state={random_state!r} must not be negative.")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(random_state.randint(2**31 - 1))
