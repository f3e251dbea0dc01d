"""Canonical parameter names: `svc__C`, `clf__C` and `C` of an SVC are one parameter, ``SVC.C``.

A declared name is a path of ``__``-separated steps and a parameter; its canonical name is the class of the
estimator that owns the parameter, and the parameter. What predicts in the end always goes by its class alone.
Another estimator of a class that stands in several places has its path behind it,
``LogisticRegression.C@selectfrommodel__estimator``, and so has a scaler that no column passes on its way.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sktransfer._values import Plain, describe, identity
from sktransfer.space.owners import ends, is_estimator, join, leads_on, owners, predictor
from sktransfer.space.scaling import SCALERS

Branches = Sequence[Mapping[str, Any]]
_SHORT = 20  # entries of a tuple that is written down


def canonical_names(branches: Branches, estimator: Any) -> dict[str, str]:
    """Map each declared name to its canonical one; without an estimator a name stands for itself."""
    names = dict.fromkeys(name for branch in branches for name in branch)
    if not hasattr(estimator, "get_params"):
        return {name: name for name in names}
    places = _Places(branches, estimator)
    found = {name: places.canonical(name) for name in names}
    # What predicts in one branch and in another at another path.
    counts = list(found.values())
    return {
        name: canonical if counts.count(canonical) == 1 else f"{canonical}@{name.rpartition('__')[0]}"
        for name, canonical in found.items()
    }


def owned(canonical: str) -> list[str]:
    """The names that a canonical one stands for: where several estimators have the parameter, each one's own.

    >>> owned("LogisticRegression|SVC.C")
    ['LogisticRegression.C', 'SVC.C']
    """
    classes, dot, parameter = canonical.partition(".")
    return [f"{each}.{parameter}" for each in classes.split("|")] if dot else [canonical]


class _Places:
    """Where the estimators of a space stand."""

    def __init__(self, branches: Branches, estimator: Any):
        self._branches, self._estimator = branches, estimator
        self._found: dict[tuple[str, int], list[Any]] = {}
        self.names = _deep_names(branches, estimator)
        self._ends = {path for branch in branches for path, _ in ends(branch, estimator)}
        paths = {name.rpartition("__")[0] for name in self.names}
        self._classes = {path: self._classes_at(path) for path in paths}

    def _classes_at(self, path: str) -> set[str]:
        return {type(each).__name__ for branch in self._branches for each in self.owners(path, branch)}

    def owners(self, path: str, branch: Mapping[str, Any]) -> list[Any]:
        key = path, id(branch)
        if key not in self._found:
            self._found[key] = owners(path, branch, self._estimator)
        return self._found[key]

    def canonical(self, name: str) -> str:
        path, _, parameter = name.rpartition("__")
        classes = {
            type(owner).__name__
            for branch in self._branches
            if name in branch
            for owner in self.owners(path, branch)
            if parameter in owner.get_params(deep=False) or not path
        }
        return f"{'|'.join(sorted(classes))}.{parameter}{self.at(path, classes)}" if classes else name

    def at(self, path: str, classes: set[str]) -> str:
        """What tells these classes at a path from the same ones elsewhere; often nothing."""
        if not path or path in self._ends:
            return ""
        elsewhere = any(classes & found for other, found in self._classes.items() if other != path)
        return f"@{path}" if elsewhere or self.is_scaler_aside(path, classes) else ""

    def is_scaler_aside(self, path: str, classes: set[str]) -> bool:
        """Whether it is a scaler that no column passes on its way to what predicts."""
        on_the_way = (leads_on(path, branch, self._estimator) for branch in self._branches)
        return bool(classes & SCALERS) and not any(on_the_way)


def _deep_names(branches: Branches, estimator: Any) -> list[str]:
    """Every name that the estimator has, with any of the estimators that a branch may put into it."""
    names = dict.fromkeys(estimator.get_params(deep=True))
    for branch in branches:
        for name, entry in branch.items():
            for value in filter(is_estimator, entry) if isinstance(entry, list) else ():
                names |= dict.fromkeys(join(name, each) for each in value.get_params(deep=True))
    return list(names)


def check_names(branches: Branches, estimator: Any) -> None:
    """Raise a ValueError for a name that the estimator does not have, with the nearest one it has."""
    if not hasattr(estimator, "get_params"):
        return
    known = set(estimator.get_params(deep=True))
    for branch in branches:
        for name in branch:
            if name in known:
                continue
            path, _, parameter = name.rpartition("__")
            found = owners(path, branch, estimator)
            if any(parameter in owner.get_params(deep=False) for owner in found):
                continue
            if any(_takes(owner, parameter, branch[name]) for owner in found):
                continue
            if name in _names_with_new_steps(branch, known, estimator):
                continue
            options = known | {
                f"{path}__{option}" for owner in found for option in owner.get_params(deep=False) if path
            }
            near = difflib.get_close_matches(name, sorted(options), n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known names: {sorted(known)}."
            raise ValueError(
                f"Invalid parameter {name!r} in the space for estimator {type(estimator).__name__}. {hint}"
            )


def _names_with_new_steps(branch: Mapping[str, Any], known: Container[str], estimator: Any) -> set[str]:
    """Names that the estimator has with the lists of (name, estimator) in the branch, such as ``steps``."""
    found: set[str] = set()
    for name, values in branch.items():
        for value in values if isinstance(values, list) and name in known else ():
            if isinstance(value, (list, tuple)) and any(isinstance(step, (list, tuple)) for step in value):
                trial = copy.deepcopy(estimator)  # a step of a pipeline in it is the user's, too
                found |= set(trial.set_params(**{name: value}).get_params(deep=True))
    return found


def _takes(owner: Any, parameter: str, values: Any) -> bool:
    """Whether the estimator's own set_params lets the name pass, as some do that list not all of theirs."""
    try:
        value = values[0] if isinstance(values, list) else values.ppf(0.5)
        copy.deepcopy(owner).set_params(
            **{parameter: value}
        )  # deep: it may keep the name in a dict of its own
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def fixed_values(branches: Branches, estimator: Any, canonical: Mapping[str, str]) -> dict[str, Plain]:
    """Canonical name -> plain value of every parameter that is not searched.

    Where a branch puts estimators into a step, these count, not the one that they replace; what is not the
    same in all of them is not fixed. A scaler aside is left out: `is_scaled` would take it for a column's.
    """
    if not hasattr(estimator, "get_params"):
        return {}
    tuned = {one for name in canonical.values() for one in owned(name)}
    places = _Places(branches, estimator)
    found: dict[str, list[Any]] = {}
    for name in places.names:
        path, _, parameter = name.rpartition("__")
        for branch in branches if name not in canonical else ():
            for owner in places.owners(path, branch):
                own, kind = owner.get_params(deep=False), type(owner).__name__
                # A step that is switched off is listed, too, but its name is the user's own.
                if parameter in own and not places.is_scaler_aside(path, {kind}):
                    key = f"{kind}.{parameter}{places.at(path, {kind})}"
                    found.setdefault(key, []).append(own[parameter])
    fixed = {key: [_plain(value) for value in values] for key, values in found.items() if key not in tuned}
    return {
        key: values[0]
        for key, values in fixed.items()
        if values[0] is not _LONG and all(identity(value) == identity(values[0]) for value in values)
    }


_LONG = object()


def _plain(value: Any) -> Any:
    """A parameter held fixed, as it is written down: number, word, short tuple, or an estimator's class.

    A vocabulary or a matrix would only make a record long.
    """
    if is_estimator(value):
        return {"class": type(predictor(value)[1]).__name__, "params": {}}
    if isinstance(value, (list, tuple)) and len(value) <= _SHORT:
        simple = all(each is None or isinstance(each, (str, int, float, np.generic)) for each in value)
        return describe(value) if simple else _LONG
    plain = (
        _LONG
        if isinstance(value, (list, tuple, set, frozenset, range, Mapping, np.ndarray))
        else describe(value)
    )
    return _LONG if isinstance(plain, dict) else plain


def predictors(branches: Iterable[Mapping[str, Any]], estimator: Any) -> list[str]:
    """Class names of the estimator that predicts in the end, past pipelines and wrappers."""
    if not hasattr(estimator, "get_params"):
        return []
    return sorted({type(end).__name__ for branch in branches for _, end in ends(branch, estimator)})
