"""Untrusted files everywhere: no code runs, memory is bounded, nothing else is written."""

import io
import json
import pickle
import tracemalloc
import warnings
import zipfile

import joblib
import numpy as np
import pytest

from sktransfer.archive import Archive, RecordError, _journal, _plain_pickle
from sktransfer.archive._plain_pickle import dumps_plain
from sktransfer.archive._record import task_to_record
from sktransfer.exceptions import ArchiveWarning
from sktransfer.space import Space
from sktransfer.task import Task
from tests.archive.untrusted import BAD_STREAMS, START, Trap, npy_header

MAX_MEMORY = 100 * 2**20


def valid_record(id="good"):
    return task_to_record(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], id=id))


def with_(**fields):
    return lambda marker: dumps_plain({**valid_record("bad"), **fields})


def joblib_bytes(value, **options):
    buffer = io.BytesIO()
    joblib.dump(value, buffer, **options)
    return buffer.getvalue()


def stream(name):
    return lambda marker: BAD_STREAMS[name][0]


RECORDS = {  # name -> bytes of a record file, given the file that a trap would create
    "reduce": lambda marker: pickle.dumps(Trap(marker), 4),
    "reduce in a field": lambda marker: pickle.dumps(
        {**valid_record("bad"), "profile": Trap(marker)}, 4
    ),
    "reduce in a key": lambda marker: pickle.dumps(
        {**valid_record("bad"), "profile": {("k", Trap(marker)): 1}}, 4
    ),
    "reduce by protocol 2": lambda marker: pickle.dumps(Trap(marker), 2),
    "reduce by protocol 5": lambda marker: pickle.dumps(Trap(marker), 5),
    "reduce by joblib": lambda marker: joblib_bytes({"trap": Trap(marker)}),
    "global": stream("global as text"),
    "instance": stream("instance"),
    "object array": lambda marker: joblib_bytes(np.array([Trap(marker)], dtype=object)),
    "array": lambda marker: joblib_bytes({**valid_record("bad"), "profile": np.zeros(3)}),
    "nested pickle as bytes": lambda marker: pickle.dumps({"inner": pickle.dumps(Trap(marker))}, 4),
    "nested pickle as text": with_(profile=pickle.dumps({"a": 1}, 0).decode("latin-1")),
    "compressed": lambda marker: joblib_bytes({"trap": Trap(marker)}, compress=3),
    "compression bomb": lambda marker: joblib_bytes("0" * (120 * 2**20), compress=("zlib", 9)),
    "text beyond the file": stream("text beyond the file"),
    "frame beyond the file": stream("frame beyond the file"),
    "memo bomb": stream("memo bomb"),
    "array of a terabyte": lambda marker: npy_header((2**37,)),
    "ten million nested lists": lambda marker: START + b"]" * 10**7 + b"a" * (10**7 - 1) + b".",
    "shared lists, 2**40 in all": lambda marker: (
        START + b"]\x94" + b"](h\x00h\x00e\x94" * 40 + b"."
    ),
    "wrong shape: trials": with_(trials={"a": 1}),
    "wrong shape: a trial": with_(trials=[[1, 2, 3]]),
    "wrong shape: score": with_(trials=[{**valid_record()["trials"][0], "score": "0.9"}]),
    "wrong shape: space": with_(space={"branches": 3}),
    "wrong shape: profile": with_(profile=[1, 2]),
    "id that leads out": with_(id="../../bad"),
    "absolute id": with_(id="/tmp/bad"),
    "id of another record": with_(id="good"),
    "newer format": with_(format=99),
    "negative format": with_(format=-1),
}


@pytest.fixture
def guarded(tmp_path):
    """An archive. Afterwards, assert that memory was bounded and no other file changed."""
    archive = Archive(tmp_path / "around" / "past")
    archive.append(Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], id="good"))
    outside = {path for path in tmp_path.rglob("*") if archive.path not in path.parents}
    tracemalloc.start()
    yield archive
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MAX_MEMORY
    now = {path for path in tmp_path.rglob("*") if archive.path not in path.parents}
    assert now <= outside | {tmp_path / "stranger.zip"}


def test_there_are_thirty_bad_records():
    assert len(RECORDS) >= 30


SLOW = "ten million nested lists"  # slow, so it has a test of its own


def test_reader_refuses_ten_million_nested_lists(monkeypatch):
    """They are refused before anything is unpickled."""
    monkeypatch.setattr(
        _plain_pickle, "_PlainUnpickler", lambda file: pytest.fail("it was unpickled")
    )
    with pytest.raises(ValueError, match="larger than 16 MiB"):
        _plain_pickle.loads_plain(RECORDS[SLOW](None))


@pytest.mark.parametrize("name", [name for name in RECORDS if name != SLOW])
def test_archive_skips_bad_record(guarded, tmp_path, name):
    file = guarded.path / "tasks" / "bad.joblib"
    tracemalloc.stop()  # making the file is not measured
    data = RECORDS[name](tmp_path / "marker")
    file.write_bytes(data)
    tracemalloc.start()
    with pytest.warns(ArchiveWarning, match="Skipped") as caught:
        selection = guarded.select(Space.parse({"C": [1, 10]}))
    assert len(caught) == 1 and "bad.joblib" in str(caught[0].message)
    assert [task.id for task in selection.used] == ["good"]
    (finding,) = guarded.verify()
    assert finding.file == str(file) and finding.problem
    assert file.read_bytes() == data, "looking does not touch it"
    (finding,) = guarded.verify(repair=True)
    if name == "newer format":
        assert finding.moved is None and "99" in finding.problem and " 1" in finding.problem
        assert file.read_bytes() == data
    else:
        assert (guarded.path / "damaged" / "bad.joblib").read_bytes() == data
        assert guarded.verify() == []
        assert [task.id for task in guarded.select().used] == ["good"]
    assert not (tmp_path / "marker").exists()


def filled(operation, n):
    """A well-formed stream with `n` equal operations."""
    return START + b"]\x94(" + operation * n + b"e."


@pytest.mark.parametrize("n", [_plain_pickle.MAX_NUMBERS - 10, 10**7])
@pytest.mark.parametrize(
    "operation", [b"N", b"K\x05", b"M\x05\x05", b"G" + b"\x40" * 8, b"]\x94", b"}\x94"]
)
def test_reading_stays_within_memory_bound(guarded, operation, n):
    few = operation[:1] in b"]}"
    data = filled(
        operation,
        min(
            _plain_pickle.MAX_STEPS - 10 if few and n < 10**7 else n,
            _plain_pickle.MAX_BYTES // len(operation) - 9,
        ),
    )
    file = guarded.path / "tasks" / "bad.joblib"
    file.write_bytes(data)
    with pytest.warns(ArchiveWarning, match="Skipped"):
        assert [task.id for task in guarded] == ["good"]


@pytest.mark.parametrize("score", ["1" + "0" * 400, "1" + "0" * 30])
def test_journal_ignores_line_with_huge_number(guarded, score):
    trial = '{"params":{},"score":!,"std":0.0,"fit_time":0.0,"status":"ok","metrics":{}}'.replace(
        "!", score
    )
    task = {
        name: value
        for name, value in valid_record("bad").items()
        if name not in ("trials", "complete")
    }
    lines = [json.dumps({"journal": 1, "task": task}), '{"n":0,"trial":' + trial + "}"]
    (guarded.path / "running").mkdir()
    file = guarded.path / "running" / "bad.jsonl"
    file.write_bytes(
        b"\n".join(_journal._checksum(line.encode()) + b" " + line.encode() for line in lines)
    )
    assert [task.id for task in guarded.select().used] == ["good"]


def test_select_ignores_index_that_is_file_or_too_deep(guarded):
    (guarded.path / "index").write_bytes(b"nothing")
    assert [task.id for task in guarded.select().used] == ["good"]
    (guarded.path / "index").unlink()
    (guarded.path / "index").mkdir()
    deep = []
    for _ in range(100_000):
        deep = [deep]
    stream = START + b"]\x94" * 10**5 + b"a" * (10**5 - 1) + b"."
    assert len(stream) < _plain_pickle.MAX_BYTES and deep
    (guarded.path / "index" / "entries.joblib").write_bytes(stream)
    assert [task.id for task in guarded.select().used] == ["good"]


def test_archive_skips_linked_record(guarded, tmp_path):
    file = guarded.path / "tasks" / "secret.joblib"
    file.symlink_to(tmp_path / "around" / "past" / "tasks" / "good.joblib")
    with pytest.warns(ArchiveWarning, match=r"secret\.joblib: it is not a regular file"):
        assert [task.id for task in guarded] == ["good"]
    (finding,) = guarded.verify(repair=True)
    assert finding.moved.endswith("secret.joblib")
    assert [task.id for task in guarded] == ["good"]


# -- models and the index ------------------------------------------------------------------------


def npz(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as content:
        for name, data in members.items():
            content.writestr(name.replace("__", "/") + ".npy", data)
    return buffer.getvalue()


MODELS = {
    "pickle": lambda marker: pickle.dumps(Trap(marker), 4),
    "object array": lambda marker: npz(
        model__a=npy_header((1,), "|O") + pickle.dumps(Trap(marker), 4)
    ),
    "terabyte": lambda marker: npz(model__a=npy_header((2**37,))),
    "nothing": lambda marker: b"",
}


@pytest.mark.parametrize("name", MODELS)
def test_model_cache_ignores_bad_model(guarded, tmp_path, name):
    guarded.model_cache.put({}, ["t1"], {"a": np.zeros(2)})
    (file,) = (guarded.path / "models").iterdir()
    assert guarded.verify() == []
    file.write_bytes(MODELS[name](tmp_path / "marker"))
    assert guarded.model_cache.get({}, ["t1"]) is None
    (finding,) = guarded.verify(repair=True)
    assert finding.problem == "it is not a valid model"
    assert (guarded.path / "damaged" / file.name).exists() and not file.exists()
    assert not (tmp_path / "marker").exists()


INDEXES = {
    "reduce": lambda marker: pickle.dumps(Trap(marker), 4),
    "terabyte": RECORDS["text beyond the file"],
    "lists": lambda marker: dumps_plain([1, 2, 3]),
    "columns": lambda marker: dumps_plain({"index": 1, "parts": [], "columns": {"id": "../x"}}),
    "numbers": lambda marker: dumps_plain({"index": 1, "parts": [{"space": {}}], "columns": {}}),
    "another format": lambda marker: dumps_plain({"index": 2}),
    "nothing": lambda marker: b"",
}


@pytest.mark.parametrize("name", INDEXES)
def test_select_ignores_bad_index(guarded, tmp_path, name):
    (guarded.path / "index").mkdir()
    (guarded.path / "index" / "entries.joblib").write_bytes(INDEXES[name](tmp_path / "marker"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [task.id for task in guarded.select(Space.parse({"C": [1]})).used] == ["good"]
    assert not (tmp_path / "marker").exists()


# -- exported files ------------------------------------------------------------------------------


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as content:
        for name, data in members.items():
            content.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize("name", [name for name in RECORDS if name != SLOW])
def test_import_refuses_bad_record(guarded, tmp_path, name):
    tracemalloc.stop()
    file = tmp_path / "stranger.zip"
    members = {
        "tasks/bad.joblib": RECORDS[name](tmp_path / "marker"),
        "tasks/new.joblib": dumps_plain(valid_record("new")),
    }
    file.write_bytes(zipped(members))
    tracemalloc.start()
    with pytest.warns(ArchiveWarning, match=r"Some records of .* were refused"):
        received = guarded.import_(file)
    assert received.added == ("new",) and len(received.refused) == 1
    assert {path.name for path in (guarded.path / "tasks").iterdir()} == {
        "good.joblib",
        "new.joblib",
    }
    assert not (tmp_path / "marker").exists()


def lies_about_size():
    data = bytearray(zipped({"tasks/bad.joblib": b"0" * 10**8}))
    for place in (data.find(b"PK\1\2") + 24, 22):  # the size before compression, in both headers
        data[place : place + 4] = (1000).to_bytes(4, "little")
    return bytes(data)


BOMBS = {
    "compression bomb": lambda: zipped({"tasks/bad.joblib": b"0" * (120 * 2**20)}),
    "compression bomb that lies": lies_about_size,
    "leads out": lambda: zipped({"tasks/../../../bad.joblib": dumps_plain(valid_record("bad"))}),
    "absolute": lambda: zipped({"/tasks/bad.joblib": dumps_plain(valid_record("bad"))}),
    "backslashes": lambda: zipped({"tasks/..\\..\\bad.joblib": dumps_plain(valid_record("bad"))}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_import_refuses_bad_member(guarded, tmp_path, name):
    tracemalloc.stop()
    file = tmp_path / "stranger.zip"
    file.write_bytes(BOMBS[name]())
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert guarded.import_(file).added == ()
    assert [task.id for task in guarded] == ["good"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense" * 100,
        zipped({})[:-1],
        zipped({"a": b"b"})[:-30],
        b"PK\5\6" + b"\xff" * 16 + b"\0\0",
    ],
    ids=["nothing", "nonsense", "cut off", "cut shorter", "no list"],
)
def test_import_refuses_other_files(guarded, tmp_path, data):
    (tmp_path / "stranger.zip").write_bytes(data)
    with pytest.raises(RecordError, match=r"stranger\.zip: it is not an exported archive"):
        guarded.import_(tmp_path / "stranger.zip")
