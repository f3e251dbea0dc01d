"""What a fit has on disk while it runs: the journal it writes, and the earlier run that it goes on from.

A search that is taken up again proposes all over: its seed and its past are those of the earlier run, so the
proposals are the same, and those whose results are known are not evaluated. What comes after them is
therefore what would have come without the interruption.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sktransfer.archive import Archive, Selection
from sktransfer.model_selection._evaluator import Rows, rows_from_plain, rows_to_plain
from sktransfer.model_selection._resume_key import ABOUT, differences, past_facts, past_of
from sktransfer.task import Task, Trial
from sktransfer.utils._values import params_identity


class Progress:
    """The disk side of a run.

    Parameters
    ----------
    archive : Archive or None
    problem : dict
        Digests of what the search is about, see `_problem.describe_problem`.
    selection : Selection
        Past tasks as they are now.
    uses_past : bool
        Whether they have a say: in a whole grid, or with a surrogate that does not transfer, they have none.
    """

    def __init__(
        self,
        archive: Archive | None,
        problem: dict[str, str | None],
        selection: Selection,
        uses_past: bool = False,
    ):
        self._archive, self.problem, self.selection = archive, problem, selection
        self._uses_past = uses_past
        self.earlier: Task | None = None
        self.seed: int | None = None
        self.batch_size: int | None = None
        self.n_new = 0
        self._folds: list[list] = []
        self._known: dict[frozenset, list[Any]] = defaultdict(list)
        self._journal: Any = None
        self._writes = False  # whether the journal can be written to

    # -- an earlier run ------------------------------------------------------------------------

    def resume(self) -> None:
        """Look for an earlier run of this problem; where there is only a similar one, say what differs."""
        assert self._archive is not None
        tasks = {task.id: task for task in self._archive.journals.tasks()}
        tasks |= {task.id: task for task in self._archive}
        found = [task for task in tasks.values() if isinstance((task.resume or {}).get("problem"), dict)]
        ranked = [(differences(self.problem, task), task) for task in found]
        same = [task for differing, task in ranked if not differing]
        usable = [task for task in same if self._past(task) is not None]
        if usable:
            self._take_up(max(usable, key=lambda task: (len(task.trials), task.id)))
            return
        near = [(len(d), d, task.id) for d, task in ranked if d and len(d & ABOUT) <= 1]
        near += [(1, frozenset({"the past tasks it started from"}), task.id) for task in same]
        if near:
            _, differing, id = min(near, key=lambda each: each[0])
            warnings.warn(
                f"resume=True: the search starts anew. The nearest one in the archive, {id}, differs in "
                f"{', '.join(sorted(differing))}.",
                stacklevel=2,
            )

    def _take_up(self, task: Task) -> None:
        stored: dict[str, Any] = task.resume or {}
        past = self._past(task)
        assert past is not None
        heard, why = {other.id for other in past}, "is newer than the search that is resumed"
        later = tuple((other, why) for other in self.selection.used if other.id not in heard)
        refused = tuple(pair for pair in self.selection.excluded if pair[0].id not in heard)
        self.earlier = task
        self.selection = Selection(past, refused + later)
        self.seed, self.batch_size = _whole(stored, "seed", 0), _whole(stored, "batch_size", 1)
        for trial, rows in zip(task.trials, _listed(stored, "folds"), strict=False):
            self._known[params_identity(trial.params)].append(rows)

    def _past(self, task: Task) -> tuple[Task, ...] | None:
        return past_of(task, self.selection) if self._uses_past else self.selection.used

    def known(self, params: dict[str, Any], n_splits: int, train: bool) -> Rows | None:
        """The results of a configuration in the earlier run, once."""
        stored = self._known.get(params_identity(params)) if self._known else None
        return rows_from_plain(stored.pop(0), n_splits, train) if stored else None

    # -- the journal ---------------------------------------------------------------------------

    def begin(self, seed: int | None, batch_size: int) -> None:
        """Say what the run goes by, in case that it has to be taken up again."""
        earlier = self.earlier
        before = [] if earlier is None else [earlier.id, *_listed(earlier.resume, "continues")]
        self._facts = {
            "problem": self.problem,
            "seed": seed,
            "batch_size": batch_size,
            "past": past_facts(self.selection.used) if self._uses_past else None,
            "continues": before,
        }
        self._writes = self._archive is not None and not self._archive.readonly

    def facts(self, n_trials: int) -> dict[str, Any] | None:
        """What a record holds for a later run; None if the results of its folds could not be kept."""
        if not n_trials:
            return self._facts
        return {**self._facts, "folds": self._folds} if len(self._folds) == n_trials else None

    def add(self, trial: Trial, rows: Rows, is_new: bool, header: Callable[[], Task]) -> None:
        """Note a finished candidate; `header` gives the record without trials, for the first one."""
        self.n_new += is_new
        if self._archive is None:
            return
        try:
            folds = rows_to_plain(rows)
            self._folds.append(folds)
            if self._writes:
                self._journal = self._journal or self._archive.journals.start(header())
                self._journal.add(trial, folds)
        except Exception as error:
            self._give_up(error)

    def sync(self) -> None:
        """Put on disk what was noted."""
        if self._writes and self._journal is not None:
            try:
                self._journal.sync()
            except Exception as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        if self._writes:
            warnings.warn(
                f"The trials cannot be noted in {self._archive!r} while the search runs: "
                f"{str(error).rstrip('.')}. They are added when it ends; one that is killed will lose them.",
                stacklevel=3,
            )
        self._writes = False

    # -- the record ----------------------------------------------------------------------------

    def finish(self, trials: Sequence[Trial], interrupted: bool, record: Callable[[], Task]) -> str | None:
        """Append the record, then remove the journal; the id of the record, None if there is none."""
        if self._archive is None:
            return None
        left = sum(map(len, self._known.values()))  # not asked for: they are in the earlier journal only
        contained = not left
        if self.earlier is not None and left and self.n_new and self._uses_past:
            warnings.warn(
                f"resume=True: {left} of the {len(self.earlier.trials)} trials of {self.earlier.id} were not "
                "proposed again, and others took their place. Its meta-model may be gone from the archive; "
                "one that is trained anew proposes something else. What was tried stays in the archive.",
                stacklevel=3,
            )
        try:
            if not any(trial.status == "ok" for trial in trials):
                if not interrupted:  # which may be resumed; else nobody could learn from it
                    self._clear(contained)
                return None
            if self.earlier is not None and not self.n_new and self.earlier.id in self._archive:
                self._clear(contained=True)  # killed between record and journal, perhaps
                return self.earlier.id  # all of it is there already
            if self._archive.readonly:
                return None  # as was asked for
            id = self._append(record())
            self._clear(contained)
            return id
        except Exception as error:
            warnings.warn(  # what is in the journal is not lost
                f"The trials could not be added to {self._archive!r}: {str(error).rstrip('.')}. "
                "The search itself is not affected; give `archive` a writable directory, or None.",
                stacklevel=3,
            )
            return None

    def _append(self, record: Task) -> str:
        assert self._archive is not None
        try:
            return self._archive.append(record)
        except ValueError:
            if record.resume is None:
                raise
            # The results of a million folds are more than a record holds: the trials are what counts.
            return self._archive.append(replace(record, resume=None))

    def _clear(self, contained: bool) -> None:
        if self._journal is not None:
            self._journal.remove()
        assert self._archive is not None
        if self.earlier is not None and contained and not self._archive.readonly:
            self._archive.journals.discard(self.earlier.id)  # if that was a journal


# A record may have been edited by anybody, and its fields can be anything.


def _listed(facts: dict[str, Any] | None, name: str) -> list:
    found = (facts or {}).get(name)
    return found if isinstance(found, list) else []


def _whole(facts: dict[str, Any], name: str, least: int) -> int | None:
    found = facts.get(name)
    return found if type(found) is int and least <= found < 2**31 else None
