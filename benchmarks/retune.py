"""The weekly retune: a table grows by 5 % a week and is tuned again every week.

    OMP_NUM_THREADS=1 python -m benchmarks.retune --report docs/results/retune.md

Every week, a search with one archive runs on all rows so far. From the second week on, the archive
holds the searches of the earlier weeks, whose rows are all among the current ones. The first trial
is compared with the best score of the previous week, of a search of ten trials. Folds are
drawn anew every week, so that this score has noise: its standard error over the folds. It is also
the best of several, and so too high. Therefore the best setting of the previous week is scored on
the folds of the current one as well.

The second part runs nested cross-validation with several splitters and kinds of input, once with an
archive that holds a search on other rows of the same table and the searches of the other folds, and
once without an archive. Scores and chosen configurations must be equal to the last digit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
    cross_validate,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.data import data_folder, load_classification
from benchmarks.runner import (
    RESULTS,
    format_page,
    make_parser,
    markdown_table,
    packed_file,
    run_all,
    update_runs,
)
from sktransfer import Archive, TransferSearchCV

N_WEEKS, GROWTH = 10, 1.05
N_ROWS = 250  # in the first week
N_TRIALS, N_FOLDS = 10, 5
DATA = ("banana", "optdigits", "pima")
FIELDS = ("data", "estimator", "pretrained")
STORE, PAGE = "retune.jsonl", RESULTS / "retune.md"
COMMAND = "OMP_NUM_THREADS=1 python -m benchmarks.retune --report docs/results/retune.md"

PROBLEMS: dict[str, tuple[BaseEstimator, Mapping[str, Any]]] = {
    "SVC": (SVC(max_iter=5000), {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 1e1)}),
    "tree": (
        DecisionTreeClassifier(random_state=0),
        {
            "max_depth": randint(1, 21),
            "min_samples_leaf": randint(1, 61),
            "max_features": uniform(0.1, 0.9),
            "ccp_alpha": loguniform(1e-5, 1e-1),
        },
    ),
}


# -- weeks -----------------------------------------------------------------------------------------


def run_weeks(data: str, estimator: str, pretrained: bool, folder: Path) -> dict[str, Any]:
    """First and best score of each week, with the standard error of the best over the folds."""
    sizes = [round(N_ROWS * GROWTH**week) for week in range(N_WEEKS)]
    X, y = load_classification(data, folder, sizes[-1])
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    sizes = [round(size * len(y) / sizes[-1]) for size in sizes]  # smaller tables begin smaller
    tuned, space = PROBLEMS[estimator]
    weeks: list[dict[str, Any]] = []
    previous: dict[str, Any] = {}
    with TemporaryDirectory() as path, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive = Archive(path, starter=False)
        for week, size in enumerate(sizes):
            search = TransferSearchCV(
                tuned,
                space,
                n_iter=N_TRIALS,
                cv=StratifiedKFold(N_FOLDS, shuffle=True, random_state=week),
                scoring="balanced_accuracy",
                archive=archive,
                surrogate="auto" if pretrained else "task-prior",
                refit=False,
                random_state=week,
            ).fit(X[:size], y[:size])
            weeks.append(_read_week(search))
            if week:
                again = cross_val_score(
                    clone(tuned).set_params(**previous),
                    X[:size],
                    y[:size],
                    cv=search.cv,
                    scoring=search.scoring,
                )
                weeks[-1]["again"] = round(float(again.mean()), 5)
            previous = search.best_params_
    return {"sizes": sizes, "weeks": weeks}


def _read_week(search: TransferSearchCV) -> dict[str, Any]:
    found, best = search.cv_results_, search.best_index_
    folds = [found[f"split{i}_test_score"][best] for i in range(N_FOLDS)]
    used = [task for task in search.source_tasks_ if task["excluded"] is None]
    return {
        "first": round(float(found["mean_test_score"][0]), 5),
        "best": round(float(found["mean_test_score"].max()), 5),
        "error": round(float(np.std(folds, ddof=1) / np.sqrt(N_FOLDS)), 5),
        "contained": sum(task["overlap"] == "contained" for task in used),
    }


class Weeks(NamedTuple):
    """From the second week on: first trials beside the best of the week before."""

    first: np.ndarray
    previous_best: np.ndarray
    error: np.ndarray
    again: np.ndarray

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Weeks:
        pairs = [pair for row in rows for pair in zip(row["weeks"], row["weeks"][1:], strict=False)]
        quads = ((b["first"], a["best"], a["error"], b["again"]) for a, b in pairs)
        columns = zip(*quads, strict=True)
        return cls(*(np.array(column) for column in columns))


def write_weeks(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table with a row for each data set."""
    body = []
    for row in rows:
        weeks = Weeks.from_rows([row])
        apart = weeks.first - weeks.previous_best
        begin = row["weeks"][0]
        body.append(
            [row["estimator"], "yes" if row["pretrained"] else "no", row["data"]]
            + [f"{begin['first']:.3f}", f"{begin['best']:.3f}"]
            + [f"{apart.mean():+.3f}", f"{apart.min():+.3f}", f"{weeks.error.mean():.3f}"]
            + [f"{(apart >= -2 * weeks.error).sum()} of {len(apart)}"]
            + [f"{(weeks.first - weeks.again).mean():+.3f}"]
        )
    head = ["estimator", "pretrained", "data", "week 1: first", "best"]
    head += ["first - previous best", "worst week", "error", "within two errors", "same folds"]
    return markdown_table(head, body)


# -- nested cross-validation -----------------------------------------------------------------------


def _inputs() -> dict[str, Callable[[np.ndarray], Any]]:
    return {
        "array": np.asarray,
        "float32": lambda X: X.astype(np.float32),
        "list": lambda X: X.tolist(),
        "data frame": lambda X: pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]),
        "sparse": csr_matrix,
    }


SPLITTERS = {
    "KFold": KFold(3),
    "KFold, shuffled": KFold(3, shuffle=True, random_state=0),
    "StratifiedKFold": StratifiedKFold(3),
    "RepeatedStratifiedKFold": RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    "ShuffleSplit": ShuffleSplit(3, random_state=0),
    "TimeSeriesSplit": TimeSeriesSplit(3),
    "GroupKFold": GroupKFold(3),
    "StratifiedGroupKFold": StratifiedGroupKFold(3),
    "LeaveOneGroupOut": LeaveOneGroupOut(),
}


def compare_nested(splitter: str, kind: str, folder: Path) -> bool:
    """Whether nested cross-validation with an archive equals that without one."""
    X, y = load_classification("heart", folder, 150)
    groups, found = np.arange(len(y)) % 4, []
    data = _inputs()[kind](X)
    with TemporaryDirectory() as path, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for archive in (Archive(path, starter=False), None):
            search = TransferSearchCV(
                SVC(), PROBLEMS["SVC"][1], n_iter=4, cv=2, archive=archive, random_state=0
            )
            if archive is not None:  # a search on half of the table, as of another day
                search.fit(X[: len(y) // 2], y[: len(y) // 2])
            outer = cross_validate(
                search, data, y, groups=groups, cv=SPLITTERS[splitter], return_estimator=True
            )
            chosen = [each.cv_results_["params"] for each in outer["estimator"]]
            found.append((outer["test_score"].tolist(), chosen))
    return found[0] == found[1]


def write_nested(folder: Path) -> list[str]:
    """A table of splitters and kinds of input."""
    kinds = list(_inputs())
    body = []
    for splitter in SPLITTERS:
        # All kinds of input with one splitter; the array with all.
        chosen = kinds if splitter == "StratifiedKFold" else kinds[:1]
        equal = {kind: compare_nested(splitter, kind, folder) for kind in chosen}
        body.append([splitter, *(_verdict(equal.get(kind)) for kind in kinds)])
    return markdown_table(["outer splitter", *kinds], body)


def _verdict(equal: bool | None) -> str:
    return "" if equal is None else "equal" if equal else "**differs**"


# -- the page --------------------------------------------------------------------------------------


def write_page(page: Path, rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the page, and pack the single runs beside it."""
    weeks = Weeks.from_rows(rows)
    apart = weeks.first - weeks.previous_best
    single = [Weeks.from_rows([row]) for row in rows]
    halves = [
        1.96 * np.std([np.mean(d) for d in differences], ddof=1) / np.sqrt(len(rows))
        for differences in (
            [each.first - each.previous_best for each in single],
            [each.first - each.again for each in single],
        )
    ]
    later = [np.mean([week["first"] for week in row["weeks"][1:]]) for row in rows]
    begun = [row["weeks"][0]["first"] for row in rows]
    lines = [
        "# The weekly retune",
        "",
        *(__doc__ or "").split("\n\n", 2)[2].strip().split("\n\n")[:1],
        "",
        "```",
        COMMAND,
        "```",
        "",
        f"{N_WEEKS} weeks, {N_TRIALS} trials a week, {N_FOLDS} folds, balanced accuracy. All "
        "earlier weeks were used as contained past tasks: "
        f"{'yes' if _all_contained(rows) else '**no**'}.",
        "",
        f"From the second week on, the first trial is {apart.mean():+.4f} from the best of the "
        f"week before (95 % interval over tables and estimators ± {halves[0]:.4f}). The best score "
        f"of a week has a standard error of {weeks.error.mean():.3f} over its folds, and is the "
        f"best of {N_TRIALS}. On the same folds, the first trial is "
        f"{(weeks.first - weeks.again).mean():+.4f} ± {halves[1]:.4f} from the best setting of the "
        "week before. "
        f"{(apart >= -2 * weeks.error).sum()} of {len(apart)} first trials are not more than two "
        f"standard errors below. First trials score {np.mean(later):.3f}, in the first week "
        f"{np.mean(begun):.3f}. *Pretrained: no* is without the pretrained model, as estimators "
        "are tuned that it does not know. *Same folds* is the difference of the first trial to the "
        "best setting of the week before, both on the folds of the week.",
        "",
        *write_weeks(rows),
        "",
        "## Nested cross-validation",
        "",
        "Searches inside an outer cross-validation, with an archive that holds a search on half of "
        "the table and the searches of the other folds, beside the same without an archive. "
        "Compared are outer scores and all configurations tried, to the last digit.",
        "",
        *write_nested(folder),
    ]
    page.write_text(format_page(lines))
    update_runs(rows, packed_file(page), FIELDS)


def _all_contained(rows: Sequence[Mapping[str, Any]]) -> bool:
    return all(
        week["contained"] == number for row in rows for number, week in enumerate(row["weeks"])
    )


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "jobs", "report")
    options = parser.parse_args()
    folder = data_folder(options.data)
    keys = [
        (data, estimator, pretrained)
        for data in DATA
        for estimator in PROBLEMS
        for pretrained in (True, False)
    ]
    store = options.work / STORE
    rows = run_all(
        store, FIELDS, keys, run_weeks, options.jobs, lambda key: (folder,), packed_file(PAGE)
    )
    print("\n".join(write_weeks(rows)))
    if options.report:
        write_page(options.report, rows, folder)


if __name__ == "__main__":
    main()
