"""Files of an archive: how they are read and written.

Every file is written under a temporary name, synced and renamed, so that it is there completely or
not at all. No locks are needed. Every file is read by `read_bounded`, because an archive may come
from an untrusted source.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn, TypeVar

from sktransfer.archive._plain_pickle import MAX_BYTES, loads_plain
from sktransfer.archive._record import record_to_task
from sktransfer.exceptions import ArchiveWarning, RecordError
from sktransfer.task import Task
from sktransfer.utils._user_warnings import warn_user
from sktransfer.utils._values import Plain

SUFFIX = ".joblib"
DAMAGED_FOLDER = "damaged"

FAULTS = (OSError, MemoryError)
"""What the system raises if it cannot use a file now. The file itself may be intact."""

MAX_KEY_BYTES = 1024
T = TypeVar("T")
MAX_CACHED_RECORDS, MAX_CACHED_BYTES = 16384, 16 * 2**20  # of files; ten times that in memory


# -- folders -------------------------------------------------------------------------------------


def record_files(directory: Path) -> list[Path]:
    """List record files, sorted by id. Files that are being written begin with a dot."""
    return [directory / (id + SUFFIX) for id in sorted(_record_ids(directory))]


def count_records(directory: Path) -> int:
    """Count record files, without making thousands of paths."""
    return len(_record_ids(directory))


def _record_ids(directory: Path) -> list[str]:
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, UnicodeEncodeError):  # a name that this system cannot have
        return []
    return [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX) and name[0] != "."]


# -- bytes ---------------------------------------------------------------------------------------


def describe_fault(error: Exception) -> str:
    """Say what the system could not do."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    return getattr(error, "strerror", None) or str(error)


def _refuse(path: Path, fault: Exception) -> NoReturn:
    """Raise the error of a file that cannot be read now. Its cause is an OSError."""
    reason = describe_fault(fault)
    cause = fault if isinstance(fault, OSError) else OSError(errno.ENOMEM, reason)
    raise RecordError(path, f"it cannot be read ({reason})") from cause


@contextlib.contextmanager
def refuse_unreadable(path: Path) -> Iterator[None]:
    """Inside, a fault becomes a RecordError. A file that does not exist is no fault."""
    try:
        yield
    except FileNotFoundError:
        raise
    except FAULTS as fault:
        _refuse(path, fault)


@contextlib.contextmanager
def open_bounded(path: Path, max_bytes: int) -> Iterator[BinaryIO]:
    """Open a regular file of at most `max_bytes` for reading.

    Raises
    ------
    RecordError
        If it is a link, which may lead out of the archive, or a pipe, which would block; if it is
        too large; if it cannot be read.
    FileNotFoundError
        If it does not exist.
    """
    with refuse_unreadable(path):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise RecordError(path, "it is not a regular file")
        if status.st_size > max_bytes:
            raise RecordError(path, f"it is larger than {max_bytes // 2**20} MiB")
        with path.open("rb") as file:
            yield file


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Read a regular file of at most `max_bytes`. Errors are those of `open_bounded`."""
    with open_bounded(path, max_bytes) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:  # it has grown since it was opened
        raise RecordError(path, f"it is larger than {max_bytes // 2**20} MiB")
    return data


def check_zip_end(file: BinaryIO, max_list_bytes: int) -> tuple[int, int]:
    """Check the last record of a ZIP file. Return the file's size and its number of members.

    `ZipFile` makes an object of each listed member, so this must come first: a list of more than
    `max_list_bytes` is refused. So is a comment at the end, and the ZIP64 format, which refers to
    another list.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 42))
    tail = file.read(42)
    end = tail[-22:]
    if end[:4] != b"PK\5\6" or end[-2:] != b"\0\0" or tail[:4] == b"PK\6\7":
        raise ValueError("it does not end like a ZIP file")
    if int.from_bytes(end[12:16], "little") > max_list_bytes:
        raise ValueError("it lists too many members")
    return size, int.from_bytes(end[10:12], "little")


def write_file(path: Path, data: bytes, new: bool = False, mode: int = 0o666) -> None:
    """Write a file of the archive, as `atomic_write`, and make its folder if necessary."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        reject_symlink(path.parent)
        atomic_write(path, data, new, mode)
    except PermissionError as error:
        raise PermissionError(
            error.errno,
            "The archive cannot be written to. Pass another path, or readonly=True",
            str(path.parent),
        ) from error
    sync_directory(path.parent)


def atomic_write(path: Path, data: bytes, new: bool = False, mode: int = 0o666) -> None:
    """Write a file under a temporary name, and rename it when it is complete and synced to disk.

    With `new`, raise a FileExistsError if the file exists, even if it has just been created. `mode`
    are its permissions, of which the umask takes some away.
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}-{uuid.uuid4().hex}.tmp")
    try:
        opener = partial(os.open, mode=mode)
        with open(temporary, "xb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not new or not _rename_to_new(temporary, path):
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _rename_to_new(temporary: Path, path: Path) -> bool:
    """Rename a file unless the new name is taken. False if the file system cannot do that."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # no hard links here; if the disk fails, `os.replace` will say so
        if path.exists():
            raise FileExistsError(errno.EEXIST, "The file exists", str(path)) from None
        return False
    temporary.unlink()
    return True


def reject_symlink(folder: Path) -> None:
    """Raise an OSError if a folder of the archive is a link: it may lead out of the archive."""
    if folder.is_symlink():
        raise OSError(
            errno.ELOOP,
            "This folder is a link, which may lead out of the archive. Nothing in it is changed",
            folder,
        )


def remove_file(file: Path) -> None:
    """Delete a file of the archive. A file that does not exist is no error."""
    reject_symlink(file.parent)
    file.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Sync a new name to disk, where the system can (Windows opens no directories)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# -- records -------------------------------------------------------------------------------------


def read_task(path: Path) -> Task:
    """Read one record file. If this process has read the same file before, return it from memory.

    Raises
    ------
    RecordError
        If the file is not a valid record under its own name.
    FileNotFoundError
        If it does not exist.
    """
    with refuse_unreadable(path):
        status = path.lstat()
    key = (os.fspath(path), status.st_size, status.st_mtime_ns)
    task = _cache.get(key)
    if task is None:
        task = read_unless_refused(path, read_record)[0]
        _cache.put(key, task)
    return task


def read_unless_refused(path: Path, read: Callable[[Path], T]) -> T:
    """Read a file, but raise the same error again if it was refused before and is unchanged."""
    with refuse_unreadable(path):
        status = path.lstat()
    key = (os.fspath(path), status.st_size, status.st_mtime_ns)
    if key in _refused:
        error, arguments = _refused[key]
        raise error(*arguments)
    try:
        with refuse_unreadable(path):
            return read(path)
    except RecordError as error:
        if not isinstance(error.__cause__, OSError):  # else it may be readable the next time
            if len(_refused) >= MAX_CACHED_RECORDS:
                _refused.clear()
            _refused[key] = type(error), error.__reduce__()[1]
        raise


def read_record(path: Path) -> tuple[Task, bytes]:
    """As `read_task`, but always from disk, and with the bytes that were checked."""
    data = read_bounded(path, MAX_BYTES)
    return parse_record(data, path), data


def parse_record(data: bytes, path: Path) -> Task:
    """Make a task from the bytes of a record file. `path` gives its name, for the error as well."""
    task = record_to_task(_loads(data, path), path)
    if task.id != path.stem:
        raise RecordError(path, f"it holds the record {task.id!r}, not the one of its name")
    return task


def read_plain(path: Path) -> Plain:
    """Read the plain data in a file that is not a record. Errors are those of `read_task`."""
    return _loads(read_bounded(path, MAX_BYTES), path)


def _loads(data: bytes, path: Path) -> Plain:
    try:
        return loads_plain(data, needs_checksum=True)
    except MemoryError as fault:
        _refuse(path, fault)
    except ValueError as error:
        raise RecordError(path, str(error)) from None


def warn_skipped(error: RecordError) -> None:
    """Warn that a file is skipped."""
    message = f"Skipped a file of the archive, {error}. {error.advice}"
    warn_user(message, ArchiveWarning)


class _Cache:
    """Tasks by (path, size, time of change). Records never change, so an entry is never wrong."""

    def __init__(self) -> None:
        self.tasks: dict[tuple[str, int, int], Task] = {}
        self.n_bytes = 0

    def get(self, key: tuple[str, int, int]) -> Task | None:
        return self.tasks.get(key)

    def put(self, key: tuple[str, int, int], task: Task) -> None:
        if len(self.tasks) >= MAX_CACHED_RECORDS or self.n_bytes + key[1] > MAX_CACHED_BYTES:
            # An archive that is larger than the cache is read in order, again and again. Dropping
            # the oldest entries one by one would give no more hits than dropping them all.
            self.tasks.clear()
            self.n_bytes = 0
        self.tasks[key] = task
        self.n_bytes += key[1]


_cache = _Cache()
_refused: dict[tuple[str, int, int], tuple] = {}  # (path, size, time) -> error and its arguments


class Storage:
    """The records in a local directory. See `_remote.RemoteStorage` for those at an address.

    Parameters
    ----------
    directory : Path
        The directory of the archive.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tasks = directory / "tasks"
        self.key_file = directory / "key"

    def file(self, id: str) -> Path:
        """Return the record file of an id, whether or not it exists."""
        return self.tasks / (id + SUFFIX)

    def files(self) -> list[Path]:
        """List the record files, sorted by id."""
        return record_files(self.tasks)

    def count(self) -> int:
        """Number of record files."""
        return count_records(self.tasks)

    def exists(self, *folders: str) -> bool:
        """Whether the directory exists, and in it one of `folders`, if any are given."""
        return any((self.directory / folder).is_dir() for folder in folders or ("",))

    def read_key_file(self) -> bytes | None:
        """Return the content of the archive's key file; None if there is none."""
        try:
            return read_bounded(self.key_file, MAX_KEY_BYTES)
        except FileNotFoundError:
            return None

    def write_key_file(self, data: bytes) -> None:
        """Write the key file, readable for its owner only, unless there is one already."""
        with contextlib.suppress(FileExistsError):
            write_file(self.key_file, data, new=True, mode=0o600)

    def refresh(self) -> None:
        """Update the local copy. A local archive needs none."""

    def fetch_all(self) -> dict[str, str]:
        """Fetch all records again. Return the files that cannot be fetched, and why."""
        return {}

    def find(self, id: str) -> Task | RecordError | None:
        """Read the task of an id from disk. Return None if there is none, an error if invalid."""
        try:
            return read_record(self.file(id))[0]
        except FileNotFoundError:
            return None
        except RecordError as error:
            return error

    def write(self, id: str, data: bytes, new: bool = False) -> None:
        """Write the bytes of a record. With `new`, a FileExistsError if there is one of this id."""
        write_file(self.file(id), data, new)

    def remove(self, id: str) -> bool:
        """Remove a record. Return whether there was one."""
        file = self.file(id)
        if not os.path.lexists(file):
            return False
        remove_file(file)
        return True

    def is_damaged(self, file: Path) -> bool:
        """Check once more whether a file is damaged. For a local file, this is certain."""
        return True

    def set_aside(self, file: Path) -> str:
        """Move a file, folder or link to where no reader looks. Return its new place.

        Nothing there is overwritten.
        """
        reject_symlink(file.parent)
        folder = self.directory / DAMAGED_FOLDER
        folder.mkdir(exist_ok=True)
        reject_symlink(folder)
        target = folder / file.name
        if os.path.lexists(target):
            target = folder / f"{file.name}.{uuid.uuid4().hex[:8]}"
        os.rename(file, target)
        return str(target)
