"""The data sets of the benchmarks: where they are stored and how they become arrays."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import LabelEncoder, OrdinalEncoder
from sklearn.utils import resample


def data_place(given: str | None = None) -> Path:
    """Return the data folder: `given`, SKTRANSFER_DATA, or ../shared/data beside the repository."""
    return Path(
        given or os.environ.get("SKTRANSFER_DATA") or Path(__file__).parents[2] / "shared" / "data"
    )


def data_folder(given: str | None = None) -> Path:
    """Return the data folder, or exit if it holds no data."""
    folder = data_place(given)
    if not (folder / "classification").is_dir():
        raise SystemExit(
            f"{folder} has no folder 'classification' with gzipped CSV files. "
            "Pass the data folder with --data or set SKTRANSFER_DATA."
        )
    return folder


def load_classification(name: str, folder: Path, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X (categories as codes) and y (0, 1, ...) of a data set.

    Larger data sets are reduced to `max_rows` rows by stratified sampling.
    """
    table = pd.read_csv(folder / "classification" / f"{name}.csv.gz", dtype={"target": str})
    y = LabelEncoder().fit_transform(table.pop("target"))
    text = table.select_dtypes(exclude="number").columns
    table[text] = OrdinalEncoder().fit_transform(table[text])
    X = table.to_numpy(dtype=float)
    if len(X) > max_rows:
        X, y = resample(X, y, replace=False, n_samples=max_rows, stratify=y, random_state=0)
    return X, y


def load_regression(name: str, folder: Path, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y of a data set.

    Larger data sets are reduced to `max_rows` rows, stratified by deciles of the target.
    """
    table = pd.read_csv(folder / "regression" / f"{name}.csv.gz")
    y = table.pop("target").to_numpy(dtype=float)
    X = table.to_numpy(dtype=float)
    if len(X) > max_rows:
        deciles = pd.qcut(y, 10, labels=False, duplicates="drop")
        X, y = resample(X, y, replace=False, n_samples=max_rows, stratify=deciles, random_state=0)
    return X, y
