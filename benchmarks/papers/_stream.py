"""Data sets that arrive one by one, each tuned with few trials (Yogatama & Mann 2014, section 4).

The past tasks of a method are its own searches on the earlier data sets.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers._compare import common_cells, ranks
from benchmarks.papers._experiment import Rows, interval, markdown
from benchmarks.papers._figures import colors, legend_beside, panels
from benchmarks.papers._replay import with_seed
from sktransfer import Space, Task, TransferOptimizer
from sktransfer.surrogates import GP, CommonSurface, SCoT, Surrogate, make_surrogate

ALL_TRIALS = 10_000  # no cap on past trials, as in the paper
PAPER = ["random", "GP", "SCoT SQE", "SCoT MKL", "surface SQE", "surface MKL"]
NO_REDRAW = "surface MKL, no redraw"  # every proposal as it is
NAMES = (
    "`surface SQE` and `surface MKL` are the paper's method (running mean and deviation, no guard, "
    "low scores not raised, each coordinate redrawn with probability 0.25). `GP` is the paper's "
    "independent GP (squared exponential kernel, used from the second trial on). `SCoT SQE` and "
    "`SCoT MKL` are Bardenet et al. with both kernels and all past trials, as in the paper."
)


@dataclass(frozen=True)
class Arrival:
    """A data set to be tuned: its name, profile, and (development, test) score of a setting."""

    name: str
    profile: Any
    scores: Callable[[dict[str, Any]], tuple[float, float]]


@lru_cache(maxsize=1)
def methods() -> dict[str, Surrogate]:
    """Map name in the tables to surrogate; capitals have no additions, as in the paper."""
    plain = {"guard": False, "winsorize": False, "max_trials": ALL_TRIALS}
    paper = plain | {"scale": "running"}
    return {
        "random": make_surrogate("random"),
        "GP": GP("se", n_initial=1, winsorize=False),
        "gp": make_surrogate("gp"),
        "SCoT SQE": SCoT(**plain),
        "SCoT MKL": SCoT(kernel="mkl", **plain),
        "surface SQE": CommonSurface("sqe", **paper),
        "surface MKL": CommonSurface("mkl", **paper),
        NO_REDRAW: CommonSurface("mkl", redraw=0.0, **paper),
        "common-surface": make_surrogate("common-surface"),
    }


def tune_in_turn(
    method: str, order: int, arrivals: Sequence[Arrival], space: Any, n_trials: int
) -> dict[str, Any]:
    """Search on one data set after the other.

    Returns
    -------
    dict
        For each data set in order of arrival: "dev", the best score, "test", that of the same
        configuration, and "cpu", the seconds of the method itself.
    """
    begun = time.perf_counter()
    past: list[Task] = []
    row: dict[str, Any] = {"dev": [], "test": [], "cpu": []}
    for number, data in enumerate(arrivals):
        surrogate, seed = with_seed(methods()[method], order), 1000 * order + number
        optimizer = TransferOptimizer(
            space, past, profile=data.profile, surrogate=surrogate, random_state=seed
        )
        # Methods without past tasks share the first trial.
        is_first = not past or not surrogate.uses_past_tasks
        first = Space.parse(space).sample(1, np.random.default_rng(seed)) * is_first
        found, seconds = _tune(optimizer, data, first, n_trials)
        dev, test, _ = max(found, key=lambda trial: trial[0])
        for part, value in (("dev", dev), ("test", test), ("cpu", seconds)):
            row[part].append(float(value))
        trials = [(params, score) for score, _, params in found]
        past.append(Task.from_trials(space, trials, data.profile, id=data.name))
    return row | {"wall": round(time.perf_counter() - begun, 2)}


def _tune(
    optimizer: TransferOptimizer, data: Arrival, first: list[dict], n_trials: int
) -> tuple[list[tuple], float]:
    """Return trials as (development, test, params), and the CPU seconds of the proposals."""
    found: list[tuple] = []
    spent = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(found) < n_trials:
            begun = time.process_time()
            [params] = first if first and not found else optimizer.ask()
            spent += time.process_time() - begun
            found.append((*data.scores(params), params))
            begun = time.process_time()
            optimizer.tell(params, found[-1][0])
            spent += time.process_time() - begun
    return found, spent


# -- tables and figure -----------------------------------------------------------------------------


def table_of(rows: Rows, value: str) -> dict[str, np.ndarray]:
    """Map method to values of the data sets in the common orders, (orders, data sets)."""
    orders = {order for (order,) in common_cells(rows, ["order"])}
    return {
        method: np.array([r[value] for r in rows if r["method"] == method and r["order"] in orders])
        for method in dict.fromkeys(row["method"] for row in rows)
    }


def spread(values: np.ndarray) -> str:
    """Return mean and standard deviation over the orders, as in the paper."""
    return f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else "")


def rank_table(
    rows: Rows, title: str, published: Mapping[str, tuple[float, float]], what: str = "accuracy"
) -> list[str]:
    """Return the average rank of each method on development and test, beside those published."""
    rank = {value: ranks(table_of(rows, value)) for value in ("dev", "test")}
    mean = {
        value: {m: v.mean() for m, v in table_of(rows, value).items()} for value in ("dev", "test")
    }
    body = [
        [
            method,
            *(spread(rank[value][method].mean(axis=1)) for value in ("dev", "test")),
            *published.get(method, ("", "")),
            *(100 * mean[value][method] for value in ("dev", "test")),
        ]
        for method in rank["dev"]
    ]
    head = ["method", "rank, dev", "rank, test", "paper: dev", "test", f"{what} %, dev", "test"]
    orders, sets = rank["dev"]["random"].shape
    heading = f"## {title}: average rank of {len(mean['dev'])} methods, {sets} data sets, {orders} "
    heading += "orders" if orders > 1 else "order"
    return [heading, "", *markdown(head, body)]


def gains_over_gp(rows: Rows) -> list[str]:
    """Return the rank of each method minus that of GP, over the data sets and over the orders."""
    found = {value: ranks(table_of(rows, value)) for value in ("dev", "test")}
    if "GP" not in found["dev"]:
        return []
    lines = [
        "Rank minus that of `GP` with 95 % intervals, over the data sets of all orders, and over "
        "the means of the orders, as the paper tests it:",
        "",
    ]
    body = []
    for method in found["dev"]:
        if method != "GP":
            pairs = [(each[method], each["GP"]) for each in found.values()]
            apart = [ours - theirs for ours, theirs in pairs]  # (orders, data sets) each
            cells = [_difference(each.ravel()) for each in apart]
            body.append([method, *cells, *(_difference(each.mean(axis=1)) for each in apart)])
    return lines + markdown(["method", "dev", "test", "dev, orders", "test, orders"], body)


def _difference(values: np.ndarray) -> str:
    return interval(values, digits=2, sign="+")


def without_variant(rows: Rows) -> Rows:
    """Return the rows of the methods that the paper ranks, and of our versions."""
    return [row for row in rows if row["method"] != NO_REDRAW]


def redraw_table(rows: Rows) -> list[str]:
    """Return the effect of redrawing coordinates on accuracy, over the data sets."""
    pair = ["surface MKL", NO_REDRAW]
    both = [row for row in rows if row["method"] in pair]
    if {row["method"] for row in both} != set(pair):
        return []
    body = []
    for value in ("dev", "test"):
        found = table_of(both, value)
        apart = 100 * (found[pair[0]] - found[pair[1]]).ravel()
        better, worse = int((apart > 1e-9).sum()), int((apart < -1e-9).sum())
        body.append([value, len(apart), _difference(apart), better, worse])
    lines = [
        "Accuracy of `surface MKL` with redrawn coordinates minus that without, in points, with a "
        "95 % interval over the data sets, and the number of data sets on which it is better and "
        "worse:",
        "",
    ]
    return lines + markdown(["part", "data sets", "difference", "better", "worse"], body)


def time_table(rows: Rows) -> list[str]:
    """Return the CPU seconds after a number of data sets."""
    cpu = {
        method: values.cumsum(axis=1).mean(axis=0)
        for method, values in table_of(rows, "cpu").items()
    }
    sets = len(next(iter(cpu.values())))
    at = [n for n in (5, 10, 20, 30, 40, 80, 120, 160) if n < sets] + [sets]
    body = [
        [m, *(float(v[n - 1]) for n in at), float(v[-1] / v[sets // 2 - 1])] for m, v in cpu.items()
    ]
    lines = ["## CPU seconds for a number of data sets", ""]
    lines += markdown(["method", *map(str, at), f"{sets} over {sets // 2}"], body)
    return [*lines, "The last column is 2 if each data set takes the same time.", ""]


def figure(rows: Rows, file: Path) -> None:
    """Draw the average rank on test over the data sets so far, and CPU time."""
    rank, cpu = ranks(table_of(rows, "test")), table_of(rows, "cpu")
    with panels(file, 2, width=5.2) as axes:
        for method, color in colors(rank).items():
            seen = np.arange(1, rank[method].shape[1] + 1)
            axes[0].plot(
                seen, (rank[method].cumsum(axis=1) / seen).mean(axis=0), color=color, label=method
            )
            axes[1].plot(seen, cpu[method].cumsum(axis=1).mean(axis=0), color=color, label=method)
        axes[0].set(xlabel="data sets seen", ylabel="average rank so far, test")
        axes[1].set(xlabel="data sets seen", ylabel="CPU seconds so far")
        for axis in axes:
            axis.xaxis.get_major_locator().set_params(integer=True)
        legend_beside(axes[1])


def largest_size(rows: Rows) -> Rows:
    """Return the rows with the largest number of data sets for which all methods were run."""
    for sets in sorted({row["sets"] for row in rows}, reverse=True):
        chosen = [row for row in rows if row["sets"] == sets]
        if {row["method"] for row in chosen} == {row["method"] for row in rows}:
            return chosen
    raise ValueError("No number of data sets has runs of all methods.")
