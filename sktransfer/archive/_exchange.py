"""Exchange of records: merge two archives, export records to one file, import them.

An export is a ZIP file of records, ``tasks/<id>.joblib``, which any program can open. It may come
from an untrusted source. The list of members, the size of each member and the ratio of compression
are bounded before anything is unpacked, and each record goes through the usual reader.

Records that come from elsewhere say so (`Task.origin`), and lose what ``resume=True`` needs: the
scores of another person must not pass for one's own. Hashes of rows are left out of an export,
unless both sides have agreed on a key. The file ``seal`` in the export then holds its salt and id.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sktransfer.archive._anonymize import keep_continuation, redact
from sktransfer.archive._key import SALT_BYTES, ArchiveKey, read_key, reseal_plain
from sktransfer.archive._plain_pickle import MAX_BYTES, dumps_plain
from sktransfer.archive._record import is_continuation, is_same_search, task_to_record
from sktransfer.archive._storage import (
    SUFFIX,
    Storage,
    atomic_write,
    check_zip_end,
    open_bounded,
    parse_record,
    read_record,
)
from sktransfer.dataset._disclosure import limit_disclosure
from sktransfer.exceptions import ArchiveWarning, RecordError
from sktransfer.task import Task
from sktransfer.utils._progress_line import track
from sktransfer.utils._user_warnings import warn_user

MAX_RECORDS = 40_000
MAX_RATIO = 100
"""Largest ratio of a record to its compressed form. Numbers shrink by a factor of 2 to 10."""

MAX_IMPORT_BYTES = 2**34
_MAX_LIST_BYTES = 4 * 2**20  # of the list of members at the end of the file
_FOLDER, _SEAL = "tasks/", "seal"
_SEAL_CONTENT = re.compile(rb"([0-9a-f]{32}) ([0-9a-f]{16})")
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""For other methods, zipfile unpacks a whole block at once, however large it becomes."""

_Record = Path | tuple[Path, Callable[[], bytes]]
"""A record by its file, or by a name and a function that returns its bytes."""


@dataclass(frozen=True)
class ImportReport:
    """The result of a merge or an import.

    Parameters
    ----------
    added : tuple of str
        Ids of the new records.
    known : tuple of str
        Ids of the records that the archive had already.
    refused : tuple of str
        For each record that was refused, where it was and why.

    Examples
    --------
    >>> ImportReport(("a", "b"), ("c",), ()).added
    ('a', 'b')
    """

    added: tuple[str, ...]
    known: tuple[str, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True)
class _Reception:
    """How records of another source are changed before they are added.

    Parameters
    ----------
    origin : str
        See `Task.origin`.
    source_key, own_key : ArchiveKey or None
        Keys with which the hashes of rows are sealed there and here. If either is unknown, the
        hashes are left out.
    """

    origin: str
    source_key: ArchiveKey | None
    own_key: ArchiveKey | None

    def change(self, task: Task) -> Task:
        profile = reseal_plain(task.profile, self.source_key, self.own_key)
        return replace(
            task,
            origin=self.origin,
            resume=keep_continuation(task.resume),
            profile=None if profile is None else limit_disclosure(profile),
        )


def merge_records(
    storage: Storage, source: Storage, unfinished: Iterable[Task], source_name: str
) -> ImportReport:
    """Add the records of another archive. See `Archive.merge`.

    Parameters
    ----------
    storage, source : Storage
        Of the archive that is added to, and of the other one.
    unfinished : iterable of Task
        Tasks of the other archive that have no record, because their search was killed.
    source_name : str
        The name of the other archive, for warnings.
    """
    if not source.exists("tasks", "running"):
        raise FileNotFoundError(2, "There is no archive to merge from", str(source.directory))
    if source.directory == storage.directory:
        raise ValueError(f"The archive {source.directory} cannot be merged with itself.")
    records = [*source.files(), *_make_records(unfinished)]
    origin = f"merged from {source_name}"
    reception = _Reception(origin, _key_of_source(source), read_key(storage, create=True))
    return _add_records(storage, records, source_name, reception)


def _key_of_source(source: Storage) -> ArchiveKey | None:
    """Return the key of another archive; None if this user cannot read it."""
    try:
        return read_key(source)
    except (RecordError, OSError):
        return None


def export_tasks(
    tasks: Iterable[Task],
    file: str | os.PathLike[str],
    own_key: ArchiveKey | None,
    key: str | bytes | None,
    **choices: bool,
) -> int:
    """Write tasks to a ZIP file. See `Archive.export`.

    Parameters
    ----------
    tasks : iterable of Task
    file : str or os.PathLike
    own_key : ArchiveKey or None
        With which the hashes of the tasks are sealed.
    key : str, bytes or None
        With which they are sealed in the file.
    **choices
        As for `redact`.
    """
    tasks = list(tasks)
    if len(tasks) > MAX_RECORDS:
        raise ValueError(f"A file holds at most {MAX_RECORDS} records, but there are {len(tasks)}.")
    target = Path(os.path.realpath(os.path.expanduser(file)))  # a link stays a link
    if target.is_dir():
        raise IsADirectoryError(f"An archive is exported to a file, but {target} is a directory.")
    if target.exists() and not target.is_file():  # /dev/null, for instance, would be replaced
        raise OSError(f"An archive is exported to a file, but {target} is not a regular file.")
    buffer = io.BytesIO()
    shared, seal = (None, b"") if key is None else _make_shared_key(key)
    n_records = 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as content:
        if shared is not None:
            content.writestr(zipfile.ZipInfo(_SEAL), seal)
        for task in tasks:
            try:
                task = replace(task, profile=reseal_plain(task.profile, own_key, shared))
                record = redact(task_to_record(task), **choices)
            except (TypeError, ValueError) as error:  # a journal made by hand
                message = f"The task {task.id} was not exported: {error}"
                warn_user(message, ArchiveWarning)
                continue
            # The member has no date, which would show when it was exported.
            member = zipfile.ZipInfo(f"{_FOLDER}{record['id']}{SUFFIX}")
            data = dumps_plain(record)
            # If it shrinks too much, `import_records` would refuse it.
            is_suspicious = len(data) > _max_size(len(zlib.compress(data, wbits=-15)))
            member.compress_type = zipfile.ZIP_STORED if is_suspicious else zipfile.ZIP_DEFLATED
            content.writestr(member, data)
            n_records += 1
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(target, buffer.getvalue())
    return n_records


def _make_shared_key(passphrase: str | bytes) -> tuple[ArchiveKey, bytes]:
    """Return the key of one export, and what the file says of it."""
    salt = secrets.token_bytes(SALT_BYTES)
    shared = ArchiveKey.from_passphrase(passphrase, salt)
    return shared, f"{salt.hex()} {shared.id}".encode()


def _read_shared_key(
    content: zipfile.ZipFile, passphrase: str | bytes | None, path: Path
) -> ArchiveKey | None:
    """Return the key of an exported file; None if none is given. Raise an error if it is wrong."""
    if passphrase is None:
        return None
    members = [member for member in content.infolist() if member.filename == _SEAL]
    if not members:
        raise ValueError(f"{path} contains no hashes of rows. Import it without a key.")
    if not (found := _SEAL_CONTENT.fullmatch(_unpack(content, members[0], path / _SEAL))):
        raise RecordError(path, "it is not an exported archive (its seal is damaged)")
    shared = ArchiveKey.from_passphrase(passphrase, bytes.fromhex(found[1].decode()))
    if shared.id != found[2].decode():
        raise ValueError(f"The key is not the one with which {path} was exported.")
    return shared


def import_records(
    storage: Storage, file: str | os.PathLike[str], key: str | bytes | None
) -> ImportReport:
    """Add the records of a ZIP file. See `Archive.import_`."""
    path = Path(os.path.realpath(os.path.expanduser(file)))  # the user may name a link
    with open_bounded(path, MAX_IMPORT_BYTES) as stream:
        try:
            size, n_members = check_zip_end(stream, _MAX_LIST_BYTES)
            content = zipfile.ZipFile(stream)
            members = content.infolist()
            packed = sum(member.compress_size for member in members)
            # The same bytes could be listed, and read, many times.
            has_duplicates = len({member.filename for member in members}) < len(members)
            if len(members) != n_members or has_duplicates or packed > size:
                raise ValueError("its list of members is invalid")
            if n_members > MAX_RECORDS:
                raise ValueError(f"it lists more than {MAX_RECORDS} records")
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise RecordError(path, f"it is not an exported archive ({error})") from None
        with content:
            shared, own = _read_shared_key(content, key, path), read_key(storage, create=True)
            reception = _Reception(f"imported from {path.name}", shared, own)
            records = [*_list_members(content, path)]
            return _add_records(storage, records, str(path), reception)


def _add_records(
    storage: Storage, records: Sequence[_Record], source_name: str, reception: _Reception
) -> ImportReport:
    """Add records to an archive.

    A record that exists is not overwritten. There is one exception: if it came from elsewhere, is
    incomplete, and the new one continues it, the search was still running when it was copied.
    """
    storage.refresh()
    added: list[str] = []
    known: set[str] = set()
    refused: list[str] = []
    for record in track(records, "Adding records"):
        try:
            if isinstance(record, Path):
                task = read_record(record)[0]
            else:
                place, read = record
                task = parse_record(read(), place)
            problem = _add_task(storage, reception.change(task), known)
        except FileNotFoundError:
            continue
        except (RecordError, TypeError) as error:
            problem = str(error)
        if problem is not None:
            refused.append(problem)
        elif task.id not in known:
            added.append(task.id)
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        message = f"Some records of {source_name} were refused: {refused[0]}{more}."
        warn_user(message, ArchiveWarning)
    return ImportReport(tuple(added), tuple(sorted(known)), tuple(refused))


def _add_task(storage: Storage, task: Task, known: set[str]) -> str | None:
    """Add one record, or note its id if it is `known`. Return why it was refused, if it was."""
    there = storage.find(task.id)
    if there is None:
        try:
            storage.write(task.id, dumps_plain(task_to_record(task)), new=True)
            return None
        except FileExistsError:  # since `find`
            there = storage.find(task.id)
    if isinstance(there, Task):
        if is_same_search(there, task):
            known.add(task.id)
            return None
        if there.origin and is_continuation(task, there):
            storage.write(task.id, dumps_plain(task_to_record(task)))
            return None
        return f"{task.id}: the archive has another record of this id, and keeps it"
    advice = "verify(repair=True) moves it, then this record can be added"
    return f"{task.id}: the archive's own file of this id is damaged; {advice}"


def _make_records(tasks: Iterable[Task]) -> Iterator[_Record]:
    """Make records of tasks that have no record file: the journals of killed searches."""
    for task in tasks:
        with contextlib.suppress(TypeError):  # a journal made by hand, which no record can hold
            data = dumps_plain(task_to_record(task))
            yield Path(task.id + SUFFIX), partial(bytes, data)


def _list_members(content: zipfile.ZipFile, path: Path) -> Iterator[_Record]:
    for member in content.infolist():
        name = member.filename.removeprefix(_FOLDER)
        if not name or not member.filename.startswith(_FOLDER) or "/" in name or "\\" in name:
            continue
        place = path / name  # for messages; the reader checks that the id is the name
        yield place, partial(_unpack, content, member, place)


def _max_size(n_packed: int) -> int:
    """Return the largest size of a record that takes so many bytes in the file."""
    return min(MAX_BYTES, MAX_RATIO * n_packed + 4096)


def _unpack(content: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path) -> bytes:
    max_size = _max_size(member.compress_size)
    if member.file_size > max_size:
        raise RecordError(place, f"its size, {member.file_size} bytes, is too large")
    if member.compress_type not in _COMPRESSIONS:
        raise RecordError(place, "its compression is not the one of exported records")
    try:
        with content.open(member) as stream:
            return stream.read(max_size)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RuntimeError,
        NotImplementedError,
        OSError,
        ValueError,  # a name that is no text
        struct.error,
    ) as error:
        raise RecordError(place, f"it cannot be unpacked ({error})") from None
