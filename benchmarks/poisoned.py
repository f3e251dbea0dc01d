"""Poisoned pasts: records of a stranger whose scores are plausible and misleading.

    python -m benchmarks.poisoned [--report docs/results/poisoned.md]

The stranger knows the estimator, the space and the worst configuration for the target's data. He
sends 30 records of 50 trials on data of similar sizes, whose scores fall smoothly from their best
at that very configuration. A search with these records is compared with one that has no past, on
the same pool of evaluated configurations. The cost is the number of trials that the search with
the records is behind: how many trials later it finds what the other one has after k.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.runner import format_page, make_parser
from sktransfer import Archive, Task, TransferOptimizer, profile
from sktransfer.space import Space

N_RECORDS, N_TRIALS, N_POOL, N_ASKED = 30, 50, 120, 30
COMPARED = (1, 3, 5, 10, 15, 20)
MAX_COST = 5
DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
PROBLEMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "SVC": (SVC(), {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 10)}),
    "decision tree": (
        DecisionTreeClassifier(random_state=0),
        {
            "max_depth": randint(1, 20),
            "min_samples_leaf": randint(1, 60),
            "criterion": ["gini", "entropy"],
        },
    ),
    "logistic regression": (
        LogisticRegression(max_iter=200),
        {"C": loguniform(1e-4, 1e3), "class_weight": [None, "balanced"]},
    ),
}


def load_small(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = DATA[name](return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:300]
    return X[rows] / X.std(), y[rows]


def evaluate_pool(
    estimator: Any, space: Space, X: np.ndarray, y: np.ndarray, seed: int
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Return configurations and their cross-validated scores."""
    pool = space.sample(N_POOL, np.random.default_rng(seed))
    scores = [
        cross_val_score(clone(estimator).set_params(**params), X, y, cv=3).mean() for params in pool
    ]
    return pool, np.array(scores)


def make_poison(
    space: Space, worst: dict[str, Any], folder: Path, n_classes: int, seed: int
) -> Sequence[Task]:
    """Return the stranger's records as they arrive in the archive."""
    rng = np.random.default_rng(seed)
    [center] = space.encode([worst])
    stranger = Archive(folder / "stranger")
    for _ in range(N_RECORDS):
        params = space.sample(N_TRIALS, rng)
        distance = ((space.encode(params) - center) ** 2).sum(axis=1)
        best, width = rng.uniform(0.8, 0.99), rng.uniform(0.1, 0.3)
        scores = best - rng.uniform(0.2, 0.5) * (1 - np.exp(-distance / width))
        scores += rng.normal(scale=0.005, size=N_TRIALS)
        n, p = int(rng.integers(100, 500)), int(rng.integers(4, 40))
        X, y = rng.normal(size=(n, p)), rng.integers(0, n_classes, n)
        trials = list(zip(params, scores.tolist(), strict=True))
        stranger.append(Task.from_trials(space, trials, profile(X, y), metrics=["score"]))
    stranger.export(folder / "poison.zip")
    own = Archive(folder / "own", starter=False)
    own.import_(folder / "poison.zip")
    return own.select(space).loaded().used


def search(
    space: Space, pool: list[dict[str, Any]], scores: np.ndarray, data: Any, past: Sequence[Task]
) -> np.ndarray:
    """Return the best score after each trial."""
    optimizer = TransferOptimizer(space, past, profile=data, metric="score", random_state=0)
    position, found = {repr(params): i for i, params in enumerate(pool)}, []
    for _ in range(N_ASKED):
        [params] = optimizer.ask(pool=pool)
        found.append(float(scores[position[repr(params)]]))
        optimizer.tell(params, found[-1])
    return np.maximum.accumulate(found)


def trials_behind(alone: np.ndarray, poisoned: np.ndarray, k: int) -> int:
    """Return how many trials later the search with the records finds what the other has after k."""
    goal = alone[k - 1] - 1e-12
    found = np.flatnonzero(poisoned >= goal)
    return (int(found[0]) if len(found) else N_ASKED) - int(np.flatnonzero(alone >= goal)[0])


def compare(problem: str, name: str, seed: int) -> tuple[list[int], bool]:
    """Return the trials behind after each of `COMPARED`, and whether the records were removed."""
    estimator, entries = PROBLEMS[problem]
    space = Space.parse(entries, estimator)
    X, y = load_small(name)
    pool, scores = evaluate_pool(estimator, space, X, y, seed)
    data = profile(X, y)
    with tempfile.TemporaryDirectory() as top:
        worst = pool[int(scores.argmin())]
        past = make_poison(space, worst, Path(top), len(np.unique(y)), seed)
        assert len(past) == N_RECORDS
        alone, poisoned = (search(space, pool, scores, data, each) for each in ((), past))
        own = Archive(Path(top) / "own")
        own.prune(origin="poison.zip")
        is_clean = len(own) == 0
    return [trials_behind(alone, poisoned, k) for k in COMPARED], is_clean


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    rows, costs, n_clean, n = [], [], 0, 0
    for problem in PROBLEMS:
        own = []
        for name in DATA:
            for seed in range(options.seeds):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    behind, is_clean = compare(problem, name, seed)
                print(problem, name, seed, behind, flush=True)
                own.append(behind)
                n_clean, n = n_clean + is_clean, n + 1
        means, costs = np.mean(own, axis=0), [*costs, *own]
        rows.append(f"| {problem} | " + " | ".join(f"{mean:+.1f}" for mean in means) + " |")
    means, errors = np.mean(costs, axis=0), 1.96 * np.std(costs, axis=0, ddof=1) / np.sqrt(n)
    cells = " | ".join(f"{m:+.1f} ± {e:.1f}" for m, e in zip(means, errors, strict=True))
    lines = ["# Poisoned pasts", "", *__doc__.strip().split("\n")[4:], ""]
    lines += ["| trials behind after | " + " | ".join(map(str, COMPARED)) + " |"]
    lines += ["|---|" + "---:|" * len(COMPARED), *rows, f"| all, 95 % | {cells} |", ""]
    lines += [
        f"{n} searches. The largest mean is {means.max():+.1f} trials (limit {MAX_COST}). "
        f"`prune(origin=...)` removed the records in {n_clean} of {n} archives."
    ]
    text = format_page(lines)
    print(text)
    if options.report:
        options.report.write_text(text)


if __name__ == "__main__":
    main()
