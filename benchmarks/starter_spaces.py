"""Estimators of the starter archive, and the settings of each that are tried.

`space` holds the parameters that most people tune. Half of its trials fill it, half search it.
`further` holds variants, with some trials that fill them: another kernel, another criterion. They
are separate because a search with a fixed category learns nothing from trials with another one. A
parameter that varies in only one branch is listed in the others with its usual value, because a
value missing from a trial cannot be recovered later. For the same reason, numbers that few people
tune keep their defaults.

Ensembles are small and iterations are limited: the best settings of a large ensemble are nearly
the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.stats import loguniform, uniform
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

Branch = dict[str, Any]


@dataclass(frozen=True)
class Spec:
    """An estimator and its settings.

    Parameters
    ----------
    estimator : estimator
    space : dict
        Parameters to fill and to search.
    further : tuple of dict
        Variants to fill only.
    scaled : bool
        Whether the scale of the columns matters. If so, the estimator is also tried behind a
        StandardScaler.
    cost : float
        Approximate seconds of a fit on 1000 rows; cheap cells come first.
    per_class : bool
        Whether the cost is per class.
    max_rows : int
    wanted : float
        Factor by which the estimator comes earlier than its cost suggests, because it is popular.
    """

    estimator: Any
    space: Branch
    further: tuple[Branch, ...] = ()
    scaled: bool = False
    cost: float = 0.01
    per_class: bool = False
    max_rows: int = 1000
    wanted: float = 1.0


def specs(kind: str, extras: bool = False) -> dict[str, Spec]:
    """Map class name to settings, for the classifiers or the regressors.

    Parameters
    ----------
    kind : {"classification", "regression"}
    extras : bool
        Whether to include LightGBM and XGBoost if they are installed.
    """
    found = _classifiers() if kind == "classification" else _regressors()
    found += _extras(kind) if extras else []
    return {type(spec.estimator).__name__: spec for spec in found}


# -- families with classifiers and regressors ------------------------------------------------------

NEIGHBORS = {
    "n_neighbors": [1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 25, 30, 40, 50],
    "weights": ["uniform", "distance"],
    "p": [1, 2],
}
TREE = {
    "max_depth": [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30],
    "min_samples_leaf": [1, 2, 3, 5, 8, 12, 20, 30, 50],
    "min_samples_split": [2, 3, 5, 8, 12, 20, 30, 50, 100],
}
FOREST = {
    "n_estimators": [10, 20, 30, 50, 75, 100],
    "max_depth": [2, 3, 4, 6, 8, 12, 16, 20, 30],
    "min_samples_leaf": [1, 2, 3, 5, 8, 12, 20],
    "min_samples_split": [2, 3, 5, 8, 12, 20, 30],
    "max_features": uniform(0.1, 0.9),
}
BOOSTING = {
    "n_estimators": [10, 20, 30, 50, 75, 100],
    "learning_rate": loguniform(0.01, 1.0),
    "max_depth": [1, 2, 3, 4, 5, 6, 8],
    "subsample": uniform(0.3, 0.7),
    "min_samples_leaf": [1, 2, 3, 5, 10, 20, 50],
    "max_features": uniform(0.1, 0.9),
}
HISTOGRAMS = {
    "max_iter": [10, 20, 30, 50, 75, 100],
    "learning_rate": loguniform(0.01, 1.0),
    "max_leaf_nodes": [3, 5, 8, 12, 16, 24, 31, 48, 64],
    "min_samples_leaf": [1, 2, 5, 10, 20, 30, 50, 100],
    "l2_regularization": loguniform(1e-4, 1e2),
}
NETWORK = {"alpha": loguniform(1e-6, 1.0), "learning_rate_init": loguniform(1e-4, 1e-1)}
PENALTY, WIDTH = loguniform(1e-3, 1e4), loguniform(1e-6, 1e2)  # C and gamma of the kernel machines


def _tree(estimator: Any, criteria: tuple[str, str]) -> Spec:
    whole = {"max_features": [1.0], "ccp_alpha": [0.0]}
    part = {"max_features": uniform(0.1, 0.9), "ccp_alpha": loguniform(1e-4, 1e-1)}
    usual, other = ({"criterion": [criterion]} for criterion in criteria)
    further = (other | TREE | whole, usual | TREE | part)
    return Spec(estimator, usual | TREE | whole, further, cost=0.005)


def _forest(estimator: Any, criteria: tuple[str, ...]) -> Spec:
    space, *further = ({"criterion": [criterion]} | FOREST for criterion in criteria)
    wanted = 2 if type(estimator).__name__.startswith("RandomForest") else 1
    return Spec(estimator, space, tuple(further), cost=0.1, wanted=wanted)


def _network(estimator: Any) -> Spec:
    usual = {"hidden_layer_sizes": [(100,)], "activation": ["relu"]}
    others = {
        "hidden_layer_sizes": [(10,), (50,), (100,), (50, 50), (100, 50), (100, 100)],
        "activation": ["relu", "tanh"],
    }
    return Spec(
        estimator, usual | NETWORK, (others | NETWORK,), scaled=True, cost=0.3, max_rows=500
    )


def _classifiers() -> list[Spec]:
    seed: dict[str, Any] = {"random_state": 0}
    return [
        Spec(
            SVC(max_iter=20_000),
            {"kernel": ["rbf"], "C": PENALTY, "gamma": WIDTH},
            (
                {
                    "kernel": ["poly"],
                    "C": PENALTY,
                    "gamma": WIDTH,
                    "degree": [2, 3, 4],
                    "coef0": uniform(0, 1),
                },
                {"kernel": ["linear"], "C": PENALTY},
            ),
            scaled=True,
            cost=0.04,
            wanted=5,
        ),
        Spec(
            LinearSVC(max_iter=2000, **seed),
            {"C": loguniform(1e-5, 1e3), "loss": ["squared_hinge"]},
            ({"C": loguniform(1e-5, 1e3), "loss": ["hinge"]},),
            scaled=True,
            cost=0.03,
        ),
        Spec(
            LogisticRegression(max_iter=300),
            {"C": loguniform(1e-5, 1e4), "class_weight": [None]},
            ({"C": loguniform(1e-5, 1e4), "class_weight": ["balanced"]},),
            scaled=True,
            cost=0.02,
        ),
        Spec(KNeighborsClassifier(), NEIGHBORS, scaled=True),
        _tree(DecisionTreeClassifier(**seed), ("gini", "entropy")),
        _forest(RandomForestClassifier(**seed), ("gini", "entropy")),
        _forest(ExtraTreesClassifier(**seed), ("gini", "entropy")),
        Spec(
            HistGradientBoostingClassifier(early_stopping=False, **seed),
            HISTOGRAMS,
            cost=0.03,
            per_class=True,
            wanted=5,
        ),
        Spec(GradientBoostingClassifier(**seed), BOOSTING, cost=0.05, per_class=True, max_rows=500),
        _network(MLPClassifier(max_iter=100, **seed)),
    ]


def _regressors() -> list[Spec]:
    seed: dict[str, Any] = {"random_state": 0}
    width = loguniform(1e-3, 1e1)  # epsilon, in units of the target variable
    return [
        Spec(Ridge(), {"alpha": loguniform(1e-5, 1e5)}, scaled=True),
        Spec(Lasso(), {"alpha": loguniform(1e-5, 1e2)}, scaled=True),
        Spec(
            ElasticNet(),
            {"alpha": loguniform(1e-5, 1e2), "l1_ratio": uniform(0.01, 0.99)},
            scaled=True,
        ),
        Spec(
            SVR(max_iter=20_000),
            {"kernel": ["rbf"], "C": PENALTY, "gamma": WIDTH, "epsilon": width},
            ({"kernel": ["linear"], "C": PENALTY, "epsilon": width},),
            scaled=True,
            cost=0.05,
        ),
        Spec(KNeighborsRegressor(), NEIGHBORS, scaled=True),
        _tree(DecisionTreeRegressor(**seed), ("squared_error", "absolute_error")),
        _forest(RandomForestRegressor(**seed), ("squared_error",)),
        _forest(ExtraTreesRegressor(**seed), ("squared_error",)),
        Spec(
            HistGradientBoostingRegressor(early_stopping=False, **seed),
            HISTOGRAMS,
            cost=0.04,
            wanted=5,
        ),
        Spec(GradientBoostingRegressor(**seed), BOOSTING, cost=0.1),
        _network(MLPRegressor(max_iter=100, **seed)),
    ]


def _extras(kind: str) -> list[Spec]:
    """Return the settings of LightGBM and XGBoost, if they are installed."""
    classes, found = kind == "classification", []
    common = {
        "n_estimators": [10, 20, 30, 50, 75, 100],
        "learning_rate": loguniform(0.01, 1.0),
        "subsample": uniform(0.3, 0.7),
        "colsample_bytree": uniform(0.2, 0.8),
        "reg_lambda": loguniform(1e-4, 1e2),
    }
    try:
        import lightgbm

        made = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        own = {
            "num_leaves": [3, 5, 8, 12, 16, 24, 31, 48, 64],
            "min_child_samples": [1, 2, 5, 10, 20, 50],
        }
        estimator = made(subsample_freq=1, n_jobs=1, random_state=0, verbosity=-1)
        found.append(Spec(estimator, common | own, cost=0.03, per_class=classes))
    except ImportError:
        print("Left out: LightGBM is not installed.", flush=True)
    try:
        import xgboost

        made = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
        own = {"max_depth": [1, 2, 3, 4, 5, 6, 8, 10], "min_child_weight": loguniform(0.1, 100.0)}
        estimator = made(n_jobs=1, random_state=0, tree_method="hist")
        found.append(Spec(estimator, common | own, cost=0.05, per_class=classes))
    except ImportError:
        print("Left out: XGBoost is not installed.", flush=True)
    return found
