"""scikit-learn's estimator checks, with the instances and exceptions it has for GridSearchCV."""

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.utils._test_common.instance_generator import (
    _construct_instances,
    _get_expected_failed_checks,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from sktransfer import TransferSearchCV


def make_twins():
    """Pairs of a GridSearchCV that scikit-learn tests and the equivalent TransferSearchCV."""
    for grid in _construct_instances(GridSearchCV):
        params = grid.get_params(deep=False)
        params["space"] = params.pop("param_grid")
        yield grid, TransferSearchCV(**params, archive=None, random_state=0)


TWINS = list(make_twins())


def expected_failed_checks(search):
    grid = next(grid for grid, twin in TWINS if twin is search)
    return _get_expected_failed_checks(grid)


@parametrize_with_checks(
    [search for _, search in TWINS], expected_failed_checks=expected_failed_checks
)
def test_estimator_check_passes(estimator, check):
    check(estimator)


def test_all_instances_of_grid_search_are_checked():
    assert len(TWINS) >= 2
    kinds = {type(search.estimator) for _, search in TWINS}
    assert kinds & {Ridge, LogisticRegression}


@pytest.mark.parametrize("surrogate", ["gp", "random"])
def test_estimator_checks_pass_for_sequential_search(surrogate):
    from sklearn.utils.estimator_checks import check_estimator

    space = {"C": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]}
    search = TransferSearchCV(
        LogisticRegression(),
        space,
        n_iter=5,
        cv=2,
        surrogate=surrogate,
        archive=None,
        random_state=0,
    )
    grid = next(grid for grid, _ in TWINS if isinstance(grid.estimator, LogisticRegression))
    check_estimator(search, expected_failed_checks=_get_expected_failed_checks(grid))
