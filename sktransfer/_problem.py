"""What a search is about, by content: two searches with the same digests would find the same.

Everything that a result rests on has a digest of its own, so that a search that cannot be taken up again
can say what differs. The budget (`n_iter`, `timeout`) and the workers are not among them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from sktransfer._content import digest
from sktransfer.archive import Archive, Selection, library_versions
from sktransfer.space import Space
from sktransfer.task import Task

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
    """What a record says of the past tasks that its search started from: their ids, or, of many, a digest.

    A list of thousands in each of thousands of records would be most of an archive.
    """
    listed = [[task.id, task.n_trials] for task in tasks]
    if len(listed) <= MAX_LISTED:
        return listed
    unfinished = [[task.id, task.n_trials] for task in tasks if not task.complete]
    until = max([task.created, task.id] for task in tasks)  # within a second the id tells the order
    return {"until": until, "unfinished": unfinished, "digest": digest(sorted(listed))}


def _listed_again(stored: dict[str, Any], tasks: Sequence[Task]) -> list | None:
    """The list that a digest was made of, from the tasks of today; None if they are not the same any more."""
    try:
        unfinished = dict(stored["unfinished"])
        old = [task for task in tasks if [task.created, task.id] <= stored["until"]]
        listed = [[task.id, unfinished.get(task.id, task.n_trials)] for task in old]
        return listed if digest(sorted(listed)) == stored["digest"] else None
    except (TypeError, ValueError, KeyError):  # a record that somebody edited
        return None


def past_of(task: Task, selection: Selection) -> tuple[Task, ...] | None:
    """The past tasks that a search started from, as they were then; None if one is not there any more.

    A task that was not finished then may have more trials by now: they are left out.
    """
    tasks = {other.id: other for other in selection.tasks}
    tasks |= {other.id: other for other, _ in selection.refused}
    found = []
    stored: Any = (task.resume or {}).get("past")
    if stored is None:
        return selection.tasks  # it used none, as a whole grid does: today's are as good
    if isinstance(stored, dict):
        stored = _listed_again(stored, selection.tasks)
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
