"""Search spaces of estimators that the starter archive does not have.

`WRITTEN` holds spaces that were written by hand. They leave the number of trees and boosting rounds
to the estimator, and contain its default values. `recorded_space` takes a space from the user's own
archive, and `example_space` makes an example for an error message.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from scipy import stats
from scipy.stats import loguniform, randint, uniform

from sktransfer.space import Estimator
from sktransfer.space._axes import is_number
from sktransfer.task import Task

_SGD = {
    "alpha": loguniform(1e-6, 1e-1),
    "penalty": ["l2", "l1", "elasticnet"],
    "learning_rate": ["optimal", "adaptive", "invscaling"],
    "eta0": loguniform(1e-4, 1.0),
}
_ADABOOST = {"learning_rate": loguniform(1e-2, 2.0)}
_BAGGING = {"max_samples": uniform(0.3, 0.7), "max_features": uniform(0.3, 0.7)}
_LIGHTGBM = {
    "learning_rate": loguniform(1e-2, 0.5),
    "num_leaves": randint(7, 128),
    "min_child_samples": randint(5, 101),
    "colsample_bytree": uniform(0.4, 0.6),
    "reg_lambda": [0.0, 0.01, 0.1, 1.0, 10.0],
}
_XGBOOST = {
    "learning_rate": loguniform(1e-2, 0.5),
    "max_depth": randint(2, 11),
    "min_child_weight": loguniform(0.5, 20.0),
    "subsample": uniform(0.5, 0.5),
    "colsample_bytree": uniform(0.4, 0.6),
    "reg_lambda": loguniform(1e-2, 20.0),
}
WRITTEN: dict[str, dict[str, Any]] = {
    "SGDClassifier": _SGD,
    "SGDRegressor": _SGD | {"learning_rate": ["invscaling", "adaptive"]},
    "AdaBoostClassifier": _ADABOOST,
    "AdaBoostRegressor": _ADABOOST | {"loss": ["linear", "square", "exponential"]},
    "BaggingClassifier": _BAGGING,
    "BaggingRegressor": _BAGGING,
    "LinearSVR": {"C": loguniform(1e-3, 1e3), "epsilon": [0.0, 0.01, 0.1, 1.0]},
    "RidgeClassifier": {"alpha": loguniform(1e-3, 1e3), "class_weight": [None, "balanced"]},
    "LGBMClassifier": _LIGHTGBM,
    "LGBMRegressor": _LIGHTGBM,
    "XGBClassifier": _XGBOOST,
    "XGBRegressor": _XGBOOST,
}


TECHNICAL = {
    "cache_size",
    "degree",
    "max_iter",
    "n_jobs",
    "random_state",
    "tol",
    "verbose",
    "warm_start",
}
"""Parameters that are seldom searched alone."""


def recorded_space(tasks: Iterable[Task], estimator: str) -> dict[str, Any]:
    """The space of the newest task of an estimator; empty if there is none.

    Parameters
    ----------
    tasks : iterable of Task
        Oldest first.
    estimator : str
        Name of its class.
    """
    found: dict[str, Any] = {}
    for task in tasks:
        if estimator in task.space["predictors"]:
            entries = {
                canonical.removeprefix(f"{estimator}."): _make_entry(branch[name])
                for branch in task.space["branches"][:1]
                for name, canonical in task.space["canonical"].items()
                if canonical.startswith(f"{estimator}.") and "@" not in canonical and name in branch
            }
            found = {name: entry for name, entry in entries.items() if entry is not None} or found
    return found


def _make_entry(described: Mapping[str, Any]) -> Any:
    """The list or distribution that a record describes; None if it holds objects."""
    if "values" in described:
        values = described["values"]
        plain = [tuple(value) if isinstance(value, list) else value for value in values]
        return None if any(isinstance(value, dict) for value in plain) else plain
    family = getattr(stats, str(described.get("distribution")), None)
    if not isinstance(family, stats.rv_continuous | stats.rv_discrete):
        return None
    try:
        return family(*described["args"], **described["kwds"])
    except (TypeError, ValueError, KeyError):  # a record that was edited by hand
        return None


def example_space(estimator: Estimator) -> str:
    """Write a space for an estimator, for an error message.

    >>> from sklearn.cluster import KMeans
    >>> example_space(KMeans())
    "{'n_clusters': randint(2, 33)}"
    """
    params = estimator.get_params(deep=False)
    # The constructor lists important parameters first, get_params sorts them.
    names = [name for name in inspect.signature(type(estimator).__init__).parameters]
    names = [name for name in names if name in params and name not in TECHNICAL]
    for name in names:
        value = params[name]
        if is_number(value) and value > 0:
            if isinstance(value, int):
                return f"{{{name!r}: randint({max(1, value // 4)}, {4 * value + 1})}}"
            return f"{{{name!r}: loguniform({value / 100:.3g}, {value * 100:.3g})}}"
    for name in names:
        if isinstance(params[name], bool):
            return f"{{{name!r}: [True, False]}}"
    return "{'parameter': [value, other_value]}"
