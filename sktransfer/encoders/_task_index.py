"""`TaskIndex`: a free vector for each task (multiGP, multiBLR of Law et al. 2019).

The task's index, one-hot and times a learned matrix, replaces psi(D). So the similarity of tasks is
learned from their trials only, and a new task has no vector until it has trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch

from sktransfer.dataset import DatasetProfile
from sktransfer.encoders._base import Encoder
from sktransfer.utils._torch import tensor


class TaskIndex(Encoder):
    """A learned vector for each past task. That of a new task is found from its own trials.

    Parameters
    ----------
    size : int
        Length of a vector.
    random_state : int
        Seed of the initial vectors.

    Examples
    --------
    >>> TaskIndex(size=2).fit([None, None, None]).transform([0, 1, 2]).shape
    (3, 2)
    """

    needs_trials = True

    def __init__(self, size: int = 4, random_state: int = 0):
        self.size = size
        self.random_state = random_state

    def fit(self, profiles: Sequence[DatasetProfile | None]) -> Self:
        self.restore({"n": np.array(len(profiles))})
        return self

    def constants(self) -> dict[str, np.ndarray]:
        return {"n": np.array(len(self.vectors_))}

    def restore(self, constants: dict[str, np.ndarray]) -> None:
        rng = np.random.default_rng(self.random_state)
        first = rng.standard_normal((int(constants["n"]), self.size))
        self.vectors_ = tensor(first).requires_grad_(True)

    def scalars(self) -> dict[str, torch.Tensor]:
        return {"vectors": self.vectors_}

    def read(self, profile: Any) -> int | None:
        """The number of a past task. Anything else is a new task, which has no vector."""
        return profile if isinstance(profile, int) else None

    def embed(self, inputs: Sequence[Any], rng: np.random.Generator | None = None) -> torch.Tensor:
        return self.vectors_[list(inputs)]

    def basis(self, profile: DatasetProfile | None) -> str:
        return "its trials only"
