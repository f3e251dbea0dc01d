"""Shared parts of the experiments of Law et al. 2019: methods, search, tables and figure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers._compare import best_so_far, ranks, trials_table
from benchmarks.papers._distbo_tasks import Problem
from benchmarks.papers._experiment import Rows, interval, markdown
from benchmarks.papers._figures import curves, legend_beside, panels, regret_curves
from benchmarks.papers._replay import with_seed
from sktransfer import TransferOptimizer
from sktransfer.encoders import ManualEncoder, TaskIndex
from sktransfer.surrogates import GP, DistBLR, DistGP, Surrogate, TargetBLR, WarmStart

PAPER = ["distGP", "manualGP", "multiGP", "initGP", "noneGP"]
PAPER_BLR = ["distBLR", "manualBLR", "multiBLR", "initBLR", "noneBLR"]
METHODS = ["dist-gp", "dist-blr", "manual-gp", "multi-gp", "warm-start", "gp", "random"]
TRAINING = (
    "The joint models are trained on the past tasks once: those with a GP for 200 steps with "
    "batches of 150 trials and a rate of 0.002 for the embedding, those with BLR for 400 steps "
    "with batches of 1000 trials and a rate of 0.003. The paper trains until convergence with a "
    "rate of 0.005, and again after each trial of the target."
)
NAMES = (
    "`distGP`, `manualGP`, `multiGP`, `initGP`, `noneGP` and the same with `BLR` are the methods "
    "of the paper, without additions: no model averaging, and low scores are not raised. In lower "
    "case they are the package's versions, which have both: `dist-gp`, `dist-blr`, `manual-gp`, "
    f"`multi-gp`, `warm-start` (initGP), `gp` (noneGP). `random` is RS. {TRAINING}"
)
CAPTION = (
    "The left panel of the figure shows how far a method is below the optimum, or below the best "
    "score of any method in the same run if the optimum is not known. Bands are one standard error "
    "of the mean over the runs."
)
AT = [1, 2, 3, 5, 10, 20, 50]
N_RANDOM = {"multi-gp": 1, "multiGP": 1, "multiBLR": 1, "gp": 4, "noneGP": 4, "noneBLR": 4}
"""Number of random first trials, as in the paper; ours would start in the middle of the space."""


def surrogate_of(method: str, encoder: Any, scores: str = "raw") -> str | Surrogate:
    """Return the surrogate of a method; `encoder` is that of the dist- methods."""
    plain = {"winsorize": False}
    paper = {"scores": scores, "guard": False, **plain}
    made: dict[str, Surrogate] = {
        "distGP": DistGP(encoder, **paper),
        "manualGP": DistGP(ManualEncoder(), **paper),
        "multiGP": DistGP(TaskIndex(), **paper),
        "initGP": WarmStart(**plain),
        "noneGP": GP(**plain),
        "distBLR": DistBLR(encoder, **paper),
        "manualBLR": DistBLR(ManualEncoder(), **paper),
        "multiBLR": DistBLR(TaskIndex(), **paper),
        "initBLR": WarmStart(model="blr", **plain),
        "noneBLR": TargetBLR(**plain),
        "dist-gp": DistGP(encoder, scores=scores),
        "dist-blr": DistBLR(encoder, scores=scores),
        "manual-gp": DistGP(ManualEncoder(), scores=scores),
        "multi-gp": DistGP(TaskIndex(), scores=scores),
    }
    return made.get(method, method)


def search(
    problem: Problem, surrogate: str | Surrogate, n_trials: int, seed: int, n_random: int = 0
) -> dict[str, Any]:
    """Search the target; return the score of each trial and the similarities of the past tasks.

    "similar" and "others" are mean similarities before each trial: of the past tasks that are known
    to be similar to the target, and of the rest. "similarity" is that of every past task at the
    end.
    """
    begun, rng = time.perf_counter(), np.random.default_rng([seed, 1])
    surrogate = with_seed(surrogate, seed)
    optimizer = TransferOptimizer(
        problem.space,
        problem.tasks,
        profile=problem.profile,
        surrogate=surrogate,
        random_state=seed,
    )
    row: dict[str, Any] = {"score": []}
    similar = np.isin(np.arange(len(problem.tasks)), problem.similar)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer.fit_surrogate()
        for _ in range(n_trials):
            if problem.similar and (similarity := optimizer.similarity()) is not None:
                row.setdefault("similar", []).append(float(similarity[similar].mean()))
                row.setdefault("others", []).append(float(similarity[~similar].mean()))
            random = len(row["score"]) < n_random
            [params] = optimizer.space.sample(1, rng) if random else optimizer.ask()
            row["score"].append(float(problem.score(params)))
            optimizer.tell(params, row["score"][-1])
        if problem.similar and (similarity := optimizer.similarity()) is not None:
            row["similarity"] = similarity.round(4).tolist()
    return row | {"wall": round(time.perf_counter() - begun, 2)}


def tables(rows: Rows, cell: Sequence[str] = ("seed",), what: str = "score") -> list[str]:
    """Return tables of the paper's methods, then of the package's versions."""
    paper = [r for r in rows if r["method"] in [*PAPER, *PAPER_BLR]]
    ours = [r for r in rows if r["method"] in METHODS]
    parts = [("The methods of the paper", paper, "distGP")]
    parts += [("The package's versions", ours, "dist-gp")]
    lines = []
    for title, chosen, lead in parts:
        if any(row["method"] == lead for row in chosen):
            random = [r for r in rows if r["method"] == "random"] if lead == "distGP" else []
            lines += [f"## {title}", "", *_tables(chosen + random, cell, what, lead)]
    return lines


def _tables(rows: Rows, cell: Sequence[str], what: str, lead: str) -> list[str]:
    """Return tables of best scores, ranks, gains of `lead`, and similarities where known."""
    best = best_so_far(rows, cell)
    lines = [f"### Best {what} after k trials, mean of {len(best[lead])} runs", ""]
    lines += trials_table(best, AT)
    lines += [
        f"### Mean rank among {len(best)} methods, 1 is best",
        "",
        *trials_table(ranks(best), AT),
    ]
    lines += [f"### Gain of {lead} over the others in the same run, with a 95 % interval", ""]
    length = best[lead].shape[1]
    at = [k for k in (1, 3, 5, 10) if k <= length]
    body = [
        [name, *(interval((best[lead] - values)[:, k - 1]) for k in at)]
        for name, values in best.items()
        if name != lead
    ]
    lines += markdown(["over", *(f"k = {k}" for k in at)], body)
    known = {m: s for m in best if (s := similarities(rows, m))}
    if not known:
        return lines
    lines += [
        "### Mean similarity before trial k of the similar past tasks and of the others",
        "",
    ]
    both = {f"{m}, {kind}": s[kind] for m, s in known.items() for kind in s}
    return lines + trials_table(both, AT, first="method, past tasks")


def similarities(rows: Rows, method: str) -> dict[str, np.ndarray]:
    """Return "similar" and "others" of a method, (runs, trials); empty if it has none."""
    runs = [row for row in rows if row["method"] == method and "similar" in row]
    return (
        {kind: np.array([row[kind] for row in runs]) for kind in ("similar", "others")}
        if runs
        else {}
    )


def figure(
    rows: Rows,
    file: Path,
    cell: Sequence[str] = ("seed",),
    what: str = "score",
    optimum: float | None = None,
) -> None:
    """Draw Figures 1 and 3 and the ranks: best so far, mean rank, similarity of distGP.

    It shows the paper's methods if they were run. The first panel is the distance from the
    `optimum` on a logarithmic scale, or from the best score of any method in the same run.
    """
    lead = "distGP" if any(row["method"] == "distGP" for row in rows) else "dist-gp"
    shown = [*PAPER, "distBLR", "random"] if lead == "distGP" else METHODS
    rows = [row for row in rows if row["method"] in shown]
    best, seen = best_so_far(rows, cell), similarities(rows, lead)
    with panels(file, 3 if seen else 2) as axes:
        if optimum is None:
            regret_curves(axes[0], best, ylabel=f"below the best {what} of a run")
        else:
            regret = {name: np.maximum(optimum - v, 1e-6) for name, v in best.items()}
            curves(axes[0], regret, ylabel=f"regret of the best {what}", yscale="log")
        curves(axes[1], ranks(best), ylabel="mean rank")
        legend_beside(axes[1])
        if seen:
            curves(axes[2], seen, ylabel=f"similarity to the target, {lead}")
            axes[2].set_ylim(0, 1.02)
            axes[2].legend(fontsize=8)
