"""Canonical parameter names: `svc__C`, `clf__C` and `C` of an SVC are one parameter, ``SVC.C``.

A declared name is a path of ``__``-separated steps and a parameter; its canonical name is the class of the
estimator that owns the parameter, and the parameter. What predicts in the end goes by its class alone.
Another estimator of a class that stands in several places has its path behind it,
``LogisticRegression.C@selectfrommodel__estimator``, and so has a scaler that no column passes on its way, and
what predicts at one path in one branch and at another in another.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sktransfer.space._estimator_tree import Places, is_estimator, pairs, predictor
from sktransfer.space._scaling import SCALERS
from sktransfer.utils._values import Plain, describe, identity

Branches = Sequence[Mapping[str, Any]]
_SHORT = 20  # entries of a tuple that is written down


def owned(canonical: str) -> list[str]:
    """The names that a canonical one stands for: where several estimators have the parameter, each one's own.

    >>> owned("LogisticRegression|SVC.C")
    ['LogisticRegression.C', 'SVC.C']
    """
    classes, dot, parameter = canonical.partition(".")
    return [f"{each}.{parameter}" for each in classes.split("|")] if dot else [canonical]


def named_as_today(
    past: Mapping[str, Any], today: Mapping[str, str], predictors: Sequence[str]
) -> dict[str, str]:
    """The canonical names of a past space's description, each as today's space calls the same parameter."""
    names: dict[str, str] = dict(past.get("canonical", {}))
    if not (past.get("predictors") and predictors):
        # A table without an estimator knows no classes: its names are taken as they are.
        return {name: today.get(name, name) for name in names}
    # Earlier versions put a path behind other names: what is declared alike, of the same class, is the same.
    alike = {n for n in names.keys() & today.keys() if bare(names[n]) == bare(today[n])}
    return names | {name: today[name] for name in alike}


def bare(canonical: str) -> str:
    """The name without the path that may stand behind it."""
    return canonical.partition("@")[0]


class Names:
    """The canonical names of a space, what predicts in it, and what its estimator holds fixed."""

    def __init__(self, branches: Branches, estimator: Any):
        self._branches, self._known = branches, hasattr(estimator, "get_params")
        self._places = _places(branches, estimator) if self._known else []
        self._distinct = list({id(each): each for each in self._places}.values())
        self._ends = [end for each in self._distinct for end in each.ends()]
        self._names = list(dict.fromkeys(name for each in self._distinct for name in each.names()))
        paths = {_path(name) for name in self._names}
        self._classes = {path: _classes(self._owners(path)) for path in paths}
        self._aside = {path for path in paths if not any(each.leads_on(path) for each in self._distinct)}

    def _owners(self, path: str) -> list[Any]:
        return [owner for each in self._distinct for owner in each.owners(path)]

    def predictors(self) -> list[str]:
        """Class names of the estimator that predicts in the end, past pipelines and wrappers."""
        return sorted(_classes(end for _, end in self._ends))

    def canonical(self) -> dict[str, str]:
        """Each declared name with its canonical one; without an estimator a name stands for itself."""
        names = list(dict.fromkeys(name for branch in self._branches for name in branch))
        if not self._known:
            return dict(zip(names, names, strict=True))
        found = {name: self._canonical(name) for name in names}
        counts = list(found.values())
        return {n: c if counts.count(c) == 1 else f"{c}@{_path(n)}" for n, c in found.items()}

    def _canonical(self, name: str) -> str:
        path, _, parameter = name.rpartition("__")
        places = (p for branch, p in zip(self._branches, self._places, strict=True) if name in branch)
        owners = [owner for each in places for owner in each.owners(path)]
        classes = _classes(each for each in owners if parameter in each.get_params(deep=False) or not path)
        return f"{'|'.join(sorted(classes))}.{parameter}{self._at(path, classes)}" if classes else name

    def _at(self, path: str, classes: set[str]) -> str:
        """What tells these classes at a path from the same ones elsewhere; often nothing."""
        if not path or path in (end for end, _ in self._ends):
            return ""
        elsewhere = any(classes & found for other, found in self._classes.items() if other != path)
        return f"@{path}" if elsewhere or self._is_scaler_aside(path, classes) else ""

    def _is_scaler_aside(self, path: str, classes: set[str]) -> bool:
        """Whether it is a scaler that no column passes on its way to what predicts."""
        return path in self._aside and bool(classes & SCALERS)

    def fixed(self, canonical: Mapping[str, str]) -> dict[str, Plain]:
        """Canonical name -> plain value of every parameter that is not searched.

        Where a branch puts estimators into a step, these count, not the one that they replace; what is not
        the same in all of them is not fixed. A scaler aside is left out: `is_scaled` would take it for one of
        columns. So is a value at a path that is what the class has without a path.
        """
        tuned = {one for name in canonical.values() for one in owned(name)}
        found: dict[str, list[Any]] = {}
        for name in self._names:
            path, _, parameter = name.rpartition("__")
            for owner in self._owners(path) if name not in canonical else ():
                own, kind = owner.get_params(deep=False), type(owner).__name__
                # A step that is switched off is listed, too, but its name is the user's own.
                if parameter in own and not self._is_scaler_aside(path, {kind}):
                    found.setdefault(f"{kind}.{parameter}{self._at(path, {kind})}", []).append(own[parameter])
        shared = {
            key: _shared(list(map(_plain, values))) for key, values in found.items() if key not in tuned
        }
        shared = {key: value for key, value in shared.items() if value is not _LONG}
        for key, value in list(shared.items()):
            name = bare(key)
            if name not in tuned and name not in found:
                shared.setdefault(name, value)  # none of the class predicts: one place speaks for all
            if name != key and name in shared and identity(shared[name]) == identity(value):
                del shared[key]
        return shared


def _places(branches: Branches, estimator: Any) -> list[Places]:
    """Where estimators stand under each branch; the same for all that replace none."""
    unchanged = Places({}, estimator)
    paths = {_path(name) for name in unchanged.names()}

    def replaces(name: str, entry: Any) -> bool:
        values = entry if isinstance(entry, list) else ()
        return name in paths or any(is_estimator(value) or pairs(value) for value in values)

    changed = [any(replaces(name, entry) for name, entry in branch.items()) for branch in branches]
    return [
        Places(branch, estimator) if own else unchanged for branch, own in zip(branches, changed, strict=True)
    ]


def _classes(estimators: Iterable[Any]) -> set[str]:
    return {type(each).__name__ for each in estimators}


def _path(name: str) -> str:
    return name.rpartition("__")[0]


def _shared(values: list[Any]) -> Any:
    """The value that all of them are; that of none is not written down."""
    return values[0] if all(_LONG is not v and identity(v) == identity(values[0]) for v in values) else _LONG


def check_names(branches: Branches, estimator: Any) -> None:
    """Raise a ValueError for a name that the estimator does not have, with the nearest one it has."""
    if not hasattr(estimator, "get_params"):
        return
    known = set(estimator.get_params(deep=True))
    for branch in branches:
        places = Places(branch, estimator)
        for name in branch:
            if name in known:
                continue
            path, _, parameter = name.rpartition("__")
            found = places.owners(path)
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
    trial = copy.copy(owner)
    for name, value in vars(owner).items() if hasattr(owner, "__dict__") else ():
        if isinstance(value, (dict, list, set)):  # where it may keep such names
            setattr(trial, name, copy.copy(value))
    try:
        trial.set_params(**{parameter: values[0] if isinstance(values, list) else values.ppf(0.5)})
    except (ValueError, TypeError, AttributeError):
        return False
    return True


_LONG = object()  # what is not written down


def _plain(value: Any) -> Any:
    """A parameter held fixed, as it is written down: a number, a word, a few numbers, an estimator's class.

    A vocabulary or a matrix would make a record long, and the names of columns are nobody's business.
    """
    if is_estimator(value):
        return {"class": type(predictor(value)[1]).__name__, "params": {}}
    if isinstance(value, (list, tuple)):
        numbers = all(each is None or isinstance(each, (int, float, np.number)) for each in value)
        return describe(value) if len(value) <= _SHORT and numbers else _LONG
    if isinstance(value, (set, frozenset, range, Mapping, np.ndarray)):
        return _LONG
    plain = describe(value)
    return _LONG if isinstance(plain, dict) else plain
