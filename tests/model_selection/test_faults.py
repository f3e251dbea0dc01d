"""Thirty searches are killed with SIGKILL. `python -m benchmarks.faults` kills three hundred."""

import os

import pytest

from benchmarks.faults import LIGHT, run


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_killed_searches_are_found_and_resumed(monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(["."] + os.environ.get("PYTHONPATH", "").split(os.pathsep))
    )
    counts, wrong = run(30, seed=0, kinds=LIGHT)
    assert wrong == []
    assert counts["in_the_midst"] > 10
    assert counts["found"] >= counts["reported"] > 50
