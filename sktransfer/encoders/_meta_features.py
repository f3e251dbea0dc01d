"""`ManualEncoder`: the handcrafted meta-features of the profile (manualBO of Law et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from sktransfer.encoders._base import NOTHING_KNOWN, Encoder
from sktransfer.utils._torch import tensor


class ManualEncoder(Encoder):
    """Meta-features, each scaled to [0, 1] over the past tasks. Nothing in it is learned.

    A feature that is not known of a data set counts as half-way.

    Parameters
    ----------
    without : tuple of str
        Groups of meta-features to leave out, by the beginnings of their names.

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

    def fit(self, profiles: Sequence[Any]) -> ManualEncoder:
        known = [{} if profile is None else profile.meta_features for profile in profiles]
        left_out = (self.without,) if isinstance(self.without, str) else tuple(self.without)
        names = sorted(name for name in set().union(*known) if not name.startswith(left_out))
        table = np.array(
            [[features.get(name, np.nan) for name in names] for features in known], dtype=float
        )
        table = table.reshape(len(known), len(names))
        seen = np.isfinite(table)
        low = np.where(seen, table, np.inf).min(axis=0, initial=np.inf)
        high = np.where(seen, table, -np.inf).max(axis=0, initial=-np.inf)
        varies = high > low
        self.restore(
            {"names": np.array(names, dtype=str)[varies], "low": low[varies], "high": high[varies]}
        )
        return self

    def constants(self) -> dict[str, np.ndarray]:
        return {"names": self.names_, "low": self.low_, "high": self.high_}

    def restore(self, constants: dict[str, np.ndarray]) -> None:
        self.names_, self.low_, self.high_ = (constants[name] for name in ("names", "low", "high"))

    def read(self, profile: Any) -> np.ndarray:
        features = {} if profile is None else profile.meta_features
        values = np.array([features.get(name, np.nan) for name in self.names_], dtype=float)
        scaled = (values - self.low_) / (self.high_ - self.low_)
        # A data set far outside of what was seen is told to be outside, not how far.
        return np.where(np.isfinite(scaled), np.clip(scaled, -1, 2), 0.5)

    def embed(self, inputs: Sequence[Any], rng: np.random.Generator | None = None) -> torch.Tensor:
        return tensor(np.array(inputs, dtype=float).reshape(len(inputs), len(self.names_)))

    def basis(self, profile: Any) -> str:
        if profile is None:
            return NOTHING_KNOWN
        known = sum(name in profile.meta_features for name in self.names_)
        return f"{known} of {len(self.names_)} handcrafted meta-features"
