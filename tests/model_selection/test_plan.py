"""`SearchPlan`: the validated parameters of a search, and the functions that parse them."""

import errno
import gc
import math
import os
import weakref
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.model_selection import ParameterGrid
from sklearn.svm import SVC

from sktransfer import Archive, Space, TransferSearchCV, suggest_space
from sktransfer.exceptions import ArchiveWarning
from sktransfer.model_selection._plan import (
    MIN_WORKER_USE,
    SearchPlan,
    default_batch_size,
    open_archive,
    parse_space,
)
from sktransfer.surrogates import WarmStart

SPACE = {"C": loguniform(1e-2, 1e2)}
GRID = {"C": [10, 0.1, 1], "kernel": ["rbf", "linear"]}


def make_search(space=SPACE, **params):
    return TransferSearchCV(SVC(), space, **({"archive": None, "random_state": 0} | params))


def make_plan(space=SPACE, **params):
    return SearchPlan.from_search(make_search(space, **params), n_splits=3)


# -- from_search -----------------------------------------------------------------------------------


def test_plan_is_frozen():
    with pytest.raises(FrozenInstanceError):
        make_plan().n_iter = 3


def test_plan_does_not_keep_the_search():
    search = make_search()
    plan = SearchPlan.from_search(search, n_splits=3)
    reference = weakref.ref(search)
    del search
    gc.collect()
    assert reference() is None
    assert plan.n_iter == 25 and plan.n_splits == 3


def test_plan_is_independent_of_later_changes_of_the_search():
    search = make_search(n_iter=7)
    plan = SearchPlan.from_search(search, n_splits=3)
    search.set_params(n_iter=9, space=GRID, surrogate="random", resume=True)
    assert (plan.n_iter, plan.grid, plan.resume) == (7, None, False)
    assert plan.space.names == ["C"]
    assert plan.uses_past_tasks


@pytest.mark.parametrize("n_iter", [6, 7, 1000])
def test_grid_within_the_budget_has_no_model(n_iter):
    plan = make_plan(GRID, n_iter=n_iter)
    assert plan.grid == list(ParameterGrid(GRID))
    assert plan.n_iter == 6
    assert plan.model is None and plan.seed is None and not plan.uses_past_tasks


def test_grid_beyond_the_budget_has_a_model():
    plan = make_plan(GRID, n_iter=5)
    assert plan.grid is None and plan.n_iter == 5
    assert plan.model is not None and plan.seed is not None


@pytest.mark.parametrize(
    ("surrogate", "uses_past_tasks"), [("auto", True), ("gp", False), ("random", False)]
)
def test_plan_knows_whether_the_surrogate_uses_past_tasks(surrogate, uses_past_tasks):
    assert make_plan(surrogate=surrogate).uses_past_tasks is uses_past_tasks


def test_model_is_a_copy_of_the_users_surrogate():
    surrogate = WarmStart(n_tasks=3)
    plan = make_plan(surrogate=surrogate)
    assert plan.surrogate is surrogate
    assert plan.model is not surrogate and plan.model.get_params() == surrogate.get_params()


def test_same_random_state_gives_same_seed():
    seeds = [make_plan(random_state=state).seed for state in (0, np.int64(0), 1)]
    assert seeds[0] == seeds[1] != seeds[2]
    assert make_plan(random_state=np.random.RandomState(0)).seed == seeds[0]


def test_fixed_seed_is_what_the_user_fixed():
    assert make_plan(random_state=4).fixed_seed == 4
    assert make_plan(random_state=None).fixed_seed is None
    plan = make_plan(random_state=np.random.RandomState(4))
    assert plan.fixed_seed == plan.seed == make_plan(random_state=4).seed


def test_grid_does_not_advance_the_random_state():
    state = np.random.RandomState(0)
    make_plan(GRID, random_state=state)
    assert state.randint(1000) == np.random.RandomState(0).randint(1000)


def test_number_of_workers_is_that_of_joblib():
    assert make_plan(n_jobs=None).n_workers == 1
    assert make_plan(n_jobs=2).n_workers == 2
    assert make_plan(n_jobs=-1).n_workers >= 1


def test_metrics_are_names_of_the_optimized_metric():
    assert make_plan().metrics == ("accuracy", "score")
    plan = make_plan(scoring=["f1_macro", "neg_log_loss"], refit="neg_log_loss")
    assert plan.metrics == ("neg_log_loss",)


@pytest.mark.parametrize("space", [SPACE, GRID], ids=["space", "grid"])
def test_unknown_surrogate_raises_error(space):
    with pytest.raises(ValueError, match="gpp"):
        make_plan(space, surrogate="gpp")


class CheckedSurrogate(WarmStart):
    def check_params(self):
        if self.n_tasks < 1:
            raise ValueError(f"n_tasks={self.n_tasks} must be at least 1.")


def test_invalid_parameter_of_surrogate_raises_error():
    assert make_plan(surrogate=CheckedSurrogate(n_tasks=1)).model is not None
    with pytest.raises(ValueError, match="n_tasks=0"):
        make_plan(surrogate=CheckedSurrogate(n_tasks=0))


def test_resume_without_archive_raises_error():
    with pytest.raises(ValueError, match="resume=True needs an archive"):
        make_plan(resume=True)


# -- parse_space -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "space",
    [
        {"C": []},
        {"C": 3},
        {"C": np.ones((2, 2))},
        {"C": "rbf"},
        [{"C": [1]}, {"C": 3}],
        [{"C": [1]}, 3],
    ],
    ids=["empty", "scalar", "2d", "string", "second branch", "no dict"],
)
def test_invalid_grid_raises_error_of_parameter_grid(space):
    with pytest.raises((TypeError, ValueError)) as expected:
        ParameterGrid(space)
    with pytest.raises(type(expected.value)) as caught:
        parse_space(space, SVC())
    assert str(caught.value) == str(expected.value)


def test_auto_space_is_that_of_suggest_space(monkeypatch):
    monkeypatch.delenv("SKTRANSFER_STARTER")
    parsed = parse_space("auto", SVC())
    assert parsed.describe() == Space.parse(suggest_space(SVC()), SVC()).describe()


def test_unknown_parameter_raises_error_that_suggests_a_name():
    with pytest.raises(ValueError, match=r"gama.*gamma"):
        parse_space({"gama": [1]}, SVC())


@pytest.mark.parametrize("space", [SPACE, GRID, [GRID, SPACE]], ids=["dict", "grid", "list"])
def test_space_is_parsed_once(space):
    parsed = parse_space(space, SVC())
    assert parsed.describe() == Space.parse(space, SVC()).describe()
    assert parse_space(parsed, SVC()).describe() == parsed.describe()


# -- open_archive ----------------------------------------------------------------------------------


def test_no_archive_is_none():
    assert open_archive(None) is None


def test_relative_path_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert os.fspath(open_archive("past").path) == str(tmp_path / "past")
    given = Archive("past", keep="sample", readonly=True)
    opened = open_archive(given)
    assert os.fspath(opened.path) == str(tmp_path / "past")
    assert opened.keep == "sample" and opened.readonly
    assert given == Archive("past", keep="sample", readonly=True)  # the user's is unchanged
    assert not (tmp_path / "past").exists()


@pytest.mark.parametrize("path", ["auto", "~/past"])
def test_special_path_is_that_of_the_start(path, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SKTRANSFER_ARCHIVE", str(tmp_path / "past"))
    opened = open_archive(Archive(path))
    monkeypatch.setenv("HOME", "/elsewhere")
    monkeypatch.setenv("SKTRANSFER_ARCHIVE", "/elsewhere")
    assert opened.path == tmp_path / "past"


def test_file_as_archive_raises_error_that_names_the_parameter(tmp_path):
    path = tmp_path / "file"
    path.write_text("text")
    with pytest.raises(NotADirectoryError, match=r"archive=.*file.*Pass a directory"):
        open_archive(path)


@pytest.mark.parametrize(
    "error", [PermissionError("denied"), RuntimeError("no home"), MemoryError()], ids=repr
)
def test_unreadable_archive_gives_a_warning_and_none(tmp_path, monkeypatch, error):
    def fail(*args):
        raise error

    monkeypatch.setattr(Archive, "__len__", fail)
    with pytest.warns(ArchiveWarning, match=r"out of reach .*continues without an archive"):
        assert open_archive(tmp_path) is None


@pytest.mark.parametrize("code", [errno.ENOTDIR, errno.EIO])
def test_path_that_cannot_be_asked_is_no_mistake_of_the_user(tmp_path, monkeypatch, code):
    (tmp_path / "tasks").mkdir()

    def fail(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "listdir", fail)
    monkeypatch.setattr(os, "stat", fail)
    with pytest.warns(ArchiveWarning, match="out of reach"):
        assert open_archive(tmp_path) is None


@pytest.mark.parametrize("option", ["keep", "overlap"])
def test_invalid_option_of_archive_raises_error(tmp_path, option):
    with pytest.raises(ValueError, match="nonsense"):
        open_archive(Archive(tmp_path, **{option: "nonsense"}))


# -- default_batch_size ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_splits", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("n_workers", [1, 2, 3, 4, 7, 8, 16, 64])
def test_batch_size_is_the_smallest_that_keeps_workers_busy(n_workers, n_splits):
    def use(batch_size):
        n_fits = batch_size * n_splits
        return n_fits / (math.ceil(n_fits / n_workers) * n_workers)

    size = default_batch_size(n_workers, n_splits)
    assert 1 <= size <= n_workers and use(size) >= MIN_WORKER_USE
    assert all(use(smaller) < MIN_WORKER_USE for smaller in range(1, size))


def test_batch_size_is_defined_without_splits():
    assert default_batch_size(4, 0) == 4
