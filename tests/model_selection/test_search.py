"""`TransferSearchCV`: results, parameters, failures, archive, kinds of data, callbacks."""

import os
import pickle
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine, make_classification, make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.fixes import parse_version

from sktransfer import Archive, Space, TransferSearchCV, profile
from sktransfer.exceptions import ArchiveWarning, SurrogateWarning, TransferWarning
from sktransfer.model_selection import _history
from sktransfer.pretrained import PretrainedModel
from sktransfer.surrogates import GP, TaskPrior, WarmStart

X, y = load_iris(return_X_y=True)
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}


def make_search(space=SPACE, *, estimator=None, n_iter=7, archive=None, random_state=0, **params):
    return TransferSearchCV(
        SVC() if estimator is None else estimator,
        space,
        n_iter=n_iter,
        archive=archive,
        random_state=random_state,
        **params,
    )


def mean_scores(fitted):
    return fitted.cv_results_["mean_test_score"]


class Picky(ClassifierMixin, BaseEstimator):
    """Fails where `a` is above `fails_above`. Otherwise its score depends on `a`."""

    def __init__(self, a=0.0, fails_above=0.5):
        self.a = a
        self.fails_above = fails_above

    def fit(self, X, y):
        if self.a > self.fails_above:
            raise RuntimeError(f"a={self.a} is too much")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.resize(self.classes_, len(X))

    def score(self, X, y):
        return -((self.a - 0.3) ** 2)


# -- a drop-in for GridSearchCV --------------------------------------------------------------------


@pytest.mark.parametrize(
    "scoring", [None, ["accuracy", "f1_macro"]], ids=["default", "two metrics"]
)
@pytest.mark.parametrize(
    "grid",
    [
        {"C": [0.1, 1, 10], "kernel": ["rbf", "linear"]},
        [
            {"kernel": ["rbf"], "gamma": np.logspace(-2, 0, 3)},
            {"kernel": ["poly"], "degree": [2, 3]},
        ],
    ],
    ids=["dict", "list"],
)
def test_whole_grid_gives_results_of_grid_search(grid, scoring):
    options = dict(
        cv=3, scoring=scoring, refit="accuracy" if scoring else True, return_train_score=True
    )
    search = TransferSearchCV(SVC(), grid, **options).fit(X, y)
    grid_search = GridSearchCV(SVC(), grid, **options).fit(X, y)
    assert list(search.cv_results_["params"]) == list(grid_search.cv_results_["params"])
    for key, values in grid_search.cv_results_.items():
        if "time" not in key and key != "params":
            np.testing.assert_array_equal(search.cv_results_[key], values, err_msg=key)
    assert set(search.cv_results_) - set(grid_search.cv_results_) == {
        "origin",
        "predicted_mean",
        "predicted_std",
    }
    assert set(search.cv_results_["origin"]) == {"grid"}
    assert search.best_params_ == grid_search.best_params_
    assert search.best_score_ == grid_search.best_score_
    np.testing.assert_array_equal(search.predict(X), grid_search.predict(X))


def test_search_has_fitted_attributes_of_grid_search():
    search = make_search().fit(X, y)
    grid_search = GridSearchCV(SVC(), {"C": [1]}).fit(X, y)
    expected = {name for name in vars(grid_search) if name.endswith("_")}
    assert expected <= set(vars(search))
    assert search.score(X, y) > 0.9
    assert search.n_features_in_ == 4
    assert list(search.classes_) == [0, 1, 2]


def test_params_in_results_are_python_types():
    space = {"C": loguniform(1e-2, 1e2), "degree": randint(1, 4), "kernel": ["rbf", "poly"]}
    for params in make_search(space).fit(X, y).cv_results_["params"]:
        assert [type(value) for value in params.values()] == [float, int, str]


def test_search_has_the_type_of_its_estimator():
    assert is_classifier(make_search())
    assert is_regressor(make_search({"alpha": [1, 2]}, estimator=Ridge()))


def test_search_works_inside_and_around_a_pipeline():
    inner = make_pipeline(StandardScaler(), make_search())
    assert inner.fit(X, y).score(X, y) > 0.9
    outer = make_search(
        {"svc__C": loguniform(1e-2, 1e2)}, estimator=make_pipeline(StandardScaler(), SVC())
    )
    assert outer.fit(X, y).score(X, y) > 0.9


def test_space_may_be_conditional_and_hold_estimators():
    pipe = make_pipeline(StandardScaler(), SVC())
    space = [
        {"svc": [SVC()], "svc__C": loguniform(1e-2, 1e2)},
        {
            "svc": [DecisionTreeClassifier(random_state=0)],
            "svc__max_depth": randint(1, 6),
            "standardscaler": ["passthrough"],
        },
    ]
    fitted = make_search(space, estimator=pipe, n_iter=12).fit(X, y)
    kinds = {type(params["svc"]) for params in fitted.cv_results_["params"]}
    assert kinds == {SVC, DecisionTreeClassifier}
    assert all(("svc__C" in p) == isinstance(p["svc"], SVC) for p in fitted.cv_results_["params"])


def test_fitted_search_can_be_cloned_pickled_and_shown():
    fitted = make_search(surrogate=WarmStart(n_tasks=2)).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
    assert not hasattr(clone(fitted), "cv_results_")
    assert "TransferSearchCV" in repr(fitted)
    assert "SVC" in fitted._repr_html_()
    fitted.set_params(surrogate__n_tasks=5, estimator__C=3)
    assert fitted.surrogate.n_tasks == 5


# -- the search itself -----------------------------------------------------------------------------


@pytest.mark.parametrize("surrogate", ["auto", "gp", "warm-start", "random", GP(kernel="se")])
def test_same_seed_gives_same_proposals(surrogate):
    runs = [make_search(surrogate=surrogate, random_state=seed).fit(X, y) for seed in (1, 1, 2)]
    assert runs[0].cv_results_["params"] == runs[1].cv_results_["params"]
    assert runs[0].cv_results_["params"] != runs[2].cv_results_["params"]


def test_global_random_state_is_unchanged():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make_search({"a": uniform(0, 0.5)}, estimator=Picky(), cv=3).fit(X, y)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_number_of_workers_does_not_change_the_result():
    one, two = (make_search(n_jobs=n, batch_size=2).fit(X, y) for n in (1, 2))
    assert one.cv_results_["params"] == two.cv_results_["params"]
    np.testing.assert_array_equal(mean_scores(one), mean_scores(two))


@pytest.mark.parametrize(("n_iter", "batch_size"), [(7, 3), (5, 10), (4, 1)])
def test_number_of_candidates_is_n_iter(n_iter, batch_size):
    assert len(mean_scores(make_search(n_iter=n_iter, batch_size=batch_size).fit(X, y))) == n_iter


def test_folds_are_drawn_once():
    """All candidates have the same folds, even if the splitter has no seed."""
    space = {"a": uniform(0, 1e-9)}  # practically one configuration

    class Size(Picky):
        def score(self, X, y):
            return float(X.sum())

    fitted = make_search(space, estimator=Size(), cv=ShuffleSplit(2, test_size=0.3)).fit(X, y)
    for split in ("split0_test_score", "split1_test_score"):
        assert len(set(fitted.cv_results_[split])) == 1


def test_cv_may_be_a_generator():
    fitted = make_search(cv=KFold(3, shuffle=True, random_state=0).split(X, y)).fit(X, y)
    assert fitted.n_splits_ == 3
    assert np.isfinite(mean_scores(fitted)).all()


def test_fit_takes_groups_and_sample_weight():
    groups = np.arange(len(X)) % 5
    fitted = make_search(cv=GroupKFold(5)).fit(X, y, groups=groups, sample_weight=np.ones(len(X)))
    assert fitted.n_splits_ == 5


def test_metadata_is_routed_to_estimator_and_scorer():
    weights = np.random.default_rng(0).random(len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = SVC().set_fit_request(sample_weight=True)
        scorer = make_scorer(
            lambda y_true, y_pred, sample_weight=None: float(
                np.average(y_true == y_pred, weights=sample_weight)
            )
        )
        scorer.set_score_request(sample_weight=True)
        fitted = make_search(estimator=estimator, scoring=scorer).fit(X, y, sample_weight=weights)
        assert fitted.best_score_ > 0.9


def test_timeout_includes_the_time_before_the_first_fit(monkeypatch):
    def slow_profile(*args, **kwargs):
        time.sleep(0.6)
        return profile(*args, **kwargs)

    monkeypatch.setattr(_history, "profile", slow_profile)
    assert len(make_search(timeout=0.5, cv=2).fit(X, y).cv_results_["params"]) == 1


def sometimes_infinite(model, X, y):
    return np.inf if model.C < 1 else model.score(X, y)


def test_warning_about_scores_is_shown_once_and_filtered_by_module():
    def warned(action):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings(action, module="sklearn")
            make_search(scoring=sometimes_infinite, cv=2).fit(X, y)
        return [each for each in caught if "non-finite" in str(each.message)]

    assert len(warned("default")) == 1
    assert warned("ignore") == []


def test_failed_search_has_no_space():
    search = make_search({"C": [-1.0, -2.0]}, cv=2)
    with pytest.raises(ValueError, match="All the 4 fits failed"):
        search.fit(X, y)
    assert not hasattr(search, "space_")


def test_archive_warning_at_the_end_points_to_the_call_of_fit(tmp_path, monkeypatch):
    def full(self, task):
        raise OSError("no space left")

    monkeypatch.setattr(Archive, "append", full)
    with pytest.warns(ArchiveWarning, match="cannot be added") as caught:
        make_search(archive=tmp_path, n_iter=3, cv=2).fit(X, y)
    [warning] = [each for each in caught if "cannot be added" in str(each.message)]
    assert warning.filename == __file__


def test_timeout_ends_search_and_grid():
    class Slow(Picky):
        def fit(self, X, y):
            time.sleep(0.05)
            return super().fit(X, y)

    space = {"a": uniform(0, 0.4)}
    fitted = make_search(space, estimator=Slow(), n_iter=500, timeout=0.6, cv=2).fit(X, y)
    assert 1 <= len(mean_scores(fitted)) < 30
    grid = make_search(
        {"a": list(np.linspace(0, 0.4, 100))}, estimator=Slow(), n_iter=500, timeout=0.4, cv=2
    ).fit(X, y)
    assert 1 <= len(mean_scores(grid)) < 30
    assert set(grid.cv_results_["origin"]) == {"grid"}


@pytest.mark.parametrize(
    "refit", ["neg", lambda results: 2, False], ids=["name", "callable", "False"]
)
def test_refit_selects_the_best_of_several_metrics(refit):
    metrics = {"neg": "neg_log_loss", "acc": "accuracy"}
    fitted = make_search(
        estimator=SVC(probability=True), scoring=metrics, refit=refit, n_iter=5, cv=2
    ).fit(X, y)
    assert {"mean_test_neg", "mean_test_acc"} <= set(fitted.cv_results_)
    if refit == "neg":
        assert fitted.best_score_ == fitted.cv_results_["mean_test_neg"].max()
    elif callable(refit):
        assert fitted.best_index_ == 2
    else:
        assert not hasattr(fitted, "best_estimator_")


def test_results_have_origin_and_predictions():
    fitted = make_search(n_iter=9, surrogate="gp").fit(X, y)
    origin = list(fitted.cv_results_["origin"])
    assert origin == ["space-filling"] * 4 + ["model"] * 5
    predicted = fitted.cv_results_["predicted_mean"]
    assert np.isnan(predicted[:4]).all()
    assert np.isfinite(predicted[4:]).all()
    assert (fitted.cv_results_["predicted_std"][4:] > 0).all()


def test_large_grid_is_searched_without_repetition():
    grid = {"C": list(np.logspace(-3, 3, 20)), "gamma": list(np.logspace(-3, 3, 20))}
    fitted = make_search(grid, n_iter=30).fit(X, y)
    assert len({tuple(p.values()) for p in fitted.cv_results_["params"]}) == 30


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 3])
def test_failed_candidates_are_in_the_results_and_the_search_continues(batch_size):
    space = {"a": uniform(0, 1)}
    with pytest.warns(FitFailedWarning):
        fitted = make_search(
            space, estimator=Picky(), n_iter=15, cv=2, batch_size=batch_size, surrogate="gp"
        ).fit(X, y)
    values, params = mean_scores(fitted), fitted.cv_results_["params"]
    assert len(values) == 15
    np.testing.assert_array_equal(np.isnan(values), [p["a"] > 0.5 for p in params])
    assert np.isnan(values).any()
    np.testing.assert_allclose(
        values[~np.isnan(values)], [-((p["a"] - 0.3) ** 2) for p in params if p["a"] <= 0.5]
    )
    assert fitted.best_params_["a"] == pytest.approx(0.3, abs=0.05)
    assert len({p["a"] for p in params}) == 15
    assert (
        fitted.cv_results_["rank_test_score"][np.isnan(values)].min()
        > (~np.isnan(values)).sum() - 1
    )


def test_last_candidates_may_fail():
    class FailsLater(Picky):
        calls = 0

        def fit(self, X, y):
            type(self).calls += 1
            if type(self).calls > 6 and type(self).calls <= 10:
                raise RuntimeError("failed")
            return super().fit(X, y)

    def fit_search(**params):
        FailsLater.calls = 0
        params = {"estimator": FailsLater(), "n_iter": 5, "cv": 2} | params
        with pytest.warns(FitFailedWarning, match="4 fits failed out of a total of 10"):
            return make_search({"a": uniform(0, 0.5)}, **params).fit(X, y)

    assert np.isnan(mean_scores(fit_search())).tolist() == [False] * 3 + [True] * 2
    n_results = []
    fit_search(refit=lambda results: n_results.append(len(results["params"])) or 0)
    assert n_results == [5]  # `refit` sees all candidates, as in GridSearchCV
    fitted = fit_search(refit=False, error_score=5.0)
    assert fitted.best_index_ == 3 and fitted.best_score_ == 5.0


def test_one_warning_counts_all_failed_fits():
    class NeedsFirstRow(Picky):
        def fit(self, X_, y_):
            if not (X_[0] == X[0]).all():
                raise RuntimeError(f"the first row is missing, and a={self.a < 0.25}")
            return super().fit(X_, y_)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = make_search(
            {"a": uniform(0, 0.5)}, estimator=NeedsFirstRow(), n_iter=6, cv=KFold(3), refit=False
        )
        search.fit(X, y)
    [warning] = [str(w.message) for w in caught if issubclass(w.category, FitFailedWarning)]
    assert "6 fits failed out of a total of 18" in warning
    assert "a=True" in warning and "a=False" in warning


def test_error_lists_the_reasons_of_all_failed_fits():
    class AlwaysFails(Picky):
        def fit(self, X, y):
            raise RuntimeError("too small" if self.a < 0.5 else "too large")

    with pytest.raises(ValueError, match="All the 16 fits failed") as caught:
        make_search({"a": uniform(0, 1)}, estimator=AlwaysFails(), n_iter=8, cv=2).fit(X, y)
    assert "too small" in str(caught.value) and "too large" in str(caught.value)


def test_error_if_all_fits_fail_is_that_of_grid_search():
    def error_message(search):
        with pytest.raises(ValueError, match="fits failed") as caught:
            search.fit(X, y)
        return str(caught.value).splitlines()[:4]

    space = {"a": uniform(0.6, 0.4)}
    message = error_message(make_search(space, estimator=Picky(), n_iter=3, cv=2))
    expected = error_message(GridSearchCV(Picky(), {"a": [0.6, 0.7, 0.8]}, cv=2))
    assert message == expected
    assert error_message(make_search({"a": [0.6, 0.7, 0.8]}, estimator=Picky(), cv=2)) == expected


def test_error_score_replaces_scores_or_raises():
    space = {"a": uniform(0, 1)}
    with pytest.raises(RuntimeError, match="too much"):
        make_search(space, estimator=Picky(), error_score="raise", n_iter=10, cv=2).fit(X, y)
    with pytest.warns(FitFailedWarning):
        fitted = make_search(space, estimator=Picky(), error_score=-7.0, n_iter=10, cv=2).fit(X, y)
    assert mean_scores(fitted).min() == -7.0


@pytest.mark.parametrize("batch_size", [1, 4])
def test_failed_trials_are_recorded_as_failed_with_numeric_error_score(tmp_path, batch_size):
    search = make_search(
        {"a": uniform(0, 1)},
        estimator=Picky(),
        error_score=0.0,
        refit=False,
        n_iter=12,
        cv=2,
        archive=tmp_path,
    )
    with pytest.warns(FitFailedWarning):
        fitted = search.set_params(batch_size=batch_size).fit(X, y)
    [task] = Archive(tmp_path)
    failed = [trial.status == "failed" for trial in task.trials]
    assert failed == [params["a"] > 0.5 for params in fitted.cv_results_["params"]]
    assert 0 < sum(failed) < 12
    assert task.best.params["a"] <= 0.5


def test_failed_fits_give_one_warning_of_each_kind():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_search({"a": uniform(0, 1)}, estimator=Picky(), n_iter=15, cv=2).fit(X, y)
    assert sum("non-finite" in str(w.message) for w in caught) == 1
    assert sum(issubclass(w.category, FitFailedWarning) for w in caught) == 1


def test_nan_scores_without_failed_fit_give_one_warning():
    def sometimes_nan(estimator, X, y):
        return np.nan if estimator.a > 0.5 else estimator.a

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search = make_search(
            {"a": uniform(0, 1)}, estimator=Picky(fails_above=2), scoring=sometimes_nan, cv=2
        )
        fitted = search.fit(X, y)
    assert np.isnan(mean_scores(fitted)).any()
    assert sum("non-finite" in str(w.message) for w in caught) == 1


@pytest.mark.parametrize(
    "metrics",
    [["accuracy", "f1_macro"], lambda e, X, y: {"accuracy": 0.5, "other": e.a}],
    ids=["list", "callable"],
)
def test_failed_candidates_have_nan_for_every_metric(metrics, tmp_path):
    with pytest.warns(FitFailedWarning):
        fitted = make_search(
            {"a": [*np.linspace(0.0, 0.4, 10), 0.9]},
            estimator=Picky(),
            scoring=metrics,
            refit="accuracy",
            n_iter=11,  # the whole grid, whose last candidate fails
            cv=2,
            return_train_score=True,
            archive=tmp_path,
        ).fit(X, y)
    is_failed = np.array([p["a"] > 0.5 for p in fitted.cv_results_["params"]])
    for key in ("mean_test_accuracy", "mean_train_accuracy", "split1_test_accuracy"):
        np.testing.assert_array_equal(np.isnan(fitted.cv_results_[key]), is_failed)
    assert is_failed.any() and Archive(tmp_path)[fitted.task_id_].metrics[0] == "accuracy"


# -- invalid parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "parts"),
    [
        ({"space": {"gama": [1]}}, ValueError, ["gama", "gamma"]),
        ({"space": []}, ValueError, ["space is empty"]),
        ({"space": {"C": []}}, ValueError, ["C", "[]"]),
        ({"space": {"C": object()}}, TypeError, ["C", "object"]),
        ({"space": 3}, ValueError, ["space", "3", "dict"]),
        ({"n_iter": 0}, ValueError, ["n_iter", "0", "[1, inf)"]),
        ({"surrogate": "gpp"}, ValueError, ["gpp", "warm-start"]),
        ({"surrogate": 3}, ValueError, ["surrogate", "3"]),
        ({"batch_size": 0}, ValueError, ["batch_size", "0"]),
        ({"timeout": -1}, ValueError, ["timeout", "-1"]),
        ({"archive": 3}, ValueError, ["archive", "3"]),
    ],
    ids=[
        "unknown parameter",
        "empty space",
        "empty list",
        "no distribution",
        "space number",
        "n_iter",
        "unknown surrogate",
        "surrogate number",
        "batch_size",
        "timeout",
        "archive",
    ],
)
def test_fit_raises_error_that_names_the_invalid_parameter(params, error, parts):
    search = TransferSearchCV(**{"estimator": SVC(), "space": SPACE, "archive": None, **params})
    with pytest.raises(error) as caught:
        search.fit(X, y)
    for part in parts:
        assert part in str(caught.value)


def test_distribution_may_have_only_an_rvs_method():
    class OnlyRvs:
        def rvs(self, random_state=None):
            return float(random_state.choice([0.5, 2.0]))

    fitted = make_search({"C": OnlyRvs()}).fit(X, y)
    assert sorted(params["C"] for params in fitted.cv_results_["params"]) == [0.5, 2.0]


def test_file_as_archive_raises_error(tmp_path):
    path = tmp_path / "file"
    path.write_text("not an archive")
    with pytest.raises(OSError, match="file"):
        make_search(archive=path).fit(X, y)
    assert path.read_text() == "not an archive"


@pytest.mark.parametrize("path", ["file/below", "~unknown-user/archive"])
def test_impossible_path_raises_error_and_creates_nothing(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("not an archive")
    with pytest.raises(NotADirectoryError, match="archive="):
        make_search(archive=path).fit(X, y)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_invalid_keep_of_archive_raises_error_at_fit(tmp_path):
    with pytest.raises(ValueError, match="'rows'"):
        make_search(archive=Archive(tmp_path, keep="rows")).fit(X, y)


def test_unreadable_archive_gives_a_warning(tmp_path, monkeypatch):
    def deny(*args):
        raise PermissionError("permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", deny)
        with pytest.warns(ArchiveWarning, match="out of reach"):
            fitted = make_search(archive=tmp_path).fit(X, y)
    assert fitted.best_score_ > 0.9


def test_default_archive_without_home_directory_gives_a_warning(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SKTRANSFER_ARCHIVE")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)
    with pytest.warns(ArchiveWarning, match="out of reach"):
        fitted = make_search(archive="auto").fit(X, y)
    assert fitted.task_id_ is None
    assert fitted.best_score_ > 0.9


def test_record_of_newer_format_is_skipped_and_left_unchanged(tmp_path):
    make_search(archive=tmp_path, n_iter=3).fit(X, y)
    [file] = tmp_path.glob("tasks/*.joblib")
    joblib.dump({**joblib.load(file), "format": 99}, file)
    before = file.read_bytes()
    with pytest.warns(ArchiveWarning, match="99"):
        fitted = make_search(archive=tmp_path).fit(*load_wine(return_X_y=True))
    assert fitted.source_tasks_ == []
    assert file.read_bytes() == before


def test_unwritable_archive_gives_a_warning(tmp_path, monkeypatch):
    def deny(*args, **kwargs):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(os, "link", deny)
    monkeypatch.setattr(os, "replace", deny)
    with pytest.warns(ArchiveWarning, match="cannot be added"):
        fitted = make_search(archive=tmp_path / "archive").fit(X, y)
    assert fitted.task_id_ is None
    assert fitted.best_score_ > 0.9


# -- the archive -----------------------------------------------------------------------------------


def test_fit_adds_a_record_that_the_next_search_starts_from(tmp_path):
    archive = Archive(tmp_path)
    first = make_search(archive=archive, n_iter=8).fit(X, y)
    assert len(archive) == 1
    [task] = archive
    assert task.id == first.task_id_
    assert [t.score for t in task.trials] == mean_scores(first).tolist()
    assert task.trials[0].params == first.cv_results_["params"][0]

    wine = load_wine(return_X_y=True)
    second = make_search(archive=str(tmp_path), surrogate="warm-start").fit(*wine)
    assert second.cv_results_["params"][0] == pytest.approx(first.best_params_)
    assert second.cv_results_["origin"][0] == f"task {first.task_id_}"
    [source] = second.source_tasks_
    assert source["id"] == first.task_id_
    assert source["excluded"] is None
    assert source["n_used"] >= 1
    assert 0 <= source["similarity"] <= 1
    assert len(archive) == 2


def test_default_archive_gets_a_record(own_archive):
    TransferSearchCV(SVC(), SPACE, n_iter=3).fit(X, y)
    assert len(list(own_archive.glob("tasks/*.joblib"))) == 1


def test_search_without_archive_neither_reads_nor_writes(own_archive):
    make_search(archive=own_archive).fit(*load_wine(return_X_y=True))
    fitted = make_search(archive=None).fit(X, y)
    assert fitted.source_tasks_ == []
    assert fitted.task_id_ is None
    assert len(Archive(own_archive)) == 1


def test_second_fit_on_same_data_excludes_the_first(tmp_path):
    search = make_search(archive=tmp_path)
    first = clone(search).fit(X, y)
    second = clone(search).fit(X, y)
    assert first.cv_results_["params"] == second.cv_results_["params"]
    assert [s["excluded"] is not None for s in second.source_tasks_] == [True]
    assert "rows" in second.source_tasks_[0]["excluded"]


def test_past_search_of_another_estimator_is_excluded(tmp_path):
    make_search(
        {"max_depth": randint(1, 5)}, estimator=DecisionTreeClassifier(), archive=tmp_path, n_iter=4
    ).fit(X, y)
    fitted = make_search(archive=tmp_path).fit(*load_wine(return_X_y=True))
    assert fitted.source_tasks_ == []
    assert fitted.n_other_tasks_ == 1


def test_pipeline_learns_from_search_of_its_bare_estimator(tmp_path):
    bare = make_search(archive=tmp_path).fit(X, y)
    space = {
        "clf__C": loguniform(1e-2, 1e2),
        "clf__gamma": loguniform(1e-3, 1e1),
        "clf__shrinking": [True, False],
    }
    pipe = sklearn.pipeline.Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    search = make_search(space, estimator=pipe, archive=tmp_path, surrogate="warm-start")
    fitted = search.fit(*load_wine(return_X_y=True))
    first = fitted.cv_results_["params"][0]
    assert first["clf__C"] == pytest.approx(bare.best_params_["C"])
    assert first["clf__shrinking"] is True


UNIQUE_ROWS = make_classification(150, 4, random_state=0)


def cross_validate_search(archive, n_folds, scaled=False):
    """Scores of the outer folds, and `source_tasks_` of each fold's search."""
    sources = []

    class NotingSearch(TransferSearchCV):
        def fit(self, X, y=None, **params):
            super().fit(X, y, **params)
            sources.append(self.source_tasks_)
            return self

    search = NotingSearch(
        SVC(), SPACE, n_iter=5, archive=archive, surrogate="warm-start", random_state=0
    )
    model = make_pipeline(StandardScaler(), search) if scaled else search
    cv = KFold(n_folds, shuffle=True, random_state=0)
    return cross_val_score(model, *UNIQUE_ROWS, cv=cv), sources


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("n_folds", [2, 3])
def test_no_fold_learns_from_another(tmp_path, n_folds, scaled):
    """The searches of two folds share no row, but each is evaluated on the rows of the other.

    A scaler changes the same rows differently in each fold.
    """
    expected, _ = cross_validate_search(None, n_folds, scaled)
    scores, sources = cross_validate_search(tmp_path, n_folds, scaled)
    np.testing.assert_array_equal(scores, expected)
    assert [len(rows) for rows in sources] == list(range(n_folds))
    assert all(row["excluded"] for rows in sources for row in rows)
    assert len(Archive(tmp_path)) == n_folds


def test_folds_learn_from_each_other_if_overlap_is_allowed(tmp_path, monkeypatch):
    """Control for the test above: without the exclusion, its assertions would fail."""
    select = Archive.select
    monkeypatch.setattr(
        Archive,
        "select",
        lambda self, *args, **options: select(self, *args, **options | {"overlap": "allow"}),
    )
    _, sources = cross_validate_search(tmp_path, 3)
    is_used = [sum(row["n_used"] for row in rows) > 0 for rows in sources]
    assert is_used == [False, True, True]


def test_two_folds_learn_from_each_other_if_outer_data_are_ignored(tmp_path, monkeypatch):
    """Control for two folds."""
    monkeypatch.setattr("sktransfer.model_selection._history.enclosing_data", list)
    _, sources = cross_validate_search(tmp_path, 2)
    assert sources[1][0]["n_used"] > 0


def test_parallel_folds_do_not_learn_from_each_other(tmp_path):
    search = make_search(n_iter=4, archive=tmp_path)
    cross_val_score(search, X, y, cv=2)
    scores = cross_val_score(search, X, y, cv=2, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(make_search(n_iter=4), X, y, cv=2))


def test_folds_of_calibration_and_outer_search_do_not_learn_from_each_other(tmp_path):
    data = UNIQUE_ROWS
    inner = make_search(n_iter=4, archive=tmp_path / "calibrated")
    for fitted in CalibratedClassifierCV(inner, cv=KFold(2)).fit(*data).calibrated_classifiers_:
        assert all(source["n_used"] == 0 for source in fitted.estimator.source_tasks_)
    inner = make_search(n_iter=4, archive=tmp_path / "searched")
    outer = GridSearchCV(
        make_pipeline(StandardScaler(), inner), {"standardscaler__with_std": [True]}, cv=3
    )
    outer.fit(*data)
    assert len(Archive(tmp_path / "searched")) == 4
    assert all(source["n_used"] == 0 for source in outer.best_estimator_[-1].source_tasks_)


def test_data_that_cannot_be_compared_use_no_past_task(tmp_path):
    """Objects without a comparable content: two fits on the same data give the same result."""

    class Opaque:
        def __init__(self, value):
            self.value = value

    class Reader(Picky):
        def fit(self, X, y):
            return super().fit(np.array([item.value for item in X]), y)

    data = [Opaque(value) for value in range(30)]
    search = make_search({"a": uniform(0, 0.5)}, estimator=Reader(), archive=tmp_path, cv=2)
    first, second = (clone(search).fit(data, [0, 1] * 15) for _ in range(2))
    assert first.cv_results_["params"] == second.cv_results_["params"]
    assert second.source_tasks_[0]["excluded"]


def test_interrupted_search_keeps_its_trials(tmp_path):
    class Interrupted(Picky):
        calls = 0

        def fit(self, X, y):
            type(self).calls += 1
            if type(self).calls > 8:
                raise KeyboardInterrupt
            return super().fit(X, y)

    with pytest.raises(KeyboardInterrupt):
        make_search(
            {"a": uniform(0, 0.5)}, estimator=Interrupted(), archive=tmp_path, cv=2, n_iter=9
        ).fit(X, y)
    [task] = Archive(tmp_path)
    assert not task.complete
    assert len(task.trials) == 4


def test_failing_archive_profile_or_surrogate_gives_a_warning(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("failed")

    with monkeypatch.context() as patch:
        patch.setattr(Archive, "select", fail)
        with pytest.warns(ArchiveWarning, match="cannot be read"):
            assert make_search(archive=tmp_path / "a").fit(X, y).best_score_ > 0.9
    with monkeypatch.context() as patch:
        patch.setattr(_history, "profile", fail)
        with pytest.warns(TransferWarning, match="cannot be profiled"):
            assert make_search(archive=tmp_path / "b").fit(X, y).best_score_ > 0.9
    make_search(archive=tmp_path / "c").fit(*load_wine(return_X_y=True))
    with monkeypatch.context() as patch:
        patch.setattr(TaskPrior, "similarity", fail)
        with pytest.warns(TransferWarning, match="similar"):
            assert make_search(archive=tmp_path / "c").fit(X, y).best_score_ > 0.9
    with monkeypatch.context() as patch:
        patch.setattr(GP, "posterior", fail)
        with pytest.warns(SurrogateWarning, match="at random"):
            fitted = make_search(surrogate="gp").fit(X, y)
    assert len(mean_scores(fitted)) == 7


def test_damaged_records_and_journals_do_not_end_the_search(tmp_path):
    """Files are cut off and changed at random places. `resume` reads all of them."""
    wine, rng = load_wine(return_X_y=True), np.random.default_rng(0)
    make_search(archive=tmp_path, n_iter=4, cv=2, surrogate="warm-start").fit(*wine)
    archive = Archive(tmp_path)
    [task] = archive
    journal = archive.journals.start(replace(task, id="killed", trials=()))
    for trial, folds in zip(task.trials, task.resume["folds"], strict=True):
        journal.add(trial, folds)
    journal.sync()
    record = archive.path / "tasks" / f"{task.id}.joblib"
    for file in (record, journal.path):
        original = file.read_bytes()
        for n in range(12):
            damaged = bytearray(
                original[: int(rng.integers(1, len(original)))] if n % 2 else original
            )
            damaged[int(rng.integers(len(damaged)))] ^= 0xFF
            file.write_bytes(damaged)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                search = make_search(
                    archive=Archive(tmp_path, readonly=True), n_iter=2, cv=2, resume=True
                )
                search.set_params(surrogate="warm-start", refit=False).fit(X, y)
                read = {
                    trial.score for each in Archive(tmp_path).select().used for trial in each.trials
                }
            assert np.isfinite(mean_scores(search)).all()
            assert read <= {trial.score for trial in task.trials}
        file.write_bytes(original)


# -- metrics, spaces and kinds of data -------------------------------------------------------------


@pytest.mark.parametrize(
    ("scoring", "refit", "names"),
    [
        (None, True, ("score",)),
        ("f1_macro", True, ("f1_macro",)),
        (["accuracy", "f1_macro"], "f1_macro", ("f1_macro", "accuracy")),
        (["accuracy", "f1_macro"], False, ("accuracy", "f1_macro")),
        (["f1_macro"], "f1_macro", ("f1_macro",)),
    ],
    ids=["default", "string", "list", "list without refit", "list of one"],
)
def test_record_names_its_metrics(tmp_path, scoring, refit, names):
    make_search(archive=tmp_path, scoring=scoring, refit=refit, n_iter=3, cv=2).fit(X, y)
    [task] = Archive(tmp_path)
    assert task.metrics == names


def test_search_ends_when_the_space_is_exhausted():
    fitted = make_search({"C": [1, 1, 1, 1, 2]}, n_iter=4).fit(X, y)
    assert sorted(p["C"] for p in fitted.cv_results_["params"]) == [1, 2]


def test_space_may_be_parsed_already():
    fitted = make_search(Space.parse(SPACE)).fit(X, y)
    assert fitted.best_score_ > 0.9


def test_whole_grid_does_not_import_torch():
    code = (
        "import sys; from sklearn.svm import SVC; from sktransfer import TransferSearchCV;"
        "TransferSearchCV(SVC(), {'C': [1, 2]}, archive=None).fit([[0.0], [1.0]] * 9, [0, 1] * 9);"
        "assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_search_on_text_adds_a_record(tmp_path):
    texts, labels = ["good nice", "bad awful", "nice one", "awful thing"] * 6, [0, 1, 0, 1] * 6
    pipe = make_pipeline(CountVectorizer(), MultinomialNB())
    space = {
        "multinomialnb__alpha": loguniform(1e-3, 10),
        "countvectorizer__ngram_range": [(1, 1), (1, 2)],
    }
    fitted = make_search(space, estimator=pipe, archive=tmp_path, n_iter=5, cv=3).fit(texts, labels)
    assert fitted.predict(["nice good"]).tolist() == [0]
    assert len(Archive(tmp_path)) == 1


@pytest.mark.parametrize(
    "kind", ["sparse", "frame", "kernel", "list", "multioutput", "unsupervised", "images"]
)
def test_search_takes_all_kinds_of_data_and_excludes_itself(kind, tmp_path):
    pd = pytest.importorskip("pandas")
    estimator, space, data, target = SVC(), SPACE, X, y
    if kind == "sparse":
        data = sparse.csr_matrix(X)
    elif kind == "frame":
        data, target = pd.DataFrame(X, columns=list("abcd")), pd.Series(y)
    elif kind == "kernel":
        estimator, space, data = SVC(kernel="precomputed"), {"C": loguniform(1e-2, 1e2)}, X @ X.T
    elif kind == "list":
        data, target = X.tolist(), y.tolist()
    elif kind == "multioutput":
        data, target = make_regression(60, 4, n_targets=2, random_state=0)
        estimator, space = Ridge(), {"alpha": loguniform(1e-3, 1e3)}
    elif kind == "unsupervised":
        from sklearn.neighbors import KernelDensity

        estimator, space, target = KernelDensity(), {"bandwidth": loguniform(1e-2, 10)}, None
    elif kind == "images":
        from sklearn.preprocessing import FunctionTransformer

        data = np.random.default_rng(0).random((60, 4, 4))
        target = np.arange(60) % 2
        flat = FunctionTransformer(lambda a: np.asarray(a).reshape(len(a), -1))
        estimator, space = (
            make_pipeline(flat, LogisticRegression()),
            {"logisticregression__C": loguniform(0.1, 1)},
        )
    search = make_search(space, estimator=estimator, archive=tmp_path, n_iter=5, cv=3)
    fitted = clone(search).fit(data, target)
    assert np.isfinite(fitted.best_score_)
    assert len(Archive(tmp_path)) == 1
    assert all(source["excluded"] for source in clone(search).fit(data, target).source_tasks_)


# -- scikit-learn 1.9: callbacks -------------------------------------------------------------------

needs_callbacks = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="callbacks need scikit-learn 1.9",
)


@needs_callbacks
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_bar_reaches_100_percent(n_jobs, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    fitted = (
        make_search(n_jobs=n_jobs).set_callbacks(ProgressBar(max_propagation_depth=0)).fit(X, y)
    )
    assert fitted.best_score_ > 0.9
    shown = capsys.readouterr().out
    assert "TransferSearchCV - search" in shown
    assert "100%" in shown


@needs_callbacks
@pytest.mark.parametrize(("batch_size", "name"), [(1, "candidate"), (3, "batch")])
def test_progress_bar_shows_candidates_under_the_search(batch_size, name):
    names = []

    class Names:
        max_propagation_depth = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            names.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            pass

    make_search(n_iter=4, batch_size=batch_size).set_callbacks(Names()).fit(X, y)
    assert names.count("search") == 1
    assert names.count(name) == -(-4 // batch_size)


@needs_callbacks
def test_scoring_monitor_logs_all_fits():
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="accuracy")
    estimator = LogisticRegression(max_iter=20).set_callbacks(monitor)
    space = {"C": loguniform(1e-2, 1e2)}
    make_search(space, estimator=estimator, n_iter=4, cv=2).fit(X, y)
    log = monitor.get_logs()
    assert log.estimator_name == "TransferSearchCV"
    assert len({row["task_id_path"][:4] for row in log.data}) >= 4 * 2


@needs_callbacks
def test_callback_can_stop_the_search():
    class Stop:
        n_batches = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            if context.task_name == "candidate":
                self.n_batches += 1
            return context.task_name == "candidate" and self.n_batches >= 3

    fitted = make_search(n_iter=20).set_callbacks(Stop()).fit(X, y)
    assert len(mean_scores(fitted)) == 3
    assert fitted.best_score_ == mean_scores(fitted).max()


@needs_callbacks
def test_callback_sees_the_scores_so_far():
    class Watch:
        def __init__(self):
            self.seen = []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            if context.task_name == "candidate":
                scores = estimator.cv_results_["mean_test_score"]
                self.seen.append((scores[-1], estimator.best_score_, estimator.best_params_))

    watch = Watch()
    fitted = make_search(n_iter=5).set_callbacks(watch).fit(X, y)
    scores = mean_scores(fitted)
    assert [last for last, _, _ in watch.seen] == scores.tolist()
    assert [best for _, best, _ in watch.seen] == np.maximum.accumulate(scores).tolist()
    assert watch.seen[-1][2] == fitted.best_params_


def test_failed_search_holds_no_results():
    search = make_search({"C": [1.0, -1.0], "kernel": ["rbf"]}, timeout=1e6, error_score="raise")
    with pytest.raises(ValueError, match="C"):
        search.fit(X, y)
    assert not hasattr(search, "cv_results_") and not hasattr(search, "best_score_")


def test_switched_off_archive_is_neither_read_nor_written(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKTRANSFER_ARCHIVE", "none")
    for archive in ("auto", Archive(keep="sample")):
        fitted = make_search(archive=archive, n_iter=3).fit(X, y)
        assert fitted.task_id_ is None and fitted.source_tasks_ == []
        assert fitted.suggest(X, y)
    assert list(tmp_path.iterdir()) == []


def test_search_on_regression_and_tiny_imbalanced_data():
    Xr, yr = make_regression(30, 3, random_state=0)
    assert (
        make_search({"alpha": loguniform(1e-3, 1e3)}, estimator=Ridge(), cv=3)
        .fit(Xr, yr)
        .best_score_
        > 0.5
    )
    Xc, yc = make_classification(12, 4, weights=[0.7], random_state=0)
    assert np.isfinite(make_search(cv=2, n_iter=4).fit(Xc, yc).best_score_)


def test_verbose_prints_which_past_searches_are_used(tmp_path, capsys):
    def printed(**options):
        search = TransferSearchCV(
            SVC(), {"C": loguniform(0.1, 10)}, n_iter=2, cv=2, verbose=1, **options
        )
        search.fit(*make_classification(40, random_state=len(list(tmp_path.rglob("*.joblib")))))
        return capsys.readouterr().out

    assert "No past search of this estimator and these parameters" in printed(archive=tmp_path)
    used = "Learning from 1 past search and the pretrained model, most from"
    assert used in printed(archive=tmp_path)
    assert "past search" not in printed(archive=tmp_path, surrogate="gp")


@pytest.mark.parametrize("surrogate", ["auto", "task-prior"])
def test_search_works_if_numpy_raises_floating_point_errors(surrogate, monkeypatch):
    monkeypatch.delenv("SKTRANSFER_STARTER")
    space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}
    params = {"n_iter": 6, "cv": 2, "archive": Archive(starter=True), "surrogate": surrogate}
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        search = make_search(space, estimator=SVC(), **params)
        origins = search.fit(*make_classification(80, random_state=0)).cv_results_["origin"]
    assert all(origin.startswith(("model", "task")) for origin in origins)


def test_starter_archive_is_read_where_nothing_is_predicted(monkeypatch):
    monkeypatch.delenv("SKTRANSFER_STARTER")
    space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}
    counts = {}
    for surrogate in ("auto", "task-prior"):
        archive = Archive(starter=True)
        search = make_search(
            space, estimator=SVC(), n_iter=1, cv=2, archive=archive, surrogate=surrogate
        )
        search.fit(*make_classification(80, random_state=0))
        counts[surrogate] = len(search.source_tasks_)
    assert counts["auto"] == 0 < counts["task-prior"]


def test_unlike_data_are_reported(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(PretrainedModel, "strangeness", lambda *_: 2.0)
    space = {"C": loguniform(1e-3, 1e3)}
    for seed in range(2):  # without and with a past search
        search = make_search(space, estimator=SVC(), n_iter=1, cv=2, archive=tmp_path, verbose=1)
        search.fit(*make_classification(80, random_state=seed))
        assert "The data are unlike those of the pretrained model." in capsys.readouterr().out


def test_relative_archive_path_survives_change_of_directory(tmp_path, monkeypatch):
    class ChangesDirectory(Picky):
        def fit(self, X, y):
            os.chdir(tmp_path / "elsewhere")
            return super().fit(X, y)

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    make_search(
        {"a": uniform(0, 0.5)}, estimator=ChangesDirectory(), n_iter=3, cv=2, archive="past"
    ).fit(X, y)
    assert len(Archive(tmp_path / "past")) == 1
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_scorer_may_name_its_metrics_by_numbers(tmp_path):
    def per_class(estimator, X, y):
        return {1: 0.5, 2: estimator.a}

    search = make_search(
        {"a": uniform(0, 0.5)}, estimator=Picky(), scoring=per_class, refit=False, n_iter=3, cv=2
    )
    fitted = search.set_params(archive=tmp_path).fit(X, y)
    assert "mean_test_2" in fitted.cv_results_
    assert len(Archive(tmp_path)) == 1


def test_infinite_scores_give_one_warning():
    def infinite(estimator, X, y):
        return -np.inf if estimator.C > 1 else estimator.score(X, y)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_search({"C": loguniform(1e-3, 1e3)}, n_iter=12, scoring=infinite).fit(X, y)
    texts = [str(warning.message) for warning in caught]
    assert sum("non-finite" in text for text in texts) == 1
    assert sum("invalid value" in text for text in texts) <= 1


def test_scorer_that_returns_no_score_raises_error():
    with pytest.raises(ValueError, match="returned an empty dict"):
        make_search(scoring=lambda estimator, X, y: {}, refit=False).fit(X, y)
