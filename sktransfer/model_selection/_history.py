"""`History`: what a search knows before its first fit.

The profile of the data, the past tasks that are used and excluded, and with ``resume=True`` the
results of an earlier run. A resumed search proposes everything again, from the same seed and the
same past tasks. So the proposals are the same, and those whose results are known are not evaluated.
What comes after them is what would have come without the interruption.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from sktransfer.archive import Archive, ArchiveKey, OutOfReachError, Selection
from sktransfer.archive._key import without_hashes
from sktransfer.dataset import DatasetProfile, MatrixLike, TargetLike, profile, target_kind
from sktransfer.exceptions import ResumeWarning, TransferWarning
from sktransfer.model_selection._archive_faults import warn_of_faults
from sktransfer.model_selection._continued_training import model_folders
from sktransfer.model_selection._plan import SearchPlan, default_batch_size
from sktransfer.model_selection._results import PlainRows
from sktransfer.model_selection._resume_key import (
    DATA_KEYS,
    differing_keys,
    past_tasks_at_start,
    search_digests,
)
from sktransfer.model_selection._reuse import (
    ReusedTrial,
    contained_ids,
    find_reused,
    is_reusable,
    stored_folds,
)
from sktransfer.model_selection._similar_data import limit_past_tasks, needs_starter
from sktransfer.model_selection._sklearn_compat import Folds, enclosing_data
from sktransfer.model_selection._surrogate_cache import has_cached
from sktransfer.task import Task, new_task_id
from sktransfer.utils._user_warnings import warn_user
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
    reused : tuple of ReusedTrial
        Trials of earlier searches in another space. Their results are among `known_rows`.
    reusable : tuple of ReusedTrial
        Those that ``resume=True`` would reuse, if `verbose` asks for messages.
    continues : tuple of str
        Ids of the records whose trials are all among the known ones.
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
    reused: tuple[ReusedTrial, ...] = ()
    reusable: tuple[ReusedTrial, ...] = ()
    continues: tuple[str, ...] = ()


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
    data = _profile_data(X, y, target_kind(plan.estimator))
    selection = _select_past_tasks(plan, data)
    batch_size = plan.fixed_batch_size or default_batch_size(plan.n_workers, plan.n_splits)
    if plan.archive is None:
        return History(task_id, created, data, selection, plan.seed, batch_size)
    key, data = _seal(plan.archive, data)
    digests = search_digests(plan, plan.archive, X, y, params, folds)
    digests = {name: None if key is None else key.sign(own) for name, own in digests.items()}
    found = _resume(plan, plan.archive, digests, selection)
    facts: dict[str, Any] = {} if found.earlier is None else found.earlier.resume or {}
    seed = _stored_integer(facts, "seed", 0)
    return History(
        task_id,
        created,
        data,
        found.selection,
        plan.seed if seed is None else seed,
        plan.fixed_batch_size or _stored_integer(facts, "batch_size", 1) or batch_size,
        digests,
        found.earlier,
        _known_rows(found.earlier, found.reused),
        found.reused,
        found.reusable,
        tuple(resumed_ids(found.earlier) + contained_ids(found.widened, found.reused)),
    )


def _profile_data(X: MatrixLike, y: TargetLike, kind: str | None) -> DatasetProfile:
    try:
        return profile(X, y, keep="sample", enclosing=enclosing_data(), kind=kind)
    except Exception as error:
        warn_user(
            f"The data cannot be profiled ({error!r}). The search continues without past tasks.",
            TransferWarning,
        )
        return DatasetProfile("unsupervised", 0)  # its rows are unknown, so no past task is used


def _select_past_tasks(plan: SearchPlan, data: DatasetProfile) -> Selection:
    archive, model = plan.archive, plan.model
    if archive is None or model is None or not model.uses_past_tasks:
        return Selection((), ())
    with _warn_unreadable(archive):
        folders = model_folders(archive)
        limit = limit_past_tasks(model, data, folders)
        starter = needs_starter(model, plan.space, data, plan.metrics, folders)
        found = archive.select(plan.space, data, limit=limit, starter=starter)
        is_cached = has_cached(archive, model, plan.space, found.used, plan.metrics, data)
        return found if is_cached else found.loaded()
    return Selection((), ())


def _seal(archive: Archive, data: DatasetProfile) -> tuple[ArchiveKey | None, DatasetProfile]:
    """The key of an archive, and the profile with its hashes sealed by it.

    Without a key, the journal will say what that means. If the archive is out of reach, the user
    knows already, and the journal goes to the local copy without hashes.
    """
    try:
        key = archive.open_key()
    except OutOfReachError:
        return None, without_hashes(data)
    except Exception:  # a key that cannot be read or written, for whatever reason
        return None, data
    return key, data if key is None else key.seal(data)


def _warn_unreadable(archive: Archive) -> AbstractContextManager[None]:
    return warn_of_faults(f"{archive!r} cannot be read", "The search starts without it.")


# -- an earlier run -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Earlier:
    """What earlier searches on the same data contribute.

    Parameters
    ----------
    selection : Selection
        That of the run that is resumed, at its start, or the current one.
    earlier : Task or None
        The run that is resumed.
    widened : list of Task
        Searches that differ in the space, but whose results are valid.
    reused : tuple of ReusedTrial
        Their trials in the current space.
    reusable : tuple of ReusedTrial
        The same without ``resume=True``, to tell the user of them.
    """

    selection: Selection
    earlier: Task | None = None
    widened: Sequence[Task] = ()
    reused: tuple[ReusedTrial, ...] = ()
    reusable: tuple[ReusedTrial, ...] = ()


def _resume(
    plan: SearchPlan, archive: Archive, digests: dict[str, str | None], selection: Selection
) -> _Earlier:
    """The earlier run to continue, or trials of searches in another space."""
    if not plan.resume and not plan.verbose:
        return _Earlier(selection)
    with _warn_unreadable(archive):
        compared = _compare_searches(archive, digests)
        if not plan.resume:
            return _Earlier(selection, reusable=_find_reusable(plan, compared))
        earlier = _find_same(plan, compared, selection)
        widened = [task for differing, task in compared if is_reusable(differing)]
        if earlier is not None:
            # Only what it reused itself, so that it is continued as it began.
            ids = _stored_list(earlier.resume, "reused")
            widened = [task for task in widened if task.id in ids]
            selection = _as_at_start(plan, earlier, selection)
        reused = find_reused(widened, plan.space)
        if earlier is None and not reused:
            _warn_of_similar(compared)
        return _Earlier(selection, earlier, widened, reused)
    return _Earlier(selection)


_Compared = list[tuple[frozenset[str], Task]]


def _compare_searches(archive: Archive, digests: dict[str, str | None]) -> _Compared:
    """The searches in the archive that have much in common, and what they differ in."""
    resumable = [
        task
        for task in archive.find_searches(digests)
        if isinstance((task.resume or {}).get("problem"), dict)
    ]
    return [(differing_keys(digests, task), task) for task in resumable]


def _find_same(plan: SearchPlan, compared: _Compared, selection: Selection) -> Task | None:
    """The longest earlier run of the same search."""
    same = [task for differing, task in compared if not differing]
    usable = [task for task in same if _past_tasks(plan, task, selection) is not None]
    return max(usable, key=lambda task: (len(task.trials), task.id), default=None)


def _find_reusable(plan: SearchPlan, compared: _Compared) -> tuple[ReusedTrial, ...]:
    """The trials of searches in another space; none if this very search was run before."""
    if any(not differing for differing, _ in compared):
        return ()
    return find_reused([task for differing, task in compared if is_reusable(differing)], plan.space)


def _warn_of_similar(compared: _Compared) -> None:
    """Warn what the most similar search differs in."""
    same = [task for differing, task in compared if not differing]
    similar = [(len(d), d, task.id) for d, task in compared if d and len(d & DATA_KEYS) <= 1]
    similar += [(1, frozenset({"the past tasks it started from"}), task.id) for task in same]
    if similar:
        _, differing, id = min(similar, key=lambda each: each[0])
        warn_user(
            "resume=True: no earlier run of this search was found, so it starts from the "
            f"beginning. The most similar one in the archive, {id}, differs in "
            f"{', '.join(sorted(differing))}.",
            ResumeWarning,
        )


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


def _known_rows(
    earlier: Task | None, reused: Sequence[ReusedTrial]
) -> dict[frozenset, list[PlainRows]]:
    known: dict[frozenset, list[PlainRows]] = defaultdict(list)
    for trial, rows in zip(earlier.trials, stored_folds(earlier), strict=False) if earlier else ():
        known[params_identity(trial.params)].append(rows)
    for each in reused:
        known.setdefault(params_identity(each.params), [each.rows])
    return dict(known)


def format_resumption(history: History, n_iter: int) -> str:
    """One line on the earlier run that a search continues."""
    assert history.resumed is not None
    n_known = min(n_iter, sum(map(len, history.known_rows.values())))
    return f"Resuming {history.resumed.id}: {n_known} of {n_iter} candidates are known."


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
