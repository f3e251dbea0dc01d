"""What the experiments on suites of tables share: regret, mean rank, critical differences."""

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
from benchmarks.papers._experiment import Rows, markdown
from benchmarks.papers._figures import curves, legend_beside, panels, rank_diagram
from benchmarks.papers._replay import suite

CELL = ("suite", "task", "seed")


def scale(name: str, task: str, folder: Path) -> dict[str, float]:
    """What a regret is measured by: the lowest and the median loss of the table."""
    loss = suite(name, folder).tables[task].loss
    return {"lowest": float(loss.min()), "median": float(np.median(loss))}


def with_regret(rows: Rows) -> Rows:
    """Rows with the regret of each trial, 0 for the best of the table and 1 for its median."""
    found = []
    for row in rows:
        span = (
            row["median"] - row["lowest"] or 1.0
        )  # half of the table is best: nothing to scale by
        found.append(row | {"regret": ((np.array(row["loss"]) - row["lowest"]) / span).tolist()})
    return found


class Comparison:
    """Regrets and ranks of all methods, as means over the seeds of each task.

    Seeds of one task are not independent, tasks are: tests and errors count the tasks.

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
        """Mean rank after k trials."""
        return {m: float(values[:, k - 1].mean()) for m, values in self.rank.items()}

    @property
    def difference(self) -> float:
        return critical_difference(len(self.rank), len(self.tasks))


def tables(rows: Rows, at: Sequence[int]) -> list[str]:
    """Mean normalized regret and mean rank after some numbers of trials, over all suites and in each."""
    suites = list(dict.fromkeys(row["suite"] for row in rows))
    lines = []
    for name in ["all suites", *suites] if len(suites) > 1 else suites:
        # A method may be at home in some of the suites only.
        chosen = (
            everywhere(rows)
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
                f"After {at[-1]} trials two mean ranks are apart from a difference of {found.difference:.2f} "
                f"on (Nemenyi, 5 %, {len(found.tasks)} tasks). Not apart: {'; '.join(apart) or 'none'}.",
                "",
            ]
    return lines + seconds(rows)


def split(rows: Rows, slow: Collection[str], seeds: int) -> tuple[Rows, Rows]:
    """Rows of all methods but the slow ones; rows of all, with the few seeds that the slow ones have."""
    return [r for r in rows if r["method"] not in slow], [r for r in rows if r["seed"] < seeds]


def tables_in_two(rows: Rows, slow: Collection[str], seeds: int, at: Sequence[int]) -> list[str]:
    """Those of the main methods with all their seeds, then those of all methods with the seeds they share."""
    main, everyone = split(rows, slow, seeds)
    lines = ["# The main methods", "", *tables(main, at)]
    if len(main) < len(rows):
        lines += [f"# All methods, {seeds} seed{'s' * (seeds > 1)}", "", *tables(everyone, at)]
    return ["#" * line.startswith("#") + line for line in lines]


def seconds(rows: Rows) -> list[str]:
    """Our own time, to learn from the past and to propose."""
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
        *markdown(["method", "to learn from the past", "for a proposal"], body),
    ]


def everywhere(rows: Rows) -> Rows:
    """The rows of the methods that were run on every suite."""
    suites = {row["suite"] for row in rows}
    seen: dict[str, set[str]] = {}
    for row in rows:
        seen.setdefault(row["method"], set()).add(row["suite"])
    return [row for row in rows if seen[row["method"]] == suites]


def figure_in_two(rows: Rows, slow: Collection[str], seeds: int, file: Path) -> None:
    """Curves of the main methods, and the ranks of all."""
    main, everyone = split(rows, slow, seeds)
    figure(main, file, ranked=everyone if len(main) < len(rows) else None)


def figure(rows: Rows, file: Path, ranked: Rows | None = None) -> None:
    """Mean regret and mean rank over the trials, and the ranks after the last with critical differences.

    With `ranked` the last panel is of these rows, which may be of more methods.
    """
    found = Comparison(everywhere(rows))
    n_trials = next(iter(found.rank.values())).shape[1]
    with panels(file, 3) as axes:
        curves(axes[0], found.regret, ylabel="mean normalized regret")
        lowest = min(
            v.mean(axis=0)[v.mean(axis=0) > 0].min(initial=1.0) for v in found.regret.values()
        )
        axes[0].set(yscale="log", ylim=(lowest / 2, None))  # a band that reaches 0 has no end here
        curves(axes[1], found.rank, ylabel="mean rank")
        legend_beside(axes[1])
        last = found if ranked is None else Comparison(everywhere(ranked))
        rank_diagram(axes[2], last.last(n_trials), last.difference, f"after {n_trials} trials")
