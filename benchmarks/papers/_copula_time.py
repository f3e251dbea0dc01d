"""Table 5 of Salinas et al. 2020: score and time, improvement over random search against time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.papers._copula_published import PUBLISHED_TIME
from benchmarks.papers._copula_rows import TIMED, run_on, runs_of, shared, tasks_of
from benchmarks.papers._experiment import Rows, markdown

WITH_TIME = ["CGP score+time", "CRS score+time"]
PAPER_BASELINES = ["GP", "Box GP", "Box RS"]
TIME_BASELINES = ["CGP", "gp", "ablr", "box", "warm-start", *PAPER_BASELINES]
STARTS: dict[str, Callable[[list[float]], float]] = {
    "slowest": max,
    "median": lambda seconds: float(np.median(seconds)),
    "0 s": lambda seconds: 0.0,
}
"""Where the curves over time start: the end of a first trial, or the beginning."""


def time_span(rows: Rows, task: str, start: str = "slowest") -> tuple[float, float]:
    """Return the seconds from which to which the runs of a task are compared.

    They end with the fastest run. A run has no result before its first trial ends, so they start
    with the end of the slowest first trial; see `STARTS` for others.
    """
    of_task = [r for r in rows if r["task"] == task]
    shortest = min(sum(r["seconds"]) for r in of_task)
    return min(STARTS[start]([r["seconds"][0] for r in of_task]), shortest), shortest


def over_time(rows: Rows, task: str, method: str, start: str = "slowest") -> float:
    """Return the mean improvement over random search as a function of time.

    Time is the sum of the seconds of the trials. Before a run's first trial ends, that trial counts
    as its result.
    """
    grid = np.linspace(*time_span(rows, task, start), 200)

    def curve(group: Rows) -> np.ndarray:
        found = []
        for row in group:
            best, done = np.minimum.accumulate(row["loss"]), np.cumsum(row["seconds"])
            found.append(best[np.maximum(np.searchsorted(done, grid, side="right") - 1, 0)])
        return np.mean(found, axis=0)

    random = curve(runs_of(rows, task, "random"))
    return float(np.mean(100 * (random - curve(runs_of(rows, task, method))) / random))


def time_tables(rows: Rows, tasks: list[tuple[str, str]]) -> list[str]:
    """Table 5: once with all seeds, once with those of the paper's baselines."""
    needed = [t for s, t in tasks if s in TIMED]
    done = [m for m in run_on(rows, TIME_BASELINES) if all(runs_of(rows, t, m) for t in needed)]
    if not all(runs_of(rows, t, m) for t in needed for m in WITH_TIME):
        return []
    lines = ["## Table 5: score and time, relative improvement over random search against time", ""]
    few = [m for m in done if m in PAPER_BASELINES]
    lines += _time_table(rows, [*WITH_TIME, *(m for m in done if m not in few)], True)
    return lines + (_time_table(rows, [*WITH_TIME, "CGP", *few]) if few else [])


def _time_table(rows: Rows, timed: list[str], with_starts: bool = False) -> list[str]:
    """Return the improvements over time in the seeds that all of these methods share."""
    common = [r for r in rows if r["method"] == "random"]
    common += [r for r in shared(rows, timed) if r["method"] in timed]
    found = {
        (s, t): {m: over_time(common, t, m) for m in timed} for s, t in tasks_of(common, timed)
    }
    body = [
        [*task, len(runs_of(common, task[1], timed[0])), *of.values(), *PUBLISHED_TIME[task[1]]]
        for task, of in found.items()
    ]
    lines = markdown(["suite", "task", "seeds", *timed, "paper: CGP", "CRS", "GP"], body)
    baselines = [m for m in timed if m not in (*WITH_TIME, "CGP")]
    for name in dict.fromkeys(s for s, _ in found):
        own = [of for (s, _), of in found.items() if s == name]
        others = {lead: ["CGP" if "CGP" in lead else "CRS", *baselines] for lead in WITH_TIME}
        for lead in WITH_TIME:
            above = {m: sum(of[lead] > of[m] for of in own) for m in others[lead] if m in timed}
            counts = ", ".join(f"`{m}` on {n}" for m, n in above.items())
            lines.append(
                f"* {name}: `{lead}` is above {counts}, and above all baselines on "
                f"{_first(own, lead, baselines)} of {len(own)} tasks."
            )
    starts = _starts(common, list(found), timed, baselines) if with_starts else []
    return [*lines, "", *starts]


def _first(tasks: list[dict[str, float]], lead: str, others: list[str]) -> int:
    """Count the tasks on which a method is above all others."""
    return sum(of[lead] > max(of[m] for m in others) for of in tasks) if others else len(tasks)


def _starts(
    rows: Rows, tasks: list[tuple[str, str]], timed: list[str], baselines: list[str]
) -> list[str]:
    """Return the means over the tasks with other starts of the curves."""
    body, lead = [], WITH_TIME[0]
    for name in dict.fromkeys(s for s, _ in tasks):
        own = [t for s, t in tasks if s == name]
        for start in STARTS:
            found = [{m: over_time(rows, t, m, start) for m in timed} for t in own]
            spans = [time_span(rows, t, start) for t in own]
            means = [float(np.mean([of[m] for of in found])) for m in timed]
            reached = sum(
                of[lead] >= PUBLISHED_TIME[t][0] for of, t in zip(found, own, strict=True)
            )
            before = f"{100 * np.mean([first / last for first, last in spans]):.0f} %"
            body.append([name, start, before, *means, _first(found, lead, baselines), reached])
    lines = [
        "Means over the tasks, where the curves start with the end of the slowest or the median "
        "first trial, or at once (then the first trial of a run counts from the beginning). "
        f"`before` is the share of the time before the start. `first` counts the tasks on which "
        f"`{lead}` is above all baselines, `reached` those on which it is at or above the "
        "published figure.",
        "",
    ]
    return lines + markdown(["suite", "start", "before", *timed, "first", "reached"], body)
