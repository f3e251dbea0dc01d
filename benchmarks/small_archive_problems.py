"""What `benchmarks.small_archives` tunes, and one search of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectPercentile
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.data import load_classification
from sktransfer import Space, Task, TransferOptimizer, profile
from sktransfer.dataset import DatasetProfile
from sktransfer.surrogates import make_surrogate

SCORING = "balanced_accuracy"
MAX_ROWS, N_FOLDS = 200, 3


class Problem(NamedTuple):
    """What is tuned.

    Parameters
    ----------
    estimator : estimator
    space : dict
    surrogate : str
    past : str
        The problem of the past searches.
    has_starter : bool
        Whether the starter archive knows the estimator.
    """

    estimator: BaseEstimator
    space: Mapping[str, Any]
    surrogate: str
    past: str
    has_starter: bool


_KERNEL = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 1e1)}
_BOOSTING = {
    "learning_rate": loguniform(1e-3, 1),
    "num_leaves": randint(2, 65),
    "min_child_samples": randint(1, 61),
    "reg_lambda": loguniform(1e-3, 1e2),
    "colsample_bytree": uniform(0.1, 0.9),
}
_TREE = {
    "max_depth": randint(1, 21),
    "min_samples_leaf": randint(1, 61),
    "max_features": uniform(0.1, 0.9),
    "ccp_alpha": loguniform(1e-5, 1e-1),
    "criterion": ["gini", "entropy"],
}
_SVC = SVC(max_iter=5000)


@lru_cache
def problems() -> dict[str, Problem]:
    """All problems by name."""
    from lightgbm import LGBMClassifier

    boosting = LGBMClassifier(n_estimators=20, subsample_freq=0, n_jobs=1, verbose=-1)
    tree = DecisionTreeClassifier(random_state=0)
    behind = {f"svc__{name}": values for name, values in _KERNEL.items()}
    selected = make_pipeline(StandardScaler(), SelectPercentile(), _SVC)
    with_selection = {"selectpercentile__percentile": uniform(5, 95), **behind}
    return {
        "SVC": Problem(_SVC, _KERNEL, "auto", "SVC", True),
        "SVC, no pretraining": Problem(_SVC, _KERNEL, "task-prior", "SVC", True),
        "tree": Problem(tree, _TREE, "auto", "tree", True),
        "LightGBM": Problem(boosting, _BOOSTING, "auto", "LightGBM", False),
        "selection + SVC": Problem(selected, with_selection, "auto", "scaled SVC", True),
        "selection + SVC, no pretraining": Problem(
            selected, with_selection, "task-prior", "scaled SVC", True
        ),
        "scaled SVC": Problem(
            make_pipeline(StandardScaler(), _SVC), behind, "auto", "scaled SVC", True
        ),
    }


TARGET_PROBLEMS = [
    "LightGBM",
    "SVC",
    "tree",
    "selection + SVC",
    "SVC, no pretraining",
    "selection + SVC, no pretraining",
]


def space_of(problem: str) -> Space:
    """The space of a problem, parsed for its estimator."""
    return Space.parse(problems()[problem].space, problems()[problem].estimator)


@lru_cache(maxsize=128)
def load(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """X and y of a data set."""
    return load_classification(name, folder, MAX_ROWS)


@lru_cache(maxsize=128)
def profile_of(name: str, folder: Path) -> DatasetProfile:
    """The profile of a data set."""
    return profile(*load(name, folder))


def evaluate(problem: str, params: Mapping[str, Any], X: np.ndarray, y: np.ndarray) -> float:
    """The score of a configuration in cross-validation; NaN if a fit fails."""
    candidate = clone(problems()[problem].estimator).set_params(**params)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return float(cross_val_score(candidate, X, y, cv=folds, scoring=SCORING).mean())


def search(
    problem: str, data: str, past: Sequence[Task], folder: Path, seed: int, n_trials: int
) -> dict[str, Any]:
    """Configurations, scores and origins of a search."""
    optimizer = TransferOptimizer(
        space_of(problem),
        past,
        profile=profile_of(data, folder),
        surrogate=make_surrogate(problems()[problem].surrogate),
        metric=SCORING,
        random_state=seed,
    )
    X, y = load(data, folder)
    trials, scores, origins = [], [], []
    for _ in range(n_trials):
        [proposal] = optimizer.propose()
        trials.append(proposal.params)
        scores.append(evaluate(problem, proposal.params, X, y))
        origins.append(proposal.origin.partition(" ")[0])
        optimizer.tell(proposal.params, scores[-1])
    return {"trials": trials, "scores": [round(z, 5) for z in scores], "origins": origins}
