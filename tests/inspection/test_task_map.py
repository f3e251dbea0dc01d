"""`TaskMapDisplay`: data sets on a map."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferSearchCV, profile
from sktransfer.inspection import TaskMapDisplay
from sktransfer.inspection._data_sets import project
from tests.inspection.conftest import SPACE, X, y


class Sizes:
    """An encoder of rows and columns."""

    def transform(self, profiles):
        return np.array([[each.n_rows, each.n_features, 0.0] for each in profiles], dtype=float)


def make_archive(path, n_data_sets, n_searches=1):
    archive = Archive(path)
    for number in range(n_data_sets):
        data = profile(np.random.default_rng(number).normal(size=(20 + 5 * number, 3)))
        for _ in range(n_searches):
            archive.append(Task.from_trials({"C": [1, 9]}, [({"C": 1}, 0.9)], data))
    return archive


def test_projection_keeps_distances_in_two_dimensions(rng):
    plane = rng.normal(size=(9, 2)) @ rng.normal(size=(2, 5))
    places, shares = project(plane)
    assert shares.sum() == pytest.approx(1)
    for i, j in [(0, 1), (3, 8)]:
        expected = np.linalg.norm(plane[i] - plane[j])
        assert np.linalg.norm(places[i] - places[j]) == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3, 1), (1, 4)])
def test_projection_of_few_numbers_is_flat(shape, rng):
    places, shares = project(rng.normal(size=shape))
    assert places.shape == (shape[0], 2) and shares.shape == (2,)
    assert (places[:, 1] == 0).all()


def test_map_shows_past_and_current_data(search, texts):
    display = TaskMapDisplay.from_estimator(search)
    assert display.positions.shape == (4, 2) and display.target_position.shape == (2,)
    assert list(display.points_) == ["used"]
    words = " ".join(texts(display.figure_))
    assert "current data" in words and f"First component of the {display.encoder_name}" in words


def test_any_encoder_can_be_used(search):
    display = TaskMapDisplay.from_estimator(search, encoder=Sizes())
    assert display.target.tolist() == [150, 4, 0]
    assert sorted(display.vectors[:, 0]) == [60, 80, 100, 120]
    assert "Sizes" in display.ax_.get_xlabel()
    # The first component is the number of rows, up to its sign.
    order = np.argsort(display.positions[:, 0])
    rows = display.n_rows[order]
    assert (np.diff(rows) > 0).all() or (np.diff(rows) < 0).all()


def test_learned_embedding_of_the_search_is_used(tmp_path):
    archive = Archive(tmp_path)
    for seed in range(3):
        data = make_classification(120, 5, random_state=seed)
        options = {"n_iter": 3, "cv": 2, "archive": archive, "random_state": 0}
        search = TransferSearchCV(SVC(), {"C": loguniform(1e-2, 1e2)}, **options).fit(*data)
    display = TaskMapDisplay.from_estimator(search)
    assert display.encoder_name == "learned embedding"
    np.testing.assert_array_equal(display.target, search.embedding_)
    assert display.vectors.shape == (2, len(search.embedding_))


def test_profiles_without_curves_are_shown_by_meta_features(search):
    fitted = copy.copy(search)
    fitted.embedding_ = np.zeros(1)
    fitted._profile = replace(fitted._profile, response_curves={})
    display = TaskMapDisplay.from_estimator(fitted)
    assert display.encoder_name == "handcrafted meta-features"
    assert len(display.target) == display.vectors.shape[1] > 1


def test_searches_on_the_same_data_are_one_mark(tmp_path):
    display = TaskMapDisplay.from_archive(make_archive(tmp_path, 3, n_searches=2))
    assert len(display.positions) == 3
    assert list(display.points_) == ["unsupervised"]
    areas = display.points_["unsupervised"].get_sizes()
    assert (np.diff(areas) > 0).all()  # more rows, larger mark


@pytest.mark.parametrize(("n", "count"), [(0, "no past data set"), (1, "one past data set")])
def test_too_few_data_sets_give_a_sentence(tmp_path, texts, n, count):
    display = TaskMapDisplay.from_archive(make_archive(tmp_path / "a", n))
    assert texts(display.figure_) == [f"There is {count}. A map needs at least two."]
    assert display.points_ == {}
    archive = make_archive(tmp_path / "b", 0)
    search = TransferSearchCV(SVC(), SPACE, n_iter=3, cv=3, archive=archive).fit(X, y)
    assert "no past data set" in " ".join(texts(TaskMapDisplay.from_estimator(search).figure_))


def test_tasks_without_a_profile_have_no_place(tmp_path):
    archive = make_archive(tmp_path, 2)
    archive.append(Task.from_trials({"C": [1, 9]}, [({"C": 1}, 0.9)]))
    assert len(TaskMapDisplay.from_archive(tmp_path).positions) == 2


def test_many_data_sets_are_not_named(tmp_path, rng, texts):
    few = TaskMapDisplay(rng.normal(size=(3, 2)), names=["a", "b", "c"]).plot()
    assert {"a", "b", "c"} <= set(texts(few.figure_))
    many = TaskMapDisplay(rng.normal(size=(30, 2)), names=["a"] * 30).plot()
    assert "a" not in texts(many.figure_)


def test_invalid_input_raises(plain):
    with pytest.raises(ValueError, match="fitted with archive=None"):
        TaskMapDisplay.from_estimator(plain)
    with pytest.raises(ValueError, match="two dimensions"):
        TaskMapDisplay([1.0, 2.0])
    with pytest.raises(ValueError, match="target has 3 dimensions, the vectors have 2"):
        TaskMapDisplay([[1.0, 2.0], [3.0, 4.0]], target=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="same length"):
        TaskMapDisplay([[1.0, 2.0]], names=["a", "b"])
