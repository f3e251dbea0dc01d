"""Outlines: the few numbers of each record that thousands of records are compared by.

The index keeps them, so that the past tasks with the most similar data are found without reading
the others. An outline holds the meta-features, units and response curves of a profile, "meta.x",
"scale.x" and "curve.x", with 16 bits each. They say how similar data sets are, and no more is done
with them. Records of one kind of data have the same names, of which there are few lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sktransfer.utils._array_text import decode_array, encode_array

PARTS = {"meta": "meta_features", "scale": "scales", "curve": "response_curves"}
MAX_NAMES = 400
_HALF = np.dtype(np.float16)
_MAX_VALUE = 6e4


class Outline(NamedTuple):
    """Named numbers of one record: a row of a table that many records share.

    Parameters
    ----------
    names : tuple of str
        One object for all outlines that have the same names.
    table : ndarray of float16, shape (m, len(names))
    row : int
    """

    names: tuple[str, ...]
    table: np.ndarray
    row: int = 0

    @property
    def values(self) -> np.ndarray:
        """The numbers, (len(names),)."""
        return self.table[self.row]


_known_names: dict[tuple[str, ...], tuple[str, ...]] = {}
NOTHING = Outline((), np.empty((1, 0), dtype=_HALF))


def make_outline(profile: Mapping[str, Any] | None) -> Outline:
    """Return the outline of a plain profile; an empty one if there is none.

    >>> outline = make_outline({"meta_features": {"log_rows": 5.0}, "scales": {"log_std": 0.5}})
    >>> outline.names, outline.values
    (('meta.log_rows', 'scale.log_std'), array([5. , 0.5], dtype=float16))
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
    return Outline(_share(tuple(numbers)), values.astype(_HALF)[None])


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
    found = np.full((len(outlines), len(names)), np.nan)
    for rows in _group(outlines, lambda outline: id(outline.table)):
        own, table, _ = outlines[rows[0]]
        place = {name: number for number, name in enumerate(own)}
        known = [(column, place[name]) for column, name in enumerate(names) if name in place]
        if known:
            columns, places = map(list, zip(*known, strict=True))
            values = table[[outlines[row].row for row in rows]]
            found[np.ix_(rows, columns)] = values[:, places]
    return found


def _group(outlines: Sequence[Outline], key: Callable[[Outline], Any]) -> list[list[int]]:
    """Return the numbers of the outlines with the same key."""
    groups: dict[Any, list[int]] = {}
    for number, outline in enumerate(outlines):
        groups.setdefault(key(outline), []).append(number)
    return list(groups.values())


# -- plain data ------------------------------------------------------------------------------------


def outlines_to_plain(outlines: Sequence[Outline]) -> list[dict[str, Any]]:
    """Return plain data for the index: one table for all outlines with the same names."""
    return [
        {
            "names": list(names),
            "rows": encode_array(np.array(rows, dtype=np.uint32)),
            "values": encode_array(np.concatenate([outlines[row].values for row in rows])),
        }
        for rows in _group(outlines, lambda outline: outline.names)
        if (names := outlines[rows[0]].names)
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
        shared, numbers = _share(names), values.reshape(-1, len(names))
        for number, row in enumerate(rows.tolist()):
            found[row] = Outline(shared, numbers, number)
    return found
