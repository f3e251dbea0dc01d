"""The trained networks in numpy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import expit

Arrays = Mapping[str, np.ndarray]
MIN_LOG_STD, MAX_LOG_STD = -3.0, 1.5


def run_layers(weights: Arrays, prefix: str, x: np.ndarray) -> np.ndarray:
    """A network with SiLU units between its layers; (n, a) -> (n, b)."""
    number = 0
    while f"{prefix}.{number}.w" in weights:
        if number:
            x = x * expit(x)
        x = x @ weights[f"{prefix}.{number}.w"] + weights[f"{prefix}.{number}.b"]
        number += 1
    return x
