"""Tables of evaluations that the transfer benchmarks share.

    OMP_NUM_THREADS=1 python -m benchmarks.evaluations

Transfer needs many past searches, and repeating them in every benchmark would cost more than the
benchmark itself. So each cell, a data set and an estimator, is evaluated once. N_SHARED
configurations are the same for all data sets, so that data sets can be compared point by point.
N_OWN configurations are drawn for each data set, so that no method can rely on having seen the
same points elsewhere. A score is the balanced accuracy in three-fold cross-validation.

Each finished cell is a line of `evaluations.jsonl` in the work folder, and an interrupted run
resumes there. Remove the file when ESTIMATORS or the numbers below change: it is not checked.
"""

from __future__ import annotations

import warnings
import zlib
from pathlib import Path

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.data import data_folder, load_classification
from benchmarks.runner import WORK, make_parser, read_rows, run_all
from sktransfer import Space

ESTIMATORS = {
    "svc": (
        make_pipeline(StandardScaler(), SVC(max_iter=20_000)),
        {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
    ),
    "forest": (
        RandomForestClassifier(n_estimators=50, random_state=0),
        {
            "max_depth": randint(1, 21),
            "min_samples_leaf": [1, 2, 3, 5, 8, 12, 20, 30, 50],
            "max_features": uniform(0.05, 0.95),
            "criterion": ["gini", "entropy"],
            "max_samples": uniform(0.2, 0.79),
        },
    ),
}
N_SHARED, N_OWN, MAX_ROWS = 60, 40, 1000
STORE, FIELDS = "evaluations.jsonl", ("estimator", "data")
# Data sets derived from one base set share rows and must not be split between training and test.
VARIANTS = [
    "abalone",
    "ecoli",
    "kddcup",
    "kr-vs-k",
    "new-thyroid",
    "poker",
    "shuttle",
    "winequality",
]
CREDIT = ["australian", "crx"]  # two encodings of one data set


def data_sets(folder: Path) -> list[str]:
    """Return the names of the classification data sets."""
    return sorted(
        path.name.removesuffix(".csv.gz") for path in (folder / "classification").glob("*.csv.gz")
    )


def families(folder: Path | None = None) -> dict[str, str]:
    """Map each data set to its family; data sets of a family belong to the same split."""

    def family(name: str) -> str:
        if name in CREDIT:
            return "credit"
        return next((base for base in VARIANTS if name.startswith(base)), name)

    return {name: family(name) for name in data_sets(folder or data_folder())}


def configurations(estimator_name: str, name: str) -> list[dict]:
    """Return the configurations of a cell: the shared ones, then its own."""
    estimator, space = ESTIMATORS[estimator_name]
    parsed = Space.parse(space, estimator)
    own = np.random.default_rng(zlib.crc32(name.encode()))  # hash() is not reproducible
    return parsed.sample(N_SHARED, np.random.default_rng(0)) + parsed.sample(N_OWN, own)


def evaluate(estimator_name: str, name: str, folder: Path) -> dict:
    """Return the record of a cell: mean score and mean fit time of each configuration."""
    X, y = load_classification(name, folder, MAX_ROWS)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    params, scores, seconds = configurations(estimator_name, name), [], []
    for configuration in params:
        estimator = clone(ESTIMATORS[estimator_name][0]).set_params(**configuration)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # convergence warnings of SVC: max_iter is intended
            result = cross_validate(estimator, X, y, cv=cv, scoring="balanced_accuracy")
        scores.append(float(result["test_score"].mean()))
        seconds.append(float(result["fit_time"].mean()))
    return {"params": params, "scores": scores, "seconds": seconds}


def load(work: Path = WORK) -> dict[tuple[str, str], dict]:
    """Map (estimator, data set) to the record of each finished cell."""
    return read_rows(work / STORE, FIELDS)


def run(folder: Path, work: Path, n_jobs: int, estimators: list[str]) -> None:
    """Evaluate the missing cells, small data sets first."""
    size = {name: load_classification(name, folder, MAX_ROWS)[0].size for name in data_sets(folder)}
    names = sorted(size, key=size.__getitem__)
    cells = [(estimator, name) for estimator in estimators for name in names]
    run_all(work / STORE, FIELDS, cells, evaluate, n_jobs, lambda cell: (folder,))


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "jobs")
    parser.add_argument(
        "--estimators", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS)
    )
    options = parser.parse_args()
    run(data_folder(options.data), options.work, options.jobs, options.estimators)


if __name__ == "__main__":
    main()
