"""What may speak: which past tasks have something to say about today's problem, and may say it.

A task is heard if it is about the same estimator and shares a tuned parameter, whatever its metric. It
is refused if it saw rows of today's data: in nested cross-validation the search in one fold must not
learn from the search in another, because their data overlap.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from sktransfer.archive._rows import halves
from sktransfer.archive._stored import StoredTask
from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import RecordError
from sktransfer.space._estimator_tree import described_final_estimator, is_estimator_description
from sktransfer.space._parameter_names import match_canonical_names, split_owners
from sktransfer.task import Task

EXCLUDED = 0.01
"""Share of common rows from which on a task is refused. A few can be common by chance: rows of zeros."""

ANY = 1e-12  # a share above zero, however small
_WRAPS = {"estimator", "base_estimator", "final_estimator", "regressor", "classifier"}
"""Parameters by which a wrapper of one estimator is another thing than a wrapper of another."""


@dataclass(frozen=True)
class Selection:
    """The past tasks that may speak, and those that may not.

    Parameters
    ----------
    used : tuple of Task
        Those that may.
    excluded : tuple of (Task, str)
        Those that may not, each with the reason.

    Examples
    --------
    >>> Selection(used=(), excluded=()).used
    ()
    """

    used: tuple[Task, ...]
    excluded: tuple[tuple[Task, str], ...]

    def loaded(self) -> Selection:
        """The same with every trial in memory; a record that was damaged since it was listed is left out."""
        return Selection(load_tasks(self.used), self.excluded)


def load_tasks(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """The tasks with every trial in memory, but those of which there is none, or whose record is bad."""
    heard = []
    for task in tasks:
        try:
            heard += [task] if task.trials else []
        except RecordError as error:
            warn_skipped(error)
    return tuple(heard)


def warn_skipped(error: RecordError) -> None:
    """Say that a record is left out."""
    warnings.warn(f"Skipped a file of the archive, {error}. {error.advice}", stacklevel=3)


def select_past_tasks(tasks: Iterable[Task], space: Any, profile: Any, overlap: float | str) -> Selection:
    """Put each task to the rules; see `Archive.select`."""
    today = described(space)
    guard = _guard(profiles_of(profile), check_overlap(overlap))
    heard: list[Task] = []
    refused: list[tuple[Task, str]] = []
    tasks = list(tasks)
    continued, about = _continued(tasks), other_problem(today)
    for task in tasks:
        try:
            reason = about(task) or _no_success(task) or continued.get(task.id) or guard(task)
        except RecordError as error:  # damaged since it was listed
            warn_skipped(error)
            continue
        if reason:
            refused.append((task, reason))
        else:
            heard.append(task)
    return Selection(tuple(heard), tuple(refused))


def other_problem(today: Mapping[str, Any] | None) -> Callable[[Task], str | None]:
    """For each task, why it is refused for what it was about, whatever its trials and its data; or None."""
    reasons: dict[int, tuple[Any, str | None]] = {}  # thousands of tasks share a few spaces

    def reason(task: Task) -> str | None:
        found = reasons.get(id(task.space))
        if found is None:
            # With the space itself, which so lives on: the id of one that is gone may come again.
            found = reasons[id(task.space)] = (task.space, _other_problem(task.space, today))
        return found[1]

    return reason


def check_overlap(overlap: float | str) -> float | None:
    """The smallest share of rows that is too much; None if any share is allowed."""
    if isinstance(overlap, str) and overlap in ("exclude", "allow"):
        return EXCLUDED if overlap == "exclude" else None
    if not isinstance(overlap, Real) or isinstance(overlap, bool) or not 0 <= overlap <= 1:
        raise ValueError(f"overlap must be 'exclude', 'allow' or a number in [0, 1], got {overlap!r}.")
    return max(float(overlap), ANY)


def described(space: Any) -> Mapping[str, Any] | None:
    """What a space says about itself; None of none."""
    if space is None:
        return None
    description = space if isinstance(space, Mapping) else space.describe()
    if not {"canonical", "predictors"} <= description.keys():
        raise ValueError("space must be a Space, made by Space.parse, or what its describe() returns.")
    return description


def profiles_of(profile: Any) -> list[DatasetProfile]:
    """What `Archive.select` takes for the data at hand, as a list."""
    if profile is None:
        return []
    several = profile if isinstance(profile, Sequence) else [profile]
    return [DatasetProfile.from_dict(one) if isinstance(one, Mapping) else one for one in several]


def _other_problem(space: Mapping[str, Any], today: Mapping[str, Any] | None) -> str | None:
    if today is None:
        return None
    ours, theirs = set(today["predictors"]), set(space["predictors"])
    if ours and theirs and not ours & theirs:
        return f"another estimator: {', '.join(sorted(theirs))}"
    for name in sorted(today["fixed"].keys() & space["fixed"].keys()):
        owner, _, parameter = name.partition(".")
        own, past = _wrapped(today["fixed"][name]), _wrapped(space["fixed"][name])
        if owner in ours & theirs and parameter in _WRAPS and own != past:
            return f"another estimator: {owner} of {past or 'its default'}"
    names = match_canonical_names(space, today["canonical"], today["predictors"]).values()
    common = _names(today["canonical"].values()) & _names(names)
    return None if common else "no parameter in common"


def _wrapped(value: Any) -> str:
    """The class of an estimator that another one is held to wrap."""
    return described_final_estimator(value)[0] if is_estimator_description(value) else ""


def _names(canonical: Iterable[str]) -> set[str]:
    """Canonical names of what a space tunes, each estimator's own where several share a parameter."""
    return {name for each in canonical for name in split_owners(each)}


def _continued(tasks: list[Task]) -> dict[str, str]:
    """Reasons for tasks that another one goes on from: of one search's stages only the longest counts."""
    lengths = {task.id: task.n_trials for task in tasks}
    reasons: dict[str, str] = {}
    for task in tasks:
        for id in task.continues:
            if id not in lengths or id == task.id:
                continue
            if lengths[id] <= task.n_trials:
                reasons[id] = f"continued in {task.id}"
            else:
                reasons[task.id] = f"continues {id}, which has more trials"
    return reasons


def _no_success(task: Task) -> str | None:
    return None if task.succeeded else "no successful trial"


def _guard(profiles: list[DatasetProfile], threshold: float | None) -> Callable[[Task], str | None]:
    """For each task, why it is refused for the rows that it saw; or None. Most need not be read for it."""
    today = halves(profiles)

    def reason(task: Task) -> str | None:
        if threshold is None or not profiles or (isinstance(task, StoredTask) and task.is_apart(today)):
            return None
        return None if task.profile is None else _shared_rows(task.profile, profiles, threshold)

    return reason


def _shared_rows(seen: dict[str, Any], profiles: list[DatasetProfile], threshold: float) -> str | None:
    try:
        past = DatasetProfile.from_dict(seen)
        if not len(past.fingerprint):
            return "its rows are not known, so nobody can tell whether it saw these data"
        if not all(len(profile.fingerprint) for profile in profiles):
            return "the rows of these data cannot be compared with those it saw"
        share = max(profile.overlap(past) for profile in profiles)
    except Exception as error:  # the profile of a stranger's record can be anything
        # Nobody can tell whose rows it saw, and a leak is worse than a task less.
        return f"its profile of the data cannot be read ({type(error).__name__})"
    if share < threshold:
        return None
    return f"shares rows with these data (about {max(1, round(100 * share))} %)"
