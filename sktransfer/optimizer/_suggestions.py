"""Suggestions for data that nothing was evaluated on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sktransfer.dataset import TARGET_KINDS, DatasetProfile, MatrixLike, TargetLike, profile
from sktransfer.optimizer._pool import Params
from sktransfer.optimizer._proposal import Proposal, Suggestion

MIN_SIMILARITY = 0.05  # past tasks below it do not count as similar
MAX_SOURCES = 10  # past tasks that a suggestion names


def profile_like(known: DatasetProfile | None, X: MatrixLike, y: TargetLike) -> DatasetProfile:
    """The profile of new data, with the kind of target that is known."""
    kind = known.kind if known is not None and known.kind in TARGET_KINDS else None
    return profile(X, y, keep="sample", kind=kind)


def find_sources(task_ids: Sequence[str], similarity: np.ndarray | None) -> list[tuple[str, float]]:
    """Ids and similarities of the similar past tasks, most similar first.

    Where the surrogate has no notion of similarity, all count, and their similarity is NaN.
    """
    if similarity is None:
        similarity = np.full(len(task_ids), np.nan)
    order = np.argsort(-similarity, kind="stable")
    return [
        (task_ids[i], float(similarity[i])) for i in order if not similarity[i] < MIN_SIMILARITY
    ]


def suggest_from_past(
    proposals: Sequence[Proposal],
    predictions: Sequence[tuple[float, float]],
    sources: Sequence[tuple[str, float]],
) -> list[Suggestion]:
    """Suggestions of a model, best first: of similar past tasks, or of the pretrained one."""
    named, n = tuple(sources[:MAX_SOURCES]), len(sources)
    note = f"from {n} similar past tasks" if n > 1 else "from one similar past task"
    if not n:
        note = "from the pretrained model"
    suggestions = [
        Suggestion(each.params, *predicted, named, note if each.is_from_past else "space-filling")
        for each, predicted in zip(proposals, predictions, strict=True)
    ]
    has_model = not math.isnan(suggestions[0].mean)
    return sorted(suggestions, key=lambda each: -each.mean) if has_model else suggestions


def suggest_defaults(
    defaults: Params | None, filling: Sequence[dict[str, Any]], n: int
) -> list[Suggestion]:
    """Suggestions without a similar past task: the defaults, then what fills the space."""
    found = [dict(defaults)] if defaults else []
    # Compared by value: a default of 1.0 may be the 1 of the space.
    found += [params for params in filling if params not in found][: n - len(found)]
    notes = ["the defaults"] * bool(defaults) + ["space-filling"] * n
    return [
        Suggestion(params, math.nan, math.nan, (), f"no similar past task: {note}")
        for params, note in zip(found, notes, strict=False)
    ]
