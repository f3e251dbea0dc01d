"""Canonical parameter names: `svc__C`, `clf__C` and `C` of an SVC are one parameter, ``SVC.C``.

A declared name is a path of ``__``-separated steps and a parameter; the estimator that owns the
parameter is found by ``get_params``, or, where the branch of the space replaces that step itself, among
the branch's values. Everything here asks estimators by duck typing, so that any object with
``get_params`` will do.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from sktransfer._values import Plain, describe

# Wrappers that leave the hyperparameters of what they wrap their meaning (a booster does not).
_TRANSPARENT = {
    "TransformedTargetRegressor": "regressor",
    "OneVsRestClassifier": "estimator",
    "OneVsOneClassifier": "estimator",
    "MultiOutputClassifier": "estimator",
    "MultiOutputRegressor": "estimator",
    "CalibratedClassifierCV": "estimator",
    "FixedThresholdClassifier": "estimator",
    "TunedThresholdClassifierCV": "estimator",
}


def canonical_names(branches: Sequence[Mapping[str, Any]], estimator: Any) -> dict[str, str]:
    """Map each declared name to its canonical one; without an estimator a name stands for itself."""
    names = dict.fromkeys(name for branch in branches for name in branch)
    if not hasattr(estimator, "get_params"):
        return {name: name for name in names}
    found = {name: _canonical(name, branches, estimator) for name in names}
    # Two SVCs in one pipeline: their path tells them apart.
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
    owners, dot, parameter = canonical.partition(".")
    return [f"{owner}.{parameter}" for owner in owners.split("|")] if dot else [canonical]


def _canonical(name: str, branches: Iterable[Mapping[str, Any]], estimator: Any) -> str:
    path, _, parameter = name.rpartition("__")
    owners = {
        type(owner).__name__
        for branch in branches
        if name in branch
        for owner in _owners(path, branch, estimator)
        if parameter in owner.get_params(deep=False) or not path
    }
    return f"{'|'.join(sorted(owners))}.{parameter}" if owners else name


def _owners(path: str, branch: Mapping[str, Any], estimator: Any) -> list[Any]:
    """Every estimator that may stand at `path` under this branch."""
    if not path:
        return [estimator]
    if isinstance(branch.get(path), list):
        return [value for value in branch[path] if hasattr(value, "get_params")]
    above, _, step = path.rpartition("__")
    for parent in _owners(above, branch, estimator):
        owner = parent.get_params(deep=True).get(step)
        if hasattr(owner, "get_params"):
            return [owner]
    return []


def check_names(branches: Sequence[Mapping[str, Any]], estimator: Any) -> None:
    """Raise a ValueError for a name that the estimator does not have, with the nearest one it has."""
    if not hasattr(estimator, "get_params"):
        return
    known = set(estimator.get_params(deep=True))
    for branch in branches:
        for name in branch:
            if name in known:
                continue
            path, _, parameter = name.rpartition("__")
            owners = _owners(path, branch, estimator)
            if any(parameter in owner.get_params(deep=False) for owner in owners):
                continue
            if any(_takes(owner, parameter, branch[name]) for owner in owners):
                continue
            if name in _names_with_new_steps(branch, known, estimator):
                continue
            options = known | {
                f"{path}__{option}" for owner in owners for option in owner.get_params(deep=False) if path
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
        copy.copy(owner).set_params(**{parameter: values[0] if isinstance(values, list) else values.ppf(0.5)})
    except (ValueError, TypeError, AttributeError):
        return False
    return True


def fixed_values(estimator: Any, canonical: Mapping[str, str]) -> dict[str, Plain]:
    """Canonical name -> plain value of every parameter that is not searched."""
    if not hasattr(estimator, "get_params"):
        return {}
    tuned = set(canonical.values())
    fixed: dict[str, Plain] = {}
    for name, value in estimator.get_params(deep=True).items():
        path, _, parameter = name.rpartition("__")
        plain = describe(value)
        if name in canonical or isinstance(plain, (dict, list)):
            continue
        for owner in _owners(path, {}, estimator):
            key = f"{type(owner).__name__}.{parameter}"
            # A step that is switched off is listed, too, but its name is the user's own.
            if key not in tuned and parameter in owner.get_params(deep=False):
                fixed.setdefault(key, plain)
    return fixed


def predictors(branches: Iterable[Mapping[str, Any]], estimator: Any) -> list[str]:
    """Class names of the estimator that predicts in the end, past pipelines and wrappers."""
    if not hasattr(estimator, "get_params"):
        return []
    return sorted({name for branch in branches for name in _predictors("", branch, estimator)})


def _predictors(path: str, branch: Mapping[str, Any], estimator: Any) -> set[str]:
    found = set()
    for owner in _owners(path, branch, estimator):
        steps = getattr(owner, "steps", None)
        inner = steps[-1][0] if steps else _TRANSPARENT.get(type(owner).__name__)
        below = f"{path}__{inner}" if path and inner else inner
        found |= (_predictors(below, branch, estimator) if below else set()) or {type(owner).__name__}
    return found


def predictor(estimator: Any) -> tuple[str, Any]:
    """The estimator that predicts in the end, past pipelines and wrappers, and the path to it.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> predictor(make_pipeline(SVC(C=2.0)))
    ('svc', SVC(C=2.0))
    """
    path, owner = "", estimator
    while True:
        steps = getattr(owner, "steps", None)
        inner = steps[-1][0] if steps else _TRANSPARENT.get(type(owner).__name__)
        below = f"{path}__{inner}" if path else str(inner)
        found = _owners(below, {}, estimator) if inner else []
        if not found:
            return path, owner
        path, owner = below, found[0]
