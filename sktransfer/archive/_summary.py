"""One line of a table about a task."""

from __future__ import annotations

from typing import Any

from sktransfer.archive._lazy_task import LazyTask
from sktransfer.task import Task


def summarize_task(task: Task) -> dict[str, Any]:
    """What `Archive.to_frame` and the command line show of a task.

    >>> task = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], id="a", name="mine")
    >>> summary = summarize_task(task)
    >>> summary["name"], summary["n_trials"], summary["best"], summary["complete"]
    ('mine', 1, 0.5, True)
    """
    if isinstance(task, LazyTask):
        known = task.summary()
    else:
        data = task.profile or {}
        best = None if task.best is None else task.best.score
        known = {"best": best, "n_rows": data.get("n_rows"), "n_features": data.get("n_features")}
    return {
        "id": task.id,
        "name": task.name,
        "created": task.created,
        "estimator": ", ".join(task.space["predictors"]) or None,
        "n_rows": known["n_rows"],
        "n_features": known["n_features"],
        "metric": task.metrics[0],
        "n_trials": task.n_trials,
        "best": known["best"],
        "complete": task.complete,
    }
