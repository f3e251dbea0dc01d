"""How the archive holds up: ten thousand records, and sixteen processes that write at once.

    python -m benchmarks.archive [--records 10000] [--report docs/results/archive.md]

Each figure is wall-clock and CPU seconds; on a busy machine the second says more. "Cold" is a new process
(the file system's own cache cannot be emptied from here), "the next time" one for which the first has left
what it learnt, "warm" the second time in one process.
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

from sktransfer.archive import Archive
from sktransfer.dataset import profile
from sktransfer.space import Space
from sktransfer.task import Task, Trial

N_ESTIMATORS, N_TRIALS = 40, 25
WRITERS, APPENDS = 16, 50


@cache
def space_of(kind: int) -> dict[str, Any]:
    """A description as `Space.describe` gives it; each kind is an estimator of its own."""
    described = Space.parse({"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}).describe()
    names = {name: f"Estimator{kind}.{name}" for name in ("C", "gamma")}
    return {**described, "canonical": names, "predictors": [f"Estimator{kind}"]}


def make_task(n: int, data: list[dict]) -> Task:
    """A task of a search of usual size: 25 trials, and a profile with a sketch and fingerprints."""
    rng = np.random.default_rng(n)
    trials = [({"C": 1.0, "gamma": 0.1}, float(score)) for score in rng.random(N_TRIALS)]
    made = tuple(Trial.make(*trial) for trial in trials)
    return Task(trials=made, space=space_of(n % N_ESTIMATORS), profile=data[n % len(data)])


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def fill(path: Path, n_records: int) -> dict[str, tuple[float, float]]:
    """Make the records; seconds of one append at the start and at the end (median of 50)."""
    rng = np.random.default_rng(0)
    data = []
    for _ in range(50):
        X = rng.random((1500, 6))
        data.append(profile(X, (X[:, 0] > 0.5).astype(int)).to_dict())
    archive, seconds = Archive(path), []
    for n in range(n_records):
        seconds.append(timed(partial(archive.append, make_task(n, data))))
    found = {}
    for label, part in (("the first", seconds[:50]), ("the last", seconds[-50:])):
        wall, cpu = np.median(part, axis=0)
        found[f"append, {label} of {n_records}"] = (float(wall), float(cpu))
    return found


def select_twice(path: str) -> None:
    """In a process of its own: print the seconds of a first and of a second `select`."""
    today = profile(np.random.default_rng(1).random((200, 6)), np.arange(200) % 2)
    archive, space = Archive(path), space_of(3)
    heard = []
    seconds = [timed(lambda: heard.append(archive.select(space, today))) for _ in range(2)]
    print(json.dumps([*seconds, len(heard[-1].used), len(heard[-1].excluded)]))


def in_new_process(path: Path) -> list:
    """What `select_twice` prints."""
    command = [sys.executable, "-m", "benchmarks.archive", "--select", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def write_many(path: Path, number: int, barrier: Any) -> None:
    """One of the writers."""
    archive = Archive(path)
    barrier.wait()
    for n in range(APPENDS):
        archive.append(make_task(number * APPENDS + n, [{"kind": "regression", "n_rows": 3}]))


def many_writers(path: Path) -> dict[str, Any]:
    """Sixteen processes append at once, while this one reads."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(WRITERS)
    writers = [context.Process(target=write_many, args=(path, n, barrier)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    archive, n_reads = Archive(path), 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while any(writer.is_alive() for writer in writers):
            n_reads += sum(1 for _ in archive)
    return {
        "records": len(archive),
        "findings of verify": len(archive.verify()),
        "records read meanwhile": n_reads,
        "half records seen": len(caught),
        "writers that failed": sum(writer.exitcode != 0 for writer in writers),
    }


def report(seconds: dict[str, tuple[float, float]], counts: dict[str, Any], facts: str) -> str:
    """The page of results."""
    lines = ["# The archive under load", "", "Made by `python -m benchmarks.archive`. " + facts, ""]
    lines += ["| | wall-clock seconds | CPU seconds |", "|---|---:|---:|"]
    lines += [f"| {name} | {wall:.3f} | {cpu:.3f} |" for name, (wall, cpu) in seconds.items()]
    lines += ["", f"{WRITERS} processes, {APPENDS} appends each, on one directory, and a reader:", ""]
    lines += ["| | |", "|---|---:|"] + [f"| {name} | {count} |" for name, count in counts.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--select", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.select:
        select_twice(options.select)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "past"
        seconds = fill(path, options.records)
        cold, warm, heard, refused = in_new_process(path)
        seconds["select, cold (new process)"] = cold
        seconds["select, warm (same process)"] = warm
        seconds["select, cold, the next time"] = in_new_process(path)[0]
        shutil.rmtree(path / "index")
        seconds["select, the index having been lost"] = in_new_process(path)[0]
        counts = many_writers(Path(folder) / "many")
    load = os.getloadavg()[0]
    facts = (
        f"{options.records} records of {N_TRIALS} trials with profiles, {N_ESTIMATORS} estimators in equal "
        f"parts; `select` with a profile hears {heard} and refuses {refused}. Load average {load:.1f} on "
        f"{os.cpu_count()} cores."
    )
    text = report(seconds, counts, facts)
    print(text)
    if options.report:
        options.report.write_text(text)


if __name__ == "__main__":
    main()
