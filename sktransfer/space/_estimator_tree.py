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
    """A path; names that are empty are left out."""
    return "__".join(filter(None, names))


class Places:
    """Where estimators stand under one branch of a space."""

    def __init__(self, branch: Mapping[str, Any], estimator: Any):
        self._branch, self._estimator = branch, estimator
        self._owners: dict[str, list[Any]] = {}
        self._deep: dict[int, Mapping[str, Any]] = {}

    def owners(self, path: str) -> list[Any]:
        """Every estimator that may stand at `path`."""
        if path not in self._owners:
            self._owners[path] = self._find(path)
        return self._owners[path]

    def _find(self, path: str) -> list[Any]:
        if not path:
            return [self._estimator]
        if isinstance(self._branch.get(path), list):
            return list(filter(is_estimator, self._branch[path]))
        above, _, step = path.rpartition("__")
        if lists := self.replaced_steps(above):
            found = [value for steps in lists for name, value, *_ in steps if name == step]
        else:
            found = [self._params(parent).get(step) for parent in self.owners(above)]
        return list(filter(is_estimator, found))

    def _params(self, owner: Any) -> Mapping[str, Any]:
        """All that it has, asked for once: an ensemble of fifty pipelines takes its time."""
        if id(owner) not in self._deep:
            self._deep[id(owner)] = owner.get_params(deep=True)
        return self._deep[id(owner)]

    def names(self) -> list[str]:
        """Every name that the estimator has, with any of the estimators that the branch may put into it."""
        names = dict.fromkeys(self._params(self._estimator))
        lists = {path: entry for path, entry in self._branch.items() if isinstance(entry, list)}
        put_in = [(path, value) for path, entry in lists.items() for value in entry]
        for path, value in list(put_in):
            above = path.rpartition("__")[0]
            put_in += [(join(above, name), step) for name, step, *_ in pairs(value)]
        for path, value in put_in:
            if is_estimator(value):
                names |= dict.fromkeys(join(path, each) for each in self._params(value))
        return list(names)

    def ends(self, path: str = "") -> list[tuple[str, Any]]:
        """What may predict in the end, past pipelines and wrappers, each with the path to it."""
        inner = [(owner, self._inner(owner, path)) for owner in self.owners(path)]
        names = sorted({name for _, each in inner for name in each})
        below = [end for name in names for end in self.ends(join(path, name))]
        return below + [(path, owner) for owner, each in inner if not (each and below)]

    def _inner(self, owner: Any, path: str) -> set[str]:
        """Names of what stands last in a pipeline, or within a wrapper."""
        lists = self.replaced_steps(path) or [pairs(getattr(owner, "steps", None))]
        last = {steps[-1][0] for steps in lists if steps}
        return last or {name for name in [_TRANSPARENT.get(type(owner).__name__)] if name}

    def leads_on(self, path: str) -> bool:
        """Whether columns pass what stands at a path on their way to what predicts, or it is that itself.

        The transformer of a target is not, nor is what a selector of columns judges them by.
        """
        if not path:
            return True
        above, _, step = path.rpartition("__")
        if not self.leads_on(above):
            return False
        members = {name for steps in self.replaced_steps(above) for name, *_ in steps}
        for owner in self.owners(above):
            members |= {name for each in _MEMBERS for name, *_ in pairs(getattr(owner, each, None))}
            members |= {_TRANSPARENT.get(type(owner).__name__, "")}
        return step in members

    def replaced_steps(self, path: str) -> list[Sequence[Any]]:
        """The lists of steps that the branch gives the pipeline at a path to choose from."""
        values = self._branch.get(join(path, "steps"))
        return [steps for value in values if (steps := pairs(value))] if isinstance(values, list) else []


def predictor(estimator: Any) -> tuple[str, Any]:
    """The estimator that predicts in the end, past pipelines and wrappers, and the path to it.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> predictor(make_pipeline(SVC(C=2.0)))
    ('svc', SVC(C=2.0))
    """
    return Places({}, estimator).ends()[0]


def pairs(steps: Any) -> Sequence[Any]:
    """The (name, estimator, ...) of a pipeline and its like; none of an attribute that only has that name."""
    if not isinstance(steps, (list, tuple)):
        return ()
    named = all(isinstance(s, (list, tuple)) and len(s) > 1 and isinstance(s[0], str) for s in steps)
    return steps if named else ()


# -- as a record describes them ----------------------------------------------------------------------


def is_described(value: Any) -> bool:
    """Whether it is a record's description of an estimator."""
    if not isinstance(value, Mapping) or not isinstance(value.get("class"), str):
        return False
    return isinstance(value.get("params", {}), Mapping)


def described_predictor(value: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Class and parameters of what predicts in the end, of an estimator as a record describes it.

    >>> described_predictor({"class": "OneVsRestClassifier", "params": {"estimator": {"class": "SVC"}}})
    ('SVC', {})
    """
    params = value.get("params", {})
    steps = pairs(params.get("steps"))
    inner = steps[-1][1] if steps else params.get(_TRANSPARENT.get(value["class"], ""))
    return described_predictor(inner) if is_described(inner) else (value["class"], params)


def is_on_the_way(canonical: str) -> bool:
    """Whether an estimator under this name predicts in the end: a step, or what a wrapper lets through.

    >>> is_on_the_way("Pipeline.clf"), is_on_the_way("SelectFromModel.estimator")
    (True, False)
    """
    owner, _, parameter = canonical.partition(".")
    return owner == "Pipeline" or _TRANSPARENT.get(owner) == parameter
