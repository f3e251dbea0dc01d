"""Trained once, found again: a surrogate's meta-model from the archive's cache, or trained and put there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from sktransfer.archive import Archive
from sktransfer.optimizer import TransferOptimizer
from sktransfer.surrogates import Surrogate

STATE_FORMAT = 2
"""To be raised when a surrogate's state, or how it is trained, changes: cached models are then not found."""


def learn(optimizer: TransferOptimizer, archive: Archive | None) -> None:
    """Fit the optimiser's surrogate to its past tasks; where that takes time, keep what was learned.

    A cached model is found by what it was made of (settings, space, tasks). If there is one of nearly the
    same tasks, training goes on from its weights. A task that is not complete may have more trials later:
    it goes by the number that it has.
    """
    surrogate, ids = optimizer.surrogate, [task.id for task in optimizer.tasks]
    if archive is None or not surrogate.trained or not ids:
        optimizer.learn()
        return
    settings = _settings(surrogate, optimizer.space.describe())
    names = [task.id if task.complete else f"{task.id}+{len(task.trials)}" for task in optimizer.tasks]
    stored = archive.models.get(settings, names)
    if stored is not None and _restored(surrogate, stored, ids):
        optimizer.learned = True
        return
    near = archive.models.nearest(settings, names)
    earlier = clone(surrogate)
    optimizer.learn(earlier if near is not None and _restored(earlier, near, None) else None)
    archive.models.put(settings, names, surrogate.state())


def _settings(surrogate: Surrogate, space: Any) -> dict[str, Any]:
    params = surrogate.get_params(deep=True)
    plain = {name: _plain(value) for name, value in sorted(params.items())}
    return {"format": STATE_FORMAT, "surrogate": _class_of(surrogate), "params": plain, "space": space}


def _plain(value: Any) -> Any:
    return _class_of(value) if isinstance(value, BaseEstimator) else value


def _class_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _restored(surrogate: Surrogate, arrays: dict[str, np.ndarray], ids: list[str] | None) -> bool:
    """Whether the surrogate could take back this state; a cache is disposable, so anything wrong is a no."""
    try:
        surrogate.from_state(arrays)
        return ids is None or surrogate.task_ids == ids
    except Exception as error:
        warnings.warn(f"A cached meta-model could not be used ({error!r}); it is trained anew.", stacklevel=2)
        return False
