"""A task that the index tells about, while its trials and its profile are still on the disk."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sktransfer.archive import _storage
from sktransfer.archive._reader import read_task
from sktransfer.archive._rows import are_apart, halves_of
from sktransfer.exceptions import RecordError
from sktransfer.task import Task


@dataclass(slots=True)
class Head:
    """One record without trials and profile, and the file that it was read from."""

    size: int
    time: int
    created: str
    shared: dict[str, Any]  # space, metrics and versions: one dict for all records that agree in them
    complete: bool
    format: int
    n_trials: int
    n_ok: int
    has_profile: bool
    continues: str  # ids, parted by blanks
    halves: str = ""  # see `_rows`; nothing as long as the record was not opened for it
    learned: bool = False  # that since the index was read


class StoredTask(Task):
    """A task that reads its trials and its profile from the archive when they are first asked for.

    Equal to the task that it stands for. Asking raises a `RecordError` if the file was damaged meanwhile.
    """

    # A cached property gives way to what is in the instance, so that dataclasses.replace works as usual.
    trials = cached_property(lambda self: self._whole().trials)
    profile = cached_property(lambda self: self._whole().profile)
    resume = cached_property(lambda self: self._whole().resume)
    _head: Head

    @classmethod
    def of(cls, head: Head, id: str, tasks: Path) -> StoredTask:
        """The task of an id, as its entry in the index says; `tasks` is the folder of its file."""
        task = cls.__new__(cls)
        shared = head.shared
        task.__dict__.update(
            _head=head,
            _folder=tasks,
            space=shared["space"],
            metrics=tuple(shared["metrics"]),
            versions=shared["versions"],
            id=id,
            created=head.created,
            complete=head.complete,
            format=head.format,
        )
        if not head.has_profile:
            task.__dict__["profile"] = None
        return task

    def _whole(self) -> Task:
        path = self.__dict__["_folder"] / (self.id + _storage.SUFFIX)
        try:
            task = read_task(path)
        except FileNotFoundError:
            raise RecordError(path, "it was removed since the archive was read") from None
        head = self._head
        if task.profile is not None and not head.halves:
            head.halves = halves_of(task.profile)
            head.learned = bool(head.halves)
        return task

    def plain(self) -> Task:
        """The whole task, read now."""
        return Task(**{field.name: getattr(self, field.name) for field in fields(Task)})

    @property
    def n_trials(self) -> int:
        """Number of trials, which is known without reading them."""
        return len(self.trials) if "trials" in self.__dict__ else self._head.n_trials

    def is_apart(self, today: np.ndarray | None) -> bool:
        """Whether it has surely no row in common with data of these `_rows.halves`, told without reading."""
        return "profile" not in self.__dict__ and are_apart(self._head.halves, today)

    @property
    def continues(self) -> list[str]:
        return self._head.continues.split()

    @property
    def succeeded(self) -> bool:
        """Whether any trial did, which is known without reading them."""
        return self._head.n_ok > 0 if "trials" not in self.__dict__ else super().succeeded

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StoredTask):
            other = other.plain()
        return self.plain() == other if isinstance(other, Task) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of Task: it holds dicts

    def __reduce__(self) -> tuple:
        return Task, tuple(getattr(self, field.name) for field in fields(Task))
