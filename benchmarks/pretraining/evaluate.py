"""Evaluate the estimators on the generated data sets.

    export OMP_NUM_THREADS=1
    python -m benchmarks.pretraining.evaluate --jobs 1 --n 2000 --estimators cheap
    python -m benchmarks.pretraining.evaluate --n 2000 --estimators forests networks --every 3
    python -m benchmarks.pretraining.evaluate --n 2000 --estimators profiles
    python -m benchmarks.pretraining.evaluate --pack

A run continues where the last one stopped, in the order of the numbers. Any prefix has both kinds
of tables and both tasks in fixed shares. Each configuration is scored in three folds. Missing cells
are imputed by the medians of the training rows, except for estimators that accept them.

A configuration whose first fit takes longer than the cap is marked as capped. Data sets run in
worker processes. A worker that exceeds `--minutes` of processor time is ended, and all
configurations that it was to evaluate are marked as capped. The numbers of rows, columns, trees and
iterations bound all fits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import resample

from benchmarks.data import data_folder
from benchmarks.pretraining.configurations import (
    N_CONFIGURATIONS,
    Configuration,
    Spec,
    draw_configurations,
    specs_of,
)
from benchmarks.pretraining.generator import CYCLE, DataSet, kind_of, make_data_set
from benchmarks.pretraining.profiles import make_profile_record
from benchmarks.pretraining.scores import METRICS, score_classifier, score_regressor
from benchmarks.pretraining.store import (
    CAPPED,
    FAILED,
    FOLDER,
    PENDING,
    Record,
    encode_scores,
    encode_seconds,
    encode_spread,
    numbers_done,
    pack,
    write_pending,
)
from benchmarks.pretraining.workers import run_in_workers

GROUPS = ("cheap", "medium", "forests", "networks", "slow", "profiles")
N_FOLDS = 3
MAX_SECONDS = 5.0  # of the processor, for one fit and its predictions
BOUNDED = {  # metrics in [0, 1]; the others are at most 0 (R2 is stored as R2 - 1)
    "classification": np.array([True, True, True, False]),
    "regression": np.array([False, False, False]),
}
Fold = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""X and y to train on, X and y to test on."""


@lru_cache(maxsize=2)
def variants_of(task: str) -> dict[str, tuple[str, Spec, bool]]:
    """Variant -> (name of the estimator, spec, whether the columns are scaled)."""
    found = {}
    for name, spec in specs_of(task).items():
        for scaled in (True, False) if spec.scaled else (False,):
            found[f"{name}-{'scaled' if scaled else 'bare'}"] = (name, spec, scaled)
    return found


def evaluate_data_set(data: DataSet, group: str, max_seconds: float = MAX_SECONDS) -> Record:
    """Evaluate all variants of a group on one data set."""
    record: Record = {}
    for variant, (name, spec, scaled) in variants_of(data.kind.task).items():
        if spec.group == group:
            folds = make_folds(data, spec, scaled)
            configurations = draw_configurations(name, spec, data.seed)
            found = [evaluate(spec, each, folds, data, max_seconds) for each in configurations]
            codes, spread, seconds = (np.array(part) for part in zip(*found, strict=True))
            record[f"{variant}.scores"] = codes.astype(np.uint16)  # (20, m)
            record[f"{variant}.spread"] = encode_spread(spread)
            record[f"{variant}.seconds"] = encode_seconds(seconds)
    return record


def capped_record(number: int, group: str) -> Record:
    """The record of a data set whose worker was killed."""
    task, record = kind_of(number).task, {}
    for variant, (_, spec, _) in variants_of(task).items():
        if spec.group == group:
            shape = (N_CONFIGURATIONS, len(METRICS[task]))
            record[f"{variant}.scores"] = np.full(shape, CAPPED, dtype=np.uint16)
            record[f"{variant}.spread"] = np.zeros(N_CONFIGURATIONS, dtype=np.uint8)
            record[f"{variant}.seconds"] = np.full(N_CONFIGURATIONS, 255, dtype=np.uint8)
    return record


def make_folds(data: DataSet, spec: Spec, scaled: bool) -> list[Fold]:
    """Split, impute and scale the data set once for all configurations of a variant."""
    X, y, is_classification = data.X, data.y, data.kind.task == "classification"
    if len(y) > spec.max_rows:
        strata = y if is_classification else None
        X, y = resample(
            X, y, replace=False, n_samples=spec.max_rows, stratify=strata, random_state=0
        )
    if is_classification and np.bincount(y).min() < N_FOLDS:  # a rare class of a cut data set
        kept = np.bincount(y)[y] >= N_FOLDS
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    splitter = (StratifiedKFold if is_classification else KFold)(
        N_FOLDS, shuffle=True, random_state=0
    )
    accepts_missing = type(spec.estimator).__name__.startswith("HistGradient")
    folds = []
    for train, test in splitter.split(X, y):
        A, B = X[train], X[test]
        if not accepts_missing and (np.isnan(A).any() or np.isnan(B).any()):
            medians = np.nan_to_num(np.nanmedian(A, axis=0))
            A, B = (np.where(np.isnan(part), medians, part) for part in (A, B))
        if scaled:
            mean, std = A.mean(axis=0), A.std(axis=0)
            std[std < 1e-12] = 1.0
            A, B = (A - mean) / std, (B - mean) / std
        folds.append((np.ascontiguousarray(A), y[train], np.ascontiguousarray(B), y[test]))
    return folds


def evaluate(
    spec: Spec, configuration: Configuration, folds: list[Fold], data: DataSet, max_seconds: float
) -> tuple[np.ndarray, float, float]:
    """Codes of the mean scores, spread of the first metric over the folds, and seconds of a fit."""
    task, scores, begun = data.kind.task, [], time.process_time()
    n_classes = int(folds[0][1].max()) + 1 if task == "classification" else 0
    mad, variance = np.mean(np.abs(data.y - np.median(data.y))), np.var(data.y)
    estimator = clone(spec.estimator).set_params(**configuration)
    for A, a, B, b in folds:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                estimator.fit(A, a)
                if task == "classification":
                    scores.append(score_classifier(estimator, B, b, n_classes))
                else:
                    scores.append(score_regressor(estimator, B, b, mad, variance))
        except (ValueError, FloatingPointError, ArithmeticError):
            return np.full(len(METRICS[task]), FAILED), 0.0, 0.0
        seconds = (time.process_time() - begun) / len(scores)
        if seconds > max_seconds and len(scores) < len(folds):
            return np.full(len(METRICS[task]), CAPPED), 0.0, seconds
    mean, spread = np.mean(scores, axis=0), np.std(scores, axis=0)[0]
    mean = mean - np.array([1.0, 0.0, 0.0]) if task == "regression" else mean
    return encode_scores(mean, BOUNDED[task]), float(spread), seconds


def make_record(number: int, group: str, folder: Path) -> Record:
    """The record of one data set; runs in a worker."""
    data = make_data_set(kind_of(number), number, folder)
    return make_profile_record(data) if group == "profiles" else evaluate_data_set(data, group)


def numbers_to_do(n: int, every: int, done: set[int]) -> list[int]:
    """Numbers below n that are missing, of every so many-th cycle of kinds."""
    return [i for i in range(n) if (i // len(CYCLE)) % every == 0 and i not in done]


def run(folder: Path, group: str, n: int, every: int, n_jobs: int, minutes: float) -> None:
    """Evaluate what is missing, and pack after each hundred data sets."""
    todo = numbers_to_do(n, every, numbers_done(FOLDER, PENDING, group))
    print(f"{group}: {len(todo)} data sets to do", flush=True)
    provenance = {
        "command": f"--estimators {group}",
        "sklearn": sklearn.__version__,
        "clock": "cpu",
    }
    begun = time.time()
    results = run_in_workers(make_record, [(i, group, folder) for i in todo], n_jobs, 60 * minutes)
    for count, ((number, *_), record) in enumerate(results, 1):
        if record is None and group == "profiles":
            continue  # stays to do
        write_pending(PENDING, group, number, record or capped_record(number, group))
        if count % 100 == 0:
            pack(FOLDER, PENDING, group, provenance)
        if count % 10 == 0:
            seconds = (time.time() - begun) / count
            print(f"{count}/{len(todo)} data sets, {seconds:.2f} s each", flush=True)
    pack(FOLDER, PENDING, group, provenance)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the real data sets")
    parser.add_argument("--estimators", nargs="+", choices=GROUPS, default=["cheap"])
    parser.add_argument("--n", type=int, default=2000, help="number of data sets")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th ten data sets")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=10, help="of the processor for one data set"
    )
    parser.add_argument("--pack", action="store_true", help="only move pending records to shards")
    options = parser.parse_args()
    for group in GROUPS if options.pack else options.estimators:
        if options.pack:
            print(group, pack(FOLDER, PENDING, group, {"sklearn": sklearn.__version__}))
        else:
            folder = data_folder(options.data)
            run(folder, group, options.n, options.every, options.jobs, options.minutes)


if __name__ == "__main__":
    main()
