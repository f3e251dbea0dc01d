"""A task whose index entry is in memory while its trials and its profile are still on disk.

The entry also tells, for most records, that they cannot share rows with the target's data. It keeps
the lower halves of a record's hashes as one sorted set: those of its rows, of its columns, of its
patterns, and of the data around. They are sealed with the key of the
archive, as in the record. `DatasetProfile.overlap` depends on equal hashes only. If two such sets
have no member in common, the overlap is 0. If they have one, which happens by chance to one
unrelated record in a thousand, the record itself must be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sktransfer.archive._outline import Outline
from sktransfer.archive._storage import SUFFIX, read_task
from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import RecordError
from sktransfer.task import Task
from sktransfer.utils._array_text import decode_array, encode_array

_HALF = np.dtype(np.uint32)
_COMPARED = (
    "fingerprint",
    "column_fingerprint",
    "pattern_fingerprint",
    "target_fingerprint",
)


@dataclass(slots=True)
class IndexEntry:
    """One record without trials and profile, and the size and time of the file it was read from."""

    size: int
    mtime_ns: int
    created: str
    common: dict[str, Any]  # space, metrics, versions, origin: one for all that agree in them
    complete: bool
    format: int
    n_trials: int
    n_ok: int
    has_profile: bool
    continues: str  # ids, separated by blanks
    name: str
    best: float  # the best score; NaN if no trial succeeded
    n_rows: int | None
    n_features: int | None
    search: str  # see `search_key`
    outline: Outline
    row_hashes: str = ""  # see `encode_hashes`; empty until the record has been read for them
    is_changed: bool = False  # whether row_hashes were added since the index was read


class _EntryField:
    """A field of a task that its index entry holds."""

    def __init__(self, read: Callable[[IndexEntry], Any]) -> None:
        self._read = read

    def __get__(self, task: LazyTask, owner: type) -> Any:
        return self._read(task._entry)


class LazyTask(Task):
    """A task that reads its trials and its profile from the archive when they are first used.

    It is equal to the task it stands for. Using it raises a `RecordError` if the file was damaged
    meanwhile. Most of thousands of tasks are excluded at once, so each holds little of its own.
    """

    # An attribute of the instance takes precedence over these, so that dataclasses.replace works
    # as usual.
    trials = cached_property(lambda self: self._read().trials)
    profile = cached_property(
        lambda self: self._read().profile if self._entry.has_profile else None
    )
    resume = cached_property(lambda self: self._read().resume)
    space = _EntryField(lambda entry: entry.common["space"])
    metrics = _EntryField(lambda entry: tuple(entry.common["metrics"]))
    versions = _EntryField(lambda entry: entry.common["versions"])
    origin = _EntryField(lambda entry: entry.common["origin"])
    created = _EntryField(lambda entry: entry.created)
    complete = _EntryField(lambda entry: entry.complete)
    format = _EntryField(lambda entry: entry.format)
    name = _EntryField(lambda entry: entry.name)
    _entry: IndexEntry
    _folder: Path

    @classmethod
    def from_entry(cls, entry: IndexEntry, id: str, folder: Path) -> LazyTask:
        """Make the task of an index entry. `folder` contains its record file."""
        task = cls.__new__(cls)
        for name, value in (("_entry", entry), ("_folder", folder), ("id", id)):
            object.__setattr__(task, name, value)
        return task

    def _read(self) -> Task:
        path = self._folder / (self.id + SUFFIX)
        try:
            task = read_task(path)
        except FileNotFoundError:
            raise RecordError(path, "it was removed since the archive was read") from None
        entry = self._entry
        if task.profile is not None and not entry.row_hashes:
            entry.row_hashes = encode_hashes(task.profile)
            entry.is_changed = bool(entry.row_hashes)
        return task

    def read_profile(self) -> dict[str, Any] | None:
        """Return the profile without keeping it: those of thousands of records take a gigabyte."""
        if "profile" in self.__dict__ or not self._entry.has_profile:
            return self.profile
        return self._read().profile

    def load(self) -> Task:
        """Return the whole task, read from disk."""
        return Task(**{field.name: getattr(self, field.name) for field in fields(Task)})

    @property
    def n_trials(self) -> int:
        """Number of trials, known without reading them."""
        return len(self.trials) if "trials" in self.__dict__ else self._entry.n_trials

    @property
    def continues(self) -> list[str]:
        return self._entry.continues.split()

    @property
    def outline(self) -> Outline:
        """The numbers of its profile that it is compared by, known without reading it."""
        return self._entry.outline

    @property
    def search(self) -> str:
        """The `search_key` of the record, known without reading it."""
        return self._entry.search

    def summary(self) -> dict[str, Any]:
        """The best score and the sizes of the data, known without reading the record."""
        entry = self._entry
        best = None if np.isnan(entry.best) else entry.best
        return {"best": best, "n_rows": entry.n_rows, "n_features": entry.n_features}

    @property
    def succeeded(self) -> bool:
        """Whether any trial succeeded, known without reading them."""
        return self._entry.n_ok > 0 if "trials" not in self.__dict__ else super().succeeded

    def shares_no_row(self, target_hashes: np.ndarray | None, key_id: str) -> bool:
        """Whether it certainly shares no row with data of these `truncated_hashes`.

        This reads nothing, so False means that the profile must be compared.
        """
        return "profile" not in self.__dict__ and surely_disjoint(
            self._entry.row_hashes, target_hashes, key_id
        )

    def is_incomparable(self, key_id: str) -> bool:
        """Whether its rows are certainly not known under this key. This reads nothing."""
        sealed_with, colon, _ = self._entry.row_hashes.partition(":")
        return bool(colon) and sealed_with != key_id

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyTask):
            other = other.load()
        return self.load() == other if isinstance(other, Task) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as for Task, which holds dicts

    def __reduce__(self) -> tuple:
        return Task, tuple(getattr(self, field.name) for field in fields(Task))


# -- the search ----------------------------------------------------------------------------------

SEARCH_FIELDS = ("the data", "the target", "the estimator")
"""What an earlier run of a search, or a similar search, has in common with it."""
KEY_DIGITS = 8


def search_key(digests: Mapping[str, Any] | None) -> str:
    """Return the beginnings of the digests that tell what a search is about; empty without them.

    >>> search_key({"the data": "a" * 32, "the target": "b" * 32, "the estimator": "c" * 32})
    'aaaaaaaabbbbbbbbcccccccc'
    """
    found = [(digests or {}).get(name) for name in SEARCH_FIELDS]
    if not all(isinstance(each, str) and len(each) >= KEY_DIGITS for each in found):
        return ""
    return "".join(str(each)[:KEY_DIGITS] for each in found)


def count_equal_fields(key: str, other: str) -> int:
    """Count the `SEARCH_FIELDS` that two searches have in common, given their keys.

    >>> count_equal_fields("aaaaaaaabbbbbbbbcccccccc", "aaaaaaaabbbbbbbbdddddddd")
    2
    """
    if not key or not other:
        return 0
    starts = range(0, len(SEARCH_FIELDS) * KEY_DIGITS, KEY_DIGITS)
    return sum(key[at : at + KEY_DIGITS] == other[at : at + KEY_DIGITS] for at in starts)


# -- hashes of rows ------------------------------------------------------------------------------


def truncated_hashes(profiles: Sequence[DatasetProfile]) -> np.ndarray | None:
    """Return the lower halves of all hashes of some data, sorted; None if any rows are unknown."""
    if not profiles or not all(len(profile.fingerprint) for profile in profiles):
        return None
    parts = [part for profile in profiles for part in (profile, *profile.enclosing)]
    hashes = [getattr(part, name) for part in parts for name in _COMPARED]
    # Rows that are equal in the same order of columns are equal in any order. So these hashes are
    # not needed, unless they are a sample.
    samples = [part for part in parts if part.n_ordered > len(part.ordered_fingerprint)]
    hashes += [part.ordered_fingerprint for part in samples]
    return np.unique(np.concatenate(hashes).astype(_HALF))


def encode_hashes(profile: dict[str, Any]) -> str:
    """Return what the index keeps of a record's profile; empty if the record itself must be read.

    It is the id of the key with which the hashes are sealed, a colon, and the hashes.

    >>> from sktransfer.dataset import profile
    >>> known = encode_hashes({**profile([[1.0, 2.0], [3.0, 4.0]]).to_dict(), "key": "a"})
    >>> targets = [[5.0], [6.0]], [[5.0, 6.0], [4.0, 3.0]]
    >>> [surely_disjoint(known, truncated_hashes([profile(X)]), "a") for X in targets]
    [True, False]
    """
    try:
        past = DatasetProfile.from_dict(profile)
        past.overlap(past)  # raises an error if anything in it cannot be compared
        hashes = truncated_hashes([past])
    except Exception:  # the profile of an untrusted record can be anything
        return ""
    if hashes is None:
        return "" if past.key else "none:"  # opaque data, or a record without its hashes
    return f"{past.key}:{encode_array(hashes)}" if past.key else ""


def surely_disjoint(encoded: str, target_hashes: np.ndarray | None, key_id: str) -> bool:
    """Whether a record with these encoded hashes certainly shares no row with the target."""
    sealed_with, colon, hashes = encoded.partition(":")
    if not colon or sealed_with != key_id or target_hashes is None:
        return False
    try:
        past = decode_array(hashes, _HALF)
    except ValueError:
        return False
    return not np.isin(past, target_hashes, assume_unique=True).any()
