"""The ensemble of seven classifiers of Yogatama & Mann 2014, section 4.3 and Table 4.

Each classifier is trained in small numpy loops or by scikit-learn, and they vote with weights that
are hyperparameters as well: 23 + 7 = 30. Notation: n rows, p columns, k classes; X in [0, 1] after
scaling, Y (n, k) has 1 for the class of a row and -1 for the others.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.linear_model import SGDClassifier

Params = dict[str, Any]

CLASSIFIERS = ["winnow", "perceptron", "logistic", "bayes", "svm", "passive", "pamir"]
SPACE = {
    "winnow_epochs": randint(2, 21),
    "winnow_tol": loguniform(1e-4, 1),
    "winnow_bias_tol": loguniform(1e-4, 1),
    "winnow_margin": loguniform(1e-4, 1),
    "perceptron_average": [False, True],
    "perceptron_epochs": randint(5, 16),
    "logistic_l1": uniform(0, 10),
    "logistic_l2": uniform(0, 10),
    "logistic_max_iter": randint(2, 21),  # one epoch replaces 25 iterations
    "logistic_tol": loguniform(1e-7, 1e-3),
    "bayes_min_probability": loguniform(1e-4, 1e-2),
    "svm_degree": randint(1, 21),
    "svm_bias": loguniform(1e-2, 10),
    "svm_lambda": uniform(0.8, 0.4),
    "svm_max_iter": randint(10, 2001),  # a tenth of the paper's
    "svm_batch": randint(1, 6),
    "svm_l2": uniform(0, 100),
    "passive_sensitivity": uniform(0.5, 1),
    "passive_relaxation": uniform(0.5, 1),
    "passive_epochs": randint(5, 16),
    "pamir_bins": randint(5, 101),
    "pamir_rate": uniform(0.1, 0.8),
    "pamir_epochs": randint(3, 9),
} | {f"weight_{name}": uniform(0, 1) for name in CLASSIFIERS}
N_BINS = 5  # of the naive Bayes classifier
WINNOW_FACTOR = 1.1


def ensemble_votes(
    params: Params, X: np.ndarray, y: np.ndarray, others: list[np.ndarray], n_classes: int
) -> list[np.ndarray]:
    """Train all seven on (X, y) and return their weighted majority on other rows."""
    Y = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    trainers = [winnow, perceptron, logistic, naive_bayes, online_svm, passive_aggressive, pamir]
    votes = [np.zeros((len(rows), n_classes)) for rows in others]
    for name, trainer in zip(CLASSIFIERS, trainers, strict=True):
        own = {k.removeprefix(f"{name}_"): v for k, v in params.items() if k.startswith(f"{name}_")}
        for found, predicted in zip(votes, trainer(own, X, y, Y, others), strict=True):
            found[np.arange(len(found)), predicted] += params[f"weight_{name}"]
    return [found.argmax(axis=1) for found in votes]


def winnow(own: Params, X: np.ndarray, y: np.ndarray, Y: np.ndarray, others: list) -> list:
    """Balanced Winnow (Littlestone 1988), one against the rest; it stops if few weights change."""
    both = np.hstack([X, 1 - X, np.ones((len(X), 1))])
    up = np.ones((both.shape[1], Y.shape[1]))
    down = np.ones_like(up)
    for _ in range(int(own["epochs"])):
        before = up - down
        for x, signs in zip(both, Y, strict=True):
            wrong = signs * (x @ (up - down)) <= own["margin"] * len(x)
            step = WINNOW_FACTOR ** np.outer(x, signs * wrong)
            up, down = up * step, down / step
        scale = np.maximum(up, down).max(axis=0)
        up, down = up / scale, down / scale  # the sign of a score does not depend on it
        change = abs(up - down - before)
        if change[:-1].max() < own["tol"] and change[-1].max() < own["bias_tol"]:
            break
    return [
        (np.hstack([rows, 1 - rows, np.ones((len(rows), 1))]) @ (up - down)).argmax(axis=1)
        for rows in others
    ]


def _fitted(model: Any, X: np.ndarray, y: np.ndarray, others: list) -> list:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence warnings: the number of epochs is tuned
        model.fit(X, y)
    return [model.predict(rows) for rows in others]


def perceptron(own: Params, X: np.ndarray, y: np.ndarray, Y: np.ndarray, others: list) -> list:
    """The perceptron, with averaged weights or not."""
    model = SGDClassifier(
        loss="perceptron",
        penalty=None,
        learning_rate="constant",
        eta0=1.0,
        average=bool(own["average"]),
        max_iter=int(own["epochs"]),
        tol=None,
        random_state=0,
    )
    return _fitted(model, X, y, others)


def logistic(own: Params, X: np.ndarray, y: np.ndarray, Y: np.ndarray, others: list) -> list:
    """Logistic regression with an elastic net; the penalties are on the sum of the losses."""
    total = max(own["l1"] + own["l2"], 1e-6)
    model = SGDClassifier(
        loss="log_loss",
        penalty="elasticnet",
        alpha=total / len(X),
        l1_ratio=min(own["l1"] / total, 1.0),
        max_iter=int(own["max_iter"]),
        tol=own["tol"],
        random_state=0,
    )
    return _fitted(model, X, y, others)


def naive_bayes(own: Params, X: np.ndarray, y: np.ndarray, Y: np.ndarray, others: list) -> list:
    """Naive Bayes on binned columns, no probability below a minimum."""
    one_hot = (Y > 0).astype(float)
    prior = np.log(np.maximum(one_hot.mean(axis=0), own["min_probability"]))
    bins = _bins(X)
    shares = np.stack([one_hot.T @ (bins == b) for b in range(N_BINS)])  # (bins, k, p)
    shares = shares / np.maximum(one_hot.sum(axis=0), 1)[:, None]
    logs = np.log(np.maximum(shares, own["min_probability"]))
    return [
        (prior + sum((_bins(rows) == b) @ logs[b].T for b in range(N_BINS))).argmax(axis=1)
        for rows in others
    ]


def _bins(X: np.ndarray) -> np.ndarray:
    return np.clip((X * N_BINS).astype(int), 0, N_BINS - 1)


def online_svm(own: Params, X: np.ndarray, y: np.ndarray, Y: np.ndarray, others: list) -> list:
    """A kernel SVM with a polynomial kernel, by stochastic subgradients (Pegasos)."""

    def kernel(A: np.ndarray) -> np.ndarray:
        return ((own["lambda"] * A @ X.T / X.shape[1] + own["bias"]) / (1 + own["bias"])) ** int(
            own["degree"]
        )

    K, rng = kernel(X), np.random.default_rng(0)
    strength = (own["l2"] + 0.01) / len(X)
    chosen = rng.integers(len(X), size=(int(own["max_iter"]), int(own["batch"])))
    counts = np.zeros_like(Y)  # how often a row was inside the margin
    for t, rows in enumerate(chosen, 1):
        margin = Y[rows] * (K[rows] @ (counts * Y)) / (strength * t * len(rows))
        counts[rows] += margin < 1
    return [(kernel(rows) @ (counts * Y)).argmax(axis=1) for rows in others]


def passive_aggressive(
    own: Params, X: np.ndarray, y: np.ndarray, Y: np.ndarray, others: list
) -> list:
    """Passive-aggressive updates (Crammer et al. 2006, PA-I), one against the rest."""
    W = _passive_weights(X, Y, own["sensitivity"], own["relaxation"], int(own["epochs"]))
    return [(_with_bias(rows) @ W).argmax(axis=1) for rows in others]


def pamir(own: Params, X: np.ndarray, y: np.ndarray, Y: np.ndarray, others: list) -> list:
    """IKPamir: passive-aggressive updates with an intersection kernel.

    The kernel min(x, x') of a column is, up to the width of a bin, the inner product of unary
    codes (Maji et al. 2008): how far x fills each bin.
    """
    n = int(own["bins"])

    def unary(A: np.ndarray) -> np.ndarray:
        filled = np.clip(A[:, :, None] * n - np.arange(n), 0, 1)
        return filled.reshape(len(A), -1) / np.sqrt(n)

    W = _passive_weights(unary(X), Y, 1.0, own["rate"], int(own["epochs"]))
    return [(_with_bias(unary(rows)) @ W).argmax(axis=1) for rows in others]


def _with_bias(X: np.ndarray) -> np.ndarray:
    return np.hstack([X, np.ones((len(X), 1))])


def _passive_weights(
    X: np.ndarray, Y: np.ndarray, margin: float, limit: float, epochs: int
) -> np.ndarray:
    X = _with_bias(X)
    W, squares = np.zeros((X.shape[1], Y.shape[1])), (X * X).sum(axis=1)
    for _ in range(epochs):
        for x, signs, square in zip(X, Y, squares, strict=True):
            loss = np.maximum(margin - signs * (x @ W), 0)
            if loss.any():
                W += np.outer(x, signs * np.minimum(limit, loss / square))
    return W
