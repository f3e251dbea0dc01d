"""Profiles of data sets: (X, y) -> `DatasetProfile`."""

from sktransfer.dataset._profile import DatasetProfile, check_keep, profile

__all__ = ["DatasetProfile", "check_keep", "profile"]
