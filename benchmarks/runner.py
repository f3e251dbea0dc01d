"""Runs that are kept: in parallel, each written down as soon as it is done, an interrupted program goes on.

A run is known by its key, the values of some fields; its row is a dict of plain data with these fields and
what was measured. Rows are lines of JSON in one file, the store. Whether a row is still true of today's code
is not checked: remove the store when the methods or the data change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

Key = tuple[Any, ...]


def read_rows(store: Path, fields: Sequence[str]) -> dict[Key, dict[str, Any]]:
    """The runs that are done."""
    rows = {}
    for line in store.read_text().splitlines() if store.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # cut short by an interruption: not done
        rows[tuple(row[field] for field in fields)] = row
    return rows


def take_over(store: Path, fields: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Add to the store what it does not hold yet of runs that were made elsewhere."""
    done = read_rows(store, fields)
    new = [row for row in rows if tuple(row[field] for field in fields) not in done]
    if new:
        store.parent.mkdir(parents=True, exist_ok=True)
        with store.open("a") as file:
            # The last line may have been cut short; an empty one is skipped.
            file.write("".join(f"\n{json.dumps(row)}" for row in new) + "\n")


def run_all(
    store: Path,
    fields: Sequence[str],
    keys: Sequence[Key],
    run: Callable[..., dict[str, Any]],
    n_jobs: int = 1,
    arguments: Callable[[Key], tuple] = lambda key: (),
) -> list[dict[str, Any]]:
    """Rows of all keys, in their order: read from the store, or made by ``run(*key, *arguments(key))``.

    Parameters
    ----------
    store : Path
    fields : sequence of str
        Names of the parts of a key.
    keys : sequence of tuple
    run : callable
        Gives what was measured, without the key.
    n_jobs : int
    arguments : callable
        What a run needs besides its key; asked for just before it starts.
    """
    done = read_rows(store, fields)
    todo = [key for key in keys if key not in done]
    print(f"{len(keys) - len(todo)} of {len(keys)} runs are done", flush=True)
    store.parent.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    if n_jobs == 1:
        made: Iterable[dict] = (_run(run, fields, key, arguments(key)) for key in todo)
    else:
        jobs = (delayed(_run)(run, fields, key, arguments(key)) for key in todo)
        made = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)  # joblib 1.4 or newer
    with store.open("a") as file:
        if todo and file.tell():
            file.write("\n")  # the last line may have been cut short; an empty one is skipped
        for number, row in enumerate(made, 1):
            done[tuple(row[field] for field in fields)] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            left = (time.time() - begun) / number * (len(todo) - number)
            print(
                f"\r{number}/{len(todo)} runs, about {left / 60:.0f} min left ", end="", flush=True
            )
    if todo:
        print()
    return [done[key] for key in keys]


def _run(
    run: Callable[..., dict], fields: Sequence[str], key: Key, arguments: tuple
) -> dict[str, Any]:
    return dict(zip(fields, key, strict=True)) | run(*key, *arguments)
