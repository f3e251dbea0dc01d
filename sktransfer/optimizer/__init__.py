"""Ask for configurations, tell their scores. Nothing in here reads a disk or cross-validates."""

from sktransfer.optimizer._optimizer import TransferOptimizer
from sktransfer.optimizer._past_tasks import PastScale
from sktransfer.optimizer._pool import Pool
from sktransfer.optimizer._proposal import Proposal, Suggestion
from sktransfer.optimizer._score_prior import (
    are_columns_scaled,
    find_embedding,
    find_score_prior,
    metric_of_head,
)

__all__ = [
    "PastScale",
    "Pool",
    "Proposal",
    "Suggestion",
    "TransferOptimizer",
    "are_columns_scaled",
    "find_embedding",
    "find_score_prior",
    "metric_of_head",
]
