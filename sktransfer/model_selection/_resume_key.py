"""What a search is about, by content: two searches with the same digests would find the same.

Everything that a result rests on has a digest of its own, so that a search that cannot be taken up again
can say what differs. The budget (`n_iter`, `timeout`) and the workers are not among them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from sktransfer.archive import Archive, Selection, library_versions
from sktransfer.space import Space
from sktransfer.task import Task
from sktransfer.utils._hashing import digest

ABOUT = frozenset({"the data", "the target", "the estimator"})
"""Where two of these differ, it is another search, and no wonder."""

MAX_LISTED = 200
"""Past tasks that a record names one by one."""


def describe_problem(
    search: Any, archive: Archive, X: Any, y: Any, params: dict[str, Any], space: Space, folds: Any, seed: Any
) -> dict[str, str | None]:
    """Digests of everything that the result of a search depends on.

    Parameters
    ----------
    search : TransferSearchCV
    archive : Archive
    X, y, params
        What `fit` was given.
    space : Space
    folds : list of (train, test)
    seed : integer or None
        None where `random_state` is None: then the earlier run's seed is as good as another.
    """
    tuned = search.refit if isinstance(search.refit, str) else None
    judged = (search.scoring, tuned, search.error_score, search.return_train_score)
    listed = [entry for branch in space.branches for entry in branch.values() if isinstance(entry, list)]
    versions = library_versions()
    content = {
        "the data": X,
        "the target": y,
        "the fit parameters": {name: value for name, value in params.items() if value is not None},
        "the estimator": clone(search.estimator),
        # As text, because the order of the parameters counts; and the values, for the code of functions.
        "the space": (json.dumps(space.describe()), listed),
        "the folds": folds,
        "the scoring": judged,
        "the surrogate": search.surrogate,
        "the overlap that is allowed": archive.overlap,
        "batch_size": search.batch_size,
        "random_state": None if seed is None else int(seed),
        "the version of scikit-learn": versions.get("scikit-learn"),
        "the version of sktransfer": versions.get("sktransfer"),
    }
    return {name: digest(value, code=True) for name, value in content.items()}


def differences(problem: dict[str, str | None], task: Task) -> frozenset[str]:
    """What differs between a problem and that of a past task."""
    stored = (task.resume or {}).get("problem", {})
    return frozenset(name for name, own in problem.items() if own is None or stored.get(name) != own)


def past_facts(tasks: Sequence[Task]) -> list | dict[str, Any]:
    """What a record says of the past tasks that its search started from: their ids, or, of many, hashes.

    The ids of thousands in each of thousands of records would be most of an archive.
    """
    listed = [[task.id, task.n_trials] for task in tasks]
    if len(listed) <= MAX_LISTED:
        return listed
    unfinished = [[task.id, task.n_trials] for task in tasks if not task.complete]
    hashes = base64.b64encode(b"".join(_short_hash(task.id) for task in tasks))
    return {"hashes": hashes.decode(), "unfinished": unfinished}


def _short_hash(id: str) -> bytes:
    """Six bytes: that two of ten thousand tasks have the same is less likely than one in a million."""
    return hashlib.blake2b(id.encode(), digest_size=6).digest()


def _listed_again(stored: dict[str, Any], tasks: Iterable[Task]) -> list | None:
    """The list that hashes were made of, in its order; None if a task is not there any more."""
    known = {_short_hash(task.id): task for task in tasks}
    try:
        unfinished, packed = dict(stored["unfinished"]), base64.b64decode(stored["hashes"], validate=True)
        found = [known[packed[start : start + 6]] for start in range(0, len(packed), 6)]
        return [[task.id, unfinished.get(task.id, task.n_trials)] for task in found]
    except (TypeError, ValueError, KeyError):  # gone, or a record that somebody edited
        return None


def past_of(task: Task, selection: Selection) -> tuple[Task, ...] | None:
    """The past tasks that a search started from, as they were then; None if one is not there any more.

    A task that was not finished then may have more trials by now: they are left out.
    """
    tasks = {other.id: other for other in selection.used}
    tasks |= {other.id: other for other, _ in selection.excluded}
    found = []
    stored: Any = (task.resume or {}).get("past")
    if stored is None:
        return selection.used  # it used none, as a whole grid does: today's are as good
    if isinstance(stored, dict):
        stored = _listed_again(stored, tasks.values())
    if not isinstance(stored, list):
        return None
    for entry in stored:
        try:
            id, n_trials = entry
            past = tasks[id]
            if type(n_trials) is not int or not 0 < n_trials <= past.n_trials:
                return None
        except (TypeError, ValueError, KeyError):  # gone, or a record that somebody edited
            return None
        whole = n_trials == past.n_trials
        found.append(past if whole else replace(past, trials=past.trials[:n_trials], complete=False))
    return tuple(found)
