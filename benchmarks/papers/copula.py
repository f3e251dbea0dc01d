"""Salinas et al. 2020, Tables 2, 3, 5 and 6: improvement over random search on tables."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from benchmarks.papers._copula_published import PUBLISHED
from benchmarks.papers._copula_rows import OTHERS, TIMED
from benchmarks.papers._copula_tables import N_TRIALS, figure, tables
from benchmarks.papers._copula_time import WITH_TIME
from benchmarks.papers._experiment import Experiment
from benchmarks.papers._replay import expected_best, past, replay_search, suite
from sktransfer.surrogates import GP, Box, CopulaGP, EncodedTask, Surrogate, make_surrogate
from sktransfer.utils._scores import normal_scores

N_PAST = {"deepar": 250, "fcnet": 1000, "xgboost-libsvm": 1000, "nasbench201": 1000}
PLAIN = {"guard": False}  # as in the paper
NETWORK = {"dropout": 0.5, "batch_size": 64, "steps": 100}  # training of the paper's network
PRIORS = {
    "linear": {"estimator": "linear"},
    "KNN_5": {"estimator": "neighbors", "n_neighbors": 5},
    "KNN_10": {"estimator": "neighbors", "n_neighbors": 10},
    "KNN_20": {"estimator": "neighbors", "n_neighbors": 20},
}
"""Estimators of Table 6 beside the network."""


@lru_cache(maxsize=1)
def methods() -> dict[str, Surrogate]:
    """Map name in the tables to surrogate."""
    standard = {"transform": "standardize", "winsorize": False}
    homo = {"heteroskedastic": False}
    both = {"objective": "score+time"}
    return {
        "copula-gp": CopulaGP(),
        "CGP": CopulaGP(**PLAIN),
        "CRS": CopulaGP(n_thompson=None, **PLAIN),
        "CGP homoskedastic": CopulaGP(**homo, **PLAIN),
        "CRS homoskedastic": CopulaGP(n_thompson=None, **homo, **PLAIN),
        "CGP standardized": CopulaGP(**standard, **PLAIN),
        "CRS standardized": CopulaGP(n_thompson=None, **standard, **PLAIN),
        "CGP score+time": CopulaGP(**both, **PLAIN),
        "CRS score+time": CopulaGP(n_thompson=None, **both, **PLAIN),
        "CGP, errors ranked": CopulaGP(transform="error-copula", **PLAIN),
        "CGP, paper's network": CopulaGP(**NETWORK, **PLAIN),
        "CRS, paper's network": CopulaGP(n_thompson=None, **NETWORK, **PLAIN),
        "Box GP": Box(None, winsorize=False),
        "Box RS": Box(None, model=False),
        "GP": GP(winsorize=False),
        **{name: CopulaGP(**settings, **PLAIN) for name, settings in PRIORS.items()},
    } | {name: make_surrogate(name) for name in ("ablr", "box", "gp", "warm-start", "random")}


PAPER_NETWORK = ["CGP, paper's network", "CRS, paper's network"]
ABLATION = ["CGP homoskedastic", "CRS homoskedastic", "CGP standardized", "CRS standardized"]

_NAMES = list(PUBLISHED)
TASKS = {
    "deepar": _NAMES[:11],
    "fcnet": _NAMES[11:15],
    "xgboost-libsvm": _NAMES[15:],
    "nasbench201": ["cifar10", "cifar100", "ImageNet16-120"],
}
QUICK = {
    "deepar": ["m4-Hourly", "solar"],
    "fcnet": ["protein_structure"],
    "xgboost-libsvm": ["heart"],
}


MAIN = ["random", "CGP", "gp", "CRS"]
PLAN = [  # suites, methods, maximum number of seeds; the main claims come first
    (TIMED + OTHERS, list(PRIORS), 1),
    (TIMED, [*MAIN, "copula-gp"], 10),
    (TIMED, ABLATION, 10),
    (TIMED, ["CGP, errors ranked", *PAPER_NETWORK, "Box RS", "Box GP", "GP"], 10),
    (TIMED, WITH_TIME, 10),
    (OTHERS, [*MAIN, "copula-gp"], 10),
    (TIMED, ["box", "warm-start", "ablr"], 10),
    (OTHERS, ["box", "warm-start", "ablr"], 10),
    (OTHERS, ["Box RS", "Box GP", "GP"], 10),
    (TIMED, [*MAIN, "copula-gp"], 30),
]


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (suite, task, method, seed) in the order of the plan."""
    tasks = QUICK if quick else TASKS
    found = [
        (name, task, method, seed)
        for suites, methods, most in PLAN
        for seed in range(min(seeds, most))
        for name in suites
        for task in tasks.get(name, [])
        for method in methods
    ]
    return list(dict.fromkeys(found))


def run(name: str, task: str, method: str, seed: int, folder: Path) -> dict:
    surrogate = methods()[method]
    if method in PRIORS:
        return {"prior_error": prior_error(name, task, surrogate, folder)}
    row = replay_search(
        name, task, surrogate, folder, seed=seed, n_trials=N_TRIALS, n_past=N_PAST[name]
    )
    # Computed once for each task, because they do not depend on the seed.
    if seed == 0 and method == "random":
        row["random"] = random_search(name, task, folder)
    if seed == 0 and method == "CGP":
        row["prior_error"] = prior_error(name, task, surrogate, folder)
    return row


@cache
def random_search(name: str, task: str, folder: Path) -> list[float]:
    """Return the expected best loss of random search after each trial."""
    return expected_best(suite(name, folder).tables[task].loss, N_TRIALS).tolist()


def prior_error(name: str, task: str, surrogate: Surrogate, folder: Path) -> float:
    """Table 6: root mean squared error of the network's mean on the task's normal scores."""
    source, table = suite(name, folder), suite(name, folder).tables[task]
    past_tasks = [
        _encoded(source.space, record) for record in past(name, task, N_PAST[name], folder)
    ]
    trained = surrogate.fit(past_tasks)
    rows = np.random.default_rng(0).permutation(len(table.loss))[:1000]
    mean, _ = trained.prior(source.space.encode([table.params[row] for row in rows]))
    return float(np.sqrt(np.mean((normal_scores(-table.loss[rows]) - mean) ** 2)))


def _encoded(space, record) -> EncodedTask:
    codes = space.encode([trial.params for trial in record.trials])
    return EncodedTask(codes, record.scores, space.categorical, id=record.id)


EXPERIMENT = Experiment(
    title="A copula approach (Salinas et al. 2020)",
    about=(
        "Leave one task out: the past tasks are all other tasks of the suite, with 250 (DeepAR) "
        f"or 1000 random evaluations each. A search has {N_TRIALS} trials from the table of the "
        "target. The candidates of a trial are all remaining rows, or 1000 of them. `CGP` and "
        "`CRS` are `copula-gp` and `copula-ts` without their guard, as in the paper. Their network "
        "has the layers of the paper, but it is trained with a dropout of 0.1, batches of 256 and "
        "three times 300 steps. `CGP, paper's network` and `CRS, paper's network` have 0.5, 64 and "
        "three times 100, as in the paper, and one seed. The loss of FCNet is the validation loss "
        "(in the paper the test loss). `GP`, `Box GP` and `Box RS` "
        "are the paper's baselines: low scores are not raised, and the box is never left. `ablr`, "
        "`box`, `gp` and `warm-start` are the package's versions. The paper's Warm-start GP, with "
        'the 100 best evaluations of the nearest task in the GP, is `"gp-nearest"` in the '
        "package. It needs meta-features, and these tables have none, so it is not run here. "
        "`warm-start` is another method, the best settings of three past tasks as first trials, "
        "and without meta-features these are the first three. The standardized forms do not raise "
        "low scores either. Random search is its exact expectation. The tables include the "
        "published figures. A figure without an interval is of one seed. The figure starts at "
        "trial 5, and its bands, of `CGP` and `gp`, are one standard error over the tasks. Curves "
        "are of ten seeds, those of `GP`, `Box GP` and `Box RS` of two (XGBoost: one)."
    ),
    seeds=30,
    fields=("suite", "task", "method", "seed"),
    keys=keys,
    run=run,
    tables=tables,
    figure=figure,
    needs=tuple(f"tables/{name}" for name in TASKS),
)
