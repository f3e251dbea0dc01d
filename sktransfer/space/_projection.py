"""A past task in today's coordinates.

Parameters are matched by their canonical names. What the past did not tune has the value its estimator
had; what is not known at all sits in the middle of a scale, or is no category of ours. A trial that
varied a category which today is fixed to another value (a linear kernel, when today's is rbf) says
nothing about today and is left out; a number that is fixed today is no reason to leave a trial out.
Where estimators stand to choice, a past task belongs to the one that it tuned, and where they stood to
choice then, a trial has the settings of the one that it chose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sktransfer.space._axes import is_number
from sktransfer.space._estimator_tree import described_predictor, is_described, is_on_the_way
from sktransfer.space._parameter_names import bare, named_as_today, owned
from sktransfer.space._space import Space
from sktransfer.utils._values import identity

_MISSING = object()
_NO_MATTER = {"random_state", "n_jobs", "verbose", "copy", "copy_X", "cache_size", "warm_start"}
"""Settings that make no other estimator."""


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
        past_names = named_as_today(past, space.canonical, space.predictors)
        self._declared = {one: name for name, canonical in past_names.items() for one in owned(canonical)}
        self._fixed = past.get("fixed", {})
        self._predictors = list(past.get("predictors", ()))
        self._others = [each for each in self._predictors if each not in (space.predictors or [each])]
        self._estimators = {name: self._estimator(name) for name in space.canonical}
        self._steps = [name for name, canonical in past_names.items() if is_on_the_way(canonical)]
        self._varied = self._varied_by_choice(past.get("branches", ()))

    def _varied_by_choice(self, branches: Sequence[Mapping[str, Any]]) -> set[str]:
        """Canonical names of settings in which the estimators that stood to choice differed."""
        entries = [branch[name] for branch in branches for name in self._steps if name in branch]
        lists = [entry["values"] for entry in entries if isinstance(entry.get("values"), list)]
        found: dict[str, set] = {}
        for value in (value for values in lists for value in filter(is_described, values)):
            for name, setting in _settings(value).items():
                found.setdefault(name, set()).add(identity(setting))
        return {name for name, settings in found.items() if len(settings) > 1}

    def value(self, params: Mapping[str, Any], name: str) -> Any:
        names = owned(self._space.canonical[name])
        known = [params[tuned] for one in names if (tuned := self._declared.get(one, "")) in params]
        chosen = self._chosen(params)
        known += [chosen[one] for one in names if one in chosen]
        # What is at a path as it is without one stands in the record without.
        known += [self._fixed[one] for one in [*names, *map(bare, names)] if one in self._fixed]
        return known[0] if known else self._estimators[name]

    def _chosen(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Canonical name -> value of the settings that come with the estimators that a trial chose."""
        return {name: each for value in self._put_in(params) for name, each in _settings(value).items()}

    def _put_in(self, params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The estimators that a trial chose, as described."""
        return [params[name] for name in self._steps if is_described(params.get(name))]

    def _estimator(self, name: str) -> Any:
        """The one that the past tuned, of those that today stand to choice under a name."""
        lists = [branch[name] for branch in self._space.branches if isinstance(branch.get(name), list)]
        found = [value for values in lists for value in values if type(value).__name__ in self._predictors]
        # Where there is none, or several kinds: no number and no category, its place is not known.
        return found[0] if len({identity(value) for value in found}) == 1 else _MISSING

    def concerns(self, params: Mapping[str, Any]) -> bool:
        if any(described_predictor(value)[0] in self._others for value in self._put_in(params)):
            return False  # of the estimators that stood to choice, one that today is none
        varied = {one: value for one, value in self._chosen(params).items() if one in self._varied}
        varied |= {one: params[name] for one, name in self._declared.items() if name in params}
        for canonical, value in varied.items():
            today = self._space.fixed.get(canonical, _MISSING)
            if today is _MISSING or is_number(value) or canonical.partition(".")[2] in _NO_MATTER:
                continue
            if not _agree(value, today):
                return False
        return True


def _settings(value: Mapping[str, Any]) -> dict[str, Any]:
    """Canonical name -> value of the parameters of a described estimator that predicts in the end."""
    owner, settings = described_predictor(value)
    return {f"{owner}.{name}": setting for name, setting in settings.items()}


def _agree(value: Any, today: Any) -> bool:
    """Whether two values are the same; of what is itself an estimator, a fixed value is the class alone."""
    if is_described(value) and is_described(today):
        return described_predictor(value)[0] == described_predictor(today)[0]
    return identity(value) == identity(today)
