"""The trained networks in numpy. All members of the ensemble run at once.

Notation: E members; weights of a layer (E, a, b), biases (E, b).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Layer = tuple[np.ndarray, np.ndarray]
"""Weights (E, a, b) and biases (E, b)."""


def run_layers(layers: Sequence[Layer], x: np.ndarray) -> np.ndarray:
    """Run networks with SiLU units between their layers; (n, a) or (E, n, a) -> (E, n, b)."""
    w, b = layers[0]
    return finish_layers(layers[1:], x @ w + b[:, None])


def finish_layers(layers: Sequence[Layer], x: np.ndarray) -> np.ndarray:
    """Run the layers after the first, given its output; (E, n, a) -> (E, n, b)."""
    for w, b in layers:
        x = silu(x) @ w + b[:, None]
    return x


def silu(x: np.ndarray) -> np.ndarray:
    """x / (1 + exp(-x)), in a form that is fast in numpy and does not overflow."""
    half = 0.5 * x
    return half * np.tanh(half) + half
