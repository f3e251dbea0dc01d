"""Warnings that point to the line of the user's program that caused them."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

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
