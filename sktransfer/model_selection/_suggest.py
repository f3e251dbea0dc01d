"""`suggest`: configurations for new data without a single evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone
from sklearn.utils import check_random_state

from sktransfer.archive import select_past_tasks
from sktransfer.dataset import profile
from sktransfer.model_selection._run_parts import open_archive, parse_space
from sktransfer.model_selection._sklearn_compat import enclosing_data
from sktransfer.model_selection._surrogate_cache import learn
from sktransfer.optimizer import Suggestion, TransferOptimizer
from sktransfer.task import Task
from sktransfer.utils._metric_names import tuned_metric


def suggest(
    estimator: Any,
    space: Any,
    X: Any,
    y: Any = None,
    *,
    n: int = 1,
    archive: Any = "auto",
    surrogate: Any = "auto",
    scoring: Any = None,
    random_state: Any = None,
) -> list[Suggestion]:
    """Suggest configurations of an estimator for new data, from past tunings alone.

    Nothing is fitted to (X, y) and nothing is written, except that a meta-model that had to be trained
    is kept in the archive's cache.

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
        The past tunings. Those that share rows with (X, y) have no say.
    surrogate : str or Surrogate
    scoring : str, callable, list, tuple, dict or None
        What the score is to be, as in `TransferSearchCV`; of several metrics the first counts.
    random_state : int, RandomState instance or None

    Returns
    -------
    list of Suggestion
        Each with ``params``, the predicted score ``mean`` and its ``std``, the ``sources`` it rests on (past
        tasks and their similarity, most similar first) and a ``note``, which says so where there is nothing
        similar and the configuration is the estimator's own default.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from sktransfer import suggest
    >>> [found] = suggest(SVC(), {"C": [0.1, 1, 10]}, *load_iris(return_X_y=True), archive=None)
    >>> found.params, found.note
    ({'C': 1.0}, 'nothing similar: these are the defaults')
    """
    opened = open_archive(archive)
    metric = tuned_metric(estimator, scoring, True)
    return suggest_from(estimator, space, X, y, n, opened, surrogate, metric, random_state)


def suggest_from(
    estimator: Any,
    space: Any,
    X: Any,
    y: Any,
    n: int,
    archive: Any,
    surrogate: Any,
    metric: Sequence[str],
    random_state: Any,
    own: Sequence[Task] = (),
) -> list[Suggestion]:
    """As `suggest`, with an opened archive and tasks that may not be in it."""
    parsed = parse_space(space, estimator)
    data = profile(X, y, keep="sample", enclosing=enclosing_data())  # nothing of it is written
    if archive is None:
        selection = select_past_tasks(own, parsed, data, 0.01)
    else:
        selection = archive.select(parsed, data, extra_tasks=own)
    optimizer = TransferOptimizer(
        parsed,
        selection.used,
        profile=data,
        surrogate=surrogate,
        metric=metric,
        random_state=check_random_state(random_state).randint(2**31 - 1),
    )
    learn(optimizer, archive)
    return optimizer.suggest(n=n, defaults=_defaults(clone(estimator), parsed))


def _defaults(estimator: Any, space: Any) -> dict[str, Any]:
    """The estimator's own values of what the first branch of the space tunes."""
    params = estimator.get_params(deep=True)
    return {name: params[name] for name in space.branches[0] if name in params}
