"""Data sets for pretraining: each comes back from its number alone.

Numbers go through `CYCLE`, so that any prefix has synthetic and perturbed tables for both tasks in
fixed shares. The table depends on the kind and the number, on numpy's generator and, for perturbed
tables, on the files of the development families.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.data import data_folder
from benchmarks.pretraining import perturbed, synthetic

MIN_ROWS, MAX_ROWS = 60, 1000
MIN_CLASS_ROWS = 6  # two in each of three folds
MIN_AMOUNTS = 8  # distinct values of a regression target
MAX_ATTEMPTS = 200
MIN_SIGNAL = 0.15  # tables with less are mostly noise, and few of them are kept
KEPT_WITHOUT_SIGNAL = 0.25


class Kind(NamedTuple):
    """Where a table comes from, and what is predicted.

    Parameters
    ----------
    origin : {"synthetic", "perturbed"}
    task : {"classification", "regression"}
    """

    origin: str
    task: str

    def __str__(self) -> str:
        return f"{self.origin}-{self.task}"


KINDS = tuple(
    Kind(o, t) for o in ("synthetic", "perturbed") for t in ("classification", "regression")
)
_SC, _SR, _PC, _PR = KINDS
CYCLE = (_SC, _PC, _SR, _PR, _SC, _PC, _SR, _PR, _SC, _PC)


@dataclass(frozen=True)
class DataSet:
    """A table and its target.

    Parameters
    ----------
    kind : Kind
    seed : int
    family : str
        The real family, or "synthetic-<seed>".
    X : ndarray of shape (n, p)
        Floats; NaN where a cell is missing. No column is constant.
    y : ndarray of shape (n,)
        Classes 0 .. k - 1 of at least `MIN_CLASS_ROWS` rows each, or amounts.
    """

    kind: Kind
    seed: int
    family: str
    X: np.ndarray
    y: np.ndarray


def kind_of(number: int) -> Kind:
    """The kind of the data set with this number."""
    return CYCLE[number % len(CYCLE)]


def make_data_set(kind: Kind, seed: int, folder: Path | None = None) -> DataSet:
    """Make the data set of a kind and a seed.

    Parameters
    ----------
    kind : Kind
    seed : int
    folder : Path, optional
        The folder of the real data, for perturbed tables.
    """
    name = zlib.crc32(str(kind).encode())
    for attempt in range(MAX_ATTEMPTS):
        rng = np.random.default_rng([name, seed, attempt])
        if kind.origin == "synthetic":
            X, y = synthetic.draw_table(rng, kind.task)
            family = f"synthetic-{seed}"
        else:
            X, y, family = perturbed.draw_table(rng, kind.task, folder or data_folder())
        cleaned = clean_table(X, y, kind.task)
        if cleaned is None:
            continue
        if measure_signal(*cleaned, kind.task) > MIN_SIGNAL or rng.random() < KEPT_WITHOUT_SIGNAL:
            return DataSet(kind, seed, family, *cleaned)
    raise RuntimeError(f"no table of {kind} with seed {seed} can be cross-validated")


def clean_table(X: np.ndarray, y: np.ndarray, task: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Drop rare classes and constant columns; None if too little is left to cross-validate."""
    if task == "classification":
        _, y, counts = np.unique(y, return_inverse=True, return_counts=True)
        kept = counts[y] >= MIN_CLASS_ROWS
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
        enough = len(y) and 2 <= y.max() + 1 <= synthetic.MAX_CLASSES
    else:
        y = np.asarray(y, dtype=float)
        enough = np.isfinite(y).all() and len(np.unique(y)) >= MIN_AMOUNTS
    if not enough or not MIN_ROWS <= len(y) <= MAX_ROWS:
        return None
    X = np.asarray(X, dtype=float)
    finite = np.isfinite(X)
    present = np.where(finite, X, np.nan)
    varies = (finite.sum(axis=0) >= len(y) // 2) & (np.nanmin(present, 0) < np.nanmax(present, 0))
    X = present[:, varies]
    if not X.shape[1] or np.nanmax(np.abs(X)) > 1e12:
        return None
    return np.ascontiguousarray(X[:, : synthetic.MAX_COLUMNS]), y


def measure_signal(X: np.ndarray, y: np.ndarray, task: str, max_rows: int = 200) -> float:
    """Score 5 nearest neighbors and a linear model by leave-one-out; return the better score.

    1 is perfect, 0 is as good as chance: balanced accuracy corrected for chance, or R2.
    """
    X, y = X[:max_rows], y[:max_rows]
    X = synthetic.standardize(np.where(np.isnan(X), np.nan_to_num(np.nanmedian(X, axis=0)), X))
    if task == "classification":
        T = (y[:, None] == np.unique(y)).astype(float)
    else:
        T = synthetic.standardize(y.astype(float))[:, None]
    distance = ((X * X).sum(axis=1) - 2.0 * X @ X.T).astype(float)
    np.fill_diagonal(distance, np.inf)
    neighbors = T[np.argpartition(distance, 5, axis=1)[:, :5]].mean(axis=1)
    # Ridge regression with an intercept: row i without row i from its leverage.
    A = np.column_stack([np.ones(len(X)), X])
    H = A @ np.linalg.solve(A.T @ A + 0.03 * len(X) * np.eye(A.shape[1]), A.T)
    linear = T - (T - H @ T) / np.maximum(1.0 - np.diag(H), 1e-6)[:, None]
    return max(_score_columns(T, part, task) for part in (neighbors, linear))


def _score_columns(T: np.ndarray, predicted: np.ndarray, task: str) -> float:
    if task == "regression":
        return float(1.0 - np.mean((T - predicted) ** 2) / max(np.var(T), 1e-12))
    k = T.shape[1]
    right = T[np.arange(len(T)), predicted.argmax(axis=1)] > 0
    recall = (T * right[:, None]).sum(axis=0) / T.sum(axis=0)
    return float((recall.mean() - 1 / k) / (1 - 1 / k)) if k > 1 else 0.0
