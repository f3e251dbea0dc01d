"""The archive under load: ten thousand records, and sixteen processes that write at once.

    python -m benchmarks.archive [--records 10000] [--report docs/results/archive.md]

Each figure is given in wall-clock and in CPU seconds. On a busy machine the CPU seconds are more
reliable. "Cold" is a new process, although the cache of the file system cannot be emptied. "Next
process" is a new process that finds the index of the first. "Warm" is the second call in one
process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import format_page, make_parser, write_section
from sktransfer.archive import Archive
from sktransfer.dataset import profile
from sktransfer.space import Space
from sktransfer.task import Task, Trial

N_ESTIMATORS, N_TRIALS = 40, 25
WRITERS, APPENDS = 16, 50


@cache
def space_of(kind: int) -> dict[str, Any]:
    """Return a description as `Space.describe` does; each kind belongs to another estimator."""
    described = Space.parse({"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}).describe()
    names = {name: f"Estimator{kind}.{name}" for name in ("C", "gamma")}
    return {**described, "canonical": names, "predictors": [f"Estimator{kind}"]}


def make_task(n: int, data: list[dict]) -> Task:
    """Return a task of usual size: 25 trials, and a profile with a sketch and fingerprints."""
    rng = np.random.default_rng(n)
    trials = [({"C": 1.0, "gamma": 0.1}, float(score)) for score in rng.random(N_TRIALS)]
    made = tuple(Trial.make(*trial) for trial in trials)
    return Task(trials=made, space=space_of(n % N_ESTIMATORS), profile=data[n % len(data)])


def measure_seconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def fill_archive(path: Path, n_records: int) -> dict[str, tuple[float, float]]:
    """Append the records; return the median seconds of the first and of the last 50 appends."""
    rng = np.random.default_rng(0)
    data = []
    for _ in range(50):
        X = rng.random((1500, 6))
        data.append(profile(X, (X[:, 0] > 0.5).astype(int)).to_dict())
    archive, seconds = Archive(path), []
    for n in range(n_records):
        seconds.append(measure_seconds(partial(archive.append, make_task(n, data))))
    found = {}
    for label, part in (("the first", seconds[:50]), ("the last", seconds[-50:])):
        wall, cpu = np.median(part, axis=0)
        found[f"append, {label} of {n_records}"] = (float(wall), float(cpu))
    return found


def select_twice(path: str) -> None:
    """Print the seconds of a first and of a second `select`; runs in a new process."""
    target = profile(np.random.default_rng(1).random((200, 6)), np.arange(200) % 2)
    archive, space = Archive(path), space_of(3)
    selections = []
    seconds = [
        measure_seconds(lambda: selections.append(archive.select(space, target))) for _ in range(2)
    ]
    print(json.dumps([*seconds, len(selections[-1].used), len(selections[-1].excluded)]))


def select_in_new_process(path: Path) -> list:
    """Return the output of `select_twice`."""
    command = [sys.executable, "-m", "benchmarks.archive", "--select", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def append_records(path: Path, number: int, barrier: Any) -> None:
    """Append records in one of the writing processes."""
    archive = Archive(path)
    barrier.wait()
    for n in range(APPENDS):
        archive.append(make_task(number * APPENDS + n, [{"kind": "regression", "n_rows": 3}]))


def append_concurrently(path: Path) -> dict[str, Any]:
    """Append in sixteen processes at once, and read meanwhile."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(WRITERS)
    writers = [
        context.Process(target=append_records, args=(path, n, barrier)) for n in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    archive, n_reads = Archive(path), 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while any(writer.is_alive() for writer in writers):
            n_reads += sum(1 for _ in archive)
    return {
        "records": len(archive),
        "problems found by verify": len(archive.verify()),
        "records read meanwhile": n_reads,
        "partial records seen": len(caught),
        "writers that failed": sum(writer.exitcode != 0 for writer in writers),
    }


def report(
    seconds: dict[str, tuple[float, float]], counts: dict[str, Any], facts: str
) -> list[str]:
    """Return the lines of the section of results."""
    lines = ["Made by `python -m benchmarks.archive`. " + facts, ""]
    lines += ["| | wall-clock seconds | CPU seconds |", "|---|---:|---:|"]
    lines += [f"| {name} | {wall:.3f} | {cpu:.3f} |" for name, (wall, cpu) in seconds.items()]
    lines += [
        "",
        f"{WRITERS} processes, {APPENDS} appends each, on one directory, and a reader:",
        "",
    ]
    return lines + ["| | |", "|---|---:|", *(f"| {name} | {n} |" for name, n in counts.items())]


def main() -> None:
    """Measure and write the report."""
    parser = make_parser(__doc__, "report")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--select", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.select:
        select_twice(options.select)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "past"
        seconds = fill_archive(path, options.records)
        cold, warm, n_used, n_excluded = select_in_new_process(path)
        seconds["select, cold (new process)"] = cold
        seconds["select, warm (same process)"] = warm
        seconds["select, cold, next process"] = select_in_new_process(path)[0]
        shutil.rmtree(path / "index")
        seconds["select, cold, without an index"] = select_in_new_process(path)[0]
        counts = append_concurrently(Path(folder) / "many")
    load = os.getloadavg()[0]
    facts = (
        f"The archive holds {options.records} records of {N_TRIALS} trials with profiles, for "
        f"{N_ESTIMATORS} estimators in equal parts. `select` with a profile uses {n_used} tasks "
        f"and excludes {n_excluded}. Load average {load:.1f} on {os.cpu_count()} cores."
    )
    lines = report(seconds, counts, facts)
    print(format_page(lines))
    if options.report:
        write_section(options.report, "# The archive under load", lines)


if __name__ == "__main__":
    main()
