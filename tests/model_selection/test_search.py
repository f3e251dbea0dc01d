"""`TransferSearchCV` as a user meets it."""

import os
import pickle
import subprocess
import sys
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

from sktransfer import Archive, Space, TransferSearchCV
from sktransfer.surrogates import GP, TaskPrior, WarmStart

X, y = load_iris(return_X_y=True)
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}


def search(space=SPACE, *, estimator=None, n_iter=7, archive=None, random_state=0, **params):
    return TransferSearchCV(
        SVC() if estimator is None else estimator,
        space,
        n_iter=n_iter,
        archive=archive,
        random_state=random_state,
        **params,
    )


def scores(fitted):
    return fitted.cv_results_["mean_test_score"]


class Picky(ClassifierMixin, BaseEstimator):
    """Fails where `a` is above a half; what it scores otherwise depends on `a`."""

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


# -- a drop-in -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", [None, ["accuracy", "f1_macro"]])
@pytest.mark.parametrize(
    "grid",
    [
        {"C": [0.1, 1, 10], "kernel": ["rbf", "linear"]},
        [
            {"kernel": ["rbf"], "gamma": np.logspace(-2, 0, 3)},
            {"kernel": ["poly"], "degree": [2, 3]},
        ],
    ],
)
def test_the_whole_grid_is_what_grid_search_does(grid, scoring):
    options = dict(
        cv=3, scoring=scoring, refit="accuracy" if scoring else True, return_train_score=True
    )
    ours = TransferSearchCV(SVC(), grid, **options).fit(X, y)
    theirs = GridSearchCV(SVC(), grid, **options).fit(X, y)
    assert list(ours.cv_results_["params"]) == list(theirs.cv_results_["params"])
    for key, values in theirs.cv_results_.items():
        if "time" not in key and key != "params":
            np.testing.assert_array_equal(ours.cv_results_[key], values, err_msg=key)
    assert set(ours.cv_results_) - set(theirs.cv_results_) == {
        "origin",
        "predicted_mean",
        "predicted_std",
    }
    assert set(ours.cv_results_["origin"]) == {"grid"}
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_fitted_attributes_are_those_of_grid_search():
    ours = search().fit(X, y)
    theirs = GridSearchCV(SVC(), {"C": [1]}).fit(X, y)
    assert {name for name in vars(theirs) if name.endswith("_")} <= {
        n for n in vars(ours) if n.endswith("_")
    }
    assert ours.score(X, y) > 0.9
    assert ours.n_features_in_ == 4
    assert list(ours.classes_) == [0, 1, 2]


def test_values_in_the_results_are_plain():
    space = {"C": loguniform(1e-2, 1e2), "degree": randint(1, 4), "kernel": ["rbf", "poly"]}
    for params in search(space).fit(X, y).cv_results_["params"]:
        assert [type(value) for value in params.values()] == [float, int, str]


def test_a_wrapped_classifier_is_a_classifier():
    assert is_classifier(search())
    assert is_regressor(search({"alpha": [1, 2]}, estimator=Ridge()))


def test_inside_a_pipeline_and_around_one():
    inner = make_pipeline(StandardScaler(), search())
    assert inner.fit(X, y).score(X, y) > 0.9
    outer = search(
        {"svc__C": loguniform(1e-2, 1e2)}, estimator=make_pipeline(StandardScaler(), SVC())
    )
    assert outer.fit(X, y).score(X, y) > 0.9


def test_conditional_spaces_and_estimators_as_values():
    pipe = make_pipeline(StandardScaler(), SVC())
    space = [
        {"svc": [SVC()], "svc__C": loguniform(1e-2, 1e2)},
        {
            "svc": [DecisionTreeClassifier(random_state=0)],
            "svc__max_depth": randint(1, 6),
            "standardscaler": ["passthrough"],
        },
    ]
    fitted = search(space, estimator=pipe, n_iter=12).fit(X, y)
    kinds = {type(params["svc"]) for params in fitted.cv_results_["params"]}
    assert kinds == {SVC, DecisionTreeClassifier}
    assert all(("svc__C" in p) == isinstance(p["svc"], SVC) for p in fitted.cv_results_["params"])


def test_clone_pickle_repr():
    fitted = search(surrogate=WarmStart(n_tasks=2)).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert not hasattr(clone(fitted), "cv_results_")
    assert "TransferSearchCV" in repr(fitted)
    assert "SVC" in fitted._repr_html_()
    fitted.set_params(surrogate__n_tasks=5, estimator__C=3)
    assert fitted.surrogate.n_tasks == 5


# -- the search itself -----------------------------------------------------------------------------


@pytest.mark.parametrize("surrogate", ["auto", "gp", "warm-start", "random", GP(kernel="se")])
def test_the_same_seed_gives_the_same_search(surrogate):
    runs = [search(surrogate=surrogate, random_state=seed).fit(X, y) for seed in (1, 1, 2)]
    assert runs[0].cv_results_["params"] == runs[1].cv_results_["params"]
    assert runs[0].cv_results_["params"] != runs[2].cv_results_["params"]


def test_the_global_random_state_is_left_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    search({"a": uniform(0, 0.5)}, estimator=Picky(), cv=3).fit(X, y)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_workers_do_not_change_the_result():
    one, two = (search(n_jobs=n, batch_size=2).fit(X, y) for n in (1, 2))
    assert one.cv_results_["params"] == two.cv_results_["params"]
    np.testing.assert_array_equal(scores(one), scores(two))


@pytest.mark.parametrize(("n_iter", "batch_size"), [(7, 3), (5, 10), (4, 1)])
def test_the_budget_is_kept(n_iter, batch_size):
    assert len(scores(search(n_iter=n_iter, batch_size=batch_size).fit(X, y))) == n_iter


def test_folds_are_drawn_once():
    """A splitter without a seed: every candidate meets the same folds all the same."""
    space = {"a": uniform(0, 1e-9)}  # practically one configuration

    class Size(Picky):
        def score(self, X, y):
            return float(X.sum())

    fitted = search(space, estimator=Size(), cv=ShuffleSplit(2, test_size=0.3)).fit(X, y)
    for split in ("split0_test_score", "split1_test_score"):
        assert len(set(fitted.cv_results_[split])) == 1


def test_cv_may_be_a_generator():
    fitted = search(cv=KFold(3, shuffle=True, random_state=0).split(X, y)).fit(X, y)
    assert fitted.n_splits_ == 3
    assert np.isfinite(scores(fitted)).all()


def test_groups_and_sample_weight():
    groups = np.arange(len(X)) % 5
    fitted = search(cv=GroupKFold(5)).fit(X, y, groups=groups, sample_weight=np.ones(len(X)))
    assert fitted.n_splits_ == 5


def test_metadata_routing():
    weights = np.random.default_rng(0).random(len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = SVC().set_fit_request(sample_weight=True)
        scorer = make_scorer(
            lambda y_true, y_pred, sample_weight=None: float(
                np.average(y_true == y_pred, weights=sample_weight)
            )
        )
        scorer.set_score_request(sample_weight=True)
        fitted = search(estimator=estimator, scoring=scorer).fit(X, y, sample_weight=weights)
        assert fitted.best_score_ > 0.9


def test_timeout():
    class Slow(Picky):
        def fit(self, X, y):
            import time

            time.sleep(0.05)
            return super().fit(X, y)

    space = {"a": uniform(0, 0.4)}
    fitted = search(space, estimator=Slow(), n_iter=500, timeout=0.6, cv=2).fit(X, y)
    assert 1 <= len(scores(fitted)) < 30
    grid = search(
        {"a": list(np.linspace(0, 0.4, 100))}, estimator=Slow(), n_iter=500, timeout=0.4, cv=2
    ).fit(X, y)
    assert 1 <= len(scores(grid)) < 30
    assert set(grid.cv_results_["origin"]) == {"grid"}


@pytest.mark.parametrize("refit", ["neg", lambda results: 2, False])
def test_several_metrics(refit):
    metrics = {"neg": "neg_log_loss", "acc": "accuracy"}
    fitted = search(
        estimator=SVC(probability=True), scoring=metrics, refit=refit, n_iter=5, cv=2
    ).fit(X, y)
    assert {"mean_test_neg", "mean_test_acc"} <= set(fitted.cv_results_)
    if refit == "neg":
        assert fitted.best_score_ == fitted.cv_results_["mean_test_neg"].max()
    elif callable(refit):
        assert fitted.best_index_ == 2
    else:
        assert not hasattr(fitted, "best_estimator_")


def test_origin_and_predictions():
    fitted = search(n_iter=9, surrogate="gp").fit(X, y)
    origin = list(fitted.cv_results_["origin"])
    assert origin == ["space-filling"] * 4 + ["model"] * 5
    predicted = fitted.cv_results_["predicted_mean"]
    assert np.isnan(predicted[:4]).all()
    assert np.isfinite(predicted[4:]).all()
    assert (fitted.cv_results_["predicted_std"][4:] > 0).all()


def test_a_large_grid_is_searched_without_repetition():
    grid = {"C": list(np.logspace(-3, 3, 20)), "gamma": list(np.logspace(-3, 3, 20))}
    fitted = search(grid, n_iter=30).fit(X, y)
    assert len({tuple(p.values()) for p in fitted.cv_results_["params"]}) == 30


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 3])
def test_failed_candidates_are_recorded_and_the_search_goes_on(batch_size):
    space = {"a": uniform(0, 1)}
    with pytest.warns(FitFailedWarning):
        fitted = search(
            space, estimator=Picky(), n_iter=15, cv=2, batch_size=batch_size, surrogate="gp"
        ).fit(X, y)
    values, params = scores(fitted), fitted.cv_results_["params"]
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


def test_the_last_candidates_may_fail():
    class FailsLater(Picky):
        calls = 0

        def fit(self, X, y):
            type(self).calls += 1
            if type(self).calls > 6 and type(self).calls <= 10:
                raise RuntimeError("tired")
            return super().fit(X, y)

    def fit(**params):
        FailsLater.calls, made = 0, {"estimator": FailsLater(), "n_iter": 5, "cv": 2} | params
        with pytest.warns(FitFailedWarning, match="4 fits failed out of a total of 10"):
            return search({"a": uniform(0, 0.5)}, **made).fit(X, y)

    assert np.isnan(scores(fit())).tolist() == [False] * 3 + [True] * 2
    seen = []
    fit(refit=lambda results: seen.append(len(results["params"])) or 0)
    assert seen == [5]  # as in GridSearchCV, all of them
    generous = fit(refit=False, error_score=5.0)
    assert generous.best_index_ == 3 and generous.best_score_ == 5.0


def test_one_warning_of_a_fold_that_always_fails():
    class NeedsFirst(Picky):
        def fit(self, X_, y_):
            if not (X_[0] == X[0]).all():
                raise RuntimeError(f"not without the first, and a={self.a < 0.25}")
            return super().fit(X_, y_)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = search(
            {"a": uniform(0, 0.5)}, estimator=NeedsFirst(), n_iter=6, cv=KFold(3), refit=False
        )
        made.fit(X, y)
    [warning] = [str(w.message) for w in caught if issubclass(w.category, FitFailedWarning)]
    assert "6 fits failed out of a total of 18" in warning
    assert "a=True" in warning and "a=False" in warning


def test_the_error_names_every_reason():
    class Fussy(Picky):
        def fit(self, X, y):
            raise RuntimeError("too small" if self.a < 0.5 else "too large")

    with pytest.raises(ValueError, match="All the 16 fits failed") as caught:
        search({"a": uniform(0, 1)}, estimator=Fussy(), n_iter=8, cv=2).fit(X, y)
    assert "too small" in str(caught.value) and "too large" in str(caught.value)


def test_all_fits_failing_is_the_error_of_grid_search():
    def message(of):
        with pytest.raises(ValueError, match="fits failed") as caught:
            of.fit(X, y)
        return str(caught.value).splitlines()[:4]

    space = {"a": uniform(0.6, 0.4)}
    ours = message(search(space, estimator=Picky(), n_iter=3, cv=2))
    theirs = message(GridSearchCV(Picky(), {"a": [0.6, 0.7, 0.8]}, cv=2))
    assert ours == theirs
    assert message(search({"a": [0.6, 0.7, 0.8]}, estimator=Picky(), cv=2)) == theirs


def test_error_score():
    space = {"a": uniform(0, 1)}
    with pytest.raises(RuntimeError, match="too much"):
        search(space, estimator=Picky(), error_score="raise", n_iter=10, cv=2).fit(X, y)
    with pytest.warns(FitFailedWarning):
        fitted = search(space, estimator=Picky(), error_score=-7.0, n_iter=10, cv=2).fit(X, y)
    assert scores(fitted).min() == -7.0


@pytest.mark.parametrize("batch_size", [1, 4])
def test_failures_are_recorded_as_such_whatever_the_error_score(tmp_path, batch_size):
    made = search(
        {"a": uniform(0, 1)},
        estimator=Picky(),
        error_score=0.0,
        refit=False,
        n_iter=12,
        cv=2,
        archive=tmp_path,
    )
    with pytest.warns(FitFailedWarning):
        fitted = made.set_params(batch_size=batch_size).fit(X, y)
    [task] = Archive(tmp_path)
    failed = [trial.status == "failed" for trial in task.trials]
    assert failed == [params["a"] > 0.5 for params in fitted.cv_results_["params"]]
    assert 0 < sum(failed) < 12
    assert task.best.params["a"] <= 0.5


def test_one_warning_for_scores_that_are_not_finite():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search({"a": uniform(0, 1)}, estimator=Picky(), n_iter=15, cv=2).fit(X, y)
    assert sum("non-finite" in str(w.message) for w in caught) == 1
    assert sum(issubclass(w.category, FitFailedWarning) for w in caught) == 1


def test_scores_that_are_not_finite_are_warned_of_without_a_failed_fit():
    def sometimes_nan(estimator, X, y):
        return np.nan if estimator.a > 0.5 else estimator.a

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = search(
            {"a": uniform(0, 1)}, estimator=Picky(fails_above=2), scoring=sometimes_nan, cv=2
        )
        fitted = made.fit(X, y)
    assert np.isnan(scores(fitted)).any()
    assert sum("non-finite" in str(w.message) for w in caught) == 1


@pytest.mark.parametrize(
    "metrics", [["accuracy", "f1_macro"], lambda e, X, y: {"accuracy": 0.5, "other": e.a}]
)
def test_failures_with_several_metrics(metrics, tmp_path):
    with pytest.warns(FitFailedWarning):
        fitted = search(
            {"a": [*np.linspace(0.0, 0.4, 10), 0.9]},
            estimator=Picky(),
            scoring=metrics,
            refit="accuracy",
            n_iter=11,  # of which the last may be the one that fails
            cv=2,
            return_train_score=True,
            archive=tmp_path,
        ).fit(X, y)
    bad = np.array([p["a"] > 0.5 for p in fitted.cv_results_["params"]])
    for key in ("mean_test_accuracy", "mean_train_accuracy", "split1_test_accuracy"):
        np.testing.assert_array_equal(np.isnan(fitted.cv_results_[key]), bad)
    assert bad.any() and Archive(tmp_path)[fitted.task_id_].metrics[0] == "accuracy"


# -- bad input -------------------------------------------------------------------------------------


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
)
def test_bad_parameters_are_named_at_fit(params, error, parts):
    made = TransferSearchCV(**{"estimator": SVC(), "space": SPACE, "archive": None, **params})
    with pytest.raises(error) as caught:
        made.fit(X, y)
    for part in parts:
        assert part in str(caught.value)


def test_a_distribution_that_can_only_be_drawn_from():
    class OnlyRvs:
        def rvs(self, random_state=None):
            return float(random_state.choice([0.5, 2.0]))

    fitted = search({"C": OnlyRvs()}).fit(X, y)
    assert sorted(params["C"] for params in fitted.cv_results_["params"]) == [0.5, 2.0]


def test_an_archive_path_that_is_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("not an archive")
    with pytest.raises(OSError, match="file"):
        search(archive=path).fit(X, y)
    assert path.read_text() == "not an archive"


@pytest.mark.parametrize("path", ["file/below", "~nobody-of-this-name/archive"])
def test_paths_that_cannot_be_an_archive(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("not an archive")
    with pytest.raises(NotADirectoryError, match="archive="):
        search(archive=path).fit(X, y)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_keep_is_checked_at_fit(tmp_path):
    with pytest.raises(ValueError, match="'rows'"):
        search(archive=Archive(tmp_path, keep="rows")).fit(X, y)


def test_an_archive_out_of_reach(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError("no")

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", refuse)
        with pytest.warns(UserWarning, match="out of reach"):
            fitted = search(archive=tmp_path).fit(X, y)
    assert fitted.best_score_ > 0.9


def test_the_default_archive_without_a_home(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SKTRANSFER_ARCHIVE")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", homeless)
    with pytest.warns(UserWarning, match="out of reach"):
        fitted = search(archive="auto").fit(X, y)
    assert fitted.task_id_ is None
    assert fitted.best_score_ > 0.9


def test_a_record_of_a_newer_format(tmp_path):
    search(archive=tmp_path, n_iter=3).fit(X, y)
    [file] = tmp_path.glob("tasks/*.joblib")
    joblib.dump({**joblib.load(file), "format": 99}, file)
    before = file.read_bytes()
    with pytest.warns(UserWarning, match="99"):
        fitted = search(archive=tmp_path).fit(*load_wine(return_X_y=True))
    assert fitted.source_tasks_ == []
    assert file.read_bytes() == before


def test_an_archive_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(UserWarning, match="cannot be added"):
        fitted = search(archive=tmp_path / "archive").fit(X, y)
    assert fitted.task_id_ is None
    assert fitted.best_score_ > 0.9


# -- the archive -----------------------------------------------------------------------------------


def test_each_fit_adds_a_record_and_the_next_starts_from_it(tmp_path):
    archive = Archive(tmp_path)
    first = search(archive=archive, n_iter=8).fit(X, y)
    assert len(archive) == 1
    [task] = archive
    assert task.id == first.task_id_
    assert [t.score for t in task.trials] == scores(first).tolist()
    assert task.trials[0].params == first.cv_results_["params"][0]

    wine = load_wine(return_X_y=True)
    second = search(archive=str(tmp_path), surrogate="warm-start").fit(*wine)
    assert second.cv_results_["params"][0] == pytest.approx(first.best_params_)
    assert second.cv_results_["origin"][0] == f"task {first.task_id_}"
    [source] = second.source_tasks_
    assert source["id"] == first.task_id_
    assert source["excluded"] is None
    assert source["n_used"] >= 1
    assert 0 <= source["similarity"] <= 1
    assert len(archive) == 2


def test_the_default_archive(own_archive):
    TransferSearchCV(SVC(), SPACE, n_iter=3).fit(X, y)
    assert len(list(own_archive.glob("tasks/*.joblib"))) == 1


def test_no_archive_neither_reads_nor_writes(own_archive):
    search(archive=own_archive).fit(*load_wine(return_X_y=True))
    fitted = search(archive=None).fit(X, y)
    assert fitted.source_tasks_ == []
    assert fitted.task_id_ is None
    assert len(Archive(own_archive)) == 1


def test_fit_twice_gives_the_same_result(tmp_path):
    made = search(archive=tmp_path)
    first = clone(made).fit(X, y)
    second = clone(made).fit(X, y)
    assert first.cv_results_["params"] == second.cv_results_["params"]
    assert [s["excluded"] is not None for s in second.source_tasks_] == [True]
    assert "rows" in second.source_tasks_[0]["excluded"]


def test_another_estimator_has_no_say(tmp_path):
    search(
        {"max_depth": randint(1, 5)}, estimator=DecisionTreeClassifier(), archive=tmp_path, n_iter=4
    ).fit(X, y)
    fitted = search(archive=tmp_path).fit(*load_wine(return_X_y=True))
    assert "another estimator" in fitted.source_tasks_[0]["excluded"]


def test_a_pipeline_learns_from_the_bare_estimator(tmp_path):
    bare = search(archive=tmp_path).fit(X, y)
    space = {
        "clf__C": loguniform(1e-2, 1e2),
        "clf__gamma": loguniform(1e-3, 1e1),
        "clf__shrinking": [True, False],
    }
    pipe = sklearn.pipeline.Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    made = search(space, estimator=pipe, archive=tmp_path, surrogate="warm-start")
    fitted = made.fit(*load_wine(return_X_y=True))
    first = fitted.cv_results_["params"][0]
    assert first["clf__C"] == pytest.approx(bare.best_params_["C"])
    assert first["clf__shrinking"] is True


NO_ROW_TWICE = make_classification(150, 4, random_state=0)


def watched_cross_validation(archive, outer, scaled=False):
    """Scores of the outer folds, and the sources that each fold's search looked at."""
    seen = []

    class Watched(TransferSearchCV):
        def fit(self, X, y=None, **params):
            super().fit(X, y, **params)
            seen.append(self.source_tasks_)
            return self

    watched = Watched(
        SVC(), SPACE, n_iter=5, archive=archive, surrogate="warm-start", random_state=0
    )
    model = make_pipeline(StandardScaler(), watched) if scaled else watched
    return cross_val_score(
        model, *NO_ROW_TWICE, cv=KFold(outer, shuffle=True, random_state=0)
    ), seen


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("outer", [2, 3])
def test_no_fold_learns_from_another(tmp_path, outer, scaled):
    """Also with two folds, whose searches share no row: each is judged on the rows of the other. Also
    behind a scaler, which makes other rows of the same ones in each fold.
    """
    alone, _ = watched_cross_validation(None, outer, scaled)
    together, seen = watched_cross_validation(tmp_path, outer, scaled)
    np.testing.assert_array_equal(together, alone)
    assert [len(sources) for sources in seen] == list(range(outer))
    assert all(source["excluded"] for sources in seen for source in sources)
    assert len(Archive(tmp_path)) == outer


def test_without_the_guard_folds_would_learn_from_each_other(tmp_path, monkeypatch):
    """The control: the test above sees what it is there to see."""
    select = Archive.select
    monkeypatch.setattr(
        Archive,
        "select",
        lambda self, space, profile: select(self, space, profile, overlap="allow"),
    )
    _, seen = watched_cross_validation(tmp_path, 3)
    assert [sum(source["n_used"] for source in sources) > 0 for sources in seen] == [
        False,
        True,
        True,
    ]


def test_without_the_view_of_the_outer_folds_two_halves_would_learn_from_each_other(
    tmp_path, monkeypatch
):
    """The control for two folds."""
    monkeypatch.setattr("sktransfer.model_selection._history.enclosing_data", list)
    _, seen = watched_cross_validation(tmp_path, 2)
    assert seen[1][0]["n_used"] > 0


def test_parallel_folds_are_guarded_too(tmp_path):
    made = search(n_iter=4, archive=tmp_path)
    cross_val_score(made, X, y, cv=2)
    guarded = cross_val_score(made, X, y, cv=2, n_jobs=2)
    np.testing.assert_array_equal(guarded, cross_val_score(search(n_iter=4), X, y, cv=2))


def test_calibration_and_a_search_around_are_guarded_too(tmp_path):
    data = NO_ROW_TWICE
    inner = search(n_iter=4, archive=tmp_path / "calibrated")
    for fitted in CalibratedClassifierCV(inner, cv=KFold(2)).fit(*data).calibrated_classifiers_:
        assert all(source["n_used"] == 0 for source in fitted.estimator.source_tasks_)
    inner = search(n_iter=4, archive=tmp_path / "searched")
    outer = GridSearchCV(
        make_pipeline(StandardScaler(), inner), {"standardscaler__with_std": [True]}, cv=3
    )
    outer.fit(*data)
    assert len(Archive(tmp_path / "searched")) == 4
    assert all(source["n_used"] == 0 for source in outer.best_estimator_[-1].source_tasks_)


def test_data_that_cannot_be_compared_learn_from_nobody(tmp_path):
    """Objects that nothing tells apart: the same data twice must give the same result all the same."""

    class Opaque:
        def __init__(self, value):
            self.value = value

    class Reader(Picky):
        def fit(self, X, y):
            return super().fit(np.array([item.value for item in X]), y)

    data = [Opaque(value) for value in range(30)]
    made = search({"a": uniform(0, 0.5)}, estimator=Reader(), archive=tmp_path, cv=2)
    first, second = (clone(made).fit(data, [0, 1] * 15) for _ in range(2))
    assert first.cv_results_["params"] == second.cv_results_["params"]
    assert second.source_tasks_[0]["excluded"]


def test_an_interrupted_search_keeps_its_trials(tmp_path):
    class Interrupted(Picky):
        calls = 0

        def fit(self, X, y):
            type(self).calls += 1
            if type(self).calls > 8:
                raise KeyboardInterrupt
            return super().fit(X, y)

    with pytest.raises(KeyboardInterrupt):
        search(
            {"a": uniform(0, 0.5)}, estimator=Interrupted(), archive=tmp_path, cv=2, n_iter=9
        ).fit(X, y)
    [task] = Archive(tmp_path)
    assert not task.complete
    assert len(task.trials) == 4


def test_a_broken_archive_profile_or_surrogate_costs_a_warning(tmp_path, monkeypatch):
    from sktransfer.model_selection import _history

    def broken(*args, **kwargs):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(Archive, "select", broken)
        with pytest.warns(UserWarning, match="cannot be read"):
            assert search(archive=tmp_path / "a").fit(X, y).best_score_ > 0.9
    with monkeypatch.context() as patch:
        patch.setattr(_history, "profile", broken)
        with pytest.warns(UserWarning, match="cannot be profiled"):
            assert search(archive=tmp_path / "b").fit(X, y).best_score_ > 0.9
    search(archive=tmp_path / "c").fit(*load_wine(return_X_y=True))
    with monkeypatch.context() as patch:
        patch.setattr(TaskPrior, "similarity", broken)
        with pytest.warns(UserWarning, match="similar"):
            assert search(archive=tmp_path / "c").fit(X, y).best_score_ > 0.9
    with monkeypatch.context() as patch:
        patch.setattr(GP, "posterior", broken)
        with pytest.warns(UserWarning, match="at random"):
            fitted = search(surrogate="gp").fit(X, y)
    assert len(scores(fitted)) == 7


def test_damaged_records_and_journals_cost_a_warning_and_no_search(tmp_path):
    """Cut off and changed at random places, also with `resume`, which reads everything."""
    wine, rng = load_wine(return_X_y=True), np.random.default_rng(0)
    search(archive=tmp_path, n_iter=4, cv=2, surrogate="warm-start").fit(*wine)
    archive = Archive(tmp_path)
    [task] = archive
    journal = archive.journals.start(replace(task, id="killed", trials=()))
    for trial, folds in zip(task.trials, task.resume["folds"], strict=True):
        journal.add(trial, folds)
    journal.sync()
    record = archive.path / "tasks" / f"{task.id}.joblib"
    for file in (record, journal.path):
        sound = file.read_bytes()
        for n in range(12):
            damaged = bytearray(sound[: int(rng.integers(1, len(sound)))] if n % 2 else sound)
            damaged[int(rng.integers(len(damaged)))] ^= 0xFF
            file.write_bytes(damaged)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = search(archive=Archive(tmp_path, readonly=True), n_iter=2, cv=2, resume=True)
                made.set_params(surrogate="warm-start", refit=False).fit(X, y)
                read = {
                    trial.score for each in Archive(tmp_path).select().used for trial in each.trials
                }
            assert np.isfinite(scores(made)).all()
            assert read <= {trial.score for trial in task.trials}
        file.write_bytes(sound)


# -- all kinds of data -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scoring", "refit", "names"),
    [
        (None, True, ("score",)),
        ("f1_macro", True, ("f1_macro",)),
        (["accuracy", "f1_macro"], "f1_macro", ("f1_macro", "accuracy")),
        (["accuracy", "f1_macro"], False, ("accuracy", "f1_macro")),
        (["f1_macro"], "f1_macro", ("f1_macro",)),
    ],
)
def test_the_record_names_its_metrics(tmp_path, scoring, refit, names):
    search(archive=tmp_path, scoring=scoring, refit=refit, n_iter=3, cv=2).fit(X, y)
    [task] = Archive(tmp_path)
    assert task.metrics == names


def test_a_space_that_is_used_up_ends_the_search():
    fitted = search({"C": [1, 1, 1, 1, 2]}, n_iter=4).fit(X, y)
    assert sorted(p["C"] for p in fitted.cv_results_["params"]) == [1, 2]


def test_a_parsed_space():
    fitted = search(Space.parse(SPACE)).fit(X, y)
    assert fitted.best_score_ > 0.9


def test_a_whole_grid_needs_no_torch():
    code = (
        "import sys; from sklearn.svm import SVC; from sktransfer import TransferSearchCV;"
        "TransferSearchCV(SVC(), {'C': [1, 2]}, archive=None).fit([[0.0], [1.0]] * 9, [0, 1] * 9);"
        "assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_text(tmp_path):
    texts, labels = ["good nice", "bad awful", "nice one", "awful thing"] * 6, [0, 1, 0, 1] * 6
    pipe = make_pipeline(CountVectorizer(), MultinomialNB())
    space = {
        "multinomialnb__alpha": loguniform(1e-3, 10),
        "countvectorizer__ngram_range": [(1, 1), (1, 2)],
    }
    fitted = search(space, estimator=pipe, archive=tmp_path, n_iter=5, cv=3).fit(texts, labels)
    assert fitted.predict(["nice good"]).tolist() == [0]
    assert len(Archive(tmp_path)) == 1


@pytest.mark.parametrize(
    "kind", ["sparse", "frame", "kernel", "list", "multioutput", "unsupervised", "images"]
)
def test_data_of_all_kinds(kind, tmp_path):
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
    made = search(space, estimator=estimator, archive=tmp_path, n_iter=5, cv=3)
    fitted = clone(made).fit(data, target)
    assert np.isfinite(fitted.best_score_)
    assert len(Archive(tmp_path)) == 1
    assert all(source["excluded"] for source in clone(made).fit(data, target).source_tasks_)


# -- scikit-learn 1.9: callbacks -------------------------------------------------------------------

callbacks = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="callbacks came with scikit-learn 1.9",
)


@callbacks
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_bar(n_jobs, capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    fitted = search(n_jobs=n_jobs).set_callbacks(ProgressBar(max_propagation_depth=0)).fit(X, y)
    assert fitted.best_score_ > 0.9
    shown = capsys.readouterr().out
    assert "TransferSearchCV - search" in shown
    assert "100%" in shown


@callbacks
def test_scoring_monitor():
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="accuracy")
    estimator = LogisticRegression(max_iter=20).set_callbacks(monitor)
    space = {"C": loguniform(1e-2, 1e2)}
    search(space, estimator=estimator, n_iter=4, cv=2).fit(X, y)
    log = monitor.get_logs()
    assert log.estimator_name == "TransferSearchCV"
    assert len({row["task_id_path"][:4] for row in log.data}) >= 4 * 2


@callbacks
def test_a_stop_signal_is_honoured():
    class Stop:
        ends = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            if context.task_name == "batch":
                self.ends += 1
            return context.task_name == "batch" and self.ends >= 3

    fitted = search(n_iter=20).set_callbacks(Stop()).fit(X, y)
    assert len(scores(fitted)) == 3
    assert fitted.best_score_ == scores(fitted).max()


def test_imbalanced_regression_and_tiny_data():
    Xr, yr = make_regression(30, 3, random_state=0)
    assert (
        search({"alpha": loguniform(1e-3, 1e3)}, estimator=Ridge(), cv=3).fit(Xr, yr).best_score_
        > 0.5
    )
    Xc, yc = make_classification(12, 4, weights=[0.7], random_state=0)
    assert np.isfinite(search(cv=2, n_iter=4).fit(Xc, yc).best_score_)


def test_verbose_says_what_the_search_rests_on(tmp_path, capsys):
    def said(**options):
        search = TransferSearchCV(
            SVC(), {"C": loguniform(0.1, 10)}, n_iter=2, cv=2, verbose=1, **options
        )
        search.fit(*make_classification(40, random_state=len(list(tmp_path.rglob("*.joblib")))))
        return capsys.readouterr().out

    assert "No past search of this estimator and these parameters" in said(archive=tmp_path)
    assert "Learning from 1 past searches, most from" in said(archive=tmp_path)
    assert "past search" not in said(archive=tmp_path, surrogate="gp")


def test_a_user_who_wants_underflows_raised(monkeypatch):
    monkeypatch.delenv("SKTRANSFER_STARTER")
    space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        made = search(space, estimator=SVC(), n_iter=6, cv=2, archive=Archive(starter=True))
        origins = made.fit(*make_classification(80, random_state=0)).cv_results_["origin"]
    assert all(origin.startswith(("model", "task")) for origin in origins)


def test_a_working_directory_that_changes(tmp_path, monkeypatch):
    class Wanderer(Picky):
        def fit(self, X, y):
            os.chdir(tmp_path / "elsewhere")
            return super().fit(X, y)

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    search({"a": uniform(0, 0.5)}, estimator=Wanderer(), n_iter=3, cv=2, archive="past").fit(X, y)
    assert len(Archive(tmp_path / "past")) == 1
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_scorer_whose_metrics_are_numbers(tmp_path):
    def per_class(estimator, X, y):
        return {1: 0.5, 2: estimator.a}

    made = search(
        {"a": uniform(0, 0.5)}, estimator=Picky(), scoring=per_class, refit=False, n_iter=3, cv=2
    )
    fitted = made.set_params(archive=tmp_path).fit(X, y)
    assert "mean_test_2" in fitted.cv_results_
    assert len(Archive(tmp_path)) == 1


def test_infinite_scores_are_told_of_once():
    def infinite(estimator, X, y):
        return -np.inf if estimator.C > 1 else estimator.score(X, y)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search({"C": loguniform(1e-3, 1e3)}, n_iter=12, scoring=infinite).fit(X, y)
    texts = [str(warning.message) for warning in caught]
    assert sum("non-finite" in text for text in texts) == 1
    assert sum("invalid value" in text for text in texts) <= 1


def test_a_scorer_without_a_score_is_told_so():
    with pytest.raises(ValueError, match="returned an empty dict"):
        search(scoring=lambda estimator, X, y: {}, refit=False).fit(X, y)
