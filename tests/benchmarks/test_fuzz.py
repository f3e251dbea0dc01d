"""The readers refuse or read what they are given, and the fuzzing program would notice if not."""

import numpy as np
import pytest

from benchmarks import fuzz, fuzz_readers
from benchmarks.fuzz_readers import Choices, Readers


def inputs(n, kind):
    rng = np.random.default_rng(0)
    return [bytes([kind, k % 2]) + rng.bytes(60) for k in range(n)]


@pytest.mark.parametrize("kind", range(5), ids=fuzz.KINDS)
def test_readers_withstand_random_inputs(tmp_path, kind):
    readers = Readers(tmp_path / "files")
    for data in inputs(60, kind):
        readers.run(data)
    assert readers.counts[fuzz.KINDS[kind]] == 60
    assert not any(readers.counts[finding] for finding in fuzz.FINDINGS)


def test_unchanged_files_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_readers, "damage", lambda data, choices: data)
    readers = Readers(tmp_path / "files")
    for kind in range(5):
        readers.run(bytes([kind, 0]))
    assert readers.counts["refused"] == 0 and readers.counts["wrong"] == 0


def test_errors_of_another_kind_and_wrong_scores_are_found(tmp_path, monkeypatch):
    readers = Readers(tmp_path / "files")
    wrong = readers.tasks[0]
    monkeypatch.setattr(fuzz_readers, "parse_record", lambda data, path: readers.tasks[1])
    readers.by_id["t1"] = wrong
    monkeypatch.setattr(fuzz_readers, "_are_equal", lambda one, other: one.id == other.id)
    readers.run(bytes([0, 0]))
    assert readers.counts["wrong"] == 1
    monkeypatch.setattr(fuzz_readers, "parse_record", lambda data, path: None)
    readers.run(bytes([0, 0]))
    assert readers.counts["other errors"] == 1


def test_choices_are_zero_after_the_end():
    choices = Choices(bytes([7]))
    assert [choices.below(5), choices.below(5), choices.below(1000)] == [2, 0, 0]


def test_random_run_prints_counts():
    found = {}
    fuzz.run_at_random(lambda data: found.update(n=found.get("n", 0) + 1), 0.01, seed=0)
    assert found["n"] >= 100
