"""`TransferSearchCV`: a scikit-learn search whose candidates are proposed by a surrogate.

`BaseSearchCV` does all of its own work: folds, scorers, parallel fits, refit, results. This class
is the strategy in its ``_run_search``, and adds what happens before and after it.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sktransfer.archive import Archive, connect_once
from sktransfer.dataset import MatrixLike, TargetLike
from sktransfer.exceptions import WorkersLostError
from sktransfer.model_selection._evaluator import Evaluator
from sktransfer.model_selection._explain import explain_search, print_edges
from sktransfer.model_selection._history import find_history
from sktransfer.model_selection._initial import Initial
from sktransfer.model_selection._loops import (
    announce_history,
    announce_stop,
    can_be_async,
    run_search,
)
from sktransfer.model_selection._mlflow import log_search, pause_autologging
from sktransfer.model_selection._other_names import explain_other_names
from sktransfer.model_selection._plan import DEFAULT_N_ITER, SearchPlan, open_archive
from sktransfer.model_selection._progress import Progress
from sktransfer.model_selection._proposers import make_proposer
from sktransfer.model_selection._recorder import Recorder
from sktransfer.model_selection._results import (
    Rows,
    count_other_tasks,
    format_interruption,
    mark_missing_folds,
    proposal_columns,
    source_task_rows,
)
from sktransfer.model_selection._search_html import search_html
from sktransfer.model_selection._session import Session
from sktransfer.model_selection._sklearn_compat import (
    BaseSearchCV,
    FixedFolds,
    Interval,
    SearchLevels,
    StrOptions,
    capture_fits,
    checked_cv,
    fit_context,
    get_parallel,
    split_arguments,
    without_batch_messages,
)
from sktransfer.model_selection._suggest import suggest_for
from sktransfer.model_selection._tables import results_to_frame, results_to_study
from sktransfer.optimizer import Proposal, Suggestion
from sktransfer.space import Estimator, Space, SpaceLike
from sktransfer.surrogates import Surrogate
from sktransfer.utils._metric_names import Scoring, tuned_metric

if TYPE_CHECKING:
    import optuna
    import pandas

RESULTS = ("cv_results_", "best_index_", "best_score_", "best_params_")


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
        (``SKTRANSFER_ARCHIVE``, or the user data directory). A path is another archive. The starter
        archive that ships with the package is read as well where no pretrained model predicts
        scores. None neither reads nor writes. Past searches that share rows with the data are
        excluded, unless all of their rows are among the data. ``Archive(path, overlap="allow")``
        uses them as well (see docs/archive.md). The pretrained models are part of the surrogate,
        and do not depend on the archive.
    surrogate : str or Surrogate, default="auto"
        The model that proposes configurations: "auto" (pretrained predictions, past searches and
        a Gaussian process), "dist-gp", "copula-gp", "gp", "random", ..., or an instance. See
        docs/surrogates.md.
    batch_size : int, "async" or None, default=None
        Configurations proposed at a time. With "async", one is proposed as soon as a worker is
        free, given all results so far, so that a slow evaluation does not hold up the others. Then
        the proposals depend on which evaluation ends first. None is "async" with several workers,
        if ``random_state=None``. Otherwise it is the smallest number that keeps `n_jobs` workers
        busy. The proposals depend on it, so set it if results must not depend on `n_jobs`. See
        docs/parallel.md.
    timeout : float or None, default=None
        Seconds after which no further batch is started.
    fit_timeout : float or None, default=None
        Seconds after which a single fit fails, as if it had raised an error. Python code is
        interrupted at once, compiled code when it returns. Fits in threads have no limit.
    patience : int or None, default=None
        Stop after this many candidates in a row without a better score.
    target_score : float or None, default=None
        Stop at this score, or a better one, of the metric that is optimized.
    resume : bool, default=False
        Whether to continue an earlier run of the same search, whether it was killed or ran to its
        end. What it evaluated is not evaluated again, and the result is that of an uninterrupted
        run. A larger `n_iter` continues further. The same search has the same data, estimator,
        space, folds, scoring, surrogate and seed. If only the space differs, because you widened
        it, the earlier trials in the new space count as observed and `n_iter` further ones are
        evaluated. If there is only a similar search, a `ResumeWarning` says what differs, and the
        search starts from the beginning.
    racing : bool, default=False
        Whether to stop a candidate after its first folds when it is unlikely to become the best,
        judged by its differences to the best candidate so far on the same folds, and by what the
        surrogate predicts of it. About half of the fits are saved. The best candidate always has
        all folds. With several metrics, the one that is optimized decides. If `refit` is a
        callable, the candidate that it chooses is given all folds, and it is asked again. See
        docs/racing.md.
    initial : "defaults", dict, list of them or None, default=None
        Configurations to evaluate first. "defaults" is the estimator as it is. A dict may leave
        parameters out, which then have the estimator's own values. Values may lie outside of the
        space. `n_iter` includes these configurations.
    name : str or None, default=None
        What you call the search, such as "churn 2026-11". It is shown in the archive, in
        ``source_tasks_`` and ``origin`` of later searches, and in suggestions.
    random_state : int, RandomState instance or None, default=None
        Seed of the proposals. Other past searches in the archive give other proposals. For
        proposals that never change, also pass ``Archive(path, readonly=True)`` or None.

    Attributes
    ----------
    cv_results_ : dict
        As in GridSearchCV. For each candidate it also has ``origin`` (where it came from:
        "initial", "grid", "space-filling", "random", "model", or "task" and the id of a past
        task), ``predicted_mean`` and ``predicted_std`` (what the model predicted before the
        evaluation; NaN without a model). With `racing`, it has ``n_folds_evaluated``. The scores
        of folds that were not evaluated are NaN, ``mean_test_score`` is then the mean expected
        given the folds that were, and stopped candidates rank behind all others.
    source_tasks_ : list of dict
        Every past search of the same estimator, most similar first and excluded ones last:
        ``id``, ``name``, ``created``, ``n_trials``, ``similarity`` of the data in [0, 1] or None,
        ``weight`` (what it still counts after the last trial), ``basis`` (what it was compared
        by), ``n_used`` (how many candidates are settings of this task; proposals of the model
        count for none), ``overlap`` ("none" if it shares no rows with the data, "contained" if all
        of its rows are among them, "unknown" if they cannot be compared) and ``excluded`` (why it
        was not used, or None).
    n_other_tasks_ : int
        Number of past searches of other estimators.
    surrogate_ : Surrogate or None
        The fitted model; None if the whole grid was evaluated, and in a search that was pickled.
    embedding_ : ndarray of shape (q,) or None
        The learned embedding of (X, y), by which past searches are compared and scores are
        predicted; None if the surrogate does not use it, too little is known of the data, or they
        are unlike all data of the training.
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
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"async"}), None],
        "timeout": [Interval(Real, 0, None, closed="right"), None],
        "fit_timeout": [Interval(Real, 0, None, closed="neither"), None],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "target_score": [Real, None],
        "resume": ["boolean"],
        "racing": ["boolean"],
        "initial": [dict, list, StrOptions({"defaults"}), None],
        "name": [str, None],
        "random_state": ["random_state"],
    }

    @explain_other_names
    def __init__(
        self,
        estimator: Estimator,
        space: SpaceLike | str,
        *,
        n_iter: int = DEFAULT_N_ITER,
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
        batch_size: int | str | None = None,
        timeout: float | None = None,
        fit_timeout: float | None = None,
        patience: int | None = None,
        target_score: float | None = None,
        resume: bool = False,
        racing: bool = False,
        initial: Initial = None,
        name: str | None = None,
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
        self.timeout, self.fit_timeout = timeout, fit_timeout
        self.patience, self.target_score = patience, target_score
        self.resume = resume
        self.racing = racing
        self.initial, self.name = initial, name
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
        with pause_autologging() as is_logged, connect_once():
            self._fit(X, y, params)
        if is_logged:
            log_search(self)
        return self

    def _fit(self, X: MatrixLike, y: TargetLike, params: dict[str, Any]) -> None:
        self._session = session = Session(X, y, params)
        try:
            super().fit(X, y, **params)
            self._set_fitted_attributes(session, is_complete=not session.is_cut_short)
            if self.verbose > 0:
                best = getattr(self, "best_params_", {})
                print_edges(self.space_, best, is_recorded=self.task_id_ is not None)
        except Exception:
            if session.results:
                self._forget_results()
            if session.recorder is not None:  # evaluated candidates are kept
                session.recorder.finish(is_complete=False)
            raise
        except BaseException as error:
            with contextlib.suppress(Exception):  # nothing may hide the interruption
                self._keep_interrupted(session, error)
            if session.recorder is not None:
                session.recorder.finish(is_complete=False, is_interrupted=True)
            raise
        finally:
            session.close()
            del self._session

    def _set_fitted_attributes(self, session: Session, is_complete: bool) -> None:
        """Set what `TransferSearchCV` has besides scikit-learn's attributes."""
        plan, recorder, proposer = session.plan, session.recorder, session.proposer
        assert plan is not None and recorder is not None and proposer is not None
        selection, origins = proposer.selection, self.cv_results_["origin"]
        self.space_, self.embedding_ = plan.space, proposer.embedding
        self.surrogate_, self.n_other_tasks_ = proposer.surrogate, count_other_tasks(selection)
        self.source_tasks_ = source_task_rows(selection, proposer.influence(), origins)
        self.task_id_ = recorder.finish(is_complete=is_complete, is_interrupted=not is_complete)
        self._own_task = None if self.task_id_ else recorder.to_task(is_complete=is_complete)
        self._profile = recorder.profile  # for Displays

    def _keep_interrupted(self, session: Session, error: BaseException) -> None:
        """Set the results so far, without a refit, and add to the error how to continue."""
        plan, proposer, evaluator = session.plan, session.proposer, session.evaluator
        if plan is None or proposer is None or evaluator is None:
            return
        self._forget_results()
        if not evaluator.finished:
            return
        n = len(evaluator.finished)
        columns = proposal_columns(proposer.proposals[:n])
        params = [candidate.params for candidate in evaluator.finished]
        results = self._format_results(params, plan.n_splits, evaluator.finished_rows(), columns)
        self._publish_results(results)
        self.n_splits_ = plan.n_splits
        self._set_fitted_attributes(session, is_complete=False)
        error.add_note(format_interruption(n, proposer.n_iter, self.task_id_ is not None))

    def _publish_results(self, results: dict[str, Any]) -> None:
        """Set the results so far, for callbacks and for a search that is interrupted."""
        self._forget_results()
        self.cv_results_ = results
        metric = self.refit if isinstance(self.refit, str) else "score"
        if not callable(self.refit) and f"rank_test_{metric}" in results:
            self.best_index_ = self._select_best_index(self.refit, metric, results)
            self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _forget_results(self) -> None:
        for name in (*RESULTS, "best_estimator_", "refit_time_"):
            self.__dict__.pop(name, None)

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

    def explain(self) -> str:
        """Say in five lines what was learned from the past and where the candidates came from.

        Returns
        -------
        str

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from sktransfer import TransferSearchCV
        >>> search = TransferSearchCV(SVC(), {"C": [0.1, 1, 10]}, archive=None)
        >>> print(search.fit(*load_iris(return_X_y=True)).explain())
        Past searches: 0 used, 0 of other estimators.
        Most similar: none.
        First candidates: 1. grid, 2. grid, 3. grid.
        All 3 candidates: 3 grid.
        Best: candidate 3, grid.
        """
        check_is_fitted(self)
        best_index = getattr(self, "best_index_", None)
        return explain_search(self.cv_results_, best_index, self.source_tasks_, self.n_other_tasks_)

    def to_frame(self) -> pandas.DataFrame:
        """Return the candidates as a table of pandas: parameters, scores, origin.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from sktransfer import TransferSearchCV
        >>> search = TransferSearchCV(SVC(), {"C": [0.1, 1, 10]}, archive=None)
        >>> list(search.fit(*load_iris(return_X_y=True)).to_frame())[:4]
        ['C', 'score', 'std_score', 'rank_score']
        """
        check_is_fitted(self)
        return results_to_frame(self.cv_results_)

    def to_optuna(self) -> optuna.Study:
        """Return an Optuna study of the candidates, for Optuna's plots and its dashboard.

        The metric that is optimized is to be maximized. Parameters that are estimators, tuples or
        functions are texts there.
        """
        check_is_fitted(self)
        metric = self.refit if isinstance(self.refit, str) else "score"
        keys = [key for key in self.cv_results_ if key.startswith("mean_test_")]
        scores = self.cv_results_.get(f"mean_test_{metric}", self.cv_results_[keys[0]])
        return results_to_study(self.cv_results_, scores, self.space_)

    def _repr_html_inner(self) -> str:
        return search_html(self) + super()._repr_html_inner()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """As scikit-learn, with a summary of a fitted search above the diagram."""
        output = super()._repr_mimebundle_(**kwargs)
        if "text/html" in output:
            output["text/html"] = search_html(self) + output["text/html"]
        return output

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "_session" not in state:
            # Neither `predict` nor `suggest` needs the fitted model, and torch may be needed to
            # load it.
            return state | {"surrogate_": None} if "surrogate_" in state else state
        # Workers are sent the search with every fit. They need neither its data nor its results
        # nor its surrogate.
        state = {k: value for k, value in state.items() if k not in ("_session", *RESULTS)}
        return state | {"surrogate": "auto", "surrogate_": None}

    def _run_search(self, evaluate_candidates: Callable, *, callback_ctx: object = None) -> None:
        session = self._session
        cv, n_splits = checked_cv(self, evaluate_candidates)
        cv, parallel = FixedFolds(cv), get_parallel(evaluate_candidates)
        X, y, split_params = split_arguments(evaluate_candidates)
        session.plan = plan = SearchPlan.from_search(self, n_splits, can_be_async(self, parallel))
        folds = cv.split(X, y, **split_params)
        history = find_history(plan, session.X, session.y, session.params, folds)
        announce_history(plan, history)
        session.proposer = proposer = make_proposer(plan, history)
        session.recorder = recorder = Recorder(plan, history)
        session.progress = progress = Progress(self.verbose, proposer.n_iter)
        session.evaluator = evaluator = Evaluator.install(
            evaluate_candidates,
            plan,
            history,
            recorder,
            progress,
            n_test=[len(test) for _, test in folds],
            data=[X, y, *(rows for fold in folds for rows in fold)],
        )
        name = "candidate" if proposer.n_batches == proposer.n_iter else "batch"
        levels = SearchLevels(self, callback_ctx, proposer.n_batches, proposer.is_one_batch, name)

        def evaluate(proposals: list[Proposal], **keywords: Any) -> None:
            columns = proposal_columns(proposals)
            progress.begin_batch(columns["origin"])
            with without_batch_messages(self, proposer.is_one_batch):
                params = [proposal.params for proposal in proposals]
                evaluate_candidates(params, cv=cv, more_results=columns, **keywords)
            proposer.tell(evaluator.candidates)
            self._publish_results(session.results)

        if plan.is_async:
            with without_batch_messages(self, is_one_batch=False):
                evaluator.capture(capture_fits(evaluate_candidates, cv))
        try:
            with evaluator.open():
                run_search(plan, proposer, evaluator, levels, evaluate)
                if plan.racing and callable(self.refit):
                    session.complete_chosen(self.refit, self._format_results)
        except WorkersLostError as error:
            session.end_early(error, evaluate)
        progress.close()
        announce_stop(plan, proposer)
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
        if self.racing:
            mark_missing_folds(results, out, n_splits)
        if session is not None:
            session.format_warnings, session.results = caught or [], results
            session.table = (candidate_params, n_splits, out, more_results)
        return results
