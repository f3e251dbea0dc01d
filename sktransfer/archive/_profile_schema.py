"""The schema of the data profile in a record, checked once when the record is read.

Encoders, surrogates and the leak guard rely on it, so they need not doubt what a record holds.
Every field that this version knows has a rule here. Fields that it does not know are ignored. The
rules also bound the work that a profile can cause: the number of hashes, and of enclosing tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from typing import Any

from sktransfer.dataset._fingerprint import MAX_HASHES
from sktransfer.dataset._profile import MAX_ENCLOSING

MAX_CLASS_RATIOS = 50
MAX_NUMBERS = 1000  # of meta-features and of each part of a sketch
MAX_SAMPLE_CELLS = 1000 * 200
_MAX_WORD = 2**64 - 1
_NUMBERS = frozenset([int, float])
_KEY_ID = re.compile(r"([0-9a-f]{16})?")


def check_profile(profile: dict[str, Any], *, is_enclosing: bool = False) -> None:
    """Raise a ValueError if a field of a profile is not of its kind.

    Parameters
    ----------
    profile : dict
        Plain data from an untrusted record, with its long lists unpacked.
    is_enclosing : bool
        Whether it belongs to enclosing data, which have no enclosing data themselves.

    Examples
    --------
    >>> check_profile({"kind": "regression", "n_rows": "ten"})
    Traceback (most recent call last):
    ValueError: the field 'n_rows' of the profile is invalid
    """
    for name in ("kind", "n_rows"):
        if name not in profile:
            raise ValueError(f"the field {name!r} of the profile is missing")
    for name, is_valid in _RULES.items():
        if name in profile and not is_valid(profile[name]):
            raise ValueError(f"the field {name!r} of the profile is invalid")
    enclosing = profile.get("enclosing", [])
    if type(enclosing) is not list or len(enclosing) > (0 if is_enclosing else MAX_ENCLOSING):
        raise ValueError("the field 'enclosing' of the profile is invalid")
    for part in enclosing:
        if type(part) is not dict or part.get("key", "") != profile.get("key", ""):
            raise ValueError("the field 'enclosing' of the profile is invalid")
        check_profile(part, is_enclosing=True)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_WORD


def _is_count_or_none(value: object) -> bool:
    return value is None or _is_count(value)


def _is_text(value: object) -> bool:
    return type(value) is str


def _are_finite(values: Collection[Any]) -> bool:
    return _NUMBERS.issuperset(map(type, values)) and all(map(math.isfinite, values))


def _is_list_of(is_valid: Callable[[object], bool], max_length: int) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        return type(value) is list and len(value) <= max_length and all(map(is_valid, value))

    return check


def _are_hashes(value: object) -> bool:
    if type(value) is not list or len(value) > MAX_HASHES or not set(map(type, value)) <= {int}:
        return False
    return not value or (min(value) >= 0 and max(value) <= _MAX_WORD)


def _is_digest(value: object) -> bool:
    return _are_hashes(value) and len(value) in (0, 2)  # type: ignore[arg-type]


def _is_key_id(value: object) -> bool:
    return type(value) is str and _KEY_ID.fullmatch(value) is not None


def _are_meta_features(value: object) -> bool:
    return type(value) is dict and len(value) <= MAX_NUMBERS and _are_finite(value.values())


def _are_numbers(max_length: int) -> Callable[[object], bool]:
    def check(value: object) -> bool:
        return type(value) is list and len(value) <= max_length and _are_finite(value)

    return check


_is_part_of_sketch = _are_numbers(MAX_NUMBERS)


def _is_sketch(value: object) -> bool:
    if value is None:
        return True
    if type(value) is not dict or type(value.get("format")) is not int:
        return False
    return all(_is_part_of_sketch(part) for name, part in value.items() if name != "format")


def _is_sample(value: object) -> bool:
    if value is None:
        return True
    if type(value) is not dict or set(value) != {"X", "y"} or type(value["X"]) is not list:
        return False
    X, y = value["X"], value["y"]
    return _is_table(X) and (y is None or _is_table(y) or _is_column(y)) and len(y or X) == len(X)


def _is_table(rows: object) -> bool:
    if type(rows) is not list or not all(type(row) is list for row in rows):
        return False
    n_columns = len(rows[0]) if rows else 0
    is_rectangular = all(len(row) == n_columns for row in rows)
    is_small = len(rows) * max(1, n_columns) <= MAX_SAMPLE_CELLS
    return is_rectangular and is_small and all(map(_are_finite, rows))


_is_column = _are_numbers(MAX_SAMPLE_CELLS)

_RULES: dict[str, Callable[[object], bool]] = {
    "kind": _is_text,
    "n_rows": _is_count,
    "n_features": _is_count_or_none,
    "n_classes": _is_count_or_none,
    "class_ratios": _are_numbers(MAX_CLASS_RATIOS),
    "meta_features": _are_meta_features,
    "response_curves": _are_meta_features,
    "scales": _are_meta_features,
    "fingerprint": _are_hashes,
    "n_distinct": _is_count,
    "ordered_fingerprint": _are_hashes,
    "n_ordered": _is_count,
    "column_fingerprint": _are_hashes,
    "pattern_fingerprint": _are_hashes,
    "n_patterns": _is_count,
    "target_fingerprint": _are_hashes,
    "n_target_patterns": _is_count,
    "row_digest": _is_digest,
    "key": _is_key_id,
    "notes": _is_list_of(_is_text, 100),
    "forms": _is_list_of(_is_list_of(_is_count_or_none, 2), 10),
    "sketch": _is_sketch,
    "sample": _is_sample,
}
