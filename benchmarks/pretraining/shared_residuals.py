"""How much of what predictions miss on one data set they miss on another one, too.

    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.train --leave-out --members 2 --out MODELS
    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.shared_residuals --models MODELS \\
        --report docs/results/pretraining-residuals.md

Models are trained without a quarter of the development families. On two perturbed tables of these
families, the residuals r of the first metric are compared: a process on those of one table predicts
those of the other, rho. The share is the slope sum(r rho) / sum(rho²) over many pairs. It is 1 if
predictions miss the same on both, and 0 if what they miss has nothing in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.data import data_folder
from benchmarks.pretraining.residuals import collect_pairs, median_square
from benchmarks.pretraining.surfaces import load_data_sets, load_surfaces
from benchmarks.pretraining.train import make_training_surface, split_development
from benchmarks.runner import format_page, make_parser, markdown_table
from sktransfer.pretrained._model import KINDS, PretrainedModel, read_model

BINS = (0.0, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, np.inf)
MIN_PAIRS = 100
N_BOOTSTRAP = 500
INTRODUCTION = (
    "How much of what a pretrained prediction misses on one data set it misses on another one, too "
    "(`benchmarks/pretraining/shared_residuals.py`). Models had not seen the families of either "
    "table. The share is 1 if they miss the same, and 0 if what they miss has nothing in common; "
    "in brackets a 95 % bootstrap interval over families. Pairs of the same family have mostly the "
    "same rows and columns in part. The distance is the squared one of the embeddings, 1 is the "
    "median of all pairs. *Learned* is what the models expect, which was fitted to other families."
)
Pairs = tuple[str, str, np.ndarray]
"""Estimator, family of the first data set, and rows of `collect_pairs`."""


def collect(kind: str, models: Path, folder: Path) -> tuple[list[Pairs], np.ndarray]:
    """Pairs of all estimators, and what each model expects at the middles of the bins."""
    data, surfaces, found, expected = load_data_sets(kind), load_surfaces(kind), [], []
    for number, group in enumerate(split_development(kind, folder)):
        model = read_model(models / str(number) / f"{kind}.npz")
        numbers = np.stack([model.read_numbers(profile) for profile in data.profiles])
        expected.append(_expect(model, median_square(model, numbers)))
        for surface in surfaces:
            residual = model.residual_of(surface.owner)
            assert residual is not None
            made = make_training_surface(surface).take(np.isin(data.families, group))
            for family in group:
                # The pairs of all tables of the group, by the family of the first one.
                pairs = collect_pairs(
                    model, numbers, made, residual.lengths, data.families, first=family
                )
                found.append((surface.owner, family, pairs))
    return found, np.mean(expected, axis=0)


def _expect(model: PretrainedModel, unit: float) -> np.ndarray:
    middles = [(low + high) / 2 if np.isfinite(high) else 2.0 for low, high in pairwise(BINS)]
    psi = np.zeros((1, 1))
    found = [model.shared(psi, np.full((1, 1), np.sqrt(each * unit))) for each in middles]
    return np.array([np.nan if each is None else each[0, 0] for each in found])


def interval(pairs: Sequence[Pairs], keep: tuple[bool, float, float]) -> str:
    """The share among pairs of the same family or not, within two distances."""
    is_near, low, high = keep
    sums = []
    for family in sorted({family for _, family, _ in pairs}):
        rows = np.concatenate([each for _, name, each in pairs if name == family])
        rows = rows[(rows[:, 0] == is_near) & (rows[:, 1] >= low) & (rows[:, 1] < high)]
        sums.append([len(rows), rows[:, 2].sum(), rows[:, 3].sum()])
    counts, *_ = totals = np.sum(sums, axis=0)
    if counts < MIN_PAIRS:
        return ""
    draws = np.random.default_rng(0).integers(len(sums), size=(N_BOOTSTRAP, len(sums)))
    _, products, squares = np.array(sums)[draws].sum(axis=1).T
    bounds = np.quantile(products[squares > 0] / squares[squares > 0], [0.025, 0.975])
    return f"{totals[1] / totals[2]:.2f} ({bounds[0]:.2f} to {bounds[1]:.2f})"


def make_tables(pairs: Sequence[Pairs], expected: np.ndarray) -> list[str]:
    """The share by the distance, and for each estimator."""
    labels = [f"{a:g} to {b:g}" if np.isfinite(b) else f"over {a:g}" for a, b in pairwise(BINS)]
    body = [
        [name, *(interval(pairs, (is_near, low, high)) for low, high in pairwise(BINS))]
        for name, is_near in (("same family", True), ("other families", False))
    ]
    body.append(["learned", *(f"{each:.2f}" for each in expected)])
    lines = markdown_table(["distance", *labels], body)
    owners = dict.fromkeys(owner for owner, _, _ in pairs)
    by_owner = [
        [
            owner,
            *(
                interval([each for each in pairs if each[0] == owner], (is_near, 0.0, np.inf))
                for is_near in (True, False)
            ),
        ]
        for owner in owners
    ]
    return [*lines, "", *markdown_table(["estimator", "same family", "other families"], by_owner)]


def main() -> None:
    parser = make_parser(__doc__, "data", "report")
    parser.add_argument("--models", type=Path, required=True, help="made by train --leave-out")
    options = parser.parse_args()
    command = "".join(f"\n{line.strip()}" for line in (__doc__ or "").splitlines()[2:5])
    lines = ["# What predictions miss", "", INTRODUCTION, "", f"```{command}\n```"]
    for kind in KINDS:
        found = collect(kind, options.models, data_folder(options.data))
        lines += ["", f"## {kind.capitalize()}", "", *make_tables(*found)]
    print("\n".join(lines))
    if options.report:
        notes = options.report.with_name(f"{options.report.stem}-notes.md")
        own = ["", notes.read_text().strip()] if notes.exists() else []
        options.report.write_text(format_page([*lines, *own]))


if __name__ == "__main__":
    main()
