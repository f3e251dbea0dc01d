"""Which estimator stands where: what a path of ``__``-separated steps leads to, and what predicts in the end.

An estimator stands at a path by ``get_params``, or, where the branch of the space replaces that step itself,
it is one of the branch's values. Everything here asks estimators by duck typing, so that any object with
``get_params`` will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
_MEMBERS = ("steps", "transformers", "transformer_list")
"""Of a pipeline, a ColumnTransformer, a FeatureUnion: those that columns pass through."""


def is_estimator(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def join(*names: str) -> str:
    """A path; those that are empty are left out."""
    return "__".join(filter(None, names))


def owners(path: str, branch: Mapping[str, Any], estimator: Any) -> list[Any]:
    """Every estimator that may stand at `path` under this branch."""
    if not path:
        return [estimator]
    if isinstance(branch.get(path), list):
        return list(filter(is_estimator, branch[path]))
    above, _, step = path.rpartition("__")
    found = []
    for parent in owners(above, branch, estimator):
        lists = _replaced_steps(above, branch)
        within = [value for steps in lists for name, value, *_ in steps if name == step]
        found += within if lists else [parent.get_params(deep=True).get(step)]
    return list(filter(is_estimator, found))


def ends(branch: Mapping[str, Any], estimator: Any, path: str = "") -> list[tuple[str, Any]]:
    """What may predict in the end, past pipelines and wrappers, each with the path to it."""
    found = []
    for owner in owners(path, branch, estimator):
        inner = _TRANSPARENT.get(type(owner).__name__)
        lists = _replaced_steps(path, branch) or [_pairs(getattr(owner, "steps", None))]
        last = {steps[-1][0] for steps in lists if steps} or ({inner} if inner else set())
        below = [end for name in sorted(last) for end in ends(branch, estimator, join(path, name))]
        found += below or [(path, owner)]
    return found


def predictor(estimator: Any) -> tuple[str, Any]:
    """The estimator that predicts in the end, past pipelines and wrappers, and the path to it.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> predictor(make_pipeline(SVC(C=2.0)))
    ('svc', SVC(C=2.0))
    """
    return ends({}, estimator)[0]


def leads_on(path: str, branch: Mapping[str, Any], estimator: Any) -> bool:
    """Whether what stands at a path is where columns pass on their way to the predictor, or the predictor.

    The transformer of a target is not, nor is what a selector of columns judges them by.
    """
    if not path:
        return True
    above, _, step = path.rpartition("__")
    if not leads_on(above, branch, estimator):
        return False
    members = {name for steps in _replaced_steps(above, branch) for name, *_ in steps}
    for owner in owners(above, branch, estimator):
        members |= {name for each in _MEMBERS for name, *_ in _pairs(getattr(owner, each, None))}
        members |= {_TRANSPARENT.get(type(owner).__name__, "")}
    return step in members


def described_predictor(value: Any) -> tuple[str, Mapping[str, Any]]:
    """Class and parameters of what predicts in the end, of an estimator as a record describes it.

    >>> described_predictor({"class": "OneVsRestClassifier", "params": {"estimator": {"class": "SVC"}}})
    ('SVC', {})
    """
    params = value.get("params", {})
    inner = params.get(_TRANSPARENT.get(value["class"], ""))
    steps = _pairs(params.get("steps"))
    inner = steps[-1][1] if steps else inner
    return described_predictor(inner) if is_described(inner) else (value["class"], params)


def is_described(value: Any) -> bool:
    """Whether it is a record's description of an estimator."""
    return isinstance(value, Mapping) and isinstance(value.get("class"), str)


def _replaced_steps(path: str, branch: Mapping[str, Any]) -> list[Sequence[Any]]:
    """The lists of steps that a branch gives the pipeline at a path to choose from."""
    values = branch.get(join(path, "steps"))
    return [steps for value in values if (steps := _pairs(value))] if isinstance(values, list) else []


def _pairs(steps: Any) -> Sequence[Any]:
    """The (name, estimator, ...) of a pipeline and its like; none of an attribute that only has that name."""
    if not isinstance(steps, (list, tuple)):
        return ()
    named = all(isinstance(s, (list, tuple)) and len(s) > 1 and isinstance(s[0], str) for s in steps)
    return steps if named else ()
