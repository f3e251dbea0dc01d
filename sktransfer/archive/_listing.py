"""The tasks of an archive one after the other, with a warning for each file that is invalid."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sktransfer.archive._index import read_entries
from sktransfer.archive._lazy_task import LazyTask, count_equal_fields, search_key
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


def find_similar(tasks: Iterable[Task], digests: Mapping[str, str | None]) -> list[Task]:
    """Return the tasks that may be about the same search, by id. See `Archive.find_searches`."""
    key, found = search_key(digests), {}
    for task in tasks:
        is_similar = not isinstance(task, LazyTask) or count_equal_fields(task.search, key) > 1
        if is_similar and not task.origin:
            with contextlib.suppress(RecordError):  # removed since it was listed
                found[task.id] = task.load() if isinstance(task, LazyTask) else task
    return [found[id] for id in sorted(found)]
