"""Fit kernels of what heads miss, on data sets of families that they have not seen.

Notation: a data set has c configurations with codes C (c, k), comparable scores z (c,), and a
prediction with mean h and standard deviation s, both (c,). The residuals are modelled as

    z - h ~ N(0, A² 11' + r diag(s) K diag(s) + v I),

K a Matérn-5/2 kernel of the codes with a lengthscale for each column. Lengthscales, r and v are
those under which the residuals of all data sets are most probable. A is the standard deviation of
the level, which a search fits itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sktransfer.pretrained import PretrainedModel
from sktransfer.pretrained._training import TrainingSurface
from sktransfer.utils._threads import single_threaded

if TYPE_CHECKING:
    import torch

LEVEL_STD = 0.5
PRIOR_STRENGTH = 0.001  # of the prior of the logarithm of a lengthscale, which is N(0, 1)
N_STEPS, BATCH_SIZE, LEARNING_RATE = 150, 256, 0.06
MIN_NOISE = 0.005

Residuals = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Codes (m, c, k), residuals (m, c), predicted deviations (m, c) and weights (m,)."""


def collect_residuals(
    model: PretrainedModel, numbers: np.ndarray, surfaces: Sequence[TrainingSurface]
) -> Residuals:
    """The residuals of one estimator. Each metric of a data set counts as a data set of its own.

    Parameters
    ----------
    model : PretrainedModel
        Trained without the data sets of the surfaces.
    numbers : ndarray of shape (D, F)
        What its encoder reads of all data sets.
    surfaces : sequence of TrainingSurface
        Of one estimator.
    """
    found = []
    for surface in surfaces:
        psi = model.embed_numbers(numbers[surface.rows])
        for metric in range(surface.z.shape[2]):
            mean, std = model.predict(surface.owner, surface.codes, psi, metric)
            z, weights = surface.z[:, :, metric], surface.weights[:, metric]
            kept = np.isfinite(z).all(axis=1) & (weights > 0)
            codes = surface.codes[:, :, :-1]  # without the flag, the same for a whole data set
            found.append([part[kept] for part in (codes, z - mean, std, weights)])
    codes, residuals, stds, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    return codes, residuals, stds, weights


def fit_residual(parts: Sequence[Residuals], seed: int = 0) -> dict[str, np.ndarray]:
    """Fit lengthscales, (k,), and variances, (2,): r, and that of the noise.

    Parameters
    ----------
    parts : sequence of Residuals
    seed : int
    """
    import torch

    tensors = [
        torch.tensor(np.concatenate(part), dtype=torch.float64) for part in zip(*parts, strict=True)
    ]
    rng, m = np.random.default_rng(seed), len(tensors[0])
    log_lengths = torch.zeros(tensors[0].shape[2], dtype=torch.float64, requires_grad=True)
    log_variances = torch.tensor(np.log([0.5, 0.1]), requires_grad=True)
    with single_threaded:
        optimizer = torch.optim.Adam([log_lengths, log_variances], lr=LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, N_STEPS)
        for _ in range(N_STEPS):
            rows = torch.from_numpy(rng.choice(m, size=min(BATCH_SIZE, m), replace=False))
            codes, residuals, stds, weights = (tensor[rows] for tensor in tensors)
            S = _covariance(codes, stds, log_lengths, log_variances)
            loss = (weights * _negative_log_likelihood(S, residuals)).sum() / weights.sum()
            loss = loss + PRIOR_STRENGTH * (log_lengths**2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    residual, noise = np.exp(log_variances.detach().numpy())
    return {
        "lengths": np.exp(log_lengths.detach().numpy()),
        "variances": np.array([residual, noise + MIN_NOISE]),
    }


def _covariance(
    codes: torch.Tensor, stds: torch.Tensor, log_lengths: torch.Tensor, log_variances: torch.Tensor
) -> torch.Tensor:
    """Of the residuals of each data set; (m, c, k), (m, c), (k,), (2,) -> (m, c, c)."""
    import torch

    X = codes / torch.exp(log_lengths)
    d = torch.sqrt(5.0 * ((X[:, :, None] - X[:, None]) ** 2).sum(dim=3) + 1e-12)
    K = (1.0 + d + d * d / 3.0) * torch.exp(-d)
    residual, noise = torch.exp(log_variances)
    identity = torch.eye(codes.shape[1], dtype=codes.dtype)
    S = residual * stds[:, :, None] * stds[:, None] * K + LEVEL_STD**2
    return S + (noise + MIN_NOISE) * identity


def _negative_log_likelihood(S: torch.Tensor, residuals: torch.Tensor) -> torch.Tensor:
    """Of each data set, up to a constant; (m, c, c), (m, c) -> (m,)."""
    import torch

    L = torch.linalg.cholesky(S)
    white = torch.linalg.solve_triangular(L, residuals[:, :, None], upper=False)[:, :, 0]
    return 0.5 * (white**2).sum(dim=1) + torch.log(torch.diagonal(L, dim1=1, dim2=2)).sum(dim=1)
