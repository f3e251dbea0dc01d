"""Shared machinery of the benchmarks: stored runs, resuming, command lines and Markdown pages.

A run is identified by its key, the values of some fields. Its row is a dict of plain data that
holds these fields and the measurements. While a program works, it appends each finished row to a
plain ``.jsonl`` file in the work folder, so an interrupted program resumes there. Finished rows are
packed as ``docs/results/runs/NAME.jsonl.gz``, and a program that resumes reads both files.

Rows are not checked against the current code. When a method or the data change, remove their rows
from both files.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import textwrap
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

WORK = Path(__file__).parent / ".work"
RESULTS = Path(__file__).parents[1] / "docs" / "results"
MAX_LINE_LENGTH = 100
SHARED_OPTIONS: dict[str, dict[str, Any]] = {
    "data": {"help": "folder of the data sets"},
    "work": {"type": Path, "default": WORK, "help": "folder of unfinished runs and of tables"},
    "split": {"choices": ["report", "development"], "default": "report"},
    "jobs": {"type": int, "default": 2, "help": "number of processes"},
    "report": {"type": Path, "help": "Markdown file to write"},
}

Key = tuple[Any, ...]
Row = dict[str, Any]


# -- stored runs ---------------------------------------------------------------------------------


def packed_file(page: Path) -> Path:
    """Return the file that holds the single runs behind a page of results."""
    return page.parent / "runs" / f"{page.stem}.jsonl.gz"


def read_runs(file: Path) -> Iterator[Row]:
    """Read the rows of a file, plain or packed; a missing file has none.

    A line that an interruption cut short is skipped.
    """
    if not file.exists():
        return
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def write_runs(rows: Iterable[Row], file: Path) -> None:
    """Write rows as a packed file; equal rows give equal bytes."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def update_runs(rows: Sequence[Row], file: Path, fields: Sequence[str]) -> None:
    """Write rows to a packed file, followed by its other rows, which stay there."""
    keys = {key_of(row, fields) for row in rows}
    others = [row for row in read_runs(file) if key_of(row, fields) not in keys]
    write_runs([*rows, *others], file)


def append_runs(rows: Iterable[Row], store: Path) -> None:
    """Append rows to a plain file, which a crash may have left with half a line."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if not text:
        return
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(text.encode())


def key_of(row: Row, fields: Sequence[str]) -> Key:
    """Return the key of a row."""
    return tuple(row[field] for field in fields)


def read_rows(
    store: Path, fields: Sequence[str], packed: Path | None = None
) -> dict[Key, dict[str, Any]]:
    """Return the finished runs by key; those of the store replace packed ones."""
    files = [store] if packed is None else [packed, store]
    return {key_of(row, fields): row for file in files for row in read_runs(file)}


def take_over(store: Path, fields: Sequence[str], rows: Iterable[Row]) -> None:
    """Append the runs that were made elsewhere and that the store does not hold yet."""
    done = read_rows(store, fields)
    append_runs([row for row in rows if key_of(row, fields) not in done], store)


def run_all(
    store: Path,
    fields: Sequence[str],
    keys: Sequence[Key],
    run: Callable[..., Row],
    n_jobs: int = 1,
    arguments: Callable[[Key], tuple] = lambda key: (),
    packed: Path | None = None,
) -> list[Row]:
    """Return the rows of all keys in order; ``run(*key, *arguments(key))`` makes missing ones.

    Parameters
    ----------
    store : Path
        Plain file in the work folder, to which each new row is appended.
    fields : sequence of str
        Names of the parts of a key.
    keys : sequence of tuple
    run : callable
        Returns the measurements, without the key.
    n_jobs : int
    arguments : callable
        Returns further arguments of a run. It is called just before the run starts.
    packed : Path, optional
        Packed file of an earlier report. Its runs count as done.
    """
    done = read_rows(store, fields, packed)
    todo = [key for key in keys if key not in done]
    print(f"{len(keys) - len(todo)} of {len(keys)} runs are done", flush=True)
    begun = time.time()
    if n_jobs == 1:
        made: Iterable[Row] = (_run(run, fields, key, arguments(key)) for key in todo)
    else:
        jobs = (delayed(_run)(run, fields, key, arguments(key)) for key in todo)
        made = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)  # joblib >= 1.4
    for number, row in enumerate(made, 1):
        done[key_of(row, fields)] = row
        append_runs([row], store)
        left = (time.time() - begun) / number * (len(todo) - number)
        print(f"\r{number}/{len(todo)} runs, about {left / 60:.0f} min left ", end="", flush=True)
    if todo:
        print()
    return [done[key] for key in keys]


def _run(run: Callable[..., Row], fields: Sequence[str], key: Key, arguments: tuple) -> Row:
    return dict(zip(fields, key, strict=True)) | run(*key, *arguments)


# -- command lines and pages ---------------------------------------------------------------------


def make_parser(description: str | None, *shared: str) -> ArgumentParser:
    """Return the parser of a program, with some of the SHARED_OPTIONS."""
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    for name in shared:
        parser.add_argument(f"--{name}", **SHARED_OPTIONS[name])
    return parser


def format_page(lines: Iterable[str]) -> str:
    """Return a Markdown page with paragraphs and list items wrapped at MAX_LINE_LENGTH characters.

    >>> [len(line) for line in format_page(["| " + "a " * 60 + "|", "word " * 25]).splitlines()]
    [123, 99, 24]
    """
    wrapped, in_code = [], False
    for line in "\n".join(lines).split("\n"):
        in_code ^= line.startswith("```")
        if in_code or len(line) <= MAX_LINE_LENGTH or line.startswith(("|", "#", "!", "    ")):
            wrapped.append(line)
            continue
        indent = "  " if line.startswith(("* ", "  ")) else ""
        wrapped += textwrap.wrap(
            line,
            MAX_LINE_LENGTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(wrapped).rstrip() + "\n"


def write_section(page: Path, heading: str, lines: Iterable[str]) -> None:
    """Write one section of a page, which other programs write as well.

    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp()) / "page.md"
    >>> for heading in ("# Page", "## One", "## Two", "## One"):
    ...     write_section(page, heading, ["new" if page.exists() else "first"])
    >>> page.read_text().split()
    ['#', 'Page', 'first', '##', 'One', 'new', '##', 'Two', 'new']
    """
    text = page.read_text() if page.exists() else ""
    sections = [part for part in re.split(r"(?m)^(?=#{1,2} )", text) if part.strip()]
    found = {part.partition("\n")[0]: part for part in sections}
    found[heading] = format_page([heading, "", *lines])
    page.write_text("\n".join(part.rstrip() + "\n" for part in found.values()))


def markdown_table(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body]]
