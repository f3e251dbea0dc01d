"""`Run`: one search in progress. Between the optimiser, the archive and scikit-learn's evaluations.

Its life: made by `fit`, prepared by ``_run_search`` once scikit-learn has checked its own parameters
(space, surrogate and archive are checked), started (data profiled, archive asked), then batch after
batch, and in the end written to the archive.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

from joblib import effective_n_jobs
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from sktransfer._compat import all_fits_failed, enclosing_data
from sktransfer.archive import Archive, Selection
from sktransfer.archive._format import library_versions
from sktransfer.optimizer import Proposal, TransferOptimizer
from sktransfer.profile import DatasetProfile, profile
from sktransfer.space import Space
from sktransfer.surrogates import make_surrogate
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
        self.sequential = False
        self.finished = False
        self.trials: list[Trial] = []
        self._profile: DatasetProfile | None = None
        self._selection = Selection((), ())
        self._origins: list[str] = []
        self._failed: list[tuple[int, Proposal, float]] = []  # position, proposal, seconds of a fit
        self._failure: ValueError | None = None
        self._table: tuple | None = None
        self._archived = False

    def prepare(self, n_splits: int) -> None:
        """Check what the user gave, before anything is evaluated."""
        search, self._n_splits = self._search, n_splits
        self.space = _parse_space(search.space, search.estimator)
        self._surrogate = make_surrogate(search.surrogate)
        self.archive = _open_archive(search.archive)
        size = self.space.size
        self.whole_grid = self.space.grid() if size is not None and size <= search.n_iter else None

    # -- the whole grid ------------------------------------------------------------------------

    def evaluate_grid(self, evaluate_candidates: Any, **keywords: Any) -> None:
        """One batch, in ParameterGrid's order, as GridSearchCV does it."""
        assert self.whole_grid is not None
        batch = [Proposal(params, "grid") for params in self.whole_grid]
        results = evaluate_candidates(self.whole_grid, more_results=_provenance(batch), **keywords)
        self._keep(batch, results)

    # -- batch by batch ------------------------------------------------------------------------

    def start(self, folds: Any) -> None:
        """Look at the data, ask the archive, make the optimiser."""
        self.sequential, self._folds, self._begun = True, folds, time.monotonic()
        search = self._search
        self._n_iter = search.n_iter if self.whole_grid is None else len(self.whole_grid)
        self._batch_size = search.batch_size or _busy_batch(effective_n_jobs(search.n_jobs), self._n_splits)
        if self.whole_grid is not None:
            return
        if self._surrogate.transfers:
            self._selection = self._ask_archive()
        self.optimizer = TransferOptimizer(
            self.space,
            self._selection.tasks,
            profile=self._profile,
            surrogate=self._surrogate,
            random_state=check_random_state(search.random_state).randint(2**31 - 1),
        )

    @property
    def n_batches(self) -> int:
        return math.ceil(self._n_iter / self._batch_size)

    def goes_on(self) -> bool:
        """True while there is something left of the budget."""
        timeout = self._search.timeout
        in_time = timeout is None or not self.trials or time.monotonic() - self._begun < timeout
        return in_time and len(self.trials) < self._n_iter

    def next_batch(self) -> list[Proposal]:
        n, done = self._batch_size, len(self.trials)
        if self.whole_grid is not None:
            return [Proposal(params, "grid") for params in self.whole_grid[done : done + n]]
        assert self.optimizer is not None
        n = min(n, self._n_iter - done)
        try:
            return self.optimizer.propose(n)
        except Exception as error:
            warnings.warn(
                f"The surrogate {self._surrogate!r} failed ({error!r}); the search goes on at random.",
                stacklevel=2,
            )
            self.optimizer.surrogate = make_surrogate("random").fit([])
            return self.optimizer.propose(n)

    def evaluate(self, evaluate_candidates: Any, batch: list[Proposal], **keywords: Any) -> None:
        """Cross-validate a batch and tell the optimiser; a batch of failures is no reason to stop."""
        params, begun = [proposal.params for proposal in batch], time.perf_counter()
        try:
            results = evaluate_candidates(params, cv=self._folds, more_results=_provenance(batch), **keywords)
        except ValueError as error:
            if all_fits_failed(error) is None:
                raise
            seconds = (time.perf_counter() - begun) / (len(batch) * self._n_splits)
            self._keep_failures(batch, error, seconds)
        else:
            self._keep(batch, results)
        if self.optimizer is not None:
            for proposal, trial in zip(batch, self.trials[-len(batch) :], strict=True):
                self.optimizer.tell(proposal.params, trial.score, cost=trial.fit_time)

    def _keep(self, batch: list[Proposal], results: dict[str, Any]) -> None:
        metric = self._tuned_metric(results)
        means = {
            key.removeprefix("mean_test_"): v for key, v in results.items() if key.startswith("mean_test_")
        }
        for row, proposal in enumerate(batch, start=len(results["params"]) - len(batch)):
            self.trials.append(
                Trial.make(
                    proposal.params,
                    means[metric][row],
                    std=float(results[f"std_test_{metric}"][row]),
                    fit_time=float(results["mean_fit_time"][row]),
                    metrics={name: float(v[row]) for name, v in means.items() if name != metric},
                )
            )
        self._origins += [proposal.origin for proposal in batch]

    def _keep_failures(self, batch: list[Proposal], error: ValueError, seconds: float) -> None:
        self._failure = self._failure or error
        for proposal in batch:
            self._failed.append((len(self.trials), proposal, seconds))
            self.trials.append(Trial.make(proposal.params, math.nan, fit_time=seconds))
        self._origins += [proposal.origin for proposal in batch]

    def _tuned_metric(self, results: dict[str, Any]) -> str:
        metrics = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
        refit = self._search.refit
        return refit if isinstance(refit, str) and refit in metrics else metrics[0]

    # -- failures ------------------------------------------------------------------------------

    def check_any_succeeded(self) -> None:
        """Raise what GridSearchCV raises when every single fit failed; warn when some candidates did."""
        self.finished = True
        if self._failure is None:
            return
        n_fits = len(self.trials) * self._n_splits
        if len(self._failed) == len(self.trials):
            raise ValueError(all_fits_failed(self._failure, n_fits)) from None
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
            row = _failed_row(out[0], self._search.error_score, seconds)
            out[position * n_splits : position * n_splits] = [row] * n_splits
            for key, [value] in _provenance([proposal]).items():
                more[key].insert(position, value)
        return candidates, n_splits, out, more

    def final_results(self, results: dict[str, Any], format_results: Any) -> dict[str, Any]:
        """The results, complete: the last batches may have failed after the results were last formatted."""
        return format_results(*self._table) if self._failed and self._table else results

    # -- the archive ---------------------------------------------------------------------------

    def _look_at_data(self) -> DatasetProfile | None:
        if self._profile is None and self.archive is not None:
            try:
                self._profile = profile(self._X, self._y, keep=self.archive.keep)
            except Exception as error:
                warnings.warn(
                    f"The data could not be profiled ({error!r}); the search goes on without the past.",
                    stacklevel=2,
                )
        return self._profile

    def _ask_archive(self) -> Selection:
        today = self._look_at_data()
        if self.archive is None or today is None:
            return Selection((), ())  # nobody could tell whose rows a past task saw
        try:
            return self.archive.select(self.space, [today, *map(profile, enclosing_data())])
        except Exception as error:
            warnings.warn(
                f"{self.archive!r} could not be read ({error!r}); the search starts anew.", stacklevel=2
            )
            return Selection((), ())

    def source_tasks(self) -> list[dict[str, Any]]:
        """What `source_tasks_` shows: the tasks that had a say, then those that were refused."""
        similarity = None if self.optimizer is None else self.optimizer.similarity()
        rows = []
        for number, task in enumerate(self._selection.tasks):
            alike = None if similarity is None else float(similarity[number])
            rows.append(_source(task, alike, self._origins.count(f"task {task.id}"), None))
        return rows + [_source(task, None, 0, reason) for task, reason in self._selection.refused]

    def archive_trials(self, complete: bool) -> str | None:
        """Write the record, once; a failure to write costs a warning and nothing else."""
        ok = any(trial.status == "ok" for trial in self.trials)
        if self.archive is None or self._archived or not ok:
            return None
        self._archived = True
        search = self._search
        name = search.scoring if isinstance(search.scoring, str) else "score"
        others = tuple(dict.fromkeys(metric for trial in self.trials for metric in trial.metrics))
        tuned = search.refit if others and isinstance(search.refit, str) else name
        try:
            task = Task.from_trials(
                self.space,
                self.trials,
                self._look_at_data(),
                metrics=(tuned, *others),
                versions=library_versions(),
                complete=complete,
            )
            return self.archive.append(task)
        except Exception as error:
            warnings.warn(
                f"The trials could not be added to {self.archive!r}: {error}. The search itself is complete; "
                "give `archive` a writable directory, or None.",
                stacklevel=3,
            )
            return None


def _parse_space(space: Any, estimator: Any) -> Space:
    branches = space if isinstance(space, list) else [space]
    if any(branches) and not any(
        hasattr(v, "rvs") for b in branches if isinstance(b, dict) for v in b.values()
    ):
        ParameterGrid(space)  # a grid is checked by scikit-learn, in scikit-learn's words
    return Space.parse(space, estimator)


def _open_archive(archive: Any) -> Archive | None:
    if archive is None or isinstance(archive, Archive):
        opened = archive
    else:
        opened = Archive(archive)
    if opened is not None:
        len(opened)  # a path that cannot be an archive is the user's mistake: say so before the search
    return opened


def _busy_batch(n_workers: int, n_splits: int) -> int:
    """The smallest batch whose fits keep at least four fifths of the workers' time in use."""
    for size in range(1, n_workers + 1):
        fits = size * n_splits
        if fits / (math.ceil(fits / n_workers) * n_workers) >= 0.8:
            return size
    return n_workers


def _provenance(batch: list[Proposal]) -> dict[str, list]:
    return {
        "origin": [proposal.origin for proposal in batch],
        "predicted_mean": [proposal.mean for proposal in batch],
        "predicted_std": [proposal.std for proposal in batch],
    }


def _failed_row(like: dict[str, Any], error_score: Any, seconds: float) -> dict[str, Any]:
    """A fit's row of results with the error score in every place a score stands in `like`."""
    row = {**like, "fit_error": "failed", "fit_time": seconds, "score_time": 0.0}
    for key in ("test_scores", "train_scores"):
        if key in like:
            scores = like[key]
            row[key] = dict.fromkeys(scores, error_score) if isinstance(scores, dict) else error_score
    return row


def _source(task: Task, similarity: float | None, n_used: int, refused: str | None) -> dict[str, Any]:
    return {
        "id": task.id,
        "created": task.created,
        "n_trials": len(task.trials),
        "similarity": similarity,
        "n_used": n_used,
        "refused": refused,
    }
