"""A reader of record files that cannot run code.

A record is a pickle, so that ``joblib.load`` opens it; but a pickle is a program, and one from a
stranger can do anything. Three walls, of which each of the first two keeps a file from running code:

1. the stream is looked through before anything is made of it, and may hold only the few operations
   that `joblib.dump` writes for str, numbers, None, lists and dicts;
2. the unpickler refuses every global and every persistent id;
3. what comes out must have the shape of a task record (`_format.record_to_task`).

The first also bounds what reading costs: no memo entry out of order, no container inside itself or in
two places (a tree of shared lists is small on disk and endless to walk), no length beyond the file.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

from sktransfer.archive import _checksum
from sktransfer.archive._record import record_to_task
from sktransfer.exceptions import RecordError
from sktransfer.task import Task

MAX_BYTES = 16 * 2**20
"""Size of a record file. A thousand trials take about 100 kB, a sample of 1000 rows at most 2 MB."""

MAX_STEPS, MAX_NUMBERS = 500_000, 1_000_000
"""Operations and numbers in one file: a second of reading, and less than 100 MB, at most."""

CACHED_RECORDS, CACHED_BYTES = 16384, 64 * 2**20

_LONG_BYTES = 9  # of an integer: 64 bits and, above 2**63, a byte for the sign

# Most of a record are numbers, and dicts that repeat the same keys. Many operations at once, for a loop
# over them would take most of the time; the frequent ones first. Numbers: LONG1 of the two lengths that a
# hash has; BINFLOAT; BININT1; BININT2; BININT. NONE, NEWTRUE, NEWFALSE and MARK count as numbers.
_NUMBER = rb"\x8a\x08.{8}|G.{8}|\x8a\x09.{9}|K.|[N\x88\x89(]|M..|J.{4}"
# With them: BINGET; a container filled; a new one and its memo entry. No text, so that within a run what
# may be used again stays the same.
_OTHERS = rb"h.|[aesu]|[\]}]\x94"
_RUN = re.compile(rb"(?:%b|%b){1,4096}+" % (_OTHERS, _NUMBER), re.DOTALL)
# Each match begins where the last one ended: nothing inside a number is taken for more.
_EACH = re.compile(rb"(?:%b)|(%b)" % (_NUMBER, _OTHERS), re.DOTALL)
_LENGTH_BYTES = {
    pickle.SHORT_BINUNICODE: 1,
    pickle.BINUNICODE: 4,
    pickle.BINUNICODE8: 8,
    pickle.LONG1: 1,
}
_INDEX_BYTES = {pickle.BINGET: 1, pickle.LONG_BINGET: 4}
_NEW_CONTAINER = (pickle.EMPTY_LIST, pickle.EMPTY_DICT)
_FILL_CONTAINER = (pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS)

# What the operation before left on the stack, as far as it decides what may come next.
_OTHER, _TEXT, _CONTAINER = range(3)


def read_task(path: Path) -> Task:
    """Read one record file, or take it from the memory of this process if the file is the same.

    Raises
    ------
    RecordError
        If the file is not a sound record under its own name.
    FileNotFoundError
        If there is no such file.
    """
    try:
        facts = path.lstat()
        key = (os.fspath(path), facts.st_size, facts.st_mtime_ns)
        task = _cache.get(key)
        if task is None:
            task = _named_task(_read_plain(path, facts), path)
            _cache.put(key, task)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(path, f"it cannot be read ({error.strerror or error})") from error
    return task


def read_record(path: Path) -> tuple[Task, bytes]:
    """As `read_task`, but always from the disk, and with the bytes that were looked through."""
    try:
        data = _read_bytes(path, path.lstat())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(path, f"it cannot be read ({error.strerror or error})") from error
    return task_of(data, path), data


def task_of(data: bytes, path: Path) -> Task:
    """The task in the bytes of a record file; `path` is its name, and where a message says it is."""
    return _named_task(_plain(data, path), path)


def read_plain(path: Path) -> Any:
    """The plain data in a sealed file that is no record; errors as of `read_task`."""
    try:
        return _read_plain(path, path.lstat())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordError(path, f"it cannot be read ({error.strerror or error})") from error


def _named_task(record: Any, path: Path) -> Task:
    task = record_to_task(record, path)
    if task.id != path.stem:
        raise RecordError(path, f"it holds the record {task.id!r}, which is not the name of the file")
    return task


def _read_plain(path: Path, facts: os.stat_result) -> Any:
    return _plain(_read_bytes(path, facts), path)


def _read_bytes(path: Path, facts: os.stat_result) -> bytes:
    if not stat.S_ISREG(facts.st_mode):  # opening a pipe would wait for ever, and a link lead anywhere
        raise RecordError(path, "it is not a regular file")
    if facts.st_size > MAX_BYTES:
        raise RecordError(path, f"it is larger than {MAX_BYTES // 2**20} MiB, which no record is")
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _plain(data: bytes, path: Path) -> Any:
    try:
        record = loads_plain(data)
        _checksum.check_unsealed(data, record)
    except ValueError as error:
        raise RecordError(path, str(error)) from None
    return record


def loads_plain(data: bytes) -> Any:
    """Make plain data of the bytes of a record, or raise a ValueError; nothing else can happen.

    >>> loads_plain(pickle.dumps({"C": [1, 2.5, None]}, protocol=4))
    {'C': [1, 2.5, None]}
    >>> loads_plain(pickle.dumps(print, protocol=4))
    Traceback (most recent call last):
    ValueError: it holds the pickle operation STACK_GLOBAL, which plain data do not need
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES // 2**20} MiB, which no record is")
    _check_stream(data)
    try:
        plain = _PlainUnpickler(io.BytesIO(data)).load()
    except Exception as error:  # a stream of allowed operations in an order that makes no sense
        raise ValueError(f"it is damaged ({type(error).__name__})") from None
    _checksum.check(data, plain)
    if type(plain) is dict:
        plain.pop(_checksum.FIELD, None)  # it belongs to the file, not to the record
    return plain


class _PlainUnpickler(pickle.Unpickler):
    """The second wall: even a stream that got past the first finds no function to call."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError("a record holds no global")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("a record holds no persistent id")


def _check_stream(data: bytes) -> None:
    """The first wall: raise a ValueError unless the operations are those of plain data."""
    if len(data) < 2 or data[:1] != pickle.PROTO or data[1] not in (4, 5):
        raise ValueError("it is not an uncompressed joblib file" if data else "it is empty")
    memo = bytearray()  # for each memo entry, whether it is a text and may be used again
    position, before, steps, numbers = 2, _OTHER, 0, 0
    while steps < MAX_STEPS and numbers < MAX_NUMBERS:
        run = _RUN.match(data, position)
        if run:
            found = _check_run(run[0], memo)
            steps, numbers = steps + found[0], numbers + found[1]
            position, before = run.end(), _OTHER
            continue
        steps += 1
        operation = data[position : position + 1]
        position += 1
        if operation == pickle.MEMOIZE and before != _OTHER:
            memo.append(before == _TEXT)
            before = _OTHER
        elif operation in _LENGTH_BYTES:
            position = _skip_payload(data, position, operation)
            before = _OTHER if operation == pickle.LONG1 else _TEXT
        elif operation in _INDEX_BYTES:
            index, position = _read_size(data, position, _INDEX_BYTES[operation])
            _check_index(index, memo)
            before = _OTHER
        elif operation in _NEW_CONTAINER:
            before = _CONTAINER
        elif operation in _FILL_CONTAINER:
            before = _OTHER
        elif operation == pickle.FRAME:  # may stand between a text and its memo entry
            _, position = _read_size(data, position, 8, len(data))
        elif operation == pickle.STOP:
            if position != len(data):
                raise ValueError("something follows after its end")
            return
        else:
            raise ValueError(_refusal(operation))
    raise ValueError(
        f"it holds more than {MAX_STEPS} operations or {MAX_NUMBERS} numbers, which no record does"
    )


def _check_run(run: bytes, memo: bytearray) -> tuple[int, int]:
    """Check the uses of memo entries in a run, add the new ones; how many other operations and numbers."""
    found = _EACH.findall(run)
    for operation in set(found):
        if operation[:1] == pickle.BINGET:
            _check_index(operation[1], memo)
    memo.extend(bytes(found.count(b"]\x94") + found.count(b"}\x94")))
    n_numbers = found.count(b"")
    return len(found) - n_numbers, n_numbers


def _check_index(index: int, memo: bytearray) -> None:
    if index >= len(memo) or not memo[index]:
        raise ValueError("it refers to something other than an earlier text")


def _read_size(data: bytes, position: int, width: int, limit: int | None = None) -> tuple[int, int]:
    """A size of `width` bytes at `position`, and the position after it."""
    end = position + width
    size = int.from_bytes(data[position:end], "little")
    if end > len(data) or (limit is not None and size > limit - end):
        raise ValueError("it is cut off")
    return size, end


def _skip_payload(data: bytes, position: int, operation: bytes) -> int:
    length, position = _read_size(data, position, _LENGTH_BYTES[operation], len(data))
    if operation == pickle.LONG1 and length > _LONG_BYTES:
        raise ValueError("it holds an integer of more than 64 bits")
    return position + length


def _refusal(operation: bytes) -> str:
    if not operation:
        return "it is cut off"
    names = {known.code: known.name for known in pickletools.opcodes}
    name = names.get(operation.decode("latin-1"), operation.hex())
    return f"it holds the pickle operation {name}, which plain data do not need"


class _Cache:
    """Tasks by (path, size, time of change). Records never change, so an entry is never wrong."""

    def __init__(self) -> None:
        self.tasks: dict[tuple[str, int, int], Task] = {}
        self.n_bytes = 0

    def get(self, key: tuple[str, int, int]) -> Task | None:
        return self.tasks.get(key)

    def put(self, key: tuple[str, int, int], task: Task) -> None:
        if len(self.tasks) >= CACHED_RECORDS or self.n_bytes + key[1] > CACHED_BYTES:
            # An archive that does not fit is read in order, again and again: dropping the oldest
            # entries one by one would not give a single hit more than dropping them all.
            self.tasks.clear()
            self.n_bytes = 0
        self.tasks[key] = task
        self.n_bytes += key[1]


_cache = _Cache()
