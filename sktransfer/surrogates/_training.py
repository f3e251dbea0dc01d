"""The one training loop of the surrogates: Adam on a stochastic loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch


def train(
    loss: Callable[[], torch.Tensor],
    groups: list[tuple[list[torch.Tensor], float]],
    steps: int,
    fall: float = 0.9,
) -> None:
    """Minimise a stochastic loss by Adam (Kingma & Ba 2015), each group of weights at its own rate.

    The rates fall evenly, by the share `fall` of their first value. Where the loss is no number, the last
    good weights are kept. (torch's own optimisers import half a thousand modules before the first step.)
    """
    weights = [weight for group, _ in groups for weight in group]
    rates = [rate for group, rate in groups for _ in group]
    first, second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    good = [weight.detach().clone() for weight in weights]
    for step in range(1, steps + 1):
        try:
            gradients = torch.autograd.grad(loss(), weights)
        except torch.linalg.LinAlgError:
            gradients = ()
        with torch.no_grad():
            if not gradients or not all(gradient.isfinite().all() for gradient in gradients):
                for weight, last in zip(weights, good, strict=True):
                    weight.copy_(last)
                warnings.warn("Training ended early: the likelihood was no number.", stacklevel=2)
                return
            rest = 1 - fall * step / steps
            for k, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
                good[k].copy_(weight)
                first[k].mul_(0.9).add_(gradient, alpha=0.1)
                second[k].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                scale = (second[k] / (1 - 0.999**step)).sqrt_().add_(1e-8)
                weight.addcdiv_(first[k], scale, value=-rates[k] * rest / (1 - 0.9**step))
