"""`profile` never fails, is reproducible, recognizes shared rows and reveals no row."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tracemalloc
import warnings
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse, stats
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.utils._mocking import MockDataFrame

from sktransfer.dataset import DatasetProfile, _fingerprint, _table, profile
from sktransfer.dataset._meta_features import split_rows

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"classification", "regression", "multilabel", "multioutput", "unsupervised"}
RNG = np.random.default_rng(1)
MATRIX = RNG.normal(size=(40, 5))
LABELS = np.arange(40) % 3
HOLES = np.where(RNG.random((40, 5)) < 0.2, np.nan, MATRIX)
NUMBERS = np.round(MATRIX * 8)  # whole numbers, among them zeros: any dtype can hold them


class Items:
    """Has a length and items, and nothing else."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Hostile(Items):
    """Raises whenever an item is read."""

    def __getitem__(self, i):
        raise RuntimeError("secret 4711")


class Blank:
    """Shows its address when printed."""


def mixed_frame(n=40):
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "amount": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "whole": rng.integers(0, 9, n),
            "flag": rng.random(n) < 0.5,
            "town": pd.Categorical(rng.choice(["Rome", "Oslo"], n)),
            3: [None if i % 7 == 0 else f"item {i % 4}" for i in range(n)],
            ("a", "b"): pd.array([None if i % 5 == 0 else i for i in range(n)], dtype="Int64"),
            "when": pd.date_range("2020-01-01", periods=n),
            "zone": pd.date_range("2020-01-01", periods=n, tz="Europe/Rome"),
        }
    )


TABLES = {
    "float": MATRIX,
    "float16": MATRIX.astype(np.float16),
    "longdouble": MATRIX.astype(np.longdouble),
    "bool": MATRIX > 0,
    "object": MATRIX.astype(object),
    "text cells": MATRIX.astype(str),
    "bytes": np.array([[b"a", b"\xff"]] * 40),
    "complex": MATRIX + 1j,
    "dates": np.array(["2020-01-01", "NaT"], dtype="M8[D]").repeat(20).reshape(40, 1),
    "fortran": np.asfortranarray(MATRIX),
    "read-only": np.broadcast_to(MATRIX[:1], (40, 5)),
    "3-d": RNG.normal(size=(40, 4, 3)),
    "4-d": RNG.integers(0, 255, (40, 4, 4, 3)).astype(np.uint8),
    "1-d": MATRIX[:, 0],
    "list": MATRIX.tolist(),
    "mixed list": [[1.5, "a", None]] * 40,
    "ragged list": [[1.0] * (i % 3) for i in range(40)],
    "texts": [f"text number {i}" for i in range(40)],
    "text array": np.array([f"text {i}" for i in range(40)], dtype=object),
    "text series": pd.Series([f"text {i}" for i in range(40)]),
    "dicts": [{"a": i, "b": "x"} for i in range(40)],
    "objects": [Blank() for _ in range(40)],
    "frame": mixed_frame(),
    "same names": pd.DataFrame(MATRIX, columns=["a"] * 5),
    "sparse frame": pd.DataFrame(NUMBERS).astype(pd.SparseDtype(float, 0.0)),
    "csr": sparse.csr_matrix(NUMBERS),
    "coo array": sparse.coo_array(NUMBERS),
    "kernel": rbf_kernel(MATRIX),
    "sparse kernel": sparse.csc_matrix(rbf_kernel(MATRIX) > 0.1),
    "missing": HOLES,
    "infinite": np.where(np.isnan(HOLES), np.inf, -1e307 * MATRIX),
    "tiny": MATRIX * 1e-310,
    "all missing": np.full((40, 3), np.nan),
    "constant": np.ones((40, 3)),
    "one feature": MATRIX[:, :1],
    "no feature": MATRIX[:, :0],
    "wide": RNG.normal(size=(40, 10_000)),
    "mock": MockDataFrame(MATRIX),
    "items": Items(MATRIX.tolist()),
    "hostile": Hostile([0] * 40),
    "long items": Items(range(40)),
}
TARGETS = {
    "none": (None, "unsupervised"),
    "classes": (LABELS, "classification"),
    "names": (np.array(["a", "b"] * 20), "classification"),
    "numeric names": (["1.5", "2.5"] * 20, "classification"),
    "truth": ([True, False] * 20, "classification"),
    "one class": (np.zeros(40, dtype=int), "classification"),
    "series": (pd.Series(["x", None] * 20), "classification"),
    "category": (pd.Series(["x", "y"] * 20, dtype="category"), "classification"),
    "column": (LABELS[:, None], "classification"),
    "amounts": (MATRIX[:, 0], "regression"),
    "missing amounts": (HOLES[:, 0], "regression"),
    "infinite amounts": (np.where(MATRIX[:, 0] > 1, np.inf, 1e307 * MATRIX[:, 1]), "regression"),
    "constant amounts": (np.full(40, 0.5), "regression"),
    "outputs": (MATRIX[:, :2], "multioutput"),
    "frame": (pd.DataFrame({"a": MATRIX[:, 0], "b": ["x", "y"] * 20}), "multioutput"),
    "labels": ((MATRIX[:, :3] > 0).astype(int), "multilabel"),
    "sparse labels": (sparse.csr_matrix((MATRIX[:, :3] > 0).astype(int)), "multilabel"),
    "unreadable": ([[1], [1, 2]] * 20, "unsupervised"),
}


def check(p, n_rows):
    """Check what holds for every profile."""
    assert p.n_rows == n_rows and p.kind in KINDS
    assert all(type(value) is float and np.isfinite(value) for value in p.meta_features.values())
    assert p.fingerprint.dtype == np.uint64 and len(p.fingerprint) == min(p.n_distinct, 2**14)
    assert (np.diff(p.fingerprint.astype(object)) > 0).all()
    assert all(note.endswith(".") for note in p.notes)
    assert json.loads(json.dumps(p.to_dict())) == p.to_dict()


@pytest.mark.parametrize("keep", ["sketch", "sample"])
@pytest.mark.parametrize("name", TABLES)
def test_profile_reads_any_table(name, keep):
    X = TABLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = profile(X, LABELS, keep=keep)
    check(p, 40)
    assert p.kind == "classification" and p.n_classes == 3
    assert "class_entropy" in p.meta_features
    if name not in ("objects", "hostile"):
        assert p.n_distinct > 0 and p.overlap(profile(X)) == 1.0
    if name not in ("ragged list", "hostile", "objects"):
        assert not [note for note in p.notes if note.startswith("Could not")]


@pytest.mark.parametrize("name", TARGETS)
def test_profile_reads_any_target(name):
    y, kind = TARGETS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = profile(MATRIX, y, keep="sample")
    check(p, 40)
    assert p.kind == kind
    assert (p.n_classes is not None) == bool(p.class_ratios) == (kind == "classification")
    assert p.sample["y"] is None or np.isfinite(p.sample["y"]).all()
    assert p.sample["y"] is None or len(p.sample["y"]) == len(p.sample["X"])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_profile_reads_any_array_without_modifying_it(data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6))
    numbers = hnp.floating_dtypes() | hnp.integer_dtypes() | hnp.boolean_dtypes()
    kinds = numbers | hnp.unicode_string_dtypes() | hnp.datetime64_dtypes()
    X = data.draw(hnp.arrays(data.draw(kinds), shape))
    y = data.draw(hnp.arrays(data.draw(kinds), shape[:1]))
    before = copy.deepcopy(X), copy.deepcopy(y)
    p = profile(X, y)
    check(p, shape[0])
    assert not [note for note in p.notes if note.startswith("Could not") and "landmark" not in note]
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    assert profile(X, y).to_dict() == p.to_dict()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_profile_of_one_to_three_rows(n):
    check(profile(MATRIX[:n], LABELS[:n]), n)
    check(profile(MATRIX[:n], MATRIX[:n, 0]), n)


def test_profile_of_iris_is_correct_and_frozen():
    p = profile(*load_iris(return_X_y=True))
    assert (p.kind, p.n_rows, p.n_features) == ("classification", 150, 4)
    assert (p.n_classes, p.n_distinct) == (3, 149)
    assert p.class_ratios == pytest.approx([1 / 3] * 3) and p.notes == () and p.sample is None
    with pytest.raises(AttributeError):
        p.kind = "regression"


def test_integer_targets_are_classes_unless_they_hardly_repeat():
    p = profile(np.arange(600.0)[:, None], np.r_[np.arange(60).repeat(9), np.zeros(60)])
    assert p.n_classes == 60 and len(p.class_ratios) == 50
    assert p.class_ratios[0] == pytest.approx(69 / 600) == max(p.class_ratios)
    whole_amounts = load_diabetes(return_X_y=True)
    assert profile(*whole_amounts).kind == "regression"


def test_notes_list_what_could_not_be_profiled():
    def notes(X, y=None):
        return " ".join(profile(X, y).notes)

    assert "X is text" in notes(TABLES["texts"]) and "dimensions" in notes(TABLES["4-d"])
    assert "precomputed kernel" in notes(TABLES["kernel"])
    assert "list of objects" in notes(TABLES["dicts"])
    assert "2 outputs" in notes(MATRIX, MATRIX[:, :2]) and "missing" in notes(MATRIX, HOLES[:, 0])
    assert "no landmark" in notes(MATRIX, np.zeros(40, dtype=int))
    assert "RuntimeError" in notes(TABLES["hostile"]) and "4711" not in notes(TABLES["hostile"])
    assert "fingerprint" in notes(TABLES["objects"]) and "read y" in notes(MATRIX, [[1], [1, 2]])
    assert profile(Items(range(_table.MAX_ITEMS + 1))).n_rows == _table.MAX_ITEMS + 1
    assert "cannot be read" in notes(Items(range(_table.MAX_ITEMS + 1)))


def test_failing_part_leaves_the_other_parts_intact(monkeypatch):
    def broken(*args):
        raise ZeroDivisionError

    monkeypatch.setattr("sktransfer.dataset._meta_features.column_pairs", broken)
    monkeypatch.setattr("sktransfer.dataset._meta_features._predict_nearest", broken)
    p = profile(MATRIX, LABELS)
    assert not [
        name for name in p.meta_features if name.startswith(("correlation", "landmark_nearest"))
    ]
    assert {"skewness_mean", "components_95", "landmark_tree"} <= set(p.meta_features)
    assert sum("ZeroDivisionError" in note for note in p.notes) == 2 and p.n_distinct == 40


@pytest.mark.parametrize("keep", ["rows", None, ""])
def test_invalid_keep_raises(keep):
    with pytest.raises(ValueError, match="keep must be 'sketch' or 'sample'"):
        profile(MATRIX, keep=keep)


def test_profile_leaves_data_and_global_random_state_unchanged():
    X, y, holes = mixed_frame(), pd.Series(LABELS), HOLES.copy()
    unsorted = sparse.csr_matrix(([1.0, 2.0, 3.0], [1, 0, 1], [0, 3, 3]), shape=(2, 2))
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    profile(X, y, keep="sample"), profile(holes, HOLES[:, 0]), profile(unsorted)
    pd.testing.assert_frame_equal(X, mixed_frame())
    pd.testing.assert_series_equal(y, pd.Series(LABELS))
    np.testing.assert_array_equal(holes, HOLES)
    assert unsorted.indices.tolist() == [1, 0, 1]
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


# -- the fingerprint -------------------------------------------------------------------------------


def to_coo_with_duplicate(X):
    """A COO matrix in which cell (0, 0) has a second entry, a zero."""
    i, j = (index.ravel() for index in np.indices(X.shape))
    return sparse.coo_matrix((np.r_[X.ravel(), 0.0], (np.r_[i, 0], np.r_[j, 0])), X.shape)


@pytest.mark.parametrize(
    "convert",
    [
        pd.DataFrame,
        sparse.csr_matrix,
        sparse.csc_array,
        np.asfortranarray,
        np.ndarray.tolist,
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.int8),
        lambda X: X.astype(object),
        lambda X: X.astype(str),
        lambda X: -(-X + 0.0),  # zeros become -0.0
        lambda X: [[Decimal(cell) for cell in row] for row in X],
        lambda X: pd.DataFrame(X).astype("Int64"),
        lambda X: pd.DataFrame(X).astype("category"),
        lambda X: pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0)),
        lambda X: X.reshape(40, 5, 1),
        lambda X: Items(X.tolist()),
        to_coo_with_duplicate,
    ],
)
def test_fingerprint_does_not_depend_on_the_container(convert):
    expected, p = profile(NUMBERS), profile(convert(NUMBERS))
    np.testing.assert_array_equal(p.fingerprint, expected.fingerprint)
    np.testing.assert_array_equal(p.ordered_fingerprint, expected.ordered_fingerprint)
    assert p.n_distinct == expected.n_distinct


def test_polars_and_pandas_have_the_same_profile():
    pl = pytest.importorskip("polars")
    frame = mixed_frame().drop(columns=[("a", "b"), "zone"])
    other = pl.DataFrame({str(name): frame[name].to_list() for name in frame}, strict=False)
    a, b = profile(frame, LABELS, keep="sample"), profile(other, LABELS, keep="sample")
    np.testing.assert_array_equal(a.ordered_fingerprint, b.ordered_fingerprint)
    assert a.meta_features == pytest.approx(b.meta_features)
    assert b.notes == () and profile(other, other[:, [0, 4]]).kind == "multioutput"
    assert profile(other, other["town"]).class_ratios == profile(frame, frame["town"]).class_ratios


def test_frame_and_list_of_mixed_cells_have_the_same_fingerprint():
    frame = mixed_frame()
    np.testing.assert_array_equal(
        profile(frame).fingerprint, profile(frame.astype(object).to_numpy().tolist()).fingerprint
    )
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    assert _table.as_number(moment) == _table.as_number(np.datetime64("2020-01-01")) == 1577836800e6


def test_fingerprint_ignores_order_of_rows_and_columns():
    rows, columns = RNG.permutation(40), RNG.permutation(5)
    for X in (MATRIX, HOLES, NUMBERS):
        np.testing.assert_array_equal(
            profile(X).fingerprint, profile(X[rows][:, columns]).fingerprint
        )
    assert profile(MATRIX).overlap(profile(MATRIX[rows][:, columns])) == 1.0


def test_fingerprint_ignores_how_missing_values_are_stored():
    other = HOLES.copy()
    other.view(np.uint64)[np.isnan(HOLES)] |= np.uint64(1 << 63 | 5)  # a NaN with other bits
    expected = profile(HOLES).fingerprint
    for X in (other, np.where(np.isnan(HOLES), None, HOLES), pd.DataFrame(HOLES).astype("Float64")):
        np.testing.assert_array_equal(profile(X).fingerprint, expected)


def test_fingerprint_detects_a_change_of_any_cell():
    for i, j in ((0, 0), (17, 3), (39, 4)):
        X = MATRIX.copy()
        X[i, j] = np.nextafter(X[i, j], 9)
        assert len(np.intersect1d(profile(X).fingerprint, profile(MATRIX).fingerprint)) == 39


def test_fingerprint_does_not_depend_on_block_size(monkeypatch):
    tables = [NUMBERS, sparse.csr_matrix(NUMBERS), mixed_frame(), rbf_kernel(MATRIX)]
    expected = [profile(X).fingerprint for X in tables]
    monkeypatch.setattr(_fingerprint, "BLOCK_CELLS", 7)
    monkeypatch.setattr(_table, "BLOCK_CELLS", 7)
    for X, fingerprint in zip(tables, expected, strict=True):
        np.testing.assert_array_equal(profile(X).fingerprint, fingerprint)


PROFILES = """
import json
from sktransfer.dataset import profile
rows = [[i / 7, f"name {i}", None] for i in range(30)]
dicts = [{"a": i, "b": {i, "x", "y", "z"}} for i in range(9)]
labels = [f"class {i % 2}" for i in range(30)]
profiles = profile(rows, labels), profile(dicts), profile(rows, keep="sample")
found = json.dumps([p.to_dict() for p in profiles])
"""
NO_PANDAS = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, Finder())
sys.path.insert(0, sys.argv[1])
"""


def test_profile_is_the_same_in_a_process_without_pandas():
    command = [sys.executable, "-c", NO_PANDAS + PROFILES + "print(found)", str(ROOT)]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    run = subprocess.run(command, env=environment, capture_output=True, check=True)
    here = {}
    exec(PROFILES, here)
    assert run.stdout.decode().strip() == here["found"]


def test_fingerprint_values_are_frozen():
    """Records on disk hold these numbers: after a change, rows shared with them go undetected."""
    p = profile([[1.5, 0.0, "Oslo"], [np.nan, -2, "Rome"]])
    assert p.fingerprint.tolist() == [3134121981400440308, 7368780045403046151]
    assert p.ordered_fingerprint.tolist() == [3300416403817302278, 6218881228083635189]


# -- overlap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.8, 1.0])
@pytest.mark.parametrize(("n_a", "n_b"), [(5000, 5000), (5000, 20_000), (900, 5000)])
def test_overlap_estimates_the_shared_fraction(share, n_a, n_b):
    for seed in range(3):
        rows = np.random.default_rng(seed).normal(size=(n_a + n_b, 3))
        start = n_a - int(share * n_a)
        a, b = profile(rows[:n_a]), profile(rows[start : start + n_b])
        assert a.overlap(b) == pytest.approx(share, abs=0.1) == b.overlap(a)


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(-20, 20), min_size=1), st.sets(st.integers(-20, 20), min_size=1))
def test_overlap_of_small_sets_is_exact(a, b):
    expected = len(a & b) / min(len(a), len(b))
    x, y = (profile([[i, i * i + 0.5] for i in sorted(numbers)]) for numbers in (a, b))
    assert x.overlap(y) == y.overlap(x) == expected


def test_overlap_of_folds_is_large_and_of_unrelated_data_zero():
    X = load_iris().data
    folds = [profile(X[train]) for train, _ in KFold(5, shuffle=True, random_state=0).split(X)]
    assert min(a.overlap(b) for a in folds for b in folds) > 0.5
    tables = [X, load_wine().data, load_breast_cancer().data, load_diabetes().data, rbf_kernel(X)]
    strangers = [profile(table) for table in tables]
    assert [a.overlap(b) for a in strangers for b in strangers if a is not b] == [0.0] * 20


def test_overlap_recognizes_texts_and_kernels():
    texts = [f"text number {i}" for i in range(100)]
    assert profile(texts[:60]).overlap(profile(np.array(texts[30:], dtype=object))) == 0.5
    kernel, other = rbf_kernel(RNG.normal(size=(90, 4))), rbf_kernel(RNG.normal(size=(90, 4)))
    fold = RNG.permutation(90)[:70]
    part = kernel[np.ix_(fold, fold)]
    for whole in (kernel, kernel.T, sparse.csr_matrix(kernel)):
        assert profile(whole).overlap(profile(part)) > 0.95
        assert profile(whole).overlap(profile(sparse.coo_matrix(part))) > 0.95
    assert profile(other).overlap(profile(part)) == 0.0
    # A kernel that is small enough for all cells to be in the fingerprint.
    holey = np.where(kernel > 0.1, kernel, 0.0)[:30, :30]
    np.testing.assert_array_equal(
        profile(holey).fingerprint, profile(sparse.csr_matrix(holey)).fingerprint
    )


def test_overlap_of_unrelated_small_integers_is_small():
    """Without the order of columns, a row of zeros and ones is only a count of ones."""
    rng = np.random.default_rng(0)
    for draw in (lambda: rng.integers(0, 2, (2000, 60)), lambda: rng.poisson(0.3, (2000, 80))):
        X, other = draw(), draw()
        assert profile(X).overlap(profile(sparse.csr_matrix(other))) < 0.05
        assert profile(X[:1500]).overlap(profile(sparse.csr_matrix(X[500:]))) == pytest.approx(
            2 / 3, abs=0.1
        )


def test_overlap_without_a_fingerprint_is_zero():
    blank = DatasetProfile("regression", 10)
    assert blank.overlap(profile(MATRIX)) == profile(MATRIX).overlap(blank) == 0.0
    assert blank.overlap(blank) == 0.0
    older = profile(NUMBERS[:, :2]).to_dict()
    del older["ordered_fingerprint"], older["n_ordered"]
    assert DatasetProfile.from_dict(older).overlap(profile(NUMBERS[:, :2])) == 1.0


# -- records ---------------------------------------------------------------------------------------


def test_profile_survives_to_dict_and_from_dict():
    for keep, y in (
        ("sketch", LABELS),
        ("sample", LABELS),
        ("sample", None),
        ("sample", MATRIX[:, :2]),
    ):
        p = profile(MATRIX, y, keep=keep)
        again = DatasetProfile.from_dict(json.loads(json.dumps({**p.to_dict(), "unknown": 1})))
        assert again.to_dict() == p.to_dict()
        assert list(map(type, vars(again).values())) == list(map(type, vars(p).values()))
        assert again.overlap(p) == 1.0
    few = DatasetProfile.from_dict({"kind": "unsupervised", "n_rows": 3})
    assert few.n_features is None and few.overlap(p) == 0.0


def leaves(plain):
    if isinstance(plain, dict):
        plain = [*plain.keys(), *plain.values()]
    return [leaf for part in plain for leaf in leaves(part)] if isinstance(plain, list) else [plain]


def test_profile_stores_rows_only_with_keep_sample():
    X = mixed_frame()
    X["amount"], X["town"] = np.arange(40) * 1.7320508 + 4711.25, [f"secret {i}" for i in range(40)]
    kept = leaves(profile(X, X["amount"]).to_dict())
    assert not set(X["amount"]) & set(kept) and "secret" not in str(kept)
    assert set(X["amount"]) <= set(leaves(profile(X, X["amount"], keep="sample").to_dict()))
    # The hash of a single column must not be an invertible function of its bits.
    column = profile(X[["amount"]]).fingerprint
    bits = X["amount"].to_numpy().view(np.uint64)
    mixed = _fingerprint.mix_bits(bits.copy())
    assert not set(_fingerprint.mix_bits(mixed.copy())) & set(column)
    assert not set(_fingerprint.mix_bits(mixed + np.uint64(0x9E3779B97F4A7C15))) & set(column)


def test_sample_is_bounded_complete_and_aligned_with_y():
    X = np.arange(3000.0)[:, None] + np.arange(300) / 1000
    X[5::7, 3] = np.nan
    sample = profile(X, np.floor(X[:, 0]), keep="sample").sample
    assert sample["X"].shape == (1000, 200) and np.isfinite(sample["X"]).all()
    np.testing.assert_array_equal(np.floor(sample["X"][:, 0]), sample["y"])


# -- meta-features ---------------------------------------------------------------------------------


def test_meta_features_match_scipy():
    # Two columns are proportional, one is constant.
    X = np.column_stack([MATRIX, MATRIX[:, 0] * 2, np.ones(40)])
    found = profile(X, LABELS == 0).meta_features
    skewness, kurtosis = stats.skew(X[:, :6]), stats.kurtosis(X[:, :6])
    assert found["skewness_min"] == pytest.approx(skewness.min())
    assert found["kurtosis_std"] == pytest.approx(kurtosis.std())
    pairs = np.triu_indices(6, k=1)
    assert found["correlation_max"] == pytest.approx(1.0)
    assert found["correlation_mean"] == pytest.approx(np.corrcoef(X[:, :6].T)[pairs].mean())
    covariance = np.cov(X[:, :6].T, bias=True)[pairs]
    assert found["covariance_min"] == pytest.approx(
        (np.sign(covariance) * np.log1p(abs(covariance))).min()
    )
    assert found["components_95"] == pytest.approx(5 / 6)
    assert found["log_rows"] == pytest.approx(np.log(40))
    assert found["log_columns"] == pytest.approx(np.log(7))
    assert (found["class_ratio_min"], found["class_ratio_max"]) == pytest.approx((14 / 40, 26 / 40))
    assert found["class_entropy"] == pytest.approx(stats.entropy([14, 26], base=2))


def test_meta_features_of_regression_missing_cells_texts_and_kernels():
    t = MATRIX[:, 0] * 1e6
    found = profile(HOLES, t).meta_features
    unit = (t - t.min()) / np.ptp(t)
    assert (found["target_mean"], found["target_std"]) == pytest.approx((unit.mean(), unit.std()))
    assert found["target_kurtosis"] == pytest.approx(stats.kurtosis(t))
    assert found["share_missing"] == pytest.approx(np.isnan(HOLES).mean())
    assert not [name for name in found if name.startswith("class") or name == "landmark_bayes"]
    assert profile(mixed_frame()).meta_features["share_categorical"] == pytest.approx(2 / 8)
    assert profile(["ab", "abcd"]).meta_features["log_length_max"] == pytest.approx(np.log(5))
    kernel = profile(rbf_kernel(MATRIX), LABELS).meta_features
    assert set(kernel) == {"log_rows", "log_outputs", "log_classes", "class_entropy"} | {
        f"class_ratio_{what}" for what in ("min", "max", "mean", "std")
    }


def test_landmarks_separate_signal_from_noise():
    X, y = make_classification(400, 6, n_redundant=0, class_sep=2.0, random_state=0)
    shuffled = np.random.default_rng(0).permutation(y)
    good, bad = profile(X, y).meta_features, profile(X, shuffled).meta_features
    for name in ("nearest", "linear", "tree", "bayes"):
        assert good[f"landmark_{name}"] > 0.6 > 0.35 > bad[f"landmark_{name}"] >= -1
    line = X @ np.arange(6.0)
    shuffled = np.random.default_rng(0).permutation(line)
    good, bad = profile(X, line).meta_features, profile(X, shuffled).meta_features
    for name in ("nearest", "linear", "tree"):
        assert good[f"landmark_{name}"] > 0.4 > 0.2 > bad[f"landmark_{name}"] >= -1
    assert good["landmark_linear"] > 0.99


def test_landmark_no_better_than_the_majority_class_scores_zero():
    y = (np.arange(300) % 10 == 0).astype(int)
    found = profile(np.random.default_rng(0).normal(size=(300, 3)), y).meta_features
    # The model is right in 9 of 10 rows.
    assert found["landmark_linear"] == pytest.approx(0.0, abs=0.05)


def test_landmarks_use_rare_classes_and_the_fullest_columns():
    classes = np.arange(60) % 20
    train, test = split_rows(np.random.default_rng(0).random((60, 3)), classes, True)
    assert sorted([*train, *test]) == list(range(60)) and sorted(classes[test]) == list(range(20))
    X = sparse.random(300, 4000, density=1e-4, format="lil", random_state=0)
    y = np.arange(300) % 2
    X[:, 3999] = (y + 1.0)[:, None]
    found = profile(X.tocsr(), y).meta_features
    assert found["landmark_tree"] == 1.0  # the one full column is among the chosen


def test_meta_features_are_stable_under_sign_and_huge_values():
    X = RNG.exponential(size=(60, 1))
    up, down = profile(X).meta_features, profile(-X).meta_features
    assert up["skewness_mean"] == pytest.approx(-down["skewness_mean"])
    assert up["component_skewness"] == pytest.approx(down["component_skewness"])
    huge = np.linspace(-1.7, 1.7, 40) * 1e308 * np.r_[1, np.full(39, 0.99)]
    assert 0 < profile(MATRIX, huge).meta_features["target_mean"] < 1
    many = np.random.default_rng(0).normal(size=(3000, 150))
    assert profile(many, many[:, 0]).meta_features == profile(many.copy(), many[:, 0]).meta_features


def test_meta_features_ignore_order_of_rows():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    for target in (y, X[:, 0] + 0.5):
        a, b = (profile(X[i], target[i]).meta_features for i in (np.arange(len(X)), order))
        stable = [name for name in a if not name.startswith("landmark")]
        assert len(stable) > 20
        assert [a[name] for name in stable] == pytest.approx([b[name] for name in stable], abs=1e-9)


# -- memory ----------------------------------------------------------------------------------------


def test_profile_of_a_million_rows_needs_no_float_copy():
    X = np.random.default_rng(0).normal(size=(1_000_000, 20)).astype(np.float32)
    tracemalloc.start()
    p = profile(X, X[:, 0] > 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6 < 8 * X.size  # bytes
    assert p.n_distinct > 999_000
    assert p.overlap(profile(X[:200_000])) == pytest.approx(1.0, abs=0.1)


def test_profile_does_not_pad_long_texts():
    texts = [["a", 1]] * 5000 + [["b" * 20_000, 2]]
    for X in (texts, [text for text, _ in texts]):
        tracemalloc.start()
        p = profile(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6 and p.n_distinct == 2


def test_profile_does_not_copy_images():
    X = np.zeros((1200, 64, 64, 3), dtype=np.uint8)
    X[:, 5, 5] = np.arange(1200)[:, None] % 251
    tracemalloc.start()
    p = profile(X, np.arange(1200) % 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6 < X.size and p.n_distinct == 251


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_kind_decides_whether_numbers_are_classes(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    grades, labels = rng.integers(0, 20, 200), rng.permutation(200) // 2
    assert (profile(X, grades).kind, profile(X, labels).kind) == ("classification", "regression")
    found = [profile(X, y, kind=kind) for y in (grades, labels)]
    assert {each.kind for each in found} == {kind}
    assert {each.n_classes for each in found} == ({20, 100} if kind == "classification" else {None})


def test_text_is_a_class_whatever_the_kind():
    X = np.arange(40.0)[:, None]
    assert profile(X, ["a", "b"] * 20, kind="regression").kind == "classification"


def test_unknown_kind():
    with pytest.raises(ValueError, match="kind must be one of"):
        profile([[1.0], [2.0]], [1, 2], kind="clustering")
