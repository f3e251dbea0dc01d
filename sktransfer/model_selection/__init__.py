"""Hyperparameter search with scikit-learn's interface."""

from sktransfer.model_selection._search import TransferSearchCV
from sktransfer.model_selection._suggest import suggest
from sktransfer.model_selection._suggest_space import suggest_space

__all__ = ["TransferSearchCV", "suggest", "suggest_space"]
