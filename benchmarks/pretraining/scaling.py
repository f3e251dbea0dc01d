"""Draw how predictions improve with the number of data sets they were learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers._figures import panels

BASE = "base"  # trained on all data sets of its kind
N_ALL = {"classification": 1200, "regression": 800}
MIN_POINTS = 3


def draw_scaling(rows: Sequence[Mapping[str, Any]], file: Path) -> bool:
    """Draw the regret of the first trial and the unexplained share; False if too few were run.

    Both are means over the estimators, with bars of 95 % over the cells. The first trial is that of
    the lower confidence bound, as the default takes it.
    """
    curves = {}
    for kind, n_all in N_ALL.items():
        points = {}
        for row in rows:
            n = n_all if row["variant"] == BASE else _number_of(row["variant"])
            if row["kind"] == kind and n is not None and n <= n_all:
                points[n] = row["cells"]
        curves[kind] = dict(sorted(points.items()))
    if min(len(points) for points in curves.values()) < MIN_POINTS:
        return False
    titles = ("regret of the first trial", "unexplained share of the surfaces")
    reads = (lambda cell: cell["first"][-1], lambda cell: cell["unexplained"])
    with panels(file, 2) as axes:
        for axis, title, read in zip(axes, titles, reads, strict=True):
            for kind, points in curves.items():
                found = [_mean_and_error(cells, read) for cells in points.values()]
                means, errors = np.array(found).T
                axis.errorbar(list(points), means, errors, marker="o", capsize=3, label=kind)
            axis.set(xscale="log", xlabel="data sets of the kind", ylabel=title)
            axis.set_xticks([125, 250, 500, 1000], ["125", "250", "500", "1000"])
            axis.minorticks_off()
            axis.set_ylim(bottom=0)
        axes[0].legend(frameon=False)
    return True


def _number_of(variant: str) -> int | None:
    """The number of data sets that a variant is named after."""
    number = variant.partition(" data sets")[0]
    return int(number) if number.isdigit() else None


def _mean_and_error(cells: Sequence[Mapping[str, Any]], read: Any) -> tuple[float, float]:
    """Mean over the estimators, and half of its 95 % interval."""
    by: dict[str, list[float]] = {}
    for cell in cells:
        by.setdefault(cell["cell"][0], []).append(read(cell))
    errors = [np.std(each, ddof=1) / np.sqrt(len(each)) for each in by.values()]
    mean = float(np.mean([np.mean(each) for each in by.values()]))
    return mean, float(1.96 * np.sqrt(np.sum(np.square(errors))) / len(errors))
