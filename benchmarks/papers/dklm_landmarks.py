"""Jomaa et al. 2021, section 6.4, Figure 5: do landmark features of a task lie together?"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.papers._experiment import Experiment, Rows, interval, markdown
from benchmarks.papers._figures import panels
from benchmarks.papers._replay import suite
from benchmarks.papers.dklm_tables import LONGER, N_PAST
from benchmarks.tables import Table
from sktransfer.space import Space
from sktransfer.surrogates import DKLM, EncodedTask
from sktransfer.utils._scores import standardize

SUITES = ["deepar", "hpobench-xgb", "xgboost-libsvm"]  # with at least 10 tasks
QUICK = ["deepar"]
N_TARGETS, N_SETS = 5, 100
MIN_LOSS = 1e-6
SET_SIZES = [5, 100]  # trials of a set: in the caption of the figure, and in the text
SHARED = "one scale"
FORMS = {
    "trained": LONGER,
    SHARED: LONGER | {"scores": "raw"},
    "one step": {"steps": 1, "learning_rate": 1e-6},
}


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (suite, form, trials of a set, seed)."""
    return [
        (name, form, size, seed)
        for seed in range(seeds)
        for name in (QUICK if quick else SUITES)
        for form in FORMS
        for size in SET_SIZES
    ]


def run(name: str, form: str, size: int, seed: int, folder: Path) -> dict[str, Any]:
    """Train on all tasks but five, and read the landmark features of sets of trials of these."""
    begun = time.perf_counter()
    source, rng = suite(name, folder), np.random.default_rng([seed, size])
    order = np.random.default_rng(seed).permutation(list(source.tables))
    held_out, others = order[:N_TARGETS], order[N_TARGETS:]
    surrogate = DKLM(guard=False, prior=False, winsorize=False, random_state=seed, **FORMS[form])
    past = [drawn(source.space, source.tables[t], N_PAST, rng) for t in others]
    scale = shared_scale(past) if form == SHARED else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        surrogate.fit([on_scale(task, scale) for task in past])
    features, owner, plain = [], [], []
    for number, task in enumerate(held_out):
        for _ in range(N_SETS):
            trials = drawn(source.space, source.tables[task], size, rng)
            features.append(surrogate.landmark_features(on_scale(trials, scale)))
            plain.append(baseline(trials))
            owner.append(number)
    return {
        "nearest": share_of_own_task(np.array(features), owner),
        "plain": share_of_own_task(np.array(plain), owner),
        "map": as_map(np.array(features), seed) if seed == 0 and form == SHARED else [],
        "owner": owner,
        "tasks": [str(task) for task in held_out],
        "wall": round(time.perf_counter() - begun, 2),
    }


def drawn(space: Space, table: Table, n: int, rng: np.random.Generator) -> EncodedTask:
    """Return a task with n random rows of a table."""
    rows = rng.permutation(len(table.loss))[:n]
    codes = space.encode([table.params[row] for row in rows])
    return EncodedTask(codes, -table.loss[rows], space.categorical, id=table.name)


def shared_scale(tasks: list[EncodedTask]) -> tuple[float, float]:
    """Return mean and deviation of the logarithms of all losses."""
    logs = np.log(np.maximum(-np.concatenate([task.z for task in tasks]), MIN_LOSS))
    return float(logs.mean()), float(logs.std())


def on_scale(task: EncodedTask, scale: tuple[float, float] | None) -> EncodedTask:
    """Return the task with negative logarithms of its losses on a scale; None keeps the scores."""
    if scale is None:
        return task
    return replace(task, z=(scale[0] - np.log(np.maximum(-task.z, MIN_LOSS))) / scale[1])


def baseline(trials: EncodedTask) -> np.ndarray:
    """Return features without learning: the correlation of each coordinate with the scores."""
    z = standardize(trials.z)[0]
    return np.array(trials.theta - trials.theta.mean(axis=0)).T @ z / len(z)


def share_of_own_task(features: np.ndarray, owner: list[int]) -> float:
    """Return how often most of the five nearest sets (in ten folds) are of the same task."""
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0)
    folds = cross_val_predict(KNeighborsClassifier(5), scaled, owner, cv=10)
    return float(np.mean(folds == np.array(owner)))


def as_map(features: np.ndarray, seed: int) -> list[list[float]]:
    """Return two coordinates of each set by t-SNE."""
    return TSNE(init="pca", random_state=seed).fit_transform(features).round(2).tolist()


# -- tables and figure -----------------------------------------------------------------------------


def tables(rows: Rows) -> list[str]:
    lines = ["## Share of sets that are assigned to their own task, with a 95 % interval", ""]
    body = []
    for name in dict.fromkeys(row["suite"] for row in rows):
        for size in SET_SIZES:
            own = [r for r in rows if (r["suite"], r["size"]) == (name, size)]
            cells = [
                interval(np.array([r["nearest"] for r in own if r["form"] == form]))
                for form in FORMS
            ]
            plain = np.array([r["plain"] for r in own if r["form"] == "trained"])
            body.append([name, size, *cells, interval(plain), 1 / N_TARGETS])
    head = ["suite", "trials of a set", *FORMS, "correlations", "chance"]
    return lines + markdown(head, body)


def figure(rows: Rows, file: Path) -> None:
    """Figure 5: two coordinates of the landmark features, one color for each task."""
    shown = [row for row in rows if row["map"] and row["size"] == SET_SIZES[-1]]
    with panels(file, len(shown), width=4.2, height=4.2) as axes:
        for axis, row in zip(axes, shown, strict=True):
            points, owner = np.array(row["map"]), np.array(row["owner"])
            for number, task in enumerate(row["tasks"]):
                axis.plot(*points[owner == number].T, "o", ms=2.5, label=task)
            axis.set(title=row["suite"], xticks=[], yticks=[])
            axis.legend(
                fontsize=6, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.02), frameon=False
            )


EXPERIMENT = Experiment(
    title="DKLM, section 6.4: landmark features (Jomaa et al. 2021)",
    about=(
        f"DKLM (the paper's form) is trained on all tasks of a suite but {N_TARGETS}, with "
        f"{N_PAST} random evaluations each. Of each of the {N_TARGETS} others {N_SETS} random "
        "sets of trials are drawn, and their landmark features are read. The paper shows two "
        "coordinates by t-SNE and states that features of the same task lie together and away "
        "from those of other tasks. Sets have 5 trials in the caption of its figure and 100 in "
        "the text. The table has the share of sets whose five nearest others are mostly of the "
        "same task. In `trained` the scores of a set are standardized by their own mean and "
        "deviation, as in our searches. `one scale` has logarithms of the losses on one scale for "
        "all tasks, so that the features can tell the level of a task, as they can with the "
        "accuracies of HPO-B. The figure shows it with sets of 100, one point for each set, and "
        "has no bands. `one step` has "
        "the initial weights, as good as untrained. `correlations` are features without learning: "
        "the mean of the centered coordinates times the standardized scores. HPO-B-v3 is not "
        "available, so these are other suites."
    ),
    seeds=5,
    fields=("suite", "form", "size", "seed"),
    keys=keys,
    run=run,
    tables=tables,
    figure=figure,
    needs=tuple(f"tables/{name}" for name in SUITES),
)
