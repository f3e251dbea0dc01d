"""Checks of the arguments of `TransferOptimizer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import TransferWarning
from sktransfer.space import Space
from sktransfer.space._parameter_names import match_canonical_names, split_owners
from sktransfer.task import Task
from sktransfer.utils._user_warnings import warn_user

RandomState = int | np.random.RandomState | np.random.Generator | None
SIGNS = {"maximize": 1, "minimize": -1}


def check_direction(direction: str) -> int:
    """The sign of scores that makes them to be maximized."""
    if direction not in SIGNS:
        raise ValueError(f"direction must be 'maximize' or 'minimize', got {direction!r}.")
    return SIGNS[direction]


def check_tasks(tasks: Sequence[Task], space: Space) -> tuple[Task, ...]:
    """The past tasks. Warn of those that have no parameter in common with the space."""
    if isinstance(tasks, Task):
        raise TypeError("tasks must be a sequence of Task objects, got a single one: pass [task].")
    for task in tasks:
        if not isinstance(task, Task):
            raise TypeError(
                f"tasks must contain Task objects, got {task!r} ({type(task).__name__}). Make them "
                "with Task.from_trials(space, trials), optimizer.to_task() or list(Archive())."
            )
    own = {name for each in space.canonical.values() for name in split_owners(each)}
    known: dict[int, bool] = {}  # thousands of tasks share few spaces

    def is_related(task: Task) -> bool:
        if id(task.space) not in known:
            names = match_canonical_names(task.space, space.canonical, space.predictors).values()
            known[id(task.space)] = any(one in own for name in names for one in split_owners(name))
        return known[id(task.space)]

    unrelated = [task for task in tasks if not is_related(task)] if own else []
    if unrelated:
        theirs = sorted({name for task in unrelated for name in task.space.get("canonical", {})})
        warn_user(
            f"{len(unrelated)} of {len(tasks)} past tasks have no parameter in common with the "
            f"space. They have {', '.join(theirs)}, the space has {', '.join(space.canonical)}. "
            "Nothing is learned from them.",
            TransferWarning,
        )
    return tuple(tasks)


def check_score(score: float) -> float:
    """A score that is a number. Texts of numbers have no sign to change."""
    if isinstance(score, (str, bytes)):
        raise TypeError(f"score must be a number, got {score!r}. NaN means that the trial failed.")
    return score


def check_count(n: int) -> int:
    """A number of configurations."""
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n={n!r} must be an integer of at least 1.")
    return int(n)


def as_profile(profile: DatasetProfile | Mapping[str, Any] | None) -> DatasetProfile | None:
    """A profile that may be given as the result of its `to_dict`."""
    return DatasetProfile.from_dict(profile) if isinstance(profile, Mapping) else profile


def as_seed(random_state: RandomState) -> int:
    """The seed that a random state stands for, or gives."""
    if random_state is None:
        return int(np.random.SeedSequence().entropy % 2**32)  # type: ignore[operator]
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ValueError(f"random_state={random_state!r} must not be negative.")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(random_state.randint(2**31 - 1))
