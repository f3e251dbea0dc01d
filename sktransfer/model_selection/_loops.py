"""The two ways to search: batch after batch, or a candidate whenever a worker is free."""

from __future__ import annotations

from collections.abc import Callable

from sktransfer.model_selection._evaluator import Evaluator
from sktransfer.model_selection._history import History, format_resumption
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._proposers import Proposer
from sktransfer.model_selection._reuse import format_reusable, format_reuse
from sktransfer.model_selection._sklearn_compat import BaseSearchCV, SearchLevels, has_callbacks
from sktransfer.model_selection._workers import Started, Workers
from sktransfer.optimizer import Proposal

Evaluate = Callable[..., None]
"""Has proposals evaluated by scikit-learn, and tells the proposer their results."""


def can_be_async(search: BaseSearchCV, parallel: object) -> bool:
    """Whether workers hand back results as they come, and nothing needs scikit-learn's batches."""
    return not has_callbacks(search) and Workers.can_use(parallel)


def announce_history(plan: SearchPlan, history: History) -> None:
    """Print which earlier results are used, if the user wants to be told."""
    if plan.verbose and history.resumed is not None:
        print(format_resumption(history, plan.n_iter))
    if plan.verbose and history.reused:
        print(format_reuse(history.reused))
    if plan.verbose and history.reusable:
        print(format_reusable(history.reusable))


def announce_stop(plan: SearchPlan, proposer: Proposer) -> None:
    """Print why a search ends before its budget is used up, if the user wants to be told."""
    if proposer.stop_reason is not None and plan.verbose:
        n_done = len(proposer.origins)
        print(f"Stopped after {n_done} of {proposer.n_iter} candidates: {proposer.stop_reason}.")


def run_search(
    plan: SearchPlan,
    proposer: Proposer,
    evaluator: Evaluator,
    levels: SearchLevels,
    evaluate: Evaluate,
) -> None:
    """Propose and evaluate candidates until the budget is used up."""
    if plan.is_async:
        run_asynchronously(proposer, evaluator, evaluate)
    else:
        run_in_batches(proposer, evaluator, levels, plan.n_splits, evaluate)


def run_in_batches(
    proposer: Proposer,
    evaluator: Evaluator,
    levels: SearchLevels,
    n_splits: int,
    evaluate: Evaluate,
) -> None:
    """Propose a batch when all results of the one before are known."""
    while batch := proposer.next_batch():
        keywords = levels.begin_batch(n_fits=len(batch) * n_splits)
        evaluator.expect(batch.proposals)
        evaluate(batch.proposals, **keywords)
        if levels.end_batch():
            return


def run_asynchronously(proposer: Proposer, evaluator: Evaluator, evaluate: Evaluate) -> None:
    """Propose a candidate as soon as a worker is free, given the results known by then.

    scikit-learn gets candidates in the order in which they end.
    """
    started: dict[Started, Proposal] = {}
    while True:
        while not evaluator.is_busy and (batch := proposer.next_batch()):
            for proposal in batch.proposals:
                number = len(evaluator.finished) + len(started)
                started[evaluator.start(proposal, number)] = proposal
        if not started:
            return
        done = evaluator.next_done(started)
        proposal = started.pop(done)
        proposer.move_up(proposal, len(evaluator.finished))
        evaluator.report(done)
        evaluate([proposal])
