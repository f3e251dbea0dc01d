"""Choosing the next trial: acquisition functions and their maximisation."""

from sktransfer.acquisition.expected_improvement import log_expected_improvement
from sktransfer.acquisition.maximise import maximise

__all__ = ["log_expected_improvement", "maximise"]
