"""Tables and figures of `benchmarks.peers`.

Regret is normalized in each cell, an estimator and a data set: 0 is the best score of any search,
1 the median of the random configurations. Seeds are averaged first, then cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.papers._compare import critical_difference, ranks
from benchmarks.papers._figures import curves, legend_beside, panels, rank_diagram
from benchmarks.papers._replay import expected_best
from benchmarks.peer_methods import HALVING, INSTALLED, METHODS, OURS, RANDOM, SHUFFLED
from benchmarks.runner import format_page, packed_file, write_runs

AT = (1, 2, 3, 5, 10, 20, 30)
GROWN = f"{OURS}30 past"
GP_PEER = "optuna GP"
MIN_SCALE = 0.005
"""Targets with a smaller distance of the best score to the random median are left out: half of all
configurations are as good as the best, and one bad trial would outweigh all other targets."""
CLAIMS = (
    "The difference is that of the two figures, with its 95 % bootstrap interval over data sets. "
    "If the interval contains 0, the search may be behind by chance."
)
Cell = tuple[str, str]
Regrets = dict[str, dict[Cell, np.ndarray]]
"""Method -> cell -> best regret so far after each trial, mean over seeds."""


def regrets(rows: Sequence[Mapping[str, Any]]) -> Regrets:
    """Return the regrets of every method in every cell where configurations differ."""
    table: Regrets = {}
    cells: dict[Cell, list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["estimator"], row["data"]), []).append(row)
    for cell, own in cells.items():
        reference = np.array(
            next(row["scores"] for row in own if row["method"] == RANDOM), dtype=float
        )
        best = max(np.nanmax(np.array(row["scores"], dtype=float)) for row in own)
        scale = best - np.nanmedian(reference)
        if scale < MIN_SCALE:
            continue
        for method in dict.fromkeys(row["method"] for row in own):
            if method == RANDOM:
                loss = -np.nan_to_num(
                    reference, nan=np.nanmin(reference)
                )  # a failure counts as the worst score
                reached = -expected_best(loss, len(loss))[None]
            else:
                scores = [row["scores"] for row in own if row["method"] == method]
                reached = np.fmax.accumulate(np.array(scores, dtype=float), axis=1)
                # Before the first success the worst random score counts.
                reached = np.where(np.isnan(reached), np.nanmin(reference), reached)
            table.setdefault(method, {})[cell] = (best - reached.mean(axis=0)) / scale
    return table


def stacked(
    table: Regrets, method: str, estimator: str | None = None
) -> tuple[np.ndarray, list[str]]:
    """Return the regrets (cells, trials) of a method, and the data sets of the cells."""
    cells = [cell for cell in table[method] if estimator in (None, cell[0])]
    return np.array([table[method][cell] for cell in cells]), [data for _, data in cells]


def bounds(values: np.ndarray, data: Sequence[str], n: int = 1000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over cells.

    Data sets are resampled, because the cells of a data set are correlated.
    """
    names = sorted(set(data))
    total = np.array([values[[d == name for d in data]].sum() for name in names])
    count = np.array([sum(d == name for d in data) for name in names])
    drawn = np.random.default_rng(0).integers(len(names), size=(n, len(names)))
    means = total[drawn].sum(axis=1) / count[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def interval(values: np.ndarray, data: Sequence[str]) -> str:
    """Return the mean over cells with its interval."""
    low, high = bounds(values, data)
    return f"{values.mean():.3f} ({low:.3f}–{high:.3f})"


def regret_table(table: Regrets, estimator: str | None = None) -> list[str]:
    """Return a table of methods by numbers of trials."""
    lines = ["| search | " + " | ".join(f"k = {k}" for k in AT) + " |", "|---|" + "---|" * len(AT)]
    for method in (m for m in METHODS if m in table):
        values, data = stacked(table, method, estimator)
        if method == HALVING:
            cells = [""] * (len(AT) - 1) + [interval(values[:, 0], data)]
        else:
            cells = [interval(values[:, k - 1], data) for k in AT]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def random_trials(table: Regrets, method: str) -> list[str]:
    """Return how many trials random search needs for the mean regret after k trials."""
    random = stacked(table, RANDOM)[0].mean(axis=0)
    reached = stacked(table, method)[0].mean(axis=0)
    needed = [int(np.searchsorted(-random, -reached[k - 1])) + 1 for k in AT]
    return [f"{n}" if n <= len(random) else f"> {len(random)}" for n in needed]


def speed_up_table(table: Regrets) -> list[str]:
    """Return a table of the trials that random search needs for the regret of each method."""
    lines = ["| search | " + " | ".join(f"k = {k}" for k in AT) + " |", "|---|" + "---|" * len(AT)]
    for method in (m for m in METHODS if m in table and m not in (RANDOM, HALVING)):
        lines.append(f"| {method} | {' | '.join(random_trials(table, method))} |")
    return lines


def seconds_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table of seconds outside the evaluations."""
    lines = ["| search | training, s | trial, s | ratio to Optuna's GP |", "|---|---|---|---|"]
    own = {m: [r for r in rows if r["method"] == m and "seconds" in r] for m in METHODS}
    seconds = {
        m: float(np.median([r["seconds"] for r in found])) for m, found in own.items() if found
    }
    for method, value in seconds.items():
        learning = np.median([row["learning"] for row in own[method]])
        ratio = f"{value / seconds[GP_PEER]:.2f}" if GP_PEER in seconds else ""
        lines.append(f"| {method} | {learning:.2f} | {value:.4f} | {ratio} |")
    return lines


class Behind(NamedTuple):
    """How far one search after some trials is behind another after some, over common cells."""

    ours: float
    theirs: float
    low: float
    high: float

    @classmethod
    def of(
        cls,
        table: Regrets,
        ours: tuple[str, int],
        theirs: tuple[str, int],
        estimator: str | None = None,
    ) -> Behind:
        (method, k), (other, at) = ours, theirs
        cells = [
            cell for cell in table[method] if cell in table[other] and estimator in (None, cell[0])
        ]
        pairs = np.array(
            [(table[method][cell][k - 1], table[other][cell][at - 1]) for cell in cells]
        )
        return cls(
            *pairs.mean(axis=0), *bounds(pairs[:, 0] - pairs[:, 1], [data for _, data in cells])
        )

    @property
    def holds(self) -> str:
        """Whether the search is not behind, or not by more than the noise."""
        return (
            "yes" if self.ours <= self.theirs else "no, within the noise" if self.low <= 0 else "no"
        )


def claims(table: Regrets) -> list[str]:
    """Return the table of claims, and whether they hold."""
    lines = ["| statement | figures | difference | holds |", "|---|---|---|---|"]

    def claim(text: str, *pair: tuple[str, int], estimator: str | None = None) -> None:
        found = Behind.of(table, *pair, estimator=estimator)
        difference = f"{found.ours - found.theirs:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
        lines.append(
            f"| {text} | {found.ours:.3f}, {found.theirs:.3f} | {difference} | {found.holds} |"
        )

    for method, k, other in (
        (INSTALLED, 1, 10),
        (INSTALLED, 5, 30),
        (GROWN, 1, 12),
        (GROWN, 5, 50),
    ):
        if method in table:
            text = f"{method}: trial {k} as good as random search's {other}th"
            claim(text, (method, k), (RANDOM, other))
    for peer in (
        m for m in METHODS if m in table and not m.startswith(OURS) and m not in (RANDOM, HALVING)
    ):
        claim(f"trial 10 better than {peer}'s 20th", (INSTALLED, 10), (peer, 20))
        found = {k: Behind.of(table, (INSTALLED, k), (peer, k)) for k in range(1, max(AT) + 1)}
        behind = {k: each.holds for k, each in found.items() if each.holds != "yes"}
        clearly = ", ".join(str(k) for k, word in behind.items() if word == "no") or "none of them"
        words = f"no, behind at {', '.join(map(str, behind))}; beyond the noise at {clearly}"
        lines.append(
            f"| ahead of {peer} at every number of trials | | | {words if behind else 'yes'} |"
        )
    for method in (m for m in (GROWN, SHUFFLED) if m in table):
        for estimator in dict.fromkeys(cell[0] for cell in table[method]):
            for k in (10, 20, 30):
                text = f"{method}: not worse than as installed, {estimator}, {k} trials"
                claim(text, (method, k), (INSTALLED, k), estimator=estimator)
    return lines


def figures(table: Regrets, file: Path) -> float:
    """Draw regret over trials and ranks after 10 trials; return the critical difference."""
    shown = [m for m in METHODS if m in table and m not in (HALVING, SHUFFLED)]
    values = {m: stacked(table, m)[0][:, : max(AT)] for m in shown}
    ranked = {m: r.mean(axis=0) for m, r in ranks({m: -v for m, v in values.items()}).items()}
    difference = critical_difference(len(shown), len(next(iter(values.values()))))
    with panels(file, 2, width=6.2, height=4.4) as (left, right):
        curves(left, values, ylabel="mean normalized regret", title="best so far")
        left.set(yscale="log", xscale="log")
        left.set_xticks(AT, [str(k) for k in AT])
        legend_beside(left)
        rank_diagram(
            right, {m: float(r[9]) for m, r in ranked.items()}, difference, "after 10 trials"
        )
    return difference


def seeds_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe how many seeds each search has."""
    numbers: dict[int, list[str]] = {}
    for method in (m for m in METHODS if m != RANDOM):
        n = len({row["seed"] for row in rows if row["method"] == method})
        numbers.setdefault(n, []).append(method)
    return "; ".join(f"{n} for {', '.join(found)}" for n, found in numbers.items() if n)


def write_report(rows: Sequence[Mapping[str, Any]], file: Path | None, command: str) -> str:
    """Return the page as Markdown; with a file, write it, its figure and its packed runs.

    The discussion of the results is written by hand in ``NAME-notes.md`` and is included in the
    page.
    """
    table = regrets(rows)
    cells = sorted({cell for by in table.values() for cell in by})
    names = sorted({data for _, data in cells})
    lines = [
        "# The search and its peers",
        "",
        f"Made by `{command}`.",
        "",
        f"{len(cells)} targets: {len(names)} data sets ({', '.join(names)}) for "
        f"{', '.join(dict.fromkeys(e for e, _ in cells))}. The table shows the mean normalized "
        "regret after k trials with its 95 % bootstrap interval over data sets. 0 is the best "
        "score of any search on the target, 1 the median random configuration. Targets where "
        f"these two differ by less than {MIN_SCALE} are left out. Halving is shown where its cost "
        f"equals 30 trials. Seeds: {seeds_of(rows)}.",
        "",
        *regret_table(table),
        "",
    ]
    if file:
        figures(table, file.with_suffix(".png"))
        lines += [f"![Regret over trials, and ranks]({file.stem}.png)", ""]
        notes = file.with_name(f"{file.stem}-notes.md")
        lines += ["## Discussion", "", notes.read_text()] if notes.exists() else []
    lines += ["## Claims", "", CLAIMS, "", *claims(table), ""]
    lines += [
        "## Trials that random search needs for the same regret",
        "",
        *speed_up_table(table),
        "",
    ]
    lines += ["## Seconds outside cross-validation", "", *seconds_table(rows), ""]
    for estimator in dict.fromkeys(e for e, _ in cells):
        lines += [f"## {estimator}", "", *regret_table(table, estimator), ""]
    if file:
        packed = packed_file(file)
        lines += [f"All runs are in [{packed.name}](runs/{packed.name}).", ""]
        kept = [{key: value for key, value in row.items() if key != "params"} for row in rows]
        write_runs(kept, packed)
        file.write_text(format_page(lines))
    return format_page(lines)
