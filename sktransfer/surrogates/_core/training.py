"""The training loop of the surrogates, Adam on a stochastic loss, and batches of tasks for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import torch

from sktransfer.exceptions import SurrogateWarning
from sktransfer.utils._progress_line import track
from sktransfer.utils._torch import tensor, torch_context


@torch_context()
def train(
    loss: Callable[[], torch.Tensor],
    groups: list[tuple[list[torch.Tensor], float]],
    steps: int,
    decay: float = 0.9,
) -> None:
    """Minimize a stochastic loss by Adam (Kingma & Ba 2015).

    If the loss or its gradient is not finite, training ends with the last good weights and a
    warning. torch's own optimizers are not used, because they import some 500 modules.

    Parameters
    ----------
    loss : callable
    groups : list of (list of Tensor, float)
        Weights and their learning rate.
    steps : int
    decay : float
        Share of the learning rates that is lost, linearly, over all steps.
    """
    weights = [weight for group, _ in groups for weight in group]
    rates = [rate for group, rate in groups for _ in group]
    first, second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    good = [weight.detach().clone() for weight in weights]
    for step in track(range(1, steps + 1), "Training the surrogate"):
        try:
            gradients = torch.autograd.grad(loss(), weights)
        except torch.linalg.LinAlgError:
            gradients = ()
        with torch.no_grad():
            if not gradients or not all(gradient.isfinite().all() for gradient in gradients):
                for weight, last in zip(weights, good, strict=True):
                    weight.copy_(last)
                warnings.warn(
                    "Training ended early because the likelihood is not finite.",
                    SurrogateWarning,
                    stacklevel=2,
                )
                return
            rest = 1 - decay * step / steps
            for k, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
                good[k].copy_(weight)
                first[k].mul_(0.9).add_(gradient, alpha=0.1)
                second[k].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                scale = (second[k] / (1 - 0.999**step)).sqrt_().add_(1e-8)
                weight.addcdiv_(first[k], scale, value=-rates[k] * rest / (1 - 0.9**step))


def task_batches(
    owner: np.ndarray, size: int, max_trials: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, torch.Tensor, torch.Tensor]]:
    """Endless batches of tasks. Each epoch uses each task at most once, in batches of equal size.

    Parameters
    ----------
    owner : ndarray of shape (N,)
        The task of each row, sorted, with all of 0..m-1.
    size : int
        Tasks in a batch.
    max_trials : int
        Of a longer task, a random subset of this size is drawn each time.
    rng : numpy Generator

    Yields
    ------
    tasks, rows, real : ndarray of shape (k,), tensors of shape (k, N)
        The tasks, the rows of their trials padded to one length, and 1 for real rows, 0 for
        padding.
    """
    starts = np.searchsorted(owner, np.arange(owner[-1] + 2))
    m = len(starts) - 1
    while True:
        order = rng.permutation(m)
        for batch in range(0, m - size + 1, size):
            chosen = np.sort(order[batch : batch + size])
            first, length = starts[chosen], starts[chosen + 1] - starts[chosen]
            rows = first[:, None] + np.arange(min(length.max(), max_trials))
            for k in np.flatnonzero(length > max_trials):
                rows[k] = first[k] + rng.permutation(length[k])[:max_trials]
            real = np.arange(rows.shape[1]) < length[:, None]
            yield chosen, torch.from_numpy(np.where(real, rows, 0)), tensor(real)
