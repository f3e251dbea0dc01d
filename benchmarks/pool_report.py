"""The page of `benchmarks.pool_searches`: tables of regrets, and statements with intervals.

An interval is 95 % over the families of the data sets, of a difference within each cell. A
statement is met if the mean difference is in its favor, "beyond the noise" if the whole interval
is, and "within the noise" if it is missed by less than its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from benchmarks.pretraining.choose import Cell, random_search
from benchmarks.runner import markdown_table

AT = (1, 2, 3, 5, 10, 20, 30)
LEVEL_AT, MAX_LEVEL = (1, 2, 3, 5, 10), 100  # trials whose equal among random ones is looked for
RANDOM, PLAIN, STARTER = "random search", "plain GP", "with the starter archive"
LATER, LATER_AT = ("shipped", "30 past", "30 past, misleading"), (10, 20, 30)
Values = dict[tuple[str, str], float]
"""(estimator, data set) -> regret."""


class Difference(NamedTuple):
    """Mean regrets of two searches, and their difference with half of its interval."""

    ours: float
    theirs: float
    mean: float
    half: float

    @property
    def verdict(self) -> str:
        if self.mean <= 0:
            return "met, beyond the noise" if self.mean + self.half < 0 else "met"
        return "missed" if self.mean > self.half else "missed, within the noise"

    def row(self) -> list[str]:
        """Cells of a table."""
        difference = f"{self.mean:+.3f} ± {self.half:.3f}"
        return [f"{self.ours:.3f}", f"{self.theirs:.3f}", difference, self.verdict]


class Regrets:
    """Regrets of all searches of a kind.

    Parameters
    ----------
    rows : sequence of dict
    cells : dict of (str, str) to Cell
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], cells: Mapping[tuple, Cell]):
        self._cells = cells
        self._found: dict[str, dict[tuple[str, str], list]] = {}
        for row in rows:
            key = row["estimator"], row["data"]
            self._found.setdefault(row["method"], {}).setdefault(key, []).append(row["regret"])
        self.methods = list(self._found)
        self.keys = sorted(set().union(*self._found.values()))
        self.estimators = list(dict.fromkeys(estimator for estimator, _ in self.keys))

    def after(self, method: str, k: int) -> Values:
        """Regrets after k trials, the mean over seeds."""
        if method == RANDOM:
            return {key: float(random_search(self._cells[key], [k])[0]) for key in self.keys}
        return {
            key: float(np.mean([run[min(k, len(run)) - 1] for run in runs]))
            for key, runs in self._found[method].items()
        }

    def mean(self, method: str, k: int, estimator: str | None = None) -> float:
        """Mean regret of an estimator, or the mean over the estimators."""
        values = self.after(method, k)
        if estimator is None:
            return float(np.mean([self.mean(method, k, each) for each in self.estimators]))
        return float(np.mean([v for (e, _), v in values.items() if e == estimator]))

    def random_level(self, method: str, k: int) -> int | None:
        """Number of random trials whose mean regret is nearest to that of a method after k trials.

        None if the method is better than MAX_LEVEL of them.
        """
        found = abs(self._random_means - self.mean(method, k))
        best = int(found.argmin()) + 1
        return None if best == MAX_LEVEL else best

    @cached_property
    def _random_means(self) -> np.ndarray:
        """Mean regrets after 1 to MAX_LEVEL random trials, as `mean`; (MAX_LEVEL,)."""
        by: dict[str, list[np.ndarray]] = {}
        for key in self.keys:
            n = min(MAX_LEVEL, len(self._cells[key].seen))
            values = random_search(self._cells[key], range(1, n + 1))
            by.setdefault(key[0], []).append(np.pad(values, (0, MAX_LEVEL - n), mode="edge"))
        return np.mean([np.mean(each, axis=0) for each in by.values()], axis=0)

    def compare(
        self, ours: tuple[str, int], theirs: tuple[str, int], estimator: str | None = None
    ) -> Difference:
        """Compare two methods, each after some number of trials."""
        a, b = self.after(*ours), self.after(*theirs)
        keys = [k for k in a if k in b and estimator in (None, k[0])]
        by_family: dict[str, list[float]] = {}
        for key in keys:
            by_family.setdefault(self._cells[key].family, []).append(a[key] - b[key])
        means = np.array([np.mean(each) for each in by_family.values()])
        half = 1.96 * means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
        averages = (float(np.mean([each[key] for key in keys])) for each in (a, b))
        return Difference(*averages, float(means.mean()), float(half))


def make_claims(kind: str, methods: Sequence[str]) -> list[tuple[str, tuple, tuple]]:
    """The statements that are checked: text, ours, theirs."""
    first = 10 if kind == "classification" else 6
    claims = [
        (f"shipped: 1st trial against random search's {first}th", ("shipped", 1), (RANDOM, first)),
        ("shipped: 5th trial against random search's 30th", ("shipped", 5), (RANDOM, 30)),
        ("30 past: 1st trial against random search's 12th", ("30 past", 1), (RANDOM, 12)),
        ("30 past: 5th trial against random search's 50th", ("30 past", 5), (RANDOM, 50)),
    ]
    others = ("30 past, portfolio", "30 past, nearest", "30 past, task-prior", PLAIN)
    claims += [
        (f"30 past against {other}, trial {k}", ("30 past", k), (other, k))
        for other in others
        for k in ((10, 20, 30) if other == PLAIN else AT)
    ]
    claims += [(f"shipped against {STARTER}, trial {k}", ("shipped", k), (STARTER, k)) for k in AT]
    claims += [
        (
            f"misleading archive against plain GP, trial {k}",
            ("30 past, misleading", k),
            (PLAIN, k),
        )
        for k in (5, 10, 20, 30)
    ]
    known = {*methods, RANDOM}
    return [each for each in claims if {each[1][0], each[2][0]} <= known]


def write_kind(kind: str, regrets: Regrets) -> list[str]:
    """The lines of the page about one kind."""
    families = {regrets._cells[key].family for key in regrets.keys}
    lines = [
        "",
        f"## {kind.capitalize()}",
        "",
        f"{len(regrets.keys)} cells, {len(families)} families. Mean regret after some trials:",
        "",
    ]
    body = []
    for estimator in [None, *regrets.estimators]:
        for method in [RANDOM, *regrets.methods]:
            name = "mean" if estimator is None else estimator
            values = [f"{regrets.mean(method, k, estimator):.3f}" for k in AT]
            body.append([name, method, *values])
    lines += markdown_table(["estimator", "search", *map(str, AT)], body)
    if levels := _random_levels(regrets):
        lines += ["", "Random trials with the same mean regret, after some trials:", ""]
        lines += markdown_table(["search", *map(str, LEVEL_AT)], levels)
    lines += ["", "Statements:", ""]
    rows = [
        [text, *regrets.compare(ours, theirs).row()]
        for text, ours, theirs in make_claims(kind, regrets.methods)
    ]
    lines += markdown_table(["statement", "ours", "theirs", "difference", ""], rows)
    return lines + _by_estimator(regrets)


def _by_estimator(regrets: Regrets) -> list[str]:
    """Tables of the statements that hold for each estimator by itself."""
    lines, head = [], ["estimator", "ours", "theirs", "difference", ""]
    if "shipped" in regrets.methods:
        lines += ["", "First trial of what ships against random search's 4th, by estimator:", ""]
        found = [regrets.compare(("shipped", 1), (RANDOM, 4), e) for e in regrets.estimators]
        body = [[e, *each.row()] for e, each in zip(regrets.estimators, found, strict=True)]
        lines += markdown_table(head, body)
    later = [each for each in LATER if {each, PLAIN} <= set(regrets.methods)]
    if later:
        body = [
            [e, method, str(k), *regrets.compare((method, k), (PLAIN, k), e).row()]
            for e in regrets.estimators
            for method in later
            for k in LATER_AT
        ]
        lines += ["", "Later trials against plain GP, by estimator:", ""]
        lines += markdown_table([head[0], "search", "trial", *head[1:]], body)
    return lines


def _random_levels(regrets: Regrets) -> list[list[str]]:
    """Rows of the table of random trials that are as good as the searches users have."""
    rows = []
    for method in ("shipped", "30 past"):
        if method in regrets.methods:
            levels = [regrets.random_level(method, k) for k in LEVEL_AT]
            rows.append([method, *(f"over {MAX_LEVEL}" if n is None else str(n) for n in levels)])
    return rows
