"""The user's own configurations are evaluated first."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.exceptions import ResumeWarning

X, y = load_iris(return_X_y=True)
SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}
GRID = {"C": [0.1, 1, 10], "kernel": ["rbf", "linear"]}


def fit(initial, space=SPACE, estimator=None, **params):
    params = {"n_iter": 6, "cv": 3, "archive": None, "random_state": 0} | params
    return TransferSearchCV(estimator or SVC(), space, initial=initial, **params).fit(X, y)


def origins(search):
    return list(search.cv_results_["origin"])


@pytest.mark.parametrize("batch_size", [None, 4])
def test_given_configurations_come_first(batch_size):
    given = [{"C": 5.0, "gamma": 0.2}, {"C": 0.7, "gamma": 0.03}]
    search = fit(given, batch_size=batch_size)
    assert search.cv_results_["params"][:2] == given
    assert origins(search)[:2] == ["initial"] * 2 and "initial" not in origins(search)[2:]
    assert len(origins(search)) == 6


def test_model_learns_from_given_configurations():
    good = fit([{"C": 10.0, "gamma": 0.1}], surrogate="gp", n_iter=8)
    bad = fit([{"C": 1e-3, "gamma": 1e-4}], surrogate="gp", n_iter=8)
    assert good.cv_results_["params"][5:] != bad.cv_results_["params"][5:]


def test_defaults_are_the_estimator_as_it_is():
    estimator = SVC(C=3.0)
    search = fit("defaults", estimator=estimator)
    assert search.cv_results_["params"][0] == {"C": 3.0, "gamma": "scale"}
    expected = cross_val_score(estimator, X, y, cv=3).mean()
    assert search.cv_results_["mean_test_score"][0] == expected
    assert search.best_score_ >= expected


def test_missing_parameters_have_the_values_of_the_estimator():
    search = fit({"C": 2.0}, estimator=SVC(gamma=0.5))
    assert search.cv_results_["params"][0] == {"C": 2.0, "gamma": 0.5}


def test_equal_configurations_are_evaluated_once():
    search = fit(["defaults", {"C": 1.0}, {"C": 1.0, "gamma": "scale"}])
    assert origins(search).count("initial") == 1


def test_grid_starts_with_given_configurations():
    search = fit([{"C": 10, "kernel": "linear"}], GRID, n_iter=25)
    assert origins(search) == ["initial"] + ["grid"] * 5
    assert search.cv_results_["params"][0] == {"C": 10, "kernel": "linear"}
    assert len({str(params) for params in search.cv_results_["params"]}) == 6


def test_configuration_outside_of_a_grid_needs_room_in_the_budget():
    outside = [{"C": 100, "kernel": "poly"}]
    assert origins(fit(outside, GRID, n_iter=7)) == ["initial"] + ["grid"] * 6
    search = fit(outside, GRID, n_iter=6)
    assert origins(search)[0] == "initial" and "grid" not in origins(search)
    assert len(origins(search)) == 6


def test_branch_of_a_conditional_space_is_found():
    space = [{"kernel": ["rbf"], "gamma": [0.1, 1.0]}, {"kernel": ["poly"], "degree": [2, 3]}]
    search = fit([{"kernel": "poly", "degree": 5}], space, n_iter=25)
    assert search.cv_results_["params"][0] == {"kernel": "poly", "degree": 5}


@pytest.mark.parametrize(
    ("initial", "error", "words"),
    [
        ("default", ValueError, "'initial' parameter"),
        (["default"], ValueError, "initial must be 'defaults', a dict or a list, got 'default'"),
        ([3], TypeError, "initial must contain dicts, got 3"),
        (
            [{"degree": 2}],
            ValueError,
            r"not in the space: {'degree': 2}. The parameters of the space are C, gamma\.",
        ),
        ([{"C": c} for c in range(1, 8)], ValueError, "7 configurations, more than n_iter=6"),
    ],
)
def test_invalid_configuration_is_refused(initial, error, words):
    with pytest.raises(error, match=words):
        fit(initial)


def test_other_initial_configurations_are_another_search(tmp_path):
    first = fit([{"C": 5.0}], archive=tmp_path)
    again = fit([{"C": 5.0}], archive=tmp_path, resume=True)
    assert again.task_id_ == first.task_id_
    np.testing.assert_array_equal(again.cv_results_["params"], first.cv_results_["params"])
    with pytest.warns(ResumeWarning, match="differs in the initial configurations"):
        fit([{"C": 6.0}], archive=tmp_path, resume=True)
