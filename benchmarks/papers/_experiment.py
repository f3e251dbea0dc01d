"""The parts of an experiment: keys, one run per key, and tables and a figure made from the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from benchmarks.runner import Key, format_page, read_rows, read_runs, run_all, update_runs

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper.

    Parameters
    ----------
    title : str
    about : str
        The setup of the paper and the differences here, as a paragraph of Markdown.
    seeds : int
        Number of seeds of the whole experiment: that of the paper, if it is known.
    fields : tuple of str
        Names of the parts of a key.
    keys : callable, (number of seeds, quick, data folder) -> list of keys
    tables : callable, rows -> lines of Markdown
    figure : callable, (rows, PNG file) -> None
    run : callable, (*key, data folder) -> dict of measurements
    rows : callable, (keys, data folder, work folder, number of jobs, packed rows) -> rows, or None
        Replaces `run` if the runs depend on each other. It stores its runs itself. With 0 jobs it
        returns the stored runs only.
    needs : tuple of str
        Folders below the data folder that the experiment reads.
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
        """Return the needed folders that do not exist."""
        return [each for each in self.needs if not (folder / each).is_dir()]


def packed_runs(out: Path, name: str) -> Path:
    """Return the packed file of an experiment whose page is in the folder `out`."""
    return out.parent / "runs" / out.name / f"{name}.jsonl.gz"


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
    """Make the missing runs, and write the page, the figure and the packed runs of an experiment.

    Runs in the work folder and in the packed file of the last report are not repeated. Packed runs
    that are not among the keys stay in the packed file, but not in the tables. With `done` nothing
    is run. The discussion of the results is written by hand in ``NAME-notes.md`` and is included in
    the page.
    """
    keys, fields = experiment.keys(seeds, quick, folder), experiment.fields
    packed = packed_runs(out, name)
    last = list(read_runs(packed))
    if experiment.run is None:
        assert experiment.rows is not None
        rows = experiment.rows(keys, folder, work, 0 if done else n_jobs, last)
    else:
        store = work / f"{name}{'-quick' if quick else ''}.jsonl"
        there = read_rows(store, fields, packed) if done else {}
        wanted = [key for key in keys if key in there] if done else keys
        rows = run_all(store, fields, wanted, experiment.run, n_jobs, lambda key: (folder,), packed)
    rows = [round_values(row) for row in rows]
    out.mkdir(parents=True, exist_ok=True)
    update_runs(rows, packed, fields)
    experiment.figure(rows, out / f"{name}.png")
    text = make_page(name, experiment, rows, len(keys), seeds, quick, out)
    (out / f"{name}.md").write_text(text)
    print(text)


def make_page(
    name: str, experiment: Experiment, rows: Rows, n_keys: int, seeds: int, quick: bool, out: Path
) -> str:
    """Return the page of an experiment as Markdown."""
    command = f"OMP_NUM_THREADS=1 python -m benchmarks.papers {name} --seeds {seeds}"
    command += " --quick" * quick
    spent = sum(row.get("wall", 0.0) for row in rows)
    count = f"{len(rows)} runs" if len(rows) == n_keys else f"{len(rows)} of {n_keys} runs"
    packed = packed_runs(out, name)
    notes = out / f"{name}-notes.md"
    lines = [
        f"# {experiment.title}",
        "",
        f"Made by `{command}`: {count}, {spent / 60:.0f} minutes of one core in total. The whole "
        f"experiment has {experiment.seeds} seeds. All runs are in "
        f"[{packed.name}](../runs/{out.name}/{packed.name}).",
        "",
        experiment.about,
        "",
        *(["## Discussion", "", notes.read_text().strip(), ""] if notes.exists() else []),
        f"![{experiment.title}]({name}.png)",
        "",
        *experiment.tables(rows),
    ]
    return format_page(lines)


def round_values(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with six significant digits, so that new runs equal packed ones."""
    return {name: _rounded(value) for name, value in row.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def markdown(head: Sequence[str], body: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines of a table; numbers have at most three decimal places."""

    def text(cell: Any) -> str:
        if isinstance(cell, (float, np.floating)):
            return f"{cell:.3f}".rstrip("0").rstrip(".")
        return str(cell)

    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(map(text, row)) + " |" for row in body), ""]


def half_width(values: np.ndarray) -> np.ndarray:
    """Return half the width of the 95 % interval of the mean, by Student's t; (n, ...) -> (...).

    >>> half_width(np.array([1.0, 2.0, 3.0])).round(3).item()
    2.484
    """
    n = len(values)
    return student_t.ppf(0.975, n - 1) * np.std(values, axis=0, ddof=1) / np.sqrt(n)


def interval(values: np.ndarray, digits: int = 3, sign: str = "") -> str:
    """Return the mean with its 95 % interval; a single value has no interval."""
    mean = f"{np.mean(values):{sign}.{digits}f}"
    return f"{mean} ± {half_width(values):.{digits}f}" if len(values) > 1 else mean
