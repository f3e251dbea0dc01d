"""With a kept model the first proposal of a new process rests on the index, and opens no record."""

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
from sktransfer.surrogates import DistBLR, DistGP

SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-4, 1e1)}
SURROGATES = {"dist-gp": DistGP(steps=5), "dist-blr": DistBLR(steps=5), "auto": "auto"}
N = 5


def data(seed, n=60):
    return make_classification(n, 5, n_informative=3, random_state=seed)


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.setattr(_index, "MIN_OPENED", 3)
    made, rng = Archive(tmp_path / "past"), np.random.default_rng(0)
    for seed in range(N):
        logs = rng.uniform([-3, -4], [3, 1], (12, 2))
        scores = 0.9 - 0.05 * (logs[:, 0] - 1) ** 2 - 0.05 * (logs[:, 1] + 1) ** 2
        trials = [({"C": 10**c, "gamma": 10**g}, z) for (c, g), z in zip(logs, scores, strict=True)]
        made.append(
            Task.from_trials(SPACE, trials, profile(*data(seed)), estimator=SVC(), id=f"t{seed}")
        )
    return made


@pytest.fixture
def opened(monkeypatch):
    """Names of the records that were read from the disk since the list was cleared."""
    names, read = [], _storage.read_record
    monkeypatch.setattr(
        _storage, "read_record", lambda path: (read(path), names.append(path.stem))[0]
    )
    return names


@pytest.fixture
def new_process(monkeypatch, opened):
    def forget():
        for cache in ("_known", "_written", "_settled", "_unsaved"):
            monkeypatch.setattr(_index, cache, {})
        monkeypatch.setattr(_storage, "_cache", _storage._Cache())
        opened.clear()

    forget()
    return forget


def search(archive, surrogate, seed=99, **params):
    params = {"n_iter": 1, "cv": 2, "refit": False, "random_state": 0} | params
    made = TransferSearchCV(SVC(), SPACE, archive=archive, surrogate=surrogate, **params)
    return made.fit(*data(seed))


def heard(fitted):
    return [row["id"] for row in fitted.source_tasks_ if row["excluded"] is None]


def damage(file):
    """As a disk does it: size and time stay."""
    facts, content = file.stat(), file.read_bytes()
    file.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize("name", SURROGATES)
def test_no_record_is_opened(archive, new_process, opened, name):
    first = search(archive, SURROGATES[name])
    assert len(opened) == N
    archive.remove(first.task_id_)
    new_process()
    second = search(archive, SURROGATES[name])
    assert opened == []
    assert second.cv_results_["params"] == first.cv_results_["params"]
    assert second.source_tasks_ == first.source_tasks_
    archive.remove(second.task_id_)
    new_process()
    suggest(SVC(), SPACE, *data(98), archive=archive, surrogate=SURROGATES[name], random_state=0)
    assert opened == []


def test_without_a_kept_model_they_are(archive, new_process, opened):
    archive.select()
    new_process()
    assert heard(search(archive, "warm-start")) == [f"t{n}" for n in range(N)]
    assert len(opened) == N


def test_who_shares_rows_is_refused_all_the_same(archive, new_process, opened):
    kept = search(archive, SURROGATES["dist-gp"])
    archive.remove(kept.task_id_)
    new_process()
    fitted = search(archive, SURROGATES["dist-gp"], seed=2)
    assert heard(fitted) == ["t0", "t1", "t3", "t4"]
    assert fitted.source_tasks_[-1]["excluded"] == "shares about 100 % of its rows with these data"
    assert "t2" in opened


def test_a_damaged_record_does_not_reach_a_new_model(archive, new_process):
    kept = search(archive, SURROGATES["dist-gp"])
    archive.remove(kept.task_id_)
    damage(archive.path / "tasks" / "t3.joblib")
    new_process()
    with pytest.warns(UserWarning, match=r"t3\.joblib"):
        assert heard(search(archive, SURROGATES["dist-blr"])) == ["t0", "t1", "t2", "t4"]


def test_a_damaged_record_beside_a_damaged_model(archive, new_process):
    """The model is found by what is said of it, but its arrays cannot be used: it is trained anew."""
    kept = search(archive, SURROGATES["dist-gp"])
    archive.remove(kept.task_id_)
    [model] = (archive.path / "models").iterdir()
    content = model.read_bytes()
    model.write_bytes(content.replace(b"own.readable", b"own.unread12"))
    damage(archive.path / "tasks" / "t3.joblib")
    new_process()
    with pytest.warns(UserWarning, match=r"t3\.joblib"):
        fitted = search(archive, SURROGATES["dist-gp"])
    assert heard(fitted) == ["t0", "t1", "t2", "t4"]
    assert fitted.cv_results_["origin"][0] == "model"


def test_a_search_is_taken_up_again_from_a_past_that_was_not_read(archive, new_process, opened):
    first = search(archive, SURROGATES["dist-gp"], n_iter=2, resume=True)
    new_process()
    again = search(archive, SURROGATES["dist-gp"], n_iter=4, resume=True)
    assert again.cv_results_["params"][:2] == first.cv_results_["params"]
    assert heard(again) == heard(first) == [f"t{n}" for n in range(N)]


def test_the_first_proposal_waits_for_no_second_thread(archive, monkeypatch):
    """On a machine whose cores are at work each product of matrices on two threads would."""
    n_threads = []

    def noted(function):
        def call(*args, **keywords):
            n_threads.extend(
                each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"
            )
            return function(*args, **keywords)

        return call

    monkeypatch.setattr(_sketch, "_kernel_means", noted(_sketch._kernel_means))
    monkeypatch.setattr(TransferOptimizer, "_propose_one", noted(TransferOptimizer._propose_one))
    with threadpool_limits(2, user_api="blas"):
        search(archive, "auto")
        assert {
            each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"
        } == {2}
    assert set(n_threads) == {1}
