"""Tables 2, 3, 5 and 6 of Salinas et al. 2020, and its figure, made from the rows of `copula`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers._copula_published import PUBLISHED, PUBLISHED_PRIOR
from benchmarks.papers._copula_rows import (
    OTHERS,
    TIMED,
    improvements,
    run_on,
    runs_of,
    shared,
    tasks_of,
)
from benchmarks.papers._copula_time import time_tables
from benchmarks.papers._experiment import Rows, half_width, interval, markdown
from benchmarks.papers._figures import colors, legend_beside, panels

N_TRIALS = 100
SHOWN_FROM = 5  # first trial in the figure
MIN_SEEDS = 3  # to tell whether a task is won; Student's t of two seeds is 12.7
PRIORS = ["linear", "KNN_5", "KNN_10", "KNN_20"]  # of Table 6 beside the network
FIRST = ["random", "CGP", "CRS", "GP", "Box GP", "Box RS", "copula-gp", "gp", "box", "warm-start"]
FIRST += ["ablr"]
RANKS = ["CGP", "CGP, errors ranked"]
GAINS = {
    "CGP": ["CRS", "GP", "gp", "Box GP", "Box RS", "box", "warm-start", "ablr", "copula-gp"],
    "CGP homoskedastic": ["CGP"],
    "CRS homoskedastic": ["CRS"],
    "CGP, paper's network": ["CGP"],
    "CRS, paper's network": ["CRS"],
}
"""Methods -> others in the same searches, for the differences of the means."""
PHASES = {"1 to 10": slice(0, 10), "41 to 50": slice(40, 50), "91 to 100": slice(90, 100)}


def mean_and_interval(values: np.ndarray) -> str:
    """Return the mean with a 95 % interval over the runs; (runs, trials) -> text."""
    return interval(values.mean(axis=1), digits=1)


def tables(rows: Rows) -> list[str]:
    """Return Tables 2, 3, 5 and 6."""
    lines = [
        "## Table 2: relative improvement over random search in percent, mean over the trials",
        "",
    ]
    rows, priors = split_priors(rows)
    shown, empty = run_on(rows, FIRST), ("",) * 4
    tasks = tasks_of(rows, ["CGP"])
    body = []
    for s, t in tasks:
        found = [improvements(rows, t, m) if runs_of(rows, t, m) else None for m in shown]
        cells = ["" if each is None else mean_and_interval(each) for each in found]
        body.append([s, t, len(runs_of(rows, t, "CGP")), *cells, *PUBLISHED.get(t, empty)])
    lines += markdown(["suite", "task", "seeds", *shown, "paper: CGP", "CRS", "GP", "ABLR"], body)
    lines += [*statements(rows), *best_counts(rows, shown), "", *gains(rows), *phases(rows)]
    lines += rank_effect(rows)
    lines += ablation(rows)
    return lines + time_tables(rows, tasks) + prior_table(rows, priors, tasks)


def split_priors(rows: Rows) -> tuple[Rows, Rows]:
    """Return the searches, and the errors of priors without one."""
    return (
        [row for row in rows if row["method"] not in PRIORS],
        [row for row in rows if row["method"] in PRIORS],
    )


def prior_table(rows: Rows, priors: Rows, tasks: list[tuple[str, str]]) -> list[str]:
    """Table 6: error of the prior by each estimator."""
    lines = ["## Table 6: error of the prior by each estimator (1: uninformative)", ""]
    network = {row["task"]: row["prior_error"] for row in rows if "prior_error" in row}
    others = {(row["task"], row["method"]): row["prior_error"] for row in priors}
    shown = [name for name in PRIORS if any(name == method for _, method in others)]
    body = [
        [s, t, *(others.get((t, name), "") for name in shown), network[t]]
        + list(PUBLISHED_PRIOR.get(t, ("",) * 3))
        for s, t in tasks
        if t in network
    ]
    head = ["suite", "task", *shown, "network", "paper: KNN", "linear", "network"]
    lines += markdown(head, body)
    if shown:
        known = [t for _, t in tasks if all((t, name) in others for name in shown)]
        best = sum(network[t] <= min(others[t, name] for name in shown) for t in known)
        lines += [f"The network is the best estimator on {best} of {len(known)} tasks.", ""]
    return lines


def gains(rows: Rows) -> list[str]:
    """Return the mean improvement of methods and of others, over the tasks of each suite."""
    body = []
    for method, others in GAINS.items():
        for other in run_on(rows, others) if run_on(rows, [method]) else []:
            common = shared(rows, [method, other])
            tasks = tasks_of(common, [method, other])
            for name in dict.fromkeys(s for s, _ in tasks):
                own = [t for s, t in tasks if s == name]
                body.append([name, method, other, *_gain(common, own, method, other)])
    if not body:
        return []
    order = list(dict.fromkeys(row[0] for row in body))
    body.sort(key=lambda row: order.index(row[0]))
    lines = [
        "## Means over the tasks of a suite",
        "",
        "Improvement of two methods in the same searches, and that of the first minus that of the "
        "other with a 95 % interval over the tasks. The last columns count the tasks on which the "
        "first one is ahead or behind by more than the interval over the seeds.",
        "",
    ]
    head = ["suite", "method", "other", "tasks", "seeds", "method's", "other's", "difference"]
    return lines + markdown([*head, "ahead", "behind"], body)


def _gain(rows: Rows, tasks: list[str], method: str, other: str) -> list:
    """Return the cells of one line of `gains`; with one or two seeds no task is counted."""
    means, ahead, behind, seeds = [], 0, 0, set()
    for task in tasks:
        pair = [improvements(rows, task, m).mean(axis=1) for m in (method, other)]
        difference = pair[0] - pair[1]
        means.append([values.mean() for values in pair])
        seeds.add(len(difference))
        if len(difference) >= MIN_SEEDS:
            half = half_width(difference)
            ahead += difference.mean() > half
            behind += difference.mean() < -half
    first, second = np.transpose(means)
    text = interval(first - second, digits=1, sign="+")
    counts = [ahead, behind] if min(seeds) >= MIN_SEEDS else ["", ""]
    return [len(tasks), min(seeds), f"{first.mean():.1f}", f"{second.mean():.1f}", text, *counts]


def phases(rows: Rows) -> list[str]:
    """Return the mean improvement in the first, middle and last trials, over the tasks."""
    body = []
    for name in dict.fromkeys(row["suite"] for row in rows):
        tasks = [t for s, t in tasks_of(rows, ["CGP"]) if s == name]
        shown = [m for m in run_on(rows, FIRST) if all(runs_of(rows, t, m) for t in tasks)]
        found = {m: [improvements(rows, t, m).mean(axis=0) for t in tasks] for m in shown}
        for title, part in PHASES.items():
            if any(v[0].size <= part.start for v in found.values()):
                continue
            means = {m: np.mean([each[part].mean() for each in v]) for m, v in found.items()}
            body.append([name, title, *(f"{means[m]:.1f}" if m in means else "" for m in FIRST)])
    lines = ["## First and last trials: mean improvement over the tasks of a suite", ""]
    return lines + markdown(["suite", "trials", *FIRST], body)


def rank_effect(rows: Rows) -> list[str]:
    """The effect of ranking errors, as the paper does, or scores."""
    if len(run_on(rows, RANKS)) < len(RANKS):
        return []
    common = shared(rows, RANKS)
    lines = ["## Ranks of errors and of scores, mean over the tasks of a suite", ""]
    body = []
    tasks = tasks_of(common, RANKS)
    for suite_name in dict.fromkeys(s for s, _ in tasks):
        own = [t for s, t in tasks if s == suite_name]
        means = [[improvements(common, t, m).mean() for t in own] for m in RANKS]
        difference = np.array(means[1]) - np.array(means[0])
        body.append(
            [suite_name, len(own), *map(float, np.mean(means, axis=1)), interval(difference)]
        )
    return lines + markdown(["suite", "tasks", *RANKS, "difference"], body)


def statements(rows: Rows) -> list[str]:
    """Count the tasks that reach the published figure, and those ahead of plain gp."""
    lines = []
    for method in run_on(rows, ["CGP", "copula-gp"]):
        common = shared(rows, [method, "gp"])
        for suites in (TIMED, OTHERS):
            known = [
                t for s, t in tasks_of(common, [method, "gp"]) if s in suites and t in PUBLISHED
            ]
            if not known:
                continue
            ours = {t: improvements(common, t, method).mean() for t in known}
            reached = [t for t in known if ours[t] >= PUBLISHED[t][0]]
            far = [t for t in known if ours[t] < 0.8 * PUBLISHED[t][0]]
            ahead = sum(ours[t] > improvements(common, t, "gp").mean() for t in known)
            lines.append(
                f"* {method}, {len(known)} tasks of {', '.join(suites)}: at or above the "
                f"published figure on {len(reached)}, below it by more than 20 % on {len(far)} "
                f"({', '.join(far) or 'none'}); ahead of gp on {ahead}."
            )
    return lines


def best_counts(rows: Rows, shown: list[str]) -> list[str]:
    """Count the tasks on which CGP is best, alone or within 0.05 (a tie in print).

    The best of many means of single runs would be high by chance, so methods with fewer runs than
    half of CGP's are left out.
    """
    lines = []
    baselines = [
        m for m in ("GP", "Box GP", "Box RS", "gp", "box", "warm-start", "ablr") if m in shown
    ]
    for name in dict.fromkeys(s for s, _ in tasks_of(rows, ["CGP"])):
        tasks = [t for s, t in tasks_of(rows, ["CGP", "CRS", "gp"]) if s == name]
        best, beaten_by = 0, []
        for task in tasks:
            enough = max(1, len(runs_of(rows, task, "CGP")) // 2)
            others = [m for m in [*baselines, "CRS"] if len(runs_of(rows, task, m)) >= enough]
            means = {m: improvements(rows, task, m).mean() for m in ["CGP", *others]}
            leader = max(means, key=lambda m: means[m])
            best += means["CGP"] >= means[leader] - 0.05
            if means["CGP"] < means[leader] - 0.05:
                beaten_by.append(leader)
        counts = ", ".join(f"{m} {beaten_by.count(m)}" for m in dict.fromkeys(beaten_by))
        lines.append(f"* {name}: CGP is best, alone or tied, on {best} of {len(tasks)} tasks")
        lines[-1] += f" (otherwise {counts})." if counts else "."
    return [*lines, "", "Methods with fewer runs than half of those of CGP are not counted."]


def ablation(rows: Rows) -> list[str]:
    """Table 3: the mean over the trials of each form, and over the tasks of a suite."""
    shown = [
        "CRS standardized",
        "CRS homoskedastic",
        "CRS",
        "CGP standardized",
        "CGP homoskedastic",
        "CGP",
    ]
    if len(run_on(rows, shown)) < len(shown):
        return []
    common = shared(rows, shown)
    tasks = tasks_of(common, shown)
    body = [
        [
            s,
            t,
            len(runs_of(common, t, "CGP")),
            *(float(improvements(common, t, m).mean()) for m in shown),
        ]
        for s, t in tasks
    ]
    for name in dict.fromkeys(s for s, _ in tasks):
        body.append(
            [name, "mean", "", *np.mean([row[3:] for row in body if row[0] == name], axis=0)]
        )
    lines = ["## Table 3: ablation, all forms with the same seeds", ""]
    return lines + markdown(["suite", "task", "seeds", *shown], body)


def figure(rows: Rows, file: Path) -> None:
    """Draw the improvement over random search against trials, one panel per suite.

    Bands are one standard error over the tasks of a suite.
    """
    rows = split_priors(rows)[0]
    shown = [m for m in run_on(rows, FIRST) if m != "random"]  # it is the line at 0
    names = list(dict.fromkeys(s for s, _ in tasks_of(rows, ["CGP"])))
    trials = np.arange(1, N_TRIALS + 1)
    with panels(file, len(names), width=4.2, height=4.0) as axes:
        for axis, name in zip(axes, names, strict=True):
            means = []
            for method, color in colors(shown).items():
                tasks = [t for s, t in tasks_of(rows, [method]) if s == name]
                if len(tasks) < sum(s == name for s, _ in tasks_of(rows, ["CGP"])):
                    continue
                each = np.array([improvements(rows, t, method).mean(axis=0) for t in tasks])
                mean, error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))
                width = 2.2 if method == "CGP" else 1.2
                axis.plot(trials, mean, label=method, color=color, lw=width)
                if method in ("CGP", "gp"):
                    axis.fill_between(trials, mean - error, mean + error, color=color, alpha=0.12)
                means.append(mean[SHOWN_FROM - 1 :])
            axis.axhline(0, color="grey", lw=0.8)
            axis.set(title=name, xlabel="trials", ylabel="better than random search, %")
            # The first trials differ so much that they would hide all later differences.
            high = np.max(means)
            low = max(np.min(means), -0.3 * high)
            axis.set_ylim(low - 0.05 * (high - low), high + 0.1 * (high - low))
            axis.set_xlim(SHOWN_FROM, N_TRIALS)
        legend_beside(axes[-1], max((axis.get_legend_handles_labels() for axis in axes), key=_size))


def _size(legend: tuple[list, list]) -> int:
    return len(legend[1])
