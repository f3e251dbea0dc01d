"""What users of other searches write."""

import warnings

import pytest
from scipy.stats import randint
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from sktransfer import TransferSearchCV, suggest
from sktransfer.exceptions import SpaceWarning

X, y = load_iris(return_X_y=True)
GRID = {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1.0]}


@pytest.mark.parametrize("name", ["param_grid", "param_distributions", "search_spaces"])
def test_other_name_of_the_space_is_explained(name):
    with pytest.raises(TypeError) as caught:
        TransferSearchCV(estimator=SVC(), **{name: GRID})
    assert str(caught.value) == (
        f"TransferSearchCV has no parameter {name!r}. Pass it as 'space', which takes the same "
        "dicts: TransferSearchCV(estimator, space=...)."
    )


def test_unknown_parameter_has_pythons_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'grid'"):
        TransferSearchCV(SVC(), GRID, grid=1)


def test_signature_is_that_of_init():
    assert "space" in TransferSearchCV(SVC(), GRID).get_params(deep=False)


def test_grid_larger_than_the_budget_is_mentioned(capsys):
    TransferSearchCV(SVC(), GRID, n_iter=5, cv=2, archive=None, verbose=1, random_state=0).fit(X, y)
    line = "Evaluating 5 of 12 configurations. n_iter=12 evaluates all of them."
    assert capsys.readouterr().out.splitlines()[0] == line


def test_grid_within_the_budget_is_not_mentioned(capsys):
    TransferSearchCV(SVC(), GRID, cv=2, archive=None, verbose=1).fit(X, y)
    assert "Evaluating" not in capsys.readouterr().out


@pytest.mark.parametrize("space", [{"C": [1, 10]}, {"degree": randint(2, 4)}])
def test_space_smaller_than_the_budget_warns(space):
    with pytest.warns(SpaceWarning) as caught:
        search = TransferSearchCV(SVC(), space, n_iter=10, cv=2, archive=None).fit(X, y)
    assert [str(each.message) for each in caught] == [
        "The total space of parameters 2 is smaller than n_iter=10. Running 2 iterations, which is "
        "the whole grid."
    ]
    assert caught[0].filename == __file__
    assert len(search.cv_results_["params"]) == 2


def test_default_budget_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TransferSearchCV(SVC(), {"C": [1, 10]}, cv=2, archive=None).fit(X, y)


@pytest.mark.parametrize("scoring", ["acuracy", ["acuracy", "f1_macro"], {"mine": "acuracy"}])
def test_suggest_refuses_an_unknown_metric(scoring):
    with pytest.raises(ValueError, match="acuracy"):
        suggest(SVC(), GRID, X, y, archive=None, scoring=scoring)


@pytest.mark.parametrize("scoring", ["accuracy", ["accuracy", "f1_macro"], lambda *_: 0.5])
def test_suggest_accepts_what_a_search_accepts(scoring):
    assert suggest(SVC(), GRID, X, y, archive=None, scoring=scoring)
