"""The leak guard: which past tasks saw rows of the target's data.

The hashes in a record are sealed with the key of its archive (see `_key`). The index holds halves
of the sealed hashes, so most records are not read. The hashes of the others are unsealed, and
compared with those of the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sktransfer.archive._key import ArchiveKey
from sktransfer.archive._lazy_task import LazyTask, truncated_hashes
from sktransfer.dataset import DatasetProfile
from sktransfer.task import Task

NO_OVERLAP, CONTAINED, UNKNOWN = "none", "contained", "unknown"


class RowComparison:
    """Compares the rows of past tasks with those of the target.

    Parameters
    ----------
    profiles : sequence of DatasetProfile
        The target's data.
    threshold : float or None
        Share of common rows at which a task is excluded; None if all are allowed.
    key : ArchiveKey or None
        The key of the archive.

    Attributes
    ----------
    overlap_of : dict of str to str
        What was found, by the id of the task, if it is not excluded.
    """

    def __init__(
        self, profiles: Sequence[DatasetProfile], threshold: float | None, key: ArchiveKey | None
    ) -> None:
        self._key, self._threshold = key, threshold
        self._profiles = [self._unseal(profile) for profile in profiles]
        self._hashes = None
        if key is not None and None not in self._profiles:
            self._hashes = truncated_hashes([key.seal(each) for each in self._profiles if each])
        self.overlap_of: dict[str, str] = {}
        self._contained: dict[str, tuple] = {}  # task id -> its rows

    def _unseal(self, data: DatasetProfile) -> DatasetProfile | None:
        """Return a profile with its hashes readable; None if another key is needed."""
        if not data.key:
            return data
        is_ours = self._key is not None and data.key == self._key.id
        return self._key.unseal(data) if self._key is not None and is_ours else None

    def reason_to_exclude(self, task: Task) -> str | None:
        """Say why a task shares too many rows; None if it does not."""
        found, reason = self._compare(task)
        if reason is None:
            self.overlap_of[task.id] = found
        return reason

    def _compare(self, task: Task) -> tuple[str, str | None]:
        if self._threshold is None or not self._profiles or None in self._profiles:
            return UNKNOWN, None
        if isinstance(task, LazyTask) and self._key is not None:
            if task.shares_no_row(self._hashes, self._key.id):
                return NO_OVERLAP, None
            if task.is_incomparable(self._key.id):
                return UNKNOWN, None
        seen = task.read_profile() if isinstance(task, LazyTask) else task.profile
        if seen is None:
            return UNKNOWN, None
        try:
            return self._compare_profiles(task.id, seen)
        except Exception as error:  # a task that was made by hand can hold anything
            # It may have seen the target's rows, and a leak is worse than one task less.
            reason = f"its data profile cannot be read ({type(error).__name__})"
            return UNKNOWN, reason

    def _compare_profiles(self, id: str, seen: dict[str, Any]) -> tuple[str, str | None]:
        if "forms" in seen:
            return NO_OVERLAP, self._may_be_same_data_set(seen)
        sealed = DatasetProfile.from_dict(seen)
        past = self._unseal(sealed)
        if past is None or (not len(past.fingerprint) and not sealed.key):
            return UNKNOWN, None  # sealed with another key, or exported without its hashes
        assert self._threshold is not None
        targets = [profile for profile in self._profiles if profile is not None]
        if not len(past.fingerprint):
            return UNKNOWN, "its rows are unknown, so it may have seen these data"
        if not all(len(target.fingerprint) for target in targets):
            return UNKNOWN, "these data cannot be compared with the rows it saw"
        share = max(target.overlap(past) for target in targets)
        if share < self._threshold:
            return NO_OVERLAP, None
        is_nested = past.enclosing or any(target.enclosing for target in targets)
        if not is_nested and all(target.contains(past) for target in targets):
            self._contained[id] = (past.n_rows, *past.row_digest.tolist())
            return CONTAINED, None
        percent = max(1, round(100 * share))
        return NO_OVERLAP, f"shares about {percent} % of its rows with these data"

    def _may_be_same_data_set(self, seen: dict[str, Any]) -> str | None:
        """Compare the target with a public data set, of which only sizes are known.

        A part of the data set has its columns, and at most its rows and its classes.
        """
        for target in self._profiles:
            assert target is not None
            is_same_kind = target.kind == seen["kind"]
            if not is_same_kind or (target.n_classes or 0) > (seen["n_classes"] or 0):
                continue
            for n_rows, n_columns in seen["forms"]:
                if target.n_features == n_columns and (n_rows is None or target.n_rows <= n_rows):
                    return "may be about these data, which have the same kind and sizes"
        return None

    def reasons_of_repetition(self, tasks: Iterable[Task]) -> dict[str, str]:
        """Return reasons by id: of several searches on the same contained rows, only one is used.

        Otherwise, a script that is run twice would find more past tasks the second time.
        """
        best: dict[tuple, Task] = {}
        reasons = {}
        for task in sorted(tasks, key=lambda task: task.id):
            if task.id not in self._contained:
                continue
            rows = (*self._contained[task.id], repr(task.space), task.metrics[0])
            first = best.setdefault(rows, task)
            if first is not task:
                longer, other = (task, first) if task.n_trials > first.n_trials else (first, task)
                best[rows] = longer
                reasons[other.id] = "repeats a search on the same rows"
        return reasons
