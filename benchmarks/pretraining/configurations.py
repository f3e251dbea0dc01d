"""Wide canonical spaces of the 21 estimators of the starter archive, and configurations from them.

A configuration names every parameter of its space, so that any subspace, bounds and fixed values of
a user are covered. Number 0 has scikit-learn's defaults. Of the others, the first half has only
some parameters moved from the defaults, and the second half has all of them drawn.

Ensembles are small and iterations bounded, as in `benchmarks.starter_spaces`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import ensemble, linear_model, neighbors, neural_network, svm, tree
from sklearn.base import BaseEstimator

N_CONFIGURATIONS = 20
MOVE_PROBABILITY = 0.35

Configuration = dict[str, Any]
Rule = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Real:
    """A number in an interval, uniform or uniform on a log scale, perhaps whole."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __call__(self, rng: np.random.Generator) -> float | int:
        low, high = (self.low, self.high + 1) if self.whole else (self.low, self.high)
        value = (
            np.exp(rng.uniform(np.log(low), np.log(high))) if self.log else rng.uniform(low, high)
        )
        return min(int(value), int(self.high)) if self.whole else float(value)


@dataclass(frozen=True)
class Choice:
    """One of several values, or a number where the value is a `Real`."""

    values: tuple[Any, ...]
    weights: tuple[float, ...] | None = None

    def __call__(self, rng: np.random.Generator) -> Any:
        value = self.values[rng.choice(len(self.values), p=self.weights)]
        return value(rng) if isinstance(value, Real) else value


@dataclass(frozen=True)
class Spec:
    """An estimator with its canonical space.

    Parameters
    ----------
    estimator : estimator
        With the parameters that are never tuned.
    space : dict
        Parameter -> rule that draws a value.
    defaults : dict
        Defaults that differ from those of scikit-learn because of the cost.
    scaled : bool
        Whether the scale of columns matters; then it is evaluated with and without a scaler.
    group : {"cheap", "medium", "forests", "networks", "slow"}
    max_rows : int
        Larger data sets are cut to this number of rows.
    """

    estimator: BaseEstimator
    space: Mapping[str, Rule]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    scaled: bool = False
    group: str = "cheap"
    max_rows: int = 1000


def log(low: float, high: float) -> Real:
    return Real(low, high, log=True)


def whole(low: int, high: int) -> Real:
    return Real(low, high, log=True, whole=True)


C = log(1e-4, 1e4)
TREE = {
    "max_depth": Choice((None, whole(1, 30)), (0.3, 0.7)),
    "min_samples_split": whole(2, 100),
    "min_samples_leaf": whole(1, 60),
    "max_features": Choice((None, "sqrt", Real(0.05, 1.0)), (0.4, 0.1, 0.5)),
    "ccp_alpha": Choice((0.0, log(1e-5, 0.1)), (0.6, 0.4)),
}
FOREST = {
    "n_estimators": whole(8, 100),
    "max_depth": Choice((None, whole(1, 30)), (0.4, 0.6)),
    "min_samples_split": whole(2, 60),
    "min_samples_leaf": whole(1, 40),
    "max_features": Choice(("sqrt", "log2", None, Real(0.05, 1.0)), (0.2, 0.05, 0.15, 0.6)),
    "bootstrap": Choice((True, False)),
    "max_samples": Choice((None, Real(0.1, 1.0)), (0.6, 0.4)),
}
BOOSTING = {
    "n_estimators": whole(8, 150),
    "learning_rate": log(5e-3, 1.0),
    "max_depth": whole(1, 10),
    "subsample": Real(0.2, 1.0),
    "min_samples_split": whole(2, 60),
    "min_samples_leaf": whole(1, 60),
    "max_features": Choice((None, "sqrt", Real(0.05, 1.0)), (0.4, 0.1, 0.5)),
}
HISTOGRAMS = {
    "max_iter": whole(8, 150),
    "learning_rate": log(5e-3, 1.0),
    "max_leaf_nodes": whole(2, 64),
    "max_depth": Choice((None, whole(1, 15)), (0.6, 0.4)),
    "min_samples_leaf": whole(1, 100),
    "l2_regularization": Choice((0.0, log(1e-5, 1e3)), (0.2, 0.8)),
    "max_features": Choice((1.0, Real(0.1, 1.0)), (0.5, 0.5)),
}
NETWORK = {
    "hidden_layer_sizes": Choice(
        ((100,), (10,), (25,), (50,), (200,), (25, 25), (50, 50), (100, 50))
    ),
    "activation": Choice(("relu", "tanh", "logistic"), (0.5, 0.35, 0.15)),
    "alpha": log(1e-7, 1e1),
    "learning_rate_init": log(1e-4, 0.1),
    "batch_size": Choice(("auto", whole(8, 200)), (0.6, 0.4)),
}
NEIGHBORS = {
    "n_neighbors": whole(1, 100),
    "weights": Choice(("uniform", "distance")),
    "p": Choice((1, 2, Real(1.0, 4.0)), (0.4, 0.5, 0.1)),
}
KERNEL = {
    "kernel": Choice(("rbf", "poly", "sigmoid", "linear"), (0.6, 0.15, 0.1, 0.15)),
    "C": C,
    "gamma": Choice(("scale", log(1e-6, 1e2)), (0.15, 0.85)),
    "degree": Real(2, 5, whole=True),
    "coef0": Choice((0.0, Real(0.0, 2.0)), (0.5, 0.5)),
    "tol": log(1e-4, 1e-1),
}
BALANCE = Choice((None, "balanced"))


def specs_of(task: str) -> dict[str, Spec]:
    """Name of the class -> spec, for "classification" or "regression"."""
    found = _classifiers() if task == "classification" else _regressors()
    return {type(spec.estimator).__name__: spec for spec in found}


def _classifiers() -> list[Spec]:
    grow = TREE | {"criterion": Choice(("gini", "entropy")), "class_weight": BALANCE}
    forest = FOREST | {"criterion": Choice(("gini", "entropy")), "class_weight": BALANCE}
    seed = {"random_state": 0}
    return [
        Spec(svm.SVC(max_iter=20_000), KERNEL | {"class_weight": BALANCE}, scaled=True),
        Spec(tree.DecisionTreeClassifier(**seed), grow),
        Spec(
            linear_model.LogisticRegression(max_iter=100, **seed),
            {
                "C": log(1e-5, 1e4),
                "solver": Choice(("lbfgs", "saga"), (0.75, 0.25)),
                "l1_ratio": Choice((0.0, 1.0, Real(0.0, 1.0)), (0.75, 0.15, 0.1)),
                "class_weight": BALANCE,
                "fit_intercept": Choice((True, False), (0.85, 0.15)),
            },
            scaled=True,
        ),
        Spec(neighbors.KNeighborsClassifier(), NEIGHBORS, scaled=True),
        Spec(
            svm.LinearSVC(max_iter=500, dual="auto", **seed),
            {
                "C": log(1e-5, 1e3),
                "loss": Choice(("squared_hinge", "hinge"), (0.65, 0.35)),
                "class_weight": BALANCE,
                "fit_intercept": Choice((True, False), (0.85, 0.15)),
            },
            scaled=True,
            group="medium",
        ),
        Spec(ensemble.RandomForestClassifier(**seed), forest, group="forests"),
        Spec(ensemble.ExtraTreesClassifier(**seed), forest, group="slow"),
        Spec(
            ensemble.HistGradientBoostingClassifier(early_stopping=False, **seed),
            HISTOGRAMS | {"class_weight": BALANCE},
            group="forests",
        ),
        Spec(ensemble.GradientBoostingClassifier(**seed), BOOSTING, group="slow", max_rows=300),
        Spec(
            neural_network.MLPClassifier(max_iter=100, **seed),
            NETWORK,
            scaled=True,
            group="networks",
            max_rows=500,
        ),
    ]


def _regressors() -> list[Spec]:
    seed, errors = {"random_state": 0}, ("squared_error", "absolute_error")
    grow = TREE | {"criterion": Choice(errors, (0.75, 0.25))}
    penalty = {"alpha": log(1e-6, 1e3), "fit_intercept": Choice((True, False), (0.85, 0.15))}
    mixture = {"l1_ratio": Real(0.01, 1.0)}
    steps = {"loss": Choice(("squared_error", "absolute_error", "huber"), (0.6, 0.2, 0.2))}
    return [
        Spec(
            svm.SVR(max_iter=20_000),
            KERNEL | {"epsilon": Choice((0.0, log(1e-4, 1e1)), (0.1, 0.9))},
            scaled=True,
        ),
        Spec(tree.DecisionTreeRegressor(**seed), grow),
        Spec(linear_model.ElasticNet(**seed), penalty | mixture, scaled=True),
        Spec(linear_model.Ridge(), penalty | {"alpha": log(1e-6, 1e6)}, scaled=True),
        Spec(linear_model.Lasso(**seed), penalty, scaled=True),
        Spec(neighbors.KNeighborsRegressor(), NEIGHBORS, scaled=True),
        Spec(ensemble.RandomForestRegressor(**seed), FOREST, group="forests"),
        Spec(ensemble.ExtraTreesRegressor(**seed), FOREST, group="slow"),
        Spec(
            ensemble.HistGradientBoostingRegressor(early_stopping=False, **seed),
            HISTOGRAMS | {"loss": Choice(errors, (0.8, 0.2))},
            group="forests",
        ),
        Spec(ensemble.GradientBoostingRegressor(**seed), BOOSTING | steps, group="slow"),
        Spec(
            neural_network.MLPRegressor(max_iter=100, **seed),
            NETWORK,
            scaled=True,
            group="networks",
            max_rows=500,
        ),
    ]


# -- drawing ---------------------------------------------------------------------------------------


def draw_configurations(name: str, spec: Spec, number: int) -> list[Configuration]:
    """Draw the configurations of an estimator on the data set with this number.

    The scaled and the bare variant of an estimator have the same configurations.

    Examples
    --------
    >>> spec = specs_of("regression")["Ridge"]
    >>> draw_configurations("Ridge", spec, 3)[0]
    {'alpha': 1.0, 'fit_intercept': True}
    """
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    defaults = {key: spec.estimator.get_params()[key] for key in spec.space} | dict(spec.defaults)
    drawn = [repair(name, dict(defaults))]
    while len(drawn) < N_CONFIGURATIONS:
        moved = np.ones(len(defaults), dtype=bool)
        if len(drawn) < N_CONFIGURATIONS // 2:
            moved = rng.random(len(defaults)) < MOVE_PROBABILITY
            moved[rng.integers(len(defaults))] = True
        chosen = [key for key, is_moved in zip(spec.space, moved, strict=True) if is_moved]
        drawn.append(repair(name, defaults | {key: spec.space[key](rng) for key in chosen}))
    return drawn


def repair(name: str, configuration: Configuration) -> Configuration:
    """Make a configuration valid: some values of one parameter need a value of another."""
    if name == "LogisticRegression" and configuration["l1_ratio"] > 0:
        return configuration | {"solver": "saga"}
    if "bootstrap" in configuration and not configuration["bootstrap"]:
        return configuration | {"max_samples": None}
    if configuration.get("kernel") in ("sigmoid", "poly") and configuration["gamma"] != "scale":
        # Large powers of large products overflow, which nobody tunes for.
        return configuration | {"gamma": min(configuration["gamma"], 10.0)}
    return configuration
