"""Records from one archive to another: merged from a directory, or exported to one file and imported.

An export is a ZIP file of records, ``tasks/<id>.joblib``, so that anybody can look into it. It may come from
a stranger: the list of members, each member's size and the ratio of compression are bounded before anything
is unpacked, and each record goes through the same reader as any.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from sktransfer.archive import _storage
from sktransfer.archive._anonymize import redact
from sktransfer.archive._reader import MAX_BYTES, read_record, task_of
from sktransfer.archive._record import task_to_record
from sktransfer.exceptions import RecordError
from sktransfer.task import Task
from sktransfer.utils._values import identity

MAX_RECORDS = 40_000
MAX_RATIO = 100
"""How much smaller than a record its compressed form may be. Numbers shrink by a factor of 2 to 10."""

_MAX_LIST_BYTES = 4 * 2**20  # of the list of members at the end of the file
_FOLDER = "tasks/"


@dataclass(frozen=True)
class ImportReport:
    """What came of records that were to be taken in.

    Parameters
    ----------
    added : tuple of str
        Ids of the new records.
    known : tuple of str
        Ids of those that were there already.
    refused : tuple of str
        For each that was not taken, where it was and why.

    Examples
    --------
    >>> ImportReport(("a", "b"), ("c",), ()).added
    ('a', 'b')
    """

    added: tuple[str, ...]
    known: tuple[str, ...]
    refused: tuple[str, ...]


def receive(
    archive: Any, records: Iterable[Path | tuple[Path, Callable[[], bytes]]], source: str
) -> ImportReport:
    """Take in records, given by their files or by (name, what gives their bytes).

    What is there is not overwritten, unless it is the beginning of what comes: a fit that was at work then.
    """
    archive._check_writable()
    archive._refresh()
    added, known, refused = [], [], []
    for item in records:
        try:
            if isinstance(item, Path):
                task, data = read_record(item)
            else:
                data = item[1]()
                task = task_of(data, item[0])
            there = find(archive, task.id)
            if there is None or _goes_on(task, there):
                archive._write(task.id, data, new=there is None)
                added.append(task.id)
            elif is_record_of(there, task_to_record(task)):
                known.append(task.id)
            elif there == _UNREADABLE:
                advice = "verify(repair=True) moves it aside, then this one can be taken in"
                refused.append(f"{task.id}: the archive's own file of this id is damaged; {advice}")
            else:
                refused.append(f"{task.id}: the archive has another record of this id, which was kept")
        except FileNotFoundError:
            continue
        except FileExistsError:
            refused.append(f"{task.id}: a record of this id came at the same moment, and was kept")
        except RecordError as error:
            refused.append(str(error))
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        warnings.warn(f"Not everything was taken from {source}: {refused[0]}{more}.", stacklevel=4)
    return ImportReport(tuple(added), tuple(known), tuple(refused))


def merge(archive: Any, source: Any) -> ImportReport:
    """Take in the records of another archive; see `Archive.merge`."""
    files = _storage.record_files(source._tasks_directory())
    return receive(archive, chain(files, as_records(source._left())), str(source.path))


def as_records(tasks: Iterable[Task]) -> Iterator[tuple[Path, Callable[[], bytes]]]:
    """Tasks that have no file of their own, as `receive` takes them: journals of killed fits."""
    for task in tasks:
        with contextlib.suppress(TypeError):  # made by somebody: a record cannot hold it
            data = _storage.dump(task_to_record(task))
            yield Path(task.id + _storage.SUFFIX), partial(bytes, data)


_UNREADABLE = "unreadable"


def find(archive: Any, id: str) -> Any:
    """The task of this id as it is on disk, None if there is none."""
    try:
        return read_record(archive._file(id))[0]
    except FileNotFoundError:
        return None
    except RecordError:
        return _UNREADABLE


def is_record_of(there: Any, record: dict[str, Any]) -> bool:
    """Whether what `find` found is this record."""
    return there != _UNREADABLE and identity(task_to_record(there)) == identity(record)


def _goes_on(task: Task, there: Any) -> bool:
    """Whether an incomplete record is the beginning of another of its id."""
    if there == _UNREADABLE or there.complete or len(task.trials) <= len(there.trials):
        return False
    return identity([*map(asdict, task.trials[: len(there.trials)])]) == identity(
        [*map(asdict, there.trials)]
    )


def export(archive: Any, file: str | os.PathLike[str], **choices: bool) -> int:
    """Write the ZIP file; see `Archive.export`."""
    archive._refresh()
    if archive._remote() is None and not archive._directory().is_dir():
        raise FileNotFoundError(2, "There is no archive to export", str(archive._directory()))
    tasks = list(archive)
    if len(tasks) > MAX_RECORDS:
        raise ValueError(f"One file holds up to {MAX_RECORDS} records, and there are {len(tasks)}.")
    target = Path(os.path.realpath(os.path.expanduser(file)))  # a link stays a link
    if target.is_dir():
        raise IsADirectoryError(f"An archive is exported to a file, but {target} is a directory.")
    if target.exists() and not target.is_file():  # it would be replaced by one: /dev/null, too
        raise OSError(f"An archive is exported to a file, and {target} is another thing.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as content:
        for task in tasks:
            try:
                record = redact(task_to_record(task), **choices)
            except (TypeError, ValueError) as error:  # a journal that somebody made by hand
                warnings.warn(f"The task {task.id} was not exported: {error}", stacklevel=4)
                continue
            # Without a date of its own, which would tell when it was exported.
            member = zipfile.ZipInfo(f"{_FOLDER}{record['id']}{_storage.SUFFIX}")
            data = _storage.dump(record)
            packed = zlib.compress(data, wbits=-15)
            small = len(data) > _bound(len(packed))  # so small that `import_` would not trust it
            member.compress_type = zipfile.ZIP_STORED if small else zipfile.ZIP_DEFLATED
            content.writestr(member, data)
    target.parent.mkdir(parents=True, exist_ok=True)
    _storage.write_aside(target, buffer.getvalue())
    return len(content.namelist())


def import_(archive: Any, file: str | os.PathLike[str]) -> ImportReport:
    """Take in the records of a ZIP file; see `Archive.import_`."""
    path = Path(os.path.abspath(os.path.expanduser(file)))
    with path.open("rb") as stream:
        try:
            n_members = _n_members(stream)
            content = zipfile.ZipFile(stream)
            members = content.infolist()
            packed = sum(member.compress_size for member in members)
            # Of some bytes that are listed often, each would be read as often.
            twice = len({member.filename for member in members}) < len(members)
            if len(members) != n_members or twice or packed > stream.seek(0, os.SEEK_END):
                raise ValueError("its list of members is not sound")
            if n_members > MAX_RECORDS:
                raise ValueError(f"it lists more than {MAX_RECORDS} records")
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise RecordError(path, f"it is not an exported archive ({error})") from None
        with content:
            return receive(archive, _unpacked(content, path), str(path))


def _n_members(stream: Any) -> int:
    """Number of members, after a look at the end: ZipFile makes an object of each that is listed."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - 42))
    tail = stream.read(42)
    end = tail[-22:]
    if end[:4] != b"PK\5\6" or end[-2:] != b"\0\0" or tail[:4] == b"PK\6\7":
        raise ValueError("it does not end as one")
    if int.from_bytes(end[12:16], "little") > _MAX_LIST_BYTES:
        raise ValueError(f"it lists more than {MAX_RECORDS} records")
    return int.from_bytes(end[10:12], "little")


def _unpacked(content: zipfile.ZipFile, path: Path) -> Iterator[tuple[Path, Callable[[], bytes]]]:
    for member in content.infolist():
        name = member.filename.removeprefix(_FOLDER)
        place = path / name  # for messages only; that the id is the plain name is checked by the reader
        if not name or not member.filename.startswith(_FOLDER) or "/" in name or "\\" in name:
            continue
        yield place, partial(_bytes, content, member, place)


_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Of the others zipfile unpacks a whole block at once, however large it becomes."""


def _bound(packed: int) -> int:
    """How large a record may be that takes so many bytes in the file."""
    return min(MAX_BYTES, MAX_RATIO * packed + 4096)


def _bytes(content: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path) -> bytes:
    bound = _bound(member.compress_size)
    if member.file_size > bound:
        raise RecordError(place, f"it claims to be {member.file_size} bytes long, which is too much")
    if member.compress_type not in _PACKED:
        raise RecordError(place, "it is compressed in another way than exported records are")
    try:
        with content.open(member) as stream:
            return stream.read(bound)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError) as error:
        raise RecordError(place, f"it cannot be unpacked ({error})") from None
