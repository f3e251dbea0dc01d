"""Digests that decide whether two searches are the same.

Everything that the result of a search depends on has a digest of its own, so that a search that
cannot be resumed can say what differs. The budget (`n_iter`, `timeout`) and the number of workers
are not included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from sktransfer.archive import Archive, Selection, library_versions
from sktransfer.dataset import MatrixLike, TargetLike
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._sklearn_compat import Folds
from sktransfer.task import Task
from sktransfer.utils._array_text import decode_array, encode_array
from sktransfer.utils._hashing import digest, hash_bytes

DATA_KEYS = frozenset({"the data", "the target", "the estimator"})
"""If two of these differ, it is simply another search, and no warning is due."""

MAX_LISTED = 200
"""Past tasks that a record names one by one."""

HASH_BYTES = 6
"""With ten thousand tasks, the chance that two have the same hash is below one in a million."""


def search_digests(
    plan: SearchPlan,
    archive: Archive,
    X: MatrixLike,
    y: TargetLike,
    params: dict[str, Any],
    folds: Folds,
) -> dict[str, str | None]:
    """Digests of everything that the result of a search depends on; None where one cannot be made.

    Parameters
    ----------
    plan : SearchPlan
    archive : Archive
    X, y, params
        What `fit` was given.
    folds : list of (train, test)
    """
    tuned = plan.refit if isinstance(plan.refit, str) else None
    branches = plan.space.branches
    lists = [entry for branch in branches for entry in branch.values() if isinstance(entry, list)]
    versions = library_versions()
    content = {
        "the data": X,
        "the target": y,
        "the fit parameters": {name: value for name, value in params.items() if value is not None},
        "the estimator": clone(plan.estimator),
        # As text, because the order of parameters counts, and the values, because the code of
        # functions does.
        "the space": (json.dumps(plan.space.describe()), lists),
        "the initial configurations": plan.initial,
        "the folds": folds,
        "the scoring": (plan.scoring, tuned, plan.error_score, plan.return_train_score),
        "the surrogate": plan.surrogate,
        "the overlap that is allowed": archive.overlap,
        "batch_size": plan.batch_size,
        "racing": plan.racing,
        # With random_state=None, the seed of the earlier run is as good as any.
        "random_state": None if plan.fixed_seed is None else int(plan.fixed_seed),
        "the version of scikit-learn": versions.get("scikit-learn"),
        "the version of sktransfer": versions.get("sktransfer"),
    }
    return {name: digest(value, code=True) for name, value in content.items()}


def differing_keys(digests: dict[str, str | None], task: Task) -> frozenset[str]:
    """What differs between a search and the one that a task records."""
    stored = (task.resume or {}).get("problem", {})
    return frozenset(
        name for name, own in digests.items() if own is None or stored.get(name) != own
    )


# -- the past tasks that a search started from ----------------------------------------------------


def past_task_facts(tasks: Sequence[Task]) -> list | dict[str, Any]:
    """How a record names the past tasks of its search: by ids, or by hashes if there are many.

    The ids of thousands of tasks in each of thousands of records would fill most of an archive.
    """
    listed = [[task.id, task.n_trials] for task in tasks]
    if len(listed) <= MAX_LISTED:
        return listed
    unfinished = [[task.id, task.n_trials] for task in tasks if not task.complete]
    hashes = np.frombuffer(b"".join(_hash_id(task.id) for task in tasks), dtype=np.uint8)
    return {"hashes": encode_array(hashes), "unfinished": unfinished}


def past_tasks_at_start(task: Task, selection: Selection) -> tuple[Task, ...] | None:
    """The past tasks that a recorded search started from, as they were then; None if one is gone.

    A task that was unfinished then may have more trials by now: they are left out.
    """
    tasks = {other.id: other for other in selection.used}
    tasks |= {other.id: other for other, _ in selection.excluded}
    stored: Any = (task.resume or {}).get("past")
    if stored is None:
        return selection.used  # it used none, as a grid does: any will do
    if isinstance(stored, dict):
        stored = _list_from_hashes(stored, tasks.values())
    if not isinstance(stored, list):
        return None
    found = []
    for entry in stored:
        try:
            id, n_trials = entry
            past = tasks[id]
            if type(n_trials) is not int or not 0 < n_trials <= past.n_trials:
                return None
        except (TypeError, ValueError, KeyError):  # gone, or a record that was edited by hand
            return None
        is_whole = n_trials == past.n_trials
        found.append(
            past if is_whole else replace(past, trials=past.trials[:n_trials], complete=False)
        )
    return tuple(found)


def _list_from_hashes(stored: dict[str, Any], tasks: Iterable[Task]) -> list | None:
    """The list that the hashes were made of, in its order; None if a task is gone."""
    known = {_hash_id(task.id): task for task in tasks}
    try:
        unfinished = dict(stored["unfinished"])
        packed = decode_array(stored["hashes"], np.uint8).tobytes()
        starts = range(0, len(packed), HASH_BYTES)
        found = [known[packed[start : start + HASH_BYTES]] for start in starts]
        return [[task.id, unfinished.get(task.id, task.n_trials)] for task in found]
    except (TypeError, ValueError, KeyError):  # gone, or a record that was edited by hand
        return None


def _hash_id(id: str) -> bytes:
    return hash_bytes(id.encode(), HASH_BYTES)
