"""Properties of the reader: plain data are returned, and damage gives errors only."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sktransfer.archive import _plain_pickle
from sktransfer.archive._plain_pickle import dumps_plain
from sktransfer.archive._record import MAX_INTEGER, MIN_INTEGER, record_to_task, task_to_record
from sktransfer.task import Task
from sktransfer.utils._values import identity

texts = st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers(MIN_INTEGER, MAX_INTEGER) | st.floats() | texts
plain_data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=50,
)


@settings(deadline=None)
@given(plain_data)
def test_loads_plain_returns_what_was_dumped(data):
    assert repr(_plain_pickle.loads_plain(dumps_plain(data))) == repr(
        data
    )  # distinguishes 1, 1.0 and True


@settings(deadline=None)
@given(plain_data)
def test_loads_plain_reads_pickles_of_plain_data(data):
    assume(
        not isinstance(data, dict) or "checksum" not in data
    )  # only the archive writes this field
    assert repr(_plain_pickle.loads_plain(pickle.dumps(data, protocol=4))) == repr(data)


@pytest.mark.parametrize("length", [254, 255, 256, 257, 65_535, 65_536, 300_000])
def test_loads_plain_reads_long_and_repeated_texts(length):
    """Texts of different lengths, and memo entries, have different operations."""
    data = {"x" * length: ["é" * length] * 2, "names": [str(n) for n in range(length // 100)] * 2}
    assert _plain_pickle.loads_plain(dumps_plain(data)) == data


RECORD = dumps_plain(
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
    """Return the task in these bytes, or the message of the ValueError."""
    try:
        return record_to_task(_plain_pickle.loads_plain(data))
    except ValueError as error:
        return str(error)


@settings(deadline=None, max_examples=500)
@given(damages)
def test_damaged_record_gives_error_or_valid_task(damages):
    outcome = read(damage(RECORD, damages))
    if isinstance(outcome, str):
        assert 0 < len(outcome) < 500
    else:
        record = _plain_pickle.loads_plain(damage(RECORD, damages))
        assert all(
            identity(record[name]) == identity(value)
            for name, value in task_to_record(outcome).items()
        )
        assert all(np.isfinite(trial.score) == (trial.status == "ok") for trial in outcome.trials)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200))
def test_random_bytes_give_error(data):
    assert 0 < len(read(b"\x80\x04" + data)) < 500  # no record is that short
