"""`MetaSurrogate`: what the surrogates share that learn from past tasks once, then are asked about targets.

The past in one table of comparable scores, what was trained as named tensors, what else was learned as named
arrays; both are kept and taken back as plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch

from sktransfer.surrogates._core.network_inputs import Inputs
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates.base import EncodedTask, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP
from sktransfer.utils._torch import tensor, torch_context


class MetaSurrogate(Surrogate):
    """Base of the surrogates that are trained on past tasks.

    A subclass trains (`_train`: fills ``trained_`` and ``learned_``) and has a `posterior`; without a past it
    is a plain GP, or what `_make_fallback` makes it.

    Attributes
    ----------
    past_ : PastTrials
        The tasks that have a success.
    given_ : ndarray of str
        Ids of all tasks that `fit` was given.
    place_ : ndarray of int
        Where in ``given_`` those of ``past_`` are.
    """

    uses_past_tasks = True
    is_cacheable = True
    fallback_name: ClassVar[str] = "a Gaussian process on the target alone"
    _scores: Any = "standardize"  # as in `PastTrials.from_tasks`

    trained_: dict[str, torch.Tensor]
    learned_: dict[str, np.ndarray]

    def fit(
        self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None
    ) -> MetaSurrogate:
        """Learn from the past tasks, from the weights of `warm_from` where they fit."""
        super().fit(tasks, warm_from)
        useful = np.array([np.isfinite(task.z).any() for task in tasks], dtype=bool)
        self.given_ = np.array([task.id for task in tasks], dtype=str)
        self.place_ = np.flatnonzero(useful)
        tasks = [tasks[int(number)] for number in self.place_]
        self._set_up(PastTrials.from_tasks(tasks, self._scores))
        self.trained_, self.learned_ = {}, {}
        if self._has_past:
            with torch_context():
                self._train(tasks, warm_from)
        return self

    def _set_up(self, past: PastTrials) -> None:
        self.past_ = past
        self.inputs_ = Inputs.from_codes(past.theta, past.categorical)
        self.fallback_ = self._make_fallback().fit([])

    def _make_fallback(self) -> Surrogate:
        """What it is without a past."""
        return GP(n_initial=self.n_initial)

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        """Fill ``trained_`` and ``learned_`` from the tasks, each of which has a success."""
        raise TypeError(f"{type(self).__name__} must define _train.")

    def _start_from(self, warm_from: Surrogate | None) -> bool:
        """Begin with an earlier surrogate's weights if they are of the same names and shapes; say whether."""
        old = getattr(warm_from, "trained_", {}) if isinstance(warm_from, type(self)) else {}
        if not old or not self.trained_ or not self.inputs_.is_compatible(warm_from.inputs_):  # type: ignore[union-attr]
            return False
        if any(
            name not in old or old[name].shape != new.shape for name, new in self.trained_.items()
        ):
            return False
        with torch.no_grad():
            for name, new in self.trained_.items():
                new.copy_(old[name])
        return True

    @property
    def _has_past(self) -> bool:
        return len(self.past_.z) > 0

    def hints(self, target: EncodedTask) -> SearchHints:
        """No initial trials are needed if there are past ones."""
        hints = super().hints(target)
        return replace(hints, n_initial=0) if self._has_past else hints

    @property
    def task_ids(self) -> list[str]:
        return [str(name) for name in self.given_]

    def _scatter(self, values: np.ndarray) -> np.ndarray:
        """Values of the tasks in ``past_``, for all that were given; 0 for those of which no trial counts."""
        placed = np.zeros(len(self.given_))
        placed[self.place_] = values
        return placed

    def _scatter_text(self, words: Sequence[str]) -> list[str]:
        """The same for words."""
        placed = ["none of its trials succeeded with what is fixed today"] * len(self.given_)
        for place, word in zip(self.place_, words, strict=True):
            placed[place] = word
        return placed

    # -- state ---------------------------------------------------------------------------------

    def get_state(self) -> dict[str, np.ndarray]:
        """What was learned, as plain arrays."""
        arrays = {f"past.{name}": array for name, array in self.past_.arrays().items()}
        arrays |= {"own.given": self.given_, "own.place": self.place_}
        arrays |= {
            f"trained.{name}": t.detach().numpy().copy() for name, t in self.trained_.items()
        }
        return arrays | {
            f"learned.{name}": np.asarray(array) for name, array in self.learned_.items()
        }

    def set_state(self, state: dict[str, np.ndarray]) -> MetaSurrogate:
        """Take back what `state` gave."""
        self.check_params()

        def part(prefix: str) -> dict[str, Any]:
            return {
                name[len(prefix) :]: array
                for name, array in state.items()
                if name.startswith(prefix)
            }

        self.given_, self.place_ = state["own.given"], state["own.place"]
        self._set_up(PastTrials(**part("past.")))
        self.n_tasks_ = len(self.given_)
        self.trained_ = {
            name: tensor(a).requires_grad_(True) for name, a in part("trained.").items()
        }
        self.learned_ = part("learned.")
        return self
