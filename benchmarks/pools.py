"""Pools of evaluated configurations, from which searches choose instead of fitting anything.

    OMP_NUM_THREADS=1 python -m benchmarks.pools --jobs 2      # resumes; an hour or two

A cell is an estimator with a space as a user would write it, and a data set of at most MAX_ROWS
rows. The pool of a cell is drawn from its space. Each of its configurations is scored in three-fold
cross-validation on N_SPLITS splits into folds. A search sees the scores of the first split. The
result of a search is measured on the other splits, which nothing was chosen by.

Pools make comparisons of searches cheap and exact: every search chooses from the same
configurations, and random search is computed rather than run.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.data import data_folder, load_classification, load_regression
from benchmarks.evaluations import data_sets, families
from benchmarks.first_trial import split_families
from benchmarks.pretraining.families import RELATED, regression_sets, split_regression
from benchmarks.runner import RESULTS, make_parser, packed_file, read_rows, run_all, update_runs
from sktransfer import DatasetProfile, Space, profile

MAX_ROWS = 400
N_SPLITS = 3
FIELDS = ("estimator", "data")
PACKED = packed_file(RESULTS / "pools.md")
STORE = "pools.jsonl"

_TREE = {
    "max_depth": randint(1, 21),
    "min_samples_split": randint(2, 61),
    "min_samples_leaf": randint(1, 61),
    "max_features": uniform(0.1, 0.9),
    "ccp_alpha": loguniform(1e-5, 1e-1),
}
_HISTOGRAMS = {
    "learning_rate": loguniform(0.01, 1),
    "max_leaf_nodes": randint(2, 65),
    "min_samples_leaf": randint(1, 61),
    "l2_regularization": loguniform(1e-4, 1e2),
    "max_features": uniform(0.1, 0.9),
}
_KERNEL = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 1e1)}


class Problem(NamedTuple):
    """An estimator and its space.

    Parameters
    ----------
    kind : {"classification", "regression"}
    estimator : estimator
    space : dict
    size : int
        Number of configurations of a pool.
    """

    kind: str
    estimator: BaseEstimator
    space: Mapping[str, Any]
    size: int = 128


def _scaled(estimator: BaseEstimator, space: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    step = type(estimator).__name__.lower()
    named = {f"{step}__{name}": values for name, values in space.items()}
    return make_pipeline(StandardScaler(), estimator), named


PROBLEMS: dict[str, Problem] = {
    "svc": Problem(
        "classification",
        *_scaled(SVC(max_iter=20_000), _KERNEL | {"kernel": ["rbf", "poly", "sigmoid"]}),
    ),
    "tree": Problem(
        "classification",
        DecisionTreeClassifier(random_state=0),
        _TREE | {"criterion": ["gini", "entropy"]},
    ),
    "logistic": Problem(
        "classification",
        *_scaled(
            LogisticRegression(solver="saga", max_iter=100, random_state=0),
            {
                "C": loguniform(1e-4, 1e4),
                "l1_ratio": uniform(0, 1),
                "class_weight": [None, "balanced"],
            },
        ),
    ),
    "neighbors": Problem(
        "classification",
        *_scaled(
            KNeighborsClassifier(),
            {"n_neighbors": randint(1, 51), "weights": ["uniform", "distance"], "p": [1, 2]},
        ),
    ),
    "boosting": Problem(
        "classification",
        HistGradientBoostingClassifier(max_iter=30, early_stopping=False, random_state=0),
        _HISTOGRAMS,
        size=64,
    ),
    "forest": Problem(
        "classification",
        RandomForestClassifier(n_estimators=30, random_state=0),
        {
            "max_depth": randint(1, 21),
            "min_samples_split": randint(2, 31),
            "min_samples_leaf": randint(1, 31),
            "max_features": uniform(0.05, 0.95),
            "criterion": ["gini", "entropy"],
            "class_weight": [None, "balanced"],
        },
        size=64,
    ),
    "network": Problem(
        "classification",
        *_scaled(
            MLPClassifier(max_iter=100, random_state=0),
            {
                "hidden_layer_sizes": [(25,), (50,), (100,), (50, 50)],
                "activation": ["relu", "tanh"],
                "alpha": loguniform(1e-6, 1e1),
                "learning_rate_init": loguniform(1e-4, 1e-1),
                "batch_size": [32, 64, 128],
            },
        ),
        size=64,
    ),
    "svr": Problem(
        "regression",
        *_scaled(SVR(max_iter=20_000), _KERNEL | {"epsilon": loguniform(1e-3, 1e1)}),
    ),
    "tree-regression": Problem("regression", DecisionTreeRegressor(random_state=0), _TREE),
    "elastic-net": Problem(
        "regression",
        *_scaled(
            ElasticNet(random_state=0),
            {"alpha": loguniform(1e-4, 1e2), "l1_ratio": uniform(0.01, 0.99)},
        ),
    ),
    "boosting-regression": Problem(
        "regression",
        HistGradientBoostingRegressor(early_stopping=False, random_state=0),
        _HISTOGRAMS | {"max_iter": randint(10, 101)},
        size=64,
    ),
}
SCORING = {"classification": "balanced_accuracy", "regression": "r2"}


@lru_cache(maxsize=128)
def load(kind: str, name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """X and y of a data set."""
    read = load_classification if kind == "classification" else load_regression
    return read(name, folder, MAX_ROWS)


@lru_cache(maxsize=256)
def profile_of(kind: str, name: str, folder: Path) -> DatasetProfile:
    """The profile of a data set."""
    return profile(*load(kind, name, folder), kind=kind)


def space_of(estimator: str) -> Space:
    """The space of a problem, parsed for its estimator."""
    problem = PROBLEMS[estimator]
    return Space.parse(problem.space, problem.estimator)


def draw_pool(estimator: str, data: str) -> list[dict[str, Any]]:
    """Draw the distinct configurations of a cell."""
    space, size = space_of(estimator), PROBLEMS[estimator].size
    seed = [zlib.crc32(text.encode()) for text in (estimator, data)]
    drawn = space.sample(2 * size, np.random.default_rng(seed))
    return list({repr(params): params for params in drawn}.values())[:size]


def evaluate(
    estimator: str, params: Mapping[str, Any], X: np.ndarray, y: np.ndarray, split: int
) -> float:
    """Score a configuration on one split into three folds; NaN if a fit fails."""
    problem = PROBLEMS[estimator]
    splitter = StratifiedKFold if problem.kind == "classification" else KFold
    folds = splitter(3, shuffle=True, random_state=split)
    candidate = clone(problem.estimator).set_params(**params)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = cross_val_score(
            candidate, X, y, cv=folds, scoring=SCORING[problem.kind], error_score=np.nan
        )
    return round(float(scores.mean()), 5)


def run(estimator: str, data: str, folder: Path) -> dict[str, Any]:
    """Evaluate the pool of a cell; "scores" has a list for each split."""
    X, y = load(PROBLEMS[estimator].kind, data, folder)
    pool = draw_pool(estimator, data)
    scores = [
        [evaluate(estimator, params, X, y, split) for params in pool] for split in range(N_SPLITS)
    ]
    return {"scores": scores}


def family_of(kind: str, folder: Path) -> dict[str, str]:
    """Data set -> family, for the data sets of a kind."""
    if kind == "classification":
        return families(folder)
    return {name: RELATED.get(name, name) for name in regression_sets(folder)}


def targets(kind: str, split: str, folder: Path) -> list[str]:
    """Data sets of a kind in a split, at most two of a family."""
    if kind == "regression":
        return sorted(split_regression(folder)[split])
    family = families(folder)
    members: dict[str, list[str]] = {}
    for name in data_sets(folder):
        if family[name] in split_families(family)[split]:
            members.setdefault(family[name], []).append(name)
    return sorted(name for names in members.values() for name in names[:2])


def cells(estimators: list[str], splits: list[str], folder: Path) -> list[tuple[str, str]]:
    """All cells of some estimators and splits."""
    return [
        (estimator, name)
        for split in splits
        for estimator in estimators
        for name in targets(PROBLEMS[estimator].kind, split, folder)
    ]


def read_pools(work: Path) -> dict[tuple, np.ndarray]:
    """(estimator, data) -> scores of shape (N_SPLITS, size), of the finished cells."""
    rows = read_rows(work / STORE, FIELDS, PACKED)
    return {key: np.array(row["scores"], dtype=float) for key, row in rows.items()}


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "jobs")
    parser.add_argument("--estimators", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--splits", nargs="+", default=["development", "report"])
    options = parser.parse_args()
    folder = data_folder(options.data)
    keys = cells(options.estimators, options.splits, folder)
    rows = run_all(
        options.work / STORE, FIELDS, keys, run, options.jobs, lambda key: (folder,), PACKED
    )
    update_runs(rows, PACKED, FIELDS)


if __name__ == "__main__":
    main()
