"""Encoders: from the profile of a data set to a vector. They are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_CLASSES = {
    "DistributionEncoder": "_distribution",
    "Encoder": "_base",
    "ManualEncoder": "_meta_features",
    "PairEncoder": "_pairs",
    "PretrainedEncoder": "_pretrained",
    "TaskIndex": "_task_index",
}

__all__ = [
    "DistributionEncoder",
    "Encoder",
    "ManualEncoder",
    "PairEncoder",
    "PretrainedEncoder",
    "TaskIndex",
]


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(import_module(f"sktransfer.encoders.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
