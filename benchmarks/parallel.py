"""Batches, clusters and the time of a proposal.

    OMP_NUM_THREADS=1 python -m benchmarks.parallel batches      # resumes
    OMP_NUM_THREADS=1 python -m benchmarks.parallel ask          # resumes
    OMP_NUM_THREADS=1 python -m benchmarks.parallel engines      # needs distributed and ray
    OMP_NUM_THREADS=1 python -m benchmarks.parallel report

Batches: regret after N_EVALUATIONS evaluations, one by one and in batches of BATCH_SIZE, of the
default surrogate and of Optuna's TPESampler (with constant liar in batches), on data sets of the
report families. Regret is normalized: 0 is the best score that any method found, 1 the median of
random configurations.

Engines: searches whose evaluations sleep on a local dask cluster, and the ray example.

Ask: median CPU seconds of a proposal given random trials of a smooth function.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.data import data_folder
from benchmarks.plain_bo import optuna_distributions
from benchmarks.pools import (
    PROBLEMS,
    evaluate,
    load,
    profile_of,
    read_pools,
    space_of,
    targets,
)
from benchmarks.runner import (
    RESULTS,
    append_runs,
    format_page,
    make_parser,
    markdown_table,
    packed_file,
    read_rows,
    run_all,
    update_runs,
)
from sktransfer import TransferOptimizer, TransferSearchCV

PAGE = RESULTS / "parallel.md"
ESTIMATORS, N_SETS = ("tree", "neighbors", "elastic-net"), 5
N_EVALUATIONS, BATCH_SIZE = 32, 4
METHODS = ("sktransfer", "optuna TPESampler")
N_TRIALS, DIMENSIONS = (10, 50, 100, 200, 500), (2, 8, 20, 50)
ASKERS = ("sktransfer", "optuna GPSampler", "optuna TPESampler", "skopt")
N_WORKERS = 4
FIELDS = {
    "batches": ("estimator", "data", "method", "batch_size"),
    "ask": ("n_trials", "dimensions", "method"),
    "engines": ("case",),
}


# -- batches -------------------------------------------------------------------------------------


def make_study(space: Any, sampler: str, **options: Any) -> tuple[Any, Any]:
    """Return an Optuna study that maximizes, and the distributions of a space."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    made = getattr(optuna.samplers, sampler)(seed=0, **options)
    return optuna.create_study(direction="maximize", sampler=made), optuna_distributions(space)


def run_batches(estimator: str, data: str, method: str, batch_size: int, folder: Path) -> dict:
    """Search with one method; returns the best score."""
    problem = PROBLEMS[estimator]
    X, y = load(problem.kind, data, folder)
    scores: list[float] = []
    if method == "sktransfer":
        own = profile_of(problem.kind, data, folder)
        optimizer = TransferOptimizer(space_of(estimator), profile=own, random_state=0)
        for _ in range(N_EVALUATIONS // batch_size):
            asked = optimizer.ask(batch_size)
            scores += [evaluate(estimator, params, X, y, 0) for params in asked]
            for params, score in zip(asked, scores[-batch_size:], strict=True):
                optimizer.tell(params, score)
    else:
        options = {"constant_liar": True} if batch_size > 1 else {}
        study, distributions = make_study(problem.space, method.split()[1], **options)
        for _ in range(N_EVALUATIONS // batch_size):
            trials = [study.ask(distributions) for _ in range(batch_size)]
            scores += [evaluate(estimator, trial.params, X, y, 0) for trial in trials]
            for trial, score in zip(trials, scores[-batch_size:], strict=True):
                study.tell(trial, score)
    return {"best": float(np.nanmax(scores))}


def batch_keys(folder: Path) -> list[tuple]:
    order = {
        kind: np.random.default_rng(0).permutation(targets(kind, "report", folder)).tolist()
        for kind in ("classification", "regression")
    }
    return [
        (estimator, order[PROBLEMS[estimator].kind][number], method, size)
        for number in range(N_SETS)
        for estimator in ESTIMATORS
        for method in METHODS
        for size in (1, BATCH_SIZE)
    ]


def batch_table(done: dict[tuple, dict], work: Path) -> list[str]:
    pools = read_pools(work)
    cells: dict[tuple, dict[tuple, float]] = {}
    for (estimator, data, method, size), row in done.items():
        cells.setdefault((estimator, data), {})[method, size] = row["best"]
    regrets: dict[tuple, list[float]] = {}
    for cell, found in cells.items():
        pool = pools.get(cell)
        if pool is None or len(found) < 2 * len(METHODS):
            continue
        best, median = max(*found.values(), np.nanmax(pool[0])), np.nanmedian(pool[0])
        for key, score in found.items():
            spread = best - median
            regrets.setdefault(key, []).append((best - score) / spread if spread > 1e-9 else 0.0)
    body = []
    for method in METHODS:
        if (method, 1) not in regrets:
            continue
        one, four = (np.array(regrets[method, size]) for size in (1, BATCH_SIZE))
        rng = np.random.default_rng(0)
        rows = rng.integers(len(one), size=(2000, len(one)))
        low, high = np.percentile((four - one)[rows].mean(axis=1), [2.5, 97.5])
        ratio = four.mean() / max(one.mean(), 1e-9)
        body.append(
            [
                method,
                str(len(one)),
                f"{one.mean():.4f}",
                f"{four.mean():.4f}",
                f"{ratio:.2f}",
                f"{four.mean() - one.mean():.4f} ({low:.4f} to {high:.4f})",
            ]
        )
    return markdown_table(
        ["method", "tasks", "one by one", f"batches of {BATCH_SIZE}", "ratio", "difference"], body
    )


# -- seconds of a proposal -----------------------------------------------------------------------


def run_ask(n_trials: int, dimensions: int, method: str) -> dict:
    """Tell random trials, then propose twice; returns the median of the CPU seconds."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(dimensions)]
    X = rng.random((n_trials, dimensions))
    z = -((X - 0.4) ** 2).mean(axis=1)
    space = {name: uniform(0, 1) for name in names}
    if method == "sktransfer":
        optimizer = TransferOptimizer(space, random_state=0)
        for row, score in zip(X, z, strict=True):
            optimizer.tell(dict(zip(names, row.tolist(), strict=True)), score)
        ask: Any = optimizer.ask
    elif method == "skopt":
        import skopt

        model = skopt.Optimizer([(0.0, 1.0)] * dimensions, random_state=0, n_initial_points=0)
        begun = time.process_time()
        model.tell(X.tolist(), (-z).tolist())  # fits, and optimizes the acquisition
        return {"seconds": round(time.process_time() - begun, 4)}
    else:
        import optuna

        study, distributions = make_study(space, method.split()[1])
        for row, score in zip(X, z, strict=True):
            params = dict(zip(names, row.tolist(), strict=True))
            study.add_trial(
                optuna.trial.create_trial(params=params, distributions=distributions, value=score)
            )
        ask = lambda: study.ask(distributions)  # noqa: E731
    seconds = []
    for _ in range(2):
        begun = time.process_time()
        ask()
        seconds.append(time.process_time() - begun)
    return {"seconds": round(float(np.median(seconds)), 4)}


def ask_table(done: dict[tuple, dict]) -> list[str]:
    body = []
    for n_trials in N_TRIALS:
        for dimensions in DIMENSIONS:
            cells = [done.get((n_trials, dimensions, method)) for method in ASKERS]
            if any(cells):
                shown = ["" if cell is None else f"{cell['seconds']:.3f}" for cell in cells]
                body.append([str(n_trials), str(dimensions), *shown])
    return markdown_table(["trials", "dimensions", *ASKERS], body)


# -- engines -------------------------------------------------------------------------------------


class Sleeper(ClassifierMixin, BaseEstimator):
    """Its fit sleeps: always as long, or very differently long."""

    def __init__(self, a: float = 0.5, seconds: float = 1.0, unequal: bool = False):
        self.a, self.seconds, self.unequal = a, seconds, unequal

    def fit(self, X: np.ndarray, y: np.ndarray) -> Sleeper:
        time.sleep(self.seconds * (10 ** (2 * self.a - 1) if self.unequal else 1))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.resize(self.classes_, len(X))


def search_asleep(n_iter: int, **params: Any) -> tuple[float, dict]:
    """Search on the active backend; returns the seconds and cv_results_."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    search = TransferSearchCV(
        Sleeper(**params),
        {"a": uniform(0, 1)},
        n_iter=n_iter,
        cv=[(range(20), range(20, 40))],
        archive=None,
        surrogate="random",
        refit=False,
    )
    begun = time.monotonic()
    search.fit(X, np.arange(40) % 2)
    return time.monotonic() - begun, search.cv_results_


def run_engines(n_iter: int = 24) -> list[dict]:
    """Measure searches on clusters of 1 and of N_WORKERS workers."""
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    rows, rates = [], {}
    for n_workers in (1, N_WORKERS):
        with (
            LocalCluster(n_workers=n_workers, **options) as cluster,
            Client(cluster) as client,
            joblib.parallel_config("dask"),
        ):
            search_asleep(n_workers, seconds=0.1)  # the workers import what they need
            n = n_iter * n_workers // N_WORKERS
            seconds, _ = search_asleep(n, seconds=4.0)
            rates[n_workers] = n / seconds
            if n_workers == 1:
                continue
            seconds, results = search_asleep(4 * n_iter, unequal=True)
            use = float(np.sum(results["mean_fit_time"])) / (n_workers * seconds)
            rows.append({"case": "share of the workers' time used, unequal", "value": use})
            pid = min(client.run(os.getpid).values())
            threading.Timer(3, os.kill, (pid, signal.SIGKILL)).start()
            _, results = search_asleep(n_iter)
            scores = results["mean_test_score"]
            lost = n_iter - int(np.isfinite(scores).sum())
            rows.append({"case": "trials lost with a killed worker", "value": lost})
    rows.append({"case": "throughput of 4 workers over 1", "value": rates[N_WORKERS] / rates[1]})
    return rows


def run_ray() -> list[dict]:
    from examples.cluster_ray import main

    begun = time.monotonic()
    search = main()
    n = len(search.cv_results_["params"])
    return [
        {"case": "ray example: candidates", "value": n},
        {"case": "ray example: seconds", "value": time.monotonic() - begun},
    ]


# -- the page ------------------------------------------------------------------------------------


def packed_runs(part: str) -> Path:
    return packed_file(PAGE.with_stem(f"parallel-{part}"))


def write_page(work: Path, page: Path) -> None:
    done = {
        part: read_rows(work / f"parallel-{part}.jsonl", fields, packed_runs(part))
        for part, fields in FIELDS.items()
    }
    engines = [[case, f"{row['value']:.3g}"] for (case,), row in done["engines"].items()]
    lines = [
        "# Batches, clusters and the time of a proposal",
        "",
        "## Batches",
        "",
        f"Mean normalized regret after {N_EVALUATIONS} evaluations on data sets of the report "
        f"families ({', '.join(ESTIMATORS)}): 0 is the best score that any of the methods or the "
        "pool found, 1 the median of random configurations. The difference has a 95 % interval "
        f"over tasks. The aim was a ratio of at most 1.3 over {N_SETS * len(ESTIMATORS)} tasks.",
        "",
        *batch_table(done["batches"], work),
        "",
        "## Clusters",
        "",
        f"A local dask cluster of {N_WORKERS} single-thread workers, evaluations that sleep for "
        "four seconds, or for 0.1 to 10 seconds (unequal). On a machine that was busy with other "
        "work, evaluations of one second had a throughput of 0.98. The aims were a throughput of "
        "3.5, no trial lost, and 0.85 of the workers' time used.",
        "",
        *markdown_table(["measured", "value"], engines),
        "",
        "## Seconds of a proposal",
        "",
        "Median CPU seconds of a proposal given random trials, without past tasks. skopt fits and "
        "proposes when it is told trials, so that is what was measured; with 200 trials in 8 or "
        "more dimensions and with 500 trials, its times are from an earlier run.",
        "",
        *ask_table(done["ask"]),
        "",
        "```",
        "OMP_NUM_THREADS=1 python -m benchmarks.parallel batches",
        "OMP_NUM_THREADS=1 python -m benchmarks.parallel ask",
        "OMP_NUM_THREADS=1 python -m benchmarks.parallel engines",
        "OMP_NUM_THREADS=1 python -m benchmarks.parallel report",
        "```",
    ]
    page.write_text(format_page(lines))
    for part, fields in FIELDS.items():
        rows = list(done[part].values())
        update_runs(rows, packed_runs(part), fields)


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "jobs", "report")
    parser.add_argument("part", choices=[*FIELDS, "ray", "report"])
    options = parser.parse_args()
    store = options.work / f"parallel-{options.part}.jsonl"
    if options.part == "batches":
        folder = data_folder(options.data)
        keys = batch_keys(folder)
        packed = packed_runs("batches")
        run_all(
            store, FIELDS["batches"], keys, run_batches, options.jobs, lambda key: (folder,), packed
        )
    elif options.part == "ask":
        keys = [(n, d, method) for n in N_TRIALS for d in DIMENSIONS for method in ASKERS]
        packed = packed_runs("ask")
        run_all(store, FIELDS["ask"], keys, run_ask, options.jobs, packed=packed)
    elif options.part in ("engines", "ray"):
        rows = run_engines() if options.part == "engines" else run_ray()
        append_runs(rows, options.work / "parallel-engines.jsonl")
    else:
        write_page(options.work, options.report or PAGE)


if __name__ == "__main__":
    main()
