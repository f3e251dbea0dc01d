"""What can be wrong with a record, said so that the reader of the message knows what to do."""

from __future__ import annotations

import os


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
    sktransfer.archive._errors.RecordError: tasks/a.joblib: the file is empty
    """

    advice = "Move it out of the archive or delete it, and this warning ends."

    def __init__(self, path: str | os.PathLike[str], reason: str):
        super().__init__(os.fspath(path), reason)
        self.path = os.fspath(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class NewerFormatError(RecordError):
    """A record that a later version of the package wrote. The file is in order and stays as it is.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    found, known : int
        Format of the record, and the newest one this version reads.

    Examples
    --------
    >>> raise NewerFormatError("tasks/a.joblib", 2, 1)
    Traceback (most recent call last):
    sktransfer.archive._errors.NewerFormatError: tasks/a.joblib: the record has format 2, ...
    """

    advice = "Update sktransfer to use it; the file was left as it is."

    def __init__(self, path: str | os.PathLike[str], found: int, known: int):
        super().__init__(path, f"the record has format {found}, this version reads formats up to {known}")
        self.found = found
        self.known = known

    def __reduce__(self) -> tuple:
        return type(self), (self.path, self.found, self.known)
