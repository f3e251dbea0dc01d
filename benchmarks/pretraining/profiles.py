"""What the store keeps of each data set: sizes, scales, meta-features, sketch, response curves.

The record has one vector for each part, and the names of its numbers in one string. A feature that
a data set does not have is NaN.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from benchmarks.pretraining.generator import DataSet
from benchmarks.pretraining.store import Record
from sktransfer.dataset import profile
from sktransfer.dataset._response_curves import response_curves
from sktransfer.dataset._scales import SCALES

SIZES = ("log_rows", "log_columns", "log_classes", "smallest_class_share")
MAX_FLOAT16 = 6e4


def make_profile_record(data: DataSet) -> Record:
    """Profile one data set."""
    found = profile(data.X, data.y)
    parts = {
        "sizes": dict(zip(SIZES, measure_sizes(data), strict=True)),
        "scales": found.scales,
        "meta_features": found.meta_features,
        "response_curves": found.response_curves,
    }
    record: Record = {"family": np.array(data.family, dtype="U24")}
    for part, values in parts.items():
        names = names_of(data.kind.task).get(part, tuple(values))
        vector = np.array([values.get(name, np.nan) for name in names])
        record[part] = np.clip(vector, -MAX_FLOAT16, MAX_FLOAT16).astype(np.float16)
        record[f"{part}.names"] = np.array(" ".join(names))
    sketch = found.sketch or {"pairs": [np.nan] * 128, "kernels": [np.nan] * 33}
    record["sketch"] = np.concatenate([sketch["pairs"], sketch["kernels"]]).astype(np.float16)
    return record


@lru_cache(maxsize=2)
def names_of(task: str) -> dict[str, tuple[str, ...]]:
    """Names of all features that a table of a task can have, sorted."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] > 0).astype(int) if task == "classification" else X @ rng.standard_normal(4)
    return {
        "meta_features": tuple(sorted(profile(X, y).meta_features)),
        "response_curves": tuple(response_curves(X, y, task)),
        "scales": SCALES,
    }


def measure_sizes(data: DataSet) -> tuple[float, ...]:
    """Logarithms of the sizes, and the share of the smallest class."""
    n, p = data.X.shape
    if data.kind.task == "regression":
        return np.log(n), np.log(p), 0.0, 0.0
    counts = np.bincount(data.y)
    return np.log(n), np.log(p), np.log(len(counts)), counts.min() / n
