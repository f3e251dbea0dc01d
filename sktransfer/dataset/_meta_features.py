"""Handcrafted meta-features: a few dozen numbers that describe a data set.

The groups are those of manualBO (Law et al. 2019), plus log rows, log columns and log classes
(Yogatama & Mann 2014). Notation: V the numbers of X, (n, p), finite, n <= `MAX_ROWS`,
p <= `MAX_COLUMNS`; Z the columns of V that vary, standardized, (n, q); t the target, (n,).

Each function returns a dict with the features of one group. Features that are not defined are
absent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sktransfer.dataset._table import Table, Target

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

MAX_ROWS = 1000
MAX_COLUMNS = 100
MAX_LANDMARK_ROWS = 500

Predictor = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(Z_train, t_train, Z_test) -> predictions of t_test."""


# -- sizes and cells -------------------------------------------------------------------------------


def log_sizes(table: Table, target: Target) -> dict[str, float]:
    """Logarithms of the sizes that are known."""
    known = {"rows": table.n_rows, "columns": table.n_columns, "outputs": target.n_outputs}
    known["classes"] = 0 if target.ratios is None else len(target.ratios)
    return {f"log_{name}": float(np.log(size)) for name, size in known.items() if size}


def text_lengths(texts: list, rows: np.ndarray) -> dict[str, float]:
    """Logarithms of the lengths of the texts."""
    lengths = np.log1p([len(texts[i]) for i in rows if isinstance(texts[i], (str, bytes))])
    return _summarize("log_length", lengths)


def cell_shares(values: np.ndarray, is_categorical: np.ndarray) -> dict[str, float]:
    """Share of missing cells and share of categorical columns."""
    missing = np.isnan(values)
    return {
        "share_missing": float(missing.mean()),
        "share_categorical": float(is_categorical.mean()),
    }


def impute_medians(values: np.ndarray) -> np.ndarray:
    """Replace cells that are not finite by the median of their column, or by 0 without one."""
    absent = ~np.isfinite(values)
    if not absent.any():
        return values
    values = np.where(absent, np.nan, values)
    return np.where(absent, np.nan_to_num(np.nanmedian(values, axis=0)), values)


def standardize(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Z (n, q) and the standard deviations (q,) of its columns before."""
    values = impute_medians(values)
    largest = np.abs(values).max(axis=0, initial=0.0)
    largest[largest == 0] = 1.0
    scaled = values / largest  # so that squares of huge values stay finite
    scaled -= scaled.mean(axis=0)
    std = scaled.std(axis=0)
    varies = std > 1e-12
    return scaled[:, varies] / std[varies], std[varies] * largest[varies]


def order_columns(Z: np.ndarray) -> np.ndarray:
    """Return the columns in an order that depends on their content only."""
    cubes = Z * Z * Z  # powers of arrays are slow
    third, fourth = np.round(cubes.mean(axis=0), 6), np.round((cubes * Z).mean(axis=0), 6)
    return np.lexsort((fourth, third))


# -- columns ---------------------------------------------------------------------------------------


def column_moments(Z: np.ndarray) -> dict[str, float]:
    """Skewness and kurtosis of the columns."""
    cubes = Z * Z * Z
    kurtosis = (cubes * Z).mean(axis=0) - 3.0
    return _summarize("skewness", cubes.mean(axis=0)) | _summarize("kurtosis", kurtosis)


def column_pairs(Z: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """Correlation and covariance of pairs of columns; the covariance c as sign(c) log(1 + |c|)."""
    pairs = np.triu_indices(Z.shape[1], k=1)
    correlation = (Z.T @ Z / len(Z))[pairs]
    covariance = np.nan_to_num(correlation * std[pairs[0]] * std[pairs[1]])
    logs = np.sign(covariance) * np.log1p(np.abs(covariance))
    return {**_summarize("correlation", correlation), **_summarize("covariance", logs)}


def principal_components(Z: np.ndarray) -> dict[str, float]:
    """Moments of the first component, and the share of components with 95 % of the variance."""
    if not Z.shape[1]:
        return {}
    variances, directions = np.linalg.eigh(Z.T @ Z / len(Z))
    first = Z @ directions[:, -1]
    first /= first.std()
    explained = np.cumsum(variances[::-1]) / variances.sum()
    return {
        # The sign of a component, and so of its skewness, is arbitrary.
        "component_skewness": float(abs(np.mean(first**3))),
        "component_kurtosis": float(np.mean(first**4) - 3.0),
        "components_95": float((np.searchsorted(explained, 0.95 - 1e-9) + 1) / len(explained)),
    }


# -- target ----------------------------------------------------------------------------------------


def target_statistics(target: Target) -> dict[str, float]:
    """Class ratios and their normalized entropy, or the moments of y scaled to [0, 1]."""
    if target.values is None:
        return {}
    ratios = target.ratios
    if ratios is not None:
        k = len(ratios)
        entropy = -np.sum(ratios * np.log(ratios)) / np.log(k) if k > 1 else 0.0
        return {**_summarize("class_ratio", ratios), "class_entropy": float(entropy)}
    t = target.values[:, 0]
    t = to_unit_interval(t[np.isfinite(t)])
    if not len(t):
        return {}
    z = (t - t.mean()) / t.std()
    return {
        "target_mean": float(t.mean()),
        "target_std": float(t.std()),
        "target_skewness": float(np.mean(z**3)),
        "target_kurtosis": float(np.mean(z**4) - 3.0),
    }


def to_unit_interval(t: np.ndarray) -> np.ndarray:
    """Scale to [0, 1]; constants become 0.

    Values are halved first, because the range of huge values is not finite.
    """
    low, high = (t.min() / 2, t.max() / 2) if len(t) else (0.0, 0.0)
    return (t / 2 - low) / (high - low) if high > low else np.zeros_like(t)


# -- landmarks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOutSplit:
    """Training and test rows of the landmarks, whatever the order of rows, columns and labels."""

    Z: np.ndarray
    t: np.ndarray
    Z_test: np.ndarray
    t_test: np.ndarray

    @classmethod
    def from_data(cls, Z: np.ndarray, t: np.ndarray, is_classification: bool) -> HeldOutSplit:
        """Split standardized columns (n, q) and a target (n,)."""
        Z = Z[:, order_columns(Z)]
        train, test = split_rows(Z, t, is_classification)
        return cls(Z[train], t[train], Z[test], t[test])


def split_rows(
    Z: np.ndarray, t: np.ndarray, is_classification: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return (train, test) rows of one hold-out split, every third row of each class for testing.

    Rows are sorted by their content, so that the order of rows, columns and labels does not matter.
    """
    content = np.round((Z * Z * Z).sum(axis=1), 6)
    labels = np.unique(t) if is_classification else ()
    groups = [np.flatnonzero(t == label) for label in labels] or [np.arange(len(t))]
    share = min(1.0, MAX_LANDMARK_ROWS / len(t))
    train, test = [], []
    for rows in groups:
        rows = rows[np.lexsort((content[rows], t[rows]))]
        i = np.arange(len(rows))
        rows = rows[np.floor(i * share) != np.floor((i - 1) * share)]
        train.append(np.delete(rows, np.s_[1::3]))
        test.append(rows[1::3])
    return np.concatenate(train), np.concatenate(test)


def score_landmark(predict: Predictor, data: HeldOutSplit, is_classification: bool) -> float:
    """Score a cheap model in [-1, 1]: 1 is perfect, 0 as good as the majority class or the mean.

    NaN if the test rows leave nothing to predict.
    """
    predicted, truth = predict(data.Z, data.t, data.Z_test), data.t_test
    if is_classification:
        labels, counts = np.unique(data.t, return_counts=True)
        loss, base = np.mean(predicted != truth), np.mean(truth != labels[counts.argmax()])
    else:
        loss, base = np.mean((predicted - truth) ** 2), np.var(truth)
    return float(np.clip(1.0 - loss / base, -1.0, 1.0)) if base > 0 else np.nan


def landmark_models(is_classification: bool) -> dict[str, Predictor]:
    """Return the models by name. They are imported here to keep the import of the package cheap."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if is_classification:
        linear, tree = LinearDiscriminantAnalysis(), DecisionTreeClassifier(random_state=0)
        models = {"linear": linear, "tree": tree, "bayes": GaussianNB()}
    else:
        models = {"linear": Ridge(), "tree": DecisionTreeRegressor(random_state=0)}
    predictors: dict[str, Predictor] = {"nearest": _predict_nearest}
    return predictors | {name: partial(_fit_predict, model) for name, model in models.items()}


def _fit_predict(
    model: BaseEstimator, Z: np.ndarray, t: np.ndarray, Z_test: np.ndarray
) -> np.ndarray:
    return model.fit(Z, t).predict(Z_test)


def _predict_nearest(Z: np.ndarray, t: np.ndarray, Z_test: np.ndarray) -> np.ndarray:
    """1-nearest neighbor: minimizes ||a - b||^2 - ||a||^2 = ||b||^2 - 2 ab over b."""
    distance = (Z * Z).sum(axis=1) - 2.0 * Z_test @ Z.T  # (n_test, n_train)
    return t[distance.argmin(axis=1)]


def _summarize(name: str, values: np.ndarray) -> dict[str, float]:
    if not len(values):
        return {}
    statistics = ("min", "max", "mean", "std")
    return {f"{name}_{each}": float(getattr(values, each)()) for each in statistics}
