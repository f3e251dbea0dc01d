"""Law et al. 2019, appendix C.1 (joint embeddings) and C.6 (size of the network)."""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import protein
from benchmarks.papers._compare import best_so_far, trials_table, without_levels
from benchmarks.papers._distbo import TRAINING, search, surrogate_of
from benchmarks.papers._distbo_tasks import Problem, by_plain_search, counter_problem
from benchmarks.papers._experiment import Experiment, Rows, interval, markdown
from benchmarks.papers._figures import curves, panels
from benchmarks.protein import ESTIMATORS, PROTEINS, Evaluate, load_split
from benchmarks.runner import WORK
from sktransfer import Task, profile
from sktransfer.encoders import DistributionEncoder

C1, C6 = "C.1", "C.6"
COUNTER = "counterexample"
N_TRIALS = 5
AT = [1, 2, 3, 5]
EMBEDDINGS = {
    "marginal and conditional": ("marginal", "conditional"),
    "joint: cross covariance": ("joint",),
    "joint: mean of [x, y]": ("joint-mean",),
}
SIZES = {"5/5": (5, 5), "20/10": (20, 10), "40/20": (40, 20)}  # hidden units and features
DEFAULTS = {C1: "marginal and conditional", C6: "20/10"}
ESTIMATOR = "forest"
QUICK_PROTEINS = PROTEINS[:1]
EVALUATIONS = WORK / "papers"  # where evaluations of the proteins are kept


def encoder_of(part: str, method: str) -> DistributionEncoder:
    if part == C1:
        return DistributionEncoder(EMBEDDINGS[method])
    hidden, features = SIZES[method]
    return DistributionEncoder(hidden=hidden, features=features)


@lru_cache(maxsize=1)
def counter(seed: int) -> Problem:
    return counter_problem(seed, by_plain_search)


@lru_cache(maxsize=1)
def proteins(seed: int, folder: Path) -> list[Task]:
    """Return all proteins with the trials of a plain search on each."""
    tasks = []
    for name in PROTEINS:
        [found] = protein.run_source(folder, EVALUATIONS, ESTIMATOR, name, seed)
        X, _, y, _ = load_split(folder, name, seed)
        trials = list(zip(found["params"], found["scores"], strict=True))
        look = profile(X, y, keep="sample")
        tasks.append(Task.from_trials(ESTIMATORS[ESTIMATOR][1], trials, look, id=name))
    return tasks


def problem_of(name: str, seed: int, folder: Path) -> Problem:
    if name == COUNTER:
        return counter(seed)
    tasks, number = proteins(seed, folder), PROTEINS.index(name)
    evaluate = Evaluate(folder, EVALUATIONS, ESTIMATOR, name, seed)
    others = [task for task in tasks if task.id != name]
    return Problem(ESTIMATORS[ESTIMATOR][1], others, tasks[number].profile, evaluate)


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (part, problem, method, seed)."""
    targets = QUICK_PROTEINS if quick else PROTEINS
    return [
        key
        for seed in range(seeds)
        for key in [
            *((C1, COUNTER, method, seed) for method in EMBEDDINGS),
            *((C6, name, method, seed) for name in targets for method in SIZES),
            *((C6, name, "initGP", seed) for name in targets),
        ]
    ]


def run(part: str, name: str, method: str, seed: int, folder: Path) -> dict[str, Any]:
    begun, scores = time.perf_counter(), "raw" if part == C1 else "standardize"
    form = "initGP" if method == "initGP" else "distGP"
    encoder = None if form == "initGP" else encoder_of(part, method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = search(
            problem_of(name, seed, folder), surrogate_of(form, encoder, scores), N_TRIALS, seed
        )
    return row | {"wall": round(time.perf_counter() - begun, 2)}


# -- tables and figure -----------------------------------------------------------------------------

CELL = ("problem", "seed")
TITLES = {C1: "C.1: embeddings, R² on the counterexample", C6: "C.6: units, accuracy on proteins"}


def parts(rows: Rows) -> dict[str, dict[str, np.ndarray]]:
    """Map part to method to the best score so far, (cells, trials)."""
    return {
        part: best_so_far(own, CELL)
        for part in TITLES
        if (own := [row for row in rows if row["part"] == part])
    }


def tables(rows: Rows) -> list[str]:
    lines = []
    for part, best in parts(rows).items():
        n, usual = len(next(iter(best.values()))), DEFAULTS[part]
        lines += [f"## {TITLES[part]}, best after k trials, mean of {n} runs", ""]
        lines += trials_table(best, AT)
        body = [
            [m, *(interval((values - best[usual])[:, k - 1]) for k in AT)]
            for m, values in best.items()
            if m != usual
        ]
        lines += [f"Differences from `{usual}` in the same runs, with a 95 % interval:", ""]
        lines += markdown(["", *(f"k = {k}" for k in AT)], body)
        seen = [row for row in rows if row["part"] == part and "similar" in row]
        if seen:
            body = [
                [
                    m,
                    *(
                        float(np.mean([r[kind][0] for r in seen if r["method"] == m]))
                        for kind in ("similar", "others")
                    ),
                ]
                for m in dict.fromkeys(row["method"] for row in seen)
            ]
            lines += ["Similarity before the first trial:", ""]
            lines += markdown(["", "right task", "others"], body)
    return lines


def figure(rows: Rows, file: Path) -> None:
    """Draw the best score so far, one panel for each part."""
    found = parts(rows)
    with panels(file, len(found), width=5.2) as axes:
        for axis, (part, best) in zip(axes, found.items(), strict=True):
            curves(axis, without_levels(best), ylabel="best score so far", title=TITLES[part])
            axis.legend(
                fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, frameon=False
            )
            axis.set_xticks(range(1, N_TRIALS + 1))


EXPERIMENT = Experiment(
    title="distBO, appendices C.1 and C.6: other embeddings and networks (Law et al. 2019)",
    about=(
        "Both appendices are not available, only the sentences about them in the text: "
        '"additional results for embedding the joint distribution" (C.1), and "results are '
        'fairly robust" to the size of the network on the proteins (C.6). C.1 here is the '
        "counterexample of [section 5.2](distbo-counter.md) with three embeddings: marginal and "
        "conditional, the cross covariance of φ(x) and φ(y), and the mean of φ([x, y]). C.6 is "
        "the random forest on the [proteins](distbo-protein.md) with networks of 5, 20 (the "
        "paper's) and 40 hidden units and 5, 10 and 20 features. All are `distGP`, the paper's "
        f"form without additions, with {N_TRIALS} trials. Bands in the figure are one standard "
        "error of the mean over the runs, without the differences between runs that all methods "
        f"share. {TRAINING}"
    ),
    seeds=3,
    fields=("part", "problem", "method", "seed"),
    keys=keys,
    run=run,
    tables=tables,
    figure=figure,
    needs=("distbo/protein",),
)
