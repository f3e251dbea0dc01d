"""Small parts of a run that need nothing of its state."""

from __future__ import annotations

import math
import os
import warnings
from copy import copy
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from sktransfer.archive import Archive, check_overlap, is_remote
from sktransfer.dataset import check_keep
from sktransfer.model_selection._suggest_space import suggest_space
from sktransfer.optimizer import Proposal, TransferOptimizer
from sktransfer.space import Space
from sktransfer.task import Task


def parse_space(space: Any, estimator: Any) -> Space:
    """The user's space, checked; a grid is checked by scikit-learn, in scikit-learn's words."""
    if isinstance(space, str) and space == "auto":
        space = suggest_space(estimator)
    branches = space if isinstance(space, list) else [space]
    entries = [entry for branch in branches if isinstance(branch, dict) for entry in branch.values()]
    if entries and not any(hasattr(entry, "rvs") for entry in entries):
        ParameterGrid(space)
    return Space.parse(space, estimator)


def open_archive(archive: Any) -> Archive | None:
    """The archive to use. What cannot be an archive is an error; one out of reach is a warning."""
    opened = archive if archive is None or isinstance(archive, Archive) else Archive(archive)
    if opened is None:
        return None
    opened = _anchored(opened)
    check_keep(opened.keep)
    check_overlap(opened.overlap)
    try:
        len(opened)
    except NotADirectoryError as error:
        raise NotADirectoryError(
            f"archive={archive!r} cannot be used: {error}. Give a directory, which may be new, or None."
        ) from None
    except (OSError, RuntimeError) as error:
        warnings.warn(
            f"archive={archive!r} is out of reach ({error}); the search goes on without.", stacklevel=2
        )
        return None
    return opened


def _anchored(archive: Archive) -> Archive:
    """The same archive, wherever the working directory moves to while the search is at work."""
    path = os.fspath(archive.path)
    if path == "auto" or path.startswith("~") or is_remote(path):
        return archive
    anchored = copy(archive)
    anchored.path = os.path.abspath(path)
    return anchored


def busy_batch(n_workers: int, n_splits: int) -> int:
    """The smallest batch whose fits keep at least four fifths of the workers' time in use.

    >>> busy_batch(1, 5), busy_batch(2, 5), busy_batch(8, 5)
    (1, 1, 3)
    """
    for size in range(1, n_workers + 1):
        fits = size * max(1, n_splits)  # of no folds at all scikit-learn will complain
        if fits / (math.ceil(fits / n_workers) * n_workers) >= 0.8:
            return size
    return n_workers


def provenance(batch: list[Proposal]) -> dict[str, list]:
    """The columns that `cv_results_` has beside scikit-learn's."""
    return {
        "origin": [proposal.origin for proposal in batch],
        "predicted_mean": [proposal.mean for proposal in batch],
        "predicted_std": [proposal.std for proposal in batch],
    }


def failed_row(like: dict[str, Any], error_score: Any, seconds: float) -> dict[str, Any]:
    """A fit's row of results with the error score in every place a score stands in `like`."""
    row = {**like, "fit_error": "failed", "fit_time": seconds, "score_time": 0.0}
    for key in ("test_scores", "train_scores"):
        if key in like:
            scores = like[key]
            row[key] = dict.fromkeys(scores, error_score) if isinstance(scores, dict) else error_score
    return row


def source(
    task: Task, similarity: float | None, basis: str | None, n_used: int, refused: str | None
) -> dict[str, Any]:
    """A row of `source_tasks_`."""
    return {
        "id": task.id,
        "created": task.created,
        "n_trials": task.n_trials,
        "similarity": similarity,
        "basis": basis,
        "n_used": n_used,
        "refused": refused,
    }


def what_is_heard(optimizer: TransferOptimizer) -> str:
    """What a search that is about to begin rests on, in a line."""
    tasks, similarity = optimizer.tasks, optimizer.similarity()
    if not tasks:
        return "No past search of this estimator and these parameters: beginning from nothing."
    if similarity is None:
        return f"Learning from {len(tasks)} past searches."
    heard = [i for i in np.argsort(-similarity, kind="stable") if similarity[i] > 0]
    if not heard:
        words = (optimizer.similarity_basis() or [""])[0]
        why = words.removeprefix("excluded: ") if words.startswith("excluded: ") else "nothing is similar"
        return f"None of {len(tasks)} past searches counts ({why}): beginning from nothing."
    return f"Learning from {len(heard)} past searches, most from {tasks[heard[0]].id}."
