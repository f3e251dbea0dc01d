"""The index: `select` opens only records that matter, and never uses a stale entry."""

import contextlib
import copy
import os
import pickle
import shutil
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from sktransfer.archive import Archive, RecordError, _index, _lazy_task, _storage
from sktransfer.archive._lazy_task import LazyTask
from sktransfer.archive._record import task_to_record
from sktransfer.dataset import profile
from sktransfer.exceptions import ArchiveWarning
from sktransfer.space import Space
from sktransfer.utils._values import identity

SPACE = Space.parse({"C": [1.0, 10.0]}, SVC())


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(_index, "MIN_OPENED", 3)
    monkeypatch.setattr(_index, "MIN_WRITTEN", 3)
    forget(monkeypatch)


def forget(monkeypatch):
    """Behave like a new process, which has read nothing yet."""
    monkeypatch.setattr(_index, "_known", {})
    monkeypatch.setattr(_index, "_written", {})
    monkeypatch.setattr(_index, "_settled", {})
    monkeypatch.setattr(_index, "_unsaved", {})
    monkeypatch.setattr(_storage, "_cache", _storage._Cache())


@pytest.fixture
def mixed(archive, make_task, monkeypatch):
    options = {"estimator": SVC(), "profile": profile([[7.0], [8.0]])}
    for n in range(3):
        archive.append(make_task(id=f"svc-{n}", **options))
        archive.append(
            make_task({"alpha": [1, 2]}, [({"alpha": 1}, 0.5)], id=f"ridge-{n}", estimator=Ridge())
        )
    archive.append(make_task(id="failed", trials=[({"C": 1.0}, float("nan"))], **options))
    shutil.rmtree(archive.path / "index")  # as if each record had been written by another process
    forget(monkeypatch)
    return archive


def opened(monkeypatch):
    """Names of the records that are read from disk from now on."""
    names, read = [], _storage.read_record

    def noted(path):
        found = read(path)
        names.append(path.stem)
        return found

    monkeypatch.setattr(_storage, "read_record", noted)
    return names


def test_append_of_many_records_writes_index(archive, make_task, monkeypatch):
    for n in range(7):
        archive.append(make_task(id=f"svc-{n}", estimator=SVC()))
    parts = list((archive.path / "index").iterdir())
    assert len(parts) == 2  # of three records each
    forget(monkeypatch)
    names = opened(monkeypatch)
    assert len(archive.select(SPACE).used) == 7
    assert names == ["svc-6"]
    forget(monkeypatch)
    monkeypatch.setattr(_index, "MAX_PARTS", 1)
    archive.select(SPACE)
    assert [file.name for file in (archive.path / "index").iterdir()] == ["entries.joblib"]
    forget(monkeypatch)
    names.clear()
    assert len(archive.select(SPACE, profile([[1.0], [2.0], [3.0]])).used) == 7
    assert names == [], "those without a profile cannot share rows"


def test_select_does_not_list_unchanged_folder(mixed, make_task, monkeypatch):
    long_ago = 10**18
    os.utime(mixed.path / "tasks", ns=(long_ago, long_ago))
    before = mixed.select(SPACE)
    with monkeypatch.context() as patch:
        patch.setattr(_index, "_list_records", lambda tasks: pytest.fail("it was listed"))
        assert mixed.select(SPACE) == before
    mixed.append(make_task(id="new", estimator=SVC()))
    assert len(mixed.select(SPACE).used) == len(before.used) + 1


def test_select_warns_of_invalid_file_each_time(mixed):
    (mixed.path / "tasks" / "bad.joblib").write_bytes(b"nonsense")
    os.utime(mixed.path / "tasks", ns=(10**18, 10**18))
    for _ in range(2):
        with pytest.warns(ArchiveWarning, match=r"bad\.joblib"):
            mixed.select(SPACE)


def test_select_does_not_read_record_just_written(archive, make_task, monkeypatch):
    archive.select(SPACE)
    names = opened(monkeypatch)
    archive.append(make_task(id="new", estimator=SVC()))
    assert [task.id for task in archive.select(SPACE).used] == ["new"]
    assert names == []


def test_selection_is_the_same_with_and_without_index(mixed, monkeypatch):
    for target in (None, profile([[1.0], [2.0], [3.0]])):
        without = mixed.select(SPACE, target)
        assert (mixed.path / "index" / "entries.joblib").exists()
        forget(monkeypatch)
        assert mixed.select(SPACE, target) == without
        assert [task.id for task in without.used] == ["svc-0", "svc-1", "svc-2"]
        assert {task.id: reason for task, reason in without.excluded} == {
            "failed": "no successful trial",
            **{f"ridge-{n}": "another estimator: Ridge" for n in range(3)},
        }


def test_select_reads_no_unrelated_record(mixed, monkeypatch):
    mixed.select(SPACE, profile([[5.0], [6.0]]))
    forget(monkeypatch)
    names = opened(monkeypatch)
    selection = mixed.select(SPACE, profile([[1.0], [2.0]]))
    assert [task.id for task in selection.used] == ["svc-0", "svc-1", "svc-2"]
    assert [task.n_trials for task, _ in selection.excluded] == [1, 1, 1, 1]
    assert names == []
    assert selection.excluded[-1][0].trials[0].params == {"alpha": 1}
    assert names == ["ridge-2"]


def test_select_reads_only_records_that_may_share_rows(mixed, make_task, monkeypatch):
    mixed.append(make_task(id="other", estimator=SVC(), profile=profile([[1.0], [2.0]])))
    mixed.select(SPACE, profile([[5.0], [6.0]]))
    forget(monkeypatch)
    names = opened(monkeypatch)
    selection = mixed.select(SPACE, profile([[8.0], [9.0]]))
    assert [task.id for task in selection.used] == ["other"]
    assert names == ["svc-0", "svc-1", "svc-2"]
    reasons = {task.id: reason for task, reason in selection.excluded}
    assert reasons["svc-1"] == "shares about 50 % of its rows with these data"


X = np.random.default_rng(0).normal(size=(60, 4))
ROUND = X.astype(int).astype(float)  # rows that are equal in another order of columns
SEEN = {
    "rows": profile(X),
    "few of more": profile(np.vstack([X[:3], X + 1])),
    "around": profile(X[:30] * 2, enclosing=[X]),
    "whole numbers": profile(ROUND),
    "many": profile(np.random.default_rng(1).normal(size=(3000, 4))),
    "text": profile(["to be", "or not", "to be or not to be"]),
    "kernel": profile(X @ X.T),
    "unrelated": profile(X - 5),
}
TARGETS = SEEN | {
    "scaled": profile((X - X.mean(axis=0)) / X.std(axis=0)),
    "two columns, rescaled": profile(X[:, [3, 1]] / 7 - 3),
    "columns in another order": profile(ROUND[:, ::-1]),
    "some": profile(X[:5]),
    "some of many": profile(np.random.default_rng(1).normal(size=(3000, 4))[500:700]),
    "a part": profile(X[30:] * 3, enclosing=[X * 2]),
    "part of the kernel": profile((X @ X.T)[:20, :20]),
    "objects": profile([object(), object()]),
}


@pytest.mark.parametrize("overlap", ["exclude", "allow", 0.0, 0.3, 1.0])
def test_overlap_rule_is_the_same_with_and_without_row_hashes(
    archive, make_task, monkeypatch, overlap
):
    for n, seen in enumerate(SEEN.values()):
        archive.append(make_task(id=f"task-{n}", estimator=SVC(), profile=seen))
    shutil.rmtree(archive.path / "index")
    forget(monkeypatch)
    archive.select(SPACE, SEEN["unrelated"])  # rewrites the index, with all records
    n_opened, names = 0, opened(monkeypatch)
    for target in [*TARGETS.values(), [SEEN["rows"], SEEN["many"]]]:
        chosen = []
        for function in (_lazy_task.surely_disjoint, lambda *_: False):
            forget(monkeypatch)
            names.clear()
            with monkeypatch.context() as patch:
                patch.setattr(_lazy_task, "surely_disjoint", function)
                found = archive.select(SPACE, target, overlap=overlap)
            n_opened += len(names) if function is _lazy_task.surely_disjoint else 0
            excluded = [(task.id, reason) for task, reason in found.excluded]
            chosen.append(([task.id for task in found.used], excluded))
        assert chosen[0] == chosen[1]
    assert n_opened < (1 if overlap == "allow" else len(SEEN) * len(TARGETS) / 2)


def test_select_reads_records_of_other_keys_once(archive, make_task, monkeypatch):
    """The index says that their rows cannot be compared."""
    for n in range(20):
        seen = {**profile([[7.0], [8.0]]).to_dict(), "key": "0123456789abcdef"}
        archive.append(make_task(id=f"task-{n}", estimator=SVC(), profile=seen))
    archive.append(make_task(id="own", estimator=SVC(), profile=profile([[5.0], [6.0]])))
    shutil.rmtree(archive.path / "index", ignore_errors=True)
    names = opened(monkeypatch)
    for n_opened in (21, 0):
        forget(monkeypatch)
        names.clear()
        selection = archive.select(SPACE, profile([[1.0], [2.0]]))
        assert Counter(selection.overlap.values()) == {"unknown": 20, "none": 1}
        assert len(set(names)) == n_opened


def test_index_keeps_hashes_of_newest_records(mixed, monkeypatch):
    target = profile([[1.0], [2.0]])
    mixed.select(SPACE, target)
    [size] = {
        len(entry.row_hashes) for _, entry in _index.read_entries(mixed.path) if entry.row_hashes
    }
    monkeypatch.setattr(_index, "MAX_HASH_BYTES", 2 * size)
    (mixed.path / "index" / "entries.joblib").unlink()
    forget(monkeypatch)
    mixed.select(SPACE, target)
    before = (mixed.path / "index" / "entries.joblib").stat()
    names = opened(monkeypatch)
    for _ in range(2):
        forget(monkeypatch)
        names.clear()
        assert len(mixed.select(SPACE, target).used) == 3
        assert names == ["svc-0"]
    assert (mixed.path / "index" / "entries.joblib").stat().st_mtime_ns == before.st_mtime_ns


def test_large_index_is_written_to_several_files(archive, make_task, monkeypatch):
    monkeypatch.setattr(_index, "MAX_ENTRIES", 8)
    for n in range(20):
        archive.append(make_task(id=f"task-{n:02}", estimator=SVC()))
    shutil.rmtree(archive.path / "index", ignore_errors=True)
    forget(monkeypatch)
    archive.select(SPACE)
    names = sorted(os.listdir(archive.path / "index"))
    assert names == ["entries-1.joblib", "entries-2.joblib", "entries.joblib"]
    forget(monkeypatch)
    read = opened(monkeypatch)
    assert len(archive.select(SPACE).used) == 20 and not read


def test_first_reader_adds_row_hashes(archive, make_task, monkeypatch):
    for n in range(6):
        archive.append(make_task(id=f"svc-{n}", estimator=SVC(), profile=profile([[7.0], [8.0]])))
    names = opened(monkeypatch)
    for expected in (6, 0):
        forget(monkeypatch)
        names.clear()
        archive.select(SPACE, profile([[1.0], [2.0]]))
        assert len(names) == expected


def test_select_skips_damaged_record_when_it_is_read(mixed, monkeypatch):
    """Its size and time are unchanged."""
    mixed.select(SPACE, profile([[5.0], [6.0]]))
    file = mixed.path / "tasks" / "svc-1.joblib"
    status, data = file.stat(), file.read_bytes()
    file.write_bytes(data[:300] + bytes([data[300] ^ 1]) + data[301:])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    for target, used in (([[1.0], [2.0]], ["svc-0", "svc-2"]), ([[7.0], [9.0]], [])):
        forget(monkeypatch)
        with pytest.warns(ArchiveWarning, match=r"svc-1\.joblib"):
            assert [task.id for task in mixed.select(SPACE, profile(target)).loaded().used] == used


def test_select_reads_changed_record_again(mixed, make_task, monkeypatch):
    mixed.select(SPACE, profile([[5.0], [6.0]]))
    forget(monkeypatch)
    mixed.remove("svc-1")
    mixed.append(make_task(id="svc-1", estimator=SVC(), profile=profile([[1.0], [2.0]])))
    forget(monkeypatch)
    names = opened(monkeypatch)
    selection = mixed.select(SPACE, profile([[1.0], [5.0]]))
    assert [task.id for task in selection.used] == ["svc-0", "svc-2"]
    assert set(names) == {"svc-1"}


def test_select_follows_new_changed_and_removed_records(mixed, make_task, monkeypatch):
    mixed.select(SPACE)
    forget(monkeypatch)
    mixed.remove("svc-0")
    (mixed.path / "tasks" / "svc-1.joblib").unlink()
    changed = make_task({"alpha": [1, 2]}, [({"alpha": 1}, 0.5)], id="svc-1", estimator=Ridge())
    mixed.append(changed)
    mixed.append(make_task(id="new", estimator=SVC()))
    assert [task.id for task in mixed.select(SPACE).used] == ["new", "svc-2"]


def test_small_archive_has_no_index(archive, make_task):
    archive.append(make_task())
    archive.select()
    assert not (archive.path / "index").exists()


def test_readonly_archive_writes_no_index(mixed):
    Archive(mixed.path, readonly=True).select()
    assert not (mixed.path / "index").exists()


def test_damaged_index_does_not_change_selection(mixed, monkeypatch):
    expected = mixed.select(SPACE)
    file = mixed.path / "index" / "entries.joblib"
    data = file.read_bytes()
    for place in range(0, len(data), 97):
        file.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        forget(monkeypatch)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert mixed.select(SPACE) == expected


class Entry:
    """An entry of a folder whose status cannot be read."""

    def __init__(self, entry):
        self.name = entry.name
        self._entry = entry

    def stat(self, **options):
        if self.name.startswith("c"):
            raise OSError(5, "Input/output error")
        return self._entry.stat(**options)


def test_select_uses_the_other_records_if_one_cannot_be_asked(archive, make_task, monkeypatch):
    for id in "abcd":
        archive.append(make_task(id=id))
    scandir, lstat = os.scandir, Path.lstat

    @contextlib.contextmanager
    def scan(path):
        with scandir(path) as entries:
            yield map(Entry, entries)

    def refuse(path):
        if path.stem == "c":
            raise MemoryError
        return lstat(path)

    monkeypatch.setattr(os, "scandir", scan)
    monkeypatch.setattr(Path, "lstat", refuse)
    monkeypatch.setattr(_index, "_known", {})
    with pytest.warns(ArchiveWarning, match=r"c.joblib.*cannot be read \(there is not enough"):
        assert [task.id for task in archive.select().used] == ["a", "b", "d"]


def test_lazy_task_equals_task(mixed):
    (stored, *_) = mixed.select(SPACE).used
    whole = mixed[stored.id]
    assert type(stored) is LazyTask
    assert stored == whole and whole == stored
    assert stored != mixed["svc-1"]
    assert type(pickle.loads(pickle.dumps(stored))) is type(whole)
    for again in (pickle.loads(pickle.dumps(stored)), copy.deepcopy(stored)):
        # NaNs are not equal, so records are compared.
        assert identity(task_to_record(again)) == identity(task_to_record(whole))


def test_lazy_task_raises_if_file_was_removed(mixed):
    (stored, *_) = mixed.select(SPACE).used
    mixed.remove(stored)
    with pytest.raises(RecordError, match="removed since"):
        stored.trials  # noqa: B018


def test_dataclasses_replace_works_on_selected_task(archive, make_task):
    archive.append(make_task(id="one"))
    (task,) = archive.select().used
    assert replace(task, id="two").trials == task.trials
