"""`TransferSurrogate`: base of the surrogates that learn from past tasks.

It holds the past trials in one table of comparable scores, trained weights as named tensors, and
everything else that was learned as named arrays. `get_state` and `set_state` turn all of it into
plain arrays and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from sktransfer.surrogates._core.network_inputs import Inputs
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP
from sktransfer.utils._threads import single_threaded

if TYPE_CHECKING:
    import torch

    from sktransfer.encoders import Encoder

NO_SUCCESS = "no successful trial with the parameters that are fixed now"


class TransferSurrogate(Surrogate):
    """Base of the surrogates that learn from past tasks.

    A subclass defines `_train`, which fills ``trained_`` and ``learned_``, and `posterior`. Without
    past trials it works as a plain GP, or as the surrogate that `_make_fallback` returns.

    Attributes
    ----------
    past_ : PastTrials
        The tasks that are used: by default those with a successful trial.
    task_ids_ : ndarray of str
        Ids of all tasks passed to `fit`.
    positions_ : ndarray of int
        Where in ``task_ids_`` the tasks of ``past_`` are.
    trained_ : dict of str to Tensor
        Trained weights.
    learned_ : dict of str to ndarray
        Everything else that was learned.
    encoder_ : Encoder or None
        Turns data sets into vectors, if the method needs them. Its state is part of ``learned_``.
    fallback_ : Surrogate
        Takes over where there are no past trials, and is averaged with otherwise.
    """

    uses_past_tasks = True
    is_cacheable = True
    fallback_name: ClassVar[str] = "a plain Gaussian process"
    winsorize: bool = True  # whether scores far below a task's median are raised

    trained_: dict[str, torch.Tensor]
    learned_: dict[str, np.ndarray]
    encoder_: Encoder | None

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> Self:
        """Learn from the past tasks, starting from the weights of `warm_from` where they match."""
        super().fit(tasks, warm_from)
        self.task_ids_ = np.array([task.id for task in tasks], dtype=str)
        self.positions_ = np.flatnonzero([self._is_usable(task) for task in tasks])
        tasks = [tasks[int(position)] for position in self.positions_]
        self.trained_, self.encoder_ = {}, None
        self.learned_ = self._describe_tasks(tasks)
        self._set_up(PastTrials.from_tasks(tasks, self._score_transform, self.winsorize))
        if self._has_past:
            with single_threaded:
                self._train(tasks, warm_from)
        return self

    def _append_ids(self, tasks: Sequence[EncodedTask]) -> list[EncodedTask]:
        """Append the ids of tasks to those passed to `fit`; returns the tasks that are usable."""
        used = np.flatnonzero([self._is_usable(task) for task in tasks])
        self.positions_ = np.append(self.positions_, len(self.task_ids_) + used)
        ids = np.array([task.id for task in tasks], dtype=str)
        self.task_ids_ = np.append(self.task_ids_, ids)
        self.n_tasks_ = len(self.task_ids_)
        return [tasks[int(number)] for number in used]

    # -- defined by subclasses -----------------------------------------------------------------

    @property
    def _score_transform(self) -> str | Callable[[EncodedTask], np.ndarray]:
        """How scores become comparable, as in `PastTrials.from_tasks`."""
        return "standardize"

    def _is_usable(self, task: EncodedTask) -> bool:
        """Whether a past task becomes part of ``past_``."""
        return bool(np.isfinite(task.z).any())

    def _make_encoder(self) -> Encoder | None:
        """A new encoder, not fitted."""
        return None

    def _describe_tasks(self, tasks: Sequence[EncodedTask]) -> dict[str, np.ndarray]:
        """First entries of ``learned_``, which do not need training."""
        return {}

    def _set_up(self, past: PastTrials) -> None:
        """Derive what follows from ``past_`` and ``learned_``, and empty the caches."""
        self.past_ = past
        self.inputs_ = Inputs.from_codes(past.theta, past.categorical)
        self.fallback_ = self._make_fallback().fit([])

    def _make_fallback(self) -> Surrogate:
        return GP(n_initial=self.n_initial)

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        """Fill ``trained_`` and ``learned_``. Called only if there are past trials."""
        raise TypeError(f"{type(self).__name__} must define _train.")

    # -- for subclasses ------------------------------------------------------------------------

    @property
    def _has_past(self) -> bool:
        return len(self.past_.z) > 0

    def _start_from(self, warm_from: Surrogate | None) -> bool:
        """Copy an earlier surrogate's weights if they match; return whether they do."""
        if not self._has_same_shapes(warm_from):
            return False
        assert isinstance(warm_from, TransferSurrogate)
        if not self.inputs_.is_compatible(warm_from.inputs_):
            return False
        self._copy_weights(warm_from)
        return True

    def _has_same_shapes(self, warm_from: Surrogate | None) -> bool:
        """Whether an earlier surrogate of this class has weights of the same names and shapes."""
        old = getattr(warm_from, "trained_", {}) if isinstance(warm_from, type(self)) else {}
        return bool(old and self.trained_) and all(
            name in old and old[name].shape == new.shape for name, new in self.trained_.items()
        )

    def _copy_weights(self, warm_from: TransferSurrogate) -> None:
        import torch

        with torch.no_grad():
            for name, new in self.trained_.items():
                new.copy_(warm_from.trained_[name])

    def _encoder_state(self) -> dict[str, np.ndarray]:
        """Entries of ``learned_`` that `set_state` restores the encoder from."""
        own = {} if self.encoder_ is None else self.encoder_.get_state()
        return {f"encoder.{name}": array for name, array in own.items()}

    def _posterior_without_past(self, target: EncodedTask) -> Posterior | None:
        """The fallback's posterior, once the target has `n_initial` trials."""
        return None if len(target.z) < self.n_initial else self.fallback_.posterior(target)

    def hints(self, target: EncodedTask) -> SearchHints:
        """No initial trials are needed if there are past ones."""
        hints = super().hints(target)
        return replace(hints, n_initial=0) if self._has_past else hints

    @property
    def task_ids(self) -> list[str]:
        return [str(name) for name in self.task_ids_]

    def _scatter(self, values: np.ndarray) -> np.ndarray:
        """Values of the tasks in ``past_``, for all tasks passed to `fit`; 0 for the others."""
        scattered = np.zeros(len(self.task_ids_))
        scattered[self.positions_] = values
        return scattered

    def _scatter_text(self, texts: Sequence[str]) -> list[str]:
        """The same for texts."""
        scattered = [NO_SUCCESS] * len(self.task_ids_)
        for position, text in zip(self.positions_, texts, strict=True):
            scattered[position] = text
        return scattered

    # -- state ---------------------------------------------------------------------------------

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as plain arrays."""
        state = {f"past.{name}": array for name, array in self.past_.arrays().items()}
        state |= {"tasks.ids": self.task_ids_, "tasks.positions": self.positions_}
        state |= {f"trained.{name}": t.detach().numpy().copy() for name, t in self.trained_.items()}
        return state | {
            f"learned.{name}": np.asarray(array) for name, array in self.learned_.items()
        }

    def set_state(self, state: dict[str, np.ndarray]) -> Self:
        """Restore the result of `get_state`."""
        self.check_params()
        self.task_ids_, self.positions_ = state["tasks.ids"], state["tasks.positions"]
        self.n_tasks_ = len(self.task_ids_)
        self.trained_ = _as_weights(select_prefix(state, "trained."))
        self.learned_ = select_prefix(state, "learned.")
        self.encoder_ = self._make_encoder()
        if self.encoder_ is not None and (own := select_prefix(self.learned_, "encoder.")):
            self.encoder_.set_state(own)
        self._set_up(PastTrials(**select_prefix(state, "past.")))
        return self


def select_prefix(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The entries whose names begin with `prefix`, which is removed.

    >>> select_prefix({"past.z": np.zeros(1), "psi": np.ones(1)}, "past.")
    {'z': array([0.])}
    """
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}


def _as_weights(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    if not arrays:
        return {}
    from sktransfer.utils._torch import tensor

    return {name: tensor(array).requires_grad_(True) for name, array in arrays.items()}
