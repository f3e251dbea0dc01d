"""Fit kernels of what heads miss, on data sets of families that they have not seen.

Notation: a data set has c configurations with codes C (c, k), comparable scores z (c,), and a
prediction with mean h and standard deviation s, both (c,). The residuals are modelled as

    z - h ~ N(0, A² 11' + r diag(s) K diag(s) + v I),

K a Matérn-5/2 kernel of the codes with a lengthscale for each column. Lengthscales, r and v are
those under which the residuals of all data sets are most probable. A is the standard deviation of
the level, which a search fits itself.

What the prediction misses on one data set tells about what it misses on another one, D'. With r the
residuals on D, and rho what a process on those of D' expects there, both in predicted deviations,
r is expected to be

    (a exp(-d² / l²) + b) rho,    d the distance of D and D' in psi, in medians over pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from sktransfer.pretrained import PretrainedModel
from sktransfer.pretrained._training import TrainingSurface
from sktransfer.surrogates._core.kernels import kernel_matrix
from sktransfer.utils._threads import single_threaded

if TYPE_CHECKING:
    import torch

LEVEL_STD = 0.5
PRIOR_STRENGTH = 0.001  # of the prior of the logarithm of a lengthscale, which is N(0, 1)
N_STEPS, BATCH_SIZE, LEARNING_RATE = 150, 256, 0.06
MIN_NOISE = 0.005
PAIR_NOISE = 0.05  # variance of the noise of residuals, in predicted variances
MIN_WEIGHT = 0.3  # of a data set, below which its scores are mostly noise
N_OTHERS = 40  # data sets of other families that each one is compared with
N_UNIT = 500  # data sets that the median distance is taken of

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


# -- what data sets share --------------------------------------------------------------------------


def collect_pairs(
    model: PretrainedModel,
    numbers: np.ndarray,
    surface: TrainingSurface,
    lengths: np.ndarray,
    families: np.ndarray,
    first: str | None = None,
) -> np.ndarray:
    """Pairs of data sets, by the residuals of the first metric; (P, 4).

    The columns are whether both are of the same family, the squared distance in psi in medians,
    sum r rho, and sum rho².

    Parameters
    ----------
    model : PretrainedModel
        Trained without the data sets of the surface.
    numbers : ndarray of shape (D, F)
    surface : TrainingSurface
    lengths : ndarray of shape (k,)
        Lengthscales of the residuals.
    families : ndarray of str, shape (D,)
    first : str or None
        Family of the first data set of each pair; None for any.
    """
    usable = np.isfinite(surface.z[:, :, 0]).all(axis=1) & (surface.weights[:, 0] > MIN_WEIGHT)
    rows, codes = surface.rows[usable], surface.codes[usable][:, :, :-1]
    psi, columns = model.embed_numbers(numbers[rows]), np.zeros(len(lengths), dtype=bool)
    if len(rows) < 2:
        return np.empty((0, 4))
    mean, std = model.predict(surface.owner, surface.codes[usable], psi, 0)
    r = surface.z[usable][:, :, 0] - mean
    r = (r - r.mean(axis=1, keepdims=True)) / std
    noise = PAIR_NOISE * np.eye(codes.shape[1])
    weights = [
        np.linalg.solve(kernel_matrix(C, C, lengths, columns, "matern52") + noise, own)
        for C, own in zip(codes, r, strict=True)
    ]
    squares = ((psi[:, None] - psi) ** 2).sum(axis=2) / median_square(model, numbers)
    is_near = families[rows][:, None] == families[rows]
    rng, found = np.random.default_rng(0), []
    for i in range(len(rows)):
        if first not in (None, families[rows[i]]):
            continue
        others = rng.choice(len(rows), size=min(N_OTHERS, len(rows)), replace=False)
        for j in np.union1d(np.flatnonzero(is_near[i]), others):
            if i != j:
                rho = kernel_matrix(codes[i], codes[j], lengths, columns, "matern52") @ weights[j]
                rho -= rho.mean()
                found.append((is_near[i, j], squares[i, j], r[i] @ rho, rho @ rho))
    return np.array(found, dtype=float).reshape(-1, 4)


def median_square(model: PretrainedModel, numbers: np.ndarray) -> float:
    """The median squared distance in psi of two data sets; (D, F)."""
    psi = model.embed_numbers(numbers[:: max(1, len(numbers) // N_UNIT)])
    squares = ((psi[:, None] - psi) ** 2).sum(axis=2)
    return float(np.median(squares[~np.eye(len(psi), dtype=bool)]))


def fit_shared(pairs: np.ndarray) -> np.ndarray:
    """The a, l and b with the least squared error of r over all pairs; (P, 4) -> (3,)."""
    _, squares, product, square = pairs.T

    def unpack(x: np.ndarray) -> tuple[float, float, float]:
        return expit(x[0]), float(np.exp(x[1])), 0.2 * expit(x[2])

    def loss(x: np.ndarray) -> float:
        near, length, far = unpack(x)
        share = near * np.exp(-squares / length**2) + far
        return float((share * share * square - 2.0 * share * product).mean())

    return np.array(unpack(minimize(loss, [0.0, -0.5, -1.0], method="Nelder-Mead").x))
