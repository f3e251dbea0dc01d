"""Inputs of a network: numbers scaled to [-1, 1], and an indicator for each category.

A network treats codes as amounts, but the code of a category is not an amount. A category that was
not seen has all indicators 0.
"""

from __future__ import annotations

import numpy as np


class Inputs:
    """Map from codes to network inputs.

    Parameters
    ----------
    levels : ndarray of shape (k, 2)
        Column and code of each indicator.
    categorical : ndarray of bool, shape (d,)

    Examples
    --------
    >>> inputs = Inputs.from_codes(np.array([[0.5, 0.0], [1.0, 0.5]]), np.array([False, True]))
    >>> inputs(np.array([[0.0, 0.5]])).tolist()
    [[-1.0, 0.0, 1.0]]
    """

    def __init__(self, levels: np.ndarray, categorical: np.ndarray):
        self.levels, self.categorical = levels, categorical

    @classmethod
    def from_codes(cls, theta: np.ndarray, categorical: np.ndarray) -> Inputs:
        """A map with an indicator for each category in these codes, (n, d)."""
        pairs = [(c, v) for c in np.flatnonzero(categorical) for v in np.unique(theta[:, c])]
        return cls(np.array(pairs, dtype=float).reshape(-1, 2), categorical)

    @property
    def width(self) -> int:
        """Number of inputs."""
        return int((~self.categorical).sum()) + len(self.levels)

    def is_compatible(self, other: Inputs) -> bool:
        """Whether the columns of both have the same meaning."""
        return np.array_equal(self.levels, other.levels) and np.array_equal(
            self.categorical, other.categorical
        )

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) -> (n, width)."""
        columns = self.levels[:, 0].astype(int)
        return np.hstack(
            [2 * theta[:, ~self.categorical] - 1, theta[:, columns] == self.levels[:, 1]]
        )
