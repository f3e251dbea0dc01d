"""The cells of `benchmarks.peers`: estimators with their spaces, data sets and a score.

A cell is an estimator and a data set. The score of a configuration is its balanced accuracy in
three-fold cross-validation on at most MAX_ROWS rows.
"""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import loguniform, randint, uniform
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelEncoder, OneHotEncoder, QuantileTransformer
from sklearn.utils import resample

from benchmarks.data import load_classification
from benchmarks.plain_bo import ESTIMATORS as PLAIN
from sktransfer import DatasetProfile, Space, profile

MAX_ROWS = 400
MAX_CATEGORIES = 10  # a column of at most this many distinct integers is categorical
SCORING = "balanced_accuracy"
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)

_prepare = make_column_transformer(
    (QuantileTransformer(n_quantiles=50), make_column_selector(dtype_include="number")),
    (
        OneHotEncoder(handle_unknown="infrequent_if_exist"),
        make_column_selector(dtype_exclude="number"),
    ),
)
ESTIMATORS: dict[str, tuple[Any, dict[str, Any]]] = PLAIN | {
    "boosting": (
        HistGradientBoostingClassifier(max_iter=10, early_stopping=False, random_state=0),
        {
            "learning_rate": loguniform(0.01, 1),
            "max_leaf_nodes": randint(2, 65),
            "min_samples_leaf": randint(1, 61),
            "l2_regularization": loguniform(1e-4, 1e2),
            "max_features": uniform(0.1, 0.9),
        },
    ),
    "mixed": (
        Pipeline([("prepare", _prepare), ("clf", LogisticRegression(max_iter=200))]),
        {
            "clf__C": loguniform(1e-4, 1e3),
            "clf__class_weight": [None, "balanced"],
            "prepare__quantiletransformer__output_distribution": ["uniform", "normal"],
            "prepare__onehotencoder__min_frequency": randint(1, 41),
        },
    ),
}
MIXED = "mixed"


class Data(NamedTuple):
    X: Any
    y: np.ndarray
    profile: DatasetProfile


@lru_cache(maxsize=256)
def load(estimator: str, name: str, folder: Path) -> Data:
    """Return the data of a cell: a table with categories for the mixed pipeline, else an array."""
    X, y = (
        mixed_table(name, folder)
        if estimator == MIXED
        else load_classification(name, folder, MAX_ROWS)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Data(X, y, profile(X, y))


def mixed_table(name: str, folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return X, where text and columns of few values are categories, and y (0, 1, ...)."""
    table = pd.read_csv(folder / "classification" / f"{name}.csv.gz", dtype={"target": str})
    y = LabelEncoder().fit_transform(table.pop("target"))
    for column in table.select_dtypes("number"):
        values = table[column].unique()
        if len(values) <= MAX_CATEGORIES and (values == values.round()).all():
            table[column] = table[column].astype(int).astype(str)
    if len(table) > MAX_ROWS:
        table, y = resample(table, y, replace=False, n_samples=MAX_ROWS, stratify=y, random_state=0)
    return table, y


def is_suitable(estimator: str, name: str, folder: Path) -> bool:
    """Return whether a data set suits the estimator; the mixed pipeline needs both column types."""
    if estimator != MIXED:
        return True
    numbers = load(estimator, name, folder).X.select_dtypes("number").shape[1]
    return 0 < numbers < load(estimator, name, folder).X.shape[1]


def space_of(estimator: str) -> Space:
    """Return the space parsed for its estimator, so that parameters have canonical names."""
    return Space.parse(ESTIMATORS[estimator][1], ESTIMATORS[estimator][0])


def evaluate(estimator: str, params: dict[str, Any], data: Data, folds: Any = FOLDS) -> float:
    """Return the score of a configuration, NaN if a fit fails."""
    candidate = clone(ESTIMATORS[estimator][0]).set_params(**params)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return float(
                cross_val_score(candidate, data.X, data.y, cv=folds, scoring=SCORING).mean()
            )
        except ValueError:  # raised by scikit-learn if all fits failed
            return math.nan
