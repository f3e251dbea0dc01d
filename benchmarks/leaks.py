"""Which loops around a search are recognized, so that no fold learns from another.

Each loop runs a search in every fold, with an empty archive at its beginning. It is caught if no
search uses the record of another fold. Then tables are rescaled in each fold, and it is counted how
often they are recognized. Writes docs/results/leaks.md.

    python -m benchmarks.leaks [--report FILE] [--only hand-written scikit-learn rescaled]
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.stats import loguniform
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.runner import make_parser, write_section
from sktransfer import TransferSearchCV
from sktransfer.dataset import DatasetProfile
from sktransfer.dataset._fingerprint import fingerprint_table
from sktransfer.dataset._patterns import fingerprint_patterns
from sktransfer.dataset._table import read_table

REPORT = Path(__file__).parents[1] / "docs" / "results" / "leaks.md"
N_ROWS = 200
SPACE = {"min_impurity_decrease": loguniform(1e-6, 1e-1)}
X, Y = make_classification(N_ROWS, 8, random_state=0)
X_REGRESSION, Y_REGRESSION = make_regression(N_ROWS, 8, noise=1.0, random_state=0)
GROUPS = np.arange(N_ROWS) // 10
Loop = Callable[[Any], None]


class WatchedSearch(TransferSearchCV):
    """A search that notes which past tasks each of its fits used."""

    used: ClassVar[list[list[str]]] = []

    def fit(self, X: Any, y: Any = None, **params: Any) -> WatchedSearch:
        super().fit(X, y, **params)
        tasks = [task for task in self.source_tasks_ if task["excluded"] is None]
        WatchedSearch.used.append([task["overlap"] for task in tasks])
        return self


def make_search(archive: Path, is_regression: bool = False) -> WatchedSearch:
    tree = DecisionTreeRegressor if is_regression else DecisionTreeClassifier
    return WatchedSearch(
        tree(random_state=0),
        SPACE,
        n_iter=1,
        cv=2,
        surrogate="warm-start",
        archive=archive,
        random_state=0,
    )


# -- hand-written loops ----------------------------------------------------------------------------

SPLITTERS: dict[str, Any] = {
    "KFold(5)": KFold(5),
    "KFold(5, shuffle=True)": KFold(5, shuffle=True, random_state=0),
    "KFold(10, shuffle=True)": KFold(10, shuffle=True, random_state=0),
    "KFold(3)": KFold(3),
    "KFold(3, shuffle=True)": KFold(3, shuffle=True, random_state=0),
    "StratifiedKFold(5)": StratifiedKFold(5),
    "GroupKFold(5)": GroupKFold(5),
    "ShuffleSplit(3)": ShuffleSplit(3, random_state=0),
    "KFold(2)": KFold(2),
    "TimeSeriesSplit(3)": TimeSeriesSplit(3),
}
FIVE = "KFold(5, shuffle=True)"


def no_transform(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    return X[train]


def fitted(transformer: Any, X: np.ndarray, train: np.ndarray) -> np.ndarray:
    return transformer.fit_transform(X[train])


def in_single_precision(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Scaled, and in float32 in every other fold."""
    scaled = StandardScaler().fit_transform(X[train])
    return scaled.astype(np.float32) if train[0] % 2 or len(train) % 2 else scaled


def without_column(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    return np.delete(StandardScaler().fit_transform(X[train]), train[-1] % X.shape[1], axis=1)


def with_column(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    scaled = StandardScaler().fit_transform(X[train])
    return np.column_stack([scaled, scaled[:, 0] * scaled[:, 1]])


TRANSFORMS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "MinMaxScaler": partial(fitted, MinMaxScaler()),
    "RobustScaler": partial(fitted, RobustScaler()),
    "MaxAbsScaler": partial(fitted, MaxAbsScaler()),
    "StandardScaler, float32 in some folds": in_single_precision,
    "StandardScaler, another column removed in each fold": without_column,
    "StandardScaler, a column added": with_column,
    "PCA": partial(fitted, PCA()),
    "PowerTransformer": partial(fitted, PowerTransformer()),
    "QuantileTransformer": partial(fitted, QuantileTransformer(n_quantiles=50)),
    "KBinsDiscretizer": partial(fitted, KBinsDiscretizer(encode="ordinal")),
}


def loop_by_hand(
    splitter: Any,
    transform: Callable[[np.ndarray, np.ndarray], np.ndarray],
    archive: Path,
    is_regression: bool = False,
) -> None:
    data, y = (X_REGRESSION, Y_REGRESSION) if is_regression else (X, Y)
    for train, _ in splitter.split(data, y, GROUPS):
        make_search(archive, is_regression).fit(transform(data, train), y[train])


def hand_written() -> Iterator[tuple[str, Loop]]:
    scaled = partial(fitted, StandardScaler())
    for name, splitter in SPLITTERS.items():
        yield f"{name}", partial(loop_by_hand, splitter, no_transform)
    for name, splitter in list(SPLITTERS.items())[1:6]:
        yield f"{name}, StandardScaler in each fold", partial(loop_by_hand, splitter, scaled)
    for name, transform in TRANSFORMS.items():
        yield f"{FIVE}, {name}", partial(loop_by_hand, SPLITTERS[FIVE], transform)
    for name in ("StandardScaler", "PCA", "QuantileTransformer"):
        transform = {"StandardScaler": scaled, **TRANSFORMS}[name]
        loop = partial(loop_by_hand, SPLITTERS[FIVE], transform, is_regression=True)
        yield f"{FIVE}, {name}, regression", loop


# -- loops of scikit-learn -------------------------------------------------------------------------

FUNCTIONS = {
    "cross_val_score": cross_val_score,
    "cross_validate": cross_validate,
    "cross_val_predict": cross_val_predict,
}
SKLEARN_SPLITTERS = {
    "KFold(5)": KFold(5),
    "KFold(2)": KFold(2),
    "StratifiedKFold(3)": StratifiedKFold(3),
    "ShuffleSplit(3)": ShuffleSplit(3, random_state=0),
    "RepeatedKFold(2, 2)": RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
    "TimeSeriesSplit(3)": TimeSeriesSplit(3),
}
BEFORE = {"": None, ", behind a StandardScaler": StandardScaler(), ", behind a PCA": PCA()}


def call_sklearn(function: Callable, cv: Any, before: Any, archive: Path) -> None:
    search = make_search(archive)
    function(search if before is None else make_pipeline(before, search), X, Y, cv=cv)


def fit_around(make: Callable[[Any], Any], archive: Path) -> None:
    make(make_search(archive)).fit(X, Y)


def of_sklearn() -> Iterator[tuple[str, Loop]]:
    for name, function in FUNCTIONS.items():
        for before, step in BEFORE.items():
            for splitter, cv in SKLEARN_SPLITTERS.items():
                is_partition = splitter not in (
                    "ShuffleSplit(3)",
                    "RepeatedKFold(2, 2)",
                    "TimeSeriesSplit(3)",
                )
                if is_partition or name != "cross_val_predict":
                    loop = partial(call_sklearn, function, cv, step)
                    yield f"{name}, {splitter}{before}", loop
    around = {
        "GridSearchCV": lambda search: GridSearchCV(search, {"n_iter": [1, 2]}, cv=3),
        "CalibratedClassifierCV": lambda search: CalibratedClassifierCV(search, cv=3),
        "StackingClassifier": lambda search: StackingClassifier([("search", search)], cv=3),
    }
    for name, make in around.items():
        yield name, partial(fit_around, make)


# -- the report ------------------------------------------------------------------------------------


def judge(loop: Loop) -> str:
    """Run a loop and say whether it was caught."""
    WatchedSearch.used = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop(Path(folder))
    used = [overlap for fit in WatchedSearch.used for overlap in fit]
    if not used:
        return "caught"
    return "honest" if set(used) == {"contained"} else "**not caught**"


# -- how often rescaled rows are recognized --------------------------------------------------------

SEEDS, N_UNRELATED = range(1000, 1020), 16  # other seeds than those of the development
TABLES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "eight columns of numbers": lambda rng, n: rng.normal(size=(n, 8)),
    "two columns of numbers": lambda rng, n: rng.normal(size=(n, 2)),
    "one column of numbers, one of four values": lambda rng, n: np.column_stack(
        [rng.normal(size=n), rng.integers(0, 4, n)]
    ),
    "eight columns of 30 integers": lambda rng, n: rng.integers(0, 30, size=(n, 8)),
    "four columns, one decimal": lambda rng, n: rng.normal(size=(n, 4)).round(1),
    "two columns of 30 integers": lambda rng, n: rng.integers(0, 30, size=(n, 2)),
}


def describe_rows(X: np.ndarray) -> DatasetProfile:
    table = read_table(X.astype(float))
    parts = fingerprint_table(table) | fingerprint_patterns(table, None)
    return DatasetProfile("classification", len(X), X.shape[1], **parts)


def count_missed(draw: Callable, n_rows: int, n_folds: int) -> str:
    """Return how many pairs of shuffled folds, each scaled on its own, are not recognized."""
    n = missed = 0
    for seed in SEEDS:
        X = draw(np.random.default_rng(seed), n_rows)
        folds = KFold(n_folds, shuffle=True, random_state=seed).split(X)
        found = [describe_rows(StandardScaler().fit_transform(X[train])) for train, _ in folds]
        for one, other in combinations(found, 2):
            n, missed = n + 1, missed + (one.overlap(other) < 0.01)
    return f"{missed} of {n}"


def count_false(draw: Callable, n_rows: int) -> str:
    """Return how many pairs of unrelated tables of one kind share patterns."""
    rng = np.random.default_rng(SEEDS[0])
    found = [describe_rows(draw(rng, n_rows + k)) for k in range(N_UNRELATED)]
    pairs = list(combinations(found, 2))
    return f"{sum(one._shares_patterns(other) for one, other in pairs)} of {len(pairs)}"


def describe_rates() -> list[str]:
    lines = [
        "A scaler is fitted in each of three or five shuffled folds. *Missed*: pairs of folds that "
        "are not recognized as parts of one table. *False*: pairs of unrelated tables of one kind, "
        f"drawn at random, whose patterns agree. {len(SEEDS)} tables of each kind and size. The "
        "thresholds were set on other tables of the same kinds.",
        "",
    ]
    sizes = [(n, k) for n in (60, 100, 150, 500) for k in (3, 5)]
    lines += ["| table | " + " | ".join(f"{n} rows, {k} folds" for n, k in sizes) + " | false |"]
    lines += ["|---|" + "---:|" * (len(sizes) + 1)]
    for name, draw in TABLES.items():
        cells = [count_missed(draw, *size) for size in sizes] + [count_false(draw, 150)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def describe_loops(loops: Iterator[tuple[str, Loop]]) -> list[str]:
    found = [(name, judge(loop)) for name, loop in loops]
    n_caught = sum(answer != "**not caught**" for _, answer in found)
    lines = [f"{n_caught} of {len(found)} are caught or honest.", "", "| loop | |", "|---|---|"]
    return lines + [f"| {name} | {answer} |" for name, answer in found]


PARTS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "hand-written": ("## Hand-written loops", lambda: describe_loops(hand_written())),
    "scikit-learn": ("## Loops of scikit-learn", lambda: describe_loops(of_sklearn())),
    "rescaled": ("## Tables that are rescaled in each fold", describe_rates),
}


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    report = options.report or REPORT
    write_section(
        report,
        "# Loops around a search",
        [
            "Made by `python -m benchmarks.leaks`. Each loop runs a search in every fold, with an "
            "empty archive at its beginning. It is caught if no search uses the record of another "
            "fold. *Honest* means that a fold uses an earlier one all of whose rows are among its "
            "training rows, as in a TimeSeriesSplit. For the loops that are not caught, pass "
            "`archive=None`, or use `cross_validate` with a pipeline.",
        ],
    )
    for name in options.only:
        heading, describe = PARTS[name]
        write_section(report, heading, describe())


if __name__ == "__main__":
    main()
