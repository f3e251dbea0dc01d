"""The contract of an encoder: what is known of a data set, as a vector that a surrogate can compare.

Notation: m data sets, q numbers each. An encoder is `fit` to past profiles (scales, sizes of networks),
after which `transform` gives vectors; what is to be *learned* is learned by a surrogate, on its own marginal
likelihood, through `parameters` and the differentiable `embed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator

from sktransfer.utils._networks import Network
from sktransfer.utils._threads import single_threaded
from sktransfer.utils._torch import tensor

NOTHING_KNOWN = "nothing: there is no profile of its data"


class Encoder(BaseEstimator):
    """Base of all encoders.

    Attributes
    ----------
    needs_trials : bool
        Whether a data set's vector can only be found from its trials, because its data are not looked at.
    """

    needs_trials: ClassVar[bool] = False

    @property
    def draws_rows(self) -> bool:
        """Whether `embed` sees a fresh batch of rows each time it is given an `rng`."""
        return False

    def fit(self, profiles: Sequence[Any]) -> Encoder:
        """Learn scales and set up the networks, with their first random weights."""
        raise TypeError(f"{type(self).__name__} must define fit.")

    def read(self, profile: Any) -> Any:
        """What `embed` takes of one profile; None if the data set cannot be told from others."""
        raise TypeError(f"{type(self).__name__} must define read.")

    def embed(self, inputs: Sequence[Any], rng: np.random.Generator | None = None) -> torch.Tensor:
        """Vectors of what `read` gave, differentiable; with `rng`, on a fresh batch of rows; -> (m, q)."""
        raise TypeError(f"{type(self).__name__} must define embed.")

    def basis(self, profile: Any) -> str:
        """What the vector of this data set rests on, in a few words."""
        raise TypeError(f"{type(self).__name__} must define basis.")

    def transform(self, profiles: Sequence[Any]) -> np.ndarray:
        """Vectors of the data sets, NaN for those that cannot be encoded; (m, q), q = 0 if none can."""
        inputs = [self.read(profile) for profile in profiles]
        readable = [number for number, each in enumerate(inputs) if each is not None]
        if not readable:
            return np.full((len(inputs), 0), np.nan)
        with torch.no_grad(), single_threaded:
            known = self.embed([inputs[number] for number in readable]).numpy()
        vectors = np.full((len(inputs), known.shape[1]), np.nan)
        vectors[readable] = known
        return vectors

    # -- what is learned -----------------------------------------------------------------------

    def networks(self) -> dict[str, Network]:
        """The networks by name; none, if nothing is learned."""
        return {}

    def scalars(self) -> dict[str, torch.Tensor]:
        """Further trained tensors by name."""
        return {}

    def parameters(self) -> list[torch.Tensor]:
        """Everything that is trained."""
        weights = [weight for network in self.networks().values() for weight in network.weights]
        return weights + list(self.scalars().values())

    def penalty(self) -> torch.Tensor:
        """Minus the log prior of what is trained, up to a constant."""
        terms = [network.penalty() for network in self.networks().values()]
        terms += [0.5 * (scalar * scalar).sum() for scalar in self.scalars().values()]
        return sum(terms, tensor(np.zeros(())))

    # -- state ---------------------------------------------------------------------------------

    def constants(self) -> dict[str, np.ndarray]:
        """What `fit` learned apart from the trained weights, as plain arrays."""
        return {}

    def restore(self, constants: dict[str, np.ndarray]) -> None:
        """Take back what `constants` gave and set up the networks."""

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as plain arrays."""
        arrays = {f"constant.{name}": np.asarray(array) for name, array in self.constants().items()}
        for number, weight in enumerate(self.parameters()):
            arrays[f"weight.{number}"] = weight.detach().numpy().copy()
        return arrays

    def set_state(self, state: dict[str, np.ndarray]) -> Encoder:
        """Take back what `state` gave."""
        named = [name.partition(".") for name in state]
        self.restore(
            {name: state[f"constant.{name}"] for kind, _, name in named if kind == "constant"}
        )
        self.start_from(state)
        return self

    def reads_like(self, other: Encoder) -> bool:
        """Whether the columns of both encoders' vectors mean the same."""
        ours, theirs = (
            {k: v for k, v in e.constants().items() if k.endswith("names")} for e in (self, other)
        )
        return ours.keys() == theirs.keys() and all(
            np.array_equal(ours[k], theirs[k]) for k in ours
        )

    def start_from(self, state: dict[str, np.ndarray]) -> bool:
        """Begin with the weights of an earlier state, if they are of the same shapes; say whether."""
        weights = [state.get(f"weight.{number}") for number in range(len(self.parameters()))]
        pairs = list(zip(self.parameters(), weights, strict=True))
        if any(old is None or tuple(new.shape) != old.shape for new, old in pairs):
            return False
        with torch.no_grad():
            for new, old in pairs:
                new.copy_(tensor(old))
        return True
