"""Canonical names, fixed values, and past tasks encoded in the target space."""

import numpy as np
import pytest
from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Space, Task
from sktransfer.archive._selection import select_past_tasks
from sktransfer.space._axes import UNKNOWN_CATEGORY
from sktransfer.space._projection import encode_past_task


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (SVC(), "C"),
        (make_pipeline(StandardScaler(), SVC()), "svc__C"),
        (Pipeline([("scale", StandardScaler()), ("clf", SVC())]), "clf__C"),
        (Pipeline([("outer", Pipeline([("clf", SVC())]))]), "outer__clf__C"),
    ],
)
def test_canonical_name_does_not_depend_on_the_pipeline(estimator, name):
    space = Space.parse({name: [1, 2]}, estimator)
    assert space.canonical == {name: "SVC.C"}
    assert space.predictors == ["SVC"]


def test_searched_step_owns_its_parameters():
    pipeline = Pipeline([("clf", SVC())])
    spec = [
        {"clf": [SVC()], "clf__C": [1, 2]},
        {"clf": [RandomForestClassifier()], "clf__max_depth": [1, 2]},
    ]
    space = Space.parse(spec, pipeline)
    assert space.canonical["clf__C"] == "SVC.C"
    assert space.canonical["clf__max_depth"] == "RandomForestClassifier.max_depth"
    assert space.predictors == ["RandomForestClassifier", "SVC"]


def test_members_of_one_class_have_different_canonical_names():
    vote = VotingClassifier([("a", SVC()), ("b", SVC())])
    names = Space.parse({"a__C": [1], "b__C": [1], "a__gamma": [1]}, vote).canonical
    assert names["a__C"] != names["b__C"]
    assert names["a__gamma"] == "SVC.gamma@a"  # searched alone, it is still not the parameter of b


def test_predictors_inside_transparent_wrappers_only():
    target = TransformedTargetRegressor(SVR())
    assert Space.parse({"regressor__C": [1]}, target).predictors == ["SVR"]
    boosted = AdaBoostClassifier(DecisionTreeClassifier())
    assert Space.parse({"estimator__max_depth": [1]}, boosted).predictors == ["AdaBoostClassifier"]


def test_fixed_has_the_parameters_that_are_not_searched():
    space = Space.parse(
        {"svc__C": [1]}, make_pipeline(StandardScaler(), SVC(kernel="poly", degree=5))
    )
    assert space.fixed["SVC.kernel"] == "poly"
    assert space.fixed["SVC.degree"] == 5
    assert "SVC.C" not in space.fixed


@pytest.mark.parametrize(
    ("estimator", "name", "hint"),
    [
        (SVC(), "gama", "'gamma'"),
        (make_pipeline(StandardScaler(), SVC()), "svc__c", "'svc__C'"),
        (make_pipeline(StandardScaler(), SVC()), "SVC__C", "'svc__C'"),
        (SVC(), "xxxxxxxx", "Known names"),
    ],
)
def test_unknown_name_raises_with_the_closest_known_name(estimator, name, hint):
    with pytest.raises(ValueError, match=r"Invalid parameter") as caught:
        Space.parse({name: [1]}, estimator)
    assert repr(name) in str(caught.value)
    assert hint in str(caught.value)


# -- past tasks ------------------------------------------------------------------------------------


def test_past_trials_are_matched_by_canonical_names():
    past = Task.from_trials(
        {"C": loguniform(1e-3, 1e3)}, [({"C": 1.0}, 0.9), ({"C": 1e6}, 0.1)], estimator=SVC()
    )
    target = Space.parse(
        {"clf__C": loguniform(1e-3, 1e3), "clf__kernel": ["rbf", "poly"]},
        Pipeline([("clf", SVC())]),
    )
    codes, kept, _ = encode_past_task(target, past)
    assert kept.tolist() == [0, 1]
    c, kernel = (target.column_names().index(name) for name in ("clf__C", "clf__kernel"))
    assert codes[:, c] == pytest.approx([0.5, 1.5])  # out of bounds by its distance
    # The kernel was not searched: the value of the estimator is "rbf".
    assert codes[:, kernel] == pytest.approx(0.25)


def test_trials_with_another_category_than_the_fixed_one_are_left_out():
    past = Task.from_trials(
        {"C": [1, 10], "kernel": ["rbf", "linear"]},
        [({"C": 1, "kernel": "rbf"}, 0.9), ({"C": 10, "kernel": "linear"}, 0.8)],
        estimator=SVC(),
    )
    codes, kept, _ = encode_past_task(Space.parse({"C": [1, 10]}, SVC(kernel="linear")), past)
    assert kept.tolist() == [1]
    assert codes.tolist() == [[1.0]]


def test_fixed_number_leaves_no_trial_out():
    past = Task.from_trials(
        {"C": [1, 10], "degree": [2, 3]}, [({"C": 1, "degree": 2}, 0.9)], estimator=SVC()
    )
    assert len(encode_past_task(Space.parse({"C": [1, 10]}, SVC(degree=3)), past)[1]) == 1


def test_task_without_estimator_is_matched_by_declared_names():
    past = Task.from_trials({"C": [1, 10]}, [({"C": 10}, 0.5)])
    for space in (Space.parse({"C": [1, 10]}), Space.parse({"C": [1, 10]}, SVC())):
        assert encode_past_task(space, past)[0].tolist() == [[1.0]]


def test_unknown_values_are_in_the_middle_or_an_unknown_category():
    past = Task.from_trials({"a": [1, 10]}, [({"a": 10}, 0.5)])
    codes, _, _ = encode_past_task(
        Space.parse({"a": [1, 10], "b": [1, 2, 3], "c": ["x", "y"]}), past
    )
    assert codes.tolist() == [[1.0, 0.5, UNKNOWN_CATEGORY]]


def test_default_that_is_not_a_number_is_in_the_middle_of_the_scale():
    past = Task.from_trials({"C": [1, 10]}, [({"C": 10}, 0.5)], estimator=SVC(gamma="scale"))
    space = Space.parse({"C": [1, 10], "gamma": loguniform(1e-5, 10)}, SVC())
    codes, _, _ = encode_past_task(space, past)
    assert codes[0, space.column_names().index("gamma")] == 0.5


def test_past_task_on_the_same_conditional_space_has_the_same_codes():
    """Inactive columns agree in the codes of past trials and of target trials."""
    spec = [
        {"clf": [SVC()], "clf__C": loguniform(0.1, 10)},
        {"clf": [DecisionTreeClassifier()], "clf__criterion": ["gini", "entropy"]},
    ]
    pipe = Pipeline([("clf", SVC())])
    space = Space.parse(spec, pipe)
    drawn = space.sample(20, 0)
    past = Task.from_trials(spec, [(params, 0.5) for params in drawn], estimator=pipe)
    np.testing.assert_allclose(encode_past_task(space, past)[0], space.encode(drawn), atol=1e-9)


def test_name_that_only_set_params_accepts_is_valid():
    class AcceptsAnyName(SVC):
        def set_params(self, **params):
            self.extra_ = params
            return self

    assert Space.parse({"bagging_freq": [1, 2]}, AcceptsAnyName()).size == 2


def test_past_trials_are_assigned_to_their_branches():
    spec = [{"kernel": ["rbf"], "gamma": [0.1, 1]}, {"kernel": ["poly"], "degree": randint(2, 5)}]
    space = Space.parse(spec, SVC())
    trials = [({"kernel": "poly", "degree": 3}, 0.5), ({"kernel": "rbf", "gamma": 1}, 0.6)]
    codes, _, _ = encode_past_task(space, Task.from_trials(spec, trials, estimator=SVC()))
    assert space.branch_of(codes).tolist() == [1, 0]
    assert np.isfinite(codes).all()


CHOICE = [
    {"clf": [LogisticRegression()], "clf__C": loguniform(1e-2, 1e2)},
    {"clf": [SVC()], "clf__C": loguniform(1e-2, 1e2), "clf__gamma": loguniform(1e-4, 1)},
]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_past_tasks_are_assigned_to_their_estimator(is_reversed):
    """The estimators share a parameter, and their order does not matter."""
    space = Space.parse(CHOICE[::-1] if is_reversed else CHOICE, Pipeline([("clf", SVC())]))
    of_svc = Task.from_trials(
        {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-4, 1)},
        [({"C": 0.1, "gamma": 0.01}, 0.7), ({"C": 100.0, "gamma": 0.01}, 0.9)],
        estimator=SVC(),
    )
    of_logistic = Task.from_trials(
        {"C": loguniform(1e-2, 1e2)}, [({"C": 0.1}, 0.7)], estimator=LogisticRegression()
    )
    for task, estimator in ((of_svc, SVC), (of_logistic, LogisticRegression)):
        assert not select_past_tasks([task], space, None, "exclude").excluded
        codes, kept, _ = encode_past_task(space, task)
        found = space.decode(codes)
        assert len(kept) == len(task.trials)
        assert all(type(params["clf"]) is estimator for params in found)
        assert [params["clf__C"] for params in found] == pytest.approx(
            [t.params["C"] for t in task.trials]
        )


def test_only_trials_that_chose_the_target_estimator_are_kept():
    trials = [
        ({"clf": LogisticRegression(), "clf__C": 0.1}, 0.7),
        ({"clf": SVC(), "clf__C": 10.0, "clf__gamma": 0.01}, 0.9),
    ]
    past = Task.from_trials(CHOICE, trials, estimator=Pipeline([("clf", SVC())]))
    for estimator, row in ((LogisticRegression(), 0), (SVC(), 1)):
        space = Space.parse({"C": loguniform(1e-2, 1e2)}, estimator)
        assert not select_past_tasks([past], space, None, "exclude").excluded
        codes, kept, _ = encode_past_task(space, past)
        assert kept.tolist() == [row]
        assert space.decode(codes[0])["C"] == pytest.approx(trials[row][0]["clf__C"])


# -- parameters that an estimator passes on --------------------------------------------------------


class Net(BaseEstimator):
    """Passes ``module__x`` and ``optimizer__x`` on, as skorch and scikeras do."""

    def __init__(self, module=dict, optimizer=dict, lr=0.1):
        self.module, self.optimizer, self.lr = module, optimizer, lr
        self.routed = {}

    def set_params(self, **params):
        own = {name: value for name, value in params.items() if "__" not in name}
        for name in params.keys() - own.keys():
            if name.partition("__")[0] not in ("module", "optimizer"):
                raise ValueError(f"Invalid parameter {name}")
        self.routed |= {name: params[name] for name in params.keys() - own.keys()}
        return super().set_params(**own)

    def get_params(self, deep=True):
        return super().get_params(deep) | self.routed


def test_parameter_of_a_module_belongs_to_its_net():
    names = {"lr": [0.1, 0.2], "module__h": randint(4, 64), "optimizer__weight_decay": [0.0, 0.1]}
    net = Net()
    space = Space.parse(names, net)
    assert space.canonical == {
        "lr": "Net.lr",
        "module__h": "Net.module__h",
        "optimizer__weight_decay": "Net.optimizer__weight_decay",
    }
    assert net.routed == {}
    pipeline = Pipeline([("scaler", StandardScaler()), ("net", net)])
    nested = Space.parse({f"net__{name}": values for name, values in names.items()}, pipeline)
    assert set(nested.canonical.values()) == set(space.canonical.values())
    assert net.routed == {}


def test_parameter_that_no_estimator_passes_on_is_refused():
    with pytest.raises(ValueError, match="Invalid parameter 'modul__h' in the space"):
        Space.parse({"modul__h": [1, 2]}, Net())
    pipeline = Pipeline([("scaler", "passthrough"), ("net", Net())])
    with pytest.raises(ValueError, match="Invalid parameter 'scaler__with_mean' in the space"):
        Space.parse({"scaler__with_mean": [True, False]}, pipeline)


def test_hint_finds_the_parameter_of_a_step():
    pipeline = Pipeline([("scaler", StandardScaler()), ("svc", SVC())])
    with pytest.raises(ValueError, match=r"Did you mean 'svc__C'\?"):
        Space.parse({"C": [1, 2]}, pipeline)
    with pytest.raises(ValueError, match=r"Did you mean 'C'\?"):
        Space.parse({"c": [1, 2]}, SVC())


def test_columns_without_any_past_value_are_unknown():
    """A pipeline with a step that past searches did not have."""
    past = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], estimator=SVC(kernel="poly"))
    steps = make_pipeline(SelectKBest(), SVC())
    names = {"selectkbest__k": [1, 2, 3], "svc__C": [1, 10], "svc__kernel": ["rbf", "linear"]}
    space = Space.parse(names | {"svc__gamma": loguniform(0.1, 10)}, steps)
    codes, _, unknown = encode_past_task(space, past)
    found = dict(zip(space.column_names(), unknown, strict=True))
    # poly is known and not in the list; gamma="scale" is no number.
    assert found == {
        "selectkbest__k": True,
        "svc__C": False,
        "svc__gamma": True,
        "svc__kernel": False,
    }
    assert len(codes) == 1


def test_inactive_columns_are_not_unknown():
    past = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], estimator=SVC(kernel="linear"))
    branches = [
        {"C": [1, 10], "kernel": ["linear"]},
        {"C": [1, 10], "kernel": ["rbf"], "gamma": [0.1, 1.0]},
    ]
    assert not encode_past_task(Space.parse(branches, SVC()), past).unknown.any()
