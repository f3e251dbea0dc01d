"""`Evaluator`: stands in for the `Parallel` that scikit-learn evaluates candidates with.

It has the fits of a batch done in pieces, or by workers that hand back results as they come, so
that finished candidates are on disk before the rest is done. It leaves out candidates whose results
are known from an earlier run, and it notes failed fits. scikit-learn raises when all fits of one
call failed, because for GridSearchCV one call is the whole search. The evaluator therefore clears
the error of a failed fit once it is noted. So failed candidates stay in their places in
`cv_results_`, and the search itself warns or raises at its end.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from sktransfer.model_selection._folds import CandidateFolds, FoldRows, Racing
from sktransfer.model_selection._history import History
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._progress import Progress
from sktransfer.model_selection._racing import NO_PREDICTION, Prediction
from sktransfer.model_selection._recorder import Recorder
from sktransfer.model_selection._results import (
    Candidate,
    ExpectedRow,
    Rows,
    rows_from_plain,
)
from sktransfer.model_selection._sklearn_compat import (
    Fit,
    get_parallel,
    make_fits,
    set_parallel,
    warn_or_raise_fit_failures,
    wrap_fit,
)
from sktransfer.model_selection._stopping import limit_fit
from sktransfer.model_selection._workers import FoldRunner, Started, Workers
from sktransfer.optimizer import Proposal
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
    n_test : sequence of int
        Number of test rows of each fold, if known, for racing.
    data : sequence
        What all fits share, such as X and y.

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
        n_test: Sequence[int] = (),
        data: Sequence[Any] = (),
    ):
        self._parallel, self._plan, self._recorder = parallel, plan, recorder
        self._progress = progress
        self._known = {key: list(rows) for key, rows in history.known_rows.items()}
        self._errors = _FitErrors()
        self._metric: str | None = None
        sizes = n_test or [1] * plan.n_splits
        self._racing = Racing(sizes, plan.refit) if plan.racing else None
        self._n_at_once = math.ceil(plan.n_workers / history.batch_size)
        self._stopped: dict[int, Started] = {}  # by the number of the candidate
        self._predicted = deque[Prediction]()  # for the next candidates
        self._served: list[Candidate] | None = None
        self._captured: list[Fit] = []
        self._uses_workers = Workers.can_use(parallel)  # a cluster may have one worker
        self._workers = Workers(parallel, data)
        self._runner = FoldRunner(self._workers, plan.n_workers)
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
        n_test: Sequence[int] = (),
        data: Sequence[Any] = (),
    ) -> Evaluator:
        """Make `evaluate_candidates` call an evaluator in place of its `Parallel`."""
        parallel = get_parallel(evaluate_candidates)
        evaluator = cls(parallel, plan, history, recorder, progress, n_test, data)
        set_parallel(evaluate_candidates, evaluator)
        return evaluator

    @contextmanager
    def open(self) -> Iterator[None]:
        """Prepare the workers for the fits of a search, if there are any."""
        if not self._uses_workers:
            yield
            return
        with without_filters_of("torch"), self._workers.open():
            yield

    def __call__(self, fits: Iterable[Fit]) -> Rows:
        """The rows of the fits of one batch."""
        self.candidates = []
        if self._served is not None:
            rows = [row for candidate in self._served for row in candidate.rows]
            self.candidates, self._served = self._served, None
            self._errors.clear_from(rows, self._plan.error_score)
            return rows
        fits = self._limit(fits)
        started = (self._start(params, group) for params, group in _by_candidate(fits))
        evaluate = self._evaluate_on_workers if self._uses_workers else self._evaluate_in_pieces
        rows = evaluate(started)
        self._recorder.sync()
        self._errors.clear_from(rows, self._plan.error_score)
        return rows

    def expect(self, proposals: Iterable[Proposal]) -> None:
        """Note what the surrogate predicts for the candidates of the next call."""
        self._predicted = deque(Prediction(each.mean, each.std) for each in proposals)

    def _limit(self, fits: Iterable[Fit]) -> Iterable[Fit]:
        """The fits with the user's limit of time, if there is one."""
        if self._plan.fit_timeout is None:
            return fits
        return [wrap_fit(fit, limit_fit, self._plan.fit_timeout) for fit in fits]

    # -- one candidate at a time, whenever a worker is free -----------------------------------

    def capture(self, fits: Iterable[Fit]) -> None:
        """Note the fits of a candidate without parameters, from which others are made."""
        self._captured = list(self._limit(fits))

    @property
    def is_busy(self) -> bool:
        """Whether no worker is free for another candidate."""
        is_first = self._has_no_incumbent and self._runner.n_running > 0
        return self._runner.is_busy or is_first

    def start(self, proposal: Proposal, number: int) -> Started:
        """Start a candidate. It may be done at once, if its results are known."""
        fits = make_fits(self._captured, proposal.params, number, self._plan.n_iter)
        self.expect([proposal])
        started = self._start(proposal.params, fits)
        self._runner.start(started)
        return started

    def next_done(self, started: Iterable[Started]) -> Started:
        """Wait for one of the candidates that were started."""
        for each in started:
            if not self._runner.is_running(each):
                return each
        while (done := self._runner.run_one()) is None:
            pass
        return done

    def report(self, started: Started) -> None:
        """Report a candidate that is done, and serve it."""
        candidate = self._report(started)
        self._add_to_race([candidate])
        self._recorder.sync(after=SYNC_SECONDS)
        self.serve([candidate])

    def serve(self, candidates: list[Candidate]) -> None:
        """Return the rows of finished candidates in the next call, whose fits are not done."""
        self._served = candidates

    # -- a batch ------------------------------------------------------------------------------

    def _start(self, params: dict[str, Any], fits: list[Fit]) -> Started:
        n_splits = self._plan.n_splits
        if len(fits) != n_splits:  # scikit-learn 1.9 raises this before it makes the fits
            raise ValueError(
                "cv.split and cv.get_n_splits returned inconsistent results. "
                f"Expected {n_splits} splits, got {len(fits)}"
            )
        known = self._pop_known(params)
        predicted = self._predicted.popleft() if self._predicted else NO_PREDICTION
        folds = CandidateFolds(n_splits, self._racing, self._n_at_once, known, predicted)
        return Started(params, fits, folds)

    @property
    def _has_no_incumbent(self) -> bool:
        """Whether the first candidate is still to be evaluated, which the others race against."""
        return self._racing is not None and not self._racing.has_incumbent

    def _pop_known(self, params: dict[str, Any]) -> FoldRows | None:
        """The rows of a configuration in the earlier run, once."""
        stored = self._known.get(params_identity(params)) if self._known else None
        if not stored:
            return None
        plan = self._plan
        return rows_from_plain(
            stored.pop(0), plan.n_splits, plan.return_train_score, self._racing is not None
        )

    def _evaluate_in_pieces(self, candidates: Iterable[Started]) -> Rows:
        """Evaluate candidates some at a time, so that finished ones are on disk soon."""
        rows, piece = Rows(), list[Started]()
        for each in candidates:
            if each.folds.is_known and piece:  # candidates are reported in their order
                rows += self._evaluate(piece)
                piece = []
            piece.append(each)
            if each.folds.is_known or len(piece) >= self._piece or self._has_no_incumbent:
                rows += self._evaluate(piece)
                piece = []
        return rows + self._evaluate(piece)

    def _evaluate(self, piece: list[Started]) -> Rows:
        """Evaluate candidates together, report them, and return their rows."""
        start, n_fits = time.monotonic(), 0
        while chosen := [(each, fold) for each in piece for fold in each.folds.next_folds()]:
            found = self._parallel(each.fits[fold] for each, fold in chosen)
            for (each, fold), row in zip(chosen, found, strict=True):
                each.folds.rows[fold] = row
            n_fits += len(chosen)
        done = [self._report(each) for each in piece]
        self._add_to_race(done)
        if n_fits:
            is_fast = time.monotonic() - start < SYNC_SECONDS
            self._piece = min(2 * self._piece, self._max_piece) if is_fast else self._min_piece
            self._recorder.sync(after=SYNC_SECONDS)
        return [row for candidate in done for row in candidate.rows]

    def _evaluate_on_workers(self, candidates: Iterable[Started]) -> Rows:
        """Evaluate candidates as workers become free, and report them in their order.

        The race is against the best candidate before the batch, so that its results do not depend
        on which worker is faster.
        """
        waiting, done = deque[Started](), list[Candidate]()
        for each in candidates:
            waiting.append(each)
            self._runner.start(each)
            while self._runner.is_full or (self._has_no_incumbent and self._runner.n_running):
                self._runner.run_one()
                done += self._report_first(waiting)
        while self._runner.n_running:
            self._runner.run_one()
            done += self._report_first(waiting)
        done += self._report_first(waiting)
        self._add_to_race(done)
        return [row for candidate in done for row in candidate.rows]

    def _report_first(self, waiting: deque[Started]) -> list[Candidate]:
        """Report the first candidates of those waiting, as far as they are done."""
        done = []
        while waiting and not self._runner.is_running(waiting[0]):
            done.append(self._report(waiting.popleft()))
        if self._has_no_incumbent:
            self._add_to_race(done)
        if done:
            self._recorder.sync(after=SYNC_SECONDS)
        return done

    def _add_to_race(self, done: list[Candidate]) -> None:
        if self._racing is not None:
            for candidate in done:
                self._racing.add(candidate.rows)

    def _report(self, started: Started) -> Candidate:
        candidate = self._make_candidate(started, is_new=not started.folds.is_known)
        self._metric = candidate.metric
        self.candidates.append(candidate)
        self.finished.append(candidate)
        if candidate.n_folds < len(candidate.rows):
            self._stopped[len(self.finished) - 1] = started
        self._recorder.add(candidate)
        if self._progress is not None:
            self._progress.add(candidate)
        return candidate

    def _make_candidate(self, started: Started, is_new: bool) -> Candidate:
        plan, rows = self._plan, started.folds.all_rows()
        std_error = 0.0 if self._racing is None else self._racing.std_error(rows)
        return Candidate.from_rows(
            started.params, rows, is_new, plan.scoring, plan.refit, self._metric, std_error
        )

    def is_stopped(self, number: int) -> bool:
        """Whether folds of a finished candidate were not evaluated."""
        return number in self._stopped

    def complete(self, number: int) -> Rows:
        """Evaluate the folds that were not evaluated; returns all rows of the candidate."""
        started = self._stopped.pop(number)
        left = [fold for fold in range(len(started.fits)) if fold not in started.folds.rows]
        fits = [started.fits[fold] for fold in left]
        found = self._workers.run(fits) if self._uses_workers else list(self._parallel(fits))
        started.folds.rows.update(zip(left, found, strict=True))
        self.finished[number] = candidate = self._make_candidate(started, is_new=True)
        self._recorder.replace(number, candidate)
        self._errors.clear_from(found, self._plan.error_score)
        return candidate.rows

    def finished_rows(self) -> Rows:
        """The rows of all finished candidates, also of a batch that was interrupted."""
        rows = [row for candidate in self.finished for row in candidate.rows]
        self._errors.clear_from(rows[self._errors.n_rows :], self._plan.error_score)
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
        self.n_rows = 0  # including those of folds that were not evaluated
        self._names: list[str] | None = None
        self._unnamed = Rows()

    def clear_from(self, rows: Rows, error_score: float | str) -> None:
        """Note the errors of some rows and clear them; the error score stays in their place."""
        self.n_rows += len(rows)
        for row in rows:
            if isinstance(row, ExpectedRow):
                continue
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
