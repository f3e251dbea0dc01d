"""The axis of one hyperparameter: maps between its values and coordinates in [0, 1].

There are four kinds. Each has both maps:

=============  ============================================  ==========================
`Categorical`  values without an order                        (i + 1/2) / k
`Ordered`      a list of numbers                              linear, log or rank scale
`Continuous`   a continuous distribution                      its own scale
`Integers`     a discrete distribution                        middle of the value's mass
=============  ============================================  ==========================

Notation: v a value, u a coordinate. ``encode`` is defined for foreign values too. A number out of
bounds lies outside [0, 1] by its distance on the scale. A category that the axis does not have is
`UNKNOWN_CATEGORY`. Anything that is not a number is NaN on a scale. ``decode(encode(v)) == v`` for
the values of the axis, because ``decode`` rounds to as many digits as survive both maps.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rv_discrete

from sktransfer.utils._values import identity, to_python

UNKNOWN_CATEGORY = -1.0
"""Coordinate of a category that the axis does not have."""

INACTIVE_CATEGORY = 0.0
"""Coordinate on a categorical axis in a branch without the parameter. No category lies there."""

_NOT_POSITIVE = -1.0  # coordinate of zero and negative numbers on a log scale
_TAIL_MASS = 1e-6  # share of the mass left out at each end of an unbounded distribution
_MAX_LISTED_VALUES = 10**6  # a longer range of integers counts as infinite
_DIGITS = 12  # significant digits that survive encode and decode on the linear and log scales
_QUANTILE_DIGITS = 8  # the same for ppf(cdf(v)), which loses some in the tails


class Distribution(Protocol):
    """The methods of a frozen scipy.stats distribution that are used here."""

    def support(self) -> tuple[float, float]: ...

    def cdf(self, v: ArrayLike, /) -> Any: ...

    def ppf(self, q: ArrayLike, /) -> Any: ...


class DiscreteDistribution(Distribution, Protocol):
    """A distribution of numbers in steps of one."""

    def pmf(self, v: ArrayLike, /) -> Any: ...


def is_number(value: object) -> bool:
    """Whether a value is a finite number. Booleans are not numbers."""
    value = to_python(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max  # exact for integers too, and False for NaN


def is_ordered(values: Sequence[object]) -> bool:
    """Whether values can lie on a scale: numbers, without both 1 and 1.0, which have one place."""
    if not all(map(is_number, values)):
        return False
    python_values: list[Any] = [to_python(value) for value in values]
    return len({float(v) for v in python_values}) == len({(type(v), v) for v in python_values})


def nearest(coordinates: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Index of the coordinate (sorted) nearest to each u; (k,), (n,) -> (n,)."""
    u = np.asarray(u, dtype=float)
    middles = (coordinates[1:] + coordinates[:-1]) / 2
    return np.searchsorted(middles, u)


class Categorical:
    """Values without an order, distinguished by their identity."""

    is_categorical = True

    def __init__(self, values: Sequence[object]):
        unique = {identity(value): to_python(value) for value in reversed(values)}
        self.values = list(reversed(unique.values()))
        self.coordinates = (np.arange(len(self.values)) + 0.5) / len(self.values)
        self._index = {identity(value): index for index, value in enumerate(self.values)}

    def index(self, value: object) -> int | None:
        return self._index.get(identity(value))

    def encode(self, values: Sequence[object]) -> np.ndarray:
        found = [self.index(value) for value in values]
        coordinates = [UNKNOWN_CATEGORY if i is None else self.coordinates[i] for i in found]
        return np.array(coordinates, dtype=float)

    def decode(self, u: np.ndarray) -> list:
        return [self.values[i] for i in nearest(self.coordinates, u)]

    def snap(self, u: np.ndarray) -> np.ndarray:
        return self.coordinates[nearest(self.coordinates, u)]


class Ordered:
    """A list of numbers on the scale that spaces them most evenly: linear, log or rank."""

    is_categorical = False

    def __init__(self, values: Sequence[Any]):
        unique = {float(value): to_python(value) for value in reversed(values)}
        self._numbers = np.array(sorted(unique))
        self.values = [unique[number] for number in self._numbers]
        self.scale = _list_scale(self._numbers)
        knots = np.log(self._numbers) if self.scale == "log" else self._numbers
        if len(knots) == 1:
            self.coordinates = np.array([0.5])
        elif self.scale == "rank":
            self.coordinates = np.linspace(0, 1, len(knots))
        else:
            self.coordinates = (knots - knots[0]) / (knots[-1] - knots[0])
        self._index = {(type(value), value): index for index, value in enumerate(self.values)}

    def index(self, value: object) -> int | None:
        value = to_python(value)
        return self._index.get((type(value), value)) if is_number(value) else None

    def encode(self, values: Sequence[Any]) -> np.ndarray:
        return np.array([self._encode_value(value) for value in values], dtype=float)

    def _encode_value(self, value: Any) -> float:
        index = self.index(value)
        if index is not None:
            return self.coordinates[index]
        if not is_number(value):
            return np.nan
        low, high = self._numbers[0], self._numbers[-1]
        if self.scale == "log":
            return np.log(value / low) / np.log(high / low) if value > 0 else _NOT_POSITIVE
        if low == high:
            return 0.5 + float(np.sign(value - low))
        if low <= value <= high:
            return float(np.interp(value, self._numbers, self.coordinates))
        return (value - low) / (high - low)

    def decode(self, u: np.ndarray) -> list:
        return [self.values[i] for i in nearest(self.coordinates, u)]

    def snap(self, u: np.ndarray) -> np.ndarray:
        return self.coordinates[nearest(self.coordinates, u)]


def _list_scale(numbers: np.ndarray) -> str:
    """Find the scale of sorted numbers: "rank" if neither "linear" nor "log" spaces them evenly."""
    if len(numbers) < 3:
        return "log" if numbers[0] > 0 and numbers[-1] >= 10 * numbers[0] else "linear"
    linear = _unevenness(numbers)
    log = _unevenness(np.log(numbers)) if numbers[0] > 0 else np.inf
    if log < linear and log < 0.75:
        return "log"
    return "linear" if linear < 0.75 else "rank"


def _unevenness(knots: np.ndarray) -> float:
    gaps = np.diff(knots)
    return float(gaps.std() / gaps.mean())


class Continuous:
    """A continuous distribution. Its quantiles are the scale, which is a log for a loguniform."""

    is_categorical = False
    values = None

    def __init__(self, distribution: Distribution):
        self.distribution = distribution
        self._low, self._high = (float(bound) for bound in distribution.support())
        self.scale = self._find_scale()

    def _find_scale(self) -> str:
        low, high = self._low, self._high
        if not np.isfinite([low, high]).all():
            return "quantile"
        q = np.linspace(0.1, 0.9, 5)
        v = self.distribution.ppf(q)
        if np.allclose(v, low + q * (high - low), rtol=1e-9, atol=1e-9 * (high - low)):
            return "linear"
        if low > 0:
            log_uniform = np.log(low) + q * np.log(high / low)
            if np.allclose(np.log(v), log_uniform, rtol=1e-9, atol=1e-9):
                return "log"
        return "quantile"

    def encode(self, values: Sequence[object]) -> np.ndarray:
        v, is_known = _to_numbers(values)
        return np.where(is_known, self._to_unit(v), np.nan)

    def _to_unit(self, v: np.ndarray) -> np.ndarray:
        low, high = self._low, self._high
        if self.scale == "linear":
            return (v - low) / (high - low)
        if self.scale == "log":
            u = np.log(np.where(v > 0, v, low) / low) / np.log(high / low)
            return np.where(v > 0, u, _NOT_POSITIVE)
        u = (self.distribution.cdf(v) - _TAIL_MASS) / (1 - 2 * _TAIL_MASS)
        width = np.diff(self.distribution.ppf([0.25, 0.75]))[0] or 1.0
        below, above = np.maximum(low - v, 0), np.maximum(v - high, 0)
        return np.clip(u, 0, 1) - below / width + above / width

    def decode(self, u: np.ndarray) -> list:
        low, high, u = self._low, self._high, np.clip(np.asarray(u, dtype=float), 0, 1)
        if self.scale == "linear":
            v = low + u * (high - low)
            decimals = _DIGITS - int(np.floor(np.log10(high - low)))
            v = np.round(v, decimals) if decimals < 300 else v
        elif self.scale == "log":
            v = _round_digits(np.exp(np.log(low) + u * np.log(high / low)), _DIGITS)
        else:
            q = _TAIL_MASS + u * (1 - 2 * _TAIL_MASS)
            v = _round_digits(self.distribution.ppf(q), _QUANTILE_DIGITS)
        return np.clip(v, low, high).tolist()

    def snap(self, u: np.ndarray) -> np.ndarray:
        return np.clip(u, 0, 1)


def _to_numbers(values: Sequence[object]) -> tuple[np.ndarray, np.ndarray]:
    """Return values as floats, with 0 for those that are not numbers, and which of them are."""
    is_known = np.array([is_number(value) for value in values], dtype=bool)
    v: list[Any] = [value if ok else 0.0 for value, ok in zip(values, is_known, strict=True)]
    return np.array(v, dtype=float), is_known


def _round_digits(v: np.ndarray, digits: int) -> np.ndarray:
    """Round to a number of significant digits."""
    return np.array([float(f"{number:.{digits - 1}e}") for number in np.atleast_1d(v)])


class Integers:
    """A discrete distribution. A value lies in the middle of its probability mass."""

    is_categorical = False

    def __init__(self, distribution: DiscreteDistribution):
        if _needs_truncation(distribution):
            distribution = _TruncatedDistribution(distribution)
        self.distribution = distribution
        self._low, self._high = (float(bound) for bound in distribution.support())
        self._is_bounded = bool(np.isfinite([self._low, self._high]).all())
        # Values are one apart, but need not be whole numbers: randint(1, 5, loc=0.5).
        self._offset = self._low % 1 if np.isfinite(self._low) else 0.0

    @cached_property
    def values(self) -> list[float] | None:
        """All values; None if they are unbounded or too many to list."""
        if not self._is_bounded or self._high - self._low > _MAX_LISTED_VALUES:
            return None
        candidates = self._low + np.arange(int(self._high - self._low) + 1)
        if self._offset == 0:
            candidates = candidates.astype(int)
        return candidates[self.distribution.pmf(candidates) > 0].tolist()

    def encode(self, values: Sequence[object]) -> np.ndarray:
        v, is_known = _to_numbers(values)
        inside = np.clip(v, self._low, self._high)
        step = np.rint(inside - self._offset) + self._offset
        u = self.distribution.cdf(inside) - self.distribution.pmf(step) / 2
        width = self._high - self._low + 1 if self._is_bounded else 1.0
        return np.where(is_known, u + (v - inside) / width, np.nan)

    def decode(self, u: np.ndarray) -> list:
        margin = _TAIL_MASS * 1e-6
        u = np.clip(np.asarray(u, dtype=float), margin, 1 - margin)
        return [to_python(int(v)) if v == int(v) else float(v) for v in self.distribution.ppf(u)]

    @cached_property
    def _steps(self) -> tuple[np.ndarray, np.ndarray] | None:
        """End and middle of the mass of each value; None if values cannot be listed."""
        if self.values is None:
            return None
        return self.distribution.cdf(self.values), self.encode(self.values)

    def snap(self, u: np.ndarray) -> np.ndarray:
        if self._steps is None:
            return self.encode(self.decode(u))
        ends, middles = self._steps
        return middles[np.minimum(np.searchsorted(ends, u), len(middles) - 1)]


class _TruncatedDistribution:
    """An infinite discrete distribution, truncated where little mass is left.

    scipy searches the quantiles of most of them step by step from one end. In the tail of a Zipf
    distribution that takes forever, and all memory.
    """

    MAX_VALUES = 2**16

    def __init__(self, distribution: DiscreteDistribution):
        low = float(distribution.support()[0])
        mass = distribution.pmf(low + np.arange(self.MAX_VALUES))
        n = int(np.searchsorted(np.cumsum(mass), 1 - _TAIL_MASS)) + 1
        self._low, self._mass = low, mass[:n] / mass[:n].sum()
        self._cumulative = np.cumsum(self._mass)

    def support(self) -> tuple[float, float]:
        return self._low, self._low + len(self._mass) - 1

    def pmf(self, v: ArrayLike) -> np.ndarray:
        index = np.asarray(v, dtype=float) - self._low
        inside = (index >= 0) & (index < len(self._mass)) & (index == np.rint(index))
        return np.where(inside, self._mass[np.where(inside, index, 0).astype(int)], 0.0)

    def cdf(self, v: ArrayLike) -> np.ndarray:
        index = np.floor(np.asarray(v, dtype=float) - self._low)
        inside = np.clip(index, 0, len(self._mass) - 1).astype(int)
        return np.where(index < 0, 0.0, self._cumulative[inside])

    def ppf(self, q: ArrayLike) -> np.ndarray:
        return self._low + np.minimum(np.searchsorted(self._cumulative, q), len(self._mass) - 1)


def _needs_truncation(distribution: DiscreteDistribution) -> bool:
    """Whether scipy searches quantiles without an end, and a truncated distribution avoids that."""
    low, high = distribution.support()
    family = type(getattr(distribution, "dist", None))
    if np.isinf(low) or np.isfinite(high):
        return False
    if getattr(family, "_ppf", None) is not rv_discrete._ppf:
        return False  # it has its own quantiles
    n = _TruncatedDistribution.MAX_VALUES
    mass = distribution.pmf(low + np.arange(n))
    return bool(mass.max() > 0 and mass.argmax() < n / 2)  # the mass beyond n is a tail


Axis = Categorical | Ordered | Continuous | Integers
