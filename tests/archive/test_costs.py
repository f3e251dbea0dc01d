"""Files that are small on disk and expensive to read: below 100 MB and 2 s for any one of them."""

import pickle
import time
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

from sktransfer.archive import Archive, RecordError, _journal, _model_cache, _storage
from sktransfer.archive._journal import read_journal
from sktransfer.archive._plain_pickle import dumps_plain, loads_plain
from sktransfer.archive._record import record_to_task, task_to_record
from sktransfer.archive._storage import read_task
from sktransfer.dataset import profile
from sktransfer.dataset._fingerprint import MAX_HASHES
from sktransfer.dataset._profile import MAX_ENCLOSING
from sktransfer.exceptions import ArchiveWarning
from sktransfer.utils._array_text import encode_array

MAX_MEMORY, MAX_SECONDS = 100 * 2**20, 2.0


@contextmanager
def bounded():
    """Assert that the block takes little memory and time."""
    start = time.process_time()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MAX_MEMORY, f"{peak / 2**20:.0f} MB"
    # tracemalloc makes allocations about four times as slow.
    assert time.process_time() - start < 4 * MAX_SECONDS


NUMBERS = "packed:float:" + encode_array(np.zeros(90_000))
SIZES = {"kind": "x", "n_rows": 1}


def record_of(make_task, **fields):
    return {**task_to_record(make_task(id="bad")), **fields}


REPEATED = {
    "packed numbers": lambda make: record_of(make, profile={**SIZES, "x": [NUMBERS] * 1000}),
    "packed text": lambda make: record_of(
        make, profile={**SIZES, "x": ["packed:text:" + "a" * 10**6] * 1000}
    ),
    "values": lambda make: record_of(
        make,
        space={
            "branches": [{"C": {"values": ["a" * 10**6] * 1000}}],
            "canonical": {"C": "C"},
            "fixed": {},
            "predictors": [],
        },
    ),
    "packed numbers, not repeated": lambda make: record_of(
        make, profile={**SIZES, "x": [NUMBERS[:-1] + str(n) for n in range(14)]}
    ),
}


@pytest.mark.parametrize("name", REPEATED)
def test_texts_that_are_used_again_are_bounded(archive, tasks_directory, make_task, name):
    (tasks_directory / "bad.joblib").write_bytes(dumps_plain(REPEATED[name](make_task)))
    with bounded(), pytest.warns(ArchiveWarning, match="Skipped a file"):
        assert archive.select().used == ()


@pytest.mark.parametrize("name", REPEATED)
def test_import_bounds_what_is_unpacked(archive, make_task, tmp_path, name):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_STORED) as content:
        content.writestr("tasks/bad.joblib", dumps_plain(REPEATED[name](make_task)))
    with bounded(), pytest.warns(ArchiveWarning, match="were refused"):
        assert not archive.import_(tmp_path / "a.zip").added


def test_usual_record_may_repeat_its_texts(make_task):
    names = {f"a_parameter_with_a_long_name_{n}": 1.0 for n in range(20)}
    trials = [(names, 0.5)] * 5000
    task = make_task(space={name: [1.0] for name in names}, trials=trials)
    assert record_to_task(loads_plain(dumps_plain(task_to_record(task)))) == task


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_of_equal_hash_are_refused(sign):
    """A dict of n of them takes n**2 steps. With 64 bits there are at most 16."""
    modulus = 2**61 - 1
    dicts = [{sign * (modulus * k + n): 0 for k in range(1, 1000)} for n in range(400)]
    with bounded(), pytest.raises(ValueError, match="integer of more than 64 bits"):
        loads_plain(pickle.dumps(dicts, protocol=4))


@pytest.mark.parametrize(
    "content", [b"\n" * _journal.MAX_BYTES, b"a\n" * (_journal.MAX_BYTES // 2)], ids=["empty", "a"]
)
def test_journal_of_many_lines_is_refused_once(archive, monkeypatch, content):
    file = archive.path / "running" / "bad.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    with bounded(), pytest.raises(RecordError, match="lines, more than any journal"):
        read_journal(file)
    calls = []
    monkeypatch.setattr(
        _journal, "read_journal", lambda path: calls.append(path) or read_journal(path)
    )
    for _ in range(3):
        with pytest.warns(ArchiveWarning, match="more than any journal"):
            archive.select()
    assert len(calls) == 1
    file.write_bytes(content[:-1])
    with pytest.warns(ArchiveWarning, match="more than any journal"):
        archive.select()
    assert len(calls) == 2


def test_refused_record_is_not_read_again(archive, tasks_directory, monkeypatch):
    file = tasks_directory / "bad.joblib"
    file.write_bytes(b"nonsense")
    read, calls = _storage.read_record, []
    monkeypatch.setattr(_storage, "read_record", lambda path: calls.append(path) or read(path))
    for _ in range(3):
        with pytest.raises(RecordError, match="not an uncompressed joblib file"):
            read_task(file)
    assert len(calls) == 1
    file.write_bytes(b"other nonsense")
    with pytest.raises(RecordError):
        read_task(file)
    assert len(calls) == 2


def test_file_that_cannot_be_read_now_is_tried_again(archive, make_task, monkeypatch):
    archive.append(make_task(id="good"))
    file = archive.path / "tasks" / "good.joblib"
    with monkeypatch.context() as patch:
        patch.setattr(_storage, "loads_plain", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(RecordError, match="not enough memory"):
            read_task(file)
    assert read_task(file).id == "good"


def test_comparison_of_largest_profiles_is_fast(archive, make_task):
    """As many enclosing tables as are possible, on both sides, with as many rows."""
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(MAX_HASHES + n, 1)) for n in range(MAX_ENCLOSING + 1)]
    seen, target = (
        profile(tables[0] * factor, enclosing=[table * factor for table in tables[1:]])
        for factor in (1.0, 2.0)
    )
    archive.append(make_task(profile=seen))
    # One common row: the index cannot rule the record out.
    target = profile(
        np.vstack([tables[0][:1], tables[0][1:] ** 3]), enclosing=[table**3 for table in tables[1:]]
    )
    with bounded():
        assert len(archive.select(profile=target).used) == 1


def test_model_of_many_texts_is_refused(tmp_path):
    models = Archive(tmp_path).model_cache
    texts = np.array(["ж"] * (_model_cache.MAX_TEXTS + 1))
    models.put({}, ["a"], {"texts": texts})
    with bounded():
        assert models.get({}, ["a"]) is None
    models.put({}, ["a"], {"texts": texts[1:]})
    assert models.get({}, ["a"]) is not None
