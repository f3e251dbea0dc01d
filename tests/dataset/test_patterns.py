"""Patterns of neighboring rows: the same after rescaling each fold, different for other data."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from sktransfer.dataset import DatasetProfile, profile
from sktransfer.dataset._patterns import fingerprint_patterns
from sktransfer.dataset._table import read_table

LOADERS = [load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine]
MAX_OVERLAP = 0.01


def folds(X, y, scaler, cv=None, n=2):
    """Profiles of the first training parts, each scaled on its own."""
    cv = cv or KFold(5, shuffle=True, random_state=0)
    return [
        profile(scaler().fit_transform(X[train]), y[train]) for train, _ in list(cv.split(X, y))[:n]
    ]


@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler, RobustScaler])
@pytest.mark.parametrize("load", LOADERS)
def test_scaling_in_each_fold_is_recognized(load, scaler):
    a, b = folds(*load(return_X_y=True), scaler)
    assert a.overlap(b) >= MAX_OVERLAP


@pytest.mark.parametrize("cv", [KFold(5), KFold(3), StratifiedKFold(5), KFold(10, shuffle=True)])
def test_splitters_keep_patterns(cv):
    a, b = folds(*load_wine(return_X_y=True), StandardScaler, cv)
    assert a.overlap(b) >= MAX_OVERLAP


def scaled_tables(X, cv):
    """Fingerprints of the training parts, each scaled on its own."""
    tables = [StandardScaler().fit_transform(X[train]) for train, _ in cv.split(X)]
    return [
        DatasetProfile("classification", len(Z), **fingerprint_patterns(read_table(Z), None))
        for Z in tables
    ]


KINDS = {
    "normal": lambda rng, n: rng.normal(size=(n, 4)),
    "one column of numbers": lambda rng, n: np.column_stack(
        [rng.normal(size=n), rng.integers(0, 4, n)]
    ),
    "integers": lambda rng, n: rng.integers(0, 30, size=(n, 4)),
    "rounded": lambda rng, n: rng.normal(size=(n, 4)).round(1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_three_shuffled_folds_of_small_table_are_recognized(kind):
    """Two training parts of 134 rows have every other row in common, and few in a sequence."""
    n_found = 0
    for seed in range(10):
        X = KINDS[kind](np.random.default_rng(seed), 200)
        parts = scaled_tables(X, KFold(3, shuffle=True, random_state=seed))
        n_found += sum(a.overlap(b) >= MAX_OVERLAP for a, b in combinations(parts, 2))
    assert n_found >= 29  # of 30


@pytest.mark.parametrize("kind", KINDS)
def test_small_tables_of_one_kind_share_no_patterns(kind):
    rng = np.random.default_rng(0)
    tables = [KINDS[kind](rng, 150 + k) for k in range(8)]
    found = [
        DatasetProfile("regression", len(X), **fingerprint_patterns(read_table(X), None))
        for X in tables
    ]
    assert all(each.n_patterns for each in found)
    assert not any(a.overlap(b) for a, b in combinations(found, 2))


def test_large_table_is_recognized_in_folds_that_are_not_shuffled():
    """The first rows of two training parts are different ones."""
    X = np.random.default_rng(0).normal(size=(40_000, 10))
    parts = scaled_tables(X, KFold(5))
    assert all(a.overlap(b) >= MAX_OVERLAP for a, b in combinations(parts, 2))


CHANGES = {
    "float32": lambda X: X.astype(np.float32),
    "a column less": lambda X: X[:, 1:],
    "half of the columns": lambda X: X[:, ::2],
    "a column more": lambda X: np.column_stack([X, np.arange(len(X)) ** 2]),
    "columns in another order": lambda X: X[:, ::-1],
    "frame": pd.DataFrame,
    "sparse": sparse.csr_matrix,
    "list": np.ndarray.tolist,
}


@pytest.mark.parametrize("change", CHANGES)
def test_patterns_survive_changes_of_the_table(change):
    X, y = load_breast_cancer(return_X_y=True)
    tables = [
        StandardScaler().fit_transform(X[train])
        for train, _ in list(KFold(5, shuffle=True, random_state=0).split(X))[:2]
    ]
    changed = profile(CHANGES[change](tables[0]), y[: len(tables[0])])
    assert not [note for note in changed.notes if "patterns" in note]
    assert changed.overlap(profile(tables[1])) >= MAX_OVERLAP


def test_regression_target_is_recognized_by_value():
    """Whatever is done with X: PCA mixes the columns."""
    X, y = load_diabetes(return_X_y=True)
    y = y + np.random.default_rng(0).normal(size=len(y))
    a, b = folds(X, y, lambda: PCA(3))
    assert a.overlap(b) >= MAX_OVERLAP
    without_target = folds(X, np.zeros(len(X)), lambda: PCA(3))
    assert without_target[0].overlap(without_target[1]) < MAX_OVERLAP


def random_table(seed, n=500):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(2 * n, n, replace=False))  # numbers of rows, some of them missing
    steps = np.arange(n) * 0.1
    counts = rng.poisson(3, size=(n, 8))
    return np.column_stack([rows, steps, counts, rng.normal(size=(n, 3)).round(2)])


@pytest.mark.parametrize("seed", range(10))
def test_unrelated_tables_share_no_patterns(seed):
    """Row numbers, equal steps, counts and rounded values give the same simple patterns."""
    a, b = (profile(random_table(s), np.arange(500)) for s in (seed, 1000 + seed))
    assert a.n_patterns > 100 and a.overlap(b) < MAX_OVERLAP


def test_unrelated_large_tables_share_no_patterns():
    rng = np.random.default_rng(0)
    a, b = (profile(rng.normal(size=(20_000, 20)), rng.normal(size=20_000)) for _ in range(2))
    assert a.overlap(b) == 0
    assert len(a.pattern_fingerprint) == len(a.target_fingerprint) == 512


@pytest.mark.parametrize("X", [[[1.0]] * 30, [[1.0]], [["a"]] * 30, [["a", 1.0]] * 30, []])
def test_tables_without_patterns(X):
    found = profile(X, None)
    assert not len(found.pattern_fingerprint)
    assert not [note for note in found.notes if "patterns" in note]
