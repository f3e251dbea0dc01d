"""Small parts of the optimizer: what it proposes, what it believes, what it can list."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import qmc

from sktransfer.optimizer._acquisition import (
    log_expected_improvement,
    lower_confidence_bound,
    thompson_sample,
)
from sktransfer.optimizer._maximize import maximize, sample
from sktransfer.space import Space
from sktransfer.surrogates import EncodedTask, Posterior, Region, Surrogate
from sktransfer.task import Trial
from sktransfer.utils._values import params_identity

REACH = 10.0
"""In widths of the space: what lies farther outside lies no farther. Some write 1e200 for no limit at all."""

NEAR = 0.02  # in widths of the space: trials of one batch that are nearer than this tell much the same
N_DRAWN = 1024  # configurations that a Thompson draw chooses from


@dataclass(frozen=True)
class Proposal:
    """A configuration, where it came from, and what was predicted of it (NaN without a model)."""

    params: dict[str, Any]
    origin: str
    mean: float = math.nan
    std: float = math.nan

    @property
    def from_past(self) -> bool:
        """Whether it rests on past tasks, where nothing was evaluated yet."""
        return self.origin.startswith(("model", "task"))


@dataclass(frozen=True)
class Suggestion:
    """A configuration for data that nothing was evaluated on.

    Parameters
    ----------
    params : dict
    mean, std : float
        Predicted score and its standard deviation; NaN where no model predicts. An error in the units of
        the target (a mean absolute error) is in those of the past data sets.
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
    """A posterior, the value to beat if there is one, and how and where the surrogate wants to search."""

    posterior: Posterior
    best: float | None
    draws: bool
    region: Region | None
    apart: Sequence[np.ndarray]
    categorical: np.ndarray

    @classmethod
    def of(cls, surrogate: Surrogate, target: EncodedTask, apart: Sequence[np.ndarray] = ()) -> Belief | None:
        """What a surrogate believes about a target; None if it has no belief.

        Trials near the codes `apart`, (d,) each, are not wanted.
        """
        posterior = surrogate.posterior(target)
        if posterior is None:
            return None
        best = float(np.nanmax(target.z)) if len(target.z) else None
        best = getattr(posterior, "incumbent", best)  # where the posterior has a scale of its own
        where = surrogate.draws(target), surrogate.region(target)
        return cls(posterior, best, *where, apart, target.categorical)

    def predict(self, code: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of one configuration's score, (1, d), with that of the common level."""
        [mean], [std] = self.scores(code)
        return float(mean), math.hypot(std, getattr(self.posterior, "level_std", 0.0))

    def scores(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the scores, on their own scale; (n, d) -> (n,), (n,)."""
        mean, std = self.posterior.predict(codes)
        translate = getattr(self.posterior, "to_scores", None)
        return (mean, std) if translate is None else translate(mean, std)

    def ranked(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The order in which codes that can be enumerated should be tried; (n, d) -> (k,), int, k <= n."""
        chosen = np.arange(len(codes))
        if self.draws and len(codes) > N_DRAWN:  # a joint draw of very many is slow, and one of some as good
            chosen = np.sort(rng.choice(len(codes), N_DRAWN, replace=False))
        value = partial(thompson_sample, self.posterior, rng=rng) if self.draws else self.acquisition
        # Those outside of the region come last: they are wanted when it has been used up.
        outside = np.zeros(len(chosen)) if self.region is None else ~self.region.contains(codes[chosen])
        return chosen[np.lexsort((-value(codes[chosen]), outside))]

    def candidates(self, space: Space, near: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Codes worth trying, best first; -> (k, d)."""
        if self.draws:
            codes = sample(space, rng, N_DRAWN, self.region)
            return codes[self.ranked(codes, rng)[:64]]
        return maximize(self.acquisition, space, rng, near=near, region=self.region)

    def acquisition(self, theta: np.ndarray) -> np.ndarray:
        """How much a trial promises; (n, d) -> (n,)."""
        mean, std = self.posterior.predict(theta)
        if self.best is None:
            value = lower_confidence_bound(mean, std)
        else:
            value = log_expected_improvement(mean, std, self.best)
        return value - 1e9 * self._is_in_batch(theta)  # if nothing else is left, their order stays

    def _is_in_batch(self, theta: np.ndarray) -> np.ndarray:
        """Whether next to the same is in the batch already, which is to be no set of copies; (n, d) -> (n,).

        That a trial will turn out as predicted keeps a nearly noise-free model from its very place, not from
        the places beside it.
        """
        found = np.zeros(len(theta), dtype=bool)
        for code in self.apart:
            distance = np.where(self.categorical, theta != code, np.abs(theta - code))
            found |= (distance < min(NEAR, 0.2 / len(self.apart))).all(axis=1)  # of many each has less room
        return found


def predicted(belief: Belief | None, space: Space, params: Mapping[str, Any]) -> tuple[float, float]:
    """Mean and standard deviation of a configuration's score, NaN without a belief."""
    return (math.nan, math.nan) if belief is None else belief.predict(space.encode([params]))


class Pool:
    """Configurations that can be enumerated, with their codes."""

    def __init__(self, space: Space, params: Sequence[Mapping[str, Any]], source: Any = None):
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

    def part(self, members: Sequence[int]) -> Pool:
        """The pool of some members, without encoding them again."""
        part = copy(self)
        part._source = None
        part.params = [self.params[i] for i in members]
        part._keys = [self._keys[i] for i in members]
        part.codes = self.codes[np.asarray(members, dtype=int)]
        return part

    def fresh(self, seen: set[frozenset]) -> list[int]:
        """Indices of the members that are not in `seen`."""
        return [i for i, key in enumerate(self._keys) if key not in seen]

    def nearest(self, code: np.ndarray, among: Sequence[int] | None = None) -> dict[str, Any]:
        """The member nearest to a code, of all or of some."""
        among = range(len(self.params)) if among is None else among
        return self.params[among[int(self._apart(self.codes[among], code).argmin())]]

    def nearer(self, code: np.ndarray, tried: np.ndarray) -> dict[str, Any] | None:
        """The member nearest to a code; None if one of those tried, (n, d), is as near: it was granted.

        A pool may hold only what has not been tried: then there is always another member that is nearest.
        """
        there = self._apart(self.codes, code)
        if len(tried) and self._apart(tried, code).min() <= there.min():
            return None
        return self.params[int(there.argmin())]

    def _apart(self, codes: np.ndarray, code: np.ndarray) -> np.ndarray:
        """(n, d), (d,) -> (n,)"""
        return np.where(self._categorical, codes != code, np.abs(codes - code)).sum(axis=1)


Members = Sequence[Mapping[str, Any]] | Pool
"""What a caller may give as a pool."""


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


def scores_of(trials: Sequence[Trial]) -> np.ndarray:
    """NaN where a trial failed; beyond 1e100, where squares soon overflow, one is as good as another."""
    return _bounded([trial.score for trial in trials])


def _bounded(values: Sequence[float]) -> np.ndarray:
    z = np.array(values, dtype=float)
    return np.where(np.isfinite(z), np.clip(z, -1e100, 1e100), np.nan)


def checked_count(n: Any) -> int:
    """How many configurations are wanted; a ValueError unless it is a whole number from 1 on."""
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n={n!r} must be a whole number, at least 1.")
    return int(n)


def metrics_of(trials: Sequence[Trial]) -> dict[str, np.ndarray]:
    """Everything else that was measured of the trials, by name, NaN where it was not; (n,) each."""
    names = dict.fromkeys(name for trial in trials for name in trial.metrics)
    found = {n: _bounded([trial.metrics.get(n, math.nan) for trial in trials]) for n in names}
    return found | {"fit_time": np.array([trial.fit_time for trial in trials], dtype=float)}


def with_trials(target: EncodedTask, codes: np.ndarray, z: np.ndarray) -> EncodedTask:
    """The target with further trials, of which only the score is known."""
    unknown = np.full(len(z), math.nan)
    return replace(
        target,
        theta=np.vstack([target.theta, codes]),
        z=np.concatenate([target.z, z]),
        metrics={name: np.append(values, unknown) for name, values in target.metrics.items()},
    )


def told_code(space: Space, params: Mapping[str, Any]) -> np.ndarray:
    """Code of a configuration from outside; a ValueError if it has no place in the space."""
    code = space.encode(params)
    if np.isnan(code).any():
        names = [name for name, u in zip(space.column_names(), code, strict=True) if np.isnan(u)]
        values = ", ".join(f"{name}={params[name]!r}" for name in names if name is not None)
        raise ValueError(f"{values} has no place in the space, where that is a number.")
    return np.clip(code, -REACH, 1 + REACH)


def same_in(space: Space, code: np.ndarray) -> list[frozenset]:
    """Identity of the member of the space that has this code; none of what lies outside or between members.

    Told as 3.0, or with more digits, what the space calls 3 is the same configuration; 1000 is not the 100
    that the space ends with.
    """
    member = space.decode(code)
    return [params_identity(member)] if np.allclose(space.encode(member), code, atol=1e-6) else []


def under_way(
    space: Space, pending: Mapping[frozenset, dict[str, Any]], told: np.ndarray
) -> dict[frozenset, dict[str, Any]]:
    """What is still under way of the configurations asked for, by key, when one has been told."""
    codes = space.encode(list(pending.values())) if pending else ()
    # But for rounding: people log six digits, and report what they logged.
    same = [np.allclose(code, told, rtol=0, atol=1e-6, equal_nan=True) for code in codes]
    return {key: params for (key, params), is_told in zip(pending.items(), same, strict=True) if not is_told}


def space_filling(
    space: Space, index: int, seed: int, region: Region | None, rng: np.random.Generator
) -> np.ndarray:
    """Codes that fill the space, or a region of it: its middle, then Sobol; (1, d), or some more.

    In a region the nearest value of a list may lie outside: then it is one of the draws that are inside.
    """
    if index == 0:
        cube = np.where(space.categorical, 0.0, 0.5)[None]  # the first category
    else:
        engine = qmc.Sobol(space.n_columns, seed=seed)
        if index > 1:
            engine.fast_forward(index - 1)
        cube = engine.random(1)
    if region is None:
        return space.from_cube(cube)
    codes = np.vstack([space.snap(region.stretch(cube)), sample(space, rng, 64, region)])
    return codes[region.contains(codes)]
