"""Hyperparameter search that learns from every search before it."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Archive": "archive",
    "DatasetProfile": "dataset",
    "Space": "space",
    "Suggestion": "optimizer",
    "Task": "task",
    "TransferOptimizer": "optimizer",
    "TransferSearchCV": "model_selection",
    "Trial": "task",
    "profile": "dataset",
    "suggest": "model_selection",
    "suggest_space": "model_selection",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"sktransfer.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
