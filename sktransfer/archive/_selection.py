"""Selection: which past tasks are used for a target task, and which are excluded, and why.

A past task is used if it is about the same estimator and shares a tuned parameter, whatever its
metric. It is excluded if it saw rows of the target's data: in nested cross-validation, the search
in one fold must not learn from the search in another, because their data overlap.

There is one exception. If *all* rows of the past task are among the target's, and there are more
now (last week's table with new rows), the past task knows nothing of any other row. It is used,
unless one of the two searches ran inside an outer evaluation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np

from sktransfer.archive._key import ArchiveKey
from sktransfer.archive._lazy_task import LazyTask
from sktransfer.archive._outline import Outline, make_outline
from sktransfer.archive._row_comparison import RowComparison
from sktransfer.archive._storage import warn_skipped
from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import RecordError
from sktransfer.space import Space
from sktransfer.space._estimator_tree import described_final_estimator, is_estimator_description
from sktransfer.space._parameter_names import match_canonical_names, split_owners
from sktransfer.task import Task

SpaceLike = Space | Mapping[str, Any] | None
ProfileLike = (
    DatasetProfile | Mapping[str, Any] | Sequence[DatasetProfile | Mapping[str, Any]] | None
)

MAX_OVERLAP = 0.01
"""Share of common rows at which a task is excluded. Below, rows (of zeros) can agree by chance."""

MAX_COMPARED = 4
"""How many times the number of used tasks are compared with the target's rows. Those beyond it
have less similar data, and would have to be read."""

GROWTH = 1.25
"""Factor by which an archive grows until another sample of its tasks is drawn."""

MIN_OVERLAP = 1e-12  # a share above zero, however small
_OTHER_PROBLEM = ("another estimator", "no parameter in common", "no successful trial")
_DETAIL = re.compile(
    r"(shares)? about \d+ % of its(?= rows)|(?<=continued) in .*|(?<=another run of the search) .*"
    r"|(?<=continues) [^,]*(?=,)"
)
_WRAPPING_PARAMETERS = {"estimator", "base_estimator", "final_estimator", "regressor", "classifier"}
"""Parameters that hold a wrapped estimator. Wrappers of different estimators are not comparable."""


@dataclass(frozen=True)
class Selection:
    """The past tasks that are used for a target task, and those that are excluded.

    Parameters
    ----------
    used : tuple of Task
        The tasks that are used.
    excluded : tuple of (Task, str)
        The tasks that are excluded, each with the reason.
    overlap : dict of str to str
        What is known of the rows of the used tasks, by id: "none" (no shared rows), "contained"
        (all rows of the task are among the current ones) or "unknown" (they cannot be compared).

    Examples
    --------
    >>> Selection(used=(), excluded=()).used
    ()
    """

    used: tuple[Task, ...]
    excluded: tuple[tuple[Task, str], ...]
    overlap: Mapping[str, str] = field(default_factory=dict)

    def loaded(self) -> Selection:
        """Return the same selection with all trials in memory, as `load_tasks`."""
        return replace(self, used=load_tasks(self.used))

    def count_excluded(self) -> dict[str, int]:
        """Count the excluded tasks by reason. Searches of other problems are left out.

        Examples
        --------
        >>> from sktransfer.task import Task
        >>> tasks = [Task.from_trials({"C": [1]}, []) for _ in range(3)]
        >>> reasons = ["shares about 50 % of its rows with these data"] * 2
        >>> reasons += ["another estimator: SVC"]
        >>> Selection((), tuple(zip(tasks, reasons))).count_excluded()
        {'shares rows with these data': 2}
        """
        reasons = (reason for _, reason in self.excluded if not reason.startswith(_OTHER_PROBLEM))
        return dict(Counter(_DETAIL.sub(r"\1", reason) for reason in reasons))


def load_tasks(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Read the trials and profiles of tasks into memory.

    Tasks without trials are left out. So are records that were damaged since they were listed, with
    a warning.
    """
    found = []
    for task in tasks:
        try:
            # Both now: a profile that cannot be read later would cost the whole model.
            trials, _ = task.trials, task.profile
        except RecordError as error:
            warn_skipped(error)
        else:
            found += [task] if trials else []
    return tuple(found)


@dataclass(frozen=True)
class Limit:
    """How many past tasks are used at most, and which ones.

    Parameters
    ----------
    max_tasks : int
    distances : callable
        Tasks -> the distance of each one's data from the target's. Those with the smallest are
        used. It need not read the tasks (see `outlines_of`).
    n_nearest : int or None
        If given, `max_tasks` tasks are a sample that is the same for every target, so that what a
        model learns from it can be used again. It comes first, the oldest task first. The
        `n_nearest` tasks with the most similar data follow.
    """

    max_tasks: int
    distances: Callable[[Sequence[Task]], np.ndarray]
    n_nearest: int | None = None

    @property
    def reason(self) -> str:
        return f"{self.n_nearest or self.max_tasks} other past tasks have more similar data"

    def sample(self, tasks: list[Task]) -> list[Task]:
        """Return tasks, those of the sample first, the oldest first.

        A sample of older tasks stays the same until the archive has grown by GROWTH.
        """
        records = [task for task in tasks if isinstance(task, LazyTask)]
        # Which tasks of the starter archive are excluded depends on the sizes of the target.
        drawn = records if len(records) >= self.max_tasks else tasks
        oldest_first = sorted(drawn, key=attrgetter("id"))  # twice, which makes no objects
        oldest_first.sort(key=attrgetter("created"))
        n = count_in_steps(len(drawn), min(self.max_tasks, len(drawn)))
        chosen = set(np.linspace(0, n - 1, min(n, self.max_tasks)).astype(int).tolist())
        rest = [task for number, task in enumerate(oldest_first) if number not in chosen]
        return [oldest_first[number] for number in sorted(chosen)] + rest

    def sort(self, tasks: list[Task]) -> list[Task]:
        """Return tasks by distance, the newest of equal ones first."""
        newest_first = tasks[::-1]
        order = np.argsort(self.distances(newest_first), kind="stable")
        return [newest_first[number] for number in order]


def count_in_steps(n: int, first: int) -> int:
    """Return the last of the numbers `first`, GROWTH times it and so on that is at most `n`.

    >>> [count_in_steps(n, 30) for n in (30, 36, 37, 45, 46)]
    [30, 30, 37, 37, 46]
    """
    found = following = first
    while following <= n:
        found, following = following, max(following + 1, int(following * GROWTH))
    return found


def outlines_of(tasks: Iterable[Task]) -> list[Outline]:
    """Return the numbers that data are compared by. No record is read for them."""
    return [
        task.outline if isinstance(task, LazyTask) else make_outline(task.profile) for task in tasks
    ]


def select_past_tasks(
    tasks: Iterable[Task],
    space: SpaceLike,
    profile: ProfileLike,
    overlap: float | str,
    key: ArchiveKey | None = None,
    limit: Limit | None = None,
) -> Selection:
    """Apply the rules to each task. See `Archive.select`.

    `key` is the archive's, without which the rows of its records cannot be compared.
    """
    tasks = list(tasks)
    place = {id(task): number for number, task in enumerate(tasks)}
    rows = RowComparison(as_profiles(profile), check_overlap(overlap), key)
    candidates, excluded = _same_problem(tasks, describe_space(space))
    check = _RowCheck(rows)
    used = _choose_tasks(candidates, check, limit, lambda task: place[id(task)])
    excluded += check.excluded
    if limit is not None:
        rest = [task for task in candidates if id(task) not in check.known]
        excluded += [(task, limit.reason) for task in rest]
        excluded.sort(key=lambda pair: place[id(pair[0])])
    repeated = rows.reasons_of_repetition(used)
    excluded += [(task, repeated[task.id]) for task in used if task.id in repeated]
    kept = tuple(task for task in used if task.id not in repeated)
    return Selection(kept, tuple(excluded), {task.id: rows.overlap_of[task.id] for task in kept})


class _RowCheck:
    """Takes tasks that share no rows with the target, and notes why others are excluded.

    Attributes
    ----------
    excluded : list of (Task, str)
    known : set of int
        The `id` of each task that was taken, excluded or found to be damaged.
    """

    def __init__(self, rows: RowComparison):
        self._rows, self._taken = rows, set[int]()
        self.excluded: list[tuple[Task, str]] = []
        self.known: set[int] = set()

    def take(self, tasks: Sequence[Task], n: int | None = None) -> list[Task]:
        """Return the first `n` tasks that share no rows. Only so many are compared as needed."""
        taken: list[Task] = []
        for task in tasks if n is None else tasks[: MAX_COMPARED * n]:
            if n is not None and len(taken) == n:
                break
            if id(task) not in self.known:
                self._compare(task)
            if id(task) in self._taken:
                taken.append(task)
        return taken

    def _compare(self, task: Task) -> None:
        self.known.add(id(task))
        try:
            reason = self._rows.reason_to_exclude(task)
        except RecordError as error:  # damaged since it was listed
            warn_skipped(error)
            return
        if reason:
            self.excluded.append((task, reason))
        else:
            self._taken.add(id(task))


def _choose_tasks(
    tasks: list[Task], check: _RowCheck, limit: Limit | None, place: Callable[[Task], int]
) -> list[Task]:
    """Return the tasks that are used, in the order in which they were listed, or as `Limit` says.

    The order does not depend on the target. `place` says where a task was listed.
    """
    if limit is not None and limit.n_nearest is not None:
        sample = check.take(limit.sample(tasks), limit.max_tasks)
        if len(tasks) <= limit.max_tasks:
            return sample
        held = {id(task) for task in sample}
        nearest = check.take(limit.sort(tasks), limit.n_nearest)
        return sample + sorted((task for task in nearest if id(task) not in held), key=place)
    if limit is None or len(tasks) <= limit.max_tasks:
        return check.take(tasks)
    return sorted(check.take(limit.sort(tasks), limit.max_tasks), key=place)


def _same_problem(
    tasks: list[Task], target: Mapping[str, Any] | None
) -> tuple[list[Task], list[tuple[Task, str]]]:
    """Return the tasks that are about the same problem, and the others with the reason."""
    reason_of_problem = _make_problem_rule(target)
    found: list[Task] = []
    excluded: list[tuple[Task, str]] = []
    for task in tasks:
        reason = reason_of_problem(task) or (None if task.succeeded else "no successful trial")
        if reason:
            excluded.append((task, reason))
        else:
            found.append(task)
    continued = _reasons_of_continuation(found)
    excluded += [(task, continued[task.id]) for task in found if task.id in continued]
    return [task for task in found if task.id not in continued], excluded


def check_overlap(overlap: float | str) -> float | None:
    """Return the smallest share of common rows that excludes a task; None if all are allowed."""
    if isinstance(overlap, str) and overlap in ("exclude", "allow"):
        return MAX_OVERLAP if overlap == "exclude" else None
    if not isinstance(overlap, Real) or isinstance(overlap, bool) or not 0 <= overlap <= 1:
        raise ValueError(
            f"overlap must be 'exclude', 'allow' or a number in [0, 1], got {overlap!r}."
        )
    return max(float(overlap), MIN_OVERLAP)


def describe_space(space: SpaceLike) -> Mapping[str, Any] | None:
    """Return the description of a space, given as itself or as its description."""
    if space is None:
        return None
    description = space if isinstance(space, Mapping) else space.describe()
    if not {"canonical", "predictors"} <= description.keys():
        raise ValueError(
            "space must be a Space, made by Space.parse, or the result of its describe()."
        )
    return description


def as_profiles(profile: ProfileLike) -> list[DatasetProfile]:
    """Return the profiles that `Archive.select` accepts as a list."""
    if profile is None:
        return []
    several = profile if isinstance(profile, Sequence) else [profile]
    return [DatasetProfile.from_dict(one) if isinstance(one, Mapping) else one for one in several]


# -- the same problem ----------------------------------------------------------------------------


def _make_problem_rule(target: Mapping[str, Any] | None) -> Callable[[Task], str | None]:
    """Return a function that says why a task is about another problem; None if it is not."""
    reasons: dict[
        int, tuple[dict[str, Any], str | None]
    ] = {}  # thousands of tasks share few spaces

    def reason(task: Task) -> str | None:
        found = reasons.get(id(task.space))
        if found is None:
            # The space is kept as well: the id of an object that is gone may be used again.
            found = reasons[id(task.space)] = (task.space, _other_problem(task.space, target))
        return found[1]

    return reason


def _other_problem(space: Mapping[str, Any], target: Mapping[str, Any] | None) -> str | None:
    if target is None:
        return None
    own, past = set(target["predictors"]), set(space["predictors"])
    if own and past and not own & past:
        return f"another estimator: {', '.join(sorted(past))}"
    for name in sorted(target["fixed"].keys() & space["fixed"].keys()):
        owner, _, parameter = name.partition(".")
        wrapped, past_wrapped = (_wrapped_class(each["fixed"][name]) for each in (target, space))
        if owner in own & past and parameter in _WRAPPING_PARAMETERS and wrapped != past_wrapped:
            return f"another estimator: {owner} of {past_wrapped or 'its default'}"
    names = match_canonical_names(space, target["canonical"], target["predictors"]).values()
    common = _canonical_names(target["canonical"].values()) & _canonical_names(names)
    return None if common else "no parameter in common"


def _wrapped_class(value: Any) -> str:
    """Return the class of a wrapped estimator, given its description."""
    return described_final_estimator(value)[0] if is_estimator_description(value) else ""


def _canonical_names(canonical: Iterable[str]) -> set[str]:
    """Return canonical names, each estimator's own where several share a parameter."""
    return {name for each in canonical for name in split_owners(each)}


def _reasons_of_continuation(tasks: list[Task]) -> dict[str, str]:
    """Return reasons by id: of all runs of one search, only the longest is used.

    Runs that continue the same earlier run, because it was resumed twice, are one search as well.
    Records of another origin cannot claim to continue those of this archive.
    """
    reasons: dict[str, str] = {}
    for runs in _group_runs(tasks):
        best = max(runs, key=lambda task: (task.n_trials, task.id))
        for task in runs:
            if task is best:
                continue
            if task.id in best.continues:
                reasons[task.id] = f"continued in {best.id}"
            elif best.id in task.continues:
                reasons[task.id] = f"continues {best.id}, which has more trials"
            else:
                reasons[task.id] = f"another run of the search {best.id}"
    return reasons


def _group_runs(tasks: list[Task]) -> list[list[Task]]:
    """Group tasks that are connected by `Task.continues`, also by way of a run that is gone."""
    leader: dict[tuple[str, str], tuple[str, str]] = {}

    def find(run: tuple[str, str]) -> tuple[str, str]:
        while (up := leader.setdefault(run, run)) != run:
            leader[run] = run = leader[up]  # halve the path
        return run

    continued = [task for task in tasks if task.continues]
    for task in continued:
        for id in task.continues:
            leader[find((task.origin, id))] = find((task.origin, task.id))
    groups: dict[tuple[str, str], list[Task]] = {}
    for task in tasks if continued else ():
        if (run := (task.origin, task.id)) in leader:
            groups.setdefault(find(run), []).append(task)
    return list(groups.values())
