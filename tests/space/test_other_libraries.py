"""Spaces of scikit-optimize and Optuna."""

import warnings

import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from sktransfer import Space, TransferSearchCV
from sktransfer.exceptions import SpaceWarning
from sktransfer.space._other_libraries import translate_entry, translate_space


def library_class(library, name):
    """A class that looks as if it came from a library that need not be installed."""
    return type(name, (), {"__module__": f"{library}.distributions", "__init__": set_attributes})


def set_attributes(self, **attributes):
    self.__dict__.update(attributes)


Real = library_class("skopt", "Real")
Integer = library_class("skopt", "Integer")
SkoptCategorical = library_class("skopt", "Categorical")
FloatDistribution = library_class("optuna", "FloatDistribution")
IntDistribution = library_class("optuna", "IntDistribution")
CategoricalDistribution = library_class("optuna", "CategoricalDistribution")


@pytest.mark.parametrize(
    ("entry", "family", "support"),
    [
        ((1e-3, 1e3, "log-uniform"), "loguniform", (1e-3, 1e3)),
        ((1e-3, 1e3, "log-uniform", 10), "loguniform", (1e-3, 1e3)),
        ((0.5, 2.5, "uniform"), "uniform", (0.5, 2.5)),
        ((2, 9, "uniform"), "randint", (2, 9)),
        (Real(low=1e-3, high=1e3, prior="log-uniform"), "loguniform", (1e-3, 1e3)),
        (Integer(low=2, high=9, prior="uniform"), "randint", (2, 9)),
        (FloatDistribution(low=0.5, high=2.5, log=False, step=None), "uniform", (0.5, 2.5)),
        (FloatDistribution(low=1e-3, high=1e3, log=True, step=None), "loguniform", (1e-3, 1e3)),
        (IntDistribution(low=2, high=9, log=False, step=1), "randint", (2, 9)),
    ],
)
def test_range_becomes_a_distribution_with_both_ends(entry, family, support):
    found = translate_entry("C", entry)
    assert found.dist.name == family
    assert found.support() == pytest.approx(support)


@pytest.mark.parametrize(
    ("entry", "values"),
    [
        (SkoptCategorical(categories=("rbf", "poly")), ["rbf", "poly"]),
        (CategoricalDistribution(choices=("rbf", None)), ["rbf", None]),
        (IntDistribution(low=2, high=9, log=False, step=3), [2, 5, 8]),
        (FloatDistribution(low=0.1, high=0.5, log=False, step=0.1), [0.1, 0.2, 0.3, 0.4, 0.5]),
        ((1, 6, "log-uniform"), [1, 2, 3, 4, 6]),
    ],
)
def test_finite_entry_becomes_a_list(entry, values):
    assert translate_entry("C", entry) == values


def test_integers_on_a_log_scale_are_spread_geometrically():
    values = translate_entry("n", IntDistribution(low=1, high=10_000, log=True, step=1))
    assert values[0] == 1 and values[-1] == 10_000 and len(values) < 64
    assert Space.parse({"n": values}).encode({"n": 100}) == pytest.approx(0.5, abs=0.05)


def test_lists_and_distributions_stay_as_they_are():
    space = {"C": loguniform(1, 2), "kernel": ["rbf"], "size": [(50,), (50, 50)], "t": ("a", "b")}
    assert translate_space([space, 3]) == [space, 3]


def test_tuple_of_two_numbers_is_two_values_with_a_warning():
    with pytest.warns(SpaceWarning) as caught:
        space = Space.parse({"C": (1e-3, 1e3)})
    assert space.size == 2
    assert [str(each.message) for each in caught] == [
        "space['C'] = (0.001, 1000.0) has two values, as in GridSearchCV. For all values between "
        "them, as in BayesSearchCV, write loguniform(0.001, 1000.0) of scipy.stats. For the two "
        "values, write a list: [0.001, 1000.0]."
    ]
    with pytest.warns(SpaceWarning, match=r"write randint\(1, 6\) of scipy.stats"):
        Space.parse({"n": (1, 5)})
    with pytest.warns(SpaceWarning, match=r"write uniform\(0.5, 1.0\) of scipy.stats"):
        Space.parse({"x": (0.5, 1.5)})


def test_search_warns_of_a_tuple_once():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TransferSearchCV(SVC(), {"C": (0.1, 10.0)}, archive=None).fit(X, y)
    assert [each.category for each in caught] == [SpaceWarning]
    assert caught[0].filename == __file__


def test_log_scale_from_zero_says_what_to_write():
    with pytest.raises(ValueError, match=r"a logarithm needs positive values.*loguniform\(1e-3"):
        Space.parse({"C": (0.0, 1.0, "log-uniform")})


def test_too_many_steps_say_what_to_write():
    entry = FloatDistribution(low=0.0, high=1.0, log=False, step=1e-6)
    with pytest.raises(ValueError, match=r"1000001 steps.*uniform\(0.0, 1.0\) of scipy.stats"):
        translate_entry("x", entry)


def test_unknown_object_names_scipy_stats():
    X, y = load_iris(return_X_y=True)
    entry = library_class("hyperopt", "Apply")()
    search = TransferSearchCV(SVC(), {"C": entry}, archive=None)
    with pytest.raises(TypeError, match=r"frozen scipy.stats distribution, such as loguniform"):
        search.fit(X, y)


def test_single_value_has_the_error_of_gridsearchcv():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="needs to be a list or a numpy array, but got 1"):
        TransferSearchCV(SVC(), {"C": 1}, archive=None).fit(X, y)


def test_spaces_of_the_installed_libraries():
    skopt = pytest.importorskip("skopt.space")
    optuna = pytest.importorskip("optuna.distributions")
    space = {
        "C": skopt.Real(1e-3, 1e3, prior="log-uniform"),
        "degree": skopt.Integer(2, 5),
        "kernel": skopt.Categorical(["rbf", "poly"]),
        "gamma": optuna.FloatDistribution(1e-4, 1.0, log=True),
        "max_iter": optuna.IntDistribution(100, 1000, step=100),
        "shrinking": optuna.CategoricalDistribution([True, False]),
    }
    described = Space.parse(space, SVC()).describe()["branches"][0]
    assert described["C"]["distribution"] == described["gamma"]["distribution"] == "loguniform"
    assert described["degree"]["distribution"] == "randint"
    assert described["max_iter"]["values"] == list(range(100, 1001, 100))
    assert described["kernel"]["values"] == ["rbf", "poly"]
    X, y = load_iris(return_X_y=True)
    search = TransferSearchCV(SVC(), space, n_iter=3, cv=2, archive=None, random_state=0)
    assert search.fit(X, y).best_score_ > 0.3
