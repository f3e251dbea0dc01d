"""Past tasks ranked by the target's metric, where they recorded it, or by their own metric.

    OMP_NUM_THREADS=1 python -m benchmarks.other_metric [--jobs 2]

Each task of the starter archive is the target in turn. Its past tasks are up to 30 tasks of the
same estimator on data of other families. They optimized balanced accuracy or R² and recorded
further metrics. The target optimizes one of these metrics, and its candidates are the
configurations that were evaluated on it. A search is measured by the share of these configurations
that are better than its best after k trials.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

import numpy as np

from benchmarks.runner import (
    RESULTS,
    WORK,
    format_page,
    make_parser,
    packed_file,
    run_all,
    update_runs,
)
from benchmarks.starter_spaces import specs
from sktransfer import DatasetProfile, Task, TransferOptimizer
from sktransfer.archive import Starter, starter_folder
from sktransfer.model_selection._plan import parse_space
from sktransfer.space import Space

STORE, REPORT = WORK / "other_metric.jsonl", RESULTS / "other_metric.md"
ESTIMATORS = {
    "LogisticRegression": "classification",
    "SVC": "classification",
    "KNeighborsClassifier": "classification",
    "DecisionTreeClassifier": "classification",
    "SVR": "regression",
}
METRICS = {
    "classification": ("accuracy", "roc_auc", "neg_log_loss"),
    "regression": ("neg_mean_absolute_error",),
}
OPTIMIZED, TARGETS = "optimized metric", "target's metric"
N_TRIALS, N_PAST, AT = 5, 30, (1, 2, 3, 5)
FIELDS = ("estimator", "metric", "target", "ranked_by")


@lru_cache
def tasks_of(estimator: str) -> dict[str, Task]:
    """Return the starter tasks of an estimator by id, behind a scaler where that exists."""
    found = Starter(starter_folder()).tasks(estimator, True)
    return {task.id: task for task in found}


@lru_cache
def space_of(estimator: str) -> Space:
    """Return the parsed space of an estimator."""
    [spec] = [
        s for s in specs(ESTIMATORS[estimator]).values() if type(s.estimator).__name__ == estimator
    ]
    return parse_space([spec.space, *spec.further], spec.estimator)


def family(id: str) -> str:
    """Return the letters that a data set's name begins with: derived data sets share them."""
    name = id.split("-")[2]
    return re.match(r"[a-z]*", name)[0] or name


def measured(task: Task, metric: str) -> np.ndarray:
    """Return the metric of each trial, NaN where the fit failed."""
    return np.array([trial.metrics.get(metric, np.nan) for trial in task.trials], dtype=float)


def run(estimator: str, metric: str, target_id: str, ranked_by: str) -> dict:
    """Search on one target; return the share of better configurations after each trial."""
    tasks = tasks_of(estimator)
    target = tasks[target_id]
    others = [task for id, task in tasks.items() if family(id) != family(target_id)]
    chosen = np.random.default_rng(len(target_id)).permutation(len(others))[:N_PAST]
    optimizer = TransferOptimizer(
        space_of(estimator),
        [others[i] for i in np.sort(chosen)],
        profile=DatasetProfile.from_dict(target.profile),
        metric=metric if ranked_by == TARGETS else target.metrics[0],
        random_state=0,
    )
    pool = [
        {name.split("__")[-1]: v for name, v in trial.params.items()} for trial in target.trials
    ]
    scores, found = measured(target, metric), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(N_TRIALS):
            [params] = optimizer.ask(pool=pool)
            found.append(scores[pool.index(params)])
            optimizer.tell(params, found[-1])
    best = np.fmax.accumulate(np.array(found))
    known = scores[np.isfinite(scores)]
    return {"better": [1.0 if np.isnan(b) else float(np.mean(known > b)) for b in best]}


def keys() -> list[tuple]:
    """Return the keys of all targets with configurations of different quality."""
    found = []
    for estimator, kind in ESTIMATORS.items():
        for metric in METRICS[kind]:
            for id, task in tasks_of(estimator).items():
                values = measured(task, metric)
                if np.isfinite(values).sum() >= 20 and np.nanmax(values) > np.nanmedian(values):
                    found += [(estimator, metric, id, by) for by in (OPTIMIZED, TARGETS)]
    return found


def report(rows: list[dict]) -> list[str]:
    """Return the table of results."""
    columns = " | ".join(f"k = {k}" for k in AT)
    lines = [
        f"| estimator | metric | targets | past tasks ranked by | {columns} |",
        "|---|" + "---|" * (3 + len(AT)),
    ]
    for estimator, metric in dict.fromkeys((row["estimator"], row["metric"]) for row in rows):
        of = [row for row in rows if (row["estimator"], row["metric"]) == (estimator, metric)]
        better = {
            by: np.array([r["better"] for r in of if r["ranked_by"] == by])
            for by in (OPTIMIZED, TARGETS)
        }
        for by, values in better.items():
            cells = " | ".join(f"{values[:, k - 1].mean():.3f}" for k in AT)
            lines.append(f"| {estimator} | {metric} | {len(values)} | {by} | {cells} |")
        apart = better[TARGETS] - better[OPTIMIZED]
        half = 1.96 * apart.std(axis=0, ddof=1) / np.sqrt(len(apart))
        cells = " | ".join(f"{apart[:, k - 1].mean():+.3f} ± {half[k - 1]:.3f}" for k in AT)
        lines.append(f"| | | | difference | {cells} |")
    return lines


def main() -> None:
    parser = make_parser(__doc__, "jobs", "report")
    parser.set_defaults(jobs=1, report=REPORT)
    options = parser.parse_args()
    packed = packed_file(options.report)
    rows = run_all(STORE, FIELDS, keys(), run, options.jobs, packed=packed)
    update_runs(rows, packed, FIELDS)
    page = [
        "# Past tasks ranked by the target's metric",
        "",
        "Made by `OMP_NUM_THREADS=1 python -m benchmarks.other_metric`.",
        "",
        " ".join(__doc__.splitlines()[4:]).strip(),
        "",
        f"All runs are in [{packed.name}](runs/{packed.name}). Intervals are 95 % over the "
        "targets.",
        "",
    ]
    text = format_page([*page, *report(rows)])
    options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
