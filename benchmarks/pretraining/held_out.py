"""How well heads predict surfaces of data sets that they were not trained on, for every estimator.

    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.held_out      # some minutes

A quarter of the data sets is left out, whole families of perturbed tables and every fourth
synthetic table. The surfaces that are left out belong to the same generator as those of the
training, so this page compares estimators and numbers of data sets. First trials on real data are
measured by `benchmarks.pool_searches`.

The unexplained share is 1 minus the squared correlation of predicted and measured scores of a data
set, weighted by its signal. The regret is that of the configuration with the best prediction among
the 20 of a data set: 0 is the best of them, 1 their median.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.pretraining.surfaces import (
    DataSets,
    Surface,
    is_synthetic,
    load_data_sets,
    load_surfaces,
)
from benchmarks.pretraining.train import PARTS, make_training_surface, train
from benchmarks.runner import RESULTS, format_page, markdown_table
from sktransfer.pretrained import PretrainedModel
from sktransfer.pretrained._model import KINDS
from sktransfer.pretrained._training import TrainingSurface

PAGE = RESULTS / "pretraining-held-out.md"
COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.pretraining.held_out"
N_PARTS = 4
MIN_TEST = 5  # data sets, without which an estimator is left out
MIN_RANGE = 0.1  # from the median to the best comparable score, below which a surface is flat
INTRODUCTION = (
    "Heads that were trained on three quarters of the data sets, asked about the others "
    "(`benchmarks/pretraining/held_out.py`): whole families of perturbed tables and every fourth "
    "synthetic table. *Unexplained* is 1 minus the squared correlation of predicted and measured "
    "scores. The regret is that of the configuration with the best prediction among the 20 of a "
    "data set: 0 is the best of them, 1 their median. *Nothing known* are heads without an "
    "encoder, *default* are scikit-learn's defaults. One network, seed 0."
)


def split_data_sets(data: DataSets) -> np.ndarray:
    """Whether each data set is trained on; (D,), bool."""
    families = np.unique(data.families)
    order = np.random.default_rng(0).permutation(len(families)) % N_PARTS
    part_of = dict(zip(families, order, strict=True))
    by_family = np.array([part_of[family] for family in data.families])
    in_turn = np.arange(len(by_family)) // 3 % N_PARTS
    return np.where(is_synthetic(data.numbers), in_turn, by_family) != 0


def measure(mean: np.ndarray, surface: TrainingSurface) -> tuple[float, float, float]:
    """Unexplained share, regret of the favorite and of the defaults; (m, c) predicted scores."""
    z, weights = surface.z[:, :, 0], surface.weights[:, 0]
    varies = (mean.std(axis=1) > 0) & (z.std(axis=1) > 0) & (weights > 0)
    r = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(mean[varies], z[varies], strict=True)])
    unexplained = 1.0 - np.average(r * np.abs(r), weights=weights[varies])
    best, median = z.max(axis=1), np.median(z, axis=1)
    is_flat = best - median <= MIN_RANGE
    chosen = z[np.arange(len(z)), mean.argmax(axis=1)]
    width = np.where(is_flat, 1.0, best - median)
    regrets = [((best - each) / width)[~is_flat].mean() for each in (chosen, z[:, 0])]
    return float(unexplained), float(regrets[0]), float(regrets[1])


def measure_heads(
    data: DataSets, surfaces: Sequence[Surface], is_used: np.ndarray, parts: Sequence[str]
) -> dict[str, tuple[float, float, float]]:
    """The measures of each variant of an estimator, with heads that read parts of a profile."""
    model = PretrainedModel(train(data, surfaces, is_used, n_members=1, parts=parts))
    psi = model.embed_numbers(np.stack([model.read_numbers(each) for each in data.profiles]))
    found = {}
    for surface in surfaces:
        held_out = make_training_surface(surface).take(~is_used)
        if surface.owner in model.owners and len(held_out.rows) >= MIN_TEST:
            mean, _ = model.predict(surface.owner, held_out.codes, psi[held_out.rows], metric=0)
            found[name_of(surface)] = measure(mean, held_out)
    return found


def name_of(surface: Surface) -> str:
    return f"{surface.owner}{', scaled' if surface.is_scaled else ''}"


def make_table(kind: str) -> list[str]:
    """The table of a kind, as Markdown."""
    data, surfaces = load_data_sets(kind), load_surfaces(kind)
    is_used = split_data_sets(data)
    informed, blind = (measure_heads(data, surfaces, is_used, each) for each in (PARTS, ()))
    rows = []
    for surface in surfaces:
        name = name_of(surface)
        if name in informed:
            n = is_used[surface.rows]
            (share, regret, default), (blind_share, blind_regret, _) = informed[name], blind[name]
            values = (share, blind_share, regret, blind_regret, default)
            rows.append(
                [name, str(n.sum()), str((~n).sum()), *(f"{value:.3f}" for value in values)]
            )
    head = ["estimator", "trained on", "asked about", "unexplained", "nothing known"]
    head += ["regret", "nothing known", "default"]
    return [f"## {kind.capitalize()}", "", *markdown_table(head, rows), ""]


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    lines = ["# Heads on data sets that were left out", "", INTRODUCTION, ""]
    lines += ["```", COMMAND, "```", ""]
    for kind in KINDS:
        lines += make_table(kind)
    notes = PAGE.with_name(f"{PAGE.stem}-notes.md")
    if notes.exists():
        lines += [notes.read_text().strip()]
    PAGE.write_text(format_page(lines))


if __name__ == "__main__":
    main()
