"""A small neural network with a normal prior on its weights, shared by encoders and surrogates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch

from sktransfer.utils._torch import tensor

Activation = Callable[[torch.Tensor], torch.Tensor]


class Network:
    """Layers of tanh units, of which the last one is linear.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of inputs, of hidden units of each layer, and of outputs.
    rng : numpy Generator
        Draws the weights from their prior: N(0, scale² / inputs of the layer), biases N(0, scale²).
    scale : float
        Standard deviation of the prior.
    """

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator, scale: float = 1.0):
        self._scale = scale
        self.weights: list[torch.Tensor] = []
        for fan_in, fan_out in pairwise(sizes):
            matrix = scale * rng.standard_normal((fan_in, fan_out)) / np.sqrt(max(fan_in, 1))
            self.weights.append(tensor(matrix))
            # Without biases a tanh network is an odd function: it maps every symmetric distribution
            # to the same mean.
            self.weights.append(tensor(scale * rng.standard_normal(fan_out)))
        for weight in self.weights:
            weight.requires_grad_(True)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the outputs; (..., inputs) -> (..., outputs)."""
        return forward(x, self.weights)

    def penalty(self) -> torch.Tensor:
        """Negative log prior of the weights, up to a constant."""
        matrices = sum(len(matrix) * (matrix * matrix).sum() for matrix in self.weights[::2])
        biases = sum((bias * bias).sum() for bias in self.weights[1::2])
        return 0.5 * (matrices + biases) / self._scale**2


def forward(
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    activation: Activation = torch.tanh,
    activate_last: bool = False,
    dropout: Activation | None = None,
) -> torch.Tensor:
    """Compute the outputs of a network with the given weights; (..., inputs) -> (..., outputs).

    Parameters
    ----------
    x : tensor of shape (..., inputs)
    weights : sequence of tensor
        A matrix and a bias for each layer.
    activation : callable
    activate_last : bool
        Whether the activation is applied to the outputs too.
    dropout : callable or None
        Applied to the units of each hidden layer.
    """
    last = len(weights) // 2 - 1
    for number, (matrix, bias) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        x = x @ matrix + bias
        if number < last or activate_last:
            x = activation(x)
        if dropout is not None and number < last:
            x = dropout(x)
    return x
