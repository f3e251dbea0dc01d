"""Fit a surrogate to past tasks, or load it from the archive's model cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from sktransfer.archive import Archive, load_tasks
from sktransfer.exceptions import SurrogateWarning
from sktransfer.model_selection._continued_training import model_folders
from sktransfer.optimizer import TransferOptimizer
from sktransfer.pretrained import model_digest
from sktransfer.space import Space
from sktransfer.surrogates import Surrogate
from sktransfer.task import Task
from sktransfer.utils._threads import numeric_context
from sktransfer.utils._user_warnings import warn_user

STATE_FORMAT = 1
"""Raise it when a surrogate's state or training changes. Older cached models are then ignored."""


@numeric_context()
def fit_or_load(optimizer: TransferOptimizer, archive: Archive | None) -> None:
    """Fit the optimizer's surrogate to its past tasks. Where that takes time, the result is cached.

    A cached model is found by its settings, space and tasks, and then no record is read. If there
    is a model of nearly the same tasks, training starts from its weights. Records that turn out to
    be damaged are removed from the optimizer's tasks.
    """
    surrogate = optimizer.surrogate
    optimizer.model_folders = model_folders(archive)
    if archive is None or not surrogate.is_cacheable or not optimizer.tasks:
        optimizer.tasks = load_tasks(optimizer.tasks)
        optimizer.fit_surrogate()
        return
    settings = _settings(archive, surrogate, optimizer.space, optimizer.metric)
    state = archive.model_cache.get(settings, _cache_names(optimizer.tasks))
    if state is not None and _restore(surrogate, state, [task.id for task in optimizer.tasks]):
        optimizer.is_fitted = True
        return
    optimizer.tasks = load_tasks(optimizer.tasks)
    names = _cache_names(optimizer.tasks)
    similar, earlier = archive.model_cache.nearest(settings, names), clone(surrogate)
    has_start = similar is not None and _restore(earlier, similar, None)
    optimizer.fit_surrogate(earlier if has_start else None)
    archive.model_cache.put(settings, names, surrogate.get_state())


def has_cached(
    archive: Archive,
    surrogate: Surrogate,
    space: Space,
    tasks: Sequence[Task],
    metric: Sequence[str],
) -> bool:
    """Whether a model of exactly these tasks is cached, so that no record need be read."""
    if not surrogate.is_cacheable:
        return False
    settings = _settings(archive, surrogate, space, metric)
    return archive.model_cache.has(settings, _cache_names(tasks))


def _cache_names(tasks: Sequence[Task]) -> list[str]:
    """Names of the tasks in the cache. An unfinished task may have more trials later."""
    return [task.id if task.complete else f"{task.id}+{task.n_trials}" for task in tasks]


def _settings(
    archive: Archive, surrogate: Surrogate, space: Space, metric: Sequence[str]
) -> dict[str, Any]:
    params = sorted(surrogate.get_params(deep=True).items())
    return {
        "format": STATE_FORMAT,
        "surrogate": _class_name(surrogate),
        "params": {n: _class_name(v) if isinstance(v, BaseEstimator) else v for n, v in params},
        "space": space.describe(),
        "metric": list(metric),
        "pretrained": model_digest(model_folders(archive)) if surrogate.uses_prior else "",
    }


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _restore(surrogate: Surrogate, state: dict[str, np.ndarray], ids: list[str] | None) -> bool:
    """Whether the surrogate accepts a cached state. Any fault means that it does not."""
    try:
        surrogate.set_state(state)
        return ids is None or surrogate.task_ids == ids
    except Exception as error:
        warn_user(
            f"A cached surrogate cannot be used ({error!r}). It is trained again.",
            SurrogateWarning,
        )
        return False
