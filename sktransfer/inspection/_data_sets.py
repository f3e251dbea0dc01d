"""Data sets of past tasks: several searches on the same data are one place on a map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from sktransfer import encoders
from sktransfer.archive import load_tasks
from sktransfer.dataset import DatasetProfile
from sktransfer.task import Task

HANDCRAFTED = "handcrafted meta-features"


@dataclass
class DataSet:
    """One data set and the tasks about it.

    Parameters
    ----------
    profile : DatasetProfile
    group : str
    tasks : list of Task
    """

    profile: DatasetProfile
    group: str
    tasks: list[Task] = field(default_factory=list)


class ProfileEncoder(Protocol):
    """Anything that embeds profiles; (m,) -> (m, q)."""

    def transform(self, profiles: Sequence[DatasetProfile | None], /) -> np.ndarray: ...


def find_data_sets(tasks: Iterable[Task], group_of: Callable[[Task], str]) -> list[DataSet]:
    """The data sets of tasks. Tasks without a usable profile are left out.

    Parameters
    ----------
    tasks : iterable of Task
    group_of : callable
        The group of a task. Tasks of different groups are never one data set.
    """
    found: dict[tuple[object, ...], DataSet] = {}
    for task in load_tasks(tasks):
        try:
            profile = DatasetProfile.from_dict(task.profile or {})
        except (TypeError, ValueError):  # none, or one that was edited by hand
            continue
        group, rows = group_of(task), profile.fingerprint.tobytes()
        key: tuple[object, ...] = (group, task.id)
        if rows:
            key = (group, profile.kind, profile.n_rows, rows)
        found.setdefault(key, DataSet(profile, group)).tasks.append(task)
    return list(found.values())


def choose_encoder(
    profiles: Sequence[DatasetProfile], *, is_learned: bool
) -> tuple[ProfileEncoder, str]:
    """The pretrained encoder if it reads all profiles, or else handcrafted meta-features.

    Returns the encoder and its name.
    """
    if is_learned:
        learned = encoders.PretrainedEncoder().fit(profiles)
        if all(learned.read(profile) is not None for profile in profiles):
            return learned, "learned embedding"
    return encoders.ManualEncoder().fit(profiles), HANDCRAFTED


def project(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first two principal components, and the share of the variance of each.

    Signs are chosen so that the same vectors give the same map; (n, q) -> (n, 2), (2,).
    """
    n, q = vectors.shape
    places, shares = np.zeros((n, 2)), np.zeros(2)
    centered = np.where(np.isfinite(vectors), vectors, 0.0)
    centered = centered - centered.mean(axis=0) if n else centered
    if n and q and centered.any():
        u, s, vt = np.linalg.svd(centered, full_matrices=False)
        k = min(2, len(s))
        signs = np.sign(vt[np.arange(k), np.abs(vt[:k]).argmax(axis=1)])
        places[:, :k] = u[:, :k] * s[:k] * signs
        shares[:k] = s[:k] ** 2 / (s**2).sum()
    return places, shares
