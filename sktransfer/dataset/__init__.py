"""Profiles of data sets: (X, y) -> `DatasetProfile`."""

from sktransfer.dataset._profile import DatasetProfile, check_keep, profile
from sktransfer.dataset._table import MatrixLike, TargetLike
from sktransfer.dataset._target_kind import TARGET_KINDS, target_kind

__all__ = [
    "TARGET_KINDS",
    "DatasetProfile",
    "MatrixLike",
    "TargetLike",
    "check_keep",
    "profile",
    "target_kind",
]
