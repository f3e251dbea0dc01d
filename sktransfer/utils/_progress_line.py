"""Progress of long work: one live line, or plain lines.

A live line needs a terminal or a notebook, and tqdm or rich. Otherwise there are plain lines, at
most one per second.

Code deep inside the package, such as a training loop, uses `track` or `progress_line` and does not
know whether it is shown. Its callers decide that, with `show_progress`.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextvars import ContextVar
from typing import Any, Protocol, TextIO, TypeVar

SECONDS_PER_LINE = 1.0
SECONDS_BEFORE_LINE = 2.0
"""Work that ends earlier shows nothing."""

T = TypeVar("T")

_stream: ContextVar[TextIO | None] = ContextVar("progress of long work is shown here", default=None)


class Line(Protocol):
    """Where progress is shown."""

    def show(self, n_done: int, text: str) -> None: ...

    def close(self) -> None: ...


@contextlib.contextmanager
def show_progress(stream: TextIO | None) -> Iterator[None]:
    """Show the progress of long work in this block. None leaves it to the caller."""
    token = _stream.set(_stream.get() if stream is None else stream)
    try:
        yield
    finally:
        _stream.reset(token)


@contextlib.contextmanager
def progress_line(total: int, text: str) -> Iterator[Callable[[], None]]:
    """Show how many of `total` steps are done. The function that is returned ends a step.

    Parameters
    ----------
    total : int
        Number of steps; 0 if it is unknown.
    text : str
        What is done.
    """
    stream, start, n_done = _stream.get(), time.monotonic(), 0
    line: Line | None = None

    def advance() -> None:
        nonlocal line, n_done
        n_done += 1
        seconds = time.monotonic() - start
        if line is None and stream is not None and seconds >= SECONDS_BEFORE_LINE:
            line = make_line(total, stream)
        if line is not None:
            left = seconds / n_done * (total - n_done)
            line.show(n_done, f"{text}, {format_seconds(left)} left" if total else text)

    try:
        yield advance
    finally:
        if line is not None:
            line.close()


def track(items: Iterable[T], text: str) -> Iterator[T]:
    """Yield the items, and show how many are done.

    >>> sum(track([1, 2, 3], "Adding"))
    6
    """
    with progress_line(len(items) if isinstance(items, Sized) else 0, text) as advance:
        for item in items:
            yield item
            advance()


def format_seconds(seconds: float) -> str:
    """A time span in its largest unit.

    >>> [format_seconds(each) for each in (0.4, 59, 90, 7300)]
    ['0 s', '59 s', '2 min', '2.0 h']
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def make_line(total: int, stream: TextIO | None = None, is_live: bool = True) -> Line:
    """A live line where one can be shown, or else plain lines. A total of 0 is unknown.

    By default it is shown on standard output.
    """
    stream = sys.stdout if stream is None else stream
    if is_live and _can_rewrite(stream):
        for kind in (TqdmLine, RichLine):
            with contextlib.suppress(ImportError):
                return kind(total, stream)
    return PlainLines(total, stream)


def _can_rewrite(stream: TextIO) -> bool:
    """Whether a stream is a terminal or a notebook, where a line can be rewritten."""
    return getattr(stream, "isatty", lambda: False)() or "ipykernel" in sys.modules


class PlainLines:
    """One line for each item, at most one per second; the first and the last always."""

    def __init__(self, total: int, stream: TextIO):
        self._total, self._stream = total, stream
        self._shown, self._waiting = -math.inf, ""

    def show(self, n_done: int, text: str) -> None:
        self._waiting = f"[{n_done}/{self._total}] {text}" if self._total else f"[{n_done}] {text}"
        if time.monotonic() - self._shown >= SECONDS_PER_LINE or n_done == self._total:
            self._print()

    def _print(self) -> None:
        print(self._waiting, file=self._stream, flush=True)
        self._shown, self._waiting = time.monotonic(), ""

    def close(self) -> None:
        if self._waiting:
            self._print()


class TqdmLine:
    """A bar of tqdm, which suits a terminal and a notebook."""

    def __init__(self, total: int, stream: TextIO):
        from tqdm.auto import tqdm

        form = "{n_fmt}/{total_fmt} |{bar:6}| {desc}" if total else "{n_fmt} {desc}"
        self._bar: Any = tqdm(total=total or None, file=stream, bar_format=form, dynamic_ncols=True)

    def show(self, n_done: int, text: str) -> None:
        self._bar.set_description_str(text, refresh=False)
        self._bar.update(n_done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class RichLine:
    """A bar of rich."""

    def __init__(self, total: int, stream: TextIO):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (MofNCompleteColumn(), BarColumn(6), text)
        self._progress: Any = Progress(*columns, console=Console(file=stream))
        self._task = self._progress.add_task("", total=total or None)
        self._progress.start()

    def show(self, n_done: int, text: str) -> None:
        self._progress.update(self._task, completed=n_done, description=text, refresh=True)

    def close(self) -> None:
        self._progress.stop()
