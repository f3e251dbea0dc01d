"""Compare ways to train the encoder and the heads, by the first trial on real data sets.

    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.choose --split development     # an hour
    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.choose --split report --variants ...

A model is trained for each variant and asked for its favorite in each pool of `benchmarks.pools`.
Its regret is measured on folds that nobody saw: 0 is the best of the pool, 1 its median. The
unexplained share is 1 minus the squared correlation of predicted and measured scores of a pool. On
the development split, no model is trained on tables of the family that it is asked about: families
are split in four. On the report split, one model is trained on all development families.

Random search is the expected result of k draws from the pool, chosen by the folds it saw.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from benchmarks import pools
from benchmarks.data import data_folder
from benchmarks.pretraining.scaling import BASE, draw_scaling
from benchmarks.pretraining.train import N_MEMBERS, split_development
from benchmarks.pretraining.variants import VARIANTS, train_variant
from benchmarks.runner import (
    WORK,
    format_page,
    make_parser,
    markdown_table,
    packed_file,
    run_all,
    update_runs,
)

FIELDS = ("kind", "variant", "split")
INTRODUCTION = (
    "Regret of the favorite of a pretrained prediction in pools of evaluated configurations, "
    "without past tasks, on folds that nobody saw (0 best, 1 median of the pool; 95 % intervals "
    "over cells). *Mean - std* takes the favorite of the lower confidence bound, as the default "
    "does, and *difference* is how much it differs from that of *base*, with a 95 % interval "
    "over families. The unexplained share is 1 minus the squared correlation of predicted and "
    "measured regrets. *Base* was trained on all data sets, 1200 for classification and 800 for "
    "regression. Other numbers of data sets are for each of the two. Variants differ from *base* "
    "as their names say. The shipped models are *larger and twice as long*."
)
SCALING = "The same against the number of data sets, means with 95 % over the cells:"
SPLITS = {
    "development": "Models were trained without the family that they are asked about.",
    "report": "No family of these had a part in the training.",
}
KAPPAS = (0.0, 0.5, 1.0)
MIN_RANGE = 0.005  # of a pool, from best to median, below which there is nothing to gain
AT = (1, 2, 4, 6, 10, 12)


class Cell(NamedTuple):
    """A pool with its measured regrets.

    Parameters
    ----------
    estimator, data, family : str
    seen : ndarray of shape (n,)
        Scores on the folds that a search sees.
    regret : ndarray of shape (n,)
        On the other folds.
    """

    estimator: str
    data: str
    family: str
    seen: np.ndarray
    regret: np.ndarray


def read_cells(kind: str, split: str, folder: Path, work: Path = WORK) -> list[Cell]:
    """The finished pools of a kind and split that are not flat."""
    family, found = pools.family_of(kind, folder), []
    targets = set(pools.targets(kind, split, folder))
    for (estimator, data), scores in sorted(pools.read_pools(work).items()):
        if pools.PROBLEMS[estimator].kind != kind or data not in targets:
            continue
        regret = measure_regret(scores)
        if regret is not None:
            found.append(Cell(estimator, data, family[data], scores[0], regret))
    return found


def measure_regret(scores: np.ndarray) -> np.ndarray | None:
    """Regret of each configuration on the folds that were not seen; None for a flat pool.

    A failure counts as the worst score of the pool.
    """
    filled = np.where(np.isfinite(scores), scores, np.nanmin(scores))
    fresh = filled[1:].mean(axis=0)
    best, median = fresh.max(), np.median(fresh)
    return None if best - median < MIN_RANGE else np.clip((best - fresh) / (best - median), 0, 5)


def random_search(cell: Cell, at: Sequence[int] = AT) -> np.ndarray:
    """Expected regret after k random trials, chosen by the folds that were seen; of shape (k,)."""
    order = np.argsort(-np.nan_to_num(cell.seen, nan=-np.inf), kind="stable")
    n = len(order)

    def log_choose(n: np.ndarray | int, k: int) -> Any:
        return gammaln(np.asarray(n) + 1) - gammaln(k + 1) - gammaln(np.asarray(n) - k + 1)

    found = []
    for k in at:
        better = np.arange(n - k + 1)  # number of configurations that were not drawn and are better
        share = np.exp(log_choose(n - 1 - better, k - 1) - log_choose(n, k))
        found.append(float(share @ cell.regret[order[: n - k + 1]]))
    return np.array(found)


def run(kind: str, variant: str, split: str, folder: Path, n_members: int) -> dict[str, Any]:
    """Train the models of a variant; return the results of each cell."""
    begun, cells = time.time(), read_cells(kind, split, folder)
    groups = [sorted({cell.family for cell in cells})]
    if split == "development":
        groups = split_development(kind, folder)
    results = []
    for group in groups:
        predictors = train_variant(kind, VARIANTS[variant], group, n_members)
        for cell in cells:
            if cell.family in group:
                predicted = (each(cell.estimator, cell.data, folder) for each in predictors)
                results += [_measure(cell, *found) for found in predicted if found is not None]
    return {"cells": results, "seconds": round(time.time() - begun)}


def _measure(cell: Cell, mean: np.ndarray, std: np.ndarray) -> dict[str, Any]:
    first = [float(cell.regret[int((mean - kappa * std).argmax())]) for kappa in KAPPAS]
    r = np.corrcoef(mean, -cell.regret)[0, 1] if np.ptp(mean) > 0 else 0.0
    return {
        "cell": [cell.estimator, cell.data],
        "first": [round(each, 4) for each in first],
        "unexplained": round(1.0 - float(r) * abs(float(r)), 4),
        "random": random_search(cell).round(4).tolist(),
    }


# -- report ----------------------------------------------------------------------------------------


def summarize(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[str]:
    """A table for each kind and split: a line for each variant, a column for each estimator."""
    lines = []
    for kind, split in sorted({(row["kind"], row["split"]) for row in rows}):
        chosen = [row for row in rows if (row["kind"], row["split"]) == (kind, split)]
        estimators = [name for name in pools.PROBLEMS if pools.PROBLEMS[name].kind == kind]
        estimators = [e for e in estimators if any(_of(row, e) for row in chosen)]
        lines += ["", f"## {kind.capitalize()}, {split} families", ""]
        head = ["first trial", *estimators, "mean", "mean - std", "difference", "unexplained"]
        family = pools.family_of(kind, folder)
        base = next((row for row in chosen if row["variant"] == BASE), None)
        body = []
        for row in chosen:
            by = {e: _of(row, e) for e in estimators}
            means = [np.mean([c["first"][0] for c in by[e]]) if by[e] else np.nan for e in by]
            careful = [np.mean([c["first"][2] for c in by[e]]) if by[e] else np.nan for e in by]
            shares = [np.mean([c["unexplained"] for c in by[e]]) if by[e] else np.nan for e in by]
            texts = [_interval([c["first"][0] for c in by[e]]) if by[e] else "" for e in estimators]
            mean, lower, share = (f"{np.nanmean(each):.3f}" for each in (means, careful, shares))
            apart = "" if base in (None, row) else _difference(row, base, family)
            body.append([row["variant"], *texts, mean, lower, apart, share])
        for number, k in enumerate(AT):
            cells = {e: _of(chosen[0], e) for e in estimators}
            values = [np.mean([c["random"][number] for c in cells[e]]) for e in estimators]
            body.append(
                [f"random search, {k}", *(f"{v:.3f}" for v in values), f"{np.mean(values):.3f}"]
                + ["", "", ""]
            )
        lines += markdown_table(head, body)
    return lines


def _of(row: Mapping[str, Any], estimator: str) -> list[dict[str, Any]]:
    return [cell for cell in row["cells"] if cell["cell"][0] == estimator]


def _difference(row: Mapping[str, Any], base: Mapping[str, Any], family: Mapping[str, str]) -> str:
    """The mean difference of the first trials of two variants, by the lower confidence bound."""
    known = {tuple(cell["cell"]): cell["first"][-1] for cell in base["cells"]}
    by_family: dict[str, list[float]] = {}
    for cell in row["cells"]:
        key = tuple(cell["cell"])
        if key in known:
            by_family.setdefault(family[key[1]], []).append(cell["first"][-1] - known[key])
    means = [float(np.mean(each)) for each in by_family.values()]
    return ("+" if np.mean(means) >= 0 else "") + _interval(means)


def _interval(values: Sequence[float]) -> str:
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {half:.3f}"


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "split", "jobs", "report")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--kinds", nargs="+", default=["classification", "regression"])
    parser.add_argument("--members", type=int, default=N_MEMBERS)
    options = parser.parse_args()
    folder = data_folder(options.data)
    keys = [(kind, v, options.split) for v in options.variants for kind in options.kinds]
    rows = run_all(
        options.work / "pretraining-choices.jsonl",
        FIELDS,
        keys,
        run,
        options.jobs,
        lambda key: (folder, options.members),
        packed_file(options.report) if options.report else None,
    )
    print("\n".join(summarize(rows, folder)))
    if options.report:
        update_runs(rows, packed_file(options.report), FIELDS)
        notes = options.report.with_name(f"{options.report.stem}-notes.md")
        own = ["", notes.read_text().strip()] if notes.exists() else []
        command = (
            "Made by `OMP_NUM_THREADS=1 python -m benchmarks.pretraining.choose --split "
            f"{options.split} --members {options.members} --report {options.report}`."
        )
        members = f"Models have {options.members} member{'s' * (options.members > 1)}."
        text = f"{command} {INTRODUCTION} {members} {SPLITS[options.split]}"
        lines = ["# Choices in pretraining", "", text, *summarize(rows, folder)]
        picture = options.report.with_suffix(".png")
        if draw_scaling(rows, picture):
            lines += ["", "## Number of data sets", "", SCALING, "", f"![Scaling]({picture.name})"]
        lines += own
        options.report.write_text(format_page(lines))


if __name__ == "__main__":
    main()
