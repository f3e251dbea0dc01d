"""No search learns from rows that it is evaluated on, in any container, order, type or unit."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold, cross_val_score
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.dataset import profile

X, y = make_classification(120, 6, random_state=0)
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}
ORDER = [3, 0, 5, 1, 4, 2]
ROWS = np.random.default_rng(0).permutation(120)


def to_frame(X):
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


def to_mixed_frame(X):
    return to_frame(X).astype({"c0": object, "c1": "Float64"})


CONTAINERS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "sparse": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "frame": to_frame,
    "list": np.ndarray.tolist,
}


def make_search(archive, **params):
    params = {"n_iter": 4, "cv": 2, "random_state": 0} | params
    return TransferSearchCV(SVC(), SPACE, archive=archive, **params)


def nested_scores(archive, data, n_folds=3):
    """Scores of a search inside a cross-validation."""
    return cross_val_score(
        make_search(archive), data, y, cv=KFold(n_folds, shuffle=True, random_state=0)
    )


@pytest.mark.parametrize("container", ["dense", "sparse", "frame", "list"])
def test_archive_does_not_change_nested_cross_validation(tmp_path, container):
    data = CONTAINERS[container](X)
    np.testing.assert_array_equal(nested_scores(tmp_path, data), nested_scores(None, data))
    assert len(Archive(tmp_path)) == 3


@pytest.mark.parametrize("container", ["dense", "sparse", "frame"])
def test_search_on_reordered_columns_does_not_reach_nested_folds(tmp_path, container):
    """A search on all rows must not inform the folds of a later cross-validation."""
    make_search(tmp_path).fit(X[:, ORDER], y)
    data = CONTAINERS[container](X)
    np.testing.assert_array_equal(nested_scores(tmp_path, data, 2), nested_scores(None, data, 2))


def test_source_tasks_list_excluded_past_searches(tmp_path):
    first = make_search(tmp_path).fit(X, y)
    second = make_search(tmp_path).fit(to_frame(X[:, ORDER]), y)
    [source] = second.source_tasks_
    assert source["id"] == first.task_id_
    assert source["excluded"] == "shares about 100 % of its rows with these data"
    third = make_search(Archive(tmp_path, overlap="allow")).fit(X, y)
    assert {source["excluded"] for source in third.source_tasks_} == {None}


def test_overlap_threshold_decides_exclusion(tmp_path):
    other = np.random.default_rng(5).normal(size=(60, 6))
    make_search(tmp_path).fit(X, y)
    half = np.vstack([X[:60], other])
    for overlap, is_excluded in [
        ("exclude", True),
        (0.4, True),
        (0.6, False),
        (0.0, True),
        (1.0, False),
    ]:
        fitted = make_search(Archive(tmp_path, overlap=overlap, readonly=True), n_iter=1).fit(
            half, y
        )
        assert bool(fitted.source_tasks_[0]["excluded"]) is is_excluded


def test_invalid_overlap_raises_error_at_fit(tmp_path):
    with pytest.raises(ValueError, match="overlap must be"):
        make_search(Archive(tmp_path, overlap="never")).fit(X, y)


@pytest.mark.parametrize("one", CONTAINERS)
@pytest.mark.parametrize("other", CONTAINERS)
def test_overlap_does_not_depend_on_the_container(one, other):
    profiles = profile(CONTAINERS[one](X)), profile(CONTAINERS[other](X[:, ORDER]))
    assert profiles[0].overlap(profiles[1]) == 1.0
    assert profile(CONTAINERS[one](X[:60])).overlap(profile(CONTAINERS[other](X[60:]))) == 0.0


def test_overlap_does_not_depend_on_the_dtypes_of_a_frame():
    assert profile(to_mixed_frame(X)).overlap(profile(X)) == 1.0


# -- other units, fewer columns --------------------------------------------------------------------

RESCALED = {
    "standardized": lambda X: (X - X.mean(axis=0)) / X.std(axis=0),
    "unit interval": lambda X: (X - X.min(axis=0)) / np.ptp(X, axis=0),
    "other unit and origin": lambda X: X * 1.8 + 32,
    "other sign": lambda X: -X,
    "single precision": lambda X: ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32),
    "reversed rows": lambda X: X[::-1] * 2.5,
    "two columns": lambda X: X[:, [4, 1]],
    "two columns, rescaled": lambda X: X[:, [4, 1]] / 7 - 3,
    "two more columns": lambda X: np.column_stack([X * 3, X[:, 0] * X[:, 1], X[:, 2] ** 2]),
}


@pytest.mark.parametrize("container", ["dense", "frame", "csc"])
@pytest.mark.parametrize("case", RESCALED)
def test_same_rows_overlap_in_other_units_and_columns(case, container):
    changed = profile(CONTAINERS[container](RESCALED[case](X)))
    assert profile(X).overlap(changed) == 1.0
    assert changed.overlap(profile(X)) == 1.0


def test_missing_values_do_not_hide_overlap():
    holes = X.copy()
    holes[::7, 2] = np.nan
    assert profile(holes).overlap(profile(holes * 2 + 1)) == 1.0


def test_unrelated_data_do_not_overlap():
    """Equal sizes, equal distributions, rounded cells, a row number and counts are no overlap."""
    profiles = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        normal, counts = rng.normal(size=(300, 4)), rng.poisson(3, size=(300, 5))
        profiles.append(profile(np.column_stack([np.arange(300), normal.round(2), counts])))
    assert max(a.overlap(b) for a in profiles for b in profiles if a is not b) < 0.01


def test_large_tables_are_compared_by_rows_and_patterns(monkeypatch):
    monkeypatch.setattr("sktransfer.dataset._fingerprint.MAX_SHAPE_CELLS", 100)
    assert not len(profile(X).column_fingerprint)
    assert profile(X).overlap(profile(X * 2)) == 1.0  # in the same order
    assert profile(X).overlap(profile(X[ROWS] * 2)) == 0.0
    assert profile(X).overlap(profile(X[ROWS])) == 1.0


def test_profile_without_column_fingerprint_is_compared_by_its_rows():
    old = profile(X).to_dict()
    del old["column_fingerprint"]
    assert profile(X).overlap(type(profile(X)).from_dict(old)) == 1.0
