"""Tables of trials from Optuna and MLflow, for the importers.

Neither library is imported. A study is recognized by its trials, and a table by its columns:
``params_C`` and ``value`` of ``study.trials_dataframe()``, ``params.C`` and ``metrics.auc`` of
``mlflow.search_runs()``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PREFIXES = {"param_": "mean_test_", "params_": "value", "params.": "metrics."}
"""Prefix of parameters in tables of scikit-learn, Optuna and MLflow -> where the scores are."""

MINIMIZE = "MINIMIZE"


def find_study(thing: Any) -> Any | None:
    """The Optuna study that an object is, or that a fitted OptunaSearchCV holds; or None."""
    for each in (thing, getattr(thing, "study_", None)):
        if hasattr(each, "trials") and hasattr(each, "directions"):
            return each
    return None


def study_to_rows(study: Any) -> list[dict[str, Any]]:
    """The finished trials of a study as rows of a table, with a score to be maximized."""
    if len(study.directions) > 1:
        raise ValueError(
            "The study has several objectives. Pass a table with one of them as the score: "
            "archive.add(study.trials_dataframe(), ..., score='values_0')."
        )
    sign = -1.0 if study.directions[0].name == MINIMIZE else 1.0
    rows = []
    for trial in study.trials:
        if trial.state.name in ("COMPLETE", "FAIL"):
            value = trial.value if trial.state.name == "COMPLETE" else None
            score = float("nan") if value is None else sign * value
            rows.append({**trial.params, "score": score})
    if not rows:
        raise ValueError("The study has no finished trial.")
    return rows


def parameter_prefix(columns: Mapping[str, Sequence]) -> str | None:
    """The prefix of the columns of parameters; None if they have none."""
    return next((p for p in PREFIXES if any(name.startswith(p) for name in columns)), None)


def score_columns(columns: Mapping[str, Sequence]) -> list[str]:
    """Names of columns that hold a score, unless the user says which one does."""
    metrics = [name for name in columns if name.startswith("metrics.")]
    found = [name for name in ("score", "mean_test_score", "value") if name in columns]
    return found or (metrics if len(metrics) == 1 else [])
