"""Synthetic tables from a broad prior.

Notation: n rows, p columns, Z (n, p) the latent columns that determine the target, X the columns
that are observed, f (n,) a signal with mean 0 and standard deviation 1.

A table is drawn in four steps: latent columns with some dependence between them, one or several
signals, a target with noise, and the distortion of the latent columns into observed ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Generator = np.random.Generator
MAX_COLUMNS = 100
MAX_CLASSES = 15

ACTIVATIONS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    np.tanh,
    np.sin,
    np.abs,
    np.sign,
    lambda a: np.maximum(a, 0.0),
    lambda a: np.exp(-a * a),
    lambda a: a,
    lambda a: a * np.abs(a),
)


def draw_table(rng: Generator, task: str) -> tuple[np.ndarray, np.ndarray]:
    """Draw X and y of one table. `generator` checks whether it can be cross-validated."""
    n, p = draw_size(rng, 80, 1000), draw_size(rng, 2, MAX_COLUMNS)
    if task == "classification" and rng.random() < 0.2:
        Z, y = draw_class_clusters(rng, n, p)
    else:
        Z = standardize(draw_latent(rng, n, p))
        if task == "regression":
            y = draw_amounts(rng, Z)
        else:
            y, margin = draw_classes(rng, Z)
            if rng.random() < 0.35:  # classes with a gap between them
                kept = margin >= np.quantile(margin, rng.uniform(0.05, 0.5))
                Z, y = Z[kept], y[kept]
    return distort_columns(rng, Z), y


def draw_size(rng: Generator, low: float, high: float) -> int:
    """Draw a whole number between two bounds, uniformly on a log scale."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high))) + 0.5)


def standardize(values: np.ndarray) -> np.ndarray:
    """Center and scale each column (or one vector); constants become 0."""
    centered = values - values.mean(axis=0)
    std = centered.std(axis=0)
    return centered / np.where(std > 1e-9, std, 1.0)


def draw_activation(rng: Generator) -> Callable[[np.ndarray], np.ndarray]:
    """Draw a nonlinear function of one variable."""
    return ACTIVATIONS[rng.integers(len(ACTIVATIONS))]


# -- latent columns --------------------------------------------------------------------------------


def draw_latent(rng: Generator, n: int, p: int) -> np.ndarray:
    """Draw columns: independent, correlated, low-rank, clustered, causal or serial."""
    makers = (_independent, _correlated, _low_rank, _clustered, _causal, _serial)
    return makers[rng.choice(len(makers), p=(0.2, 0.2, 0.2, 0.15, 0.2, 0.05))](rng, n, p)


def _noise(rng: Generator, shape: tuple[int, ...]) -> np.ndarray:
    kind = rng.integers(4)
    if kind == 0:
        return rng.uniform(-1.7, 1.7, shape)
    if kind == 1:
        return np.clip(rng.standard_t(rng.uniform(2.5, 6), shape), -20, 20)
    return rng.standard_normal(shape)


def _independent(rng: Generator, n: int, p: int) -> np.ndarray:
    return np.column_stack([_noise(rng, (n,)) for _ in range(p)])


def _correlated(rng: Generator, n: int, p: int) -> np.ndarray:
    spectrum = np.arange(1, p + 1) ** -rng.uniform(0.2, 2.0)
    rotation = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return (_noise(rng, (n, p)) * np.sqrt(spectrum)) @ rotation


def _low_rank(rng: Generator, n: int, p: int) -> np.ndarray:
    rank = int(rng.integers(1, max(2, p // 2) + 1))
    factors = _noise(rng, (n, rank))
    loadings = rng.standard_normal((rank, p)) * rng.uniform(0.5, 2.0)
    smooth = draw_activation(rng)(factors @ loadings / np.sqrt(rank) + rng.standard_normal(p))
    return standardize(smooth) + rng.uniform(0.0, 0.6) * rng.standard_normal((n, p))


def _clustered(rng: Generator, n: int, p: int) -> np.ndarray:
    k = int(rng.integers(2, 16))
    centers = rng.standard_normal((k, p)) * rng.uniform(0.5, 4.0)
    member = rng.choice(k, n, p=rng.dirichlet(np.full(k, 2.0)))
    width = rng.gamma(3.0, 0.3, (k, 1))[member]
    return centers[member] + width * rng.standard_normal((n, p))


def _causal(rng: Generator, n: int, p: int) -> np.ndarray:
    """Each column is a noisy function of a few earlier columns."""
    Z = _noise(rng, (n, p))
    for j in range(1, p):
        if rng.random() < 0.75:
            parents = rng.choice(j, min(j, int(rng.integers(1, 4))), replace=False)
            value = draw_activation(rng)(Z[:, parents] @ rng.standard_normal(len(parents)))
            Z[:, j] = standardize(value) + rng.uniform(0.05, 1.5) * Z[:, j]
    return Z[:, rng.permutation(p)]


def _serial(rng: Generator, n: int, p: int) -> np.ndarray:
    """Rows are noisy curves, as spectra or recordings are."""
    at, k = np.linspace(0, 1, p), int(rng.integers(1, 6))
    frequency, phase = rng.uniform(0.5, 6, (k, 1)), rng.uniform(0, 6.3, (k, 1))
    curves = np.sin(2 * np.pi * frequency * at + phase)  # (k, p)
    return rng.standard_normal((n, k)) @ curves + rng.uniform(0, 0.7) * rng.standard_normal((n, p))


# -- signals ---------------------------------------------------------------------------------------


def draw_signal(rng: Generator, Z: np.ndarray) -> np.ndarray:
    """Draw a function of the latent columns, standardized; of shape (n,)."""
    p = Z.shape[1]
    q = p if rng.random() < 0.2 else min(p, draw_size(rng, 1, min(p, 12)))
    S = Z[:, rng.choice(p, q, replace=False)]
    makers = (_linear, _network, _smooth, _trees, _interactions, _distances, _additive)
    weights = (0.17, 0.17, 0.16, 0.2, 0.09, 0.09, 0.12)
    f = standardize(makers[rng.choice(len(makers), p=weights)](rng, S))
    if rng.random() < 0.25:
        other = makers[rng.choice(len(makers), p=weights)](rng, S)
        f = standardize(f + rng.uniform(0.2, 1.5) * standardize(other))
    return np.nan_to_num(f)


def _linear(rng: Generator, S: np.ndarray) -> np.ndarray:
    return S @ (rng.standard_normal(S.shape[1]) * rng.gamma(0.7, 1.0, S.shape[1]))


def _network(rng: Generator, S: np.ndarray) -> np.ndarray:
    H = S
    for _ in range(rng.integers(1, 3)):
        width = draw_size(rng, 3, 40)
        W = rng.standard_normal((H.shape[1], width)) * rng.uniform(0.3, 2.0)
        H = draw_activation(rng)(H @ W / np.sqrt(H.shape[1]) + rng.standard_normal(width))
        H = standardize(H)
    return H @ rng.standard_normal(H.shape[1])


def _smooth(rng: Generator, S: np.ndarray, n_features: int = 200) -> np.ndarray:
    """A Gaussian process by random features, with a length scale for each column."""
    q = S.shape[1]
    scale = np.exp(rng.uniform(np.log(0.7), np.log(6.0))) * rng.gamma(4.0, 0.25, q)
    W = rng.standard_normal((q, n_features)) / np.maximum(scale, 0.05)[:, None] / np.sqrt(q)
    waves = np.cos(2 * S @ W + rng.uniform(0, 6.3, n_features))
    return waves @ rng.standard_normal(n_features)


def _trees(rng: Generator, S: np.ndarray) -> np.ndarray:
    """A sum of trees that split at observed values; deep trees are rough."""
    out, max_depth = np.zeros(len(S)), int(rng.integers(1, 6))
    for _ in range(draw_size(rng, 1, 15)):
        depth = int(rng.integers(1, max_depth + 1))
        leaf = np.zeros(len(S), dtype=int)
        for level in range(depth):
            # Each node of a level splits in its own column, at the value of a random row.
            columns = rng.integers(S.shape[1], size=2**level)
            cuts = S[rng.integers(len(S), size=2**level), columns]
            leaf = 2 * leaf + (S[np.arange(len(S)), columns[leaf]] > cuts[leaf])
        out += rng.standard_normal(2**depth)[leaf]
    return out


def _interactions(rng: Generator, S: np.ndarray) -> np.ndarray:
    out = np.zeros(len(S))
    for _ in range(rng.integers(1, 5)):
        part = S[:, rng.choice(S.shape[1], min(S.shape[1], int(rng.integers(2, 4))), replace=False)]
        part = np.sign(part) if rng.random() < 0.4 else np.clip(part, -3, 3)
        out += rng.standard_normal() * part.prod(axis=1)
    return out


def _distances(rng: Generator, S: np.ndarray) -> np.ndarray:
    """A function of the distance to the nearest of a few centers."""
    k = int(rng.integers(1, 6))
    centers = S[rng.choice(len(S), k, replace=False)] * rng.uniform(0, 1)
    square = ((S[:, None, :] - centers) ** 2).sum(axis=2)  # (n, k)
    nearest = np.sqrt(square.min(axis=1) / S.shape[1])
    if rng.random() < 0.3:
        return rng.standard_normal(k)[square.argmin(axis=1)] + 0.3 * nearest
    return np.sin(nearest * rng.uniform(2, 8)) if rng.random() < 0.4 else nearest


def _additive(rng: Generator, S: np.ndarray) -> np.ndarray:
    out = np.zeros(len(S))
    for column in S.T:
        shape = draw_activation(rng)(column * rng.uniform(0.5, 3.0) + rng.standard_normal())
        out += rng.gamma(0.7, 1.0) * standardize(shape) * rng.choice((-1, 1))
    return out


# -- targets ---------------------------------------------------------------------------------------


def draw_n_classes(rng: Generator) -> int:
    """Two classes in about half of the tables."""
    return 2 if rng.random() < 0.5 else draw_size(rng, 3, MAX_CLASSES)


def draw_classes(rng: Generator, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels, the largest of several signals or the quantiles of one, and their margins."""
    n, k = len(Z), draw_n_classes(rng)
    noise = 0.0 if rng.random() < 0.4 else np.exp(rng.uniform(np.log(0.03), np.log(1.0)))
    if rng.random() < 0.5:
        logits = np.column_stack([draw_signal(rng, Z) for _ in range(k)])
        logits += rng.standard_normal(k) * rng.choice((0.0, 0.5, 1.2))
        logits = logits + noise * rng.gumbel(size=(n, k))
        y = logits.argmax(axis=1)
        margin = np.sort(logits, axis=1)[:, -1] - np.sort(logits, axis=1)[:, -2]
    else:
        f = draw_signal(rng, Z) + noise * rng.standard_normal(n)
        shares = rng.dirichlet(np.full(k, np.exp(rng.uniform(-0.5, 3.0))))
        rank = f.argsort(kind="stable").argsort(kind="stable") / n
        cuts = np.cumsum(shares)[:-1]
        y = np.searchsorted(cuts, rank, side="right")
        margin = np.abs(rank[:, None] - cuts).min(axis=1)
        y = rng.permutation(k)[y] if rng.random() < 0.5 else y
    return flip_labels(rng, y, k) if rng.random() < 0.15 else y, margin


def draw_class_clusters(rng: Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw columns given the class: one or several clusters in some of the columns."""
    k = draw_n_classes(rng)
    n_clusters = k * int(rng.integers(1, 5))
    shares = rng.dirichlet(np.full(n_clusters, np.exp(rng.uniform(0.0, 3.0))))
    cluster = rng.choice(n_clusters, n, p=shares)
    relevant = rng.random(p) < rng.uniform(0.1, 1.0)
    centers = rng.standard_normal((n_clusters, p)) * np.exp(rng.uniform(-0.8, 1.3)) * relevant
    width = rng.gamma(2.0, 0.5, (n_clusters, 1)) if rng.random() < 0.5 else np.ones((n_clusters, 1))
    Z = centers[cluster] + width[cluster] * rng.standard_normal((n, p))
    if rng.random() < 0.4:
        Z = Z @ rng.standard_normal((p, p)) / np.sqrt(p)
    y = cluster % k
    return standardize(Z), flip_labels(rng, y, k) if rng.random() < 0.2 else y


def flip_labels(rng: Generator, y: np.ndarray, k: int) -> np.ndarray:
    """Replace some labels by random ones."""
    return np.where(rng.random(len(y)) < rng.uniform(0.01, 0.2), rng.integers(k, size=len(y)), y)


def draw_amounts(rng: Generator, Z: np.ndarray) -> np.ndarray:
    """Draw a regression target: a signal, noise that may depend on Z, and a transform of both."""
    n, f = len(Z), draw_signal(rng, Z)
    level = 0.0 if rng.random() < 0.2 else np.exp(rng.uniform(np.log(0.03), np.log(1.2)))
    noise = rng.standard_normal(n)
    if rng.random() < 0.25:
        noise = np.clip(rng.standard_t(2.5, n), -15, 15)
    if rng.random() < 0.3:
        noise *= np.exp(rng.uniform(0.3, 1.0) * draw_signal(rng, Z))
    return transform_amounts(rng, f + level * noise)


def transform_amounts(rng: Generator, y: np.ndarray) -> np.ndarray:
    """Skew, round, contaminate or rescale a target."""
    style, y = rng.random(), standardize(y)
    if style < 0.15:
        y = np.exp(rng.uniform(0.5, 1.5) * np.clip(y, -4, 4))
    elif style < 0.25:
        y = np.cbrt(y) if rng.random() < 0.5 else np.clip(y, -6, 6) ** 3
    elif style < 0.35:
        y = np.round(y * rng.uniform(8, 30))
    elif style < 0.42:
        y = np.where(rng.random(len(y)) < 0.03, y + 8 * rng.standard_normal(len(y)), y)
    return y * 10.0 ** rng.uniform(-2, 3) + rng.standard_normal() * 10


# -- observed columns ------------------------------------------------------------------------------


def distort_columns(rng: Generator, Z: np.ndarray) -> np.ndarray:
    """Turn latent columns into observed ones, of at most `MAX_COLUMNS` columns."""
    X, style = Z.copy(), rng.random()
    share = 1.0 if style < 0.12 else 0.0 if style < 0.5 else rng.uniform(0.05, 0.8)
    for j in np.flatnonzero(rng.random(X.shape[1]) < share):
        X[:, j] = distort_column(rng, X[:, j], discrete=style < 0.12)
    if rng.random() < 0.12:
        X = encode_one_hot(rng, X)
    if rng.random() < 0.25:
        n_more = draw_size(rng, 1, max(1.5, X.shape[1]))
        X = np.column_stack([X, _independent(rng, len(X), n_more)])
    X = X[:, rng.permutation(X.shape[1])[:MAX_COLUMNS]]
    if rng.random() < 0.6:  # measured in different units
        spread = rng.uniform(0.2, 2.0)
        X = X * 10.0 ** (spread * rng.standard_normal(X.shape[1])) + rng.standard_normal() * 3
    return remove_cells(rng, X) if rng.random() < 0.12 else X


def distort_column(rng: Generator, x: np.ndarray, discrete: bool) -> np.ndarray:
    """Make one column discrete, binary, skewed, heavy-tailed, rounded or noisy."""
    kind = 0 if discrete else rng.integers(6)
    if kind == 0:
        n_levels = int(rng.integers(2, 9))
        cuts = np.quantile(x, np.sort(rng.uniform(0.02, 0.98, n_levels - 1)))
        codes = np.searchsorted(cuts, x).astype(float)
        return rng.permutation(n_levels)[codes.astype(int)] if rng.random() < 0.3 else codes
    if kind == 1:
        return (x > np.quantile(x, rng.uniform(0.05, 0.95))).astype(float)
    if kind == 2:
        return np.exp(np.clip(x, -5, 5) * rng.uniform(0.5, 1.5))
    if kind == 3:
        return np.clip(x, -8, 8) ** 3
    if kind == 4:
        return np.round(x * rng.uniform(1, 5))
    return x + rng.uniform(0.1, 0.8) * rng.standard_normal(len(x))


def encode_one_hot(rng: Generator, X: np.ndarray) -> np.ndarray:
    """Cut some columns into a few levels, and replace them by their indicators."""
    parts = []
    for x in X.T:
        if sum(part.shape[1] for part in parts) >= MAX_COLUMNS:
            break
        if rng.random() < 0.6:
            cuts = np.quantile(x, np.sort(rng.uniform(0.05, 0.95, int(rng.integers(1, 6)))))
            codes = np.searchsorted(cuts, x)
            parts.append((codes[:, None] == np.arange(len(cuts) + 1)).astype(float))
        else:
            parts.append(x[:, None])
    return np.column_stack(parts)


def remove_cells(rng: Generator, X: np.ndarray) -> np.ndarray:
    """Make cells of some columns missing, at random or for large values."""
    X = X.astype(float)
    for j in np.flatnonzero(rng.random(X.shape[1]) < rng.uniform(0.1, 0.7)):
        gone = rng.random(len(X)) < rng.uniform(0.01, 0.3)
        if rng.random() < 0.3:
            gone &= X[:, j] > np.median(X[:, j])
        X[gone, j] = np.nan
    return X
