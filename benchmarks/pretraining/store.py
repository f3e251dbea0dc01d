"""The store of evaluations: compact shards that are committed, and records not yet in a shard.

A record belongs to one data set and one group of estimators, or to the group "profiles". It is a
dict of small arrays, the same names and shapes for all data sets of a task. Records are written one
by one to `pending/`, which is not committed. `pack` adds them to shards of `SHARD_SIZE` numbers,
one file for each group, task and shard: the arrays stacked, and the numbers of their data sets. An
interrupted run loses at most the record that is being made.

Scores are bounded by x (in [0, 1]) or x / (x - 1) (at most 0), and stored as 16-bit integers.
Seconds and spreads have 8 bits.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pretraining.generator import kind_of

FORMAT = 1
SHARD_SIZE = 100
FOLDER = Path(__file__).parent / "store"
PENDING = Path(__file__).parents[1] / ".work" / "pretraining"

STEPS = 65_000  # of a score; higher codes say why there is none
UNDEFINED, CAPPED, FAILED = 65_001, 65_002, 65_003
SECONDS_RANGE = (-5.0, 3.0)  # log10

Record = dict[str, np.ndarray]


# -- numbers ---------------------------------------------------------------------------------------


def encode_scores(scores: np.ndarray, bounded: np.ndarray) -> np.ndarray:
    """Encode scores as uint16.

    Parameters
    ----------
    scores : ndarray of shape (..., m)
        NaN becomes `UNDEFINED`.
    bounded : ndarray of bool, shape (m,)
        Whether a metric lies in [0, 1]. The other metrics are at most 0.
    """
    loss = np.maximum(-scores, 0.0)
    unit = np.where(bounded, np.clip(scores, 0.0, 1.0), 1.0 / (1.0 + loss))
    return np.where(np.isnan(scores), UNDEFINED, np.round(np.nan_to_num(unit) * STEPS)).astype(
        np.uint16
    )


def decode_scores(codes: np.ndarray, bounded: np.ndarray) -> np.ndarray:
    """Decode uint16 to scores; NaN where there is none."""
    unit = np.where(codes <= STEPS, codes / STEPS, np.nan)
    return np.where(bounded, unit, 1.0 - 1.0 / np.maximum(unit, 0.5 / STEPS))


def encode_seconds(seconds: np.ndarray) -> np.ndarray:
    """Encode seconds as uint8, on a log scale with steps of 7.5 %."""
    low, high = SECONDS_RANGE
    share = (np.log10(np.maximum(seconds, 10.0**low)) - low) / (high - low)
    return np.round(255 * np.clip(share, 0, 1)).astype(np.uint8)


def decode_seconds(codes: np.ndarray) -> np.ndarray:
    low, high = SECONDS_RANGE
    return 10.0 ** (low + codes / 255 * (high - low))


def encode_spread(spread: np.ndarray) -> np.ndarray:
    """Encode standard deviations as uint8; finer near 0, at most 1."""
    return np.round(255 * np.sqrt(np.clip(np.nan_to_num(spread), 0, 1))).astype(np.uint8)


def decode_spread(codes: np.ndarray) -> np.ndarray:
    return (codes / 255.0) ** 2


# -- files -----------------------------------------------------------------------------------------


def shard_path(folder: Path, group: str, task: str, shard: int) -> Path:
    return folder / f"{group}-{task}-{shard:03d}.npz"


def write_pending(pending: Path, group: str, number: int, record: Record) -> None:
    """Write the record of one data set, aside first."""
    path = pending / group / f"{number:06d}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    with aside.open("wb") as file:
        np.savez(file, **record)
    os.replace(aside, path)


def read_shards(
    folder: Path, group: str, task: str
) -> Iterable[tuple[Path, dict[str, np.ndarray]]]:
    """Yield the shards of a group and task, in order."""
    for path in sorted(folder.glob(f"{group}-{task}-*.npz")):
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if int(arrays.pop("format")) != FORMAT:
            raise ValueError(f"{path.name} has another format: remove it, and evaluate again")
        yield path, arrays


def numbers_done(folder: Path, pending: Path, group: str) -> set[int]:
    """Numbers of the data sets that have a record, in shards or pending."""
    done = {int(path.stem) for path in (pending / group).glob("*.npz")}
    for task in ("classification", "regression"):
        for _, arrays in read_shards(folder, group, task):
            done.update(arrays["numbers"].tolist())
    return done


def pack(folder: Path, pending: Path, group: str, provenance: Mapping[str, Any]) -> int:
    """Move the pending records of a group to the shards; return their number."""
    waiting: dict[tuple[str, int], list[Path]] = {}
    for path in sorted((pending / group).glob("*.npz")):
        number = int(path.stem)
        waiting.setdefault((kind_of(number).task, number // SHARD_SIZE), []).append(path)
    folder.mkdir(parents=True, exist_ok=True)
    for (task, shard), paths in waiting.items():
        _extend_shard(shard_path(folder, group, task, shard), paths, provenance)
    return sum(map(len, waiting.values()))


def _extend_shard(path: Path, records: list[Path], provenance: Mapping[str, Any]) -> None:
    found: dict[int, Record] = {}
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            numbers = file["numbers"].tolist()
            names = [name for name in file.files if name not in ("numbers", "format", "provenance")]
            stacked = {name: file[name] for name in names}
        found = {number: {k: v[i] for k, v in stacked.items()} for i, number in enumerate(numbers)}
    for each in records:
        with np.load(each, allow_pickle=False) as file:
            found[int(each.stem)] = {name: file[name] for name in file.files}
    order = sorted(found)
    arrays = {name: np.stack([found[number][name] for number in order]) for name in found[order[0]]}
    made = dict(provenance) | {"numpy": np.__version__, "python": platform.python_version()}
    aside = path.with_suffix(".part")
    with aside.open("wb") as file:
        np.savez_compressed(
            file,
            format=np.array(FORMAT),
            provenance=np.array(json.dumps(made, sort_keys=True)),
            numbers=np.array(order, dtype=np.int32),
            **arrays,
        )
    os.replace(aside, path)
    for each in records:
        each.unlink()


def load_group(folder: Path, group: str, task: str) -> dict[str, np.ndarray]:
    """Load all shards of a group and task as one dict of arrays, sorted by number."""
    parts = [arrays for _, arrays in read_shards(folder, group, task)]
    if not parts:
        return {"numbers": np.empty(0, dtype=np.int32)}
    names = [name for name in parts[0] if name != "provenance"]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}
