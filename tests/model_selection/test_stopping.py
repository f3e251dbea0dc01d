"""Searches that end before their budget is used up, and fits that take too long."""

import math
import time

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris

from sktransfer import TransferSearchCV
from sktransfer.model_selection import _plan
from sktransfer.model_selection._stopping import StoppingRule

X, y = load_iris(return_X_y=True)


class Scored(ClassifierMixin, BaseEstimator):
    """Its score is `a`, and its fit takes `seconds`."""

    def __init__(self, a=0.0, seconds=0.0):
        self.a, self.seconds = a, seconds

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            time.sleep(0.01)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return self.a


def make_search(space, **params):
    params = {"cv": 2, "archive": None, "random_state": 0, "surrogate": "random"} | params
    return TransferSearchCV(Scored(), space, **params)


def scores(search):
    return search.cv_results_["mean_test_score"].tolist()


def test_patience_counts_candidates_since_the_best():
    grid = {"a": [0.1, 0.3, 0.2, 0.3, 0.2, 0.9]}
    assert scores(make_search(grid, patience=3).fit(X, y)) == [0.1, 0.3, 0.2, 0.3, 0.2]
    assert scores(make_search(grid, patience=4).fit(X, y)) == grid["a"]


def test_patience_ends_a_model_based_search():
    search = make_search({"a": uniform(0, 1)}, n_iter=40, patience=5).fit(X, y)
    found = scores(search)
    assert len(found) < 40
    assert max(found) == found[-6] and max(found[-5:]) < found[-6]


def test_target_score_ends_grid_and_model_based_search():
    assert scores(make_search({"a": [0.1, 0.5, 0.9]}, target_score=0.5).fit(X, y)) == [0.1, 0.5]
    found = scores(make_search({"a": uniform(0, 1)}, n_iter=40, target_score=0.8).fit(X, y))
    assert found[-1] >= 0.8 and max(found[:-1], default=0) < 0.8 and len(found) < 40


def test_target_score_may_be_negative():
    assert scores(make_search({"a": [-9.0, -1.0, 0.0]}, target_score=-2).fit(X, y)) == [-9.0, -1.0]


def test_failures_before_the_first_success_do_not_use_up_patience():
    rule = StoppingRule(patience=2)
    assert rule.reason([math.nan] * 5) is None
    assert rule.reason([0.5, math.nan, math.nan]) == "no better score in the last 2 candidates"


def test_verbose_says_why_a_search_stopped(capsys):
    def last_line(**params):
        make_search({"a": [0.3, 0.4, 0.1, 0.5]}, verbose=1, **params).fit(X, y)
        return capsys.readouterr().out.splitlines()[-1]

    assert last_line(patience=1) == (
        "Stopped after 3 of 4 candidates: no better score in the last 1 candidates."
    )
    assert last_line(target_score=0.4) == (
        "Stopped after 2 of 4 candidates: a score of 0.4 reaches target_score=0.4."
    )
    assert last_line(timeout=1e-9) == "Stopped after 1 of 4 candidates: the timeout is over."
    assert not last_line(patience=9).startswith("Stopped")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_slow_fit_fails_and_the_search_continues(n_jobs):
    space = [{"a": [0.9], "seconds": [30.0]}, {"a": [0.4], "seconds": [0.0]}]
    search = make_search(space, fit_timeout=0.3, n_jobs=n_jobs)
    start = time.monotonic()
    with pytest.warns(Warning, match=r"The fit took longer than fit_timeout=0\.3 seconds\."):
        search.fit(X, y)
    assert time.monotonic() - start < 25
    np.testing.assert_equal(scores(search), [math.nan, 0.4])
    assert search.best_params_ == {"a": 0.4, "seconds": 0.0}


def test_fit_timeout_raises_if_errors_are_raised():
    search = make_search({"seconds": [30.0]}, fit_timeout=0.1, error_score="raise")
    with pytest.raises(TimeoutError, match=r"fit_timeout=0\.1 seconds"):
        search.fit(X, y)


def test_fit_timeout_needs_a_timer(monkeypatch):
    monkeypatch.setattr(_plan, "can_limit_fits", lambda: False)
    with pytest.raises(ValueError, match="which this platform lacks"):
        make_search({"a": [0.1]}, fit_timeout=1).fit(X, y)


@pytest.mark.parametrize(
    "params", [{"patience": 0}, {"patience": 1.5}, {"target_score": "x"}, {"fit_timeout": 0}]
)
def test_invalid_limits_are_refused(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        make_search({"a": [0.1]}, **params).fit(X, y)
