"""A past task in today's coordinates.

Parameters are matched by their canonical names. What the past did not tune has the value its estimator
had; what is not known at all sits in the middle of a scale, or is no category of ours. A trial that
varied a category which today is fixed to another value (a linear kernel, when today's is rbf) says
nothing about today and is left out; a number that is fixed today is no reason to leave a trial out.
Where estimators stand to choice, a past task belongs to the one that it tuned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sktransfer._values import identity
from sktransfer.space.axis import is_number
from sktransfer.space.canonical import owned
from sktransfer.space.owners import described_predictor, is_described
from sktransfer.space.space import Space

_MISSING = object()


def encode_past(space: Space, task: Any) -> tuple[np.ndarray, np.ndarray]:
    """Codes of a past task's trials.

    Parameters
    ----------
    space : Space
        Today's space.
    task : Task

    Returns
    -------
    codes : ndarray of shape (m, n_columns)
        Numbers outside today's bounds lie outside [0, 1].
    kept : ndarray of int, shape (m,)
        Which of the task's trials these are.
    """
    lookup = _Lookup(space, task.space)
    kept = [i for i, trial in enumerate(task.trials) if lookup.concerns(trial.params)]
    rows = [task.trials[i].params for i in kept]
    codes = np.full((len(rows), space.n_columns), np.nan)
    for column, name in enumerate(space.column_names()):
        if name is not None:
            codes[:, column] = space.encode_column(column, [lookup.value(row, name) for row in rows])
    return space.settle(codes, _branches(space, codes)), np.array(kept, dtype=int)


def _branches(space: Space, codes: np.ndarray) -> np.ndarray:
    """The branch that each row fits best: the one with the fewest coordinates out of reach."""
    misfit = np.zeros((len(codes), len(space.branches)))
    for b in range(len(space.branches)):
        for column in space.active(b):
            choices, u = space.choices(b, column), codes[:, column]
            if choices is None:
                misfit[:, b] += ~((u >= 0) & (u <= 1))
            else:
                misfit[:, b] += ~(np.abs(u[:, None] - choices).min(axis=1) <= 1e-9)
    return misfit.argmin(axis=1)


class _Lookup:
    """Values of a past trial under today's names."""

    def __init__(self, space: Space, past: Mapping[str, Any]):
        self._space = space
        past_names = dict(past.get("canonical", {}))
        if not (past.get("predictors") and space.predictors):
            # A table without an estimator knows no classes: its names are taken as they are.
            past_names = {name: name for name in past_names} | {
                name: today for name, today in space.canonical.items() if name in past_names
            }
        self._declared = {one: name for name, canonical in past_names.items() for one in owned(canonical)}
        self._fixed = past.get("fixed", {})
        self._predictors = list(past.get("predictors", ()))
        self._others = [each for each in self._predictors if each not in (space.predictors or [each])]
        self._estimators = {name: self._estimator(name) for name in space.canonical}

    def value(self, params: Mapping[str, Any], name: str) -> Any:
        names = owned(self._space.canonical[name])
        known = [params[tuned] for one in names if (tuned := self._declared.get(one, "")) in params]
        chosen = _chosen(params)
        known += [chosen[one] for one in names if one in chosen]
        known += [self._fixed[one] for one in names if one in self._fixed]
        return known[0] if known else self._estimators[name]

    def _estimator(self, name: str) -> Any:
        """The one that the past tuned, of those that today stand to choice under a name."""
        lists = [branch[name] for branch in self._space.branches if isinstance(branch.get(name), list)]
        found = [value for values in lists for value in values if type(value).__name__ in self._predictors]
        # Where there is none, or several kinds: no number and no category, its place is not known.
        return found[0] if len({identity(value) for value in found}) == 1 else _MISSING

    def concerns(self, params: Mapping[str, Any]) -> bool:
        estimators = [described_predictor(value)[0] for value in params.values() if is_described(value)]
        if any(each in self._others for each in estimators):
            return False  # of the estimators that stood to choice, one that today is none
        tuned = {one: params[name] for one, name in self._declared.items() if name in params}
        # A setting that all estimators to choose from had was held fixed, not varied.
        varied = {one: v for one, v in _chosen(params).items() if not self._is_fixed_to(one, v)} | tuned
        for canonical, value in varied.items():
            today = self._space.fixed.get(canonical, _MISSING)
            if today is not _MISSING and not is_number(value) and not _agree(value, today):
                return False
        return True

    def _is_fixed_to(self, canonical: str, value: Any) -> bool:
        return canonical in self._fixed and identity(self._fixed[canonical]) == identity(value)


def _chosen(params: Mapping[str, Any]) -> dict[str, Any]:
    """Canonical name -> value of the settings that come with the estimators that a trial chose."""
    found = [described_predictor(value) for value in params.values() if is_described(value)]
    return {f"{owner}.{name}": value for owner, settings in found for name, value in settings.items()}


def _agree(value: Any, today: Any) -> bool:
    """Whether two values are the same; of what is itself an estimator, a fixed value is the class alone."""
    if is_described(value) and is_described(today):
        return described_predictor(value)[0] == described_predictor(today)[0]
    return identity(value) == identity(today)
