"""`Session`: what one call of `fit` passes to the methods that scikit-learn calls."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

from sktransfer.dataset import MatrixLike, TargetLike
from sktransfer.exceptions import ResumeWarning, WorkersLostError
from sktransfer.model_selection._evaluator import Evaluator
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._progress import Progress
from sktransfer.model_selection._proposers import Proposer
from sktransfer.model_selection._recorder import Recorder
from sktransfer.utils._user_warnings import warn_user


class Session:
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
        self.evaluator: Evaluator | None = None
        self.results: dict[str, Any] = {}  # of all batches so far
        self.table: tuple = ()  # what they were made of: scikit-learn's own lists
        self.progress: Progress | None = None
        self.is_cut_short = False  # whether the workers were lost before the end
        self.format_warnings: list[warnings.WarningMessage] = []

    def close(self) -> None:
        """End the progress line."""
        if self.progress is not None:
            self.progress.close()

    def complete_chosen(self, choose: Callable, format_results: Callable) -> None:
        """Evaluate all folds of the candidate that a callable `refit` chooses.

        It may choose another one given their scores, until the chosen one has all folds.
        """
        assert self.evaluator is not None
        results = self.results
        while isinstance(chosen := choose(results), Integral):  # scikit-learn refuses other types
            number = int(chosen)
            if not self.evaluator.is_stopped(number):
                return
            _, n_splits, rows, _ = self.table
            rows[number * n_splits : (number + 1) * n_splits] = self.evaluator.complete(number)
            # scikit-learn holds this dict already, so it stays the same one.
            results.update(format_results(*self.table))
            self.results = results

    def end_early(self, error: WorkersLostError, evaluate: Callable) -> None:
        """End with the candidates that are finished, and say how to continue."""
        assert self.plan is not None and self.evaluator is not None and self.proposer is not None
        n_known, finished = len(self.results.get("params", ())), self.evaluator.finished
        if not finished:
            raise error
        if len(finished) > n_known:
            self.evaluator.serve(finished[n_known:])
            evaluate(self.proposer.proposals[n_known : len(finished)])
        self.is_cut_short = True
        advice = " To continue, run the same search with resume=True." if self.plan.archive else ""
        warn_user(
            f"{error} The search ends after {len(finished)} of {self.proposer.n_iter} candidates, "
            f"with their results.{advice}",
            ResumeWarning,
        )

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
