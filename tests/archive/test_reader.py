"""Files from strangers: nothing in them runs, each is skipped with one warning, the others are read."""

import io
import os
import pickle
import tracemalloc

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sktransfer._values import identity
from sktransfer.archive import RecordError, _files, _reader
from sktransfer.archive._format import LARGEST, SMALLEST, record_to_task, task_to_record
from sktransfer.task import Task


class Trap:
    """Unpickling one makes a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def text(value):
    data = value.encode()
    return pickle.SHORT_BINUNICODE + bytes([len(data)]) + data


def nested(n):
    return b"]" * n + b"a" * (n - 1)


START = b"\x80\x04"
BAD_BYTES = {
    "empty": b"",
    "one byte": b"\x80",
    "text": b"This is no record.\n",
    "random": np.random.default_rng(0).bytes(5000),
    "another protocol": pickle.dumps({"format": 1}, protocol=2),
    "no end": START + b"}",
    "nothing but an end": START + b".",
    "after the end": START + b"}." + b"}.",
    "persistent id": START + text("x") + b"Q.",
    "persistent id as text": START + b"Px\n.",
    "extension 1": START + b"\x82\x01.",
    "extension 2": START + b"\x83\x01\x00.",
    "extension 4": START + b"\x84\x01\x00\x00\x00.",
    "global as text": START + b"cos\nsystem\n.",
    "instance": START + b"(" + text("x") + b"ios\nsystem\n.",
    "bytes": pickle.dumps({"format": b"1"}, protocol=4),
    "tuple": pickle.dumps((1, 2), protocol=4),
    "set": pickle.dumps({1, 2}, protocol=4),
    "memo bomb": START + b"Nr\xff\xff\xff\x7f0}.",
    "memo entry that is not there": START + b"h\x00.",
    "memo entry of a number": START + b"K\x01\x94.",
    "memo entry twice": START + text("x") + b"\x94\x94.",
    "large integer": START + b"\x8a\x0a" + b"\x01" * 10 + b".",
    "very large integer": START + b"\x8b" + (2**20).to_bytes(4, "little") + b"\x01" * 2**20 + b".",
    "text beyond the file": START + b"\x8d" + (2**60).to_bytes(8, "little") + b"x.",
    "frame beyond the file": START + b"\x95" + (2**60).to_bytes(8, "little") + b"}.",
    "damaged text": START + b"\x8c\x02\xff\xfe.",
    "key that has no hash": START + b"}]Ns.",
    "append to a number": START + b"K\x01K\x02a.",
    "list in itself": START + b"]\x94h\x00a.",
    "list in two places": START + b"(]\x94h\x00e.",
    "deep list": START + nested(100_000) + b".",
    "deep record": START + b"}(" + text("format") + b"K\x01" + text("profile") + nested(100_000) + b"u.",
    "number as key": START + b"}(" + text("format") + b"K\x01K\x02K\x03u.",
    "no dict": pickle.dumps([1, 2, 3], protocol=4),
    "empty dict": pickle.dumps({}, protocol=4),
}


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
    file.write_bytes(_files.dump(task_to_record(task))[:-20])


def write_large(file, marker):
    with file.open("wb") as stream:
        stream.truncate(65 * 2**20)


def write_directory(file, marker):
    file.mkdir()


def write_under_another_name(file, marker):
    task = Task.from_trials({"C": [1]}, [({"C": 1}, 0.5)], id="original")
    file.write_bytes(_files.dump(task_to_record(task)))


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


def check_skipped(archive, make_task, name):
    """The bad file is skipped with one warning that names it; its neighbours are read."""
    archive.append(make_task(id="a"))
    archive.append(make_task(id="z"))
    with pytest.warns(UserWarning, match="Skipped") as caught:
        ids = [task.id for task in archive]
    assert ids == ["a", "z"]
    assert len(caught) == 1
    message = str(caught[0].message)
    assert f"{os.sep}{name}.joblib: " in message
    assert "Move it out of the archive or delete it" in message
    assert len(message) < 500
    with pytest.raises(RecordError):
        archive[name]


@pytest.mark.parametrize("data", BAD_BYTES.values(), ids=BAD_BYTES)
def test_bad_bytes(archive, tasks_directory, make_task, data):
    (tasks_directory / "bad.joblib").write_bytes(data)
    check_skipped(archive, make_task, "bad")
    assert (tasks_directory / "bad.joblib").read_bytes() == data


@pytest.mark.parametrize("write", OTHERS)
def test_bad_files(archive, tasks_directory, make_task, write):
    write(tasks_directory / "bad.joblib", None)
    check_skipped(archive, make_task, "bad")


@pytest.mark.parametrize("write", TRAPS)
def test_traps_do_not_go_off(archive, tasks_directory, make_task, tmp_path, write):
    marker = tmp_path / "marker"
    write(tasks_directory / "bad.joblib", marker)
    check_skipped(archive, make_task, "bad")
    assert not marker.exists()
    joblib.load(tasks_directory / "bad.joblib")
    assert marker.exists(), "the trap is not armed: this test shows nothing"


@pytest.mark.parametrize("write", [write_reduce, write_reduce_by_joblib])
def test_second_wall_alone(tmp_path, write):
    """Were the stream not looked through, the unpickler would still refuse."""
    write(tmp_path / "bad", tmp_path / "marker")
    with pytest.raises(pickle.UnpicklingError, match="no global"):
        _reader._PlainUnpickler(io.BytesIO((tmp_path / "bad").read_bytes())).load()
    with pytest.raises(pickle.UnpicklingError, match="no persistent id"):
        _reader._PlainUnpickler(io.BytesIO(BAD_BYTES["persistent id"])).load()
    assert not (tmp_path / "marker").exists()


BOMBS = ["memo bomb", "text beyond the file", "frame beyond the file", "very large integer"]


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_take_no_memory(name):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):
            _reader.loads_plain(BAD_BYTES[name])
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_large_files_are_not_read(archive, tasks_directory, monkeypatch):
    write_large(tasks_directory / "bad.joblib", None)
    monkeypatch.setattr(_reader, "loads_plain", lambda data: pytest.fail("it was read"))
    with pytest.raises(RecordError, match="larger than 64 MiB"):
        archive["bad"]


def test_number_of_operations_is_bounded(monkeypatch):
    data = pickle.dumps([[] for _ in range(100)], protocol=4)
    assert _reader.loads_plain(data) == [[]] * 100
    monkeypatch.setattr(_reader, "MAX_STEPS", 100)
    with pytest.raises(ValueError, match="more than 100 operations"):
        _reader.loads_plain(data)


def test_numbers_are_looked_through_in_bulk(monkeypatch):
    """A sketch is thousands of floats or hashes: one by one they would take most of the time."""
    rng = np.random.default_rng(0)
    hashes = rng.integers(2**62, 2**64, 50_000, dtype=np.uint64).tolist()
    data = {"sketch": rng.random(50_000).tolist(), "hashes": hashes}
    monkeypatch.setattr(_reader, "MAX_STEPS", 1000)
    assert _reader.loads_plain(_files.dump(data)) == data


def test_unreadable_file(archive, make_task, monkeypatch):
    archive.append(make_task(id="one"))
    monkeypatch.setattr(_reader, "_cache", _reader._Cache())

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_reader, "_read_plain", refuse)
    with pytest.warns(UserWarning, match=r"one\.joblib: it cannot be read \(Permission denied\)"):
        assert list(archive) == []


def test_a_bad_file_is_not_remembered(archive, tasks_directory):
    """Nor does it stand in for the good one that replaces it."""
    (tasks_directory / "one.joblib").write_bytes(b"nonsense")
    with pytest.warns(UserWarning, match=r"one\.joblib"):
        assert list(archive) == []
    (tasks_directory / "one.joblib").unlink()
    archive.append(Task.from_trials({"C": [1]}, [({"C": 1}, 0.5)], id="one"))
    assert [task.id for task in archive] == ["one"]


# -- any data, any damage ------------------------------------------------------------------------

texts = st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers(SMALLEST, LARGEST) | st.floats() | texts
plain_data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=50,
)


@settings(deadline=None)
@given(plain_data)
def test_plain_data_round_trip(data):
    assert repr(_reader.loads_plain(_files.dump(data))) == repr(data)  # tells 1, 1.0 and True apart


@settings(deadline=None)
@given(plain_data)
def test_what_python_pickles_is_read_too(data):
    assert repr(_reader.loads_plain(pickle.dumps(data, protocol=4))) == repr(data)


@pytest.mark.parametrize("length", [254, 255, 256, 257, 65_535, 65_536, 300_000])
def test_long_texts_and_many_of_them(length):
    """Each length of text has its own operation, and so has each number of a memo entry."""
    data = {"x" * length: ["é" * length] * 2, "names": [str(n) for n in range(length // 100)] * 2}
    assert _reader.loads_plain(_files.dump(data)) == data


RECORD = _files.dump(
    task_to_record(
        Task.from_trials(
            {"C": [1, 2.5, None], "kernel": ["rbf", "x" * 300]},
            [({"C": 1, "kernel": "rbf"}, 0.5), ({"C": None, "kernel": "x" * 300}, float("nan"))],
            {"sketch": [0.5, 1.5], "rows": 2**40, "flag": True},
            id="one",
            created="2025-01-02T03:04:05+00:00",
        )
    )
)
places = st.integers(0, len(RECORD) - 1)
kinds = st.sampled_from(["set", "insert", "delete", "cut"])
damages = st.lists(st.tuples(places, kinds, st.binary(min_size=1, max_size=3)))


def damage(data, damages):
    data = bytearray(data)
    for place, kind, other in damages:
        if kind == "set":
            data[place : place + len(other)] = other
        elif kind == "insert":
            data[place:place] = other
        else:
            del data[place : place + len(other) if kind == "delete" else None]
    return bytes(data)


def read(data):
    """The task in these bytes, or why there is none. Nothing but a ValueError may come of it."""
    try:
        return record_to_task(_reader.loads_plain(data))
    except ValueError as error:
        return str(error)


@settings(deadline=None, max_examples=500)
@given(damages)
def test_damage_gives_an_error_or_a_sound_task(damages):
    outcome = read(damage(RECORD, damages))
    if isinstance(outcome, str):
        assert 0 < len(outcome) < 500
    else:
        record = _reader.loads_plain(damage(RECORD, damages))
        assert all(
            identity(record[name]) == identity(value) for name, value in task_to_record(outcome).items()
        )
        assert all(np.isfinite(trial.score) == (trial.status == "ok") for trial in outcome.trials)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_after_a_good_start(data):
    assert 0 < len(read(START + data)) < 500  # no record is that short
