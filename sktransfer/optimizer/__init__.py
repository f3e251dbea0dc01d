"""Ask for configurations, tell their scores. No disk and no cross-validation in here."""

from sktransfer.optimizer._optimizer import TransferOptimizer
from sktransfer.optimizer._optimizer_parts import Proposal, Suggestion

__all__ = ["Proposal", "Suggestion", "TransferOptimizer"]
