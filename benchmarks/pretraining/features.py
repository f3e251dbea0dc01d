"""Configurations as vectors, for models that predict scores from configurations and data sets.

A number on a log scale is its logarithm, a category is one indicator for each value. Values that
depend on the data are resolved: ``gamma="scale"`` is 1 / (p v) for p columns of mean variance v,
``max_features="sqrt"`` is 1 / sqrt(p). Zero on a log scale is one decade below the lower bound, and
None is above the upper bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.pretraining.configurations import Choice, Configuration, Real, Spec

NO_LIMIT = 0.3  # how far None is above the upper bound, in the units of the axis


def encode_configurations(
    spec: Spec, configurations: list[Configuration], p: int, variance: float
) -> np.ndarray:
    """Encode configurations of one estimator on one data set; of shape (len(configurations), d).

    Parameters
    ----------
    spec : Spec
    configurations : list of dict
    p : int
        Number of columns of the data set.
    variance : float
        Mean variance of the cells of X: 1 behind a scaler.
    """
    columns = [
        encode_values(rule, [each[name] for each in configurations], name, p, variance)
        for name, rule in spec.space.items()
    ]
    return np.column_stack(columns)


def encode_values(rule: Any, values: list, name: str, p: int, variance: float) -> np.ndarray:
    """Encode the values of one parameter; of shape (len(values), k)."""
    axis = number_axis(rule)
    if axis is not None:
        resolved = [resolve(value, name, p, variance) for value in values]
        return np.array([to_axis(value, axis) for value in resolved])[:, None]
    options = rule.values
    return np.array([[float(value == option) for option in options] for value in values])


def number_axis(rule: Any) -> Real | None:
    """The interval of a parameter; None if it is a category."""
    if isinstance(rule, Real):
        return rule
    intervals = [value for value in rule.values if isinstance(value, Real)]
    return intervals[0] if isinstance(rule, Choice) and intervals else None


def resolve(value: Any, name: str, p: int, variance: float) -> Any:
    """Replace a value that depends on the data by its number."""
    if value == "scale":
        return 1.0 / (p * max(variance, 1e-300))
    if name == "max_features":
        share = {"sqrt": p**-0.5, "log2": max(1.0, np.log2(p)) / p, None: 1.0}
        return share.get(value, value)
    return 200 if value == "auto" else value


def to_axis(value: float | None, axis: Real) -> float:
    """Put a number on its axis."""
    low, high = (np.log10(axis.low), np.log10(axis.high)) if axis.log else (axis.low, axis.high)
    if value is None:
        return high + NO_LIMIT
    if not axis.log:
        return float(value)
    return float(np.log10(value)) if value > 0 else low - 1.0
