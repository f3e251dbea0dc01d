"""A hyperparameter's value: as plain Python, as plain data for a record, and its identity.

Three views of one value, because a value can be anything GridSearchCV accepts (a number, a tuple,
``None``, an estimator, a function):

* ``to_python(value)``: what reaches the estimator (no numpy scalars);
* ``describe(value)``: what reaches the disk (str, numbers, None, lists, dicts);
* ``identity(value)``: a hashable stand-in, equal for a live value and for its description.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np

from sktransfer.utils._hashing import has_name, kept_digest

Plain = None | bool | int | float | str | list | dict
_SAY_ALL = {"builtins", "datetime", "pathlib", "decimal", "fractions", "uuid", "numpy"}
"""Modules of types whose repr tells all of a value."""
_PROCESS = uuid.uuid4().hex[:12]


def to_python(value: Any) -> Any:
    """Unwrap numpy scalars, but moments, which Python has no equal of; anything else is returned as it is.

    >>> to_python(np.float64(0.5)), to_python((1, None))
    (0.5, (1, None))
    """
    unwrapped = isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64))
    return value.item() if unwrapped else value


def describe(value: Any) -> Plain:
    """Say what `value` is in plain data. Describing a description changes nothing.

    >>> from sklearn.svm import SVC
    >>> describe((50, np.int64(10))), describe(SVC())["class"]
    ([50, 10], 'SVC')
    """
    value = to_python(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return {"object": f"int {value}"}  # a record holds 64 bits
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return [describe(item) for item in value]
    if isinstance(value, np.ndarray):
        return describe(value.tolist())
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return {"object": _name_of(value)}
    # clone() keeps the parameters of an estimator, not its id: so does its description.
    params = {name: describe(item) for name, item in value.get_params(deep=False).items()}
    about: dict[str, Plain] = {"class": type(value).__qualname__, "params": params}
    # One that has its own way to be cloned may keep what it was fitted to, as a FrozenEstimator does.
    way = next((cls for cls in type(value).__mro__ if "__sklearn_clone__" in vars(cls)), None)
    usual = way is None or way.__name__ == "BaseEstimator"
    return about if usual else {**about, "content": kept_digest(value)}


def _name_of(thing: Any) -> str:
    """What tells this object from others: a name of its own, or what it looks like and holds."""
    if has_name(thing):
        return f"{thing.__module__}.{thing.__qualname__}"
    try:
        text = repr(thing)[:200]
    except Exception:  # of somebody else's code
        text = ""
    if " at 0x" in text or not text:
        text = getattr(thing, "__qualname__", type(thing).__qualname__)
    elif type(thing).__module__.partition(".")[0] in _SAY_ALL and not callable(thing):
        return text
    content = kept_digest(thing)
    # What cannot be seen must match nothing elsewhere.
    return f"{text} #{content[:12]}" if content else f"{text} {_PROCESS}-{id(thing):x}"


def identity(value: Any) -> Any:
    """Hashable stand-in for `value`. Types count: ``max_features=1`` is not ``max_features=1.0``.

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


def params_identity(params: Mapping[str, Any]) -> frozenset:
    """Identity of a whole configuration, whatever the order of its names."""
    return frozenset((name, identity(value)) for name, value in params.items())
