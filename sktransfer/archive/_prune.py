"""Which records to do without: old ones, all but the newest of a kind, or all beyond a number."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any

from sktransfer.archive._anonymize import UNDATED
from sktransfer.task import Task


def superfluous(
    tasks: Iterable[Task], older_than: Any, keep_newest: int | None, max_records: int | None
) -> list[str]:
    """Ids of the tasks that go, oldest first; see `Archive.prune`."""
    if older_than is None and keep_newest is None and max_records is None:
        raise ValueError("Say what may go: older_than, keep_newest or max_records.")
    _check_count("keep_newest", keep_newest)
    _check_count("max_records", max_records)
    before = None if older_than is None else _moment(older_than)
    gone, kept = set(), 0
    of_a_kind: Counter = Counter()
    # Clocks may disagree and a stranger can write any date: the date first, the id where there is none.
    dated = sorted(((_created(task), task.id, _kind(task)) for task in tasks), reverse=True)
    for created, id, kind in dated:
        of_a_kind[kind] += 1
        if (
            (before is not None and _DATELESS < created < before)
            or (keep_newest is not None and of_a_kind[kind] > keep_newest)
            or (max_records is not None and kept >= max_records)
        ):
            gone.add(id)
        else:
            kept += 1
    return [id for _, id, _ in reversed(dated) if id in gone]


_DATELESS = datetime.min.replace(tzinfo=UTC)


def _check_count(name: str, n: int | None) -> None:
    if n is not None and (not isinstance(n, int) or isinstance(n, bool) or n < 0):
        raise ValueError(f"{name} must be a whole number from 0 on, got {n!r}.")


def _moment(older_than: Any) -> datetime:
    """A moment from itself, from an age or from a number of days."""
    if isinstance(older_than, datetime):
        return older_than if older_than.tzinfo else older_than.astimezone()
    if isinstance(older_than, Real) and not isinstance(older_than, bool) and 0 <= float(older_than) < 1e6:
        older_than = timedelta(days=float(older_than))
    if not isinstance(older_than, timedelta):
        raise ValueError(
            f"older_than must be a number of days, a timedelta or a datetime, got {older_than!r}."
        )
    try:
        return datetime.now(UTC) - older_than
    except OverflowError:  # before there were dates: nothing is so old
        return _DATELESS


def _created(task: Task) -> datetime:
    """When a task was made; one without a date that can be read is the oldest, but is never too old."""
    if task.created == UNDATED:
        return _DATELESS
    try:
        created = datetime.fromisoformat(task.created)
        return (created if created.tzinfo else created.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return _DATELESS


def _kind(task: Task) -> tuple:
    """The same estimator on the same data. Data of which nothing is known are like no others."""
    rows = task.profile.get("fingerprint") if task.profile is not None else None
    data = hashlib.blake2b(repr(rows).encode()).hexdigest() if rows else task.id
    return tuple(task.space["predictors"]), data
