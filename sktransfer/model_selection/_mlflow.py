"""Autologging of MLflow: the search is logged, the fits inside it are not.

``mlflow.sklearn.autolog()`` patches the ``fit`` of scikit-learn's own classes. It knows
GridSearchCV and RandomizedSearchCV as searches, but no class of other packages. Without this
module, it would log the simple learners that profile the data. MLflow is never imported here: if
autologging is on, it has been imported already.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sktransfer.exceptions import SktransferWarning
from sktransfer.model_selection._sklearn_compat import BaseSearchCV
from sktransfer.utils._user_warnings import warn_user

N_CHILD_RUNS = 5  # best candidates that have a run of their own, as for GridSearchCV
MAX_TEXT = 250  # characters of a parameter


@contextmanager
def pause_autologging() -> Iterator[bool]:
    """Fit estimators without MLflow logging them; yields whether it was logging."""
    autologging = sys.modules.get("mlflow.utils.autologging_utils")
    if autologging is None or autologging.autologging_is_disabled("sklearn"):
        yield False
        return
    with autologging.disable_autologging():
        yield True


def log_search(search: BaseSearchCV) -> None:
    """Log a fitted search to MLflow, with the names that GridSearchCV has there.

    The active run, or a new one, gets the parameters of the search, ``best_<parameter>`` and
    ``best_cv_score``. Each of the best candidates gets a child run.
    """
    mlflow: Any = sys.modules["mlflow"]
    is_new = mlflow.active_run() is None
    try:
        if is_new:
            mlflow.start_run()
        try:
            _log_run(mlflow, search)
        finally:
            if is_new:
                mlflow.end_run()
    except Exception as error:
        warn_user(f"MLflow cannot log this search ({error!r}).", SktransferWarning)


def _log_run(mlflow: Any, search: BaseSearchCV) -> None:
    results = search.cv_results_
    mlflow.set_tags({"estimator_name": type(search).__name__})
    params = _as_text(search.get_params(deep=False))
    if hasattr(search, "best_params_"):
        params |= {f"best_{k}": value for k, value in _as_text(search.best_params_).items()}
    mlflow.log_params(params)
    if math.isfinite(getattr(search, "best_score_", math.nan)):
        mlflow.log_metrics({"best_cv_score": float(search.best_score_)})
    names = [name for name in results if name.startswith(("mean_test_", "std_test_"))]
    rank = results[next(name for name in results if name.startswith("rank_test_"))]
    for row in np.argsort(rank, kind="stable")[:N_CHILD_RUNS]:
        with mlflow.start_run(nested=True):
            mlflow.log_params(_as_text(results["params"][row]))
            means = {name: float(results[name][row]) for name in names}
            mlflow.log_metrics({name: v for name, v in means.items() if math.isfinite(v)})


def _as_text(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value)[:MAX_TEXT] for name, value in params.items()}
