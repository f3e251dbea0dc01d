"""Canonical names, values held fixed, and past tasks in today's coordinates."""

import numpy as np
import pytest
from scipy.stats import loguniform, randint
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Space, Task
from sktransfer.archive import select_past_tasks
from sktransfer.space._axes import UNKNOWN
from sktransfer.space._projection import encode_past


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (SVC(), "C"),
        (make_pipeline(StandardScaler(), SVC()), "svc__C"),
        (Pipeline([("scale", StandardScaler()), ("clf", SVC())]), "clf__C"),
        (Pipeline([("outer", Pipeline([("clf", SVC())]))]), "outer__clf__C"),
    ],
)
def test_one_parameter_has_one_name(estimator, name):
    space = Space.parse({name: [1, 2]}, estimator)
    assert space.canonical == {name: "SVC.C"}
    assert space.predictors == ["SVC"]


def test_a_searched_step_owns_its_parameters():
    pipeline = Pipeline([("clf", SVC())])
    spec = [
        {"clf": [SVC()], "clf__C": [1, 2]},
        {"clf": [RandomForestClassifier()], "clf__max_depth": [1, 2]},
    ]
    space = Space.parse(spec, pipeline)
    assert space.canonical["clf__C"] == "SVC.C"
    assert space.canonical["clf__max_depth"] == "RandomForestClassifier.max_depth"
    assert space.predictors == ["RandomForestClassifier", "SVC"]


def test_two_of_a_kind_are_told_apart():
    vote = VotingClassifier([("a", SVC()), ("b", SVC())])
    names = Space.parse({"a__C": [1], "b__C": [1], "a__gamma": [1]}, vote).canonical
    assert names["a__C"] != names["b__C"]
    assert names["a__gamma"] == "SVC.gamma@a"  # tuned alone, it is still not the other one's


def test_wrappers():
    target = TransformedTargetRegressor(SVR())
    assert Space.parse({"regressor__C": [1]}, target).predictors == ["SVR"]
    boosted = AdaBoostClassifier(DecisionTreeClassifier())
    assert Space.parse({"estimator__max_depth": [1]}, boosted).predictors == ["AdaBoostClassifier"]


def test_fixed_values_are_known():
    space = Space.parse({"svc__C": [1]}, make_pipeline(StandardScaler(), SVC(kernel="poly", degree=5)))
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
def test_unknown_names_get_the_nearest_one(estimator, name, hint):
    with pytest.raises(ValueError, match=r"Invalid parameter") as caught:
        Space.parse({name: [1]}, estimator)
    assert repr(name) in str(caught.value)
    assert hint in str(caught.value)


# -- the past --------------------------------------------------------------------------------------


def test_the_past_is_matched_by_canonical_names():
    past = Task.from_trials(
        {"C": loguniform(1e-3, 1e3)}, [({"C": 1.0}, 0.9), ({"C": 1e6}, 0.1)], estimator=SVC()
    )
    today = Space.parse(
        {"clf__C": loguniform(1e-3, 1e3), "clf__kernel": ["rbf", "poly"]},
        Pipeline([("clf", SVC())]),
    )
    codes, kept = encode_past(today, past)
    assert kept.tolist() == [0, 1]
    c, kernel = (today.column_names().index(name) for name in ("clf__C", "clf__kernel"))
    assert codes[:, c] == pytest.approx([0.5, 1.5])  # out of bounds by its distance
    assert codes[:, kernel] == pytest.approx(0.25)  # not tuned then: the estimator's own "rbf"


def test_trials_with_another_category_than_todays_are_left_out():
    past = Task.from_trials(
        {"C": [1, 10], "kernel": ["rbf", "linear"]},
        [({"C": 1, "kernel": "rbf"}, 0.9), ({"C": 10, "kernel": "linear"}, 0.8)],
        estimator=SVC(),
    )
    codes, kept = encode_past(Space.parse({"C": [1, 10]}, SVC(kernel="linear")), past)
    assert kept.tolist() == [1]
    assert codes.tolist() == [[1.0]]


def test_a_number_that_is_fixed_today_leaves_no_trial_out():
    past = Task.from_trials({"C": [1, 10], "degree": [2, 3]}, [({"C": 1, "degree": 2}, 0.9)], estimator=SVC())
    assert len(encode_past(Space.parse({"C": [1, 10]}, SVC(degree=3)), past)[1]) == 1


def test_a_bare_table_is_matched_by_its_own_names():
    past = Task.from_trials({"C": [1, 10]}, [({"C": 10}, 0.5)])
    for space in (Space.parse({"C": [1, 10]}), Space.parse({"C": [1, 10]}, SVC())):
        assert encode_past(space, past)[0].tolist() == [[1.0]]


def test_what_is_not_known_is_in_the_middle_or_no_category():
    past = Task.from_trials({"a": [1, 10]}, [({"a": 10}, 0.5)])
    codes, _ = encode_past(Space.parse({"a": [1, 10], "b": [1, 2, 3], "c": ["x", "y"]}), past)
    assert codes.tolist() == [[1.0, 0.5, UNKNOWN]]


def test_a_default_that_is_no_number_is_in_the_middle_not_at_the_edge():
    past = Task.from_trials({"C": [1, 10]}, [({"C": 10}, 0.5)], estimator=SVC(gamma="scale"))
    space = Space.parse({"C": [1, 10], "gamma": loguniform(1e-5, 10)}, SVC())
    codes, _ = encode_past(space, past)
    assert codes[0, space.column_names().index("gamma")] == 0.5


def test_a_conditional_space_is_its_own_past():
    """What a branch does not have is idle in the past as it is today."""
    spec = [
        {"clf": [SVC()], "clf__C": loguniform(0.1, 10)},
        {"clf": [DecisionTreeClassifier()], "clf__criterion": ["gini", "entropy"]},
    ]
    pipe = Pipeline([("clf", SVC())])
    space = Space.parse(spec, pipe)
    drawn = space.sample(20, 0)
    past = Task.from_trials(spec, [(params, 0.5) for params in drawn], estimator=pipe)
    np.testing.assert_allclose(encode_past(space, past)[0], space.encode(drawn), atol=1e-9)


def test_names_that_only_set_params_knows():
    class Kw(SVC):
        def set_params(self, **params):
            self.extra_ = params
            return self

    assert Space.parse({"bagging_freq": [1, 2]}, Kw()).size == 2


def test_the_past_finds_its_branch():
    spec = [{"kernel": ["rbf"], "gamma": [0.1, 1]}, {"kernel": ["poly"], "degree": randint(2, 5)}]
    space = Space.parse(spec, SVC())
    trials = [({"kernel": "poly", "degree": 3}, 0.5), ({"kernel": "rbf", "gamma": 1}, 0.6)]
    codes, _ = encode_past(space, Task.from_trials(spec, trials, estimator=SVC()))
    assert space.branch_of(codes).tolist() == [1, 0]
    assert np.isfinite(codes).all()


CHOICE = [
    {"clf": [LogisticRegression()], "clf__C": loguniform(1e-2, 1e2)},
    {"clf": [SVC()], "clf__C": loguniform(1e-2, 1e2), "clf__gamma": loguniform(1e-4, 1)},
]


@pytest.mark.parametrize("turned", [False, True])
def test_estimators_to_choose_from_keep_what_each_of_them_has_learned(turned):
    """Though they share a parameter, and whichever is named first."""
    space = Space.parse(CHOICE[::-1] if turned else CHOICE, Pipeline([("clf", SVC())]))
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
        codes, kept = encode_past(space, task)
        found = space.decode(codes)
        assert len(kept) == len(task.trials)
        assert all(type(params["clf"]) is estimator for params in found)
        assert [params["clf__C"] for params in found] == pytest.approx([t.params["C"] for t in task.trials])


def test_of_estimators_that_were_to_choose_from_todays_counts():
    trials = [
        ({"clf": LogisticRegression(), "clf__C": 0.1}, 0.7),
        ({"clf": SVC(), "clf__C": 10.0, "clf__gamma": 0.01}, 0.9),
    ]
    past = Task.from_trials(CHOICE, trials, estimator=Pipeline([("clf", SVC())]))
    for estimator, row in ((LogisticRegression(), 0), (SVC(), 1)):
        space = Space.parse({"C": loguniform(1e-2, 1e2)}, estimator)
        assert not select_past_tasks([past], space, None, "exclude").excluded
        codes, kept = encode_past(space, past)
        assert kept.tolist() == [row]
        assert space.decode(codes[0])["C"] == pytest.approx(trials[row][0]["clf__C"])
