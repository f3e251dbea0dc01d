"""Scale: the cost of profiles and of training linear models, and one page on all that was measured.

    OMP_NUM_THREADS=1 python -m benchmarks.scale profile     # resumes
    OMP_NUM_THREADS=1 python -m benchmarks.scale linear      # resumes
    OMP_NUM_THREADS=1 python -m benchmarks.scale report

The other parts have programs of their own: `benchmarks.racing`, `benchmarks.parallel` and
`benchmarks.scale_archive`. The page reads their runs.

Profile: CPU seconds of `sktransfer.profile` and of one 5-fold cross-validation of a logistic
regression on the same data. The data have two classes and normal columns, for which it converges
in a few steps, or ten classes and columns of very different units, as real data often do. Linear:
CPU seconds and peak memory of `fit` of a linear surrogate, on N_TASKS past tasks with random trials
of a smooth function.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from benchmarks.parallel import FIELDS as PARALLEL_FIELDS
from benchmarks.parallel import batch_table, packed_runs
from benchmarks.racing import FIELDS as RACING_FIELDS
from benchmarks.racing import PAGE as RACING_PAGE
from benchmarks.racing import interval, judge, loss_of, missed_by
from benchmarks.runner import (
    RESULTS,
    format_page,
    make_parser,
    markdown_table,
    packed_file,
    read_rows,
    run_all,
    update_runs,
)
from sktransfer import profile
from sktransfer.surrogates import EncodedTask, make_surrogate

PAGE = RESULTS / "scale.md"
SHAPES = ((300, 10), (1000, 20), (10_000, 20), (10_000, 100), (100_000, 20), (1_000_000, 100))
SPARSE, N_NONZERO = (100_000, 100_000), 1_000_000
UNSCALED, N_CLASSES = "dense, 10 classes, unscaled", 10
UNSCALED_SHAPES = ((1000, 20), (5000, 50), (20_000, 50), (50_000, 100), (100_000, 100))
MAX_CELLS = 10_000_000  # of data that a logistic regression is cross-validated on
LINEAR, N_TASKS, TRIALS = ("ablr", "dist-blr"), 1000, (100, 1000)
FIELDS = {"profile": ("rows", "columns", "form"), "linear": ("surrogate", "n_trials")}


def peak_megabytes() -> float:
    """Return the peak of this process's memory."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def run_profile(rows: int, columns: int, form: str) -> dict[str, Any]:
    """Profile random data, and cross-validate a logistic regression unless they are large."""
    rng = np.random.default_rng(0)
    if form == "sparse":
        places = rng.integers(0, rows, N_NONZERO), rng.integers(0, columns, N_NONZERO)
        X: Any = sp.csr_matrix((rng.random(N_NONZERO), places), shape=(rows, columns))
        y = rng.integers(0, 2, rows)
    elif form == UNSCALED:
        X = rng.standard_normal((rows, columns), dtype=np.float32)
        y = (X @ rng.normal(size=(columns, N_CLASSES))).argmax(axis=1)
        y = np.where(rng.random(rows) < 0.3, rng.integers(0, N_CLASSES, rows), y)
        X *= rng.lognormal(sigma=2.0, size=columns).astype(np.float32)
    else:
        X = rng.standard_normal((rows, columns), dtype=np.float32)
        y = (X @ rng.normal(size=columns) + rng.normal(size=rows) > 0).astype(int)
    before = peak_megabytes()
    profile(X[:200], y[:200])  # imports
    seconds = []
    for _ in range(3):
        start = time.process_time()
        profile(X, y)
        seconds.append(time.process_time() - start)
    found = {"profile": min(seconds), "megabytes": peak_megabytes() - before}
    if rows * columns <= MAX_CELLS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            cross_val_score(LogisticRegression(), X, y, cv=5)
            found["cross_validation"] = time.process_time() - start
    return found


def run_linear(surrogate: str, n_trials: int) -> dict[str, Any]:
    """Fit a linear surrogate to N_TASKS past tasks."""
    rng = np.random.default_rng(0)
    categorical = np.zeros(3, dtype=bool)
    data = [profile(rng.normal(size=(60, 3 + i)), np.arange(60) % 2) for i in range(5)]
    tasks = []
    for number in range(N_TASKS):
        theta, best = rng.random((n_trials, 3)), rng.normal(0.5, 0.15, 3)
        z = -((theta - best) ** 2).sum(axis=1) + rng.normal(scale=0.01, size=n_trials)
        tasks.append(EncodedTask(theta, z, categorical, data[number % 5], id=f"task-{number}"))
    start = time.process_time()
    make_surrogate(surrogate).fit(tasks)
    return {"seconds": time.process_time() - start, "megabytes": peak_megabytes()}


def profile_table(done: dict[tuple, dict]) -> list[str]:
    body = []
    for (rows, columns, form), row in sorted(done.items(), key=lambda item: item[0][::-1]):
        other = row.get("cross_validation")
        cells = [f"{row['profile']:.3f}", "" if other is None else f"{other:.3f}"]
        cells.append("" if other is None else f"{row['profile'] / other:.0%}")
        body.append([f"{rows:,}", f"{columns:,}", form, *cells, f"{row['megabytes']:.0f}"])
    head = ["rows", "columns", "form", "profile", "cross-validation", "share", "MB"]
    return markdown_table(head, body)


def judge_profiles(done: dict[tuple, dict]) -> str:
    """Return sentences on the data for which the aims are met and missed."""
    shares = {
        key: row["profile"] / row["cross_validation"]
        for key, row in done.items()
        if "cross_validation" in row
    }
    below = [f"{key[0]:,} × {key[1]:,} ({key[2]})" for key, share in shares.items() if share < 0.1]
    slow = [f"{key[0]:,} × {key[1]:,}" for key, row in done.items() if row["profile"] > 0.5]
    text = f"The share is met for {', '.join(below)}, **missed** for the other " if below else ""
    text = text or "The share is **missed** for all "
    text += f"{len(shares) - len(below)}. Half a second is "
    return text + (f"**missed** for {', '.join(slow)}." if slow else "met for all.")


def linear_table(done: dict[tuple, dict]) -> list[str]:
    body = [
        [name, f"{N_TASKS * n:,}", f"{row['seconds']:.1f}", f"{row['megabytes']:.0f}"]
        for (name, n), row in done.items()
    ]
    return markdown_table(["surrogate", "trials", "CPU seconds", "peak MB"], body)


def racing_lines() -> list[str]:
    rows = list(read_rows(packed_file(RACING_PAGE), RACING_FIELDS).values())
    lines = []
    for n_folds, aim in ((5, 0.4), (10, 0.6)):
        own = [row for row in rows if row["n_folds"] == n_folds]
        saved = [1 - row["racing"]["fits"] / row["all"]["fits"] for row in own]
        missed = [missed_by(row) for row in own]
        losses = [loss_of(row) for row in own]
        lines.append(
            f"* Racing with {n_folds} folds, {len(own)} searches: fits saved {interval(saved)} "
            f"(aim {aim}), {judge(np.mean(saved) >= aim)}; loss within the same candidates "
            f"{interval(missed)}, {judge(np.mean(missed) < 0.01)} in the mean, and against the "
            f"search without racing {interval(losses)}, {judge(np.mean(losses) < 0.01)} in the "
            "mean (aim below 0.01). See [racing](racing.md)."
        )
    return lines


def simulate_use(n_workers: int = 4, n: int = 96, n_draws: int = 200) -> float:
    """Share of the workers' time that scheduling without any delay would use.

    Evaluations have the lengths of `benchmarks.parallel`, and start in a random order.
    """
    rng, shares = np.random.default_rng(0), []
    for _ in range(n_draws):
        free, lengths = np.zeros(n_workers), 10.0 ** (2 * rng.random(n) - 1)
        for length in lengths:
            free[free.argmin()] += length
        shares.append(lengths.sum() / (n_workers * free.max()))
    return float(np.mean(shares))


def parallel_lines(work: Path) -> list[str]:
    done = {
        part: read_rows(work / f"parallel-{part}.jsonl", fields, packed_runs(part))
        for part, fields in PARALLEL_FIELDS.items()
    }
    engines = {case: row["value"] for (case,), row in done["engines"].items()}
    use = engines["share of the workers' time used, unequal"]
    throughput = engines["throughput of 4 workers over 1"]
    lost = engines["trials lost with a killed worker"]
    ask = done["ask"]
    pairs = [(n, d) for n, d, method in ask if method == "sktransfer"]
    slower = [
        pair
        for pair in pairs
        if ask[*pair, "sktransfer"]["seconds"]
        >= ask.get((*pair, "optuna GPSampler"), {"seconds": np.inf})["seconds"]
    ]
    return [
        f"* Four dask workers: throughput {throughput:.2f} (aim 3.5), {judge(throughput >= 3.5)}; "
        f"{lost:.0f} trials lost with a killed worker (aim 0), {judge(lost == 0)}; share of the "
        f"workers' time used {use:.3f} (aim 0.85), {judge(use >= 0.85)}. Scheduling without any "
        f"delay would use {simulate_use():.2f}. On a machine that was busy with other work it was "
        "0.759.",
        f"* Seconds of a proposal, {len(pairs)} pairs of trials and dimensions: not below "
        f"Optuna's GPSampler in {len(slower)} of them (aim 0), {judge(not slower)}.",
        "* Batches: the aim was a ratio of at most 1.3, with Optuna beside it.",
        "",
        *batch_table(done["batches"], work),
        "",
        "See [parallel](parallel.md) for the other tables.",
    ]


def write_page(work: Path, page: Path) -> None:
    done = {
        part: read_rows(work / f"scale-{part}.jsonl", fields, packed_part(part))
        for part, fields in FIELDS.items()
    }
    lines = [
        "# Scale",
        "",
        "What was measured of racing, batches, clusters, large archives and large data, with the "
        "aims. Intervals are 95 %. Times are CPU seconds on two cores that were busy with other "
        "work, which makes them longer.",
        "",
        "## Racing",
        "",
        *racing_lines(),
        "",
        "## Batches, clusters, proposals",
        "",
        *parallel_lines(work),
        "",
        "## Large archives",
        "",
        "See [scale-archive](scale-archive.md).",
        "",
        f"Training of linear models on {N_TASKS:,} past tasks (aims: at most 12 times the time for "
        "ten times the trials, below 2 GB). What has no line has not been measured yet:",
        "",
        *linear_table(done["linear"]),
        "",
        "## Profiles of data",
        "",
        "Seconds of a profile, beside one 5-fold cross-validation of a logistic regression, and "
        "how much higher the peak of memory is than that of making the data (aim: a share below "
        "10 %, and at most half a second). A profile reads at most 1,000 rows and 300 columns for "
        "its models, so their time is bounded, and hashing all rows is the rest. "
        + judge_profiles(done["profile"])
        + " Two classes and normal columns converge in milliseconds, which about a hundred small "
        "models cannot undercut. With unscaled columns, lbfgs needs its iterations.",
        "",
        *profile_table(done["profile"]),
        "",
        "```",
        "OMP_NUM_THREADS=1 python -m benchmarks.racing",
        *(f"OMP_NUM_THREADS=1 python -m benchmarks.parallel {part}" for part in PARALLEL_FIELDS),
        "OMP_NUM_THREADS=1 python -m benchmarks.scale_archive",
        *(f"OMP_NUM_THREADS=1 python -m benchmarks.scale {part}" for part in (*FIELDS, "report")),
        "```",
    ]
    page.write_text(format_page(lines))
    for part, fields in FIELDS.items():
        update_runs(list(done[part].values()), packed_part(part), fields)


def packed_part(part: str) -> Path:
    return packed_file(PAGE.with_stem(f"scale-{part}"))


def main() -> None:
    parser = make_parser(__doc__, "work", "jobs", "report")
    parser.add_argument("part", choices=[*FIELDS, "report"])
    options = parser.parse_args()
    store = options.work / f"scale-{options.part}.jsonl"
    if options.part == "report":
        write_page(options.work, options.report or PAGE)
        return
    if options.part == "profile":
        keys: list[tuple] = [(*shape, "dense") for shape in SHAPES] + [(*SPARSE, "sparse")]
        keys += [(*shape, UNSCALED) for shape in UNSCALED_SHAPES]
    else:
        keys = [(name, n) for name in LINEAR for n in TRIALS]
    run = run_profile if options.part == "profile" else run_linear
    packed = packed_part(options.part)
    run_all(store, FIELDS[options.part], keys, run, options.jobs, packed=packed)


if __name__ == "__main__":
    main()
