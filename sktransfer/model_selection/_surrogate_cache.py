"""Trained once, found again: a surrogate's meta-model from the archive's cache, or trained and put there."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from sktransfer.archive import Archive
from sktransfer.archive._selection import loaded
from sktransfer.optimizer import TransferOptimizer
from sktransfer.space import Space
from sktransfer.surrogates import Surrogate
from sktransfer.task import Task
from sktransfer.utils._threads import numeric_context

STATE_FORMAT = 4
"""To be raised when a surrogate's state, or how it is trained, changes: cached models are then not found."""


@numeric_context()
def learn(optimizer: TransferOptimizer, archive: Archive | None) -> None:
    """Fit the optimizer's surrogate to its past tasks; where that takes time, keep what was learned.

    A cached model is found by what it was made of (settings, space, tasks), and then no record is read. If
    there is one of nearly the same tasks, training goes on from its weights. A record that turns out to be
    damaged is taken from the optimizer's tasks.
    """
    surrogate = optimizer.surrogate
    if archive is None or not surrogate.is_cacheable or not optimizer.tasks:
        optimizer.tasks = loaded(optimizer.tasks)
        optimizer.fit_surrogate()
        return
    settings = _settings(surrogate, optimizer.space, optimizer.metric)
    stored = archive.model_cache.get(settings, _names(optimizer.tasks))
    if stored is not None and _restored(surrogate, stored, [task.id for task in optimizer.tasks]):
        optimizer.is_fitted = True
        return
    optimizer.tasks = loaded(optimizer.tasks)
    names = _names(optimizer.tasks)
    near = archive.model_cache.nearest(settings, names)
    earlier = clone(surrogate)
    optimizer.fit_surrogate(earlier if near is not None and _restored(earlier, near, None) else None)
    archive.model_cache.put(settings, names, surrogate.get_state())


def is_kept(
    archive: Archive, surrogate: Surrogate, space: Space, tasks: Sequence[Task], metric: Sequence[str]
) -> bool:
    """Whether there is a cached model of just these tasks, so that their records need not be read."""
    return surrogate.is_cacheable and archive.model_cache.has(
        _settings(surrogate, space, metric), _names(tasks)
    )


def _names(tasks: Sequence[Task]) -> list[str]:
    """What the tasks are called in the cache: one that is not complete may have more trials later."""
    return [task.id if task.complete else f"{task.id}+{task.n_trials}" for task in tasks]


def _settings(surrogate: Surrogate, space: Space, metric: Sequence[str]) -> dict[str, Any]:
    params = surrogate.get_params(deep=True)
    plain = {name: _plain(value) for name, value in sorted(params.items())}
    made_by = {"format": STATE_FORMAT, "surrogate": _class_of(surrogate), "params": plain}
    return {**made_by, "space": space.describe(), "metric": list(metric)}


def _plain(value: Any) -> Any:
    return _class_of(value) if isinstance(value, BaseEstimator) else value


def _class_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _restored(surrogate: Surrogate, arrays: dict[str, np.ndarray], ids: list[str] | None) -> bool:
    """Whether the surrogate could take back this state; a cache is disposable, so anything wrong is a no."""
    try:
        surrogate.set_state(arrays)
        return ids is None or surrogate.task_ids == ids
    except Exception as error:
        warnings.warn(f"A cached meta-model could not be used ({error!r}); it is trained anew.", stacklevel=2)
        return False
