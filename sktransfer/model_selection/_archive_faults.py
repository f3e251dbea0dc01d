"""Faults of an archive cost a warning, never the search."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sktransfer.archive import OutOfReachError
from sktransfer.exceptions import ArchiveWarning
from sktransfer.utils._user_warnings import warn_user


@contextlib.contextmanager
def warn_of_faults(
    problem: str, consequence: str, kinds: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Inside, an error ends the block with an `ArchiveWarning`.

    Whatever uses the archive before the first fit runs in such a block. The operating system, the
    disk and the files of others can cause errors of any kind.

    Parameters
    ----------
    problem, consequence : str
        What went wrong, and what the search does now.
    kinds : tuple of classes
        Which errors are faults of the archive.
    """
    try:
        yield
    except OutOfReachError:  # the user has been warned
        pass
    except kinds as error:
        warn_user(f"{problem} ({error!r}). {consequence}", ArchiveWarning)
