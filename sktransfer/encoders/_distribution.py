"""`DistributionEncoder`: learned embeddings of P_X, P_Y|X, P_XY (Law et al. 2019, section 4.1).

Notation: rows x in R^p; Phi_x = phi_x(X), (s, a); Phi_y = phi_y(Y), (s, b), for classification the
one-hot labels. The tasks share one input space and keep a sample of their rows.

marginal     mean of phi_x(x)                                              a numbers
conditional  Phi_y' Phi_x (Phi_x' Phi_x + lambda s I)^-1                   a b numbers
joint        Phi_x' Phi_y / s                                              a b numbers
joint-mean   mean of phi_xy([x, y])                                        a numbers

For classification the class ratios are appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch

from sktransfer.dataset import DatasetProfile
from sktransfer.encoders._base import Encoder
from sktransfer.utils._networks import Network
from sktransfer.utils._torch import eye, tensor

PARTS = ("marginal", "conditional", "joint", "joint-mean")


def conditional_embedding(
    phi_x: torch.Tensor, phi_y: torch.Tensor, ridge: torch.Tensor
) -> torch.Tensor:
    """The conditional mean operator in its O(s a²) form; (..., s, a), (..., s, b) -> (..., b, a).

    Equal to Phi_y' (Phi_x Phi_x' + ridge I)^-1 Phi_x, which would invert an s by s matrix.
    """
    gram = phi_x.mT @ phi_x
    gram = gram + ridge * eye(gram.shape[-1])
    return torch.linalg.solve(gram, phi_x.mT @ phi_y).mT


class DistributionEncoder(Encoder):
    """Learned embedding of the rows' distribution, for tasks that share one input space.

    The tasks need a sample of their rows (``Archive(..., keep="sample")``) with the same number of
    columns and classes. Tasks without such a sample are not compared. The sample of texts has
    hashed counts of words, that of images means of parts, so that phi_x learns on top of these.

    Parameters
    ----------
    parts : "auto" or sequence of {"marginal", "conditional", "joint", "joint-mean"}
        The embeddings to concatenate. "auto" follows the paper: joint (an embedding of each class)
        and class ratios for classification, marginal and conditional for regression, marginal
        without a target.
    hidden, features : int
        Units of the hidden layer and of the output of phi_x, phi_y and phi_xy.
    standardize : bool
        Whether to scale each data set's columns to mean 0 and variance 1, so that units do not
        matter.
    batch_size : int
        Rows of each task that a training step draws.
    random_state : int
        Seed of the initial weights.

    Examples
    --------
    >>> import numpy as np
    >>> from sktransfer import profile
    >>> rng = np.random.default_rng(0)
    >>> data = [profile(rng.normal(mean, 1, (50, 2)), keep="sample") for mean in (0, 0, 5)]
    >>> psi = DistributionEncoder(standardize=False).fit(data).transform(data)
    >>> bool(abs(psi[0] - psi[1]).sum() < abs(psi[0] - psi[2]).sum())
    True
    """

    def __init__(
        self,
        parts: str | Sequence[str] = "auto",
        hidden: int = 20,
        features: int = 10,
        standardize: bool = True,
        batch_size: int = 500,
        random_state: int = 0,
    ):
        self.parts = parts
        self.hidden = hidden
        self.features = features
        self.standardize = standardize
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(self, profiles: Sequence[DatasetProfile | None]) -> Self:
        if self.parts != "auto" and not (self.parts and set(self.parts) <= set(PARTS)):
            raise ValueError(f"parts={self.parts!r} must be 'auto' or some of {PARTS}.")
        shapes = [shape for shape in map(_shape, profiles) if shape is not None]
        # The most frequent input space is the shared one.
        shape = max(shapes, key=shapes.count) if shapes else (0, 0, 0)
        self.restore({"shape": np.array(shape)})
        return self

    def constants(self) -> dict[str, np.ndarray]:
        return {"shape": np.array(self.shape_)}

    def restore(self, constants: dict[str, np.ndarray]) -> None:
        self.shape_ = p, classes, outputs = tuple(int(size) for size in constants["shape"])
        self.parts_ = self._parts(classes, outputs)
        rng = np.random.default_rng(self.random_state)
        sizes = {"x": p, "y": outputs, "xy": p + classes + outputs}
        needed = {"x": set(self.parts_) - {"joint-mean"}, "xy": set(self.parts_) & {"joint-mean"}}
        needed["y"] = set() if classes else set(self.parts_) & {"conditional", "joint"}
        self.networks_ = {
            name: Network([size, self.hidden, self.features], rng)
            for name, size in sizes.items()
            if needed[name]
        }
        self.log_ridge_ = tensor(np.array(np.log(1e-2))).requires_grad_(True)

    def _parts(self, classes: int, outputs: int) -> tuple[str, ...]:
        if self.parts != "auto":
            return tuple(self.parts) if classes or outputs else ("marginal",)
        if classes:
            return ("joint",)
        return ("marginal", "conditional") if outputs else ("marginal",)

    @property
    def draws_rows(self) -> bool:
        return True

    def networks(self) -> dict[str, Network]:
        return self.networks_

    def scalars(self) -> dict[str, torch.Tensor]:
        return {"log_ridge": self.log_ridge_} if "conditional" in self.parts_ else {}

    def penalty(self) -> torch.Tensor:
        prior = 0.5 * (self.log_ridge_ - np.log(1e-2)) ** 2
        return sum((network.penalty() for network in self.networks_.values()), prior)

    def read(self, profile: DatasetProfile | None) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows and targets, (s, p) and (s, b); None if they are not in the shared space."""
        if _shape(profile) != self.shape_ or not sum(self.shape_):
            return None
        sample = getattr(profile, "sample")  # noqa: B009 - there is one, or there would be no shape
        X, y = sample["X"], sample["y"]
        classes, outputs = self.shape_[1:]
        if self.standardize:
            spread = X.std(axis=0)
            X = (X - X.mean(axis=0)) / np.where(
                spread > 1e-12 * np.abs(X).max(axis=0, initial=0), spread, 1.0
            )
        if classes:
            return X, (y[:, None] == np.arange(classes)).astype(float)
        Y = np.zeros((len(X), 0)) if not outputs else y.reshape(len(X), outputs)
        low, span = Y.min(axis=0), np.ptp(Y, axis=0)
        return X, (Y - low) / np.where(span > 0, span, 1.0)

    def embed(self, inputs: Sequence[Any], rng: np.random.Generator | None = None) -> torch.Tensor:
        if rng is None:
            return torch.cat(
                [self._embed(*(tensor(part)[None] for part in each)) for each in inputs]
            )
        size = min(self.batch_size, max(len(X) for X, _ in inputs))
        # Drawn with replacement, so that small samples vary as well: what depends on the sample is
        # noise, and should not be learned.
        chosen = [rng.integers(len(X), size=size) for X, _ in inputs]
        X = np.stack([X[rows] for (X, _), rows in zip(inputs, chosen, strict=True)])
        Y = np.stack([Y[rows] for (_, Y), rows in zip(inputs, chosen, strict=True)])
        return self._embed(tensor(X), tensor(Y))

    def _embed(self, X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
        """(m, s, p), (m, s, b) -> (m, q)."""
        m, s = X.shape[:2]
        networks = self.networks_
        phi_x = networks["x"](X) if "x" in networks else X
        phi_y = networks["y"](Y) if "y" in networks else Y
        found = []
        for part in self.parts_:
            if part == "marginal":
                found.append(phi_x.mean(dim=1))
            elif part == "conditional":
                ridge = s * torch.exp(self.log_ridge_)
                found.append(conditional_embedding(phi_x, phi_y, ridge).reshape(m, -1))
            elif part == "joint":
                found.append((phi_x.mT @ phi_y / s).reshape(m, -1))
            else:
                found.append(networks["xy"](torch.cat([X, Y], dim=-1)).mean(dim=1))
        if self.shape_[1]:
            found.append(Y.mean(dim=1))
        return torch.cat(found, dim=1)

    def basis(self, profile: DatasetProfile | None) -> str:
        if self.read(profile) is not None:
            return "its rows"
        if profile is None or profile.sample is None:
            return "nothing: no sample of its rows was kept"
        return "nothing: its columns or classes differ from those of the other tasks"


def _shape(profile: DatasetProfile | None) -> tuple[int, int, int] | None:
    """Columns, classes and outputs of a kept sample; None without one."""
    sample = getattr(profile, "sample", None)
    if profile is None or sample is None or not len(sample["X"]):
        return None
    p, classes = sample["X"].shape[1], profile.n_classes or 0
    outputs = 0 if classes or sample["y"] is None else np.atleast_2d(sample["y"].T).shape[0]
    return p, classes, outputs
