"""One model of all tasks at once: score as a function of (configuration, data set).

Base of distGP and distBLR.

Notation: m past tasks with N trials in all, theta (N, d), z (N,) on one scale; Psi = [psi(D), s] (m, q),
the encoder's vector of each task's data and its sample size relative to the largest. Encoder and model are
trained together, by Adam, on the marginal likelihood (Law et al. 2019, section 4.2) plus the log priors of
their parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from sktransfer.encoders import Encoder, PairEncoder
from sktransfer.surrogates._core.conditioning import ConditionedPosterior, Prior
from sktransfer.surrogates._core.contexts import most_probable_context
from sktransfer.surrogates._core.model_averaging import average_by_evidence
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.training import train
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP
from sktransfer.utils._scores import clip_low_outliers, standardize
from sktransfer.utils._threads import single_threaded
from sktransfer.utils._torch import tensor, torch_context

WARM_SHARE = 0.25  # of the steps, where training starts from the weights of an earlier model


class JointSurrogate(Surrogate):
    """Base of the surrogates that model all tasks at once.

    A subclass sets up its own trained tensors (`_setup`), says how probable a batch of trials is (`_loss`),
    and what it believes of a data set with a given vector (`_prior`).
    """

    uses_past_tasks = True
    is_cacheable = True
    fallback_name = "a Gaussian process on the target alone"

    encoder: Any
    scores: str
    steps: int
    learning_rate: float
    max_batch: int
    n_initial: int
    random_state: int

    # -- training ------------------------------------------------------------------------------

    def fit(
        self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None
    ) -> JointSurrogate:
        """Train encoder and model on the past tasks, from the weights of `warm_from` where they fit."""
        super().fit(tasks, warm_from)
        self.fallback_ = GP(n_initial=self.n_initial).fit([])
        self.past_ = PastTrials.from_tasks(tasks, self.scores)
        self.encoder_: Encoder = clone(self.encoder) if self.encoder is not None else PairEncoder()
        self.encoder_.fit([task.profile for task in tasks])
        inputs = [self.encoder_.read(self._key(i, task.profile)) for i, task in enumerate(tasks)]
        # Those that can be compared and have something to say.
        self.readable_ = np.array(
            [
                each is not None and len(task.z) > 0
                for each, task in zip(inputs, tasks, strict=True)
            ],
            dtype=bool,
        )
        self.basis_ = np.array([self.encoder_.basis(task.profile) for task in tasks], dtype=str)
        rows = [_n_rows(task.profile) for task in tasks]
        self.largest_ = float(max(rows, default=1.0))
        self.sizes_ = np.array(rows, dtype=float) / self.largest_
        self._prepare()
        if self._has_past:
            self._train(inputs, warm_from)
        return self

    @property
    def task_ids(self) -> list[str]:
        return [str(name) for name in self.past_.ids]

    @property
    def _has_past(self) -> bool:
        return bool(len(self.past_) and self.readable_[self.past_.owner].any())

    def _key(self, number: int, profile: Any) -> Any:
        return number if self.encoder_.needs_trials else profile

    def check_params(self) -> None:
        if self.scores not in ("standardize", "raw"):
            raise ValueError(f"scores={self.scores!r} must be 'standardize' or 'raw'.")
        if self.encoder is not None and not isinstance(self.encoder, Encoder):
            raise ValueError(
                f"encoder={self.encoder!r} must be an Encoder, such as PairEncoder(), or None."
            )

    def _train(self, inputs: list[Any], warm_from: Surrogate | None) -> None:
        rng = np.random.default_rng(self.random_state)
        usable = np.flatnonzero(self.readable_).tolist()
        n_trials = int(self.readable_[self.past_.owner].sum())
        with torch_context():
            first = self._psi(usable, inputs).detach().numpy()
            self._setup(first, np.random.default_rng(self.random_state))
            warm = self._start_from(warm_from)
            steps = round(self.steps * WARM_SHARE) if warm else self.steps

            def loss() -> torch.Tensor:
                chosen, rows = self._batch(usable, rng)
                psi = self._psi(chosen, inputs, rng)
                owner = np.searchsorted(chosen, self.past_.owner[rows])
                if self.encoder_.draws_rows:
                    # Two batches of each task's rows, half of its trials with each: so the likelihood also
                    # tells what two samples of the same data have in common.
                    psi = torch.cat([psi, self._psi(chosen, inputs, rng)])
                    owner = owner + len(chosen) * rng.integers(2, size=len(owner))
                value = self._loss(
                    tensor(self.past_.theta[rows]), tensor(self.past_.z[rows]), owner, psi
                )
                share = n_trials / len(rows)
                return share * value + self.encoder_.penalty() + self._penalty()

            groups = [
                (self.encoder_.parameters(), self.learning_rate),
                (list(self.trained_.values()), self._own_rate),
            ]
            train(loss, groups, steps)
            psi = np.zeros((len(inputs), first.shape[1]))
            with torch.no_grad():
                psi[usable] = self._psi(usable, inputs).numpy()
        self.psi_ = psi
        self._prepare()

    _own_rate = 0.05

    def _psi(self, chosen: Sequence[int], inputs: list[Any], rng: Any = None) -> torch.Tensor:
        """[psi, s] of some tasks; -> (len(chosen), q)."""
        psi = self.encoder_.embed([inputs[i] for i in chosen], rng)
        if self.encoder_.needs_trials:
            return psi
        return torch.cat([psi, tensor(self.sizes_[list(chosen)])[:, None]], dim=1)

    def _batch(self, usable: list[int], rng: np.random.Generator) -> tuple[list[int], np.ndarray]:
        """Tasks and trials of one step: all of them, or a random part that is not too large."""
        owner = self.past_.owner
        rows = np.flatnonzero(np.isin(owner, usable))
        if len(rows) <= self.max_batch:
            return usable, rows
        order = rng.permutation(usable)
        quota = max(
            2, self.max_batch // min(20, len(usable))
        )  # of one task, so that many are compared
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
        if not isinstance(warm_from, type(self)) or not getattr(warm_from, "trained_", None):
            return False
        # Weights belong to what they were trained on: a task's own vector, a meta-feature's column.
        if self.encoder_.needs_trials or not self.encoder_.reads_like(warm_from.encoder_):
            return False
        old = warm_from.trained_
        if any(
            name not in old or old[name].shape != new.shape for name, new in self.trained_.items()
        ):
            return False
        if not self.encoder_.start_from(warm_from.encoder_.get_state()):
            return False
        with torch.no_grad():
            for name, new in self.trained_.items():
                new.copy_(old[name])
        return True

    # -- what a subclass gives -----------------------------------------------------------------

    trained_: dict[str, torch.Tensor]

    def _setup(self, psi: np.ndarray, rng: np.random.Generator) -> None:
        """Make ``trained_``, given the first vectors of the tasks."""
        raise TypeError(f"{type(self).__name__} must define _setup.")

    def _loss(
        self, theta: torch.Tensor, z: torch.Tensor, owner: np.ndarray, psi: torch.Tensor
    ) -> torch.Tensor:
        """Minus the log marginal likelihood of some trials; owner (n,) are rows of psi."""
        raise TypeError(f"{type(self).__name__} must define _loss.")

    def _penalty(self) -> torch.Tensor:
        """Minus the log prior of ``trained_``."""
        raise TypeError(f"{type(self).__name__} must define _penalty.")

    def _prior(self, psi: np.ndarray) -> Prior:
        """What is believed of a data set with this vector, (q,), from the past alone."""
        raise TypeError(f"{type(self).__name__} must define _prior.")

    def _similarity_to(self, psi: np.ndarray) -> np.ndarray:
        """How alike each past task is to a data set with this vector, in [0, 1]; (q,) -> (m,)."""
        raise TypeError(f"{type(self).__name__} must define _similarity_to.")

    def _prepare(self) -> None:
        """Forget what was derived from an earlier fit."""

    # -- the target ----------------------------------------------------------------------------

    def hints(self, target: EncodedTask) -> SearchHints:
        """No initial trials if there are past ones; one if the target's vector is found from trials."""
        hints = super().hints(target)
        return (
            replace(hints, n_initial=int(self.encoder_.needs_trials)) if self._has_past else hints
        )

    def posterior(self, target: EncodedTask) -> Posterior | None:
        """Belief about the target, from the past and from its own trials."""
        psi = self._target_psi(target) if self._has_past else None
        if psi is None:
            return None if len(target.z) < self.n_initial else self.fallback_.posterior(target)
        past, y, level = self._condition(psi, target)
        if not len(y):
            return past
        return average_by_evidence(past, self.fallback_.posterior(target), target.theta, y, level)

    def _condition(
        self, psi: np.ndarray, target: EncodedTask
    ) -> tuple[ConditionedPosterior, np.ndarray, Any]:
        level = self.past_.level(
            self._similarity_to(psi), self.readable_, target.z, shared=self.scores == "raw"
        )
        z, shift, scale = standardize(
            clip_low_outliers(target.z) if self.scores != "raw" else target.z
        )
        y = shift + scale * z
        return ConditionedPosterior(self._prior(psi), target.theta, y, level), y, level

    def _target_psi(self, target: EncodedTask) -> np.ndarray | None:
        if self.encoder_.needs_trials:
            return self._psi_from_trials(target)
        inputs = self.encoder_.read(target.profile)
        if inputs is None:
            return None
        with torch.no_grad(), single_threaded:
            psi = self.encoder_.embed([inputs])[0].numpy()
        # A data set larger than any before is as large as the largest: nothing is known beyond.
        return np.append(psi, min(_n_rows(target.profile) / self.largest_, 1.0))

    def _psi_from_trials(self, target: EncodedTask) -> np.ndarray:
        """The vector that makes the target's scores most probable, among the past ones and between them."""
        known = self.psi_[self.readable_]
        if not len(target.z):
            return known.mean(axis=0)

        return most_probable_context(
            known,
            lambda psi: self._condition(psi, target)[0].log_evidence,
            np.random.default_rng(self.random_state),
        )

    def similarity(self, target: EncodedTask) -> np.ndarray | None:
        """How alike each past task is to the target; 0 for one that cannot be compared."""
        psi = self._target_psi(target) if self._has_past else None
        if psi is None:
            return np.zeros(len(self.past_))
        return np.where(self.readable_, self._similarity_to(psi), 0.0)

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each past task was compared by; if less is known of today's data, that."""
        today = self.encoder_.basis(target.profile)
        less = today.startswith(("nothing", "sizes"))
        return [f"{today} (of these data)" if less else str(words) for words in self.basis_]

    # -- state ---------------------------------------------------------------------------------

    def get_state(self) -> dict[str, np.ndarray]:
        arrays = {f"past.{name}": array for name, array in self.past_.arrays().items()}
        arrays |= {f"encoder.{name}": array for name, array in self.encoder_.get_state().items()}
        own = ("readable", "basis", "largest", "sizes")
        arrays |= {f"own.{name}": np.asarray(getattr(self, name + "_")) for name in own}
        if self._has_past:
            arrays["psi"] = self.psi_
            arrays |= {
                f"trained.{name}": t.detach().numpy().copy() for name, t in self.trained_.items()
            }
        return arrays

    def set_state(self, state: dict[str, np.ndarray]) -> JointSurrogate:
        self.check_params()

        def part(prefix: str) -> dict[str, np.ndarray]:
            return {
                name[len(prefix) :]: array
                for name, array in state.items()
                if name.startswith(prefix)
            }

        self.past_ = PastTrials(**part("past."))
        self.encoder_ = clone(self.encoder) if self.encoder is not None else PairEncoder()
        self.encoder_.set_state(part("encoder."))
        self.readable_, self.basis_ = state["own.readable"], state["own.basis"]
        self.largest_, self.sizes_ = float(state["own.largest"]), state["own.sizes"]
        self.fallback_ = GP(n_initial=self.n_initial).fit([])
        self.n_tasks_ = len(self.past_)
        if self._has_past:
            self.psi_ = state["psi"]
            self.trained_ = {
                name: tensor(array).requires_grad_(True) for name, array in part("trained.").items()
            }
        self._prepare()
        return self


def _n_rows(profile: Any) -> float:
    return float(max(getattr(profile, "n_rows", 0), 1))
