"""Which configurations lie in a space, and which lie at its edge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sktransfer.space._axes import is_number, is_ordered
from sktransfer.space._parsing import Entry
from sktransfer.space._space import Space
from sktransfer.utils._values import identity

EDGE = 0.01  # share of the scale of a distribution, at each end, that counts as its edge
MIN_LENGTH = 3  # values of a list whose ends count as edges

_ABSENT = object()


def find_member(space: Space, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """The configuration of a space that equals recorded parameters; None if there is none.

    Recorded values are plain data, so that an estimator is a description. The result has the
    values of the space itself.

    >>> from scipy.stats import uniform
    >>> space = Space.parse({"a": uniform(0, 1), "kind": ["x", "y"]})
    >>> find_member(space, {"a": 0.5, "kind": "y"}), find_member(space, {"a": 2.0, "kind": "y"})
    ({'a': 0.5, 'kind': 'y'}, None)
    """
    for branch in space.branches:
        if branch.keys() == params.keys():
            found = {name: _find_value(entry, params[name]) for name, entry in branch.items()}
            if _ABSENT not in found.values():
                return found
    return None


def _find_value(entry: Entry, value: Any) -> Any:
    if isinstance(entry, list):
        key = identity(value)
        return next((own for own in entry if identity(own) == key), _ABSENT)
    low, high = entry.support()
    if not is_number(value) or not low <= value <= high:
        return _ABSENT
    pmf = getattr(entry, "pmf", None)
    return value if pmf is None or pmf(value) > 0 else _ABSENT


def find_edges(space: Space, params: Mapping[str, Any]) -> list[str]:
    """Describe the numbers of a configuration that lie at an end of their range.

    >>> from scipy.stats import loguniform
    >>> space = Space.parse({"C": loguniform(1e-3, 1e3), "k": [1, 2, 3, 4], "s": ["a", "b"]})
    >>> find_edges(space, {"C": 990.0, "k": 2, "s": "a"})
    ['C=990.0 is at the upper end of 0.001 to 1000.0']
    """
    branch = next((b for b in space.branches if b.keys() == params.keys()), {})
    found = []
    for name, entry in branch.items():
        bounds = _bounds(entry)
        if bounds is None or not is_number(params[name]):
            continue
        column = space.column_names().index(name)
        u = float(space.encode_column(column, [params[name]])[0])
        is_listed = isinstance(entry, list)
        is_low = params[name] <= bounds[0] if is_listed else u <= EDGE
        is_high = params[name] >= bounds[1] if is_listed else u >= 1 - EDGE
        if is_low or is_high:
            end = "lower" if is_low else "upper"
            text = f"{name}={params[name]!r} is at the {end} end of {bounds[0]!r} to {bounds[1]!r}"
            found.append(text)
    return found


def _bounds(entry: Entry) -> tuple[Any, Any] | None:
    """The ends of a scale; None if the entry is not a scale or has no ends."""
    if isinstance(entry, list):
        is_scale = len(entry) >= MIN_LENGTH and is_ordered(entry)
        return (min(entry), max(entry)) if is_scale else None
    low, high = entry.support()
    if not np.isfinite([low, high]).all():
        return None
    kind = int if hasattr(entry, "pmf") else float
    return kind(low), kind(high)
