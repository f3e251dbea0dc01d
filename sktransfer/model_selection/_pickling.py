"""Say which attribute keeps a fit from being sent to another process."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

from sktransfer.model_selection._sklearn_compat import Fit

try:
    import cloudpickle
except ImportError:  # before 1.6, joblib brings its own copy
    from joblib.externals import cloudpickle

MAX_DEPTH = 6


def find_unpicklable(value: object, name: str) -> tuple[str, object] | None:
    """The innermost part of a value that cannot be pickled, with its name; None if all can.

    >>> import threading
    >>> class Model:
    ...     def __init__(self):
    ...         self.options = {"lock": threading.Lock()}
    >>> find_unpicklable(Model(), "model")[0]
    "model.options['lock']"
    """
    return _find(value, name, 0)


def _find(value: object, name: str, depth: int) -> tuple[str, object] | None:
    if _can_pickle(value):
        return None
    for part_name, part in _parts(value) if depth < MAX_DEPTH else ():
        found = _find(part, name + part_name, depth + 1)
        if found is not None:
            return found
    return name, value


def _can_pickle(value: object) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:  # objects raise what they like
        return False
    return True


def _parts(value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"[{number}]", part) for number, part in enumerate(value))
    else:
        yield from ((f".{key}", part) for key, part in getattr(value, "__dict__", {}).items())


def check_picklable(fit: Fit) -> None:
    """Raise a PicklingError that names the part of a fit that cannot be sent to a process."""
    _, args, keywords = fit
    parts = {
        "estimator": args[0] if args else None,
        "parameters": keywords.get("parameters"),
        "scoring": keywords.get("scorer"),
        "fit parameters": keywords.get("fit_params"),
    }
    for name, value in parts.items():
        found = find_unpicklable(value, name)
        if found is not None:
            where, part = found
            raise pickle.PicklingError(
                f"The fits cannot be sent to worker processes: {where} is a "
                f"{type(part).__name__}, which cannot be pickled. Remove it, or run the fits in "
                "threads with joblib.parallel_config(backend='threading'), or with n_jobs=1."
            )


def explain_unpicklable(error: Exception, fit: Fit) -> None:
    """Raise an error that names the part that cannot be pickled, if this is what went wrong."""
    if isinstance(error, pickle.PicklingError) or "pickle" in str(error).lower():
        check_picklable(fit)
