"""The task record: plain data about one search that all folders of the package exchange.

A `Task` is a finished search on one data set, with one estimator and one space. A `Trial` is one
configuration that was evaluated in it. Scores are maximized. A task contains no objects of
libraries: parameter values are described (see `utils._values.describe`), so that later versions
can read a record.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from sktransfer.space import Space
from sktransfer.utils._values import describe

if TYPE_CHECKING:
    from sktransfer.dataset import DatasetProfile
    from sktransfer.space._estimator_tree import Estimator

TASK_FORMAT = 1
"""Format of a record on disk, independent of the version of the package.

Raise it when a reader of the old number would misread a new record: when a field changes its
meaning or its type, or when a new field must not be ignored. Do not raise it for a new field that
old readers may ignore. Records of a higher number are refused with `NewerFormatError`. From the
first release on, keep a reader and a frozen test asset for every number that was released.
"""


def new_task_id() -> tuple[str, str]:
    """Make a unique id that sorts by time, and the time of its creation (ISO 8601, UTC)."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:16]}", now.isoformat(timespec="seconds")


def short_task_name(id: str, name: str = "") -> str:
    """The name of a task if it has one, or else as much of its id as tells tasks apart.

    >>> short_task_name("20260102T030405000000-0123456789abcdef", "churn")
    'churn'
    >>> short_task_name("20260102T030405000000-0123456789abcdef")
    '2026-01-02 012345'
    >>> short_task_name("starter-SVC-iris-bare-b33d0618")
    'starter: iris'
    """
    if name:
        return name
    if found := re.fullmatch(r"starter-\w+-(.+)-(?:bare|scaled)-[0-9a-f]+", id):
        return f"starter: {found[1]}"
    if found := re.fullmatch(r"(\d{4})(\d\d)(\d\d)T\d+-([0-9a-f]{6})[0-9a-f]+", id):
        return f"{found[1]}-{found[2]}-{found[3]} {found[4]}"
    return id


@dataclass(frozen=True)
class Trial:
    """One configuration and its score.

    Parameters
    ----------
    params : dict
        Parameter names as the user declared them, values as plain data.
    score : float
        Mean cross-validated score, to be maximized. NaN if the configuration failed.
    std : float
        Standard deviation of the score over the folds.
    fit_time : float
        Mean time of one fit in seconds.
    status : {"ok", "failed"}
    metrics : dict
        Metric name -> mean score, for all recorded metrics except the one in `score`.
    std_error : float
        Standard error of the score because some folds were not evaluated (see `racing` of
        `TransferSearchCV`); 0 if all were.

    Examples
    --------
    >>> Trial.make({"C": 10.0}, 0.9, fit_time=0.02).status
    'ok'
    """

    params: dict[str, Any]
    score: float
    std: float = math.nan
    fit_time: float = math.nan
    status: str = "ok"
    metrics: dict[str, float] = field(default_factory=dict)
    std_error: float = 0.0

    @classmethod
    def make(cls, params: Mapping[str, Any], score: float, **others: Any) -> Trial:
        """Make a trial from live values, which are described as plain data.

        Parameters
        ----------
        params : dict
            Parameter name -> value of any type.
        score : float
            The trial counts as failed if it is not finite.
        **others
            Further fields of `Trial`.
        """
        if score is None:
            raise TypeError(
                "score must be a number, got None. Pass NaN if the configuration failed."
            )
        score = float(score)
        is_ok = others.pop("status", "ok") == "ok" and math.isfinite(score)
        plain = {name: describe(value) for name, value in params.items()}
        if unnamed := [name for name in others.get("metrics", ()) if not isinstance(name, str)]:
            raise TypeError(f"Names of metrics must be strings, got {unnamed[0]!r}.")
        others["metrics"] = {k: float(value) for k, value in others.get("metrics", {}).items()}
        status = "ok" if is_ok else "failed"
        return cls(plain, score if is_ok else math.nan, status=status, **others)


@dataclass(frozen=True)
class Task:
    """A finished search.

    Parameters
    ----------
    trials : tuple of Trial
    space : dict
        ``Space.describe()`` of the search space: branches, canonical names, fixed values.
    metrics : tuple of str
        Names of the metrics. The first one was optimized.
    profile : dict or None
        ``DatasetProfile.to_dict()`` of the data.
    id, created : str
        Unique id, which sorts by time, and time of creation (ISO 8601, UTC).
    versions : dict
        Library name -> version with which the search ran.
    complete : bool
        False if the search was interrupted.
    format : int
        See `TASK_FORMAT`.
    resume : dict or None
        What ``resume=True`` needs: digests that identify the search, and the results of each fold.
    name : str
        What the user calls the search; empty if it has no name.
    origin : str
        Where the record was imported or merged from. Empty for the archive's own searches.

    Examples
    --------
    >>> task = Task.from_trials({"C": [0.1, 1, 10]}, [({"C": 1}, 0.9), ({"C": 10}, 0.8)])
    >>> task.best.params
    {'C': 1}
    >>> Task.from_trials({"C": [0.1, 1, 10]}, [({"C": 1}, 0.9)], id="first")
    Task('first', unknown estimator, 1 trial, best score 0.9)
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
    name: str = ""
    origin: str = ""

    def __post_init__(self) -> None:
        id, created = new_task_id()
        if not self.created:
            object.__setattr__(self, "created", created)
        if not self.id:
            object.__setattr__(self, "id", id)

    def __repr__(self) -> str:
        predictors = ", ".join(self.space.get("predictors") or ()) or "unknown estimator"
        parts = [repr(self.id), predictors, f"{self.n_trials} trial" + "s" * (self.n_trials != 1)]
        # The trials of an archive are not read from disk for this.
        best = self.best if "trials" in self.__dict__ else None
        if best is not None:
            parts.append(f"best {self.metrics[0]} {best.score:.4g}")
        if not self.complete:
            parts.append("incomplete")
        return f"Task({', '.join(parts)})"

    @classmethod
    def from_trials(
        cls,
        space: Mapping[str, Any] | Sequence[Mapping[str, Any]] | Space,
        trials: Iterable[Trial | tuple[Mapping[str, Any], float] | Mapping[str, Any]],
        profile: DatasetProfile | dict[str, Any] | None = None,
        *,
        estimator: Estimator | None = None,
        metrics: Sequence[str] = ("score",),
        **others: Any,
    ) -> Task:
        """Make a task from trials of any origin.

        Parameters
        ----------
        space : dict, list of dict or Space
            The space that was searched, as `TransferSearchCV` accepts it.
        trials : iterable of Trial, of ``(params, score)`` or of dict
            A dict has the keys "params" and "score", and may have the other fields of `Trial`. A
            trial counts as failed if its score is not finite or its status is "failed".
        profile : DatasetProfile, dict or None
            Profile of the data.
        estimator : estimator or None
            Determines the canonical names of the parameters and the values that were fixed.
        metrics : sequence of str
            Names of the metrics. The first one is that of ``score``.
        **others
            Further fields of `Task`.
        """
        space = Space.parse(space, estimator)
        made = tuple(_as_trial(trial) for trial in trials)
        for trial in made:
            if not any(trial.params.keys() <= branch.keys() for branch in space.branches):
                raise ValueError(
                    f"The trial {trial.params!r} has parameters that the space does not have."
                )
        if profile is not None and not isinstance(profile, Mapping):
            profile = profile.to_dict()
        return cls(
            trials=made,
            space=space.describe(),
            profile=profile,
            metrics=tuple(metrics),
            **others,
        )

    @property
    def label(self) -> str:
        """The id, and the name if there is one.

        >>> Task.from_trials({"C": [1]}, [], id="a", name="churn 2026-11").label
        'a (churn 2026-11)'
        """
        return f"{self.id} ({self.name})" if self.name else self.id

    @property
    def n_trials(self) -> int:
        """Number of trials, including failed ones."""
        return len(self.trials)

    @property
    def continues(self) -> list[str]:
        """Ids of the tasks that this one continues. It contains their trials too."""
        earlier = (self.resume or {}).get("continues")
        return [id for id in earlier if isinstance(id, str)] if isinstance(earlier, list) else []

    @property
    def succeeded(self) -> bool:
        """Whether at least one trial has a finite score."""
        return any(math.isfinite(trial.score) for trial in self.trials)

    @property
    def scores(self) -> np.ndarray:
        """Scores in the order of the trials, NaN for failed ones; shape (n_trials,)."""
        return np.array([trial.score for trial in self.trials], dtype=float)

    @property
    def best(self) -> Trial | None:
        """The first trial with the highest score; None if all failed."""
        scores = self.scores
        return self.trials[int(np.nanargmax(scores))] if np.isfinite(scores).any() else None


def _as_trial(trial: object) -> Trial:
    if isinstance(trial, Trial):
        trial = {field.name: getattr(trial, field.name) for field in fields(trial)}
    if isinstance(trial, Mapping) and {"params", "score"} <= trial.keys():
        others = dict(trial)
        return Trial.make(others.pop("params"), others.pop("score"), **others)
    if isinstance(trial, Sequence) and len(trial) == 2:
        return Trial.make(*trial)
    raise TypeError(
        "A trial must be a Trial, a pair (params, score) or a dict with 'params' and 'score', "
        f"got {trial!r}."
    )
