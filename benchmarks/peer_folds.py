"""The searches of `benchmarks.peers` on other folds, which removes the effect of lucky folds.

    OMP_NUM_THREADS=1 python -m benchmarks.peer_folds     # after benchmarks.peers

A score of `benchmarks.peers` comes from one cross-validation. Part of it depends on how the rows
were split into folds, which no past task can predict. The best of many trials profits more from
this than the first. Here the same configurations are evaluated on the same rows, split in N_SPLITS
other ways. That answers two questions:

* How good can a first trial be? The random configurations are tried in the order of their mean
  score on the other splits, as by a search that knows the data set but not the effect of the folds.
* How good is the configuration that a search would return after k trials? Its regret is measured on
  the other splits, which no search has optimized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.model_selection import StratifiedKFold

from benchmarks.data import data_folder
from benchmarks.peer_cells import FOLDS, evaluate, load, space_of
from benchmarks.peer_methods import INSTALLED, METHODS, PAST, RANDOM
from benchmarks.peer_report import (
    GROWN,
    MIN_SCALE,
    Cell,
    Regrets,
    bounds,
    interval,
    regrets,
    stacked,
)
from benchmarks.peers import FIELDS, N_RANDOM, identity
from benchmarks.runner import (
    RESULTS,
    format_page,
    make_parser,
    packed_file,
    read_rows,
    read_runs,
    run_all,
    write_runs,
)

N_SPLITS = 2
KNOWING = "knows the data set"
RETURNING = [method for method in METHODS if method in (INSTALLED, *PAST)]
AT = (1, 2, 3, 5, 10, 20, 30)
CLAIMS = [
    (INSTALLED, 1, RANDOM, 10),
    (INSTALLED, 5, RANDOM, 30),
    (GROWN, 1, RANDOM, 12),
    (GROWN, 5, RANDOM, 50),
]
PAGE = RESULTS / "peer_folds.md"
Scores = dict[Cell, dict[str, float]]
"""Cell -> configuration -> mean score on the other splits."""


def run(
    estimator: str,
    data: str,
    split: int,
    folder: Path,
    tried: Sequence[dict],
    known: Mapping[str, float],
) -> dict[str, Any]:
    """Return the scores of some configurations on another split into folds."""
    cell = load(estimator, data, folder)
    folds = StratifiedKFold(FOLDS.n_splits, shuffle=True, random_state=split)
    new = {identity(params): params for params in tried if identity(params) not in known}
    made = {name: evaluate(estimator, params, cell, folds) for name, params in new.items()}
    return {"scores": {**known, **made}}


def known_scores(file: Path) -> dict[tuple, dict[str, float]]:
    """Return the scores of the random configurations in the packed runs of an earlier report."""
    return {
        (row["estimator"], row["data"], row["split"]): dict(
            zip(random_names(row["estimator"]), row["scores"], strict=False)
        )
        for row in read_runs(file)
    }


def returned(row: Mapping[str, Any]) -> list[dict]:
    """Return the configuration that a search would return after each of AT trials."""
    scores = np.nan_to_num(np.array(row["scores"], dtype=float), nan=-np.inf)
    return [row["params"][int(scores[:k].argmax())] for k in AT]


def mean_scores(rows: Sequence[Mapping[str, Any]]) -> Scores:
    """Average over the splits; a failure counts as a score of 0."""
    found: dict[Cell, dict[str, list[float]]] = {}
    for row in rows:
        cell = found.setdefault((row["estimator"], row["data"]), {})
        for name, score in row["scores"].items():
            cell.setdefault(name, []).append(np.nan_to_num(score))
    return {
        cell: {name: float(np.mean(s)) for name, s in own.items()} for cell, own in found.items()
    }


def in_known_order(report: Sequence[Mapping[str, Any]], truth: Scores) -> list[dict]:
    """Return runs that try the random configurations best first by the other splits."""
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
    """Return the identities of the random configurations of an estimator."""
    return [identity(params) for params in space_of(estimator).sample(N_RANDOM, 12345)]


def worth(
    report: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]], truth: Scores
) -> Regrets:
    """Return the regret on the other splits of the configuration returned after each of AT trials.

    For random search the numbers of trials are 1 to 50.
    """
    found: Regrets = {}
    for row in report:
        cell = row["estimator"], row["data"]
        if row["method"] != RANDOM:
            continue
        random = np.array([truth[cell][name] for name in random_names(row["estimator"])])
        best = max(truth[cell].values())
        scale = best - np.median(random)
        if scale < MIN_SCALE:
            continue
        scores = np.nan_to_num(np.array(row["scores"], dtype=float), nan=-np.inf)
        found.setdefault(RANDOM, {})[cell] = (best - expected_worth(scores, random)) / scale
        for method in RETURNING:
            own = [r for r in runs if (r["estimator"], r["data"], r["method"]) == (*cell, method)]
            if not own:
                continue
            values = [[truth[cell][identity(params)] for params in returned(r)] for r in own]
            found.setdefault(method, {})[cell] = (best - np.mean(values, axis=0)) / scale
    return found


def expected_worth(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the mean truth of the best by score among k configurations, k = 1..50; -> (50,).

    >>> expected_worth(np.arange(60.0), np.arange(60.0))[:2].round(3).tolist()
    [29.5, 39.667]
    """
    n, order = len(scores), np.argsort(scores, kind="stable")
    # Which of several equal scores is returned is random.
    levels, level = np.unique(scores, return_inverse=True)
    shared = np.array([truth[level == i].mean() for i in range(len(levels))])[level][order]
    below, k = np.arange(n)[:, None], np.arange(1, 51)[None]
    ways = log_choose(below, k - 1) - log_choose(
        np.array(n), k
    )  # it is the best of k: the others are below
    return shared @ np.where(below >= k - 1, np.exp(ways), 0)


def log_choose(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the logarithm of the binomial coefficient."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1)


# -- report ------------------------------------------------------------------------------------


def table(found: Regrets, methods: Sequence[str], column: Mapping[str, Sequence[int]]) -> list[str]:
    """Return a table of mean regrets after AT trials; `column` holds their indices in a row."""
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
    """Return the table of claims, measured by the returned configurations."""
    lines = ["| statement | figures | difference | holds |", "|---|---|---|---|"]
    for method, k, other, n in CLAIMS:
        values, data = stacked(found, method)
        mine, theirs = values[:, AT.index(k)], stacked(found, other)[0][:, n - 1]
        low, high = bounds(mine - theirs, data)
        apart = (mine - theirs).mean()
        holds = "yes" if apart <= 0 else "no, within the noise" if low <= 0 else "no"
        lines.append(
            f"| {method}: trial {k} as good as {other}'s {n}th | {mine.mean():.3f}, "
            f"{theirs.mean():.3f} | {apart:+.3f} ({low:+.3f} to {high:+.3f}) | {holds} |"
        )
    return [*lines, ""]


def make_page(known: Regrets, found: Regrets) -> str:
    """Return the page, given regrets on the folds of the searches and on other folds."""
    returning = [method for method in RETURNING if method in found]
    plain = [k - 1 for k in AT]
    lines = [
        "# The searches and their peers on other folds",
        "",
        "Made by `OMP_NUM_THREADS=1 python -m benchmarks.peer_folds`.",
        "",
        "## How good a first trial can be",
        "",
        f"Targets and regret are those of [peers.md](peers.md), {len(known[RANDOM])} targets. "
        f"*{KNOWING}* tries its {N_RANDOM} random configurations in the order of their mean score "
        f"on {N_SPLITS} other splits of the same rows into folds.",
        "",
        *table(known, (methods := [RANDOM, KNOWING, GROWN]), dict.fromkeys(methods, plain)),
        "## Regret of the returned configurations",
        "",
        "After k trials a search would return its best configuration. The table shows its "
        f"normalized regret on the {N_SPLITS} other splits. 0 is the best of all configurations "
        f"evaluated on them. {len(found[RANDOM])} targets.",
        "",
        *table(
            found, [RANDOM, *returning], {RANDOM: plain} | dict.fromkeys(returning, range(len(AT)))
        ),
        *claims(found),
    ]
    notes = RESULTS / "peer_folds-notes.md"
    if notes.exists():
        lines += [notes.read_text().rstrip()]
    return format_page(lines)


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "jobs")
    options = parser.parse_args()
    folder, store = data_folder(options.data), options.work / "peer-folds.jsonl"
    report = list(read_runs(packed_file(RESULTS / "peers.md")))
    cells = [(row["estimator"], row["data"]) for row in report if row["method"] == RANDOM]
    done = read_rows(options.work / "peers-runs.jsonl", FIELDS)
    # Runs that were taken over from an earlier report have no configurations.
    runs = [
        row
        for key, row in done.items()
        if key[:2] in cells and key[2] in RETURNING and "params" in row
    ]
    tried: dict[Cell, dict[str, dict]] = {}
    for estimator, data in cells:
        own = tried.setdefault((estimator, data), {})
        for params in space_of(estimator).sample(N_RANDOM, 12345):
            own[identity(params)] = params
    for row in runs:
        tried[row["estimator"], row["data"]] |= {
            identity(params): params for params in returned(row)
        }
    keys = [(*cell, split) for split in range(1, N_SPLITS + 1) for cell in cells]
    fields = ("estimator", "data", "split")
    known = known_scores(packed_file(PAGE))
    splits = run_all(
        store,
        fields,
        keys,
        run,
        options.jobs,
        lambda key: (folder, list(tried[key[:2]].values()), known.get(key, {})),
    )
    truth = mean_scores(splits)
    text = make_page(regrets([*report, *in_known_order(report, truth)]), worth(report, runs, truth))
    PAGE.write_text(text)
    # The scores are in the order of the random configurations, then of the returned ones.
    rows = [{**row, "scores": [round(s, 6) for s in row["scores"].values()]} for row in splits]
    write_runs(rows, packed_file(PAGE))
    print(text)


if __name__ == "__main__":
    main()
