"""What the pretrained encoder reads of a profile: named numbers, in the order of its weights.

A name has a part and a feature: "meta.log_rows", "scale.log_target_std", "curve.knn_5",
"relative.knn_5" (the curve minus its own best), "sketch.17". A number that a profile does not have
is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.dataset._response_curves import relative_curves
from sktransfer.dataset._sketch import SKETCH_FORMAT


def name_numbers(profile: DatasetProfile) -> dict[str, float]:
    """All numbers of a profile by name."""
    curves = profile.response_curves
    sketch = profile.sketch or {}
    drawn: tuple[float, ...] = ()
    if sketch.get("format") == SKETCH_FORMAT:
        drawn = (*sketch["pairs"], *sketch["kernels"])
    return (
        {f"meta.{name}": value for name, value in profile.meta_features.items()}
        | {f"scale.{name}": value for name, value in profile.scales.items()}
        | {f"curve.{name}": value for name, value in curves.items()}
        | {f"relative.{name}": value for name, value in relative_curves(curves).items()}
        | {f"sketch.{i}": float(value) for i, value in enumerate(drawn)}
    )


def read_profile(profile: DatasetProfile, names: Sequence[str]) -> np.ndarray:
    """The numbers with these names; of shape (len(names),)."""
    numbers = name_numbers(profile)
    return np.array([numbers.get(name, np.nan) for name in names], dtype=float)
