"""`suggest_space`: what to search of a known estimator, learned from the starter archive.

Good configurations are the best tenth of the trials on each data set. A range holds most of what was good
anywhere, and some more at both ends; a parameter that made next to no difference is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from sktransfer.archive import RecordError, Starter, starter_folder
from sktransfer.space import Space
from sktransfer.space._axes import is_number
from sktransfer.space._estimator_tree import final_estimator, is_scaled
from sktransfer.task import Task
from sktransfer.utils._values import identity

GOOD = 0.1  # share of the trials on a data set that count as good
COVERED = (
    0.9  # share of the good values that a range must hold; the others are flukes of flat surfaces
)
WIDER = 0.1  # what a range gets at each end, of the width that was searched
EFFECT = 0.02  # share of a data set's differences that a parameter must explain, in the mean
_BINS = 4
_BUDGETS = {"n_estimators", "max_iter"}
_SERVES = {  # a parameter -> another, and the values of it with which it has a meaning
    "gamma": ("kernel", {"rbf", "poly", "sigmoid"}),
    "p": ("metric", {"minkowski"}),
    "learning_rate_init": ("solver", {"sgd", "adam"}),
}


def suggest_space(estimator: Any) -> dict[str, Any]:
    """Suggest a space to search for an estimator of the starter archive.

    Parameters
    ----------
    estimator : estimator object
        The estimator, or a pipeline that ends in it. If its columns are scaled first, the space is learned
        from trials behind a scaler.

    Returns
    -------
    dict
        Parameter names, as `TransferSearchCV` takes them, with lists of values or `scipy.stats`
        distributions. The same at every call. ``TransferSearchCV(estimator, "auto")`` searches it.

    Raises
    ------
    ValueError
        If nothing is known of the estimator.

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
        raise TypeError(f"suggest_space takes an estimator, not a class: {estimator.__name__}().")
    path, owner = final_estimator(estimator)
    starter, name = Starter(starter_folder()), type(owner).__name__
    advice = "Write a space, for example {'C': loguniform(1e-3, 1e3)}."
    try:
        known = starter.estimators
    except (RecordError, OSError) as error:
        raise ValueError(
            f"There is no suggestion without the starter archive, which cannot be used ({error}): install "
            f"sktransfer again. {advice}"
        ) from error
    if name not in known:
        raise ValueError(
            f"There is no suggestion for {name}, only for {', '.join(known)}. {advice}"
        )
    prefix = f"{path}__" if path else ""
    # Whichever parameter: what is asked is what comes before the estimator.
    today = Space.parse(
        {prefix + next(iter(owner.get_params(deep=False))): [0]}, estimator
    ).describe()
    found = learned_space(starter.tasks(name, is_scaled(today)), owner.get_params(deep=False))
    return {prefix + parameter: values for parameter, values in found.items()}


def learned_space(tasks: Sequence[Task], own: Mapping[str, Any]) -> dict[str, Any]:
    """Parameter -> values, from tasks that were searched in one and the same space.

    Parameters
    ----------
    tasks : sequence of Task
    own : dict
        Parameters of the estimator that the space is for. If the tasks tried variants, kernels for
        instance, the one that the estimator is counts.
    """
    names = {
        declared: name.partition(".")[2] for declared, name in tasks[0].space["canonical"].items()
    }
    branches = [{names[key]: entry for key, entry in b.items()} for b in tasks[0].space["branches"]]
    branch = next((b for b in branches if _is_variant(b, own)), branches[0])
    listed = {
        n: set(map(identity, entry["values"])) for n, entry in branch.items() if "values" in entry
    }
    scores, rows = [], []
    for task in tasks:
        trials = [
            (trial, {names[key]: value for key, value in trial.params.items()})
            for trial in task.trials
        ]
        kept = [(t, row) for t, row in trials if t.status == "ok" and _belongs(row, branch, listed)]
        if len(kept) >= 2:
            scores.append(np.array([trial.score for trial, _ in kept]))
            rows.append([row for _, row in kept])
    axes = {name: axis for name, entry in branch.items() if (axis := _axis(entry)) is not None}
    columns = {name: [[row[name] for row in task_rows] for task_rows in rows] for name in axes}
    ranks = [stats.rankdata(z) for z in scores]
    effects = {name: _effect(axis, columns[name], ranks) for name, axis in axes.items()}
    enough = min(EFFECT, max(effects.values()))  # where nothing matters, what matters most
    chosen = {
        name: axis.around(_good(columns[name], scores), own.get(name))
        for name, axis in axes.items()
        if effects[name] >= enough
        and _serves(name, own)
        and not _is_spent(name, own, columns[name])
    }
    return {name: values for name, values in chosen.items() if values is not None}


def _is_spent(name: str, own: Mapping[str, Any], tried: list[list]) -> bool:
    """Whether the estimator is given more trees or iterations than were ever tried: they are left to it."""
    return name in _BUDGETS and is_number(own.get(name)) and own[name] > max(map(max, tried))


def _serves(name: str, own: Mapping[str, Any]) -> bool:
    """Whether a parameter has any effect beside the estimator's others: a precomputed kernel has no gamma."""
    other, values = _SERVES.get(name, ("", set()))
    return other not in own or (isinstance(own[other], str) and own[other] in values)


def _is_variant(branch: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Whether the categories that a branch holds fixed are those of the estimator."""
    fixed = {
        name: entry["values"][0]
        for name, entry in branch.items()
        if len(entry.get("values", ())) == 1
    }
    return all(
        is_number(value) or identity(value) == identity(own.get(name))
        for name, value in fixed.items()
    )


def _belongs(row: Mapping[str, Any], branch: Mapping[str, Any], listed: Mapping[str, set]) -> bool:
    return row.keys() == branch.keys() and all(
        identity(row[n]) in known for n, known in listed.items()
    )


def _good(values: list[list], scores: list[np.ndarray]) -> list[Any]:
    """The values in the best tenth of the trials on each data set."""
    found = []
    for column, z in zip(values, scores, strict=True):
        best = np.argsort(-z, kind="stable")[: max(1, math.ceil(GOOD * len(z)))]
        found += [column[i] for i in best]
    return found


def _effect(axis: Any, values: list[list], ranks: list[np.ndarray]) -> float:
    """Share of the ranks' variance between parts of the axis, beyond chance, in the mean of the data sets."""
    shares = []
    for column, rank in zip(values, ranks, strict=True):
        part = axis.parts(column)
        groups = [rank[part == p] for p in np.unique(part)]
        n, k, total = len(rank), len(groups), float(np.var(rank)) * len(rank)
        if 1 < k < n and total > 0:
            within = sum(float(np.var(group)) * len(group) for group in groups)
            shares.append(1 - (within / (n - k)) / (total / (n - 1)))
    return float(np.mean(shares)) if shares else 0.0


# -- axes: from values to numbers, and back to what is searched ------------------------------------


def _axis(entry: Mapping[str, Any]) -> Any:
    """What a parameter of the starter archive is; None if it was held fixed."""
    if "values" not in entry:
        return _Scale(entry)
    values = entry["values"]
    if len(values) == 1:
        return None
    return _Steps(values) if all(map(is_number, values)) else _Categories(values)


def _span(u: np.ndarray) -> tuple[float, float]:
    """Where most of some places in [0, 1] lie, and some more."""
    rest = (1 - COVERED) / 2
    low, high = np.quantile(u, [rest, 1 - rest])
    return max(0.0, float(low) - WIDER), min(1.0, float(high) + WIDER)


class _Scale:
    """A uniform or loguniform distribution."""

    def __init__(self, entry: Mapping[str, Any]):
        self._log = entry["distribution"] != "uniform"
        made = (stats.loguniform if self._log else stats.uniform)(*entry["args"], **entry["kwds"])
        self._low, self._high = map(float, made.support())

    def _places(self, values: Sequence[float]) -> np.ndarray:
        f: Callable = np.log if self._log else np.asarray
        low, high = f(self._low), f(self._high)
        return np.clip((f(np.array(values, dtype=float)) - low) / (high - low), 0, 1)

    def parts(self, values: Sequence[float]) -> np.ndarray:
        return np.minimum((self._places(values) * _BINS).astype(int), _BINS - 1)

    def around(self, good: Sequence[float], own: Any) -> Any:
        low, high = _span(self._places(good))
        if self._log:
            ratio = math.log(self._high / self._low)
            ends = self._low * math.exp(low * ratio), self._low * math.exp(high * ratio)
            return stats.loguniform(_round(ends[0], math.floor), _round(ends[1], math.ceil))
        width = self._high - self._low
        step = 10.0 ** math.floor(math.log10(width / 2))
        first = max(self._low, math.floor((self._low + low * width) / step + 1e-9) * step)
        last = min(self._high, math.ceil((self._low + high * width) / step - 1e-9) * step)
        return stats.uniform(round(first, 10), round(last - first, 10))


class _Steps:
    """A list of numbers."""

    def __init__(self, values: Sequence[float]):
        self._values = sorted(values)

    def parts(self, values: Sequence[float]) -> np.ndarray:
        return np.searchsorted(self._values, values) * _BINS // len(self._values)

    def around(self, good: Sequence[float], own: Any) -> Any:
        last = len(self._values) - 1
        low, high = _span(np.searchsorted(self._values, good) / last)
        return self._values[math.floor(low * last + 1e-9) : math.ceil(high * last - 1e-9) + 1]


class _Categories:
    """Values without an order."""

    def __init__(self, values: Sequence[Any]):
        self._values = list(values)
        self._place = {identity(value): place for place, value in reversed([*enumerate(values)])}

    def parts(self, values: Sequence[Any]) -> np.ndarray:
        return np.array([self._place[identity(value)] for value in values])

    def around(self, good: Sequence[Any], own: Any) -> Any:
        counts = np.bincount(self.parts(good), minlength=len(self._values)) / len(good)
        kept = [
            value
            for value, share in zip(self._values, counts, strict=True)
            if share >= (1 - COVERED) / 2
        ]
        return (
            None
            if len(kept) == 1 and identity(kept[0]) == identity(own)
            else [_live(v) for v in kept]
        )


def _live(value: Any) -> Any:
    """A described value as estimators take it: sizes of layers are tuples."""
    return tuple(value) if isinstance(value, list) else value


def _round(number: float, towards: Callable[[float], int]) -> float:
    """The next power of ten, or half of one, downwards or upwards.

    >>> _round(0.0123, math.floor), _round(0.0123, math.ceil), _round(70.0, math.floor)
    (0.01, 0.05, 50.0)
    """
    exponent = math.floor(math.log10(number) + 1e-9)
    marks = [10.0**exponent, 5 * 10.0**exponent, 10.0 ** (exponent + 1)]
    marks = [float(f"{mark:.3g}") for mark in marks]
    if towards is math.floor:
        return max(mark for mark in marks if mark <= number * (1 + 1e-9))
    return min(mark for mark in marks if mark >= number * (1 - 1e-9))
