"""Canonical parameter names: `svc__C`, `clf__C` and `C` of an SVC are one parameter, ``SVC.C``.

A declared name is a path of ``__``-separated steps and a parameter. Its canonical name is the
class of the estimator that owns the parameter, and the parameter. In three cases the path is
appended, as in ``LogisticRegression.C@selectfrommodel__estimator``:

* an estimator that does not predict, if its class also occurs elsewhere;
* a scaler through which no column passes on its way to the predictor;
* declared names that would otherwise have the same canonical name.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sktransfer.space._estimator_tree import (
    SCALERS,
    Estimator,
    EstimatorTree,
    final_estimator,
    is_estimator,
    named_steps,
)
from sktransfer.utils._values import Plain, describe, identity

Branches = Sequence[Mapping[str, Any]]
_MAX_TUPLE_LENGTH = 20  # entries of a tuple that is recorded
_UNRECORDED = object()
"""Stands for a value that is not recorded."""


def split_owners(canonical: str) -> list[str]:
    """Split the canonical name of a parameter that several estimators share into one name for each.

    >>> split_owners("LogisticRegression|SVC.C")
    ['LogisticRegression.C', 'SVC.C']
    """
    classes, dot, parameter = canonical.partition(".")
    return [f"{each}.{parameter}" for each in classes.split("|")] if dot else [canonical]


def strip_path(canonical: str) -> str:
    """Remove the path from a canonical name.

    >>> strip_path("LogisticRegression.C@selectfrommodel__estimator")
    'LogisticRegression.C'
    """
    return canonical.partition("@")[0]


def match_canonical_names(
    past: Mapping[str, Any], canonical: Mapping[str, str], predictors: Sequence[str]
) -> dict[str, str]:
    """Replace canonical names of a past space by those of the target where they mean the same.

    Parameters
    ----------
    past : dict
        ``Space.describe()`` of the past space.
    canonical : dict
        Declared name -> canonical name in the target space.
    predictors : sequence of str
        Classes of the estimators that predict in the target space.

    Returns
    -------
    dict
        Declared name in the past space -> canonical name.
    """
    names: dict[str, str] = dict(past.get("canonical", {}))
    if not (past.get("predictors") and predictors):
        # A space without an estimator has no classes: its declared names are compared.
        return {name: canonical.get(name, name) for name in names}
    # The path is part of some canonical names only. A parameter with the same declared name and
    # owned by the same class is the same parameter.
    common = names.keys() & canonical.keys()
    same = {name for name in common if strip_path(names[name]) == strip_path(canonical[name])}
    return names | {name: canonical[name] for name in same}


class CanonicalNames:
    """Canonical names of a space, its predictors, and the values that its estimator holds fixed.

    Parameters
    ----------
    branches : sequence of dict
        Branches of the space.
    estimator : estimator or None
    """

    def __init__(self, branches: Branches, estimator: Estimator | None):
        self._branches = branches
        self._trees: list[EstimatorTree] = []
        self._has_estimator = hasattr(estimator, "get_params")
        if estimator is not None and self._has_estimator:
            self._trees = _make_trees(branches, estimator)
        self._distinct = list({id(tree): tree for tree in self._trees}.values())
        self._final = [end for tree in self._distinct for end in tree.final_estimators()]
        names = (name for tree in self._distinct for name in tree.parameter_names())
        self._names = list(dict.fromkeys(names))
        paths = {_path(name) for name in self._names}
        self._classes = {path: _class_names(self._estimators_at(path)) for path in paths}
        self._bypassed = {path for path in paths if not self._feeds_predictor(path)}

    def _estimators_at(self, path: str) -> list[Estimator]:
        return [owner for tree in self._distinct for owner in tree.estimators_at(path)]

    def _feeds_predictor(self, path: str) -> bool:
        return any(tree.feeds_predictor(path) for tree in self._distinct)

    def predictors(self) -> list[str]:
        """Class names of the estimators that predict, inside pipelines and wrappers."""
        return sorted(_class_names(owner for _, owner in self._final))

    def canonical(self) -> dict[str, str]:
        """Declared name -> canonical name. Without an estimator both are the same."""
        names = list(dict.fromkeys(name for branch in self._branches for name in branch))
        if not self._has_estimator:
            return dict(zip(names, names, strict=True))
        found = {name: self._canonical_name(name) for name in names}
        counts = list(found.values())
        return {n: c if counts.count(c) == 1 else f"{c}@{_path(n)}" for n, c in found.items()}

    def _canonical_name(self, name: str) -> str:
        path, _, parameter = name.rpartition("__")
        pairs = zip(self._branches, self._trees, strict=True)
        found = [(tree, branch[name]) for branch, tree in pairs if name in branch]
        owners = [owner for tree, _ in found for owner in tree.estimators_at(path)]
        if not owners:
            routed = (_routed_name(name, values, tree) for tree, values in found)
            return next(filter(None, routed), name)
        classes = _class_names(
            owner for owner in owners if parameter in owner.get_params(deep=False) or not path
        )
        if not classes:
            return name
        return f"{'|'.join(sorted(classes))}.{parameter}{self._path_suffix(path, classes)}"

    def _path_suffix(self, path: str, classes: set[str]) -> str:
        """What distinguishes these classes from the same ones at other paths; often nothing."""
        if not path or path in (end for end, _ in self._final):
            return ""
        others = (found for other, found in self._classes.items() if other != path)
        is_elsewhere = any(classes & found for found in others)
        return f"@{path}" if is_elsewhere or self._is_bypassed_scaler(path, classes) else ""

    def _is_bypassed_scaler(self, path: str, classes: set[str]) -> bool:
        """Whether it is a scaler through which no column passes on its way to the predictor."""
        return path in self._bypassed and bool(classes & SCALERS)

    def fixed(self, canonical: Mapping[str, str]) -> dict[str, Plain]:
        """Canonical name -> plain value of every parameter that is not searched.

        Where a branch replaces a step, the estimators that it puts there count. A parameter whose
        value differs between them is not fixed. Bypassed scalers are left out, because `is_scaled`
        would mistake them for scalers of columns. A value at a path is left out if the class has
        the same value without a path.
        """
        searched = {one for name in canonical.values() for one in split_owners(name)}
        found = self._find_values(canonical)
        fixed = {
            key: value
            for key, values in found.items()
            if key not in searched and (value := _common_value(values)) is not _UNRECORDED
        }
        for key, value in list(fixed.items()):
            name = strip_path(key)
            if name not in searched and name not in found:
                fixed.setdefault(name, value)  # the class does not predict: one path stands for all
            if name != key and name in fixed and identity(fixed[name]) == identity(value):
                del fixed[key]
        return fixed

    def _find_values(self, searched: Container[str]) -> dict[str, list[Any]]:
        """Canonical name -> values in all estimators of a parameter that is not searched."""
        found: dict[str, list[Any]] = {}
        for name in self._names:
            path, _, parameter = name.rpartition("__")
            for owner in self._estimators_at(path) if name not in searched else ():
                params, cls = owner.get_params(deep=False), type(owner).__name__
                # get_params also lists the steps of a pipeline, whose names are the user's.
                if parameter in params and not self._is_bypassed_scaler(path, {cls}):
                    key = f"{cls}.{parameter}{self._path_suffix(path, {cls})}"
                    found.setdefault(key, []).append(params[parameter])
        return found


def _make_trees(branches: Branches, estimator: Estimator) -> list[EstimatorTree]:
    """Make a tree for each branch. Branches that replace no estimator share one."""
    unchanged = EstimatorTree({}, estimator)
    paths = {_path(name) for name in unchanged.parameter_names()}

    def replaces_estimator(name: str, entry: object) -> bool:
        values = entry if isinstance(entry, list) else ()
        return name in paths or any(is_estimator(value) or named_steps(value) for value in values)

    return [
        EstimatorTree(branch, estimator)
        if any(replaces_estimator(name, entry) for name, entry in branch.items())
        else unchanged
        for branch in branches
    ]


def _class_names(estimators: Iterable[Estimator]) -> set[str]:
    return {type(each).__name__ for each in estimators}


def _path(name: str) -> str:
    return name.rpartition("__")[0]


def _common_value(values: list[Any]) -> Any:
    """The plain value that all of them have in common, or `_UNRECORDED`."""
    plain = [_plain_value(value) for value in values]
    if any(value is _UNRECORDED for value in plain):
        return _UNRECORDED
    return plain[0] if len({identity(value) for value in plain}) == 1 else _UNRECORDED


def _plain_value(value: object) -> Any:
    """Describe a fixed parameter: a number, a string, a few numbers or the class of an estimator.

    Vocabularies and matrices would make records long, and names of columns are private: they are
    `_UNRECORDED`.
    """
    if is_estimator(value):
        return {"class": type(final_estimator(value)[1]).__name__, "params": {}}
    if isinstance(value, (list, tuple)):
        are_numbers = all(x is None or isinstance(x, (int, float, np.number)) for x in value)
        return describe(value) if len(value) <= _MAX_TUPLE_LENGTH and are_numbers else _UNRECORDED
    if isinstance(value, (set, frozenset, range, Mapping, np.ndarray)):
        return _UNRECORDED
    plain = describe(value)
    return _UNRECORDED if isinstance(plain, dict) else plain


# -- validation ------------------------------------------------------------------------------------


def check_names(branches: Branches, estimator: Estimator | None) -> None:
    """Raise a ValueError for a name that the estimator does not have; suggest the closest one."""
    if estimator is None or not hasattr(estimator, "get_params"):
        return
    known = set(estimator.get_params(deep=True))
    for branch in branches:
        tree = EstimatorTree(branch, estimator)
        for name in branch:
            if name in known or _is_accepted(name, branch, tree):
                continue
            if _routed_name(name, branch[name], tree) is not None:
                continue
            if name in _names_with_new_steps(branch, known, estimator):
                continue
            path = _path(name)
            owners = tree.estimators_at(path) if path else []
            options = known | {
                f"{path}__{option}" for owner in owners for option in owner.get_params(deep=False)
            }
            close = _closest_name(name, options)
            hint = f"Did you mean {close!r}?" if close else f"Known names: {sorted(known)}."
            raise ValueError(
                f"Invalid parameter {name!r} in the space for estimator "
                f"{type(estimator).__name__}. {hint}"
            )


def _closest_name(name: str, options: Iterable[str]) -> str | None:
    """The option that was probably meant: the same parameter of a step, or a similar name.

    >>> _closest_name("c", ["svc__C", "svc__cache_size"])
    'svc__C'
    """
    ordered = sorted(options, key=lambda option: (option.count("__"), option))
    folded = name.lower()
    nested = (o for o in ordered if o.lower() == folded or o.lower().endswith(f"__{folded}"))
    close = difflib.get_close_matches(name, ordered, n=1, cutoff=0.5)
    return next(nested, None) or (close[0] if close else None)


def _is_accepted(name: str, branch: Mapping[str, Any], tree: EstimatorTree) -> bool:
    """Whether an estimator that the branch puts at the path of a name accepts its parameter."""
    path, _, parameter = name.rpartition("__")
    owners = tree.estimators_at(path)
    if any(parameter in owner.get_params(deep=False) for owner in owners):
        return True
    return any(_accepts_parameter(owner, parameter, branch[name]) for owner in owners)


def _routed_name(name: str, values: Any, tree: EstimatorTree) -> str | None:
    """Canonical name of a parameter that an estimator passes on to a function or a class.

    ``module__hidden`` and ``optimizer__lr`` of skorch, and ``model__hidden`` of scikeras, are
    accepted by ``set_params``, but ``get_params`` lists them only once they are set. Their names
    are such as ``NeuralNetClassifier.module__hidden``. None if no estimator accepts them.
    """
    path, _, parameter = name.rpartition("__")
    while path:
        path, _, step = path.rpartition("__")
        parameter = f"{step}__{parameter}"
        if owners := tree.estimators_at(path):
            # A deep copy, because set_params may pass the value on to a nested estimator.
            takers = [o for o in owners if _accepts_parameter(copy.deepcopy(o), parameter, values)]
            classes = "|".join(sorted(_class_names(takers)))
            return f"{classes}.{parameter}" if takers else None
    return None


def _accepts_parameter(owner: Any, parameter: str, values: Any) -> bool:
    """Whether set_params accepts a name, as it may although get_params does not list it."""
    trial = copy.copy(owner)
    for name, value in vars(owner).items() if hasattr(owner, "__dict__") else ():
        if isinstance(value, (dict, list, set)):  # where it may store such names
            setattr(trial, name, copy.copy(value))
    try:
        value = values[0] if isinstance(values, list) else values.ppf(0.5)
        trial.set_params(**{parameter: value})
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def _names_with_new_steps(
    branch: Mapping[str, Any], known: Container[str], estimator: Estimator
) -> set[str]:
    """Names that the estimator gets from lists of (name, estimator) in the branch."""
    found: set[str] = set()
    for name, values in branch.items():
        for value in values if isinstance(values, list) and name in known else ():
            is_list = isinstance(value, (list, tuple))
            if is_list and any(isinstance(step, (list, tuple)) for step in value):
                trial: Any = copy.deepcopy(estimator)  # a shallow copy would share its steps
                found |= set(trial.set_params(**{name: value}).get_params(deep=True))
    return found
