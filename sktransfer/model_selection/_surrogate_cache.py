"""Fit a surrogate to past tasks, or load it from the archive's model cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from sktransfer.archive import Archive, load_tasks
from sktransfer.archive._selection import count_in_steps
from sktransfer.archive._storage import FAULTS
from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import SurrogateWarning
from sktransfer.model_selection._archive_faults import warn_of_faults
from sktransfer.model_selection._continued_training import model_folders
from sktransfer.optimizer import PastScale, TransferOptimizer, are_columns_scaled
from sktransfer.pretrained import model_digest
from sktransfer.space import Space
from sktransfer.surrogates import Surrogate
from sktransfer.task import Task
from sktransfer.utils._threads import numeric_context
from sktransfer.utils._user_warnings import warn_user

STATE_FORMAT = 2
"""Raise it when a surrogate's state or training changes. Older cached models are then ignored."""

MIN_SAMPLE = 30  # past tasks, of which a surrogate that can be extended is fitted to all


@numeric_context()
def fit_or_load(optimizer: TransferOptimizer, archive: Archive | None) -> None:
    """Fit the optimizer's surrogate to its past tasks. Where that takes time, the result is cached.

    A cached model is found by its settings, space and tasks, and then no record is read. If there
    is a model of nearly the same tasks, training starts from its weights. A surrogate that can be
    extended is fitted to the first tasks only, a sample that searches on other data share, and the
    rest is added. Records that turn out to be damaged are removed from the optimizer's tasks.
    """
    tasks = optimizer.tasks
    if archive is not None:
        problem, consequence = f"{archive!r} cannot be used", "The surrogate is fitted without it."
        with warn_of_faults(problem, consequence, FAULTS):  # other errors are the surrogate's
            optimizer.model_folders = model_folders(archive)
            if optimizer.surrogate.is_cacheable and tasks:
                _fit_with_cache(optimizer, archive)
                return
    optimizer.tasks = load_tasks(tasks)
    optimizer.fit_surrogate()


def _fit_with_cache(optimizer: TransferOptimizer, archive: Archive) -> None:
    n = count_fitted(optimizer.surrogate, len(optimizer.tasks))
    optimizer.tasks, added = optimizer.tasks[:n], optimizer.tasks[n:]
    _fit_or_load_sample(optimizer, archive)
    if added:
        optimizer.extend_surrogate(load_tasks(added))


def count_fitted(surrogate: Surrogate, n_tasks: int) -> int:
    """How many of the past tasks, the first ones, a surrogate is fitted to. The rest is added.

    The number grows in steps, because it is fitted again at each.

    >>> from sktransfer.surrogates import make_surrogate
    >>> [count_fitted(make_surrogate("auto"), n) for n in (20, 36, 37, 99, 100, 500)]
    [20, 30, 37, 88, 100, 100]
    """
    limit = surrogate.max_past_tasks
    if surrogate.n_similar_tasks is None or limit is None:
        return n_tasks
    return limit if n_tasks >= limit else count_in_steps(n_tasks, min(MIN_SAMPLE, n_tasks))


def _fit_or_load_sample(optimizer: TransferOptimizer, archive: Archive) -> None:
    surrogate = optimizer.surrogate
    settings = _settings(archive, surrogate, optimizer.space, optimizer.metric, optimizer.profile)
    state = archive.model_cache.get(settings, _cache_names(optimizer.tasks))
    if state is not None and _restore(optimizer, state):
        return
    optimizer.tasks = load_tasks(optimizer.tasks)
    names = _cache_names(optimizer.tasks)
    similar, earlier = archive.model_cache.nearest(settings, names), clone(surrogate)
    has_start = similar is not None and _set_state(earlier, similar, None)
    optimizer.fit_surrogate(earlier if has_start else None)
    state = surrogate.get_state()
    if optimizer.past_scale is not None:
        unit, *numbers = optimizer.past_scale
        state |= {"scale.unit": np.array([unit or ""]), "scale.numbers": np.array(numbers)}
    archive.model_cache.put(settings, names, state)


def has_cached(
    archive: Archive,
    surrogate: Surrogate,
    space: Space,
    tasks: Sequence[Task],
    metric: Sequence[str],
    data: DatasetProfile | None,
) -> bool:
    """Whether a model of the tasks it is fitted to is cached, so that these need not be read."""
    if not surrogate.is_cacheable:
        return False
    settings = _settings(archive, surrogate, space, metric, data)
    fitted = tasks[: count_fitted(surrogate, len(tasks))]
    return archive.model_cache.has(settings, _cache_names(fitted))


def _cache_names(tasks: Sequence[Task]) -> list[str]:
    """Names of the tasks in the cache. An unfinished task may have more trials later."""
    return [task.id if task.complete else f"{task.id}+{task.n_trials}" for task in tasks]


def _settings(
    archive: Archive,
    surrogate: Surrogate,
    space: Space,
    metric: Sequence[str],
    data: DatasetProfile | None,
) -> dict[str, Any]:
    params = sorted(surrogate.get_params(deep=True).items())
    return {
        "format": STATE_FORMAT,
        "surrogate": _class_name(surrogate),
        "params": {n: _class_name(v) if isinstance(v, BaseEstimator) else v for n, v in params},
        "space": space.describe(),
        "metric": list(metric),
        "pretrained": model_digest(model_folders(archive)) if surrogate.uses_prior else "",
        "scaled": surrogate.uses_prior and are_columns_scaled(space, data),
    }


def _class_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _restore(optimizer: TransferOptimizer, state: dict[str, np.ndarray]) -> bool:
    """Whether a cached state is that of the optimizer's past tasks, and is now its surrogate's."""
    if not _set_state(optimizer.surrogate, state, [task.id for task in optimizer.tasks]):
        return False
    if "scale.unit" in state:
        [unit], numbers = state["scale.unit"].tolist(), state["scale.numbers"].tolist()
        optimizer.past_scale = PastScale(unit or None, *numbers)
    optimizer.is_fitted = True
    return True


def _set_state(surrogate: Surrogate, state: dict[str, np.ndarray], ids: list[str] | None) -> bool:
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
