"""The journal of a fit under way, ``running/<id>.jsonl``: each finished candidate is on disk before the next.

A line is a checksum, a space and JSON, between newlines. The first two lines are the same header (what the
fit is about: a task record without trials, and who writes), so that no single damaged line takes the file
with it. Then comes a line per finished candidate. A line that does not match its checksum is left out.

A journal has one writer for life. Whoever takes up a search that was killed writes a journal of their own,
so there is nothing to lock. The file is opened anew for each line: a folder that was removed is noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import stat
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sktransfer.archive import _storage
from sktransfer.archive._record import LARGEST, SMALLEST, is_id, record_to_task, task_to_record
from sktransfer.exceptions import NewerFormatError, RecordError
from sktransfer.task import Task, Trial

JOURNAL_FORMAT = 1
"""To be raised when a reader of the old number would misread a line; see `task.TASK_FORMAT` for the task."""

SUFFIX = ".jsonl"
MAX_BYTES = 24 * 2**20
MAX_VALUES = 600_000
"""Values in one file, counted before anything is made of them: ten thousand candidates have 400,000.

Half of both is for the results of single folds. Where they are more, candidates are noted without them, and
evaluated again when the search is taken up.
"""

_DIGEST_BYTES = 8


class Journal:
    """The journal of one fit; nothing is written before the first `sync`.

    Parameters
    ----------
    path : Path
        The file, which must not be there.
    task : Task
        What the fit is about. Its trials are not written.
    """

    def __init__(self, path: Path, task: Task):
        self.path = path
        header = {"journal": JOURNAL_FORMAT, "task": _without_trials(task), "writer": _writer(os.getpid())}
        self._waiting = [_line(header)] * 2
        self._made = False
        self._n = 0
        self._bytes, self._values = (sum(map(size, self._waiting)) for size in (len, _count_values))

    def add(self, trial: Trial, folds: Any) -> None:
        """Put a finished candidate, with the results of each of its folds, into the next `sync`."""
        record: dict[str, Any] = task_to_record(Task((trial,), {}))
        [plain] = record["trials"]
        for kept, share in ((folds, 0.5), (None, 1.0)):
            line = _line({"n": self._n, "trial": plain, "folds": kept})
            n_bytes, n_values = self._bytes + len(line), self._values + _count_values(line)
            if n_bytes <= share * MAX_BYTES and n_values <= share * MAX_VALUES:  # else nobody would read it
                self._waiting.append(line)
                self._bytes, self._values = n_bytes, n_values
                break
        self._n += 1

    def sync(self) -> None:
        """Write what was added; it is safe on disk when this returns."""
        if self._made and not self._waiting:
            return
        is_new = not self._made
        if is_new:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _storage.refuse_link(self.path.parent)
        # Only created once: a file that somebody removed must not come back without its header.
        with self.path.open("xb" if is_new else "r+b") as file:
            self._made = True
            file.seek(0, os.SEEK_END)
            file.write(b"".join(self._waiting))
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            _storage.sync_directory(self.path.parent)
        self._waiting = []

    def remove(self) -> None:
        """Delete the file, once its trials are in a record."""
        if self._made:
            with contextlib.suppress(OSError):  # beside its record a journal does no harm
                _storage.remove(self.path)


class Journals:
    """The journals in an archive.

    Parameters
    ----------
    directory : Path
    readonly : bool
        Whether to refuse to write.

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
        """The journals by the id of their task, sorted."""
        try:
            names = os.listdir(self.directory)
        except (FileNotFoundError, NotADirectoryError, PermissionError):  # records are read all the same
            return {}
        ids = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        return {id: self.directory / (id + SUFFIX) for id in sorted(filter(is_id, ids))}

    def get(self, id: str) -> Task:
        """The task of this id, as far as it got; FileNotFoundError if there is none."""
        return read_journal(self.directory / (id + SUFFIX))[0]

    def tasks(self, *, at_work: bool = True, but: Callable[[str], bool] = lambda id: False) -> Iterator[Task]:
        """The tasks as far as they got, by id.

        Parameters
        ----------
        at_work : bool
            Whether to include fits that are known to be still at work.
        but : callable
            Whether to leave out an id, because there is a record of it.
        """
        for id, file in self.files().items():
            if but(id):
                continue
            try:
                task, unfinished = read_journal(file)
            except FileNotFoundError:  # the fit has ended since the directory was listed
                continue
            except RecordError as error:
                warnings.warn(f"Skipped a file of the archive, {error}. {error.advice}", stacklevel=2)
                continue
            if task.trials and (at_work or not unfinished):
                yield task

    def start(self, task: Task) -> Journal:
        """A journal for a fit that begins; its record is to be appended under the same id."""
        self._check_writable()
        return Journal(self.directory / (task.id + SUFFIX), task)

    def discard(self, id: str) -> bool:
        """Delete what a killed fit left behind; whether there was anything to delete.

        One that cannot be deleted does no harm, and one whose writer is still at work stays.
        """
        self._check_writable()
        file = self.files().get(id)
        with contextlib.suppress(OSError, RecordError):
            if file is not None and not read_journal(file)[1]:
                _storage.remove(file)
                return True
        return False

    def _check_writable(self) -> None:
        if self.readonly:
            raise PermissionError(
                f"The archive of {self.directory} is readonly: nothing can be written to it."
            )


def read_journal(path: Path) -> tuple[Task, bool]:
    """The task of a journal as far as it got, and whether its writer is known to be still at work.

    Raises
    ------
    RecordError
        If no header is sound, or if what is sound is not about a task.
    FileNotFoundError
        If there is no such file.
    """
    sound = [found for line in _read(path).split(b"\n") if (found := _payload(line)) is not None]
    header = next((each for each in sound if type(each.get("journal")) is int), None)
    if header is None:
        raise RecordError(path, "its header is damaged")
    if header["journal"] > JOURNAL_FORMAT:
        raise NewerFormatError(path, header["journal"], JOURNAL_FORMAT)
    if type(header.get("task")) is not dict:
        raise RecordError(path, "its header holds no task")
    entries = {each["n"]: each for each in sound if type(each.get("n")) is int}
    in_order = [entries[n] for n in sorted(entries)]
    trials = [each.get("trial") for each in in_order]
    task = record_to_task({**header["task"], "trials": trials, "complete": False}, path)
    if task.id != path.stem:
        raise RecordError(path, f"it holds the journal of {task.id!r}, which is not the name of the file")
    if task.resume is not None:
        task = replace(task, resume={**task.resume, "folds": [each.get("folds") for each in in_order]})
    return task, _is_at_work(header.get("writer"))


def _read(path: Path) -> bytes:
    try:
        facts = path.lstat()  # a link may lead out of the archive
        if not stat.S_ISREG(facts.st_mode):
            raise RecordError(path, "it is not a regular file")
        if facts.st_size > MAX_BYTES:
            raise RecordError(path, f"it is larger than {MAX_BYTES // 2**20} MiB, which no journal is")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(path, f"it cannot be read ({error.strerror or error})") from error
    if not data:  # killed before the first word: as good as not there
        raise FileNotFoundError(path)
    if _count_values(data) > MAX_VALUES:
        raise RecordError(path, f"it holds more than {MAX_VALUES} values, which no journal does")
    return data


def _count_values(data: bytes) -> int:
    return sum(map(data.count, (b",", b"[", b"{")))


def _without_trials(task: Task) -> dict[str, Any]:
    record: dict[str, Any] = task_to_record(task)
    return {name: value for name, value in record.items() if name not in ("trials", "complete")}


def _line(payload: dict[str, Any]) -> bytes:
    text = json.dumps(payload, separators=(",", ":")).encode("ascii")
    return b"\n" + _checksum(text) + b" " + text + b"\n"  # a lost newline must not make one line of two


def _payload(line: bytes) -> dict[str, Any] | None:
    """What a line holds; None if it is damaged."""
    checksum, _, text = line.partition(b" ")
    if checksum != _checksum(text):
        return None
    try:
        payload = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):  # with a sound checksum: made by somebody, not by a fault
        return None
    return payload if type(payload) is dict else None


def _integer(digits: str) -> int:
    """As a record holds it: a longer one could not be written to a record."""
    if len(digits) > 20 or not SMALLEST <= (number := int(digits)) <= LARGEST:
        raise ValueError("an integer of more than 64 bits")
    return number


def _checksum(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest().encode("ascii")


# -- is its writer at work? --------------------------------------------------------------------------
# Advice, not a lock: it keeps half of a search that is going on from counting as a past one. Where it is
# wrong (a machine that this one knows nothing of), trials count a little early, and nothing is lost.


def _writer(pid: int) -> dict[str, Any]:
    return {"host": platform.node(), "pid": pid, "started": _started(pid)}


def _started(pid: int) -> str | None:
    """When a process began, so that a number that was given out again is not taken for it; Linux only."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return f"{boot}/{facts[19]}"
    except (OSError, IndexError, ValueError):
        return None


def _is_at_work(writer: Any) -> bool:
    if type(writer) is not dict or type(pid := writer.get("pid")) is not int or not 0 < pid < 2**31:
        return False
    if writer != _writer(pid):  # another machine, or the number belongs to another process now
        return False
    if pid == os.getpid() or os.name != "posix":  # elsewhere os.kill does not only ask
        return pid == os.getpid()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's process: it is there
        return True
    return True
