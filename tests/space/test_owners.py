"""Which estimator a parameter belongs to, where several stand in each other's way."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Space, Task
from sktransfer._values import describe
from sktransfer.archive._format import task_to_record
from sktransfer.archive._redact import redact
from sktransfer.archive._select import select
from sktransfer.space.past import encode_past
from sktransfer.space.scaling import is_scaled

C = loguniform(1e-3, 1e3)


class Steps(ClassifierMixin, BaseEstimator):
    """An estimator with a number of steps, which has nothing to do with a pipeline's."""

    def __init__(self, steps=100, rate=0.1):
        self.steps = steps
        self.rate = rate


class Open(ClassifierMixin, BaseEstimator):
    """An estimator that takes any name, and keeps those that it does not list in a dict."""

    def __init__(self):
        self.others = {}

    def set_params(self, **params):
        self.others.update(params)
        return self


@pytest.mark.parametrize("steps", [100, (1, 2), np.arange(3), {"a": 1}, [SVC()], [], ["ab"]])
def test_a_parameter_called_steps_is_no_pipeline(steps):
    assert Space.parse({"rate": [0.1]}, Steps(steps)).predictors == ["Steps"]
    assert Space.parse({"steps__rate": [0.1]}, make_pipeline(Steps(steps))).canonical == {
        "steps__rate": "Steps.rate"
    }


def test_names_are_checked_without_a_change_to_the_estimator():
    estimator = Open()
    Space.parse({"bagging_freq": [5, 7]}, estimator)
    assert estimator.others == {}


def selecting(**settings):
    return make_pipeline(SelectFromModel(LogisticRegression(**settings)), LogisticRegression(C=7.0))


def test_what_predicts_goes_by_its_class_alone_and_another_of_the_class_does_not():
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


def heard(space, estimator, past, trials):
    """Codes of the past's trials in a space, None if it is refused."""
    task = Task.from_trials(past, [(params, 0.5) for params in trials], id="past")
    today = Space.parse(space, estimator)
    return encode_past(today, task)[0] if select([task], today, None, "allow").tasks else None


def test_a_selectors_settings_are_not_those_of_the_classifier():
    inner = "selectfrommodel__estimator__C"
    past = Space.parse({inner: C}, selecting())
    assert heard({"C": C}, LogisticRegression(), past, [{inner: 1.0}]) is None
    both = Space.parse({inner: C, "logisticregression__C": C}, selecting())
    codes = heard({"C": C}, LogisticRegression(), both, [{inner: 1e-3, "logisticregression__C": 1e3}])
    assert codes.tolist() == [[1.0]]


def test_without_names_the_classifier_stays_the_classifier():
    inner, own = "selectfrommodel__estimator__C", "logisticregression__C"
    past = Space.parse({inner: C, own: C}, selecting(solver="saga"))
    record = task_to_record(Task.from_trials(past, [({inner: 1e-3, own: 1e3}, 0.5)], id="past"))
    space = redact(record, samples=False, fingerprints=True, names=False, times=True)["space"]
    assert set(space["canonical"]) == {"LogisticRegression.C@1", "LogisticRegression.C"}
    assert space["fixed"]["LogisticRegression.solver"] == "lbfgs"
    assert "selectfrommodel" not in str(space)


def test_estimators_to_choose_from_bring_their_own_settings():
    pipeline = Pipeline([("clf", SVC())])
    spec = {"clf": [SVC(kernel="linear", tol=0.5), SVC(kernel="sigmoid", tol=0.5)], "clf__C": C}
    past = Space.parse(spec, pipeline)
    assert "SVC.kernel" not in past.fixed
    assert past.fixed["SVC.tol"] == 0.5
    trials = [{"clf": describe(each), "clf__C": 1.0} for each in spec["clf"]]
    kernels = {"C": C, "kernel": ["rbf", "linear", "sigmoid"]}
    expected = Space.parse(kernels).encode([{"C": 1.0, "kernel": each} for each in ("linear", "sigmoid")])
    assert heard(kernels, SVC(), past, trials).tolist() == expected.tolist()
    assert len(heard({"C": C}, SVC(kernel="sigmoid"), past, trials)) == 1
    assert len(heard({"C": C}, SVC(kernel="rbf"), past, trials)) == 0


def test_today_is_what_stands_to_choice_not_what_it_replaces():
    past = Space.parse({"C": C, "kernel": ["rbf", "linear"]}, SVC())
    trials = [{"C": 1.0, "kernel": each} for each in ("rbf", "linear", "linear")]
    today = {"clf": [SVC(kernel="linear")], "clf__C": C}
    assert len(heard(today, Pipeline([("clf", SVC())]), past, trials)) == 2


def test_wrappers_to_choose_from_all_count():
    pipeline = Pipeline([("clf", OneVsRestClassifier(SVC()))])
    spec = {
        "clf": [OneVsRestClassifier(LogisticRegression()), OneVsRestClassifier(SVC())],
        "clf__estimator__C": C,
    }
    past = Space.parse(spec, pipeline)
    assert past.predictors == ["LogisticRegression", "SVC"]
    assert past.canonical["clf__estimator__C"] == "LogisticRegression|SVC.C"
    trials = [{"clf": describe(each), "clf__estimator__C": 1.0} for each in spec["clf"]]
    assert len(heard({"C": C}, SVC(), past, trials)) == 1
    assert len(heard({"C": C}, LogisticRegression(), past, trials)) == 1


def test_whole_lists_of_steps_to_choose_from():
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    spec = {"steps": [[("one", MinMaxScaler()), ("last", LogisticRegression())]], "last__C": C}
    space = Space.parse(spec, pipeline)
    assert space.predictors == ["LogisticRegression"]
    assert space.canonical["last__C"] == "LogisticRegression.C"


@pytest.mark.parametrize(
    ("estimator", "spec", "scaled"),
    [
        (TransformedTargetRegressor(SVR(), transformer=StandardScaler()), {"regressor__C": C}, False),
        (
            TransformedTargetRegressor(make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler()),
            {"regressor__svr__C": C},
            True,
        ),
        (
            make_pipeline(SelectFromModel(make_pipeline(StandardScaler(), LogisticRegression())), SVC()),
            {"svc__C": C},
            False,
        ),
        (Pipeline([("s", StandardScaler()), ("c", SVC())]), {"s": ["passthrough"], "c__C": C}, False),
        (
            make_pipeline(
                ColumnTransformer([("a", StandardScaler(), [0]), ("b", StandardScaler(), [1])]), SVC()
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
def test_scaled_is_what_the_columns_pass(estimator, spec, scaled):
    assert is_scaled(Space.parse(spec, estimator).describe()) is scaled


def test_a_wrapper_of_another_estimator_is_another_estimator():
    spec, trials = {"max_samples": [0.3, 0.6]}, [{"max_samples": 0.3}]
    past = Space.parse(spec, BaggingClassifier(SVC()))
    assert heard(spec, BaggingClassifier(SVC(C=3)), past, trials) is not None
    assert heard(spec, BaggingClassifier(make_pipeline(StandardScaler(), SVC())), past, trials) is not None
    today = Space.parse(spec, BaggingClassifier(DecisionTreeClassifier()))
    [(_, reason)] = select([Task.from_trials(past, [(trials[0], 0.5)])], today, None, "allow").refused
    assert reason == "another estimator: BaggingClassifier of SVC"


def test_tuples_that_are_held_fixed_leave_others_out():
    spec = {"hidden_layer_sizes": [(2,), (50,)], "alpha": C}
    past = Space.parse(spec, MLPClassifier())
    trials = [{"hidden_layer_sizes": [size], "alpha": 1.0} for size in (2, 50, 2)]
    assert len(heard({"alpha": C}, MLPClassifier(hidden_layer_sizes=(50,)), past, trials)) == 1


def test_long_values_are_not_written_down():
    forest = RandomForestClassifier(
        class_weight=dict.fromkeys(range(9), 1), random_state=np.random.RandomState(0)
    )
    fixed = Space.parse({"max_depth": [1]}, forest).fixed
    assert "RandomForestClassifier.class_weight" not in fixed
    assert "RandomForestClassifier.random_state" not in fixed
    assert fixed["RandomForestClassifier.n_estimators"] == 100
