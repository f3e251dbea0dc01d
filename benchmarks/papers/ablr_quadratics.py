"""Perrone et al. 2018, supplement B.3, Figures 5 and 6: quadratic functions."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import uniform

from benchmarks.papers._compare import best_so_far, ranks, trials_table
from benchmarks.papers._experiment import Experiment, Rows, interval, markdown
from benchmarks.papers._figures import curves, legend_beside, panels
from benchmarks.papers._replay import with_seed
from benchmarks.papers.ablr import RETRAIN
from sktransfer import Space, Task, TransferOptimizer
from sktransfer.dataset import DatasetProfile
from sktransfer.encoders import ManualEncoder
from sktransfer.surrogates import ABLR, GP, DistGP, Surrogate, TargetBLR, make_surrogate

D, HALF_WIDTH = 3, 5.0
SPACE = {f"x{j}": uniform(-HALF_WIDTH, 2 * HALF_WIDTH) for j in range(D)}
LOW, HIGH = 0.1, 10.0  # range of a, b and c
N_TASKS, N_PAST, N_TRIALS = 30, 10, 20
N_TARGETS, N_QUICK = 10, 1
N_SLOW = 2  # targets of `bohamiann`
AT = [1, 2, 3, 5, 10, 20]
FLOOR = 1e-4  # regrets below it are drawn as equal
MORE_STEPS = 200
LONGER = f"ABLR transfer (ctx), {MORE_STEPS} steps"
METHODS = ["ABLR transfer", "ABLR transfer (ctx)", "ABLR", "GP transfer (ctx)", "GP", "dngo"]
METHODS += ["random", LONGER]
SLOW = "bohamiann"


@dataclass(frozen=True)
class Quadratic:
    """The function a/2 |x|² + b 1'x + 3c, to be minimized."""

    a: float
    b: float
    c: float

    def __call__(self, params: dict[str, Any]) -> float:
        x = np.array([params[f"x{j}"] for j in range(D)])
        return float(self.a / 2 * x @ x + self.b * x.sum() + 3 * self.c)

    @property
    def minimum(self) -> float:
        best = np.clip(-self.b / self.a, -HALF_WIDTH, HALF_WIDTH)
        return float(D * (self.a / 2 * best**2 + self.b * best) + 3 * self.c)

    @property
    def profile(self) -> DatasetProfile:
        """A profile whose meta-features are the context (a, b, c)."""
        context = {"a": self.a, "b": self.b, "c": self.c}
        return DatasetProfile("unsupervised", 1, meta_features=context)


@lru_cache(maxsize=4)
def quadratics(seed: int) -> list[Quadratic]:
    drawn = np.random.default_rng(seed).uniform(LOW, HIGH, (N_TASKS, 3))
    return [Quadratic(*map(float, row)) for row in drawn]


def past_tasks(target: int, seed: int) -> list[Task]:
    """Return the other tasks with random evaluations."""
    rng = np.random.default_rng([seed, 1])
    tasks = []
    for number, function in enumerate(quadratics(seed)):
        drawn = Space.parse(SPACE).sample(N_PAST, rng)
        trials = [(params, -function(params)) for params in drawn]
        if number != target:
            tasks.append(Task.from_trials(SPACE, trials, function.profile, id=f"{number}"))
    return tasks


def surrogate_of(method: str) -> Surrogate:
    plain = {"guard": False, "winsorize": False}
    paper = {"head": "zero", "retrain": RETRAIN, **plain}
    made: dict[str, Surrogate] = {
        "ABLR transfer": ABLR(**paper),
        "ABLR transfer (ctx)": ABLR(encoder=ManualEncoder(), **paper),
        LONGER: ABLR(encoder=ManualEncoder(), **paper | {"retrain": MORE_STEPS}),
        "ABLR": TargetBLR(winsorize=False),
        "GP transfer (ctx)": DistGP(ManualEncoder(), **plain),
        "GP": GP(winsorize=False),
    }
    return made.get(method) or make_surrogate(method)


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (target, method, seed)."""
    n = N_QUICK if quick else N_TARGETS
    main = [(target, m, seed) for seed in range(seeds) for target in range(n) for m in METHODS]
    return main + [(target, SLOW, 0) for target in range(0 if quick else N_SLOW)]


def run(target: int, method: str, seed: int, folder: Path) -> dict[str, Any]:
    """Minimize one of the functions, given evaluations of the others."""
    begun, function = time.perf_counter(), quadratics(seed)[target]
    optimizer = TransferOptimizer(
        SPACE,
        past_tasks(target, seed),
        profile=function.profile,
        surrogate=with_seed(surrogate_of(method), seed),
        random_state=N_TASKS * seed + target,
    )
    regret, spent = [], time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(regret) < N_TRIALS:
            [params] = optimizer.ask()
            optimizer.tell(params, -function(params))
            regret.append(function(params) - function.minimum)
    return {
        "regret": regret,
        "cpu": round(time.process_time() - spent, 2),
        "wall": round(time.perf_counter() - begun, 2),
    }


# -- tables and figure -----------------------------------------------------------------------------

CELL = ("target", "seed")


def regrets(rows: Rows) -> dict[str, np.ndarray]:
    """Map method to the regret of the best value so far, (cells, trials)."""
    return {m: -values for m, values in best_so_far(rows, CELL, "regret", lower=True).items()}


def tables(rows: Rows) -> list[str]:
    main = [row for row in rows if row["method"] != SLOW]
    parts = {"": main, f", with {SLOW}": rows if len(rows) > len(main) else []}
    lines = []
    for title, chosen in parts.items():
        if not chosen:
            continue
        found = regrets(chosen)
        logs = {m: np.log10(np.maximum(values, FLOOR)) for m, values in found.items()}
        n = len(next(iter(found.values())))
        lines += [
            f"## Regret after k trials{title}, mean of {n} runs",
            "",
            *trials_table(found, AT),
        ]
        lines += ["Its decimal logarithm:", "", *trials_table(logs, AT)]
        lines += ["Mean rank:", "", *trials_table(ranks({m: -v for m, v in found.items()}), AT)]
        lines += ["`ABLR transfer`, logarithm of the regret minus that of others, with a 95 % "]
        lines[-1] += "interval over the runs:"
        body = [
            [m, *(interval((logs["ABLR transfer"] - v)[:, k - 1]) for k in AT)]
            for m, v in logs.items()
            if m != "ABLR transfer"
        ]
        lines += ["", *markdown(["other", *(f"k = {k}" for k in AT)], body)]
    cpu = [
        [m, float(np.mean([row["cpu"] for row in rows if row["method"] == m]))]
        for m in dict.fromkeys(row["method"] for row in rows)
    ]
    return [*lines, f"## CPU seconds of {N_TRIALS} trials", "", *markdown(["method", "s"], cpu)]


def figure(rows: Rows, file: Path) -> None:
    """Draw Figures 5 and 6 in one: the regret on a logarithmic scale, and the mean rank."""
    found = regrets([row for row in rows if row["method"] != SLOW])
    with panels(file, 2, width=5.0) as axes:
        logs = {m: np.log10(np.maximum(values, FLOOR)) for m, values in found.items()}
        curves(axes[0], logs, ylabel="log10 of the regret")
        curves(axes[1], ranks({m: -v for m, v in found.items()}), ylabel="mean rank")
        legend_beside(axes[1])


EXPERIMENT = Experiment(
    title="ABLR, supplement B.3: quadratic functions (Perrone et al. 2018)",
    about=(
        f"There are {N_TASKS} functions a/2 |x|² + b 1ᵀx + 3c of {D} variables, to be minimized, "
        "each in turn the target. The supplement only shows the curves. The definition is in the "
        f"main paper, which is not at hand: a, b, c ~ U({LOW:g}, {HIGH:g}), {N_PAST} random "
        f"evaluations of each past task and x in [−{HALF_WIDTH:g}, {HALF_WIDTH:g}]³ are ours. "
        f"The first {N_TARGETS} tasks are targets, with {N_TRIALS} trials each. `ABLR transfer` "
        "has the paper's form: a zero head, no guard, low scores not raised, and training with "
        f"the target for {RETRAIN} steps after each trial ({MORE_STEPS} where it is said). With "
        "`(ctx)` the context is (a, b, c). "
        "`ABLR` is the same without past tasks (one network for the target). `GP transfer (ctx)` "
        "is one GP of all tasks and contexts, `GP` the plain one. `dngo` and `bohamiann` use the "
        f"target alone, `bohamiann` on {N_SLOW} targets. The paper states that ABLR transfer "
        "converges considerably faster and to a better optimum than all others. Bands in the "
        "figure are one standard error of the mean over the runs."
    ),
    seeds=3,
    fields=("target", "method", "seed"),
    keys=keys,
    run=run,
    tables=tables,
    figure=figure,
)
