"""Handcrafted meta-features: what can be said of a data set in a few dozen numbers.

The groups are those of manualBO (Law et al. 2019), plus log rows, log columns and log classes
(Yogatama & Mann 2014). Notation: V the numeric view of X, (n, p), finite, n <= `MAX_ROWS`,
p <= `MAX_COLUMNS`; Z its columns that vary, standardized, (n, q); t the target, (n,).

Each function returns a dict of its own group, and nothing for what is not defined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from sktransfer.dataset._fingerprint import NUMERIC, Table, as_floats, as_number

MAX_ROWS = 1000
MAX_COLUMNS = 100
MAX_LANDMARK_ROWS = 500

Predictor = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # (Z_train, t_train, Z_test) -> t_test


def choose(n: int, size: int) -> np.ndarray:
    """Return at most `size` of the numbers below n, sorted; the same ones every time."""
    if n <= size:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def numeric_view(table: Table, rows: np.ndarray, max_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Read some rows and columns as numbers.

    Returns
    -------
    values : array of shape (len(rows), k), k <= max_columns
        NaN where a cell is missing; categories as ordinal codes.
    categorical : bool array of shape (k,)
    """
    if table.form == "sparse":
        values = _sparse_view(table.data[rows], max_columns)
        return values, np.zeros(values.shape[1], dtype=bool)
    columns = choose(table.n_columns or 0, max_columns)
    if table.form == "dense" and table.data.dtype.kind in NUMERIC:
        # Indexing all axes at once gathers the chosen pixels of an image, and only those.
        place = np.unravel_index(columns, table.data.shape[1:])
        values = as_floats(table.data[(rows[:, None], *place)])
        return values, np.zeros(len(columns), dtype=bool)
    read = [numeric_column(table.column(j, rows)) for j in columns]
    values = np.array([column for column, _ in read]).reshape(len(columns), len(rows)).T
    return values, np.array([is_category for _, is_category in read], dtype=bool)


def _sparse_view(X: Any, max_columns: int) -> np.ndarray:
    """Densify the columns with most entries: of 100,000 words, a random hundred would be all zero."""
    entries = np.bincount(X.indices, minlength=X.shape[1])
    fullest = np.sort(np.argsort(-entries, kind="stable")[:max_columns])
    return X[:, fullest].toarray().astype(np.float64)


def numeric_column(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Read one column as floats; a column that is not all numbers becomes codes, in the order of its texts.

    >>> numeric_column(np.array(["b", "a", None, "b"], dtype=object))
    (array([ 1.,  0., nan,  1.]), True)
    """
    if values.dtype.kind in NUMERIC:
        return as_floats(values), False
    cells = values.tolist()
    try:
        known = {cell: as_number(cell) for cell in set(cells)}
    except TypeError:  # cells that cannot be keys, such as lists
        cells = [str(cell) for cell in cells]
        known = {cell: as_number(cell) for cell in set(cells)}
    categorical = None in known.values()
    if categorical:
        present = {cell for cell, number in known.items() if number is None or not np.isnan(number)}
        codes = {text: float(code) for code, text in enumerate(sorted({str(cell) for cell in present}))}
        known = {cell: codes[str(cell)] if cell in present else np.nan for cell in known}
    return np.array([known[cell] for cell in cells], dtype=np.float64), categorical


def complete(values: np.ndarray) -> np.ndarray:
    """Replace what is not finite by the median of its column; 0 where a column has nothing finite."""
    absent = ~np.isfinite(values)
    if not absent.any():
        return values
    values = np.where(absent, np.nan, values)
    return np.where(absent, np.nan_to_num(np.nanmedian(values, axis=0)), values)


@dataclass(frozen=True)
class Target:
    """What is known of y: its kind, its values at the chosen rows, its class ratios (largest first).

    ``values`` is (len(rows), n_outputs), NaN where missing, classes of the first output as codes;
    ``ratios`` belong to the first output, and are None if that is not made of classes.
    """

    kind: str = "unsupervised"
    values: np.ndarray | None = None
    ratios: np.ndarray | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs, 0 without a target."""
        return 0 if self.values is None else self.values.shape[1]


def read_target(y: Any, rows: np.ndarray) -> Target:
    """Tell the kind of y, and read the chosen rows of it as numbers."""
    if y is None:
        return Target()
    y = y.tocsr() if sparse.issparse(y) else np.asarray(y)
    y = y.ravel() if y.ndim == 2 and y.shape[1] == 1 and not sparse.issparse(y) else y
    first = y if y.ndim == 1 else y[:, [0]].toarray().ravel() if sparse.issparse(y) else y[:, 0]
    numbers, categorical = numeric_column(first)
    finite = np.isfinite(numbers)
    ratios = None
    if categorical or _has_text(first) or _are_classes(numbers[finite]):
        _, codes, counts = np.unique(numbers[finite], return_inverse=True, return_counts=True)
        numbers[finite] = codes
        ratios = np.sort(counts / counts.sum())[::-1]
    if y.ndim == 1:
        kind = "regression" if ratios is None else "classification"
        return Target(kind, numbers[rows, None], ratios)
    others = y[rows].toarray() if sparse.issparse(y) else y[rows].reshape(len(rows), -1)
    values = np.column_stack([numbers[rows], *(numeric_column(column)[0] for column in others.T[1:])])
    return Target(_kind_of_outputs(y), values, ratios)


def _has_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind in "OUS" and any(isinstance(label, (str, bytes)) for label in labels[:MAX_ROWS])


def _are_classes(numbers: np.ndarray) -> bool:
    """Tell classes from amounts.

    scikit-learn calls every target of whole numbers "multiclass". Many values that hardly repeat
    (the diabetes data: 214 in 442 rows) are taken for amounts here.
    """
    if not len(numbers) or type_of_target(numbers) not in ("binary", "multiclass"):
        return False
    n_values = len(np.unique(numbers))
    return n_values <= 20 or 5 * n_values <= len(numbers)


def _kind_of_outputs(y: Any) -> str:
    try:
        return "multilabel" if type_of_target(y) == "multilabel-indicator" else "multioutput"
    except (TypeError, ValueError):  # missing values, or text beside numbers
        return "multioutput"


def sizes(table: Table, target: Target) -> dict[str, float]:
    """Logarithms of the sizes that are known."""
    known = {"rows": table.n_rows, "columns": table.n_columns, "outputs": target.n_outputs}
    known["classes"] = 0 if target.ratios is None else len(target.ratios)
    return {f"log_{name}": float(np.log(size)) for name, size in known.items() if size}


def text_lengths(texts: list, rows: np.ndarray) -> dict[str, float]:
    """Logarithms of the texts' lengths."""
    lengths = np.log1p([len(texts[i]) for i in rows if isinstance(texts[i], (str, bytes))])
    return _summary("log_length", lengths)


def cell_shares(values: np.ndarray, categorical: np.ndarray) -> dict[str, float]:
    """Share of cells that are missing, and of columns that are categories."""
    missing = np.isnan(values)
    return {"share_missing": float(missing.mean()), "share_categorical": float(categorical.mean())}


def standardize(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Z (n, q) and the standard deviations (q,) of its columns before."""
    values = complete(values)
    largest = np.abs(values).max(axis=0, initial=0.0)
    largest[largest == 0] = 1.0
    scaled = values / largest  # so that squares of huge values stay finite
    scaled -= scaled.mean(axis=0)
    std = scaled.std(axis=0)
    varies = std > 1e-12
    return scaled[:, varies] / std[varies], std[varies] * largest[varies]


def column_shape(Z: np.ndarray) -> dict[str, float]:
    """Skewness and kurtosis of the columns."""
    cubes = Z**3
    kurtosis = (cubes * Z).mean(axis=0) - 3.0
    return _summary("skewness", cubes.mean(axis=0)) | _summary("kurtosis", kurtosis)


def column_pairs(Z: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """Correlation and covariance of the pairs of columns; the covariance c as sign(c) log(1 + |c|)."""
    pairs = np.triu_indices(Z.shape[1], k=1)
    correlation = (Z.T @ Z / len(Z))[pairs]
    covariance = np.nan_to_num(correlation * std[pairs[0]] * std[pairs[1]])
    logs = np.sign(covariance) * np.log1p(np.abs(covariance))
    return {**_summary("correlation", correlation), **_summary("covariance", logs)}


def principal_components(Z: np.ndarray) -> dict[str, float]:
    """Shape of the first principal component, and the share of components that hold 95 % of the variance."""
    if not Z.shape[1]:
        return {}
    variances, directions = np.linalg.eigh(Z.T @ Z / len(Z))
    first = Z @ directions[:, -1]
    first /= first.std()
    held = np.cumsum(variances[::-1]) / variances.sum()
    return {
        "component_skewness": float(abs(np.mean(first**3))),  # a direction has no sign, nor has its skewness
        "component_kurtosis": float(np.mean(first**4) - 3.0),
        "components_95": float((np.searchsorted(held, 0.95 - 1e-9) + 1) / len(held)),
    }


def target_statistics(target: Target) -> dict[str, float]:
    """Class ratios and their entropy (1 if all are alike), or the moments of y scaled to [0, 1]."""
    if target.values is None:
        return {}
    ratios = target.ratios
    if ratios is not None:
        entropy = -np.sum(ratios * np.log(ratios)) / np.log(len(ratios)) if len(ratios) > 1 else 0.0
        return {**_summary("class_ratio", ratios), "class_entropy": float(entropy)}
    t = target.values[:, 0]
    t = to_unit_interval(t[np.isfinite(t)])
    if not len(t):
        return {}
    z = (t - t.mean()) / t.std()
    return {
        "target_mean": float(t.mean()),
        "target_std": float(t.std()),
        "target_skewness": float(np.mean(z**3)),
        "target_kurtosis": float(np.mean(z**4) - 3.0),
    }


def to_unit_interval(t: np.ndarray) -> np.ndarray:
    """Scale to [0, 1]; halved first, since the span of huge values is not finite. Constants become 0."""
    low, high = (t.min() / 2, t.max() / 2) if len(t) else (0.0, 0.0)
    return (t / 2 - low) / (high - low) if high > low else np.zeros_like(t)


def split(Z: np.ndarray, t: np.ndarray, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return (train, test) rows of one hold-out split, every third row of each class to test.

    Rows are taken in the order of what is in them, not of where they stand, so that the order of rows,
    columns and labels does not matter.
    """
    within = np.round((Z**3).sum(axis=1), 6)
    groups = [np.flatnonzero(t == label) for label in np.unique(t)] if classes else [np.arange(len(t))]
    share = min(1.0, MAX_LANDMARK_ROWS / len(t))
    train, test = [], []
    for rows in groups:
        rows = rows[np.lexsort((within[rows], t[rows]))]
        rows = rows[np.floor(np.arange(len(rows)) * share) != np.floor((np.arange(len(rows)) - 1) * share)]
        train.append(np.delete(rows, np.s_[1::3]))
        test.append(rows[1::3])
    return np.concatenate(train), np.concatenate(test)


@dataclass(frozen=True)
class HeldOut:
    """What landmarks learn from and are judged on, blind to the order of rows, columns and labels."""

    Z: np.ndarray
    t: np.ndarray
    Z_test: np.ndarray
    t_test: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray, t: np.ndarray, classes: bool) -> HeldOut:
        """Of standardized columns (n, q) and a target (n,)."""
        Z = Z[:, np.lexsort((np.round((Z**4).mean(axis=0), 6), np.round((Z**3).mean(axis=0), 6)))]
        train, test = split(Z, t, classes)
        return cls(Z[train], t[train], Z[test], t[test])


def landmark(predict: Predictor, data: HeldOut, classes: bool) -> float:
    """Score a cheap model in [-1, 1]: 1 is perfect, 0 no better than the majority class or the mean.

    NaN if the held-out rows leave nothing to predict.
    """
    predicted, truth = predict(data.Z, data.t, data.Z_test), data.t_test
    if classes:
        labels, counts = np.unique(data.t, return_counts=True)
        loss, base = np.mean(predicted != truth), np.mean(truth != labels[counts.argmax()])
    else:
        loss, base = np.mean((predicted - truth) ** 2), np.var(truth)
    return float(np.clip(1.0 - loss / base, -1.0, 1.0)) if base > 0 else np.nan


def landmark_models(classes: bool) -> dict[str, Predictor]:
    """Return the models by name. They are imported here, so that importing the package stays cheap."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if classes:
        linear, tree = LinearDiscriminantAnalysis(), DecisionTreeClassifier(random_state=0)
        models = {"linear": linear, "tree": tree, "bayes": GaussianNB()}
    else:
        models = {"linear": Ridge(), "tree": DecisionTreeRegressor(random_state=0)}
    return {"nearest": _nearest} | {name: partial(_fit_predict, model) for name, model in models.items()}


def _fit_predict(model: Any, Z: np.ndarray, t: np.ndarray, Z_test: np.ndarray) -> np.ndarray:
    return model.fit(Z, t).predict(Z_test)


def _nearest(Z: np.ndarray, t: np.ndarray, Z_test: np.ndarray) -> np.ndarray:
    """1-nearest neighbor: ||a - b||^2 = ||a||^2 - 2 ab + ||b||^2, of which ||a||^2 ranks nothing."""
    distance = (Z * Z).sum(axis=1) - 2.0 * Z_test @ Z.T  # (n_test, n_train)
    return t[distance.argmin(axis=1)]


def _summary(name: str, values: np.ndarray) -> dict[str, float]:
    if not len(values):
        return {}
    return {f"{name}_{what}": float(getattr(values, what)()) for what in ("min", "max", "mean", "std")}
