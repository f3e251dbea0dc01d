"""The searches of `benchmarks.peers` without the luck of the folds.

    OMP_NUM_THREADS=1 python -m benchmarks.peer_folds     # docs/results/peer_folds.md, after benchmarks.peers

A score of `benchmarks.peers` is that of one cross-validation. Part of it is how the rows happened to be cut
into folds, which no past can tell, and of which the best of many trials has more than the first. Here the
same configurations are evaluated on the same rows, cut in N_CUTS other ways. That answers two questions:

* How good can a first trial be? The random configurations are tried in the order of their mean score in the
  other cuts: as a search does that knows all about the data set but what the folds alone decide.
* What is the configuration worth that a search would return after k trials? Its regret is measured in the
  other cuts, where nobody has chosen by luck.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.model_selection import StratifiedKFold

from benchmarks.data import data_folder
from benchmarks.evaluations import WORK
from benchmarks.peer_cells import FOLDS, evaluate, load, space_of
from benchmarks.peer_methods import METHODS, NO_ARCHIVE, PAST, RANDOM, STARTER
from benchmarks.peer_report import GROWN, NOTHING, Cell, Regrets, bounds, interval, regrets, stacked
from benchmarks.peers import FIELDS, N_RANDOM, identity
from benchmarks.runner import read_rows, run_all

N_CUTS = 2
KNOWING = "knows the data set"
RETURNING = [method for method in METHODS if method in (NO_ARCHIVE, STARTER, *PAST)]
AT = (1, 2, 3, 5, 10, 20, 30)
CLAIMS = [(GROWN, 1, RANDOM, 10), (GROWN, 5, RANDOM, 40), (STARTER, 1, RANDOM, 6)]
RESULTS = Path(__file__).parents[1] / "docs" / "results"
Scores = dict[Cell, dict[str, float]]
"""Cell -> configuration -> mean score in the other cuts."""


def run(estimator: str, data: str, cut: int, folder: Path, tried: Sequence[dict]) -> dict[str, Any]:
    """The scores of some configurations with another cut into folds."""
    cell = load(estimator, data, folder)
    folds = StratifiedKFold(FOLDS.n_splits, shuffle=True, random_state=cut)
    return {
        "scores": {identity(params): evaluate(estimator, params, cell, folds) for params in tried}
    }


def returned(row: Mapping[str, Any]) -> list[dict]:
    """The configuration that a search would return after each of AT trials."""
    scores = np.nan_to_num(np.array(row["scores"], dtype=float), nan=-np.inf)
    return [row["params"][int(scores[:k].argmax())] for k in AT]


def mean_scores(rows: Sequence[Mapping[str, Any]]) -> Scores:
    """Over the cuts; what failed in one counts as a score of 0."""
    found: dict[Cell, dict[str, list[float]]] = {}
    for row in rows:
        cell = found.setdefault((row["estimator"], row["data"]), {})
        for name, score in row["scores"].items():
            cell.setdefault(name, []).append(np.nan_to_num(score))
    return {
        cell: {name: float(np.mean(s)) for name, s in own.items()} for cell, own in found.items()
    }


def in_known_order(report: Sequence[Mapping[str, Any]], truth: Scores) -> list[dict]:
    """Runs that try the random configurations from the best to the worst in the other cuts."""
    made = []
    for row in report:
        if row["method"] == RANDOM:
            by = [
                truth[row["estimator"], row["data"]][name]
                for name in random_names(row["estimator"])
            ]
            scores = np.array(row["scores"], dtype=float)[np.argsort(-np.array(by), kind="stable")]
            made.append({**row, "method": KNOWING, "scores": scores.tolist()})
    return made


def random_names(estimator: str) -> list[str]:
    return [identity(params) for params in space_of(estimator).sample(N_RANDOM, 12345)]


def worth(
    report: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]], truth: Scores
) -> Regrets:
    """Regret in the other cuts of what a search would return after AT trials; random search after 1 to 40."""
    found: Regrets = {}
    for row in report:
        cell = row["estimator"], row["data"]
        if row["method"] != RANDOM:
            continue
        random = np.array([truth[cell][name] for name in random_names(row["estimator"])])
        best = max(truth[cell].values())
        scale = best - np.median(random)
        if scale < NOTHING:
            continue
        scores = np.nan_to_num(np.array(row["scores"], dtype=float), nan=-np.inf)
        found.setdefault(RANDOM, {})[cell] = (best - expected_worth(scores, random)) / scale
        for method in RETURNING:
            own = [r for r in runs if (r["estimator"], r["data"], r["method"]) == (*cell, method)]
            values = [[truth[cell][identity(params)] for params in returned(r)] for r in own]
            found.setdefault(method, {})[cell] = (best - np.mean(values, axis=0)) / scale
    return found


def expected_worth(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Mean truth of the best by score among k of the configurations, k = 1, ..., 40; (n,), (n,) -> (40,).

    >>> expected_worth(np.arange(50.0), np.arange(50.0))[:2].round(3).tolist()
    [24.5, 33.0]
    """
    n, order = len(scores), np.argsort(scores, kind="stable")
    # Which of equal scores is returned is chance.
    levels, level = np.unique(scores, return_inverse=True)
    shared = np.array([truth[level == i].mean() for i in range(len(levels))])[level][order]
    below, k = np.arange(n)[:, None], np.arange(1, 41)[None]
    ways = log_choose(below, k - 1) - log_choose(
        np.array(n), k
    )  # it is the best of k: the others are below
    return shared @ np.where(below >= k - 1, np.exp(ways), 0)


def log_choose(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1)


# -- report ------------------------------------------------------------------------------------


def table(found: Regrets, methods: Sequence[str], column: Mapping[str, Sequence[int]]) -> list[str]:
    """Mean regrets after AT trials; `column` says where they stand in a method's row."""
    lines = ["| search | " + " | ".join(f"k = {k}" for k in AT) + " |", "|---|" + "---|" * len(AT)]
    for method in methods:
        values, data = stacked(found, method)
        lines.append(
            f"| {method} | "
            + " | ".join(interval(values[:, c], data) for c in column[method])
            + " |"
        )
    return [*lines, ""]


def claims(found: Regrets) -> list[str]:
    """The issue's figures, by what the returned configurations are worth."""
    lines = ["| statement | figures | difference | holds |", "|---|---|---|---|"]
    for method, k, other, n in CLAIMS:
        values, data = stacked(found, method)
        mine, theirs = values[:, AT.index(k)], stacked(found, other)[0][:, n - 1]
        low, high = bounds(mine - theirs, data)
        apart = (mine - theirs).mean()
        holds = "yes" if apart <= 0 else "no, within the noise" if low <= 0 else "no"
        lines.append(
            f"| {method}: trial {k} as good as {other}'s {n}th | {mine.mean():.3f}, {theirs.mean():.3f} | "
            f"{apart:+.3f} ({low:+.3f} to {high:+.3f}) | {holds} |"
        )
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument(
        "--work", type=Path, default=WORK, help="folder of the runs of benchmarks.peers"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folder, store = data_folder(options.data), options.work / "peer-folds.jsonl"
    report = [json.loads(line) for line in (RESULTS / "peers.jsonl").read_text().splitlines()]
    cells = [(row["estimator"], row["data"]) for row in report if row["method"] == RANDOM]
    done = read_rows(options.work / "peers-runs.jsonl", FIELDS)
    runs = [row for key, row in done.items() if key[:2] in cells and key[2] in RETURNING]
    tried: dict[Cell, dict[str, dict]] = {}
    for estimator, data in cells:
        own = tried.setdefault((estimator, data), {})
        for params in space_of(estimator).sample(N_RANDOM, 12345):
            own[identity(params)] = params
    for row in runs:
        tried[row["estimator"], row["data"]] |= {
            identity(params): params for params in returned(row)
        }
    keys = [(*cell, cut) for cut in range(1, N_CUTS + 1) for cell in cells]
    fields = ("estimator", "data", "cut")
    cuts = run_all(
        store, fields, keys, run, options.jobs, lambda key: (folder, list(tried[key[:2]].values()))
    )
    truth = mean_scores(cuts)
    known, found = regrets([*report, *in_known_order(report, truth)]), worth(report, runs, truth)
    plain = [k - 1 for k in AT]
    lines = [
        "# The searches and their peers, without the luck of the folds",
        "",
        "Made by `OMP_NUM_THREADS=1 python -m benchmarks.peer_folds`.",
        "",
        "## How good a first trial can be",
        "",
        f"Targets and regret of [peers.md](peers.md), {len(known[RANDOM])} of them. *{KNOWING}*: its "
        f"{N_RANDOM} random configurations, tried in the order of their mean score in {N_CUTS} other cuts "
        "of the same rows into folds.",
        "",
        *table(known, (methods := [RANDOM, KNOWING, GROWN]), dict.fromkeys(methods, plain)),
        "## What the returned configurations are worth",
        "",
        f"After k trials a search would return its best. Its normalized regret in the {N_CUTS} other cuts, "
        f"0 the best of all configurations that were evaluated in them; {len(found[RANDOM])} targets.",
        "",
        *table(
            found, [RANDOM, *RETURNING], {RANDOM: plain} | dict.fromkeys(RETURNING, range(len(AT)))
        ),
        *claims(found),
    ]
    notes = RESULTS / "peer_folds-notes.md"
    if notes.exists():
        lines += [notes.read_text().rstrip()]
    (RESULTS / "peer_folds.md").write_text("\n".join(lines).rstrip() + "\n")
    # In the order of the random configurations, then of those that the runs returned.
    rows = [
        {**row, "scores": [round(score, 6) for score in row["scores"].values()]} for row in cuts
    ]
    (RESULTS / "peer_folds.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
