"""Perrone et al. 2018, supplement B.3 and B.4: leave one data set out, with or without contexts."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.papers import _suites
from benchmarks.papers._experiment import Experiment, Rows, interval, markdown
from benchmarks.papers._logistic import LOGISTIC
from benchmarks.papers._logistic import names as logistic_names
from benchmarks.papers._replay import replay_search, suite
from sktransfer.encoders import ManualEncoder, TaskIndex
from sktransfer.surrogates import (
    ABLR,
    ContextBohamiann,
    DistGP,
    NearestTaskGP,
    Surrogate,
    make_surrogate,
)

N_TRIALS, N_PAST, N_CONTEXT = 50, 150, 10
AT = [5, 10, 25, 50]
SUITES = [LOGISTIC, "deepar", "hpobench-xgb", "xgboost-libsvm"]  # with at least 10 tasks
QUICK = ["deepar", LOGISTIC]
N_TARGETS, N_QUICK = 5, 2  # the first tasks of a suite; all others are past tasks
PAPER = ["ABLR", "GP, contexts"]
OURS = ["ablr, zero head", "ablr, zero head, learned contexts", "ablr", "dist-gp, 10 trials"]
OURS += ["gp", "random"]
WITH_DATA = [
    "ABLR, meta-features",
    "GP, contexts, L1",
    "ablr, zero head, meta-features",
]  # where the data sets of the tasks are known
SLOW, SLOW_SEEDS = ["bohamiann"], 1  # as slow as all others together
WITH_CONTEXT, N_SHORT, AT_SHORT = "bohamiann, contexts", 25, [5, 10, 25]  # slower still
COMPARED = {
    "ABLR": ["GP, contexts", "gp", "random"],
    "GP, contexts": ["gp", "random"],
    "GP, contexts, L1": ["ABLR", "GP, contexts", "gp"],
    "ablr": ["dist-gp, 10 trials", "gp", "random"],
    "ablr, zero head": ["dist-gp, 10 trials", "gp", "random"],
    "ablr, zero head, learned contexts": ["ablr, zero head", "ablr, zero head, meta-features"],
}
RETRAIN = 30  # steps of the network with the target as one more task, after each trial


@lru_cache(maxsize=2)
def methods(with_data: bool) -> dict[str, tuple[Surrogate, int]]:
    """Map name in the tables to surrogate and number of past trials of each task."""
    plain = {"guard": False, "winsorize": False}
    paper = {"head": "zero", "retrain": RETRAIN, **plain}
    ours = {"head": "zero", "guard": False}
    context, manual = ManualEncoder() if with_data else TaskIndex(), ManualEncoder()
    nearest = NearestTaskGP(300, best_only=False, context=True, metric="l1", **plain)
    named = {
        "ABLR": (ABLR(**paper), N_PAST),
        "ABLR, meta-features": (ABLR(encoder=manual, **paper), N_PAST),
        "GP, contexts": (DistGP(context, **plain), N_CONTEXT),
        "GP, contexts, L1": (nearest, N_PAST),
        "bohamiann, contexts": (ContextBohamiann(**plain), N_CONTEXT),
        "ablr, zero head": (ABLR(**ours), N_PAST),
        "ablr, zero head, learned contexts": (ABLR(context="learned", **ours), N_PAST),
        "ablr, zero head, meta-features": (ABLR(encoder=manual, **ours), N_PAST),
        "dist-gp, 10 trials": (DistGP(context), N_CONTEXT),
    }
    plain = {name: (make_surrogate(name), N_PAST) for name in ("ablr", "bohamiann", "gp", "random")}
    return named | plain


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (suite, task, method, seed): one task of each suite, then the next one of each."""
    names = QUICK if quick else SUITES
    tasks = {
        n: logistic_names(folder) if n == LOGISTIC else list(suite(n, folder).tables) for n in names
    }
    found = [
        (name, tasks[name][number], method, seed)
        for seed in range(seeds)
        for number in range(N_QUICK if quick else N_TARGETS)
        for name in names
        for method in PAPER + OURS + WITH_DATA * (name == LOGISTIC) + SLOW * (seed < SLOW_SEEDS)
    ]
    if not quick:
        found += [(LOGISTIC, task, WITH_CONTEXT, 0) for task in tasks[LOGISTIC][:N_TARGETS]]
    return found


def run(name: str, task: str, method: str, seed: int, folder: Path) -> dict:
    surrogate, n_past = methods(name == LOGISTIC)[method]
    return _suites.scale(name, task, folder) | replay_search(
        name,
        task,
        surrogate,
        folder,
        seed=seed,
        n_trials=N_SHORT if method == WITH_CONTEXT else N_TRIALS,
        n_past=n_past,
    )


def paper_rows(rows: Rows) -> Rows:
    """Return the searches in which both methods of the paper were run, with those to compare."""
    runs = [
        {(r["suite"], r["task"], r["seed"]) for r in rows if r["method"] == method}
        for method in PAPER
    ]
    shown = [*PAPER, "ablr", "gp", "random"]
    done = [r for r in rows if (r["suite"], r["task"], r["seed"]) in runs[0] & runs[1]]
    return [r for r in done if r["method"] in shown]


def short_table(rows: Rows) -> list[str]:
    """Return regret and cost of BOHAMIANN with contexts, and of others in the same searches."""
    shown = [WITH_CONTEXT, *PAPER, *WITH_DATA[:2], "bohamiann", "gp"]
    chosen = [r for r in rows if r["method"] in shown and r["suite"] == LOGISTIC and not r["seed"]]
    if not any(r["method"] == WITH_CONTEXT for r in chosen):
        return []
    found = _suites.Comparison(chosen)
    lines = [
        f"## `{WITH_CONTEXT}` and others, {len(found.tasks)} tasks of `{LOGISTIC}`, one seed",
        "",
        f"Regret of `{WITH_CONTEXT}` after k trials, and how far the others are ahead of it in the "
        "same searches (positive is better), with 95 % intervals over the tasks. Seconds are those "
        f"of training and {N_SHORT} proposals.",
        "",
    ]
    body = []
    for method, regret in found.regret.items():
        own = [r for r in chosen if r["method"] == method]
        ahead = regret if method == WITH_CONTEXT else found.regret[WITH_CONTEXT] - regret
        spent = np.mean([r["learning"] + N_SHORT * r["proposing"] for r in own])
        body.append([method, *(interval(ahead[:, k - 1]) for k in AT_SHORT), f"{spent:.1f}"])
    return lines + markdown(["method", *(f"k = {k}" for k in AT_SHORT), "seconds"], body)


def claims_tables(rows: Rows) -> list[str]:
    """Return how far each method of the paper is ahead of others in the same searches."""
    lines = ["## Differences that the claims are about", ""]
    lines += [
        "Regret and rank after k trials minus those of the other method in the same searches, with "
        "95 % intervals over the tasks. Negative is better.",
        "",
    ]
    for lead, others in COMPARED.items():
        chosen = [row for row in rows if row["method"] in [lead, *others]]
        if {row["method"] for row in chosen} == {lead, *others}:
            found = _suites.Comparison(chosen)
            size = f"{len(found.tasks)} tasks, {_suites.seeds_in_words(chosen)}"
            lines += [f"### {lead}: {size}", ""]
            lines += _suites.differences(found, lead, AT)
    return lines


def tables(rows: Rows) -> list[str]:
    """Return tables of the paper's methods where they were run, then those of the others."""
    paper = paper_rows(rows)
    named = ("ABLR", "GP", WITH_CONTEXT)
    others = [r for r in rows if not r["method"].startswith(named)]
    title = f"# The methods of the paper, {_suites.seeds_in_words(paper)}" if paper else ""
    lines = [title, "", *_suites.tables(paper, AT)] if paper else []
    lines = ["#" * line.startswith("#") + line for line in lines]
    lines += claims_tables(rows) + short_table(rows)
    return lines + _suites.tables_in_two(others, SLOW, SLOW_SEEDS, AT)


EXPERIMENT = Experiment(
    title="ABLR, supplement B.3 and B.4 (Perrone et al. 2018)",
    about=(
        f"Each of the first {N_TARGETS} tasks of a suite is the target in turn, all others are "
        "past tasks. The tables of the paper (30 OpenML data sets, SVM and XGBoost) are not "
        "available. Here there are three suites of tables, of which only the evaluations are "
        f"known, and `{LOGISTIC}`: logistic regression with an elastic net on data sets, which "
        f"have meta-features. Its loss is the log loss. ABLR has {N_PAST} past evaluations of "
        "each task. `ABLR` and `GP, contexts` are the methods of the paper: low scores are not "
        "raised, there is no guard, heads have a prior mean of zero, and after each trial the "
        f"network is trained for {RETRAIN} more steps with the target as one more task. `ABLR, "
        "meta-features` has handcrafted contexts. `GP, contexts` is its GP transfer (ctx, "
        f"subsample): {N_CONTEXT} evaluations of each past task in one GP, with the meta-features "
        "as context where they are known and the task index elsewhere. `GP, contexts, L1` has up "
        "to "
        "300 of the nearest task. `ablr` is our version, with a shared head and a guard. `ablr, "
        "zero head` is that of the paper with a network that is not trained further, and raised "
        "low "
        "scores. `learned contexts` are four learned numbers per task (B.4). `dist-gp, 10 "
        "trials` is "
        "`GP, contexts` with a guard and raised low scores. `bohamiann` uses only the "
        "target. `bohamiann, contexts` is that of the paper, with 150 past evaluations in all and "
        f"{N_SHORT} trials. Regret is 0 for the best of a table and 1 "
        "for its median. The paper has no numbers. In its Figures 1 to 4 ABLR with transfer "
        "converges to the best optimum, both context GPs are similar and better than the plain "
        "one, and learned embeddings match meta-features (Figures 9 and 10). "
        "The figure shows the methods of the paper. Its bands are one standard error of the mean "
        "over the tasks."
    ),
    seeds=10,
    fields=("suite", "task", "method", "seed"),
    keys=keys,
    run=run,
    tables=tables,
    figure=lambda rows, file: _suites.figure(paper_rows(rows), file),
    needs=("classification", *(f"tables/{name}" for name in SUITES if name != LOGISTIC)),
)
