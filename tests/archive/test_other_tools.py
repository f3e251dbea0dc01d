"""Trials of other tools, added to an archive: Optuna, scikit-optimize, MLflow, CSV files."""

from enum import Enum
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from sktransfer import Archive, TransferOptimizer

X, y = load_iris(return_X_y=True)
State = Enum("State", ["COMPLETE", "FAIL", "RUNNING"])
Direction = Enum("Direction", ["MAXIMIZE", "MINIMIZE"])


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path / "past")


def make_study(direction=Direction.MAXIMIZE):
    """What an Optuna study has, with one failed and one running trial."""

    def trial(state, value, **params):
        return SimpleNamespace(state=state, value=value, params=params)

    trials = [
        trial(State.COMPLETE, 0.9, C=1.0, kernel="rbf"),
        trial(State.COMPLETE, 0.8, C=10.0, kernel="poly"),
        trial(State.FAIL, None, C=100.0, kernel="poly"),
        trial(State.RUNNING, None, C=5.0),
    ]
    return SimpleNamespace(trials=trials, directions=[direction])


def params_and_scores(task):
    return [(trial.params, trial.score) for trial in task.trials]


def test_study_is_added(archive):
    task = archive[archive.add(make_study(), X, y, estimator=SVC(), metric="accuracy")]
    assert params_and_scores(task)[:2] == [
        ({"C": 1.0, "kernel": "rbf"}, 0.9),
        ({"C": 10.0, "kernel": "poly"}, 0.8),
    ]
    assert [trial.status for trial in task.trials] == ["ok", "ok", "failed"]
    assert task.space["canonical"]["C"] == "SVC.C" and task.metrics == ("accuracy",)
    assert task.profile["n_rows"] == 150


def test_study_that_minimizes_is_recorded_with_the_other_sign(archive):
    task = archive[archive.add(make_study(Direction.MINIMIZE))]
    assert [trial.score for trial in task.trials[:2]] == [-0.9, -0.8]


def test_study_with_several_objectives_says_what_to_do(archive):
    study = make_study()
    study.directions *= 2
    with pytest.raises(ValueError, match=r"trials_dataframe\(\), \.\.\., score='values_0'"):
        archive.add(study)
    with pytest.raises(ValueError, match="The study has no finished trial"):
        archive.add(SimpleNamespace(trials=[], directions=[Direction.MAXIMIZE]))


def test_optuna_search_is_added_with_its_estimator(archive):
    search = SimpleNamespace(study_=make_study(), estimator=SVC(), cv_results_={})
    assert archive[archive.add(search, X, y)].space["canonical"]["C"] == "SVC.C"


def test_table_of_optuna_trials_is_added(archive):
    table = pd.DataFrame(
        {
            "number": [0, 1],
            "value": [0.3, 0.1],
            "datetime_complete": ["2026", "2026"],
            "params_C": [1.0, 10.0],
            "params_kernel": ["rbf", "poly"],
            "state": ["COMPLETE", "COMPLETE"],
        }
    )
    task = archive[archive.add(table, X, y, estimator=SVC(), direction="minimize")]
    assert params_and_scores(task) == [
        ({"C": 1.0, "kernel": "rbf"}, -0.3),
        ({"C": 10.0, "kernel": "poly"}, -0.1),
    ]
    assert task.metrics == ("neg_score",)
    with pytest.raises(ValueError, match="direction must be 'maximize' or 'minimize', got 'min'"):
        archive.add(table, direction="min")


def test_mlflow_runs_are_numbers_again(archive):
    runs = pd.DataFrame(
        {
            "run_id": ["a", "b"],
            "status": ["FINISHED", "FINISHED"],
            "metrics.accuracy": [0.9, 0.8],
            "metrics.loss": [0.1, 0.2],
            "params.C": ["0.1", "10"],
            "params.kernel": ["rbf", "poly"],
            "params.max_iter": ["100", "200"],
        }
    )
    task = archive[archive.add(runs, X, y, estimator=SVC(), score="accuracy")]
    assert params_and_scores(task) == [
        ({"C": 0.1, "kernel": "rbf", "max_iter": 100}, 0.9),
        ({"C": 10, "kernel": "poly", "max_iter": 200}, 0.8),
    ]
    assert task.metrics[0] == "accuracy"
    with pytest.raises(ValueError, match="Pass the name of the column of scores as score="):
        archive.add(runs, estimator=SVC())


def test_bayes_search_is_added(archive):
    grid = GridSearchCV(SVC(), {"C": [0.1, 10.0]}).fit(X, y)
    spaces = [({"C": (0.01, 100.0, "log-uniform")}, 2)]
    search = SimpleNamespace(
        cv_results_=grid.cv_results_, estimator=SVC(), search_spaces=spaces, refit=True
    )
    task = archive[archive.add(search, X, y)]
    assert task.space["branches"][0]["C"]["distribution"] == "loguniform"
    assert [trial.params for trial in task.trials] == [{"C": 0.1}, {"C": 10.0}]


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_csv_file_is_added(archive, tmp_path, kind):
    path = tmp_path / "trials.csv"
    path.write_text("C,max_depth,flag,score\n0.1,,True,0.5\n10,5,False,0.75\n", encoding="utf-8")
    task = archive[archive.add(kind(path))]
    assert params_and_scores(task) == [
        ({"C": 0.1, "flag": True}, 0.5),
        ({"C": 10, "max_depth": 5, "flag": False}, 0.75),
    ]
    path.write_text("C,score\n1\n")
    with pytest.raises(ValueError, match=r"The rows of .*trials\.csv have different lengths"):
        archive.add(kind(path))


def test_optimizer_is_added(archive):
    optimizer = TransferOptimizer({"C": loguniform(0.1, 10)}, random_state=0)
    optimizer.tell({"C": 1.0}, 0.5)
    task = archive[archive.add(optimizer, X, y, name="asked")]
    assert params_and_scores(task) == [({"C": 1.0}, 0.5)]
    assert task.name == "asked" and task.profile["n_rows"] == 150


def test_same_search_added_twice_is_one_record(archive):
    grid = GridSearchCV(SVC(), {"C": [0.1, 1.0]}).fit(X, y)
    first = archive.add(grid, X, y)
    assert archive.add(grid, X, y, name="again") == first
    assert len(archive) == 1
    assert archive.add(GridSearchCV(SVC(), {"C": [0.1, 2.0]}).fit(X, y), X, y) != first
    table = {"C": [1, 2], "score": [0.5, np.nan]}
    assert archive.add(table) == archive.add(table) != archive.add(table, X, y)
    assert len(archive) == 4


def test_column_that_is_no_parameter_says_what_helps(archive):
    table = {"run_id": ["a", "b"], "C": [1, 2], "score": [0.5, 0.6]}
    with pytest.raises(ValueError, match=r"'run_id' .* pass space= with the parameters only"):
        archive.add(table, estimator=SVC())
    assert archive.add(table, estimator=SVC(), space={"C": [1, 2]})


def test_unknown_object_says_what_can_be_added(archive):
    with pytest.raises(TypeError, match=r"an Optuna study; a TransferOptimizer; a table of trials"):
        archive.add(object())


def test_installed_optuna_is_understood(archive):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="minimize")
    study.optimize(lambda t: t.suggest_float("C", 0.1, 10, log=True), n_trials=4)
    task = archive[archive.add(study, X, y, estimator=SVC())]
    assert [trial.score for trial in task.trials] == [-trial.value for trial in study.trials]
    table = archive[
        archive.add(study.trials_dataframe(), X, y, estimator=SVC(), direction="minimize")
    ]
    assert params_and_scores(table) == params_and_scores(task)


# -- out -------------------------------------------------------------------------------------------


def test_archive_is_a_table(archive):
    assert list(archive.to_frame().columns)[:3] == ["id", "name", "created"]
    assert len(archive.to_frame()) == 0
    archive.add({"C": [1, 2], "score": [0.5, 0.6]}, X, y, estimator=SVC(), name="mine")
    [row] = archive.to_frame().to_dict("records")
    assert (row["name"], row["estimator"], row["n_rows"], row["best"]) == ("mine", "SVC", 150, 0.6)
