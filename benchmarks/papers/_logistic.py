"""Logistic regression with an elastic net on many data sets, as in Yogatama & Mann 2014.

It has the four hyperparameters of the paper: the weights of the l1 and of the l2 penalty, the
maximum number of iterations, and the convergence threshold. It is trained by stochastic gradients
(`SGDClassifier`), which use both weights directly and are fast enough for thousands of evaluations.
"""

from __future__ import annotations

import warnings
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory
from scipy.stats import loguniform, randint
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.data import load_classification
from benchmarks.evaluations import data_sets, families
from benchmarks.runner import WORK
from benchmarks.tables import Suite, Table
from sktransfer import Space, profile

LOGISTIC = "logistic"
SPACE = {
    "l1": loguniform(1e-6, 1e-1),
    "l2": loguniform(1e-6, 1e-1),
    "max_iter": randint(1, 31),
    "tol": loguniform(1e-4, 1e-1),
}
MAX_ROWS, MIN_CLASS_SIZE = 2000, 4
N_TABLE = 100  # configurations of the table of a data set


@lru_cache(maxsize=4)
def names(folder: Path) -> list[str]:
    """Return one data set of each family, so that no two share rows, without very rare classes."""
    first = {family: name for name, family in reversed(families(folder).items())}
    kept = []
    for name in data_sets(folder):
        if name in first.values():
            _, y = load_classification(name, folder, MAX_ROWS)
            if np.bincount(y).min() >= MIN_CLASS_SIZE:
                kept.append(name)
    return kept


class DataSet:
    """One data set in three parts: half to train, a quarter for development, a quarter to test.

    Columns have mean 0 and variance 1 in the training part.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray):
        X, rest, self.y, y_rest = train_test_split(X, y, train_size=0.5, stratify=y, random_state=0)
        dev, test, self.y_dev, self.y_test = train_test_split(
            rest, y_rest, train_size=0.5, stratify=y_rest, random_state=0
        )
        scaler = StandardScaler().fit(X)
        self.X, self.X_dev, self.X_test = (scaler.transform(part) for part in (X, dev, test))

    @cached_property
    def profile(self) -> Any:
        return profile(self.X, self.y)

    def trained(self, params: dict[str, Any]) -> SGDClassifier:
        """Return the model fitted to the training part."""
        total = max(params["l1"] + params["l2"], 1e-9)
        model = SGDClassifier(
            loss="log_loss",
            penalty="elasticnet",
            alpha=total,
            l1_ratio=min(params["l1"] / total, 1.0),
            max_iter=int(params["max_iter"]),
            tol=params["tol"],
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # convergence warnings: max_iter is tuned
            return model.fit(self.X, self.y)

    def accuracies(self, params: dict[str, Any]) -> tuple[float, float]:
        """Return the accuracies on the development and on the test part."""
        model = self.trained(params)
        return model.score(self.X_dev, self.y_dev), model.score(self.X_test, self.y_test)

    def log_loss(self, params: dict[str, Any]) -> float:
        """Return the log loss on the development part."""
        model = self.trained(params)
        return float(log_loss(self.y_dev, model.predict_proba(self.X_dev), labels=model.classes_))


@lru_cache(maxsize=64)
def data_set(name: str, folder: Path) -> DataSet:
    """Load a data set, once."""
    return DataSet(*load_classification(name, folder, MAX_ROWS))


def logistic_suite(folder: Path) -> Suite:
    """Return a table for each data set: its profile and the log loss of random configurations.

    The log loss is used because accuracies on a few hundred rows have too many ties. Losses are
    computed once and cached in the work folder.
    """
    losses = Memory(WORK / "papers" / LOGISTIC, verbose=0).cache(_losses)
    tables = {}
    for number, name in enumerate(names(folder)):
        params = Space.parse(SPACE).sample(N_TABLE, np.random.default_rng(number))
        loss = losses(name, params, folder)
        tables[name] = Table(name, params, loss, profile=data_set(name, folder).profile)
    return Suite(LOGISTIC, Space.parse(SPACE), tables)


def _losses(name: str, params: list[dict[str, Any]], folder: Path) -> np.ndarray:
    return np.array([data_set(name, folder).log_loss(each) for each in params])
