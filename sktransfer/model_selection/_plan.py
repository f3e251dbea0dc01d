"""`SearchPlan`: everything that a search is asked to do, validated before the first fit."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from sktransfer.archive import Archive, check_overlap
from sktransfer.archive._locations import archive_directory
from sktransfer.dataset import check_keep
from sktransfer.exceptions import SpaceWarning
from sktransfer.model_selection._archive_faults import warn_of_faults
from sktransfer.model_selection._initial import parse_initial
from sktransfer.model_selection._sklearn_compat import BaseSearchCV
from sktransfer.model_selection._stopping import StoppingRule, can_limit_fits
from sktransfer.model_selection._suggest_space import suggest_space
from sktransfer.space import Estimator, Space, SpaceLike
from sktransfer.space._other_libraries import translate_space
from sktransfer.surrogates import Surrogate, check_surrogate, make_surrogate
from sktransfer.utils._metric_names import Scoring, tuned_metric
from sktransfer.utils._user_warnings import warn_user
from sktransfer.utils._values import params_identity

DEFAULT_N_ITER = 25
MIN_WORKER_USE = 0.8  # share of the workers' time that a batch must keep busy


@dataclass(frozen=True)
class SearchPlan:
    """What one search does. Made once, by `from_search`; nothing else reads the search object.

    Parameters
    ----------
    estimator : estimator object
    space : Space
    initial : list of dict
        The user's configurations, which are evaluated first.
    grid : list of dict or None
        All configurations, if they fit into the budget and are evaluated as GridSearchCV would.
        Those of `initial` come first.
    n_iter : int
        Configurations to evaluate.
    n_splits, n_workers : int
    batch_size : int, "async" or None
        As the user passed it.
    is_async : bool
        Whether a candidate is proposed as soon as a worker is free.
    stopping : StoppingRule
        When no further batch is started.
    fit_timeout : float or None
        Seconds after which a single fit fails.
    archive : Archive or None
    surrogate : str or Surrogate
        As the user passed it.
    model : Surrogate or None
        A new surrogate with valid parameters; None for a grid.
    metrics : tuple of str
        Names of the metric that is optimized, as archives may know it.
    scoring, refit, error_score : as in GridSearchCV
    return_train_score, resume, racing, verbose : bool
    seed : int or None
        Seed of the proposals; None for a grid.
    fixed_seed : int or None
        The seed if the user fixed it; None if ``random_state=None``.
    name : str
        Name of the record.
    """

    estimator: Estimator
    space: Space
    initial: list[dict[str, Any]]
    grid: list[dict[str, Any]] | None
    n_iter: int
    n_splits: int
    n_workers: int
    batch_size: int | str | None
    is_async: bool
    stopping: StoppingRule
    fit_timeout: float | None
    archive: Archive | None
    surrogate: str | Surrogate
    model: Surrogate | None
    metrics: tuple[str, ...]
    scoring: Scoring
    refit: object
    error_score: float | str
    return_train_score: bool
    resume: bool
    racing: bool
    verbose: bool
    seed: int | None
    fixed_seed: int | None
    name: str = ""

    @classmethod
    def from_search(
        cls, search: BaseSearchCV, n_splits: int, can_be_async: bool = False
    ) -> SearchPlan:
        """Read and validate the parameters of a `TransferSearchCV`.

        `can_be_async` says whether the workers hand back results as they come.
        """
        archive = open_archive(search.archive)
        space = parse_space(search.space, search.estimator, archive)
        _check_possible(search)
        check_surrogate(search.surrogate)
        initial = parse_initial(search.initial, space, search.estimator)
        if len(initial) > search.n_iter:
            raise ValueError(
                f"initial has {len(initial)} configurations, more than n_iter={search.n_iter}."
            )
        grid = _whole_grid(space, initial, search.n_iter)
        _mention_size(space.size if grid is None else len(grid), search.n_iter, search.verbose > 0)
        model = make_surrogate(search.surrogate) if grid is None else None
        if model is not None:
            model.check_params()
        seed = None if model is None else check_random_state(search.random_state).randint(2**31 - 1)
        return cls(
            estimator=search.estimator,
            space=space,
            initial=initial,
            grid=grid,
            n_iter=search.n_iter if grid is None else len(grid),
            n_splits=n_splits,
            n_workers=effective_n_jobs(search.n_jobs),
            batch_size=search.batch_size,
            is_async=can_be_async and model is not None and wants_async(search),
            stopping=StoppingRule(
                math.inf if search.timeout is None else time.monotonic() + search.timeout,
                search.patience,
                search.target_score,
            ),
            fit_timeout=search.fit_timeout,
            archive=archive,
            surrogate=search.surrogate,
            model=model,
            metrics=tuned_metric(search.estimator, search.scoring, search.refit),
            scoring=search.scoring,
            refit=search.refit,
            error_score=search.error_score,
            return_train_score=search.return_train_score,
            resume=search.resume,
            racing=search.racing,
            verbose=search.verbose > 0,
            seed=seed,
            fixed_seed=_fixed_seed(search.random_state, seed),
            name=search.name or "",
        )

    @property
    def fixed_batch_size(self) -> int | None:
        """Candidates proposed at a time, unless the number of workers decides."""
        if self.is_async:
            return 1
        return self.batch_size if isinstance(self.batch_size, int) else None

    @property
    def uses_past_tasks(self) -> bool:
        return self.model is not None and self.model.uses_past_tasks


def _check_possible(search: BaseSearchCV) -> None:
    """Raise a ValueError for parameters that do not go together or with this platform."""
    if search.resume and search.archive is None:
        raise ValueError("resume=True needs an archive to resume from, but archive=None.")
    if search.fit_timeout is not None and not can_limit_fits():
        raise ValueError("fit_timeout needs signal.setitimer, which this platform lacks.")


def wants_async(search: BaseSearchCV) -> bool:
    """Whether candidates are proposed as soon as a worker is free.

    Then the order in which evaluations end has an influence, which a fixed seed rules out.
    """
    is_open = search.batch_size is None and search.random_state is None
    return effective_n_jobs(search.n_jobs) > 1 and (is_open or search.batch_size == "async")


def _whole_grid(
    space: Space, initial: list[dict[str, Any]], n_iter: int
) -> list[dict[str, Any]] | None:
    """All configurations of the space, those of the user first, if they fit into the budget."""
    if space.size is None or space.size > n_iter:
        return None
    known = {params_identity(params) for params in initial}
    others = [params for params in space.grid() if params_identity(params) not in known]
    return initial + others if len(initial) + len(others) <= n_iter else None


def _mention_size(size: int | None, n_iter: int, is_verbose: bool) -> None:
    """Warn if a finite space is smaller than the budget, print if it is larger."""
    if size is None:
        return
    if size > n_iter and is_verbose:
        print(f"Evaluating {n_iter} of {size} configurations. n_iter={size} evaluates all of them.")
    # The default budget is not the user's choice, and GridSearchCV does not warn either.
    if size < n_iter != DEFAULT_N_ITER:
        warn_user(
            f"The total space of parameters {size} is smaller than n_iter={n_iter}. Running {size} "
            "iterations, which is the whole grid.",
            SpaceWarning,
        )


def _fixed_seed(random_state: int | np.random.RandomState | None, seed: int | None) -> int | None:
    """An integer itself; what a RandomState gave; None if the user left the seed open."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return random_state
    return seed


def parse_space(
    space: SpaceLike | str, estimator: Estimator, archive: Archive | None = None
) -> Space:
    """The user's space. scikit-learn validates a grid, so that the errors are its own."""
    # "auto" is the only text that a search accepts.
    is_auto = isinstance(space, str)
    given = suggest_space(estimator, archive=archive) if is_auto else translate_space(space)
    branches = given if isinstance(given, list) else [given]
    entries = [
        entry for branch in branches if isinstance(branch, dict) for entry in branch.values()
    ]
    if entries and all(map(_may_be_in_grid, entries)):
        ParameterGrid(given)
    return Space.parse(given, estimator)


def _may_be_in_grid(entry: object) -> bool:
    """Whether an entry is a list, or what a user may have forgotten to put into one."""
    return isinstance(entry, Sequence | np.ndarray | Number | None) or hasattr(entry, "tolist")


def open_archive(archive: str | os.PathLike[str] | Archive | None) -> Archive | None:
    """The archive to use. An impossible path is an error, an archive out of reach a warning."""
    if archive is None:
        return None
    given = archive if isinstance(archive, Archive) else Archive(archive)
    if given.is_switched_off:
        return None
    check_keep(given.keep)
    check_overlap(given.overlap)
    if problem := _find_path_problem(given):
        raise NotADirectoryError(
            f"archive={archive!r} cannot be used: {problem}. Pass a directory, which may be new, "
            "or None."
        )
    with warn_of_faults(
        f"archive={archive!r} is out of reach", "The search continues without an archive."
    ):
        opened = given.resolved()
        len(opened)
        return opened
    return None


def _find_path_problem(archive: Archive) -> NotADirectoryError | None:
    """The error of a path that cannot be a directory; None if there is none, or another one."""
    try:
        archive_directory(archive.path or "")
    except NotADirectoryError as error:
        return error
    except Exception:  # such as no home directory: no mistake of the user
        return None
    return None


def default_batch_size(n_workers: int, n_splits: int) -> int:
    """The smallest batch whose fits keep at least four fifths of the workers' time in use.

    >>> default_batch_size(1, 5), default_batch_size(2, 5), default_batch_size(8, 5)
    (1, 1, 3)
    """
    for size in range(1, n_workers + 1):
        fits = size * max(1, n_splits)  # without folds, scikit-learn raises its own error
        if fits / (math.ceil(fits / n_workers) * n_workers) >= MIN_WORKER_USE:
            return size
    return n_workers
