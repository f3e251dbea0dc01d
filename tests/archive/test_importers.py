"""Searches of the past become tasks: what they tried, what they found, and on which data."""

import math
import types

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import f1_score, get_scorer, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
)
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.archive import Archive
from sktransfer.dataset import DatasetProfile, profile
from sktransfer.exceptions import ArchiveWarning
from sktransfer.space import Space

X, y = load_iris(return_X_y=True)
GRID = {"C": [0.1, 1, 10], "kernel": ["rbf", "linear"]}


def by_length(estimator, X, y):
    return float(len(X))


def check_trials(task, results, key="mean_test_score", rows=None):
    """The trials say what the rows of cv_results_ say."""
    rows = range(len(results["params"])) if rows is None else rows
    assert len(task.trials) == len(rows) > 0
    for trial, row in zip(task.trials, rows, strict=True):
        assert trial.params == results["params"][row]
        assert trial.score == results[key][row]
        assert trial.std == results[key.replace("mean", "std")][row]
        assert trial.fit_time == results["mean_fit_time"][row]
        assert trial.status == "ok"


def test_grid_search(archive):
    search = GridSearchCV(SVC(), GRID, cv=3).fit(X, y)
    task = archive[archive.add(search, X, y)]
    check_trials(task, search.cv_results_)
    assert task.best.score == search.best_score_
    assert task.best.params == search.best_params_
    assert task.space == Space.parse(GRID, SVC()).describe()
    assert task.space["predictors"] == ["SVC"]
    assert task.metrics == ("score",)
    assert task.versions["numpy"] == np.__version__
    assert DatasetProfile.from_dict(task.profile).overlap(profile(X, y)) == 1
    assert len(archive) == 1


def test_it_speaks_about_other_data_and_not_about_its_own(archive):
    archive.add(GridSearchCV(SVC(), GRID, cv=3).fit(X, y), X, y)
    space = Space.parse({"svc__C": loguniform(0.1, 10)}, make_pipeline(StandardScaler(), SVC()))
    others = np.random.default_rng(0).normal(size=X.shape)
    assert len(archive.select(space, profile(others, y)).used) == 1
    assert archive.select(space, profile(X[::3], y[::3])).used == ()


def test_randomized_search(archive):
    distributions = {"C": loguniform(1e-2, 1e2), "shrinking": [True, False]}
    search = RandomizedSearchCV(
        SVC(), distributions, n_iter=5, scoring="f1_macro", cv=3, random_state=0
    )
    task = archive[archive.add(search.fit(X, y), X, y)]
    check_trials(task, search.cv_results_)
    assert task.metrics == ("f1_macro",)
    assert task.space["branches"][0]["C"]["distribution"] == "loguniform"


@pytest.mark.parametrize("refit", ["f1_macro", False, lambda results: 0])
def test_several_metrics(archive, refit):
    scoring = ["accuracy", "f1_macro", "balanced_accuracy"]
    search = GridSearchCV(SVC(), {"C": [0.01, 1]}, scoring=scoring, refit=refit, cv=3).fit(X, y)
    task = archive[archive.add(search, X, y)]
    tuned = "f1_macro" if refit == "f1_macro" else "accuracy"
    check_trials(task, search.cv_results_, f"mean_test_{tuned}")
    assert task.metrics == (tuned, *(name for name in scoring if name != tuned))
    for row, trial in enumerate(task.trials):
        others = {
            name: search.cv_results_[f"mean_test_{name}"][row] for name in scoring if name != tuned
        }
        assert trial.metrics == others


def test_scorer_as_function_has_its_name(archive):
    search = GridSearchCV(SVC(), {"C": [1]}, scoring=lambda model, X, y: 0.25, cv=3).fit(X, y)
    task = archive[archive.add(search, X, y)]
    assert task.metrics[0].startswith("<lambda> ")
    assert task.best.score == 0.25


@pytest.mark.parametrize("kind", [HalvingGridSearchCV, HalvingRandomSearchCV])
def test_halving_counts_full_resources_only(archive, kind):
    options = {"n_candidates": 6} if kind is HalvingRandomSearchCV else {}
    search = kind(SVC(), GRID, cv=3, factor=2, random_state=0, **options).fit(X, y)
    resources = search.cv_results_["n_resources"]
    last = np.flatnonzero(resources == max(resources))
    assert 0 < len(last) < len(resources)
    task = archive[archive.add(search, X, y)]
    check_trials(task, search.cv_results_, rows=last)


def test_halving_over_a_parameter(archive):
    """The number of trees was not tuned: it is a value held fixed, at its last and largest."""
    search = HalvingGridSearchCV(
        RandomForestClassifier(random_state=0),
        {"max_depth": [1, 2, 3]},
        resource="n_estimators",
        min_resources=2,
        max_resources=6,
        cv=3,
        random_state=0,
    ).fit(X, y)
    task = archive[archive.add(search, X, y)]
    assert all(trial.params.keys() == {"max_depth"} for trial in task.trials)
    assert task.space["fixed"]["RandomForestClassifier.n_estimators"] == 6
    assert search.estimator.n_estimators == 100
    Space.parse({"max_depth": [1, 2, 3]}).encode([trial.params for trial in task.trials])


@pytest.mark.filterwarnings("ignore")  # scikit-learn says that fits failed
@pytest.mark.parametrize("error_score", [np.nan, 0, -1.0])
def test_failed_candidates(archive, error_score):
    search = GridSearchCV(SVC(), {"C": [-1.0, 1.0]}, cv=3, error_score=error_score).fit(X, y)
    failed, good = archive[archive.add(search, X, y)].trials
    assert (failed.status, failed.params) == ("failed", {"C": -1.0})
    assert math.isnan(failed.score)
    assert (good.status, good.score) == ("ok", search.best_score_)


def test_values_that_are_objects(archive):
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {"standardscaler": [StandardScaler(), None], "svc__C": np.array([0.1, 1.0])}
    task = archive[archive.add(GridSearchCV(pipeline, grid, cv=3).fit(X, y), X, y)]
    assert task.trials[0].params["standardscaler"]["class"] == "StandardScaler"
    assert task.trials[-1].params == {"standardscaler": None, "svc__C": 1.0}


def test_without_a_target(archive):
    search = GridSearchCV(KernelDensity(), {"bandwidth": [0.1, 1.0]}).fit(X)
    task = archive[archive.add(search, X)]
    assert task.profile["kind"] == "unsupervised"
    assert task.best.params == search.best_params_


def test_anything_that_looks_like_a_search(archive):
    search = types.SimpleNamespace(
        estimator=SVC(),
        space={"C": [1, 2]},
        cv_results_={"params": [{"C": 1}, {"C": 2}], "mean_test_score": [0.5, 0.75]},
    )
    task = archive[archive.add(search, X, y)]
    assert [trial.score for trial in task.trials] == [0.5, 0.75]
    assert math.isnan(task.trials[0].std)
    assert math.isnan(task.trials[0].fit_time)


@pytest.mark.parametrize(("keep", "kept"), [("sketch", False), ("sample", True)])
def test_keep(tmp_path, keep, kept):
    archive = Archive(tmp_path / "own", keep=keep)
    task = archive[archive.add(GridSearchCV(SVC(), {"C": [1]}, cv=3).fit(X, y), X, y)]
    sample = task.profile["sample"]
    assert (sample is not None) == kept
    if kept:
        assert np.shape(sample["X"]) == X.shape


def test_not_fitted(archive):
    with pytest.raises(NotFittedError, match="GridSearchCV is not fitted yet"):
        archive.add(GridSearchCV(SVC(), GRID), X, y)
    assert not archive.path.exists()


@pytest.mark.parametrize("thing", [SVC(), types.SimpleNamespace(cv_results_={}), None])
def test_not_a_search(archive, thing):
    with pytest.raises(TypeError, match="cannot be added"):
        archive.add(thing, X, y)


def test_no_scores(archive):
    search = types.SimpleNamespace(
        estimator=SVC(), space={"C": [1]}, cv_results_={"params": [{"C": 1}]}
    )
    with pytest.raises(ValueError, match="no mean test score"):
        archive.add(search, X, y)


def test_without_the_data_nobody_will_hear_it(archive):
    fitted = GridSearchCV(SVC(), {"C": [1, 10]}, cv=2).fit(X, y)
    with pytest.warns(ArchiveWarning, match="Pass the X and y"):
        archive.add(fitted)
    assert not archive.select(Space.parse({"C": [1, 10]}, SVC()), profile(X[::2] + 1, y[::2])).used


@pytest.mark.parametrize("make", [GridSearchCV, TransferSearchCV])
@pytest.mark.parametrize(
    ("scoring", "refit", "metrics"),
    [
        (None, True, ("score",)),
        ("f1_macro", True, ("f1_macro",)),
        (make_scorer(f1_score, average="macro"), True, ("f1_macro",)),
        (by_length, True, ("by_length",)),
        ({"a": "accuracy", "b": get_scorer("f1_macro")}, "b", ("f1_macro", "b", "a", "accuracy")),
        ({"score": "f1_macro"}, "score", ("f1_macro",)),
        ({"accuracy": by_length}, "accuracy", ("by_length",)),
    ],
)
def test_added_or_kept_by_the_search_itself_a_metric_has_the_same_name(
    archive, tmp_path, make, scoring, refit, metrics
):
    search = make(SVC(), {"C": [0.1, 1]}, cv=3, scoring=scoring, refit=refit)
    if make is TransferSearchCV:
        search.set_params(archive=tmp_path / "own").fit(X, y)
        [task] = Archive(tmp_path / "own")
    else:
        task = archive[archive.add(search.fit(X, y), X, y)]
    assert task.metrics == metrics
    tuned = "score" if refit is True else refit
    assert {trial.score for trial in task.trials} == set(search.cv_results_[f"mean_test_{tuned}"])
    for trial in task.trials:
        assert trial.metrics.get("f1_macro", trial.score) == trial.score
