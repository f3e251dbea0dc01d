"""Resumed searches evaluate only what is missing and give the result of an uninterrupted run."""

import errno
import os
import shutil
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import loguniform, uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferSearchCV
from sktransfer.exceptions import ArchiveWarning, ResumeWarning
from sktransfer.model_selection import _resume_key
from sktransfer.model_selection._recorder import Recorder
from sktransfer.utils._hashing import digest

X, y = load_iris(return_X_y=True)
SPACE = {"a": uniform(0, 1), "b": loguniform(1e-3, 1e3), "kind": ["x", "y"]}
SMALL_GRID = {"a": [0.1, 0.2, 0.4], "kind": ["x", "y"]}


class Counted(ClassifierMixin, BaseEstimator):
    """Counts its fits, and raises KeyboardInterrupt after `max_fits` of them."""

    n_fits, max_fits, on_fit = 0, None, None

    def __init__(self, a=0.5, b=1.0, kind="x", fails_above=2.0):
        self.a = a
        self.b = b
        self.kind = kind
        self.fails_above = fails_above

    def fit(self, X, y, sample_weight=None):
        cls = type(self)
        if cls.on_fit is not None:
            cls.on_fit(self)
        if cls.max_fits is not None and cls.n_fits >= cls.max_fits:
            raise KeyboardInterrupt
        cls.n_fits += 1
        if self.a > self.fails_above:
            raise RuntimeError(f"a={self.a} is too much")
        self.classes_ = np.unique(y)
        self.n_ = len(X)
        return self

    def predict(self, X):
        return np.resize(self.classes_, len(X))

    def score(self, X, y):
        return (
            -((self.a - 0.3) ** 2)
            - 0.01 * np.log(self.b) ** 2
            + 0.1 * (self.kind == "y")
            + X[0, 0] / 100
        )


@pytest.fixture(autouse=True)
def reset_counter():
    Counted.n_fits, Counted.max_fits, Counted.on_fit = 0, None, None


def make_search(archive, **params):
    params = {"n_iter": 7, "cv": 3, "random_state": 0, "surrogate": "gp", "refit": False} | params
    return TransferSearchCV(
        params.pop("estimator", Counted()), params.pop("space", SPACE), archive=archive, **params
    )


def interrupt(search, n_fits, killed, data=(X, y), **params):
    """Run a search and end it after `n_fits` fits. A kill leaves no time to write the record."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if killed:
            patch.setattr(Recorder, "finish", lambda self, **_: None)
        Counted.n_fits, Counted.max_fits = 0, n_fits
        with pytest.raises(KeyboardInterrupt):
            search.fit(*data, **params)
    Counted.n_fits, Counted.max_fits = 0, None


def assert_same_results(one, other):
    assert one.cv_results_.keys() == other.cv_results_.keys()
    for key, values in one.cv_results_.items():
        if not key.endswith("_time"):
            np.testing.assert_array_equal(values, other.cv_results_[key], err_msg=key)
    assert getattr(one, "best_params_", None) == getattr(other, "best_params_", None)


def fit_without_warnings(search, *data, **params):
    """Fit on iris by default. Every warning but scikit-learn's about failed fits is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", message="(?s).*(fits failed|non-finite|support sample_weight)"
        )
        return search.fit(*(data or (X, y)), **params)


CASES = {
    "gp": {},
    "random": {"surrogate": "random"},
    "warm-start": {"surrogate": "warm-start"},
    "batches": {"batch_size": 3},
    "train scores": {"return_train_score": True},
    "failures": {"estimator": Counted(fails_above=0.6)},
    "error score": {"estimator": Counted(fails_above=0.6), "error_score": 0.0},
    "several metrics": {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"},
    "callable scorer": {
        "scoring": lambda model, X, y: {"one": model.score(X, y), "two": 1},
        "refit": "one",
    },
    "refit": {"refit": True},
    "no seed": {"random_state": None},
    "large grid": {"space": {"a": list(np.linspace(0, 1, 30))}},
    "small grid": {"space": SMALL_GRID, "n_iter": 6},
    "grid with timeout": {"space": SMALL_GRID, "n_iter": 6, "timeout": 1000},
}


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "interrupted"])
@pytest.mark.parametrize("case", CASES)
def test_interrupted_search_is_resumed(tmp_path, case, killed, monkeypatch):
    # Write each candidate to disk at once, those of a grid too.
    monkeypatch.setattr("sktransfer.model_selection._evaluator.SYNC_SECONDS", 0)
    params = CASES[case]
    interrupt(make_search(tmp_path, **params), 11, killed)  # within the fourth candidate
    assert len(Archive(tmp_path)) == (0 if killed else 1)
    [task] = Archive(tmp_path).journals.tasks() if killed else Archive(tmp_path)
    assert len(task.trials) == 3 and not task.complete
    resumed = fit_without_warnings(make_search(tmp_path, resume=True, **params))
    n = len(resumed.cv_results_["params"])
    assert Counted.n_fits == 3 * (n - 3) + bool(params.get("refit"))
    if case != "no seed":
        assert_same_results(
            resumed, fit_without_warnings(make_search(tmp_path / "whole", **params))
        )
    record = Archive(tmp_path)[resumed.task_id_]
    assert record.complete and len(record.trials) == n
    assert [t.params for t in record.trials[:3]] == [t.params for t in task.trials]
    sources = Archive(tmp_path).select().used
    assert [source.id for source in sources] == [resumed.task_id_]  # no trial is used twice


@pytest.mark.parametrize("case", ["gp", "random", "batches", "large grid", "failures"])
def test_larger_budget_continues_a_finished_search(tmp_path, case):
    params = CASES[case]
    short = fit_without_warnings(make_search(tmp_path, n_iter=4, **params))
    Counted.n_fits = 0
    longer = fit_without_warnings(make_search(tmp_path, n_iter=9, resume=True, **params))
    assert Counted.n_fits == 3 * 5
    assert_same_results(longer, fit_without_warnings(make_search(None, n_iter=9, **params)))
    assert longer.task_id_ != short.task_id_
    assert len(Archive(tmp_path)) == 2  # a record never changes
    longest = fit_without_warnings(make_search(tmp_path, n_iter=10, resume=True, **params))
    assert [task.id for task in Archive(tmp_path).select().used] == [longest.task_id_]


def test_resume_works_with_several_workers(tmp_path):
    params = {"n_jobs": 2, "batch_size": 2, "surrogate": "random"}
    grid = {"space": {"a": list(np.linspace(0, 1, 30))}, "n_jobs": 2, "n_iter": 30}
    with parallel_config(backend="threading"):
        fit_without_warnings(make_search(tmp_path, n_iter=3, **params))
        assert_same_results(
            fit_without_warnings(make_search(tmp_path, resume=True, **params)),
            fit_without_warnings(make_search(None, **params)),
        )
        fit_without_warnings(make_search(tmp_path, **(grid | {"n_iter": 10, "n_jobs": 1})))
        assert_same_results(
            fit_without_warnings(make_search(tmp_path, resume=True, **grid)),
            fit_without_warnings(make_search(None, **grid)),
        )


def test_grid_that_now_fits_the_budget_keeps_known_results(tmp_path):
    space = {"a": [0.1, 0.2, 0.4, 0.8], "kind": ["x", "y"]}
    fit_without_warnings(make_search(tmp_path, space=space, n_iter=5))
    Counted.n_fits = 0
    resumed = fit_without_warnings(make_search(tmp_path, space=space, n_iter=8, resume=True))
    assert Counted.n_fits == 3 * 3
    assert_same_results(resumed, fit_without_warnings(make_search(None, space=space, n_iter=8)))


def test_grid_that_now_fits_the_budget_does_not_need_its_past_tasks(tmp_path):
    """The earlier run had a past task that is gone. A grid is resumed all the same."""
    params = {"space": {"a": [0.1, 0.2, 0.4, 0.8], "kind": ["x", "y"]}, "surrogate": "warm-start"}
    removed_id = fit_without_warnings(
        make_search(tmp_path, **params), *load_wine(return_X_y=True)
    ).task_id_
    assert (
        fit_without_warnings(make_search(tmp_path, n_iter=5, **params)).source_tasks_[0]["excluded"]
        is None
    )
    os.remove(tmp_path / "tasks" / f"{removed_id}.joblib")
    Counted.n_fits = 0
    assert_same_results(
        fit_without_warnings(make_search(tmp_path, n_iter=8, resume=True, **params)),
        fit_without_warnings(make_search(None, n_iter=8, **params)),
    )
    assert Counted.n_fits == 3 * (3 + 8)


def test_resumed_finished_search_evaluates_nothing(tmp_path):
    first = fit_without_warnings(make_search(tmp_path))
    Counted.n_fits = 0
    resumed = fit_without_warnings(make_search(tmp_path, resume=True))
    assert Counted.n_fits == 0
    assert_same_results(first, resumed)
    assert resumed.task_id_ == first.task_id_
    assert len(Archive(tmp_path)) == 1
    assert_same_results(
        fit_without_warnings(make_search(tmp_path, n_iter=4, resume=True)),
        fit_without_warnings(make_search(None, n_iter=4)),
    )


def test_resumed_grid_gives_results_of_grid_search(tmp_path):
    grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1]}
    search = TransferSearchCV(SVC(), grid, archive=tmp_path, resume=True)
    with pytest.MonkeyPatch.context() as patch:
        calls = []

        def fit_or_interrupt(self, X, y, sample_weight=None):
            calls.append(self.C)
            if len(calls) > 23:
                raise KeyboardInterrupt
            return fit(self, X, y, sample_weight)

        fit = SVC.fit
        patch.setattr(SVC, "fit", fit_or_interrupt)
        with pytest.raises(KeyboardInterrupt):
            search.fit(X, y)
    [task] = Archive(tmp_path)
    assert len(task.trials) == 4
    search.fit(X, y)
    expected = GridSearchCV(SVC(), grid).fit(X, y)
    for key, values in expected.cv_results_.items():
        if not key.endswith("_time"):
            np.testing.assert_array_equal(search.cv_results_[key], values)
    assert search.best_params_ == expected.best_params_
    assert search.best_score_ == expected.best_score_


def test_slow_fits_of_a_grid_are_written_one_by_one(tmp_path):
    """A grid is one batch, but a kill must not lose hours of it."""
    n_behind = []

    def count_trials_on_disk(model):
        if model.a >= 60:
            time.sleep(0.3)
            n_on_disk = sum(len(task.trials) for task in Archive(tmp_path).journals.tasks())
            n_behind.append(n_on_disk - model.a)

    Counted.on_fit = count_trials_on_disk
    estimator = Counted(fails_above=100)
    fit_without_warnings(
        make_search(tmp_path, estimator=estimator, space={"a": list(range(64))}, n_iter=64, cv=2)
    )
    assert min(n_behind[2:]) >= -1  # all but the last, which has just been finished


def test_smaller_budget_keeps_the_other_trials_in_the_archive(tmp_path):
    """Trials that the shorter search does not propose stay in the journal."""
    grid = {"a": [i / 40 for i in range(40)]}
    Counted.max_fits = 3 * 10
    with pytest.raises(KeyboardInterrupt):
        make_search(tmp_path, space=grid, n_iter=40).fit(X, y)
    shutil.copytree(tmp_path, tmp_path / "copy")
    [task] = Archive(tmp_path)
    journal = Archive(tmp_path).journals.start(replace(task, id="killed", trials=()))
    for trial, folds in zip(task.trials, task.resume["folds"], strict=True):
        journal.add(trial, folds)
    journal.sync()
    Archive(tmp_path).remove(task.id)
    Counted.max_fits = None
    fit_without_warnings(make_search(tmp_path, space=grid, n_iter=8, resume=True))
    kept = {
        trial.params["a"] for task in Archive(tmp_path).journals.tasks() for trial in task.trials
    }
    kept |= {trial.params["a"] for task in Archive(tmp_path) for trial in task.trials}
    assert kept >= {trial.params["a"] for trial in task.trials}


def test_failed_fits_of_interrupted_search_are_counted_at_its_end(tmp_path):
    Counted.max_fits = 3 * 4
    with pytest.raises(KeyboardInterrupt):
        fit_without_warnings(make_search(tmp_path, estimator=Counted(fails_above=-1.0)))
    [task] = Archive(tmp_path).journals.tasks()
    assert [trial.status for trial in task.trials] == ["failed"] * 4
    Counted.n_fits, Counted.max_fits = 0, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="All the"):
            make_search(tmp_path, estimator=Counted(fails_above=-1.0), resume=True).fit(X, y)
    assert Counted.n_fits == 3 * 3


@pytest.mark.parametrize(
    "params",
    [{}, {"space": {"a": [0.1, 0.2]}}, {"error_score": "raise"}],
    ids=["space", "grid", "raise"],
)
def test_search_without_success_is_not_kept_for_resuming(tmp_path, params):
    """The cause of the failures may be fixed by now, and nothing can be learned from them."""
    with pytest.raises((ValueError, RuntimeError), match=r"All the|too much"):
        make_search(tmp_path, estimator=Counted(fails_above=-1.0), resume=True, **params).fit(X, y)
    assert not list(Archive(tmp_path).journals.tasks()) and not len(Archive(tmp_path))


def test_finished_candidate_is_on_disk_before_the_next_begins(tmp_path):
    seen = []

    def list_trials_on_disk(model):
        finished = [t for task in Archive(tmp_path).journals.tasks() for t in task.trials]
        if not seen or seen[-1][0] != model.a:
            seen.append((model.a, [trial.params["a"] for trial in finished]))

    Counted.on_fit = list_trials_on_disk
    fit_without_warnings(make_search(tmp_path))
    order = [a for a, _ in seen]
    assert [on_disk for _, on_disk in seen] == [order[:i] for i in range(7)]
    assert not os.listdir(tmp_path / "running")


@pytest.fixture(params=["listed", "hashed"])
def past_task_format(request, monkeypatch):
    """A record lists the past tasks of its search, or has hashes of them if there are many."""
    if request.param != "listed":
        monkeypatch.setattr(_resume_key, "MAX_LISTED", 0)


@pytest.mark.usefixtures("past_task_format")
def test_resumed_search_uses_the_past_tasks_it_started_from(tmp_path):
    """Tasks that were added in the meantime would change the proposals."""
    params = {"surrogate": "warm-start", "n_iter": 6}
    wine = load_wine(return_X_y=True)
    fit_without_warnings(make_search(tmp_path, **params), *wine)
    shutil.copytree(tmp_path, tmp_path / "copy")
    whole = fit_without_warnings(make_search(tmp_path / "copy", **params))
    interrupt(make_search(tmp_path, **params), 8, killed=True)
    fit_without_warnings(make_search(tmp_path, **params), -wine[0][:, ::-1], wine[1])
    resumed = fit_without_warnings(make_search(tmp_path, resume=True, **params))
    expected, found = whole.cv_results_["origin"], resumed.cv_results_["origin"]
    assert list(found) == list(expected) and found[0].startswith("task ")
    assert_same_results(whole, resumed)
    assert sorted(str(source["excluded"]) for source in resumed.source_tasks_)[:2] == [
        "None",
        "is newer than the search that is resumed",
    ]


def test_size_of_past_task_facts_is_bounded_per_task():
    tasks = [
        Task.from_trials({"a": [1, 2]}, [({"a": 1}, 0.5)], id=f"task {n:05d}") for n in range(5000)
    ]
    assert len(str(_resume_key.past_task_facts(tasks))) < 9 * len(tasks)
    assert len(str(_resume_key.past_task_facts(tasks[:100]))) > 1000


@pytest.mark.usefixtures("past_task_format")
def test_removed_past_task_starts_the_search_from_the_beginning(tmp_path):
    params = {"surrogate": "warm-start", "n_iter": 4}
    removed_id = fit_without_warnings(
        make_search(tmp_path, **params), *load_wine(return_X_y=True)
    ).task_id_
    fit_without_warnings(make_search(tmp_path, **params))
    os.remove(tmp_path / "tasks" / f"{removed_id}.joblib")
    with pytest.warns(ResumeWarning, match="differs in the past tasks it started from"):
        make_search(tmp_path, resume=True, **params).fit(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cv": 4}, "the folds"),
        ({"cv": KFold(3, shuffle=True, random_state=1)}, "the folds"),
        ({"scoring": "accuracy"}, "the scoring"),
        ({"error_score": 0.5}, "the scoring"),
        ({"return_train_score": True}, "the scoring"),
        ({"space": SPACE | {"b": loguniform(1e4, 1e5)}}, "the space"),
        ({"random_state": 1}, "random_state"),
        ({"surrogate": "random"}, "the surrogate"),
        ({"batch_size": 2}, "batch_size"),
        ({"random_state": 1, "cv": 4}, "random_state, the folds"),
    ],
    ids=[
        "cv number",
        "cv splitter",
        "scoring",
        "error_score",
        "return_train_score",
        "space",
        "random_state",
        "surrogate",
        "batch_size",
        "random_state and cv",
    ],
)
def test_warning_names_what_differs_from_similar_search(tmp_path, change, words):
    fit_without_warnings(make_search(tmp_path, n_iter=2))
    Counted.n_fits = 0
    search = make_search(tmp_path, **({"n_iter": 2, "resume": True} | change))
    with pytest.warns(ResumeWarning, match=rf"starts from the beginning.*differs in {words}\.$"):
        search.fit(X, y)
    assert Counted.n_fits == 2 * (4 if change.get("cv") == 4 else 3)
    assert_same_results(search, fit_without_warnings(make_search(None, **({"n_iter": 2} | change))))


def test_other_fit_parameters_are_another_search(tmp_path):
    fit_without_warnings(make_search(tmp_path, n_iter=2), sample_weight=np.ones(150))
    with pytest.warns(ResumeWarning, match="differs in the fit parameters"):
        make_search(tmp_path, n_iter=2, resume=True).fit(X, y)
    Counted.n_fits = 0
    fit_without_warnings(make_search(tmp_path, n_iter=2, resume=True), sample_weight=np.ones(150))
    assert Counted.n_fits == 0


def test_other_data_or_estimator_is_another_search(tmp_path):
    fit_without_warnings(make_search(tmp_path, n_iter=2))
    changed = X.copy()
    changed[7, 2] += 1e-9
    for data, estimator in [
        ((changed, y), Counted()),
        ((X, 2 - y), Counted()),
        ((X, y), Counted(b=2.0)),
    ]:
        Counted.n_fits = 0
        with pytest.warns(ResumeWarning, match=r"differs in the (data|target|estimator)\.$"):
            make_search(tmp_path, n_iter=2, resume=True, estimator=estimator).fit(*data)
        assert Counted.n_fits == 6


def test_resume_ignores_unrelated_search(tmp_path):
    fit_without_warnings(make_search(tmp_path, n_iter=2))
    Counted.n_fits = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*past trials")
        make_search(tmp_path, n_iter=2, resume=True).fit(X[:90] + 1, y[:90] + 1)
    assert Counted.n_fits == 6  # all of them, none is taken from the other search


def test_other_overlap_setting_is_another_search(tmp_path):
    fit_without_warnings(make_search(Archive(tmp_path, overlap="allow"), n_iter=2))
    with pytest.warns(ResumeWarning, match="differs in the overlap that is allowed"):
        make_search(tmp_path, n_iter=2, resume=True).fit(X, y)


def test_damaged_line_of_journal_is_evaluated_again(tmp_path):
    interrupt(make_search(tmp_path), 13, killed=True)
    [file] = (tmp_path / "running").iterdir()
    data = file.read_bytes()
    position = data.index(b'{"n":1')
    file.write_bytes(data[: position + 30] + b"#" + data[position + 31 :])
    resumed = fit_without_warnings(make_search(tmp_path, resume=True))
    assert Counted.n_fits == 3 * (7 - 3)
    assert_same_results(resumed, fit_without_warnings(make_search(None)))


def test_damaged_journal_is_skipped_with_a_warning(tmp_path):
    interrupt(make_search(tmp_path), 13, killed=True)
    [file] = (tmp_path / "running").iterdir()
    file.write_bytes(bytes(range(256)) * 50)
    with pytest.warns(ArchiveWarning, match="header is damaged"):
        resumed = make_search(tmp_path, resume=True).fit(X, y)
    assert_same_results(resumed, fit_without_warnings(make_search(None)))


@pytest.mark.parametrize(
    "nonsense",
    [
        {"folds": "no"},
        {"folds": [[1, 2, 3]] * 7},
        {"folds": [[[0.1, 0.1, 50, None, "high", None]] * 3] * 7},
        {"folds": [], "seed": -1, "batch_size": 0},
        {"past": 3},
        {"past": [[1, 2, 3]]},
        {"continues": 5},
    ],
    ids=[
        "folds text",
        "folds numbers",
        "folds score text",
        "folds, seed and batch_size",
        "past number",
        "past list",
        "continues",
    ],
)
def test_edited_record_does_not_change_the_result(tmp_path, nonsense):
    first = fit_without_warnings(make_search(tmp_path))
    task = Archive(tmp_path)[first.task_id_]
    os.remove(tmp_path / "tasks" / f"{task.id}.joblib")
    Archive(tmp_path).append(replace(task, resume=task.resume | nonsense))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resumed = make_search(tmp_path, resume=True).fit(X, y)
    assert_same_results(resumed, first)


def test_search_killed_twice_is_resumed_twice(tmp_path):
    interrupt(make_search(tmp_path), 8, killed=True)
    interrupt(make_search(tmp_path, resume=True), 8, killed=True)
    assert sorted(len(task.trials) for task in Archive(tmp_path).journals.tasks()) == [2, 4]
    resumed = fit_without_warnings(make_search(tmp_path, resume=True))
    assert Counted.n_fits == 3 * 3
    assert_same_results(resumed, fit_without_warnings(make_search(None)))


def test_resume_without_archive_raises_error():
    with pytest.raises(ValueError, match="resume=True needs an archive"):
        make_search(None, resume=True).fit(X, y)


def test_record_keeps_class_but_not_message_of_fit_error(tmp_path):
    fit_without_warnings(make_search(tmp_path, estimator=Counted(fails_above=0.6)))
    [file] = (tmp_path / "tasks").iterdir()
    assert b"RuntimeError" in file.read_bytes()
    assert b"too much" not in file.read_bytes()


# -- failing disks ---------------------------------------------------------------------------------


JOURNAL_WARNING, RECORD_WARNING = "cannot be written to", "cannot be added to"


def fit_with_archive_warnings(search, *messages):
    """Fit and check that exactly these warnings are shown, in this order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    for warning, message in zip(caught, messages, strict=True):
        assert warning.category is ArchiveWarning and message in str(warning.message)
    return search


def test_full_disk_does_not_end_the_search(tmp_path, monkeypatch):
    fit_without_warnings(make_search(tmp_path, n_iter=2), *load_wine(return_X_y=True))
    [record] = (tmp_path / "tasks").iterdir()
    before = record.read_bytes()
    fsync, calls = os.fsync, []

    def fail_after_five(descriptor):
        calls.append(descriptor)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail_after_five)
    fitted = fit_with_archive_warnings(make_search(tmp_path), JOURNAL_WARNING, RECORD_WARNING)
    assert_same_results(fitted, make_search(None).fit(X, y))
    assert fitted.task_id_ is None
    assert record.read_bytes() == before
    monkeypatch.undo()
    [task] = Archive(tmp_path).journals.tasks()  # trials on disk are kept
    assert 3 <= len(task.trials) < 7


def test_archive_removed_during_search_is_created_again(tmp_path):
    Counted.on_fit = lambda model: Counted.n_fits == 9 and shutil.rmtree(tmp_path / "past")
    fitted = fit_with_archive_warnings(make_search(tmp_path / "past"), JOURNAL_WARNING)
    assert_same_results(fitted, fit_without_warnings(make_search(None)))
    assert len(Archive(tmp_path / "past")[fitted.task_id_].trials) == 7


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_unwritable_directory_does_not_end_the_search(tmp_path, monkeypatch):
    def deny(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    # The tests may run as root, whom permissions do not stop.
    monkeypatch.setattr("pathlib.Path.mkdir", deny)
    assert_same_results(
        fit_with_archive_warnings(make_search(tmp_path / "past"), JOURNAL_WARNING, RECORD_WARNING),
        fit_without_warnings(make_search(None)),
    )


def test_search_is_resumed_from_readonly_archive(tmp_path):
    interrupt(make_search(tmp_path), 8, killed=True)
    resumed = fit_without_warnings(make_search(Archive(tmp_path, readonly=True), resume=True))
    assert Counted.n_fits == 3 * 5
    assert_same_results(resumed, fit_without_warnings(make_search(None)))


@pytest.fixture
def small_files(monkeypatch):
    """Limit files to a few hundred numbers."""
    monkeypatch.setattr("sktransfer.archive._plain_pickle.MAX_NUMBERS", 400)
    monkeypatch.setattr("sktransfer.archive._journal.MAX_VALUES", 1600)


def test_record_that_is_too_large_is_kept_without_its_folds(tmp_path, small_files):
    fitted = fit_without_warnings(make_search(tmp_path, n_iter=20, cv=8))
    [record] = Archive(tmp_path)
    assert record.id == fitted.task_id_ and len(record.trials) == 20 and record.resume is None


def test_journal_that_grows_too_large_drops_folds_and_stays_readable(tmp_path, small_files):
    interrupt(make_search(tmp_path, n_iter=20, cv=8), 8 * 15, killed=True)
    [task] = Archive(tmp_path).journals.tasks()
    assert len(task.trials) == 15
    has_folds = [folds is not None for folds in task.resume["folds"]]
    assert has_folds == sorted(has_folds, reverse=True) and 0 < sum(has_folds) < 15
    resumed = fit_without_warnings(make_search(tmp_path, n_iter=20, cv=8, resume=True))
    assert Counted.n_fits == 8 * (20 - sum(has_folds))
    assert_same_results(resumed, fit_without_warnings(make_search(None, n_iter=20, cv=8)))


def test_full_journal_takes_no_more_trials(tmp_path, monkeypatch):
    monkeypatch.setattr("sktransfer.archive._journal.MAX_VALUES", 800)
    interrupt(make_search(tmp_path, n_iter=50), 3 * 45, killed=True)
    [task] = Archive(tmp_path).journals.tasks()
    assert 0 < len(task.trials) < 45


def test_repeated_resume_adds_neither_record_nor_journal(tmp_path):
    ids = {fit_without_warnings(make_search(tmp_path, resume=True)).task_id_ for _ in range(4)}
    assert len(ids) == len(Archive(tmp_path)) == 1
    assert not [*(tmp_path / "running").iterdir()]


# -- which searches are the same -------------------------------------------------------------------


def define_score(text):
    """A function `score` made from source text, as an edited notebook cell defines it again."""
    module = {"__name__": "notebook"}
    exec(text, module)
    return module["score"]


class Opaque:
    """A value whose repr does not show its content."""

    def __init__(self, a):
        self.a = a

    def __repr__(self):
        return "Opaque()"

    def __mul__(self, other):
        return self.a * other

    def __sub__(self, other):
        return self.a - other

    def __gt__(self, other):
        return self.a > other


def make_closure(offset):
    return lambda model, X, y: model.a + offset


EDITED = {
    "function": [
        {"scoring": define_score("def score(model, X, y): return model.a")},
        {"scoring": define_score("def score(model, X, y): return model.a - 5")},
    ],
    "called function": [
        {
            "scoring": define_score(
                f"def half(a): return a / {n}\ndef score(model, X, y): return half(model.a)"
            )
        }
        for n in (2, 3)
    ],
    "metric": [
        {"scoring": make_scorer(define_score(f"def score(y, p): return {n} * len(y)"))}
        for n in (1, 2)
    ],
    "lambda": [{"scoring": lambda m, X, y: m.a + 5}, {"scoring": lambda m, X, y: m.a + 9}],
    "closure": [{"scoring": make_closure(5)}, {"scoring": make_closure(9)}],
    "value": [
        {"space": {"a": [Opaque(a), Opaque(a + 0.5)], "b": loguniform(1, 2)}} for a in (0.1, 0.2)
    ],
    "class": [
        {"estimator": type("Edited", (Counted,), {"score": f})()}
        for f in (lambda *_: 1, lambda *_: 2)
    ],
}


@pytest.mark.parametrize("case", EDITED)
def test_edited_code_or_value_is_another_search(tmp_path, case):
    one, other = EDITED[case]
    classes = [type(params.get("estimator", Counted())) for params in (one, other)]
    fit_without_warnings(make_search(tmp_path, **one))
    classes[0].n_fits = 0
    resumed = fit_without_warnings(make_search(tmp_path, resume=True, **one))
    assert classes[0].n_fits == 0
    with pytest.warns(
        ResumeWarning, match=r"starts from the beginning.*differs in the (scoring|space|estimator)"
    ):
        edited = make_search(tmp_path, resume=True, **other).fit(X, y)
    assert classes[1].n_fits == 3 * 7
    assert not np.array_equal(
        resumed.cv_results_["mean_test_score"], edited.cv_results_["mean_test_score"]
    )


def test_resume_without_cached_model_warns_of_other_proposals(tmp_path):
    """A model that continues from cached weights differs from one trained from the beginning."""
    space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 10)}

    def make(seed, n_iter=3, **params):
        return TransferSearchCV(
            SVC(),
            space,
            n_iter=n_iter,
            cv=2,
            archive=tmp_path,
            random_state=seed,
            surrogate="dist-gp",
            **params,
        )

    for seed in range(6):
        make(seed, 4).fit(*make_classification(110, 5, random_state=200 + seed))
    data = make_classification(100, 5, random_state=9)
    before = fit_without_warnings(make(0, 4), *data)
    shutil.rmtree(tmp_path / "models")
    with pytest.warns(ResumeWarning, match="4 trials of .* not proposed again.*model cache"):
        after = make(0, 4, resume=True).fit(*data)
    assert after.cv_results_["params"] != before.cv_results_["params"]
    assert len(Archive(tmp_path)) == 8


# -- records of other people ----------------------------------------------------------------------


def forged_record(path):
    """A finished search whose scores were raised, as its owner can easily do."""
    fit_without_warnings(make_search(path, n_iter=3, resume=False))
    [task] = Archive(path)
    folds = [[[*row[:-2], 1.0, None] for row in rows] for rows in task.resume["folds"]]
    trials = tuple(replace(trial, score=1.0) for trial in task.trials)
    return replace(task, trials=trials, resume={**task.resume, "folds": folds})


@pytest.mark.parametrize("way", ["import", "merge", "copy"])
def test_resume_ignores_records_of_others(tmp_path, way):
    forged = forged_record(tmp_path / "theirs")
    source = Archive(tmp_path / "forged")
    source.append(forged)
    own = Archive(tmp_path / "own")
    own.open_key()
    if way == "import":
        source.export(tmp_path / "gift.zip")
        own.import_(tmp_path / "gift.zip")
    elif way == "merge":
        own.merge(source)
    else:
        shutil.copytree(source.path / "tasks", own.path / "tasks")
    if way != "copy":
        assert own[forged.id].resume is None and own[forged.id].origin
    Counted.n_fits = 0
    search = make_search(own, n_iter=3, resume=True).fit(X, y)
    assert Counted.n_fits > 3  # every candidate, not the refit only
    assert search.best_score_ < 0.9


def test_record_has_no_digest_that_can_be_guessed(tmp_path):
    fit_without_warnings(make_search(tmp_path, n_iter=3))
    [task] = Archive(tmp_path)
    stored = task.resume["problem"]
    assert stored["the target"] and stored["the target"] != digest(y, code=True)
    assert digest(y, code=True).encode() not in next((tmp_path / "tasks").iterdir()).read_bytes()


def test_search_with_unreadable_key_is_not_recorded(tmp_path):
    tmp_path.joinpath("key").write_bytes(b"nonsense")
    search = make_search(tmp_path, n_iter=3)
    fit_with_archive_warnings(search, "key of the archive", RECORD_WARNING)
    assert not len(Archive(tmp_path))
