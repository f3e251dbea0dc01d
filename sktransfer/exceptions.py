"""Errors and warnings of this package.

Every warning derives from `SktransferWarning`, so that one filter silences or raises them all:
``warnings.filterwarnings("ignore", category=SktransferWarning)``.
"""

from __future__ import annotations

import os

__all__ = [
    "ArchiveWarning",
    "NewerFormatError",
    "RecordError",
    "ResumeWarning",
    "SktransferWarning",
    "SpaceWarning",
    "SurrogateWarning",
    "TransferWarning",
    "WorkersLostError",
]


class SktransferWarning(UserWarning):
    """Base class of all warnings of this package.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SktransferWarning)
    ...     warnings.warn("The archive cannot be read.", ArchiveWarning)
    """


class ArchiveWarning(SktransferWarning):
    """The archive, or a file in it, cannot be read or written. The search continues without it."""


class ResumeWarning(SktransferWarning):
    """``resume=True`` found no search to continue, or cannot continue it exactly."""


class SpaceWarning(SktransferWarning):
    """The search space is valid, but probably not what was meant."""


class TransferWarning(SktransferWarning):
    """Past tasks cannot be used, or data cannot be compared with those of past tasks."""


class SurrogateWarning(SktransferWarning):
    """A surrogate cannot be trained or used as intended. A simpler one takes its place."""


class WorkersLostError(RuntimeError):
    """The workers that a search runs on are gone, such as those of a cluster that was shut down."""


class RecordError(ValueError):
    """A file of the archive that is not a record, or a record that cannot be used.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> raise RecordError("tasks/a.joblib", "the file is empty")
    Traceback (most recent call last):
    sktransfer.exceptions.RecordError: tasks/a.joblib: the file is empty
    """

    advice = "Move it out of the archive or delete it to silence this warning."

    def __init__(self, path: str | os.PathLike[str], reason: str):
        super().__init__(os.fspath(path), reason)
        self.path = os.fspath(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class NewerFormatError(RecordError):
    """A record written by a later version of the package. The file is intact and is left as it is.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    found, known : int
        Format of the record, and the newest format that this version reads.

    Examples
    --------
    >>> raise NewerFormatError("tasks/a.joblib", 2, 1)
    Traceback (most recent call last):
    sktransfer.exceptions.NewerFormatError: tasks/a.joblib: the record has format 2, ...
    """

    advice = "Update sktransfer to use it; the file was left as it is."

    def __init__(self, path: str | os.PathLike[str], found: int, known: int):
        super().__init__(
            path, f"the record has format {found}, this version reads formats up to {known}"
        )
        self.found = found
        self.known = known

    def __reduce__(self) -> tuple[type, tuple[str, int, int]]:
        return type(self), (self.path, self.found, self.known)
