"""The data sets of the benchmarks: where they are, and how they become arrays."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import LabelEncoder, OrdinalEncoder
from sklearn.utils import resample


def data_place(given: str | None = None) -> Path:
    """Where the data should be: as given, or SKTRANSFER_DATA, or ../shared/data beside the repository."""
    return Path(
        given or os.environ.get("SKTRANSFER_DATA") or Path(__file__).parents[2] / "shared" / "data"
    )


def data_folder(given: str | None = None) -> Path:
    """The folder of the data, if there are any."""
    folder = data_place(given)
    if not (folder / "classification").is_dir():
        raise SystemExit(
            f"No data in {folder}: it should hold a folder 'classification' of gzipped CSV files. "
            "Name the folder with --data or in SKTRANSFER_DATA."
        )
    return folder


def load_classification(name: str, folder: Path, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """X (categories as codes) and y (0, 1, ...) of one data set, at most `max_rows` rows, stratified."""
    table = pd.read_csv(folder / "classification" / f"{name}.csv.gz", dtype={"target": str})
    y = LabelEncoder().fit_transform(table.pop("target"))
    text = table.select_dtypes(exclude="number").columns
    table[text] = OrdinalEncoder().fit_transform(table[text])
    X = table.to_numpy(dtype=float)
    if len(X) > max_rows:
        X, y = resample(X, y, replace=False, n_samples=max_rows, stratify=y, random_state=0)
    return X, y


def load_regression(name: str, folder: Path, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """X and y of one data set, at most `max_rows` rows, stratified by tenths of the target."""
    table = pd.read_csv(folder / "regression" / f"{name}.csv.gz")
    y = table.pop("target").to_numpy(dtype=float)
    X = table.to_numpy(dtype=float)
    if len(X) > max_rows:
        tenths = pd.qcut(y, 10, labels=False, duplicates="drop")
        X, y = resample(X, y, replace=False, n_samples=max_rows, stratify=tenths, random_state=0)
    return X, y
