"""`Archive`: a directory of past tasks.

``tasks/<id>.joblib`` holds one record per finished search, which never changes. There are no locks:
any number of processes may append and read at once, and merging two archives is copying files.
``running/<id>.jsonl`` is the journal of a running search, or of one that was killed (see
`_journal`). ``models/`` caches surrogates that were trained on the records (see `_model_cache`),
and ``index/`` caches what `select` needs to know of them (see `_index`). Both may be deleted. An
archive at an address (``s3://...``) works on a local copy (see `_remote`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sktransfer.archive._encoding import encode_task
from sktransfer.archive._exchange import (
    ImportReport,
    export_tasks,
    import_records,
    merge_records,
)
from sktransfer.archive._importers import FittedSearch, Table
from sktransfer.archive._index import add_entry, save_if_worthwhile
from sktransfer.archive._journal import Journals
from sktransfer.archive._key import ArchiveKey, read_key, read_key_or_warn
from sktransfer.archive._listing import find_similar, list_tasks, merge_by_id, read_tasks
from sktransfer.archive._locations import (
    archive_directory,
    is_default_directory,
    is_remote,
    is_switched_off,
    resolve_path,
    starter_directory,
)
from sktransfer.archive._maintenance import Age, Finding, find_problems, ids_to_prune
from sktransfer.archive._model_cache import ModelCache
from sktransfer.archive._record import is_id, is_same_task
from sktransfer.archive._remote import check_installed, open_storage
from sktransfer.archive._selection import (
    Limit,
    ProfileLike,
    Selection,
    SpaceLike,
    describe_space,
    select_past_tasks,
)
from sktransfer.archive._sources import find_equal, task_from_source
from sktransfer.archive._starter import Starter
from sktransfer.archive._storage import (
    FAULTS,
    Storage,
    parse_record,
    read_task,
)
from sktransfer.archive._summary import summarize_task
from sktransfer.exceptions import RecordError
from sktransfer.task import Task

if TYPE_CHECKING:
    import pandas

FIRST_RECORD = (
    "sktransfer: the first search was added to your archive, {}. Later searches learn from it. "
    "archive=None, or SKTRANSFER_ARCHIVE=none in the environment, turns this off."
)


class Archive:
    """Past tasks on disk.

    The constructor touches no file. A directory that does not exist is an empty archive, and the
    first `append` creates it. Reading runs no code, whatever the source of the files.

    Parameters
    ----------
    path : str or os.PathLike, default="auto"
        The directory. "auto" is the user's own archive: the path in the environment variable
        ``SKTRANSFER_ARCHIVE``, or a folder in the user's data directory. If the variable is
        ``none``, there is no such archive. An address that fsspec
        knows is allowed as well, such as ``s3://bucket/past``
        (``pip install 'sktransfer[remote]'``).
    keep : {"sketch", "sample"}, default="sketch"
        What `add` stores of the data: a sketch that contains no row, or a sample of the rows.
    readonly : bool, default=False
        Whether writing is an error.
    overlap : {"exclude", "allow"} or float, default="exclude"
        How `select` treats tasks that share rows with the target's data. "exclude" excludes them,
        "allow" uses them. A number in [0, 1] is the share of common rows at which a task is
        excluded. With 0, a single common row excludes it.
    starter : bool, default=True
        Whether `select` also uses the starter archive, the tasks that ship with the package. They
        do not belong to this archive, and ``len`` does not count them.

    Attributes
    ----------
    path : Path, str or None
        The directory, or the address. None if the user's own archive is switched off.

    Notes
    -----
    Iterating yields the tasks by id, oldest first. The trials of killed searches are included, as
    incomplete tasks. Tasks are shared within the process, so do not edit the dicts in them. A file
    that is not a valid record is skipped with a warning.

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
        starter: bool = True,
    ) -> None:
        if path == "":
            raise ValueError("An archive needs a path. '.' is the working directory.")
        self._path = path
        self.keep = keep
        self.readonly = readonly
        self.overlap = overlap
        self.starter = starter
        if is_remote(path):
            check_installed(os.fspath(path))

    @property
    def path(self) -> Path | str | None:
        """The directory or address; None if the archive is switched off."""
        return None if self.is_switched_off else resolve_path(self._path)

    @property
    def is_switched_off(self) -> bool:
        """Whether it is the user's own archive and ``SKTRANSFER_ARCHIVE=none``."""
        return is_switched_off(self._path)

    def resolved(self) -> Archive:
        """Return the same archive, even if the working directory or the environment changes."""
        fixed = copy(self)
        fixed._path = resolve_path(self._path)
        return fixed

    def _key(self) -> tuple[str, str, bool, float | str, bool]:
        return os.fspath(self._path), self.keep, self.readonly, self.overlap, self.starter

    def __repr__(self) -> str:
        _, keep, readonly, overlap, starter = self._key()
        path = os.fspath(self._path)
        with contextlib.suppress(RuntimeError):  # there is no home directory
            path = os.fspath(self.path or path)
        options = ", keep=" + repr(keep) if keep != "sketch" else ""
        options += ", readonly=True" if readonly else ""
        options += ", overlap=" + repr(overlap) if overlap != "exclude" else ""
        options += ", starter=False" if not starter else ""
        return f"Archive({path!r}{options})"

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Archive) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _directory(self) -> Path:
        return archive_directory(self._path)

    def _open(self, refresh: bool = False) -> Storage:
        """Return the storage of the records, after an update of the local copy if asked for."""
        storage = open_storage(self._path)
        if refresh:
            storage.refresh()
        return storage

    def open_key(self) -> ArchiveKey | None:
        """Return the key that seals the hashes in the records, made if there is none yet.

        Returns
        -------
        ArchiveKey or None
            None if the archive is readonly and has no key.

        Raises
        ------
        RecordError, OSError
            If the key cannot be read or written.

        Examples
        --------
        >>> archive = Archive()
        >>> archive.open_key() == archive.open_key(), Archive("none", readonly=True).open_key()
        (True, None)
        """
        return read_key(self._open(), create=not self.readonly)

    def _starter(self) -> Starter:
        return Starter(starter_directory() if self.starter else None)

    def _check_writable(self) -> None:
        if self.readonly:
            raise PermissionError(f"{self!r} is readonly, nothing can be written to it.")

    # -- reading ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Number of record files. None of them is opened."""
        return self._open(refresh=True).count()

    def __bool__(self) -> bool:
        """True, because an empty archive can be written to."""
        return True

    def __contains__(self, id: object) -> bool:
        storage = self._open(refresh=True)
        return isinstance(id, str) and is_id(id) and storage.file(id).is_file()

    def __iter__(self) -> Iterator[Task]:
        storage = self._open(refresh=True)
        return merge_by_id(read_tasks(storage.files()), self._unfinished(storage))

    def _listed(self, storage: Storage) -> Iterator[Task]:
        """Yield all tasks by id. Where the index knows a record, it is not read."""
        return merge_by_id(list_tasks(storage), self._unfinished(storage))

    def _unfinished(self, storage: Storage) -> Iterator[Task]:
        """Yield the tasks of killed searches that have no record.

        Tidy up the journals of those that have one: they were killed before they removed it.
        """
        journals = self.journals

        def is_recorded(id: str) -> bool:
            if not storage.file(id).exists():
                return False
            with contextlib.suppress(*FAULTS, RecordError):
                journals.discard_recorded(read_task(storage.file(id)))
            return True

        return journals.tasks(include_running=False, is_recorded=is_recorded)

    def find_searches(self, digests: Mapping[str, str | None]) -> list[Task]:
        """Return the searches of this archive that have much in common with another one.

        Only these records are read. Records that came from elsewhere are left out, because the
        scores of another person are not this user's results.

        Parameters
        ----------
        digests : dict
            What the other search is about, as ``Task.resume["problem"]`` has it.

        Returns
        -------
        list of Task
            Those that agree in two of the data, the target and the estimator, by id.

        Examples
        --------
        >>> Archive().find_searches({"the data": "0" * 32})
        []
        """
        tasks = chain(self.journals.tasks(), self._listed(self._open(refresh=True)))
        return find_similar(tasks, digests)

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
            If its file is not a valid record.

        Examples
        --------
        >>> Archive().get("2001")
        Traceback (most recent call last):
        KeyError: "There is no task '2001' in the archive ..."
        """
        if is_id(id):
            storage = self._open(refresh=True)
            with contextlib.suppress(FileNotFoundError):
                return read_task(storage.file(id))
            with contextlib.suppress(FileNotFoundError):  # a search that is running, or was killed
                return self.journals.get(id)
            if task := self._starter().get(id):
                return task
        raise KeyError(f"There is no task {id!r} in the archive {self._directory()}.")

    __getitem__ = get

    def select(
        self,
        space: SpaceLike = None,
        profile: ProfileLike = None,
        *,
        overlap: float | str | None = None,
        extra_tasks: Iterable[Task] = (),
        limit: Limit | None = None,
        starter: bool = True,
    ) -> Selection:
        """Select the past tasks to use for a target task.

        Parameters
        ----------
        space : Space, its ``describe()`` or None
            The space to be searched. A task must be about the same estimator and have a tuned
            parameter in common; its metric may be another. With None, neither is required.
        profile : DatasetProfile, its ``to_dict()``, a sequence of them or None
            The target's data. A task that saw rows of any of them is excluded. If the task or the
            target has no profile, this is unknown, and the task is used.
        overlap : {"exclude", "allow"}, float or None, default=None
            As for `Archive`. None means the archive's own setting.
        extra_tasks : iterable of Task
            Tasks that are not in the archive. The same rules apply to them.
        limit : Limit or None
            Use only the tasks with the most similar data. The others are excluded without being
            read, so their rows are not compared.
        starter : bool, default=True
            Whether to use tasks of the starter archive, if the archive itself does.

        Returns
        -------
        Selection
            ``used``, the tasks by id, those of the starter archive last, and ``excluded``, pairs of
            a task and the reason.

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
        target = describe_space(space)
        storage = self._open(refresh=True)
        tasks = list(self._listed(storage))
        if starter:
            tasks += self._starter().candidates(target, profile)
        if extra := list(extra_tasks):
            known = {task.id for task in tasks}
            tasks += [task for task in extra if task.id not in known]
        key = read_key_or_warn(storage)
        selection = select_past_tasks(tasks, target, profile, overlap, key, limit)
        if not self.readonly:
            save_if_worthwhile(storage.directory)
        return selection

    @property
    def model_cache(self) -> ModelCache:
        """The cached surrogates that were trained on tasks of this archive.

        Examples
        --------
        >>> Archive("past", readonly=True).model_cache.get({"surrogate": "A"}, ["t1"]) is None
        True
        """
        return ModelCache(self._directory() / "models", readonly=self.readonly)

    @property
    def journals(self) -> Journals:
        """The journals of running searches, and of those that were killed.

        Examples
        --------
        >>> list(Archive("past").journals.tasks())
        []
        """
        return Journals(self._directory() / "running", readonly=self.readonly)

    # -- writing ---------------------------------------------------------------------------------

    def append(self, task: Task) -> str:
        """Write the record of a finished search. It is written completely or not at all.

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
            If something in the task is not plain data. The message says where.
        ValueError
            If the task is invalid, or if there is another one of the same id.
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
            raise TypeError(
                f"An archive holds tasks, not a {type(task).__name__}. See Task.from_trials."
            )
        storage = self._open(refresh=True)
        data, written = encode_task(task, partial(read_key, storage, create=True))
        there = storage.find(task.id)
        is_first = is_default_directory(self.path) and not storage.exists("tasks")
        if there is None:
            try:
                storage.write(task.id, data, new=True)
            except FileExistsError:  # since `find`
                storage.refresh()
                there = storage.find(task.id)
            else:
                with contextlib.suppress(Exception):  # the index is a cache, the record is written
                    add_entry(storage.directory, written, storage.file(task.id))
                if is_first:
                    print(FIRST_RECORD.format(storage.directory), file=sys.stderr)
                return task.id
        file = storage.file(task.id)
        if not isinstance(there, Task) or not is_same_task(there, parse_record(data, file)):
            raise ValueError(f"There is another record of this id, which is kept: {file}.")
        return task.id

    def add(
        self,
        search: FittedSearch | Table | str | os.PathLike[str],
        X: object = None,
        y: object = None,
        *,
        name: str = "",
        **table: Any,
    ) -> str:
        """Append the results of a fitted search, such as GridSearchCV, or a table of trials.

        Parameters
        ----------
        search : fitted search, table or path
            GridSearchCV, RandomizedSearchCV, their halving versions, or any object with
            ``cv_results_``, ``estimator`` and one of ``param_grid``, ``param_distributions``,
            ``space``. Of a halving search, only the candidates with the most resources are used.
            A table is a DataFrame, a dict of columns or a list of dicts. It has one row per trial,
            with the parameters, a ``score`` to be maximized and, if known, ``std`` and
            ``fit_time``. ``DataFrame(search.cv_results_)`` is a table as well, with all of its
            metrics. Pass ``metric`` to say which one ``mean_test_score`` is. A path is that of a
            CSV file. Also accepted are BayesSearchCV, OptunaSearchCV, Optuna studies and their
            ``trials_dataframe()``, ``mlflow.search_runs()`` and a `TransferOptimizer`.
        X, y
            The data that the search was fitted to. They are optional for a table, but without
            them the rows are unknown.
        name : str
            What you call the search. It is shown wherever its id is.
        **table
            For a table only: ``estimator``, without which its parameters have no canonical names;
            ``space``, by default the values that occur; ``score``, the column of the score;
            ``metric``, its name; ``direction``, "maximize" or "minimize".

        Returns
        -------
        str
            The id of the new task, or of the same one, if it was added before.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the search is not fitted.

        Examples
        --------
        >>> from sktransfer import Archive
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
        task = task_from_source(search, X, y, keep=self.keep, table=table)
        known = find_equal(list_tasks(self._open(refresh=True)), task)
        return known or self.append(replace(task, name=name))

    def to_frame(self) -> pandas.DataFrame:
        """Return a table of the records, oldest first: one row per search.

        Examples
        --------
        >>> from sktransfer import Archive, Task
        >>> archive = Archive()
        >>> task = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)], name="first")
        >>> name = archive.append(task)
        >>> archive.to_frame()[["name", "n_trials", "best"]]
            name  n_trials  best
        0  first         1   0.9
        """
        import pandas as pd

        columns = list(summarize_task(Task((), {"predictors": []})))
        return pd.DataFrame(self.summaries(), columns=columns)

    def summaries(self) -> list[dict[str, Any]]:
        """Return what `to_frame` shows of each task, oldest first. The index knows it.

        Examples
        --------
        >>> Archive().summaries()
        []
        """
        return list(map(summarize_task, self._listed(self._open(refresh=True))))

    def remove(self, task: Task | str) -> None:
        """Delete a record, or the journal of a killed search. A running search is not touched.

        Parameters
        ----------
        task : Task or str
            The task, or its id.

        Raises
        ------
        KeyError
            If there is no such task.

        Examples
        --------
        >>> from sktransfer import Archive
        >>> Archive().remove("2001")
        Traceback (most recent call last):
        KeyError: "There is no task '2001' in the archive ..."
        """
        self._check_writable()
        id = task.id if isinstance(task, Task) else task
        storage = self._open(refresh=True)
        if is_id(id):
            has_record = storage.remove(id)
            # The journal as well, which would otherwise take the place of the record.
            if self.journals.discard(id) or has_record:
                return
        raise KeyError(f"There is no task {id!r} in the archive {storage.directory}.")

    # -- maintenance and exchange ----------------------------------------------------------------

    def verify(self, repair: bool = False) -> list[Finding]:
        """Read every file of the archive, and list what is wrong.

        Parameters
        ----------
        repair : bool, default=False
            Whether to move invalid files to the folder ``damaged``. Nothing is deleted. A record of
            a newer format is valid and stays where it is.

        Returns
        -------
        list of Finding
            ``file``, ``problem`` and ``moved``, the new place or None. Empty if all files are
            valid.

        Examples
        --------
        >>> from sktransfer import Archive
        >>> from sktransfer.task import Task
        >>> archive = Archive()
        >>> name = archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)]))
        >>> archive.verify()
        []
        """
        if repair:
            self._check_writable()
        return find_problems(self._open(), repair)

    def merge(self, other: Archive | str | os.PathLike[str]) -> ImportReport:
        """Add every record of another archive, and the journals of its killed searches.

        The other archive is not changed. Its records are past tasks for later searches here, and
        ``resume=True`` never continues them.

        Parameters
        ----------
        other : Archive, str or os.PathLike
            The other archive, or its directory. Invalid files and records of a newer format are
            refused, with one warning.

        Returns
        -------
        ImportReport
            ``added`` and ``known``, the ids of new and of known records, and ``refused``, with the
            reasons. If both archives have an id, this one keeps its own record.

        Raises
        ------
        FileNotFoundError
            If there is no archive in that directory.

        Examples
        --------
        >>> from sktransfer import Archive
        >>> one, other = Archive(), Archive("past/other")
        >>> one.merge(other)
        Traceback (most recent call last):
        FileNotFoundError: [Errno 2] There is no archive to merge from: '...other'
        """
        self._check_writable()
        source = other if isinstance(other, Archive) else type(self)(other, readonly=True)
        storage = source._open(refresh=True)
        return merge_records(self._open(), storage, source._unfinished(storage), str(source.path))

    def export(
        self,
        file: str | os.PathLike[str],
        *,
        key: str | bytes | None = None,
        samples: bool = False,
        names: bool = True,
        times: bool = True,
        overwrite: bool = False,
    ) -> int:
        """Write all records to one file, which can be shared.

        Parameters
        ----------
        file : str or os.PathLike
            The ZIP file.
        key : str, bytes or None, default=None
            A passphrase that you share with the reader of the file. With it, the hashes of rows are
            included, and only those who know it can compare them with their own data. None leaves
            the hashes out. It is then unknown to the reader which rows a record saw.
        samples : bool, default=False
            Whether to include samples of the data, if there are any.
        names : bool, default=True
            Whether to include the names that you chose: searches, pipeline steps, functions,
            scorers. The names of classes and parameters are always included.
        times : bool, default=True
            Whether to include the date of a record and the times of its fits. Without, it gets
            another id.
        overwrite : bool, default=False
            Whether to replace an existing file.

        Returns
        -------
        int
            Number of records in the file.

        Examples
        --------
        >>> from sktransfer import Archive
        >>> from sktransfer.task import Task
        >>> archive = Archive()
        >>> name = archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)]))
        >>> archive.export(archive._directory() / "shared.zip")
        1
        """
        storage = self._open(refresh=True)
        if not storage.exists():
            raise FileNotFoundError(2, "There is no archive to export", str(storage.directory))
        if not overwrite and os.path.isfile(os.path.expanduser(file)):
            raise FileExistsError(
                errno.EEXIST, "The file exists. Pass overwrite=True to replace it", os.fspath(file)
            )
        own_key = read_key_or_warn(storage)
        return export_tasks(self, file, own_key, key, samples=samples, names=names, times=times)

    def import_(
        self, file: str | os.PathLike[str], *, key: str | bytes | None = None
    ) -> ImportReport:
        """Add the records of a file that `export` wrote.

        The records are past tasks for later searches. ``resume=True`` never continues them.

        Parameters
        ----------
        file : str or os.PathLike
            The file. It may come from any source, because nothing in it is run.
        key : str, bytes or None, default=None
            The passphrase with which the file was exported. Without it, hashes of rows in the file
            are left out.

        Returns
        -------
        ImportReport
            As for `merge`.

        Raises
        ------
        RecordError
            If the file is not an exported archive.
        ValueError
            If the file was exported with another key, or without one.

        Examples
        --------
        >>> from sktransfer import Archive
        >>> from sktransfer.task import Task
        >>> archive = Archive()
        >>> name = archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)]))
        >>> n_records = archive.export(archive._directory() / "shared.zip")
        >>> archive.remove(name)
        >>> archive.import_(archive._directory() / "shared.zip").added == (name,)
        True
        """
        self._check_writable()
        return import_records(self._open(), file, key)

    def prune(
        self,
        *,
        older_than: Age = None,
        keep_newest: int | None = None,
        max_records: int | None = None,
        origin: str | None = None,
        dry_run: bool = False,
    ) -> list[str]:
        """Remove records that are old or too many. A record is removed if any of the rules says so.

        The journal of a search that may be running on another machine stays.

        Parameters
        ----------
        older_than : float, timedelta, datetime or None
            Age in days, or a moment. Records made before it are removed. Records without a readable
            date stay.
        keep_newest : int or None
            How many records of one estimator on one data set to keep.
        max_records : int or None
            How many records to keep in all, the newest ones. Dates in the future count as unknown.
        origin : str or None
            Remove all records that came from there: ``"imported from a.zip"``, or ``"a.zip"``.
        dry_run : bool, default=False
            Whether to return the ids without removing anything.

        Returns
        -------
        list of str
            Ids of the removed records, oldest first.

        Examples
        --------
        >>> from sktransfer import Archive
        >>> from sktransfer.task import Task
        >>> archive = Archive()
        >>> name = archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)]))
        >>> archive.prune(older_than=365), archive.prune(max_records=0, dry_run=True) == [name]
        ([], True)
        """
        if not dry_run:
            self._check_writable()
        tasks = [task for task in self if not self.journals.may_run_elsewhere(task.id)]
        ids = ids_to_prune(tasks, older_than, keep_newest, max_records, origin)
        for id in () if dry_run else ids:
            with contextlib.suppress(KeyError):  # removed by another process
                self.remove(id)
        return ids
