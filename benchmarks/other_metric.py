"""Whether past tasks should be judged by today's metric, where they recorded it, or by what they tuned.

    OMP_NUM_THREADS=1 python -m benchmarks.other_metric [--jobs 2] [--report docs/results/other_metric.md]

Every task of the starter archive is the target in turn, and up to 30 tasks of the same estimator on data of
other families are its past. They tuned balanced accuracy or R² and recorded other metrics beside it. Today's
is one of these, and the candidates are the configurations that were evaluated on the target. How good a
search is after k trials: the share of these configurations that are better than its best.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.runner import run_all
from benchmarks.starter_spaces import specs
from sktransfer import DatasetProfile, Task, TransferOptimizer
from sktransfer.archive import Starter, starter_folder
from sktransfer.model_selection._run_parts import parse_space
from sktransfer.space import Space

WORK = Path(__file__).parent / ".work" / "other_metric.jsonl"
REPORT = Path("docs/results/other_metric.md")
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
TUNED, TODAYS = "what was tuned", "today's metric"
N_TRIALS, N_PAST, AT = 5, 30, (1, 2, 3, 5)
FIELDS = ("estimator", "metric", "target", "judged_by")


@lru_cache
def tasks_of(estimator: str) -> dict[str, Task]:
    """The starter's tasks by id: behind a scaler where there are such, with the estimator's own names."""
    found = Starter(starter_folder()).tasks(estimator, True)
    return {task.id: task for task in found}


@lru_cache
def space_of(estimator: str) -> Space:
    [spec] = [
        s for s in specs(ESTIMATORS[estimator]).values() if type(s.estimator).__name__ == estimator
    ]
    return parse_space([spec.space, *spec.further], spec.estimator)


def family(id: str) -> str:
    """Data sets that are cut from one another share the letters that their name begins with."""
    name = id.split("-")[2]
    return re.match(r"[a-z]*", name)[0] or name


def measured(task: Task, metric: str) -> np.ndarray:
    """The metric of each trial, NaN where the fit failed."""
    return np.array([trial.metrics.get(metric, np.nan) for trial in task.trials], dtype=float)


def run(estimator: str, metric: str, target_id: str, judged_by: str) -> dict:
    """A search on one target, and after each trial the share of configurations that are better."""
    tasks = tasks_of(estimator)
    target = tasks[target_id]
    others = [task for id, task in tasks.items() if family(id) != family(target_id)]
    chosen = np.random.default_rng(len(target_id)).permutation(len(others))[:N_PAST]
    optimizer = TransferOptimizer(
        space_of(estimator),
        [others[i] for i in np.sort(chosen)],
        profile=DatasetProfile.from_dict(target.profile),
        metric=metric if judged_by == TODAYS else target.metrics[0],
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
    found = []
    for estimator, kind in ESTIMATORS.items():
        for metric in METRICS[kind]:
            for id, task in tasks_of(estimator).items():
                values = measured(task, metric)
                if np.isfinite(values).sum() >= 20 and np.nanmax(values) > np.nanmedian(values):
                    found += [(estimator, metric, id, by) for by in (TUNED, TODAYS)]
    return found


def report(rows: list[dict]) -> list[str]:
    columns = " | ".join(f"k = {k}" for k in AT)
    lines = [
        f"| estimator | metric | targets | past judged by | {columns} |",
        "|---|" + "---|" * (3 + len(AT)),
    ]
    for estimator, metric in dict.fromkeys((row["estimator"], row["metric"]) for row in rows):
        of = [row for row in rows if (row["estimator"], row["metric"]) == (estimator, metric)]
        better = {
            by: np.array([r["better"] for r in of if r["judged_by"] == by])
            for by in (TUNED, TODAYS)
        }
        for by, values in better.items():
            cells = " | ".join(f"{values[:, k - 1].mean():.3f}" for k in AT)
            lines.append(f"| {estimator} | {metric} | {len(values)} | {by} | {cells} |")
        apart = better[TODAYS] - better[TUNED]
        half = 1.96 * apart.std(axis=0, ddof=1) / np.sqrt(len(apart))
        cells = " | ".join(f"{apart[:, k - 1].mean():+.3f} ± {half[k - 1]:.3f}" for k in AT)
        lines.append(f"| | | | difference | {cells} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", type=Path, default=REPORT)
    options = parser.parse_args()
    rows = run_all(WORK, FIELDS, keys(), run, options.jobs)
    every = options.report.with_suffix(".jsonl")
    every.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = [
        "# Past tasks judged by today's metric",
        "",
        "Made by `OMP_NUM_THREADS=1 python -m benchmarks.other_metric`.",
        "",
        " ".join(__doc__.splitlines()[4:]).strip(),
        f"Every run is in [{every.name}]({every.name}); intervals of 95 % over the targets.",
        "",
    ]
    options.report.write_text("\n".join([*page, *report(rows), ""]))
    print(options.report.read_text())


if __name__ == "__main__":
    main()
