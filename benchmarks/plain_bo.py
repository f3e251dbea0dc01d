"""Plain Bayesian optimization, Optuna's samplers and random search in one run.

    python -m benchmarks.plain_bo

A cell is a data set and an estimator. The score of a configuration is its balanced accuracy in
three-fold cross-validation: on imbalanced data, accuracy hardly exceeds the share of the larger
class. Regret is normalized in each cell: 0 is the best score of any method, 1 the median of 300
random configurations. Random search is not run but computed, as the expected best of k draws from
these 300. Runs are stored in the work folder and packed beside the page, and an interrupted
program resumes there.

Kernel, priors and number of initial trials were chosen on the data sets of DEVELOPMENT. The report
uses those of REPORT.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks import runner
from benchmarks.data import data_folder, load_classification
from benchmarks.papers._replay import expected_best
from benchmarks.runner import RESULTS, WORK, format_page, make_parser, packed_file, update_runs
from sktransfer import Space, TransferOptimizer

DEVELOPMENT = ["bupa", "ecoli1", "hayes-roth", "heart", "pima", "tae", "wdbc", "wine"]
REPORT = [
    "australian", "banana", "breast", "haberman", "ionosphere", "led7digit", "magic", "monk-2",
    "movement_libras", "optdigits", "ring", "spambase", "texture", "wisconsin",
]  # fmt: skip
ESTIMATORS = {
    "svc": (
        make_pipeline(StandardScaler(), SVC(max_iter=20_000)),
        {
            "svc__C": loguniform(1e-3, 1e3),
            "svc__gamma": loguniform(1e-5, 1e1),
            "svc__kernel": ["rbf", "poly", "sigmoid"],
        },
    ),
    "tree": (
        DecisionTreeClassifier(random_state=0),
        {
            "max_depth": randint(1, 21),
            "min_samples_split": randint(2, 61),
            "min_samples_leaf": randint(1, 61),
            "max_features": uniform(0.1, 0.9),
            "ccp_alpha": loguniform(1e-5, 1e-1),
            "criterion": ["gini", "entropy"],
        },
    ),
}
PEER = "optuna GPSampler"
METHODS = ["sktransfer gp", PEER, "optuna TPESampler"]
N_TRIALS, N_RANDOM, MAX_ROWS = 30, 300, 400
SCORINGS = ["balanced_accuracy", "accuracy"]
AT = [1, 3, 5, 10, 20, 30]  # reported numbers of trials
FIELDS = ("data", "estimator", "method", "seed")


def evaluate(estimator, params, X, y, scoring: str) -> float:
    """Return the mean score over three folds, NaN if it fails."""
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(
            cross_val_score(estimator.set_params(**params), X, y, cv=cv, scoring=scoring).mean()
        )


def optuna_distributions(space):
    """Convert a space to Optuna's distributions."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def translate(entry):
        if isinstance(entry, list):
            return CategoricalDistribution(entry)
        low, high = entry.support()
        if hasattr(entry, "pmf"):
            return IntDistribution(int(low), int(high))
        return FloatDistribution(
            float(low), float(high), log=entry.dist.name in ("loguniform", "reciprocal")
        )

    return {name: translate(entry) for name, entry in space.items()}


def make_asker(method: str, space, seed: int):
    """Return ask() -> params and tell(params, score) of a method."""
    if method.startswith("sktransfer"):
        optimizer = TransferOptimizer(space, surrogate=method.split()[1], random_state=seed)
        return lambda: optimizer.ask()[0], optimizer.tell
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    sampler = getattr(optuna.samplers, method.split()[1])(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions, open_trials = optuna_distributions(space), []

    def ask():
        open_trials.append(study.ask(distributions))
        return dict(open_trials[-1].params)

    return ask, lambda params, score: study.tell(open_trials.pop(), score)


def run(name: str, estimator_name: str, method: str, seed: int, folder: Path, scoring: str) -> dict:
    """Run one search, or evaluate the random configurations of a cell."""
    X, y = load_classification(name, folder, MAX_ROWS)
    estimator, space = ESTIMATORS[estimator_name]
    if method == "random":
        scores = [
            evaluate(estimator, p, X, y, scoring)
            for p in Space.parse(space).sample(N_RANDOM, 12345)
        ]
    else:
        ask, tell = make_asker(method, space, seed)
        scores = []
        for _ in range(N_TRIALS):
            params = ask()
            scores.append(evaluate(estimator, params, X, y, scoring))
            tell(params, scores[-1])
    return {"scores": scores}


def run_all(
    folder: Path,
    scoring: str,
    names: list[str],
    seeds: int,
    methods: list[str],
    page: Path,
    n_jobs: int,
) -> list[dict]:
    """Return all runs of the comparison; the missing ones are made."""
    cells = [(name, estimator) for name in names for estimator in ESTIMATORS]
    keys = [(*cell, method, seed) for cell in cells for method in methods for seed in range(seeds)]
    keys += [(*cell, "random", 0) for cell in cells]
    store = WORK / f"{page.stem}.jsonl"
    return runner.run_all(
        store, FIELDS, keys, run, n_jobs, lambda key: (folder, scoring), packed_file(page)
    )


def regrets(rows: list[dict], at: list[int]) -> dict[str, dict[str, np.ndarray]]:
    """Map method -> estimator -> normalized regret, (cells and seeds, len(at))."""
    table: dict[str, dict[str, list]] = {}
    for name, estimator in sorted({(row["data"], row["estimator"]) for row in rows}):
        cell = [row for row in rows if (row["data"], row["estimator"]) == (name, estimator)]
        reference = np.array(next(row["scores"] for row in cell if row["method"] == "random"))
        best = max(np.nanmax(row["scores"]) for row in cell)
        scale = best - np.nanmedian(reference)
        if scale <= 0:
            continue  # all configurations are as good as the best
        for row in cell:
            if row["method"] == "random":
                loss = -np.nan_to_num(
                    reference, nan=np.nanmin(reference)
                )  # a failure counts as the worst score
                reached = list(-expected_best(loss, max(at))[np.array(at) - 1])
            else:
                reached = list(np.fmax.accumulate(row["scores"])[np.array(at) - 1])
            table.setdefault(row["method"], {}).setdefault(estimator, []).append(
                (best - np.array(reached)) / scale
            )
    return {m: {e: np.array(v) for e, v in by.items()} for m, by in table.items()}


def seconds_per_ask(dimensions: int, repeats: int = 15) -> dict[str, float]:
    """Return the median seconds of an ask after 30 trials; the methods take turns."""
    space = {f"x{i}": uniform(0, 1) for i in range(dimensions)}
    askers = {}
    for method in METHODS:
        ask, tell = make_asker(method, space, 0)
        for _ in range(N_TRIALS):
            params = ask()
            tell(params, -sum((value - 0.3) ** 2 for value in params.values()))
        askers[method] = (ask, tell)
    seconds: dict[str, list] = {method: [] for method in METHODS}
    for _ in range(repeats):
        for method, (ask, tell) in askers.items():
            begun = time.perf_counter()
            params = ask()
            seconds[method].append(time.perf_counter() - begun)
            tell(params, -sum((value - 0.3) ** 2 for value in params.values()))
    return {method: float(np.median(s)) for method, s in seconds.items()}


def regret_table(table: dict[str, dict[str, np.ndarray]], estimator: str) -> list[str]:
    """Return a table of methods by numbers of trials, for one estimator or "both"."""
    lines = ["| method | " + " | ".join(f"k = {k}" for k in AT) + " |", "|---|" + "---|" * len(AT)]
    for method, by in table.items():
        values = np.vstack(list(by.values())) if estimator == "both" else by[estimator]
        error = values.std(axis=0) / np.sqrt(len(values))
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(values.mean(axis=0), error, strict=True)]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def speed_table() -> list[str]:
    """Return a table of seconds per ask and their ratio to GPSampler's."""
    two, eight = seconds_per_ask(2), seconds_per_ask(8)
    lines = ["| method | 2 dimensions | ratio | 8 dimensions | ratio |", "|---|---|---|---|---|"]
    for method in METHODS:
        a, b = two[method], eight[method]
        lines.append(
            f"| {method} | {a:.4f} | {a / two[PEER]:.2f} | {b:.4f} | {b / eight[PEER]:.2f} |"
        )
    return lines


def report(rows: list[dict], command: str, seeds: int, scoring: str) -> str:
    """Return the page of results."""
    table = regrets(rows, AT)
    names = sorted({row["data"] for row in rows})
    lines = [
        "# Plain Bayesian optimization",
        "",
        f"Made by `{command}`.",
        "",
        f"{len(names)} data sets ({', '.join(names)}; at most {MAX_ROWS} rows of each), SVC "
        f"behind a StandardScaler (3 parameters) and a decision tree (6 parameters), {N_TRIALS} "
        f"trials, {seeds} seeds, {scoring.replace('_', ' ')} in three-fold cross-validation. The "
        "tables show the mean normalized regret after k trials: 0 is the best score of any method "
        f"in the cell, 1 the median of {N_RANDOM} random configurations. Random search is the "
        "expected best of k of those. ± is the standard error over data sets, estimators and "
        "seeds. Priors, kernel, initial trials and the treatment of low scores were chosen on "
        "other data sets (`--development`).",
        "",
    ]
    for estimator in ["both", *ESTIMATORS]:
        lines += [f"## {estimator}", "", *regret_table(table, estimator), ""]
    lines += [
        "## Seconds per ask",
        "",
        f"Median after {N_TRIALS} trials. The methods take turns in one process. Ratios are to "
        "GPSampler.",
        "",
        *speed_table(),
    ]
    return format_page(lines)


def main() -> None:
    parser = make_parser(__doc__, "data", "jobs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--development", action="store_true", help="use the data sets that choices are made on"
    )
    parser.add_argument("--scoring", choices=SCORINGS, default=SCORINGS[0])
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    options = parser.parse_args()
    names = DEVELOPMENT if options.development else REPORT
    kind = "-development" * options.development + "-accuracy" * (options.scoring == "accuracy")
    folder = data_folder(options.data)
    page = options.out or (WORK if options.development else RESULTS) / f"plain_bo{kind}.md"
    rows = run_all(
        folder, options.scoring, names, options.seeds, options.methods, page, options.jobs
    )
    command = "python -m benchmarks.plain_bo" + " --development" * options.development
    command += " --scoring accuracy" * (options.scoring == "accuracy")
    text = report(rows, command, options.seeds, options.scoring)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text)
    update_runs(rows, packed_file(page), FIELDS)
    print(text)


if __name__ == "__main__":
    main()
