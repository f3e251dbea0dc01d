"""Where candidates come from: `GridProposer` lists a grid, `ModelProposer` asks a surrogate."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sktransfer.archive import Selection
from sktransfer.exceptions import SurrogateWarning, TransferWarning
from sktransfer.model_selection._history import History
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._results import Candidate, proposal_columns
from sktransfer.model_selection._surrogate_cache import fit_or_load
from sktransfer.optimizer import Proposal, TransferOptimizer
from sktransfer.surrogates import Surrogate, make_surrogate


@dataclass(frozen=True)
class Batch:
    """Configurations that are evaluated together."""

    proposals: list[Proposal]

    def __len__(self) -> int:
        return len(self.proposals)

    @property
    def params(self) -> list[dict[str, Any]]:
        return [proposal.params for proposal in self.proposals]

    @property
    def columns(self) -> dict[str, list]:
        """Further columns of `cv_results_`."""
        return proposal_columns(self.proposals)


class Proposer:
    """Proposes batches until the budget, the time or the space is used up.

    Parameters
    ----------
    n_iter, batch_size : int
    deadline : float
        Value of ``time.monotonic()`` after which no further batch is started.
    selection : Selection
        Past tasks that are used and excluded.
    """

    surrogate: Surrogate | None = None

    def __init__(self, n_iter: int, batch_size: int, deadline: float, selection: Selection):
        self._n_iter, self._batch_size, self._deadline = n_iter, batch_size, deadline
        self._selection = selection
        self.origins: list[str] = []

    @property
    def n_batches(self) -> int:
        return math.ceil(self._n_iter / self._batch_size)

    @property
    def is_one_batch(self) -> bool:
        """Whether the whole search is one batch, as GridSearchCV's is."""
        return False

    def next_batch(self) -> Batch | None:
        """The next batch; None when the search is over. There is always a first one."""
        n_done = len(self.origins)
        if n_done and (
            time.monotonic() >= self._deadline or n_done >= self._n_iter or self._is_exhausted()
        ):
            return None
        batch = Batch(self._propose(min(self._batch_size, self._n_iter - n_done)))
        self.origins += [proposal.origin for proposal in batch.proposals]
        return batch

    @property
    def selection(self) -> Selection:
        """Past tasks that are used and excluded."""
        return self._selection

    def tell(self, candidates: Sequence[Candidate]) -> None:
        """Report the evaluated candidates of the last batch."""

    def similarity(self) -> tuple[np.ndarray | None, list[str] | None]:
        """Similarity of each used past task and what it was compared by; None if unknown."""
        return None, None

    def _is_exhausted(self) -> bool:
        return False

    def _propose(self, n: int) -> list[Proposal]:
        raise TypeError(f"{type(self).__name__} must define _propose.")


class GridProposer(Proposer):
    """All configurations of a grid, in ParameterGrid's order, as GridSearchCV evaluates them.

    Without a time limit the whole grid is one batch.
    """

    def __init__(self, plan: SearchPlan, history: History):
        assert plan.grid is not None
        batch_size = len(plan.grid) if math.isinf(plan.deadline) else history.batch_size
        super().__init__(plan.n_iter, batch_size, plan.deadline, history.selection)
        self._grid = plan.grid

    @property
    def is_one_batch(self) -> bool:
        return math.isinf(self._deadline)

    def _propose(self, n: int) -> list[Proposal]:
        start = len(self.origins)
        return [Proposal(params, "grid") for params in self._grid[start : start + n]]


class ModelProposer(Proposer):
    """Proposals of a surrogate. If it fails, the search continues at random."""

    def __init__(self, plan: SearchPlan, history: History):
        super().__init__(plan.n_iter, history.batch_size, plan.deadline, history.selection)
        assert plan.model is not None
        self._archive, self._is_verbose = plan.archive, plan.verbose
        self._optimizer = TransferOptimizer(
            plan.space,
            history.selection.used,
            profile=history.profile,
            surrogate=plan.model,
            metric=plan.metrics,
            random_state=history.seed,
        )

    @property
    def surrogate(self) -> Surrogate:  # type: ignore[override]
        return self._optimizer.surrogate

    @property
    def selection(self) -> Selection:
        # Records that turned out to be damaged are no longer among the optimizer's tasks.
        return replace(self._selection, used=self._optimizer.tasks)

    def _is_exhausted(self) -> bool:
        return self._optimizer.is_exhausted

    def _propose(self, n: int) -> list[Proposal]:
        try:
            if not self._optimizer.is_fitted:
                self._fit_surrogate()
            return self._optimizer.propose(n)
        except Exception as error:
            warnings.warn(
                f"The surrogate {self._optimizer.surrogate!r} failed ({error!r}). "
                "The search continues at random.",
                SurrogateWarning,
                stacklevel=3,
            )
            self._optimizer.surrogate = make_surrogate("random").fit([])
            self._optimizer.is_fitted = True
            return self._optimizer.propose(n)

    def _fit_surrogate(self) -> None:
        fit_or_load(self._optimizer, self._archive)
        if self._is_verbose and self.surrogate.uses_past_tasks:
            print(format_transfer_summary(self._optimizer, self._selection))

    def tell(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            trial = candidate.trial
            metrics = trial.metrics | {candidate.metric: trial.score}
            self._optimizer.tell(
                candidate.params, trial.score, cost=trial.fit_time, metrics=metrics
            )

    def similarity(self) -> tuple[np.ndarray | None, list[str] | None]:
        try:
            return self._optimizer.similarity(), self._optimizer.similarity_basis()
        except Exception as error:
            warnings.warn(
                f"The similarity of the past tasks is unknown: {error!r}.",
                TransferWarning,
                stacklevel=2,
            )
            return None, None


def make_proposer(plan: SearchPlan, history: History) -> GridProposer | ModelProposer:
    """The grid if it fits into the budget, otherwise a surrogate."""
    return ModelProposer(plan, history) if plan.grid is None else GridProposer(plan, history)


def format_transfer_summary(optimizer: TransferOptimizer, selection: Selection) -> str:
    """The past tasks that a search is about to learn from, and how many are excluded, and why."""
    counts = selection.count_excluded()
    lines = [_format_used_tasks(optimizer, has_excluded=bool(counts))]
    if counts:
        reasons = ", ".join(f"{n} ({reason})" for reason, n in counts.items())
        lines.append(f"Excluded past searches: {reasons}.")
    if any("shares rows" in reason for reason in counts):
        lines.append('archive=Archive(..., overlap="allow") uses searches that share rows as well.')
    n_unknown = sum(selection.overlap.get(task.id) == "unknown" for task in optimizer.tasks)
    if n_unknown:
        lines.append(f"{n_unknown} past searches cannot be checked for shared rows.")
    return "\n".join(lines)


def _format_used_tasks(optimizer: TransferOptimizer, has_excluded: bool) -> str:
    tasks, similarity = optimizer.tasks, optimizer.similarity()
    if not tasks and has_excluded:
        return "No past search can be used. Starting without transfer."
    if not tasks:
        return "No past search of this estimator and these parameters. Starting without transfer."
    if similarity is None:
        return f"Learning from {len(tasks)} past searches."
    used = [i for i in np.argsort(-similarity, kind="stable") if similarity[i] > 0]
    if not used:
        text = (optimizer.similarity_basis() or [""])[0]
        is_excluded = text.startswith("excluded: ")
        reason = text.removeprefix("excluded: ") if is_excluded else "nothing is similar"
        return f"None of {len(tasks)} past searches is used ({reason}). Starting without transfer."
    return f"Learning from {len(used)} past searches, most from {tasks[used[0]].id}."
