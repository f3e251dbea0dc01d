"""Ways to train the encoder and the heads, to be compared by `benchmarks.pretraining.choose`.

A variant differs from how the shipped models are trained in the loss, the sizes, what is known of
the data, or which data sets there are. *Boosted trees* predict scores from the configuration and
the numbers of the profile, without an embedding. *An encoder that never saw an estimator* is
trained on all others. A head of the estimator is then trained on its embeddings, which stay fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks import pools
from benchmarks.pretraining.surfaces import (
    DataSets,
    Surface,
    is_synthetic,
    load_data_sets,
    load_surfaces,
)
from benchmarks.pretraining.train import (
    OPTIONS,
    PARTS,
    add_heads,
    choose_columns,
    make_training_surface,
    train,
)
from sktransfer.optimizer._score_prior import PretrainedScores
from sktransfer.pretrained import PretrainedModel
from sktransfer.pretrained._assembly import measure_inputs
from sktransfer.pretrained._configurations import Units
from sktransfer.pretrained._inputs import read_profile
from sktransfer.pretrained._training import TrainingOptions, TrainingSurface
from sktransfer.space import is_scaled

ALL = (*PARTS, "sketch")
BASE_OPTIONS = TrainingOptions()  # with which the others are compared
LARGER = {name: getattr(OPTIONS, name) for name in ("encoder_layers", "head_layers", "n_epochs")}
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "copula scores": {"how": "copula"},
    "relative regret": {"how": "regret"},
    "good settings count more": {"options": {"top_weight": 0.5}},
    "with a ranking loss": {"options": {"ranking": 1.0}},
    "both": {"options": {"top_weight": 0.5, "ranking": 1.0}},
    "boosted trees": {"trees": True},
    "psi of 8 numbers": {"options": {"n_embedding": 8}},
    "psi of 32 numbers": {"options": {"n_embedding": 32}},
    "twice as long": {"options": {"n_epochs": 2 * BASE_OPTIONS.n_epochs}},
    "half as long": {"options": {"n_epochs": BASE_OPTIONS.n_epochs // 2}},
    "larger networks": {"options": {"encoder_layers": (128, 64), "head_layers": (128, 128)}},
    "larger and twice as long": {"options": LARGER},
    "larger, longer, good settings count more": {"options": LARGER | {"top_weight": 0.5}},
    "an encoder for each estimator": {"apart": True},
    "an encoder that never saw SVC or SVR": {"left_out": ("SVC", "SVR")},
    "with the sketch": {"parts": ALL},
    "nothing known of the data": {"parts": ()},
    "sizes and units": {"parts": ("scale",)},
    "handcrafted features": {"parts": ("meta", "scale")},
    "sketch": {"parts": ("sketch", "scale")},
    "response curves": {"parts": ("curve", "relative", "scale")},
    "synthetic tables only": {"origin": "synthetic"},
    "perturbed tables only": {"origin": "perturbed"},
    **{f"{n} data sets": {"n_data_sets": n} for n in (125, 250, 500, 1000)},
}

Predictor = Callable[[str, str, Path], tuple[np.ndarray, np.ndarray] | None]
"""Estimator, data set and folder -> mean and standard deviation of the scores of its pool; None
without a head."""


def train_variant(
    kind: str, variant: Mapping[str, Any], held_out: Sequence[str], n_members: int
) -> list[Predictor]:
    """Train a variant without some families; several predictors if estimators have their own."""
    data, surfaces = load_data_sets(kind), load_surfaces(kind)
    is_used = ~np.isin(data.families, held_out)
    if "origin" in variant:
        is_used &= is_synthetic(data.numbers) == (variant["origin"] == "synthetic")
    if "n_data_sets" in variant:
        is_used &= np.cumsum(is_used) <= variant["n_data_sets"]
    if variant.get("trees"):
        return [BoostedTrees(data, surfaces, is_used)]
    options = replace(BASE_OPTIONS, **variant.get("options", {}))
    parts, how = variant.get("parts", PARTS), variant.get("how", "standardize")
    owners = sorted({surface.owner for surface in surfaces})
    if "left_out" in variant:
        unseen = next(owner for owner in variant["left_out"] if owner in owners)
        others = [surface for surface in surfaces if surface.owner != unseen]
        model = PretrainedModel(train(data, others, is_used, options, n_members, parts, how))
        own = [surface for surface in surfaces if surface.owner == unseen]
        arrays = add_heads(model, data, own, is_used, options)
        return [partial(predict_pool, PretrainedModel(arrays), (unseen,))]
    groups = [[owner] for owner in owners] if variant.get("apart") else [owners]
    found: list[Predictor] = []
    for group in groups:
        chosen = [surface for surface in surfaces if surface.owner in group]
        model = PretrainedModel(train(data, chosen, is_used, options, n_members, parts, how))
        found.append(partial(predict_pool, model, group))
    return found


def predict_pool(
    model: PretrainedModel, owners: Sequence[str], estimator: str, data: str, folder: Path
) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean and standard deviation of the pool's comparable scores; None without a head."""
    space = pools.space_of(estimator)
    owner = space.predictors[0]
    if owner not in owners or owner not in model.owners:
        return None
    scaled = bool(is_scaled(space.describe()))
    scores = PretrainedScores(space, model, owner, scaled, metric=0, has_level=False)
    description = scores.describe(pools.profile_of(model.kind, data, folder))
    if description is None:
        return None
    theta = space.encode(pools.draw_pool(estimator, data))
    [mean], [std] = scores.predict(theta, description[None])
    return mean, std


class BoostedTrees:
    """Predicts scores from the configuration and the numbers of the profile, without an encoder.

    Parameters
    ----------
    data : DataSets
    surfaces : sequence of Surface
    is_used : ndarray of bool, shape (D,)
    """

    def __init__(self, data: DataSets, surfaces: Sequence[Surface], is_used: np.ndarray):
        columns = choose_columns(data.names, PARTS)
        self._names = [data.names[i] for i in columns]
        low, high, *_ = measure_inputs(data.features[is_used][:, columns])
        self._bounds = low, high
        self._kind = data.profiles[0].kind
        rows: dict[str, list[tuple[np.ndarray, ...]]] = {}
        for surface in surfaces:
            made = make_training_surface(surface).take(is_used)
            if len(made.rows):
                numbers = self._clip(data.features[made.rows][:, columns])
                rows.setdefault(surface.owner, []).append(_flatten(made, numbers))
        self._trees = {}
        for owner, parts in rows.items():
            X, z, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
            trees = HistGradientBoostingRegressor(
                max_iter=200, learning_rate=0.05, max_leaf_nodes=15, min_samples_leaf=40
            )
            self._trees[owner] = trees.fit(X, z, sample_weight=weights)
        self._encoders = {surface.owner: surface.encoder for surface in surfaces}

    def _clip(self, numbers: np.ndarray) -> np.ndarray:
        return np.clip(numbers, *self._bounds)

    def __call__(
        self, estimator: str, data: str, folder: Path
    ) -> tuple[np.ndarray, np.ndarray] | None:
        space = pools.space_of(estimator)
        owner = space.predictors[0]
        if owner not in self._trees:
            return None
        profile = pools.profile_of(self._kind, data, folder)
        scaled = bool(is_scaled(space.describe()))
        units = Units.from_profile(profile, scaled)
        fixed = _own_values(space.fixed, owner)
        names = {name: canonical.partition(".")[2] for name, canonical in space.canonical.items()}
        rows = [
            fixed | {names[name]: value for name, value in params.items()}
            for params in pools.draw_pool(estimator, data)
        ]
        codes = self._encoders[owner].encode(rows, units)
        numbers = self._clip(read_profile(profile, self._names))
        flag = np.full((len(codes), 1), float(scaled))
        X = np.hstack([codes, flag, np.repeat(numbers[None], len(codes), axis=0)])
        mean = self._trees[owner].predict(X)
        return mean, np.ones_like(mean)


def _own_values(fixed: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The fixed parameters of one class, by their own names."""
    pairs = ((name.partition("."), value) for name, value in fixed.items())
    return {name: value for (head, _, name), value in pairs if head == owner}


def _flatten(made: TrainingSurface, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows of configurations beside the numbers of their data sets, scores and weights."""
    m, c, _ = made.codes.shape
    X = np.concatenate([made.codes, np.repeat(numbers[:, None], c, axis=1)], axis=2)
    z = made.z[:, :, 0]
    weights = np.repeat(made.weights[:, :1], c, axis=1)
    return X.reshape(m * c, -1), np.nan_to_num(z).ravel(), (weights * np.isfinite(z)).ravel()
