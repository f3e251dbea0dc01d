"""Search spaces of scikit-optimize and Optuna, in lists and `scipy.stats` distributions.

`BayesSearchCV` takes ``(low, high, prior)`` and dimensions such as ``Real(1e-3, 1e3)``,
`OptunaSearchCV` takes distributions such as ``FloatDistribution(1e-3, 1e3, log=True)``. Both are
recognized by the names of their classes, so that neither library is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform

from sktransfer.exceptions import SpaceWarning
from sktransfer.space._axes import is_number
from sktransfer.utils._user_warnings import warn_user

PRIORS = {"uniform": False, "log-uniform": True}
"""Priors of scikit-optimize, and whether the scale is logarithmic."""

N_LOG_INTEGERS = 64  # integers on a log scale: as many, or all of them if they are fewer
MAX_STEPS = 10_000  # values of a distribution with a step


def translate_space(space: object) -> Any:
    """Replace entries of other libraries in a dict or a list of dicts; keep everything else."""
    if isinstance(space, Mapping):
        return {name: translate_entry(name, values) for name, values in space.items()}
    if isinstance(space, (list, tuple)):
        return [
            translate_space(branch) if isinstance(branch, Mapping) else branch for branch in space
        ]
    return space


def translate_entry(name: object, values: Any) -> Any:
    """Replace one entry of a space, if it is of another library.

    >>> translate_entry("C", (1e-3, 1e3, "log-uniform")).args
    (0.001, 1000.0)
    >>> translate_entry("C", [0.1, 1.0, 10.0])
    [0.1, 1.0, 10.0]
    """
    if isinstance(values, tuple):
        return _translate_tuple(name, values)
    library = type(values).__module__.partition(".")[0]
    if library == "skopt" and hasattr(values, "categories"):
        return list(values.categories)
    if library == "optuna" and hasattr(values, "choices"):
        return list(values.choices)
    if library not in ("skopt", "optuna") or not hasattr(values, "low"):
        return values
    if library == "skopt":
        return _make_entry(name, values.low, values.high, PRIORS.get(values.prior, False))
    if values.step is not None and not (isinstance(values.low, int) and values.step == 1):
        return _make_steps(name, values)
    return _make_entry(name, values.low, values.high, values.log)


def _translate_tuple(name: object, values: tuple) -> Any:
    are_bounds = len(values) >= 2 and is_number(values[0]) and is_number(values[1])
    if not are_bounds or not values[0] < values[1]:
        return values
    if len(values) in (3, 4) and values[2] in PRIORS:  # a fourth is the base, which changes nothing
        return _make_entry(name, values[0], values[1], PRIORS[values[2]])
    if len(values) == 2:
        low, high = values
        is_wide = low > 0 and high >= 100 * low
        warn_user(
            f"space[{name!r}] = {values!r} has two values, as in GridSearchCV. For all values "
            f"between them, as in BayesSearchCV, write {_spell(low, high, is_wide)}. For the two "
            f"values, write a list: [{low!r}, {high!r}].",
            SpaceWarning,
        )
        return [low, high]
    return values


def _make_entry(name: object, low: Any, high: Any, is_log: bool) -> Any:
    """The list or distribution of all values from `low` to `high`, both included."""
    if is_log and low <= 0:
        raise ValueError(
            f"space[{name!r}] has a log-uniform prior from {low!r} on, but a logarithm needs "
            "positive values. For example, write loguniform(1e-3, 1e3)."
        )
    if not (isinstance(low, (int, np.integer)) and isinstance(high, (int, np.integer))):
        return loguniform(low, high) if is_log else uniform(low, high - low)
    if not is_log:
        return randint(int(low), int(high) + 1)
    n = min(N_LOG_INTEGERS, int(high) - int(low) + 1)
    return np.unique(np.rint(np.geomspace(low, high, n)).astype(int)).tolist()


def _spell(low: Any, high: Any, is_log: bool) -> str:
    if is_log:
        return f"loguniform({low!r}, {high!r}) of scipy.stats"
    if isinstance(low, int) and isinstance(high, int):
        return f"randint({low!r}, {high + 1!r}) of scipy.stats"
    return f"uniform({low!r}, {high - low!r}) of scipy.stats"


def _make_steps(name: object, values: Any) -> Sequence[Any]:
    n = int(np.floor((values.high - values.low) / values.step + 1e-9)) + 1
    if n > MAX_STEPS:
        raise ValueError(
            f"space[{name!r}] = {values!r} has {n} steps, at most {MAX_STEPS} are supported. Leave "
            f"the step out: {_spell(values.low, values.high, values.log)}."
        )
    steps = [values.low + i * values.step for i in range(n)]
    return steps if isinstance(values.low, int) else [float(f"{step:.12g}") for step in steps]
