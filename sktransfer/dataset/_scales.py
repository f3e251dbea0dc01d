"""Scales: the units of the columns and of the target, as a few logarithms.

Meta-features, sketch and response curves do not depend on units. Penalties, widths of kernels and
tolerances do: ``gamma`` of an SVC is relative to squared distances, ``epsilon`` of an SVR to the
deviations of the target. All logarithms are to base 10.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sktransfer.dataset._meta_features import impute_medians

MIN_STD = 1e-12
MAX_STANDARD_LOG = 0.1  # of a column that counts as standardized
SCALES = (
    "log_target_std",
    "log_mean_variance",
    "log_cell_variance",
    "log_column_std_mean",
    "log_column_std_spread",
    "log_column_std_max",
    "log_offset_mean",
)


def measure_scales(values: np.ndarray, amounts: np.ndarray | None) -> dict[str, float]:
    """Measure the scales of a table. Those that are not finite are left out.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        NaN where a cell is missing.
    amounts : ndarray of shape (n,) or None
        A target of amounts; None for classes, or without a target.

    Examples
    --------
    >>> found = measure_scales(np.array([[0.0, 0.0], [2.0, 200.0]]), np.array([0.0, 20.0]))
    >>> found["log_target_std"], found["log_column_std_max"]
    (1.0, 2.0)
    """
    filled = impute_medians(values)
    std = np.maximum(filled.std(axis=0), MIN_STD)
    logs = np.log10(std)
    target_std = 1.0
    if amounts is not None and np.isfinite(amounts).any():
        target_std = max(float(np.nanstd(amounts)), MIN_STD)
    measured = (
        np.log10(target_std),
        np.log10(np.mean(std * std)),
        np.log10(max(float(filled.var()), MIN_STD)),
        logs.mean(),
        logs.std(),
        logs.max(),
        np.log10(1.0 + np.abs(filled.mean(axis=0)) / std).mean(),
    )
    pairs = zip(SCALES, measured, strict=True)
    return {name: round(float(value), 4) for name, value in pairs if np.isfinite(value)}


def looks_standardized(scales: Mapping[str, float]) -> bool:
    """Whether all columns have a mean of about 0 and a deviation of about 1, as after a scaler.

    >>> looks_standardized(measure_scales(np.array([[-1.0, 1.0], [1.0, -1.0]]), None))
    True
    """
    names = ("log_column_std_mean", "log_column_std_spread", "log_offset_mean")
    return all(abs(scales.get(name, np.inf)) < MAX_STANDARD_LOG for name in names)
