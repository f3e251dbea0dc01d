"""Add past tasks to a fitted `TaskPrior`. What tasks have in common stays as it was learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from sklearn.base import clone

from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.task_processes import TaskProcesses
from sktransfer.surrogates._core.transported_past import describe_past, offset_past
from sktransfer.surrogates.base import EncodedTask
from sktransfer.utils._threads import single_threaded

if TYPE_CHECKING:
    from sktransfer.surrogates.task_prior import TaskPrior

TaskPriorT = TypeVar("TaskPriorT", bound="TaskPrior")


def extend_past(model: TaskPriorT, tasks: Sequence[EncodedTask]) -> TaskPriorT:
    """Add past tasks. What tasks have in common stays as `fit` learned it."""
    ids = np.array([task.id for task in tasks], dtype=str)
    is_usable = np.array([model._is_usable(task) for task in tasks], dtype=bool)
    model.positions_ = np.append(model.positions_, len(model.task_ids_) + np.flatnonzero(is_usable))
    model.task_ids_ = np.append(model.task_ids_, ids)
    model.n_tasks_ = len(model.task_ids_)
    used = [task for task, is_one in zip(tasks, is_usable, strict=True) if is_one]
    if not used:
        return model
    added = clone(model)
    added.learned_ = {}
    added._set_up(PastTrials.from_tasks(used, model._score_transform, model.winsorize))
    with single_threaded:
        if not model._has_past:  # what was fitted had no successful trial
            added._train(used, None)
            model.encoder_, model.learned_ = added.encoder_, added.learned_
            model._set_up(added.past_)
            return model
        TaskProcesses._train(added, used, None)
    new = added.learned_ | _describe_data(model, used)
    model.learned_ |= {n: np.concatenate([model.learned_[n], new[n]]) for n in new}
    model._set_up(model.past_.join(added.past_))
    return model


def _describe_data(model: TaskPrior, tasks: Sequence[EncodedTask]) -> dict[str, np.ndarray]:
    """The entries of ``learned_`` that describe the data of each task."""
    profiles = [task.profile for task in tasks]
    found = {
        "features": model.encoder_.transform(profiles),
        "known": np.array([profile is not None for profile in profiles]),
    }
    past, prior = model.learned_.get("descriptions"), tasks[0].prior
    if past is None or prior is None:
        return found
    descriptions = describe_past(tasks)
    if descriptions is None:
        descriptions = np.full((len(tasks), past.shape[1]), np.nan)
    offsets = offset_past(prior, descriptions, model.learned_["offsets"].mean(axis=0))
    return found | {"descriptions": descriptions, "offsets": offsets}
