"""Tables of evaluations that the transfer benchmarks draw on.

    OMP_NUM_THREADS=1 python -m benchmarks.evaluations

Transfer needs many past searches, and paying for them anew in every benchmark would cost more than the
benchmark. So each cell, a data set and an estimator, is evaluated once: N_SHARED configurations that are
the same for all data sets, so that data sets can be compared point by point, and N_OWN of its own, so that
nothing can rest on having seen exactly the same points elsewhere. A score is the balanced accuracy in
three-fold cross-validation.

Writes `evaluations.jsonl` in the work folder, one line per cell as soon as it is done; an interrupted run
goes on from there. Remove the file when ESTIMATORS or the numbers below change: it is not checked.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import loguniform, randint, uniform
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.data import data_folder, load_classification
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
WORK = Path(__file__).parent / ".work"
# Sets made from one base set partly share rows: what is learnt on one must not be tested on another.
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
CREDIT = ["australian", "crx"]  # two codings of one data set


def data_sets(folder: Path) -> list[str]:
    """Names of the classification sets."""
    return sorted(
        path.name.removesuffix(".csv.gz") for path in (folder / "classification").glob("*.csv.gz")
    )


def families(folder: Path | None = None) -> dict[str, str]:
    """Data set -> family; sets of one family belong on the same side of a split."""

    def family(name: str) -> str:
        if name in CREDIT:
            return "credit"
        return next((base for base in VARIANTS if name.startswith(base)), name)

    return {name: family(name) for name in data_sets(folder or data_folder())}


def configurations(estimator_name: str, name: str) -> list[dict]:
    """The configurations of a cell: first the shared ones, then its own."""
    estimator, space = ESTIMATORS[estimator_name]
    parsed = Space.parse(space, estimator)
    own = np.random.default_rng(zlib.crc32(name.encode()))  # hash() differs from process to process
    return parsed.sample(N_SHARED, np.random.default_rng(0)) + parsed.sample(N_OWN, own)


def evaluate(folder: Path, estimator_name: str, name: str) -> dict:
    """The record of a cell: for each configuration mean score and mean seconds of a fit, over the folds."""
    X, y = load_classification(name, folder, MAX_ROWS)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    params, scores, seconds = configurations(estimator_name, name), [], []
    for configuration in params:
        estimator = clone(ESTIMATORS[estimator_name][0]).set_params(**configuration)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SVC stopped at max_iter: part of what is measured
            result = cross_validate(estimator, X, y, cv=cv, scoring="balanced_accuracy")
        scores.append(float(result["test_score"].mean()))
        seconds.append(float(result["fit_time"].mean()))
    return {
        "estimator": estimator_name,
        "data": name,
        "params": params,
        "scores": scores,
        "seconds": seconds,
    }


def load(work: Path = WORK) -> dict[tuple[str, str], dict]:
    """(estimator, data set) -> record, of the cells that are done."""
    store, records = work / "evaluations.jsonl", {}
    for line in store.read_text().splitlines() if store.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue  # cut short by an interruption: not done
        records[record["estimator"], record["data"]] = record
    return records


def run(folder: Path, work: Path, n_jobs: int, estimators: list[str]) -> None:
    """Evaluate the cells that are not done yet, small data sets first, so that there is soon some use."""
    size = {name: load_classification(name, folder, MAX_ROWS)[0].size for name in data_sets(folder)}
    done = load(work)
    cells = [
        (e, name)
        for e in ESTIMATORS
        if e in estimators
        for name in sorted(size, key=size.__getitem__)
    ]
    todo = [cell for cell in cells if cell not in done]
    print(f"{len(cells) - len(todo)} of {len(cells)} cells are done", flush=True)
    work.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    records = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(evaluate)(folder, *cell) for cell in todo
    )
    with (work / "evaluations.jsonl").open("a") as file:
        if file.tell():
            file.write("\n")  # the last line may have been cut short; an empty one is skipped
        for number, record in enumerate(records, 1):
            file.write(json.dumps(record) + "\n")
            file.flush()
            low, high = np.nanmin(record["scores"]), np.nanmax(record["scores"])
            print(
                f"{number}/{len(todo)} {record['estimator']} {record['data']}: {low:.3f} to {high:.3f}, "
                f"{time.time() - begun:.0f} s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of the results")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--estimators", nargs="+", choices=list(ESTIMATORS), default=list(ESTIMATORS)
    )
    options = parser.parse_args()
    run(data_folder(options.data), options.work, options.jobs, options.estimators)


if __name__ == "__main__":
    main()
