"""Training of the encoder and of the heads, jointly, by torch.

Notation: D data sets with F numbers each, psi (q,) their embedding; a surface has m data sets with
c configurations of k columns, and scores of M metrics. psi = E(features) and (mean, log std) =
f_e([configuration, psi]) are small networks. The loss is the negative log likelihood of the
comparable scores, each data set weighted by the share of its variance that is not noise. A ranking
loss can be added to it. A third network, L_e([is scaled, psi]), predicts the level of the scores:
their shift and the logarithm of their scale.

One model is an encoder with a head for each estimator. Several of them, from different seeds, are
an ensemble.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sktransfer.pretrained._model import MAX_LOG_STD, MIN_LOG_STD
from sktransfer.utils._threads import single_threaded

if TYPE_CHECKING:
    import torch

LEVEL_WEIGHT = 0.1
RANKING_SHARPNESS = 2.0  # of the distributions that the ranking loss compares

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class TrainingSurface:
    """Comparable scores of one estimator.

    Parameters
    ----------
    owner : str
        Class of the estimator. Surfaces of one class share a head.
    rows : ndarray of int, shape (m,)
        Positions of its data sets.
    codes : ndarray of shape (m, c, k)
        Configurations; the last column says whether the columns of X are scaled.
    z : ndarray of shape (m, c, M)
        Comparable scores; NaN where there is none.
    weights : ndarray of shape (m, M)
    levels : ndarray of shape (m, 2 M)
        Shifts and log scales; NaN where unknown.
    """

    owner: str
    rows: np.ndarray
    codes: np.ndarray
    z: np.ndarray
    weights: np.ndarray
    levels: np.ndarray

    def take(self, is_used: np.ndarray) -> TrainingSurface:
        """The surface on some of the data sets; (D,), bool."""
        kept = is_used[self.rows]
        parts = ("rows", "codes", "z", "weights", "levels")
        return replace(self, **{part: getattr(self, part)[kept] for part in parts})


@dataclass(frozen=True)
class TrainingOptions:
    """Sizes of the networks, and how they are trained.

    Parameters
    ----------
    n_embedding : int
        Numbers of psi.
    encoder_layers, head_layers : tuple of int
        Widths of the hidden layers.
    n_epochs : int
    batch_size : int
        Data sets of a step.
    n_configurations : int
        Configurations of each data set of a step.
    learning_rate, weight_decay : float
    dropout : float
        Share of the numbers of a profile that are hidden in a step.
    noise : float
        Standard deviation of noise that is added to the numbers of a profile.
    top_weight : float
        How much more the good configurations count: exp(top_weight z).
    ranking : float
        Weight of the ranking loss.
    anchor : float
        Cost of the squared distance of the weights from those that training starts from.
    keeps_encoder : bool
        Whether the encoder stays as it is, so that embeddings remain comparable.
    seed : int
    """

    n_embedding: int = 16
    encoder_layers: tuple[int, ...] = (64,)
    head_layers: tuple[int, ...] = (64, 64)
    n_epochs: int = 60
    batch_size: int = 64
    n_configurations: int = 10
    learning_rate: float = 3e-3
    weight_decay: float = 0.02
    dropout: float = 0.2
    noise: float = 0.1
    top_weight: float = 0.0
    ranking: float = 0.0
    anchor: float = 0.0
    keeps_encoder: bool = False
    seed: int = field(default=0, compare=False)


def train_model(
    features: np.ndarray,
    surfaces: Sequence[TrainingSurface],
    options: TrainingOptions,
    start: Arrays | None = None,
    report: Callable[[int, float], None] = lambda epoch, loss: None,
) -> Arrays:
    """Train an encoder and heads; return their weights by name.

    Parameters
    ----------
    features : ndarray of shape (D, F)
        Standardized numbers of the profiles, without NaN.
    surfaces : sequence of TrainingSurface
    options : TrainingOptions
    start : dict, optional
        Weights to begin with. Weights of other shapes are left out.
    report : callable
        Called with the number of each epoch and its loss.
    """
    import torch

    with single_threaded:
        generator = torch.Generator().manual_seed(options.seed)
        rng = np.random.default_rng(options.seed)
        model = _make_weights(features.shape[1], surfaces, options, generator)
        anchors = {
            name: torch.tensor(array, dtype=torch.float32)
            for name, array in (start or {}).items()
            if name in model and model[name].shape == array.shape
        }
        model |= {name: anchor.clone() for name, anchor in anchors.items()}
        trained = [
            weight.requires_grad_(True)
            for name, weight in model.items()
            if not (options.keeps_encoder and name.startswith("encoder."))
        ]
        batches = [_as_tensors(surface) for surface in surfaces]
        X = torch.tensor(features, dtype=torch.float32)
        used = np.unique(np.concatenate([surface.rows for surface in surfaces]))
        n_steps = max(1, int(np.ceil(len(used) / options.batch_size)))
        optimizer = torch.optim.AdamW(
            trained, lr=options.learning_rate, weight_decay=options.weight_decay
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, options.learning_rate, total_steps=n_steps * options.n_epochs
        )
        for epoch in range(options.n_epochs):
            total = 0.0
            for part in np.array_split(rng.permutation(used), n_steps):
                loss = _step_loss(model, X, batches, part, options, rng, generator)
                for name, anchor in anchors.items() if options.anchor else ():
                    loss = loss + options.anchor * ((model[name] - anchor) ** 2).sum()
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(trained, 1.0)
                optimizer.step()
                schedule.step()
                total += float(loss.detach()) / n_steps
            report(epoch, total)
    return {name: weight.detach().numpy().copy() for name, weight in model.items()}


def _make_weights(
    n_features: int,
    surfaces: Sequence[TrainingSurface],
    options: TrainingOptions,
    generator: torch.Generator,
) -> dict[str, torch.Tensor]:
    """Random weights, named "encoder.0.w", "head.SVC.0.w", "level.SVC.0.b" and so on."""
    import torch

    made: dict[str, torch.Tensor] = {}

    def add(prefix: str, sizes: Sequence[int]) -> None:
        for number, (a, b) in enumerate(pairwise(sizes)):
            scale = (1.0 if number < len(sizes) - 2 else 0.3) / np.sqrt(max(a, 1))
            made[f"{prefix}.{number}.w"] = torch.randn(a, b, generator=generator) * scale
            made[f"{prefix}.{number}.b"] = torch.zeros(b)

    q = options.n_embedding
    add("encoder", (n_features, *options.encoder_layers, q))
    for surface in {surface.owner: surface for surface in surfaces}.values():
        k, M = surface.codes.shape[2], surface.z.shape[2]
        add(f"head.{surface.owner}", (k + q, *options.head_layers, 2 * M))
        add(f"level.{surface.owner}", (1 + q, 16, 2 * M))
    return made


@dataclass(frozen=True)
class _Batch:
    """A surface as tensors, and where each data set is in it."""

    owner: str
    place: dict[int, int]
    codes: torch.Tensor
    z: torch.Tensor
    weights: torch.Tensor
    levels: torch.Tensor


def _as_tensors(surface: TrainingSurface) -> _Batch:
    import torch

    arrays = (surface.codes, surface.z, surface.weights, surface.levels)
    place = {int(row): i for i, row in enumerate(surface.rows)}
    return _Batch(
        surface.owner, place, *(torch.tensor(array, dtype=torch.float32) for array in arrays)
    )


def _step_loss(
    model: dict[str, torch.Tensor],
    X: torch.Tensor,
    batches: Sequence[_Batch],
    part: np.ndarray,
    options: TrainingOptions,
    rng: np.random.Generator,
    generator: torch.Generator,
) -> torch.Tensor:
    """Mean loss of all surfaces on some of the data sets."""
    import torch

    x = X[torch.from_numpy(part)]
    keep = torch.rand(x.shape, generator=generator) >= options.dropout
    x = (x + options.noise * torch.randn(x.shape, generator=generator)) * keep
    psi = run_layers(model, "encoder", x)
    total, n_terms = torch.zeros(()), 0
    for batch in batches:
        pairs = [(i, batch.place[int(row)]) for i, row in enumerate(part) if row in batch.place]
        if not pairs:
            continue
        own, rows = (torch.tensor(column) for column in zip(*pairs, strict=True))
        c = batch.codes.shape[1]
        n = min(options.n_configurations, c)
        chosen = torch.from_numpy(
            rng.permuted(np.tile(np.arange(c), (len(rows), 1)), axis=1)[:, :n]
        )
        codes = batch.codes[rows[:, None], chosen]  # (b, n, k)
        z = batch.z[rows[:, None], chosen]
        embedded = psi[own]
        mean, log_std = run_head(model, batch.owner, codes, embedded)
        weights = batch.weights[rows]
        total = total + _surface_loss(mean, log_std, z, weights, options.top_weight)
        if options.ranking:
            total = total + options.ranking * _ranking_loss(mean, z, weights)
        level = run_layers(
            model, f"level.{batch.owner}", torch.cat([codes[:, 0, -1:], embedded], dim=1)
        )
        wanted = batch.levels[rows]
        known = torch.isfinite(wanted)
        error = torch.where(known, level - torch.nan_to_num(wanted), torch.zeros(()))
        total = total + LEVEL_WEIGHT * torch.nn.functional.huber_loss(
            error, torch.zeros_like(error), delta=0.5
        )
        n_terms += 1
    return total / max(n_terms, 1)


def _surface_loss(
    mean: torch.Tensor,
    log_std: torch.Tensor,
    z: torch.Tensor,
    weights: torch.Tensor,
    top_weight: float,
) -> torch.Tensor:
    """Weighted negative log likelihood; (b, n, M) each, weights (b, M)."""
    import torch

    known = torch.isfinite(z)
    z = torch.nan_to_num(z)
    loss = 0.5 * ((z - mean) * torch.exp(-log_std)) ** 2 + log_std
    weight = weights[:, None, :] * known * torch.exp(top_weight * z.clamp(-2.0, 2.0))
    return (loss * weight).sum() / weight.sum().clamp_min(1e-6)


def _ranking_loss(mean: torch.Tensor, z: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """How badly means order the configurations of a data set; (b, n, M) twice, weights (b, M).

    The cross entropy of two distributions over the configurations (ListNet, Cao et al. 2007), one
    by the scores and one by the means. It mostly depends on the best ones.
    """
    import torch

    known = torch.isfinite(z)
    hidden = torch.where(known, 0.0, -torch.inf)
    wanted = torch.softmax(RANKING_SHARPNESS * torch.nan_to_num(z) + hidden, dim=1)
    ranked = torch.log_softmax(RANKING_SHARPNESS * mean + hidden, dim=1)
    loss = -(torch.nan_to_num(wanted) * torch.where(known, ranked, 0.0)).sum(dim=1)  # (b, M)
    weights = weights * known.any(dim=1)
    return (loss * weights).sum() / weights.sum().clamp_min(1e-6)


def run_head(
    model: dict[str, torch.Tensor], owner: str, codes: torch.Tensor, psi: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Means and log standard deviations; (b, n, k), (b, q) -> (b, n, M) twice."""
    import torch

    b, n, _ = codes.shape
    inputs = torch.cat([codes, psi[:, None, :].expand(b, n, psi.shape[1])], dim=2)
    mean, log_std = run_layers(model, f"head.{owner}", inputs).chunk(2, dim=2)
    return mean, log_std.clamp(MIN_LOG_STD, MAX_LOG_STD)


def run_layers(model: dict[str, torch.Tensor], prefix: str, x: torch.Tensor) -> torch.Tensor:
    """A network with SiLU units between its layers."""
    import torch

    number = 0
    while f"{prefix}.{number}.w" in model:
        if number:
            x = torch.nn.functional.silu(x)
        x = x @ model[f"{prefix}.{number}.w"] + model[f"{prefix}.{number}.b"]
        number += 1
    return x
