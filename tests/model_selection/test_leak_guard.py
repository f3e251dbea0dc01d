"""No search learns from rows that it is judged on, whatever container, order, type or unit they come in."""

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


def frame(X):
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])


def mixed_types(X):
    made = frame(X)
    return made.astype({"c0": object, "c1": "Float64"})


CONTAINERS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "sparse": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "frame": frame,
    "list": np.ndarray.tolist,
}


def search(archive, **params):
    params = {"n_iter": 4, "cv": 2, "random_state": 0} | params
    return TransferSearchCV(SVC(), SPACE, archive=archive, **params)


def nested(archive, data, n_folds=3):
    return cross_val_score(
        search(archive), data, y, cv=KFold(n_folds, shuffle=True, random_state=0)
    )


@pytest.mark.parametrize("container", ["dense", "sparse", "frame", "list"])
def test_nested_cross_validation_is_as_without_an_archive(tmp_path, container):
    data = CONTAINERS[container](X)
    np.testing.assert_array_equal(nested(tmp_path, data), nested(None, data))
    assert len(Archive(tmp_path)) == 3


@pytest.mark.parametrize("container", ["dense", "sparse", "frame"])
def test_with_an_archive_that_saw_the_columns_in_another_order(tmp_path, container):
    """What a search on the whole data found must not reach the folds of a later cross-validation."""
    search(tmp_path).fit(X[:, ORDER], y)
    data = CONTAINERS[container](X)
    np.testing.assert_array_equal(nested(tmp_path, data, 2), nested(None, data, 2))


def test_the_refusals_are_listed(tmp_path):
    first = search(tmp_path).fit(X, y)
    second = search(tmp_path).fit(frame(X[:, ORDER]), y)
    [source] = second.source_tasks_
    assert source["id"] == first.task_id_
    assert source["excluded"] == "shares about 100 % of its rows with these data"
    third = search(Archive(tmp_path, overlap="allow")).fit(X, y)
    assert {source["excluded"] for source in third.source_tasks_} == {None}


def test_a_threshold(tmp_path):
    other = np.random.default_rng(5).normal(size=(60, 6))
    search(tmp_path).fit(X, y)
    half = np.vstack([X[:60], other])
    for overlap, refused in [
        ("exclude", True),
        (0.4, True),
        (0.6, False),
        (0.0, True),
        (1.0, False),
    ]:
        fitted = search(Archive(tmp_path, overlap=overlap, readonly=True), n_iter=1).fit(half, y)
        assert bool(fitted.source_tasks_[0]["excluded"]) is refused


def test_overlap_is_checked_at_fit(tmp_path):
    with pytest.raises(ValueError, match="overlap must be"):
        search(Archive(tmp_path, overlap="never")).fit(X, y)


@pytest.mark.parametrize("one", CONTAINERS)
@pytest.mark.parametrize("other", CONTAINERS)
def test_containers_agree(one, other):
    ours, theirs = profile(CONTAINERS[one](X)), profile(CONTAINERS[other](X[:, ORDER]))
    assert ours.overlap(theirs) == 1.0
    assert profile(CONTAINERS[one](X[:60])).overlap(profile(CONTAINERS[other](X[60:]))) == 0.0


def test_types_of_a_frame_do_not_matter():
    assert profile(mixed_types(X)).overlap(profile(X)) == 1.0


# -- other units, fewer columns ------------------------------------------------------------------------

RESCALED = {
    "standardized": lambda X: (X - X.mean(axis=0)) / X.std(axis=0),
    "to the unit interval": lambda X: (X - X.min(axis=0)) / np.ptp(X, axis=0),
    "another unit and zero": lambda X: X * 1.8 + 32,
    "another sign": lambda X: -X,
    "single precision": lambda X: ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32),
    "other rows first": lambda X: X[::-1] * 2.5,
    "two columns left": lambda X: X[:, [4, 1]],
    "two columns, rescaled": lambda X: X[:, [4, 1]] / 7 - 3,
    "two columns more": lambda X: np.column_stack([X * 3, X[:, 0] * X[:, 1], X[:, 2] ** 2]),
}


@pytest.mark.parametrize("container", ["dense", "frame", "csc"])
@pytest.mark.parametrize("case", RESCALED)
def test_the_same_rows_in_other_units(case, container):
    changed = profile(CONTAINERS[container](RESCALED[case](X)))
    assert profile(X).overlap(changed) == 1.0
    assert changed.overlap(profile(X)) == 1.0


def test_missing_values_do_not_hide_a_column():
    holes = X.copy()
    holes[::7, 2] = np.nan
    assert profile(holes).overlap(profile(holes * 2 + 1)) == 1.0


def test_strangers_are_strangers():
    """As many rows, the same distribution, rounded cells, a running number, columns of few values."""
    made = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        normal, counts = rng.normal(size=(300, 4)), rng.poisson(3, size=(300, 5))
        made.append(profile(np.column_stack([np.arange(300), normal.round(2), counts])))
    assert max(a.overlap(b) for a in made for b in made if a is not b) < 0.01


def test_large_tables_are_compared_by_rows_alone(monkeypatch):
    monkeypatch.setattr("sktransfer.dataset._fingerprint.MAX_SHAPE_CELLS", 100)
    assert not len(profile(X).column_fingerprint)
    assert profile(X).overlap(profile(X * 2)) == 0.0
    assert profile(X).overlap(profile(X)) == 1.0


def test_profiles_from_before_still_count():
    old = profile(X).to_dict()
    del old["column_fingerprint"]
    assert profile(X).overlap(type(profile(X)).from_dict(old)) == 1.0
