"""Surrogates use the CPU, whatever torch's default device is."""

import numpy as np
import pytest
import torch
from scipy.stats import uniform
from sklearn.datasets import make_classification

from sktransfer import Task, TransferOptimizer, profile

SPACE = {"a": uniform(0, 1)}


@pytest.fixture
def elsewhere():
    torch.set_default_device("meta")  # it holds no numbers
    yield
    torch.set_default_device(None)


def data(seed):
    return profile(*make_classification(60, 4, random_state=seed), keep="sample")


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["auto", "gp", "dist-gp", "dklm", "ablr", "copula-gp"])
def test_search_ignores_torch_default_device(surrogate, elsewhere):
    draws = np.random.default_rng(0).random((4, 10))
    tasks = [
        Task.from_trials(SPACE, [({"a": a}, -((a - 0.5) ** 2)) for a in row], data(seed))
        for seed, row in enumerate(draws)
    ]
    optimizer = TransferOptimizer(
        SPACE, tasks, profile=data(99), surrogate=surrogate, random_state=0
    )
    for _ in range(6):
        [params] = optimizer.ask()
        optimizer.tell(params, -((params["a"] - 0.5) ** 2))
    assert abs(optimizer.to_task().best.params["a"] - 0.5) < 0.2
