"""The weekly retune: a past search on a part of the current rows is used, any other overlap not."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.dataset import profile

X, y = make_classification(200, 6, random_state=0)
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}


def make_search(archive, **params):
    params = {"n_iter": 4, "cv": 2, "random_state": 0, "refit": False} | params
    return TransferSearchCV(SVC(), SPACE, archive=archive, **params)


def fit(archive, rows, **params):
    return make_search(archive, **params).fit(X[rows], y[rows])


def overlaps(search):
    return [task["overlap"] for task in search.source_tasks_ if task["excluded"] is None]


def reasons(search):
    return [task["excluded"] for task in search.source_tasks_ if task["excluded"] is not None]


def test_search_uses_past_search_on_first_rows(tmp_path):
    fit(tmp_path, slice(150))
    search = fit(tmp_path, slice(200))
    assert overlaps(search) == ["contained"] and not reasons(search)


def test_rows_may_be_in_another_order(tmp_path):
    fit(tmp_path, slice(150))
    assert overlaps(fit(tmp_path, np.arange(200)[::-1])) == ["contained"]


def test_large_table_is_recognized_by_its_first_rows():
    """More rows than a fingerprint holds: the digest of the first rows decides."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40_000, 2))
    past = profile(table[rng.permutation(30_000)])
    assert profile(table).contains(past)
    assert not profile(np.vstack([table[1:30_000], table[30_001:]])).contains(past)


@pytest.mark.parametrize(
    "rows",
    [slice(150), slice(100), slice(50, 200), np.r_[0:149, 150:200], np.r_[0:150, 0:50]],
    ids=["identical", "a part", "a part and others", "all but one", "repeated rows"],
)
def test_any_other_overlap_is_excluded(tmp_path, rows):
    fit(tmp_path, slice(150))
    search = fit(tmp_path, rows)
    assert not overlaps(search)
    assert [reason.startswith("shares about ") for reason in reasons(search)] == [True]


@pytest.mark.parametrize("cv", [KFold(3), TimeSeriesSplit(3)], ids=["KFold", "TimeSeriesSplit"])
def test_nested_cross_validation_is_as_without_archive(tmp_path, cv):
    """In a TimeSeriesSplit, each training part contains the one before it."""
    fit(tmp_path, slice(40))  # all of its rows are among the first training part of KFold
    scores = [
        cross_val_score(make_search(archive, refit=True), X, y, cv=cv)
        for archive in (tmp_path, None)
    ]
    np.testing.assert_array_equal(*scores)


def test_search_does_not_use_searches_inside_cross_validation(tmp_path):
    cross_val_score(make_search(tmp_path, refit=True), X, y, cv=3)
    search = fit(tmp_path, slice(200))
    assert not overlaps(search) and len(reasons(search)) == 3


def test_script_that_is_run_twice_gives_the_same_result(tmp_path):
    def script():
        fit(tmp_path, slice(100))
        fit(tmp_path, slice(50, 150))
        search = fit(tmp_path, slice(200))
        used = sorted(row["id"] for row in search.source_tasks_ if row["excluded"] is None)
        return used, search.cv_results_["mean_test_score"].tolist()

    first = script()
    assert script() == first and len(first[0]) == 2
    search = fit(tmp_path, slice(200))
    assert reasons(search).count("repeats a search on the same rows") == 2


def test_verbose_counts_excluded_searches(tmp_path, capsys):
    fit(tmp_path, slice(150))
    fit(tmp_path, slice(100))
    capsys.readouterr()
    fit(tmp_path, slice(100), verbose=1)
    out = capsys.readouterr().out
    assert "No past search can be used. Starting from the pretrained model." in out
    assert "Excluded past searches: 2 (shares rows with these data)." in out
    assert 'archive=Archive(..., overlap="allow") uses searches that share rows as well.' in out


def test_verbose_counts_unknown_overlap(tmp_path, capsys):
    fit(tmp_path / "theirs", slice(150))
    Archive(tmp_path / "theirs").export(tmp_path / "a.zip")
    Archive(tmp_path / "own").import_(tmp_path / "a.zip")
    search = fit(tmp_path / "own", slice(100), verbose=1)
    assert overlaps(search) == ["unknown"]
    assert "1 past search cannot be checked for shared rows." in capsys.readouterr().out


@pytest.mark.parametrize("surrogate", ["auto", "task-prior"])
def test_first_trial_is_one_of_the_best_of_last_week(tmp_path, surrogate):
    last = fit(Archive(tmp_path, starter=False), slice(150), n_iter=8)
    archive = Archive(tmp_path, starter=False)
    search = fit(archive, slice(200), surrogate=surrogate, n_iter=2)
    ranks = last.cv_results_["rank_test_score"]
    best = [last.cv_results_["params"][i] for i in np.argsort(ranks, kind="stable")[:3]]
    assert search.cv_results_["params"][0] in best
    assert search.cv_results_["origin"][0] == f"task {last.task_id_}"


def test_contained_past_search_has_the_largest_weight(tmp_path):
    archive = Archive(tmp_path, starter=False)
    for seed in range(3):
        make_search(archive).fit(*make_classification(150, 6, random_state=seed + 1))
    last = fit(archive, slice(150))
    tasks = [t for t in fit(archive, slice(200)).source_tasks_ if t["excluded"] is None]
    assert tasks[0]["id"] == last.task_id_ and tasks[0]["similarity"] == 1.0
    assert len(tasks) == 4 and max(task["similarity"] for task in tasks[1:]) < 0.2
