"""The model cache: models are found by settings and tasks, and bad files are harmless."""

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sktransfer.archive import Archive, _model_cache, _storage
from sktransfer.exceptions import ArchiveWarning
from tests.archive.untrusted import Trap, npy_header

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "surrogate": "A",
    "params": {"depth": 2, "rate": 0.5, "seed": None},
    "space": ["C", "gamma"],
}
TASKS = ["t1", "t2", "t3"]
MODEL = {"weights": np.arange(6.0).reshape(2, 3)}


def mark(n):
    """A model that can be recognized."""
    return {"mark": np.array(n)}


def marked(model):
    return None if model is None else int(model["mark"])


def files_of(archive):
    return sorted(file.name for file in (archive.path / "models").iterdir())


def only_file(archive):
    (name,) = files_of(archive)
    return archive.path / "models" / name


def set_age(archive, settings, tasks, seconds):
    moment = time.time() - seconds
    os.utime(archive.model_cache._file(settings, frozenset(tasks)), (moment, moment))


# -- get and nearest ------------------------------------------------------------------------------

ARRAYS = {
    "float": np.array([[0.1, np.nan], [np.inf, -0.0]]),
    "single": np.array([0.1, 2.0], dtype=np.float32),
    "int": np.array([-(2**63), 2**63 - 1]),
    "bool": np.array([True, False]),
    "byte": np.arange(256, dtype=np.uint8),
    "text": np.array(["", "linear", "größer 大 🙂"]),
    "number": np.array(2.5),
    "word": np.array("rbf"),
    "nothing": np.empty((0, 3)),
    "no words": np.array([], dtype=str),
    "by column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "a view": np.arange(10)[::-3],
    "three/axes.0:a-b": np.zeros((2, 0, 4), dtype=np.int64),
    "file": np.array([1]),  # parameters of numpy.savez
    "allow_pickle": np.array([2]),
    "tasks": np.array([3]),  # a name that the cache itself uses
}


def test_get_returns_arrays_that_were_put(archive):
    archive.model_cache.put(SETTINGS, TASKS, ARRAYS)
    found = archive.model_cache.get(SETTINGS, TASKS)
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert type(found[name]) is np.ndarray
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.writeable
    assert np.signbit(found["float"][1, 1])


def test_model_without_arrays_is_found(archive):
    archive.model_cache.put(SETTINGS, [], {})
    assert archive.model_cache.get(SETTINGS, []) == {}
    assert archive.model_cache.nearest(SETTINGS, []) is None  # no task in common


def test_order_of_tasks_and_settings_does_not_matter(archive):
    archive.model_cache.put(SETTINGS, TASKS, mark(1))
    assert (
        marked(archive.model_cache.get(dict(reversed(SETTINGS.items())), [*TASKS[::-1], "t1"])) == 1
    )
    assert marked(archive.model_cache.get(SETTINGS, iter(TASKS))) == 1
    assert len(files_of(archive)) == 1


def test_get_works_in_another_process(archive):
    archive.model_cache.put(SETTINGS, TASKS, MODEL)
    code = (
        "import json, sys; from sktransfer.archive import Archive\n"
        "path, settings, tasks = json.loads(sys.argv[1])\n"
        "print(Archive(path).model_cache.get(settings, tasks)['weights'].tolist())"
    )
    argument = json.dumps([str(archive.path), SETTINGS, TASKS[::-1]])
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code, argument],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(MODEL["weights"].tolist()), done.stderr


@pytest.mark.parametrize(
    "other",
    [
        SETTINGS | {"surrogate": "B"},
        SETTINGS | {"params": {"depth": 3, "rate": 0.5, "seed": None}},
        SETTINGS | {"params": {"depth": 2.0, "rate": 0.5, "seed": None}},
        SETTINGS | {"params": {"depth": 2, "rate": float("nan"), "seed": None}},
        SETTINGS | {"params": {"depth": 2, "rate": 0.5, "seed": 0}},
        SETTINGS | {"space": ["gamma", "C"]},
        SETTINGS | {"more": None},
        {},
    ],
)
def test_get_distinguishes_settings(archive, other):
    archive.model_cache.put(SETTINGS, TASKS, mark(1))
    assert archive.model_cache.get(other, TASKS) is None
    assert archive.model_cache.nearest(other, TASKS) is None
    archive.model_cache.put(other, TASKS, mark(2))
    assert marked(archive.model_cache.get(SETTINGS, TASKS)) == 1
    assert (
        marked(archive.model_cache.get(other, TASKS))
        == marked(archive.model_cache.nearest(other, TASKS))
        == 2
    )


def test_numpy_numbers_equal_python_numbers_in_settings(archive):
    archive.model_cache.put({"depth": np.int64(2), "rate": np.float64(0.5)}, TASKS, mark(1))
    assert marked(archive.model_cache.get({"depth": 2, "rate": 0.5}, TASKS)) == 1


@pytest.mark.parametrize("tasks", [["t1", "t2"], ["t1", "t2", "t3", "t4"], ["t1t2t3"], []])
def test_get_distinguishes_tasks(archive, tasks):
    archive.model_cache.put(SETTINGS, TASKS, mark(1))
    assert archive.model_cache.get(SETTINGS, tasks) is None


def test_get_ignores_other_format(archive, monkeypatch):
    archive.model_cache.put(SETTINGS, TASKS, mark(1))
    monkeypatch.setattr(_model_cache, "MODEL_FORMAT", 2)
    assert archive.model_cache.get(SETTINGS, TASKS) is None
    assert archive.model_cache.nearest(SETTINGS, TASKS) is None
    archive.model_cache.put(SETTINGS, TASKS, mark(2))
    assert len(files_of(archive)) == 2  # the name differs


def test_nearest_was_trained_on_subset_of_tasks(archive):
    """Another task may be excluded. A model must not bring it back by its weights."""
    sets = {
        1: ["a"],
        2: ["a", "b", "c"],
        3: ["a", "b", "c", "d", "e", "f", "g", "h"],
        4: ["x", "y"],
    }
    for n, tasks in sets.items():
        archive.model_cache.put(SETTINGS, tasks, mark(n))
    for wanted, expected in [
        ("abcd", 2),
        ("a", 1),
        ("ab", 1),
        ("abcdefghi", 3),
        ("xyz", 4),
        ("xz", None),
        ("z", None),
        ("", None),
    ]:
        assert marked(archive.model_cache.nearest(SETTINGS, wanted)) == expected


def test_nearest_prefers_exact_model(archive):
    archive.model_cache.put(SETTINGS, TASKS, mark(1))
    archive.model_cache.put(SETTINGS, TASKS[:-1], mark(2))
    assert marked(archive.model_cache.nearest(SETTINGS, TASKS)) == 1


@pytest.mark.parametrize("newest", range(3))
def test_nearest_prefers_newest_among_equals(archive, newest):
    for n in range(3):
        archive.model_cache.put(SETTINGS, ["a", f"other {n}"], mark(n))
        set_age(archive, SETTINGS, ["a", f"other {n}"], 10 if n == newest else 100)
    assert (
        marked(archive.model_cache.nearest(SETTINGS, ["a", *(f"other {n}" for n in range(3))]))
        == newest
    )


def test_nearest_skips_damaged_model(archive):
    archive.model_cache.put(SETTINGS, TASKS, {"mark": np.full(100, 77)})
    damaged = only_file(archive)
    damaged.write_bytes(
        damaged.read_bytes().replace(np.array(77).tobytes(), np.array(78).tobytes(), 1)
    )
    archive.model_cache.put(SETTINGS, TASKS[:-1], mark(2))
    assert archive.model_cache.get(SETTINGS, TASKS) is None
    assert marked(archive.model_cache.nearest(SETTINGS, TASKS)) == 2


def test_get_and_nearest_open_matching_files_only(archive, monkeypatch):
    for n in range(3):
        archive.model_cache.put(SETTINGS, ["a", str(n)], mark(n))
        archive.model_cache.put({"other": n}, ["a", "0"], mark(n))
    opened = set()
    read = _model_cache._read
    monkeypatch.setattr(
        _model_cache, "_read", lambda path, prefix: (opened.add(path), read(path, prefix))[1]
    )
    archive.model_cache.get(SETTINGS, ["a", "1"])
    assert opened == {archive.model_cache._file(SETTINGS, frozenset(["a", "1"]))}
    opened.clear()
    archive.model_cache.nearest(SETTINGS, ["a", "0", "1", "2"])
    assert opened == {
        archive.model_cache._file(SETTINGS, frozenset(["a", str(n)])) for n in range(3)
    }


# -- models and records ---------------------------------------------------------------------------


def test_archive_does_not_count_models(archive, make_task):
    archive.append(make_task(id="one"))
    archive.model_cache.put(SETTINGS, ["one"], MODEL)
    assert len(archive) == 1
    assert [task.id for task in archive] == ["one"]
    assert only_file(archive).stem not in archive


def test_get_creates_no_directory(archive):
    assert archive.model_cache.get(SETTINGS, TASKS) is None
    assert archive.model_cache.nearest(SETTINGS, TASKS) is None
    assert not archive.path.exists()


def test_model_cache_raises_if_archive_is_file(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(NotADirectoryError, match="An archive is a directory"):
        _ = Archive(tmp_path / "file").model_cache


def test_name_of_model_consists_of_two_digests(archive):
    archive.model_cache.put(SETTINGS, TASKS, MODEL)
    assert _model_cache._NAME.fullmatch(only_file(archive).name)


def test_numpy_loads_model(archive):
    archive.model_cache.put(SETTINGS, TASKS, MODEL)
    with np.load(only_file(archive), allow_pickle=False) as content:
        assert content["store/tasks"].tolist() == TASKS
        np.testing.assert_array_equal(content["model/weights"], MODEL["weights"])


# -- put -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.array([None, 1]),
        np.array([(1, None)], dtype=[("a", int), ("b", object)]),
        np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
        np.array([b"bytes"]),
        np.array(["2025-01-01"], dtype="datetime64[D]"),
        np.array([1j]),
        np.arange(3.0).astype(np.dtype(float).newbyteorder()),
        np.ndarray(3, dtype="U0"),
    ],
)
def test_put_refuses_other_dtypes(archive, array):
    with pytest.raises(
        TypeError, match=r"The array 'the bad one' has dtype .* numbers, booleans and"
    ):
        archive.model_cache.put(SETTINGS, TASKS, {"good": np.zeros(3), "the bad one": array})
    assert not archive.path.exists()


@pytest.mark.parametrize("key", ["", "a\0b", "a\\b", "\ud800", "a\n", "x" * 201])
def test_put_refuses_names_that_zip_would_change(archive, key):
    with pytest.raises(ValueError, match="cannot be the name of an array"):
        archive.model_cache.put(SETTINGS, TASKS, {key: np.zeros(3)})
    assert not archive.path.exists()


def test_put_replaces_model(archive):
    archive.model_cache.put(SETTINGS, TASKS, mark(1))
    archive.model_cache.put(SETTINGS, TASKS, mark(2))
    assert marked(archive.model_cache.get(SETTINGS, TASKS)) == 2
    assert len(files_of(archive)) == 1


def test_readonly_put_does_nothing(archive):
    reader = Archive(archive.path, readonly=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reader.model_cache.put(SETTINGS, TASKS, mark(1))
        assert not archive.path.exists()
        archive.model_cache.put(SETTINGS, TASKS, mark(2))
        reader.model_cache.put(SETTINGS, TASKS, mark(3))
    assert (
        marked(reader.model_cache.get(SETTINGS, TASKS))
        == marked(reader.model_cache.nearest(SETTINGS, TASKS))
        == 2
    )


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        PermissionError(13, "Permission denied"),
        OSError("odd"),
    ],
)
def test_put_warns_if_model_cannot_be_written(archive, monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(_storage, "write_file", refuse)
    with pytest.warns(ArchiveWarning, match="not cached") as caught:
        archive.model_cache.put(SETTINGS, TASKS, MODEL)
    assert str(archive.path / "models") in str(caught[0].message)
    assert (error.strerror or "odd") in str(caught[0].message)
    assert [warning.filename for warning in caught] == [__file__]


def test_put_warns_if_folder_is_file(archive):
    archive.path.mkdir()
    (archive.path / "models").write_text("mine")
    with pytest.warns(ArchiveWarning, match="not cached"):
        archive.model_cache.put(SETTINGS, TASKS, MODEL)
    assert (
        archive.model_cache.get(SETTINGS, TASKS)
        is archive.model_cache.nearest(SETTINGS, TASKS)
        is None
    )
    assert (archive.path / "models").read_text() == "mine"


def test_put_warns_if_model_is_too_large(archive, monkeypatch):
    monkeypatch.setattr(_model_cache, "MAX_BYTES", 2**20)
    archive.model_cache.put(SETTINGS, ["t1"], {"most": np.zeros(2**16)})
    with pytest.warns(ArchiveWarning, match="more than 1 MiB"):
        archive.model_cache.put(SETTINGS, ["t2"], {"more": np.zeros(2**17)})
    assert len(files_of(archive)) == 1
    monkeypatch.setattr(_model_cache, "MAX_BYTES", 2**18)
    assert archive.model_cache.get(SETTINGS, ["t1"]) is None


# -- pruning -------------------------------------------------------------------------------------


def test_put_deletes_oldest_of_same_settings(archive):
    archive.model_cache.put({"other": 1}, ["x"], mark(-1))
    set_age(archive, {"other": 1}, ["x"], 10**6)
    for n in range(12):
        archive.model_cache.put(SETTINGS, [f"t{n}"], mark(n))
        set_age(archive, SETTINGS, [f"t{n}"], 1000 if n == 5 else 100 - n)
    assert len(files_of(archive)) == 13
    archive.model_cache.put(SETTINGS, ["new"], mark(12))
    left = [n for n in range(12) if archive.model_cache.get(SETTINGS, [f"t{n}"]) is not None]
    assert left == [n for n in range(12) if n != 5]
    assert marked(archive.model_cache.get(SETTINGS, ["new"])) == 12
    assert marked(archive.model_cache.get({"other": 1}, ["x"])) == -1


def test_put_deletes_oldest_of_all(archive, monkeypatch):
    monkeypatch.setattr(_model_cache, "MAX_FILES", 5)
    for n in range(7):
        archive.model_cache.put({"n": n}, TASKS, mark(n))
        set_age(archive, {"n": n}, TASKS, 100 - n)
    assert [n for n in range(7) if archive.model_cache.get({"n": n}, TASKS) is not None] == [
        2,
        3,
        4,
        5,
        6,
    ]


def test_put_keeps_new_model_if_clock_is_wrong(archive, monkeypatch):
    monkeypatch.setattr(_model_cache, "MAX_PER_SETTINGS", 1)
    archive.model_cache.put(SETTINGS, ["t1"], mark(1))
    set_age(archive, SETTINGS, ["t1"], -1000)
    archive.model_cache.put(SETTINGS, ["t2"], mark(2))
    assert marked(archive.model_cache.get(SETTINGS, ["t2"])) == 2
    assert len(files_of(archive)) == 1


def test_put_deletes_own_files_only(archive, monkeypatch):
    monkeypatch.setattr(_model_cache, "MAX_FILES", 1)
    archive.model_cache.put(SETTINGS, ["t1"], mark(1))
    folder = archive.path / "models"
    stem = only_file(archive).stem
    for name in (
        "notes.txt",
        f"{stem}.npz.bak",
        f".{stem}.1-old.tmp",
        f".{stem}.1-young.tmp",
        ".other.tmp",
    ):
        (folder / name).write_text("x")
        os.utime(folder / name, (0, 0))
    os.utime(folder / f".{stem}.1-young.tmp")
    archive.model_cache.put(SETTINGS, ["t2"], mark(2))
    assert sorted(
        set(files_of(archive)) - {archive.model_cache._file(SETTINGS, frozenset(["t2"])).name}
    ) == sorted(["notes.txt", f"{stem}.npz.bak", f".{stem}.1-young.tmp", ".other.tmp"])


def test_put_ignores_files_that_cannot_be_deleted(archive, monkeypatch):
    monkeypatch.setattr(_model_cache, "MAX_FILES", 1)
    archive.model_cache.put(SETTINGS, ["t1"], mark(1))

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        archive.model_cache.put(SETTINGS, ["t2"], mark(2))
    assert len(files_of(archive)) == 2


# -- untrusted files ------------------------------------------------------------------------------


def npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


STORE = {"store/format.npy": npy_bytes(np.array(1)), "store/tasks.npy": npy_bytes(np.array(TASKS))}


def zip_bytes(members, compression=zipfile.ZIP_STORED, comment=b""):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
        file.comment = comment
    return buffer.getvalue()


def with_model(data, name="model/weights.npy", **options):
    return zip_bytes(STORE | {name: data}, **options)


def with_store(**changed):
    return zip_bytes(
        STORE | {f"store/{name}.npy": npy_bytes(array) for name, array in changed.items()}
    )


def without(name):
    return zip_bytes({key: data for key, data in STORE.items() if key != name})


GOOD = with_model(npy_bytes(MODEL["weights"]))


def listed(data, n):
    """Claim in the last record that the list of members has `n` bytes."""
    return data[:-10] + n.to_bytes(4, "little") + data[-6:]


def overlapping():
    """A file whose hundred members are the same bytes."""
    data = bytearray(with_model(npy_bytes(np.zeros(1000))))
    start = int.from_bytes(data[-6:-2], "little")
    entries, end = bytes(data[start:-22]), bytes(data[-22:])
    last = entries[entries.rindex(b"PK\1\2") :]
    entries += last * 100
    end = end[:8] + (103).to_bytes(2, "little") * 2 + len(entries).to_bytes(4, "little") + end[16:]
    return bytes(data[:start]) + entries + end


def zip64_end(data):
    """The same file with a ZIP64 record, which takes precedence over the last one."""
    end = data[-22:]
    size, start = int.from_bytes(end[12:16], "little"), int.from_bytes(end[16:20], "little")
    record = b"PK\6\6" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, 3, 3, size, start)
    return data[:-22] + record + b"PK\6\7" + struct.pack("<LQL", 0, len(data) - 22, 1) + end


BAD = {
    "empty": b"",
    "one byte": b"P",
    "text": b"This is no model, but it is a text that is long enough.\n",
    "random": np.random.default_rng(0).bytes(5000),
    "an array": npy_bytes(np.zeros(3)),
    "an array that lies": npy_header((10**12,)),
    "an array that lies, before a model": npy_header((10**12,)) + GOOD[:-30],
    "a name that is not ours": with_model(npy_bytes(np.zeros(3)), name="weights.npy"),
    "empty ZIP": zip_bytes({}),
    "a text in a ZIP": with_model(b"nothing"),
    "an empty member": with_model(b""),
    "cut in the header": with_model(npy_bytes(np.zeros(3))[:40]),
    "cut in the data": with_model(npy_bytes(np.zeros(3))[:-1]),
    "more than the header says": with_model(npy_bytes(np.zeros(3)) + b"\0"),
    "header of a very large array": with_model(npy_header((10**9, 10**9))),
    "header of a large array": with_model(npy_header((2**34,)) + bytes(1000)),
    "negative shape": with_model(npy_header((-2, -3)) + bytes(48)),
    "shape of no numbers": with_model(npy_header((2.5,)) + bytes(20)),
    "empty, and very long": with_model(npy_header((10**12, 0))),
    "texts without length": with_model(npy_header((10**12,), "<U0")),
    "no characters": with_model(npy_header((2,), "<U1") + b"\xff" * 8),
    "bytes": with_model(npy_bytes(np.array([b"x"]))),
    "other byte order": with_model(npy_header((1,), np.dtype(float).newbyteorder().str) + bytes(8)),
    "header of another version": with_model(npy_bytes(np.zeros(3)).replace(b"NUMPY\1", b"NUMPY\2")),
    "header that is code": with_model(npy_bytes(np.zeros(3)).replace(b"(3,)", b"f(),")),
    "header that is deep": with_model(
        b"\x93NUMPY\1\0" + (9000).to_bytes(2, "little") + b"-" * 8999 + b"\n"
    ),
    "deflated": with_model(npy_bytes(np.zeros(1000)), compression=zipfile.ZIP_DEFLATED),
    "deflated, and not smaller": with_model(
        npy_bytes(np.frombuffer(np.random.default_rng(0).bytes(5000), dtype=np.uint8)),
        compression=zipfile.ZIP_DEFLATED,
    ),
    "lzma": with_model(npy_bytes(np.zeros(1000)), compression=zipfile.ZIP_LZMA),
    "a bomb": with_model(npy_bytes(np.zeros(10**6)), compression=zipfile.ZIP_BZIP2),
    "overlapping": overlapping(),
    "a long list": listed(GOOD, 2**30),
    "a list in another place": zip64_end(GOOD),
    "a comment": with_model(npy_bytes(np.zeros(3)), comment=b"hello"),
    "a comment that is not there": GOOD[:-2] + b"\5\0",
    "no tasks": without("store/tasks.npy"),
    "no format": without("store/format.npy"),
    "other tasks": with_store(tasks=np.array(["t1", "t2"])),
    "tasks that are numbers": with_store(tasks=np.array([1, 2, 3])),
    "a table of tasks": with_store(tasks=np.array([TASKS])),
    "one task": with_store(tasks=np.array("t1")),
    "another format": with_store(format=np.array(2)),
    "format of many": with_store(format=np.array([1, 1])),
    "format as text": with_store(format=np.array("1")),
}


@pytest.fixture
def place(archive):
    """The file of the model of SETTINGS and TASKS, which does not exist yet."""
    file = archive.model_cache._file(SETTINGS, frozenset(TASKS))
    file.parent.mkdir(parents=True)
    return file


def assert_ignored(archive):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert archive.model_cache.get(SETTINGS, TASKS) is None
        assert archive.model_cache.nearest(SETTINGS, [TASKS[0], TASKS[2], "t9"]) is None


def test_get_reads_valid_file(archive, place):
    place.write_bytes(GOOD)
    np.testing.assert_array_equal(
        archive.model_cache.get(SETTINGS, TASKS)["weights"], MODEL["weights"]
    )


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_get_ignores_bad_file(archive, place, content):
    place.write_bytes(content)
    tracemalloc.start()
    try:
        assert_ignored(archive)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6
    archive.model_cache.put(SETTINGS, TASKS, mark(1))
    assert marked(archive.model_cache.get(SETTINGS, TASKS)) == 1


def test_get_ignores_truncated_file(archive, place):
    for length in range(len(GOOD)):
        place.write_bytes(GOOD[:length])
        assert archive.model_cache.get(SETTINGS, TASKS) is None


def test_get_ignores_flipped_byte_or_is_right(archive, place):
    """Some bytes do not matter (a date, the version of ZIP)."""
    for position in range(len(GOOD)):
        place.write_bytes(GOOD[:position] + bytes([GOOD[position] ^ 0x10]) + GOOD[position + 1 :])
        model = archive.model_cache.get(SETTINGS, TASKS)
        if model is not None:
            assert list(model) == ["weights"]
            np.testing.assert_array_equal(model["weights"], MODEL["weights"])


def pickled(marker):
    return pickle.dumps(Trap(marker))


def object_array(marker):
    return npy_bytes(np.array([Trap(marker)], dtype=object))


@pytest.mark.parametrize(
    "content",
    [
        pickled,
        object_array,
        lambda marker: with_model(pickled(marker)),
        lambda marker: with_model(object_array(marker)),
        lambda marker: with_model(object_array(marker), name="store/tasks.npy"),
        lambda marker: with_model(npy_header((len(pickled(marker)) // 8,), "|O") + pickled(marker)),
        lambda marker: with_model(npy_bytes(np.array([(1, Trap(marker))], dtype="i8,O"))),
        lambda marker: pickled(marker) + GOOD,
    ],
)
def test_get_runs_no_code(archive, place, tmp_path, content):
    place.write_bytes(content(tmp_path / "marker"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        archive.model_cache.get(SETTINGS, TASKS)
        archive.model_cache.nearest(SETTINGS, TASKS)
    assert not (tmp_path / "marker").exists()


def test_get_ignores_huge_file(archive, place):
    with place.open("wb") as file:
        file.truncate(_model_cache.MAX_BYTES)  # a hole, which takes no space on disk
        file.seek(0, os.SEEK_END)
        file.write(GOOD)
    assert_ignored(archive)


def test_get_ignores_long_list_of_members(archive, place, monkeypatch):
    place.write_bytes(GOOD)
    monkeypatch.setattr(_model_cache, "MAX_LIST_BYTES", 100)
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("ZipFile reads the whole list"))
    assert_ignored(archive)


def test_get_ignores_directory(archive, place):
    place.mkdir()
    assert_ignored(archive)
    with pytest.warns(ArchiveWarning, match="not cached"):
        archive.model_cache.put(SETTINGS, TASKS, MODEL)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in this file system")
def test_get_does_not_block_on_pipe(archive, place):
    os.mkfifo(place)
    assert_ignored(archive)


def test_get_ignores_model_of_other_name(archive, place):
    archive.model_cache.put(SETTINGS, ["t1"], mark(1))
    os.replace(archive.model_cache._file(SETTINGS, frozenset(["t1"])), place)
    assert archive.model_cache.get(SETTINGS, TASKS) is None
