"""Where candidates come from: `GridProposer` lists a grid, `ModelProposer` asks a surrogate."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sktransfer.archive import Selection
from sktransfer.exceptions import SurrogateWarning, TransferWarning
from sktransfer.model_selection._history import History
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._results import Candidate, Influence, proposal_columns
from sktransfer.model_selection._reuse import find_reused
from sktransfer.model_selection._stopping import StoppingRule
from sktransfer.model_selection._surrogate_cache import fit_or_load
from sktransfer.optimizer import Proposal, TransferOptimizer
from sktransfer.surrogates import Surrogate, make_surrogate
from sktransfer.utils._progress_line import show_progress
from sktransfer.utils._user_warnings import warn_user
from sktransfer.utils._values import params_identity


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
    stopping : StoppingRule
        When no further batch is started.
    selection : Selection
        Past tasks that are used and excluded.
    initial : sequence of Proposal
        Configurations to propose first, in batches of their own.
    n_known : int
        How many of these have known results. They do not use up patience.
    """

    surrogate: Surrogate | None = None

    def __init__(
        self,
        n_iter: int,
        batch_size: int,
        stopping: StoppingRule,
        selection: Selection,
        initial: Sequence[Proposal] = (),
        n_known: int = 0,
    ):
        self._initial, self._n_known = list(initial), n_known
        self.n_iter, self._batch_size, self._stopping = n_iter, batch_size, stopping
        self._selection = selection
        self._scores: list[float] = []
        self.proposals: list[Proposal] = []
        self.stop_reason: str | None = None  # why the search ends before its budget is used up

    @property
    def n_batches(self) -> int:
        counts = (len(self._initial), self.n_iter - len(self._initial))
        return sum(math.ceil(n / self._batch_size) for n in counts)

    @property
    def is_one_batch(self) -> bool:
        """Whether the whole search is one batch, as GridSearchCV's is."""
        return False

    def next_batch(self) -> Batch | None:
        """The next batch; None when the search is over. There is always a first one."""
        n_done = len(self.proposals)
        if n_done and (n_done >= self.n_iter or self._is_exhausted()):
            return None
        if n_done and n_done >= self._n_known:
            self.stop_reason = self._stopping.reason(self._scores, self._n_known)
        if self.stop_reason is not None:
            return None
        n = min(self._batch_size, self.n_iter - n_done)
        batch = Batch(self._initial[n_done : n_done + n] or self._propose(n))
        self.proposals += batch.proposals
        return batch

    @property
    def origins(self) -> list[str]:
        """Where each candidate came from."""
        return [proposal.origin for proposal in self.proposals]

    @property
    def selection(self) -> Selection:
        """Past tasks that are used and excluded."""
        return self._selection

    @property
    def embedding(self) -> np.ndarray | None:
        """The embedding of the data that the surrogate predicts from; None if there is none."""
        return None

    def move_up(self, proposal: Proposal, number: int) -> None:
        """Note that a proposal was evaluated as the `number`-th, before others that came first."""
        self.proposals.remove(proposal)
        self.proposals.insert(number, proposal)

    def tell(self, candidates: Sequence[Candidate]) -> None:
        """Report the evaluated candidates of the last batch."""
        self._scores += [candidate.trial.score for candidate in candidates]

    def influence(self) -> Influence:
        """What the used past tasks mean to the target."""
        return Influence()

    def _is_exhausted(self) -> bool:
        return False

    def _propose(self, n: int) -> list[Proposal]:
        raise TypeError(f"{type(self).__name__} must define _propose.")


class GridProposer(Proposer):
    """All configurations of a grid, in ParameterGrid's order, as GridSearchCV evaluates them.

    The whole grid is one batch, unless the search may end before it.
    """

    def __init__(self, plan: SearchPlan, history: History):
        assert plan.grid is not None
        # With racing, each batch is compared with the best candidate of those before it.
        self._is_one_batch = plan.stopping.is_never and not plan.racing
        batch_size = len(plan.grid) if self._is_one_batch else history.batch_size
        super().__init__(plan.n_iter, batch_size, plan.stopping, history.selection)
        self._grid, self._n_initial = plan.grid, len(plan.initial)

    @property
    def is_one_batch(self) -> bool:
        return self._is_one_batch

    def _propose(self, n: int) -> list[Proposal]:
        start = len(self.proposals)
        return [
            Proposal(params, "initial" if number < self._n_initial else "grid")
            for number, params in enumerate(self._grid[start : start + n], start)
        ]


class ModelProposer(Proposer):
    """Proposals of a surrogate. If it fails, the search continues at random."""

    def __init__(self, plan: SearchPlan, history: History):
        initial = _initial_proposals(plan, history)
        super().__init__(
            plan.n_iter + len(history.reused),  # the budget is that of new evaluations
            history.batch_size,
            plan.stopping,
            history.selection,
            initial,
            n_known=len(history.reused),
        )
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
        self._optimizer.avoids_pending = True
        overlap = history.selection.overlap
        self._optimizer.contained = frozenset(id for id in overlap if overlap[id] == "contained")

    @property
    def surrogate(self) -> Surrogate:  # type: ignore[override]
        return self._optimizer.surrogate

    @property
    def selection(self) -> Selection:
        # Records that turned out to be damaged are no longer among the optimizer's tasks.
        return replace(self._selection, used=self._optimizer.tasks)

    @property
    def embedding(self) -> np.ndarray | None:
        return self._optimizer.embedding

    def _is_exhausted(self) -> bool:
        return self._optimizer.is_exhausted

    def _propose(self, n: int) -> list[Proposal]:
        try:
            if not self._optimizer.is_fitted:
                self._fit_surrogate()
            labels = {f"task {task.id}": f"task {task.label}" for task in self._optimizer.tasks}
            found = self._optimizer.propose(n)
            return [replace(each, origin=labels.get(each.origin, each.origin)) for each in found]
        except Exception as error:
            warn_user(
                f"The surrogate {self._optimizer.surrogate!r} failed ({error!r}). "
                "The search continues at random.",
                SurrogateWarning,
            )
            self._optimizer.surrogate = make_surrogate("random").fit([])
            self._optimizer.is_fitted = True
            return self._optimizer.propose(n)

    def _fit_surrogate(self) -> None:
        with show_progress(sys.stdout if self._is_verbose else None):
            fit_or_load(self._optimizer, self._archive)
        if self._is_verbose and self.surrogate.uses_past_tasks:
            print(format_transfer_summary(self._optimizer, self._selection))

    def tell(self, candidates: Sequence[Candidate]) -> None:
        super().tell(candidates)
        initial = {params_identity(proposal.params) for proposal in self._initial}
        for candidate in candidates:
            trial = candidate.trial
            metrics = trial.metrics | {candidate.metric: trial.score}
            is_initial = params_identity(candidate.params) in initial
            # A setting of the user may have no place in the space: gamma="scale" on a range.
            with contextlib.suppress(ValueError) if is_initial else contextlib.nullcontext():
                self._optimizer.tell(
                    candidate.params,
                    trial.score,
                    cost=trial.fit_time,
                    metrics=metrics,
                    std_error=trial.std_error,
                )

    def influence(self) -> Influence:
        optimizer = self._optimizer
        try:
            return Influence(
                optimizer.data_similarity(), optimizer.similarity(), optimizer.similarity_basis()
            )
        except Exception as error:
            warn_user(
                f"The similarity of the past tasks is unknown: {error!r}.",
                TransferWarning,
            )
            return Influence()


def _initial_proposals(plan: SearchPlan, history: History) -> list[Proposal]:
    """Trials that are known from a search in another space, then the user's configurations.

    What a search that depended on the speed of its workers evaluated cannot be proposed again, so
    its trials come first, too.
    """
    reused = [Proposal(each.params, each.origin) for each in history.reused]
    if plan.is_async and history.resumed is not None:
        earlier = find_reused([history.resumed], plan.space)[: plan.n_iter]
        reused += [Proposal(each.params, each.origin) for each in earlier]
    known = {params_identity(proposal.params) for proposal in reused}
    own = [Proposal(params, "initial") for params in plan.initial]
    return reused + [each for each in own if params_identity(each.params) not in known]


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
        lines.append(f"{_count_searches(n_unknown)} cannot be checked for shared rows.")
    return "\n".join(lines)


def _format_used_tasks(optimizer: TransferOptimizer, has_excluded: bool) -> str:
    tasks, similarity = optimizer.tasks, optimizer.similarity()
    is_unlike = (
        optimizer.prior is not None and optimizer.prior.has_scores and not optimizer.is_pretrained
    )
    unlike = "The data are unlike those of the pretrained model. " if is_unlike else ""
    start = f"{unlike}Starting without transfer."
    if optimizer.is_pretrained:
        start = "Starting from the pretrained model."
    if not tasks and has_excluded:
        return f"No past search can be used. {start}"
    if not tasks:
        return f"No past search of this estimator and these parameters. {start}"
    if similarity is None:
        return f"Learning from {_count_searches(len(tasks))}."
    used = [i for i in np.argsort(-similarity, kind="stable") if similarity[i] > 0]
    if not used:
        text = (optimizer.similarity_basis() or [""])[0]
        is_excluded = text.startswith("excluded: ")
        reason = text.removeprefix("excluded: ") if is_excluded else "nothing is similar"
        return f"None of {_count_searches(len(tasks))} is used ({reason}). {start}"
    besides = " and the pretrained model" if optimizer.is_pretrained else ""
    most = tasks[used[0]].label
    share = f"{len(used)} of " if len(used) < len(tasks) else ""
    used_tasks = f"Learning from {share}{_count_searches(len(tasks))}{besides}, most from {most}."
    return f"{unlike}{used_tasks}"


def _count_searches(n: int) -> str:
    return "1 past search" if n == 1 else f"{n} past searches"
