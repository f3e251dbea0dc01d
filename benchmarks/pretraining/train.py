"""Train the encoder and the heads that ship with the package.

    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.train            # some minutes a task
    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.train --add MLPClassifier MLPRegressor

The data are those of the store: synthetic tables and perturbed tables of the development families.
How to train was chosen by `benchmarks.pretraining.choose`, on real data sets of the development
families. Weights, seeds and counts are written with the arrays.

`--add` trains heads for further estimators on the embeddings of the shipped model. The encoder and
all other heads stay as they are, and so does all that was measured with them.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks import pools
from benchmarks.data import data_folder
from benchmarks.pretraining.residuals import (
    collect_pairs,
    collect_residuals,
    fit_residual,
    fit_shared,
    median_square,
)
from benchmarks.pretraining.scores import METRICS
from benchmarks.pretraining.surfaces import (
    DataSets,
    Surface,
    is_synthetic,
    load_data_sets,
    load_surfaces,
    normalize,
    signal_weights,
)
from sktransfer.pretrained._assembly import (
    begin_arrays,
    extend_arrays,
    finish_arrays,
    measure_inputs,
)
from sktransfer.pretrained._model import (
    FOLDER,
    KINDS,
    PretrainedModel,
    read_model,
    write_model,
)
from sktransfer.pretrained._training import TrainingOptions, TrainingSurface, train_model

Arrays = dict[str, np.ndarray]

PARTS = ("meta", "scale", "curve", "relative")
"""Parts of a profile that the encoder reads."""

SIZES = ("meta.log_rows", "meta.log_columns", "meta.log_classes")
N_MEMBERS = 4
N_FAMILY_SPLITS = 4
MIN_DATA_SETS = 80  # in the store, without which an estimator gets no head
N_RESIDUAL_FOLDS, N_RESIDUAL_MEMBERS = 3, 2  # of the models whose residuals kernels are fitted to
MIN_SCORES = 10
MAX_LEVEL = 5.0
OPTIONS = TrainingOptions(encoder_layers=(128, 64), head_layers=(96, 96), n_epochs=120)
ADDED = replace(OPTIONS, n_epochs=200)  # fewer data sets make fewer steps of an epoch
NOISY_METRICS = 2  # the noise of the folds was stored for the first metric, the second is similar


def choose_columns(names: Sequence[str], parts: Sequence[str]) -> np.ndarray:
    """Positions of the numbers of some parts; the sizes are always among them, if there are any."""
    sizes = SIZES if parts else ()
    is_read = [name.partition(".")[0] in parts or name in sizes for name in names]
    return np.flatnonzero(is_read)


def make_training_surface(surface: Surface, how: str = "standardize") -> TrainingSurface:
    """Comparable scores of all metrics of a variant, and their weights."""
    scores, z, weights, shifts, logs = surface.scores, [], [], [], []
    for metric in range(scores.shape[2]):
        own = scores[:, :, metric]
        has_scores = np.isfinite(own).sum(axis=1) >= MIN_SCORES
        values, shift, scale = normalize(own, how)
        noise = surface.noise if metric < NOISY_METRICS else np.zeros(len(own))
        z.append(values)
        weights.append(np.where(has_scores, signal_weights(own, noise), 0.0))
        varies = has_scores & (scale > 1e-6)
        shifts.append(np.where(has_scores, shift, np.nan))
        logs.append(np.where(varies, np.log(np.maximum(scale, 1e-6)), np.nan))
    flag = np.full((*surface.codes.shape[:2], 1), float(surface.is_scaled), dtype=np.float32)
    return TrainingSurface(
        surface.owner,
        surface.rows,
        np.concatenate([surface.codes, flag], axis=2),
        np.stack(z, axis=2),
        np.stack(weights, axis=1),
        np.clip(np.stack([*shifts, *logs], axis=1), -MAX_LEVEL, MAX_LEVEL),
    )


def train(
    data: DataSets,
    surfaces: Sequence[Surface],
    is_used: np.ndarray,
    options: TrainingOptions = OPTIONS,
    n_members: int = N_MEMBERS,
    parts: Sequence[str] = PARTS,
    how: str = "standardize",
    n_jobs: int = 1,
    command: str = "",
    has_residuals: bool = False,
) -> dict[str, np.ndarray]:
    """Train the members of an ensemble on some of the data sets; return the arrays of the model.

    Parameters
    ----------
    data : DataSets
    surfaces : sequence of Surface
    is_used : ndarray of bool, shape (D,)
    options : TrainingOptions
    n_members : int
    parts : sequence of str
        Parts of a profile that the encoder reads.
    how : {"standardize", "copula", "regret"}
    n_jobs : int
    command : str
        For the provenance.
    has_residuals : bool
        Whether to learn what the heads miss, too.
    """
    kind = data.profiles[0].kind
    columns = choose_columns(data.names, parts)
    numbers = data.features[:, columns]
    surfaces = [surface for surface in surfaces if len(surface.rows) >= MIN_DATA_SETS]
    made = [make_training_surface(surface, how).take(is_used) for surface in surfaces]
    made = [surface for surface in made if len(surface.rows)]
    counts = _count_data_sets(made)
    provenance = {
        "command": command,
        "commit": _current_commit(),
        "data_sets": int(is_used.sum()),
        "data_sets_of": counts,
        "members": n_members,
        "options": asdict(options),
        "seeds": list(range(n_members)),
        "scores": how,
    }
    encoders = {surface.owner: surface.encoder for surface in surfaces if surface.owner in counts}
    arrays = begin_arrays(
        kind,
        METRICS[kind],
        [data.names[i] for i in columns],
        measure_inputs(numbers[is_used]),
        encoders,
        provenance,
    )
    members = _train_members(arrays, numbers, made, options, n_members, n_jobs)
    finished = finish_arrays(arrays, members, numbers[is_used])
    if has_residuals:
        families = np.where(is_synthetic(data.numbers), "", data.families)
        residuals, shared = _fit_residuals(arrays, numbers, made, families, options, n_jobs)
        unit = np.sqrt(median_square(PretrainedModel(finished), numbers))
        finished |= residuals | {"residual.shared": shared * [1.0, unit, 1.0]}
    return finished


def _train_members(
    arrays: Arrays,
    numbers: np.ndarray,
    surfaces: Sequence[TrainingSurface],
    options: TrainingOptions,
    n_members: int,
    n_jobs: int,
) -> list[Arrays]:
    features = PretrainedModel(arrays).standardize(numbers)
    return Parallel(n_jobs=n_jobs)(
        delayed(train_model)(features, surfaces, replace(options, seed=seed))
        for seed in range(n_members)
    )


def _fit_residuals(
    arrays: Arrays,
    numbers: np.ndarray,
    surfaces: Sequence[TrainingSurface],
    families: np.ndarray,
    options: TrainingOptions,
    n_jobs: int,
) -> tuple[Arrays, np.ndarray]:
    """What the heads miss on perturbed tables of families that were left out.

    Returns a kernel for each estimator, and how what they miss is shared, as `fit_shared` does. The
    family of a synthetic table is "".
    """
    owners = list(dict.fromkeys(surface.owner for surface in surfaces))
    left_out: list[tuple[PretrainedModel, list[TrainingSurface]]] = []
    names = np.random.default_rng(0).permutation(np.unique(families[families != ""]))
    for number in range(N_RESIDUAL_FOLDS):
        is_out = np.isin(families, names[number::N_RESIDUAL_FOLDS])
        seen = [surface.take(~is_out) for surface in surfaces]
        members = _train_members(arrays, numbers, seen, options, N_RESIDUAL_MEMBERS, n_jobs)
        model = PretrainedModel(finish_arrays(arrays, members, numbers[~is_out]))
        left_out.append((model, [surface.take(is_out) for surface in surfaces]))
    parts = (
        [
            collect_residuals(model, numbers, [s for s in own if s.owner == owner])
            for model, own in left_out
        ]
        for owner in owners
    )
    fitted = dict(
        zip(owners, Parallel(n_jobs=n_jobs)(map(delayed(fit_residual), parts)), strict=True)
    )
    pairs = [
        collect_pairs(model, numbers, surface, fitted[surface.owner]["lengths"], families)
        for model, own in left_out
        for surface in own
    ]
    kernels = {
        f"residual.{owner}.{name}": array
        for owner, found in fitted.items()
        for name, array in found.items()
    }
    return kernels, fit_shared(np.concatenate(pairs))


def add_heads(
    model: PretrainedModel,
    data: DataSets,
    surfaces: Sequence[Surface],
    is_used: np.ndarray,
    options: TrainingOptions = OPTIONS,
    n_jobs: int = 1,
    command: str = "",
) -> dict[str, np.ndarray]:
    """Train heads for the embeddings of a model. Its encoder and its other heads do not change.

    Parameters
    ----------
    model : PretrainedModel
    data : DataSets
    surfaces : sequence of Surface
        Those of the new heads.
    is_used : ndarray of bool, shape (D,)
    options : TrainingOptions
    n_jobs : int
    command : str
        For the provenance.
    """
    numbers = np.stack([model.read_numbers(profile) for profile in data.profiles])
    made = [make_training_surface(surface).take(is_used) for surface in surfaces]
    members = Parallel(n_jobs=n_jobs)(
        delayed(train_model)(
            model.standardize(numbers),
            made,
            replace(options, keeps_encoder=True, seed=seed),
            start,
        )
        for seed, start in enumerate(model.members())
    )
    counts = _count_data_sets(made)
    provenance = {
        "data_sets_of": model.provenance.get("data_sets_of", {}) | counts,
        "added": model.provenance.get("added", {})
        | {owner: {"command": command, "commit": _current_commit()} for owner in counts},
    }
    encoders = {surface.owner: surface.encoder for surface in surfaces}
    return extend_arrays(model, encoders, members, provenance)


def _count_data_sets(surfaces: Sequence[TrainingSurface]) -> dict[str, int]:
    """Estimator -> number of data sets, the larger one if there are two variants."""
    counts: dict[str, int] = {}
    for surface in surfaces:
        counts[surface.owner] = max(counts.get(surface.owner, 0), len(surface.rows))
    return counts


@lru_cache(maxsize=4)
def split_development(kind: str, folder: Path) -> list[list[str]]:
    """The development families of a kind, split in N_FAMILY_SPLITS groups."""
    family = pools.family_of(kind, folder)
    names = sorted({family[name] for name in pools.targets(kind, "development", folder)})
    order = np.random.default_rng(0).permutation(names)
    return [order[i::N_FAMILY_SPLITS].tolist() for i in range(N_FAMILY_SPLITS)]


def models_without(family: str, models: Path | None, kind: str, folder: Path) -> Path | None:
    """The folder of those models of `--leave-out` that a family had no part in; None if none."""
    if models is None:
        return None
    groups = split_development(kind, folder)
    number = next((i for i, group in enumerate(groups) if family in group), None)
    return None if number is None else models / str(number)


def _current_commit() -> str:
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip()


def _add_to_files(owners: Sequence[str], folder: Path, n_jobs: int) -> None:
    """Add heads to the models in a folder."""
    for kind in KINDS:
        data = load_data_sets(kind)
        own = [surface for surface in load_surfaces(kind) if surface.owner in owners]
        if not own:
            continue
        path, is_used = folder / f"{kind}.npz", np.ones(len(data.numbers), dtype=bool)
        names = " ".join(dict.fromkeys(surface.owner for surface in own))
        arrays = add_heads(
            read_model(path),
            data,
            own,
            is_used,
            ADDED,
            n_jobs=n_jobs,
            command=f"python -m benchmarks.pretraining.train --add {names}",
        )
        write_model(path, arrays)
        print(f"{path}: {names}, {path.stat().st_size / 1e6:.2f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the arrays")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--members", type=int, default=N_MEMBERS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument(
        "--leave-out",
        action="store_true",
        help="train a model without each group of development families, in numbered folders",
    )
    parser.add_argument(
        "--add", nargs="+", default=[], metavar="CLASS", help="add heads to the model in --out"
    )
    options = parser.parse_args()
    if options.add:
        _add_to_files(options.add, options.out, options.jobs)
        return
    for kind in options.kinds:
        groups: list[list[str]] = [[]]
        if options.leave_out:
            groups = split_development(kind, data_folder(None))
        for number, group in enumerate(groups):
            begun, data = time.time(), load_data_sets(kind)
            is_used = ~np.isin(data.families, group)
            arrays = train(
                data,
                load_surfaces(kind),
                is_used,
                n_members=options.members,
                n_jobs=options.jobs,
                command="python -m benchmarks.pretraining.train",
                has_residuals=True,
            )
            folder = options.out / str(number) if options.leave_out else options.out
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{kind}.npz"
            write_model(path, arrays)
            size, seconds = path.stat().st_size / 1e6, time.time() - begun
            print(f"{path}: {is_used.sum()} data sets, {size:.2f} MB, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
