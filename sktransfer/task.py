"""The task record: what one tuning was about and what it found. Plain data that every room may read.

A `Task` is a finished tuning (one data set, one estimator, one space), a `Trial` one configuration
tried in it. Scores are maximized. Nothing in a task is an object of a library: parameter values are
described (see `_values.describe`), so that a record can be read by any later version.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sktransfer.space import Space
from sktransfer.utils._values import describe

TASK_FORMAT = 1
"""Format of a record on disk, independent of the version of the package.

Raise it when a reader of the old number would misread a new record: when a field changes its
meaning or its type, or when a new field must not be ignored. Do not raise it for a new field that
old readers may ignore. Records of a higher number are refused with `NewerFormatError`. From the
first release on, keep a reader and a frozen test asset for every number that was released.
"""


def new_task_id() -> tuple[str, str]:
    """A unique id that sorts by time, and the moment of its creation (ISO 8601, UTC)."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:16]}", now.isoformat(timespec="seconds")


@dataclass(frozen=True)
class Trial:
    """One configuration and how it did.

    Parameters
    ----------
    params : dict
        Parameter names as the user wrote them, values as plain data.
    score : float
        Mean cross-validated score, to be maximized; NaN if the configuration failed.
    std : float
        Standard deviation of the score over the folds.
    fit_time : float
        Mean seconds of one fit.
    status : {"ok", "failed"}
    metrics : dict
        Mean score of every further metric that was recorded.
    """

    params: dict[str, Any]
    score: float
    std: float = math.nan
    fit_time: float = math.nan
    status: str = "ok"
    metrics: dict[str, float] = field(default_factory=dict)

    @classmethod
    def make(cls, params: Mapping[str, Any], score: float, **facts: Any) -> Trial:
        """Build a trial from live values: describes them, and reads a score that is not finite as failed."""
        if score is None:
            raise TypeError("A score must be a number, got None; NaN says that the configuration failed.")
        score = float(score)
        ok = facts.pop("status", "ok") == "ok" and math.isfinite(score)
        plain = {name: describe(value) for name, value in params.items()}
        if unnamed := [name for name in facts.get("metrics", ()) if not isinstance(name, str)]:
            raise TypeError(f"A metric must have a name, not {unnamed[0]!r}.")
        facts["metrics"] = {name: float(value) for name, value in facts.get("metrics", {}).items()}
        return cls(plain, score if ok else math.nan, status="ok" if ok else "failed", **facts)


@dataclass(frozen=True)
class Task:
    """One tuning, finished.

    Parameters
    ----------
    trials : tuple of Trial
    space : dict
        ``Space.describe()`` of the search space: branches, canonical names, values held fixed.
    metrics : tuple of str
        Names of the metrics; the first is the one that was tuned.
    profile : dict or None
        ``DatasetProfile.to_dict()`` of the data.
    id, created : str
        Unique name, which sorts by time, and moment of creation (ISO 8601, UTC).
    versions : dict
        Versions of the libraries that made the record.
    complete : bool
        False if the tuning was interrupted.
    format : int
        See `TASK_FORMAT`.
    resume : dict or None
        What ``resume=True`` goes by: digests of the problem, and the results of each fold.

    Examples
    --------
    >>> task = Task.from_trials({"C": [0.1, 1, 10]}, [({"C": 1}, 0.9), ({"C": 10}, 0.8)])
    >>> task.best.params
    {'C': 1}
    """

    trials: tuple[Trial, ...]
    space: dict[str, Any]
    metrics: tuple[str, ...] = ("score",)
    profile: dict[str, Any] | None = None
    id: str = ""
    created: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    format: int = TASK_FORMAT
    resume: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        id, created = new_task_id()
        if not self.created:
            object.__setattr__(self, "created", created)
        if not self.id:
            object.__setattr__(self, "id", id)

    @classmethod
    def from_trials(
        cls,
        space: Any,
        trials: Iterable[Any],
        profile: Any = None,
        *,
        estimator: Any = None,
        metrics: Sequence[str] = ("score",),
        **facts: Any,
    ) -> Task:
        """Make a task from evaluations that come from anywhere.

        Parameters
        ----------
        space : dict, list of dict or Space
            The space that was searched, as `TransferSearchCV` takes it.
        trials : iterable of Trial, of ``(params, score)`` or of dict
            A dict has the keys "params" and "score", and may have the other fields of `Trial`.
            A score that is not finite, or a status "failed", makes a failed trial.
        profile : DatasetProfile, dict or None
            What is known of the data.
        estimator : estimator or None
            Gives the parameters their canonical names, and the values that were held fixed.
        metrics : sequence of str
            Names of the metrics; the first is the one in ``score``.
        """
        space = Space.parse(space, estimator)
        made = tuple(_as_trial(trial) for trial in trials)
        for trial in made:
            if not any(trial.params.keys() <= branch.keys() for branch in space.branches):
                raise ValueError(f"The trial {trial.params!r} has parameters that the space does not have.")
        if profile is not None and not isinstance(profile, Mapping):
            profile = profile.to_dict()
        return cls(
            trials=made,
            space=space.describe(),
            profile=profile,
            metrics=tuple(metrics),
            **facts,
        )

    @property
    def n_trials(self) -> int:
        """Number of trials, also those that failed."""
        return len(self.trials)

    @property
    def continues(self) -> list[str]:
        """Ids of the tasks that this one goes on from, whose trials it holds as well."""
        earlier = (self.resume or {}).get("continues")
        return [id for id in earlier if isinstance(id, str)] if isinstance(earlier, list) else []

    @property
    def succeeded(self) -> bool:
        """Whether any trial has a score."""
        return any(math.isfinite(trial.score) for trial in self.trials)

    @property
    def scores(self) -> np.ndarray:
        """Scores in the order of the trials, NaN where a trial failed; shape (n_trials,)."""
        return np.array([trial.score for trial in self.trials], dtype=float)

    @property
    def best(self) -> Trial | None:
        """The trial with the highest score, the first one among equals; None if none succeeded."""
        scores = self.scores
        return self.trials[int(np.nanargmax(scores))] if np.isfinite(scores).any() else None


def _as_trial(trial: Any) -> Trial:
    if isinstance(trial, Trial):
        trial = {field.name: getattr(trial, field.name) for field in fields(trial)}
    if isinstance(trial, Mapping) and {"params", "score"} <= trial.keys():
        facts = dict(trial)
        return Trial.make(facts.pop("params"), facts.pop("score"), **facts)
    if isinstance(trial, Sequence) and len(trial) == 2:
        return Trial.make(*trial)
    raise TypeError(
        f"A trial is a Trial, a pair (params, score) or a dict with 'params' and 'score', not {trial!r}."
    )
