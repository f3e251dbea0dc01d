"""Importers: tasks from fitted searches and from tables."""

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
    """Assert that the trials agree with the rows of cv_results_."""
    rows = range(len(results["params"])) if rows is None else rows
    assert len(task.trials) == len(rows) > 0
    for trial, row in zip(task.trials, rows, strict=True):
        assert trial.params == results["params"][row]
        assert trial.score == results[key][row]
        assert trial.std == results[key.replace("mean", "std")][row]
        assert trial.fit_time == results["mean_fit_time"][row]
        assert trial.status == "ok"


def test_add_reads_grid_search(archive):
    search = GridSearchCV(SVC(), GRID, cv=3).fit(X, y)
    task = archive[archive.add(search, X, y)]
    check_trials(task, search.cv_results_)
    assert task.best.score == search.best_score_
    assert task.best.params == search.best_params_
    assert task.space == Space.parse(GRID, SVC()).describe()
    assert task.space["predictors"] == ["SVC"]
    assert task.metrics == ("score",)
    assert task.versions["numpy"] == np.__version__
    seen = archive.open_key().unseal(DatasetProfile.from_dict(task.profile))
    assert seen.overlap(profile(X, y)) == 1
    assert len(archive) == 1


def test_added_search_is_used_for_other_data_only(archive):
    archive.add(GridSearchCV(SVC(), GRID, cv=3).fit(X, y), X, y)
    space = Space.parse({"svc__C": loguniform(0.1, 10)}, make_pipeline(StandardScaler(), SVC()))
    others = np.random.default_rng(0).normal(size=X.shape)
    assert len(archive.select(space, profile(others, y)).used) == 1
    assert archive.select(space, profile(X[::3], y[::3])).used == ()


def test_add_reads_randomized_search(archive):
    distributions = {"C": loguniform(1e-2, 1e2), "shrinking": [True, False]}
    search = RandomizedSearchCV(
        SVC(), distributions, n_iter=5, scoring="f1_macro", cv=3, random_state=0
    )
    task = archive[archive.add(search.fit(X, y), X, y)]
    check_trials(task, search.cv_results_)
    assert task.metrics == ("f1_macro",)
    assert task.space["branches"][0]["C"]["distribution"] == "loguniform"


@pytest.mark.parametrize("refit", ["f1_macro", False, lambda results: 0])
def test_add_reads_several_metrics(archive, refit):
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


def test_add_names_metric_after_function(archive):
    search = GridSearchCV(SVC(), {"C": [1]}, scoring=lambda model, X, y: 0.25, cv=3).fit(X, y)
    task = archive[archive.add(search, X, y)]
    assert task.metrics[0].startswith("<lambda> ")
    assert task.best.score == 0.25


@pytest.mark.parametrize("kind", [HalvingGridSearchCV, HalvingRandomSearchCV])
def test_add_uses_full_resources_of_halving_only(archive, kind):
    options = {"n_candidates": 6} if kind is HalvingRandomSearchCV else {}
    search = kind(SVC(), GRID, cv=3, factor=2, random_state=0, **options).fit(X, y)
    resources = search.cv_results_["n_resources"]
    last = np.flatnonzero(resources == max(resources))
    assert 0 < len(last) < len(resources)
    task = archive[archive.add(search, X, y)]
    check_trials(task, search.cv_results_, rows=last)


def test_add_holds_resource_parameter_fixed(archive):
    """The number of trees is not tuned, but fixed at its last and largest value."""
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


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns that fits failed
@pytest.mark.parametrize("error_score", [np.nan, 0, -1.0])
def test_add_marks_failed_candidates(archive, error_score):
    search = GridSearchCV(SVC(), {"C": [-1.0, 1.0]}, cv=3, error_score=error_score).fit(X, y)
    failed, good = archive[archive.add(search, X, y)].trials
    assert (failed.status, failed.params) == ("failed", {"C": -1.0})
    assert math.isnan(failed.score)
    assert (good.status, good.score) == ("ok", search.best_score_)


def test_add_describes_objects_as_values(archive):
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {"standardscaler": [StandardScaler(), None], "svc__C": np.array([0.1, 1.0])}
    task = archive[archive.add(GridSearchCV(pipeline, grid, cv=3).fit(X, y), X, y)]
    assert task.trials[0].params["standardscaler"]["class"] == "StandardScaler"
    assert task.trials[-1].params == {"standardscaler": None, "svc__C": 1.0}


def test_add_reads_unsupervised_search(archive):
    search = GridSearchCV(KernelDensity(), {"bandwidth": [0.1, 1.0]}).fit(X)
    task = archive[archive.add(search, X)]
    assert task.profile["kind"] == "unsupervised"
    assert task.best.params == search.best_params_


def test_add_reads_anything_like_a_search(archive):
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
def test_add_keeps_sample_if_asked(tmp_path, keep, kept):
    archive = Archive(tmp_path / "own", keep=keep)
    task = archive[archive.add(GridSearchCV(SVC(), {"C": [1]}, cv=3).fit(X, y), X, y)]
    sample = task.profile["sample"]
    assert (sample is not None) == kept
    if kept:
        assert np.shape(sample["X"]) == X.shape


def test_add_refuses_unfitted_search(archive):
    with pytest.raises(NotFittedError, match="GridSearchCV is not fitted yet"):
        archive.add(GridSearchCV(SVC(), GRID), X, y)
    assert not archive.path.exists()


@pytest.mark.parametrize("thing", [SVC(), types.SimpleNamespace(cv_results_={}), None])
def test_add_refuses_other_objects(archive, thing):
    with pytest.raises(TypeError, match="cannot be added"):
        archive.add(thing, X, y)


def test_add_refuses_search_without_scores(archive):
    search = types.SimpleNamespace(
        estimator=SVC(), space={"C": [1]}, cv_results_={"params": [{"C": 1}]}
    )
    with pytest.raises(ValueError, match="no mean test score"):
        archive.add(search, X, y)


def test_search_added_without_data_is_excluded(archive):
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
def test_added_and_recorded_metrics_have_same_name(
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


# -- tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dict", "list", "pandas", "polars"])
def test_add_reads_table(archive, kind):
    rows = [{"C": 1, "kernel": "rbf", "score": 0.9}, {"C": 10, "kernel": "linear", "score": 0.7}]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    table = {"dict": columns, "list": rows}.get(kind)
    if table is None:
        table = pytest.importorskip(kind).DataFrame(columns)
    task = archive[archive.add(table, X, y, estimator=SVC(), metric="accuracy")]
    assert [trial.params for trial in task.trials] == [
        {k: row[k] for k in ("C", "kernel")} for row in rows
    ]
    assert task.scores.tolist() == [0.9, 0.7]
    assert task.metrics == ("accuracy",)
    assert (
        task.space == Space.parse([{"C": [1, 10], "kernel": ["rbf", "linear"]}], SVC()).describe()
    )
    assert task.profile["n_rows"] == 150


def test_add_reads_table_of_search_with_branches(archive):
    """``DataFrame(search.cv_results_)`` has missing cells if there are branches."""
    pandas = pytest.importorskip("pandas")
    grid = [{"kernel": ["poly"], "degree": [2, 3]}, {"kernel": ["rbf"], "C": [1.0, 2.5]}]
    search = GridSearchCV(SVC(), grid, cv=3).fit(X, y)
    for table in (pandas.DataFrame(search.cv_results_), search.cv_results_):
        task = archive[archive.add(table, X, y, estimator=SVC())]
        direct = archive[archive.add(search, X, y)]
        assert [t.params for t in task.trials] == [t.params for t in direct.trials]
        assert [(t.score, t.std, t.fit_time) for t in task.trials] == [
            (t.score, t.std, t.fit_time) for t in direct.trials
        ]


def test_add_reads_table_with_space(archive):
    space = {"C": [0.1, 1, 10]}
    table = [
        {"C": 1, "loss": 0.1, "gain": -0.1, "note": "x"},
        {"C": 10, "loss": 0.3, "gain": float("nan"), "note": "y"},
    ]
    task = archive[archive.add(table, space=space, score="gain")]
    assert [(t.params, t.status) for t in task.trials] == [({"C": 1}, "ok"), ({"C": 10}, "failed")]
    assert task.space["branches"][0]["C"]["values"] == [0.1, 1, 10]
    assert task.metrics == ("gain",) and task.profile is None


def test_add_reads_table_of_search_with_metrics(archive):
    scoring = ["accuracy", "f1_macro"]
    search = GridSearchCV(SVC(), {"C": [1, 10]}, cv=2, scoring=scoring, refit=False).fit(X, y)
    table = {name: list(values) for name, values in search.cv_results_.items()}
    task = archive[archive.add(table, X, y, estimator=SVC(), score="mean_test_accuracy")]
    assert task.metrics == ("accuracy", "f1_macro")
    assert [t.metrics["f1_macro"] for t in task.trials] == table["mean_test_f1_macro"]
    assert [t.std for t in task.trials] == table["std_test_accuracy"]
    plain = GridSearchCV(SVC(), {"C": [1, 10]}, cv=2).fit(X, y)
    # The table does not say which metric it is.
    assert archive[archive.add(dict(plain.cv_results_), X, y)].metrics == ("mean_test_score",)


def test_none_in_table_is_a_value(archive):
    task = archive[archive.add([{"depth": None, "score": 0.5}, {"depth": 3, "score": 0.6}])]
    assert [trial.params for trial in task.trials] == [{"depth": None}, {"depth": 3}]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"C": [1]}, {}, "no column 'score' or 'mean_test_score'"),
        ({"C": [1], "score": [1]}, {"score": "auc"}, "no column 'auc'; its columns are C, score"),
        (
            {"C": [1], "score": [1]},
            {"space": {"gamma": [1]}},
            "no column for the parameter 'gamma'",
        ),
        ({"C": [], "score": []}, {}, "no trials"),
        ([], {}, "no trials"),
        ({"C": [1, 2], "score": [1]}, {}, "different lengths"),
    ],
)
def test_add_refuses_invalid_table(archive, table, options, message):
    with pytest.raises(ValueError, match=message):
        archive.add(table, **options)
    assert len(archive) == 0


def test_add_refuses_table_options_with_search(archive):
    search = GridSearchCV(SVC(), {"C": [1]}, cv=2).fit(X, y)
    with pytest.raises(TypeError, match="for tables only"):
        archive.add(search, X, y, score="x")
