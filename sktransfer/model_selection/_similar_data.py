"""Which past tasks a surrogate looks at: those on similar data, and perhaps the starter archive.

Data sets are compared by the pretrained embedding, or by their meta-features where there is no
model of their kind. Both are computed from what the index of the archive holds, so that records
that are not used are not read either.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sktransfer.archive import Limit, Outline, make_outline, outlines_of, tabulate_outlines
from sktransfer.dataset import DatasetProfile
from sktransfer.dataset._response_curves import relative_columns
from sktransfer.exceptions import TransferWarning
from sktransfer.optimizer import find_embedding, find_score_prior
from sktransfer.pretrained import PretrainedModel, load_model
from sktransfer.space import Space
from sktransfer.surrogates import Surrogate
from sktransfer.task import Task

BLOCK_ROWS = 2048  # data sets that are embedded at once


def limit_past_tasks(
    surrogate: Surrogate, data: DatasetProfile, folders: Sequence[Path]
) -> Limit | None:
    """Return the limit of a surrogate; None if it uses all past tasks.

    Parameters
    ----------
    surrogate : Surrogate
    data : DatasetProfile
        The target's data.
    folders : sequence of Path
        Folders of pretrained models that replace the shipped one.
    """
    if surrogate.max_past_tasks is None:
        return None
    model, target = load_model(data.kind, folders), make_outline(data.to_dict())

    def distances(tasks: Sequence[Task]) -> np.ndarray:
        return compare_outlines([target, *outlines_of(tasks)], model)

    return Limit(surrogate.max_past_tasks, distances, surrogate.n_similar_tasks)


def needs_starter(
    surrogate: Surrogate,
    space: Space,
    data: DatasetProfile,
    metric: Sequence[str],
    folders: Sequence[Path],
) -> bool:
    """Return whether a surrogate has use for the starter archive.

    Where a pretrained model predicts the scores, it knows more than these few tasks, and reading
    them would delay the first trial.
    """
    if not surrogate.uses_prior:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TransferWarning)  # the search itself warns of damage
        prior = find_score_prior(space, data, metric, folders)
    return prior is None or not prior.has_scores or find_embedding(prior, data) is None


def compare_outlines(outlines: Sequence[Outline], model: PretrainedModel | None) -> np.ndarray:
    """Return the squared distances of the first data set to the others; (1 + m) -> (m,).

    Data sets of which nothing is known are as far as the median of the others.

    >>> data = [{"meta_features": {"log_rows": rows}} for rows in (5.0, 9.0, 6.0)]
    >>> compare_outlines([*map(make_outline, data), make_outline(None)], None).round(2)
    array([5.54, 0.35, 2.94])
    """
    table = _describe_by_features(outlines) if model is None else _embed(outlines, model)
    known = np.isfinite(table).all(axis=1)
    if not known[0] or not known[1:].any():
        return np.zeros(len(outlines) - 1)
    squares = ((table[1:] - table[0]) ** 2).sum(axis=1)
    return np.where(known[1:], squares, np.median(squares[known[1:]]))


def _describe_by_features(outlines: Sequence[Outline]) -> np.ndarray:
    """Standardized meta-features. Unknown ones are average; of shape (m, p)."""
    table = tabulate_outlines(outlines, [n for n in outlines[0].names if n.startswith("meta.")])
    is_known = np.isfinite(table)
    with np.errstate(invalid="ignore"):
        count = np.maximum(is_known.sum(axis=0), 1)
        mean = np.where(is_known, table, 0).sum(axis=0) / count
        centered = np.where(is_known, table - mean, 0)
    spread = np.sqrt((centered**2).sum(axis=0) / count)
    table = centered / np.where(spread > 0, spread, 1)
    table[~is_known.any(axis=1)] = np.nan
    return table


def _embed(outlines: Sequence[Outline], model: PretrainedModel) -> np.ndarray:
    """The pretrained embedding, NaN where too little is known; of shape (m, q)."""
    names = model.names
    own = [name.replace("relative.", "curve.", 1) for name in names]
    found = []
    for start in range(0, len(outlines), BLOCK_ROWS):
        numbers = tabulate_outlines(outlines[start : start + BLOCK_ROWS], own)
        is_relative = np.array([name.startswith("relative.") for name in names], dtype=bool)
        if is_relative.any():
            curves = [name.partition(".")[2] for name in names if name.startswith("relative.")]
            numbers[:, is_relative] = relative_columns(curves, numbers[:, is_relative])
        embedded = model.embed_numbers(numbers)
        embedded[~model.is_enough(numbers)] = np.nan
        found.append(embedded)
    return np.concatenate(found)
