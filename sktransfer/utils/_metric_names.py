"""Names of metrics: how a record calls the metrics of a search, and how later searches find them.

A metric has scikit-learn's name wherever it has one. So ``"f1"``, ``make_scorer(f1_score)`` and
``{"mine": "f1"}`` are one metric.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.metrics import get_scorer, get_scorer_names

from sktransfer.utils._hashing import digest

Scorer = str | Callable[..., Any] | None
Scoring = Scorer | Iterable[str] | Mapping[str, Scorer]
"""The parameter ``scoring`` of a search."""


def tuned_metric(
    estimator: BaseEstimator, scoring: Scoring, refit: bool | str | Callable[..., int]
) -> tuple[str, ...]:
    """Names under which archives may know the metric that a search optimizes.

    The metric of an estimator's own ``score`` method is recorded as ``"score"``.

    >>> from sklearn.linear_model import Ridge
    >>> tuned_metric(Ridge(), None, True), tuned_metric(Ridge(), "neg_max_error", True)
    (('r2', 'score'), ('neg_max_error',))
    >>> tuned_metric(Ridge(), {"mine": "r2", "other": "neg_max_error"}, "mine")
    ('r2', 'score')
    """
    is_multiple = isinstance(scoring, Mapping | Sequence | set) and not isinstance(scoring, str)
    if isinstance(refit, str) and (is_multiple or callable(scoring)):
        key = refit  # a callable may return several metrics too
    else:
        key = next(iter(scoring), "score") if is_multiple else "score"  # type: ignore[arg-type]
    name, default = recorded_name(key, scoring), _default_metric(estimator)
    is_default = name in (default, "score") and default != "score"
    return (default, "score") if is_default else (name,)


def recorded_name(key: str, scoring: Scoring) -> str:
    """Name in a record of the metric that `cv_results_` has under a key.

    >>> recorded_name("mine", {"mine": "f1"}), recorded_name("f1", ["f1"])
    ('f1', 'f1')
    >>> recorded_name("score", "f1")
    'f1'
    """
    if isinstance(scoring, Mapping) and key in scoring:
        return scorer_name(scoring[key])
    return scorer_name(scoring) if key == "score" else key


def scorer_name(scoring: Scoring) -> str:
    """Name in a record of a scorer's metric; "score" if it is not a scorer.

    >>> from sklearn.metrics import f1_score, fbeta_score, make_scorer
    >>> scorer_name("f1"), scorer_name(make_scorer(f1_score)), scorer_name(None)
    ('f1', 'f1', 'score')
    >>> scorer_name(make_scorer(fbeta_score, beta=2, greater_is_better=False))
    'neg_fbeta_score(beta=2)'
    """
    if (known := sklearn_name(scoring)) is not None or not callable(scoring):
        return known or "score"
    function = getattr(scoring, "_score_func", scoring)
    name = str(getattr(function, "__name__", type(function).__name__))
    if name == "<lambda>" or not hasattr(function, "__name__"):
        name = f"{name} {_short_digest(function)}"
    options = ", ".join(f"{key}={_format(value)}" for key, value in _options(scoring).items())
    sign = "neg_" if getattr(scoring, "_sign", 1) < 0 else ""
    name = f"{sign}{name}({options})" if options else f"{sign}{name}"
    return f"own {name}" if _is_standard_name(name) else name


def _options(scorer: Callable[..., Any]) -> dict[str, Any]:
    options = getattr(scorer, "_kwargs", None)
    return options if isinstance(options, dict) else {}


def _format(value: object) -> str:
    """Format an option of a scorer: a short text that is the same in every process."""
    parts = value if isinstance(value, list | tuple) else [value]
    is_plain = all(part is None or isinstance(part, str | int | float) for part in parts)
    return text if is_plain and len(text := repr(value)) < 40 else _short_digest(value)


def _short_digest(value: object) -> str:
    return (digest(value) or "unknown")[:8]


def recorded_metrics(
    by_key: Mapping[str, float], optimized: str, scoring: Scoring
) -> dict[str, float]:
    """Mean scores by their names in a record, without the metric that is optimized.

    A metric to which the user gave a name is recorded under that name as well.

    >>> recorded_metrics({"a": 0.9, "b": 0.8}, "a", {"a": "accuracy", "b": "roc_auc"})
    {'a': 0.9, 'b': 0.8, 'roc_auc': 0.8}
    """
    if not isinstance(scoring, Mapping):
        return {key: value for key, value in by_key.items() if key != optimized}
    names = {recorded_name(key, scoring): value for key, value in by_key.items()}
    metrics = {key: value for key, value in by_key.items() if not _is_standard_name(key)} | names
    metrics.pop(recorded_name(optimized, scoring))  # that is the score itself
    return metrics


def _is_standard_name(name: str) -> bool:
    """Whether the name means the same metric in all searches."""
    return name == "score" or name in get_scorer_names()


def sklearn_name(scoring: Scoring) -> str | None:
    """scikit-learn's name of a scorer; a string is returned as it is; None for anything else.

    >>> from sklearn.metrics import fbeta_score, log_loss, make_scorer
    >>> sklearn_name("mine"), sklearn_name(make_scorer(fbeta_score, beta=2))
    ('mine', None)
    >>> sklearn_name(make_scorer(log_loss))  # not "neg_log_loss": its sign is missing
    """
    if isinstance(scoring, str):
        return scoring
    recipe = _scorer_recipe(scoring)
    if recipe is None:
        return None
    return next((name for name, known in _sklearn_recipes().items() if known == recipe), None)


def _default_metric(estimator: BaseEstimator) -> str:
    """Name of the metric of an estimator's own ``score`` method."""
    try:
        if is_classifier(estimator):
            return "accuracy"
        return "r2" if is_regressor(estimator) else "score"
    except AttributeError:  # not an estimator of scikit-learn
        return "score"


@cache
def _sklearn_recipes() -> dict[str, tuple]:
    found = {name: _scorer_recipe(get_scorer(name)) for name in get_scorer_names()}
    return {name: recipe for name, recipe in found.items() if recipe is not None}


def _scorer_recipe(scorer: Any) -> tuple | None:
    """Everything that two equal scorers have in common; None if `make_scorer` did not make it."""
    try:
        function, sign, options = scorer._score_func, scorer._sign, scorer._kwargs
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not parameter.empty
        }
        # Options are compared as text, because the comparison of arrays yields an array.
        options = {name: repr(value) for name, value in {**defaults, **options}.items()}
    except (AttributeError, TypeError, ValueError):
        return None
    if options.get("average", "'binary'") != "'binary'":
        options.pop("pos_label", None)  # it is ignored then
    return type(scorer), function, sign, getattr(scorer, "_response_method", None), options
