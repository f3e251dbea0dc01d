"""Salinas et al. 2020, Tables 2, 3, 5 and 6: improvement over random search on tables."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from benchmarks.papers._experiment import Experiment, Rows, interval, markdown
from benchmarks.papers._figures import colors, legend_beside, panels
from benchmarks.papers._replay import expected_best, past, replay_search, suite
from sktransfer.surrogates import GP, Box, CopulaGP, EncodedTask, Surrogate, make_surrogate
from sktransfer.utils._scores import normal_scores

N_TRIALS = 100
SHOWN_FROM = 5  # first trial in the figure
N_PAST = {"deepar": 250, "fcnet": 1000, "xgboost-libsvm": 1000, "nasbench201": 1000}
TIMED, OTHERS = ("fcnet", "deepar"), ("xgboost-libsvm", "nasbench201")
PLAIN = {"guard": False}  # as in the paper
PRIORS = {
    "linear": {"estimator": "linear"},
    "KNN_5": {"estimator": "neighbors", "n_neighbors": 5},
    "KNN_10": {"estimator": "neighbors", "n_neighbors": 10},
    "KNN_20": {"estimator": "neighbors", "n_neighbors": 20},
}
"""Estimators of Table 6 beside the network."""


@lru_cache(maxsize=1)
def methods() -> dict[str, Surrogate]:
    """Map name in the tables to surrogate."""
    standard = {"transform": "standardize", "winsorize": False}
    homo = {"heteroskedastic": False}
    both = {"objective": "score+time"}
    return {
        "copula-gp": CopulaGP(),
        "CGP": CopulaGP(**PLAIN),
        "CRS": CopulaGP(n_thompson=None, **PLAIN),
        "CGP homoskedastic": CopulaGP(**homo, **PLAIN),
        "CRS homoskedastic": CopulaGP(n_thompson=None, **homo, **PLAIN),
        "CGP standardized": CopulaGP(**standard, **PLAIN),
        "CRS standardized": CopulaGP(n_thompson=None, **standard, **PLAIN),
        "CGP score+time": CopulaGP(**both, **PLAIN),
        "CRS score+time": CopulaGP(n_thompson=None, **both, **PLAIN),
        "CGP, errors ranked": CopulaGP(transform="error-copula", **PLAIN),
        "Box GP": Box(None, winsorize=False),
        "Box RS": Box(None, model=False),
        "GP": GP(winsorize=False),
        **{name: CopulaGP(**settings, **PLAIN) for name, settings in PRIORS.items()},
    } | {name: make_surrogate(name) for name in ("ablr", "box", "gp", "warm-start", "random")}


FIRST = ["random", "CGP", "CRS", "GP", "Box GP", "Box RS", "copula-gp", "gp", "box", "warm-start"]
FIRST += ["ablr"]
RANKS = ["CGP", "CGP, errors ranked"]
ABLATION = ["CGP homoskedastic", "CRS homoskedastic", "CGP standardized", "CRS standardized"]
WITH_TIME = ["CGP score+time", "CRS score+time"]

PUBLISHED = {  # Table 2: CGP, CRS, GP, ABLR
    "electricity": (0.8, 0.8, 0.2, -2.7),
    "exchange-rate": (3.3, 2.9, 0.6, 0.5),
    "m4-Daily": (1.4, 1.1, -0.1, -1.2),
    "m4-Hourly": (3.0, -0.8, -1.3, -18.0),
    "m4-Monthly": (1.0, 0.6, 0.2, -0.7),
    "m4-Quarterly": (1.0, 0.8, 0.1, -0.4),
    "m4-Weekly": (0.6, 0.4, 0.1, -3.8),
    "m4-Yearly": (1.1, 0.7, 0.5, -0.1),
    "solar": (1.1, 0.5, 0.3, -0.3),
    "traffic": (0.5, 0.0, 0.2, -1.3),
    "wiki-rolling": (0.5, 0.3, 0.1, 0.1),
    "naval_propulsion": (82.3, 78.9, -64.3, 57.1),
    "parkinsons_telemonitoring": (38.5, 29.4, 20.2, 14.1),
    "protein_structure": (8.3, 6.6, 3.3, 0.3),
    "slice_localization": (58.7, 53.3, 21.4, 1.8),
    "a6a": (0.2, -0.1, 0.2, -0.1),
    "australian": (3.7, 0.4, 1.7, -1.2),
    "german.numer": (0.7, 0.5, -0.3, -1.3),
    "heart": (5.1, 0.9, 2.8, 1.5),
    "ijcnn1": (5.8, 3.0, 4.1, -8.1),
    "madelon": (4.2, -0.4, 4.4, 2.4),
    "spambase": (1.0, -0.9, 1.8, -2.9),
    "svmguide1": (1.2, -0.3, 1.1, -3.2),
    "w6a": (3.4, 0.5, 3.8, 0.8),
}
PUBLISHED_TIME = {  # Table 5: CGP, CRS, GP
    "electricity": (8.4, 9.5, -0.3),
    "exchange-rate": (39.8, 41.1, -0.6),
    "m4-Daily": (19.9, 19.6, -1.7),
    "m4-Hourly": (27.7, 28.3, 3.4),
    "m4-Monthly": (5.3, 4.6, -0.6),
    "m4-Quarterly": (0.5, -1.2, -0.6),
    "m4-Weekly": (0.5, 0.6, -0.5),
    "m4-Yearly": (1.8, 1.4, -0.1),
    "solar": (5.2, 4.7, 0.1),
    "traffic": (6.7, 6.4, 0.3),
    "wiki-rolling": (2.0, 2.5, 0.1),
    "naval_propulsion": (89.9, 88.4, -150.0),
    "parkinsons_telemonitoring": (53.5, 46.8, 22.3),
    "protein_structure": (11.9, 11.6, 4.1),
    "slice_localization": (81.4, 81.4, 22.4),
}

PUBLISHED_PRIOR = {  # Table 6: k nearest neighbors (5, 10 and 20 are equal), linear, network
    "electricity": (0.831, 0.801, 0.740),
    "exchange-rate": (0.842, 0.783, 0.780),
    "m4-Daily": (0.804, 0.792, 0.776),
    "m4-Hourly": (0.960, 0.948, 0.884),
    "m4-Monthly": (0.783, 0.762, 0.750),
    "m4-Quarterly": (0.868, 0.792, 0.773),
    "m4-Weekly": (0.776, 0.754, 0.733),
    "m4-Yearly": (0.844, 0.785, 0.759),
    "solar": (0.963, 0.875, 0.812),
    "traffic": (0.885, 0.850, 0.829),
    "wiki-rolling": (0.904, 0.868, 0.826),
    "naval_propulsion": (0.509, 0.602, 0.491),
    "parkinsons_telemonitoring": (0.571, 0.736, 0.571),
    "protein_structure": (0.505, 0.607, 0.497),
    "slice_localization": (0.564, 0.559, 0.555),
    "a6a": (1.091, 1.067, 1.040),
    "australian": (0.827, 0.873, 0.758),
    "german.numer": (0.900, 0.891, 0.820),
    "heart": (0.818, 0.793, 0.702),
    "ijcnn1": (0.951, 0.936, 0.917),
    "madelon": (0.908, 0.887, 0.834),
    "spambase": (0.931, 0.950, 0.818),
    "svmguide1": (0.849, 0.912, 0.798),
    "w6a": (1.039, 1.054, 1.003),
}

_NAMES = list(PUBLISHED)
TASKS = {
    "deepar": _NAMES[:11],
    "fcnet": _NAMES[11:15],
    "xgboost-libsvm": _NAMES[15:],
    "nasbench201": ["cifar10", "cifar100", "ImageNet16-120"],
}
QUICK = {
    "deepar": ["m4-Hourly", "solar"],
    "fcnet": ["protein_structure"],
    "xgboost-libsvm": ["heart"],
}


MAIN = ["random", "CGP", "gp", "CRS"]
PLAN = [  # suites, methods, maximum number of seeds; the main claims come first
    (TIMED + OTHERS, list(PRIORS), 1),
    (TIMED, [*MAIN, "copula-gp"], 10),
    (TIMED, ABLATION, 10),
    (TIMED, ["CGP, errors ranked", "Box RS", "Box GP", "GP"], 10),
    (TIMED, WITH_TIME, 10),
    (OTHERS, [*MAIN, "copula-gp"], 10),
    (TIMED, ["box", "warm-start", "ablr"], 10),
    (OTHERS, ["box", "warm-start", "ablr"], 10),
    (OTHERS, ["Box RS", "Box GP", "GP"], 10),
    (TIMED, [*MAIN, "copula-gp"], 30),
]


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (suite, task, method, seed) in the order of the plan."""
    tasks = QUICK if quick else TASKS
    found = [
        (name, task, method, seed)
        for suites, methods, most in PLAN
        for seed in range(min(seeds, most))
        for name in suites
        for task in tasks.get(name, [])
        for method in methods
    ]
    return list(dict.fromkeys(found))


def run(name: str, task: str, method: str, seed: int, folder: Path) -> dict:
    surrogate = methods()[method]
    if method in PRIORS:
        return {"prior_error": prior_error(name, task, surrogate, folder)}
    row = replay_search(
        name, task, surrogate, folder, seed=seed, n_trials=N_TRIALS, n_past=N_PAST[name]
    )
    # Computed once for each task, because they do not depend on the seed.
    if seed == 0 and method == "random":
        row["random"] = random_search(name, task, folder)
    if seed == 0 and method == "CGP":
        row["prior_error"] = prior_error(name, task, surrogate, folder)
    return row


@cache
def random_search(name: str, task: str, folder: Path) -> list[float]:
    """Return the expected best loss of random search after each trial."""
    return expected_best(suite(name, folder).tables[task].loss, N_TRIALS).tolist()


def prior_error(name: str, task: str, surrogate: Surrogate, folder: Path) -> float:
    """Table 6: root mean squared error of the network's mean on the task's normal scores."""
    source, table = suite(name, folder), suite(name, folder).tables[task]
    past_tasks = [
        _encoded(source.space, record) for record in past(name, task, N_PAST[name], folder)
    ]
    trained = surrogate.fit(past_tasks)
    rows = np.random.default_rng(0).permutation(len(table.loss))[:1000]
    mean, _ = trained.prior(source.space.encode([table.params[row] for row in rows]))
    return float(np.sqrt(np.mean((normal_scores(-table.loss[rows]) - mean) ** 2)))


def _encoded(space, record) -> EncodedTask:
    codes = space.encode([trial.params for trial in record.trials])
    return EncodedTask(codes, record.scores, space.categorical, id=record.id)


# -- tables and figure -----------------------------------------------------------------------------


def runs_of(rows: Rows, task: str, method: str) -> Rows:
    return [row for row in rows if (row["task"], row["method"]) == (task, method)]


def improvements(rows: Rows, task: str, method: str) -> np.ndarray:
    """Return the improvement over random search in percent, (runs, trials)."""
    random = np.array(
        next(row["random"] for row in rows if row["task"] == task and "random" in row)
    )
    best = np.minimum.accumulate([row["loss"] for row in runs_of(rows, task, method)], axis=1)
    return 100 * (random - best) / random


def over_time(rows: Rows, task: str, method: str) -> float:
    """Return the mean improvement over random search as a function of time.

    Time is the sum of the seconds of the trials, up to that of the fastest run.
    """
    of_task = [r for r in rows if r["task"] == task]
    shortest = min(sum(r["seconds"]) for r in of_task)
    # A run has no result before its first trial ends, so time starts after the slowest first trial.
    first = max(r["seconds"][0] for r in of_task)
    grid = np.linspace(min(first, shortest), shortest, 200)

    def curve(group: Rows) -> np.ndarray:
        found = []
        for row in group:
            best, done = np.minimum.accumulate(row["loss"]), np.cumsum(row["seconds"])
            found.append(best[np.maximum(np.searchsorted(done, grid, side="right") - 1, 0)])
        return np.mean(found, axis=0)

    random = curve(runs_of(rows, task, "random"))
    return float(np.mean(100 * (random - curve(runs_of(rows, task, method))) / random))


def tasks_of(rows: Rows, methods: list[str]) -> list[tuple[str, str]]:
    """Return the (suite, task) on which all of these methods were run."""
    found = dict.fromkeys((row["suite"], row["task"]) for row in rows)
    return [(s, t) for s, t in found if all(runs_of(rows, t, method) for method in methods)]


def shared(rows: Rows, methods: list[str]) -> Rows:
    """Return the runs with the tasks and seeds that all of these methods share."""
    of = [{(r["task"], r["seed"]) for r in rows if r["method"] == method} for method in methods]
    both = set.intersection(*of)
    return [
        r
        for r in rows
        if "random" in r or (r["method"] in methods and (r["task"], r["seed"]) in both)
    ]


def run_on(rows: Rows, wanted: list[str]) -> list[str]:
    """Return those of the methods that have runs."""
    done = {row["method"] for row in rows}
    return [method for method in wanted if method in done]


def mean_and_interval(values: np.ndarray) -> str:
    """Return the mean with a 95 % interval over the runs; (runs, trials) -> text."""
    means = values.mean(axis=1)
    return f"{means.mean():.1f}" + (
        f" ± {1.96 * means.std(ddof=1) / np.sqrt(len(means)):.1f}" if len(means) > 1 else ""
    )


def tables(rows: Rows) -> list[str]:
    """Return Tables 2, 3, 5 and 6."""
    lines = [
        "## Table 2: relative improvement over random search in percent, mean over the trials",
        "",
    ]
    rows, priors = split_priors(rows)
    shown, empty = run_on(rows, FIRST), ("",) * 4
    tasks = tasks_of(rows, ["CGP"])
    body = []
    for s, t in tasks:
        found = [improvements(rows, t, m) if runs_of(rows, t, m) else None for m in shown]
        cells = ["" if each is None else mean_and_interval(each) for each in found]
        body.append([s, t, len(runs_of(rows, t, "CGP")), *cells, *PUBLISHED.get(t, empty)])
    lines += markdown(["suite", "task", "seeds", *shown, "paper: CGP", "CRS", "GP", "ABLR"], body)
    lines += [*statements(rows), *best_counts(rows, shown), "", *rank_effect(rows)]
    lines += ablation(rows)
    timed = [*WITH_TIME, "CGP", "gp"]
    timed = [
        m for m in run_on(rows, timed) if all(runs_of(rows, t, m) for s, t in tasks if s in TIMED)
    ]
    if WITH_TIME[0] in timed:
        lines += [
            "## Table 5: score and time, relative improvement over random search against time",
            "",
        ]
        common = [r for r in rows if r["method"] == "random"]
        common += [r for r in shared(rows, timed) if r["method"] in timed]
        body = [
            [s, t, *(over_time(common, t, m) for m in timed), *PUBLISHED_TIME[t]]
            for s, t in tasks_of(common, timed)
        ]
        lines += markdown(["suite", "task", *timed, "paper: CGP", "CRS", "GP"], body)
    return lines + prior_table(rows, priors, tasks)


def split_priors(rows: Rows) -> tuple[Rows, Rows]:
    """Return the searches, and the errors of priors without one."""
    return (
        [row for row in rows if row["method"] not in PRIORS],
        [row for row in rows if row["method"] in PRIORS],
    )


def prior_table(rows: Rows, priors: Rows, tasks: list[tuple[str, str]]) -> list[str]:
    """Table 6: error of the prior by each estimator."""
    lines = ["## Table 6: error of the prior by each estimator (1: uninformative)", ""]
    network = {row["task"]: row["prior_error"] for row in rows if "prior_error" in row}
    others = {(row["task"], row["method"]): row["prior_error"] for row in priors}
    shown = [name for name in PRIORS if any(name == method for _, method in others)]
    body = [
        [s, t, *(others.get((t, name), "") for name in shown), network[t]]
        + list(PUBLISHED_PRIOR.get(t, ("",) * 3))
        for s, t in tasks
        if t in network
    ]
    head = ["suite", "task", *shown, "network", "paper: KNN", "linear", "network"]
    lines += markdown(head, body)
    if shown:
        known = [t for _, t in tasks if all((t, name) in others for name in shown)]
        best = sum(network[t] <= min(others[t, name] for name in shown) for t in known)
        lines += [f"The network is the best estimator on {best} of {len(known)} tasks.", ""]
    return lines


def rank_effect(rows: Rows) -> list[str]:
    """The effect of ranking errors, as the paper does, or scores."""
    if len(run_on(rows, RANKS)) < len(RANKS):
        return []
    common = shared(rows, RANKS)
    lines = ["## Ranks of errors and of scores, mean over the tasks of a suite", ""]
    body = []
    tasks = tasks_of(common, RANKS)
    for suite_name in dict.fromkeys(s for s, _ in tasks):
        own = [t for s, t in tasks if s == suite_name]
        means = [[improvements(common, t, m).mean() for t in own] for m in RANKS]
        difference = np.array(means[1]) - np.array(means[0])
        body.append(
            [suite_name, len(own), *map(float, np.mean(means, axis=1)), interval(difference)]
        )
    return lines + markdown(["suite", "tasks", *RANKS, "difference"], body)


def statements(rows: Rows) -> list[str]:
    """Count the tasks that reach the published figure, and those ahead of plain gp."""
    lines = []
    for method in run_on(rows, ["CGP", "copula-gp"]):
        common = shared(rows, [method, "gp"])
        for suites in (TIMED, OTHERS):
            known = [
                t for s, t in tasks_of(common, [method, "gp"]) if s in suites and t in PUBLISHED
            ]
            if not known:
                continue
            ours = {t: improvements(common, t, method).mean() for t in known}
            reached = [t for t in known if ours[t] >= PUBLISHED[t][0]]
            far = [t for t in known if ours[t] < 0.8 * PUBLISHED[t][0]]
            ahead = sum(ours[t] > improvements(common, t, "gp").mean() for t in known)
            lines.append(
                f"* {method}, {len(known)} tasks of {', '.join(suites)}: at or above the "
                f"published figure on {len(reached)}, below it by more than 20 % on {len(far)} "
                f"({', '.join(far) or 'none'}); ahead of gp on {ahead}."
            )
    return lines


def best_counts(rows: Rows, shown: list[str]) -> list[str]:
    """Count the tasks on which CGP is best, alone or within 0.05 (a tie in print)."""
    lines = []
    baselines = [
        m for m in ("GP", "Box GP", "Box RS", "gp", "box", "warm-start", "ablr") if m in shown
    ]
    for name in dict.fromkeys(s for s, _ in tasks_of(rows, ["CGP"])):
        tasks = [t for s, t in tasks_of(rows, ["CGP", "CRS", "gp"]) if s == name]
        best, beaten_by = 0, []
        for task in tasks:
            others = [m for m in [*baselines, "CRS"] if runs_of(rows, task, m)]
            means = {m: improvements(rows, task, m).mean() for m in ["CGP", *others]}
            leader = max(means, key=lambda m: means[m])
            best += means["CGP"] >= means[leader] - 0.05
            if means["CGP"] < means[leader] - 0.05:
                beaten_by.append(leader)
        counts = ", ".join(f"{m} {beaten_by.count(m)}" for m in dict.fromkeys(beaten_by))
        lines.append(f"* {name}: CGP is best, alone or tied, on {best} of {len(tasks)} tasks")
        lines[-1] += f" (otherwise {counts})." if counts else "."
    return lines


def ablation(rows: Rows) -> list[str]:
    """Table 3: the mean over the trials of each form, and over the tasks of a suite."""
    shown = [
        "CRS standardized",
        "CRS homoskedastic",
        "CRS",
        "CGP standardized",
        "CGP homoskedastic",
        "CGP",
    ]
    if len(run_on(rows, shown)) < len(shown):
        return []
    common = shared(rows, shown)
    tasks = tasks_of(common, shown)
    body = [
        [
            s,
            t,
            len(runs_of(common, t, "CGP")),
            *(float(improvements(common, t, m).mean()) for m in shown),
        ]
        for s, t in tasks
    ]
    for name in dict.fromkeys(s for s, _ in tasks):
        body.append(
            [name, "mean", "", *np.mean([row[3:] for row in body if row[0] == name], axis=0)]
        )
    lines = ["## Table 3: ablation, all forms with the same seeds", ""]
    return lines + markdown(["suite", "task", "seeds", *shown], body)


def figure(rows: Rows, file: Path) -> None:
    """Draw the improvement over random search against trials, one panel per suite.

    Bands are one standard error over the tasks of a suite.
    """
    rows = split_priors(rows)[0]
    shown = run_on(rows, FIRST)
    names = list(dict.fromkeys(s for s, _ in tasks_of(rows, ["CGP"])))
    trials = np.arange(1, N_TRIALS + 1)
    with panels(file, len(names), width=4.2, height=4.0) as axes:
        for axis, name in zip(axes, names, strict=True):
            means = []
            for method, color in colors(shown).items():
                tasks = [t for s, t in tasks_of(rows, [method]) if s == name]
                if method == "random" or len(tasks) < sum(
                    s == name for s, _ in tasks_of(rows, ["CGP"])
                ):
                    continue
                each = np.array([improvements(rows, t, method).mean(axis=0) for t in tasks])
                mean, error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))
                axis.plot(trials, mean, label=method, color=color, lw=1.2)
                if method in ("CGP", "gp"):
                    axis.fill_between(trials, mean - error, mean + error, color=color, alpha=0.12)
                means.append(mean[SHOWN_FROM - 1 :])
            axis.axhline(0, color="grey", lw=0.8)
            axis.set(title=name, xlabel="trials", ylabel="better than random search, %")
            # The first trials differ so much that they would hide all later differences.
            high = np.max(means)
            low = max(np.min(means), -0.3 * high)
            axis.set_ylim(low - 0.05 * (high - low), high + 0.1 * (high - low))
            axis.set_xlim(SHOWN_FROM, N_TRIALS)
        legend_beside(axes[-1], max((axis.get_legend_handles_labels() for axis in axes), key=_size))


def _size(legend: tuple[list, list]) -> int:
    return len(legend[1])


EXPERIMENT = Experiment(
    title="A copula approach (Salinas et al. 2020)",
    about=(
        "Leave one task out: the past tasks are all other tasks of the suite, with 250 (DeepAR) "
        f"or 1000 random evaluations each. A search has {N_TRIALS} trials from the table of the "
        "target. The candidates of a trial are all remaining rows, or 1000 of them. `CGP` and "
        "`CRS` are `copula-gp` and `copula-ts` without their guard, as in the paper. The loss of "
        "FCNet is the validation loss (in the paper the test loss). `GP`, `Box GP` and `Box RS` "
        "are the paper's baselines: low scores are not raised, and the box is never left. `ablr`, "
        "`box`, `gp` and `warm-start` are the package's versions. The paper's Warm-start GP, with "
        'the 100 best evaluations of the nearest task in the GP, is `"gp-nearest"` in the '
        "package. It needs meta-features, and these tables have none, so it is not run here. "
        "`warm-start` is another method, the best settings of three past tasks as first trials, "
        "and without meta-features these are the first three. The standardized forms do not raise "
        "low scores either. Random search is its exact expectation. The tables include the "
        "published figures. The figure starts at trial 5, and its bands, of `CGP` and `gp`, are "
        "one standard error over the tasks."
    ),
    seeds=30,
    fields=("suite", "task", "method", "seed"),
    keys=keys,
    run=run,
    tables=tables,
    figure=figure,
    needs=tuple(f"tables/{name}" for name in TASKS),
)
