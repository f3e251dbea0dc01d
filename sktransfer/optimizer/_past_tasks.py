"""Past scores in today's terms: by today's metric where it was recorded, and all in one unit.

A past search that tuned accuracy and recorded the log loss as well tells, where the log loss is tuned today,
which settings had a good log loss. One that recorded neither it nor a metric of its kind is judged by what it
tuned. Where the past has several units, all are put on the scale of one, today's if it is among them:
otherwise the score that is foretold before the first trial would be an average of R² and dollars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.optimizer._optimizer_parts import REACH, metrics_of, scores_of
from sktransfer.space import Space
from sktransfer.space._projection import encode_past_task
from sktransfer.surrogates import EncodedTask
from sktransfer.task import Task
from sktransfer.utils._scores import clip_low_outliers, standardize

KINDRED = (
    ("accuracy", "f1_micro", "f1_weighted", "precision_weighted", "recall_weighted"),
    ("balanced_accuracy", "recall_macro", "f1_macro", "f1", "matthews_corrcoef"),
    ("roc_auc", "roc_auc_ovr", "roc_auc_ovo", "roc_auc_ovr_weighted", "average_precision"),
    ("neg_log_loss", "neg_brier_score", "d2_log_loss_score", "d2_brier_score"),
    ("r2", "explained_variance", "neg_mean_squared_error", "neg_root_mean_squared_error"),
    ("neg_mean_absolute_error", "d2_absolute_error_score", "neg_median_absolute_error"),
)
"""Metrics that mostly agree on which of two settings is better; a unit of its own each."""


class _Scored(NamedTuple):
    task: EncodedTask
    unit: str | None  # None: today's


def encode_tasks(space: Space, tasks: Sequence[Task], names: Sequence[str]) -> list[EncodedTask]:
    """Past tasks in today's coordinates and terms.

    Parameters
    ----------
    space : Space
        Today's.
    tasks : sequence of Task
    names : sequence of str
        Today's metric, by all names that it has.
    """
    scored = [_judged(_encode(space, task), task.metrics[0], names) for task in tasks]
    telling = [each for each in scored if np.isfinite(each.task.z).any()]
    units = Counter(unit for _, unit in telling)
    if len(units) < 2:
        return [task for task, _ in scored]
    unit = None if None in units else units.most_common(1)[0][0]
    inside = [task for task, own in telling if own == unit]
    shift = float(np.median([standardize(clip_low_outliers(task.z))[1] for task in inside]))
    logs = [np.log(standardize(clip_low_outliers(task.z))[2]) for task in inside if np.nanstd(task.z) > 0]
    # Single trials have no spread: a tenth of their level will do.
    scale = float(np.exp(np.median(logs))) if logs else 0.1 * abs(shift) or 1.0
    return [task if own == unit else _moved(task, shift, scale) for task, own in scored]


def _encode(space: Space, task: Task) -> EncodedTask:
    codes, kept = encode_past_task(space, task)
    past = None if task.profile is None else DatasetProfile.from_dict(task.profile)
    trials = [task.trials[i] for i in kept]
    metrics = metrics_of(trials) | {task.metrics[0]: scores_of(trials)}
    codes = np.clip(codes, -REACH, 1 + REACH)
    return EncodedTask(codes, scores_of(trials), space.categorical, past, task.id, metrics)


def _judged(task: EncodedTask, tuned: str, names: Sequence[str]) -> _Scored:
    """By today's metric, or one of its kind, if each success has it; else by the one that was tuned."""
    kindred = [name for kind in KINDRED if not {*names}.isdisjoint(kind) for name in kind]
    for name in (*names, *kindred):
        values = task.metrics.get(name)
        if values is not None and np.isfinite(values[np.isfinite(task.z)]).all():
            z = np.where(np.isfinite(task.z), values, np.nan)
            return _Scored(replace(task, z=z), None if name in names else name)
    return _Scored(task, tuned)


def _moved(task: EncodedTask, shift: float, scale: float) -> EncodedTask:
    """The task with its scores on another scale; their order is the same."""
    _, own_shift, own_scale = standardize(clip_low_outliers(task.z))
    return replace(task, z=shift + scale / own_scale * (task.z - own_shift))
