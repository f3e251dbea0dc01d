"""Whatever `Archive.add` accepts, as a task."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from sktransfer.archive._importers import (
    FittedSearch,
    is_table,
    read_csv,
    task_from_search,
    task_from_table,
)
from sktransfer.archive._record import has_same_trials
from sktransfer.archive._studies import find_study, study_to_rows
from sktransfer.dataset import TARGET_KINDS, profile
from sktransfer.exceptions import RecordError
from sktransfer.task import Task


def task_from_source(
    source: Any, X: object, y: object, *, keep: str, table: dict[str, Any]
) -> Task:
    """Make a task from a search, a study, an optimizer, a table or a CSV file.

    Parameters
    ----------
    source, X, y
        See `Archive.add`.
    keep : str
        What to store of the data.
    table : dict
        Parameters for tables.
    """
    if isinstance(source, str | os.PathLike):
        source = read_csv(source)
    elif (study := find_study(source)) is not None:
        table = {"estimator": getattr(source, "estimator", None)} | table
        source = study_to_rows(study)
    if is_table(source):
        return task_from_table(source, X, y, keep=keep, **table)
    if table:
        raise TypeError(f"{', '.join(table)}: these parameters are for tables only.")
    if callable(getattr(source, "to_task", None)):  # a TransferOptimizer
        task = source.to_task()
        kind = (task.profile or {}).get("kind")
        kind = kind if kind in TARGET_KINDS else None
        data = task.profile if X is None else profile(X, y, keep=keep, kind=kind).to_dict()
        return replace(task, profile=data)
    return task_from_search(cast(FittedSearch, source), X, y, keep=keep)


def find_equal(tasks: Iterable[Task], task: Task) -> str | None:
    """Return the id of a task with the same trials, so that nothing is added twice."""
    for known in tasks:
        if known.n_trials == task.n_trials and known.space == task.space:
            with contextlib.suppress(RecordError):
                if has_same_trials(known, task):
                    return known.id
    return None
