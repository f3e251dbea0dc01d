"""Parameters of estimators inside pipelines, wrappers, selectors and ensembles."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Space, Task
from sktransfer.archive._anonymize import redact
from sktransfer.archive._record import task_to_record
from sktransfer.archive._selection import select_past_tasks
from sktransfer.space._estimator_tree import is_scaled
from sktransfer.space._projection import encode_past_task
from sktransfer.utils._values import describe

C = loguniform(1e-3, 1e3)


class Steps(ClassifierMixin, BaseEstimator):
    """An estimator whose parameter ``steps`` is a number, unlike that of a pipeline."""

    def __init__(self, steps=100, rate=0.1):
        self.steps = steps
        self.rate = rate


class AcceptsAnyName(ClassifierMixin, BaseEstimator):
    """An estimator whose set_params accepts any name and stores it in a dict."""

    def __init__(self):
        self.others = {}

    def set_params(self, **params):
        self.others.update(params)
        return self


@pytest.mark.parametrize("steps", [100, (1, 2), np.arange(3), {"a": 1}, [SVC()], [], ["ab"]])
def test_parameter_called_steps_does_not_make_a_pipeline(steps):
    assert Space.parse({"rate": [0.1]}, Steps(steps)).predictors == ["Steps"]
    assert Space.parse({"steps__rate": [0.1]}, make_pipeline(Steps(steps))).canonical == {
        "steps__rate": "Steps.rate"
    }


def test_parse_does_not_modify_an_estimator_that_accepts_any_name():
    estimator = AcceptsAnyName()
    estimator.lock = threading.Lock()  # it cannot be deep-copied
    Space.parse({"bagging_freq": [5, 7]}, estimator)
    assert estimator.others == {}


def selecting(**settings):
    return make_pipeline(SelectFromModel(LogisticRegression(**settings)), LogisticRegression(C=7.0))


def test_canonical_name_has_a_path_unless_the_estimator_predicts():
    inner, own = "selectfrommodel__estimator__C", "logisticregression__C"
    assert Space.parse({own: C}, selecting()).canonical == {own: "LogisticRegression.C"}
    aside = "LogisticRegression.C@selectfrommodel__estimator"
    assert Space.parse({inner: C}, selecting()).canonical == {inner: aside}
    assert Space.parse({inner: C, own: C}, selecting()).canonical == {
        inner: aside,
        own: "LogisticRegression.C",
    }
    fixed = Space.parse({inner: C}, selecting(C=0.5, solver="saga")).fixed
    assert (fixed["LogisticRegression.C"], fixed["LogisticRegression.solver"]) == (7.0, "lbfgs")
    assert fixed["LogisticRegression.solver@selectfrommodel__estimator"] == "saga"


def encode_if_selected(space, estimator, past, trials):
    """Codes of the past task's trials in a space; None if the task is excluded."""
    task = Task.from_trials(past, [(params, 0.5) for params in trials], id="past")
    target = Space.parse(space, estimator)
    if not select_past_tasks([task], target, None, "allow").used:
        return None
    return encode_past_task(target, task)[0]


def test_settings_of_a_selector_do_not_match_the_classifier():
    inner = "selectfrommodel__estimator__C"
    past = Space.parse({inner: C}, selecting())
    assert encode_if_selected({"C": C}, LogisticRegression(), past, [{inner: 1.0}]) is None
    both = Space.parse({inner: C, "logisticregression__C": C}, selecting())
    codes = encode_if_selected(
        {"C": C}, LogisticRegression(), both, [{inner: 1e-3, "logisticregression__C": 1e3}]
    )
    assert codes.tolist() == [[1.0]]


def test_anonymized_record_keeps_classifier_and_selector_apart():
    inner, own = "selectfrommodel__estimator__C", "logisticregression__C"
    past = Space.parse({inner: C, own: C}, selecting(solver="saga"))
    record = task_to_record(Task.from_trials(past, [({inner: 1e-3, own: 1e3}, 0.5)], id="past"))
    space = redact(record, samples=False, names=False, times=True)["space"]
    assert set(space["canonical"]) == {"LogisticRegression.C@#1", "LogisticRegression.C"}
    assert space["fixed"]["LogisticRegression.solver"] == "lbfgs"
    assert "selectfrommodel" not in str(space)


def test_chosen_past_estimator_determines_the_settings_of_a_trial():
    pipeline = Pipeline([("clf", SVC())])
    spec = {"clf": [SVC(kernel="linear", tol=0.5), SVC(kernel="sigmoid", tol=0.5)], "clf__C": C}
    past = Space.parse(spec, pipeline)
    assert "SVC.kernel" not in past.fixed
    assert past.fixed["SVC.tol"] == 0.5
    trials = [{"clf": describe(each), "clf__C": 1.0} for each in spec["clf"]]
    kernels = {"C": C, "kernel": ["rbf", "linear", "sigmoid"]}
    expected = Space.parse(kernels).encode(
        [{"C": 1.0, "kernel": each} for each in ("linear", "sigmoid")]
    )
    assert encode_if_selected(kernels, SVC(), past, trials).tolist() == expected.tolist()
    assert len(encode_if_selected({"C": C}, SVC(kernel="sigmoid"), past, trials)) == 1
    assert len(encode_if_selected({"C": C}, SVC(kernel="rbf"), past, trials)) == 0


def test_target_estimators_replace_the_one_in_the_pipeline():
    past = Space.parse({"C": C, "kernel": ["rbf", "linear"]}, SVC())
    trials = [{"C": 1.0, "kernel": each} for each in ("rbf", "linear", "linear")]
    target = {"clf": [SVC(kernel="linear")], "clf__C": C}
    assert len(encode_if_selected(target, Pipeline([("clf", SVC())]), past, trials)) == 2


def test_predictors_of_all_wrappers_in_a_branch_are_found():
    pipeline = Pipeline([("clf", OneVsRestClassifier(SVC()))])
    spec = {
        "clf": [OneVsRestClassifier(LogisticRegression()), OneVsRestClassifier(SVC())],
        "clf__estimator__C": C,
    }
    past = Space.parse(spec, pipeline)
    assert past.predictors == ["LogisticRegression", "SVC"]
    assert past.canonical["clf__estimator__C"] == "LogisticRegression|SVC.C"
    trials = [{"clf": describe(each), "clf__estimator__C": 1.0} for each in spec["clf"]]
    assert len(encode_if_selected({"C": C}, SVC(), past, trials)) == 1
    assert len(encode_if_selected({"C": C}, LogisticRegression(), past, trials)) == 1


def test_predictor_of_replaced_steps_is_found():
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    spec = {"steps": [[("one", MinMaxScaler()), ("last", LogisticRegression())]], "last__C": C}
    space = Space.parse(spec, pipeline)
    assert space.predictors == ["LogisticRegression"]
    assert space.canonical["last__C"] == "LogisticRegression.C"


@pytest.mark.parametrize(
    ("estimator", "spec", "scaled"),
    [
        (
            TransformedTargetRegressor(SVR(), transformer=StandardScaler()),
            {"regressor__C": C},
            False,
        ),
        (
            TransformedTargetRegressor(
                make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler()
            ),
            {"regressor__svr__C": C},
            True,
        ),
        (
            make_pipeline(
                SelectFromModel(make_pipeline(StandardScaler(), LogisticRegression())), SVC()
            ),
            {"svc__C": C},
            False,
        ),
        (
            Pipeline([("s", StandardScaler()), ("c", SVC())]),
            {"s": ["passthrough"], "c__C": C},
            False,
        ),
        (
            make_pipeline(
                ColumnTransformer([("a", StandardScaler(), [0]), ("b", StandardScaler(), [1])]),
                SVC(),
            ),
            {"svc__C": C},
            True,
        ),
        (
            TransformedTargetRegressor(SVR(), transformer=StandardScaler()),
            {"regressor__C": C, "transformer__with_mean": [True, False]},
            False,
        ),
    ],
)
def test_is_scaled_counts_scalers_that_columns_pass_through(estimator, spec, scaled):
    assert is_scaled(Space.parse(spec, estimator).describe()) is scaled


def test_wrapper_of_another_estimator_is_excluded():
    spec, trials = {"max_samples": [0.3, 0.6]}, [{"max_samples": 0.3}]
    past = Space.parse(spec, BaggingClassifier(SVC()))
    assert encode_if_selected(spec, BaggingClassifier(SVC(C=3)), past, trials) is not None
    assert (
        encode_if_selected(
            spec, BaggingClassifier(make_pipeline(StandardScaler(), SVC())), past, trials
        )
        is not None
    )
    target = Space.parse(spec, BaggingClassifier(DecisionTreeClassifier()))
    task = Task.from_trials(past, [(trials[0], 0.5)])
    [(_, reason)] = select_past_tasks([task], target, None, "allow").excluded
    assert reason == "another estimator: BaggingClassifier of SVC"


def test_trials_with_another_tuple_than_the_fixed_one_are_left_out():
    spec = {"hidden_layer_sizes": [(2,), (50,)], "alpha": C}
    past = Space.parse(spec, MLPClassifier())
    trials = [{"hidden_layer_sizes": [size], "alpha": 1.0} for size in (2, 50, 2)]
    assert (
        len(encode_if_selected({"alpha": C}, MLPClassifier(hidden_layer_sizes=(50,)), past, trials))
        == 1
    )


def test_default_wrapped_estimator_differs_from_a_given_one():
    spec, trials = {"max_samples": [0.3, 0.6]}, [{"max_samples": 0.3}]
    assert (
        encode_if_selected(
            spec, BaggingClassifier(SVC()), Space.parse(spec, BaggingClassifier()), trials
        )
        is None
    )


def test_another_gaussian_process_kernel_is_not_another_estimator():
    spec, trials = {"alpha": C}, [{"alpha": 0.3}]
    past = Space.parse(spec, GaussianProcessRegressor(RBF()))
    assert (
        encode_if_selected(spec, GaussianProcessRegressor(RBF() + WhiteKernel()), past, trials)
        is not None
    )


def test_estimators_chosen_for_a_selector_are_not_predictors():
    pipeline = Pipeline(
        [("sel", SelectFromModel(LogisticRegression())), ("clf", LogisticRegression())]
    )
    chosen = [
        LogisticRegression(C=1e-3, solver="saga"),
        LogisticRegression(C=1e3, solver="liblinear"),
    ]
    spec = {"sel__estimator": chosen, "clf__tol": C}
    trials = [{"sel__estimator": describe(each), "clf__tol": 1.0} for each in chosen]
    codes = encode_if_selected(
        {"C": C, "tol": C}, LogisticRegression(), Space.parse(spec, pipeline), trials
    )
    assert codes.tolist() == [[0.5, 0.5]] * 2
    either = {"clf": [SVC(), LogisticRegression()], "sel__estimator": chosen, "clf__C": C}
    trial = {"clf": describe(SVC()), "sel__estimator": describe(chosen[0]), "clf__C": 1.0}
    assert len(encode_if_selected({"C": C}, SVC(), Space.parse(either, pipeline), [trial])) == 1


def test_technical_parameters_leave_no_trial_out():
    pipeline = Pipeline([("clf", SVC())])
    chosen = [
        RandomForestClassifier(criterion="gini"),
        RandomForestClassifier(criterion="entropy", n_jobs=2),
    ]
    past = Space.parse({"clf": chosen, "clf__max_depth": [1, 2]}, pipeline)
    trials = [{"clf": describe(each), "clf__max_depth": 1} for each in chosen]
    target = RandomForestClassifier(random_state=0, n_jobs=-1)
    assert (
        len(
            encode_if_selected(
                {"max_depth": [1, 2], "criterion": ["gini", "entropy"]}, target, past, trials
            )
        )
        == 2
    )
    assert len(encode_if_selected({"max_depth": [1, 2]}, target, past, trials)) == 1


def test_canonical_names_match_with_and_without_a_path():
    """Some records have a path in a canonical name where another version leaves it out."""
    inner, own = "selectfrommodel__estimator__C", "logisticregression__C"
    space = Space.parse({inner: C, own: C}, selecting())
    params = {inner: 1e-3, own: 1e3}
    task = Task.from_trials(space, [(params, 0.5)])
    old = {
        **task.space,
        "canonical": {name: f"LogisticRegression.C@{name[:-3]}" for name in (inner, own)},
    }
    assert (
        encode_past_task(space, replace(task, space=old))[0].tolist()
        == space.encode([params]).tolist()
    )
    vote = Space.parse({"a__C": C}, VotingClassifier([("a", SVC()), ("b", SVC())]))
    task = Task.from_trials(vote, [({"a__C": 1e3}, 0.5)])
    old = replace(task, space={**task.space, "canonical": {"a__C": "SVC.C"}})
    assert select_past_tasks([old], vote, None, "allow").used == (old,)
    assert encode_past_task(vote, old)[0].tolist() == [[1.0]]


@pytest.mark.parametrize("odd", [None, [1], "x"])
def test_malformed_descriptions_of_estimators_are_tolerated(odd):
    space = Space.parse({"clf": [SVC()], "clf__C": C}, Pipeline([("clf", SVC())]))
    trials = [{"clf": {"class": "SVC", "params": odd}, "clf__C": 1.0}]
    assert encode_if_selected({"C": C}, SVC(), space, trials).tolist() == [[0.5]]
    task = Task.from_trials(space, [(trials[0], 0.5)])
    task.space["branches"][0]["clf"] = {"values": odd}
    assert encode_past_task(Space.parse({"C": C}, SVC()), task)[0].tolist() == [[0.5]]
    bagging = Space.parse({"max_samples": [0.3, 0.6]}, BaggingClassifier(SVC()))
    task = Task.from_trials(bagging, [({"max_samples": 0.3}, 0.5)])
    task.space["fixed"]["BaggingClassifier.estimator"] = {"class": "SVC", "params": odd}
    select_past_tasks([task], bagging, None, "allow")


def test_fixed_values_of_equal_members_are_recorded_once():
    members = [(f"m{n}", make_pipeline(StandardScaler(), SVC())) for n in range(20)]
    members[3][1].set_params(svc__kernel="linear")
    fixed = Space.parse({"m0__svc__C": C}, VotingClassifier(members)).fixed
    assert len(fixed) < 40
    assert (fixed["SVC.kernel"], fixed["SVC.kernel@m3__svc"]) == ("rbf", "linear")


def test_parse_calls_get_params_rarely_for_many_estimators(monkeypatch):
    chosen = [
        TransformedTargetRegressor(make_pipeline(StandardScaler(), SVR(C=c))) for c in range(1, 41)
    ]
    calls = []
    ask = Pipeline.get_params
    monkeypatch.setattr(
        Pipeline, "get_params", lambda self, deep=True: calls.append(0) or ask(self, deep)
    )
    space = Space.parse({"clf": chosen}, Pipeline([("clf", SVR())]))
    assert space.predictors == ["SVR"]
    assert len(calls) < 2000


def test_replaced_steps_have_canonical_names_and_unknown_scaling():
    pipeline = Pipeline([("clf", SVC())])
    spec = {"steps": [[("one", LogisticRegression()), ("two", LogisticRegression())]], "one__C": C}
    assert Space.parse(spec, pipeline).canonical["one__C"] == "LogisticRegression.C@one"
    scaled = {"steps": [[("scale", StandardScaler()), ("clf", SVC())]], "clf__C": C}
    # Whether columns are scaled depends on the steps that are chosen.
    assert is_scaled(Space.parse(scaled, pipeline).describe()) is None


def test_names_of_columns_are_not_recorded():
    model = HistGradientBoostingClassifier(categorical_features=["diagnosis", "income"])
    assert "diagnosis" not in str(Space.parse({"max_depth": [1]}, model).fixed)


def test_long_values_are_not_recorded():
    forest = RandomForestClassifier(
        class_weight=dict.fromkeys(range(9), 1), random_state=np.random.RandomState(0)
    )
    fixed = Space.parse({"max_depth": [1]}, forest).fixed
    assert "RandomForestClassifier.class_weight" not in fixed
    assert "RandomForestClassifier.random_state" not in fixed
    assert fixed["RandomForestClassifier.n_estimators"] == 100
