"""The default looks at a bounded number of past tasks, those on the most similar data."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import scale
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Archive, Space, Task, TransferSearchCV, profile
from sktransfer.archive import make_outline
from sktransfer.model_selection._similar_data import compare_outlines, needs_starter
from sktransfer.pretrained import PretrainedModel, load_model
from sktransfer.surrogates import TaskPrior, make_surrogate

SPACE = {"max_depth": [1, 2, 3]}


def make_data(n_features, seed, half=0):
    """Half of the rows of a data set. Both halves are similar, but share no row."""
    X, y = make_classification(160, n_features, random_state=seed)
    return X[half::2], y[half::2]


@pytest.mark.parametrize("is_pretrained", [True, False])
def test_outlines_of_similar_data_are_near(is_pretrained):
    data = [make_data(*each) for each in ((5, 0, 0), (5, 0, 1), (40, 2))]
    outlines = [make_outline(profile(*each).to_dict()) for each in data]
    model = load_model("classification") if is_pretrained else None
    near, far, unknown = compare_outlines([*outlines, make_outline(None)], model)
    assert near < unknown < far


def test_embedding_of_outlines_is_that_of_profiles():
    data = [profile(*make_data(p, 0)) for p in (5, 9)]
    model = load_model("classification")
    [found] = compare_outlines([make_outline(each.to_dict()) for each in data], model)
    a, b = (model.embed(each) for each in data)
    assert found == pytest.approx(((a - b) ** 2).sum(), rel=0.02)


@pytest.fixture
def archive(tmp_path):
    archive = Archive(tmp_path, starter=False)
    for seed in range(10):
        trials = [({"max_depth": depth}, depth / 10) for depth in (1, 2, 3)]
        data = profile(*make_data(5 + 3 * seed, seed))
        task = Task.from_trials(
            SPACE, trials, data, estimator=DecisionTreeClassifier(), id=f"task-{seed}"
        )
        archive.append(replace(task, created=f"2020-01-0{seed // 2 + 1}T00:00:00+00:00"))
    return archive


@pytest.mark.parametrize(
    ("estimator", "surrogate", "needed"),
    [
        (DecisionTreeClassifier(), "auto", False),
        (DecisionTreeClassifier(), "task-prior", True),  # uses no predictions
        (GaussianNB(), "auto", True),  # has no head
    ],
)
def test_starter_archive_is_read_where_nothing_is_predicted(estimator, surrogate, needed):
    name = "var_smoothing" if isinstance(estimator, GaussianNB) else "max_depth"
    space, data = Space.parse({name: [1, 2, 3]}, estimator), profile(*make_data(5, 0))
    found = needs_starter(make_surrogate(surrogate), space, data, ("accuracy",), ())
    assert found is needed


def test_starter_archive_is_read_for_data_unlike_any_other(monkeypatch):
    monkeypatch.setattr(PretrainedModel, "strangeness", lambda self, psi: 2.0)
    space, data = Space.parse(SPACE, DecisionTreeClassifier()), profile(*make_data(5, 0))
    assert needs_starter(TaskPrior(), space, data, ("accuracy",), ())


def search_in(archive, n_features=5):
    search = TransferSearchCV(
        DecisionTreeClassifier(random_state=0),
        SPACE,
        n_iter=2,
        cv=2,
        archive=archive,
        random_state=0,
    )
    X, y = make_data(n_features, 0, half=1)
    return search.fit(scale(X), y)  # whether columns are scaled matters to the pretrained model


def test_search_states_its_limit(archive, monkeypatch):
    monkeypatch.setattr(TaskPrior, "max_past_tasks", 2)
    monkeypatch.setattr(TaskPrior, "n_similar_tasks", 1)
    search = search_in(archive)
    reasons = {task["id"]: task["excluded"] for task in search.source_tasks_}
    assert reasons["task-0"] is None
    assert reasons["task-9"] is None  # one of the sample, which does not depend on the data
    assert reasons["task-3"] == "1 other past tasks have more similar data"
    assert np.isfinite(search.best_score_)


def test_what_is_learned_is_used_again_for_other_data(archive, monkeypatch):
    monkeypatch.setattr(TaskPrior, "max_past_tasks", 8)
    monkeypatch.setattr(TaskPrior, "n_similar_tasks", 5)
    counts = []
    train = TaskPrior._train

    def count(self, tasks, warm_from):
        counts.append(len(tasks))
        return train(self, tasks, warm_from)

    monkeypatch.setattr(TaskPrior, "_train", count)
    search_in(archive)
    second = search_in(archive, n_features=29)
    assert counts == [8]
    assert len(second.surrogate_.task_ids) > 8


def test_result_does_not_depend_on_the_cache(archive, monkeypatch, tmp_path):
    monkeypatch.setattr(TaskPrior, "max_past_tasks", 8)
    monkeypatch.setattr(TaskPrior, "n_similar_tasks", 1)
    reader = Archive(tmp_path, starter=False, readonly=True)
    plain = search_in(reader)
    search_in(archive, n_features=25)  # fills the cache
    cached = search_in(reader)
    assert cached.cv_results_["params"] == plain.cv_results_["params"]
    np.testing.assert_array_equal(
        cached.cv_results_["predicted_mean"], plain.cv_results_["predicted_mean"]
    )
