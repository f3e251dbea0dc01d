"""Hyperparameter values: as plain Python, as plain data for a record, and as a hashable key.

A value can be anything GridSearchCV accepts: a number, a tuple, ``None``, an estimator, a function.
There are three views of it:

* ``to_python(value)``: what the estimator gets (no numpy scalars);
* ``describe(value)``: what is written to disk (str, numbers, None, lists, dicts);
* ``identity(value)``: a hashable key, equal for a live value and for its description.
"""

from __future__ import annotations

import uuid
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from sktransfer.utils._hashing import cached_digest, has_importable_name

Plain = None | bool | int | float | str | list | dict
_MODULES_WITH_COMPLETE_REPR = {
    *("builtins", "datetime", "pathlib", "decimal", "fractions", "uuid", "numpy"),
}
"""Modules of types whose repr shows the whole value."""
_PROCESS_ID = uuid.uuid4().hex[:12]


def to_python(value: Any) -> Any:
    """Unwrap numpy scalars. Everything else is returned unchanged.

    So are numpy's dates and time spans, because Python has no exact equivalent of them.

    >>> to_python(np.float64(0.5)), to_python((1, None))
    (0.5, (1, None))
    """
    is_time = isinstance(value, (np.datetime64, np.timedelta64))
    return value.item() if isinstance(value, np.generic) and not is_time else value


def describe(value: object) -> Plain:
    """Describe a value as plain data. Describing a description changes nothing.

    >>> from sklearn.svm import SVC
    >>> describe((50, np.int64(10))), describe(SVC())["class"]
    ([50, 10], 'SVC')
    """
    value = to_python(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return {"object": f"int {value}"}  # records hold integers of 64 bits
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return [describe(item) for item in value]
    if isinstance(value, np.ndarray):
        return describe(value.tolist())
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return {"object": _describe_object(value)}
    # clone() keeps the parameters of an estimator, not its id, and so does the description.
    params = {name: describe(item) for name, item in value.get_params(deep=False).items()}
    description: dict[str, Plain] = {"class": type(value).__qualname__, "params": params}
    # An estimator that defines how it is cloned may keep its fitted state, as a FrozenEstimator
    # does.
    definers = (cls for cls in type(value).__mro__ if "__sklearn_clone__" in vars(cls))
    definer = next(definers, None)
    is_cloned_as_usual = definer is None or definer.__name__ == "BaseEstimator"
    return description if is_cloned_as_usual else {**description, "content": cached_digest(value)}


def _describe_object(value: Any) -> str:
    """Return a text that identifies the object: its name, or its repr and a digest."""
    if has_importable_name(value):
        return f"{value.__module__}.{value.__qualname__}"
    try:
        text = repr(value)[:200]
    except Exception:  # the user's __repr__ can raise anything
        text = ""
    if " at 0x" in text or not text:
        text = getattr(value, "__qualname__", type(value).__qualname__)
    elif type(value).__module__.partition(".")[0] in _MODULES_WITH_COMPLETE_REPR and not callable(
        value
    ):
        return text
    content = cached_digest(value)
    # An object without a digest must not match anything outside of this process.
    return f"{text} #{content[:12]}" if content else f"{text} {_PROCESS_ID}-{id(value):x}"


def identity(value: object) -> Hashable:
    """Return a hashable key of a value. Types count: ``max_features=1`` differs from ``1.0``.

    >>> identity(1) == identity(1.0), identity(1) == identity(True), identity((1,)) == identity([1])
    (False, False, True)
    """
    return _freeze(describe(value))


def _freeze(plain: Plain) -> Any:
    if isinstance(plain, dict):
        return ("dict", tuple(sorted((key, _freeze(item)) for key, item in plain.items())))
    if isinstance(plain, list):
        return ("list", tuple(_freeze(item) for item in plain))
    if isinstance(plain, float) and plain != plain:
        return ("float", "nan")
    return (type(plain).__name__, plain)


def params_identity(params: Mapping[str, object]) -> frozenset:
    """Return a hashable key of a configuration, independent of the order of its parameters."""
    return frozenset((name, identity(value)) for name, value in params.items())
