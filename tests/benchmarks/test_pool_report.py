"""The page of searches on pools."""

import numpy as np
import pytest

from benchmarks.pool_report import MAX_LEVEL, Regrets
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
