"""`Evaluator`: stands in for the `Parallel` that scikit-learn evaluates candidates with.

It has the fits of a batch done in pieces, so that finished candidates are on disk before the rest
is done. It leaves out candidates whose results are known from an earlier run, and it notes failed
fits. scikit-learn raises when all fits of one call failed, because for GridSearchCV one call is the
whole search. The evaluator therefore clears the error of a failed fit once it is noted. So failed
candidates stay in their places in `cv_results_`, and the search itself warns or raises at its end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import groupby
from typing import Any

from sktransfer.model_selection._history import History
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._progress import Progress
from sktransfer.model_selection._recorder import Recorder
from sktransfer.model_selection._results import Candidate, Rows, rows_from_plain
from sktransfer.model_selection._sklearn_compat import (
    Fit,
    get_parallel,
    set_parallel,
    warn_or_raise_fit_failures,
    wrap_fit,
)
from sktransfer.model_selection._stopping import limit_fit
from sktransfer.utils._user_warnings import without_filters_of
from sktransfer.utils._values import params_identity

SYNC_SECONDS = 0.5  # between two writes to the disk: what a kill may cost of a grid of fast fits
FITS_PER_REPORT = 8  # of each worker: then waiting for the slowest one costs little
MAX_GROWTH = 8  # how many times larger a piece of fast fits may be: what a kill may cost


class Evaluator:
    """Does fits in pieces and reports each candidate as soon as it is evaluated.

    Parameters
    ----------
    parallel : callable
        Does fits and returns their rows, in their order.
    plan : SearchPlan
    history : History
    recorder : Recorder
    progress : Progress or None
        Is told of each candidate.

    Attributes
    ----------
    candidates : list of Candidate
        Those of the current batch.
    finished : list of Candidate
        Those of all batches.
    """

    def __init__(
        self,
        parallel: Callable[[Iterable[Fit]], Rows],
        plan: SearchPlan,
        history: History,
        recorder: Recorder,
        progress: Progress | None = None,
    ):
        self._parallel, self._plan, self._recorder = parallel, plan, recorder
        self._progress = progress
        self._known = {key: list(rows) for key, rows in history.known_rows.items()}
        self._errors = _FitErrors()
        self._metric: str | None = None
        # With one worker a piece is a candidate. Several workers wait for each other after each
        # piece.
        fits, n_splits = FITS_PER_REPORT * plan.n_workers, max(1, plan.n_splits)
        self._min_piece = 1 if plan.n_workers == 1 else math.ceil(fits / n_splits)
        self._max_piece = 1 if plan.n_workers == 1 else MAX_GROWTH * self._min_piece
        self._piece = self._min_piece
        self.candidates: list[Candidate] = []
        self.finished: list[Candidate] = []

    @classmethod
    def install(
        cls,
        evaluate_candidates: Callable,
        plan: SearchPlan,
        history: History,
        recorder: Recorder,
        progress: Progress | None = None,
    ) -> Evaluator:
        """Make `evaluate_candidates` call an evaluator in place of its `Parallel`."""
        evaluator = cls(get_parallel(evaluate_candidates), plan, history, recorder, progress)
        set_parallel(evaluate_candidates, evaluator)
        return evaluator

    def __call__(self, fits: Iterable[Fit]) -> Rows:
        """The rows of the fits of one batch."""
        self.candidates = []
        rows, waiting = Rows(), list[list[Fit]]()
        if self._plan.fit_timeout is not None:
            fits = [wrap_fit(fit, limit_fit, self._plan.fit_timeout) for fit in fits]
        for params, group in _by_candidate(fits):
            known = self._pop_known(params)
            if known is None:
                waiting.append(group)
            if waiting and (known is not None or len(waiting) >= self._piece):
                rows += self._fit(waiting)
                waiting = []
            if known is not None:
                self._report(params, known, is_new=False)
                rows += known
        rows += self._fit(waiting)
        self._recorder.sync()
        self._errors.clear_from(rows, self._plan.error_score)
        return rows

    def _pop_known(self, params: dict[str, Any]) -> Rows | None:
        """The rows of a configuration in the earlier run, once."""
        stored = self._known.get(params_identity(params)) if self._known else None
        if not stored:
            return None
        return rows_from_plain(stored.pop(0), self._plan.n_splits, self._plan.return_train_score)

    def _fit(self, groups: list[list[Fit]]) -> Rows:
        start = time.monotonic()
        with without_filters_of("torch") if self._plan.n_workers > 1 else nullcontext():
            rows = self._parallel(fit for group in groups for fit in group) if groups else []
        n = self._plan.n_splits
        if rows and len(rows) == len(groups) * n:  # otherwise scikit-learn raises an error
            for i, group in enumerate(groups):
                self._report(_params_of(group[0]), rows[i * n : (i + 1) * n], is_new=True)
        if groups:
            is_fast = time.monotonic() - start < SYNC_SECONDS
            self._piece = min(2 * self._piece, self._max_piece) if is_fast else self._min_piece
            self._recorder.sync(after=SYNC_SECONDS)
        return rows

    def _report(self, params: dict[str, Any], rows: Rows, is_new: bool) -> None:
        plan = self._plan
        candidate = Candidate.from_rows(
            params, rows, is_new, plan.scoring, plan.refit, self._metric
        )
        self._metric = candidate.metric
        self.candidates.append(candidate)
        self.finished.append(candidate)
        self._recorder.add(candidate)
        if self._progress is not None:
            self._progress.add(candidate)

    def finished_rows(self) -> Rows:
        """The rows of all finished candidates, also of a batch that was interrupted."""
        rows = [row for candidate in self.finished for row in candidate.rows]
        self._errors.clear_from(rows[len(self._errors.noted) :], self._plan.error_score)
        return rows

    def warn_or_raise_fit_failures(self) -> None:
        """Warn of all fits that failed, or raise if every fit did, in scikit-learn's words."""
        warn_or_raise_fit_failures(self._errors.noted, self._plan.error_score)


class _FitErrors:
    """Errors of failed fits, taken out of their rows.

    Where the scorer is a function that returns a dict, scikit-learn does not know the names of the
    scores of a failed fit. They are filled in as soon as a fit has succeeded, also in rows of
    earlier batches.
    """

    def __init__(self) -> None:
        self.noted: list[str | None] = []  # of each fit; None is a success
        self._names: list[str] | None = None
        self._unnamed = Rows()

    def clear_from(self, rows: Rows, error_score: float | str) -> None:
        """Note the errors of some rows and clear them; the error score stays in their place."""
        for row in rows:
            self.noted.append(row["fit_error"])
            scores = row["test_scores"]
            if row["fit_error"] is None and isinstance(scores, dict):
                self._names = self._names or list(scores)
            elif row["fit_error"] is not None and not isinstance(scores, dict):
                self._unnamed.append(row)
            row["fit_error"] = None
        if self._names:
            for row in self._unnamed:
                for key in ("test_scores", "train_scores"):
                    if key in row:
                        row[key] = dict.fromkeys(self._names, error_score)
            self._unnamed = []


def _by_candidate(fits: Iterable[Fit]) -> Iterator[tuple[dict[str, Any], list[Fit]]]:
    """The fits of each candidate: they share one and the same dict of parameters."""
    for _, group in groupby(fits, key=lambda fit: id(_params_of(fit))):
        made = list(group)
        yield _params_of(made[0]), made


def _params_of(fit: Fit) -> dict[str, Any]:
    return fit[2]["parameters"]
