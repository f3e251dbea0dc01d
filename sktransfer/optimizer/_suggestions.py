"""Suggestions for data that nothing was evaluated on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sktransfer.optimizer._pool import Params
from sktransfer.optimizer._proposal import Suggestion

if TYPE_CHECKING:
    from sktransfer.optimizer._optimizer import TransferOptimizer

MIN_SIMILARITY = 0.05  # past tasks below it do not count as similar
MAX_SOURCES = 10  # past tasks that a suggestion names


def make_suggestions(
    optimizer: TransferOptimizer,
    fallback: TransferOptimizer,
    n: int,
    defaults: Params | None,
) -> list[Suggestion]:
    """Suggest `n` configurations, best first.

    Parameters
    ----------
    optimizer : TransferOptimizer
        With a fitted surrogate and without trials.
    fallback : TransferOptimizer
        The same without past tasks: it fills the space.
    n : int
    defaults : dict or None
        What to suggest first where no past task is similar.
    """
    similarity = optimizer.similarity()
    if similarity is None:
        similarity = np.full(len(optimizer.tasks), np.nan)
    order = [
        i for i in np.argsort(-similarity, kind="stable") if not similarity[i] < MIN_SIMILARITY
    ]
    found = optimizer.propose(n) if order and optimizer.surrogate.uses_past_tasks else []
    if not any(each.is_from_past for each in found):
        return _suggest_defaults(fallback, n, defaults)
    sources = tuple((optimizer.tasks[i].id, float(similarity[i])) for i in order[:MAX_SOURCES])
    note = (
        f"from {len(order)} similar past tasks" if len(order) > 1 else "from one similar past task"
    )
    suggestions = [
        Suggestion(each.params, *predicted, sources, note if each.is_from_past else "space-filling")
        for each, predicted in zip(found, optimizer.predict([p.params for p in found]), strict=True)
    ]
    has_model = not math.isnan(suggestions[0].mean)
    return sorted(suggestions, key=lambda each: -each.mean) if has_model else suggestions


def _suggest_defaults(
    fallback: TransferOptimizer, n: int, defaults: Params | None
) -> list[Suggestion]:
    found = [dict(defaults)] if defaults else []
    # Compared by value: a default of 1.0 may be the 1 of the space.
    found += [params for params in fallback.ask(n) if params not in found][: n - len(found)]
    notes = ["the defaults"] * bool(defaults) + ["space-filling"] * n
    return [
        Suggestion(params, math.nan, math.nan, (), f"no similar past task: {note}")
        for params, note in zip(found, notes, strict=False)
    ]
