"""CPU time of the experiments, and a table of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from joblib.externals.loky import get_reusable_executor

from benchmarks.runner import append_runs, markdown_table, read_runs, write_section


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished workers."""
    get_reusable_executor().shutdown(wait=True)  # workers count once they have ended
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def times_file(work: Path, quick: bool) -> Path:
    """Return the file of the times in the work folder."""
    return work / f"times{'-quick' * quick}.jsonl"


def add_time(work: Path, quick: bool, name: str, seconds: float) -> None:
    """Store the CPU seconds of an experiment. Those of its later runs are added to them."""
    append_runs([{"name": name, "cpu": round(seconds, 1)}], times_file(work, quick))


def write_times(page: Path, work: Path, quick: bool, names: Sequence[str]) -> None:
    """Write the stored times as a section of a page."""
    spent = dict.fromkeys(names, 0.0)
    for row in read_runs(times_file(work, quick)):
        spent[row["name"]] += row["cpu"]
    body = [[f"`{name}`", f"{seconds:.0f}"] for name, seconds in spent.items() if seconds]
    size = "reduced" if quick else "full"
    lines = [
        f"CPU seconds at {size} size, {sum(spent.values()) / 60:.0f} minutes in total:",
        "",
        *markdown_table(["experiment", "seconds"], body),
    ]
    write_section(page, "## Times", lines)
