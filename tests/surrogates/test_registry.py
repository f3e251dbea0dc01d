"""Every surrogate of the registry: unusual past tasks, searches, documentation."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import loguniform, uniform
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from sktransfer import Task, TransferOptimizer, TransferSearchCV, profile
from sktransfer.surrogates import REGISTRY

NAMES = sorted(set(REGISTRY) - {"auto"})
SPACE = {"a": uniform(0, 1), "b": loguniform(1e-3, 1e3), "c": ["x", "y", "z"], "new": uniform(0, 1)}


def data(seed):
    return profile(*make_classification(60, 4, random_state=seed))


def unusual_past():
    """Past tasks of many kinds, none with the parameter "new" or the value "z"."""
    rng = np.random.default_rng(0)
    space = {"a": uniform(0, 1), "b": loguniform(1e-3, 1e3), "c": ["x", "y"], "gone": [1, 2, 3]}

    def task(name, n, score, seed=None):
        params = [
            {
                "a": rng.random(),
                "b": 10 ** rng.uniform(-3, 3),
                "c": rng.choice(["x", "y"]),
                "gone": 1,
            }
            for _ in range(n)
        ]
        trials = [{"params": p, "score": score(p), "fit_time": rng.random()} for p in params]
        return Task.from_trials(space, trials, None if seed is None else data(seed), id=name)

    def good(p):
        return 1 - (p["a"] - 0.3) ** 2 - 0.01 * np.log10(p["b"]) ** 2

    return [
        task("plain", 15, good, 1),
        task("another metric", 15, lambda p: -1e6 * (1 - good(p)), 2),
        task("no profile", 12, good),
        task("fewer trials than parameters", 2, good, 3),
        task("one trial", 1, good, 4),
        task("all equal", 10, lambda p: 0.5, 5),
        task("some failed", 12, lambda p: good(p) if p["a"] > 0.4 else np.nan, 6),
        task("all failed", 5, lambda p: np.nan, 7),
        task("no trials", 0, good, 8),
        *(task(f"more {seed}", 10, good, seed) for seed in range(10, 16)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_surrogate_handles_unusual_past(name):
    tasks = unusual_past()
    optimizer = TransferOptimizer(SPACE, tasks, profile=data(0), surrogate=name, random_state=0)
    for number in range(7):
        [params] = optimizer.ask()
        score = np.nan if number == 1 else 1 - (params["a"] - 0.3) ** 2
        optimizer.tell(params, score, cost=0.1)
    batch = optimizer.ask(3)
    assert len({tuple(params.items()) for params in batch}) == 3
    for parts in (optimizer.similarity(), optimizer.similarity_basis()):
        assert parts is None or len(parts) == len(tasks)
    similarity = optimizer.similarity()
    assert similarity is None or ((similarity >= 0) & (similarity <= 1)).all()
    if optimizer.surrogate.is_cacheable:
        assert optimizer.surrogate.task_ids == [task.id for task in tasks]


@pytest.mark.parametrize("name", NAMES)
def test_surrogate_warns_only_without_past(name):
    for tasks in (unusual_past()[:1], []):
        optimizer = TransferOptimizer(SPACE, tasks, profile=data(0), surrogate=name, random_state=0)
        transfers = optimizer.surrogate.uses_past_tasks and optimizer.surrogate.fallback_name
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                [params] = optimizer.ask()
                optimizer.tell(params, params["a"], cost=0.1)
        warned = any("no past trials" in str(warning.message) for warning in caught)
        assert warned == bool(transfers and not tasks)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_search_with_past_raises_no_warning(name, tmp_path):
    """Past tasks cause no warning, and no surrogate fails."""
    space = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1)}
    for seed in range(3):
        past = TransferSearchCV(
            SVC(), space, n_iter=4, cv=2, archive=tmp_path, surrogate="random", random_state=seed
        )
        past.fit(*make_classification(40, 4, random_state=seed))
    search = TransferSearchCV(
        SVC(), space, n_iter=5, cv=2, archive=tmp_path, surrogate=name, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        search.fit(*make_classification(50, 4, random_state=9))
    assert len(search.cv_results_["params"]) == 5
    assert len(search.source_tasks_) == (3 if search.surrogate_.uses_past_tasks else 0)


def test_every_surrogate_name_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "surrogates.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f'`"{name}"`' not in page] == []
