"""`SearchHistoryDisplay`: trials, the best so far, predictions."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.inspection import SearchHistoryDisplay


def test_display_holds_the_results_of_the_search(search):
    display = SearchHistoryDisplay.from_estimator(search, name="iris")
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(display.scores, scores)
    np.testing.assert_array_equal(display.line_.get_ydata(), np.maximum.accumulate(scores))
    assert display.ax_.get_title() == "iris"
    assert display.ax_.get_xlabel() == "Trial"
    assert display.ax_.get_ylabel() == "Mean test score"


def test_trials_are_grouped_by_origin(search):
    display = SearchHistoryDisplay.from_estimator(search)
    origins = search.cv_results_["origin"]
    n_past = sum(origin.startswith("task") for origin in origins)
    assert 0 < n_past < len(origins)
    assert {"past task", "model"} <= set(display.points_) <= {"past task", "model", "space-filling"}
    display.plot(limits=(-1, 2))  # nothing is below
    assert len(display.points_["past task"].get_offsets()) == n_past


def test_low_and_failed_trials_are_marked_at_the_bottom(texts):
    display = SearchHistoryDisplay([0.7, -400.0, 0.6, np.nan, 0.675]).plot()
    low, high = display.ax_.get_ylim()
    assert low > -1 and high < 1
    assert {"failed", "below 0.2"} <= set(texts(display.figure_))
    np.testing.assert_array_equal(display.best_scores, [0.7] * 5)
    assert len(display.points_["failed"].get_offsets()) == 1


def test_all_trials_may_have_failed():
    display = SearchHistoryDisplay([np.nan, np.nan]).plot()
    assert np.isnan(display.best_scores).all()
    assert len(display.points_["failed"].get_offsets()) == 2


def test_predictions_are_shown_where_there_are_any(search, grid):
    band = SearchHistoryDisplay.from_estimator(search).band_
    known = np.isfinite(search.cv_results_["predicted_mean"])
    assert 0 < len(band.get_segments()) <= known.sum()
    assert SearchHistoryDisplay.from_estimator(grid).band_ is None


def test_searches_can_be_compared_in_one_picture(search, plain):
    first = SearchHistoryDisplay.from_estimator(search, name="archive", kind="best")
    second = SearchHistoryDisplay.from_estimator(plain, name="none", kind="best", ax=first.ax_)
    assert second.figure_ is first.figure_ and second.points_ == {}
    labels = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert labels == ["archive", "none"]


def test_searches_side_by_side_have_one_scale(search, plain):
    displays = SearchHistoryDisplay.from_estimators({"a": search, "b": plain})
    assert displays[0].figure_ is displays[1].figure_
    assert displays[0].ax_ is not displays[1].ax_
    assert displays[0].ax_.get_ylim() == displays[1].ax_.get_ylim()
    with pytest.raises(ValueError, match="at least one search"):
        SearchHistoryDisplay.from_estimators({})


def test_other_searches_and_several_metrics_work():
    data = np.arange(24.0).reshape(12, 2), np.arange(12) % 2
    scoring = {"acc": "accuracy", "loss": "neg_log_loss"}
    grid = {"strategy": ["prior", "uniform"]}
    search = GridSearchCV(DummyClassifier(), grid, scoring=scoring, refit="loss", cv=3).fit(*data)
    display = SearchHistoryDisplay.from_estimator(search)
    np.testing.assert_array_equal(display.scores, search.cv_results_["mean_test_loss"])
    assert display.ax_.get_ylabel() == "Mean test score (loss)"
    assert set(display.points_) == {"trial"}


def test_given_axes_are_used(plain):
    figure, ax = plt.subplots()
    display = SearchHistoryDisplay.from_estimator(plain, ax=ax)
    assert display.ax_ is ax and display.figure_ is figure


def test_invalid_input_raises(search):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SearchHistoryDisplay.from_estimator(TransferSearchCV(SVC(), {"C": [1, 2]}))
    with pytest.raises(TypeError, match="SVC is not a hyperparameter search"):
        SearchHistoryDisplay.from_estimator(SVC().fit([[0], [1]], [0, 1]))
    with pytest.raises(ValueError, match="kind='all' must be"):
        SearchHistoryDisplay.from_estimator(search, kind="all")
    with pytest.raises(ValueError, match="same length"):
        SearchHistoryDisplay([1.0, 2.0], origins=["model"])


def test_nothing_is_drawn_where_the_legend_is():
    scores, mean = [0.1, 0.9, 0.95, 1.0], [0.5, -3.0, 0.9, 0.9]
    display = SearchHistoryDisplay(scores, predicted_mean=mean, predicted_std=[0.1, 0.1, 9.0, 0.1])
    display.plot(limits=(0.8, 1.0))
    lowest = min(segment[:, 1].min() for segment in display.band_.get_segments())
    assert len(display.band_.get_segments()) == 2  # the others lie below the range
    assert lowest == pytest.approx(0.78)
    # The best so far begins at the mark of a trial below the range.
    np.testing.assert_allclose(display.line_.get_ydata(), [0.792, 0.9, 0.95, 1.0])


def test_single_trial_has_a_whole_number():
    display = SearchHistoryDisplay([0.5]).plot()
    low, high = display.ax_.get_xlim()
    assert [tick for tick in display.ax_.get_xticks() if low <= tick <= high] == [1]


def test_predictions_above_all_scores_are_shown():
    scores, std = [0.5, 0.6, 0.7], [0.1, 0.1, 0.1]
    near = SearchHistoryDisplay(scores, predicted_mean=[0.75, 0.6, 0.7], predicted_std=std).plot()
    far = SearchHistoryDisplay(scores, predicted_mean=[75.0, 0.6, 0.7], predicted_std=std).plot()
    assert near.ax_.get_ylim()[1] > 0.75
    assert 0.7 < far.ax_.get_ylim()[1] < 0.8
