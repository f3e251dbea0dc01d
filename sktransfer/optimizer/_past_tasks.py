"""Past tasks in the terms of the target: its coordinates, its metric where it was recorded, one
unit.

A past search that optimized accuracy and also recorded the log loss tells which settings had a good
log loss. If it recorded neither the target's metric nor a related one, it is ranked by the metric
it optimized. Where past tasks have several units, all are put on the scale of one, the target's if
it is among them. Otherwise the score predicted before the first trial would be an average of, say,
R² and dollars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.optimizer._pool import Pool
from sktransfer.optimizer._trials import clip_codes, trial_metrics, trial_scores
from sktransfer.space import Space
from sktransfer.space._projection import encode_past_task
from sktransfer.surrogates import EncodedTask, ScorePrior, SearchHints, Surrogate
from sktransfer.task import Task
from sktransfer.utils._scores import clip_low_outliers, standardize
from sktransfer.utils._values import params_identity

RELATED_METRICS = (
    ("accuracy", "f1_micro", "f1_weighted", "precision_weighted", "recall_weighted"),
    ("balanced_accuracy", "recall_macro", "f1_macro", "f1", "matthews_corrcoef"),
    ("roc_auc", "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "average_precision"),
    ("neg_log_loss", "neg_brier_score", "d2_log_loss_score", "d2_brier_score"),
    ("r2", "explained_variance", "neg_mean_squared_error", "neg_root_mean_squared_error"),
    ("neg_mean_absolute_error", "d2_absolute_error_score", "neg_median_absolute_error"),
)
"""Metrics that mostly agree on which of two settings is better. Each has a unit of its own."""


class _Scored(NamedTuple):
    task: EncodedTask
    unit: str | None  # None: that of the target's metric


class PastScale(NamedTuple):
    """The scale that the scores of all past tasks are put on.

    Parameters
    ----------
    unit : str or None
        The metric. None is that of the target.
    shift, scale : float
        Typical level and spread of the scores in this unit. Scores in other units get them.
    """

    unit: str | None
    shift: float
    scale: float

    @classmethod
    def from_tasks(cls, scored: Sequence[_Scored]) -> PastScale:
        """The target's unit if a task has it, otherwise the most common one."""
        successful = [each for each in scored if np.isfinite(each.task.z).any()]
        units = Counter(unit for _, unit in successful)
        unit = None if None in units or not units else units.most_common(1)[0][0]
        made = [
            (*standardize(clip_low_outliers(task.z))[1:], np.nanstd(task.z) > 0)
            for task, own in successful
            if own == unit
        ]
        shift = float(np.median([shift for shift, _, _ in made])) if made else 0.0
        logs = [np.log(scale) for _, scale, is_spread in made if is_spread]
        # Single trials have no spread: take a tenth of their level.
        scale = float(np.exp(np.median(logs))) if logs else 0.1 * abs(shift) or 1.0
        return cls(unit, shift, scale)

    def apply(self, scored: _Scored) -> EncodedTask:
        """The task with its scores on this scale, in the same order."""
        task = scored.task
        if scored.unit == self.unit or not np.isfinite(task.z).any():
            return task
        _, own_shift, own_scale = standardize(clip_low_outliers(task.z))
        return replace(task, z=self.shift + self.scale / own_scale * (task.z - own_shift))


def encode_tasks(
    space: Space, tasks: Sequence[Task], names: Sequence[str], prior: ScorePrior | None = None
) -> list[EncodedTask]:
    """Encode past tasks as `encode_on_scale`, on the scale of these tasks."""
    return encode_on_scale(space, tasks, names, prior)[0]


def encode_on_scale(
    space: Space,
    tasks: Sequence[Task],
    names: Sequence[str],
    prior: ScorePrior | None = None,
    scale: PastScale | None = None,
) -> tuple[list[EncodedTask], PastScale]:
    """Encode past tasks in the target's coordinates, with scores by the target's metric.

    Parameters
    ----------
    space : Space
        That of the target.
    tasks : sequence of Task
    names : sequence of str
        All names of the target's metric.
    prior : ScorePrior or None
        Pretrained predictions for the target's space.
    scale : PastScale or None
        That of the past tasks which these are added to.

    Returns
    -------
    tasks : list of EncodedTask
    scale : PastScale
    """
    scored = [
        _score_by_metric(_encode(space, task, prior), task.metrics[0], names) for task in tasks
    ]
    scale = PastScale.from_tasks(scored) if scale is None else scale
    return [scale.apply(each) for each in scored], scale


def first_new_setting(
    space: Space,
    members: Pool | None,
    target: EncodedTask,
    hints: SearchHints,
    seen: Container[frozenset],
) -> tuple[dict[str, Any] | None, str]:
    """The first of the surrogate's first settings that is new, and its origin.

    Parameters
    ----------
    space : Space
    members : Pool or None
        The configurations that can be enumerated.
    target : EncodedTask
    hints : SearchHints
    seen : set
        Identities of configurations that were proposed or observed.
    """
    if hints.first_settings is None:
        return None, ""
    if members is not None:
        settings = [members.nearest_unless_tried(c, target.theta) for c in hints.first_settings]
    else:
        settings = space.decode(space.snap(np.clip(hints.first_settings, 0, 1)))
    for params, source in zip(settings, hints.sources, strict=True):
        if params is not None and params_identity(params) not in seen:
            return params, f"task {source}"
    return None, ""


def choose_past_setting(
    space: Space,
    surrogate: Surrogate,
    settings: np.ndarray | None,
    rank: Callable[[np.ndarray], np.ndarray],
    seen: Container[frozenset],
    members: Pool | None = None,
) -> tuple[dict[str, Any] | None, str]:
    """The best new one of the settings that the first trial is restricted to, and its origin.

    Parameters
    ----------
    space : Space
    surrogate : Surrogate
    settings : ndarray of shape (k, d) or None
        Codes of past settings.
    rank : callable
        Codes -> their numbers, best first.
    seen : set
        Identities of configurations that were proposed or observed.
    members : Pool or None
        If given, only settings that it holds count.

    Returns
    -------
    params : dict or None
        None if there is no such setting, so that the whole space or pool is searched.
    origin : str
        The past task that has this setting as such, within the bounds of the space, or "model".
    """
    if settings is None or not len(settings):
        return None, ""
    choices = space.snap(np.clip(settings, 0, 1))
    if members is not None:
        held = members.holds(choices)
        settings, choices = settings[held], choices[held]
    for number in rank(choices) if len(choices) else ():
        code = choices[number]
        params = space.decode(code) if members is None else members.nearest(code)
        if params_identity(params) not in seen:
            is_unchanged = np.allclose(code, settings[number], rtol=0, atol=1e-9)
            owner = _find_owner(surrogate, settings[number]) if is_unchanged else None
            return params, "model" if owner is None else f"task {owner}"
    return None, ""


def _find_owner(surrogate: Surrogate, code: np.ndarray) -> str | None:
    """Id of the past task that has a setting, (d,), and did best with it; None if none has.

    Surrogates that keep the past trials have them in one table, ``past_``.
    """
    past = getattr(surrogate, "past_", None)
    if past is None:
        return None
    rows = np.flatnonzero((past.theta == code).all(axis=1))
    if not len(rows):
        return None
    return str(past.ids[past.owner[rows[np.argmax(past.z[rows])]]])


def _encode(space: Space, task: Task, prior: ScorePrior | None) -> EncodedTask:
    codes, kept, unknown = encode_past_task(space, task)
    past = None if task.profile is None else DatasetProfile.from_dict(task.profile)
    trials = [task.trials[i] for i in kept]
    metrics = trial_metrics(trials) | {task.metrics[0]: trial_scores(trials)}
    codes = clip_codes(codes)
    z = trial_scores(trials)
    return EncodedTask(codes, z, space.categorical, past, task.id, metrics, prior, unknown)


def _score_by_metric(task: EncodedTask, tuned: str, names: Sequence[str]) -> _Scored:
    """Score a task by the target's metric or a related one, if every success recorded it.

    Otherwise the scores are those of the metric that was optimized.
    """
    related = [name for kind in RELATED_METRICS if not {*names}.isdisjoint(kind) for name in kind]
    for name in (*names, *related):
        values = task.metrics.get(name)
        if values is not None and np.isfinite(values[np.isfinite(task.z)]).all():
            z = np.where(np.isfinite(task.z), values, np.nan)
            return _Scored(replace(task, z=z), None if name in names else name)
    return _Scored(task, tuned)
