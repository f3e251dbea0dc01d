"""Taking a search up again: only what is missing is evaluated, and the result is the uninterrupted one."""

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
from sktransfer.model_selection import _resume_key
from sktransfer.model_selection._recorder import Recorder

X, y = load_iris(return_X_y=True)
SPACE = {"a": uniform(0, 1), "b": loguniform(1e-3, 1e3), "kind": ["x", "y"]}


class Counted(ClassifierMixin, BaseEstimator):
    """Counts its fits, and ends the process's patience after so many of them."""

    fits, patience, on_fit = 0, None, None

    def __init__(self, a=0.5, b=1.0, kind="x", fails_above=2.0):
        self.a = a
        self.b = b
        self.kind = kind
        self.fails_above = fails_above

    def fit(self, X, y, sample_weight=None):
        cls = type(self)
        if cls.on_fit is not None:
            cls.on_fit(self)
        if cls.patience is not None and cls.fits >= cls.patience:
            raise KeyboardInterrupt
        cls.fits += 1
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
def fresh_counter():
    Counted.fits, Counted.patience, Counted.on_fit = 0, None, None


def search(archive, **params):
    params = {"n_iter": 7, "cv": 3, "random_state": 0, "surrogate": "gp", "refit": False} | params
    return TransferSearchCV(
        params.pop("estimator", Counted()), params.pop("space", SPACE), archive=archive, **params
    )


def interrupted(made, fits, killed, data=(X, y), **params):
    """Fit until so many fits are done; a kill leaves no time to write the record."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if killed:
            patch.setattr(Recorder, "finish", lambda self, **_: None)
        Counted.fits, Counted.patience = 0, fits
        with pytest.raises(KeyboardInterrupt):
            made.fit(*data, **params)
    Counted.fits, Counted.patience = 0, None


def assert_same(one, other):
    assert one.cv_results_.keys() == other.cv_results_.keys()
    for key, values in one.cv_results_.items():
        if not key.endswith("_time"):
            np.testing.assert_array_equal(values, other.cv_results_[key], err_msg=key)
    assert getattr(one, "best_params_", None) == getattr(other, "best_params_", None)


def quiet(made, *data, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", message="(?s).*(fits failed|non-finite|support sample_weight)"
        )
        return made.fit(*(data or (X, y)), **params)


CASES = {
    "gp": {},
    "random": {"surrogate": "random"},
    "warm-start": {"surrogate": "warm-start"},
    "batches": {"batch_size": 3},
    "train scores": {"return_train_score": True},
    "failures": {"estimator": Counted(fails_above=0.6)},
    "error score": {"estimator": Counted(fails_above=0.6), "error_score": 0.0},
    "several metrics": {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"},
    "a function": {
        "scoring": lambda model, X, y: {"one": model.score(X, y), "two": 1},
        "refit": "one",
    },
    "refit": {"refit": True},
    "any seed": {"random_state": None},
    "a large grid": {"space": {"a": list(np.linspace(0, 1, 30))}},
    "a small grid": {"space": {"a": [0.1, 0.2, 0.4], "kind": ["x", "y"]}},
    "with a timeout": {"space": {"a": [0.1, 0.2, 0.4], "kind": ["x", "y"]}, "timeout": 1000},
}


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_search_is_taken_up(tmp_path, case, killed, monkeypatch):
    # Each candidate of a grid is on disk at once, too.
    monkeypatch.setattr("sktransfer.model_selection._evaluator.SYNC_SECONDS", 0)
    params = CASES[case]
    interrupted(search(tmp_path, **params), 11, killed)  # in the middle of the fourth candidate
    assert len(Archive(tmp_path)) == (0 if killed else 1)
    [task] = Archive(tmp_path).journals.tasks() if killed else Archive(tmp_path)
    assert len(task.trials) == 3 and not task.complete
    resumed = quiet(search(tmp_path, resume=True, **params))
    n = len(resumed.cv_results_["params"])
    assert Counted.fits == 3 * (n - 3) + bool(params.get("refit"))
    if case != "any seed":
        assert_same(resumed, quiet(search(tmp_path / "whole", **params)))
    record = Archive(tmp_path)[resumed.task_id_]
    assert record.complete and len(record.trials) == n
    assert [t.params for t in record.trials[:3]] == [t.params for t in task.trials]
    sources = Archive(tmp_path).select().used
    assert [source.id for source in sources] == [resumed.task_id_]  # no trial counts twice


@pytest.mark.parametrize("case", ["gp", "random", "batches", "a large grid", "failures"])
def test_a_larger_budget_goes_on_from_a_search_that_ended(tmp_path, case):
    params = CASES[case]
    short = quiet(search(tmp_path, n_iter=4, **params))
    Counted.fits = 0
    longer = quiet(search(tmp_path, n_iter=9, resume=True, **params))
    assert Counted.fits == 3 * 5
    assert_same(longer, quiet(search(None, n_iter=9, **params)))
    assert longer.task_id_ != short.task_id_
    assert len(Archive(tmp_path)) == 2  # a record never changes
    longest = quiet(search(tmp_path, n_iter=10, resume=True, **params))
    assert [task.id for task in Archive(tmp_path).select().used] == [longest.task_id_]


def test_with_workers(tmp_path):
    params = {"n_jobs": 2, "batch_size": 2, "surrogate": "random"}
    grid = {"space": {"a": list(np.linspace(0, 1, 30))}, "n_jobs": 2, "n_iter": 30}
    with parallel_config(backend="threading"):
        quiet(search(tmp_path, n_iter=3, **params))
        assert_same(quiet(search(tmp_path, resume=True, **params)), quiet(search(None, **params)))
        quiet(search(tmp_path, **(grid | {"n_iter": 10, "n_jobs": 1})))
        assert_same(quiet(search(tmp_path, resume=True, **grid)), quiet(search(None, **grid)))


def test_a_grid_that_has_become_affordable(tmp_path):
    space = {"a": [0.1, 0.2, 0.4, 0.8], "kind": ["x", "y"]}
    quiet(search(tmp_path, space=space, n_iter=5))
    Counted.fits = 0
    resumed = quiet(search(tmp_path, space=space, n_iter=8, resume=True))
    assert Counted.fits == 3 * 3
    assert_same(resumed, quiet(search(None, space=space, n_iter=8)))


def test_a_grid_needs_no_past(tmp_path):
    """Nor does it matter, when the grid has become affordable, that the past is not the same any more."""
    params = {"space": {"a": [0.1, 0.2, 0.4, 0.8], "kind": ["x", "y"]}, "surrogate": "warm-start"}
    gone = quiet(search(tmp_path, **params), *load_wine(return_X_y=True)).task_id_
    assert quiet(search(tmp_path, n_iter=5, **params)).source_tasks_[0]["excluded"] is None
    os.remove(tmp_path / "tasks" / f"{gone}.joblib")
    Counted.fits = 0
    assert_same(
        quiet(search(tmp_path, n_iter=8, resume=True, **params)),
        quiet(search(None, n_iter=8, **params)),
    )
    assert Counted.fits == 3 * (3 + 8)


def test_the_same_search_again_evaluates_nothing(tmp_path):
    first = quiet(search(tmp_path))
    Counted.fits = 0
    again = quiet(search(tmp_path, resume=True))
    assert Counted.fits == 0
    assert_same(first, again)
    assert again.task_id_ == first.task_id_
    assert len(Archive(tmp_path)) == 1
    assert_same(quiet(search(tmp_path, n_iter=4, resume=True)), quiet(search(None, n_iter=4)))


def test_an_interrupted_grid_is_what_grid_search_does(tmp_path):
    grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1]}
    made = TransferSearchCV(SVC(), grid, archive=tmp_path, resume=True)
    with pytest.MonkeyPatch.context() as patch:
        calls = []

        def impatient(self, X, y, sample_weight=None):
            calls.append(self.C)
            if len(calls) > 23:
                raise KeyboardInterrupt
            return fit(self, X, y, sample_weight)

        fit = SVC.fit
        patch.setattr(SVC, "fit", impatient)
        with pytest.raises(KeyboardInterrupt):
            made.fit(X, y)
    [task] = Archive(tmp_path)
    assert len(task.trials) == 4
    made.fit(X, y)
    expected = GridSearchCV(SVC(), grid).fit(X, y)
    for key, values in expected.cv_results_.items():
        if not key.endswith("_time"):
            np.testing.assert_array_equal(made.cv_results_[key], values)
    assert made.best_params_ == expected.best_params_
    assert made.best_score_ == expected.best_score_


def test_slow_fits_after_fast_ones_are_on_disk_one_by_one(tmp_path):
    """A grid has nothing to propose, but a kill must not cost hours of it."""
    seen = []

    def look(model):
        if model.a >= 60:
            time.sleep(0.3)
            seen.append(
                sum(len(task.trials) for task in Archive(tmp_path).journals.tasks()) - model.a
            )

    Counted.on_fit = look
    estimator = Counted(fails_above=100)
    quiet(search(tmp_path, estimator=estimator, space={"a": list(range(64))}, n_iter=64, cv=2))
    assert min(seen[2:]) >= -1  # all but the last, which has just been finished


def test_with_a_smaller_budget_nothing_is_lost(tmp_path):
    """What the shorter search does not ask for stays where it was."""
    grid = {"a": [i / 40 for i in range(40)]}
    Counted.patience = 3 * 10
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, space=grid, n_iter=40).fit(X, y)
    shutil.copytree(tmp_path, tmp_path / "copy")
    [task] = Archive(tmp_path)
    journal = Archive(tmp_path).journals.start(replace(task, id="killed", trials=()))
    for trial, folds in zip(task.trials, task.resume["folds"], strict=True):
        journal.add(trial, folds)
    journal.sync()
    Archive(tmp_path).remove(task.id)
    Counted.patience = None
    quiet(search(tmp_path, space=grid, n_iter=8, resume=True))
    left = {
        trial.params["a"] for task in Archive(tmp_path).journals.tasks() for trial in task.trials
    }
    left |= {trial.params["a"] for task in Archive(tmp_path) for trial in task.trials}
    assert left >= {trial.params["a"] for trial in task.trials}


def test_failures_of_an_interrupted_search_are_not_forgotten(tmp_path):
    Counted.patience = 3 * 4
    with pytest.raises(KeyboardInterrupt):
        quiet(search(tmp_path, estimator=Counted(fails_above=-1.0)))
    [task] = Archive(tmp_path).journals.tasks()
    assert [trial.status for trial in task.trials] == ["failed"] * 4
    Counted.fits, Counted.patience = 0, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="All the"):
            search(tmp_path, estimator=Counted(fails_above=-1.0), resume=True).fit(X, y)
    assert Counted.fits == 3 * 3


@pytest.mark.parametrize("case", [{}, {"space": {"a": [0.1, 0.2]}}, {"error_score": "raise"}])
def test_a_search_in_which_all_failed_is_not_taken_up_again(tmp_path, case):
    """What made every fit fail may have been mended since, and nothing can be learned from it."""
    with pytest.raises((ValueError, RuntimeError), match=r"All the|too much"):
        search(tmp_path, estimator=Counted(fails_above=-1.0), resume=True, **case).fit(X, y)
    assert not list(Archive(tmp_path).journals.tasks()) and not len(Archive(tmp_path))


def test_every_finished_candidate_is_on_disk_before_the_next_begins(tmp_path):
    seen = []

    def look(model):
        finished = [t for task in Archive(tmp_path).journals.tasks() for t in task.trials]
        if not seen or seen[-1][0] != model.a:
            seen.append((model.a, [trial.params["a"] for trial in finished]))

    Counted.on_fit = look
    quiet(search(tmp_path))
    order = [a for a, _ in seen]
    assert [on_disk for _, on_disk in seen] == [order[:i] for i in range(7)]
    assert not os.listdir(tmp_path / "running")


@pytest.fixture(params=["listed", "as hashes"])
def past_as_written(request, monkeypatch):
    """A record names the past tasks of its search one by one, or, of many, has hashes of them."""
    if request.param != "listed":
        monkeypatch.setattr(_resume_key, "MAX_LISTED", 0)


@pytest.mark.usefixtures("past_as_written")
def test_the_past_is_the_one_it_started_from(tmp_path):
    """What was added to the archive in the meantime would change the proposals."""
    params = {"surrogate": "warm-start", "n_iter": 6}
    wine = load_wine(return_X_y=True)
    quiet(search(tmp_path, **params), *wine)
    shutil.copytree(tmp_path, tmp_path / "copy")
    whole = quiet(search(tmp_path / "copy", **params))
    interrupted(search(tmp_path, **params), 8, killed=True)
    quiet(search(tmp_path, **params), -wine[0][:, ::-1], wine[1])
    resumed = quiet(search(tmp_path, resume=True, **params))
    expected, found = whole.cv_results_["origin"], resumed.cv_results_["origin"]
    assert list(found) == list(expected) and found[0].startswith("task ")
    assert_same(whole, resumed)
    assert sorted(str(source["excluded"]) for source in resumed.source_tasks_)[:2] == [
        "None",
        "is newer than the search that is resumed",
    ]


def test_records_hardly_grow_with_the_archive():
    tasks = [
        Task.from_trials({"a": [1, 2]}, [({"a": 1}, 0.5)], id=f"task {n:05d}") for n in range(5000)
    ]
    assert len(str(_resume_key.past_task_facts(tasks))) < 9 * len(tasks)
    assert len(str(_resume_key.past_task_facts(tasks[:100]))) > 1000


@pytest.mark.usefixtures("past_as_written")
def test_a_past_task_that_is_gone_starts_anew(tmp_path):
    params = {"surrogate": "warm-start", "n_iter": 4}
    gone = quiet(search(tmp_path, **params), *load_wine(return_X_y=True)).task_id_
    quiet(search(tmp_path, **params))
    os.remove(tmp_path / "tasks" / f"{gone}.joblib")
    with pytest.warns(UserWarning, match="differs in the past tasks it started from"):
        search(tmp_path, resume=True, **params).fit(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cv": 4}, "the folds"),
        ({"cv": KFold(3, shuffle=True, random_state=1)}, "the folds"),
        ({"scoring": "accuracy"}, "the scoring"),
        ({"error_score": 0.5}, "the scoring"),
        ({"return_train_score": True}, "the scoring"),
        ({"space": SPACE | {"a": uniform(0, 2)}}, "the space"),
        ({"random_state": 1}, "random_state"),
        ({"surrogate": "random"}, "the surrogate"),
        ({"batch_size": 2}, "batch_size"),
        ({"random_state": 1, "cv": 4}, "random_state, the folds"),
    ],
)
def test_what_differs_is_said(tmp_path, change, words):
    quiet(search(tmp_path, n_iter=2))
    Counted.fits = 0
    made = search(tmp_path, **({"n_iter": 2, "resume": True} | change))
    with pytest.warns(UserWarning, match=rf"starts from the beginning.*differs in {words}\.$"):
        made.fit(X, y)
    n_train_folds = made.get_params()["cv"]
    assert Counted.fits == 2 * (n_train_folds if n_train_folds == 4 else 3)
    assert_same(made, quiet(search(None, **({"n_iter": 2} | change))))


def test_fit_parameters_count(tmp_path):
    quiet(search(tmp_path, n_iter=2), sample_weight=np.ones(150))
    with pytest.warns(UserWarning, match="differs in the fit parameters"):
        search(tmp_path, n_iter=2, resume=True).fit(X, y)
    Counted.fits = 0
    quiet(search(tmp_path, n_iter=2, resume=True), sample_weight=np.ones(150))
    assert Counted.fits == 0


def test_other_data_or_another_estimator_is_another_search(tmp_path):
    quiet(search(tmp_path, n_iter=2))
    changed = X.copy()
    changed[7, 2] += 1e-9
    for data, estimator in [
        ((changed, y), Counted()),
        ((X, 2 - y), Counted()),
        ((X, y), Counted(b=2.0)),
    ]:
        Counted.fits = 0
        with pytest.warns(UserWarning, match=r"differs in the (data|target|estimator)\.$"):
            search(tmp_path, n_iter=2, resume=True, estimator=estimator).fit(*data)
        assert Counted.fits == 6


def test_of_another_search_nothing_is_said(tmp_path):
    quiet(search(tmp_path, n_iter=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*past trials")
        search(tmp_path, n_iter=2, resume=True).fit(X[:90] + 1, y[:90] + 1)


def test_what_may_overlap_counts(tmp_path):
    quiet(search(Archive(tmp_path, overlap="allow"), n_iter=2))
    with pytest.warns(UserWarning, match="differs in the overlap that is allowed"):
        search(tmp_path, n_iter=2, resume=True).fit(X, y)


def test_lines_that_were_damaged_are_evaluated_again(tmp_path):
    interrupted(search(tmp_path), 13, killed=True)
    [file] = (tmp_path / "running").iterdir()
    data = file.read_bytes()
    position = data.index(b'{"n":1')
    file.write_bytes(data[: position + 30] + b"#" + data[position + 31 :])
    resumed = quiet(search(tmp_path, resume=True))
    assert Counted.fits == 3 * (7 - 3)
    assert_same(resumed, quiet(search(None)))


def test_a_journal_of_nonsense_costs_nothing_but_itself(tmp_path):
    interrupted(search(tmp_path), 13, killed=True)
    [file] = (tmp_path / "running").iterdir()
    file.write_bytes(bytes(range(256)) * 50)
    with pytest.warns(UserWarning, match="header is damaged"):
        resumed = search(tmp_path, resume=True).fit(X, y)
    assert_same(resumed, quiet(search(None)))


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
)
def test_a_record_that_somebody_edited(tmp_path, nonsense):
    made = quiet(search(tmp_path))
    task = Archive(tmp_path)[made.task_id_]
    os.remove(tmp_path / "tasks" / f"{task.id}.joblib")
    Archive(tmp_path).append(replace(task, resume=task.resume | nonsense))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resumed = search(tmp_path, resume=True).fit(X, y)
    assert_same(resumed, made)


def test_a_journal_is_resumed_twice(tmp_path):
    interrupted(search(tmp_path), 8, killed=True)
    interrupted(search(tmp_path, resume=True), 8, killed=True)
    assert sorted(len(task.trials) for task in Archive(tmp_path).journals.tasks()) == [2, 4]
    resumed = quiet(search(tmp_path, resume=True))
    assert Counted.fits == 3 * 3
    assert_same(resumed, quiet(search(None)))


def test_resume_needs_an_archive():
    with pytest.raises(ValueError, match="resume=True needs an archive"):
        search(None, resume=True).fit(X, y)


def test_the_message_of_an_error_is_not_kept(tmp_path):
    quiet(search(tmp_path, estimator=Counted(fails_above=0.6)))
    [file] = (tmp_path / "tasks").iterdir()
    assert b"RuntimeError" in file.read_bytes()
    assert b"too much" not in file.read_bytes()


# -- disks that fail -------------------------------------------------------------------------------


NOTED, ADDED = "cannot be written to", "cannot be added to"


def warned(made, *words):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.fit(X, y)
    for warning, word in zip(caught, words, strict=True):
        assert word in str(warning.message)
    return made


def test_a_full_disk(tmp_path, monkeypatch):
    quiet(search(tmp_path, n_iter=2), *load_wine(return_X_y=True))
    [record] = (tmp_path / "tasks").iterdir()
    before = record.read_bytes()
    fsync, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    made = warned(search(tmp_path), NOTED, ADDED)
    assert_same(made, search(None).fit(X, y))
    assert made.task_id_ is None
    assert record.read_bytes() == before
    monkeypatch.undo()
    [task] = Archive(tmp_path).journals.tasks()  # what was on disk still is
    assert 3 <= len(task.trials) < 7


def test_a_directory_that_is_removed_while_running(tmp_path):
    Counted.on_fit = lambda model: Counted.fits == 9 and shutil.rmtree(tmp_path / "past")
    made = warned(search(tmp_path / "past"), NOTED)
    assert_same(made, quiet(search(None)))
    assert (
        len(Archive(tmp_path / "past")[made.task_id_].trials) == 7
    )  # the record is made all the same


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_directory_that_cannot_be_written(tmp_path, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refused)  # root may write anywhere, also in the tests
    assert_same(warned(search(tmp_path / "past"), NOTED, ADDED), quiet(search(None)))


def test_a_readonly_archive_can_be_resumed_from(tmp_path):
    interrupted(search(tmp_path), 8, killed=True)
    made = quiet(search(Archive(tmp_path, readonly=True), resume=True))
    assert Counted.fits == 3 * 5
    assert_same(made, quiet(search(None)))


@pytest.fixture
def small_files(monkeypatch):
    """As if a few hundred numbers were as many as a file may hold."""
    monkeypatch.setattr("sktransfer.archive._plain_pickle.MAX_NUMBERS", 400)
    monkeypatch.setattr("sktransfer.archive._journal.MAX_VALUES", 1600)


def test_a_record_that_is_too_large_is_kept_without_its_folds(tmp_path, small_files):
    made = quiet(search(tmp_path, n_iter=20, cv=8))
    [record] = Archive(tmp_path)
    assert record.id == made.task_id_ and len(record.trials) == 20 and record.resume is None


def test_a_journal_stays_readable(tmp_path, small_files):
    interrupted(search(tmp_path, n_iter=20, cv=8), 8 * 15, killed=True)
    [task] = Archive(tmp_path).journals.tasks()
    assert len(task.trials) == 15
    folds = [each is not None for each in task.resume["folds"]]
    assert folds == sorted(folds, reverse=True) and 0 < sum(folds) < 15
    resumed = quiet(search(tmp_path, n_iter=20, cv=8, resume=True))
    assert Counted.fits == 8 * (20 - sum(folds))
    assert_same(resumed, quiet(search(None, n_iter=20, cv=8)))


def test_a_full_journal_takes_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr("sktransfer.archive._journal.MAX_VALUES", 800)
    interrupted(search(tmp_path, n_iter=50), 3 * 45, killed=True)
    [task] = Archive(tmp_path).journals.tasks()
    assert 0 < len(task.trials) < 45


def test_nothing_left_to_do_leaves_nothing_behind(tmp_path):
    ids = {quiet(search(tmp_path, resume=True)).task_id_ for _ in range(4)}
    assert len(ids) == len(Archive(tmp_path)) == 1
    assert not [*(tmp_path / "running").iterdir()]


# -- what is the same search -----------------------------------------------------------------------


def scorer(text):
    """A function called `score`, as a notebook's cell defines it, and defines it again."""
    module = {"__name__": "notebook"}
    exec(text, module)
    return module["score"]


class Hidden:
    """A value that does not show what it holds."""

    def __init__(self, a):
        self.a = a

    def __repr__(self):
        return "Hidden()"

    def __mul__(self, other):
        return self.a * other

    def __sub__(self, other):
        return self.a - other

    def __gt__(self, other):
        return self.a > other


def raised(by):
    return lambda model, X, y: model.a + by


EDITED = {
    "a function": [
        {"scoring": scorer("def score(model, X, y): return model.a")},
        {"scoring": scorer("def score(model, X, y): return model.a - 5")},
    ],
    "a function it calls": [
        {
            "scoring": scorer(
                f"def half(a): return a / {n}\ndef score(model, X, y): return half(model.a)"
            )
        }
        for n in (2, 3)
    ],
    "a metric": [
        {"scoring": make_scorer(scorer(f"def score(y, p): return {n} * len(y)"))} for n in (1, 2)
    ],
    "a lambda": [{"scoring": lambda m, X, y: m.a + 5}, {"scoring": lambda m, X, y: m.a + 9}],
    "a closure": [{"scoring": raised(5)}, {"scoring": raised(9)}],
    "a value": [
        {"space": {"a": [Hidden(a), Hidden(0.7)], "b": loguniform(1, 2)}} for a in (0.1, 0.2)
    ],
    "a class": [
        {"estimator": type("Made", (Counted,), {"score": f})()}
        for f in (lambda *_: 1, lambda *_: 2)
    ],
}


@pytest.mark.parametrize("case", EDITED)
def test_what_was_edited_is_another_search(tmp_path, case):
    one, other = EDITED[case]
    counted = [type(params.get("estimator", Counted())) for params in (one, other)]
    quiet(search(tmp_path, **one))
    counted[0].fits = 0
    same = quiet(search(tmp_path, resume=True, **one))
    assert counted[0].fits == 0
    with pytest.warns(
        UserWarning, match="starts from the beginning.*differs in the (scoring|space|estimator)"
    ):
        edited = search(tmp_path, resume=True, **other).fit(X, y)
    assert counted[1].fits == 3 * 7
    assert not np.array_equal(
        same.cv_results_["mean_test_score"], edited.cv_results_["mean_test_score"]
    )


def test_without_its_meta_model_it_says_that_others_are_tried(tmp_path):
    """Trained from earlier weights, a model depends on what was in the cache; from nothing it is another."""
    space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 10)}

    def made(seed, n_iter=3, **params):
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
        made(seed, 4).fit(*make_classification(60, 5, random_state=200 + seed))
    data = make_classification(50, 5, random_state=9)
    before = quiet(made(0, 4), *data)
    shutil.rmtree(tmp_path / "models")
    with pytest.warns(UserWarning, match="4 trials of .* not proposed again.*model cache"):
        after = made(0, 4, resume=True).fit(*data)
    assert after.cv_results_["params"] != before.cv_results_["params"]
    assert len(Archive(tmp_path)) == 8
