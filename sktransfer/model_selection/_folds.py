"""`CandidateFolds`: which folds of one candidate are evaluated. `Racing`: when it is stopped.

Without racing, all folds of a candidate are evaluated at once. With racing, they are evaluated in
turn until the candidate is done or lost. A failed fit loses the race, because a candidate with a
failed fold is a failure whatever the other folds score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sktransfer.model_selection._racing import NO_PREDICTION, Prediction, Race
from sktransfer.model_selection._results import (
    ExpectedRow,
    Rows,
    evaluated_folds,
    tuned_key,
)

FoldRows = Mapping[int, dict[str, Any]]
"""Rows of the folds that were evaluated, by the number of the fold."""


class Racing:
    """The race of a search's candidates, in terms of scikit-learn's rows.

    Parameters
    ----------
    n_test : sequence of int
        Number of test rows of each fold.
    refit : object
        As in GridSearchCV. It names the metric that decides, if there are several.
    """

    def __init__(self, n_test: Sequence[int], refit: object):
        self._race, self._refit = Race(n_test), refit
        self._incumbent: Rows | None = None

    @property
    def has_incumbent(self) -> bool:
        return self._incumbent is not None

    def fold_order(self) -> list[int]:
        return self._race.fold_order()

    def add(self, rows: Rows) -> None:
        """Add an evaluated candidate."""
        scores = self._scores(dict(enumerate(rows)), len(rows))
        if len(evaluated_folds(rows)) < len(rows) or not np.isfinite(scores).all():
            return
        self._race.add(scores)
        if self._race.incumbent is scores:
            self._incumbent = rows

    def is_lost(self, rows: FoldRows, n_splits: int, predicted: Prediction) -> bool:
        """Whether a candidate is stopped after these folds."""
        return self._failed_row(rows) is not None or self._race.is_lost(
            self._scores(rows, n_splits), predicted
        )

    def complete(self, rows: FoldRows, n_splits: int) -> Rows:
        """Rows of all folds. Those that were not evaluated hold expected scores."""
        failed = self._failed_row(rows)
        return [
            rows[fold] if fold in rows else self._expect(fold, rows, failed)
            for fold in range(n_splits)
        ]

    def std_error(self, rows: Rows) -> float:
        """Standard error of the mean score because of the folds that were not evaluated."""
        evaluated = {fold: rows[fold] for fold in evaluated_folds(rows)}
        if len(evaluated) == len(rows) or self._failed_row(evaluated) is not None:
            return 0.0
        return self._race.std_error(self._scores(evaluated, len(rows)))

    def _expect(self, fold: int, rows: FoldRows, failed: dict[str, Any] | None) -> ExpectedRow:
        """The row of a fold that was not evaluated.

        Its scores are those of the incumbent there, plus the mean difference on the folds that
        were evaluated. Where a fit failed, the others count as failed too.
        """
        row = ExpectedRow(failed or next(iter(rows.values())))
        for key in ("fit_time", "score_time"):
            row[key] = float(np.mean([each[key] for each in rows.values()]))
        row["fit_error"] = None
        if failed is None:
            assert self._incumbent is not None
            for key in {"test_scores", "train_scores"} & row.keys():
                own = [each[key] for each in rows.values()]
                paired = [self._incumbent[each][key] for each in rows]
                row[key] = _shift(self._incumbent[fold][key], own, paired)
        return row

    def _failed_row(self, rows: FoldRows) -> dict[str, Any] | None:
        for row in rows.values():
            if row["fit_error"] is not None or not math.isfinite(self._score(row)):
                return row
        return None

    def _score(self, row: dict[str, Any]) -> float:
        scores = row["test_scores"]
        return scores[tuned_key(scores, self._refit)] if isinstance(scores, dict) else scores

    def _scores(self, rows: FoldRows, n_splits: int) -> np.ndarray:
        scores = np.full(n_splits, math.nan)
        for fold, row in rows.items():
            scores[fold] = self._score(row)
        return scores


def _shift(base: Any, own: list, paired: list) -> Any:
    """A score, or a dict of them, plus the mean difference between paired ones."""
    if isinstance(base, dict):
        return {
            name: _shift(base[name], [each[name] for each in own], [each[name] for each in paired])
            for name in base
        }
    return base + float(np.mean(np.subtract(own, paired)))


class CandidateFolds:
    """The folds of one candidate.

    Parameters
    ----------
    n_splits : int
    racing : Racing or None
    n_at_once : int
        Folds to evaluate before the candidate is compared with the incumbent again.
    known : dict or None
        Rows from an earlier run.
    predicted : Prediction
        What the surrogate predicts for the candidate.
    """

    def __init__(
        self,
        n_splits: int,
        racing: Racing | None = None,
        n_at_once: int = 1,
        known: FoldRows | None = None,
        predicted: Prediction = NO_PREDICTION,
    ):
        self._n_splits, self._racing, self._n_at_once = n_splits, racing, n_at_once
        self._predicted = predicted
        self.rows: dict[int, dict[str, Any]] = dict(known or {})
        self.is_known = bool(known)
        order = range(n_splits) if racing is None else racing.fold_order()
        self._left = [fold for fold in order if fold not in self.rows]
        # What an earlier run stopped stays so, provided there is an incumbent to compare with.
        if known and (racing is None or racing.has_incumbent or self._is_lost()):
            self._left = []

    def next_folds(self) -> list[int]:
        """The folds to evaluate next, given the rows so far; empty when the candidate is done."""
        racing, n = self._racing, len(self._left)
        if self._is_lost():
            self._left = []
        if racing is not None and racing.has_incumbent:
            n = self._n_at_once
        chosen, self._left = self._left[:n], self._left[n:]
        return chosen

    def _is_lost(self) -> bool:
        racing = self._racing
        return (
            racing is not None
            and bool(self.rows)
            and racing.is_lost(self.rows, self._n_splits, self._predicted)
        )

    def all_rows(self) -> Rows:
        """The rows of all folds, in their order."""
        if self._racing is None:
            return [self.rows[fold] for fold in range(self._n_splits)]
        return self._racing.complete(self.rows, self._n_splits)
