"""Yogatama & Mann 2014, section 4.2, Table 2 and Figure 2: perturbed data sets."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import load_classification
from benchmarks.papers import _stream
from benchmarks.papers._experiment import Experiment, Rows
from benchmarks.papers._logistic import MAX_ROWS, MIN_CLASS_SIZE, DataSet, names
from benchmarks.papers._stream import PAPER, Arrival, tune_in_turn
from benchmarks.papers.yogatama import SPACE, as_arrival

N_TRIALS = 6  # 1 + 5
N_COPIES = 5
SIZES = [40, 190]  # data sets in an order: eight source data sets, or all
QUICK_SIZES = [10]
KEPT = (0.5, 0.9)  # range of the share of rows or columns that are kept
PUBLISHED = {  # Table 2: average rank on development and on test
    "random": (3.98, 3.94),
    "GP": (3.55, 3.58),
    "SCoT SQE": (3.76, 3.75),
    "SCoT MKL": (3.15, 3.18),
    "surface SQE": (3.36, 3.34),
    "surface MKL": (3.17, 3.19),
}


@lru_cache(maxsize=256)
def perturbed(name: str, copy: int, folder: Path) -> DataSet:
    """Return a data set without some of its rows or columns, at random."""
    X, y = load_classification(name, folder, MAX_ROWS)
    rng = np.random.default_rng([names(folder).index(name), copy])
    share, removes_rows = rng.uniform(*KEPT), rng.random() < 0.5
    if removes_rows or X.shape[1] < 2:
        rows = np.sort(rng.permutation(len(X))[: round(share * len(X))])
        common = np.bincount(y[rows], minlength=y.max() + 1) >= MIN_CLASS_SIZE
        rows = rows[common[y[rows]]]  # a class that has become too rare cannot be split
        return DataSet(X[rows], y[rows])
    columns = np.sort(rng.permutation(X.shape[1])[: max(1, round(share * X.shape[1]))])
    return DataSet(X[:, columns], y)


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (method, order of the data sets, number of data sets); the smaller number first."""
    most = N_COPIES * len(names(folder))
    return [
        (method, order, min(n, most))
        for n in (QUICK_SIZES if quick else SIZES)
        for order in range(seeds)
        for method in [*PAPER, *([] if quick else [_stream.NO_REDRAW])]
    ]


def run(method: str, order: int, n_sets: int, folder: Path) -> dict[str, Any]:
    rng = np.random.default_rng(order)
    sources = rng.permutation(names(folder))[: n_sets // N_COPIES]
    copies = [(str(name), copy) for name in sources for copy in range(N_COPIES)]
    chosen = [copies[i] for i in rng.permutation(len(copies))]
    arrivals: list[Arrival] = [
        as_arrival(f"{name} {copy}", perturbed(name, copy, folder)) for name, copy in chosen
    ]
    return tune_in_turn(method, order, arrivals, SPACE, N_TRIALS)


def tables(rows: Rows) -> list[str]:
    main = _stream.largest_size(_stream.without_variant(rows))
    same = [row for row in rows if row["sets"] == main[0]["sets"]]
    return [
        *_stream.rank_table(main, "Table 2", PUBLISHED),
        *_stream.gains_over_gp(main),
        *_stream.redraw_table(same),
        *_stream.time_table(main),
    ]


def figure(rows: Rows, file: Path) -> None:
    _stream.figure(_stream.largest_size(_stream.without_variant(rows)), file)


EXPERIMENT = Experiment(
    title="One common surface, section 4.2: perturbed data sets (Yogatama & Mann 2014)",
    about=(
        f"Of each data set there are {N_COPIES} copies, each without 10 to 50 % of its rows or of "
        "its columns, at random. They arrive one by one in random order and are tuned with 1 + 5 "
        "trials. Everything else is as in section 4.3 ([yogatama.md](yogatama.md)). The paper has "
        f"210 data sets of 42, {SIZES[1]} of 38 are possible here. Smaller numbers have the "
        "copies of fewer data sets, and the tables are those of the largest number that was run "
        "with all methods. In the paper both kernels of its method and Bardenet's with MKL are "
        f"ahead of the independent GP, Bardenet's with SQE is not. {_stream.NAMES} The figure has "
        "no bands: it shows the mean over the orders."
    ),
    seeds=5,
    fields=("method", "order", "sets"),
    keys=keys,
    run=run,
    tables=tables,
    figure=figure,
    needs=("classification",),
)
