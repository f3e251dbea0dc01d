"""`ManualEncoder`: the handcrafted meta-features of the profile (manualBO of Law et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.encoders._base import NO_PROFILE, Encoder

if TYPE_CHECKING:
    import torch


class ManualEncoder(Encoder):
    """Meta-features, each scaled to [0, 1] over the past tasks. It has no trained weights.

    A meta-feature that is unknown for a data set is 0.5.

    Parameters
    ----------
    without : tuple of str
        Groups of meta-features to exclude, by the beginnings of their names.

    Examples
    --------
    >>> from sktransfer import profile
    >>> few, many = profile([[1.0], [2.0]] * 5), profile([[1.0], [2.0]] * 500)
    >>> encoder = ManualEncoder().fit([few, many])
    >>> rows = encoder.names_.tolist().index("log_rows")
    >>> encoder.transform([few, many])[:, rows].tolist()
    [0.0, 1.0]
    """

    def __init__(self, without: tuple[str, ...] = ()):
        self.without = without

    def fit(self, profiles: Sequence[DatasetProfile | None]) -> Self:
        """Learn the range of each meta-feature. Those that do not vary are dropped."""
        known = [{} if profile is None else profile.meta_features for profile in profiles]
        excluded = (self.without,) if isinstance(self.without, str) else tuple(self.without)
        names = sorted(name for name in set().union(*known) if not name.startswith(excluded))
        rows = [[features.get(name, np.nan) for name in names] for features in known]
        table = np.array(rows, dtype=float).reshape(len(known), len(names))
        seen = np.isfinite(table)
        low = np.where(seen, table, np.inf).min(axis=0, initial=np.inf)
        high = np.where(seen, table, -np.inf).max(axis=0, initial=-np.inf)
        varies = high > low
        varying = np.array(names, dtype=str)[varies]
        self.restore({"names": varying, "low": low[varies], "high": high[varies]})
        return self

    def constants(self) -> dict[str, np.ndarray]:
        return {"names": self.names_, "low": self.low_, "high": self.high_}

    def restore(self, constants: dict[str, np.ndarray]) -> None:
        self.names_, self.low_, self.high_ = (constants[name] for name in ("names", "low", "high"))

    def read(self, profile: DatasetProfile | None) -> np.ndarray:
        """The scaled meta-features; (q,)."""
        features = {} if profile is None else profile.meta_features
        values = np.array([features.get(name, np.nan) for name in self.names_], dtype=float)
        scaled = (values - self.low_) / (self.high_ - self.low_)
        # Outside the known range only the side counts, not the distance.
        return np.where(np.isfinite(scaled), np.clip(scaled, -1, 2), 0.5)

    def transform(self, profiles: Sequence[DatasetProfile | None]) -> np.ndarray:
        """The scaled meta-features of all data sets; (m, q)."""
        rows = [self.read(profile) for profile in profiles]
        return np.array(rows, dtype=float).reshape(len(rows), len(self.names_))

    def embed(self, inputs: Sequence[Any], rng: np.random.Generator | None = None) -> torch.Tensor:
        from sktransfer.utils._torch import tensor

        return tensor(np.array(inputs, dtype=float).reshape(len(inputs), len(self.names_)))

    def basis(self, profile: DatasetProfile | None) -> str:
        if profile is None:
            return NO_PROFILE
        known = sum(name in profile.meta_features for name in self.names_)
        return f"{known} of {len(self.names_)} handcrafted meta-features"
