"""`ParallelCoordinatesDisplay`: trials as lines."""

import numpy as np
import pytest
from scipy.stats import randint
from sklearn.tree import DecisionTreeClassifier

from sktransfer import TransferSearchCV
from sktransfer.inspection import ParallelCoordinatesDisplay
from tests.inspection.conftest import X, y


def test_lines_run_through_the_parameters_to_the_score(search):
    display = ParallelCoordinatesDisplay.from_estimator(search)
    codes = search.space_.encode(search.cv_results_["params"])
    np.testing.assert_allclose(display.trials, codes)
    assert len(display.lines_) == len(codes)
    best = display.lines_[search.best_index_].get_ydata()
    np.testing.assert_allclose(best, [*codes[search.best_index_], 1.0])
    labels = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert labels == ["C", "gamma", "kernel", "Mean test score"]


def test_axes_carry_the_values(search, texts):
    words = set(texts(ParallelCoordinatesDisplay.from_estimator(search).figure_))
    assert {"0.01", "1000", "rbf", "sigmoid"} <= words


def test_parameters_can_be_chosen_and_ordered(search):
    display = ParallelCoordinatesDisplay.from_estimator(search, ["kernel", "C"])
    assert display.names == ["kernel", "C"]
    with pytest.raises(ValueError, match="'degree' is not a parameter of the search"):
        ParallelCoordinatesDisplay.from_estimator(search, ["degree"])


def test_absent_parameters_are_gaps_and_kinds_share_an_axis():
    space = [{"max_depth": [1]}, {"max_depth": [None], "max_leaf_nodes": randint(8, 30)}]
    search = TransferSearchCV(
        DecisionTreeClassifier(random_state=0), space, n_iter=6, archive=None, random_state=0
    ).fit(X, y)
    display = ParallelCoordinatesDisplay.from_estimator(search)
    assert display.names == ["max_depth", "max_leaf_nodes"]
    has_leaves = ["max_leaf_nodes" in params for params in search.cv_results_["params"]]
    np.testing.assert_array_equal(np.isfinite(display.trials[:, 1]), has_leaves)
    # 1 is a number and None a category: the lower and the upper half of one axis.
    np.testing.assert_allclose(display.trials[:, 0], np.where(has_leaves, 0.75, 0.25))
    assert display.ticks[0][1] == ["1", "None"]


def test_axis_has_the_values_of_all_branches():
    space = [{"criterion": ["gini"]}, {"criterion": ["entropy"], "max_depth": [2, 3]}]
    search = TransferSearchCV(
        DecisionTreeClassifier(random_state=0), space, n_iter=3, archive=None
    ).fit(X, y)
    display = ParallelCoordinatesDisplay.from_estimator(search)
    assert sorted(display.ticks[0][1]) == ["entropy", "gini"]
    # The configuration without a depth passes by its axis.
    [row] = np.flatnonzero(np.isnan(display.trials[:, 1]))
    bridges = [line for line in display.ax_.lines if line.get_linestyle() == ":"]
    [bridge] = bridges
    assert bridge.get_xdata().tolist() == [0, 2]
    assert bridge.get_color() == display.lines_[row].get_color()


def test_failed_trials_are_dotted():
    ticks = [(np.array([0.0, 1.0]), ["a", "b"])]
    display = ParallelCoordinatesDisplay(["p"], [[0.1], [0.9]], [0.5, np.nan], ticks=ticks).plot()
    assert [line.get_linestyle() for line in display.lines_] == ["-", ":"]
    with pytest.raises(ValueError, match="has the shape"):
        ParallelCoordinatesDisplay(["p"], [[0.1, 0.2]], [0.5], ticks=ticks)
