"""The first trial on a new data set: which of 100 known configurations, given past searches?

    OMP_NUM_THREADS=1 python -m benchmarks.first_trial

Needs the tables of `benchmarks.evaluations`. A target is a data set and an estimator. Its past
tasks are the data sets of other families with N_TRIALS trials each: their own configurations and
a few of the shared ones. The target has no trials, and each method picks one of its 100
configurations. Regret is normalized: 0 is the best of the 100, 1 their median. A random part of
the past tasks is left out, N_REPETITIONS times, and the regrets are averaged.

Surrogates, encoders and priors were chosen on the families of the split "development". The report
uses the other families.

Runs are stored in `first_trial.jsonl` in the work folder and packed beside the report. Remove
both files when the surrogates or the tables change: they are not checked.
"""

from __future__ import annotations

import time
import zlib
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import runner
from benchmarks.data import data_folder, load_classification
from benchmarks.evaluations import ESTIMATORS, MAX_ROWS, N_OWN, N_SHARED, families, load
from benchmarks.runner import RESULTS, format_page, make_parser, packed_file, update_runs
from sktransfer import Space, Task, TransferOptimizer, profile
from sktransfer.utils._scores import clip_low_outliers, standardize

BASE = "dist-gp"  # the method that the others are compared with
SURROGATES = [BASE, "manual-gp", "dist-blr", "manual-blr", "warm-start"]
METHODS = [*SURROGATES, "best on average", "random"]
N_TRIALS, N_REPETITIONS, KEPT = 50, 3, 0.75
FIELDS = ("split", "estimator", "target", "repetition", "method")


def split_families(family: dict[str, str]) -> dict[str, set[str]]:
    """Map each split to its families: one half for choices, the other for the report."""
    order = np.random.default_rng(123).permutation(sorted(set(family.values())))
    half = len(order) // 2
    return {"development": set(order[:half]), "report": set(order[half:])}


def seed_of(name: str) -> int:
    """Return a reproducible seed; hash() differs between processes."""
    return zlib.crc32(name.encode())


def space_of(estimator_name: str) -> Space:
    """Return the parsed space of an estimator."""
    estimator, space = ESTIMATORS[estimator_name]
    return Space.parse(space, estimator)


def past_task(record: dict, data_profile) -> Task:
    """Return a past search: a data set's own configurations and a few of the shared ones."""
    shared = np.random.default_rng(seed_of(record["data"])).choice(
        N_SHARED, N_TRIALS - N_OWN, replace=False
    )
    trials = [
        (record["params"][i], record["scores"][i])
        for i in [*sorted(shared), *range(N_SHARED, N_SHARED + N_OWN)]
    ]
    return Task.from_trials(space_of(record["estimator"]), trials, data_profile, id=record["data"])


def source_names(target: str, repetition: int, family: dict[str, str]) -> list[str]:
    """Return the data sets that a target can learn from in one repetition."""
    others = sorted(name for name in family if family[name] != family[target])
    rng = np.random.default_rng([repetition, seed_of(target)])
    return sorted(rng.choice(others, round(KEPT * len(others)), replace=False).tolist())


def best_on_average(scores: list[list[float]]) -> int:
    """Return the index of the shared configuration with the best mean score; (tasks, N_SHARED)."""
    return int(
        np.mean(
            [standardize(clip_low_outliers(np.array(row)))[0] for row in scores], axis=0
        ).argmax()
    )


def regrets(scores: list[float]) -> np.ndarray | None:
    """Return the normalized regret of each configuration, or None if the median is the best."""
    z = np.array(scores, dtype=float)
    z = np.where(np.isfinite(z), z, np.nanmin(z))  # a failure counts as the worst score
    scale = z.max() - np.median(z)
    return (z.max() - z) / scale if scale > 1e-9 else None


def run(
    split: str,
    estimator: str,
    target: str,
    repetition: int,
    method: str,
    record: dict,
    data_profile,
    past: list[tuple[Task, dict]],
) -> dict:
    """Pick one configuration; `past` holds tasks and the complete records behind them."""
    regret, params = regrets(record["scores"]), record["params"]
    assert regret is not None
    begun, pick = time.perf_counter(), None
    if method == "best on average":
        pick = best_on_average([whole["scores"][:N_SHARED] for _, whole in past])
    elif method != "random":
        tasks = [task for task, _ in past]
        optimizer = TransferOptimizer(
            space_of(estimator), tasks, profile=data_profile, surrogate=method, random_state=0
        )
        pick = params.index(optimizer.ask(1, pool=params)[0])
    found = regret.mean() if pick is None else regret[pick]  # random search: the expectation
    seconds = round(time.perf_counter() - begun, 3)
    return {"pick": pick, "regret": float(found), "seconds": seconds}


def run_all(
    folder: Path,
    work: Path,
    keys: list[runner.Key],
    family: dict[str, str],
    n_jobs: int,
    packed: Path | None,
) -> list[dict]:
    """Return all runs; the missing ones are made."""
    records = load(work)

    @cache
    def profile_of(name: str):
        return profile(*load_classification(name, folder, MAX_ROWS), keep="sketch")

    @cache
    def task_of(estimator: str, name: str) -> Task:
        return past_task(records[estimator, name], profile_of(name))

    def arguments(key: runner.Key) -> tuple:
        _, estimator, target, repetition, _ = key
        names = source_names(target, repetition, family)
        past = [(task_of(estimator, name), records[estimator, name]) for name in names]
        return records[estimator, target], profile_of(target), past

    return runner.run_all(work / "first_trial.jsonl", FIELDS, keys, run, n_jobs, arguments, packed)


def interval(values: np.ndarray) -> str:
    """Return the mean with its 95 % interval."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.3f} ± {1.96 * error:.3f}"


def averages(rows: list[dict], methods: list[str], unit) -> dict[str, dict[str, float]]:
    """Map unit -> method -> mean regret of its rows; `unit` returns the unit of a row."""
    table: dict[str, dict[str, list]] = {}
    for row in rows:
        table.setdefault(unit(row), {m: [] for m in methods})[row["method"]].append(row["regret"])
    return {u: {m: float(np.mean(v)) for m, v in by.items()} for u, by in sorted(table.items())}


def method_table(table: dict[str, dict[str, float]], methods: list[str]) -> list[str]:
    """Return a table with one row per method."""
    lines = [
        f"| method | mean regret | median | difference to {BASE} | {BASE} wins / ties / losses |",
        "|---|---|---|---|---|",
    ]
    values = {method: np.array([by[method] for by in table.values()]) for method in methods}
    for method, regret in values.items():
        line = f"| {method} | {interval(regret)} | {np.median(regret):.3f} |"
        if method == BASE:
            lines.append(f"{line} | |")
            continue
        apart = regret - values[BASE]
        ties = np.isclose(apart, 0, atol=1e-9)
        counts = [(apart > 0) & ~ties, ties, (apart < 0) & ~ties]
        lines.append(f"{line} {interval(apart)} | {' / '.join(str(c.sum()) for c in counts)} |")
    return lines


def target_table(rows: list[dict], methods: list[str]) -> list[str]:
    """Return a table with one row per target."""
    lines = ["| target | " + " | ".join(methods) + " |", "|---|" + "---|" * len(methods)]
    for unit, by in averages(
        rows, methods, lambda row: f"{row['estimator']}, {row['target']}"
    ).items():
        lines.append(f"| {unit} | " + " | ".join(f"{by[method]:.3f}" for method in methods) + " |")
    return lines


def report(rows: list[dict], left_out: list[str], command: str, family: dict[str, str]) -> str:
    """Return the page of results."""
    split, names = rows[0]["split"], {row["target"] for row in rows}
    n_targets = len({(row["estimator"], row["target"]) for row in rows})
    methods = [method for method in METHODS if any(row["method"] == method for row in rows)]
    n_tasks = [len(source_names(name, 0, family)) for name in names]
    lines = [
        "# The first trial",
        "",
        f"Made by `{command}`.",
        "",
        f"{len(names)} data sets of {len({family[name] for name in names})} families (split: "
        f"{split}) are targets for {' and '.join(ESTIMATORS)}, {n_targets} targets in total. The "
        f"past tasks of a target are {min(n_tasks)} to {max(n_tasks)} data sets of other families "
        f"({KEPT:.0%} of all) with {N_TRIALS} trials each. Each method picks one of the "
        f"{N_SHARED + N_OWN} evaluated configurations of the target without any of their scores. "
        "Regret is normalized: 0 is the best of these configurations, 1 their median. Scores are "
        f"balanced accuracies in three-fold cross-validation on at most {MAX_ROWS} rows. Regrets "
        f"are averaged over {N_REPETITIONS} random choices of the past tasks.",
        "",
        f"± is 1.96 standard errors over targets. A positive difference favors {BASE}. "
        f'"best on average" knows all {N_SHARED} shared configurations on all past data sets, the '
        "other "
        f"methods know {N_TRIALS - N_OWN} of them on each. Random is the expectation of a uniform "
        "draw.",
        "",
        "Left out, because their median is as good as their best: "
        + (", ".join(left_out) or "none")
        + ".",
        "",
    ]
    for estimator in sorted({row["estimator"] for row in rows}):
        own = [row for row in rows if row["estimator"] == estimator]
        table = averages(own, methods, lambda row: row["target"])
        lines += [f"## {estimator}: {len(table)} data sets", "", *method_table(table, methods), ""]
    table = averages(rows, methods, lambda row: row["target"])
    lines += [f"## Overall: {len(table)} data sets", "", "The estimators are averaged first.", ""]
    lines += [*method_table(table, methods), ""]
    table = averages(rows, methods, lambda row: family[row["target"]])
    lines += [f"## Overall: {len(table)} families", ""]
    lines += ["The data sets of a family are similar, so they are averaged first.", ""]
    lines += [*method_table(table, methods), "", "## Targets", "", *target_table(rows, methods)]
    return format_page(lines)


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "split", "jobs", "report")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=METHODS, help=f"beside {BASE}"
    )
    parser.add_argument(
        "--targets", nargs="+", help="only these data sets of the split, for a test"
    )
    options = parser.parse_args()
    folder = data_folder(options.data)
    family, records = families(folder), load(options.work)
    cells = [(estimator, name) for estimator in ESTIMATORS for name in family]
    if missing := [cell for cell in cells if cell not in records]:
        raise SystemExit(
            f"{len(missing)} tables are missing, run benchmarks.evaluations first: {missing[:5]}"
        )
    in_split = split_families(family)[options.split]
    wanted = [
        (estimator, name)
        for estimator, name in cells
        if family[name] in in_split and (not options.targets or name in options.targets)
    ]
    targets = [cell for cell in wanted if regrets(records[cell]["scores"]) is not None]
    if not targets:
        raise SystemExit("No target of this split has configurations of different quality.")
    methods = [method for method in METHODS if method in {BASE, *options.methods}]
    keys = [
        (options.split, *cell, repetition, method)
        for cell in targets
        for repetition in range(N_REPETITIONS)
        for method in methods
    ]
    if options.split == "report" and not options.targets and methods == METHODS:
        options.report = options.report or RESULTS / "first_trial.md"
    packed = packed_file(options.report) if options.report else None
    rows = run_all(folder, options.work, keys, family, options.jobs, packed)
    command = "OMP_NUM_THREADS=1 python -m benchmarks.first_trial"
    command += " --split development" * (options.split == "development")
    command += f" --targets {' '.join(options.targets)}" if options.targets else ""
    command += f" --methods {' '.join(map(repr, methods))}" if methods != METHODS else ""
    left_out = [
        f"{name} ({estimator})" for estimator, name in wanted if (estimator, name) not in targets
    ]
    text = report(rows, left_out, command, family)
    if packed:
        options.report.write_text(text)
        update_runs(rows, packed, FIELDS)
    print(text)


if __name__ == "__main__":
    main()
