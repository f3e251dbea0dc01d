"""What a record calls the metrics of a search, and by which names later searches may ask for them.

A metric has scikit-learn's name wherever it has one, so that searches which said ``"f1"``,
``make_scorer(f1_score)`` and ``{"mine": "f1"}`` understand each other.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import get_scorer, get_scorer_names

from sktransfer.utils._hashing import digest


def tuned_metric(estimator: Any, scoring: Any, refit: Any) -> tuple[str, ...]:
    """Names by which archives may know the metric that a search tunes.

    What an estimator scores itself by is recorded as ``"score"``.

    >>> from sklearn.linear_model import Ridge
    >>> tuned_metric(Ridge(), None, True), tuned_metric(Ridge(), "neg_max_error", True)
    (('r2', 'score'), ('neg_max_error',))
    >>> tuned_metric(Ridge(), {"mine": "r2", "other": "neg_max_error"}, "mine")
    ('r2', 'score')
    """
    several = isinstance(scoring, Mapping | Sequence | set) and not isinstance(scoring, str)
    if isinstance(refit, str) and (several or callable(scoring)):  # a function may return several, too
        key = refit
    else:
        key = next(iter(scoring), "score") if several else "score"
    name, own = recorded_name(key, scoring), _own_metric(estimator)
    return (own, "score") if name in (own, "score") and own != "score" else (name,)


def recorded_name(key: str, scoring: Any) -> str:
    """What a record calls a metric that `cv_results_` knows by a key.

    >>> recorded_name("mine", {"mine": "f1"}), recorded_name("f1", ["f1"]), recorded_name("score", "f1")
    ('f1', 'f1', 'f1')
    """
    if isinstance(scoring, Mapping) and key in scoring:
        return scorer_name(scoring[key])
    return scorer_name(scoring) if key == "score" else key


def scorer_name(scoring: Any) -> str:
    """What a record calls the metric of a scorer; "score" is the estimator's own.

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
    if name == "<lambda>" or not hasattr(function, "__name__"):  # it is known by what it does
        name = f"{name} {_short_digest(function)}"
    options = ", ".join(f"{key}={_text(value)}" for key, value in _options(scoring).items())
    name = "neg_" * (getattr(scoring, "_sign", 1) < 0) + name + f"({options})" * bool(options)
    return f"own {name}" if _has_a_meaning(name) else name


def _options(scorer: Any) -> dict[str, Any]:
    options = getattr(scorer, "_kwargs", None)
    return options if isinstance(options, dict) else {}


def _text(value: Any) -> str:
    """Short, and the same in every process."""
    parts = value if isinstance(value, list | tuple) else [value]
    plain = all(part is None or isinstance(part, str | int | float) for part in parts)
    return text if plain and len(text := repr(value)) < 40 else _short_digest(value)


def _short_digest(value: Any) -> str:
    return (digest(value) or "unknown")[:8]


def recorded_metrics(by_key: Mapping[str, float], tuned: str, scoring: Any) -> dict[str, float]:
    """Mean scores by the names of a record, without the tuned metric itself.

    A key of the user's own is kept beside the recorded name.

    >>> recorded_metrics({"a": 0.9, "b": 0.8}, "a", {"a": "accuracy", "b": "roc_auc"})
    {'a': 0.9, 'b': 0.8, 'roc_auc': 0.8}
    """
    if not isinstance(scoring, Mapping):
        return {key: value for key, value in by_key.items() if key != tuned}
    names = {recorded_name(key, scoring): value for key, value in by_key.items()}
    metrics = {key: value for key, value in by_key.items() if not _has_a_meaning(key)} | names
    metrics.pop(recorded_name(tuned, scoring))  # that is the score itself
    return metrics


def _has_a_meaning(name: str) -> bool:
    """Whether it stands for one and the same metric in all searches."""
    return name == "score" or name in get_scorer_names()


def sklearn_name(scoring: Any) -> str | None:
    """The name of a metric, if it is one of scikit-learn's or a name already; None for other functions.

    >>> from sklearn.metrics import fbeta_score, log_loss, make_scorer
    >>> sklearn_name("mine"), sklearn_name(make_scorer(fbeta_score, beta=2))
    ('mine', None)
    >>> sklearn_name(make_scorer(log_loss))  # the larger the worse: nothing that is called so
    """
    if isinstance(scoring, str):
        return scoring
    same = _recipe(scoring)
    return None if same is None else next((n for n, recipe in _recipes().items() if recipe == same), None)


def _own_metric(estimator: Any) -> str:
    try:
        return "accuracy" if is_classifier(estimator) else "r2" if is_regressor(estimator) else "score"
    except AttributeError:  # of one that is no estimator of scikit-learn
        return "score"


@cache
def _recipes() -> dict[str, tuple]:
    """Name -> what makes that scorer, of each that scikit-learn has."""
    found = {name: _recipe(get_scorer(name)) for name in get_scorer_names()}
    return {name: recipe for name, recipe in found.items() if recipe is not None}


def _recipe(scorer: Any) -> tuple | None:
    """All that makes two scorers the same one; None of what `make_scorer` has not made."""
    try:
        function, sign, options = scorer._score_func, scorer._sign, scorer._kwargs
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not parameter.empty
        }
        # As text, since an array among the options would not say whether it is equal to another.
        options = {name: repr(value) for name, value in {**defaults, **options}.items()}
    except (AttributeError, TypeError, ValueError):
        return None
    if options.get("average", "'binary'") != "'binary'":
        options.pop("pos_label", None)  # then it says nothing
    return type(scorer), function, sign, getattr(scorer, "_response_method", None), options
