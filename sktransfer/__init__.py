"""Hyperparameter search that learns from every search before it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sktransfer.archive import Archive
    from sktransfer.dataset import DatasetProfile, profile
    from sktransfer.model_selection import TransferSearchCV, suggest, suggest_space
    from sktransfer.optimizer import Suggestion, TransferOptimizer
    from sktransfer.space import Space
    from sktransfer.task import Task, Trial
    from sktransfer.utils._versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "Archive",
    "DatasetProfile",
    "Space",
    "Suggestion",
    "Task",
    "TransferOptimizer",
    "TransferSearchCV",
    "Trial",
    "profile",
    "show_versions",
    "suggest",
    "suggest_space",
]

_FOLDERS = {
    "archive": ["Archive"],
    "dataset": ["DatasetProfile", "profile"],
    "model_selection": ["TransferSearchCV", "suggest", "suggest_space"],
    "optimizer": ["Suggestion", "TransferOptimizer"],
    "space": ["Space"],
    "task": ["Task", "Trial"],
    "utils._versions": ["show_versions"],
}
_FOLDER_OF = {name: folder for folder, names in _FOLDERS.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import sktransfer` takes no time."""
    if name not in _FOLDER_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"sktransfer.{_FOLDER_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
