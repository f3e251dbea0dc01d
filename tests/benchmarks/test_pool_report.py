"""The page of searches on pools."""

import numpy as np
import pytest

from benchmarks.pool_report import MAX_LEVEL, Regrets, write_kind
from benchmarks.pretraining.choose import Cell, random_search


@pytest.mark.parametrize("k", [1, 4, 9])
def test_random_level_finds_the_number_of_random_trials(k):
    rng = np.random.default_rng(0)
    regret = rng.random(20)
    cells = {("svc", "a"): Cell("svc", "a", "a", -regret, regret)}
    [reached] = random_search(cells["svc", "a"], [k])
    row = {"estimator": "svc", "data": "a", "method": "shipped", "regret": [reached, 0.0]}
    regrets = Regrets([row], cells)
    assert regrets.random_level("shipped", 1) == k


def test_method_ahead_of_all_random_trials_has_no_level():
    rng = np.random.default_rng(0)
    regret = 0.1 + rng.random(200)
    cells = {("svc", "a"): Cell("svc", "a", "a", -regret, regret)}
    row = {"estimator": "svc", "data": "a", "method": "shipped", "regret": [0.0]}
    assert Regrets([row], cells).random_level("shipped", 1) is None
    assert len(regret) > MAX_LEVEL


def test_later_trials_are_compared_for_each_estimator():
    regret = np.linspace(0.0, 2.0, 128)
    cells = {("svc", name): Cell("svc", name, name, -regret, regret) for name in "ab"}
    ours = {"a": 0.5, "b": 0.3}
    rows = [
        {"estimator": "svc", "data": data, "method": method, "regret": [value] * 30}
        for data in "ab"
        for method, value in (("shipped", ours[data]), ("plain GP", 0.2))
    ]
    lines = write_kind("classification", Regrets(rows, cells))
    [found] = [line for line in lines if line.startswith("| svc | shipped | 10 |")]
    assert "| 0.400 | 0.200 | +0.200 ± 0.196 | missed |" in found
