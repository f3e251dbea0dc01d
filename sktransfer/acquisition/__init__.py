"""Choosing the next trial: acquisition functions and their maximisation."""

from sktransfer.acquisition.confidence_bound import lower_confidence_bound
from sktransfer.acquisition.expected_improvement import log_expected_improvement
from sktransfer.acquisition.maximise import confined, maximise, redraw, sample
from sktransfer.acquisition.thompson import thompson

__all__ = [
    "confined",
    "log_expected_improvement",
    "lower_confidence_bound",
    "maximise",
    "redraw",
    "sample",
    "thompson",
]
