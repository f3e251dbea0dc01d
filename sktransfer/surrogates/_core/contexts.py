"""Context vectors of tasks: computed from their data, learned for each task, given, or none.

Notation: m past tasks, c_t (q,) the context of task t, q = 0 without contexts. Learned contexts are
c_t = E delta_t, with E (q, m) trained with everything else (Perrone et al. 2018, supplement B.4).
Given contexts are not trained. A task whose context cannot be read has the average of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike

from sktransfer.dataset import DatasetProfile
from sktransfer.encoders import Encoder
from sktransfer.surrogates.base import EncodedTask
from sktransfer.utils._hashing import hash_bytes
from sktransfer.utils._torch import tensor

INITIAL_SCALE = 0.1  # of learned contexts


def data_key(profile: DatasetProfile | None) -> str | None:
    """A key of a data set that is the same in every search on exactly these rows; None if unknown.

    X is identified by the hashes of its rows, y only by its kind and class ratios, because it is
    not hashed.

    >>> from sktransfer import profile
    >>> X, y = [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], [0, 1, 1]
    >>> parts = slice(3), slice(None, None, -1), slice(2)
    >>> keys = [data_key(profile(X[rows], y[rows])) for rows in parts]
    >>> keys[0] == keys[1] != keys[2]
    True
    """
    if profile is None or not len(profile.fingerprint):
        return None
    known = (profile.kind, profile.n_rows, profile.n_distinct, profile.n_classes)
    ratios = np.round(profile.class_ratios, 9).tolist()
    text = repr((known, ratios, profile.fingerprint.tolist()))
    return "data:" + hash_bytes(text.encode(), 16).hex()


def find_vector(vectors: Mapping[str, ArrayLike], task: EncodedTask) -> np.ndarray | None:
    """The vector that is given for this task, by its id or its data."""
    for key in (task.id, data_key(task.profile)):
        if key and key in vectors:
            return np.asarray(vectors[key], dtype=float)
    return None


def most_probable_context(
    vectors: np.ndarray, evidence: Callable[[np.ndarray], float], rng: np.random.Generator
) -> np.ndarray:
    """The context of highest evidence among the past ones, their mean, and mixtures of the best."""

    def best_of(candidates: np.ndarray, n: int) -> np.ndarray:
        return candidates[np.argsort([evidence(c) for c in candidates])[::-1][:n]]

    top = best_of(np.vstack([vectors.mean(axis=0), vectors]), 4)
    between = rng.dirichlet(np.ones(len(top)), 24) @ top
    return best_of(np.vstack([top, between]), 1)[0]


class Contexts:
    """Contexts of the past tasks while they are trained.

    Parameters
    ----------
    encoder : Encoder or None
        A `TaskIndex` learns a vector for each task.
    tasks : sequence of EncodedTask
    given : mapping of str to array
        Vectors by task id or `data_key` that are not trained.
    """

    def __init__(
        self, encoder: Encoder | None, tasks: Sequence[EncodedTask], given: Mapping[str, ArrayLike]
    ):
        self._encoder, self._tasks = encoder, tasks
        if encoder is None:
            return
        encoder.fit([task.profile for task in tasks])
        if encoder.needs_trials:
            # Contexts start nearly equal and separate where the scores differ. From distant ones,
            # the network would memorize each task, and the contexts would mean nothing to another
            # network.
            with torch.no_grad():
                encoder.parameters()[0].mul_(INITIAL_SCALE)
        self._inputs = [
            encoder.read(number if encoder.needs_trials else task.profile)
            for number, task in enumerate(tasks)
        ]
        self._given = [find_vector(given, task) for task in tasks]

    @property
    def are_learned_per_task(self) -> bool:
        """Whether each task's context is a trained vector of its own."""
        return self._encoder is not None and self._encoder.needs_trials

    @torch.no_grad()
    def vectors(self) -> np.ndarray:
        """The current contexts; -> (m, q)."""
        return self(np.arange(len(self._tasks))).numpy()

    def __call__(self, chosen: np.ndarray, rng: np.random.Generator | None = None) -> torch.Tensor:
        """Differentiable contexts of some tasks, on new batches of rows if `rng`; -> (k, q)."""
        if self._encoder is None:
            return tensor(np.empty((len(chosen), 0)))
        known = [i for i in chosen if self._inputs[i] is not None]
        if not known:  # use another task to find out the length of a context
            known = [i for i, each in enumerate(self._inputs) if each is not None][:1]
        if not known:
            return tensor(np.empty((len(chosen), 0)))
        read = self._encoder.embed([self._inputs[i] for i in known], rng)
        row_of = {int(i): row for row, i in enumerate(known)}
        average = read.mean(dim=0)
        rows = [read[row_of[int(i)]] if int(i) in row_of else average for i in chosen]
        given = [self._given[i] for i in chosen]
        return torch.stack(
            [r if g is None else tensor(g) for r, g in zip(rows, given, strict=True)]
        )

    def parameters(self) -> list[torch.Tensor]:
        """All trained tensors."""
        return [] if self._encoder is None else self._encoder.parameters()

    def penalty(self) -> torch.Tensor:
        """Negative log prior of the trained tensors."""
        return tensor(np.zeros(())) if self._encoder is None else self._encoder.penalty()

    def basis(self) -> np.ndarray:
        """What each context is computed from, in words; -> (m,)."""
        own = self._encoder
        return np.array(
            ["" if own is None else own.basis(task.profile) for task in self._tasks], dtype=str
        )

    def start_from(self, encoder: Encoder | None, vectors: Mapping[str, np.ndarray]) -> bool:
        """Continue from an earlier model's encoder and vectors; return whether it is possible."""
        own = self._encoder
        if own is None or encoder is None:
            return own is encoder
        if not own.needs_trials:
            return own.reads_like(encoder) and own.start_from(encoder.get_state())
        [matrix] = own.parameters()
        old = [find_vector(vectors, task) for task in self._tasks]
        found = np.array([v for v in old if v is not None])
        if not len(found) or found.shape[1] != matrix.shape[1]:
            return False
        with torch.no_grad():
            rows = [found.mean(axis=0) if v is None else v for v in old]
            matrix.copy_(tensor(np.array(rows)))
        return True
