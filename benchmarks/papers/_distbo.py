"""Shared parts of the experiments of Law et al. 2019: methods, search, tables and figure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers._compare import best_so_far, ranks, trials_table, without_levels
from benchmarks.papers._distbo_tasks import Problem
from benchmarks.papers._experiment import Rows, interval, markdown
from benchmarks.papers._figures import curves, legend_beside, panels
from sktransfer import TransferOptimizer
from sktransfer.encoders import ManualEncoder, TaskIndex
from sktransfer.surrogates import DistBLR, DistGP, Surrogate

METHODS = ["dist-gp", "dist-blr", "manual-gp", "multi-gp", "warm-start", "gp", "random"]
NAMES = (
    "Names in the paper: `dist-gp` distGP, `dist-blr` distBLR, `manual-gp` manualGP, `multi-gp` "
    "multiGP, `warm-start` initGP, `gp` noneGP, `random` RS."
)
AT = [1, 2, 3, 5, 10, 20, 50]
N_RANDOM = {"multi-gp": 1, "gp": 4}
"""Number of random first trials, as in the paper; ours would start in the middle of the space."""


def surrogate_of(method: str, encoder: Any, scores: str = "raw") -> str | Surrogate:
    """Return the surrogate of a method; `encoder` is that of dist-gp and dist-blr."""
    made: dict[str, Surrogate] = {
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
    """Return tables of best scores, ranks, gains of dist-gp, and similarities where known."""
    best = best_so_far(rows, cell)
    lines = [f"## Best {what} after k trials, mean of {len(best['dist-gp'])} runs", ""]
    lines += trials_table(best, AT)
    lines += [
        f"## Mean rank among {len(best)} methods, 1 is best",
        "",
        *trials_table(ranks(best), AT),
    ]
    lines += ["## Gain of dist-gp over the others in the same run, with a 95 % interval", ""]
    length = best["dist-gp"].shape[1]
    at = [k for k in (1, 3, 5, 10) if k <= length]
    body = [
        [name, *(interval((best["dist-gp"] - values)[:, k - 1]) for k in at)]
        for name, values in best.items()
        if name != "dist-gp"
    ]
    lines += markdown(["over", *(f"k = {k}" for k in at)], body)
    known = {m: s for m in best if (s := similarities(rows, m))}
    if not known:
        return lines
    lines += [
        "## Mean similarity before trial k of the similar past tasks and of the others",
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


def figure(rows: Rows, file: Path, cell: Sequence[str] = ("seed",), what: str = "score") -> None:
    """Draw Figures 1 and 3 and the ranks: best so far, mean rank, similarity of dist-gp."""
    best, seen = best_so_far(rows, cell), similarities(rows, "dist-gp")
    with panels(file, 3 if seen else 2) as axes:
        curves(axes[0], without_levels(best), ylabel=f"best {what} so far")
        # The first trials of plain methods can be so low that they hide the differences.
        axes[0].set_ylim(bottom=min(np.percentile(v.mean(axis=0), 10) for v in best.values()))
        curves(axes[1], ranks(best), ylabel="mean rank")
        legend_beside(axes[1])
        if seen:
            curves(axes[2], seen, ylabel="similarity to the target, dist-gp")
            axes[2].set_ylim(0, 1.02)
            axes[2].legend(fontsize=8)
