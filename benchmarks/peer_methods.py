"""The searches that `benchmarks.peers` compares, all as ask and tell to share evaluations.

OptunaSearchCV and BayesSearchCV are loops around the samplers used here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from benchmarks.peer_cells import SCORING
from benchmarks.plain_bo import make_asker
from sktransfer import DatasetProfile, Space, Task, TransferOptimizer
from sktransfer.encoders import ManualEncoder

Params = dict[str, Any]
N_BEST = 3  # settings of each past task that the portfolio chooses from
OURS = "sktransfer, "
RANDOM, HALVING = "random search", "halving"
INSTALLED = f"{OURS}as installed"
PAST = {
    f"{OURS}10 past": 10,
    f"{OURS}30 past": 30,
    "portfolio of 30 past": 30,
    "nearest of 30 past": 30,
}
SHUFFLED = f"{OURS}30 past, shuffled"
METHODS = [
    RANDOM, HALVING, "optuna TPE", "optuna GP", "skopt GP", "portfolio of 30 past",
    "nearest of 30 past",
    INSTALLED, f"{OURS}10 past", f"{OURS}30 past", SHUFFLED,
]  # fmt: skip
INDEPENDENT = {
    RANDOM, HALVING, "optuna TPE", "optuna GP", "skopt GP", "portfolio of 30 past",
    "nearest of 30 past",
}  # fmt: skip
"""Methods that do not change with the package."""


@dataclass(frozen=True)
class Problem:
    """Everything that a search can use."""

    space: dict[str, Any]
    parsed: Space
    profile: DatasetProfile
    past: Sequence[Task]
    seed: int
    models: Path | None = None


class Proposer(Protocol):
    """The interface of a search."""

    def ask(self) -> Params: ...

    def tell(self, params: Params, score: float) -> None: ...


class Ours:
    """The package with default parameters."""

    def __init__(self, problem: Problem):
        self._optimizer = TransferOptimizer(
            problem.parsed,
            problem.past,
            profile=problem.profile,
            metric=SCORING,
            random_state=problem.seed,
        )
        self._optimizer.model_folders = () if problem.models is None else (problem.models,)
        self._optimizer.fit_surrogate()

    def ask(self) -> Params:
        return self._optimizer.ask()[0]

    def tell(self, params: Params, score: float) -> None:
        self._optimizer.tell(params, score)


class Optuna:
    """A sampler of Optuna."""

    def __init__(self, sampler: str, problem: Problem):
        self._ask, self._tell = make_asker(f"optuna {sampler}", problem.space, problem.seed)

    def ask(self) -> Params:
        return self._ask()

    def tell(self, params: Params, score: float) -> None:
        self._tell(params, score)


class Skopt:
    """The optimizer of scikit-optimize as in BayesSearchCV; a failure counts as the worst score."""

    def __init__(self, problem: Problem):
        import skopt
        from skopt.space import Categorical, Integer, Real

        def translate(entry: Any) -> Any:
            if isinstance(entry, list):
                return Categorical(entry)
            low, high = entry.support()
            if hasattr(entry, "pmf"):
                return Integer(int(low), int(high))
            log = entry.dist.name in ("loguniform", "reciprocal")
            return Real(float(low), float(high), prior="log-uniform" if log else "uniform")

        self._names, self._worst = list(problem.space), 0.0
        axes = [translate(entry) for entry in problem.space.values()]
        self._optimizer = skopt.Optimizer(axes, "GP", random_state=problem.seed)

    def ask(self) -> Params:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = self._optimizer.ask()
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        return dict(zip(self._names, plain, strict=True))

    def tell(self, params: Params, score: float) -> None:
        loss = self._worst if np.isnan(score) else -score
        self._worst = max(self._worst, loss)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._optimizer.tell(list(params.values()), loss)


class Listed:
    """A fixed list of configurations, followed by random ones."""

    def __init__(self, found: Iterator[Params], problem: Problem):
        self._found, self._space, self._rng = found, problem.parsed, problem.seed
        self._seen: list[Params] = []

    def ask(self) -> Params:
        fresh = (params for params in self._found if params not in self._seen)
        params = next(fresh, None) or self._space.sample(1, self._rng + len(self._seen))[0]
        self._seen.append(params)
        return params

    def tell(self, params: Params, score: float) -> None:
        pass


def best_first(task: Task) -> list[Params]:
    """Return the successful configurations of a past task, best first."""
    scores = np.asarray(task.scores)
    order = np.argsort(-scores, kind="stable")
    return [dict(task.trials[i].params) for i in order if np.isfinite(scores[i])]


def nearest(problem: Problem) -> Iterator[Params]:
    """Yield the best configuration of each past task, nearest first, then the second best ones.

    The distance of tasks is that of their meta-features.
    """
    profiles = [DatasetProfile.from_dict(task.profile or {}) for task in problem.past]
    encoder = ManualEncoder().fit(profiles)
    psi, own = encoder.transform(profiles), encoder.transform([problem.profile])
    order = ((psi - own) ** 2).sum(axis=1).argsort()
    ranked = [best_first(problem.past[i]) for i in order]
    for place in range(max(map(len, ranked))):
        yield from (best[place] for best in ranked if place < len(best))


def portfolio(problem: Problem) -> Iterator[Params]:
    """Yield configurations that are jointly best on the past tasks, each given those before it.

    Candidates are the best settings of each past task. A forest fitted to the trials of each task
    predicts their scores on that task, scaled from 0 (median) to 1 (best).
    """
    space = problem.parsed
    candidates = [params for task in problem.past for params in best_first(task)[:N_BEST]]
    theta, reached = space.encode(candidates), []
    for task in problem.past:
        scores = np.asarray(task.scores)
        ok = np.isfinite(scores)
        middle, best = np.median(scores[ok]), scores[ok].max()
        z = (scores[ok] - middle) / max(best - middle, 1e-9)
        forest = ExtraTreesRegressor(50, random_state=0)
        own = [dict(trial.params) for trial, good in zip(task.trials, ok, strict=True) if good]
        reached.append(forest.fit(space.encode(own), z.clip(-1, 1)).predict(theta))
    table = np.array(reached)  # (tasks, candidates)
    best_so_far = np.full(len(table), -1.0)
    for _ in candidates:
        choice = int(np.maximum(table, best_so_far[:, None]).mean(axis=0).argmax())
        best_so_far = np.maximum(best_so_far, table[:, choice])
        table[:, choice] = -np.inf
        yield candidates[choice]


def shuffled(task: Task, seed: int) -> Task:
    """Return the task with its scores assigned to the wrong configurations."""
    order = np.random.default_rng(seed).permutation(len(task.trials))
    trials = (
        replace(trial, score=task.trials[i].score)
        for trial, i in zip(task.trials, order, strict=True)
    )
    return replace(task, trials=tuple(trials))


MAKERS: dict[str, Callable[[Problem], Proposer]] = {
    "optuna TPE": lambda problem: Optuna("TPESampler", problem),
    "optuna GP": lambda problem: Optuna("GPSampler", problem),
    "skopt GP": Skopt,
    "portfolio of 30 past": lambda problem: Listed(portfolio(problem), problem),
    "nearest of 30 past": lambda problem: Listed(nearest(problem), problem),
}
"""Methods that begin with OURS are `Ours`."""
