"""Trials of an earlier search in another space, which count as observed.

After the best setting was at the edge of its range, people widen the range and search again. If the
data, folds, estimator and scoring are the same, the results of the earlier search are those that a
new evaluation would give, whatever the space was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sktransfer.model_selection._results import PlainRows
from sktransfer.space import Space
from sktransfer.space._membership import find_member
from sktransfer.task import Task
from sktransfer.utils._values import params_identity

SEARCH_KEYS = frozenset(
    {
        "the space",
        "the initial configurations",
        "the surrogate",
        "the overlap that is allowed",
        "batch_size",
        "racing",
        "random_state",
    }
)
"""What determines which configurations are evaluated, but not their results."""


@dataclass(frozen=True)
class ReusedTrial:
    """A configuration whose results are known from an earlier search.

    Parameters
    ----------
    params : dict
        With the values of the current space.
    rows : list
        Its results for each fold.
    task_id, label : str
        Id of the earlier search, and the same with its name.
    """

    params: dict[str, Any]
    rows: PlainRows
    task_id: str
    label: str

    @property
    def origin(self) -> str:
        return f"earlier search {self.label}"


def is_reusable(differing: Collection[str]) -> bool:
    """Whether a search that differs in these things has results that are still valid."""
    return "the space" in differing and SEARCH_KEYS.issuperset(differing)


def find_reused(tasks: Iterable[Task], space: Space) -> tuple[ReusedTrial, ...]:
    """The trials of earlier searches that lie in the space, each configuration once."""
    found: dict[frozenset, ReusedTrial] = {}
    for task in tasks:
        for trial, rows in zip(task.trials, stored_folds(task), strict=False):
            params = find_member(space, trial.params)
            if params is not None:
                reused = ReusedTrial(params, rows, task.id, task.label)
                found.setdefault(params_identity(params), reused)
    return tuple(found.values())


def stored_folds(task: Task) -> list[PlainRows]:
    """The results of each trial for each fold. A record that was edited by hand may have none."""
    found = (task.resume or {}).get("folds")
    return found if isinstance(found, list) else []


def contained_ids(tasks: Iterable[Task], reused: Sequence[ReusedTrial]) -> list[str]:
    """Ids of the earlier searches all of whose trials are reused."""
    known = {params_identity(each.params) for each in reused}
    return [
        task.id
        for task in tasks
        if all(params_identity(trial.params) in known for trial in task.trials)
    ]


def format_reuse(reused: Sequence[ReusedTrial]) -> str:
    """One line on the trials that are not evaluated again."""
    return (
        f"Reusing {_count_trials(reused)}: the same data, folds, estimator and scoring in another "
        "space."
    )


def format_reusable(reusable: Sequence[ReusedTrial]) -> str:
    """One line on trials that ``resume=True`` would not evaluate again."""
    return (
        f"This space holds {_count_trials(reusable)}, with the same data, folds, estimator and "
        "scoring. resume=True counts them as observed."
    )


def _count_trials(reused: Sequence[ReusedTrial]) -> str:
    labels = list(dict.fromkeys(each.label for each in reused))
    plural = "s" if len(reused) != 1 else ""
    return f"{len(reused)} trial{plural} of {', '.join(labels)}"
