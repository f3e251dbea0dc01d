"""Perrone et al. 2018, supplement B.4, Figures 7 to 10: task embeddings of another estimator."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.papers import _suites
from benchmarks.papers._experiment import Experiment, Rows, interval, markdown
from benchmarks.papers._replay import learned, replay_search, suite
from benchmarks.papers._starter_tables import PREFIX
from benchmarks.papers.ablr import RETRAIN
from sktransfer.encoders import ManualEncoder
from sktransfer.surrogates import ABLR, Surrogate, make_surrogate

BOOSTING = f"{PREFIX}HistGradientBoostingClassifier"
FOREST, SVM = f"{PREFIX}RandomForestClassifier", f"{PREFIX}SVC"
SOURCE = {SVM: BOOSTING, BOOSTING: FOREST}
"""Estimator -> that whose embeddings it uses, as in the paper."""
N_TRIALS, N_PAST, N_TARGETS, N_QUICK = 15, 60, 4, 1
AT = [1, 2, 3, 5, 10, 15]
METHODS = ["ABLR", "ABLR, meta-features", "ABLR, embeddings", "gp", "random"]
PAPER = {"head": "zero", "retrain": RETRAIN, "guard": False, "winsorize": False}
NONE = "none of them"  # the target of an embedding that is learned from all data sets


@lru_cache(maxsize=4)
def embeddings(name: str, seed: int, folder: Path) -> dict[str, np.ndarray]:
    """Return contexts that are learned with the network from all tasks of an estimator."""
    first_stage = ABLR(context="learned", **PAPER | {"retrain": 0})
    return learned(name, NONE, first_stage, seed, N_PAST, folder)[0].embeddings_


@lru_cache(maxsize=64)
def surrogate_of(method: str, name: str, seed: int, folder: Path) -> Surrogate:
    if method == "ABLR, embeddings":
        return ABLR(embeddings=embeddings(SOURCE[name], seed, folder), **PAPER)
    if method == "ABLR, meta-features":
        return ABLR(encoder=ManualEncoder(), **PAPER)
    return ABLR(**PAPER) if method == "ABLR" else make_surrogate(method)


def targets(name: str, folder: Path) -> list[str]:
    """Return data sets on which both estimators were tuned, spread over the alphabet."""
    common = [t for t in suite(name, folder).tables if t in suite(SOURCE[name], folder).tables]
    return common[:: max(1, len(common) // N_TARGETS)][:N_TARGETS]


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    """Return (suite, task, method, seed): one task of each suite, then the next one of each."""
    return [
        (name, task, method, seed)
        for seed in range(seeds)
        for pair in zip(*(targets(name, folder) for name in SOURCE), strict=True)
        for name, task in zip(SOURCE, pair, strict=True)
        for method in METHODS
        if not quick or task in targets(name, folder)[:N_QUICK]
    ]


def run(name: str, task: str, method: str, seed: int, folder: Path) -> dict:
    surrogate = surrogate_of(method, name, seed, folder)
    return _suites.scale(name, task, folder) | replay_search(
        name, task, surrogate, folder, seed=seed, n_trials=N_TRIALS, n_past=N_PAST
    )


def differences(rows: Rows) -> list[str]:
    """Return the regret of the embeddings minus that of the other forms, over the targets."""
    found = _suites.Comparison(rows)
    ours, at = "ABLR, embeddings", [k for k in AT if k <= N_TRIALS]
    body = [
        [other, *(interval((found.regret[ours] - regret)[:, k - 1]) for k in at)]
        for other, regret in found.regret.items()
        if other != ours
    ]
    size = f"{len(found.tasks)} tasks, {_suites.seeds_in_words(rows)}"
    lines = [f"## Regret of `{ours}` minus that of others, with a 95 % interval over {size}", ""]
    return lines + markdown(["other", *(f"k = {k}" for k in at)], body)


EXPERIMENT = Experiment(
    title="ABLR, supplement B.4: embeddings of another estimator (Perrone et al. 2018)",
    about=(
        "Two stages. First, contexts of four numbers for each data set are learned together with "
        "the network from the trials of one estimator. Then they are fixed, and a new network "
        "with them as contexts is trained for another estimator on the other data sets. The "
        "target's context is known from the first stage, since the first estimator was tuned on "
        "it, too. As in the paper the SVM uses those of boosting, and boosting those of the "
        "forest. The trials are those of the starter archive: 40 to 60 of each of the estimators "
        "`SVC` (three kernels), `HistGradientBoostingClassifier` and `RandomForestClassifier`, "
        "on one data set of each family. (Paper: 30 OpenML data sets, of which about 15 are "
        f"common, and the four meta-features of OpenML.) A search has {N_TRIALS} trials among the "
        "stored ones, and the score is the balanced accuracy. All forms of `ABLR` are those of "
        "the paper: no guard, low scores not raised, a prior mean of zero, and training with the "
        f"target for {RETRAIN} steps after each trial. `meta-features` are all of a profile. The "
        "paper has no numbers: in Figures 7 to 10 learned embeddings are competitive with "
        "meta-features. Bands in the figure are one standard error of the mean over the tasks."
    ),
    seeds=3,
    fields=("suite", "task", "method", "seed"),
    keys=keys,
    run=run,
    tables=lambda rows: differences(rows) + _suites.tables(rows, AT),
    figure=_suites.figure,
    needs=("classification",),
)
