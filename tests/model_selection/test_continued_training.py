"""``sktransfer train``: pretrained models that learn from the searches of an archive."""

import json

import numpy as np
import pytest
from scipy.stats import loguniform, uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC

from sktransfer import Archive, Space, Task, TransferOptimizer, TransferSearchCV, profile
from sktransfer._cli import main
from sktransfer.model_selection._continued_training import (
    _find_parameters,
    _Search,
    continue_training,
    model_folders,
)
from sktransfer.pretrained import load_model

SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}


class Threshold(ClassifierMixin, BaseEstimator):
    """An estimator that has no pretrained head."""

    def __init__(self, level=0.5, mode="a"):
        self.level = level
        self.mode = mode


def make_data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 3))
    return X, (X[:, 0] > 0).astype(int)


def fill(archive, estimator, space, score, n_tasks=4):
    parsed = Space.parse(space, estimator)
    for seed in range(n_tasks):
        trials = [(params, score(params)) for params in parsed.sample(25, seed)]
        archive.append(
            Task.from_trials(parsed, trials, profile(*make_data(seed)), metrics=["accuracy"])
        )


def first_trial(archive, estimator, space):
    optimizer = TransferOptimizer(
        Space.parse(space, estimator),
        profile=profile(*make_data(99)),
        metric="accuracy",
        random_state=0,
    )
    optimizer.model_folders = model_folders(archive)
    return optimizer.ask()[0]


@pytest.mark.slow
def test_training_moves_the_first_trial_to_what_worked(tmp_path):
    archive = Archive(tmp_path, starter=False)
    fill(archive, SVC(), SPACE, lambda p: -((np.log10(p["C"]) + 2) ** 2))  # unusually small
    before = first_trial(None, SVC(), SPACE)["C"]
    [report] = continue_training(archive, "SVC")
    assert report.n_tasks == {"SVC": 4} and report.path.parent == tmp_path / "pretrained"
    assert first_trial(archive, SVC(), SPACE)["C"] < before


@pytest.mark.slow
def test_estimator_without_head_gets_one(tmp_path):
    archive = Archive(tmp_path, starter=False)
    space = {"level": uniform(0, 1), "mode": ["a", "b"]}
    fill(archive, Threshold(), space, lambda p: (p["mode"] == "b") - (p["level"] - 0.8) ** 2)
    assert "Threshold" not in load_model("classification").owners
    continue_training(archive)
    model = load_model("classification", model_folders(archive))
    assert {"Threshold", "SVC"} <= set(model.owners)
    assert model.provenance["continued_with"] == {"Threshold": 4}
    assert first_trial(archive, Threshold(), space)["mode"] == "b"


def test_parameters_of_new_head_have_observed_ranges():
    configurations = [
        {"a": 0.001, "b": 1, "c": "x", "d": None, "e": 7},
        {"a": 10.0, "b": 9, "c": "y", "d": True, "e": 7},
    ]
    search = _Search("Any", profile(*make_data(0)), True, configurations, np.zeros(2), "accuracy")
    found = {each.name: each for each in _find_parameters([search])}
    assert set(found) == {"a", "b", "c", "d"}
    assert (found["a"].low, found["a"].high, found["a"].log) == (0.001, 10.0, True)
    assert not found["b"].log and found["c"].values == ("x", "y")


@pytest.mark.slow
def test_search_uses_the_model_of_its_archive(tmp_path):
    archive = Archive(tmp_path, starter=False)
    fill(archive, SVC(), SPACE, lambda p: -((np.log10(p["C"]) + 2) ** 2))
    continue_training(archive)
    search = TransferSearchCV(SVC(), SPACE, n_iter=2, cv=2, archive=archive, random_state=0)
    own = search.fit(*make_data(7))
    proposed = own.cv_results_["params"][0]["C"]
    shipped = search.set_params(archive=Archive(tmp_path / "other", starter=False))
    shipped.fit(*make_data(7))
    assert proposed < shipped.cv_results_["params"][0]["C"]


@pytest.mark.parametrize("arguments", [[], ["--estimator", "GaussianNB"]])
def test_command_says_what_is_missing(tmp_path, capsys, arguments):
    assert main(["train", "--archive", str(tmp_path), *arguments]) == 1
    assert "Nothing to learn from: training needs searches" in capsys.readouterr().out


def test_command_prints_what_was_trained(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sktransfer.utils._progress_line.SECONDS_BEFORE_LINE", 0.0)
    fill(Archive(tmp_path, starter=False), SVC(), SPACE, lambda p: -(np.log10(p["C"]) ** 2))
    assert main(["train", "--archive", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    [report] = json.loads(out)
    assert report["n_tasks"] == {"SVC": 4} and report["kind"] == "classification"
    assert err.splitlines()[-1].endswith("] Training for classification, 0 s left")
