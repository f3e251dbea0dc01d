"""`source_tasks_`, the origin of the first candidates, and `explain`."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferSearchCV, profile
from sktransfer.model_selection._explain import explain_search

X, y = load_iris(return_X_y=True)
SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}


def past_task(seed, best, **others):
    """A past search whose best setting is C = gamma = `best`."""
    data = make_classification(80, 4, n_informative=3, n_redundant=0, random_state=seed)
    C = np.logspace(-2, 2, 5).tolist()
    trials = [({"C": c, "gamma": best}, 0.9 - 0.05 * abs(np.log10(c / best))) for c in [best, *C]]
    return Task.from_trials(SPACE, trials, profile(*data), estimator=SVC(), **others)


@pytest.fixture
def archive(tmp_path):
    archive = Archive(tmp_path)
    for seed, best in enumerate([0.5, 2.0, 5.0]):
        archive.append(past_task(seed, best, id=f"t{seed}"))
    return archive


def fit(archive, **params):
    params = {"n_iter": 4, "cv": 2, "surrogate": "task-prior", "random_state": 0} | params
    return TransferSearchCV(SVC(), SPACE, archive=archive, **params).fit(X, y)


def test_source_tasks_are_sorted_by_similarity_of_the_data(archive):
    search = fit(archive)
    similarity = [row["similarity"] for row in search.source_tasks_]
    assert len(similarity) == 3
    assert similarity == sorted(similarity, reverse=True)
    assert max(similarity) == pytest.approx(1.0)
    assert all(0 <= row["weight"] <= row["similarity"] + 1e-9 for row in search.source_tasks_)


def test_similarity_does_not_depend_on_the_trials(archive):
    few, many = (
        {
            row["id"]: row
            for row in fit(Archive(archive.path, readonly=True), n_iter=n).source_tasks_
        }
        for n in (1, 8)
    )
    assert {id: row["similarity"] for id, row in few.items()} == {
        id: row["similarity"] for id, row in many.items()
    }
    assert {id: row["weight"] for id, row in few.items()} != {
        id: row["weight"] for id, row in many.items()
    }


def test_excluded_tasks_come_last_and_other_estimators_are_counted(archive):
    archive.append(
        Task.from_trials(SPACE, [({"C": 1.0, "gamma": 1.0}, 0.9)], profile(X, y), estimator=SVC())
    )
    for _ in range(2):
        trials = [({"C": 1.0}, 0.9)]
        task = Task.from_trials({"C": [1.0]}, trials, estimator=LogisticRegression())
        archive.append(task)
    search = fit(archive)
    assert [row["excluded"] is None for row in search.source_tasks_] == [True] * 3 + [False]
    assert search.n_other_tasks_ == 2


def test_first_candidate_names_the_task_whose_setting_it_is(archive):
    search = fit(archive)
    first, params = search.cv_results_["origin"][0], search.cv_results_["params"][0]
    kind, id = first.split()
    assert kind == "task"
    own = [trial.params for trial in archive[id].trials]
    assert any(params == pytest.approx(each) for each in own)
    [row] = [row for row in search.source_tasks_ if row["id"] == id]
    assert row["n_used"] >= 1


def test_first_candidate_outside_the_space_is_the_models(tmp_path):
    archive = Archive(tmp_path)
    archive.append(past_task(0, 5.0))
    narrow = {"C": loguniform(1e-3, 1.0), "gamma": loguniform(1e-4, 1e-2)}
    search = TransferSearchCV(SVC(), narrow, n_iter=1, cv=2, archive=archive, random_state=0)
    assert search.fit(X, y).cv_results_["origin"][0] == "model"


def test_explain_has_five_lines(archive):
    archive.append(
        Task.from_trials(SPACE, [({"C": 1.0, "gamma": 1.0}, 0.9)], profile(X, y), estimator=SVC())
    )
    search = fit(archive)
    lines = search.explain().splitlines()
    top, best = search.source_tasks_[0], search.best_index_
    assert len(lines) == 5
    assert lines[0] == (
        "Past searches: 3 used, 1 excluded (1: shares about 100 % of its rows with these data), "
        "0 of other estimators."
    )
    assert lines[1].startswith(
        f"Most similar: {top['id']} (similarity {top['similarity']:.2f}, weight now "
        f"{top['weight']:.2f}), "
    )
    assert lines[2].startswith(f"First candidates: 1. {search.cv_results_['origin'][0]}, 2. ")
    assert lines[3].startswith("All 4 candidates: ") and "settings of past tasks" in lines[3]
    assert lines[4].startswith(f"Best: candidate {best + 1}, {search.cv_results_['origin'][best]}")


def test_explain_counts_origins_and_predictions():
    results = {
        "origin": np.array(["task a", "task b", "model", "space-filling"]),
        "predicted_mean": [0.9, 0.8, 0.7512, np.nan],
        "predicted_std": [0.1, 0.1, 0.0123, np.nan],
    }
    lines = explain_search(results, 2, [], 7).splitlines()
    assert lines == [
        "Past searches: 0 used, 7 of other estimators.",
        "Most similar: none.",
        "First candidates: 1. task a, 2. task b, 3. model.",
        "All 4 candidates: 2 settings of past tasks, 1 model, 1 space-filling.",
        "Best: candidate 3, model, predicted 0.7512 ± 0.012.",
    ]
    assert explain_search(results, 3, [], 7).endswith("Best: candidate 4, space-filling.")
    assert "several metrics" in explain_search(results, None, [], 7)
