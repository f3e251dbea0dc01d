"""`PairEncoder`: a learned embedding of tables with any number of columns and classes.

Notation: Z standardized columns, (s, p); T standardized targets, (s, c), one for each class (one
against the rest) or output; u the sketch, projected on its main components over the past tasks,
(r,); h the handcrafted meta-features (sizes, landmarks, ...) without the covariances, which depend
on the columns' units.

The network pools twice (as in Dataset2Vec, Jomaa et al. 2021): over the rows of one (feature,
target) pair, then over the pairs,

    psi = [W [mean_{f,t} g(mean_rows phi([Z_f, T_t])), u], h].

So psi does not depend on the order of rows, columns and labels, nor on the columns' units. If the
rows are kept, phi, g and W are learned end to end on new batches of rows. Otherwise the fixed
random features of the sketch replace g(mean phi), and W is learned on top of them. With h, the
surrogate can weigh learned features against handcrafted ones, as Law et al. 2019 propose at the end
of section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch

from sktransfer.dataset import DatasetProfile
from sktransfer.dataset._meta_features import standardize
from sktransfer.dataset._sketch import SKETCH_FORMAT, standardize_targets
from sktransfer.encoders._base import NO_PROFILE, Encoder
from sktransfer.encoders._meta_features import ManualEncoder
from sktransfer.utils._networks import Network
from sktransfer.utils._torch import tensor

Rows = tuple[np.ndarray, np.ndarray]  # Z and T

MAX_COMPONENTS = 8  # of the sketch
LEARNED_SCALE = 0.3  # learned features start small and grow if they explain scores


class PairEncoder(Encoder):
    """Learned embedding of any table, from its rows or from its sketch.

    Parameters
    ----------
    size : int
        Number of learned features.
    rows : {"auto", "sample", "sketch"}
        Learn from the rows or from the sketch. "auto" uses the rows if all past tasks kept a
        sample.
    handcrafted : bool
        Whether the profile's meta-features are appended to the learned features.
    hidden, features : int
        Units of the hidden layer and of the output of phi and g.
    batch_size, pairs : int
        Rows and (feature, target) pairs of each task that a training step draws.
    random_state : int
        Seed of the initial weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris, load_wine
    >>> from sktransfer import profile
    >>> data = [profile(*load(return_X_y=True)) for load in (load_iris, load_wine)]
    >>> PairEncoder(size=3, handcrafted=False).fit(data).transform(data).shape
    (2, 3)
    """

    def __init__(
        self,
        size: int = 4,
        rows: str = "auto",
        handcrafted: bool = True,
        hidden: int = 20,
        features: int = 10,
        batch_size: int = 128,
        pairs: int = 24,
        random_state: int = 0,
    ):
        self.size = size
        self.rows = rows
        self.handcrafted = handcrafted
        self.hidden = hidden
        self.features = features
        self.batch_size = batch_size
        self.pairs = pairs
        self.random_state = random_state

    def fit(self, profiles: Sequence[DatasetProfile | None]) -> Self:
        if self.rows not in ("auto", "sample", "sketch"):
            raise ValueError(f"rows={self.rows!r} must be 'auto', 'sample' or 'sketch'.")
        drawn = [u for u in map(_sketch, profiles) if u is not None]
        table = np.array(drawn) if drawn else np.empty((1, 0))
        mean, spread = table.mean(axis=0), np.maximum(table.std(axis=0), 1e-6)
        sampled = [getattr(profile, "sample", None) is not None for profile in profiles]
        by_rows = self.rows == "sample" or (self.rows == "auto" and bool(sampled) and all(sampled))
        known = (
            ManualEncoder(without=("covariance",))
            .fit(profiles if self.handcrafted else [])
            .constants()
        )
        self.restore(
            {
                "mean": mean,
                "spread": spread,
                "components": _components((table - mean) / spread),
                "by_rows": np.array(by_rows),
                **{f"known.{name}": array for name, array in known.items()},
            }
        )
        return self

    def constants(self) -> dict[str, np.ndarray]:
        return self._constants

    def restore(self, constants: dict[str, np.ndarray]) -> None:
        self._constants = constants
        self.mean_, self.spread_ = constants["mean"], constants["spread"]
        self.components_ = constants["components"]
        self.by_rows_ = bool(constants["by_rows"])
        self.known_ = ManualEncoder()
        self.known_.restore({n: constants[f"known.{n}"] for n in ("names", "low", "high")})
        rng = np.random.default_rng(self.random_state)
        inputs = self.components_.shape[1]
        self.networks_ = {}
        if self.by_rows_:
            inputs += self.features
            self.networks_["phi"] = Network([2, self.hidden, self.features], rng)
            self.networks_["g"] = Network([self.features, self.hidden, self.features], rng)
        self.networks_["psi"] = Network([inputs, self.size], rng, scale=LEARNED_SCALE)

    @property
    def draws_rows(self) -> bool:
        return self.by_rows_

    def networks(self) -> dict[str, Network]:
        return self.networks_

    def read(self, profile: DatasetProfile | None) -> tuple[np.ndarray, np.ndarray, Rows | None]:
        """u, h, and the rows if they are known."""
        drawn = _sketch(profile)
        u = np.zeros(self.components_.shape[1])  # without a sketch, the average of the past
        if drawn is not None and len(u):
            u = np.clip((drawn - self.mean_) / self.spread_, -4, 4) @ self.components_
        return u, self.known_.read(profile), _standard_rows(profile) if self.by_rows_ else None

    def embed(self, inputs: Sequence[Any], rng: np.random.Generator | None = None) -> torch.Tensor:
        m = len(inputs)
        u = tensor(np.array([u for u, _, _ in inputs]).reshape(m, self.components_.shape[1]))
        if self.by_rows_:
            pooled = [self._pool(rows, rng) for _, _, rows in inputs]
            u = torch.cat([torch.stack(pooled), u], dim=1)
        return torch.cat(
            [self.networks_["psi"](u), self.known_.embed([h for _, h, _ in inputs])], dim=1
        )

    def _pool(self, rows: Rows | None, rng: np.random.Generator | None) -> torch.Tensor:
        """The mean over pairs of g of the mean over rows of phi; -> (features,)."""
        if rows is None:
            return tensor(np.zeros(self.features))
        Z, T = rows
        p, c = Z.shape[1], T.shape[1]
        chosen = np.arange(p * c)
        if rng is not None:
            if len(Z) > self.batch_size:
                batch = rng.choice(len(Z), self.batch_size, replace=False)
                Z, T = Z[batch], T[batch]
            if p * c > self.pairs:
                chosen = rng.choice(p * c, self.pairs, replace=False)
        pairs = np.stack([Z[:, chosen // c], T[:, chosen % c]], axis=-1)  # (s, pairs, 2)
        return self.networks_["g"](self.networks_["phi"](tensor(pairs)).mean(dim=0)).mean(dim=0)

    def basis(self, profile: DatasetProfile | None) -> str:
        if profile is None:
            return NO_PROFILE
        if self.by_rows_ and profile.sample is not None:
            return "its rows"
        if _sketch(profile) is not None:
            return "its sketch"
        return "sizes and labels only: " + (
            profile.notes[0] if profile.notes else "there is no sketch of X"
        )


def _components(table: np.ndarray) -> np.ndarray:
    """Main directions of past sketches, the first scaled to variance 1; (m, U) -> (U, r).

    r grows with the number of tasks, so that the weights on top cannot separate a few tasks by
    chance. It grows by doubling, so that weights can be reused for most new tasks.
    """
    m = len(table)
    r = min(2 ** int(np.log2(max(m / 4, 1))), MAX_COMPONENTS)
    if not table.any():
        return np.empty((table.shape[1], 0))
    _, values, directions = np.linalg.svd(table, full_matrices=False)
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    return (signs[:, None] * directions)[:r].T * np.sqrt(m) / values[0]


def _sketch(profile: DatasetProfile | None) -> np.ndarray | None:
    """The numbers of a sketch in the current format; None if there is none."""
    sketch = getattr(profile, "sketch", None)
    if sketch is None or sketch.get("format") != SKETCH_FORMAT:
        return None
    return np.array([*sketch["pairs"], *sketch["kernels"]], dtype=float)


def _standard_rows(profile: DatasetProfile | None) -> Rows | None:
    """Z and T of the kept rows; None if there are none, or if no column varies."""
    sample = getattr(profile, "sample", None)
    if profile is None or sample is None or not len(sample["X"]):
        return None
    Z, _ = standardize(sample["X"])
    y = sample["y"]
    T = standardize_targets(
        None if y is None else y.reshape(len(y), -1), bool(profile.n_classes), len(Z)
    )
    return (Z, T) if Z.size else None
