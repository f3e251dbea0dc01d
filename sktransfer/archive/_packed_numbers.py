"""Many numbers as one text, by which records are fast to write, to check and to read.

A profile holds thousands of numbers: hashes of rows, a sketch, meta-features by their names. In a
pickle, each number and each name is an operation that the reader has to check. As one text, they
take a tenth of the time. What becomes a text has at least `MIN_PACKED_LENGTH` numbers:

    list of floats                      ``packed:float:<array>``
    list of unsigned 64-bit integers    ``packed:int:<array>``
    dict of floats                      ``packed:dict:<names, one per line>:<array of floats>``

Any other text that begins with ``packed:`` is written as ``packed:text:`` and itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sktransfer.utils._array_text import decode_array, encode_array
from sktransfer.utils._values import Plain

MIN_PACKED_LENGTH = 16
MAX_PACKED_BYTES = 12 * 2**20
"""Most bytes of packed texts in one profile. The numbers in them take five times as much memory."""

DICT_COST = 4
"""How much more memory than numbers in a list those in a dict take."""

_PACKED, _DICT = "packed:", "packed:dict:"
_KINDS = {"float": np.dtype(np.float64), "int": np.dtype(np.uint64)}
_MAX_WORD = 2**64 - 1


def pack_numbers(value: Plain | np.ndarray) -> Plain:
    """Replace long lists and dicts of numbers in plain data, and arrays, by texts.

    >>> text = pack_numbers([1.5] * 16)
    >>> text[:20], unpack_numbers(text) == [1.5] * 16
    ('packed:float:AAAAAAA', True)
    """
    if type(value) is dict:
        return _pack_dict(value)
    if type(value) is str:
        return f"{_PACKED}text:{value}" if value.startswith(_PACKED) else value
    if type(value) is np.ndarray:
        return _pack_array(value) if len(value) >= MIN_PACKED_LENGTH else value.tolist()
    if type(value) is not list:
        return value  # type: ignore[return-value]
    types = set(map(type, value)) if len(value) >= MIN_PACKED_LENGTH else set()
    if types == {float} or (types == {int} and min(value) >= 0 and max(value) <= _MAX_WORD):
        return _pack_array(np.array(value, dtype=_KINDS["float" if types == {float} else "int"]))
    return [pack_numbers(item) for item in value]


def _pack_array(array: np.ndarray) -> str:
    kind = "float" if array.dtype == _KINDS["float"] else "int"
    return f"{_PACKED}{kind}:{encode_array(array.astype(_KINDS[kind], copy=False))}"


def _pack_dict(value: dict[str, Any]) -> Plain:
    if len(value) >= MIN_PACKED_LENGTH and set(map(type, value.values())) == {float}:
        names = "\n".join(value)
        if names.count("\n") == len(value) - 1:  # no name has two lines
            return f"{_DICT}{names}:{encode_array(np.array(list(value.values())))}"
    return {
        name: item if type(item) is float else pack_numbers(item) for name, item in value.items()
    }


def unpack_numbers(value: Plain) -> Any:
    """Undo `pack_numbers`. Raise a ValueError for a text that it cannot have written."""
    if type(value) is str:
        return _unpack_text(value) if value.startswith(_PACKED) else value
    if type(value) is dict:
        return {k: v if type(v) is float else unpack_numbers(v) for k, v in value.items()}
    if type(value) is list and not {str, dict, list}.isdisjoint(map(type, value)):
        return [unpack_numbers(item) for item in value]
    return value


def _unpack_text(text: str) -> str | list | dict:
    kind, _, content = text.removeprefix(_PACKED).partition(":")
    if kind == "text":
        return content
    names = None
    if kind == "dict":
        lines, _, content = content.rpartition(":")
        names, kind = lines.split("\n"), "float"
    if kind not in _KINDS:
        raise ValueError(f"it holds numbers of the unknown kind {kind[:20]!r}")
    try:
        numbers = decode_array(content, _KINDS[kind]).tolist()
        if names is None:
            return numbers
        found = dict(zip(names, numbers, strict=True))
        if len(found) == len(names):
            return found
    except ValueError:
        pass
    raise ValueError("it holds a damaged list of numbers")


def packed_size(value: Plain) -> int:
    """Count the bytes of the packed texts in plain data, as often as they are used.

    >>> packed_size(["packed:int:" + "A" * 89, "another text"])
    100
    """
    if type(value) is str:
        cost = DICT_COST if value.startswith(_DICT) else 1
        return cost * len(value) if value.startswith(_PACKED) else 0
    items = value.values() if type(value) is dict else value if type(value) is list else ()
    return sum(packed_size(item) for item in items if type(item) in (str, list, dict))
