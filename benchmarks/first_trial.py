"""The first trial on a data set nobody has seen: which of 100 known configurations, given past searches?

    OMP_NUM_THREADS=1 python -m benchmarks.first_trial

Needs the tables of `benchmarks.evaluations`. For a target, a data set and an estimator, the past are the
data sets of other families, each with N_TRIALS trials: its own configurations and a few of the shared
ones. The target has no trials; each method picks one of its 100 configurations. Regret is normalized: 0 is
the best of the 100, 1 their median. The past is thinned at random, N_REPETITIONS times, and the regrets
are averaged, since which tasks are there is a matter of luck.

What was chosen (surrogates, encoders, priors) was chosen on the families of the split "development"; what
is reported is measured on the others.

Writes `first_trial.jsonl` in the work folder, one line per run as soon as it is done; an interrupted run
goes on from there. Remove the file when the surrogates or the tables change: it is not checked.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks.data import data_folder, load_classification
from benchmarks.evaluations import ESTIMATORS, MAX_ROWS, N_OWN, N_SHARED, WORK, families, load
from sktransfer import Space, Task, TransferOptimizer, profile
from sktransfer.utils._scores import clip_low_outliers, standardize

BASE = "dist-gp"  # what the others are compared with
SURROGATES = [BASE, "manual-gp", "dist-blr", "manual-blr", "warm-start"]
METHODS = [*SURROGATES, "best on average", "random"]
N_TRIALS, N_REPETITIONS, KEPT = 50, 3, 0.75
KEYS = ("split", "estimator", "target", "repetition", "method")
Key = tuple[str, str, str, int, str]


def split_families(family: dict[str, str]) -> dict[str, set[str]]:
    """Split -> its families: one half for choices, the other for the report."""
    order = np.random.default_rng(123).permutation(sorted(set(family.values())))
    half = len(order) // 2
    return {"development": set(order[:half]), "report": set(order[half:])}


def seed(name: str) -> int:
    return zlib.crc32(name.encode())  # hash() differs from process to process


def space_of(estimator_name: str) -> Space:
    estimator, space = ESTIMATORS[estimator_name]
    return Space.parse(space, estimator)


def past_task(record: dict, data_profile) -> Task:
    """A past search: the data set's own configurations and a few of the shared ones."""
    shared = np.random.default_rng(seed(record["data"])).choice(
        N_SHARED, N_TRIALS - N_OWN, replace=False
    )
    trials = [
        (record["params"][i], record["scores"][i])
        for i in [*sorted(shared), *range(N_SHARED, N_SHARED + N_OWN)]
    ]
    return Task.from_trials(space_of(record["estimator"]), trials, data_profile, id=record["data"])


def sources(target: str, repetition: int, family: dict[str, str]) -> list[str]:
    """The data sets that a target may learn from in one repetition."""
    others = sorted(name for name in family if family[name] != family[target])
    rng = np.random.default_rng([repetition, seed(target)])
    return sorted(rng.choice(others, round(KEPT * len(others)), replace=False).tolist())


def best_on_average(scores: list[list[float]]) -> int:
    """Number of the shared configuration that did best over all past data sets; (tasks, N_SHARED)."""
    return int(
        np.mean(
            [standardize(clip_low_outliers(np.array(row)))[0] for row in scores], axis=0
        ).argmax()
    )


def regrets(scores: list[float]) -> np.ndarray | None:
    """Normalized regret of each configuration; None if the median is as good as the best."""
    z = np.array(scores, dtype=float)
    z = np.where(np.isfinite(z), z, np.nanmin(z))  # a failure is as bad as the worst
    scale = z.max() - np.median(z)
    return (z.max() - z) / scale if scale > 1e-9 else None


def run(key: Key, record: dict, data_profile, past: list[tuple[Task, dict]]) -> dict:
    """One pick; `past` are the tasks with the whole records that they were made of."""
    method, regret, params = key[-1], regrets(record["scores"]), record["params"]
    assert regret is not None
    begun, pick = time.perf_counter(), None
    if method == "best on average":
        pick = best_on_average([whole["scores"][:N_SHARED] for _, whole in past])
    elif method != "random":
        tasks = [task for task, _ in past]
        optimizer = TransferOptimizer(
            space_of(key[1]), tasks, profile=data_profile, surrogate=method, random_state=0
        )
        pick = params.index(optimizer.ask(1, pool=params)[0])
    found = regret.mean() if pick is None else regret[pick]  # random: the expectation
    seconds = round(time.perf_counter() - begun, 3)
    return dict(zip(KEYS, key, strict=True)) | {
        "pick": pick,
        "regret": float(found),
        "seconds": seconds,
    }


def read(store: Path) -> dict[Key, dict]:
    """The runs that are done."""
    rows = {}
    for line in store.read_text().splitlines() if store.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # cut short by an interruption: not done
        rows[tuple(row[key] for key in KEYS)] = row
    return rows


def run_all(
    folder: Path, work: Path, keys: list[Key], family: dict[str, str], n_jobs: int
) -> list[dict]:
    """Every run that is asked for, read from the store where it has been done before."""
    store = work / "first_trial.jsonl"
    done, records = read(store), load(work)
    todo = [key for key in keys if key not in done]
    print(f"{len(keys) - len(todo)} of {len(keys)} runs are done", flush=True)
    if not todo:
        return [done[key] for key in keys]
    profiles = {
        name: profile(*load_classification(name, folder, MAX_ROWS), keep="sketch")
        for name in family
    }
    tasks = {cell: past_task(record, profiles[cell[1]]) for cell, record in records.items()}

    def job(key: Key):
        _, estimator, target, repetition, _ = key
        past = [
            (tasks[estimator, n], records[estimator, n])
            for n in sources(target, repetition, family)
        ]
        return delayed(run)(key, records[estimator, target], profiles[target], past)

    begun = time.time()
    rows = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(job(key) for key in todo)
    with store.open("a") as file:
        if file.tell():
            file.write("\n")  # the last line may have been cut short; an empty one is skipped
        for number, row in enumerate(rows, 1):
            done[tuple(row[key] for key in KEYS)] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"\r{number}/{len(todo)} runs, {time.time() - begun:.0f} s", end="", flush=True)
    print()
    return [done[key] for key in keys]


def interval(values: np.ndarray) -> str:
    """Mean and 95 % interval."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.3f} ± {1.96 * error:.3f}"


def averages(rows: list[dict], methods: list[str], unit) -> dict[str, dict[str, float]]:
    """Unit -> method -> mean regret of its rows; `unit` names a row's unit."""
    table: dict[str, dict[str, list]] = {}
    for row in rows:
        table.setdefault(unit(row), {m: [] for m in methods})[row["method"]].append(row["regret"])
    return {u: {m: float(np.mean(v)) for m, v in by.items()} for u, by in sorted(table.items())}


def method_table(table: dict[str, dict[str, float]], methods: list[str]) -> list[str]:
    """Rows of Markdown, one per method."""
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
    """Rows of Markdown, one per target."""
    lines = ["| target | " + " | ".join(methods) + " |", "|---|" + "---|" * len(methods)]
    for unit, by in averages(
        rows, methods, lambda row: f"{row['estimator']}, {row['target']}"
    ).items():
        lines.append(f"| {unit} | " + " | ".join(f"{by[method]:.3f}" for method in methods) + " |")
    return lines


def report(rows: list[dict], left_out: list[str], command: str, family: dict[str, str]) -> str:
    """The tables as Markdown."""
    split, names = rows[0]["split"], {row["target"] for row in rows}
    n_targets = len({(row["estimator"], row["target"]) for row in rows})
    methods = [method for method in METHODS if any(row["method"] == method for row in rows)]
    n_tasks = [len(sources(name, 0, family)) for name in names]
    lines = [
        "# The first trial",
        "",
        f"Made by `{command}`.",
        "",
        f"{len(names)} data sets of {len({family[name] for name in names})} families (split: {split}), as "
        f"targets of {' and '.join(ESTIMATORS)}; {n_targets} targets in all. The past of a target are "
        f"{min(n_tasks)} to {max(n_tasks)} data sets of other families, {KEPT:.0%} of those there are, with "
        f"{N_TRIALS} trials each. Each method picks one of the target's {N_SHARED + N_OWN} evaluated "
        "configurations without having seen any of their scores. Normalized regret: 0 is the best of them, 1 "
        f"their median; balanced accuracy in three-fold cross-validation, at most {MAX_ROWS} rows. It is "
        f"averaged over {N_REPETITIONS} random choices of the past.",
        "",
        "± is 1.96 standard errors over targets; a positive difference is in favor of "
        f'{BASE}. "best on average" has seen all of the {N_SHARED} shared configurations on all past data '
        f"sets, the others {N_TRIALS - N_OWN} of them on each. Random is the expectation of a uniform draw.",
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
    lines += ["The data sets of a family are alike; here they are averaged first.", ""]
    lines += [*method_table(table, methods), "", "## Targets", "", *target_table(rows, methods)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument(
        "--work", type=Path, default=WORK, help="folder of the tables and of the runs"
    )
    parser.add_argument("--split", choices=["report", "development"], default="report")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=METHODS, help=f"beside {BASE}"
    )
    parser.add_argument("--targets", nargs="+", help="only these data sets of the split, for a try")
    parser.add_argument("--report", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    folder = data_folder(options.data)
    family, records = families(folder), load(options.work)
    cells = [(estimator, name) for estimator in ESTIMATORS for name in family]
    if missing := [cell for cell in cells if cell not in records]:
        raise SystemExit(
            f"{len(missing)} tables are missing, run benchmarks.evaluations: {missing[:5]}"
        )
    ours = split_families(family)[options.split]
    wanted = [
        (e, n)
        for e, n in cells
        if family[n] in ours and (not options.targets or n in options.targets)
    ]
    targets = [cell for cell in wanted if regrets(records[cell]["scores"]) is not None]
    if not targets:
        raise SystemExit(
            "There is no such target in this split, or none with anything to be found."
        )
    methods = [method for method in METHODS if method in {BASE, *options.methods}]
    keys = [
        (options.split, *cell, repetition, method)
        for cell in targets
        for repetition in range(N_REPETITIONS)
        for method in methods
    ]
    rows = run_all(folder, options.work, keys, family, options.jobs)
    command = "OMP_NUM_THREADS=1 python -m benchmarks.first_trial"
    command += " --split development" * (options.split == "development")
    command += f" --targets {' '.join(options.targets)}" if options.targets else ""
    command += f" --methods {' '.join(map(repr, methods))}" if methods != METHODS else ""
    left_out = [f"{n} ({e})" for e, n in wanted if (e, n) not in targets]
    text = report(rows, left_out, command, family)
    if options.split == "report" and not options.targets and methods == METHODS:
        options.report = options.report or Path("docs/results/first_trial.md")
    if options.report:
        options.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
