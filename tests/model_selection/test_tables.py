"""Results of a search as a table and as an Optuna study."""

import numpy as np
import pytest
from scipy.stats import loguniform, randint
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from sktransfer import TransferSearchCV

X, y = load_iris(return_X_y=True)
SPACE = [
    {"kernel": ["rbf"], "C": loguniform(1e-2, 1e2), "class_weight": [None, {0: 2.0}]},
    {"kernel": ["poly"], "degree": randint(1, 5)},
]


@pytest.fixture(scope="module")
def search():
    params = {"n_iter": 8, "cv": 2, "archive": None, "random_state": 0, "surrogate": "random"}
    return TransferSearchCV(SVC(), SPACE, **params).fit(X, y)


def test_table_has_parameters_scores_and_origin(search):
    table, results = search.to_frame(), search.cv_results_
    assert len(table) == 8
    assert table["score"].tolist() == results["mean_test_score"].tolist()
    assert table["std_score"].tolist() == results["std_test_score"].tolist()
    assert table["origin"].tolist() == list(results["origin"])
    for row, params in zip(table.to_dict("records"), results["params"], strict=True):
        assert {name: row[name] for name in params} == params
    assert {"fit_time", "predicted_mean", "rank_score"} <= set(table)


def test_table_has_every_metric():
    params = {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro", "archive": None}
    table = TransferSearchCV(SVC(), {"C": [1, 10]}, **params).fit(X, y).to_frame()
    assert {"accuracy", "f1_macro", "std_accuracy"} <= set(table)


def test_study_has_the_trials_of_the_search(search):
    optuna = pytest.importorskip("optuna")
    study = search.to_optuna()
    assert study.direction.name == "MAXIMIZE"
    assert study.best_value == search.best_score_
    scores = search.cv_results_["mean_test_score"]
    assert [trial.value for trial in study.trials] == scores.tolist()
    assert study.trials[0].user_attrs["origin"] == search.cv_results_["origin"][0]
    [C] = {trial.distributions["C"] for trial in study.trials if "C" in trial.params}
    assert optuna.distributions.FloatDistribution(1e-2, 1e2, log=True) == C
    [degree] = {t.distributions["degree"] for t in study.trials if "degree" in t.params}
    assert degree == optuna.distributions.IntDistribution(1, 4)
    weights = {t.params["class_weight"] for t in study.trials if "class_weight" in t.params}
    assert weights <= {None, "{0: 2.0}"}


def test_study_has_failed_trials_and_settings_outside_of_the_space():
    pytest.importorskip("optuna")
    space = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1.0)}
    initial = ["defaults", {"C": -1.0, "gamma": 0.1}]
    search = TransferSearchCV(
        SVC(), space, n_iter=3, cv=2, archive=None, initial=initial, random_state=0
    )
    with pytest.warns(Warning, match="fits failed"):
        search.fit(X, y)
    study = search.to_optuna()
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert study.trials[0].params == {"C": 1.0, "gamma": "scale"}
    assert np.isnan(search.cv_results_["mean_test_score"][1])
