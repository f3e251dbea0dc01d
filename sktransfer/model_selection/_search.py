"""`TransferSearchCV`: scikit-learn's search estimator on the outside, ask/tell on the inside.

`BaseSearchCV` keeps the whole of its work (folds, scorers, parallel fits, refit, results); this class
is the strategy in its ``_run_search`` and what has to happen before and after.
"""

from __future__ import annotations

import os
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sktransfer.archive import Archive
from sktransfer.model_selection._run import Run
from sktransfer.model_selection._run_parts import open_archive
from sktransfer.model_selection._sklearn_compat import (
    BaseSearchCV,
    CallbackLevel,
    Interval,
    StrOptions,
    checked_cv,
    fit_context,
)
from sktransfer.model_selection._suggest import suggest_from
from sktransfer.optimizer import Suggestion
from sktransfer.space import Space
from sktransfer.surrogates import Surrogate
from sktransfer.utils._metric_names import tuned_metric


class TransferSearchCV(BaseSearchCV):
    """Hyperparameter search that starts where the searches before it ended.

    A drop-in for GridSearchCV and RandomizedSearchCV: same methods, same fitted attributes. Each `fit`
    looks at the data, asks an archive of past tunings which settings did well on similar data, goes on
    with Bayesian optimization scored by cross-validation, and adds its own trials to the archive.

    Parameters
    ----------
    estimator : estimator object
        As in GridSearchCV.
    space : dict, list of dict, Space or "auto"
        Parameter names with lists of values or `scipy.stats` distributions, as GridSearchCV and
        RandomizedSearchCV take them. If the whole grid fits into `n_iter`, it is evaluated exactly as
        GridSearchCV would. "auto" is what `sktransfer.suggest_space` says.
    n_iter : int, default=25
        Number of configurations to evaluate.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As in GridSearchCV. With several metrics the one named by `refit` is tuned, or the first where
        `refit` is a callable or False. The folds are drawn once per `fit`. `verbose` also says which past
        searches are learned from.
    archive : {"auto"}, path, Archive or None, default="auto"
        Where past tunings are read from and this one is added to. "auto" is the user's own archive
        (``SKTRANSFER_ARCHIVE``, or the user data directory), to which the starter archive of the package is
        added for reading; None neither reads nor writes.
    surrogate : str or Surrogate, default="auto"
        The model that proposes: "auto" (which is "task-prior"), "dist-gp", "copula-gp", "gp", "random", ...,
        or an instance; see docs/surrogates.md.
    batch_size : int or None, default=None
        Configurations proposed at a time. None takes the smallest number that keeps `n_jobs` workers
        busy; a model-based search depends on it, so fix it where results must not depend on `n_jobs`.
    timeout : float or None, default=None
        Seconds after which no further batch is started.
    resume : bool, default=False
        Whether to go on from an earlier run of the same search, one that was killed as well as one that
        ended: what it evaluated is not evaluated again, and the result is that of an uninterrupted run.
        A larger `n_iter` goes on further. The same search is the one with the same data, estimator,
        space, folds, scoring, surrogate and seed; if there is only a similar one, a warning says what
        differs, and the search starts anew.
    random_state : int, RandomState instance or None, default=None
        Seed of the proposals.

    Attributes
    ----------
    cv_results_ : dict
        As in GridSearchCV, and for each candidate ``origin`` (where it came from: "grid",
        "space-filling", "random", "model" or "task" with the id of the past task), ``predicted_mean``
        and ``predicted_std`` (what the model expected before the evaluation; NaN without a model).
    source_tasks_ : list of dict
        Every past tuning that was looked at: ``id``, ``created``, ``n_trials``, ``similarity`` in
        [0, 1] or None (with the default times what the past still counts for after the last trial, when
        the target's own trials often tell more), ``basis`` (what it was compared by, in a few words),
        ``n_used`` (how many candidates came from it as such; what the model proposed counts for none)
        and ``refused`` (why it had no say, or None).
    surrogate_ : Surrogate or None
        The fitted model; None where the whole grid was evaluated.
    space_ : Space
        What was searched.
    task_id_ : str or None
        Id of the record in the archive.
    best_estimator_, best_params_, best_score_, best_index_, scorer_, n_splits_, refit_time_, ...
        As in GridSearchCV.

    See Also
    --------
    TransferOptimizer : The same search without cross-validation, by ask and tell.

    Notes
    -----
    Past tasks that share rows with today's data are refused, so inside `cross_val_score` no fold learns
    from another fold's search. A failing archive or model costs a warning, never the search.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from sktransfer import TransferSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1e1)}
    >>> search = TransferSearchCV(SVC(), space, n_iter=8, archive=None, random_state=0).fit(X, y)
    >>> round(float(search.best_score_), 1)
    1.0
    """

    _required_parameters: ClassVar[list[str]] = ["estimator", "space"]

    _parameter_constraints: ClassVar[dict] = {
        **BaseSearchCV._parameter_constraints,
        "space": [dict, list, Space, StrOptions({"auto"})],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "archive": [str, os.PathLike, Archive, None],
        "surrogate": [str, Surrogate],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "timeout": [Interval(Real, 0, None, closed="right"), None],
        "resume": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        space: Any,
        *,
        n_iter: int = 25,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        archive: Any = "auto",
        surrogate: Any = "auto",
        batch_size: int | None = None,
        timeout: float | None = None,
        resume: bool = False,
        random_state: Any = None,
    ):
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space = space
        self.n_iter = n_iter
        self.archive = archive
        self.surrogate = surrogate
        self.batch_size = batch_size
        self.timeout = timeout
        self.resume = resume
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)  # the estimator is not validated yet
    def fit(self, X: Any, y: Any = None, **params: Any) -> TransferSearchCV:
        """Search, refit on the whole data, and add the trials to the archive.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data, or a precomputed kernel.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Target.
        **params : dict
            Passed to the estimator, the scorer and the splitter, as in GridSearchCV.

        Returns
        -------
        self : object
        """
        self._run = run = Run(self, X, y, params)
        try:
            super().fit(X, y, **params)
            self.cv_results_: dict[str, Any] = run.final_results(self.cv_results_, self._format_results)
            self.space_ = run.space
            self.surrogate_ = None if run.optimizer is None else run.optimizer.surrogate
            self.source_tasks_ = run.source_tasks()
            self.task_id_ = run.archive_trials(complete=True)
            self._own_task = None if self.task_id_ else run.task(complete=True)
        except BaseException as error:
            # Whatever ended the search, finished batches are kept.
            run.archive_trials(complete=False, interrupted=not isinstance(error, Exception))
            raise
        finally:
            del self._run
        return self

    def suggest(self, X: Any, y: Any = None, n: int = 1) -> list[Suggestion]:
        """Suggest configurations for new data, from the archive and this search's own trials alone.

        Parameters
        ----------
        X, y : array-like
            The new data. Past tunings that share rows with them have no say, this one included.
        n : int
            How many configurations, best first.

        Returns
        -------
        list of Suggestion
            See `sktransfer.suggest`.
        """
        check_is_fitted(self)
        own = () if self._own_task is None else (self._own_task,)
        archive, seed = open_archive(self.archive), self.random_state
        metric = tuned_metric(self.estimator, self.scoring, self.refit)
        return suggest_from(self.estimator, self.space, X, y, n, archive, self.surrogate, metric, seed, own)

    def __getstate__(self) -> dict[str, Any]:
        # Workers are sent the search with every fit; the run holds the data and is no business of theirs.
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_run"}

    def _run_search(self, evaluate_candidates: Any, *, callback_ctx: Any = None) -> None:
        run, level = self._run, CallbackLevel(callback_ctx)
        cv, n_splits = checked_cv(self, evaluate_candidates)
        run.prepare(n_splits)
        run.start(_FixedFolds(cv), evaluate_candidates)
        if not run.by_batches:
            run.finished, batch = True, run.grid_batch()
            level = level.begin(self, "search", len(batch) * n_splits, sequential=False)
            run.evaluate(evaluate_candidates, batch, **level.keywords)
            level.end(self)
            return
        level = level.begin(self, "search", run.n_batches, sequential=True)
        while run.goes_on():
            batch = run.next_batch()
            below = level.begin(self, "batch", len(batch) * n_splits, sequential=False)
            run.evaluate_and_tell(evaluate_candidates, batch, **below.keywords)
            if below.end(self):
                break
        run.check_any_succeeded()
        level.end(self)

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> dict:
        """As scikit-learn, with the candidates whose every fit failed put back in their places."""
        run = getattr(self, "_run", None)
        if run is None:
            return super()._format_results(candidate_params, n_splits, out, more_results)
        table = run.with_failures(candidate_params, n_splits, out, more_results)
        with warnings.catch_warnings():
            if not run.finished:
                # Said once at the end, not after every batch.
                warnings.filterwarnings("ignore", message="One or more of the .* scores are non-finite")
                warnings.filterwarnings("ignore", "invalid value", RuntimeWarning)  # of their spread
            return super()._format_results(*table)

    def _select_best_index(self, refit: Any, refit_metric: str, results: dict[str, Any]) -> int:
        """As scikit-learn, of all candidates: the last batch may have failed as a whole."""
        results |= self._run.final_results(results, self._format_results)
        return super()._select_best_index(refit, refit_metric, results)


class _FixedFolds:
    """A splitter whose folds are drawn on first use and kept: all candidates meet the same ones."""

    def __init__(self, cv: Any):
        self._cv = cv
        self._folds: list | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> list:
        if self._folds is None:
            self._folds = list(self._cv.split(X, y, **params))
        return self._folds

    def get_n_splits(self, X: Any = None, y: Any = None, **params: Any) -> int:
        return self._cv.get_n_splits(X, y, **params)
