"""The sketch: a data set in some 160 numbers that name no row, for the encoders that learn from past tasks.

Notation: Z standardized columns, (n, p); T standardized targets, (n, c), one column per class (one against
the rest) or output; K random features; E the mean embeddings of the (feature, target) pairs, (p, c, K).

Two parts, both blind to the order of rows, columns and classes and to the columns' units:

pairs   E[f, t, k] = mean over rows of cos(w_k Z[:, f] + v_k T[:, t] + b_k), a random-feature mean embedding
        (Rahimi & Recht 2008) of each pair's joint distribution; kept are mean and standard deviation over
        the pairs, 2 K numbers.
kernels for Gaussian kernels G_j = exp(-g_j |z - z'|² / p) of falling width: the mean of G_j, the mean of
        G_j T T'/c (how alike the targets of near rows are), and the share of a row's neighbors in G_j
        that is itself: 3 J numbers. Norms of the joint embedding at each scale; noise and smoothness of
        the target show here, also where no single feature reveals it.

The features are drawn by a generator of our own (splitmix64), so they are the same on every machine and
with every version of numpy, and the numbers are rounded. What is kept of n rows are means over n: they
reveal the shape of the distributions (roughly, the histogram of a random feature, how it goes with the
target), as meta-features do, not whose values they are. Of a table of very few rows they reveal more: below
`MIN_ROWS` there is no sketch. Somebody who has a candidate for the whole table can check it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

SKETCH_FORMAT = 1
"""Raise it with any change of what the numbers mean; sketches of another format are not compared."""

MIN_ROWS = 10
MAX_TARGETS = 10
MAX_ROWS = 500
N_FEATURES = 64
DIGITS = 5
CLIP = 5.0
WIDTHS = 2.0 ** np.arange(-3, 8)  # g_j: from kernels that see everything to kernels that see one neighbor


def random_features(n: int = N_FEATURES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frequencies w, v and phases b of the random features, each (n,); two scales in turn.

    >>> [array[:2].round(3).tolist() for array in random_features()]
    [[0.834, -0.345], [-0.679, -1.195], [3.745, 5.738]]
    """
    u = _splitmix64(3 * n).reshape(3, n)
    scale = np.where(np.arange(n) % 2, 2.0, 0.7)
    return scale * ndtri(u[0]), scale * ndtri(u[1]), 2 * np.pi * u[2]


def _splitmix64(n: int, seed: int = 0) -> np.ndarray:
    """n numbers in (0, 1), by Steele, Lea & Flood's generator; the same for ever."""
    x = np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return ((x >> np.uint64(11)).astype(float) + 0.5) / 2.0**53


def sketch(Z: np.ndarray, target: np.ndarray | None, classes: bool) -> dict[str, Any] | None:
    """The sketch of standardized columns and a target; None where there is too little to look at.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Columns that vary, standardized.
    target : ndarray of shape (n, c) or None
        Outputs; NaN where missing. With `classes` the first output holds the codes of the classes.
    classes : bool
    """
    T = standard_targets(target, classes, len(Z))
    known = np.isfinite(T).all(axis=1)
    Z, T = Z[known], T[known]
    if len(Z) < MIN_ROWS or not Z.shape[1]:
        return None
    rows = _spread_rows(Z)
    Z, T = Z[rows], T[rows]
    Z = np.clip(Z, -CLIP, CLIP)  # a row far out is one row
    parts = {"pairs": _pairs(Z, T), "kernels": _kernels(Z, T)}
    return {"format": SKETCH_FORMAT} | {name: part.round(DIGITS).tolist() for name, part in parts.items()}


def _spread_rows(Z: np.ndarray) -> np.ndarray:
    """At most `MAX_ROWS` rows, evenly spaced in the order of what is in them, not of where they stand."""
    if len(Z) <= MAX_ROWS:
        return np.arange(len(Z))
    order = np.argsort(np.round((Z**3).sum(axis=1), 6), kind="stable")
    return order[np.linspace(0, len(Z) - 1, MAX_ROWS).round().astype(int)]


def standard_targets(target: np.ndarray | None, classes: bool, n: int) -> np.ndarray:
    """T: one standardized column per class or output, zeros where there is nothing to predict."""
    if target is None:
        return np.zeros((n, 1))
    if not classes:
        T = target[:, :MAX_TARGETS]
        return _standard(T / np.maximum(np.nanmax(np.abs(T), axis=0), 1e-300))
    labels, counts = np.unique(target[np.isfinite(target[:, 0]), 0], return_counts=True)
    labels = labels[np.argsort(-counts, kind="stable")[:MAX_TARGETS]]
    T = _standard((target[:, [0]] == labels).astype(float))
    return np.where(np.isfinite(target[:, [0]]), T, np.nan)


def _standard(T: np.ndarray) -> np.ndarray:
    std = np.nanstd(T, axis=0)
    return (T - np.nanmean(T, axis=0)) / np.where(std > 1e-12, std, 1.0)


def _pairs(Z: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Mean and standard deviation over the pairs of their mean embeddings; (2 K,)."""
    E = np.empty((Z.shape[1], T.shape[1], N_FEATURES))
    for k, (w, v, b) in enumerate(zip(*random_features(), strict=True)):
        # cos(x + t) = cos x cos t - sin x sin t turns the sum over rows into a product of matrices
        x, t = w * Z + b, v * T
        E[:, :, k] = (np.cos(x).T @ np.cos(t) - np.sin(x).T @ np.sin(t)) / len(Z)
    return np.concatenate([E.mean(axis=(0, 1)), E.std(axis=(0, 1))])


def _kernels(Z: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Means of G_j, of G_j with the targets' products, and the rows' share in themselves; (3 J,)."""
    n = len(Z)
    norms = (Z * Z).sum(axis=1)
    squares = np.maximum(norms[:, None] + norms - 2 * Z @ Z.T, 0) / Z.shape[1]
    alike = T @ T.T / T.shape[1]
    G = np.exp(-WIDTHS[0] * squares)
    rows = []
    for _ in WIDTHS:
        degree = G.sum(axis=1)
        np.fill_diagonal(G, 0.0)  # a row says nothing about itself
        mass = G.sum()
        rows.append([mass / n**2, np.vdot(G, alike) / (mass + n), (1 / degree).mean()])
        np.fill_diagonal(G, 1.0)
        G *= G  # half the squared width
    return np.array(rows).T.ravel()
