"""What Displays read from a fitted search: its results, its space and its metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sktransfer.dataset import DatasetProfile
from sktransfer.space import Space


@dataclass(frozen=True)
class SearchResults:
    """The candidates of a fitted search, in the order in which they were evaluated.

    Parameters
    ----------
    params : list of dict
    scores : ndarray of shape (n,)
        Mean scores of the optimized metric, NaN if a candidate failed.
    fit_times : ndarray of shape (n,)
        Mean time of one fit in seconds.
    origins : list of str
    predicted_mean, predicted_std : ndarray of shape (n,)
        What the model predicted before the evaluation; NaN without a model.
    metric : str
        Name of the optimized metric.
    """

    params: list[dict[str, Any]]
    scores: np.ndarray
    fit_times: np.ndarray
    origins: list[str]
    predicted_mean: np.ndarray
    predicted_std: np.ndarray
    metric: str


def read_results(search: Any) -> SearchResults:
    """Read `cv_results_` of a fitted search, be it one of this package or of scikit-learn."""
    check_is_fitted(search)
    if not hasattr(search, "cv_results_"):
        raise TypeError(
            f"{type(search).__name__} is not a hyperparameter search: it has no cv_results_."
        )
    table = search.cv_results_
    n = len(table["params"])
    unknown = np.full(n, np.nan)
    key = _tuned_key(search)
    return SearchResults(
        params=list(table["params"]),
        scores=np.asarray(table[f"mean_test_{key}"], dtype=float),
        fit_times=np.asarray(table["mean_fit_time"], dtype=float),
        origins=[str(origin) for origin in table.get("origin", ["trial"] * n)],
        predicted_mean=np.asarray(table.get("predicted_mean", unknown), dtype=float),
        predicted_std=np.asarray(table.get("predicted_std", unknown), dtype=float),
        metric=_metric_name(search, key),
    )


def _tuned_key(search: Any) -> str:
    """The end of the column of `cv_results_` that the search optimized."""
    if isinstance(search.refit, str):
        return search.refit
    keys = [key.removeprefix("mean_test_") for key in search.cv_results_ if "mean_test_" in key]
    return "score" if "score" in keys else keys[0]


def _metric_name(search: Any, key: str) -> str:
    if key != "score":
        return key
    return search.scoring if isinstance(search.scoring, str) else "score"


def read_space(search: Any) -> Space:
    """The space of a fitted search, be it one of this package or of scikit-learn."""
    check_is_fitted(search)
    if hasattr(search, "space_"):
        space: Space = search.space_
        return space
    for name in ("param_grid", "param_distributions"):
        if hasattr(search, name):
            return Space.parse(getattr(search, name), search.estimator)
    raise TypeError(f"{type(search).__name__} has no search space that can be read.")


def read_profile(search: Any) -> DatasetProfile | None:
    """The profile of the data that a search was fitted to; None if it is not known."""
    return getattr(search, "_profile", None)


def metric_label(metric: str) -> str:
    """The label of an axis of scores.

    >>> metric_label("score"), metric_label("neg_log_loss")
    ('Mean test score', 'Mean test score (neg_log_loss)')
    """
    return "Mean test score" if metric == "score" else f"Mean test score ({metric})"
