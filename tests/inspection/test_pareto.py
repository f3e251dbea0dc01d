"""`ParetoDisplay`: score against time."""

import numpy as np
import pytest

from sktransfer.inspection import ParetoDisplay
from sktransfer.inspection._pareto import find_front


def dominated(i, scores, times):
    better = (scores >= scores[i]) & (times <= times[i])
    return (better & ((scores > scores[i]) | (times < times[i]))).any()


def test_front_is_what_nothing_dominates(rng):
    scores, times = rng.random(200).round(2), rng.random(200).round(2)
    front = find_front(scores, times)
    assert (np.diff(times[front]) > 0).all() and (np.diff(scores[front]) > 0).all()
    for i in range(200):
        same = (scores[front] == scores[i]) & (times[front] == times[i])
        assert dominated(i, scores, times) != same.any()


def test_display_shows_trials_and_front(search, texts):
    display = ParetoDisplay.from_estimator(search)
    assert search.best_score_ == display.scores[display.front[-1]]
    np.testing.assert_array_equal(display.line_.get_ydata(), display.scores[display.front])
    assert "Mean time of one fit (milliseconds)" in display.ax_.get_xlabel()
    assert any("kernel = " in text for text in texts(display.figure_))


def test_time_is_logarithmic_over_decades():
    assert ParetoDisplay([0.5, 0.6], [0.1, 20.0]).plot().ax_.get_xscale() == "log"
    narrow = ParetoDisplay([0.5, 0.6], [1.0, 2.0]).plot()
    assert narrow.ax_.get_xscale() == "linear"
    assert narrow.ax_.get_xlabel() == "Mean time of one fit (seconds)"


def test_failed_trials_have_no_place(texts):
    display = ParetoDisplay([np.nan, np.nan], [1.0, 2.0]).plot()
    assert texts(display.figure_) == ["No trial succeeded."]
    assert ParetoDisplay([np.nan, 0.5], [1.0, 2.0]).front.tolist() == [1]
    with pytest.raises(ValueError, match="one length"):
        ParetoDisplay([0.5], [1.0, 2.0])


def test_ends_of_the_front_are_named(texts):
    params = [{"svc__C": 0.1}, {"svc__C": 1.0}, {"svc__C": 10.0}]
    display = ParetoDisplay([0.8, 0.9, 0.85], [0.1, 2.0, 3.0], params=params).plot()
    assert {"fastest: C = 0.1", "best: C = 1"} <= set(texts(display.figure_))
    alone = ParetoDisplay([0.8], [0.1], params=params[:1]).plot()
    assert "fastest and best: C = 0.1" in texts(alone.figure_)
    low, high = alone.ax_.get_ylim()
    assert low < 0.8 < high
