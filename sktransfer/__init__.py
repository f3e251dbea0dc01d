"""Hyperparameter search that learns from every search before it."""

__version__ = "0.1.0"

from sktransfer._suggest import suggest
from sktransfer._suggest_space import suggest_space
from sktransfer.archive import Archive
from sktransfer.optimizer import Suggestion, TransferOptimizer
from sktransfer.profile import DatasetProfile, profile
from sktransfer.search import TransferSearchCV
from sktransfer.space import Space
from sktransfer.task import Task, Trial

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
    "suggest",
    "suggest_space",
]
