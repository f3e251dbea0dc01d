"""`Evaluator` and `Candidate`: results of failed, known and new fits are those of GridSearchCV."""

import math
import warnings

import numpy as np
import pytest
from joblib import delayed, parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold

from sktransfer import Archive, TransferSearchCV
from sktransfer.model_selection import _evaluator
from sktransfer.model_selection._evaluator import FITS_PER_REPORT, MAX_GROWTH, Evaluator
from sktransfer.model_selection._history import find_history
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._recorder import Recorder
from sktransfer.model_selection._results import Candidate, rows_from_plain, rows_to_plain

X = np.random.default_rng(0).normal(size=(30, 3))
y = np.arange(30) % 2
CV = KFold(3)
ADDED_COLUMNS = {"origin", "predicted_mean", "predicted_std"}


class FailsAt(ClassifierMixin, BaseEstimator):
    """Fails for the values of `a` in `failing`, or for others in the first fold only."""

    n_fits, max_fits = 0, math.inf  # after `max_fits` fits, the search is interrupted

    def __init__(self, a=0, failing=(), failing_in_first_fold=()):
        self.a = a
        self.failing = failing
        self.failing_in_first_fold = failing_in_first_fold

    def fit(self, X_train, y_train):
        if FailsAt.n_fits >= FailsAt.max_fits:
            raise KeyboardInterrupt
        FailsAt.n_fits += 1
        is_first_fold = not (X_train[0] == X[0]).all()
        if self.a in self.failing or (is_first_fold and self.a in self.failing_in_first_fold):
            raise RuntimeError(f"a={self.a}")
        self.classes_ = np.unique(y_train)
        return self

    def predict(self, X):
        return np.resize(self.classes_, len(X))

    def score(self, X, y):
        return 20 - (self.a - 2.5) ** 2 + X[0, 0]


@pytest.fixture(autouse=True)
def reset_counter():
    FailsAt.n_fits, FailsAt.max_fits = 0, math.inf


def score_dict(estimator, X, y):
    """A scorer whose names are known only after a successful fit."""
    return {"own": estimator.score(X, y), "size": len(X)}


GRID = {"a": [0, 1, 2, 3, 4, 5]}
SCORINGS = {
    "default": {},
    "list": {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"},
    "list without refit": {"scoring": ["accuracy", "f1_macro"], "refit": False},
    "callable number": {"scoring": lambda estimator, X, y: estimator.score(X, y)},
    "callable dict": {"scoring": score_dict, "refit": "own"},
    "callable dict without refit": {"scoring": score_dict, "refit": False},
}
FAILURES = {
    "none": FailsAt(),
    "first": FailsAt(failing=(0,)),
    "first three": FailsAt(failing=(0, 1, 2)),
    "last": FailsAt(failing=(5,)),
    "all but one": FailsAt(failing=(0, 1, 2, 4, 5)),
    "one fold of first": FailsAt(failing_in_first_fold=(0,)),
    "first and some folds": FailsAt(failing=(0, 3), failing_in_first_fold=(1, 4)),
}


def fit(search):
    """The fitted search, and the summary of its FitFailedWarning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    texts = [str(w.message) for w in caught if issubclass(w.category, FitFailedWarning)]
    return search, [text.strip().splitlines()[:2] for text in texts]


def assert_results_equal(search, expected):
    """All columns and attributes but times are those of GridSearchCV, to the last bit."""
    assert set(search.cv_results_) - ADDED_COLUMNS == set(expected.cv_results_)
    for key, values in expected.cv_results_.items():
        if not key.endswith("_time"):
            np.testing.assert_array_equal(search.cv_results_[key], values, err_msg=key)
    for name in ("best_index_", "best_score_", "best_params_", "multimetric_", "n_splits_"):
        assert hasattr(search, name) == hasattr(expected, name), name
        assert getattr(search, name, None) == getattr(expected, name, None), name


@pytest.mark.parametrize("error_score", [np.nan, 0])
@pytest.mark.parametrize("failures", FAILURES)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_results_of_failing_grid_are_those_of_grid_search(scoring, failures, error_score):
    options = {"cv": CV, "error_score": error_score, "return_train_score": True}
    options |= SCORINGS[scoring]
    estimator = FAILURES[failures]
    expected, expected_warnings = fit(GridSearchCV(estimator, GRID, **options))
    for batches in ({}, {"timeout": 1e6, "batch_size": 1}, {"timeout": 1e6, "batch_size": 2}):
        search = TransferSearchCV(estimator, GRID, archive=None, **options, **batches)
        search, failure_warnings = fit(search)
        assert_results_equal(search, expected)
        assert failure_warnings == expected_warnings


@pytest.mark.parametrize("error_score", [np.nan, 0])
@pytest.mark.parametrize("scoring", SCORINGS)
def test_error_if_all_fits_fail_is_that_of_grid_search(scoring, error_score):
    estimator = FailsAt(failing=tuple(GRID["a"]))
    options = {"cv": CV, "error_score": error_score} | SCORINGS[scoring]
    with pytest.raises(ValueError, match="All the 18 fits failed") as expected:
        GridSearchCV(estimator, GRID, **options).fit(X, y)
    for batches in ({}, {"timeout": 1e6, "batch_size": 2}):
        with pytest.raises(ValueError, match="All the 18 fits failed") as caught:
            TransferSearchCV(estimator, GRID, archive=None, **options, **batches).fit(X, y)
        first_lines = [str(error.value).splitlines()[:5] for error in (caught, expected)]
        assert first_lines[0] == first_lines[1]


def test_error_score_raise_is_that_of_grid_search():
    estimator = FailsAt(failing=(3,))
    for search in (
        GridSearchCV(estimator, GRID, cv=CV, error_score="raise"),
        TransferSearchCV(estimator, GRID, cv=CV, error_score="raise", archive=None),
    ):
        with pytest.raises(RuntimeError, match="a=3"):
            search.fit(X, y)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_results_with_several_workers_are_those_of_grid_search(scoring):
    estimator, grid = FAILURES["first and some folds"], {"a": list(range(40))}
    options = {"cv": CV, "return_train_score": True} | SCORINGS[scoring]
    expected, expected_warnings = fit(GridSearchCV(estimator, grid, **options))
    with parallel_config(backend="threading"):
        search, failure_warnings = fit(
            TransferSearchCV(estimator, grid, n_iter=40, n_jobs=2, archive=None, **options)
        )
    assert_results_equal(search, expected)
    assert failure_warnings == expected_warnings


@pytest.mark.parametrize("error_score", [np.nan, 0])
@pytest.mark.parametrize("failures", ["none", "first", "all but one", "first and some folds"])
@pytest.mark.parametrize("scoring", SCORINGS)
def test_known_rows_are_not_evaluated_again(scoring, failures, error_score, tmp_path):
    """The first run is interrupted after four candidates. The resumed one evaluates the others."""
    estimator = FAILURES[failures]
    options = {"cv": CV, "error_score": error_score, "return_train_score": True}
    options |= SCORINGS[scoring]
    expected, expected_warnings = fit(GridSearchCV(estimator, GRID, **options))
    search = TransferSearchCV(estimator, GRID, archive=tmp_path, resume=True, **options)
    FailsAt.n_fits, FailsAt.max_fits = 0, 3 * 4
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    FailsAt.n_fits, FailsAt.max_fits = 0, math.inf
    resumed, failure_warnings = fit(search)
    assert FailsAt.n_fits == 3 * 2 + (options.get("refit", True) is not False)
    assert_results_equal(resumed, expected)
    assert failure_warnings == expected_warnings


# -- the evaluator itself --------------------------------------------------------------------------


class SerialParallel:
    """Does fits in the order given, as joblib's `Parallel` does, and notes how many per call."""

    def __init__(self):
        self.sizes = []

    def __call__(self, fits):
        rows = [function(*args, **keywords) for function, args, keywords in fits]
        self.sizes.append(len(rows))
        return rows


def evaluate_fold(fold, parameters):
    """A row as scikit-learn's ``_fit_and_score`` returns it."""
    row = {"fit_error": None, "test_scores": parameters["a"] + fold / 10, "n_test_samples": 10}
    return row | {"fit_time": 0.1, "score_time": 0.1}


def delayed_fits(values, n_splits=3):
    candidates = [{"a": value} for value in values]
    return [
        delayed(evaluate_fold)(fold, parameters=params)
        for params in candidates
        for fold in range(n_splits)
    ]


def make_evaluator(archive=None, n_iter=1000, values=range(1000), **params):
    search = TransferSearchCV(
        FailsAt(), {"a": list(values)}, archive=archive, n_iter=n_iter, random_state=0, **params
    )
    plan = SearchPlan.from_search(search, n_splits=3)
    history = find_history(plan, X, y, {}, list(CV.split(X)))
    recorder = Recorder(plan, history)
    return Evaluator(SerialParallel(), plan, history, recorder), recorder


def test_rows_are_in_the_order_of_the_fits():
    evaluator, recorder = make_evaluator()
    rows = evaluator(delayed_fits([3, 1, 2]))
    scores = [row["test_scores"] for row in rows]
    assert scores == pytest.approx([3, 3.1, 3.2, 1, 1.1, 1.2, 2, 2.1, 2.2])
    assert [candidate.params["a"] for candidate in evaluator.candidates] == [3, 1, 2]
    assert [trial.score for trial in recorder.trials] == pytest.approx([3.1, 1.1, 2.1])


def test_candidates_are_those_of_the_current_batch():
    evaluator, recorder = make_evaluator()
    evaluator(delayed_fits([1, 2]))
    evaluator(delayed_fits([3]))
    assert [candidate.params["a"] for candidate in evaluator.candidates] == [3]
    assert [trial.params["a"] for trial in recorder.trials] == [1, 2, 3]


def test_one_worker_reports_each_candidate_before_the_next():
    evaluator, _ = make_evaluator()
    evaluator(delayed_fits(range(4)))
    assert evaluator._parallel.sizes == [3] * 4


def test_pieces_of_several_workers_grow_while_fits_are_fast(monkeypatch):
    monkeypatch.setattr(_evaluator, "SYNC_SECONDS", math.inf)
    evaluator, _ = make_evaluator(n_jobs=2)
    evaluator(delayed_fits(range(200)))
    smallest = math.ceil(FITS_PER_REPORT * 2 / 3)
    sizes = [n_fits / 3 for n_fits in evaluator._parallel.sizes]
    assert sizes[:4] == [smallest, 2 * smallest, 4 * smallest, 8 * smallest]
    assert max(sizes) == MAX_GROWTH * smallest and sum(sizes) == 200


def test_pieces_of_several_workers_stay_small_while_fits_are_slow(monkeypatch):
    monkeypatch.setattr(_evaluator, "SYNC_SECONDS", 0)
    evaluator, _ = make_evaluator(n_jobs=2)
    evaluator(delayed_fits(range(30)))
    smallest = math.ceil(FITS_PER_REPORT * 2 / 3)
    assert set(evaluator._parallel.sizes[:-1]) == {3 * smallest}


def test_candidates_are_on_disk_when_the_batch_ends(tmp_path):
    evaluator, _ = make_evaluator(archive=tmp_path)
    evaluator(delayed_fits([1, 2]))
    [task] = Archive(tmp_path).journals.tasks()
    assert [trial.params["a"] for trial in task.trials] == [1, 2]


def test_known_rows_are_used_once_and_keep_their_places(tmp_path):
    params = {"values": range(6), "n_iter": 6}
    evaluator, recorder = make_evaluator(archive=tmp_path, **params)
    evaluator(delayed_fits([4, 1]))
    recorder.finish(is_complete=False)
    evaluator, _ = make_evaluator(archive=tmp_path, resume=True, **params)
    rows = evaluator(delayed_fits([0, 1, 2, 4, 1]))
    scores = [row["test_scores"] for row in rows]
    assert scores[::3] == pytest.approx([0, 1, 2, 4, 1])
    assert [candidate.is_new for candidate in evaluator.candidates] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert evaluator._parallel.sizes == [3, 3, 3]


# -- candidates ------------------------------------------------------------------------------------


def make_rows(scores, errors=None):
    row = {"fit_time": 0.1, "score_time": 0.2, "n_test_samples": 10}
    errors = errors or [None] * len(scores)
    pairs = zip(scores, errors, strict=True)
    return [{**row, "test_scores": score, "fit_error": error} for score, error in pairs]


def test_candidate_has_mean_and_standard_deviation_of_folds():
    candidate = Candidate.from_rows({"a": 1}, make_rows([0.1, 0.2, 0.4]), True, None, True)
    assert candidate.trial.score == np.mean([0.1, 0.2, 0.4])
    assert candidate.trial.std == pytest.approx(np.std([0.1, 0.2, 0.4]))
    assert candidate.trial.fit_time == pytest.approx(0.1)
    assert candidate.trial.status == "ok" and candidate.is_new


@pytest.mark.parametrize("error_score", [math.nan, 0.0])
def test_candidate_with_failed_fold_is_failed(error_score):
    rows = make_rows([0.5, error_score], [None, "Traceback\nRuntimeError: failed\n"])
    trial = Candidate.from_rows({"a": 1}, rows, True, None, True).trial
    assert trial.status == "failed" and math.isnan(trial.score)


@pytest.mark.parametrize("score", [math.inf, -math.inf, math.nan])
def test_candidate_with_score_that_is_not_finite_is_failed(score):
    trial = Candidate.from_rows({"a": 1}, make_rows([0.5, score]), True, None, True).trial
    assert trial.status == "failed" and math.isnan(trial.score)


@pytest.mark.parametrize(("refit", "score"), [("one", 1.5), ("two", 10.0), (False, 1.5)])
def test_candidate_optimizes_the_metric_of_refit(refit, score):
    rows = make_rows([{"one": 1, "two": 10}, {"one": 2, "two": 10}])
    candidate = Candidate.from_rows({"a": 1}, rows, True, score_dict, refit)
    assert candidate.trial.score == score
    assert candidate.metric == (refit or "one")


def test_failed_candidate_keeps_the_metric_of_earlier_ones():
    rows = make_rows([math.nan] * 2, ["RuntimeError: failed\n"] * 2)
    named = Candidate.from_rows({"a": 1}, rows, True, score_dict, "own", metric="own")
    unnamed = Candidate.from_rows({"a": 1}, rows, True, score_dict, "own")
    assert named.metric == "own" and unnamed.metric != "own"


def test_scorer_without_scores_raises_error():
    with pytest.raises(ValueError, match="empty dict"):
        Candidate.from_rows({"a": 1}, make_rows([{}, {}]), True, score_dict, False)


@pytest.mark.parametrize(
    "scores",
    [[0.5, math.nan], [{"one": 0.5, "two": 1}, {"one": 0.25, "two": 2}], [{"one": 0.5}, math.nan]],
    ids=["number", "dict", "mixed"],
)
def test_rows_survive_the_archive_without_error_messages(scores):
    rows = make_rows(scores, [None, "Traceback\nValueError: cannot convert 'Ann'\n"])
    restored = rows_from_plain(rows_to_plain(rows), 2, has_train_scores=False).values()
    np.testing.assert_equal(
        [{**row, "fit_error": None} for row in restored],
        [{**row, "fit_error": None} for row in rows],
    )
    assert [row["fit_error"] for row in restored] == [None, "ValueError, in an earlier run\n"]


@pytest.mark.parametrize(
    "plain",
    [None, "no", [], [[0.1] * 6], [[0.1, 0.1, 10, None, "high", None]] * 2, [[0.1, 0.1, 10]] * 2],
)
def test_invalid_rows_are_not_restored(plain):
    assert rows_from_plain(plain, 2, has_train_scores=False) is None


def test_rows_without_train_scores_are_not_restored_if_they_are_asked_for():
    plain = rows_to_plain(make_rows([0.5, 0.5]))
    assert rows_from_plain(plain, 2, has_train_scores=True) is None
