"""What an experiment is: keys, a run for each, tables and a figure from the rows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import Key, read_rows, run_all, take_over

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper.

    Parameters
    ----------
    title : str
    about : str
        The paper's setup and what is different here, as a paragraph of Markdown.
    seeds : int
        Of the whole experiment: as many as the paper has, where it says so.
    fields : tuple of str
        Names of the parts of a key.
    keys : callable, (number of seeds, quick, data folder) -> list of keys
    tables : callable, rows -> lines of Markdown
    figure : callable, (rows, PNG file) -> None
    run : callable, (*key, data folder) -> dict of what was measured
    rows : callable, (keys, data folder, work folder, number of jobs, rows that are known) -> rows, or None
        In place of `run` where runs are not independent of each other; it keeps what it has done itself,
        and with 0 jobs it gives that.
    needs : tuple of str
        Folders below the data folder that it reads.
    """

    title: str
    about: str
    seeds: int
    fields: tuple[str, ...]
    keys: Callable[[int, bool, Path], list[Key]]
    tables: Callable[[Rows], list[str]]
    figure: Callable[[Rows, Path], None]
    run: Callable[..., dict[str, Any]] | None = None
    rows: Callable[[list[Key], Path, Path, int, Rows], Rows] | None = None
    needs: tuple[str, ...] = ()

    def missing(self, folder: Path) -> list[str]:
        """Folders that it needs and that are not there."""
        return [each for each in self.needs if not (folder / each).is_dir()]


def conduct(
    name: str,
    experiment: Experiment,
    folder: Path,
    work: Path,
    out: Path,
    seeds: int,
    quick: bool,
    n_jobs: int,
    done: bool = False,
) -> None:
    """Run what is missing and write ``NAME.csv``, ``NAME.png`` and ``NAME.md``; with `done` run nothing.

    A run is not missing if the work folder or the ``NAME.csv`` of last time has it. Runs of last time that
    are not asked for today stay in the file and have no part in the tables.

    What there is to say of the figures is written by hand, in ``NAME-notes.md``, and made part of the page.
    """
    keys, fields = experiment.keys(seeds, quick, folder), experiment.fields
    last = read_csv(out / f"{name}.csv") if (out / f"{name}.csv").exists() else []
    if experiment.run is None:
        assert experiment.rows is not None
        rows = experiment.rows(keys, folder, work, 0 if done else n_jobs, last)
    else:
        store = work / f"{name}{'-quick' if quick else ''}.jsonl"
        take_over(store, fields, last)
        there = read_rows(store, fields) if done else {}
        wanted = [key for key in keys if key in there] if done else keys
        rows = run_all(store, fields, wanted, experiment.run, n_jobs, lambda key: (folder,))
    rows = [as_in_csv(row) for row in rows]
    shown = {tuple(row[field] for field in fields) for row in rows}
    out.mkdir(parents=True, exist_ok=True)
    others = [row for row in last if tuple(row[field] for field in fields) not in shown]
    write_csv([*rows, *others], out / f"{name}.csv")
    experiment.figure(rows, out / f"{name}.png")
    command = (
        f"OMP_NUM_THREADS=1 python -m benchmarks.papers {name} --seeds {seeds}" + " --quick" * quick
    )
    spent = sum(row.get("wall", 0.0) for row in rows)
    count = (
        f"{len(rows)} runs" if len(rows) == len(keys) else f"{len(rows)} of its {len(keys)} runs"
    )
    notes = out / f"{name}-notes.md"
    lines = [
        f"# {experiment.title}",
        "",
        f"Made by `{command}`: {count}, {spent / 60:.0f} minutes of one core in all. The whole experiment "
        f"has {experiment.seeds} seeds. Every run is in [{name}.csv]({name}.csv).",
        "",
        experiment.about,
        "",
        *(["## What it shows", "", notes.read_text().strip(), ""] if notes.exists() else []),
        f"![{experiment.title}]({name}.png)",
        "",
        *experiment.tables(rows),
    ]
    (out / f"{name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def write_csv(rows: Rows, file: Path) -> None:
    """One line per run; a list becomes its values, parted by blanks."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with file.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(names)
        for row in rows:
            writer.writerow([_cell(row.get(name, "")) for name in names])


def read_csv(file: Path) -> Rows:
    """The rows of such a file: numbers as numbers, several in a cell as their list, one as itself."""
    with file.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    return [{name: _value(cell) for name, cell in row.items() if cell != ""} for row in rows]


def as_in_csv(row: dict[str, Any]) -> dict[str, Any]:
    """The row as it is read back: a run counts the same, and ties the same, wherever it was kept."""
    return {name: _value(_cell(value)) for name, value in row.items() if _cell(value) != ""}


def _cell(value: Any) -> str:
    """Numbers with six digits; whole ones and names as they are."""
    if isinstance(value, list):
        return " ".join(map(_cell, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _value(cell: str) -> Any:
    try:
        values = [float(part) for part in cell.split()]
    except ValueError:
        return cell
    if len(values) > 1:
        return values
    return int(cell) if cell.lstrip("-").isdigit() else values[0]


def markdown(head: Sequence[str], body: Sequence[Sequence[Any]]) -> list[str]:
    """A table; numbers with at most three digits behind the point."""

    def text(cell: Any) -> str:
        return (
            f"{cell:.3f}".rstrip("0").rstrip(".")
            if isinstance(cell, (float, np.floating))
            else str(cell)
        )

    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(map(text, row)) + " |" for row in body), ""]


def interval(values: np.ndarray) -> str:
    """Mean and 95 % interval over the values; of a single one, itself."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{values.mean():.3f} ± {1.96 * values.std(ddof=1) / np.sqrt(len(values)):.3f}"
