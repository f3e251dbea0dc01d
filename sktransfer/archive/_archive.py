"""`Archive`: the directory of past tunings.

``tasks/<id>.joblib`` holds one record per finished tuning and never changes. There is no lock: any number
of processes may append and read at once, and merging two archives is copying files.
``running/<id>.jsonl`` is the journal of a fit under way, or of one that was killed (see `_journal`).
``models/`` is a cache of what was trained on the records, and ``index/`` one of what they are about; both may
be deleted. An archive at an address (``s3://...``) works on a local copy; see `_remote`.
"""

from __future__ import annotations

import contextlib
import heapq
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sktransfer.archive import _storage
from sktransfer.archive._address import check_installed, is_remote
from sktransfer.archive._exchange import find, is_record_of
from sktransfer.archive._index import heads, keep, note
from sktransfer.archive._journal import Journals
from sktransfer.archive._model_cache import ModelStore
from sktransfer.archive._reader import MAX_BYTES, loads_plain, read_task
from sktransfer.archive._record import is_id, record_to_task, task_to_record
from sktransfer.archive._remote import Remote
from sktransfer.archive._selection import Selection, described, select_past_tasks, warn_skipped
from sktransfer.archive._starter import Starter
from sktransfer.archive._stored import StoredTask
from sktransfer.archive._upkeep import Upkeep
from sktransfer.exceptions import RecordError
from sktransfer.task import Task


class Archive(Upkeep):
    """Past tunings on disk.

    Making one touches no file; a directory that does not exist is an empty archive, and is made by the
    first `append`. Reading runs no code, whoever wrote the files.

    Parameters
    ----------
    path : str or os.PathLike, default="auto"
        The directory. "auto" is the user's own archive: what the environment variable
        ``SKTRANSFER_ARCHIVE`` says, or a folder in the user's data directory. Also an address that
        fsspec knows, such as ``s3://bucket/past`` (``pip install 'sktransfer[remote]'``).
    keep : {"sketch", "sample"}, default="sketch"
        What `add` keeps of the data: a sketch from which no row can be read, or a sample of the rows.
    readonly : bool, default=False
        Whether to refuse to write.
    overlap : {"exclude", "allow"} or float, default="exclude"
        What `select` does with tasks that share rows with the data at hand: "exclude" refuses them,
        "allow" hears them, and a number in [0, 1] is the share of common rows from which on a task is
        refused. At 0 any row in common is one too many.
    starter : bool or None, default=None
        Whether `select` also hears the starter archive, the tasks that ship with the package; None says
        yes where path is "auto". They do not belong to this archive, and ``len`` does not count them.

    Notes
    -----
    Iterating gives the tasks by id, oldest first, and among them what searches left behind that were
    killed, as incomplete tasks. They are shared within the process: do not edit the
    dicts in them. A file that is not a sound record is left out with a warning.

    Examples
    --------
    >>> from sktransfer.task import Task
    >>> archive = Archive()
    >>> task = Task.from_trials({"C": [0.1, 1, 10]}, [({"C": 1}, 0.9), ({"C": 10}, 0.8)])
    >>> name = archive.append(task)
    >>> len(archive), name in archive, archive[name].best.params
    (1, True, {'C': 1})
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "auto",
        *,
        keep: str = "sketch",
        readonly: bool = False,
        overlap: float | str = "exclude",
        starter: bool | None = None,
    ) -> None:
        if path == "":
            raise ValueError("An archive needs a path; '.' is the working directory, None stands for none.")
        self.path = path
        self.keep = keep
        self.readonly = readonly
        self.overlap = overlap
        self.starter = starter
        if is_remote(path):
            check_installed(os.fspath(path))

    def _key(self) -> tuple[str, str, bool, float | str, bool | None]:
        return os.fspath(self.path), self.keep, self.readonly, self.overlap, self.starter

    def __repr__(self) -> str:
        path, keep, readonly, overlap, starter = self._key()
        options = ", keep=" + repr(keep) if keep != "sketch" else ""
        options += ", readonly=True" if readonly else ""
        options += ", overlap=" + repr(overlap) if overlap != "exclude" else ""
        options += ", starter=" + repr(starter) if starter is not None else ""
        return f"Archive({path!r}{options})"

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Archive) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    # -- reading -------------------------------------------------------------------------------

    def _directory(self) -> Path:
        return _storage.archive_directory(self.path)

    def _tasks_directory(self) -> Path:
        return self._directory() / "tasks"

    def _remote(self) -> Remote | None:
        path = os.environ.get(_storage.VARIABLE, "") if self.path == "auto" else self.path
        if not is_remote(path):
            return None
        check_installed(os.fspath(path))
        return Remote(os.fspath(path))

    def _refresh(self) -> None:
        """Fetch what is new at the address, if the archive is at one."""
        if (remote := self._remote()) is not None:
            remote.refresh(MAX_BYTES)

    def _file(self, id: str) -> Path:
        return self._tasks_directory() / (id + _storage.SUFFIX)

    def __len__(self) -> int:
        """Number of record files; none of them is opened."""
        self._refresh()
        return len(_storage.record_files(self._tasks_directory()))

    def __bool__(self) -> bool:
        """True: an empty archive is still an archive to write to."""
        return True

    def __contains__(self, id: object) -> bool:
        self._refresh()
        return isinstance(id, str) and is_id(id) and self._file(id).is_file()

    def __iter__(self) -> Iterator[Task]:
        self._refresh()
        records = _storage.record_files(self._tasks_directory())
        return heapq.merge(self._read_all(records), self._left(), key=lambda task: task.id)

    def _left(self) -> Iterator[Task]:
        """What killed fits left behind, as far as there is no record of it."""
        return self.journals.tasks(at_work=False, but=lambda id: self._file(id).exists())

    def _read_all(self, files: list[Path]) -> Iterator[Task]:
        for file in files:
            try:
                task = read_task(file)
            except FileNotFoundError:  # removed by somebody since the directory was listed
                continue
            except RecordError as error:
                warn_skipped(error)
            else:
                yield task

    def _candidates(self) -> Iterator[Task]:
        """Tasks for `select`, their trials and profiles still on the disk where the index says enough."""
        self._refresh()
        return heapq.merge(self._stored(), self._left(), key=lambda task: task.id)

    def _stored(self) -> Iterator[Task]:
        directory = self._directory()
        for id, head in heads(directory):
            if isinstance(head, RecordError):
                warn_skipped(head)
            else:
                yield StoredTask.of(head, id, directory / "tasks")

    def get(self, id: str) -> Task:
        """Return the task of this id.

        Parameters
        ----------
        id : str

        Raises
        ------
        KeyError
            If there is none.
        RecordError
            If its file is not a sound record.

        Examples
        --------
        >>> Archive().get("2001")
        Traceback (most recent call last):
        KeyError: "There is no task '2001' in the archive ..."
        """
        if is_id(id):
            self._refresh()
            with contextlib.suppress(FileNotFoundError):
                return read_task(self._file(id))
            with contextlib.suppress(FileNotFoundError):  # a fit that was killed, or is still at work
                return self.journals.get(id)
            if task := self._starter().get(id):
                return task
        raise KeyError(f"There is no task {id!r} in the archive {self._tasks_directory().parent}.")

    __getitem__ = get

    def _starter(self) -> Starter:
        wanted = self.path == "auto" if self.starter is None else self.starter
        return Starter(_storage.starter_directory() if wanted else None)

    def select(
        self,
        space: Any = None,
        profile: Any = None,
        *,
        overlap: float | str | None = None,
        extra_tasks: Iterable[Task] = (),
    ) -> Selection:
        """Find the past tasks that may speak about a problem.

        Parameters
        ----------
        space : Space, its ``describe()`` or None
            The space to be searched. A task must be about the same estimator and have a tuned
            parameter in common; its metric may be another. None asks for neither.
        profile : DatasetProfile, its ``to_dict()``, a sequence of them or None
            The data at hand. A task that saw rows of any of them is refused; if it or these have no
            profile, that cannot be told, and the task is allowed.
        overlap : {"exclude", "allow"}, float or None, default=None
            As for `Archive`; None takes the archive's.
        extra_tasks : iterable of Task
            Tasks that are not in the archive, put to the same rules.

        Returns
        -------
        Selection
            ``tasks``, by id, the starter's last, and ``refused``, pairs of a task and the reason.

        Examples
        --------
        >>> from sktransfer.space import Space
        >>> from sktransfer.task import Task
        >>> archive = Archive()
        >>> name = archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)]))
        >>> selection = archive.select(Space.parse({"alpha": [0.1, 1]}))
        >>> selection.used, [reason for task, reason in selection.excluded]
        ((), ['no parameter in common'])
        """
        overlap = self.overlap if overlap is None else overlap
        today = described(space)
        tasks = [*self._candidates(), *self._starter().candidates(today, profile)]
        known = {task.id for task in tasks}
        others = [task for task in extra_tasks if task.id not in known]
        selection = select_past_tasks(tasks + others, today, profile, overlap)
        if not self.readonly:
            keep(self._directory())
        return selection

    @property
    def model_cache(self) -> ModelStore:
        """The cached meta-models that were trained on tasks of this archive.

        Examples
        --------
        >>> Archive("past", readonly=True).model_cache.get({"surrogate": "A"}, ["t1"]) is None
        True
        """
        return ModelStore(self._directory() / "models", readonly=self.readonly)

    @property
    def journals(self) -> Journals:
        """The journals of the fits under way, and of those that were killed.

        Examples
        --------
        >>> list(Archive("past").journals.tasks())
        []
        """
        return Journals(self._directory() / "running", readonly=self.readonly)

    # -- writing -------------------------------------------------------------------------------

    def append(self, task: Task) -> str:
        """Write the record of a finished tuning; it is there as a whole or not at all.

        Parameters
        ----------
        task : Task

        Returns
        -------
        str
            The task's id.

        Raises
        ------
        TypeError
            If something in the task is not plain data; the message says where.
        ValueError
            If the task is not sound, or if another one of the same id is there.
        PermissionError
            If the archive is readonly or its directory cannot be written to.

        Examples
        --------
        >>> from sktransfer.task import Task
        >>> Archive().append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)], id="first"))
        'first'
        """
        self._check_writable()
        if not isinstance(task, Task):
            raise TypeError(f"An archive holds tasks, not a {type(task).__name__}; see Task.from_trials.")
        record = task_to_record(task)
        data = _storage.dump(record)
        # What is written must be readable, and the reader is the one to say so.
        written = record_to_task(loads_plain(data), f"task {task.id!r}")
        self._refresh()
        file = self._file(task.id)
        there = find(self, task.id)
        if there is not None and not is_record_of(there, record):
            raise ValueError(f"There is another record of this id: {file}. A record is never overwritten.")
        if there is None:
            try:
                self._write(task.id, data, new=True)
            except FileExistsError:  # since we looked
                self._refresh()
                there = find(self, task.id)
                if there is None or not is_record_of(there, record):
                    raise ValueError(f"There is another record of this id: {file}. It was kept.") from None
            with contextlib.suppress(Exception):  # a cache: the record is there
                note(self._directory(), written, file)
        return task.id

    def _write(self, id: str, data: bytes, new: bool = False) -> None:
        """Put the bytes of a record in their place."""
        file, remote = self._file(id), self._remote()
        if remote is not None:
            remote.write(file.name, data, new)
        else:
            _storage.write(file, data, new)

    def _check_writable(self) -> None:
        if self.readonly:
            raise PermissionError(f"{self!r} is readonly: nothing can be written to it.")
