"""`Run`: one search in progress. Between the optimiser, the archive and scikit-learn's evaluations.

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
from typing import Any

from joblib import effective_n_jobs
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import check_random_state

from sktransfer._compat import all_fits_failed, enclosing_data
from sktransfer._meta_model import learn
from sktransfer._run_parts import busy_batch, failed_row, open_archive, parse_space, provenance, source
from sktransfer.archive import Archive, Selection, library_versions
from sktransfer.optimizer import Proposal, TransferOptimizer
from sktransfer.profile import DatasetProfile, profile
from sktransfer.surrogates import check_surrogate, make_surrogate
from sktransfer.task import Task, Trial


class Run:
    """One search in progress.

    Parameters
    ----------
    search : TransferSearchCV
    X, y : the data passed to `fit`
    """

    def __init__(self, search: Any, X: Any, y: Any):
        self._search, self._X, self._y = search, X, y
        self.archive: Archive | None = None
        self.optimizer: TransferOptimizer | None = None
        self.finished = False  # no further batch will come
        self.trials: list[Trial] = []
        self._origins: list[str] = []
        self._metric_name = "score"
        self._profile: DatasetProfile | None = None
        self._selection = Selection((), ())
        self._failed: list[tuple[int, Proposal, float]] = []  # position, proposal, seconds of a fit
        self._failure: ValueError | None = None
        self._folds: Any = None  # set where the search goes batch by batch
        self._table: tuple | None = None
        self._archived = False

    def prepare(self, n_splits: int) -> None:
        """Check what the user gave, before anything is evaluated."""
        search, self._n_splits = self._search, n_splits
        self.space = parse_space(search.space, search.estimator)
        check_surrogate(search.surrogate)
        self.archive = open_archive(search.archive)
        size = self.space.size
        self.whole_grid = self.space.grid() if size is not None and size <= search.n_iter else None

    # -- the whole grid ------------------------------------------------------------------------

    def evaluate_grid(self, evaluate_candidates: Any, **keywords: Any) -> None:
        """One batch, in ParameterGrid's order, as GridSearchCV does it."""
        assert self.whole_grid is not None
        self.finished = True
        batch = [Proposal(params, "grid") for params in self.whole_grid]
        self._keep(batch, evaluate_candidates(self.whole_grid, more_results=provenance(batch), **keywords))

    # -- batch by batch ------------------------------------------------------------------------

    def start(self, folds: Any) -> None:
        """Look at the data, ask the archive, make the optimiser."""
        self._folds, self._begun = folds, time.monotonic()
        search = self._search
        self._n_iter = search.n_iter if self.whole_grid is None else len(self.whole_grid)
        self._batch_size = search.batch_size or busy_batch(effective_n_jobs(search.n_jobs), self._n_splits)
        if self.whole_grid is not None:
            return  # a grid with a timeout: batch by batch in the grid's order
        surrogate = make_surrogate(search.surrogate)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* has no past trials")  # the archive comes later
            surrogate.fit([])  # its parameters are the user's: a mistake there is an error, not a warning
        if surrogate.transfers:
            self._selection = self._ask_archive()
        self.optimizer = TransferOptimizer(
            self.space,
            self._selection.tasks,
            profile=self._profile,
            surrogate=surrogate,
            random_state=check_random_state(search.random_state).randint(2**31 - 1),
        )

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
            assert self.whole_grid is not None
            return [Proposal(params, "grid") for params in self.whole_grid[done : done + n]]
        try:
            if not self.optimizer.learned:
                learn(self.optimizer, self.archive)
            return self.optimizer.propose(n)
        except Exception as error:
            warnings.warn(
                f"The surrogate {self.optimizer.surrogate!r} failed ({error!r}); "
                "the search goes on at random.",
                stacklevel=2,
            )
            self.optimizer.surrogate = make_surrogate("random").fit([])
            return self.optimizer.propose(n)

    def evaluate(self, evaluate_candidates: Any, batch: list[Proposal], **keywords: Any) -> None:
        """Cross-validate a batch and tell the optimiser; a batch of failures is no reason to stop."""
        params, begun = [proposal.params for proposal in batch], time.perf_counter()
        try:
            results = evaluate_candidates(params, cv=self._folds, more_results=provenance(batch), **keywords)
        except ValueError as error:
            if all_fits_failed(error) is None:
                raise
            seconds = (time.perf_counter() - begun) / (len(batch) * self._n_splits)
            self._keep_failures(batch, error, seconds)
        else:
            self._keep(batch, results)
        if self.optimizer is not None:
            for proposal, trial in zip(batch, self.trials[-len(batch) :], strict=True):
                metrics = trial.metrics | {self._metric_name: trial.score}
                self.optimizer.tell(proposal.params, trial.score, cost=trial.fit_time, metrics=metrics)

    def _keep(self, batch: list[Proposal], results: Mapping[str, Any]) -> None:
        prefix = "mean_test_"
        means = {key.removeprefix(prefix): v for key, v in results.items() if key.startswith(prefix)}
        metric = self._tuned_metric(means)
        for row, proposal in enumerate(batch, start=len(results["params"]) - len(batch)):
            # An error score that is a number would hide that a fit failed.
            score = math.nan if self._broken[row] else means[metric][row]
            facts = {
                "std": float(results[f"std_test_{metric}"][row]),
                "fit_time": float(results["mean_fit_time"][row]),
                "metrics": {name: float(mean[row]) for name, mean in means.items() if name != metric},
            }
            self.trials.append(Trial.make(proposal.params, score, **facts))
        self._origins += [proposal.origin for proposal in batch]

    def _keep_failures(self, batch: list[Proposal], error: ValueError, seconds: float) -> None:
        self._failure = self._failure or error
        for proposal in batch:
            self._failed.append((len(self.trials), proposal, seconds))
            self.trials.append(Trial.make(proposal.params, math.nan, fit_time=seconds))
        self._origins += [proposal.origin for proposal in batch]

    def _tuned_metric(self, metrics: Mapping[str, Any]) -> str:
        """The metric that `refit` names, or the first."""
        refit, scoring = self._search.refit, self._search.scoring
        tuned = refit if isinstance(refit, str) and refit in metrics else next(iter(metrics))
        self._metric_name = scoring if tuned == "score" and isinstance(scoring, str) else tuned
        return tuned

    # -- failures ------------------------------------------------------------------------------

    def check_any_succeeded(self) -> None:
        """Raise what GridSearchCV raises when every single fit failed; warn when some candidates did."""
        self.finished = True
        if self._failure is None:
            return
        if len(self._failed) == len(self.trials):
            raise ValueError(all_fits_failed(self._failure, len(self.trials) * self._n_splits)) from None
        warnings.warn(
            f"{len(self._failed)} of {len(self.trials)} candidates failed in every fold and count as failed. "
            f"The first failure was:\n{self._failure}",
            FitFailedWarning,
            stacklevel=2,
        )

    def with_failures(self, candidates: Any, n_splits: int, out: Any, more: Any) -> tuple:
        """Put the candidates that scikit-learn gave up on back into what `_format_results` takes."""
        self._table = (candidates, n_splits, out, more)
        candidates, out = list(candidates), list(out)
        more = {key: list(values) for key, values in (more or {}).items()}
        for position, proposal, seconds in self._failed:
            candidates.insert(position, proposal.params)
            row = failed_row(out[0], self._search.error_score, seconds)
            out[position * n_splits : position * n_splits] = [row] * n_splits
            for key, [value] in provenance([proposal]).items():
                more[key].insert(position, value)
        broken = [row["fit_error"] is not None for row in out]
        self._broken = [any(broken[i * n_splits : (i + 1) * n_splits]) for i in range(len(candidates))]
        return candidates, n_splits, out, more

    def final_results(self, results: dict[str, Any], format_results: Any) -> dict[str, Any]:
        """The results, formatted once more after the last batch: it may have failed as a whole, and now
        scikit-learn may warn of scores that are not finite.
        """
        return format_results(*self._table) if self._folds is not None and self._table else results

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

    def _ask_archive(self) -> Selection:
        if self.archive is None:
            return Selection((), ())
        try:
            return self.archive.select(self.space, self._look_at_data())
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
        for number, task in enumerate(self._selection.tasks):
            alike = None if similarity is None else float(similarity[number])
            by = None if basis is None else basis[number]
            rows.append(source(task, alike, by, self._origins.count(f"task {task.id}"), None))
        return rows + [source(task, None, None, 0, reason) for task, reason in self._selection.refused]

    def task(self, complete: bool) -> Task:
        """The record of the trials so far."""
        others = dict.fromkeys(metric for trial in self.trials for metric in trial.metrics)
        return Task.from_trials(
            self.space,
            self.trials,
            self._profile_to_keep(),
            metrics=(self._metric_name, *others),
            versions=library_versions(),
            complete=complete,
        )

    def archive_trials(self, complete: bool) -> str | None:
        """Write the record, once; a failure to write costs a warning and nothing else."""
        ok = any(trial.status == "ok" for trial in self.trials)
        if self.archive is None or self._archived or not ok:
            return None
        self._archived = True
        try:
            return self.archive.append(self.task(complete))
        except Exception as error:
            warnings.warn(
                f"The trials could not be added to {self.archive!r}: {error}. The search itself is not "
                "affected; give `archive` a writable directory, or None.",
                stacklevel=3,
            )
            return None
