"""Every private import from scikit-learn, in one place.

scikit-learn 1.6 to 1.9 are supported. Differences between these versions are handled here.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CellType, FrameType
from typing import Any, cast

import numpy as np
from sklearn import get_config
from sklearn.base import _fit_context as fit_context
from sklearn.base import clone
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.parallel import delayed

__all__ = [
    "BaseSearchCV",
    "Fit",
    "FixedFolds",
    "Folds",
    "Interval",
    "SearchLevels",
    "StrOptions",
    "attach_configuration",
    "capture_fits",
    "checked_cv",
    "enclosing_data",
    "fit_context",
    "get_parallel",
    "has_callbacks",
    "make_failed_row",
    "make_fits",
    "set_parallel",
    "split_arguments",
    "warn_or_raise_fit_failures",
    "without_batch_messages",
    "wrap_fit",
]

Folds = list[tuple[np.ndarray, np.ndarray]]
Fit = tuple[Callable, tuple, dict[str, Any]]  # a delayed call of `_fit_and_score`


def checked_cv(search: BaseSearchCV, evaluate_candidates: Callable) -> tuple[Any, int]:
    """The splitter that `BaseSearchCV.fit` made of the ``cv`` parameter, and its number of splits.

    Making it again would exhaust a ``cv`` that is a generator. Before 1.9, only the closure of
    `evaluate_candidates` holds them while the search runs.
    """
    if hasattr(search, "_checked_cv_orig"):
        return search._checked_cv_orig, search.n_splits_
    held = inspect.getclosurevars(evaluate_candidates).nonlocals
    return held["cv_orig"], held["n_splits"]


def split_arguments(evaluate_candidates: Callable) -> tuple[Any, Any, dict[str, Any]]:
    """What `evaluate_candidates` calls the splitter with: X, y and keywords such as groups."""
    held = inspect.getclosurevars(evaluate_candidates).nonlocals
    return held["X"], held["y"], held["routed_params"].splitter.split


def get_parallel(evaluate_candidates: Callable) -> Callable:
    """The `Parallel` in the closure of `evaluate_candidates`."""
    return _parallel_cell(evaluate_candidates).cell_contents


def set_parallel(evaluate_candidates: Callable, parallel: Callable) -> None:
    """Replace the `Parallel` in the closure of `evaluate_candidates`.

    There is no other way to see the fits of a batch: `evaluate_candidates` returns a table of
    means.
    """
    _parallel_cell(evaluate_candidates).cell_contents = parallel


def _parallel_cell(evaluate_candidates: Callable) -> CellType:
    names = evaluate_candidates.__code__.co_freevars
    return dict(zip(names, evaluate_candidates.__closure__ or (), strict=True))["parallel"]


class _CapturedError(Exception):
    """Ends a call of `evaluate_candidates` whose fits were captured."""


def capture_fits(evaluate_candidates: Callable, cv: Any) -> list[Fit]:
    """The fits of a candidate without parameters, one for each fold, which are not done.

    `make_fits` makes those of other candidates from them, before `evaluate_candidates` is called.
    """
    captured: list[Fit] = []

    def capture(fits: Iterable[Fit]) -> None:
        captured.extend(fits)
        raise _CapturedError

    parallel = get_parallel(evaluate_candidates)
    set_parallel(evaluate_candidates, capture)
    try:
        with contextlib.suppress(_CapturedError):
            evaluate_candidates([{}], cv=cv)
    finally:
        set_parallel(evaluate_candidates, parallel)
    return captured


def make_fits(captured: Sequence[Fit], params: dict[str, Any], number: int, n: int) -> list[Fit]:
    """The fits of a candidate, the `number`-th of `n`."""
    progress = {"candidate_progress": (number, n)}
    return [
        (
            copy.copy(function),
            (clone(args[0]), *args[1:]),
            keywords | {"parameters": params} | progress,
        )
        for function, args, keywords in captured
    ]


def has_callbacks(search: BaseSearchCV) -> bool:
    """Whether the user registered callbacks (1.9)."""
    return bool(getattr(search, "_skl_callbacks", None))


def wrap_fit(fit: Fit, wrapper: Callable, *first: Any) -> Fit:
    """A delayed call of ``wrapper(function, *first, *args)`` in place of ``function(*args)``."""
    function, args, keywords = fit
    inner = cast(Any, function).function  # scikit-learn wraps it, to pass its configuration on
    wrapped = functools.partial(wrapper, inner, *first)
    return delayed(wrapped)(*args, **keywords)


def attach_configuration(fit: Fit) -> Fit:
    """A delayed call with scikit-learn's configuration, as its own `Parallel` passes it on."""
    function = cast(Any, fit[0])
    if hasattr(function, "with_config_and_warning_filters"):
        function.with_config_and_warning_filters(get_config(), warnings.filters)
    elif hasattr(function, "with_config"):  # before 1.7
        function.with_config(get_config())
    return fit


def make_failed_row(fit: Fit, error: Exception) -> dict[str, Any]:
    """The row of a fit that could not be done, as ``_fit_and_score`` makes it of a failure."""
    _, _, keywords = fit
    error_score, scorer = keywords["error_score"], keywords["scorer"]
    if error_score == "raise":
        raise error
    names = getattr(scorer, "_scorers", None) if not hasattr(scorer, "_score_func") else None
    scores = dict.fromkeys(names, error_score) if isinstance(names, dict) else error_score
    row = {"fit_error": f"{type(error).__name__}: {error}\n", "test_scores": scores}
    if keywords["return_train_score"]:
        row["train_scores"] = scores
    return row | {"n_test_samples": len(keywords["test"]), "fit_time": 0.0, "score_time": 0.0}


@contextlib.contextmanager
def without_batch_messages(search: BaseSearchCV, is_one_batch: bool) -> Iterator[None]:
    """Keep `evaluate_candidates` from printing a line for each call, unless there is only one.

    It prints if ``verbose`` is positive, and reads it for nothing else.
    """
    verbose = search.verbose
    if not is_one_batch:
        search.verbose = 0
    try:
        yield
    finally:
        search.verbose = verbose


def warn_or_raise_fit_failures(fit_errors: Sequence[str | None], error_score: float | str) -> None:
    """Warn of failed fits, or raise if all failed, in scikit-learn's words; None is a success."""
    _warn_or_raise_about_fit_failures([{"fit_error": error} for error in fit_errors], error_score)


def enclosing_data() -> list[Any]:
    """Every X that scikit-learn works on around the caller, outermost last.

    Inside ``cross_val_score(search, X, y, cv=2)`` the two searches have no row in common, and yet
    each is evaluated on the rows of the other. So neither may learn from the other. Behind a scaler
    in a pipeline, the rows differ from fold to fold. Only the code around (cross-validation,
    calibration, stacking, ...) knows the rows that all of them are about.
    """
    found: list[Any] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("sklearn."):
            X = frame.f_locals.get("X")
            if X is not None and not any(X is other for other in found):
                found.append(X)
        frame = frame.f_back
    return found


class FixedFolds:
    """A splitter whose folds are drawn on first use and kept, so that all candidates have the same.

    Parameters
    ----------
    cv : splitter
    """

    def __init__(self, cv: Any):
        self._cv = cv
        self._folds: Folds | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> Folds:
        if self._folds is None:
            self._folds = list(self._cv.split(X, y, **params))
        return self._folds

    def get_n_splits(self, X: Any = None, y: Any = None, **params: Any) -> int:
        return self._cv.get_n_splits(X, y, **params)


class SearchLevels:
    """The search and its batches in scikit-learn's tree of callback contexts (1.9).

    Without callbacks, and before 1.9, it does nothing. A search of one batch has no level for
    batches, as GridSearchCV has none.

    Parameters
    ----------
    search : BaseSearchCV
    context : CallbackContext or None
    n_batches : int
    is_one_batch : bool
    batch_name : str
        What a progress bar calls a batch.
    """

    def __init__(
        self,
        search: BaseSearchCV,
        context: Any,
        n_batches: int,
        is_one_batch: bool,
        batch_name: str = "batch",
    ):
        self._search, self._context, self._is_one_batch = search, context, is_one_batch
        self._batch_name = batch_name
        self._batch: Any = None
        if context is not None and not is_one_batch:
            self._context = self._begin("search", n_batches, sequential=True)

    def _begin(self, name: str, n_subtasks: int, *, sequential: bool) -> Any:
        below = self._context.subcontext(
            task_name=name, max_subtasks=n_subtasks, sequential_subtasks=sequential
        )
        return below.call_on_fit_task_begin(estimator=self._search)

    def begin_batch(self, n_fits: int) -> dict[str, Any]:
        """Open the level of a batch; returns keywords for `evaluate_candidates`."""
        if self._context is None:
            return {}
        name = "search" if self._is_one_batch else self._batch_name
        self._batch = self._begin(name, n_fits, sequential=False)
        return {"callback_ctx": self._batch}

    def end_batch(self) -> bool:
        """Close the level of a batch; True if a callback asks the search to stop."""
        if self._context is None:
            return False
        return bool(self._batch.call_on_fit_task_end(estimator=self._search))

    def end(self) -> None:
        """Close the level of the search."""
        if self._context is not None and not self._is_one_batch:
            self._context.call_on_fit_task_end(estimator=self._search)
