"""The index: what `select` needs to know of thousands of records, in one file.

``index/entries.joblib`` holds, per record, the name, size and time of its file, the record without
trials and profile, the numbers that its data are compared by (see `_outline`), and, once it has
been needed, the row hashes (see `_lazy_task`). A reader that
had to open some records rewrites the file atomically. A writer of many records adds a part of its
own, ``index/part-<random>.joblib``, which the next such reader merges. The index is a cache that
may be deleted. It is untrusted like every file: it goes through the usual reader, needs a checksum,
and is used only for record files whose size and time are unchanged. An invalid index is ignored.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import uuid
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from time import time_ns
from typing import Any

from sktransfer.archive import _storage
from sktransfer.archive._lazy_task import IndexEntry, search_key
from sktransfer.archive._outline import make_outline, outlines_from_plain, outlines_to_plain
from sktransfer.archive._plain_pickle import MAX_BYTES, dumps_plain, has_checksum, loads_plain
from sktransfer.archive._record import check_containers, check_space, is_id
from sktransfer.archive._storage import read_task
from sktransfer.exceptions import RecordError
from sktransfer.task import Task

INDEX_FORMAT = 1
"""Raise it when the columns change. An index of another format is ignored and rewritten."""

MIN_OPENED, MIN_NEW_SHARE = 16, 1 / 16
"""Number and share of records that a reader has to open before it writes an index."""

MIN_WRITTEN = 256
"""Number of records that one process must write before it writes a part of the index."""

MAX_HASH_BYTES = 6 * 2**20
"""Most bytes of row hashes in one file: enough for 500 records, or more of small data."""

MAX_ENTRIES = 20_000
"""Most entries in one file. Besides the hashes, each takes about 400 bytes."""

MAX_FILES = 40
MAX_PARTS = 8
"""Number of files above which a reader merges them into one."""

MAX_DIRECTORIES = 8
SETTLING_NS = 2 * 10**9
"""Age of a folder's time of change after which the next change is certain to have another time."""

_COLUMNS = (
    "size",
    "mtime_ns",
    "created",
    "common",
    "complete",
    "format",
    "n_trials",
    "n_ok",
    "has_profile",
    "continues",
    "name",
    "best",
    "n_rows",
    "n_features",
    "search",
    "outline",
    "row_hashes",
)
_TEXTS = ("created", "search")  # columns of texts without newlines, written as one text

_COUNT = {int, type(None)}

# The memory of this process, by directory.
_known: dict[str, dict[str, IndexEntry]] = {}  # entries that were read, by id
_settled: dict[str, int] = {}  # time of change of the folder that `_known` describes
# Entries of written records, in no index yet, and what they have in common (see `_make_entry`).
_written: dict[str, tuple[dict[str, IndexEntry], dict[str, dict[str, Any]]]] = {}
_unsaved: dict[str, tuple[int, list[Path]]] = {}  # number of new entries, and the index files


def add_entry(directory: Path, task: Task, file: Path) -> None:
    """Remember a record that was just written. Write a part of the index when there are many."""
    key, status = os.fspath(directory), file.lstat()
    written, common = _written.setdefault(key, ({}, {}))
    entry = written[task.id] = _make_entry(task, status.st_size, status.st_mtime_ns, common)
    if (known := _known.get(key)) is not None:
        known[task.id] = entry
    if len(written) >= MIN_WRITTEN:
        _written.pop(key, None)
        part = _index_file(directory, f"part-{uuid.uuid4().hex}")
        with contextlib.suppress(*_storage.FAULTS):  # a cache, as below
            _storage.write_file(part, dumps_plain(_to_plain(written)))


def read_entries(directory: Path) -> Iterator[tuple[str, IndexEntry | RecordError]]:
    """Yield the id of every record file of an archive with its entry, or with its error."""
    key, tasks = os.fspath(directory), directory / "tasks"
    changed_ns = _time_of_change(tasks)
    settled = _known.get(key)
    if settled is not None and _settled.get(key) == changed_ns:
        yield from list(settled.items())
        return
    parts: list[Path] = []
    known = _known.pop(key, None)
    if known is None:
        parts, known = _read_index(directory)
    found: dict[str, IndexEntry] = {}
    n_new = n_bad = 0
    common: dict[str, dict[str, Any]] = {}
    for id, size, mtime_ns in _list_records(tasks):
        entry = known.get(id)
        if entry is None or (entry.size, entry.mtime_ns) != (size, mtime_ns):
            try:
                task = read_task(tasks / (id + _storage.SUFFIX))
            except FileNotFoundError:  # removed since the directory was listed
                continue
            except RecordError as error:
                yield id, error
                n_bad += 1
                continue
            common = common or {_key(part): part for part in _distinct(known.values())}
            entry = _make_entry(task, size, mtime_ns, common)
            n_new += 1
        found[id] = entry
        yield id, entry
    if len(_known) >= MAX_DIRECTORIES:
        _known.clear()
    _known[key] = found
    # A folder that does not exist is never settled.
    is_settled = changed_ns and not n_bad and time_ns() - changed_ns > SETTLING_NS
    _settled[key] = changed_ns if is_settled else -1
    _unsaved[key] = n_new, parts


def save_if_worthwhile(directory: Path) -> None:
    """Rewrite the index if much is new. To be called after `read_entries`."""
    key = os.fspath(directory)
    # A copy, because other threads may add to it.
    found, (n_new, parts) = dict(_known.get(key, {})), _unsaved.pop(key, (0, []))
    changed = [entry for entry in _newest_with_hashes(found.values()) if entry.is_changed]
    enough = max(MIN_OPENED, MIN_NEW_SHARE * len(found))
    if max(n_new, len(changed)) < enough and _count_parts(parts) <= MAX_PARTS:
        return
    # A cache: if it cannot be written, records are read as before.
    with contextlib.suppress(*_storage.FAULTS):
        written = _write_index(directory, found)
        for part in parts:
            if part not in written:
                _storage.remove_file(part)
        for entry in changed:
            entry.is_changed = False


def _write_index(directory: Path, found: dict[str, IndexEntry]) -> set[Path]:
    """Write all entries, some to each file. A reader would refuse one file of all of them."""
    ids, files = list(found), set()
    for number, start in enumerate(range(0, max(1, len(ids)), MAX_ENTRIES)):
        file = _index_file(directory, f"entries-{number}" if number else "entries")
        chunk = {id: found[id] for id in ids[start : start + MAX_ENTRIES]}
        _storage.write_file(file, dumps_plain(_to_plain(chunk)))
        files.add(file)
    return files


def _time_of_change(folder: Path) -> int:
    """Return when a file was last added to a folder or removed, in ns; 0 if it is missing."""
    try:
        return folder.stat().st_mtime_ns
    except (*_storage.FAULTS, UnicodeEncodeError):
        return 0


def _count_parts(files: list[Path]) -> int:
    return sum(file.name.startswith("part-") for file in files)


def _distinct(entries: Iterable[IndexEntry]) -> list[dict[str, Any]]:
    """Return the dicts that entries have in common, each once."""
    return list({id(entry.common): entry.common for entry in entries}.values())


def _list_records(tasks: Path) -> list[tuple[str, int, int]]:
    """List ids, sizes and times of change of record files, by id. Making paths is slow."""
    found = []
    try:
        with os.scandir(tasks) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(_storage.SUFFIX) and name[0] != ".":
                    try:
                        status = entry.stat(follow_symlinks=False)
                        size, mtime_ns = status.st_size, status.st_mtime_ns
                    except FileNotFoundError:
                        continue
                    except _storage.FAULTS:  # no entry has this size: the reader will say why not
                        size = mtime_ns = -1
                    found.append((name.removesuffix(_storage.SUFFIX), size, mtime_ns))
    except (FileNotFoundError, UnicodeEncodeError):
        return []
    return sorted(found)


def _make_entry(
    task: Task, size: int, mtime_ns: int, known: dict[str, dict[str, Any]]
) -> IndexEntry:
    data = task.profile or {}
    common = {
        "space": task.space,
        "metrics": list(task.metrics),
        "versions": task.versions,
        "origin": task.origin,
        "kind": data.get("kind", ""),
    }
    return IndexEntry(
        size,
        mtime_ns,
        task.created,
        known.setdefault(_key(common), common),
        task.complete,
        task.format,
        n_trials=len(task.trials),
        n_ok=sum(trial.status == "ok" for trial in task.trials),
        has_profile=task.profile is not None,
        continues=" ".join(filter(is_id, task.continues)),
        name=task.name,
        best=math.nan if task.best is None else float(task.best.score),
        n_rows=data.get("n_rows"),
        n_features=data.get("n_features"),
        search="" if task.origin else search_key((task.resume or {}).get("problem")),
        outline=make_outline(task.profile),
    )


def _key(common: dict[str, Any]) -> str:
    return json.dumps(common)


# -- the files -----------------------------------------------------------------------------------


def _index_file(directory: Path, name: str = "entries") -> Path:
    return directory / "index" / (name + _storage.SUFFIX)


def _to_plain(found: dict[str, IndexEntry]) -> dict[str, Any]:
    parts = _distinct(found.values())
    numbers = {id(part): number for number, part in enumerate(parts)}
    columns: dict[str, Any] = {
        name: [getattr(entry, name) for entry in found.values()]
        for name in _COLUMNS
        if name not in ("common", "outline", *_TEXTS)
    }
    columns["common"] = [numbers[id(entry.common)] for entry in found.values()]
    kept = {id(entry) for entry in _newest_with_hashes(found.values())}
    columns["row_hashes"] = [e.row_hashes if id(e) in kept else "" for e in found.values()]
    # One text instead of thousands, because the reader checks a text in one step.
    columns["id"] = "\n".join(found)
    for name in _TEXTS:
        columns[name] = "\n".join(
            getattr(entry, name).replace("\n", " ") for entry in found.values()
        )
    columns["outline"] = outlines_to_plain([entry.outline for entry in found.values()])
    return {"index": INDEX_FORMAT, "parts": parts, "columns": columns}


def _newest_with_hashes(entries: Collection[IndexEntry]) -> list[IndexEntry]:
    """Return the newest entries that have row hashes, as many as there is room for."""
    room, newest = MAX_HASH_BYTES, []
    for entry in reversed([entry for entry in entries if entry.row_hashes]):
        room -= len(entry.row_hashes)
        if room < 0:
            break
        newest.append(entry)
    return newest


def _read_index(directory: Path) -> tuple[list[Path], dict[str, IndexEntry]]:
    """Return the files of the index, and their entries by id. Invalid files have no entries.

    An id may be any text. It is looked up by the name of a record file, and not used for more.
    """
    found: dict[str, IndexEntry] = {}
    folder = directory / "index"
    try:
        files = [] if folder.is_symlink() else _storage.record_files(folder)
    except (*_storage.FAULTS, UnicodeEncodeError):  # not a folder, or not readable
        files = []
    for file in files[:MAX_FILES]:
        try:
            data = _storage.read_bounded(file, MAX_BYTES)
            if has_checksum(data):
                found |= _from_plain(loads_plain(data))
        except Exception:  # an untrusted file can hold any plain data, in any shape
            continue
    return files, found


def _from_plain(plain: Any) -> dict[str, IndexEntry]:
    check_containers(plain)
    if plain["index"] != INDEX_FORMAT:
        return {}
    parts, columns = plain["parts"], dict(plain["columns"])
    for part in parts:
        check_space(part["space"])
        lists = [part["metrics"], list(part["versions"].values()), [part["origin"], part["kind"]]]
        if not all(type(text) is str for each in lists for text in each) or not part["metrics"]:
            raise ValueError("not the index of an archive")
    ids = columns["id"].split("\n")
    columns |= {name: columns[name].split("\n") for name in _TEXTS}
    columns["outline"] = outlines_from_plain(columns["outline"], len(ids))
    for name in ("size", "mtime_ns", "common", "format", "n_trials", "n_ok"):
        if set(map(type, columns[name])) - {int} or min(columns[name], default=0) < 0:
            raise ValueError("not the index of an archive")
    for name, kinds in (("best", {float}), ("n_rows", _COUNT), ("n_features", _COUNT)):
        if set(map(type, columns[name])) - kinds:
            raise ValueError("not the index of an archive")
    for name in ("continues", "name", "row_hashes"):
        if set(map(type, columns[name])) != {str}:
            raise ValueError("not the index of an archive")
    columns["common"] = [parts[number] for number in columns["common"]]
    flags = set(map(type, columns["complete"])) | set(map(type, columns["has_profile"]))
    if flags - {bool}:
        raise ValueError("not the index of an archive")
    rows = zip(*(columns[name] for name in _COLUMNS), strict=True)
    return {id: IndexEntry(*row) for id, row in zip(ids, rows, strict=True)}
