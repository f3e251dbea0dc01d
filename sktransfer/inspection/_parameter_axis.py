"""`ParameterAxis`: one hyperparameter as the axis of a picture.

Pictures are drawn in the coordinates of the space, in which every kind of parameter lies evenly in
[0, 1]. Ticks carry the values: decades on a log scale, round numbers on a linear one, all values of
a short list.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sktransfer.space import Space

MAX_TICKS = 7
MAX_LABEL_LENGTH = 16


class ParameterAxis:
    """One column of a space in one of its branches.

    Parameters
    ----------
    space : Space
    column : int
    branch : int
    """

    def __init__(self, space: Space, column: int, branch: int):
        self.space, self.column, self.branch = space, column, branch
        self.name = str(space.column_names()[column])
        self.is_categorical = bool(space.categorical[column])

    @classmethod
    def all_of(cls, space: Space, branch: int) -> list[ParameterAxis]:
        """The axes of all parameters of a branch."""
        return [cls(space, int(column), branch) for column in space.active(branch)]

    @classmethod
    def find(cls, space: Space, name: str, branch: int) -> ParameterAxis:
        """The axis of a parameter of this name, or a ValueError."""
        axes = {axis.name: axis for axis in cls.all_of(space, branch)}
        if name not in axes:
            raise ValueError(
                f"{name!r} is not a parameter of the best configuration. It has: {sorted(axes)}."
            )
        return axes[name]

    def grid(self, resolution: int) -> np.ndarray:
        """Coordinates from one end to the other, or those of all values of a list."""
        choices = self.space.choices(self.branch, self.column)
        return np.linspace(0, 1, resolution) if choices is None else choices

    def values(self, coordinates: np.ndarray) -> list[Any]:
        """The values at some coordinates."""
        codes = np.full((len(coordinates), self.space.n_columns), 0.5)
        if len(self.space.branches) > 1:
            codes[:, 0] = (self.branch + 0.5) / len(self.space.branches)
        codes[:, self.column] = coordinates
        return [params[self.name] for params in self.space.decode(codes)]

    def ticks(self) -> tuple[np.ndarray, list[str]]:
        """Coordinates of the ticks and their labels."""
        choices = self.space.choices(self.branch, self.column)
        if choices is not None:
            if len(choices) > MAX_TICKS and not self.is_categorical:
                choices = choices[:: math.ceil(len(choices) / MAX_TICKS)]
            return choices, [format_value(value) for value in self.values(choices)]
        numbers = self._round_numbers()
        at = self.space.encode_column(self.column, numbers)
        inside = (at >= -1e-9) & (at <= 1 + 1e-9)
        if inside.sum() < 2:
            at = np.array([0.0, 0.5, 1.0])
            return at, [format_value(value) for value in self.values(at)]
        labels = [format_value(number) for number in numbers]
        if len(set(labels)) < len(labels):  # a narrow range of large numbers
            labels = [f"{number:.12g}" for number in numbers]
        return at[inside], [label for label, ok in zip(labels, inside, strict=True) if ok]

    def _round_numbers(self) -> list[Any]:
        """Round numbers on the scale of the axis."""
        low, q1, middle, q3, high = self.values(np.array([0.01, 0.25, 0.5, 0.75, 0.99]))
        is_log = low > 0 and high >= 30 * low and _is_closer_to_log(low, middle, high)
        if is_log:
            first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
            step = math.ceil((last - first + 1) / MAX_TICKS)
            return [10.0**k for k in range(first, last + 1, step)]
        # An unbounded distribution has tails in which ticks would crowd together.
        is_even = abs((q3 - q1) - (high - low) / 2) < 0.2 * (high - low)
        if is_even:
            low, high = self.values(np.array([0.0, 1.0]))
        numbers = round_steps(low, high)
        return [int(number) for number in numbers] if isinstance(middle, int) else numbers


def _is_closer_to_log(low: float, middle: float, high: float) -> bool:
    linear, log = (low + high) / 2, math.sqrt(low * high)
    return abs(middle - log) < abs(middle - linear)


def round_steps(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two numbers, at most `MAX_TICKS`.

    >>> round_steps(0, 1), round_steps(1, 16)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [5.0, 10.0, 15.0])
    """
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / MAX_TICKS))
    step = next(m * power for m in (1, 2, 5, 10, 20) if (high - low) / (m * power) < MAX_TICKS)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def format_value(value: object) -> str:
    """A value as a short label.

    >>> [format_value(value) for value in (0.001, 1e-05, 1000.0, 100000.0, 3, None, "rbf")]
    ['0.001', '1e-5', '1000', '1e5', '3', 'None', 'rbf']
    """
    if isinstance(value, float):
        if 1000 <= abs(value) < 1e4:
            return f"{value:.0f}"
        text = f"{value:.3g}"
        if "e" in text:
            mantissa, exponent = text.split("e")
            text = f"{mantissa}e{int(exponent)}"
        return text
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_LABEL_LENGTH else text[: MAX_LABEL_LENGTH - 1] + "…"


def default_branch(space: Space, code: np.ndarray) -> int:
    """The branch of a configuration, given its code; (d,)."""
    return int(space.branch_of(np.asarray(code)[None])[0])


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the steps of a pipeline, where they stay distinct.

    >>> short_names(["svc__C", "svc__gamma"]), short_names(["a__C", "b__C"])
    (['C', 'gamma'], ['a__C', 'b__C'])
    """
    short = [name.rpartition("__")[2] or name for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)
