"""The estimators inside an estimator: which one a ``__``-separated path names, which one predicts.

The estimator at a path comes from ``get_params``. Where the branch of a space replaces that step,
it is one of the branch's values. All functions rely on duck typing, so that any object with
``get_params`` will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeGuard

# Wrappers that do not change the meaning of the wrapped estimator's parameters, as a booster does.
_WRAPPED_PARAMETERS = {
    "TransformedTargetRegressor": "regressor",
    "OneVsRestClassifier": "estimator",
    "OneVsOneClassifier": "estimator",
    "MultiOutputClassifier": "estimator",
    "MultiOutputRegressor": "estimator",
    "CalibratedClassifierCV": "estimator",
    "FixedThresholdClassifier": "estimator",
    "TunedThresholdClassifierCV": "estimator",
}
_STEP_ATTRIBUTES = ("steps", "transformers", "transformer_list")
"""Where a Pipeline, a ColumnTransformer and a FeatureUnion hold their steps."""

SCALERS = frozenset(
    [
        "MaxAbsScaler",
        "MinMaxScaler",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
    ]
)


class Estimator(Protocol):
    """An object with ``get_params``."""

    def get_params(self, deep: bool = True) -> Any: ...


def is_estimator(value: object) -> TypeGuard[Estimator]:
    """Whether a value is an estimator, not a class of estimators."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def join_path(*names: str) -> str:
    """Join names to a path. Empty names are left out."""
    return "__".join(filter(None, names))


class EstimatorTree:
    """The estimators that are possible at each path under one branch of a space.

    Parameters
    ----------
    branch : dict
        Parameter name -> list of values, or distribution.
    estimator : estimator
        The estimator that is searched.
    """

    def __init__(self, branch: Mapping[str, object], estimator: Estimator):
        self._branch, self._estimator = branch, estimator
        self._at_path: dict[str, list[Estimator]] = {}
        self._params: dict[int, Mapping[str, Any]] = {}

    def estimators_at(self, path: str) -> list[Estimator]:
        """Every estimator that is possible at a path."""
        if path not in self._at_path:
            self._at_path[path] = self._find_estimators(path)
        return self._at_path[path]

    def _find_estimators(self, path: str) -> list[Estimator]:
        if not path:
            return [self._estimator]
        values = self._branch.get(path)
        if isinstance(values, list):
            return list(filter(is_estimator, values))
        parent, _, step = path.rpartition("__")
        if choices := self.replaced_steps(parent):
            found = [value for steps in choices for name, value, *_ in steps if name == step]
        else:
            found = [self._deep_params(owner).get(step) for owner in self.estimators_at(parent)]
        return list(filter(is_estimator, found))

    def _deep_params(self, owner: Estimator) -> Mapping[str, Any]:
        """All parameters of an estimator, cached: an ensemble of fifty pipelines takes long."""
        if id(owner) not in self._params:
            self._params[id(owner)] = owner.get_params(deep=True)
        return self._params[id(owner)]

    def parameter_names(self) -> list[str]:
        """Every parameter name, for all estimators that the branch can put into the estimator."""
        names = dict.fromkeys(self._deep_params(self._estimator))
        lists = {path: entry for path, entry in self._branch.items() if isinstance(entry, list)}
        inserted = [(path, value) for path, entry in lists.items() for value in entry]
        for path, value in list(inserted):
            parent = path.rpartition("__")[0]
            inserted += [(join_path(parent, name), step) for name, step, *_ in named_steps(value)]
        for path, value in inserted:
            if is_estimator(value):
                names |= dict.fromkeys(join_path(path, name) for name in self._deep_params(value))
        return list(names)

    def final_estimators(self, path: str = "") -> list[tuple[str, Estimator]]:
        """Estimators inside pipelines and wrappers that can predict, with their paths."""
        inner = [(owner, self._inner_names(owner, path)) for owner in self.estimators_at(path)]
        names = sorted({name for _, each in inner for name in each})
        below = [end for name in names for end in self.final_estimators(join_path(path, name))]
        return below + [(path, owner) for owner, each in inner if not (each and below)]

    def _inner_names(self, owner: Estimator, path: str) -> set[str]:
        """Names of the last step of a pipeline, or of the estimator inside a wrapper."""
        choices = self.replaced_steps(path) or [named_steps(getattr(owner, "steps", None))]
        last = {steps[-1][0] for steps in choices if steps}
        return last or {name for name in [_WRAPPED_PARAMETERS.get(type(owner).__name__)] if name}

    def feeds_predictor(self, path: str) -> bool:
        """Whether the estimator at a path predicts, or transforms columns that reach the predictor.

        The transformer of a target does not, nor does the estimator by which a selector rates
        columns.
        """
        if not path:
            return True
        parent, _, step = path.rpartition("__")
        if not self.feeds_predictor(parent):
            return False
        names = {name for steps in self.replaced_steps(parent) for name, *_ in steps}
        for owner in self.estimators_at(parent):
            for attribute in _STEP_ATTRIBUTES:
                names |= {name for name, *_ in named_steps(getattr(owner, attribute, None))}
            names |= {_WRAPPED_PARAMETERS.get(type(owner).__name__, "")}
        return step in names

    def replaced_steps(self, path: str) -> list[Sequence[Any]]:
        """Lists of steps from which the branch lets the pipeline at a path choose."""
        values = self._branch.get(join_path(path, "steps"))
        if not isinstance(values, list):
            return []
        return [steps for value in values if (steps := named_steps(value))]


def final_estimator(estimator: Estimator) -> tuple[str, Estimator]:
    """Find the estimator that makes the predictions, inside pipelines and wrappers, and its path.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> final_estimator(make_pipeline(SVC(C=2.0)))
    ('svc', SVC(C=2.0))
    """
    return EstimatorTree({}, estimator).final_estimators()[0]


def named_steps(steps: object) -> Sequence[Any]:
    """Return a list of (name, estimator, ...) as it is; nothing for any other value.

    An attribute that is called ``steps`` need not hold steps.
    """
    if not isinstance(steps, (list, tuple)):
        return ()
    for step in steps:
        if not isinstance(step, (list, tuple)) or len(step) < 2 or not isinstance(step[0], str):
            return ()
    return steps


# -- descriptions in a record ----------------------------------------------------------------------


def is_estimator_description(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value of a record describes an estimator."""
    if not isinstance(value, Mapping) or not isinstance(value.get("class"), str):
        return False
    return isinstance(value.get("params", {}), Mapping)


def described_final_estimator(description: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Class and parameters of the estimator that predicts, from the description of an estimator.

    >>> params = {"estimator": {"class": "SVC", "params": {"C": 2.0}}}
    >>> described_final_estimator({"class": "OneVsRestClassifier", "params": params})
    ('SVC', {'C': 2.0})
    """
    params = description.get("params", {})
    steps = named_steps(params.get("steps"))
    wrapped = _WRAPPED_PARAMETERS.get(description["class"], "")
    inner = steps[-1][1] if steps else params.get(wrapped)
    if is_estimator_description(inner):
        return described_final_estimator(inner)
    return description["class"], params


def can_hold_predictor(canonical: str) -> bool:
    """Whether the value of a parameter can predict: it is a step of a pipeline, or wrapped.

    >>> can_hold_predictor("Pipeline.clf"), can_hold_predictor("SelectFromModel.estimator")
    (True, False)
    """
    owner, _, parameter = canonical.partition(".")
    return owner == "Pipeline" or _WRAPPED_PARAMETERS.get(owner) == parameter


def is_scaled(space: Mapping[str, Any]) -> bool | None:
    """Whether columns are scaled before they reach the estimator that predicts; None if unknown.

    The width of a kernel, a penalty or a distance depends on the scale of the columns, so the best
    settings with a scaler say little about those without. A description holds the parameters of
    every step, and with them the classes of the steps. So records need no extra field for this.

    Parameters
    ----------
    space : dict
        ``Space.describe()``. The result is None if it was made without an estimator, or if the
        scaler itself is searched.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from sktransfer.space import Space
    >>> unscaled, scaled = SVC(), make_pipeline(StandardScaler(), SVC())
    >>> is_scaled(Space.parse({"C": [1, 10]}, unscaled).describe())
    False
    >>> is_scaled(Space.parse({"svc__C": [1, 10]}, scaled).describe())
    True
    """
    if not space.get("predictors"):
        return None
    entries = [entry for branch in space["branches"] for entry in branch.values()]
    searched = [value for entry in entries for value in entry.get("values", ())]
    searched += [step for value in searched for _, step, *_ in named_steps(value)]
    if any(is_estimator_description(value) and value["class"] in SCALERS for value in searched):
        return None
    # A searched scaler with a path in its name may not scale columns, but the target for example.
    names = [*space["fixed"], *(name for name in space["canonical"].values() if "@" not in name)]
    return any(owner in SCALERS for name in names for owner in name.partition(".")[0].split("|"))
