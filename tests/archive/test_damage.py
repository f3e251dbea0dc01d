"""Damage of every kind costs at most the damaged record, and never gives a wrong score."""

import errno
import multiprocessing
import os
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.archive import Archive, NewerFormatError, RecordError, _plain_pickle, _storage
from sktransfer.archive._plain_pickle import dumps_plain
from sktransfer.archive._record import task_to_record
from sktransfer.exceptions import ArchiveWarning


@pytest.fixture
def record_bytes(make_task):
    """The bytes of a record named "one"."""
    return dumps_plain(
        task_to_record(make_task(id="one", profile={"kind": "regression", "n_rows": 3}))
    )


def read(data):
    """Return the task in these bytes, or None."""
    try:
        return _storage.parse_record(data, Path("one.joblib"))
    except RecordError:
        return None


def test_reader_notices_every_truncation(record_bytes):
    assert read(record_bytes).id == "one"
    assert [n for n in range(len(record_bytes)) if read(record_bytes[:n]) is not None] == []


def test_reader_notices_change_of_any_byte(record_bytes):
    """This includes the checksum and the name of its field."""
    for place in range(len(record_bytes)):
        changed = bytearray(record_bytes)
        changed[place] ^= 0x01
        assert read(bytes(changed)) is None, place


def test_reader_notices_damaged_checksum_field(record_bytes):
    """Name and value of the field are damaged at once."""
    assert (
        read(record_bytes.replace(b"checksum", b"chocksum").replace(b"blake2b:", b"blaze2b:"))
        is None
    )


def test_reader_notices_2000_random_changes(record_bytes):
    rng = np.random.default_rng(0)
    for _ in range(2000):
        changed = bytearray(record_bytes)
        for place in rng.integers(len(record_bytes), size=rng.integers(1, 9)):
            changed[place] ^= rng.integers(1, 256)
        if bytes(changed) != record_bytes:  # two changes of one byte may cancel
            assert read(bytes(changed)) is None


def test_damage_affects_one_record_only(archive, tasks_directory, make_task, record_bytes):
    archive.append(make_task(id="a"))
    archive.append(make_task(id="z"))
    rng = np.random.default_rng(1)
    for _ in range(30):
        changed = bytearray(record_bytes[: rng.integers(1, len(record_bytes) + 1)])
        changed[rng.integers(len(changed))] ^= 0xFF
        (tasks_directory / "one.joblib").write_bytes(changed)
        with pytest.warns(ArchiveWarning, match=r"Skipped .*one\.joblib") as caught:
            assert [task.id for task in archive.select().used] == ["a", "z"]
        assert len(caught) == 1


def test_reader_refuses_record_edited_by_hand(archive, make_task):
    archive.append(make_task(id="one"))
    file = archive.path / "tasks" / "one.joblib"
    record = joblib.load(file)
    record["trials"][0]["score"] = 0.99
    joblib.dump(record, file)
    with pytest.raises(
        RecordError, match="checksum does not match: it was damaged, or edited by hand"
    ):
        archive["one"]


def test_newer_format_may_have_other_checksum(archive, tasks_directory, make_task):
    """It is reported as newer, not as damaged, so `verify` does not move it."""
    record = {**task_to_record(make_task(id="new")), "format": 99, "checksum": "sha3:00"}
    joblib.dump(record, tasks_directory / "new.joblib")
    with pytest.raises(NewerFormatError, match="99"):
        archive["new"]
    (finding,) = archive.verify(repair=True)
    assert finding.moved is None and (tasks_directory / "new.joblib").exists()


def test_reader_refuses_record_without_checksum(archive, tasks_directory, make_task):
    joblib.dump(task_to_record(make_task(id="one")), tasks_directory / "one.joblib", protocol=4)
    with pytest.raises(RecordError, match="its checksum is missing"):
        archive["one"]
    assert len(archive.verify()) == 1


@pytest.mark.parametrize(
    "record", [{}, {"checksum": "mine"}, {"a": "checksum"}, {str(n): n for n in range(1000)}]
)
def test_dumps_plain_adds_checksum_to_any_dict(record):
    loaded = _plain_pickle.loads_plain(dumps_plain(record))
    assert loaded == {
        key: value for key, value in record.items() if key != _plain_pickle.CHECKSUM_FIELD
    }


# -- while running -------------------------------------------------------------------------------


def test_full_disk_costs_only_the_new_record(archive, make_task, monkeypatch):
    """The incomplete file is deleted, and earlier records are unchanged."""
    archive.append(make_task(id="one"))
    before = (archive.path / "tasks" / "one.joblib").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            archive.append(make_task(id="two"))
    assert [file.name for file in (archive.path / "tasks").iterdir()] == ["one.joblib"]
    assert (archive.path / "tasks" / "one.joblib").read_bytes() == before
    assert archive.append(make_task(id="two")) == "two"


def test_archive_survives_removal_of_directory_while_reading(archive, make_task):
    for id in "abc":
        archive.append(make_task(id=id))
    reading = iter(archive)
    next(reading)
    for file in (archive.path / "tasks").iterdir():
        file.unlink()
    (archive.path / "tasks").rmdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(reading) == []
        assert archive.select().used == ()
    archive.append(make_task(id="d"))
    assert [task.id for task in archive] == ["d"]


@pytest.mark.skipif(
    not hasattr(os, "symlink") or os.name == "nt", reason="links need a right on Windows"
)
@pytest.mark.parametrize("folder", ["tasks", "models", "damaged"])
def test_archive_writes_nothing_through_link(archive, make_task, tmp_path, folder):
    outside = tmp_path / "outside"
    outside.mkdir()
    archive.path.mkdir()
    if folder != "tasks":
        (archive.path / "tasks").mkdir()
        (archive.path / "tasks" / "bad.joblib").write_bytes(b"nonsense")
    (archive.path / folder).symlink_to(outside)
    if folder == "models":
        with pytest.warns(ArchiveWarning, match="link"):
            archive.model_cache.put({}, ["t"], {"a": np.zeros(1)})
    else:
        with pytest.raises(OSError, match="link"):
            archive.append(make_task()) if folder == "tasks" else archive.verify(repair=True)
    assert list(outside.iterdir()) == []


def test_second_archive_object_reads_the_same(archive, make_task):
    """The state is in the directory, not in the object."""
    archive.append(make_task(id="one"))
    assert list(Archive(str(archive.path))) == list(archive)


def test_checksum_works_at_frame_borders_of_pickle():
    """A new frame begins after 64 KiB, perhaps between name and value of the checksum."""
    for size in range(65_440, 65_560):
        data = dumps_plain({"text": "x" * size})
        assert _plain_pickle.has_checksum(data)
        assert _plain_pickle.loads_plain(data) == {"text": "x" * size}
        with pytest.raises(ValueError, match="checksum"):
            _plain_pickle.loads_plain(data.replace(b"xxx", b"xyx", 1))
        parts = dumps_plain({"a": "x" * 100, "b": "x" * (size - 150), "c": 1})
        assert _plain_pickle.loads_plain(parts)["c"] == 1


def test_loaded_skips_record_damaged_since_selection(tmp_path, make_task):
    """A warning is issued, and the other tasks are used."""
    archive = Archive(tmp_path / "past")
    archive.append(make_task(id="one", estimator=SVC()))
    archive.append(make_task(id="two", estimator=SVC()))
    selection = archive.select()
    file = archive.path / "tasks" / "one.joblib"
    status = file.stat()
    file.write_bytes(file.read_bytes()[:100])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.warns(ArchiveWarning, match=r"Skipped.*one\.joblib"):
        assert [task.id for task in selection.loaded().used] == ["two"]


def test_append_works_if_index_fails(archive, make_task, monkeypatch):
    monkeypatch.setattr("sktransfer.archive._archive.add_entry", lambda *_: 1 / 0)
    assert archive.append(make_task(id="one")) == "one"


def test_verify_does_not_move_files_that_cannot_be_read_now(archive, make_task, monkeypatch):
    def busy(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    archive.append(make_task())
    journal = archive.journals.start(make_task())
    journal.sync()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", busy)
        findings = archive.verify(repair=True)
    assert len(findings) == 2  # the record and the journal
    assert all(found.moved is None and "cannot be read" in found.problem for found in findings)
    assert not archive.verify()


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), MemoryError()])
def test_verify_does_not_move_files_for_lack_of_memory(archive, make_task, monkeypatch, error):
    archive.append(make_task())
    archive.model_cache.put({}, ["a"], {"weights": np.zeros(3)})
    archive.journals.start(make_task()).sync()

    def fail(*_, **__):
        raise error

    for target in (
        "sktransfer.archive._plain_pickle._PlainUnpickler.load",
        "sktransfer.archive._journal.json.loads",
        "sktransfer.archive._model_cache._array",
    ):
        if isinstance(error, OSError):
            target = "pathlib.Path.open"
        with monkeypatch.context() as patch:
            patch.setattr(target, fail)
            findings = archive.verify(repair=True)
        assert findings and all(found.moved is None for found in findings)
        assert all("cannot be read" in found.problem for found in findings)
    assert not archive.verify()


def _repair(path, barrier, queue):
    barrier.wait()
    try:
        queue.put(len(Archive(path).verify(repair=True)))
    except Exception as error:
        queue.put(repr(error))


@pytest.mark.skipif(sys.platform != "linux", reason="starts processes by fork")
def test_two_processes_repair_at_once(archive, tasks_directory):
    context = multiprocessing.get_context("fork")
    for n in range(300):
        (tasks_directory / f"bad-{n}.joblib").write_bytes(b"nonsense")
    barrier, queue = context.Barrier(2), context.Queue()
    arguments = (archive.path, barrier, queue)
    workers = [context.Process(target=_repair, args=arguments) for _ in range(2)]
    for worker in workers:
        worker.start()
    moved = [queue.get(timeout=60) for _ in workers]
    assert sum(moved) == 300
    for worker in workers:
        worker.join()
    assert len(os.listdir(archive.path / "damaged")) == 300


def test_repair_ignores_file_that_vanished(archive, tasks_directory, monkeypatch):
    (tasks_directory / "bad.joblib").write_bytes(b"nonsense")
    monkeypatch.setattr(
        os, "rename", lambda *_: (_ for _ in ()).throw(FileNotFoundError(errno.ENOENT, "gone"))
    )
    assert archive.verify(repair=True) == []


def test_unreadable_journals_folder_hides_no_record(archive, make_task, monkeypatch):
    listdir = os.listdir

    def refused(folder):
        if str(folder).endswith("running"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return listdir(folder)

    archive.append(make_task())
    monkeypatch.setattr(os, "listdir", refused)
    assert len(list(archive)) == len(archive.select().used) == 1
    assert not archive.verify()


def test_warning_of_a_damaged_record_points_to_the_line_that_reads(tmp_path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "broken.joblib").write_bytes(b"not a record")
    with pytest.warns(ArchiveWarning, match="Skipped a file of the archive") as caught:
        list(Archive(tmp_path))
    assert {each.filename for each in caught} == {__file__}
    search = TransferSearchCV(
        SVC(), {"C": loguniform(0.1, 10)}, n_iter=2, cv=2, archive=tmp_path, random_state=0
    )
    with pytest.warns(ArchiveWarning, match="Skipped a file of the archive") as caught:
        cross_val_score(search, *load_iris(return_X_y=True), cv=2)
    assert {each.filename for each in caught} == {__file__}
