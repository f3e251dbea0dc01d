"""The sketch: about 160 numbers that describe a data set without storing any row.

Encoders that learn from past tasks read it. Notation: Z standardized columns, (n, p); T
standardized targets, (n, c), one column per class (one against the rest) or output; K random
features; E the mean embeddings of the (feature, target) pairs, (p, c, K).

The sketch has two parts. Both are invariant under the order of rows, columns and classes and under
the units of the columns:

pairs   E[f, t, k] = mean over rows of cos(w_k Z[:, f] + v_k T[:, t] + b_k), a random-feature mean
        embedding (Rahimi & Recht 2008) of each pair's joint distribution. Its mean and its standard
        deviation over the pairs are stored: 2 K numbers.
kernels For Gaussian kernels G_j = exp(-g_j |z - z'|² / p) of decreasing width: the mean of G_j, the
        mean of G_j T T'/c (how similar the targets of neighboring rows are), and the share of a row
        itself among its neighbors in G_j: 3 J numbers. These are norms of the joint embedding at
        each scale. They show noise and smoothness of the target even where no single feature does.

A generator of this package (splitmix64) draws the random features, so they are the same on every
machine and with every version of numpy. The numbers are rounded. All of them are means over n
rows. Like meta-features, they reveal the shape of distributions (roughly, the histogram of a
random feature and its relation to the target), not the values of single rows. The fewer rows, the
more they reveal, so tables with fewer than `MIN_ROWS` rows get no sketch, and the sketch of a table
with fewer than 100 rows is never stored (`_disclosure`). Whoever guesses the whole table can check
the guess.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import jv, ndtri

SKETCH_FORMAT = 1
"""Raise it when the meaning of the numbers changes. Different formats are not compared."""

MIN_ROWS = 10
MAX_TARGETS = 10
MAX_ROWS = 500
N_FEATURES = 64
DIGITS = 5
MAX_ABS_Z = 5.0
BLOCK_CELLS = 1 << 11  # whose cosines are computed at once, so that they stay in the cache
WAVE_ERROR = 1e-14  # coefficients below it are left out: see `_waves`
WIDTHS = 2.0 ** np.arange(-3, 8)  # g_j: from kernels over all rows to kernels over one neighbor


def random_features(n: int = N_FEATURES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frequencies w, v and phases b of the random features, each (n,); two scales alternate.

    >>> [array[:2].round(3).tolist() for array in random_features()]
    [[0.834, -0.345], [-0.679, -1.195], [3.745, 5.738]]
    """
    u = _splitmix64(3 * n).reshape(3, n)
    scale = np.where(np.arange(n) % 2, 2.0, 0.7)
    return scale * ndtri(u[0]), scale * ndtri(u[1]), 2 * np.pi * u[2]


def _splitmix64(n: int, seed: int = 0) -> np.ndarray:
    """Draw n numbers in (0, 1) by the generator of Steele, Lea & Flood. They must never change."""
    x = np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return ((x >> np.uint64(11)).astype(float) + 0.5) / 2.0**53


def sketch(
    Z: np.ndarray, target: np.ndarray | None, is_classification: bool
) -> dict[str, Any] | None:
    """Sketch standardized columns and a target; None if there are too few rows or no columns.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Columns that vary, standardized.
    target : ndarray of shape (n, c) or None
        Outputs; NaN where missing. In a classification the first output holds codes of the classes.
    is_classification : bool
    """
    T = standardize_targets(target, is_classification, len(Z))
    is_known = np.isfinite(T).all(axis=1)
    Z, T = Z[is_known], T[is_known]
    if len(Z) < MIN_ROWS or not Z.shape[1]:
        return None
    rows = _choose_rows(Z)
    Z, T = Z[rows], T[rows]
    Z = np.clip(Z, -MAX_ABS_Z, MAX_ABS_Z)  # limits the influence of a single row
    parts = {"pairs": _embed_pairs(Z, T), "kernels": _kernel_means(Z, T)}
    rounded = {name: part.round(DIGITS).tolist() for name, part in parts.items()}
    return {"format": SKETCH_FORMAT} | rounded


def _choose_rows(Z: np.ndarray) -> np.ndarray:
    """Choose at most `MAX_ROWS` rows, evenly spaced in the order of their content."""
    if len(Z) <= MAX_ROWS:
        return np.arange(len(Z))
    order = np.argsort(np.round((Z * Z * Z).sum(axis=1), 6), kind="stable")
    return order[np.linspace(0, len(Z) - 1, MAX_ROWS).round().astype(int)]


def standardize_targets(target: np.ndarray | None, is_classification: bool, n: int) -> np.ndarray:
    """T: one standardized column per class or output; one column of zeros without a target."""
    if target is None:
        return np.zeros((n, 1))
    if not is_classification:
        T = target[:, :MAX_TARGETS]
        return _standardize(T / np.maximum(np.nanmax(np.abs(T), axis=0), 1e-300))
    labels, counts = np.unique(target[np.isfinite(target[:, 0]), 0], return_counts=True)
    labels = labels[np.argsort(-counts, kind="stable")[:MAX_TARGETS]]
    T = _standardize((target[:, [0]] == labels).astype(float))
    return np.where(np.isfinite(target[:, [0]]), T, np.nan)


def _standardize(T: np.ndarray) -> np.ndarray:
    std = np.nanstd(T, axis=0)
    return (T - np.nanmean(T, axis=0)) / np.where(std > 1e-12, std, 1.0)


def _embed_pairs(Z: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Mean and standard deviation over the pairs of their mean embeddings; (2 K,)."""
    _, v, b = random_features()
    t = v[:, None, None] * T.T + b[:, None, None]
    cos_t, sin_t = np.cos(t), np.sin(t)  # (K, c, n)
    E = np.empty((N_FEATURES, T.shape[1], Z.shape[1]))
    step = max(1, BLOCK_CELLS // len(Z))
    for start in range(0, Z.shape[1], step):
        columns = slice(start, start + step)
        # cos(x + t) = cos x cos t - sin x sin t turns the sum over rows into a product of matrices.
        cos_x, sin_x = _waves(Z[:, columns])
        E[:, :, columns] = (cos_t @ cos_x - sin_t @ sin_x) / len(Z)
    return np.concatenate([E.mean(axis=(1, 2)), E.std(axis=(1, 2))])


def _waves(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """cos(w_k z) and sin(w_k z) of cells in [-A, A], A = `MAX_ABS_Z`; (n, p) -> 2 x (K, n, p).

    With x = z / A, a = A w, Chebyshev polynomials T_j and Bessel functions J_j (Abramowitz & Stegun
    1964, 9.1.44 and 9.1.45): cos(a x) = J_0(a) + 2 sum_j (-1)^j J_2j(a) T_2j(x) and
    sin(a x) = 2 sum_j (-1)^j J_2j+1(a) T_2j+1(x). All frequencies share the polynomials, so this
    takes a fifth of the time of all cosines and sines.
    """
    x = z.ravel() / MAX_ABS_Z
    y = 4.0 * x * x - 2.0  # T_j+2 = 2 T_2 T_j - T_j-2
    waves = []
    for coefficients, first, second in zip(
        _wave_coefficients(), (np.ones_like(x), x), (y / 2.0, x * (y - 1.0)), strict=True
    ):
        polynomials = np.empty((len(coefficients), len(x)))
        polynomials[0], polynomials[1] = first, second
        for j in range(2, len(polynomials)):
            np.multiply(y, polynomials[j - 1], out=polynomials[j])
            polynomials[j] -= polynomials[j - 2]
        waves.append((coefficients.T @ polynomials).reshape(-1, *z.shape))
    return waves[0], waves[1]


@cache
def _wave_coefficients() -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the even and of the odd polynomials; 2 x (J, K)."""
    a = MAX_ABS_Z * random_features()[0]
    j = np.arange(int(np.abs(a).max()) + 40)[:, None]
    coefficients = np.where(j == 0, 1.0, 2.0) * (-1.0) ** (j // 2) * jv(j, a)
    n = int(np.flatnonzero(np.abs(coefficients).max(axis=1) > WAVE_ERROR)[-1]) + 1
    return coefficients[:n:2], coefficients[1:n:2]


def _kernel_means(Z: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Means of G_j, of G_j with the products of targets, and each row's share of itself; (3 J,)."""
    n = len(Z)
    norms = (Z * Z).sum(axis=1)
    squares = np.maximum(norms[:, None] + norms - 2 * Z @ Z.T, 0) / Z.shape[1]
    target_products = T @ T.T / T.shape[1]
    G = np.exp(-WIDTHS[0] * squares)
    rows = []
    for _ in WIDTHS:
        degree = G.sum(axis=1)
        np.fill_diagonal(G, 0.0)  # leave out each row's similarity to itself
        mass = G.sum()
        rows.append([mass / n**2, np.vdot(G, target_products) / (mass + n), (1 / degree).mean()])
        np.fill_diagonal(G, 1.0)
        G *= G  # half the squared width
    return np.array(rows).T.ravel()
