"""Whether a record can have seen rows of today's data, told without opening it.

The index keeps the lower halves of a record's hashes: of its rows with and without the order of columns, of
its columns, and those of the data around, as one sorted set. `DatasetProfile.overlap` rests on equal hashes
and on nothing else, so where two such sets have no member in common the overlap is 0. Where they have one,
which happens by chance to one stranger in a thousand, the record itself is to be asked.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from sktransfer.dataset import DatasetProfile

_HALF = np.dtype("<u4")


def halves_of(profile: Any) -> str:
    """What the index keeps of a record's profile; nothing where only the record itself can tell.

    >>> from sktransfer.dataset import profile
    >>> kept = halves_of(profile([[1.0, 2.0], [3.0, 4.0]]).to_dict())
    >>> [are_apart(kept, halves([profile(X)])) for X in ([[5.0], [6.0]], [[5.0, 6.0], [4.0, 3.0]])]
    [True, False]
    """
    try:
        past = DatasetProfile.from_dict(profile)
        past.overlap(past)  # raises an error if there is anything in it that cannot be compared
        found = halves([past])
    except Exception:  # the profile of a stranger's record can be anything
        return ""
    return "" if found is None else base64.b64encode(found.tobytes()).decode("ascii")


def halves(profiles: Sequence[DatasetProfile]) -> np.ndarray | None:
    """The lower halves of all hashes of some data, sorted; None if the rows of any of them are not known."""
    if not profiles or not all(len(profile.fingerprint) for profile in profiles):
        return None
    parts = [part for profile in profiles for part in (profile, *profile.enclosing)]
    hashes = [
        each
        for part in parts
        for each in (part.fingerprint, part.ordered_fingerprint, part.column_fingerprint)
    ]
    return np.unique(np.concatenate(hashes).astype(_HALF))


def are_apart(kept: str, today: np.ndarray | None) -> bool:
    """Whether a record, of which the index keeps `kept`, has surely no row in common with today's data."""
    if not kept or today is None:
        return False
    try:
        past = np.frombuffer(base64.b64decode(kept, validate=True), dtype=_HALF)
    except ValueError:
        return False
    return not np.isin(past, today, assume_unique=True).any()
