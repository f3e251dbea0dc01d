"""`TransferSearchCV`: a scikit-learn search whose candidates are proposed by a surrogate.

`BaseSearchCV` does all of its own work: folds, scorers, parallel fits, refit, results. This class
is the strategy in its ``_run_search``, and adds what happens before and after it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sktransfer.archive import Archive
from sktransfer.dataset import MatrixLike, TargetLike
from sktransfer.model_selection._evaluator import Evaluator
from sktransfer.model_selection._history import find_history
from sktransfer.model_selection._plan import SearchPlan, open_archive
from sktransfer.model_selection._progress import Progress
from sktransfer.model_selection._proposers import Proposer, make_proposer
from sktransfer.model_selection._recorder import Recorder
from sktransfer.model_selection._results import Rows, source_task_rows
from sktransfer.model_selection._search_html import search_html
from sktransfer.model_selection._sklearn_compat import (
    BaseSearchCV,
    FixedFolds,
    Interval,
    SearchLevels,
    StrOptions,
    checked_cv,
    fit_context,
    split_arguments,
    without_batch_messages,
)
from sktransfer.model_selection._suggest import suggest_for
from sktransfer.optimizer import Suggestion
from sktransfer.space import Estimator, Space, SpaceLike
from sktransfer.surrogates import Surrogate
from sktransfer.utils._metric_names import Scoring, tuned_metric


class TransferSearchCV(BaseSearchCV):
    """Hyperparameter search that learns from the searches before it.

    A drop-in replacement for GridSearchCV and RandomizedSearchCV, with the same methods and fitted
    attributes. Each `fit` profiles the data and looks up, in an archive of past searches, which
    settings did well on similar data. It continues with Bayesian optimization scored by
    cross-validation, and adds its own trials to the archive.

    Parameters
    ----------
    estimator : estimator object
        As in GridSearchCV.
    space : dict, list of dict, Space or "auto"
        Parameter names with lists of values or `scipy.stats` distributions, as GridSearchCV and
        RandomizedSearchCV take them. A grid with at most `n_iter` configurations is evaluated
        exactly as GridSearchCV would. "auto" uses the result of `sktransfer.suggest_space`.
    n_iter : int, default=25
        Number of configurations to evaluate.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As in GridSearchCV. With several metrics, the one named by `refit` is optimized, or the
        first if `refit` is a callable or False. The folds are drawn once per `fit`. With
        ``verbose=1``, one live line (of tqdm or rich, if installed; otherwise plain lines) shows
        the score of the last candidate, the best so far and where it came from, the time left and
        the past searches that are used.
    archive : {"auto"}, path, Archive or None, default="auto"
        Where past searches are read from and this one is added to. "auto" is the user's own archive
        (``SKTRANSFER_ARCHIVE``, or the user data directory) and, for reading, the starter archive
        that ships with the package. None neither reads nor writes.
    surrogate : str or Surrogate, default="auto"
        The model that proposes configurations: "auto" (which is "task-prior"), "dist-gp",
        "copula-gp", "gp", "random", ..., or an instance. See docs/surrogates.md.
    batch_size : int or None, default=None
        Configurations proposed at a time. None is the smallest number that keeps `n_jobs` workers
        busy. The proposals depend on it, so set it if results must not depend on `n_jobs`.
    timeout : float or None, default=None
        Seconds after which no further batch is started.
    resume : bool, default=False
        Whether to continue an earlier run of the same search, whether it was killed or ran to its
        end. What it evaluated is not evaluated again, and the result is that of an uninterrupted
        run. A larger `n_iter` continues further. The same search has the same data, estimator,
        space, folds, scoring, surrogate and seed. If there is only a similar one, a `ResumeWarning`
        says what differs, and the search starts from the beginning.
    random_state : int, RandomState instance or None, default=None
        Seed of the proposals.

    Attributes
    ----------
    cv_results_ : dict
        As in GridSearchCV. For each candidate it also has ``origin`` (where it came from: "grid",
        "space-filling", "random", "model", or "task" and the id of a past task), ``predicted_mean``
        and ``predicted_std`` (what the model predicted before the evaluation; NaN without a model).
    source_tasks_ : list of dict
        Every past search that was considered: ``id``, ``created``, ``n_trials``, ``similarity`` in
        [0, 1] or None (with the default surrogate, multiplied by the weight of the past after the
        last trial), ``basis`` (what it was compared by), ``n_used`` (how many candidates are
        settings of this task; proposals of the model count for none) and ``excluded`` (why it was
        not used, or None).
    surrogate_ : Surrogate or None
        The fitted model; None if the whole grid was evaluated.
    space_ : Space
        The space that was searched.
    task_id_ : str or None
        Id of the record in the archive.
    best_estimator_, best_params_, best_score_, best_index_, scorer_, n_splits_, refit_time_, ...
        As in GridSearchCV.

    See Also
    --------
    TransferOptimizer : The same search without cross-validation, by ask and tell.

    Notes
    -----
    Past searches that share rows with the current data are excluded. So inside
    `cross_val_score`, no fold learns from another fold's search. A failing archive or model costs a
    warning, never the search.

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
        estimator: Estimator,
        space: SpaceLike | str,
        *,
        n_iter: int = 25,
        scoring: Scoring = None,
        n_jobs: int | None = None,
        refit: object = True,
        cv: object = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = np.nan,
        return_train_score: bool = False,
        archive: str | os.PathLike[str] | Archive | None = "auto",
        surrogate: str | Surrogate = "auto",
        batch_size: int | None = None,
        timeout: float | None = None,
        resume: bool = False,
        random_state: int | np.random.RandomState | None = None,
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
    def fit(self, X: MatrixLike, y: TargetLike = None, **params: Any) -> TransferSearchCV:
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
        self._session = session = _Session(X, y, params)
        try:
            super().fit(X, y, **params)
            plan, recorder, proposer = session.plan, session.recorder, session.proposer
            assert plan is not None and recorder is not None and proposer is not None
            similarity, basis = proposer.similarity()
            origins = self.cv_results_["origin"]
            self.space_, self.surrogate_ = plan.space, proposer.surrogate
            self.source_tasks_ = source_task_rows(proposer.selection, similarity, basis, origins)
            self.task_id_ = recorder.finish(is_complete=True)
            self._own_task = None if self.task_id_ else recorder.to_task(is_complete=True)
            self._profile = recorder.profile  # for Displays
        except BaseException as error:
            # Whatever ended the search, evaluated candidates are kept.
            if session.recorder is not None:
                is_interrupted = not isinstance(error, Exception)
                session.recorder.finish(is_complete=False, is_interrupted=is_interrupted)
            raise
        finally:
            if session.progress is not None:
                session.progress.close()
            del self._session
        return self

    def suggest(self, X: MatrixLike, y: TargetLike = None, n: int = 1) -> list[Suggestion]:
        """Suggest configurations for new data, from the archive and this search's own trials alone.

        Parameters
        ----------
        X, y : array-like
            The new data. Past searches that share rows with them are excluded, this one included.
        n : int
            How many configurations, best first.

        Returns
        -------
        list of Suggestion
            See `sktransfer.suggest`.
        """
        check_is_fitted(self)
        return suggest_for(
            self.estimator,
            self.space,
            X,
            y,
            n=n,
            archive=open_archive(self.archive),
            surrogate=self.surrogate,
            metric=tuned_metric(self.estimator, self.scoring, self.refit),
            random_state=self.random_state,
            extra_tasks=() if self._own_task is None else (self._own_task,),
        )

    def _repr_html_inner(self) -> str:
        return search_html(self) + super()._repr_html_inner()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """As scikit-learn, with a summary of a fitted search above the diagram."""
        output = super()._repr_mimebundle_(**kwargs)
        if "text/html" in output:
            output["text/html"] = search_html(self) + output["text/html"]
        return output

    def __getstate__(self) -> dict[str, Any]:
        # Workers are sent the search with every fit. They need neither the session nor its data.
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key != "_session"}

    def _run_search(self, evaluate_candidates: Callable, *, callback_ctx: object = None) -> None:
        session = self._session
        cv, n_splits = checked_cv(self, evaluate_candidates)
        cv = FixedFolds(cv)
        X, y, split_params = split_arguments(evaluate_candidates)
        session.plan = plan = SearchPlan.from_search(self, n_splits)
        folds = cv.split(X, y, **split_params)
        history = find_history(plan, session.X, session.y, session.params, folds)
        session.proposer = proposer = make_proposer(plan, history)
        session.recorder = recorder = Recorder(plan, history)
        session.progress = progress = Progress(self.verbose, plan.n_iter)
        evaluator = Evaluator.install(evaluate_candidates, plan, history, recorder, progress)
        name = "candidate" if proposer.n_batches == plan.n_iter else "batch"
        levels = SearchLevels(self, callback_ctx, proposer.n_batches, proposer.is_one_batch, name)
        while batch := proposer.next_batch():
            keywords = levels.begin_batch(n_fits=len(batch) * n_splits)
            progress.begin_batch(batch.columns["origin"], proposer.selection)
            with without_batch_messages(self, proposer.is_one_batch):
                evaluate_candidates(batch.params, cv=cv, more_results=batch.columns, **keywords)
            proposer.tell(evaluator.candidates)
            if levels.end_batch():
                break
        evaluator.warn_or_raise_fit_failures()
        levels.end()
        session.show_warnings()

    def _format_results(
        self,
        candidate_params: list[dict[str, Any]],
        n_splits: int,
        out: Rows,
        more_results: dict[str, list] | None = None,
    ) -> dict[str, Any]:
        """As scikit-learn, but warnings about scores are shown once, at the end of the search."""
        session = getattr(self, "_session", None)
        with warnings.catch_warnings(record=session is not None) as caught:
            if session is not None:
                warnings.simplefilter("always")
            results = super()._format_results(candidate_params, n_splits, out, more_results)
        if session is not None:
            session.format_warnings = caught or []
        return results


class _Session:
    """What one call of `fit` passes to the methods that scikit-learn calls.

    Parameters
    ----------
    X, y, params
        What `fit` was given.
    """

    def __init__(self, X: MatrixLike, y: TargetLike, params: dict[str, Any]):
        self.X, self.y, self.params = X, y, params
        self.plan: SearchPlan | None = None
        self.proposer: Proposer | None = None
        self.recorder: Recorder | None = None
        self.progress: Progress | None = None
        self.format_warnings: list[warnings.WarningMessage] = []

    def show_warnings(self) -> None:
        """Show the warnings of the last table of results, each of them once."""
        registry: dict = {}
        files = {getattr(module, "__file__", None): name for name, module in [*sys.modules.items()]}
        for each in self.format_warnings:
            # With the module, so that the user's filters by module apply.
            module = files.get(each.filename)
            warnings.warn_explicit(
                str(each.message), each.category, each.filename, each.lineno, module, registry
            )
