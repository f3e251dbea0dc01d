"""`History`: what a search knows before its first fit.

The profile of the data, the past tasks that are used and excluded, and with ``resume=True`` the
results of an earlier run. A resumed search proposes everything again, from the same seed and the
same past tasks. So the proposals are the same, and those whose results are known are not evaluated.
What comes after them is what would have come without the interruption.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sktransfer.archive import Archive, ArchiveKey, Selection
from sktransfer.dataset import DatasetProfile, MatrixLike, TargetLike, profile
from sktransfer.exceptions import ArchiveWarning, ResumeWarning, TransferWarning
from sktransfer.model_selection._plan import SearchPlan, default_batch_size
from sktransfer.model_selection._results import PlainRows
from sktransfer.model_selection._resume_key import (
    DATA_KEYS,
    differing_keys,
    past_tasks_at_start,
    search_digests,
)
from sktransfer.model_selection._sklearn_compat import Folds, enclosing_data
from sktransfer.model_selection._surrogate_cache import has_cached
from sktransfer.task import Task, new_task_id
from sktransfer.utils._values import params_identity


@dataclass(frozen=True)
class History:
    """What a search knows before its first fit.

    Parameters
    ----------
    task_id, created : str
        Id of the record of this search, and when it began.
    profile : DatasetProfile
    selection : Selection
        Past tasks that are used, and those that are excluded, with the reason.
    seed : int or None
    batch_size : int
    digests : dict
        What the search is about; see `_resume_key.search_digests`. Empty without an archive.
    resumed : Task or None
        The earlier run that this one continues.
    known_rows : dict
        Results of the earlier run: identity of a configuration -> its fold results, in their order.
    """

    task_id: str
    created: str
    profile: DatasetProfile
    selection: Selection
    seed: int | None
    batch_size: int
    digests: dict[str, str | None] = field(default_factory=dict)
    resumed: Task | None = None
    known_rows: Mapping[frozenset, list[PlainRows]] = field(default_factory=dict)


def find_history(
    plan: SearchPlan, X: MatrixLike, y: TargetLike, params: dict[str, Any], folds: Folds
) -> History:
    """Profile the data, select past tasks, and look for an earlier run to resume.

    Parameters
    ----------
    plan : SearchPlan
    X, y, params
        What `fit` was given.
    folds : list of (train, test)
    """
    task_id, created = new_task_id()
    data = _profile_data(X, y)
    selection = _select_past_tasks(plan, data)
    batch_size = plan.batch_size or default_batch_size(plan.n_workers, plan.n_splits)
    if plan.archive is None:
        return History(task_id, created, data, selection, plan.seed, batch_size)
    key = _open_key(plan.archive)
    data = data if key is None else key.seal(data)
    digests = search_digests(plan, plan.archive, X, y, params, folds)
    digests = {name: None if key is None else key.sign(own) for name, own in digests.items()}
    earlier, selection = _resume(plan, plan.archive, digests, selection)
    if earlier is None:
        return History(task_id, created, data, selection, plan.seed, batch_size, digests)
    facts: dict[str, Any] = earlier.resume or {}
    seed = _stored_integer(facts, "seed", 0)
    return History(
        task_id,
        created,
        data,
        selection,
        plan.seed if seed is None else seed,
        plan.batch_size or _stored_integer(facts, "batch_size", 1) or batch_size,
        digests,
        earlier,
        _known_rows(earlier),
    )


def _profile_data(X: MatrixLike, y: TargetLike) -> DatasetProfile:
    try:
        return profile(X, y, keep="sample", enclosing=enclosing_data())
    except Exception as error:
        warnings.warn(
            f"The data cannot be profiled ({error!r}). The search continues without past tasks.",
            TransferWarning,
            stacklevel=2,
        )
        return DatasetProfile("unsupervised", 0)  # its rows are unknown, so no past task is used


def _select_past_tasks(plan: SearchPlan, data: DatasetProfile) -> Selection:
    archive, model = plan.archive, plan.model
    if archive is None or model is None or not model.uses_past_tasks:
        return Selection((), ())
    try:
        found = archive.select(plan.space, data)
        is_cached = has_cached(archive, model, plan.space, found.used, plan.metrics)
        return found if is_cached else found.loaded()
    except Exception as error:
        _warn_unreadable(archive, error)
        return Selection((), ())


def _open_key(archive: Archive) -> ArchiveKey | None:
    """The key of an archive; None if there is none. The journal will say what that means."""
    try:
        return archive.open_key()
    except Exception:
        return None


def _warn_unreadable(archive: Archive, error: Exception) -> None:
    warnings.warn(
        f"{archive!r} cannot be read ({error!r}). The search starts without it.",
        ArchiveWarning,
        stacklevel=3,
    )


# -- an earlier run -------------------------------------------------------------------------------


def _resume(
    plan: SearchPlan, archive: Archive, digests: dict[str, str | None], selection: Selection
) -> tuple[Task | None, Selection]:
    """The earlier run to continue, if there is one, and the selection that it started from."""
    try:
        earlier = _find_earlier_run(plan, archive, digests, selection) if plan.resume else None
        return earlier, selection if earlier is None else _as_at_start(plan, earlier, selection)
    except Exception as error:
        _warn_unreadable(archive, error)
        return None, selection


def _find_earlier_run(
    plan: SearchPlan, archive: Archive, digests: dict[str, str | None], selection: Selection
) -> Task | None:
    """The longest earlier run of the same search. For a similar one, warn what differs."""
    tasks = {task.id: task for task in archive.journals.tasks()}
    tasks |= {task.id: task for task in archive}
    resumable = [
        task
        for task in tasks.values()
        # The scores of another person's record are not this user's results.
        if isinstance((task.resume or {}).get("problem"), dict) and not task.origin
    ]
    compared = [(differing_keys(digests, task), task) for task in resumable]
    same = [task for differing, task in compared if not differing]
    usable = [task for task in same if _past_tasks(plan, task, selection) is not None]
    if usable:
        return max(usable, key=lambda task: (len(task.trials), task.id))
    similar = [(len(d), d, task.id) for d, task in compared if d and len(d & DATA_KEYS) <= 1]
    similar += [(1, frozenset({"the past tasks it started from"}), task.id) for task in same]
    if similar:
        _, differing, id = min(similar, key=lambda each: each[0])
        warnings.warn(
            "resume=True: no earlier run of this search was found, so it starts from the "
            f"beginning. The most similar one in the archive, {id}, differs in "
            f"{', '.join(sorted(differing))}.",
            ResumeWarning,
            stacklevel=2,
        )
    return None


def _past_tasks(plan: SearchPlan, earlier: Task, selection: Selection) -> tuple[Task, ...] | None:
    """The past tasks that the earlier run started from; None if one of them is gone."""
    return past_tasks_at_start(earlier, selection) if plan.uses_past_tasks else selection.used


def _as_at_start(plan: SearchPlan, earlier: Task, selection: Selection) -> Selection:
    """The selection as it was when the earlier run started."""
    used = _past_tasks(plan, earlier, selection)
    assert used is not None
    ids, reason = {task.id for task in used}, "is newer than the search that is resumed"
    excluded = tuple(pair for pair in selection.excluded if pair[0].id not in ids)
    newer = tuple((task, reason) for task in selection.used if task.id not in ids)
    return Selection(used, excluded + newer, selection.overlap)


def _known_rows(earlier: Task) -> dict[frozenset, list[PlainRows]]:
    known: dict[frozenset, list[PlainRows]] = defaultdict(list)
    for trial, rows in zip(earlier.trials, _stored_list(earlier.resume, "folds"), strict=False):
        known[params_identity(trial.params)].append(rows)
    return dict(known)


def resumed_ids(earlier: Task | None) -> list[str]:
    """Ids of the earlier runs that a search continues, the latest first."""
    return [] if earlier is None else [earlier.id, *_stored_list(earlier.resume, "continues")]


# Records may have been edited by hand, so that their fields can be of any type.


def _stored_list(facts: dict[str, Any] | None, name: str) -> list:
    found = (facts or {}).get(name)
    return found if isinstance(found, list) else []


def _stored_integer(facts: dict[str, Any], name: str, minimum: int) -> int | None:
    found = facts.get(name)
    return found if type(found) is int and minimum <= found < 2**31 else None
