"""Parse the user's space into branches of checked values, and make axes from them.

A branch is one dict of the user's list (a single dict is a list of one). Each of its parameters
has a list of values or a distribution. Branches share axes: two lists of numbers, two lists of
categories, or the same distribution under one name form one axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import randint

from sktransfer.space._axes import (
    Axis,
    Categorical,
    Continuous,
    Distribution,
    Integers,
    Ordered,
    is_ordered,
)
from sktransfer.space._other_libraries import translate_entry
from sktransfer.utils._values import Plain, describe, identity, to_python

Entry = list[Any] | Distribution
Branch = dict[str, Entry]
N_DRAWS = 1000
MAX_DESCRIBED_VALUES = 10_000  # values of a list that a description contains
MAX_RANGE_LENGTH = 100_000  # longer ranges become distributions, not lists


def parse_branches(space: object) -> list[Branch]:
    """Check the user's space and return its branches."""
    if isinstance(space, Mapping):
        space = [space]
    if not isinstance(space, Sequence) or isinstance(space, str):
        raise TypeError(
            f"space must be a dict or a list of dicts, got {space!r} ({type(space).__name__}). "
            "For example {'C': loguniform(1e-3, 1e3), 'kernel': ['rbf', 'poly']}."
        )
    if not space:
        raise ValueError(
            f"space is empty: {space!r}. Pass a dict, for example "
            "{'C': loguniform(1e-3, 1e3)}, or an empty dict to evaluate the estimator as it is."
        )
    return [_parse_branch(branch) for branch in space]


def _parse_branch(branch: object) -> Branch:
    if not isinstance(branch, Mapping):
        raise TypeError(f"space must contain dicts, got {branch!r} ({type(branch).__name__}).")
    # ParameterGrid sorts the names, so grids come out in its order.
    return {name: _parse_entry(name, branch[name]) for name in sorted(branch, key=str)}


def _parse_entry(name: object, values: Any) -> Entry:
    if not isinstance(name, str):
        raise TypeError(f"Parameter names must be strings, got {name!r} ({type(name).__name__}).")
    values = translate_entry(name, values)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(
                f"space[{name!r}] must be one-dimensional, got an array of shape {values.shape}."
            )
        values = list(values)
    elif not isinstance(values, Sequence) and callable(getattr(values, "tolist", None)):
        values = values.tolist()  # a Series or an Index
    elif callable(getattr(values, "rvs", None)) and not callable(getattr(values, "ppf", None)):
        values = _draw_values(values)
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        if len(values) == 0:
            raise ValueError(f"space[{name!r}] is empty: {values!r}. Pass at least one value.")
        if isinstance(values, range) and values.step == 1 and len(values) > MAX_RANGE_LENGTH:
            return randint(values.start, values.stop)  # equivalent to a list of a billion numbers
        return [to_python(value) for value in values]
    return _check_distribution(name, values)


def _check_distribution(name: str, values: Any) -> Distribution:
    methods = ("rvs", "ppf", "cdf", "support")
    missing = [method for method in methods if not callable(getattr(values, method, None))]
    if missing:
        raise TypeError(
            f"space[{name!r}] must be a list of values or a frozen scipy.stats distribution, such "
            f"as loguniform(1e-3, 1e3); got {values!r} ({type(values).__name__}), which has no "
            f"{' and no '.join(missing)}. Put a single value into a list: [{values!r}]."
        )
    try:
        bounds = np.asarray(values.support(), dtype=float)
    except TypeError:
        raise TypeError(
            f"space[{name!r}] is a family of distributions without parameters. Pass them, "
            "as in loguniform(1e-3, 1e3)."
        ) from None
    if np.isnan(bounds).any():
        raise ValueError(
            f"space[{name!r}] is a distribution without a support. Check its parameters."
        )
    return values


def _draw_values(distribution: Any) -> list[Any]:
    """Draw the values of an object that has only an `rvs` method; the same ones every time."""
    rng = np.random.RandomState(0)
    drawn = [distribution.rvs(random_state=rng) for _ in range(N_DRAWS)]
    return list({identity(value): value for value in drawn}.values())


def make_axes(branches: list[Branch]) -> tuple[list[Axis], list[str], list[dict[str, int]]]:
    """Make the axes of a space.

    Returns
    -------
    axes : list of axes
    names : list of str
        Parameter of each axis.
    axis_indices : list of dict
        For each branch, parameter name -> index of its axis.
    """
    groups: dict[tuple, list[Entry]] = {}
    for branch in branches:
        for name, values in branch.items():
            groups.setdefault((name, *_axis_kind(values)), []).append(values)
    keys = list(groups)
    axes = [_make_axis(groups[key]) for key in keys]
    axis_indices = [
        {name: keys.index((name, *_axis_kind(values))) for name, values in branch.items()}
        for branch in branches
    ]
    return axes, [key[0] for key in keys], axis_indices


def _axis_kind(values: Entry) -> tuple:
    """What two entries under one name must have in common to share an axis."""
    if isinstance(values, list):
        return ("numbers",) if is_ordered(values) else ("categories",)
    # An object that is not a frozen member of a named family, such as a histogram, equals only
    # itself.
    is_named = hasattr(values, "dist")
    return ("distribution", repr(describe_values(values)) if is_named else id(values))


def _make_axis(entries: list[Any]) -> Axis:
    first = entries[0]
    if not isinstance(first, list):
        return Integers(first) if hasattr(first, "pmf") else Continuous(first)
    values = [value for entry in entries for value in entry]
    return Ordered(values) if is_ordered(values) else Categorical(values)


def describe_values(values: Entry) -> dict[str, Plain]:
    """Describe one entry of the space as plain data. Long lists are thinned out."""
    if isinstance(values, list):
        step = -(-len(values) // MAX_DESCRIBED_VALUES)
        return {"values": describe(values[::step])}
    family = getattr(getattr(values, "dist", values), "name", type(values).__name__)
    return {
        "distribution": str(family),
        "args": describe(list(getattr(values, "args", ()))),
        "kwds": describe(dict(getattr(values, "kwds", {}))),
    }
