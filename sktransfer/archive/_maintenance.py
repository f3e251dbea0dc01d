"""Maintenance: find invalid files and move them away, and find records that may be removed."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from numbers import Real
from pathlib import Path

from sktransfer.archive._anonymize import UNDATED
from sktransfer.archive._journal import Journals, read_journal
from sktransfer.archive._model_cache import STALE_SECONDS, find_model_problem
from sktransfer.archive._storage import Storage, read_record, record_files, refuse_unreadable
from sktransfer.exceptions import NewerFormatError, RecordError
from sktransfer.task import Task
from sktransfer.utils._hashing import hash_bytes

Age = float | timedelta | datetime | None
_TEMPORARY_NAME = re.compile(r"\..*\.tmp")
MAX_CLOCK_ERROR = timedelta(days=1)
_DATELESS = datetime.min.replace(tzinfo=UTC)


# -- verify --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """An invalid file.

    Parameters
    ----------
    file : str
        The file.
    problem : str
        What is wrong with it.
    moved : str or None
        Where it was moved to; None if it was not.

    Examples
    --------
    >>> print(Finding("tasks/a.joblib", "it is empty"))
    tasks/a.joblib: it is empty
    """

    file: str
    problem: str
    moved: str | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}" + (f"; moved to {self.moved}" if self.moved else "")


def find_problems(storage: Storage, repair: bool) -> list[Finding]:
    """Read every file from disk, and list what is wrong. See `Archive.verify`."""
    findings = [Finding(file, reason) for file, reason in storage.fetch_all().items()]
    for file, problem, is_movable in _problems(storage.directory):
        moved = None
        if repair and is_movable and not file.parent.is_symlink() and storage.is_damaged(file):
            try:
                moved = storage.set_aside(file)
            except FileNotFoundError:  # another process was first
                continue
        findings.append(Finding(str(file), problem, moved))
    return findings


def _problems(directory: Path) -> Iterator[tuple[Path, str, bool]]:
    """Yield each invalid file, what is wrong with it, and whether it may be moved."""
    for folder in (directory / name for name in ("tasks", "running", "models", "index")):
        if folder.is_symlink():
            yield (
                folder,
                "it is a link, which may lead out of the archive; it is not followed",
                False,
            )
    for read, files in (
        (read_record, record_files(directory / "tasks")),
        (read_journal, list(Journals(directory / "running").files().values())),
    ):
        for file in files:
            try:
                with refuse_unreadable(file):
                    read(file)
            except FileNotFoundError:  # removed since
                continue
            except RecordError as error:
                yield file, error.reason, _is_invalid(error)
    for file in _list_files(directory / "models"):
        if file.suffix == ".npz" and file.name[0] != ".":
            problem = find_model_problem(file)
            if problem is not None:
                yield file, *problem
    for name in ("tasks", "running", "models", "index"):
        for file in _list_files(directory / name):
            if _TEMPORARY_NAME.fullmatch(file.name) and _age_in_seconds(file) > STALE_SECONDS:
                yield file, "it was left by a process that was stopped while writing", True


def _is_invalid(error: RecordError) -> bool:
    """Whether the file itself is invalid, not of a later format or unreadable for the moment."""
    return not isinstance(error, NewerFormatError) and not isinstance(error.__cause__, OSError)


def _age_in_seconds(file: Path) -> float:
    """Return the seconds since a file was written; 0 if it no longer exists."""
    try:
        return time.time() - file.lstat().st_mtime
    except FileNotFoundError:
        return 0.0


def _list_files(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in sorted(os.listdir(folder))]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


# -- prune ---------------------------------------------------------------------------------------


def ids_to_prune(
    tasks: Iterable[Task],
    older_than: Age,
    keep_newest: int | None,
    max_records: int | None,
    origin: str | None,
) -> list[str]:
    """Return the ids of the tasks to remove, oldest first. See `Archive.prune`."""
    if older_than is None and keep_newest is None and max_records is None and origin is None:
        raise ValueError("Pass at least one of older_than, keep_newest, max_records, origin.")
    if origin is not None and (not isinstance(origin, str) or not origin):
        raise ValueError(f"origin must be a text such as 'imported from a.zip', got {origin!r}.")
    _check_count("keep_newest", keep_newest)
    _check_count("max_records", max_records)
    before = None if older_than is None else _to_moment(older_than)
    removed, n_kept = set(), 0
    n_of_group: Counter[Hashable] = Counter()
    # By date first, and by id among equal dates: clocks may disagree, and dates can be forged.
    dated = sorted(
        ((_created(task), task.id, _group(task), task.origin) for task in tasks), reverse=True
    )
    for created, id, group, found in dated:
        if origin is not None and found in (
            origin,
            f"imported from {origin}",
            f"merged from {origin}",
        ):
            removed.add(id)
            continue
        n_of_group[group] += 1
        if (
            (before is not None and _DATELESS < created < before)
            or (keep_newest is not None and n_of_group[group] > keep_newest)
            or (max_records is not None and n_kept >= max_records)
        ):
            removed.add(id)
        else:
            n_kept += 1
    return [id for _, id, _, _ in reversed(dated) if id in removed]


def _check_count(name: str, n: int | None) -> None:
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 0):
        raise ValueError(f"{name} must be a non-negative integer, got {n!r}.")


def _to_moment(older_than: Age) -> datetime:
    """Return the moment given as itself, as an age or as a number of days."""
    if isinstance(older_than, datetime):
        return older_than if older_than.tzinfo else older_than.astimezone()
    is_number = isinstance(older_than, Real) and not isinstance(older_than, bool)
    if is_number and 0 <= float(older_than) < 1e6:  # type: ignore[arg-type]
        older_than = timedelta(days=float(older_than))  # type: ignore[arg-type]
    if not isinstance(older_than, timedelta):
        raise ValueError(
            f"older_than must be a number of days, a timedelta or a datetime, got {older_than!r}."
        )
    try:
        return datetime.now(UTC) - older_than
    except OverflowError:  # before the first date: nothing is that old
        return _DATELESS


def _created(task: Task) -> datetime:
    """Return the date of a task. One without a readable date sorts first, but is never too old.

    A date in the future is not believed: it would push the newest records out.
    """
    if task.created == UNDATED:
        return _DATELESS
    try:
        created = datetime.fromisoformat(task.created)
        created = (created if created.tzinfo else created.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return _DATELESS
    return created if created < datetime.now(UTC) + MAX_CLOCK_ERROR else _DATELESS


def _group(task: Task) -> tuple[tuple[str, ...], str]:
    """Return a key of the estimator and the data. A task of unknown data has a group of its own."""
    rows = task.profile.get("fingerprint") if task.profile is not None else None
    data = hash_bytes(repr(rows).encode(), 32).hex() if rows else task.id
    return tuple(task.space["predictors"]), data
