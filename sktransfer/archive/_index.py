"""What `select` needs of thousands of records, in one file, so that it need not open them all.

``index/heads.joblib`` holds, per record, the name, size and time of its file, the record without trials and
profile, and, where somebody has asked, what tells whether it can have seen today's rows (see `_rows`). A
reader who had to open some files writes it anew, aside and renamed; a writer of many records adds a part of
its own, ``index/part-<random>.joblib``, which the next such reader takes in. Nobody depends on them. They are
disposable, and untrusted like every file: read by the same reader, checksummed, used only for files whose
size and time are still the same, and as good as not there if anything is wrong with them.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import uuid
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from time import time_ns as now
from typing import Any

from sktransfer.archive import _checksum, _storage
from sktransfer.archive._reader import MAX_BYTES, loads_plain, read_task
from sktransfer.archive._record import _check_containers, _check_space, is_id
from sktransfer.archive._stored import Head
from sktransfer.exceptions import RecordError
from sktransfer.task import Task

INDEX_FORMAT = 3
"""Raised when the columns change: an index of another format is not used, and written anew."""

MIN_OPENED, SHARE_NEW = 16, 1 / 16
"""Files that a reader had to open, and the share of all that are new, before an index is worth writing."""

MIN_WRITTEN = 256
"""Records that one process has written before a part of the index is worth writing."""

MAX_HALVES = 8 * 2**20
"""Bytes of an index for what tells rows apart: enough for 700 records, the newest, or more of small data."""

MAX_PARTS = 8
"""Parts from which on a reader makes one file of them."""

MAX_DIRECTORIES = 8
SETTLED = 2 * 10**9
"""Nanoseconds after which a change of a folder has a time of its own: the next one will have another."""

_COLUMNS = (
    "size",
    "time",
    "created",
    "shared",
    "complete",
    "format",
    "n_trials",
    "n_ok",
    "has_profile",
    "continues",
    "halves",
)


_known: dict[str, dict[str, Head]] = {}  # by directory, then by id: what this process has read
_settled: dict[str, int] = {}  # by directory: when the folder that `_known` tells of was last changed
_written: dict[str, dict[str, Head]] = {}  # the same of what it has written, and no index holds yet
_news: dict[str, tuple[int, list[Path]]] = {}  # by directory: how many heads are new, the files of the index


def note(directory: Path, task: Task, file: Path) -> None:
    """Remember a record that was just written; of every `MIN_WRITTEN` of them a part of the index is made."""
    key, facts = os.fspath(directory), file.lstat()
    written = _written.setdefault(key, {})
    shared = {_text(part): part for part in _distinct(list(written.values()))}
    head = written[task.id] = _head_of(task, facts.st_size, facts.st_mtime_ns, shared)
    if (known := _known.get(key)) is not None:
        known[task.id] = head
    if len(written) >= MIN_WRITTEN:
        _written.pop(key, None)
        with contextlib.suppress(OSError):  # a cache, as below
            _storage.write(_file(directory, f"part-{uuid.uuid4().hex}"), _storage.dump(_to_plain(written)))


def heads(directory: Path) -> Iterator[tuple[str, Head | RecordError]]:
    """The id of every record file of an archive with its head, or with what is wrong with it."""
    key, tasks = os.fspath(directory), directory / "tasks"
    changed = _changed(tasks)
    settled = _known.get(key)
    if settled is not None and _settled.get(key) == changed:
        yield from list(settled.items())
        return
    parts: list[Path] = []
    known = _known.pop(key, None)
    if known is None:
        parts, known = _read_index(directory)
    found: dict[str, Head] = {}
    n_new = n_bad = 0
    shared = {_text(part): part for part in _distinct(known.values())}
    for id, size, time in _listed(tasks):
        head = known.get(id)
        if head is None or (head.size, head.time) != (size, time):
            try:
                head = _head_of(read_task(tasks / (id + _storage.SUFFIX)), size, time, shared)
            except FileNotFoundError:  # removed by somebody since the directory was listed
                continue
            except RecordError as error:
                yield id, error
                n_bad += 1
                continue
            n_new += 1
        found[id] = head
        yield id, head
    if len(_known) >= MAX_DIRECTORIES:
        _known.clear()
    _known[key] = found
    # A folder that is not there yet, or not any more, is never settled.
    _settled[key] = changed if changed and not n_bad and now() - changed > SETTLED else -1
    _news[key] = n_new, parts


def keep(directory: Path) -> None:
    """Write the index anew if it is worth it, after `heads`, and after some of the records were opened."""
    key = os.fspath(directory)
    found, (n_new, parts) = dict(_known.get(key, {})), _news.pop(key, (0, []))  # others may add to it
    learned = [head for head in _newest(found.values()) if head.learned]
    due = n_new >= max(MIN_OPENED, SHARE_NEW * len(found)) or len(parts) > MAX_PARTS
    if not due and len(learned) < MIN_OPENED:
        return
    with contextlib.suppress(OSError):  # a cache: whoever cannot write it reads the records as before
        _storage.write(_file(directory), _storage.dump(_to_plain(found)))
        for part in parts:
            if part != _file(directory):
                _storage.remove(part)
        for head in learned:
            head.learned = False


def _changed(folder: Path) -> int:
    """When a file came to a folder or went, in nanoseconds; 0 if there is no such folder."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _distinct(heads: Iterable[Head]) -> list[dict[str, Any]]:
    """The dicts that heads share, each once."""
    return list({id(head.shared): head.shared for head in heads}.values())


def _listed(tasks: Path) -> list[tuple[str, int, int]]:
    """Ids, sizes and times of change of the record files, by id. No paths: making them would take longest."""
    found = []
    try:
        with os.scandir(tasks) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(_storage.SUFFIX) and name[0] != ".":
                    with contextlib.suppress(FileNotFoundError):
                        facts = entry.stat(follow_symlinks=False)
                        found.append((name.removesuffix(_storage.SUFFIX), facts.st_size, facts.st_mtime_ns))
    except FileNotFoundError:
        return []
    return sorted(found)


def _head_of(task: Task, size: int, time: int, shared: dict[str, dict]) -> Head:
    common = {"space": task.space, "metrics": list(task.metrics), "versions": task.versions}
    common = shared.setdefault(_text(common), common)
    return Head(
        size,
        time,
        task.created,
        common,
        task.complete,
        task.format,
        n_trials=len(task.trials),
        n_ok=sum(trial.status == "ok" for trial in task.trials),
        has_profile=task.profile is not None,
        continues=" ".join(filter(is_id, task.continues)),
    )


def _text(common: dict[str, Any]) -> str:
    return json.dumps(common)


# -- the files -----------------------------------------------------------------------------------


def _file(directory: Path, name: str = "heads") -> Path:
    return directory / "index" / (name + _storage.SUFFIX)


def _to_plain(found: dict[str, Head]) -> dict[str, Any]:
    parts = _distinct(found.values())
    shared = {id(part): number for number, part in enumerate(parts)}
    columns: dict[str, Any] = {
        name: [getattr(head, name) for head in found.values()]
        for name in _COLUMNS
        if name not in ("shared", "created")
    }
    columns["shared"] = [shared[id(head.shared)] for head in found.values()]
    told = {id(head) for head in _newest(found.values())}
    columns["halves"] = [head.halves if id(head) in told else "" for head in found.values()]
    # One text instead of thousands: the reader looks through it at once.
    columns["id"] = "\n".join(found)
    columns["created"] = "\n".join(head.created.replace("\n", " ") for head in found.values())
    return {"index": INDEX_FORMAT, "parts": parts, "columns": columns}


def _newest(heads: Collection[Head]) -> list[Head]:
    """Of the heads that tell rows apart the last ones, as many as there is room for."""
    room, kept = MAX_HALVES, []
    for head in reversed([head for head in heads if head.halves]):
        room -= len(head.halves)
        if room < 0:
            break
        kept.append(head)
    return kept


def _read_index(directory: Path) -> tuple[list[Path], dict[str, Head]]:
    """The files of the index, and heads by id; of a file that anything is wrong with there are none."""
    found: dict[str, Head] = {}
    folder, n_bytes = directory / "index", 0
    try:
        files = [] if folder.is_symlink() else _storage.record_files(folder)
    except OSError:  # a file in its place, or nobody may look into it
        files = []
    for file in files:
        try:
            facts = file.lstat()
            n_bytes += facts.st_size
            if not stat.S_ISREG(facts.st_mode) or n_bytes > MAX_BYTES:
                continue
            data = file.read_bytes()
            if _checksum.is_sealed(data):
                found |= _from_plain(loads_plain(data))
        except Exception:  # a stranger's file can hold any plain data, in any shape
            continue
    return files, found


def _from_plain(plain: Any) -> dict[str, Head]:
    _check_containers(plain)
    if plain["index"] != INDEX_FORMAT:
        return {}
    parts, columns = plain["parts"], dict(plain["columns"])
    for part in parts:
        _check_space(part["space"])
        lists = [part["metrics"], list(part["versions"].values())]
        if not all(type(text) is str for values in lists for text in values) or not part["metrics"]:
            raise ValueError("not the index of an archive")
    ids, columns["created"] = columns["id"].split("\n"), columns["created"].split("\n")
    for name in ("size", "time", "shared", "format", "n_trials", "n_ok"):
        if set(map(type, columns[name])) - {int} or min(columns[name], default=0) < 0:
            raise ValueError("not the index of an archive")
    if set(map(type, columns["continues"])) | set(map(type, columns["halves"])) != {str}:
        raise ValueError("not the index of an archive")
    columns["shared"] = [parts[number] for number in columns["shared"]]
    flags = set(map(type, columns["complete"])) | set(map(type, columns["has_profile"]))
    if not all(map(is_id, ids)) or flags - {bool}:
        raise ValueError("not the index of an archive")
    rows = zip(*(columns[name] for name in _COLUMNS), strict=True)
    return {id: Head(*row) for id, row in zip(ids, rows, strict=True)}
