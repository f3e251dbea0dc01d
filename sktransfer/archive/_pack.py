"""Long lists of numbers as one text each, in the profile of a record.

A profile holds thousands of numbers: hashes of rows, a sketch. As a pickled list each of them is an operation
that the reader looks through; as one text they take a tenth of the time. A list of at least `MIN_LENGTH`
floats, or of as many integers of 64 bits without a sign, becomes ``packed:float:`` or ``packed:int:`` and its
bytes (little endian) in base64. Any other text that begins so is told apart by ``packed:text:``.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

MIN_LENGTH = 16
_PREFIX = "packed:"
_KINDS = {"float": np.dtype("<f8"), "int": np.dtype("<u8")}


def pack(value: Any) -> Any:
    """Plain data with long lists of numbers as texts.

    >>> text = pack([1.5] * 16)
    >>> text[:20], unpack(text) == [1.5] * 16
    ('packed:float:AAAAAAA', True)
    """
    if type(value) is dict:
        return {key: pack(item) for key, item in value.items()}
    if type(value) is str:
        return f"{_PREFIX}text:{value}" if value.startswith(_PREFIX) else value
    if type(value) is not list:
        return value
    types = set(map(type, value)) if len(value) >= MIN_LENGTH else set()
    if types == {float}:
        return _packed(value, "float")
    if types == {int} and min(value) >= 0 and max(value) < 2**64:
        return _packed(value, "int")
    return [pack(item) for item in value]


def _packed(numbers: list, kind: str) -> str:
    data = np.array(numbers, dtype=_KINDS[kind]).tobytes()
    return f"{_PREFIX}{kind}:{base64.b64encode(data).decode('ascii')}"


def unpack(value: Any) -> Any:
    """What `pack` was given; a ValueError for a text that it would not have made."""
    if type(value) is str:
        return _unpacked(value) if value.startswith(_PREFIX) else value
    if type(value) is dict:
        return {key: unpack(item) for key, item in value.items()}
    if type(value) is list and not {str, dict, list}.isdisjoint(map(type, value)):
        return [unpack(item) for item in value]
    return value


def _unpacked(text: str) -> Any:
    kind, _, content = text.removeprefix(_PREFIX).partition(":")
    if kind == "text":
        return content
    if kind not in _KINDS:
        raise ValueError(f"it holds numbers of the kind {kind[:20]!r}, which there is not")
    try:
        return np.frombuffer(base64.b64decode(content, validate=True), dtype=_KINDS[kind]).tolist()
    except ValueError:
        raise ValueError("it holds a list of numbers that is damaged") from None
