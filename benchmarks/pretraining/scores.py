"""Scores of one fold, several metrics from one prediction.

Each metric is a number of which more is better. A metric that an estimator cannot have is NaN.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator

METRICS = {
    "classification": ("balanced_accuracy", "accuracy", "roc_auc_ovr", "neg_log_loss"),
    "regression": ("r2", "neg_relative_absolute_error", "neg_relative_squared_error"),
}


def score_classifier(
    estimator: BaseEstimator, X: np.ndarray, y: np.ndarray, n_classes: int
) -> np.ndarray:
    """Score a classifier of the classes 0 .. n_classes - 1; of shape (4,).

    The AUC is the mean of one class against the others. It uses the probabilities, or the decision
    function where there are none. The log loss needs probabilities.
    """
    log_loss = np.nan
    if hasattr(estimator, "predict_proba"):
        S = estimator.predict_proba(X)  # (n, k)
        own = S[np.arange(len(y)), y] / np.maximum(S.sum(axis=1), 1e-12)
        log_loss = np.mean(np.log(np.clip(own, np.finfo(float).eps, 1.0)))
        predicted = S.argmax(axis=1)
    else:
        S = estimator.decision_function(X)
        # An SVC predicts several classes by votes, which the largest decision value may contradict.
        predicted = estimator.predict(X) if S.ndim == 2 else (S > 0).astype(int)
        S = np.column_stack([-S, S]) if S.ndim == 1 else S
    right = predicted == y
    counts = np.bincount(y, minlength=n_classes)
    recall = np.bincount(y, weights=right, minlength=n_classes) / counts
    return np.array([recall.mean(), right.mean(), area_under_curves(S, y, counts), log_loss])


def area_under_curves(S: np.ndarray, y: np.ndarray, counts: np.ndarray) -> float:
    """Mean area under the ROC curves of one class against the others."""
    ranks = rankdata(S, axis=0)
    wins = ranks[np.arange(len(y)), y]
    totals = np.bincount(y, weights=wins, minlength=len(counts)) - counts * (counts + 1) / 2
    return float(np.mean(totals / (counts * (len(y) - counts))))


def score_regressor(
    estimator: BaseEstimator, X: np.ndarray, y: np.ndarray, mad: float, variance: float
) -> np.ndarray:
    """Score a regressor; of shape (3,).

    Parameters
    ----------
    mad, variance : float
        Mean absolute deviation from the median, and variance, of the target of the whole data set.
    """
    error = y - estimator.predict(X).ravel()
    square = np.mean(error * error)
    return np.array(
        [1.0 - square / max(np.var(y), 1e-12), -np.mean(np.abs(error)) / mad, -square / variance]
    )
