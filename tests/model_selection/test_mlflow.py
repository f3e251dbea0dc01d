"""MLflow's autologging, with a stand-in for MLflow that patches `fit` as it does."""

import functools
import sys
from contextlib import contextmanager
from types import ModuleType

import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sktransfer import TransferSearchCV, suggest
from sktransfer.exceptions import SktransferWarning

X, y = load_iris(return_X_y=True)
SPACE = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1.0]}


class FakeMlflow(ModuleType):
    """Runs in a list; `fit` of three estimators logs itself while autologging is on."""

    def __init__(self):
        super().__init__("mlflow")
        self.runs, self.stack, self.autologged = [], [], []
        self.disabled, self.paused = False, False

    def autologging_is_disabled(self, integration):
        assert integration == "sklearn"
        return self.disabled

    @contextmanager
    def disable_autologging(self):
        self.paused = True
        try:
            yield
        finally:
            self.paused = False

    def patch(self, monkeypatch, cls):
        original = cls.fit

        @functools.wraps(original)
        def fit(estimator, *args, **kwargs):
            if not (self.paused or self.disabled):
                self.autologged.append(cls.__name__)
            return original(estimator, *args, **kwargs)

        monkeypatch.setattr(cls, "fit", fit)

    def active_run(self):
        return self.stack[-1] if self.stack else None

    def start_run(self, nested=False):
        assert nested or not self.stack
        self.stack.append({"nested": nested, "params": {}, "metrics": {}, "tags": {}})
        self.runs.append(self.stack[-1])
        return self._run()

    @contextmanager
    def _run(self):
        yield
        self.end_run()

    def end_run(self):
        self.stack.pop()

    def log_params(self, params):
        self.stack[-1]["params"] |= params

    def log_metrics(self, metrics):
        self.stack[-1]["metrics"] |= metrics

    def set_tags(self, tags):
        self.stack[-1]["tags"] |= tags


@pytest.fixture
def mlflow(monkeypatch):
    fake = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    monkeypatch.setitem(sys.modules, "mlflow.utils.autologging_utils", fake)
    for cls in (SVC, LinearDiscriminantAnalysis, DecisionTreeClassifier):
        fake.patch(monkeypatch, cls)
    return fake


def test_autologging_logs_the_search_only(mlflow):
    search = TransferSearchCV(SVC(), SPACE, n_iter=7, cv=2, random_state=0).fit(X, y)
    assert mlflow.autologged == []
    parent, *children = mlflow.runs
    assert parent["tags"] == {"estimator_name": "TransferSearchCV"}
    assert parent["params"]["best_C"] == str(search.best_params_["C"])
    assert parent["params"]["n_iter"] == "7"
    assert parent["metrics"] == {"best_cv_score": search.best_score_}
    assert len(children) == 5 and all(child["nested"] for child in children)
    assert children[0]["params"] == {k: str(v) for k, v in search.best_params_.items()}
    assert children[0]["metrics"]["mean_test_score"] == search.best_score_
    assert mlflow.stack == []


def test_search_logs_to_the_active_run(mlflow):
    with mlflow.start_run():
        TransferSearchCV(SVC(), SPACE, cv=2, archive=None).fit(X, y)
    assert [run["nested"] for run in mlflow.runs] == [False] + [True] * 5
    assert "best_cv_score" in mlflow.runs[0]["metrics"]


def test_estimators_are_logged_again_after_the_search(mlflow):
    TransferSearchCV(SVC(), SPACE, n_iter=2, cv=2, archive=None).fit(X, y)
    SVC().fit(X, y)
    assert mlflow.autologged == ["SVC"]


def test_suggest_logs_nothing(mlflow):
    suggest(SVC(), SPACE, X, y, archive=None)
    assert mlflow.autologged == [] and mlflow.runs == []


def test_nothing_is_logged_without_autologging(mlflow):
    mlflow.disabled = True
    TransferSearchCV(SVC(), SPACE, n_iter=2, cv=2, archive=None).fit(X, y)
    assert mlflow.runs == []


def test_failing_mlflow_costs_a_warning(mlflow, monkeypatch):
    def fail(params):
        raise OSError("the server is gone")

    monkeypatch.setattr(mlflow, "log_params", fail)
    search = TransferSearchCV(SVC(), SPACE, n_iter=2, cv=2, archive=None)
    expected = r"MLflow cannot log this search \(OSError\('the server is gone'\)\)\."
    with pytest.warns(SktransferWarning, match=expected):
        search.fit(X, y)
    assert search.best_score_ > 0.3 and mlflow.stack == []
