"""Shared parts of the experiments on suites of tables: regret, mean rank, critical differences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from benchmarks.papers._compare import (
    best_so_far,
    common_cells,
    critical_difference,
    mean_over,
    not_apart,
    ranks,
    trials_table,
)
from benchmarks.papers._experiment import Rows, interval, markdown
from benchmarks.papers._figures import curves, legend_beside, log_scale, panels, rank_diagram
from benchmarks.papers._replay import suite

CELL = ("suite", "task", "seed")


def scale(name: str, task: str, folder: Path) -> dict[str, float]:
    """Return the lowest and the median loss of the table, which normalize the regret."""
    loss = suite(name, folder).tables[task].loss
    return {"lowest": float(loss.min()), "median": float(np.median(loss))}


def with_regret(rows: Rows) -> Rows:
    """Return rows with the regret of each trial: 0 is the best of the table, 1 its median."""
    found = []
    for row in rows:
        span = row["median"] - row["lowest"] or 1.0  # half of the table is best
        found.append(row | {"regret": ((np.array(row["loss"]) - row["lowest"]) / span).tolist()})
    return found


class Comparison:
    """Regrets and ranks of all methods, as means over the seeds of each task.

    Seeds of one task are not independent, tasks are. So tests and errors count the tasks.

    Parameters
    ----------
    rows : list of dict
        With "suite", "task", "seed", "method", "loss", "lowest" and "median".
    """

    def __init__(self, rows: Rows):
        best = best_so_far(with_regret(rows), CELL, "regret", lower=True)
        cells = [key[:2] for key in common_cells(rows, CELL)]  # suite and task of each run
        self.tasks = list(dict.fromkeys(cells))
        self.regret = {
            m: mean_over(-values, cells) for m, values in best.items()
        }  # (tasks, trials)
        self.rank = {m: mean_over(values, cells) for m, values in ranks(best).items()}

    def last(self, k: int) -> dict[str, float]:
        """Return the mean rank after k trials."""
        return {m: float(values[:, k - 1].mean()) for m, values in self.rank.items()}

    @property
    def difference(self) -> float:
        return critical_difference(len(self.rank), len(self.tasks))


def tables(rows: Rows, at: Sequence[int]) -> list[str]:
    """Return tables of mean regret and mean rank after some trials, over all suites and in each.

    Bands of the figure are one standard error of the mean over the tasks.
    """
    suites = list(dict.fromkeys(row["suite"] for row in rows))
    lines = []
    for name in ["all suites", *suites] if len(suites) > 1 else suites:
        # Some methods were run on some of the suites only.
        chosen = (
            rows_of_common_methods(rows)
            if name == "all suites"
            else [row for row in rows if row["suite"] == name]
        )
        found = Comparison(chosen)
        lines += [f"## {name}: {len(found.tasks)} tasks", ""]
        lines += ["Mean normalized regret after k trials:", "", *trials_table(found.regret, at)]
        lines += [f"Mean rank among {len(found.rank)} methods:", "", *trials_table(found.rank, at)]
        if len(found.tasks) > 1:
            apart = [" = ".join(group) for group in not_apart(found.last(at[-1]), found.difference)]
            lines += [
                f"After {at[-1]} trials the critical difference of mean ranks is "
                f"{found.difference:.2f} (Nemenyi, 5 %, {len(found.tasks)} tasks). Groups that do "
                f"not differ: {'; '.join(apart) or 'none'}.",
                "",
            ]
    return [*lines, *deterministic(rows), *seconds(rows)]


def seeds_in_words(rows: Rows) -> str:
    """Return the number of seeds that all methods have."""
    by_method: dict[str, set[int]] = {}
    for row in rows:
        by_method.setdefault(row["method"], set()).add(row["seed"])
    n = len(set.intersection(*by_method.values()))
    return f"{n} seed{'s' * (n > 1)}"


def differences(found: Comparison, lead: str, at: Sequence[int]) -> list[str]:
    """Return a table of the regret and the rank of `lead` minus those of the other methods."""
    body = []
    for other in found.regret:
        pairs = [(part[lead], part[other]) for part in (found.regret, found.rank)]
        cells = [interval((ours - theirs)[:, k - 1]) for ours, theirs in pairs for k in at]
        body.append([other, *cells]) if other != lead else None
    columns = [f"{what}, k = {k}" for what in ("regret", "rank") for k in at]
    return markdown(["other", *columns], body)


def deterministic(rows: Rows) -> list[str]:
    """Say which methods had the same trials with all seeds, and on how many tasks."""
    runs: dict[tuple[str, str, str], list] = {}
    for row in rows:
        runs.setdefault((row["method"], row["suite"], row["task"]), []).append(row["loss"])
    several = {key: losses for key, losses in runs.items() if len(losses) > 1}
    lines = []
    for method in dict.fromkeys(method for method, _, _ in several):
        own = [losses for key, losses in several.items() if key[0] == method]
        same = sum(all(loss == losses[0] for loss in losses) for losses in own)
        if same:
            lines.append(
                f"* `{method}`: all seeds have the same trials on {same} of {len(own)} tasks."
            )
    if lines:
        lines = ["Seeds that make no difference (intervals are over the tasks):", "", *lines, ""]
    return lines


def split_slow_methods(rows: Rows, slow: Collection[str], seeds: int) -> tuple[Rows, Rows]:
    """Return the rows without slow methods, and all rows with the seeds of the slow methods."""
    return [r for r in rows if r["method"] not in slow], [r for r in rows if r["seed"] < seeds]


def tables_in_two(rows: Rows, slow: Collection[str], seeds: int, at: Sequence[int]) -> list[str]:
    """Return tables of the main methods with all seeds, then of all with common seeds."""
    main, everyone = split_slow_methods(rows, slow, seeds)
    lines = [f"# The main methods, {seeds_in_words(main)}", "", *tables(main, at)]
    if len(main) < len(rows):
        lines += [f"# All methods, {seeds} seed{'s' * (seeds > 1)}", "", *tables(everyone, at)]
    return ["#" * line.startswith("#") + line for line in lines]


def seconds(rows: Rows) -> list[str]:
    """Return a table of our own time for training and for proposals."""
    methods = dict.fromkeys(row["method"] for row in rows)
    body = []
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        body.append(
            [
                method,
                *(float(np.mean([row[part] for row in own])) for part in ("learning", "proposing")),
            ]
        )
    return [
        "## Seconds",
        "",
        *markdown(["method", "training", "proposal"], body),
    ]


def rows_of_common_methods(rows: Rows) -> Rows:
    """Return the rows of the methods that were run on every suite."""
    suites = {row["suite"] for row in rows}
    seen: dict[str, set[str]] = {}
    for row in rows:
        seen.setdefault(row["method"], set()).add(row["suite"])
    return [row for row in rows if seen[row["method"]] == suites]


def figure_in_two(rows: Rows, slow: Collection[str], seeds: int, file: Path) -> None:
    """Draw the curves of the main methods, and the ranks of all."""
    main, everyone = split_slow_methods(rows, slow, seeds)
    figure(main, file, ranked=everyone if len(main) < len(rows) else None)


def figure(rows: Rows, file: Path, ranked: Rows | None = None) -> None:
    """Draw mean regret and rank over the trials, and the final ranks with critical differences.

    With `ranked` the last panel shows these rows, which may have more methods.
    """
    found = Comparison(rows_of_common_methods(rows))
    n_trials = next(iter(found.rank.values())).shape[1]
    with panels(file, 3) as axes:
        curves(axes[0], found.regret, ylabel="mean normalized regret")
        log_scale(axes[0], found.regret)
        curves(axes[1], found.rank, ylabel="mean rank")
        legend_beside(axes[1])
        last = found if ranked is None else Comparison(rows_of_common_methods(ranked))
        rank_diagram(axes[2], last.last(n_trials), last.difference, f"after {n_trials} trials")
