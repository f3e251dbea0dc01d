"""`SurfaceDisplay`: the posterior over one or two parameters."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import loguniform, norm, randint, uniform
from sklearn.model_selection import RandomizedSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Space, TransferSearchCV
from sktransfer.inspection import SurfaceDisplay
from sktransfer.inspection._parameter_axis import ParameterAxis
from sktransfer.inspection._score_model import ScoreModel
from tests.inspection.conftest import X, y


def test_mean_and_std_are_those_of_the_surrogate(search):
    display = SurfaceDisplay.from_estimator(search, ["C", "gamma"], grid_resolution=5)
    best = search.best_params_
    for i, j in [(0, 0), (2, 4)]:
        code = search.space_.encode(best)
        code[:2] = display.grid[0][i], display.grid[1][j]
        mean, std = ScoreModel.from_search(search).predict(code[None])
        assert display.mean[i, j] == pytest.approx(mean[0])
        assert display.std[i, j] == pytest.approx(std[0])


def test_surface_is_certain_and_right_at_the_trials(plain):
    model = ScoreModel.from_search(plain)
    mean, std = model.predict(model.target.theta)
    away = model.predict(np.array([[0.0, 1.0, 0.75]]))[1]
    assert std.max() < away[0]
    scores = plain.cv_results_["mean_test_score"]
    good = scores > np.median(scores)  # very low scores are clipped
    np.testing.assert_allclose(mean[good], scores[good], atol=0.02)


def test_two_parameters_have_a_panel_for_the_uncertainty(search, texts):
    display = SurfaceDisplay.from_estimator(search)
    assert display.names == ["C", "gamma"]
    assert len(display.axes_) == 2
    words = texts(display.figure_)
    assert "Predicted: mean test score" in words
    assert "Standard deviation of the prediction" in words
    assert {"0.01", "1", "1000"} <= set(words)
    assert len(display.points_.get_offsets()) == len(search.cv_results_["params"])


def test_single_axes_show_the_mean_only(search):
    figure, ax = plt.subplots()
    display = SurfaceDisplay.from_estimator(search, ["C", "kernel"], ax=ax)
    assert display.axes_ == [ax] and display.figure_ is figure
    assert display.mean.shape == (80, 2)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["rbf", "sigmoid"]


def test_one_parameter_is_a_curve_through_the_best_trial(search):
    display = SurfaceDisplay.from_estimator(search, "C")
    assert display.mean.shape == (80,)
    assert display.scores[display.best] == search.best_score_
    assert display.ax_.get_ylabel() == "Mean test score"
    np.testing.assert_array_equal(display.surface_.get_ydata(), display.mean)
    values = SurfaceDisplay.from_estimator(search, ["kernel"])
    assert values.is_list and values.mean.shape == (2,)


def test_searches_without_a_model_get_a_gaussian_process(grid):
    display = SurfaceDisplay.from_estimator(grid)
    assert display.mean.shape == (4, 3)
    space = {"n_neighbors": randint(1, 30)}
    other = RandomizedSearchCV(KNeighborsClassifier(), space, n_iter=6, random_state=0).fit(X, y)
    assert SurfaceDisplay.from_estimator(other).names == ["n_neighbors"]
    at_random = TransferSearchCV(
        SVC(), {"C": uniform(0, 9)}, n_iter=5, surrogate="random", archive=None
    )
    assert SurfaceDisplay.from_estimator(at_random.fit(X, y)).mean.shape == (80,)


def test_parameters_are_those_of_the_best_branch():
    space = [{"max_depth": [1]}, {"max_depth": [4, 5, 6], "max_leaf_nodes": randint(8, 30)}]
    search = TransferSearchCV(
        DecisionTreeClassifier(random_state=0),
        space,
        n_iter=10,
        archive=None,
        initial=[{"max_depth": 1}],
        random_state=0,
    ).fit(X, y)
    display = SurfaceDisplay.from_estimator(search, "max_leaf_nodes")
    n_in_branch = sum("max_leaf_nodes" in params for params in search.cv_results_["params"])
    assert len(display.trials) == n_in_branch < 10


def test_invalid_parameters_raise(search):
    with pytest.raises(ValueError, match="'degree' is not a parameter of the best"):
        SurfaceDisplay.from_estimator(search, "degree")
    with pytest.raises(ValueError, match="one or two different names"):
        SurfaceDisplay.from_estimator(search, ["C", "C"])
    with pytest.raises(ValueError, match="needs one Axes"):
        SurfaceDisplay.from_estimator(search, "C", ax=plt.subplots(1, 2)[1])
    few = TransferSearchCV(SVC(), {"C": uniform(0, 9)}, n_iter=2, archive=None).fit(X, y)
    with pytest.raises(ValueError, match="At least 3 successful trials"):
        SurfaceDisplay.from_estimator(few, "C")


@pytest.mark.parametrize(
    ("entry", "labels"),
    [
        (loguniform(1e-2, 1e2), ["0.01", "0.1", "1", "10", "100"]),
        (uniform(0, 1), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (randint(1, 11), ["2", "4", "6", "8", "10"]),
        (norm(0, 1), ["-2", "-1", "0", "1", "2"]),
        ([1, 10, 100], ["1", "10", "100"]),
        ([None, "balanced"], ["None", "balanced"]),
        (uniform(5, 1e-5), ["5", "5.000002", "5.000004", "5.000006", "5.000008", "5.00001"]),
    ],
)
def test_ticks_are_round_values_of_the_parameter(entry, labels):
    space = Space.parse({"a": entry})
    at, found = ParameterAxis(space, 0, 0).ticks()
    assert found == labels
    assert (np.diff(at) > 0).all() and at[0] >= -1e-9 and at[-1] <= 1 + 1e-9
