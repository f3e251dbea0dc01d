"""The tasks of an archive one after the other, with a warning for each file that is invalid."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

from sktransfer.archive._index import read_entries
from sktransfer.archive._lazy_task import LazyTask
from sktransfer.archive._storage import Storage, read_task, warn_skipped
from sktransfer.exceptions import RecordError
from sktransfer.task import Task


def merge_by_id(*streams: Iterator[Task]) -> Iterator[Task]:
    """Merge streams of tasks that are sorted by id."""
    return heapq.merge(*streams, key=lambda task: task.id)


def read_tasks(files: list[Path]) -> Iterator[Task]:
    """Yield the tasks of record files. Warn of invalid ones."""
    for file in files:
        try:
            task = read_task(file)
        except FileNotFoundError:  # removed since the directory was listed
            continue
        except RecordError as error:
            warn_skipped(error)
        else:
            yield task


def list_tasks(storage: Storage) -> Iterator[Task]:
    """Yield all tasks without reading their trials and profiles, where the index has an entry."""
    for id, entry in read_entries(storage.directory):
        if isinstance(entry, RecordError):
            warn_skipped(entry)
        else:
            yield LazyTask.from_entry(entry, id, storage.tasks)
