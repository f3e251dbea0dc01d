"""Encode the trials of a past task in the coordinates of the target space.

Parameters are matched by their canonical names. A parameter that the past task did not search has
the value of its estimator. A value that is not known lies in the middle of a scale, or is an
unknown category. A column without any known value is reported as unknown.

A trial is left out if it varied a category that the target space fixes to another value, such as a
linear kernel where the target's is rbf. Numbers that the target space fixes leave no trial out.

If the target space has several estimators to choose from, a past task belongs to the one that it
searched. If the past space had several, a trial has the settings of the one that it chose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from sktransfer.space._axes import is_number
from sktransfer.space._estimator_tree import (
    can_hold_predictor,
    described_final_estimator,
    is_estimator_description,
)
from sktransfer.space._parameter_names import match_canonical_names, split_owners, strip_path
from sktransfer.space._space import Space
from sktransfer.utils._values import identity

_MISSING = object()
_TECHNICAL_PARAMETERS = {
    *("random_state", "n_jobs", "verbose", "copy", "copy_X", "cache_size", "warm_start"),
}
"""Parameters that do not change what an estimator can learn."""


class PastTrial(Protocol):
    """The part of a `Trial` that is read here."""

    @property
    def params(self) -> dict[str, Any]: ...


class PastTask(Protocol):
    """The part of a `Task` that is read here."""

    @property
    def space(self) -> dict[str, Any]: ...

    @property
    def trials(self) -> Sequence[PastTrial]: ...


class ProjectedTrials(NamedTuple):
    """Trials of a past task in the coordinates of the target space.

    Parameters
    ----------
    codes : ndarray of shape (m, n_columns)
        Numbers outside the bounds of the target space lie outside [0, 1].
    kept : ndarray of int, shape (m,)
        Indices of these trials in the task.
    unknown : ndarray of bool, shape (n_columns,)
        Columns that the task has no value for.
    """

    codes: np.ndarray
    kept: np.ndarray
    unknown: np.ndarray


def encode_past_task(space: Space, task: PastTask) -> ProjectedTrials:
    """Encode the trials of a past task.

    Parameters
    ----------
    space : Space
        The target space.
    task : Task

    Returns
    -------
    ProjectedTrials
    """
    past = _PastValues(space, task.space)
    kept = [i for i, trial in enumerate(task.trials) if past.is_comparable(trial.params)]
    rows = [task.trials[i].params for i in kept]
    codes = np.full((len(rows), space.n_columns), np.nan)
    is_missing = np.zeros(codes.shape, dtype=bool)
    for column, name in enumerate(space.column_names()):
        if name is not None:
            values = [past.value(row, name) for row in rows]
            codes[:, column] = space.encode_column(column, values)
            is_missing[:, column] = [value is _MISSING for value in values]
    branch = _find_branches(space, codes)
    # A number may be missing because the past value is none, such as gamma="scale".
    is_missing |= np.isnan(codes) & ~space.categorical
    for b in range(len(space.branches)):  # an inactive column has no value to be known
        inactive = np.setdiff1d(np.arange(space.n_columns), space.active(b))
        is_missing[np.ix_(branch == b, inactive)] = False
    unknown = np.asarray(is_missing.all(axis=0) & bool(rows))
    return ProjectedTrials(space.fill_inactive(codes, branch), np.array(kept, dtype=int), unknown)


def _find_branches(space: Space, codes: np.ndarray) -> np.ndarray:
    """Find the branch that fits each row best: it lacks the fewest of the row's values."""
    misfit = np.zeros((len(codes), len(space.branches)))
    for b in range(len(space.branches)):
        for column in space.active(b):
            choices, u = space.choices(b, column), codes[:, column]
            if choices is None:
                misfit[:, b] += ~((u >= 0) & (u <= 1))
            else:
                misfit[:, b] += ~(np.abs(u[:, None] - choices).min(axis=1) <= 1e-9)
    return misfit.argmin(axis=1)


class _PastValues:
    """Values of past trials under the names of the target space.

    Parameters
    ----------
    space : Space
        The target space.
    past : dict
        ``Space.describe()`` of the past space.
    """

    def __init__(self, space: Space, past: Mapping[str, Any]):
        self._space = space
        past_names = match_canonical_names(past, space.canonical, space.predictors)
        self._declared = {
            one: name for name, canonical in past_names.items() for one in split_owners(canonical)
        }
        self._fixed = past.get("fixed", {})
        self._predictors = list(past.get("predictors", ()))
        self._foreign_predictors = [
            each for each in self._predictors if each not in (space.predictors or [each])
        ]
        self._searched_estimators = {n: self._searched_estimator(n) for n in space.canonical}
        self._steps = [name for name, c in past_names.items() if can_hold_predictor(c)]
        self._varied = self._find_varied(past.get("branches", ()))
        self._sources = {name: self._find_sources(name) for name in space.canonical}
        # Settings in which a past trial must agree with the target, unless they are numbers.
        self._required = {
            one: value
            for one, value in space.fixed.items()
            if one.partition(".")[2] not in _TECHNICAL_PARAMETERS
        }

    def _searched_estimator(self, name: str) -> Any:
        """The estimator that the past task searched, among the target's choices under a name."""
        lists = (branch.get(name) for branch in self._space.branches)
        values = [value for each in lists if isinstance(each, list) for value in each]
        found = [value for value in values if type(value).__name__ in self._predictors]
        # If none or several match, the value is missing: its coordinate is unknown.
        return found[0] if len({identity(value) for value in found}) == 1 else _MISSING

    def _find_varied(self, branches: Sequence[Mapping[str, Any]]) -> set[str]:
        """Canonical names of settings that differ between the estimators of the past space."""
        entries = [branch[name] for branch in branches for name in self._steps if name in branch]
        lists = [entry["values"] for entry in entries if isinstance(entry.get("values"), list)]
        found: dict[str, set] = {}
        for value in (value for values in lists for value in values):
            if is_estimator_description(value):
                for name, setting in _final_settings(value).items():
                    found.setdefault(name, set()).add(identity(setting))
        return {name for name, settings in found.items() if len(settings) > 1}

    def _find_sources(self, name: str) -> tuple[list[str], list[str], Any]:
        """Canonical names of a parameter, its names in past trials, and its value without them."""
        names = split_owners(self._space.canonical[name])
        declared = [self._declared[one] for one in names if one in self._declared]
        # A record leaves out a value at a path that equals the one without a path.
        fixed_names = [*names, *map(strip_path, names)]
        fixed = [self._fixed[one] for one in fixed_names if one in self._fixed]
        return names, declared, fixed[0] if fixed else self._searched_estimators[name]

    def value(self, params: Mapping[str, Any], name: str) -> Any:
        """Value of a parameter of the target space in a past trial; `_MISSING` if not known."""
        names, declared, otherwise = self._sources[name]
        for past in declared:
            if past in params:
                return params[past]
        chosen = self._chosen_settings(params)
        return next((chosen[one] for one in names if one in chosen), otherwise)

    def _chosen_settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Canonical name -> value of the parameters of the estimators that a trial chose."""
        chosen = self._chosen_estimators(params)
        return {name: value for each in chosen for name, value in _final_settings(each).items()}

    def _chosen_estimators(self, params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Descriptions of the estimators that a trial chose."""
        values = (params.get(name) for name in self._steps)
        return [value for value in values if is_estimator_description(value)]

    def is_comparable(self, params: Mapping[str, Any]) -> bool:
        """Whether a past trial could have been a trial of the target, apart from fixed numbers."""
        chosen = (described_final_estimator(each)[0] for each in self._chosen_estimators(params))
        if any(each in self._foreign_predictors for each in chosen):
            return False
        settings = self._chosen_settings(params)
        varied = {one: value for one, value in settings.items() if one in self._varied}
        varied |= {one: params[name] for one, name in self._declared.items() if name in params}
        return all(
            is_number(value) or _are_equal(value, self._required[canonical])
            for canonical, value in varied.items()
            if canonical in self._required
        )


def _final_settings(description: Mapping[str, Any]) -> dict[str, Any]:
    """Canonical name -> value of the parameters of the estimator that predicts."""
    owner, settings = described_final_estimator(description)
    return {f"{owner}.{name}": setting for name, setting in settings.items()}


def _are_equal(value: object, fixed: object) -> bool:
    """Whether a value equals a fixed one. Of fixed estimators only the class is recorded."""
    if is_estimator_description(value) and is_estimator_description(fixed):
        return described_final_estimator(value)[0] == described_final_estimator(fixed)[0]
    return identity(value) == identity(fixed)
