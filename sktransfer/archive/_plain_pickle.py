"""Plain data as bytes: a pickle with a checksum, written and read without running code.

A pickle is a program, and one from an untrusted source can do anything. Three checks protect the
reader. Each of the first two is enough to keep a file from running code.

1. The stream is checked before anything is made from it. It may contain only the few operations
   that `joblib.dump` writes for str, numbers, None, lists and dicts.
2. The unpickler refuses every global and every persistent id.
3. The result must have the shape of a task record (`_record.record_to_task`).

The first check also bounds the cost of reading. It refuses memo entries out of order, containers
inside themselves or in two places (a tree of shared lists is small on disk and endless to walk),
texts that are used so often that they would fill the memory once they are copied, integers of more
than 64 bits (many of them have the same hash), and lengths beyond the end of the file.

The last field of a record is a checksum of its bytes, so that damage is noticed wherever it is.
The file ends in ``checksum``, ``blake2b:<32 digits>``. The digits are the hash of all other bytes.
A checksum detects damage and edits by hand, but not forgery: an attacker can compute a new one.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from typing import NoReturn

from sktransfer.task import TASK_FORMAT
from sktransfer.utils._hashing import hash_bytes
from sktransfer.utils._values import Plain

MAX_BYTES = 16 * 2**20
"""Largest record file. A thousand trials take about 100 kB, a sample of 1000 rows at most 2 MB."""

MAX_STEPS, MAX_NUMBERS = 500_000, 1_000_000
"""Most operations and numbers in one file. Reading them takes at most a second and 100 MB."""

MAX_REPEATED_BYTES = 16 * 2**20
"""Most bytes of texts that are used again, counted each time."""

_LONG_BYTES = 9  # of an integer: 64 bits and, above 2**63, a byte for the sign, which is 0

# Most of a record are numbers, and dicts that repeat the same keys. Regular expressions match many
# operations at once, because a loop over them would take most of the time. The frequent ones come
# first. Numbers: LONG1 of the two lengths that a hash has, BINFLOAT, BININT1, BININT2, BININT.
# NONE, NEWTRUE, NEWFALSE and MARK count as numbers.
_NUMBER = rb"\x8a\x08.{8}|G.{8}|\x8a\x09.{8}\x00|K.|[N\x88\x89(]|M..|J.{4}"
# Besides numbers, a run contains BINGET, filled containers, and new containers with their memo
# entries. It contains no text, so the memo entries that may be used again do not change within it.
_OTHERS = rb"h.|[aesu]|[\]}]\x94"
_RUN = re.compile(rb"(?:%b|%b){1,4096}+" % (_OTHERS, _NUMBER), re.DOTALL)
# Each match begins where the previous one ended, so bytes inside a number are never operations.
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

# What the previous operation left on the stack, as far as it decides what may come next.
_OTHER, _TEXT, _CONTAINER = range(3)


# -- writing -------------------------------------------------------------------------------------


def dumps_plain(data: Plain) -> bytes:
    """Make the bytes of a file that `joblib.load` opens. A dict gets a checksum.

    `joblib.dump` writes the same bytes, because it treats only arrays in its own way, but it takes
    ten times as long.
    """
    if type(data) is not dict:
        return pickle.dumps(data, protocol=4)
    return _add_checksum(pickle.dumps(_reserve_checksum(data), protocol=4))


# -- reading -------------------------------------------------------------------------------------


def loads_plain(data: bytes, *, needs_checksum: bool = False) -> Plain:
    """Read plain data, or raise a ValueError. Nothing else can happen.

    Parameters
    ----------
    data : bytes
        The content of a file, from any source.
    needs_checksum : bool
        Whether data without a checksum are refused: damage may have hit the checksum itself.

    Examples
    --------
    >>> loads_plain(pickle.dumps({"C": [1, 2.5, None]}, protocol=4))
    {'C': [1, 2.5, None]}
    >>> loads_plain(pickle.dumps(print, protocol=4))
    Traceback (most recent call last):
    ValueError: it holds the pickle operation STACK_GLOBAL, which plain data do not need
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    _check_stream(data)
    try:
        plain = _PlainUnpickler(io.BytesIO(data)).load()
    except MemoryError:  # the file may be intact
        raise
    except Exception as error:  # allowed operations in an order that makes no sense
        raise ValueError(f"it is damaged ({type(error).__name__})") from None
    if type(plain) is dict:
        _check_checksum(data, plain, needs_checksum)
        plain.pop(CHECKSUM_FIELD, None)  # it belongs to the file, not to the record
    return plain


class _PlainUnpickler(pickle.Unpickler):
    """The second check: a stream that passes the first one still finds no function to call."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError("a record holds no global")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError("a record holds no persistent id")


def _check_stream(data: bytes) -> None:
    """The first check: raise a ValueError unless the operations are those of plain data."""
    if len(data) < 2 or data[:1] != pickle.PROTO or data[1] not in (4, 5):
        raise ValueError("it is not an uncompressed joblib file" if data else "it is empty")
    memo: list[int] = []  # sizes of texts, which may be used again; -1 for other entries
    position, before, steps, numbers, size, repeated = 2, _OTHER, 0, 0, 0, 0
    while steps < MAX_STEPS and numbers < MAX_NUMBERS and repeated <= MAX_REPEATED_BYTES:
        run = _RUN.match(data, position)
        if run:
            found = _check_run(run[0], memo)
            steps, numbers, repeated = steps + found[0], numbers + found[1], repeated + found[2]
            position, before = run.end(), _OTHER
            continue
        steps += 1
        operation = data[position : position + 1]
        position += 1
        if operation == pickle.MEMOIZE and before != _OTHER:
            memo.append(size if before == _TEXT else -1)
            before = _OTHER
        elif operation in _LENGTH_BYTES:
            start, position = position, _skip_payload(data, position, operation)
            size = position - start
            before = _OTHER if operation == pickle.LONG1 else _TEXT
        elif operation in _INDEX_BYTES:
            index, position = _read_size(data, position, _INDEX_BYTES[operation])
            repeated += _check_index(index, memo)
            before = _OTHER
        elif operation in _NEW_CONTAINER:
            before = _CONTAINER
        elif operation in _FILL_CONTAINER:
            before = _OTHER
        elif operation == pickle.FRAME:  # may come between a text and its memo entry
            _, position = _read_size(data, position, 8, len(data))
        elif operation == pickle.STOP:
            if position != len(data):
                raise ValueError("something follows after its end")
            return
        else:
            raise ValueError(_describe_refusal(operation))
    raise ValueError(
        f"it holds more than {MAX_STEPS} operations, {MAX_NUMBERS} numbers or "
        f"{MAX_REPEATED_BYTES // 2**20} MiB of repeated texts, more than any record"
    )


def _check_run(run: bytes, memo: list[int]) -> tuple[int, int, int]:
    """Check the memo entries of a run and add new ones.

    Return the numbers of its other operations and of its numbers, and the size of the texts that
    are used again.
    """
    found, repeated = _EACH.findall(run), 0
    for operation in set(found):
        if operation[:1] == pickle.BINGET:
            repeated += _check_index(operation[1], memo) * found.count(operation)
    memo.extend([-1] * (found.count(b"]\x94") + found.count(b"}\x94")))
    n_numbers = found.count(b"")
    return len(found) - n_numbers, n_numbers, repeated


def _check_index(index: int, memo: list[int]) -> int:
    """Return the size of the text that is used again."""
    if index >= len(memo) or memo[index] < 0:
        raise ValueError("it refers to something other than an earlier text")
    return memo[index]


def _read_size(data: bytes, position: int, width: int, limit: int | None = None) -> tuple[int, int]:
    """Read a size of `width` bytes at `position`. Return it and the position after it."""
    end = position + width
    size = int.from_bytes(data[position:end], "little")
    if end > len(data) or (limit is not None and size > limit - end):
        raise ValueError("it is cut off")
    return size, end


def _skip_payload(data: bytes, position: int, operation: bytes) -> int:
    length, position = _read_size(data, position, _LENGTH_BYTES[operation], len(data))
    end = position + length
    if operation == pickle.LONG1 and (
        length > _LONG_BYTES or (length == _LONG_BYTES and data[end - 1])
    ):
        raise ValueError("it holds an integer of more than 64 bits")
    return end


def _describe_refusal(operation: bytes) -> str:
    if not operation:
        return "it is cut off"
    names = {known.code: known.name for known in pickletools.opcodes}
    name = names.get(operation.decode("latin-1"), operation.hex())
    return f"it holds the pickle operation {name}, which plain data do not need"


# -- the checksum --------------------------------------------------------------------------------

CHECKSUM_FIELD, _ALGORITHM, _N_DIGITS = "checksum", "blake2b:", 32
# SHORT_BINUNICODE and MEMOIZE of name and value, then SETITEMS or SETITEM, and STOP. pickle begins
# a new FRAME after every 64 KiB, which may happen to be here.
_FRAME = rb"(?:\x95.{8})?"
_CHECKSUM_AT_END = re.compile(
    rb"\x8c\x08checksum\x94%b\x8c\x28blake2b:([0-9a-f]{32})\x94%b[us]%b\.\Z"
    % (_FRAME, _FRAME, _FRAME),
    re.DOTALL,
)


def has_checksum(data: bytes) -> bool:
    """Whether the bytes of a file end in a checksum, right or wrong."""
    return _CHECKSUM_AT_END.search(data) is not None


def _reserve_checksum(record: dict[str, Plain]) -> dict[str, Plain]:
    """Return the record with a placeholder for its checksum as the last field."""
    content = {name: value for name, value in record.items() if name != CHECKSUM_FIELD}
    # A new string each time: pickle would write a reference to a string that is in the record
    # already.
    return {**content, "".join(("check", "sum")): _ALGORITHM + "0" * _N_DIGITS}


def _add_checksum(data: bytes) -> bytes:
    """Fill in the placeholder that `_reserve_checksum` left."""
    end = _CHECKSUM_AT_END.search(data)
    if end is None:
        raise AssertionError("the file does not end in the placeholder of its checksum")
    return data[: end.start(1)] + _hash_rest(data, end) + data[end.end(1) :]


def _check_checksum(data: bytes, record: dict[str, Plain], is_needed: bool) -> None:
    """Raise a ValueError if the bytes of a record are not those that were written."""
    found = record.get("format")
    # A newer format may have another kind of checksum. It is refused as newer, not as damaged.
    if not record or (type(found) is int and found > TASK_FORMAT):
        return
    end = _CHECKSUM_AT_END.search(data)
    value = next(reversed(record.values()))
    # One of name and value shows that there was a checksum: the other one may be what is damaged.
    has_part = CHECKSUM_FIELD in record or (type(value) is str and value.startswith(_ALGORITHM))
    if has_part and (end is None or end[1] != _hash_rest(data, end)):
        raise ValueError("its checksum does not match: it was damaged, or edited by hand")
    if is_needed and end is None:
        raise ValueError("its checksum is missing: it was damaged, or edited by hand")


def _hash_rest(data: bytes, end: re.Match[bytes]) -> bytes:
    """Hash all bytes except the digits of the checksum at the end."""
    rest = data[: end.start(1)] + data[end.end(1) :]
    return hash_bytes(rest, _N_DIGITS // 2).hex().encode()
