"""`suggest_space`: a search space for a known estimator, mostly learned from the starter archive.

Good configurations are the best tenth of the trials on each data set. A suggested range holds most
of the good values of all data sets, plus a margin at both ends. Parameters with hardly any effect
are left out.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from scipy import stats

from sktransfer.archive import Archive, Starter, starter_folder
from sktransfer.exceptions import RecordError
from sktransfer.model_selection._archive_faults import warn_of_faults
from sktransfer.model_selection._default_spaces import (
    GOOD_SHARE,
    WRITTEN,
    example_space,
    recorded_space,
    widen_space,
)
from sktransfer.space import Estimator, Space
from sktransfer.space._axes import is_number
from sktransfer.space._estimator_tree import final_estimator, is_scaled
from sktransfer.task import Task
from sktransfer.utils._values import identity

COVERAGE = 0.9  # share of the good values in a range; the others are chance hits of flat surfaces
MARGIN = 0.1  # added to a range at each end, as a share of the width that was searched
MIN_EFFECT = 0.02  # mean share of the variance of the ranks that a parameter must explain
N_BINS = 4  # parts of a numeric axis whose ranks are compared
BUDGET_PARAMETERS = {"n_estimators", "max_iter"}  # more is better, so the estimator keeps them
# Parameter -> another parameter, and its values with which the first one has an effect.
REQUIRED_VALUES = {
    "gamma": ("kernel", {"rbf", "poly", "sigmoid"}),
    "p": ("metric", {"minkowski"}),
    "learning_rate_init": ("solver", {"sgd", "adam"}),
}


class _Axis(Protocol):
    """One parameter of the starter archive."""

    def bins(self, values: Sequence[Any]) -> np.ndarray:
        """Number of the part of the axis that each value is in."""

    def suggest(self, good_values: Sequence[Any], current: object) -> object:
        """List or distribution that covers the good values; None to keep the current value."""


def suggest_space(
    estimator: Estimator, *, archive: str | os.PathLike[str] | Archive | None = "auto"
) -> dict[str, Any]:
    """Suggest a search space for an estimator.

    Parameters
    ----------
    estimator : estimator object
        The estimator, or a pipeline that ends in it. If the pipeline scales the columns first, the
        space is learned from trials with a scaler. Parameters that are not at their default value
        are yours and are not searched.
    archive : {"auto"}, path, Archive or None, default="auto"
        Your own archive. Ranges are widened to the good values of its searches of the estimator
        that lie outside. If there is no space for the estimator, the one of its newest search in
        this archive is suggested.

    Returns
    -------
    dict
        Parameter names with lists of values or `scipy.stats` distributions, as `TransferSearchCV`
        takes them. ``TransferSearchCV(estimator, "auto")`` searches it. Every call returns the
        same space, until you search beyond it.

    Raises
    ------
    ValueError
        If there is no space for the estimator, or if you set all of its parameters.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from sktransfer import suggest_space
    >>> space = suggest_space(make_pipeline(StandardScaler(), SVC()))
    >>> sorted(space)
    ['svc__C', 'svc__gamma']
    >>> low, high = space["svc__C"].support()
    >>> bool(low <= 1 <= high)
    True
    """
    if isinstance(estimator, type):
        raise TypeError(f"Pass an estimator, not a class: suggest_space({estimator.__name__}()).")
    path, owner = final_estimator(estimator)
    prefix, name = f"{path}__" if path else "", type(owner).__name__
    current, defaults = owner.get_params(deep=False), _default_values(owner)
    found = _known_space(estimator, name, prefix, current, archive)
    kept = {
        parameter: _add_default(values, defaults.get(parameter))
        for parameter, values in found.items()
        if parameter in current and _is_default(parameter, current, defaults)
    }
    if not kept:
        raise ValueError(
            f"You set every parameter of {name} that would be searched: {', '.join(found)}. Leave "
            "one of them at its default, or define the space yourself."
        )
    return {prefix + parameter: values for parameter, values in kept.items()}


def _known_space(
    estimator: Estimator,
    name: str,
    prefix: str,
    current: Mapping[str, Any],
    archive: str | os.PathLike[str] | Archive | None,
) -> dict[str, Any]:
    """The space of the starter archive, one written by hand, or that of the newest own search."""
    starter = Starter(starter_folder())
    advice = (
        f"Define the space yourself, for example {example_space(final_estimator(estimator)[1])}."
    )
    try:
        known = starter.estimators
    except (RecordError, OSError) as error:
        if name in WRITTEN:
            return WRITTEN[name]
        raise ValueError(
            f"The starter archive, which spaces are learned from, cannot be read ({error}). "
            f"Reinstall sktransfer to repair it. {advice}"
        ) from error
    # A space of any one parameter tells whether a scaler comes before the estimator.
    scaled = is_scaled(Space.parse({prefix + next(iter(current)): [0]}, estimator).describe())
    own = _own_tasks(name, archive)
    same = [task for task in own if is_scaled(task.space) == scaled]
    if name in known:
        learned = learn_space(starter.tasks(name, scaled), current)
        kept = {p: values for p, values in learned.items() if p not in BUDGET_PARAMETERS}
        return widen_space(kept or learned, same, name)
    if name in WRITTEN:
        return widen_space(WRITTEN[name], same, name)
    if found := recorded_space(own, name):
        return found
    listed = ", ".join(sorted({*known, *WRITTEN}))
    raise ValueError(f"No space can be suggested for {name}, only for {listed}. {advice}")


def _own_tasks(name: str, archive: str | os.PathLike[str] | Archive | None) -> list[Task]:
    """The searches of an estimator in the user's archive, oldest first."""
    if archive is None:
        return []
    opened = archive if isinstance(archive, Archive) else Archive(archive)
    if opened.is_switched_off:
        return []
    with warn_of_faults(f"{archive!r} cannot be read", "The space is suggested without it."):
        return [task for task in opened if name in task.space["predictors"]]
    return []


def _default_values(owner: Estimator) -> dict[str, Any]:
    """Default values of the parameters of an estimator."""
    signature = inspect.signature(type(owner).__init__)
    return {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.default is not parameter.empty
    }


def _is_default(name: str, current: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Whether a parameter is at its default. One that has none, in ``**kwargs``, is as well."""
    return name not in defaults or identity(current[name]) == identity(defaults[name])


def _add_default(values: Any, default: Any) -> Any:
    """A list or range that contains the default value, if it can."""
    if isinstance(values, list):
        if identity(default) in map(identity, values) or isinstance(default, str):
            return values
        if default is None and all(map(is_number, values)):
            return [None, *values]
        is_number_missing = is_number(default) and all(map(is_number, values))
        return sorted([*values, default]) if is_number_missing else values
    if not is_number(default):
        return values
    low, high = map(float, values.support())
    if low <= default <= high or values.dist.name not in ("loguniform", "uniform"):
        return values
    low, high = min(low, default), max(high, default)
    is_log = values.dist.name == "loguniform" and low > 0
    return stats.loguniform(low, high) if is_log else stats.uniform(low, high - low)


def learn_space(tasks: Sequence[Task], current: Mapping[str, Any]) -> dict[str, Any]:
    """Learn a space from tasks that all searched one and the same space.

    Parameters
    ----------
    tasks : sequence of Task
    current : dict
        Parameters of the estimator that the space is for. If the tasks searched several variants,
        for example kernels, the branch of the estimator's own variant is used.

    Returns
    -------
    dict
        Parameter -> list of values or distribution.
    """
    names = _parameter_names(tasks[0])
    branch = _matching_branch(tasks[0], names, current)
    scores, rows = _successful_trials(tasks, names, branch)
    axes = {name: axis for name, entry in branch.items() if (axis := _make_axis(entry)) is not None}
    columns = {name: [[row[name] for row in task_rows] for task_rows in rows] for name in axes}
    ranks = [stats.rankdata(z) for z in scores]
    effects = {name: _explained_share(axis, columns[name], ranks) for name, axis in axes.items()}
    # If no parameter has enough effect, the one with the largest is searched.
    threshold = min(MIN_EFFECT, max(effects.values()))
    suggested = {
        name: axis.suggest(_good_values(columns[name], scores), current.get(name))
        for name, axis in axes.items()
        if effects[name] >= threshold and _has_effect(name, current)
    }
    return {name: values for name, values in suggested.items() if values is not None}


# -- trials of the starter archive ----------------------------------------------------------------


def _parameter_names(task: Task) -> dict[str, str]:
    """Declared name of each parameter, with its prefix -> its name in the estimator."""
    canonical = task.space["canonical"]
    return {declared: name.partition(".")[2] for declared, name in canonical.items()}


def _matching_branch(
    task: Task, names: Mapping[str, str], current: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """The branch of the searched space that has the estimator's variant, or the first one."""
    branches = [{names[key]: entry for key, entry in b.items()} for b in task.space["branches"]]
    return next((b for b in branches if _is_variant(b, current)), branches[0])


def _is_variant(branch: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Whether the categories that a branch holds fixed are those of the estimator."""
    fixed = {
        name: entry["values"][0]
        for name, entry in branch.items()
        if len(entry.get("values", ())) == 1
    }
    return all(
        is_number(value) or identity(value) == identity(current.get(name))
        for name, value in fixed.items()
    )


def _successful_trials(
    tasks: Sequence[Task], names: Mapping[str, str], branch: Mapping[str, Any]
) -> tuple[list[np.ndarray], list[list[dict[str, Any]]]]:
    """Scores and parameters of the successful trials of a branch, for each task that has two."""
    listed = {
        name: set(map(identity, entry["values"]))
        for name, entry in branch.items()
        if "values" in entry
    }
    scores, rows = [], []
    for task in tasks:
        kept = []
        for trial in task.trials:
            row = {names[key]: value for key, value in trial.params.items()}
            if trial.status == "ok" and _is_in_branch(row, branch, listed):
                kept.append((trial.score, row))
        if len(kept) >= 2:
            scores.append(np.array([score for score, _ in kept]))
            rows.append([row for _, row in kept])
    return scores, rows


def _is_in_branch(
    row: Mapping[str, Any], branch: Mapping[str, Any], listed: Mapping[str, set]
) -> bool:
    return row.keys() == branch.keys() and all(
        identity(row[name]) in values for name, values in listed.items()
    )


# -- which parameters to search -------------------------------------------------------------------


def _has_effect(name: str, current: Mapping[str, Any]) -> bool:
    """Whether the other parameters let this one have an effect. A linear kernel has no gamma."""
    other, values = REQUIRED_VALUES.get(name, ("", set()))
    return other not in current or (isinstance(current[other], str) and current[other] in values)


def _good_values(values: list[list], scores: list[np.ndarray]) -> list[Any]:
    """The values in the best tenth of the trials on each data set."""
    found = []
    for column, z in zip(values, scores, strict=True):
        best = np.argsort(-z, kind="stable")[: max(1, math.ceil(GOOD_SHARE * len(z)))]
        found += [column[i] for i in best]
    return found


def _explained_share(axis: _Axis, values: list[list], ranks: list[np.ndarray]) -> float:
    """Share of the variance of the ranks that the bins of an axis explain beyond chance.

    Mean over the data sets of 1 - (W / (n - k)) / (T / (n - 1)), with T the total sum of squares of
    the n ranks and W the one within the k bins (adjusted R²).
    """
    shares = []
    for column, rank in zip(values, ranks, strict=True):
        bins = axis.bins(column)
        groups = [rank[bins == number] for number in np.unique(bins)]
        n, k, total = len(rank), len(groups), float(np.var(rank)) * len(rank)
        if 1 < k < n and total > 0:
            within = sum(float(np.var(group)) * len(group) for group in groups)
            shares.append(1 - (within / (n - k)) / (total / (n - 1)))
    return float(np.mean(shares)) if shares else 0.0


# -- axes: from values to positions, and back to a list or a distribution -------------------------


def _make_axis(entry: Mapping[str, Any]) -> _Axis | None:
    """The axis of a parameter of the starter archive; None if it was held fixed."""
    if "values" not in entry:
        return _DistributionAxis(entry)
    values = entry["values"]
    if len(values) == 1:
        return None
    return _OrderedAxis(values) if all(map(is_number, values)) else _CategoricalAxis(values)


def _covering_interval(positions: np.ndarray) -> tuple[float, float]:
    """The interval in [0, 1] that holds most of the positions, with a margin."""
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(positions, [tail, 1 - tail])
    return max(0.0, float(low) - MARGIN), min(1.0, float(high) + MARGIN)


class _DistributionAxis:
    """A uniform or loguniform distribution."""

    def __init__(self, entry: Mapping[str, Any]):
        self._is_log = entry["distribution"] != "uniform"
        family = stats.loguniform if self._is_log else stats.uniform
        self._low, self._high = map(float, family(*entry["args"], **entry["kwds"]).support())

    def _positions(self, values: Sequence[float]) -> np.ndarray:
        scale: Callable = np.log if self._is_log else np.asarray
        low, high = scale(self._low), scale(self._high)
        return np.clip((scale(np.array(values, dtype=float)) - low) / (high - low), 0, 1)

    def bins(self, values: Sequence[float]) -> np.ndarray:
        return np.minimum((self._positions(values) * N_BINS).astype(int), N_BINS - 1)

    def suggest(self, good_values: Sequence[float], current: object) -> object:
        low, high = _covering_interval(self._positions(good_values))
        if self._is_log:
            ratio = math.log(self._high / self._low)
            ends = self._low * math.exp(low * ratio), self._low * math.exp(high * ratio)
            return stats.loguniform(
                _round_to_mark(ends[0], math.floor), _round_to_mark(ends[1], math.ceil)
            )
        width = self._high - self._low
        step = 10.0 ** math.floor(math.log10(width / 2))
        first = max(self._low, math.floor((self._low + low * width) / step + 1e-9) * step)
        last = min(self._high, math.ceil((self._low + high * width) / step - 1e-9) * step)
        return stats.uniform(round(first, 10), round(last - first, 10))


class _OrderedAxis:
    """A list of numbers."""

    def __init__(self, values: Sequence[float]):
        self._values = sorted(values)

    def bins(self, values: Sequence[float]) -> np.ndarray:
        return np.searchsorted(self._values, values) * N_BINS // len(self._values)

    def suggest(self, good_values: Sequence[float], current: object) -> list[float]:
        last = len(self._values) - 1
        low, high = _covering_interval(np.searchsorted(self._values, good_values) / last)
        return self._values[math.floor(low * last + 1e-9) : math.ceil(high * last - 1e-9) + 1]


class _CategoricalAxis:
    """Values without an order."""

    def __init__(self, values: Sequence[Any]):
        self._values = list(values)
        # Of equal values, the first one counts.
        self._bins = {identity(value): number for number, value in reversed([*enumerate(values)])}

    def bins(self, values: Sequence[Any]) -> np.ndarray:
        return np.array([self._bins[identity(value)] for value in values])

    def suggest(self, good_values: Sequence[Any], current: object) -> list[Any] | None:
        counts = np.bincount(self.bins(good_values), minlength=len(self._values))
        shares = counts / len(good_values)
        kept = [
            value
            for value, share in zip(self._values, shares, strict=True)
            if share >= (1 - COVERAGE) / 2
        ]
        if len(kept) == 1 and identity(kept[0]) == identity(current):
            return None
        return [_to_parameter(value) for value in kept]


def _to_parameter(value: Any) -> Any:
    """A value of a record as estimators take it: layer sizes are tuples."""
    return tuple(value) if isinstance(value, list) else value


def _round_to_mark(number: float, rounding: Callable[[float], int]) -> float:
    """Round down or up to a power of ten, or five times one.

    >>> _round_to_mark(0.0123, math.floor), _round_to_mark(0.0123, math.ceil)
    (0.01, 0.05)
    >>> _round_to_mark(70.0, math.floor)
    50.0
    """
    exponent = math.floor(math.log10(number) + 1e-9)
    marks = [10.0**exponent, 5 * 10.0**exponent, 10.0 ** (exponent + 1)]
    marks = [float(f"{mark:.3g}") for mark in marks]
    if rounding is math.floor:
        return max(mark for mark in marks if mark <= number * (1 + 1e-9))
    return min(mark for mark in marks if mark >= number * (1 - 1e-9))
