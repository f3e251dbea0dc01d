"""The program that builds the starter archive, on two synthetic data sets with few trials."""

import math
import time

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks import build_starter
from benchmarks.build_starter import (
    Cell,
    Judge,
    Numbers,
    at_most,
    evaluate,
    load,
    run,
    run_cell,
    with_twin,
)
from benchmarks.starter_scores import score_classifier, score_regressor
from benchmarks.starter_spaces import Spec, specs
from sktransfer import Archive, DatasetProfile, Space, Task, profile
from sktransfer.archive import Starter
from sktransfer.space._estimator_tree import is_scaled

FEW_TRIALS = Numbers(shared=2, own=1, searched=3, further=1)


@pytest.fixture
def folder(tmp_path):
    """Two data sets as files, one of each kind; the first has a text column."""
    rng = np.random.default_rng(0)
    for kind in ("classification", "regression"):
        (tmp_path / kind).mkdir()
    table = pd.DataFrame(rng.normal(size=(90, 3)), columns=["x0", "x1", "x2"])
    total = table.x0 + table.x1
    table["x3"] = np.where(table.x2 > 0, "red", "blue")
    table.assign(target=np.where(total > 0, "yes", "no")).to_csv(
        tmp_path / "classification" / "one-two.csv.gz", index=False
    )
    table.drop(columns="x3").assign(target=total).to_csv(
        tmp_path / "regression" / "three.csv.gz", index=False
    )
    load.cache_clear()
    return tmp_path


def test_run_cell_appends_record(folder, tmp_path):
    work = tmp_path / "work"
    line = run_cell(Cell("classification", "one-two", "SVC", True), folder, work, FEW_TRIALS, False)
    assert "8 trials" in line
    task = Archive(work)["one-two-SVC-scaled"]
    kernels = [trial.params["svc__kernel"] for trial in task.trials]
    assert kernels == ["rbf"] * 6 + ["poly", "linear"]
    assert task.metrics == ("balanced_accuracy", "accuracy", "roc_auc")
    assert task.space["predictors"] == ["SVC"] and is_scaled(task.space)
    assert all(trial.metrics.keys() == {"accuracy", "roc_auc"} for trial in task.trials)
    assert task.profile["sample"] is None


def test_evaluate_is_reproducible_and_shares_first_configurations(folder):
    spec, data = specs("regression")["Lasso"], load("regression", "three", folder)
    first, again = (
        evaluate(Cell("regression", "three", "Lasso", False), spec, data, FEW_TRIALS)
        for _ in range(2)
    )
    other = evaluate(Cell("regression", "other", "Lasso", False), spec, data, FEW_TRIALS)
    params = [[trial.params for trial in task.trials] for task in (first, again, other)]
    assert params[0] == params[1] and np.array_equal(first.scores, again.scores)
    assert params[0][:2] == params[2][:2] and params[0][2] != params[2][2]
    assert len({str(each) for each in params[0]}) == 6


def test_load_profile_recognizes_whole_data_set_in_any_form(folder, monkeypatch):
    monkeypatch.setattr(build_starter, "MAX_ROWS", 40)
    X, y, known = load("classification", "one-two", folder)
    assert len(X) == len(y) == known.n_rows == 40
    table = pd.read_csv(folder / "classification" / "one-two.csv.gz")
    target = table.pop("target")
    coded = table.assign(x3=(table.x3 == "red").astype(float))
    assert profile(table, target).overlap(known) == 1.0  # with its text column
    assert profile(coded, target).overlap(known) == 1.0
    left_out = coded[~coded.x0.isin(X[:, 0])]
    assert len(left_out) == 50 and profile(left_out).overlap(known) == 1.0
    assert profile(2 * coded + 1.5).overlap(known) == 1.0  # in other units


def test_run_resumes_missing_cells(folder, tmp_path, capsys):
    only, work = ["Ridge", "KNeighborsClassifier"], tmp_path / "work"
    run(folder, work, 1, FEW_TRIALS, False, only)
    assert sorted(task.id for task in Archive(work)) == [
        "one-two-KNeighborsClassifier-bare",
        "one-two-KNeighborsClassifier-scaled",
        "three-Ridge-bare",
        "three-Ridge-scaled",
    ]
    Archive(work).remove("three-Ridge-bare")
    capsys.readouterr()
    run(folder, work, 1, FEW_TRIALS, False, only)
    printed = capsys.readouterr().out
    assert (
        "3 of 4 cells are done" in printed
        and "three-Ridge-bare: 6 trials" in printed
        and "2/" not in printed
    )


def test_judge_records_slow_trial_as_failed():
    class Slow(Ridge):
        def fit(self, X, y):
            if self.alpha > 1:
                time.sleep(30)
            return super().fit(X, y)

    X, y = load_diabetes(return_X_y=True)
    judge = Judge(Slow(), X, y, "regression", seconds=0.3)
    slow, quick = judge({"alpha": 10.0}), judge({"alpha": 0.1})
    assert slow.status == "failed" and math.isnan(slow.score) and quick.status == "ok"
    with at_most(5.0):
        pass  # the timer is canceled afterwards


def test_judge_records_invalid_configuration_as_failed():
    judge = Judge(KNeighborsClassifier(), *load_iris(return_X_y=True), "classification", seconds=10)
    assert judge({"n_neighbors": 1000}).status == "failed"
    assert judge({"n_neighbors": 10}).status == "ok"


@pytest.mark.parametrize("load_data", [load_iris, load_breast_cancer])
@pytest.mark.parametrize(
    "estimator", [SVC(), LogisticRegression(max_iter=50), KNeighborsClassifier(4)]
)
@pytest.mark.filterwarnings("ignore:lbfgs failed")
def test_score_classifier_matches_scikit_learn(estimator, load_data):
    X, y = load_data(return_X_y=True)
    fitted = clone(estimator).fit(X[::2], y[::2])
    scores = score_classifier(fitted, X[1::2], y[1::2])
    assert {"balanced_accuracy", "accuracy"} <= scores.keys()
    for name, score in scores.items():
        assert score == pytest.approx(get_scorer(name)(fitted, X[1::2], y[1::2])), name


def test_score_regressor_matches_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    fitted = Ridge().fit(X[::2], y[::2])
    for name, score in score_regressor(fitted, X[1::2], y[1::2]).items():
        assert score == pytest.approx(get_scorer(name)(fitted, X[1::2], y[1::2])), name


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_specs_have_valid_spaces(kind):
    for name, spec in specs(kind).items():
        assert type(spec.estimator).__name__ == name
        for branch in (spec.space, *spec.further):
            Space.parse(branch, spec.estimator)
            clone(spec.estimator).set_params(**Space.parse(branch).sample(1, 0)[0])


def test_pack_all_writes_starter(folder, tmp_path):
    work, packed = tmp_path / "work", tmp_path / "packed"
    run(folder, work, 1, FEW_TRIALS, False, ["Ridge", "DecisionTreeClassifier"])
    build_starter.pack_all(work, packed)
    starter = Starter(packed)
    assert starter.estimators == ["DecisionTreeClassifier", "Ridge"]
    assert len(starter.tasks("Ridge")) == 2 and len(starter.tasks("Ridge", scaled=True)) == 1


def test_with_twin_recognizes_scikit_learn_version():
    X, y = load_breast_cancer(return_X_y=True)
    rounded = profile(np.round(X, 1), y)
    task = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], rounded, id="wdbc-SVC-bare")
    for target in (
        profile(X, y),
        profile(X[::3], y[::3]),
        profile(StandardScaler().fit_transform(X), y),
    ):
        assert target.overlap(DatasetProfile.from_dict(with_twin(task).profile)) == 1.0
    rows = np.random.default_rng(0).permutation(len(X))  # in the same order, patterns are the same
    assert profile(X[rows], y[rows]).overlap(rounded) == 0.0
    other = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], rounded, id="other-SVC-bare")
    assert with_twin(other) is other


def test_evaluate_accepts_new_spec(folder):
    spec = Spec(Ridge(), {"alpha": loguniform(0.1, 10)})
    data = load("regression", "three", folder)
    task = evaluate(Cell("regression", "three", "Ridge", False), spec, data, FEW_TRIALS)
    assert task.best.score > 0.9 and len(task.trials) == 6
