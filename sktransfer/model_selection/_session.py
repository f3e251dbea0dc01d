"""`Session`: what one call of `fit` passes to the methods that scikit-learn calls."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from sktransfer.dataset import MatrixLike, TargetLike
from sktransfer.model_selection._evaluator import Evaluator
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._progress import Progress
from sktransfer.model_selection._proposers import Proposer
from sktransfer.model_selection._recorder import Recorder


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
