"""Search spaces that do not come from the starter archive, or not only.

`WRITTEN` holds spaces that were written by hand. They leave the number of trees and boosting rounds
to the estimator, and contain its default values. `recorded_space` takes a space from the user's own
archive, `widen_space` adds good values of that archive to another space, and `example_space` makes
an example for an error message.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any

from scipy import stats
from scipy.stats import loguniform, randint, uniform

from sktransfer.space import Estimator
from sktransfer.space._axes import is_number
from sktransfer.task import Task
from sktransfer.utils._values import identity

GOOD_SHARE = 0.1  # share of the trials on a data set that count as good
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


def widen_space(space: Mapping[str, Any], tasks: Iterable[Task], estimator: str) -> dict[str, Any]:
    """A space with room for the good values of the user's own searches.

    Good are the values of the best tenth of the trials of a task. Ranges are widened to those
    outside. A search in the resulting space has no trials outside of it, so the space stays the
    same when the same script runs again.

    Parameters
    ----------
    space : dict
        Parameter -> list or distribution.
    tasks : iterable of Task
    estimator : str
        Name of its class.
    """
    good: dict[str, list[Any]] = {name: [] for name in space}
    for task in tasks:
        if estimator in task.space["predictors"]:
            successful = [trial for trial in task.trials if math.isfinite(trial.score)]
            best = sorted(successful, key=lambda trial: -trial.score)
            for trial in best[: math.ceil(GOOD_SHARE * len(best))]:
                for name, value in _own_values(task, trial.params, estimator).items():
                    good.get(name, []).append(value)
    return {name: _add_values(entry, good[name]) for name, entry in space.items()}


def _own_values(task: Task, params: Mapping[str, Any], estimator: str) -> dict[str, Any]:
    """The values of an estimator's parameters in a trial."""
    canonical = task.space["canonical"]
    names = {name: canonical.get(name, "").partition(".") for name in params}
    return {
        parts[2]: params[name]
        for name, parts in names.items()
        if parts[0] == estimator and "@" not in parts[2]
    }


def _add_values(entry: Any, values: list[Any]) -> Any:
    """A list or range that contains further values, if it is of a kind that can be widened."""
    if isinstance(entry, list):
        known = set(map(identity, entry))
        new = {identity(v): v for v in values if isinstance(v, str | int | float)}
        added = [*entry, *(value for key, value in new.items() if key not in known)]
        return sorted(added) if all(map(is_number, added)) else added
    numbers = [float(value) for value in values if is_number(value)]
    low, high = map(float, entry.support())
    outside = [value for value in numbers if not low <= value <= high]
    if not outside or entry.dist.name not in ("loguniform", "uniform", "randint"):
        return entry
    low = low if min(outside) >= low else round_outward(min(outside), up=False)
    high = high if max(outside) <= high else round_outward(max(outside), up=True)
    if entry.dist.name == "randint":
        return randint(math.floor(low), math.ceil(high) + 1)
    is_log = entry.dist.name == "loguniform" and low > 0
    return loguniform(low, high) if is_log else uniform(low, high - low)


def round_outward(value: float, up: bool) -> float:
    """A value with two digits that is not inside, seen from a range that it bounds.

    >>> round_outward(1234.5, True), round_outward(0.01239, False), round_outward(0.5, True)
    (1300.0, 0.012, 0.5)
    """
    rounded = float(f"{value:.1e}")
    if (rounded >= value) if up else (rounded <= value):
        return rounded
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return float(f"{rounded + (step if up else -step):.1e}")


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
