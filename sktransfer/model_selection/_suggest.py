"""`suggest`: configurations for new data without a single evaluation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state

from sktransfer.archive import Archive, select_past_tasks
from sktransfer.dataset import MatrixLike, TargetLike, profile, target_kind
from sktransfer.model_selection._archive_faults import warn_of_faults
from sktransfer.model_selection._continued_training import model_folders
from sktransfer.model_selection._mlflow import pause_autologging
from sktransfer.model_selection._plan import open_archive, parse_space
from sktransfer.model_selection._similar_data import limit_past_tasks, needs_starter
from sktransfer.model_selection._sklearn_compat import enclosing_data
from sktransfer.model_selection._surrogate_cache import fit_or_load
from sktransfer.optimizer import Suggestion, TransferOptimizer
from sktransfer.space import Estimator, Space, SpaceLike
from sktransfer.surrogates import Surrogate, make_surrogate
from sktransfer.task import Task
from sktransfer.utils._metric_names import Scoring, tuned_metric


def suggest(
    estimator: Estimator,
    space: SpaceLike | str,
    X: MatrixLike,
    y: TargetLike = None,
    *,
    n: int = 1,
    archive: str | os.PathLike[str] | Archive | None = "auto",
    surrogate: str | Surrogate = "auto",
    scoring: Scoring = None,
    random_state: object = None,
) -> list[Suggestion]:
    """Suggest configurations of an estimator for new data, from past searches alone.

    Nothing is fitted to (X, y) and nothing is written, except that a newly trained surrogate is
    stored in the archive's model cache.

    Parameters
    ----------
    estimator : estimator object
    space : dict, list of dict, Space or "auto"
        As in `TransferSearchCV`.
    X, y : array-like
        The new data.
    n : int
        How many configurations, best first.
    archive : {"auto"}, path, Archive or None
        The past searches. Those that share rows with (X, y) are excluded.
    surrogate : str or Surrogate
    scoring : str, callable, list, tuple, dict or None
        What the score is, as in `TransferSearchCV`. With several metrics the first counts. An
        unknown name is an error.
    random_state : int, RandomState instance or None

    Returns
    -------
    list of Suggestion
        Each has ``params``, the predicted score ``mean`` and its ``std``, the ``sources`` it is
        based on (past tasks and their similarity, most similar first) and a ``note``. Where no past
        task is similar, the note says so, and the first configuration is the estimator's own
        default.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from sktransfer import suggest
    >>> [found] = suggest(SVC(), {"C": [0.1, 1, 10]}, *load_iris(return_X_y=True), archive=None)
    >>> found.note
    'from the pretrained model'
    """
    if scoring is not None:
        check_scoring(estimator, scoring)  # raises scikit-learn's own error
    return suggest_for(
        estimator,
        space,
        X,
        y,
        n=n,
        archive=open_archive(archive),
        surrogate=surrogate,
        metric=tuned_metric(estimator, scoring, True),
        random_state=random_state,
    )


def suggest_for(
    estimator: Estimator,
    space: SpaceLike | str,
    X: MatrixLike,
    y: TargetLike,
    *,
    n: int,
    archive: Archive | None,
    surrogate: str | Surrogate,
    metric: Sequence[str],
    random_state: object,
    extra_tasks: Sequence[Task] = (),
) -> list[Suggestion]:
    """As `suggest`, with an opened archive, and with tasks that may not be in it."""
    parsed = parse_space(space, estimator, archive)
    with pause_autologging():
        kind, enclosing = target_kind(estimator), enclosing_data()
        data = profile(X, y, keep="sample", enclosing=enclosing, kind=kind)  # nothing is written
    selection = select_past_tasks(extra_tasks, parsed, data, "exclude")
    if archive is not None:
        with warn_of_faults(f"{archive!r} cannot be read", "Nothing is learned from it."):
            model, folders = make_surrogate(surrogate), model_folders(archive)
            limit = limit_past_tasks(model, data, folders)
            starter = needs_starter(model, parsed, data, metric, folders)
            selection = archive.select(
                parsed, data, extra_tasks=extra_tasks, limit=limit, starter=starter
            )
    optimizer = TransferOptimizer(
        parsed,
        selection.used,
        profile=data,
        surrogate=surrogate,
        metric=metric,
        random_state=check_random_state(random_state).randint(2**31 - 1),
    )
    fit_or_load(optimizer, archive)
    return optimizer.suggest(n=n, defaults=_defaults(clone(estimator), parsed))


def _defaults(estimator: Estimator, space: Space) -> dict[str, Any]:
    """The estimator's own values of the parameters in the first branch of the space."""
    params = estimator.get_params(deep=True)
    return {name: params[name] for name in space.branches[0] if name in params}
