"""A task from a search that scikit-learn has fitted, so that past work is not lost."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sktransfer.archive._record import library_versions
from sktransfer.dataset import profile
from sktransfer.task import Task, Trial
from sktransfer.utils._metric_names import recorded_metrics, recorded_name

_SPACES = ("space", "param_distributions", "param_grid")
_PREFIX = "mean_test_"


def task_from_search(search: Any, X: Any, y: Any = None, *, keep: str = "sketch") -> Task:
    """Make a task of a fitted search; see `Archive.add`."""
    space = _space(search)
    if not hasattr(search, "cv_results_"):
        raise NotFittedError(f"This {type(search).__name__} is not fitted yet: call fit before adding it.")
    if X is None:
        warnings.warn(
            "Without X nobody knows the rows that this search was about, so its record will not be heard by "
            "later ones: give add the X and y that it was fitted to.",
            stacklevel=3,
        )
    keys, scoring = _score_keys(search), getattr(search, "scoring", None)
    tuned = keys[0].removeprefix(_PREFIX)
    rows, estimator, dropped = _full_resources(search)
    return Task.from_trials(
        space,
        trials := [_trial(search, row, keys, dropped) for row in rows],
        profile(X, y, keep=keep),
        estimator=estimator,
        metrics=(recorded_name(tuned, scoring), *dict.fromkeys(name for t in trials for name in t.metrics)),
        versions=library_versions(),
    )


def _space(search: Any) -> Any:
    for name in ("space_", *_SPACES):  # what was searched, where the search says so
        if hasattr(search, name) and hasattr(search, "estimator"):
            return getattr(search, name)
    raise TypeError(
        f"A {type(search).__name__} cannot be added: it takes a search such as GridSearchCV, with an "
        f"'estimator' and one of {', '.join(map(repr, _SPACES))}."
    )


def _score_keys(search: Any) -> list[str]:
    """Columns of the scores, the one that was tuned first."""
    keys = [key for key in search.cv_results_ if key.startswith(_PREFIX)]
    if not keys:
        raise ValueError(f"The cv_results_ of this {type(search).__name__} hold no mean test score.")
    refit = getattr(search, "refit", None)
    tuned = f"{_PREFIX}{refit}" if isinstance(refit, str) else f"{_PREFIX}score"
    return sorted(keys, key=lambda key: key != tuned)


def _full_resources(search: Any) -> tuple[np.ndarray, Any, str | None]:
    """Rows that count, the estimator they were evaluated with, and a name to leave out of their params.

    Successive halving judges most candidates on little data or few iterations: only the last, largest
    amount compares with other searches. If the resource is a parameter, it is not a tuned one.
    """
    results, estimator = search.cv_results_, search.estimator
    if "n_resources" not in results:
        return np.arange(len(results["params"])), estimator, None
    amounts = np.asarray(results["n_resources"])
    resource = getattr(search, "resource", "n_samples")
    if resource == "n_samples":
        return np.flatnonzero(amounts == amounts[-1]), estimator, None
    estimator = clone(estimator).set_params(**{resource: int(amounts[-1])})
    return np.flatnonzero(amounts == amounts[-1]), estimator, resource


def _trial(search: Any, row: int, keys: list[str], dropped: str | None) -> Trial:
    results = search.cv_results_
    score, std = results[keys[0]][row], _cell(results, keys[0].replace("mean", "std", 1), row)
    # What a failed fit is to count, in every fold, is no score.
    failed = score == getattr(search, "error_score", None) and std == 0
    params = {name: value for name, value in results["params"][row].items() if name != dropped}
    means = {key.removeprefix(_PREFIX): _cell(results, key, row) for key in keys}
    return Trial.make(
        params,
        score,
        status="failed" if failed else "ok",
        std=std,
        fit_time=_cell(results, "mean_fit_time", row),
        metrics=recorded_metrics(means, keys[0].removeprefix(_PREFIX), getattr(search, "scoring", None)),
    )


def _cell(results: Any, key: str, row: int) -> float:
    return float(results[key][row]) if key in results else float("nan")
