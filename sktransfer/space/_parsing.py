"""From what the user wrote to branches of checked values, and from those to axes.

A branch is one dict of the user's list (a single dict is a list of one): each of its parameters has a
list of values or a distribution. Axes are shared between branches where that makes sense: two lists of
numbers, two lists of categories or the same distribution under one name are one axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import randint

from sktransfer.space._axes import Axis, Categorical, Continuous, Integers, Ordered, is_ordered
from sktransfer.utils._values import Plain, describe, identity, to_python

Branch = dict[str, Any]
N_DRAWS = 1000
MOST_VALUES = 10_000  # of a list that are told
LONG_RANGE = 100_000  # of which no list is made


def parse_branches(space: Any) -> list[Branch]:
    """Check the user's space and return its branches: name -> list of values, or distribution."""
    if isinstance(space, Mapping):
        space = [space]
    if not isinstance(space, Sequence) or isinstance(space, str):
        raise TypeError(
            f"space must be a dict or a list of dicts, got {space!r} ({type(space).__name__}); "
            "for example {'C': loguniform(1e-3, 1e3), 'kernel': ['rbf', 'poly']}."
        )
    if not space:
        raise ValueError(
            f"space is empty: {space!r}. Give it a dict, for example {{'C': loguniform(1e-3, 1e3)}}; "
            "an empty one stands for the estimator as it is."
        )
    return [_parse_branch(branch) for branch in space]


def _parse_branch(branch: Any) -> Branch:
    if not isinstance(branch, Mapping):
        raise TypeError(f"space must hold dicts, got {branch!r} ({type(branch).__name__}).")
    # ParameterGrid goes through the names in sorted order; so do we, and grids come out in its order.
    return {name: _parse_values(name, branch[name]) for name in sorted(branch, key=str)}


def _parse_values(name: Any, values: Any) -> Any:
    if not isinstance(name, str):
        raise TypeError(f"Parameter names must be strings, got {name!r} ({type(name).__name__}).")
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(
                f"space[{name!r}] must be one-dimensional, got an array of shape {values.shape}."
            )
        values = list(values)
    elif not isinstance(values, Sequence) and callable(getattr(values, "tolist", None)):
        values = values.tolist()  # a Series or an Index
    elif callable(getattr(values, "rvs", None)) and not callable(getattr(values, "ppf", None)):
        values = _draws(values)
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        if len(values) == 0:
            raise ValueError(f"space[{name!r}] is empty: {values!r}. Give it at least one value.")
        if isinstance(values, range) and values.step == 1 and len(values) > LONG_RANGE:
            return randint(values.start, values.stop)  # the same, without a list of a billion numbers
        return [to_python(value) for value in values]
    methods = ("rvs", "ppf", "cdf", "support")
    missing = [method for method in methods if not callable(getattr(values, method, None))]
    if missing:
        raise TypeError(
            f"space[{name!r}] must be a list of values or a frozen scipy.stats distribution such as "
            f"loguniform(1e-3, 1e3); got {values!r} ({type(values).__name__}), which has no "
            f"{' and no '.join(missing)}. A single value goes into a list: [{values!r}]."
        )
    try:
        bounds = np.asarray(values.support(), dtype=float)
    except TypeError:
        raise TypeError(
            f"space[{name!r}] is a family of distributions, not one of them: give it its parameters, "
            "as in loguniform(1e-3, 1e3)."
        ) from None
    if np.isnan(bounds).any():
        raise ValueError(f"space[{name!r}] is a distribution without a support; check its parameters.")
    return values


def _draws(distribution: Any) -> list[Any]:
    """What can only be drawn from stands for the different ones of a thousand draws, each time the same."""
    rng = np.random.RandomState(0)
    drawn = [distribution.rvs(random_state=rng) for _ in range(N_DRAWS)]
    return list({identity(value): value for value in drawn}.values())


def is_list(values: Any) -> bool:
    """True for a list of values, False for a distribution."""
    return isinstance(values, list)


def _kind(values: Any) -> tuple:
    """What two entries under one name must have in common to lie on one axis."""
    if not is_list(values):
        # What is not a frozen member of a named family (a histogram, say) equals only itself.
        return ("distribution", repr(describe_values(values)) if hasattr(values, "dist") else id(values))
    return ("numbers",) if is_ordered(values) else ("categories",)


def make_axes(branches: list[Branch]) -> tuple[list[Axis], list[str], list[dict[str, int]]]:
    """Axes, the name of each, and for each branch the index of every parameter's axis."""
    groups: dict[tuple, list[Any]] = {}
    for branch in branches:
        for name, values in branch.items():
            groups.setdefault((name, *_kind(values)), []).append(values)
    keys = list(groups)
    axes = [_make_axis(groups[key]) for key in keys]
    places = [
        {name: keys.index((name, *_kind(values))) for name, values in branch.items()} for branch in branches
    ]
    return axes, [key[0] for key in keys], places


def _make_axis(entries: list[Any]) -> Axis:
    if not is_list(entries[0]):
        return Integers(entries[0]) if hasattr(entries[0], "pmf") else Continuous(entries[0])
    values = [value for entry in entries for value in entry]
    return Ordered(values) if is_ordered(values) else Categorical(values)


def describe_values(values: Any) -> dict[str, Plain]:
    """One entry of the space as plain data."""
    if is_list(values):
        every = -(-len(values) // MOST_VALUES)  # of a range of a million some will do
        return {"values": describe(values[::every])}
    family = getattr(getattr(values, "dist", values), "name", type(values).__name__)
    return {
        "distribution": str(family),
        "args": describe(list(getattr(values, "args", ()))),
        "kwds": describe(dict(getattr(values, "kwds", {}))),
    }
