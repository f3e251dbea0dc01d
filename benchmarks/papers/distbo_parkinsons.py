"""Law et al. 2019, Parkinson's data of the appendix: 42 patients, each in turn the target."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import loguniform
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.papers import _distbo
from benchmarks.papers._distbo import METHODS, N_RANDOM, search, surrogate_of
from benchmarks.papers._distbo_tasks import Problem, by_plain_search
from benchmarks.papers._experiment import Experiment
from sktransfer import Task, profile
from sktransfer.encoders import DistributionEncoder

SPACE = {"alpha": loguniform(1e-4, 1e2), "gamma": loguniform(1e-4, 1e1)}
N_PATIENTS, N_SOURCE, N_TRIALS = 42, 10, 15
QUICK_TARGETS = [0, 13, 27]
PARTS = 4
CELL = ("patient", "seed")


def split(patient: int, seed: int, folder: Path) -> list[np.ndarray]:
    """Return X_train, X_test, y_train, y_test of a patient, 60-40 and standardized."""
    table = pd.read_csv(folder / "distbo" / "parkinsons" / f"patient_{patient}.csv.gz")
    y = table.pop("target").to_numpy()
    X = table.drop(columns="target_motor").to_numpy(dtype=float)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
    columns, level = StandardScaler().fit(X_train), StandardScaler().fit(y_train[:, None])
    return [
        *(columns.transform(part) for part in (X_train, X_test)),
        *(level.transform(part[:, None])[:, 0] for part in (y_train, y_test)),
    ]


def r2(params: dict[str, Any], data: list[np.ndarray]) -> float:
    """Return the R² of a configuration on the test part."""
    X_train, X_test, y_train, y_test = data
    return float(KernelRidge(kernel="rbf", **params).fit(X_train, y_train).score(X_test, y_test))


@lru_cache(maxsize=1)
def searched(seed: int, folder: Path) -> list[Task]:
    """Return all patients with the trials of a plain search on each."""
    tasks = []
    for patient in range(N_PATIENTS):
        data = split(patient, seed, folder)
        rng = np.random.default_rng([seed, patient])
        trials = by_plain_search(SPACE, partial(r2, data=data), N_SOURCE, rng)
        look = profile(data[0], data[2], keep="sample")
        tasks.append(Task.from_trials(SPACE, trials, look, id=f"patient_{patient}"))
    return tasks


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (patient, method, seed); each seed has another quarter of the patients as targets."""
    return [
        (patient, method, seed)
        for seed in range(seeds)
        for patient in (QUICK_TARGETS if quick else range(seed % PARTS, N_PATIENTS, PARTS))
        for method in METHODS
    ]


def run(patient: int, method: str, seed: int, folder: Path) -> dict:
    tasks = searched(seed, folder)
    others = [task for number, task in enumerate(tasks) if number != patient]
    data = split(patient, seed, folder)
    problem = Problem(SPACE, others, tasks[patient].profile, partial(r2, data=data))
    surrogate = surrogate_of(method, DistributionEncoder(), scores="standardize")
    # With one seed for all patients, random search would try the same configurations on each.
    return search(
        problem, surrogate, N_TRIALS, N_PATIENTS * seed + patient, N_RANDOM.get(method, 0)
    )


EXPERIMENT = Experiment(
    title="distBO, Parkinson's data (Law et al. 2019)",
    about=(
        "A task is one patient: 101 to 168 voice recordings, the total UPDRS to be predicted from "
        "17 columns, and a 60-40 split for each seed. Each seed has a quarter of the patients as "
        f"targets. The past tasks are the 41 other patients with {N_SOURCE} trials of a plain GP "
        "search each. The setup of the paper is in an appendix that is not available. The "
        "regression, here kernel ridge with an RBF kernel (alpha and gamma), its ranges and the "
        "number of trials are our choice, and there are no published figures. The score is the R² "
        f"on the test part. {_distbo.NAMES} {_distbo.CAPTION}"
    ),
    seeds=30,
    fields=("patient", "method", "seed"),
    keys=keys,
    run=run,
    tables=partial(_distbo.tables, cell=CELL, what="R²"),
    figure=partial(_distbo.figure, cell=CELL, what="R²"),
    needs=("distbo/parkinsons",),
)
