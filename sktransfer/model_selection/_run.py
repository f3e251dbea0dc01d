"""`Run`: one search in progress. Between the optimizer, the archive and scikit-learn's evaluations.

Its life: made by `fit`, prepared by ``_run_search`` once scikit-learn has checked its own parameters
(space, surrogate and archive are checked), started (data profiled, archive asked), then batch after
batch, and in the end written to the archive.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from sktransfer.archive import Archive, Selection, library_versions
from sktransfer.dataset import DatasetProfile, profile
from sktransfer.model_selection._evaluator import Evaluations, Rows, scores_of, trial_of
from sktransfer.model_selection._recorder import Progress
from sktransfer.model_selection._resume_key import describe_problem
from sktransfer.model_selection._run_parts import (
    busy_batch,
    failed_row,
    open_archive,
    parse_space,
    provenance,
    source,
    what_is_heard,
)
from sktransfer.model_selection._sklearn_compat import (
    all_fits_failed,
    enclosing_data,
    evaluate_by,
    no_word_of_failures,
    split_arguments,
    tell_failures,
)
from sktransfer.model_selection._surrogate_cache import is_kept, learn
from sktransfer.optimizer import Proposal, TransferOptimizer
from sktransfer.surrogates import Surrogate, check_surrogate, make_surrogate
from sktransfer.task import Task, Trial
from sktransfer.utils._metric_names import recorded_metrics, recorded_name, tuned_metric


class Run:
    """One search in progress.

    Parameters
    ----------
    search : TransferSearchCV
    X, y, params : what was passed to `fit`
    """

    def __init__(self, search: Any, X: Any, y: Any, params: dict[str, Any]):
        self._search, self._X, self._y, self._params = search, X, y, params
        self.archive: Archive | None = None
        self.optimizer: TransferOptimizer | None = None
        self.finished = False  # no further batch will come
        self.trials: list[Trial] = []
        self._origins: list[str] = []
        self._metric_name = "score"
        self._profile: DatasetProfile | None = None
        self._selection = Selection((), ())
        self._failed: list[tuple[int, Proposal, float]] = []  # position, proposal, seconds of a fit
        self._fit_errors: list[str | None] = []  # of each fit, None if it went well
        self._folds: Any = None
        self.by_batches = False
        self._table: tuple | None = None
        self._archived = False
        self._progress: Any = None  # what of this run is on disk
        self._name = Task((), {})  # the id of the record, and when it all began

    def prepare(self, n_splits: int) -> None:
        """Check what the user gave, before anything is evaluated."""
        search, self._n_splits = self._search, n_splits
        self.space = parse_space(search.space, search.estimator)
        self._tuned = tuned_metric(search.estimator, search.scoring, search.refit)
        check_surrogate(search.surrogate)
        if search.resume and search.archive is None:
            raise ValueError("resume=True needs an archive to resume from, but archive=None.")
        self.archive = open_archive(search.archive)
        size = self.space.size
        self.whole_grid = self.space.grid() if size is not None and size <= search.n_iter else None
        self.by_batches = self.whole_grid is None or search.timeout is not None

    def start(self, folds: Any, evaluate_candidates: Any) -> None:
        """Look at the data, ask the archive for the past and for an earlier run, make the optimizer."""
        self._folds, self._begun, search = folds, time.monotonic(), self._search
        self._n_iter = search.n_iter if self.whole_grid is None else len(self.whole_grid)
        surrogate = self._checked_surrogate() if self.whole_grid is None else None
        uses_past = surrogate is not None and surrogate.transfers
        if surrogate is not None and uses_past:
            self._selection = self._ask_archive(surrogate)
        seed = check_random_state(search.random_state).randint(2**31 - 1) if surrogate is not None else None
        self._progress = self._look_for_progress(split_arguments(evaluate_candidates), seed, uses_past)
        self._selection = self._progress.selection
        seed = seed if self._progress.seed is None else self._progress.seed
        n_workers = effective_n_jobs(search.n_jobs)
        size = search.batch_size or self._progress.batch_size or busy_batch(n_workers, self._n_splits)
        self._batch_size = size
        if surrogate is not None:
            self.optimizer = TransferOptimizer(
                self.space,
                self._selection.used,
                profile=self._profile,
                surrogate=surrogate,
                metric=self._tuned,
                random_state=seed,
            )
        self._progress.begin(seed, size)
        self._evaluations = evaluate_by(
            evaluate_candidates,
            lambda parallel: Evaluations(
                parallel, self._n_splits, n_workers, self._known, self._report, self._progress.sync
            ),
        )

    def _checked_surrogate(self) -> Surrogate:
        surrogate = make_surrogate(self._search.surrogate)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* has no past trials")  # the archive comes later
            surrogate.fit([])  # its parameters are the user's: a mistake there is an error, not a warning
        return surrogate

    def _look_for_progress(self, split: tuple, seed: int | None, uses_past: bool) -> Progress:
        search = self._search
        if self.archive is None:
            return Progress(None, {}, self._selection)
        X, y, keywords = split
        folds = self._folds.split(X, y, **keywords)
        given = search.random_state if isinstance(search.random_state, Integral | None) else seed
        data = self._X, self._y, self._params
        about = describe_problem(search, self.archive, *data, self.space, folds, given)
        progress = Progress(self.archive, about, self._selection, uses_past)
        if search.resume:
            try:
                progress.resume()
            except Exception as error:
                warnings.warn(
                    f"{self.archive!r} could not be read ({error!r}); the search starts anew.", stacklevel=2
                )
        return progress

    # -- batch by batch ------------------------------------------------------------------------

    @property
    def n_batches(self) -> int:
        return math.ceil(self._n_iter / self._batch_size)

    def goes_on(self) -> bool:
        """True while there is something left of the budget, the time and the space."""
        if not self.trials:
            return True
        timeout = self._search.timeout
        in_time = timeout is None or time.monotonic() - self._begun < timeout
        used_up = self.optimizer is not None and self.optimizer.used_up
        return in_time and not used_up and len(self.trials) < self._n_iter

    def next_batch(self) -> list[Proposal]:
        done = len(self.trials)
        n = min(self._batch_size, self._n_iter - done)
        if self.optimizer is None:
            return self.grid_batch(slice(done, done + n))
        try:
            if not self.optimizer.learned:
                learn(self.optimizer, self.archive)
                if self._search.verbose and self.optimizer.surrogate.transfers:
                    print(what_is_heard(self.optimizer))
            return self.optimizer.propose(n)
        except Exception as error:
            warnings.warn(
                f"The surrogate {self.optimizer.surrogate!r} failed ({error!r}); "
                "the search goes on at random.",
                stacklevel=2,
            )
            self.optimizer.surrogate = make_surrogate("random").fit([])
            return self.optimizer.propose(n)

    def grid_batch(self, part: slice = slice(None)) -> list[Proposal]:
        """The whole grid or a part of it, in ParameterGrid's order, as GridSearchCV does it."""
        assert self.whole_grid is not None
        return [Proposal(params, "grid") for params in self.whole_grid[part]]

    def evaluate(self, evaluate_candidates: Any, batch: list[Proposal], **keywords: Any) -> None:
        """Cross-validate a batch and report it. What comes of it is in `trials`, as soon as it is there."""
        self._evaluations.batch = batch
        params = [proposal.params for proposal in batch]
        evaluate_candidates(params, cv=self._folds, more_results=provenance(batch), **keywords)

    def evaluate_and_tell(self, evaluate_candidates: Any, batch: list[Proposal], **keywords: Any) -> None:
        """Evaluate a batch and tell the optimizer; a batch of failures is no reason to stop."""
        try:
            with no_word_of_failures():
                self.evaluate(evaluate_candidates, batch, **keywords)
        except ValueError as error:
            if not all_fits_failed(error):
                raise
            first = len(self.trials) - len(batch)
            for position, proposal in enumerate(batch, start=first):
                self._failed.append((position, proposal, self.trials[position].fit_time))
        if self.optimizer is not None:
            for proposal, trial in zip(batch, self.trials[-len(batch) :], strict=True):
                metrics = trial.metrics | {self._metric_name: trial.score}
                self.optimizer.tell(proposal.params, trial.score, cost=trial.fit_time, metrics=metrics)

    def _known(self, proposal: Proposal) -> Rows | None:
        return self._progress.known(proposal.params, self._n_splits, self._search.return_train_score)

    def _report(self, proposal: Proposal, rows: Rows, is_new: bool) -> None:
        tuned = self._tuned_metric(scores_of(rows))
        trial = trial_of(proposal.params, rows, tuned)
        metrics = recorded_metrics({tuned: trial.score, **trial.metrics}, tuned, self._search.scoring)
        trial = replace(trial, metrics=metrics)
        self.trials.append(trial)
        self._fit_errors += [row["fit_error"] for row in rows]
        self._origins.append(proposal.origin)
        self._progress.add(trial, rows, is_new, header=lambda: self._task([trial], [], False))

    def _tuned_metric(self, metrics: Mapping[str, Any]) -> str:
        """The metric that `refit` names, or the first."""
        refit = self._search.refit
        if not metrics:
            raise ValueError("The scorer gave no score at all: an empty dict. Let it return at least one.")
        tuned = refit if isinstance(refit, str) and refit in metrics else next(iter(metrics))
        if tuned != "score" or self._metric_name == "score":  # later it is all that a failed candidate has
            self._metric_name = recorded_name(str(tuned), self._search.scoring)
        return tuned

    # -- failures ------------------------------------------------------------------------------

    def check_any_succeeded(self) -> None:
        """Raise what GridSearchCV raises when every single fit failed; warn when some did."""
        self.finished = True
        tell_failures(self._fit_errors, self._search.error_score)

    def with_failures(self, candidates: Any, n_splits: int, out: Any, more: Any) -> tuple:
        """Put the candidates that scikit-learn gave up on back into what `_format_results` takes."""
        if not self.finished:
            self._table = (candidates, n_splits, out, more)
        candidates, out = list(candidates), list(out)
        more = {key: list(values) for key, values in (more or {}).items()}
        for position, proposal, seconds in self._failed:
            candidates.insert(position, proposal.params)
            row = failed_row(out[0], self._search.error_score, seconds)
            out[position * n_splits : position * n_splits] = [row] * n_splits
            for key, [value] in provenance([proposal]).items():
                more[key].insert(position, value)
        return candidates, n_splits, out, more

    def final_results(self, results: dict[str, Any], format_results: Any) -> dict[str, Any]:
        """The results, formatted once more after the last batch: it may have failed as a whole, and now
        scikit-learn may warn of scores that are not finite.
        """
        table, self._table = self._table, None
        return format_results(*table) if self.by_batches and table else results

    # -- the archive ---------------------------------------------------------------------------

    def _look_at_data(self) -> DatasetProfile:
        if self._profile is None:
            try:
                around = enclosing_data()
                self._profile = profile(self._X, self._y, keep="sample", enclosing=around)
            except Exception as error:
                warnings.warn(
                    f"The data could not be profiled ({error!r}); the search goes on without the past.",
                    stacklevel=2,
                )
                self._profile = DatasetProfile("unsupervised", 0)  # its rows are not known: nobody uses it
        return self._profile

    def _profile_to_keep(self) -> DatasetProfile:
        """The profile, with a sample of the rows only where the archive is to have one."""
        known = self._look_at_data()
        return (
            known
            if self.archive is not None and self.archive.keep == "sample"
            else replace(known, sample=None)
        )

    def _ask_archive(self, surrogate: Surrogate) -> Selection:
        if self.archive is None:
            return Selection((), ())
        try:
            found = self.archive.select(self.space, self._look_at_data())
            kept = is_kept(self.archive, surrogate, self.space, found.used, self._tuned)
            return found if kept else found.loaded()
        except Exception as error:
            warnings.warn(
                f"{self.archive!r} could not be read ({error!r}); the search starts anew.", stacklevel=2
            )
            return Selection((), ())

    def source_tasks(self) -> list[dict[str, Any]]:
        """What `source_tasks_` shows: the tasks that had a say, then those that were refused."""
        similarity = basis = None
        try:
            if self.optimizer is not None:
                similarity, basis = self.optimizer.similarity(), self.optimizer.basis()
        except Exception as error:
            warnings.warn(f"How similar the past tasks are is not known: {error!r}.", stacklevel=2)
        rows = []
        heard = self._selection.used if self.optimizer is None else self.optimizer.tasks
        for number, task in enumerate(heard):
            alike = None if similarity is None else float(similarity[number])
            by = None if basis is None else basis[number]
            rows.append(source(task, alike, by, self._origins.count(f"task {task.id}"), None))
        return rows + [source(task, None, None, 0, reason) for task, reason in self._selection.excluded]

    def task(self, complete: bool) -> Task:
        """The record of the trials so far."""
        return self._task(self.trials, self.trials, complete)

    def _task(self, named_by: list[Trial], trials: list[Trial], complete: bool) -> Task:
        others = dict.fromkeys(metric for trial in named_by for metric in trial.metrics)
        return Task.from_trials(
            self.space,
            trials,
            self._profile_to_keep(),
            metrics=(self._metric_name, *others),
            versions=library_versions(),
            complete=complete,
            id=self._name.id,
            created=self._name.created,
            resume=self._progress.facts(len(trials)) if self.archive is not None else None,
        )

    def archive_trials(self, complete: bool, interrupted: bool = False) -> str | None:
        """Write the record, once; a failure to write costs a warning and nothing else."""
        if self._archived or self._progress is None:
            return None
        self._archived = True
        return self._progress.finish(self.trials, interrupted, record=lambda: self.task(complete))
