"""One hyperparameter's axis: the maps between its values and a coordinate in [0, 1].

Four kinds, each owning both of its maps:

=============  ============================================  ==========================
`Categorical`  values without an order                        (i + 1/2) / k
`Ordered`      a list of numbers                              linear, log or rank scale
`Continuous`   a continuous distribution                      its own scale
`Integers`     a discrete distribution                        middle of the value's mass
=============  ============================================  ==========================

Notation: v a value, u a coordinate. ``encode`` is defined for values from elsewhere too: a number out
of bounds lies outside [0, 1] by its distance on the scale, a category that is not known here is
`UNKNOWN`, and what is no number has no place on a scale: NaN. ``decode(encode(v)) == v`` for the axis'
own values, because ``decode`` rounds to a number of digits that floating point carries through both
maps.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import rv_discrete

from sktransfer.utils._values import identity, to_python

UNKNOWN = -1.0
"""Coordinate of a category that this space does not have."""

INACTIVE = 0.0
"""Coordinate of a category in a branch that does not have the parameter; no category lies there."""

_BELOW_ZERO = -1.0  # where zero and negative numbers lie on a log scale, which has no place for them
_TAIL = 1e-6  # share of the mass left out at each end of an unbounded distribution
_LISTABLE = 10**6  # a range of integers longer than this counts as endless
_DIGITS = 12  # significant digits that survive encode and decode on the linear and log scales
_QUANTILE_DIGITS = 8  # the same for ppf(cdf(v)), which loses some in the tails


def is_number(value: Any) -> bool:
    """True for finite numbers, not for booleans."""
    value = to_python(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max  # exact for whole numbers beyond that, too, and False for NaN


def _numbers(values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Values as numbers, with 0 in the place of what is none, and which of them are."""
    known = np.array([is_number(value) for value in values], dtype=bool)
    v = [value if ok else 0.0 for value, ok in zip(values, known, strict=True)]
    return np.array(v, dtype=float), known


class Categorical:
    """Values without an order, told apart by their identity."""

    categorical = True

    def __init__(self, values: Sequence[Any]):
        unique = {identity(value): to_python(value) for value in reversed(values)}
        self.values = list(reversed(unique.values()))
        self.coordinates = (np.arange(len(self.values)) + 0.5) / len(self.values)
        self._index = {identity(value): index for index, value in enumerate(self.values)}

    def index(self, value: Any) -> int | None:
        return self._index.get(identity(value))

    def encode(self, values: Sequence[Any]) -> np.ndarray:
        found = [self.index(value) for value in values]
        return np.array([UNKNOWN if i is None else self.coordinates[i] for i in found], dtype=float)

    def decode(self, u: np.ndarray) -> list:
        return [self.values[i] for i in nearest(self.coordinates, u)]

    def snap(self, u: np.ndarray) -> np.ndarray:
        return self.coordinates[nearest(self.coordinates, u)]


class Ordered:
    """A list of numbers, spaced as the list spaces them: evenly, geometrically, or by rank."""

    categorical = False

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

    def index(self, value: Any) -> int | None:
        value = to_python(value)
        return self._index.get((type(value), value)) if is_number(value) else None

    def encode(self, values: Sequence[Any]) -> np.ndarray:
        return np.array([self._encode(value) for value in values], dtype=float)

    def _encode(self, value: Any) -> float:
        index = self.index(value)
        if index is not None:
            return self.coordinates[index]
        if not is_number(value):
            return np.nan
        low, high = self._numbers[0], self._numbers[-1]
        if self.scale == "log":
            return np.log(value / low) / np.log(high / low) if value > 0 else _BELOW_ZERO
        if low == high:
            return 0.5 + float(np.sign(value - low))
        if low <= value <= high:
            return float(np.interp(value, self._numbers, self.coordinates))
        return (value - low) / (high - low)

    def decode(self, u: np.ndarray) -> list:
        return [self.values[i] for i in nearest(self.coordinates, u)]

    def snap(self, u: np.ndarray) -> np.ndarray:
        return self.coordinates[nearest(self.coordinates, u)]


class Continuous:
    """A continuous distribution; its own quantiles are the scale, which is a log for a loguniform."""

    categorical = False
    values = None

    def __init__(self, distribution: Any):
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
        if low > 0 and np.allclose(np.log(v), np.log(low) + q * np.log(high / low), rtol=1e-9, atol=1e-9):
            return "log"
        return "quantile"

    def encode(self, values: Sequence[Any]) -> np.ndarray:
        v, known = _numbers(values)
        return np.where(known, self._to_unit(v), np.nan)

    def _to_unit(self, v: np.ndarray) -> np.ndarray:
        low, high = self._low, self._high
        if self.scale == "linear":
            return (v - low) / (high - low)
        if self.scale == "log":
            u = np.log(np.where(v > 0, v, low) / low) / np.log(high / low)
            return np.where(v > 0, u, _BELOW_ZERO)
        u = (self.distribution.cdf(v) - _TAIL) / (1 - 2 * _TAIL)
        width = np.diff(self.distribution.ppf([0.25, 0.75]))[0] or 1.0
        below, above = np.maximum(low - v, 0), np.maximum(v - high, 0)
        return np.clip(u, 0, 1) - below / width + above / width

    def decode(self, u: np.ndarray) -> list:
        low, high, u = self._low, self._high, np.clip(np.asarray(u, dtype=float), 0, 1)
        if self.scale == "linear":
            decimals = _DIGITS - int(np.floor(np.log10(high - low)))
            v = np.round(low + u * (high - low), decimals) if decimals < 300 else low + u * (high - low)
        elif self.scale == "log":
            v = _round_digits(np.exp(np.log(low) + u * np.log(high / low)), _DIGITS)
        else:
            v = _round_digits(self.distribution.ppf(_TAIL + u * (1 - 2 * _TAIL)), _QUANTILE_DIGITS)
        return np.clip(v, low, high).tolist()

    def snap(self, u: np.ndarray) -> np.ndarray:
        return np.clip(u, 0, 1)


class _Table:
    """An endless discrete distribution up to where little is left of it, as a table of its masses.

    scipy looks for a quantile of most of them step by step, from an end: in the tail of a Zipf distribution
    for ever, and in all of the machine's memory.
    """

    LONGEST = 2**16

    def __init__(self, distribution: Any):
        low = float(distribution.support()[0])
        v = low + np.arange(self.LONGEST)
        shares = np.cumsum(mass := distribution.pmf(v))
        n = int(np.searchsorted(shares, 1 - _TAIL)) + 1
        self._low, self._mass = low, mass[:n] / mass[:n].sum()
        self._ends = np.cumsum(self._mass)

    def support(self) -> tuple[float, float]:
        return self._low, self._low + len(self._mass) - 1

    def pmf(self, v: Any) -> np.ndarray:
        place = np.asarray(v, dtype=float) - self._low
        inside = (place >= 0) & (place < len(self._mass)) & (place == np.rint(place))
        return np.where(inside, self._mass[np.where(inside, place, 0).astype(int)], 0.0)

    def cdf(self, v: Any) -> np.ndarray:
        place = np.floor(np.asarray(v, dtype=float) - self._low)
        known = np.clip(place, 0, len(self._ends) - 1).astype(int)
        return np.where(place < 0, 0.0, self._ends[known])

    def ppf(self, q: Any) -> np.ndarray:
        return self._low + np.minimum(np.searchsorted(self._ends, q), len(self._ends) - 1)


def _is_slow(distribution: Any) -> bool:
    """Whether its quantiles are looked for step by step, without an end, and a table can have them."""
    low, high = distribution.support()
    family = type(getattr(distribution, "dist", None))
    if np.isinf(low) or np.isfinite(high) or getattr(family, "_ppf", None) is not rv_discrete._ppf:
        return False
    mass = distribution.pmf(low + np.arange(_Table.LONGEST))
    return bool(mass.max() > 0 and mass.argmax() < _Table.LONGEST / 2)  # what comes after it is a tail


class Integers:
    """A discrete distribution; a value lies in the middle of the probability mass it owns."""

    categorical = False

    def __init__(self, distribution: Any):
        distribution = _Table(distribution) if _is_slow(distribution) else distribution
        self.distribution = distribution
        self._low, self._high = (float(bound) for bound in distribution.support())
        self._bounded = bool(np.isfinite([self._low, self._high]).all())
        # Steps of one, but not always from a whole number: randint(1, 5, loc=0.5).
        self._offset = self._low % 1 if np.isfinite(self._low) else 0.0

    @cached_property
    def values(self) -> list[float] | None:
        """All values, where they are bounded and not too many to list; None otherwise."""
        if not self._bounded or self._high - self._low > _LISTABLE:
            return None
        candidates = self._low + np.arange(int(self._high - self._low) + 1)
        if self._offset == 0:
            candidates = candidates.astype(int)
        return candidates[self.distribution.pmf(candidates) > 0].tolist()

    def encode(self, values: Sequence[Any]) -> np.ndarray:
        v, known = _numbers(values)
        inside = np.clip(v, self._low, self._high)
        step = np.rint(inside - self._offset) + self._offset
        u = self.distribution.cdf(inside) - self.distribution.pmf(step) / 2
        width = self._high - self._low + 1 if self._bounded else 1.0
        return np.where(known, u + (v - inside) / width, np.nan)

    def decode(self, u: np.ndarray) -> list:
        u = np.clip(np.asarray(u, dtype=float), _TAIL * 1e-6, 1 - _TAIL * 1e-6)
        return [to_python(int(v)) if v == int(v) else float(v) for v in self.distribution.ppf(u)]

    @cached_property
    def _steps(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Where the mass of each value ends, and its middle; None where values cannot be listed."""
        if self.values is None:
            return None
        return self.distribution.cdf(self.values), self.encode(self.values)

    def snap(self, u: np.ndarray) -> np.ndarray:
        if self._steps is None:
            return self.encode(self.decode(u))
        ends, middles = self._steps
        return middles[np.minimum(np.searchsorted(ends, u), len(middles) - 1)]


Axis = Categorical | Ordered | Continuous | Integers


def is_ordered(values: Sequence[Any]) -> bool:
    """True for a list of numbers; 1 beside 1.0 are two values at one place, hence categories."""
    if not all(map(is_number, values)):
        return False
    return len({float(v) for v in values}) == len({(type(v), v) for v in map(to_python, values)})


def nearest(coordinates: np.ndarray, u: Any) -> np.ndarray:
    """Index of the coordinate (sorted) nearest to each u; (k,), (n,) -> (n,)."""
    u = np.asarray(u, dtype=float)
    middles = (coordinates[1:] + coordinates[:-1]) / 2
    return np.searchsorted(middles, u)


def _list_scale(numbers: np.ndarray) -> str:
    """Which scale spaces the sorted numbers most evenly: "linear", "log" or, where neither does, "rank"."""
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


def _round_digits(v: np.ndarray, digits: int) -> np.ndarray:
    """Round to a number of significant digits."""
    return np.array([float(f"{number:.{digits - 1}e}") for number in np.atleast_1d(v)])
