"""Fits on threads, processes and clusters: results as they come, workers that die, bad input."""

import os
import pickle
import threading
import time
import warnings
from concurrent.futures import Future
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ParallelBackendBase
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.exceptions import ResumeWarning, WorkersLostError
from sktransfer.model_selection._pickling import find_unpicklable
from sktransfer.model_selection._workers import Workers

X = np.random.default_rng(0).normal(size=(40, 2))
y = np.arange(40) % 2
RANGE = {"a": uniform(0, 1)}
SPACE = {"C": uniform(0.1, 10)}


class Model(ClassifierMixin, BaseEstimator):
    """Its score is best at a=0.3. Above `dies_above` it ends its process, as long as the file
    `alive` exists, and removes it."""

    def __init__(self, a=0.5, dies_above=1.0, alive=None, seconds=0.0):
        self.a, self.dies_above, self.alive, self.seconds = a, dies_above, alive, seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        if self.a > self.dies_above and (self.alive is None or os.path.exists(self.alive)):
            if self.alive is not None:
                os.remove(self.alive)
            os._exit(1)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.resize(self.classes_, len(X))

    def score(self, X, y):
        return -abs(self.a - 0.3)


needs_single_results = pytest.mark.skipif(
    not hasattr(ParallelBackendBase, "submit"),
    reason="backends of joblib before 1.5 do not hand back single results",
)


def make_search(space=RANGE, estimator=None, **params):
    params = {"cv": KFold(2), "archive": None, "refit": False, "surrogate": "random"} | params
    return TransferSearchCV(estimator or Model(), space, **{"n_iter": 6} | params)


# -- a backend whose workers are told when to die --------------------------------------------------


class TerminatedWorkerError(Exception):
    """Has the name of the error that loky raises."""


class FakeBackend:
    """Does tasks at once, or fails as a pool whose worker died: all tasks since are lost."""

    supports_retrieve_callback, uses_threads = True, True

    def __init__(self, n_deaths):
        self.n_deaths = n_deaths  # by the text of a task
        self.n_restarts, self.is_broken = 0, False

    def start_call(self):
        pass

    stop_call = start_call

    def get_nested_backend(self):
        return None, 1

    def submit(self, call, callback):
        [(_, args, _)] = call.items
        if self.n_deaths.get(args[0], 0) > 0 and not self.is_broken:
            self.n_deaths[args[0]] -= 1
            self.is_broken = True
        future = Future()
        if self.is_broken:
            future.set_exception(TerminatedWorkerError("A worker died."))
        else:
            future.set_result([{"text": args[0]}])
        callback(future)
        return future

    def retrieve_result_callback(self, future):
        return future.result()

    def abort_everything(self, ensure_ready=True):
        self.n_restarts += 1
        self.is_broken = False


def run_tasks(texts, **n_deaths):
    backend = FakeBackend(n_deaths)
    workers = Workers(SimpleNamespace(_backend=backend))
    keywords = {"error_score": np.nan, "scorer": None, "return_train_score": False, "test": []}
    with workers.open():
        for text in texts:
            workers.submit(text, [(str, (text,), keywords)])
        found = [workers.next_result() for _ in texts]
    return dict(found), backend


def test_task_of_a_dead_worker_is_tried_again():
    found, backend = run_tasks("abcd", b=1)
    assert {key: rows[0]["text"] for key, rows in found.items()} == {key: key for key in "abcd"}
    assert backend.n_restarts == 1


def test_task_that_kills_its_worker_twice_has_failed_and_others_have_not():
    found, backend = run_tasks("abcd", b=2)
    assert "TerminatedWorkerError" in found["b"][0]["fit_error"]
    assert [found[key][0]["text"] for key in "acd"] == ["a", "c", "d"]
    assert backend.n_restarts == 2


def test_backend_without_callbacks_is_not_used():
    assert not Workers.can_use(SimpleNamespace(_backend=SimpleNamespace()))
    assert not Workers.can_use(lambda fits: [])
    assert Workers.can_use(SimpleNamespace(_backend=FakeBackend({})))


# -- threads ---------------------------------------------------------------------------------------


@pytest.fixture
def threads():
    with joblib.parallel_config(backend="threading", n_jobs=3):
        yield


@needs_single_results
def test_slow_candidate_does_not_hold_up_the_others(threads):
    """The first candidate ends when the last but one has ended."""
    n_done, all_but_one = [0], threading.Event()

    class Waiting(Model):
        def fit(self, X, y):
            if self.a == 0.9:
                assert all_but_one.wait(30)
            else:
                n_done[0] += 1
                if n_done[0] == 5:
                    all_but_one.set()
            return super().fit(X, y)

    grid = {"a": uniform(0, 1)}
    search = make_search(grid, Waiting(), initial={"a": 0.9}, cv=[(range(20), range(20, 40))])
    results = search.fit(X, y).cv_results_
    place = results["params"].index({"a": 0.9})  # it may end just before the last one
    assert place >= 4 and results["origin"][place] == "initial"
    assert sorted(results["origin"]) == ["initial"] + ["random"] * 5


def test_results_do_not_depend_on_workers_under_a_seed(threads):
    found = [
        make_search(random_state=0, batch_size=2, surrogate="gp", n_iter=8).fit(X, y)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*(search.cv_results_["param_a"] for search in found))


def test_one_worker_has_the_sequence_of_a_sequential_search():
    found = [
        make_search(random_state=0, n_jobs=n_jobs, batch_size=batch_size, n_iter=5).fit(X, y)
        for n_jobs, batch_size in ((None, None), (1, "async"), (2, 1))
    ]
    for search in found[1:]:
        np.testing.assert_array_equal(
            search.cv_results_["param_a"], found[0].cv_results_["param_a"]
        )


def test_async_search_is_resumed(threads, tmp_path):
    first = make_search(batch_size="async", archive=tmp_path, n_iter=4).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = make_search(batch_size="async", archive=tmp_path, n_iter=7, resume=True)
        second.fit(X, y)
    known = {params["a"] for params in first.cv_results_["params"]}
    assert known < {params["a"] for params in second.cv_results_["params"]}
    assert len(second.cv_results_["params"]) == 7


def test_async_race_gives_the_best_all_folds(threads):
    search = make_search(batch_size="async", racing=True, n_iter=12, cv=KFold(4)).fit(X, y)
    folds = search.cv_results_["n_folds_evaluated"]
    assert folds[search.best_index_] == 4 and folds.sum() < 48


@needs_single_results
def test_cluster_that_goes_away_leaves_the_results_so_far(threads, tmp_path, monkeypatch):
    n_left = [5]

    def next_result(self):
        n_left[0] -= 1
        if n_left[0] < 0:
            raise WorkersLostError("The dask cluster is gone.")
        return original(self)

    original = Workers.next_result
    with monkeypatch.context() as patch:
        patch.setattr(Workers, "next_result", next_result)
        with pytest.warns(
            ResumeWarning, match="gone. The search ends after [23] of 6 .*resume=True"
        ):
            search = make_search(random_state=0, batch_size=2, archive=tmp_path).fit(X, y)
    assert len(search.cv_results_["params"]) in (2, 3) and "a" in search.best_params_
    assert not Archive(tmp_path)[search.task_id_].complete
    resumed = make_search(random_state=0, batch_size=2, archive=tmp_path, resume=True).fit(X, y)
    whole = make_search(random_state=0, batch_size=2).fit(X, y)
    np.testing.assert_array_equal(resumed.cv_results_["param_a"], whole.cv_results_["param_a"])


@needs_single_results
def test_cluster_that_is_gone_at_once_raises_error(threads, monkeypatch):
    def next_result(self):
        raise WorkersLostError("The dask cluster is gone.")

    monkeypatch.setattr(Workers, "next_result", next_result)
    with pytest.raises(WorkersLostError, match="gone"):
        make_search(random_state=0).fit(X, y)


# -- processes -------------------------------------------------------------------------------------


class Holder(Model):
    def __init__(self, a=0.5, options=None):
        super().__init__(a)
        self.options = options


@needs_single_results
def test_error_names_the_attribute_that_cannot_be_pickled():
    class Locked(Model):
        def __sklearn_clone__(self):
            return self

    model = Locked()
    model.cache = {"lock": threading.Lock()}
    search = make_search(estimator=model, n_jobs=2)
    with pytest.raises(pickle.PicklingError, match=r"estimator.cache\['lock'\] is a lock"):
        search.fit(X, y)


def test_innermost_part_is_found():
    lock = threading.Lock()
    assert find_unpicklable(SVC(), "estimator") is None
    assert find_unpicklable([1, {"b": (2, lock)}], "x") == ("x[1]['b'][1]", lock)


def test_backend_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray.util.joblib.ray_backend", None)
    with pytest.raises(ImportError, match="pip install ray"):
        joblib.parallel_config(backend="ray")


@needs_single_results
def test_dead_process_costs_nothing_but_a_second_try(tmp_path):
    """One fit ends its process. It is tried again, and all candidates have their scores."""
    alive = tmp_path / "alive"
    alive.touch()
    model = Model(dies_above=0.8, alive=str(alive))
    search = make_search({"a": [0.1, 0.9, 0.2]}, model, n_iter=3, n_jobs=2).fit(X, y)
    assert not alive.exists()
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], [-0.2, -0.6, -0.1])


# -- dask ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_search_on_a_dask_cluster_is_that_of_a_local_one(client):
    expected = make_search(SPACE, SVC(), random_state=0, batch_size=2, surrogate="gp").fit(X, y)
    with joblib.parallel_config(backend="dask"):
        found = make_search(SPACE, SVC(), random_state=0, batch_size=2, surrogate="gp").fit(X, y)
    for key in ("param_C", "mean_test_score"):
        np.testing.assert_array_equal(found.cv_results_[key], expected.cv_results_[key])


@needs_single_results
def test_data_are_sent_to_a_dask_cluster_once(client, monkeypatch):
    n_scattered = []
    scatter = type(client).scatter

    def note(self, data, *args, **keywords):
        if isinstance(data, list):
            n_scattered.append(sum(each is X or each is y for each in data))
        return scatter(self, data, *args, **keywords)

    monkeypatch.setattr(type(client), "scatter", note)
    with joblib.parallel_config(backend="dask") as config:
        make_search(SPACE, SVC(), random_state=0, batch_size=1, n_iter=4).fit(X, y)
        assert n_scattered == [2]
        assert not config["backend"].data_futures  # other data may have the same identity later


def test_killed_dask_worker_loses_no_candidate(client):
    pids = client.run(os.getpid)
    killed = threading.Timer(0.3, os.kill, (min(pids.values()), 9))
    killed.start()
    with joblib.parallel_config(backend="dask"):
        search = make_search(estimator=Model(seconds=0.1), n_iter=6).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.cv_results_["params"]) == 6


def test_example_runs_on_a_dask_cluster():
    pytest.importorskip("distributed")
    from examples.cluster_dask import main

    search = main(n_workers=2, n_iter=3)
    assert len(search.cv_results_["params"]) == 3 and search.best_score_ > 0.3
