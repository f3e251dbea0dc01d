"""Law et al. 2019, section 5.3, Figure 4: seven proteins, with the runs of `benchmarks.protein`."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import numpy as np

from benchmarks import protein
from benchmarks.papers import _distbo
from benchmarks.papers._distbo import PAPER
from benchmarks.papers._experiment import Experiment, Rows
from benchmarks.papers._figures import legend_beside, panels, regret_curves
from benchmarks.protein_report import estimator_section
from benchmarks.runner import Key, take_over

QUICK_METHODS = ["dist-gp", "warm-start", "gp", "random"]


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    estimators = ["svm"] if quick else list(protein.ESTIMATORS)
    methods = QUICK_METHODS if quick else [*protein.METHODS, *PAPER]
    return [
        (estimator, name, method, seed)
        for seed in range(seeds)
        for estimator in estimators
        for name in protein.PROTEINS
        for method in methods
    ]


def rows(keys: list[Key], folder: Path, work: Path, n_jobs: int, last: Rows) -> Rows:
    """Return all runs; `benchmarks.protein` makes them, because methods share evaluations."""
    estimators, _, methods, seeds = (list(dict.fromkeys(part)) for part in zip(*keys, strict=True))
    known = [
        {"method": r["method"], "estimator": r["estimator"], "protein": r["protein"]}
        | {"seed": r["seed"], "scores": r["score"], "ask_seconds": [r["wall"]]}
        for r in last
    ]
    take_over(work / protein.RUNS, ("method", "estimator", "protein", "seed"), known)
    if n_jobs:
        runs = protein.run_all(folder, work, estimators, methods, len(seeds), n_jobs)
    else:
        runs = protein.load_runs(work / protein.RUNS)
        parts = ([k for k in keys if (k[2] in PAPER) == paper] for paper in (False, True))
        keys = [key for part in parts if part for key in complete(part, runs)]
    found = []
    for estimator, name, method, seed in keys:
        run = runs[method, estimator, name, seed]
        row = {"estimator": estimator, "protein": name, "method": method, "seed": seed}
        found.append(row | {"score": run["scores"], "wall": round(sum(run["ask_seconds"]), 2)})
    return found


def complete(keys: list[Key], runs: Container[Key]) -> list[Key]:
    """Return the keys of each estimator's seeds with which every method was run on every protein.

    A method that was not run with the first seed is left out.
    """
    cells: dict[tuple[str, int, str], list[bool]] = {}
    for estimator, name, method, seed in keys:
        cells.setdefault((estimator, seed, method), []).append(
            (method, estimator, name, seed) in runs
        )
    done = {cell for cell, there in cells.items() if all(there)}
    first = min(seed for _, _, _, seed in keys)
    taking = {(estimator, method) for estimator, seed, method in done if seed == first}
    whole = {
        (estimator, seed)
        for estimator, seed, _ in done
        if all((e, seed, m) in done for e, m in taking if e == estimator)
    }
    return [key for key in keys if (key[0], key[2]) in taking and (key[0], key[3]) in whole]


def best(rows: Rows, estimator: str) -> dict[str, np.ndarray]:
    """Map method to its best accuracy so far in percent, (7, seeds, trials)."""
    scores = {
        (r["method"], r["protein"], r["seed"]): r["score"]
        for r in rows
        if r["estimator"] == estimator
    }
    if not scores:
        return {}
    methods, _, seeds = (list(dict.fromkeys(part)) for part in zip(*scores, strict=True))
    return {
        m: 100
        * np.maximum.accumulate(
            [[scores[m, p, s] for s in seeds] for p in protein.PROTEINS], axis=2
        )
        for m in methods
    }


def methods_of(rows: Rows) -> dict[str, Rows]:
    """Return the rows of the paper's methods, random search included, and of the package's."""
    paper = [row for row in rows if row["method"] in PAPER]
    cells = {(row["estimator"], row["protein"], row["seed"]) for row in paper}
    others = [row for row in rows if row["method"] not in PAPER]
    random = [row for row in others if row["method"] == "random"]
    random = [r for r in random if (r["estimator"], r["protein"], r["seed"]) in cells]
    return {"The methods of the paper": paper + random, "The package's versions": others}


def tables(rows: Rows) -> list[str]:
    """Return the numbers of Figure 4 and of the ranks for each estimator."""
    lines = []
    for estimator in dict.fromkeys(row["estimator"] for row in rows):
        space = ", ".join(protein.ESTIMATORS[estimator][1])
        for title, chosen in methods_of(rows).items():
            if not (found := best(chosen, estimator)):
                continue
            seeds = next(iter(found.values())).shape[1]
            lines += [f"## {title}: {estimator} ({space}), {seeds} seed{'s' * (seeds > 1)}", ""]
            lines += estimator_section(found)
    return lines


def figure(rows: Rows, file: Path) -> None:
    """Figure 4: distance from the best accuracy of any method, over proteins and seeds."""
    rows = methods_of(rows)["The package's versions"]
    estimators = list(dict.fromkeys(row["estimator"] for row in rows))
    with panels(file, len(estimators), width=5.5) as axes:
        for axis, estimator in zip(axes, estimators, strict=True):
            flat = {m: b.reshape(-1, b.shape[-1]) for m, b in best(rows, estimator).items()}
            regret_curves(axis, flat, ylabel="points below the best accuracy of a run")
            axis.set_title(estimator)
        legend_beside(axes[-1])


EXPERIMENT = Experiment(
    title="distBO, section 5.3: protein-ligand binding (Law et al. 2019)",
    about=(
        "Each of seven proteins is the target in turn. The six others are past tasks with 20 "
        "trials of a plain GP search each. The score is the accuracy on the test part of a 60-40 "
        "split, of an SVM with the Jaccard kernel (C) and of a random forest (four "
        "hyperparameters). In the paper (Figure 4, 20 runs per protein) distGP is ahead of "
        "initGP, multiGP, noneGP and RS for both and finds the optimum after a few trials. It has "
        f"no numbers. {_distbo.NAMES} `{protein.PAIRS}` is the package's own `dist-gp`, with an "
        "encoder of any table and handcrafted features. The figure shows the package's versions, "
        "with one panel for each estimator: how far a method is below the best accuracy of any "
        "method in the same run. Bands are one standard error of the mean over proteins and seeds. "
        "The time of a run includes only the proposals, because methods share evaluations."
    ),
    seeds=20,
    fields=("estimator", "protein", "method", "seed"),
    keys=keys,
    tables=tables,
    figure=figure,
    rows=rows,
    needs=("distbo/protein",),
)
