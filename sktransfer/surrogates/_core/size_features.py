"""Data features of Yogatama & Mann 2014: log rows, log columns, number of classes (section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sktransfer.dataset import DatasetProfile

NAMES = ("rows", "columns", "classes")


class DataFeatures:
    """Map from a profile to its features, each scaled to [0, 1] over the past tasks.

    Features that are unknown, or equal in all past tasks, are 0.5.

    Parameters
    ----------
    low, high : ndarray of shape (3,)
        The range of each feature over the past tasks.

    Examples
    --------
    >>> from sktransfer import profile
    >>> few, many = profile([[1.0]] * 5, [0, 1, 0, 1, 0]), profile([[1.0]] * 50)
    >>> DataFeatures.from_profiles([few, many, None])(few).tolist()
    [0.0, 0.5, 0.5]
    """

    def __init__(self, low: np.ndarray, high: np.ndarray):
        self.low, self.high = low, high

    @classmethod
    def from_profiles(cls, profiles: Sequence[DatasetProfile | None]) -> DataFeatures:
        table = np.array([_raw(each) for each in profiles], dtype=float).reshape(-1, len(NAMES))
        seen = np.isfinite(table)
        low = np.where(seen, table, np.inf).min(axis=0, initial=np.inf)
        high = np.where(seen, table, -np.inf).max(axis=0, initial=-np.inf)
        return cls(low, high)

    def __call__(self, profile: DatasetProfile | None) -> np.ndarray:
        """-> (3,)."""
        varies = self.high > self.low
        span = np.where(varies, self.high - self.low, 1.0)
        scaled = (_raw(profile) - np.where(varies, self.low, 0.0)) / span
        # Outside the known range only the side counts, not the distance.
        return np.where(varies & np.isfinite(scaled), np.clip(scaled, -1, 2), 0.5)

    def table(self, profiles: Sequence[DatasetProfile | None]) -> np.ndarray:
        """-> (m, 3)."""
        return np.array([self(each) for each in profiles], dtype=float).reshape(-1, len(NAMES))


def describe_features(profile: DatasetProfile | None) -> str:
    """What a data set is compared by, in words."""
    names = [name for name, value in zip(NAMES, _raw(profile), strict=True) if np.isfinite(value)]
    return f"numbers of {', '.join(names)}" if names else "nothing: there is no profile"


def _raw(profile: DatasetProfile | None) -> np.ndarray:
    sizes = [getattr(profile, f"n_{name}", None) for name in ("rows", "features", "classes")]
    rows, columns, classes = (float(size) if size else np.nan for size in sizes)
    return np.array([np.log(rows), np.log(columns), classes])
