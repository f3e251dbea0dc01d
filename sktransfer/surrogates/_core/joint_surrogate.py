"""`JointSurrogate`: one model of all tasks, score as a function of (configuration, data set).

Base of distGP and distBLR.

Notation: m past tasks with N trials in all, theta (N, d), z (N,) on one scale; Psi = [psi(D), s]
(m, q), the encoder's vector of each task's data and the number of rows relative to the largest
task. Encoder and model are trained together by Adam, on the marginal likelihood (Law et al. 2019,
section 4.2) plus the log priors of their parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from sktransfer.dataset import DatasetProfile
from sktransfer.encoders import Encoder, PairEncoder, PretrainedEncoder
from sktransfer.surrogates._core.conditioning import ConditionedPosterior, Prior
from sktransfer.surrogates._core.contexts import most_probable_context
from sktransfer.surrogates._core.defaults import WARM_SHARE
from sktransfer.surrogates._core.model_averaging import average_by_evidence
from sktransfer.surrogates._core.past_trials import Level
from sktransfer.surrogates._core.training import train
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP
from sktransfer.utils._scores import standardize
from sktransfer.utils._torch import tensor, torch_context

MIN_TASKS_PER_BATCH = 20
MIN_TASKS_TO_COMPARE = 2  # from which on the distances of shipped embeddings have a scale


class JointSurrogate(TransferSurrogate):
    """Base of the surrogates that model all tasks at once.

    A subclass creates its trained tensors (`_setup`), computes the loss of a batch of trials
    (`_loss`), and the prior of a data set with a given vector (`_prior`).

    ``learned_`` holds for each past task the vector "psi", whether it is "readable" (its data could
    be encoded and it has trials), the "basis" of its vector, and its relative "sizes".
    """

    encoder: Encoder | None
    scores: str
    steps: int
    learning_rate: float
    max_batch: int
    guard: bool
    n_initial: int
    random_state: int

    encoder_: Encoder
    fallback_: GP
    _own_rate = 0.05  # learning rate of ``trained_``

    def check_params(self) -> None:
        if self.scores not in ("standardize", "raw"):
            raise ValueError(f"scores={self.scores!r} must be 'standardize' or 'raw'.")
        if self.encoder is not None and not isinstance(self.encoder, Encoder):
            raise ValueError(
                f"encoder={self.encoder!r} must be an Encoder, such as PairEncoder(), or None."
            )

    @property
    def _score_transform(self) -> str:
        return self.scores

    def _is_usable(self, task: EncodedTask) -> bool:
        return True  # tasks without a success are used as well: their settings are bad

    def _make_encoder(self) -> Encoder:
        if self.encoder is not None:
            return clone(self.encoder)
        return PretrainedEncoder() if self.learned_.get("is_pretrained", False) else PairEncoder()

    def _needs_rows(self, tasks: Sequence[EncodedTask]) -> bool:
        """Whether the data of past tasks are encoded from rows: all kept some, or it must be."""
        has_rows = [getattr(task.profile, "sample", None) is not None for task in tasks]
        if len(tasks) < MIN_TASKS_TO_COMPARE or all(has_rows):
            return True
        shipped = PretrainedEncoder().fit([task.profile for task in tasks])
        return not all(shipped.read(task.profile) is not None for task in tasks)

    @property
    def _has_past(self) -> bool:
        return bool(len(self.past_) and self.learned_["readable"][self.past_.owner].any())

    # -- training ------------------------------------------------------------------------------

    def _describe_tasks(self, tasks: Sequence[EncodedTask]) -> dict[str, np.ndarray]:
        uses_shipped = self.encoder is None and not self._needs_rows(tasks)
        self.learned_ = {"is_pretrained": np.array(uses_shipped)}
        self.encoder_ = self._make_encoder()
        self.encoder_.fit([task.profile for task in tasks])
        pairs = zip(self._read(tasks), tasks, strict=True)
        rows = [_n_rows(task.profile) for task in tasks]
        largest = float(max(rows, default=1.0))
        return self.learned_ | {
            "readable": np.array(
                [each is not None and len(t.z) > 0 for each, t in pairs], dtype=bool
            ),
            "basis": np.array([self.encoder_.basis(task.profile) for task in tasks], dtype=str),
            "largest": np.array(largest),
            "sizes": np.array(rows, dtype=float) / largest,
            **self._encoder_state(),
        }

    def _read(self, tasks: Sequence[EncodedTask]) -> list[Any]:
        """What the encoder embeds of each task, None for those that it cannot read."""
        if self.encoder_.needs_trials:
            return [self.encoder_.read(number) for number in range(len(tasks))]
        return [self.encoder_.read(task.profile) for task in tasks]

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        rng = np.random.default_rng(self.random_state)
        past, readable, inputs = self.past_, self.learned_["readable"], self._read(tasks)
        usable = np.flatnonzero(readable).tolist()
        n_trials = int(readable[past.owner].sum())
        with torch_context():
            first = self._psi(usable, inputs).detach().numpy()
        self._setup(first, np.random.default_rng(self.random_state))
        steps = round(self.steps * WARM_SHARE) if self._start_from(warm_from) else self.steps

        def loss() -> torch.Tensor:
            chosen, rows = self._batch(usable, rng)
            psi = self._psi(chosen, inputs, rng)
            owner = np.searchsorted(chosen, past.owner[rows])
            if self.encoder_.draws_rows:
                # Two batches of each task's rows, each with half of its trials: so the likelihood
                # learns what two samples of the same data have in common.
                psi = torch.cat([psi, self._psi(chosen, inputs, rng)])
                owner = owner + len(chosen) * rng.integers(2, size=len(owner))
            theta, z = tensor(past.theta[rows]), tensor(past.z[rows])
            value = self._loss(theta, z, owner, psi, past.owner[rows])
            return n_trials / len(rows) * value + self.encoder_.penalty() + self._penalty()

        groups = [
            (self.encoder_.parameters(), self.learning_rate),
            (list(self.trained_.values()), self._own_rate),
        ]
        train(loss, groups, steps)
        psi = np.zeros((len(inputs), first.shape[1]))
        with torch.no_grad(), torch_context():
            psi[usable] = self._psi(usable, inputs).numpy()
        self.learned_ |= {"psi": psi, **self._encoder_state()}

    def _psi(
        self, chosen: Sequence[int], inputs: list[Any], rng: np.random.Generator | None = None
    ) -> torch.Tensor:
        """[psi, s] of some tasks; -> (len(chosen), q)."""
        psi = self.encoder_.embed([inputs[i] for i in chosen], rng)
        if self.encoder_.needs_trials:
            return psi
        return torch.cat([psi, tensor(self.learned_["sizes"][list(chosen)])[:, None]], dim=1)

    def _batch(self, usable: list[int], rng: np.random.Generator) -> tuple[list[int], np.ndarray]:
        """Tasks and rows of a training step: all, or `max_batch` random trials."""
        owner = self.past_.owner
        rows = np.flatnonzero(np.isin(owner, usable))
        if len(rows) <= self.max_batch:
            return usable, rows
        order = rng.permutation(usable)
        quota = max(
            2, self.max_batch // min(MIN_TASKS_PER_BATCH, len(usable))
        )  # trials of one task
        taken: list[np.ndarray] = []
        chosen: list[int] = []
        room = self.max_batch
        for task in order:
            own = np.flatnonzero(owner == task)
            own = rng.choice(own, min(len(own), quota, room), replace=False)
            taken.append(np.sort(own))
            chosen.append(int(task))
            room -= len(own)
            if room <= 0:
                break
        return sorted(chosen), np.sort(np.concatenate(taken))

    def _start_from(self, warm_from: Surrogate | None) -> bool:
        # Weights belong to what they were trained on: a task's own vector, a meta-feature's column.
        if self.encoder_.needs_trials or not self._has_same_shapes(warm_from):
            return False
        assert isinstance(warm_from, JointSurrogate)
        if not self.encoder_.reads_like(warm_from.encoder_):
            return False
        if not self.encoder_.start_from(warm_from.encoder_.get_state()):
            return False
        self._copy_weights(warm_from)
        return True

    # -- defined by subclasses -----------------------------------------------------------------

    def _setup(self, psi: np.ndarray, rng: np.random.Generator) -> None:
        """Create ``trained_``, given the first vectors of the tasks."""
        raise TypeError(f"{type(self).__name__} must define _setup.")

    def _loss(
        self,
        theta: torch.Tensor,
        z: torch.Tensor,
        owner: np.ndarray,
        psi: torch.Tensor,
        numbers: np.ndarray,
    ) -> torch.Tensor:
        """Negative log marginal likelihood of some trials.

        owner (n,) are their rows of psi, numbers (n,) those of their tasks.
        """
        raise TypeError(f"{type(self).__name__} must define _loss.")

    def _penalty(self) -> torch.Tensor:
        """Negative log prior of ``trained_``."""
        raise TypeError(f"{type(self).__name__} must define _penalty.")

    def _prior(self, psi: np.ndarray) -> Prior:
        """Prior of a data set with this vector, (q,), from the past alone."""
        raise TypeError(f"{type(self).__name__} must define _prior.")

    def _similarity_to(self, psi: np.ndarray) -> np.ndarray:
        """Similarity of each past task to a data set with this vector, in [0, 1]; (q,) -> (m,)."""
        raise TypeError(f"{type(self).__name__} must define _similarity_to.")

    # -- the target ----------------------------------------------------------------------------

    def hints(self, target: EncodedTask) -> SearchHints:
        """One initial trial is needed if the target's vector is found from its trials."""
        hints = super().hints(target)
        return (
            replace(hints, n_initial=int(self.encoder_.needs_trials)) if self._has_past else hints
        )

    def posterior(self, target: EncodedTask) -> Posterior | None:
        """The model given past trials and the target's, averaged with a plain GP if guarded."""
        psi = self._target_psi(target) if self._has_past else None
        if psi is None:
            return self._posterior_without_past(target)
        conditioned, y, level = self._condition(psi, target)
        if not len(y) or not self.guard:
            return conditioned
        plain = self.fallback_.posterior(target)
        return average_by_evidence(
            conditioned, plain, target.theta, y, level, std_error=target.std_error
        )

    def _condition(
        self, psi: np.ndarray, target: EncodedTask
    ) -> tuple[ConditionedPosterior, np.ndarray, Level]:
        raw = self.scores == "raw"
        level = self.past_.level(
            self._similarity_to(psi), self.learned_["readable"], target.z, shared=raw
        )
        z, shift, scale = standardize(target.z, winsorize=self.winsorize and not raw)
        y = shift + scale * z
        prior = self._prior(psi)
        return ConditionedPosterior(prior, target.theta, y, level, target.std_error), y, level

    def _target_psi(self, target: EncodedTask) -> np.ndarray | None:
        if self.encoder_.needs_trials:
            return self._psi_from_trials(target)
        inputs = self.encoder_.read(target.profile)
        if inputs is None:
            return None
        with torch.no_grad(), torch_context():
            psi = self.encoder_.embed([inputs])[0].numpy()
        # Nothing is known about data sets larger than the largest past one, so the size is capped.
        return np.append(psi, min(_n_rows(target.profile) / float(self.learned_["largest"]), 1.0))

    def _psi_from_trials(self, target: EncodedTask) -> np.ndarray:
        """The vector that makes the target's scores most probable."""
        known = self.learned_["psi"][self.learned_["readable"]]
        if not len(target.z):
            return known.mean(axis=0)
        return most_probable_context(
            known,
            lambda psi: self._condition(psi, target)[0].log_evidence,
            np.random.default_rng(self.random_state),
        )

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """Similarity of each past task to the target; 0 for those that cannot be compared."""
        psi = self._target_psi(target) if self._has_past else None
        if psi is None:
            return np.zeros(len(self.past_))
        return np.where(self.learned_["readable"], self._similarity_to(psi), 0.0)

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each past task was compared by, or what little is known of the target's data."""
        own = self.encoder_.basis(target.profile)
        if own.startswith(("nothing", "sizes")):
            return [f"{own} (target)"] * len(self.past_)
        return [str(text) for text in self.learned_["basis"]]


def _n_rows(profile: DatasetProfile | None) -> float:
    return float(max(getattr(profile, "n_rows", 0), 1))
