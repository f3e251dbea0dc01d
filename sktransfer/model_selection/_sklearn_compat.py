"""Everything private of scikit-learn that this package touches, in one place.

Supported are scikit-learn 1.6 to 1.9; where they differ, the difference ends here.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from sklearn.base import _fit_context as fit_context
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures
from sklearn.utils._param_validation import Interval, StrOptions

__all__ = [
    "BaseSearchCV",
    "CallbackLevel",
    "Interval",
    "StrOptions",
    "all_fits_failed",
    "checked_cv",
    "enclosing_data",
    "evaluate_by",
    "fit_context",
    "no_word_of_failures",
    "split_arguments",
    "tell_failures",
]


def checked_cv(search: BaseSearchCV, evaluate_candidates: Any) -> tuple[Any, int]:
    """The splitter that `BaseSearchCV.fit` made of the ``cv`` parameter, and its number of splits.

    Making it again would use up a ``cv`` that is a generator. Before 1.9 only the closure of
    `evaluate_candidates` holds them while the search runs.
    """
    if hasattr(search, "_checked_cv_orig"):
        return search._checked_cv_orig, search.n_splits_
    held = inspect.getclosurevars(evaluate_candidates).nonlocals
    return held["cv_orig"], held["n_splits"]


def split_arguments(evaluate_candidates: Any) -> tuple[Any, Any, dict[str, Any]]:
    """What `evaluate_candidates` calls the splitter with: X, y and keywords such as groups."""
    held = inspect.getclosurevars(evaluate_candidates).nonlocals
    return held["X"], held["y"], held["routed_params"].splitter.split


def evaluate_by(evaluate_candidates: Any, make: Callable[[Any], Any]) -> Any:
    """Have `evaluate_candidates` call what `make` makes of its `Parallel`, and return that.

    There is no other way to see the fits of a batch one by one: what it returns is a table of means.
    """
    cells = dict(zip(evaluate_candidates.__code__.co_freevars, evaluate_candidates.__closure__, strict=True))
    cells["parallel"].cell_contents = made = make(cells["parallel"].cell_contents)
    return made


def all_fits_failed(error: ValueError) -> bool:
    """Whether this is the error that says that every fit failed."""
    return re.match(r"\s*All the \d+ fits failed", str(error)) is not None


@contextmanager
def no_word_of_failures() -> Iterator[None]:
    """Silence about fits that failed: `tell_failures` says it once at the end."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\s*\d+ fits failed out of a total of", FitFailedWarning)
        yield


def tell_failures(fit_errors: Sequence[str | None], error_score: Any) -> None:
    """Warn of the fits that failed, or raise if all did, in scikit-learn's words; None is a success."""
    _warn_or_raise_about_fit_failures([{"fit_error": error} for error in fit_errors], error_score)


def enclosing_data() -> list[Any]:
    """Every X that scikit-learn is at work on around the caller, outermost last.

    Inside ``cross_val_score(search, X, y, cv=2)`` the two searches see no row in common, and yet each
    of them is judged on the rows of the other: what one found out must not reach the other. Behind a
    scaler in a pipeline the rows differ from fold to fold. Only the code around them (cross-validation,
    calibration, stacking, ...) knows the rows that all of this is about.
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


class CallbackLevel:
    """A task in scikit-learn's tree of callback contexts (1.9), or nothing where there is no such tree."""

    def __init__(self, context: Any = None):
        self._context = context

    def begin(self, estimator: Any, name: str, n_subtasks: int, *, sequential: bool) -> CallbackLevel:
        """Open a task below this one."""
        if self._context is None:
            return self
        below = self._context.subcontext(
            task_name=name, max_subtasks=n_subtasks, sequential_subtasks=sequential
        )
        return CallbackLevel(below.call_on_fit_task_begin(estimator=estimator))

    def end(self, estimator: Any) -> bool:
        """Close the task; True if a callback wants the search to stop."""
        return self._context is not None and bool(self._context.call_on_fit_task_end(estimator=estimator))

    @property
    def keywords(self) -> dict[str, Any]:
        """What `evaluate_candidates` has to be given."""
        return {} if self._context is None else {"callback_ctx": self._context}
