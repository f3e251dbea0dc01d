"""The journal of a running search, ``running/<id>.jsonl``.

Each finished candidate is on disk before the next one is evaluated. A line is a checksum, a space
and JSON, between newlines. The first two lines are the same header (a task record without trials,
and the process that writes), so that no single damaged line makes the file unreadable. Then follows
one line per finished candidate. A line that does not match its checksum is ignored.

A journal has only one writer ever. A search that resumes a killed one writes its own journal, so no
locks are needed. The file is opened again for each line, so that a removed folder is noticed.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sktransfer.archive import _storage
from sktransfer.archive._key import has_open_hashes
from sktransfer.archive._record import (
    MAX_INTEGER,
    MIN_INTEGER,
    is_beginning,
    is_id,
    record_to_task,
    task_to_record,
)
from sktransfer.dataset._disclosure import limit_disclosure
from sktransfer.exceptions import NewerFormatError, RecordError
from sktransfer.task import Task, Trial
from sktransfer.utils._hashing import hash_bytes
from sktransfer.utils._values import Plain

JOURNAL_FORMAT = 1
"""Raise it when a reader of the old number would misread a line. The task has its own number."""

SUFFIX = ".jsonl"
MAX_BYTES = 24 * 2**20
MAX_VALUES = 600_000
"""Most values in one file, counted before they are parsed. Ten thousand candidates have 400,000.

Half of both limits is for the results of single folds. Beyond it, candidates are written without
their folds, and are evaluated again if the search is resumed.
"""

MAX_LINES = 200_000
"""Most newlines in one file. Ten thousand candidates have 20,000."""

SECONDS_OF_A_DAY = 24 * 3600
_DIGEST_BYTES = 8


class Journal:
    """The journal of one search. Nothing is written before the first `sync`.

    Parameters
    ----------
    path : Path
        The file, which must not exist.
    task : Task
        The task of the search. Its trials are not written.
    """

    def __init__(self, path: Path, task: Task):
        self.path = path
        header = {
            "journal": JOURNAL_FORMAT,
            "task": _without_trials(task),
            "writer": _describe_process(os.getpid()),
        }
        self._pending = [_make_line(header)] * 2
        self._exists = False
        self._n_trials = 0
        self._n_bytes, self._n_values = (
            sum(map(size, self._pending)) for size in (len, _count_values)
        )

    def add(self, trial: Trial, folds: Plain) -> None:
        """Add a finished candidate, with the results of its folds, to the next `sync`."""
        record: dict[str, Any] = task_to_record(Task((trial,), {}))
        [plain] = record["trials"]
        for kept, share in ((folds, 0.5), (None, 1.0)):
            line = _make_line({"n": self._n_trials, "trial": plain, "folds": kept})
            n_bytes, n_values = self._n_bytes + len(line), self._n_values + _count_values(line)
            # A longer file would be refused by the reader.
            if n_bytes <= share * MAX_BYTES and n_values <= share * MAX_VALUES:
                self._pending.append(line)
                self._n_bytes, self._n_values = n_bytes, n_values
                break
        self._n_trials += 1

    def sync(self) -> None:
        """Write what was added. It is synced to disk when this returns."""
        if self._exists and not self._pending:
            return
        data = b"".join(self._pending)
        if not self._exists:
            # With its header at once, so that no reader takes a running search for a damaged file.
            _storage.write_file(self.path, data, new=True)
            self._exists = True
        else:
            # Not created again: a file that was removed must not come back without its header.
            with self.path.open("r+b") as file:
                file.seek(0, os.SEEK_END)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        self._pending = []

    def remove(self) -> None:
        """Delete the file. Call this when its trials are in a record."""
        if self._exists:
            # Next to its record, a journal does no harm.
            with contextlib.suppress(*_storage.FAULTS):
                _storage.remove_file(self.path)


class Journals:
    """The journals in an archive.

    Parameters
    ----------
    directory : Path
        Where the files are.
    readonly : bool, default=False
        Whether writing is an error.

    Examples
    --------
    >>> import tempfile
    >>> journals = Journals(Path(tempfile.mkdtemp()))
    >>> journal = journals.start(Task.from_trials({"C": [1, 10]}, [], id="begun"))
    >>> journal.add(Trial.make({"C": 1}, 0.9), folds=[])
    >>> journal.sync()
    >>> [len(task.trials) for task in journals.tasks()]
    [1]
    """

    def __init__(self, directory: Path, *, readonly: bool = False):
        self.directory = directory
        self.readonly = readonly

    def files(self) -> dict[str, Path]:
        """Return the journal files by the id of their task, sorted."""
        try:
            names = os.listdir(self.directory)
        except _storage.FAULTS:  # records can still be read
            return {}
        ids = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        return {id: self.directory / (id + SUFFIX) for id in sorted(filter(is_id, ids))}

    def get(self, id: str) -> Task:
        """Return the task of this id with its trials so far; FileNotFoundError if there is none."""
        return read_journal(self.directory / (id + SUFFIX))[0]

    def tasks(
        self, *, include_running: bool = True, is_recorded: Callable[[str], bool] = lambda id: False
    ) -> Iterator[Task]:
        """Yield the tasks with their trials so far, by id.

        Parameters
        ----------
        include_running : bool
            Whether to include searches that are known to be running still.
        is_recorded : callable
            Whether an id has a record, in which case its journal is left out.
        """
        for id, file in self.files().items():
            if is_recorded(id):
                continue
            try:
                task, is_running = _storage.read_unless_refused(file, read_journal)
            except FileNotFoundError:  # the search has ended since the directory was listed
                continue
            except RecordError as error:
                _storage.warn_skipped(error)
                continue
            if task.trials and (include_running or not is_running):
                yield task

    def start(self, task: Task) -> Journal:
        """Return the journal of a search that begins. Its record must have the same id later."""
        self._check_writable()
        if has_open_hashes(task.profile):
            raise PermissionError(
                "the key of the archive cannot be read or written, and hashes of rows are not "
                "written without it"
            )
        return Journal(self.directory / (task.id + SUFFIX), task)

    def discard(self, id: str) -> bool:
        """Delete the journal of a killed search. Return whether there was one.

        A file that cannot be deleted does no harm. The journal of a running search stays.
        """
        self._check_writable()
        file = self.files().get(id)
        with contextlib.suppress(*_storage.FAULTS, RecordError):
            if file is not None and not read_journal(file)[1]:
                _storage.remove_file(file)
                return True
        return False

    def discard_recorded(self, record: Task) -> None:
        """Delete the journal of a search that was killed after it had written its record.

        It stays if its search is running, if it has a trial that the record does not have, or if
        the record came from elsewhere.
        """
        if self.readonly or record.origin:
            return
        with contextlib.suppress(*_storage.FAULTS, RecordError):
            file = self.directory / (record.id + SUFFIX)
            task, is_running = read_journal(file)
            if not is_running and is_beginning(task, record):
                _storage.remove_file(file)

    def may_run_elsewhere(self, id: str) -> bool:
        """Whether a journal was written on another machine less than a day ago."""
        file = self.directory / (id + SUFFIX)
        with contextlib.suppress(*_storage.FAULTS, RecordError):
            is_recent = time.time() - file.lstat().st_mtime < SECONDS_OF_A_DAY
            writer = _read_header(_read_lines(file), file).get("writer")
            return is_recent and type(writer) is dict and writer.get("host") != platform.node()
        return False

    def _check_writable(self) -> None:
        if self.readonly:
            raise PermissionError(
                f"The archive of {self.directory} is readonly, nothing can be written to it."
            )


def read_journal(path: Path) -> tuple[Task, bool]:
    """Read the task of a journal with its trials so far, and whether its search is running still.

    Raises
    ------
    RecordError
        If no header is intact, or if the intact lines do not describe a task.
    FileNotFoundError
        If the file does not exist.
    """
    intact = _read_lines(path)
    header = _read_header(intact, path)
    entries = {each["n"]: each for each in intact if type(each.get("n")) is int}
    in_order = [entries[n] for n in sorted(entries)]
    trials = [each.get("trial") for each in in_order]
    task = record_to_task({**header["task"], "trials": trials, "complete": False}, path)
    if task.id != path.stem:
        raise RecordError(path, f"it holds the journal of {task.id!r}, not the one of its name")
    if task.resume is not None:
        task = replace(
            task, resume={**task.resume, "folds": [each.get("folds") for each in in_order]}
        )
    return task, _is_running(header.get("writer"))


def _read_lines(path: Path) -> list[dict[str, Any]]:
    lines = re.findall(rb"[^\n]+", _read(path))
    return [found for line in lines if (found := _parse_line(line)) is not None]


def _read_header(lines: list[dict[str, Any]], path: Path) -> dict[str, Any]:
    header = next((each for each in lines if type(each.get("journal")) is int), None)
    if header is None:
        raise RecordError(path, "its header is damaged")
    if header["journal"] > JOURNAL_FORMAT:
        raise NewerFormatError(path, header["journal"], JOURNAL_FORMAT)
    if type(header.get("task")) is not dict:
        raise RecordError(path, "its header holds no task")
    return header


def _read(path: Path) -> bytes:
    data = _storage.read_bounded(path, MAX_BYTES)
    if not data:  # killed before the first byte was written
        raise FileNotFoundError(path)
    if data.count(b"\n") > MAX_LINES:
        raise RecordError(path, f"it has more than {MAX_LINES} lines, more than any journal")
    if _count_values(data) > MAX_VALUES:
        raise RecordError(path, f"it holds more than {MAX_VALUES} values, more than any journal")
    return data


def _count_values(data: bytes) -> int:
    return sum(map(data.count, (b",", b"[", b"{")))


def _without_trials(task: Task) -> dict[str, Any]:
    if task.profile is not None:
        task = replace(task, profile=limit_disclosure(task.profile))
    record: dict[str, Any] = task_to_record(task)
    return {name: value for name, value in record.items() if name not in ("trials", "complete")}


def _make_line(payload: dict[str, Any]) -> bytes:
    text = json.dumps(payload, separators=(",", ":")).encode("ascii")
    # Newlines on both sides: a lost newline must not join two lines.
    return b"\n" + _checksum(text) + b" " + text + b"\n"


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the content of a line; None if it is damaged."""
    checksum, _, text = line.partition(b" ")
    if checksum != _checksum(text):
        return None
    try:
        payload = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):  # with a valid checksum: made on purpose, not by damage
        return None
    return payload if type(payload) is dict else None


def _integer(digits: str) -> int:
    """Parse an integer of at most 64 bits, as a record may hold."""
    if len(digits) > 20 or not MIN_INTEGER <= (number := int(digits)) <= MAX_INTEGER:
        raise ValueError("an integer of more than 64 bits")
    return number


def _checksum(text: bytes) -> bytes:
    return hash_bytes(text, _DIGEST_BYTES).hex().encode("ascii")


# -- is the search running? ----------------------------------------------------------------------
# This is not a lock. It only keeps the first half of a running search from being used as a past
# task. Where it is wrong (on another machine), trials are used a little early, and nothing is lost.


def _describe_process(pid: int) -> dict[str, Any]:
    return {"host": platform.node(), "pid": pid, "started": _start_of_process(pid)}


def _start_of_process(pid: int) -> str | None:
    """Return when a process began, because process numbers are reused; on Linux only."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return f"{boot}/{fields[19]}"
    except (OSError, IndexError, ValueError):
        return None


def _is_running(writer: object) -> bool:
    if type(writer) is not dict or type(pid := writer.get("pid")) is not int or not 0 < pid < 2**31:
        return False
    if writer != _describe_process(pid):  # another machine, or the number has been reused
        return False
    if (
        pid == os.getpid() or os.name != "posix"
    ):  # on other systems, os.kill(pid, 0) ends the process
        return pid == os.getpid()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists, but belongs to another user
        return True
    return True
