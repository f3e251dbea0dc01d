"""Warnings at the line of the user's program that caused them, and filters without torch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast

LIBRARIES = sys.stdlib_module_names | {"sktransfer", "sklearn", "joblib", "threadpoolctl"}
"""Packages whose frames lie between the user's line and the warning."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line that is not in this package or one that calls it.

    A fixed `stacklevel` does not find it, because the number of frames of scikit-learn and joblib
    in between differs.
    """
    warnings.warn(message, category, stacklevel=_user_level(sys._getframe(1)))


def _user_level(frame: FrameType) -> int:
    """The `stacklevel` of the user's line, counted from the caller of `frame`."""
    level, found = 2, frame
    while str(found.f_globals.get("__name__")).partition(".")[0] in LIBRARIES:
        if found.f_back is None:
            break
        level, found = level + 1, found.f_back
    return level


@contextmanager
def without_filters_of(package: str) -> Iterator[None]:
    """Leave out the warning filters whose category is a class of a package.

    scikit-learn sends the filters to every worker process, which imports the package to read them.
    torch adds such a filter when it is imported, and takes seconds and 200 MB in each worker.
    """
    filters: Any = warnings.filters  # typed as a sequence, but a list in every version of Python
    kept = [each for each in filters if each[2].__module__.partition(".")[0] != package]
    if len(kept) == len(filters):
        yield
        return
    with warnings.catch_warnings():
        cast(list, warnings.filters)[:] = kept
        yield
