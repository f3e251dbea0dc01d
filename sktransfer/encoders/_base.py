"""`Encoder`: base of all encoders, which turn data sets into vectors that a surrogate can compare.

Notation: m data sets, vectors of q numbers. `fit` learns scales and sizes from past profiles,
`transform` returns vectors. Weights are not learned here but by a surrogate, on its marginal
likelihood, through `parameters` and the differentiable `embed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from sktransfer.dataset import DatasetProfile
from sktransfer.utils._threads import single_threaded

if TYPE_CHECKING:
    import torch

    from sktransfer.utils._networks import Network

NO_PROFILE = "nothing: there is no profile of its data"


class Encoder(BaseEstimator):
    """Base of all encoders.

    Attributes
    ----------
    needs_trials : bool
        Whether a data set's vector is found from its trials, because its data are not used.

    Examples
    --------
    >>> from sktransfer import profile
    >>> class Rows(Encoder):
    ...     def fit(self, profiles):
    ...         return self
    ...
    ...     def transform(self, profiles):
    ...         return np.array([[each.n_rows] for each in profiles])
    >>> Rows().fit([]).transform([profile([[1.0], [2.0], [3.0]], [0, 1, 0])]).tolist()
    [[3]]
    """

    needs_trials: ClassVar[bool] = False

    @property
    def draws_rows(self) -> bool:
        """Whether `embed` draws a new batch of rows each time it gets an `rng`."""
        return False

    def fit(self, profiles: Sequence[DatasetProfile | None]) -> Self:
        """Learn scales and initialize the networks at random."""
        raise TypeError(f"{type(self).__name__} must define fit.")

    def read(self, profile: Any) -> Any:
        """The part of a profile that `embed` needs; None if the data set cannot be encoded."""
        raise TypeError(f"{type(self).__name__} must define read.")

    def embed(self, inputs: Sequence[Any], rng: np.random.Generator | None = None) -> torch.Tensor:
        """Differentiable vectors of the results of `read`; -> (m, q).

        Parameters
        ----------
        inputs : sequence
            Results of `read`, none of them None.
        rng : numpy Generator or None
            If given, a new batch of each data set's rows is drawn.
        """
        raise TypeError(f"{type(self).__name__} must define embed.")

    def basis(self, profile: DatasetProfile | None) -> str:
        """What the vector of this data set is computed from, in a few words."""
        raise TypeError(f"{type(self).__name__} must define basis.")

    def transform(self, profiles: Sequence[Any]) -> np.ndarray:
        """Vectors of the data sets; (m, q).

        Rows of data sets that cannot be encoded are NaN. If none can, q is 0.
        """
        import torch

        inputs = [self.read(profile) for profile in profiles]
        readable = [number for number, each in enumerate(inputs) if each is not None]
        if not readable:
            return np.full((len(inputs), 0), np.nan)
        with torch.no_grad(), single_threaded:
            known = self.embed([inputs[number] for number in readable]).numpy()
        vectors = np.full((len(inputs), known.shape[1]), np.nan)
        vectors[readable] = known
        return vectors

    # -- weights -------------------------------------------------------------------------------

    def networks(self) -> dict[str, Network]:
        """The networks by name."""
        return {}

    def scalars(self) -> dict[str, torch.Tensor]:
        """Other trained tensors by name."""
        return {}

    def parameters(self) -> list[torch.Tensor]:
        """All trained tensors."""
        weights = [weight for network in self.networks().values() for weight in network.weights]
        return weights + list(self.scalars().values())

    def penalty(self) -> torch.Tensor:
        """Negative log prior of the trained tensors, up to a constant."""
        from sktransfer.utils._torch import tensor

        terms = [network.penalty() for network in self.networks().values()]
        terms += [0.5 * (scalar * scalar).sum() for scalar in self.scalars().values()]
        return sum(terms, tensor(np.zeros(())))

    # -- state ---------------------------------------------------------------------------------

    def constants(self) -> dict[str, np.ndarray]:
        """Everything that `fit` learned apart from the trained tensors, as plain arrays."""
        return {}

    def restore(self, constants: dict[str, np.ndarray]) -> None:
        """Restore the result of `constants` and initialize the networks."""

    def get_state(self) -> dict[str, np.ndarray]:
        """Constants and trained tensors as plain arrays."""
        state = {f"constant.{name}": np.asarray(array) for name, array in self.constants().items()}
        for number, weight in enumerate(self.parameters()):
            state[f"weight.{number}"] = weight.detach().numpy().copy()
        return state

    def set_state(self, state: dict[str, np.ndarray]) -> Self:
        """Restore the result of `get_state`."""
        named = [name.partition(".") for name in state]
        self.restore(
            {name: state[f"constant.{name}"] for kind, _, name in named if kind == "constant"}
        )
        self.start_from(state)
        return self

    def reads_like(self, other: Encoder) -> bool:
        """Whether the columns of both encoders' vectors have the same meaning."""
        ours, theirs = (
            {k: v for k, v in e.constants().items() if k.endswith("names")} for e in (self, other)
        )
        return ours.keys() == theirs.keys() and all(
            np.array_equal(ours[k], theirs[k]) for k in ours
        )

    def start_from(self, state: dict[str, np.ndarray]) -> bool:
        """Copy the trained tensors of a state if their shapes match; return whether they do."""
        weights = [state.get(f"weight.{number}") for number in range(len(self.parameters()))]
        pairs = list(zip(self.parameters(), weights, strict=True))
        if any(old is None or tuple(new.shape) != old.shape for new, old in pairs):
            return False
        if pairs:
            import torch

            with torch.no_grad():
                for new, old in pairs:
                    new.copy_(torch.from_numpy(np.asarray(old, dtype=np.float64, order="C")))
        return True
