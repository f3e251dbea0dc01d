"""A record's last field is a checksum of its bytes, so that damage is noticed wherever it strikes.

The file ends in ``checksum``, ``blake2b:<32 digits>``; the digits are the hash of all bytes but themselves.
Records of format 1 have none. It tells damage and edits by hand, not forgery: who can write a record can
write its checksum.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from sktransfer.task import TASK_FORMAT
from sktransfer.utils._values import Plain

FIELD, _KIND, _DIGITS = "checksum", "blake2b:", 32
# SHORT_BINUNICODE and MEMOIZE of name and value, then SETITEMS or SETITEM, and STOP. After every 64 KiB
# pickle begins a new FRAME, which may happen to be here.
_FRAME = rb"(?:\x95.{8})?"
_END = re.compile(
    rb"\x8c\x08checksum\x94%b\x8c\x28blake2b:([0-9a-f]{32})\x94%b[us]%b\.\Z" % (_FRAME, _FRAME, _FRAME),
    re.DOTALL,
)


def with_place(record: dict[str, Plain]) -> dict[str, Plain]:
    """The record with a place for its checksum, as the last field."""
    content = {name: value for name, value in record.items() if name != FIELD}
    # A new string each time: one that stands elsewhere in the record would be written as a reference.
    return {**content, "".join(("check", "sum")): _KIND + "0" * _DIGITS}


def seal(data: bytes) -> bytes:
    """Fill in the place that `with_place` left, in the bytes of the file."""
    end = _END.search(data)
    if end is None:
        raise AssertionError("the file does not end in the place of its checksum")
    return data[: end.start(1)] + _digest(data, end) + data[end.end(1) :]


def check(data: bytes, record: Any) -> None:
    """Raise a ValueError if the bytes that `record` was read from are not those that were written."""
    if type(record) is not dict or not record or _is_newer(record):
        return
    name, value = next(reversed(record.items()))
    # One of the two is enough to know that there was a checksum: the other may be what is damaged.
    if FIELD in record or name == FIELD or (type(value) is str and value.startswith(_KIND)):
        end = _END.search(data)
        if end is None or end[1] != _digest(data, end):
            raise ValueError("its checksum does not fit: it was damaged, or edited by hand")


def is_sealed(data: bytes) -> bool:
    """Whether the bytes end in a checksum, right or wrong."""
    return _END.search(data) is not None


def check_unsealed(data: bytes, record: Any) -> None:
    """Raise a ValueError for a record without a checksum, unless it is of format 1, which had none.

    Damage may have struck the very field of the checksum.
    """
    if type(record) is not dict or _is_newer(record):
        return
    if not is_sealed(data) and record.get("format", 1) != 1:
        raise ValueError("it has no checksum, which only records of format 1 can do without")


def _is_newer(record: dict[str, Any]) -> bool:
    """A record of a newer format may be sealed in another way. It is refused for that, not called damaged."""
    found = record.get("format")
    return type(found) is int and found > TASK_FORMAT


def _digest(data: bytes, end: re.Match) -> bytes:
    """Hash of all bytes but the digits of the checksum at the end."""
    view = memoryview(data)
    state = hashlib.blake2b(view[: end.start(1)], digest_size=_DIGITS // 2)
    state.update(view[end.end(1) :])
    return state.hexdigest().encode()
