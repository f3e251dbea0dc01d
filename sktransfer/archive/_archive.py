"""`Archive`: the directory of past tunings.

``tasks/<id>.joblib`` holds one record per finished tuning and never changes. There is no index and no
lock: any number of processes may append and read at once, and merging two archives is copying files.
``running/<id>.jsonl`` is the journal of a fit under way, or of one that was killed (see `_journal`).
``models/`` is a cache of what was trained on the records, and may be deleted.
"""

from __future__ import annotations

import heapq
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sktransfer._values import identity
from sktransfer.archive import _files
from sktransfer.archive._add import task_from_search
from sktransfer.archive._errors import RecordError
from sktransfer.archive._format import is_id, record_to_task, task_to_record
from sktransfer.archive._journal import Journals
from sktransfer.archive._models import ModelStore
from sktransfer.archive._reader import loads_plain, read_task
from sktransfer.archive._select import Selection, select
from sktransfer.task import Task


class Archive:
    """Past tunings on disk.

    Making one touches no file; a directory that does not exist is an empty archive, and is made by the
    first `append`. Reading runs no code, whoever wrote the files.

    Parameters
    ----------
    path : str or os.PathLike, default="auto"
        The directory. "auto" is the user's own archive: what the environment variable
        ``SKTRANSFER_ARCHIVE`` says, or a folder in the user's data directory.
    keep : {"sketch", "sample"}, default="sketch"
        What `add` keeps of the data: a sketch from which no row can be read, or a sample of the rows.
    readonly : bool, default=False
        Whether to refuse to write.
    overlap : {"exclude", "allow"} or float, default="exclude"
        What `select` does with tasks that share rows with the data at hand: "exclude" refuses them,
        "allow" hears them, and a number in [0, 1] is the share of common rows from which on a task is
        refused. At 0 any row in common is one too many.

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
    ) -> None:
        self.path = path
        self.keep = keep
        self.readonly = readonly
        self.overlap = overlap

    def _key(self) -> tuple[str, str, bool, float | str]:
        return os.fspath(self.path), self.keep, self.readonly, self.overlap

    def __repr__(self) -> str:
        path, keep, readonly, overlap = self._key()
        options = ", keep=" + repr(keep) if keep != "sketch" else ""
        options += ", readonly=True" if readonly else ""
        options += ", overlap=" + repr(overlap) if overlap != "exclude" else ""
        return f"Archive({path!r}{options})"

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Archive) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    # -- reading -------------------------------------------------------------------------------

    def _tasks_directory(self) -> Path:
        return _files.archive_directory(self.path) / "tasks"

    def _file(self, id: str) -> Path:
        return self._tasks_directory() / (id + _files.SUFFIX)

    def __len__(self) -> int:
        """Number of record files; none of them is opened."""
        return len(_files.record_files(self._tasks_directory()))

    def __bool__(self) -> bool:
        """True: an empty archive is still an archive to write to."""
        return True

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and is_id(id) and self._file(id).is_file()

    def __iter__(self) -> Iterator[Task]:
        records = _files.record_files(self._tasks_directory())
        left = self.running.tasks(at_work=False, without=[file.stem for file in records])
        return heapq.merge(self._read_all(records), left, key=lambda task: task.id)

    def _read_all(self, files: list[Path]) -> Iterator[Task]:
        for file in files:
            try:
                task = read_task(file)
            except FileNotFoundError:  # removed by somebody since the directory was listed
                continue
            except RecordError as error:
                warnings.warn(f"Skipped a file of the archive, {error}. {error.advice}", stacklevel=2)
            else:
                yield task

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
            try:
                return read_task(self._file(id))
            except FileNotFoundError:
                pass
        raise KeyError(f"There is no task {id!r} in the archive {self._tasks_directory().parent}.")

    __getitem__ = get

    def select(
        self, space: Any = None, profile: Any = None, *, overlap: float | str | None = None
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

        Returns
        -------
        Selection
            ``tasks``, by id, and ``refused``, pairs of a task and the reason.

        Examples
        --------
        >>> from sktransfer.space import Space
        >>> from sktransfer.task import Task
        >>> archive = Archive()
        >>> name = archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)]))
        >>> selection = archive.select(Space.parse({"alpha": [0.1, 1]}))
        >>> selection.tasks, [reason for task, reason in selection.refused]
        ((), ['no parameter in common'])
        """
        return select(self, space, profile, self.overlap if overlap is None else overlap)

    @property
    def models(self) -> ModelStore:
        """The cached meta-models that were trained on tasks of this archive.

        Examples
        --------
        >>> Archive("past", readonly=True).models.get({"surrogate": "A"}, ["t1"]) is None
        True
        """
        return ModelStore(_files.archive_directory(self.path) / "models", readonly=self.readonly)

    @property
    def running(self) -> Journals:
        """The journals of the fits under way, and of those that were killed.

        Examples
        --------
        >>> list(Archive("past").running.tasks())
        []
        """
        return Journals(_files.archive_directory(self.path) / "running", readonly=self.readonly)

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
        data = _files.dump(record)
        # What is written must be readable, and the reader is the one to say so.
        record_to_task(loads_plain(data), f"task {task.id!r}")
        file = self._file(task.id)
        if file.exists():
            self._check_same(file, record)
        else:
            _files.write(file, data)
        return task.id

    def add(self, search: Any, X: Any, y: Any = None) -> str:
        """Append what a fitted search found, such as a GridSearchCV of the past.

        Parameters
        ----------
        search : fitted search
            GridSearchCV, RandomizedSearchCV, their halving versions, or anything with ``cv_results_``,
            ``estimator`` and one of ``param_grid``, ``param_distributions``, ``space``. Of a halving
            search only the candidates with the most resources count.
        X, y
            The data it was fitted to.

        Returns
        -------
        str
            The id of the new task.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the search is not fitted.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import GridSearchCV
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> archive = Archive()
        >>> name = archive.add(GridSearchCV(SVC(), {"C": [0.1, 1, 10]}).fit(X, y), X, y)
        >>> len(archive[name].trials)
        3
        """
        self._check_writable()
        return self.append(task_from_search(search, X, y, keep=self.keep))

    def _check_writable(self) -> None:
        if self.readonly:
            raise PermissionError(f"{self!r} is readonly: nothing can be written to it.")

    @staticmethod
    def _check_same(file: Path, record: dict[str, Any]) -> None:
        try:
            same = identity(task_to_record(read_task(file))) == identity(record)
        except RecordError:
            same = False
        if not same:
            raise ValueError(f"There is another record of this id: {file}. A record is never overwritten.")
