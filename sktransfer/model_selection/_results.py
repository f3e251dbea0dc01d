"""Results of one candidate: fold rows -> trial -> plain rows for the archive; columns of
`cv_results_`.

A row is what scikit-learn's ``_fit_and_score`` returns of one fit. A candidate has one row for each
fold. With racing, the rows of folds that were not evaluated hold what is expected of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from sktransfer.archive import Selection
from sktransfer.optimizer import Proposal
from sktransfer.task import Task, Trial
from sktransfer.utils._metric_names import Scoring, recorded_metrics, recorded_name
from sktransfer.utils._values import to_python

Rows = list[dict[str, Any]]
PlainRows = list[list | None]


class ExpectedRow(dict[str, Any]):
    """The row of a fold that was not evaluated: expected scores, average times."""


@dataclass(frozen=True)
class Candidate:
    """An evaluated configuration.

    Parameters
    ----------
    params : dict
    rows : list of dict
    trial : Trial
    metric : str
        Name of the optimized metric, as a record has it.
    is_new : bool
        False if the rows come from an earlier run.
    """

    params: dict[str, Any]
    rows: Rows
    trial: Trial
    metric: str
    is_new: bool

    @classmethod
    def from_rows(
        cls,
        params: dict[str, Any],
        rows: Rows,
        is_new: bool,
        scoring: Scoring,
        refit: object,
        metric: str | None = None,
        std_error: float = 0.0,
    ) -> Candidate:
        """Compute the trial of a candidate: the numbers of `cv_results_`, to the last bit.

        `metric` is the name of the metric in earlier candidates. Where the scorer is a function
        that returns a dict, a candidate whose every fit failed does not tell it. `std_error` is
        that of the score because of folds that were not evaluated.
        """
        scores = fold_scores(rows)
        if not scores:
            raise ValueError(
                "The scorer returned an empty dict. It must return at least one score."
            )
        tuned = tuned_key(scores, refit)
        moments = {name: _mean_std(values) for name, values in scores.items()}
        score, std = moments.pop(tuned)
        if len(evaluated := evaluated_folds(rows)) < len(rows):
            std = std_of_some([scores[tuned][fold] for fold in evaluated])
        # A numeric error_score would hide that a fit failed.
        if any(row["fit_error"] is not None for row in rows) or not math.isfinite(score):
            score = math.nan
        by_key = {tuned: score} | {str(name): mean for name, (mean, _) in moments.items()}
        trial = Trial.make(
            params,
            score,
            std=std,
            std_error=std_error if math.isfinite(score) else 0.0,
            fit_time=_mean_std([row["fit_time"] for row in rows])[0],
            metrics=recorded_metrics(by_key, tuned, scoring),
        )
        if tuned != "score" or metric is None:
            metric = recorded_name(str(tuned), scoring)
        return cls(params, rows, trial, metric, is_new)

    @property
    def n_folds(self) -> int:
        """Number of folds that were evaluated."""
        return len(evaluated_folds(self.rows))


def tuned_key(scores: dict[str, Any], refit: object) -> str:
    """Key of the metric that is optimized: that of `refit`, otherwise the first."""
    return refit if isinstance(refit, str) and refit in scores else next(iter(scores))


def evaluated_folds(rows: Rows) -> list[int]:
    """Numbers of the folds that were evaluated."""
    return [fold for fold, row in enumerate(rows) if not isinstance(row, ExpectedRow)]


def std_of_some(values: Sequence[float]) -> float:
    """Standard deviation over the folds that were evaluated; NaN if there is only one.

    >>> std_of_some([0.8, 0.9]), std_of_some([0.8])
    (0.04999999999999999, nan)
    """
    return float(np.std(values)) if len(values) > 1 else math.nan


def fold_scores(rows: Rows) -> dict[str, list[float]]:
    """Scores on the test part of each fold, by metric."""
    found = [row["test_scores"] for row in rows]
    names = next((list(scores) for scores in found if isinstance(scores, dict)), None)
    if names is None:
        return {"score": found}
    # If the scorer is a function, a failed fit has one score in place of all.
    return {name: [s[name] if isinstance(s, dict) else math.nan for s in found] for name in names}


def _mean_std(values: Sequence[float]) -> tuple[float, float]:
    with np.errstate(invalid="ignore"):
        array = np.array([values], dtype=np.float64)
        mean = np.average(array, axis=1)
        variance = np.average((array - mean[:, None]) ** 2, axis=1)
        return float(mean[0]), float(np.sqrt(variance)[0])


# -- rows as plain data ---------------------------------------------------------------------------


def rows_to_plain(rows: Rows) -> PlainRows:
    """Rows for the archive, None for a fold that was not evaluated.

    Only the class of an error is kept: its message may quote the data.
    """
    return [
        None
        if isinstance(row, ExpectedRow)
        else [
            float(row["fit_time"]),
            float(row["score_time"]),
            int(row["n_test_samples"]),
            None if row["fit_error"] is None else _error_class(row["fit_error"]),
            _plain_scores(row["test_scores"]),
            _plain_scores(row.get("train_scores")),
        ]
        for row in rows
    ]


def rows_from_plain(
    plain: object, n_splits: int, has_train_scores: bool, is_raced: bool = False
) -> dict[int, dict[str, Any]] | None:
    """Rows from the archive by fold; None if they do not have this form or this number of folds.

    With racing, some folds may be missing.
    """
    if not isinstance(plain, list) or len(plain) != n_splits:
        return None
    evaluated = {fold: each for fold, each in enumerate(plain) if each is not None}
    if not evaluated or (len(evaluated) < n_splits and not is_raced):
        return None
    rows = {fold: _row_from_plain(each, has_train_scores) for fold, each in evaluated.items()}
    found = {fold: row for fold, row in rows.items() if row is not None}
    return found if len(found) == len(rows) else None


def _row_from_plain(plain: object, has_train_scores: bool) -> dict[str, Any] | None:
    if not isinstance(plain, list) or len(plain) != 6:
        return None
    fit_time, score_time, n_test, error, test, train = plain
    is_sound = isinstance(n_test, int) and isinstance(error, str | None) and _is_score(test)
    if not (is_sound and isinstance(fit_time, float) and isinstance(score_time, float)):
        return None
    row = {"fit_error": error, "test_scores": test, "n_test_samples": n_test}
    row |= {"fit_time": fit_time, "score_time": score_time}
    if not has_train_scores:
        return row
    return {**row, "train_scores": train} if _is_score(train) else None


def _plain_scores(scores: object) -> Any:
    if isinstance(scores, dict):
        return {str(name): _plain_scores(score) for name, score in scores.items()}
    scores = to_python(scores)
    return scores if scores is None or isinstance(scores, (int, float)) else float(scores)  # type: ignore[arg-type]


def _is_score(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(score, (int, float)) for score in value.values())
    return isinstance(value, (int, float))


def _error_class(traceback: str) -> str:
    """The class of the error that a traceback ends with.

    >>> _error_class("Traceback (most recent call last):\\n  ...\\nValueError: not 'Ann'\\n")
    'ValueError, in an earlier run\\n'
    """
    last = traceback.strip().rpartition("\n")[2].partition(":")[0]
    return f"{last if last.replace('.', '').isidentifier() else 'An error'}, in an earlier run\n"


# -- columns and attributes of the search ---------------------------------------------------------


def proposal_columns(batch: Sequence[Proposal]) -> dict[str, list]:
    """The columns that `cv_results_` has besides scikit-learn's."""
    return {
        "origin": [proposal.origin for proposal in batch],
        "predicted_mean": [proposal.mean for proposal in batch],
        "predicted_std": [proposal.std for proposal in batch],
    }


def mark_missing_folds(results: dict[str, Any], rows: Rows, n_splits: int) -> None:
    """Change `cv_results_`, made of all rows, where folds were not evaluated.

    Means stay: they are those of evaluated and expected scores. The scores of the folds become NaN,
    standard deviations are over the evaluated folds, and ranks put stopped candidates behind.
    """
    is_missing = np.array([isinstance(row, ExpectedRow) for row in rows]).reshape(-1, n_splits)
    results["n_folds_evaluated"] = n_splits - is_missing.sum(axis=1)
    is_stopped = np.asarray(is_missing.any(axis=1))
    for key in [key for key in results if key.startswith("mean_")]:
        name = key.removeprefix("mean_")
        if f"split0_{name}" in results:
            splits = [results[f"split{fold}_{name}"] for fold in range(n_splits)]
            values = np.array(splits).T
            for fold, column in enumerate(splits):
                column[is_missing[:, fold]] = np.nan
        else:  # times
            values = np.array([row[name] for row in rows]).reshape(-1, n_splits)
        for number in np.flatnonzero(is_stopped):
            results[f"std_{name}"][number] = std_of_some(values[number, ~is_missing[number]])
        if f"rank_{name}" in results:
            results[f"rank_{name}"] = _rank_behind(results[key], is_stopped)


def _rank_behind(means: np.ndarray, is_stopped: np.ndarray) -> np.ndarray:
    """Ranks: candidates with all folds, stopped ones, failures; (n,), (n,) -> (n,).

    >>> _rank_behind(np.array([0.7, 0.8, np.nan, 0.9]), np.array([False, True, True, False]))
    array([2, 3, 4, 1], dtype=int32)
    """
    ranks, n_before = np.empty(len(means), dtype=np.int32), 0
    is_ok = np.isfinite(means)
    for group in (is_ok & ~is_stopped, is_ok & is_stopped, ~is_ok):
        ranks[group] = n_before + rankdata(-np.where(is_ok, means, 0)[group], method="min")
        n_before += int(group.sum())
    return ranks


def format_interruption(n_done: int, n_iter: int, is_recorded: bool) -> str:
    """What an interrupted search holds, and how to continue it.

    >>> format_interruption(6, 12, is_recorded=False)
    'Interrupted after 6 of 12 candidates. cv_results_ and best_params_ hold their results. ...'
    """
    text = (
        f"Interrupted after {n_done} of {n_iter} candidates. cv_results_ and best_params_ hold "
        "their results. Nothing was refitted."
    )
    advice = " To continue, run the same search with resume=True."
    return text + advice if is_recorded else text


@dataclass(frozen=True)
class Influence:
    """What the used past tasks mean to the target; None where the surrogate does not say.

    Parameters
    ----------
    similarity : ndarray of shape (m,) or None
        Similarity of the data, before the first trial.
    weight : ndarray of shape (m,) or None
        What each task counts after the last trial, in [0, 1].
    basis : list of str or None
        What each task was compared by.
    """

    similarity: np.ndarray | None = None
    weight: np.ndarray | None = None
    basis: Sequence[str] | None = None


def source_task_rows(
    selection: Selection, influence: Influence, origins: Sequence[str]
) -> list[dict[str, Any]]:
    """`source_tasks_`: used past tasks, most similar first, then excluded ones.

    Tasks of other estimators are left out. See `count_other_tasks`.

    Parameters
    ----------
    selection : Selection
    influence : Influence
    origins : sequence of str
        Where each candidate came from.
    """
    rows = []
    for number, task in enumerate(selection.used):
        row: dict[str, Any] = _source_task_row(task, None)
        for name in ("similarity", "weight"):
            values = getattr(influence, name)
            row[name] = None if values is None else float(values[number])
        row["basis"] = None if influence.basis is None else influence.basis[number]
        row["n_used"] = list(origins).count(f"task {task.label}")
        row["overlap"] = selection.overlap.get(task.id, "unknown")
        rows.append(row)
    rows.sort(key=lambda row: (-(row["similarity"] or 0), -(row["weight"] or 0)))
    return rows + [
        _source_task_row(task, reason)
        for task, reason in selection.excluded
        if not _is_other_estimator(reason)
    ]


def count_other_tasks(selection: Selection) -> int:
    """Number of past tasks that are about other estimators."""
    return sum(_is_other_estimator(reason) for _, reason in selection.excluded)


def _is_other_estimator(reason: str) -> bool:
    return reason.startswith("another estimator")


def _source_task_row(task: Task, excluded: str | None) -> dict[str, Any]:
    return {
        "id": task.id,
        "name": task.name,
        "created": task.created,
        "n_trials": task.n_trials,
        "similarity": None,
        "weight": None,
        "basis": None,
        "n_used": 0,
        "overlap": None,
        "excluded": excluded,
    }
