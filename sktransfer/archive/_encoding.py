"""From a task to the bytes of its record, as an archive writes it.

What of the data profile may be stored is decided here: small tables are not described, and hashes
are sealed with the key of the archive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from sktransfer.archive._key import ArchiveKey, seal_plain
from sktransfer.archive._packed_numbers import pack_numbers
from sktransfer.archive._plain_pickle import dumps_plain, loads_plain
from sktransfer.archive._record import (
    check_packed_size,
    plain_profile,
    record_to_task,
    task_to_record,
)
from sktransfer.dataset._disclosure import limit_disclosure
from sktransfer.task import Task
from sktransfer.utils._values import Plain


def encode_task(task: Task, get_key: Callable[[], ArchiveKey | None]) -> tuple[bytes, Task]:
    """Return the bytes of a record, and the task as they describe it.

    Parameters
    ----------
    task : Task
    get_key : callable
        Returns the key of the archive. It is called if the profile has hashes to be sealed.

    Returns
    -------
    data : bytes
    written : Task
        The hashes in its profile may be arrays.

    Raises
    ------
    TypeError, ValueError
        If the task is not plain data, or not valid.
    """
    name = f"task {task.id!r}"
    if task.profile is None:
        data = dumps_plain(task_to_record(task))
        return data, record_to_task(loads_plain(data), name)
    profile = limit_disclosure(plain_profile(task.profile))
    if not profile.get("key"):
        profile = seal_plain(profile, get_key(), as_arrays=True)
    packed = pack_numbers(profile)
    check_packed_size(packed)
    data = dumps_plain({**task_to_record(replace(task, profile=None)), "profile": packed})
    # Reading the bytes back makes sure that the record can be read later. The profile is checked
    # already, and is the longest part of a record.
    record = cast(dict[str, Plain], loads_plain(data))
    return data, replace(record_to_task(record | {"profile": None}, name), profile=profile)
