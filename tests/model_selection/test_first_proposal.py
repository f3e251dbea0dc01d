"""With a cached model, the first proposal of a new process reads the index and opens no record."""

import os

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from sktransfer import Archive, Task, TransferOptimizer, TransferSearchCV, profile, suggest
from sktransfer.archive import _index, _storage
from sktransfer.dataset import _sketch
from sktransfer.exceptions import ArchiveWarning
from sktransfer.surrogates import DistBLR, DistGP

SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}
SURROGATES = {"dist-gp": DistGP(steps=5), "dist-blr": DistBLR(steps=5), "auto": "auto"}
N_TASKS = 5


def make_data(seed, n=60):
    return make_classification(n, 5, n_informative=3, random_state=seed)


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.setattr(_index, "MIN_OPENED", 3)
    archive, rng = Archive(tmp_path / "past"), np.random.default_rng(0)
    for seed in range(N_TASKS):
        logs = rng.uniform([-3, -4], [3, 1], (12, 2))
        scores = 0.9 - 0.05 * (logs[:, 0] - 1) ** 2 - 0.05 * (logs[:, 1] + 1) ** 2
        trials = [({"C": 10**c, "gamma": 10**g}, z) for (c, g), z in zip(logs, scores, strict=True)]
        archive.append(
            Task.from_trials(
                SPACE, trials, profile(*make_data(seed)), estimator=SVC(), id=f"t{seed}"
            )
        )
    return archive


@pytest.fixture
def opened(monkeypatch):
    """Names of the records that were read from disk since the list was cleared."""
    names, read = [], _storage.read_record
    monkeypatch.setattr(
        _storage, "read_record", lambda path: (read(path), names.append(path.stem))[0]
    )
    return names


@pytest.fixture
def new_process(monkeypatch, opened):
    """Call it to clear the caches in memory, as a new process would have them."""

    def clear_caches():
        for cache in ("_known", "_written", "_settled", "_unsaved"):
            monkeypatch.setattr(_index, cache, {})
        monkeypatch.setattr(_storage, "_cache", _storage._Cache())
        opened.clear()

    clear_caches()
    return clear_caches


def fit_search(archive, surrogate, seed=99, **params):
    params = {"n_iter": 1, "cv": 2, "refit": False, "random_state": 0} | params
    search = TransferSearchCV(SVC(), SPACE, archive=archive, surrogate=surrogate, **params)
    return search.fit(*make_data(seed))


def used_ids(fitted):
    return sorted(row["id"] for row in fitted.source_tasks_ if row["excluded"] is None)


def damage(file):
    """Flip a bit as a faulty disk does: size and modification time stay."""
    facts, content = file.stat(), file.read_bytes()
    file.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize("name", SURROGATES)
def test_cached_model_makes_first_proposal_without_opening_records(
    archive, new_process, opened, name
):
    first = fit_search(archive, SURROGATES[name])
    assert len(opened) == N_TASKS
    archive.remove(first.task_id_)
    new_process()
    second = fit_search(archive, SURROGATES[name])
    assert opened == []
    assert second.cv_results_["params"] == first.cv_results_["params"]
    assert second.source_tasks_ == first.source_tasks_
    archive.remove(second.task_id_)
    new_process()
    suggest(
        SVC(), SPACE, *make_data(98), archive=archive, surrogate=SURROGATES[name], random_state=0
    )
    assert opened == []


def test_records_are_opened_without_a_cached_model(archive, new_process, opened):
    archive.select()
    new_process()
    assert used_ids(fit_search(archive, "warm-start")) == [f"t{n}" for n in range(N_TASKS)]
    assert len(opened) == N_TASKS


def test_past_task_with_shared_rows_is_excluded_despite_cached_model(archive, new_process, opened):
    first = fit_search(archive, SURROGATES["dist-gp"])
    archive.remove(first.task_id_)
    new_process()
    fitted = fit_search(archive, SURROGATES["dist-gp"], seed=2)
    assert used_ids(fitted) == ["t0", "t1", "t3", "t4"]
    assert fitted.source_tasks_[-1]["excluded"] == "shares about 100 % of its rows with these data"
    assert "t2" in opened


def test_damaged_record_is_excluded_from_training(archive, new_process):
    first = fit_search(archive, SURROGATES["dist-gp"])
    archive.remove(first.task_id_)
    damage(archive.path / "tasks" / "t3.joblib")
    new_process()
    with pytest.warns(ArchiveWarning, match=r"t3\.joblib"):
        assert used_ids(fit_search(archive, SURROGATES["dist-blr"])) == ["t0", "t1", "t2", "t4"]


def test_damaged_record_is_excluded_if_cached_model_is_damaged_too(archive, new_process):
    """The cached model is found by its key, but its arrays cannot be used. It is trained again."""
    first = fit_search(archive, SURROGATES["dist-gp"])
    archive.remove(first.task_id_)
    [model] = (archive.path / "models").iterdir()
    content = model.read_bytes()
    model.write_bytes(content.replace(b"past.owner", b"past.other"))
    damage(archive.path / "tasks" / "t3.joblib")
    new_process()
    with pytest.warns(ArchiveWarning, match=r"t3\.joblib"):
        fitted = fit_search(archive, SURROGATES["dist-gp"])
    assert used_ids(fitted) == ["t0", "t1", "t2", "t4"]
    assert fitted.cv_results_["origin"][0] == "model"


def test_resumed_search_uses_past_tasks_that_were_not_opened(archive, new_process, opened):
    first = fit_search(archive, SURROGATES["dist-gp"], n_iter=2, resume=True)
    new_process()
    resumed = fit_search(archive, SURROGATES["dist-gp"], n_iter=4, resume=True)
    assert resumed.cv_results_["params"][:2] == first.cv_results_["params"]
    assert used_ids(resumed) == used_ids(first) == [f"t{n}" for n in range(N_TASKS)]


def test_first_proposal_uses_one_blas_thread(archive, monkeypatch):
    """On a busy machine, every matrix product on two threads would wait for the second one."""
    n_threads = []

    def note_threads(function):
        def call(*args, **keywords):
            n_threads.extend(
                each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"
            )
            return function(*args, **keywords)

        return call

    monkeypatch.setattr(_sketch, "_kernel_means", note_threads(_sketch._kernel_means))
    monkeypatch.setattr(
        TransferOptimizer, "_propose_one", note_threads(TransferOptimizer._propose_one)
    )
    with threadpool_limits(2, user_api="blas"):
        fit_search(archive, "auto")
        assert {
            each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"
        } == {2}
    assert set(n_threads) == {1}
