"""Perturbed real tables: parts of the development families, changed at random.

A table is made in four steps: choose a family and one of its data sets, choose what is predicted
(the original target, or one of the columns), take some of the rows and columns, and change a few
things: classes, labels, units, noise, rotations, further columns, missing cells.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.data import load_classification, load_regression
from benchmarks.pretraining.families import Source, development_families
from benchmarks.pretraining.synthetic import (
    MAX_CLASSES,
    MAX_COLUMNS,
    Generator,
    distort_column,
    draw_n_classes,
    draw_size,
    encode_one_hot,
    flip_labels,
    remove_cells,
    standardize,
    transform_amounts,
)

MIN_AMOUNTS = 20  # distinct values of a column that can be a regression target


def draw_table(rng: Generator, task: str, folder: Path) -> tuple[np.ndarray, np.ndarray, str]:
    """Draw X, y and the name of the family."""
    members = development_families(folder)
    own = [name for name, sources in members.items() if any(kind == task for kind, _ in sources)]
    pool = own if rng.random() < 0.7 else list(members)
    family = pool[rng.integers(len(pool))]
    sources = members[family]
    sources = tuple(source for source in sources if source[0] == task) or sources
    source = sources[rng.integers(len(sources))]
    X, y = _load(source, folder)
    rows = rng.permutation(len(X))[: draw_size(rng, 80, min(1000, len(X)))]
    X, y = X[rows], y[rows]
    if source[0] != task or rng.random() < 0.25:
        X, y = predict_column(rng, X, y, source[0], task)
    X = change_columns(rng, X)
    y = change_classes(rng, y) if task == "classification" else change_amounts(rng, y)
    if task == "classification" and rng.random() < 0.25:
        kept = thin_classes(rng, y)
        X, y = X[kept], y[kept]
    return X, y, family


@lru_cache(maxsize=64)
def _load(source: Source, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    load = load_classification if source[0] == "classification" else load_regression
    return load(source[1], folder, 5000)


# -- target ----------------------------------------------------------------------------------------


def predict_column(
    rng: Generator, X: np.ndarray, y: np.ndarray, had: str, task: str
) -> tuple[np.ndarray, np.ndarray]:
    """Predict the cut-up target of a regression set, or a column in place of the target.

    Without a suitable column, X and y are returned unchanged, and `generator` draws again.
    """
    if task == "classification" and had == "regression" and rng.random() < 0.5:
        return X, cut_into_classes(rng, y)
    n_values = np.array([len(np.unique(x)) for x in X.T])
    if task == "regression":
        suitable = np.flatnonzero(n_values >= MIN_AMOUNTS)
    else:
        suitable = np.flatnonzero((n_values >= 2) & (n_values <= MAX_CLASSES))
        if not len(suitable) or rng.random() < 0.5:
            suitable = np.flatnonzero(n_values >= 2)
    if not len(suitable) or X.shape[1] < 2:
        return X, y
    j = rng.choice(suitable)
    target, X = X[:, j], np.delete(X, j, axis=1)
    if rng.random() < 0.5:
        X = np.column_stack([X, y])
    if task == "regression":
        return X, target
    few = n_values[j] <= MAX_CLASSES
    return X, np.unique(target, return_inverse=True)[1] if few else cut_into_classes(rng, target)


def cut_into_classes(rng: Generator, values: np.ndarray) -> np.ndarray:
    """Cut amounts into classes at random quantiles."""
    shares = rng.dirichlet(np.full(draw_n_classes(rng), np.exp(rng.uniform(0.0, 3.0))))
    return np.searchsorted(np.quantile(values, np.cumsum(shares)[:-1]), values)


def change_classes(rng: Generator, y: np.ndarray) -> np.ndarray:
    """Merge classes at random, and flip some labels."""
    labels, y = np.unique(y, return_inverse=True)
    k = len(labels)
    if k > 2 and (k > MAX_CLASSES or rng.random() < 0.5):
        k = int(rng.integers(2, min(k, MAX_CLASSES) + 1))
        y = rng.integers(k, size=len(labels))[y]
    return flip_labels(rng, y, k) if rng.random() < 0.12 else y


def change_amounts(rng: Generator, y: np.ndarray) -> np.ndarray:
    """Add noise to a regression target, or transform it."""
    if rng.random() < 0.25:
        y = standardize(y) + rng.uniform(0.05, 0.7) * rng.standard_normal(len(y))
    return transform_amounts(rng, y) if rng.random() < 0.3 else y


def thin_classes(rng: Generator, y: np.ndarray) -> np.ndarray:
    """Choose rows so that some classes become rare; sorted indices."""
    keep = np.where(rng.random(y.max() + 1) < 0.5, rng.uniform(0.05, 0.5, y.max() + 1), 1.0)
    return np.flatnonzero(rng.random(len(y)) < keep[y])


# -- columns ---------------------------------------------------------------------------------------


def change_columns(rng: Generator, X: np.ndarray) -> np.ndarray:
    """Change the columns in a few random ways; at most `MAX_COLUMNS` columns remain."""
    if rng.random() < 0.5:
        kept = draw_size(rng, max(1, X.shape[1] // 4), X.shape[1])
        X = X[:, rng.permutation(X.shape[1])[:kept]]
    X = X[:, X.std(axis=0) > 0] if len(X) else X
    if not X.shape[1]:
        return X
    if rng.random() < 0.2:
        X = _rotate(rng, X)
    if rng.random() < 0.25:
        X = X + rng.uniform(0.02, 0.4) * X.std(axis=0) * rng.standard_normal(X.shape)
    if rng.random() < 0.25:
        X = X.copy()
        for j in np.flatnonzero(rng.random(X.shape[1]) < 0.4):
            X[:, j] = distort_column(rng, standardize(X[:, j]), discrete=False)
    if rng.random() < 0.08:
        X = encode_one_hot(rng, X)
    if rng.random() < 0.25:
        X = np.column_stack([X, _further_columns(rng, X)])
    if rng.random() < 0.2:
        X = standardize(X) * 10.0 ** rng.uniform(-2, 2, X.shape[1])
    X = X[:, rng.permutation(X.shape[1])[:MAX_COLUMNS]]
    return remove_cells(rng, X) if rng.random() < 0.1 else X


def _rotate(rng: Generator, X: np.ndarray) -> np.ndarray:
    """Mix some of the columns linearly."""
    X, p = standardize(X), X.shape[1]
    mixed = rng.permutation(p)[: int(rng.integers(1, p + 1))]
    rotation = np.linalg.qr(rng.standard_normal((len(mixed), len(mixed))))[0]
    X[:, mixed] = X[:, mixed] @ rotation
    return X


def _further_columns(rng: Generator, X: np.ndarray) -> np.ndarray:
    """Columns of noise, permuted copies, noisy copies, or products of two columns."""
    n_more, S = draw_size(rng, 1, max(1.5, X.shape[1])), standardize(X)
    kind, chosen = rng.integers(4), rng.integers(X.shape[1], size=n_more)
    if kind == 0:
        return rng.standard_normal((len(X), n_more))
    if kind == 1:
        return rng.permuted(X[:, chosen], axis=0)
    if kind == 2:
        return S[:, chosen] + rng.uniform(0.1, 1.0) * rng.standard_normal((len(X), n_more))
    return S[:, chosen] * S[:, rng.integers(X.shape[1], size=n_more)]
