"""Heads of `ABLR` beside those of the past tasks' scores: other signals, and the target.

Notation of `ablr`. A head is a Bayesian linear regression on the shared features: one for the
scores of a task, and one for each further signal of its trials, such as another metric or the time
of a fit. All heads of a task have its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from sktransfer.surrogates._core.linear_regression import LinearRegression
from sktransfer.surrogates.base import EncodedTask
from sktransfer.utils._scores import standardize
from sktransfer.utils._torch import tensor, torch_context

MIN_VALUES = 2  # of a signal, or there is nothing to learn from it

Features = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
FeaturesAt = Callable[[np.ndarray, np.ndarray], tuple[torch.Tensor, torch.Tensor]]


class Heads(NamedTuple):
    """Trials of several heads, one head after another."""

    theta: np.ndarray  # (N, d)
    z: np.ndarray  # (N,), mean 0 and variance 1 within a head
    owner: np.ndarray  # (N,), number of the head
    task: np.ndarray  # (heads,), number of the head's task

    def with_signals(
        self, tasks: Sequence[EncodedTask], names: Sequence[str] | str | None, winsorize: bool
    ) -> Heads:
        """These heads, and one for each known signal of each task.

        Parameters
        ----------
        tasks : sequence of EncodedTask
            Those of the `task` numbers.
        names : sequence of str, "all" or None
            Names of the signals.
        winsorize : bool
            As in `standardize`.
        """
        parts, owners, numbers = [(self.theta, self.z)], [self.owner], list(self.task)
        for number, task in enumerate(tasks):
            chosen = sorted(task.metrics) if names == "all" else (names or ())
            for name in chosen:
                values = task.metrics.get(name, np.empty(0))
                known = np.isfinite(values)
                if known.sum() < MIN_VALUES or np.array_equal(values, task.z, equal_nan=True):
                    continue  # unknown, or the score under another name
                own = standardize(values[known], winsorize=winsorize)[0]
                parts.append((task.theta[known], own))
                owners.append(np.full(len(own), len(numbers)))
                numbers.append(number)
        theta, z = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Heads(theta, z, np.concatenate(owners), np.array(numbers, dtype=int))


def loss_with_target(
    features: Features,
    batches: Iterator[tuple[np.ndarray, torch.Tensor, torch.Tensor]],
    past: tuple[torch.Tensor, torch.Tensor],
    target: Sequence[tuple[torch.Tensor, torch.Tensor]],
    precisions: Sequence[torch.Tensor],
    penalty: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> Callable[[], torch.Tensor]:
    """Equation (1) with the target as one more task, on a batch of the past tasks.

    Parameters
    ----------
    features : callable
        Inputs -> features and prior means.
    batches : iterator
        As `task_batches` yields them.
    past : tensors of shape (N, p) and (N,)
        Inputs and scores of the past trials.
    target : sequence of (tensor of shape (n, p), tensor of shape (n,))
        Inputs and values of the target's heads, that of its scores first.
    precisions : two tensors of shape (m + len(target),)
        log alpha and log beta, those of the target last.
    penalty : callable
        Log precisions -> minus their log prior.
    """
    (x, z), (log_alpha, log_beta) = past, precisions
    m = len(log_alpha) - len(target)

    def loss() -> torch.Tensor:
        chosen, rows, real = next(batches)
        Phi, mean = features(x[rows])
        alpha, beta = log_alpha[chosen], log_beta[chosen]
        own, n = (z[rows] - mean) * real, real.sum(dim=1)
        heads = LinearRegression(Phi * real[..., None], own, alpha.exp(), beta.exp(), n=n)
        rho = m / len(chosen) * (heads.loss().sum() + penalty(alpha, beta))
        for k, (inputs, values) in enumerate(target, start=m):
            Phi, mean = features(inputs)
            alpha, beta = log_alpha[k], log_beta[k]
            rho = rho + LinearRegression(Phi, values - mean, alpha.exp(), beta.exp()).loss()
            rho = rho + penalty(alpha, beta)
        return rho

    return loss


def as_weight(values: np.ndarray | torch.Tensor) -> torch.Tensor:
    """A trainable copy."""
    return tensor(np.array(values, dtype=float)).requires_grad_(True)


class HeadPrior:
    """Prior of a head at one context: f = Phi v is a Gaussian process, v ~ N(v_0, 1/alpha)."""

    def __init__(self, features_at: FeaturesAt, c: np.ndarray, alpha: float, beta: float):
        self._features_at, self._c, self._alpha, self.noise = features_at, c, alpha, 1 / beta

    @torch.no_grad()
    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with torch_context():
            Phi, mean = self._features_at(theta, self._c)
            others, _ = self._features_at(anchors, self._c)
            covariance = Phi @ others.T / self._alpha
            return mean.numpy(), ((Phi * Phi).sum(dim=1) / self._alpha).numpy(), covariance.numpy()
