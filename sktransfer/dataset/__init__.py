"""Profiles of data sets: (X, y) -> `DatasetProfile`."""

from sktransfer.dataset._profile import DatasetProfile, check_keep, profile
from sktransfer.dataset._table import MatrixLike, TargetLike

__all__ = ["DatasetProfile", "MatrixLike", "TargetLike", "check_keep", "profile"]
