"""The lower confidence bound: what is good and known to be.

For the first trial, when nothing has been seen of the target and all belief comes from the past, there
is no score to improve on; the bound takes what the past is sure of.
"""

from __future__ import annotations

import numpy as np


def lower_confidence_bound(mean: np.ndarray, std: np.ndarray, kappa: float = 1.0) -> np.ndarray:
    """mean - kappa std; (n,), (n,) -> (n,).

    >>> lower_confidence_bound(np.array([1.0, 0.9]), np.array([0.5, 0.1])).tolist()
    [0.5, 0.8]
    """
    return mean - kappa * std
