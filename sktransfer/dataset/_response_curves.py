"""Response curves: how well simple learners do on a data set as their complexity grows.

Each learner is evaluated along one axis of complexity. Neighbors and ridge regressions are scored
by leave-one-out in closed form, trees in three folds. The numbers say how smooth, how linear and
how noisy the data are, in the terms in which estimators are tuned.

Notation: Z the standardized columns, (n, p), n <= `MAX_ROWS`; t the target, (n,); k the number of
classes; T the target as columns, (n, m), m = k indicators of the classes, or m = 1 amount; D the
squared distances, (n, n).

All scores lie in [-1, 1]: 1 is perfect, and 0 is as good as a constant.

* Classification: (b - 1/k) / (1 - 1/k) for the balanced accuracy b. Names that end in ``_loss`` are
  1 - l / h for the log loss l and the entropy h of the classes. Names that end in ``_square`` are
  1 minus the squared error of T relative to its variance.
* Regression: R2.

The curves do not depend on the order of rows, columns and classes, nor on the units of the
columns. No row can be recovered from at most 81 scores of four digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.linalg import lapack

from sktransfer.dataset._fingerprint import mix_bits
from sktransfer.dataset._meta_features import order_columns, standardize
from sktransfer.dataset._table import (
    MatrixLike,
    Table,
    Target,
    TargetLike,
    choose_indices,
    read_numbers,
    read_table,
    read_target,
)

MAX_ROWS = 300
MAX_READ_ROWS = 1000  # from which MAX_ROWS are chosen by their content
MAX_COLUMNS = 300
MAX_CLASSES = 20  # the largest are used: of more, each would have few of the rows
MAX_TREE_COLUMNS = 60  # more columns are projected to their principal components
MIN_ROWS = 10
MAX_SCORE = 8.0  # standardized cells are clipped, since outliers dominate distances

N_NEIGHBORS = (1, 2, 3, 5, 8, 13, 21, 34, 55)
N_WEIGHTED = (5, 13, 34)
LOG_GAMMAS = (-4.0, -3.25, -2.5, -1.75, -1.0, -0.25, 0.5)  # widths exp(-gamma D), as in an SVC
LOG_RIDGES = (-3, -1, 1)
LOG_SLOPES = (-4, -2, 0, 2)  # ridges of the linear model, times n
LEAF_SIZES = (1, 2, 4, 8, 16, 32, 60)
DEPTHS = (1, 2, 3, 5, 8)
N_FOLDS = 3

Curves = dict[str, float]


def response_curves(X: MatrixLike, y: TargetLike, kind: str | None = None) -> Curves:
    """Compute the response curves of a data set.

    Parameters
    ----------
    X, y : anything GridSearchCV accepts
    kind : {"classification", "regression"}, optional
        What is predicted; by default as in `profile`.

    Returns
    -------
    dict of str to float
        Empty if X has no columns that vary, y does not vary, or there are fewer than ten rows. Of
        several outputs, the first is used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> curves = response_curves(*load_iris(return_X_y=True))
    >>> round(curves["knn_5"], 2), round(curves["depth_1"], 2)
    (0.92, 0.5)
    """
    table = read_table(X)
    rows = choose_indices(table.n_rows, MAX_READ_ROWS)
    return curves_of_table(table, rows, read_target(y, rows), kind)


def curves_of_table(
    table: Table, rows: np.ndarray, target: Target, kind: str | None = None
) -> Curves:
    """Compute the curves of a table and of its target at some rows."""
    if not table.n_columns or target.values is None:
        return {}
    is_classification = target.ratios is not None if kind is None else kind == "classification"
    values, _ = read_numbers(table, rows, MAX_COLUMNS)
    return compute_curves(values, target.values[:, 0], is_classification)


def compute_curves(values: np.ndarray, t: np.ndarray, is_classification: bool) -> Curves:
    """Compute the curves from numbers.

    Parameters
    ----------
    values : ndarray of shape (n, p)
        NaN where a cell is missing.
    t : ndarray of shape (n,)
        Codes of classes or amounts; NaN where missing.
    is_classification : bool
    """
    is_labeled = np.isfinite(t)
    values, t = values[is_labeled], t[is_labeled]
    if len(t) < MIN_ROWS or not np.ptp(t) > 0:
        return {}
    Z, _ = standardize(values)
    if not Z.shape[1]:
        return {}
    Z = _sort_columns(Z)
    if is_classification and len(np.unique(t)) > MAX_CLASSES:
        is_large = _number_classes(Z, t) < MAX_CLASSES
        Z, t = Z[is_large], np.unique(t[is_large], return_inverse=True)[1]
    order = _order_rows(Z, t, is_classification)[:MAX_ROWS]
    Z, t = np.clip(Z[order], -MAX_SCORE, MAX_SCORE), t[order]
    if not np.ptp(t) > 0:
        return {}
    if is_classification:
        t = _number_classes(Z, t)
    scorer = Scorer(t, is_classification)
    D = _squared_distances(Z)
    curves = _score_neighbors(D, scorer) | _score_kernels(D, scorer)
    curves |= _score_slopes(Z, scorer)
    curves |= _score_trees(Z, scorer)
    return {name: round(value, 4) for name, value in curves.items() if np.isfinite(value)}


def relative_curves(curves: Mapping[str, float]) -> Curves:
    """Subtract from each score the best score of its learner: 0 at the best complexity.

    Examples
    --------
    >>> relative_curves({"knn_1": 0.5, "knn_3": 0.75, "leaf_1": 0.25})
    {'knn_1': -0.25, 'knn_3': 0.0, 'leaf_1': 0.0}
    """
    best: dict[tuple[str, str], float] = {}
    for name, score in curves.items():
        best[_learner_of(name)] = max(score, best.get(_learner_of(name), score))
    return {name: score - best[_learner_of(name)] for name, score in curves.items()}


def relative_columns(names: Sequence[str], scores: np.ndarray) -> np.ndarray:
    """`relative_curves` of many data sets, whose scores are rows; (m, len(names)) -> the same.

    Examples
    --------
    >>> relative_columns(["knn_1", "knn_3", "leaf_1"], np.array([[0.5, 0.75, 0.25]]))
    array([[-0.25,  0.  ,  0.  ]])
    """
    relative, learners = np.array(scores, dtype=float), list(map(_learner_of, names))
    for learner in set(learners):
        columns = [i for i, each in enumerate(learners) if each == learner]
        own = relative[:, columns]
        best = np.where(np.isnan(own), -np.inf, own).max(axis=1, keepdims=True)
        relative[:, columns] = own - np.where(np.isfinite(best), best, np.nan)
    return relative


def _learner_of(name: str) -> tuple[str, str]:
    """The learner and the kind of score: ("knn", "loss") of "knn_5_loss"."""
    learner, *_, last = name.split("_")
    return learner, last if last in ("loss", "square") else ""


# -- rows and columns ------------------------------------------------------------------------------


def _sort_columns(Z: np.ndarray) -> np.ndarray:
    """Put the columns in an order that depends on their content only."""
    return Z[:, order_columns(Z)]


def _order_rows(Z: np.ndarray, t: np.ndarray, is_classification: bool) -> np.ndarray:
    """Put the rows in a random order that depends on their content only; classes take turns.

    Neighbors at equal distances are taken in this order. So it must look random: equal rows of
    different classes are not sorted by class.
    """
    content = np.rint((Z * Z * Z).sum(axis=1) * 1e6)
    keys = np.column_stack([content, t]).astype(np.int64 if is_classification else float)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    # Number the rows that are equal in content and target: they can be exchanged.
    is_new = np.any(np.diff(keys[order], axis=0, prepend=keys[order[:1]] - 1) != 0, axis=1)
    starts = np.flatnonzero(is_new)
    copy = np.empty(len(t), dtype=np.uint64)
    copy[order] = np.arange(len(t)) - np.repeat(starts, np.diff(np.append(starts, len(t))))
    code = mix_bits(content.astype(np.int64).view(np.uint64).copy()) + mix_bits(copy)
    if is_classification:  # numbers of classes depend on their names, sizes do not
        sizes = np.bincount(t.astype(int))[t.astype(int)].astype(np.uint64)
        code += mix_bits(sizes)
    code = mix_bits(code)
    if not is_classification:
        return np.argsort(code, kind="stable")
    rank = _rank_in_class(t, code)
    share = (rank + 0.5) / np.bincount(t.astype(int))[t.astype(int)]
    return np.lexsort((code, share))


def _rank_in_class(t: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Rank of each row among the rows of its class."""
    order = np.lexsort((code, t))
    starts = np.flatnonzero(np.diff(t[order], prepend=-1) != 0)
    rank = np.empty(len(t), dtype=int)
    rank[order] = np.arange(len(t)) - np.repeat(starts, np.diff(np.append(starts, len(t))))
    return rank


def _number_classes(Z: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Number the classes from 0 by size and content, since ties go to the lower number."""
    _, codes, counts = np.unique(t, return_inverse=True, return_counts=True)
    content = np.bincount(codes, weights=(Z * Z * Z).sum(axis=1)) / counts
    return np.lexsort((np.round(content, 6), -counts)).argsort()[codes]


def _squared_distances(Z: np.ndarray) -> np.ndarray:
    """D (n, n), rounded so that equal distances are equal."""
    G = Z @ Z.T
    squares = np.diag(G)
    return np.maximum(np.round(squares[:, None] + squares - 2.0 * G, 8), 0.0)


# -- scores ----------------------------------------------------------------------------------------


class Scorer:
    """Scores predictions of one target.

    Parameters
    ----------
    t : ndarray of shape (n,)
        Classes 0 .. k - 1, or amounts.
    is_classification : bool

    Attributes
    ----------
    T : ndarray of shape (n, m)
        Indicators of the classes, or the standardized amounts.
    """

    def __init__(self, t: np.ndarray, is_classification: bool):
        self.t, self.is_classification = t, is_classification
        if is_classification:
            self.T = (t[:, None] == np.arange(t.max() + 1)).astype(float)
            self._weights = self.T / self.T.sum(axis=0) / self.T.shape[1]
            shares = self.T.mean(axis=0)
            self._entropy = -np.sum(shares * np.log(shares))
        else:
            # Rounded, so that ties do not depend on the units.
            self.T = np.round((t - t.mean()) / t.std(), 9)[:, None]
        self.mean = self.T.mean(axis=0)
        self._variance = np.sum((self.T - self.mean) ** 2)

    def score(self, predicted: np.ndarray) -> float:
        """Score predictions of T, (n, m): balanced accuracy of the largest column, or R2."""
        if not self.is_classification:
            return self.score_square(predicted)
        # Ties go to the more frequent class. Leaving a row out lowers the share of its class by up
        # to 1 / n, so smaller differences are ties: else constants would be worse than chance.
        is_tied = predicted >= predicted.max(axis=1, keepdims=True) - 1.5 / len(self.t)
        is_right = (is_tied * (1.0 + self.mean)).argmax(axis=1) == self.t
        balanced = float(self._weights[is_right].sum())
        chance = 1.0 / self.T.shape[1]
        return (balanced - chance) / (1.0 - chance)

    def score_square(self, predicted: np.ndarray) -> float:
        """1 minus the squared error relative to the variance, at least -1."""
        return max(-1.0, 1.0 - float(np.sum((self.T - predicted) ** 2) / self._variance))

    def score_loss(self, probabilities: np.ndarray) -> float:
        """1 minus the log loss relative to the entropy of the classes, at least -1."""
        own = np.maximum((probabilities * self.T).sum(axis=1), 1e-6)
        return max(-1.0, 1.0 + float(np.mean(np.log(own)) / self._entropy))


# -- learners --------------------------------------------------------------------------------------


def _nearest(D: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k nearest other rows, (n, k), nearest first."""
    others = D.copy()
    np.fill_diagonal(others, np.inf)
    return np.argsort(others, axis=1, kind="stable")[:, :k]


def _score_neighbors(D: np.ndarray, scorer: Scorer) -> Curves:
    """k nearest neighbors, leave-one-out; neighbors weigh the same, or by 1 / distance."""
    n, curves = len(D), {}
    nearest = _nearest(D, min(max(N_NEIGHBORS), n - 1))
    votes = np.cumsum(scorer.T[nearest], axis=1)  # (n, k, m)
    for k in N_NEIGHBORS:
        if k < n:
            mean = votes[:, k - 1] / k
            curves[f"knn_{k}"] = scorer.score(mean)
            if scorer.is_classification:  # one row's worth of the shares of the classes is added
                smooth = (votes[:, k - 1] + scorer.mean) / (k + 1)
                curves[f"knn_{k}_loss"] = scorer.score_loss(smooth)
    weights = 1.0 / (np.sqrt(np.take_along_axis(D, nearest, axis=1)) + 1e-6)
    votes = np.cumsum(scorer.T[nearest] * weights[:, :, None], axis=1)
    total = np.cumsum(weights, axis=1)
    for k in N_WEIGHTED:
        if k < n:
            curves[f"weighted_{k}"] = scorer.score(votes[:, k - 1] / total[:, k - 1, None])
    return curves


def _score_kernels(D: np.ndarray, scorer: Scorer) -> Curves:
    """Kernel ridge regression of T, leave-one-out, for each width and ridge."""
    curves = {}
    for log_gamma in LOG_GAMMAS:
        K = np.exp(-(10.0**log_gamma) * D)
        for log_ridge in LOG_RIDGES:
            predicted = predict_left_out(K, scorer.T, 10.0**log_ridge)
            name = f"kernel_{log_gamma:g}_{log_ridge:g}"
            curves[name] = scorer.score(predicted)
            if scorer.is_classification and log_ridge == LOG_RIDGES[1]:
                curves[f"{name}_square"] = scorer.score_square(predicted)
    return curves


def predict_left_out(K: np.ndarray, T: np.ndarray, ridge: float) -> np.ndarray:
    """Predict each row of T from the others by kernel ridge regression; of shape (n, m).

    With A = (K + ridge I)^-1 and the centered target C, the prediction of row i without row i is
    C_i - (A C)_i / A_ii (Rasmussen & Williams 2006, eq. 5.12). The mean of all rows is added.
    """
    mean = T.mean(axis=0)
    shifted = np.array(K.T, order="F")  # K is symmetric, and this is the order of LAPACK
    shifted[np.diag_indices(len(K))] += ridge
    factor, info = lapack.dpotrf(shifted, overwrite_a=1)
    if info:
        return np.full_like(T, np.nan)
    solved = lapack.dpotrs(factor, T - mean)[0]
    # A = R R' for the inverse R of the upper factor, and only its diagonal is needed.
    R = lapack.dtrtri(factor, overwrite_c=1)[0]
    return T - solved / np.einsum("ij,ij->i", R, R)[:, None]


def _score_slopes(Z: np.ndarray, scorer: Scorer) -> Curves:
    """Linear ridge regression of T, leave-one-out, for each ridge.

    With the hat matrix H (intercept included), the prediction of row i without row i is
    T_i - (T_i - (H T)_i) / (1 - H_ii) (Allen 1974).
    """
    n, T, curves = len(Z), scorer.T, {}
    centered = Z - Z.mean(axis=0)
    U, s, _ = np.linalg.svd(centered, full_matrices=False)
    projected = U.T @ (T - scorer.mean)
    for log_ridge in LOG_SLOPES:
        shrink = s * s / (s * s + n * 10.0**log_ridge)
        fitted = U @ (shrink[:, None] * projected) + scorer.mean
        leverage = (U * U) @ shrink + 1.0 / n
        predicted = T - (T - fitted) / np.maximum(1.0 - leverage, 1e-6)[:, None]
        curves[f"linear_{log_ridge}"] = scorer.score(predicted)
        if scorer.is_classification:
            curves[f"linear_{log_ridge}_square"] = scorer.score_square(predicted)
    return curves


def _score_trees(Z: np.ndarray, scorer: Scorer) -> Curves:
    """Trees in three folds, for each leaf size and each depth.

    A tree of depth d is the top of a full tree, so that all depths need one fit.
    """
    if Z.shape[1] > MAX_TREE_COLUMNS:
        U, s, _ = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
        Z = U[:, :MAX_TREE_COLUMNS] * s[:MAX_TREE_COLUMNS]
    X = np.ascontiguousarray(Z, dtype=np.float32)
    in_order = np.arange(len(X), dtype=np.uint64)
    # Every third row of each class is a stratified fold.
    rank = _rank_in_class(scorer.t, in_order) if scorer.is_classification else np.arange(len(X))
    fold, curves = rank % N_FOLDS, {}
    for size in LEAF_SIZES:
        depths = DEPTHS if size == LEAF_SIZES[0] else ()
        predicted = np.zeros((1 + len(depths), *scorer.T.shape))
        for each in range(N_FOLDS):
            train, test = fold != each, fold == each
            predicted[:, test] = _grow_tree(X[train], scorer.T[train], X[test], size, depths)
        names = [f"leaf_{size}", *(f"depth_{depth}" for depth in depths)]
        for name, values in zip(names, predicted, strict=True):
            curves[name] = scorer.score(values)
            if scorer.is_classification:
                smooth = (values * size + scorer.mean) / (size + 1)
                curves[f"{name}_loss"] = scorer.score_loss(smooth)
    return curves


def _grow_tree(
    X: np.ndarray, T: np.ndarray, X_test: np.ndarray, leaf_size: int, depths: Sequence[int]
) -> np.ndarray:
    """Predict T_test by a tree and by its top levels; of shape (1 + len(depths), n_test, m)."""
    from sklearn.tree import DecisionTreeRegressor

    # The squared error of the indicators of classes is their Gini impurity.
    model = DecisionTreeRegressor(min_samples_leaf=leaf_size, random_state=0)
    tree = model.fit(X, T, check_input=False).tree_
    values = tree.value[:, :, 0]  # (nodes, m)
    whole, at, rows = values[tree.apply(X_test)], np.zeros(len(X_test), dtype=int), {}
    for depth in range(1, max(depths, default=0) + 1):
        is_inner = tree.children_left[at] >= 0
        column = np.maximum(tree.feature[at], 0)  # leaves have none
        goes_left = X_test[np.arange(len(at)), column] <= tree.threshold[at]
        child = np.where(goes_left, tree.children_left[at], tree.children_right[at])
        at = np.where(is_inner, child, at)
        rows[depth] = values[at]
    return np.stack([whole, *(rows[depth] for depth in depths)])
