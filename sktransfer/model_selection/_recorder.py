"""`Recorder`: writes a journal while the search runs, and one record at its end."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import Any

from sktransfer.archive import Journal, OutOfReachError, library_versions
from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import ArchiveWarning, ResumeWarning
from sktransfer.model_selection._history import History
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._results import Candidate, PlainRows, rows_to_plain
from sktransfer.model_selection._resume_key import past_task_facts
from sktransfer.task import Task, Trial
from sktransfer.utils._user_warnings import warn_user
from sktransfer.utils._values import params_identity


class Recorder:
    """The trials of a search, in memory and on disk.

    Parameters
    ----------
    plan : SearchPlan
    history : History

    Attributes
    ----------
    trials : list of Trial
    metric : str
        Name of the optimized metric in the record.
    """

    def __init__(self, plan: SearchPlan, history: History):
        self._archive, self._space, self._history = plan.archive, plan.space, history
        self._uses_past_tasks, self._name = plan.uses_past_tasks, plan.name
        self.trials: list[Trial] = []
        self.metric = "score"
        self._plain_rows: list[PlainRows] = []
        self._n_new = 0
        self._journal: Journal | None = None
        self._can_write = plan.archive is not None and not plan.archive.readonly
        self._synced = 0.0
        self._is_finished = False

    # -- while the search runs -----------------------------------------------------------------

    def add(self, candidate: Candidate) -> None:
        """Record an evaluated candidate, and add it to the journal."""
        self.trials.append(candidate.trial)
        self._n_new += candidate.is_new
        self.metric = candidate.metric
        if self._archive is None:
            return
        try:
            plain_rows = rows_to_plain(candidate.rows)
            self._plain_rows.append(plain_rows)
            if self._can_write:
                if self._journal is None:
                    self._journal = self._archive.journals.start(
                        self._task([], False, candidate.trial)
                    )
                self._journal.add(candidate.trial, plain_rows)
        except Exception as error:
            self._disable_journal(error)

    def replace(self, number: int, candidate: Candidate) -> None:
        """Record a candidate anew, after the rest of its folds. The journal keeps the first."""
        self.trials[number] = candidate.trial
        if number < len(self._plain_rows):
            self._plain_rows[number] = rows_to_plain(candidate.rows)
        self._n_new += 1

    def sync(self, after: float = 0.0) -> None:
        """Write the journal to disk, unless it was written less than `after` seconds ago."""
        now = time.monotonic()
        if not self._can_write or self._journal is None or now - self._synced < after:
            return
        try:
            self._journal.sync()
            self._synced = now
        except Exception as error:
            self._disable_journal(error)

    def _disable_journal(self, error: Exception) -> None:
        if self._can_write:
            warn_user(
                f"The journal of this search cannot be written to {self._archive!r}: "
                f"{str(error).rstrip('.')}. The trials are added when the search ends. If it is "
                "killed before, they are lost.",
                ArchiveWarning,
            )
        self._can_write = False

    # -- the record ----------------------------------------------------------------------------

    def to_task(self, is_complete: bool) -> Task:
        """The record of the trials so far."""
        return self._task(self.trials, is_complete, *self.trials)

    @property
    def profile(self) -> DatasetProfile:
        """The profile as it is stored: without a sample, unless the archive keeps samples."""
        keeps_sample = self._archive is not None and self._archive.keep == "sample"
        data = self._history.profile
        return data if keeps_sample else replace(data, sample=None)

    def _task(self, trials: list[Trial], is_complete: bool, *named_by: Trial) -> Task:
        """A record of some trials. The names of metrics are those of the trials `named_by`."""
        others = dict.fromkeys(metric for trial in named_by for metric in trial.metrics)
        archive = self._archive
        return Task.from_trials(
            self._space,
            trials,
            self.profile,
            metrics=(self.metric, *others),
            versions=library_versions(),
            complete=is_complete,
            id=self._history.task_id,
            created=self._history.created,
            name=self._name,
            resume=None if archive is None else self._resume_facts(len(trials)),
        )

    def _resume_facts(self, n_trials: int) -> dict[str, Any] | None:
        """What a later run needs to resume this one; None if rows of some trial are missing."""
        history = self._history
        past = past_task_facts(history.selection.used) if self._uses_past_tasks else None
        facts = {
            "problem": history.digests,
            "seed": history.seed,
            "batch_size": history.batch_size,
            "past": past,
            "continues": list(history.continues),
            "reused": list(dict.fromkeys(each.task_id for each in history.reused)),
        }
        if not n_trials:
            return facts
        return {**facts, "folds": self._plain_rows} if len(self._plain_rows) == n_trials else None

    def finish(self, *, is_complete: bool, is_interrupted: bool = False) -> str | None:
        """Append the record to the archive, then remove the journal. A failure costs a warning
        only.

        Parameters
        ----------
        is_complete : bool
            Whether the search ran to its end.
        is_interrupted : bool
            Whether the user interrupted it. Then it may be resumed even if no trial succeeded.

        Returns
        -------
        str or None
            Id of the record; None if there is none.
        """
        if self._archive is None or self._is_finished:
            return None
        self._is_finished = True
        n_left = self._n_not_proposed_again()
        try:
            return self._finish(is_complete, is_interrupted, is_contained=not n_left)
        except OutOfReachError:  # the journal stays in the local copy, and the user was warned
            return None
        except Exception as error:
            warn_user(  # what is in the journal is not lost
                f"The trials cannot be added to {self._archive!r}: {str(error).rstrip('.')}. "
                "The search itself is not affected. Pass a writable directory as archive, or None.",
                ArchiveWarning,
            )
            return None

    def _finish(self, is_complete: bool, is_interrupted: bool, is_contained: bool) -> str | None:
        assert self._archive is not None
        resumed = self._history.resumed
        if not any(trial.status == "ok" for trial in self.trials):
            if not is_interrupted:  # nothing can be learned from it
                self._remove_journals(is_contained)
            return None
        if resumed is not None and not self._n_new and resumed.id in self._archive:
            self._remove_journals(is_contained=True)
            return resumed.id  # there is nothing new to record
        if self._archive.readonly:
            return None
        id = self._append(self.to_task(is_complete))
        self._remove_journals(is_contained)
        return id

    def _n_not_proposed_again(self) -> int:
        """Number of trials of the resumed run that this one did not propose, with a warning."""
        resumed = self._history.resumed
        if resumed is None:
            return 0
        earlier, own = (
            Counter(params_identity(trial.params) for trial in trials)
            for trials in (resumed.trials, self.trials)
        )
        n_left = (earlier - own).total()
        if n_left and self._n_new and self._uses_past_tasks:
            warn_user(
                f"resume=True: {n_left} of the {len(resumed.trials)} trials of {resumed.id} were "
                "not proposed again, and others took their place. Its trained surrogate may be "
                "gone from the archive's model cache, and a new one proposes other "
                "configurations. The earlier trials stay in the archive.",
                ResumeWarning,
            )
        return n_left

    def _append(self, record: Task) -> str:
        assert self._archive is not None
        try:
            return self._archive.append(record)
        except ValueError:
            if record.resume is None:
                raise
            # A record cannot hold the results of a million folds, but it can hold the trials.
            return self._archive.append(replace(record, resume=None))

    def _remove_journals(self, is_contained: bool) -> None:
        """Remove the journal, and that of the resumed run if all its trials are in this one."""
        assert self._archive is not None
        if self._journal is not None:
            self._journal.remove()
        resumed = self._history.resumed
        if resumed is not None and is_contained and not self._archive.readonly:
            self._archive.journals.discard(resumed.id)
