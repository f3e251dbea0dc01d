"""Scores of the starter archive's trials, all computed from one prediction.

scikit-learn's scorers validate their input for each metric, which takes longer on a thousand rows
than most of the fits. These functions return the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata


def score_regressor(estimator: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the metrics of a regressor; the first one is optimized."""
    error = y - estimator.predict(X).ravel()
    squares = float(np.mean(error**2))
    return {
        "r2": 1.0 - squares / float(np.var(y)),
        "neg_mean_absolute_error": -float(np.mean(np.abs(error))),
        "neg_root_mean_squared_error": -float(np.sqrt(squares)),
    }


def score_classifier(estimator: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the metrics of a classifier; the first one is optimized.

    y must contain every class of the estimator.
    """
    classes = estimator.classes_
    if hasattr(estimator, "predict_proba"):
        P = estimator.predict_proba(X)  # (n, k)
        scores = labels_scores(y, classes[P.argmax(axis=1)])
        name = "roc_auc" if len(classes) == 2 else "roc_auc_ovr"
        scores[name] = np.mean([auc(y == label, P[:, k]) for k, label in enumerate(classes)]).item()
        own = P[np.arange(len(y)), np.searchsorted(classes, y)] / P.sum(axis=1)
        scores["neg_log_loss"] = float(np.mean(np.log(np.clip(own, np.finfo(P.dtype).eps, 1.0))))
        return scores
    scores = labels_scores(y, estimator.predict(X))
    if len(classes) == 2:
        scores["roc_auc"] = auc(y == classes[1], estimator.decision_function(X))
    return scores


def labels_scores(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return balanced accuracy (the mean recall of the classes) and accuracy."""
    right = predicted == y
    recalls = [right[y == label].mean() for label in np.unique(y)]
    return {"balanced_accuracy": float(np.mean(recalls)), "accuracy": float(right.mean())}


def auc(positive: np.ndarray, score: np.ndarray) -> float:
    """Return the area under the ROC curve: how often a positive row outranks a negative one."""
    n = int(positive.sum())
    wins = rankdata(score)[positive].sum() - n * (n + 1) / 2
    return float(wins / (n * (len(positive) - n)))
