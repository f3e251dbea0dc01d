"""Untrusted records: no code runs, and each bad file is skipped with one warning."""

import io
import os
import pickle
import tracemalloc

import joblib
import numpy as np
import pytest

from sktransfer.archive import RecordError, _plain_pickle, _storage
from sktransfer.archive._plain_pickle import dumps_plain
from sktransfer.archive._record import task_to_record
from sktransfer.exceptions import ArchiveWarning
from sktransfer.task import Task
from tests.archive.untrusted import BAD_STREAMS, START, Trap, text


def write_reduce(file, marker):
    file.write_bytes(pickle.dumps({"format": 1, "trap": Trap(marker)}, protocol=4))


def write_reduce_by_joblib(file, marker):
    joblib.dump({"format": 1, "trap": Trap(marker)}, file)


def write_object_array(file, marker):
    joblib.dump(np.array([Trap(marker)], dtype=object), file)


def write_compressed(file, marker):
    joblib.dump({"format": 1, "trap": Trap(marker)}, file, compress=3)


TRAPS = [write_reduce, write_reduce_by_joblib, write_object_array, write_compressed]


def write_array(file, marker):
    joblib.dump({"format": 1, "profile": np.zeros(3)}, file)


def write_harmless_compressed(file, marker):
    joblib.dump({"format": 1}, file, compress=True)


def write_cut(file, marker):
    task = Task.from_trials({"C": [1]}, [({"C": 1}, 0.5)], id=file.stem)
    file.write_bytes(dumps_plain(task_to_record(task))[:-20])


def write_large(file, marker):
    with file.open("wb") as stream:
        stream.truncate(65 * 2**20)


def write_directory(file, marker):
    file.mkdir()


def write_under_another_name(file, marker):
    task = Task.from_trials({"C": [1]}, [({"C": 1}, 0.5)], id="original")
    file.write_bytes(dumps_plain(task_to_record(task)))


def write_pipe(file, marker):
    os.mkfifo(file)


OTHERS = [
    write_array,
    write_harmless_compressed,
    write_cut,
    write_large,
    write_directory,
    write_under_another_name,
]
OTHERS += [write_pipe] if hasattr(os, "mkfifo") else []


def check_skipped(archive, make_task, name, reason=""):
    """Assert that one warning names the bad file, and that other records are read."""
    archive.append(make_task(id="a"))
    archive.append(make_task(id="z"))
    with pytest.warns(ArchiveWarning, match="Skipped") as caught:
        ids = [task.id for task in archive]
    assert ids == ["a", "z"]
    assert len(caught) == 1
    message = str(caught[0].message)
    assert f"{os.sep}{name}.joblib: " in message
    assert reason in message
    assert "Move it out of the archive or delete it" in message
    assert len(message) < 500
    with pytest.raises(RecordError):
        archive[name]


@pytest.mark.parametrize(("data", "reason"), BAD_STREAMS.values(), ids=BAD_STREAMS)
def test_archive_skips_bad_bytes(archive, tasks_directory, make_task, data, reason):
    (tasks_directory / "bad.joblib").write_bytes(data)
    check_skipped(archive, make_task, "bad", reason)
    assert (tasks_directory / "bad.joblib").read_bytes() == data


@pytest.mark.parametrize("write", OTHERS)
def test_archive_skips_bad_files(archive, tasks_directory, make_task, write):
    write(tasks_directory / "bad.joblib", None)
    check_skipped(archive, make_task, "bad")


@pytest.mark.parametrize("write", TRAPS)
def test_reading_runs_no_code(archive, tasks_directory, make_task, tmp_path, write):
    marker = tmp_path / "marker"
    write(tasks_directory / "bad.joblib", marker)
    check_skipped(archive, make_task, "bad")
    assert not marker.exists()
    joblib.load(tasks_directory / "bad.joblib")
    assert marker.exists(), "the trap is not armed: this test shows nothing"


@pytest.mark.parametrize("write", TRAPS)
def test_check_of_stream_refuses_code(tmp_path, write):
    write(tmp_path / "bad", tmp_path / "marker")
    with pytest.raises(ValueError, match=r"GLOBAL|not an uncompressed"):
        _plain_pickle._check_stream((tmp_path / "bad").read_bytes())


@pytest.mark.parametrize("write", TRAPS)
def test_unpickler_refuses_code(tmp_path, monkeypatch, write):
    """The unpickler refuses it even without the check of the stream."""
    monkeypatch.setattr(_plain_pickle, "_check_stream", lambda data: None)
    write(tmp_path / "bad", tmp_path / "marker")
    with pytest.raises(ValueError, match="damaged"):
        _plain_pickle.loads_plain((tmp_path / "bad").read_bytes())
    assert not (tmp_path / "marker").exists()


def test_unpickler_refuses_persistent_ids():
    data, _ = BAD_STREAMS["persistent id"]
    with pytest.raises(pickle.UnpicklingError, match="no persistent id"):
        _plain_pickle._PlainUnpickler(io.BytesIO(data)).load()


BOMBS = ["memo bomb", "text beyond the file", "frame beyond the file", "very large integer"]


@pytest.mark.parametrize("name", BOMBS)
def test_refusing_bombs_takes_no_memory(name):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):
            _plain_pickle.loads_plain(BAD_STREAMS[name][0])
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_large_files_are_not_read(archive, tasks_directory, monkeypatch):
    write_large(tasks_directory / "bad.joblib", None)
    monkeypatch.setattr(_storage, "loads_plain", lambda data, **_: pytest.fail("it was read"))
    with pytest.raises(RecordError, match="larger than 16 MiB"):
        archive["bad"]


def test_loads_plain_bounds_number_of_operations(monkeypatch):
    data = pickle.dumps([[] for _ in range(100)], protocol=4)
    assert _plain_pickle.loads_plain(data) == [[]] * 100
    monkeypatch.setattr(_plain_pickle, "MAX_STEPS", 100)
    with pytest.raises(ValueError, match="more than 100 operations"):
        _plain_pickle.loads_plain(data)


def test_check_of_stream_handles_numbers_in_bulk(monkeypatch):
    """A sketch has thousands of numbers. A loop over them would be slow."""
    rng = np.random.default_rng(0)
    hashes = rng.integers(2**62, 2**64, 50_000, dtype=np.uint64).tolist()
    data = {"sketch": rng.random(50_000).tolist(), "hashes": hashes}
    monkeypatch.setattr(_plain_pickle, "MAX_STEPS", 1000)
    assert _plain_pickle.loads_plain(dumps_plain(data)) == data


NUMBERS = {
    "hash": (b"\x8a\x08", 8),
    "hash above 2**63": (b"\x8a\x09", 9),
    "float": (b"G", 8),
    "byte": (b"K", 1),
    "short": (b"M", 2),
    "integer": (b"J", 4),
}


@pytest.mark.parametrize("operation", [b"h\xff", b"]\x94", b"c", b"R", b"."])
@pytest.mark.parametrize("name", NUMBERS)
def test_bytes_inside_numbers_are_no_operations(name, operation):
    """This holds at the end of a run as well."""
    code, width = NUMBERS[name]
    number = code + (operation * 9)[: width - 1] + (b"\0" if width == 9 else b"\x01")
    for numbers in (number * 3, number + b"]\x94" + number, number + b"e]\x94(" + number):
        _plain_pickle._check_stream(START + b"]\x94(" + numbers + b"e.")


@pytest.mark.parametrize("before", [b"", b"]\x94", b"}\x94", text("x") + b"\x94]\x94K\x01"])
def test_container_among_numbers_cannot_be_reused(before):
    containers = before.count(b"\x94")
    data = START + b"(" + before + b"K\x01]\x94K\x02h" + bytes([containers]) + b"K\x03e."
    with pytest.raises(ValueError, match="other than an earlier text"):
        _plain_pickle._check_stream(data)


def test_archive_skips_unreadable_file(archive, make_task, monkeypatch):
    archive.append(make_task(id="one"))
    monkeypatch.setattr(_storage, "_cache", _storage._Cache())

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.warns(
        ArchiveWarning, match=r"one\.joblib: it cannot be read \(Permission denied\)"
    ):
        assert list(archive) == []


def test_bad_file_is_not_cached(archive, tasks_directory):
    """A valid file that replaces it is read."""
    (tasks_directory / "one.joblib").write_bytes(b"nonsense")
    with pytest.warns(ArchiveWarning, match=r"one\.joblib"):
        assert list(archive) == []
    (tasks_directory / "one.joblib").unlink()
    archive.append(Task.from_trials({"C": [1]}, [({"C": 1}, 0.5)], id="one"))
    assert [task.id for task in archive] == ["one"]
