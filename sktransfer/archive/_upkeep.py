"""The part of `Archive` that looks after what is there: add, verify, merge, export, import, remove, prune."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sktransfer.archive import _exchange, _maintenance, _prune, _storage
from sktransfer.archive._importers import task_from_search
from sktransfer.archive._record import is_id
from sktransfer.archive._table import is_table, task_from_table
from sktransfer.task import Task

if TYPE_CHECKING:
    from sktransfer.archive._journal import Journals
    from sktransfer.archive._remote import Remote


class Upkeep:
    """Methods of `Archive`, which says where the records are."""

    if TYPE_CHECKING:
        path: Any
        keep: str

        @property
        def journals(self) -> Journals: ...

        def _directory(self) -> Path: ...
        def _tasks_directory(self) -> Path: ...
        def _file(self, id: str) -> Path: ...
        def _remote(self) -> Remote | None: ...
        def _refresh(self) -> None: ...
        def _left(self) -> Iterator[Task]: ...
        def _check_writable(self) -> None: ...
        def __iter__(self) -> Iterator[Task]: ...
        def append(self, task: Task) -> str: ...

    def add(self, search: Any, X: Any = None, y: Any = None, **table: Any) -> str:
        """Append what a fitted search found, such as a GridSearchCV of the past, or a table of trials.

        Parameters
        ----------
        search : fitted search or table
            GridSearchCV, RandomizedSearchCV, their halving versions, or anything with ``cv_results_``,
            ``estimator`` and one of ``param_grid``, ``param_distributions``, ``space``. Of a halving
            search only the candidates with the most resources count.
            A table is a DataFrame, a dict of columns or a list of dicts: one row per trial, with the
            parameters, a ``score`` to be maximized and, where known, ``std`` and ``fit_time``; or
            what ``DataFrame(search.cv_results_)`` makes, with all of its metrics. What a column
            ``mean_test_score`` measured only ``metric`` can tell.
        X, y
            The data it was fitted to. A table may go without; nobody can tell then whose rows it saw.
        **table
            For a table only: ``estimator``, without which its parameters have no owner, ``space``, by
            default the values that occur, ``score``, the column of the score, and ``metric``, its name.

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
        if is_table(search):
            return self.append(task_from_table(search, X, y, keep=self.keep, **table))
        if table:
            raise TypeError(f"{', '.join(table)}: a search says that itself; this is for tables only.")
        return self.append(task_from_search(search, X, y, keep=self.keep))

    def verify(self, repair: bool = False) -> list[_maintenance.Finding]:
        """Read every file of the archive, and list what is wrong.

        Parameters
        ----------
        repair : bool, default=False
            Whether to move bad files to the folder ``damaged``. None is deleted, and a record of a newer
            format, which is in order, stays where it is.

        Returns
        -------
        list of Finding
            ``file``, ``problem`` and ``moved``, the new place or None; empty if all is well.

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
        return _maintenance.verify(self, repair)

    def merge(self, other: Any) -> _exchange.ImportReport:
        """Take in every record of another archive, and what killed fits left there; it stays as it is.

        Parameters
        ----------
        other : Archive, str or os.PathLike
            The other archive, or its directory. Bad files and records of a newer format are left out, with
            one warning.

        Returns
        -------
        ImportReport
            ``added`` and ``known``, ids of new and of known records, and ``refused``, with the reasons.
            Under an id that both have, this archive keeps its own record.

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
        source = other if isinstance(other, Upkeep) else type(self)(other, readonly=True)  # type: ignore[call-arg]
        source._refresh()
        folders = [source._directory() / name for name in ("tasks", "running")]
        if source._remote() is None and not any(folder.is_dir() for folder in folders):
            raise FileNotFoundError(2, "There is no archive to merge from", str(source._directory()))
        if source._directory() == self._directory():
            raise ValueError(f"The archive {source._directory()} is to be merged with itself.")
        return _exchange.merge(self, source)

    def export(
        self,
        file: str | os.PathLike[str],
        *,
        samples: bool = False,
        fingerprints: bool = True,
        names: bool = True,
        times: bool = True,
    ) -> int:
        """Write all records to one file, to be given to others.

        Parameters
        ----------
        file : str or os.PathLike
            A new ZIP file; one that is there is replaced.
        samples : bool, default=False
            Whether samples of the data go along, where there are any.
        fingerprints : bool, default=True
            Whether the hashes of rows go along. Without them nobody can tell whose rows a record saw, and
            it may speak only where ``overlap="allow"``.
        names : bool, default=True
            Whether the names that you gave go along: pipeline steps, functions, scorers. The names of
            classes and parameters always do.
        times : bool, default=True
            Whether it is said when a record was made and how long its fits took. Without, it has another id.

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
        >>> archive.export(archive._directory() / "for-you.zip")
        1
        """
        choices = {"samples": samples, "fingerprints": fingerprints, "names": names, "times": times}
        return _exchange.export(self, file, **choices)

    def import_(self, file: str | os.PathLike[str]) -> _exchange.ImportReport:
        """Take in the records of a file that `export` wrote.

        Parameters
        ----------
        file : str or os.PathLike
            The file. It may come from anybody: nothing in it is run.

        Returns
        -------
        ImportReport
            As of `merge`.

        Raises
        ------
        RecordError
            If the file is not an exported archive.

        Examples
        --------
        >>> from sktransfer import Archive
        >>> from sktransfer.task import Task
        >>> archive = Archive()
        >>> name = archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)]))
        >>> n_records = archive.export(archive._directory() / "for-you.zip")
        >>> archive.remove(name)
        >>> archive.import_(archive._directory() / "for-you.zip").added == (name,)
        True
        """
        self._check_writable()
        return _exchange.import_(self, file)

    def remove(self, task: Task | str) -> None:
        """Remove a record for good, or what a killed fit left. A fit that is still at work is not touched.

        Parameters
        ----------
        task : Task or str
            The task, or its id.

        Raises
        ------
        KeyError
            If there is no such record.

        Examples
        --------
        >>> from sktransfer import Archive
        >>> Archive().remove("2001")
        Traceback (most recent call last):
        KeyError: "There is no task '2001' in the archive ..."
        """
        self._check_writable()
        id = task.id if isinstance(task, Task) else task
        self._refresh()
        if is_id(id):
            file, remote = self._file(id), self._remote()
            is_there = file.exists() or file.is_symlink()
            if is_there:
                _storage.refuse_link(file.parent)
                if remote is not None:
                    remote.remove(file.name)
                _storage.remove(file)
            # Also what a killed fit left, which would otherwise come back in its place.
            if self.journals.discard(id) or is_there:
                return
        raise KeyError(f"There is no task {id!r} in the archive {self._directory()}.")

    def prune(
        self,
        *,
        older_than: Any = None,
        keep_newest: int | None = None,
        max_records: int | None = None,
        dry_run: bool = False,
    ) -> list[str]:
        """Remove records that are old or too many. A record goes if any of the rules says so.

        Parameters
        ----------
        older_than : float, timedelta, datetime or None
            Age in days, or a moment: records that were made before go. One without a readable date stays.
        keep_newest : int or None
            How many records of one estimator on one data set stay.
        max_records : int or None
            How many records stay in all, the newest ones.
        dry_run : bool, default=False
            Whether only to say what would go.

        Returns
        -------
        list of str
            Ids of the records that went, or would go, oldest first.

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
        gone = _prune.superfluous(self, older_than, keep_newest, max_records)
        for id in () if dry_run else gone:
            try:
                self.remove(id)
            except KeyError:  # somebody was quicker
                continue
        return gone
