"""Fifteen searches are killed with SIGKILL. `python -m benchmarks.faults` kills 441."""

import os

import pytest

from benchmarks.faults import run


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_killed_searches_are_found_and_resumed():
    counts, wrong = run(15, seed=0)
    assert wrong == []
    assert counts["interrupted"] > 5
    assert counts["found"] >= counts["reported"] > 25
