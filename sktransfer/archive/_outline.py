"""Outlines: the few numbers of each record that thousands of records are compared by.

The index keeps them, so that the past tasks with the most similar data are found without reading
the others. An outline holds the meta-features, units and response curves of a profile, "meta.x",
"scale.x" and "curve.x", with 16 bits each. They say how similar data sets are, and no more is done
with them. Records of one kind of data have the same names, of which there are few lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sktransfer.utils._array_text import decode_array, encode_array

PARTS = {"meta": "meta_features", "scale": "scales", "curve": "response_curves"}
MAX_NAMES = 400
_HALF = np.dtype(np.float16)
_MAX_VALUE = 6e4


class Outline(NamedTuple):
    """Named numbers of one record.

    Parameters
    ----------
    names : tuple of str
        One object for all outlines that have the same names.
    values : ndarray of float16, shape (len(names),)
    """

    names: tuple[str, ...]
    values: np.ndarray


_known_names: dict[tuple[str, ...], tuple[str, ...]] = {}
NOTHING = Outline((), np.empty(0, dtype=_HALF))


def make_outline(profile: Mapping[str, Any] | None) -> Outline:
    """Return the outline of a plain profile; an empty one if there is none.

    >>> make_outline({"meta_features": {"log_rows": 5.0}, "scales": {"log_std": 0.5}})
    Outline(names=('meta.log_rows', 'scale.log_std'), values=array([5. , 0.5], dtype=float16))
    """
    if profile is None:
        return NOTHING
    numbers = {
        f"{part}.{name}": value
        for part, field in PARTS.items()
        for name, value in (profile.get(field) or {}).items()
    }
    if not 0 < len(numbers) <= MAX_NAMES:
        return NOTHING
    values = np.clip(np.array(list(numbers.values()), dtype=float), -_MAX_VALUE, _MAX_VALUE)
    return Outline(_share(tuple(numbers)), values.astype(_HALF))


def _share(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(_known_names) > 1000:  # names from an untrusted archive
        _known_names.clear()
    return _known_names.setdefault(names, names)


def tabulate_outlines(outlines: Sequence[Outline], names: Sequence[str]) -> np.ndarray:
    """Return the numbers with these names, NaN where there are none; of shape (m, len(names)).

    >>> outlines = [make_outline({"meta_features": {"a": a}}) for a in (1.0, 2.0)]
    >>> tabulate_outlines([*outlines, NOTHING], ["meta.b", "meta.a"])[:, 1]
    array([ 1.,  2., nan])
    """
    table = np.full((len(outlines), len(names)), np.nan)
    for own, rows in _group_by_names(outlines).items():
        place = {name: number for number, name in enumerate(own)}
        known = [(column, place[name]) for column, name in enumerate(names) if name in place]
        if known:
            values = np.stack([outlines[row].values for row in rows]).astype(float)
            columns, places = map(list, zip(*known, strict=True))
            table[np.ix_(rows, columns)] = values[:, places]
    return table


def _group_by_names(outlines: Sequence[Outline]) -> dict[tuple[str, ...], list[int]]:
    by_object: dict[int, list[int]] = {}  # hashing the names of each would take longer
    for row, outline in enumerate(outlines):
        by_object.setdefault(id(outline.names), []).append(row)
    groups: dict[tuple[str, ...], list[int]] = {}
    for rows in by_object.values():
        groups.setdefault(outlines[rows[0]].names, []).extend(rows)
    return groups


# -- plain data ------------------------------------------------------------------------------------


def outlines_to_plain(outlines: Sequence[Outline]) -> list[dict[str, Any]]:
    """Return plain data for the index: one table for all outlines with the same names."""
    return [
        {
            "names": list(names),
            "rows": encode_array(np.array(rows, dtype=np.uint32)),
            "values": encode_array(np.concatenate([outlines[row].values for row in rows])),
        }
        for names, rows in _group_by_names(outlines).items()
        if names
    ]


def outlines_from_plain(plain: list[dict[str, Any]], n: int) -> list[Outline]:
    """Undo `outlines_to_plain`. Raise a ValueError if the data are of another kind.

    >>> plain = outlines_to_plain([NOTHING, make_outline({"meta_features": {"a": 1.0}})])
    >>> [outline.values.tolist() for outline in outlines_from_plain(plain, 2)]
    [[], [1.0]]
    """
    found = [NOTHING] * n
    for table in plain:
        names, rows = tuple(table["names"]), decode_array(table["rows"], np.uint32)
        values = decode_array(table["values"], _HALF)
        is_valid = 0 < len(names) <= MAX_NAMES and all(type(name) is str for name in names)
        if not is_valid or len(values) != len(rows) * len(names) or not (rows < n).all():
            raise ValueError("not the outlines of an index")
        shared = _share(names)
        for row, own in zip(rows.tolist(), values.reshape(-1, len(names)), strict=True):
            found[row] = Outline(shared, own)
    return found
