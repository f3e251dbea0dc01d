"""Short texts for the values and ranges of a space."""

from __future__ import annotations

import math
from typing import Any

from sktransfer.space._axes import Axis, Continuous, Integers, is_number
from sktransfer.space._parsing import Entry

MAX_LISTED = 4
MAX_TEXT_LENGTH = 24


def format_range(entry: Entry, axis: Axis) -> str:
    """The values of one parameter, in a few words.

    >>> from scipy.stats import norm, randint
    >>> [format_range(e, a) for e, a in [(randint(1, 9), Integers(randint(1, 9)))]]
    ['1 to 8 (integers)']
    >>> format_range(norm(0, 1), Continuous(norm(0, 1)))
    'norm'
    >>> from sktransfer.space._axes import Ordered
    >>> format_range([1, 2, 4, 8, 16], Ordered([1, 2, 4, 8, 16]))
    '1 to 16 (5 values)'
    """
    if isinstance(entry, list):
        return _format_list(entry)
    low, high = (float(bound) for bound in entry.support())
    if not (math.isfinite(low) and math.isfinite(high)):
        return str(getattr(getattr(entry, "dist", entry), "name", type(entry).__name__))
    text = f"{low:g} to {high:g}"
    if isinstance(axis, Integers):
        return f"{text} (integers)"
    is_log = isinstance(axis, Continuous) and axis.scale == "log"
    return f"{text} (log)" if is_log else text


def _format_list(values: list[Any]) -> str:
    if len(values) <= MAX_LISTED:
        return ", ".join(map(_shorten, values))
    if all(map(is_number, values)):
        return f"{min(values):g} to {max(values):g} ({len(values)} values)"
    return ", ".join(map(_shorten, values[: MAX_LISTED - 1])) + f", … ({len(values)} values)"


def _shorten(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_TEXT_LENGTH else text[: MAX_TEXT_LENGTH - 1] + "…"
