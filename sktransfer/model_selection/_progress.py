"""Progress of a search with ``verbose=1``: one live line, or plain lines.

A live line needs a terminal or a notebook, and tqdm or rich. Otherwise, and with ``verbose=2`` or
more, where scikit-learn prints a line for each fit, there is one plain line for each candidate, and
at most one per second.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

from sktransfer.archive import Selection
from sktransfer.model_selection._results import Candidate

SECONDS_PER_LINE = 1.0


class Line(Protocol):
    """Where progress is shown."""

    def show(self, n_done: int, text: str) -> None: ...

    def close(self) -> None: ...


class Progress:
    """Says after each candidate how far the search is, and how good.

    Parameters
    ----------
    verbose : int
        As in GridSearchCV. With 0, nothing is shown.
    n_iter : int
        Number of candidates of the whole search.
    """

    def __init__(self, verbose: int, n_iter: int):
        self._verbose, self._n_iter = verbose, n_iter
        self._line: Line | None = None  # made with the first candidate, after other messages
        self._start, self._n_done = time.monotonic(), 0
        self._origins: list[str] = []
        self._best, self._best_at = -math.inf, ""
        self._tasks = ""

    def begin_batch(self, origins: Sequence[str], selection: Selection) -> None:
        """Announce the candidates that are evaluated next, and the past tasks behind them."""
        self._origins = list(origins)
        n_used, n_excluded = len(selection.used), len(selection.excluded)
        if n_used or n_excluded:
            self._tasks = f", {n_used} past tasks used, {n_excluded} excluded"

    def add(self, candidate: Candidate) -> None:
        """Report an evaluated candidate of the batch; they come in their order."""
        self._n_done += 1
        origin = self._origins.pop(0) if self._origins else "unknown"
        score = candidate.trial.score
        if score > self._best:
            self._best, self._best_at = score, f"candidate {self._n_done}, {_name(origin)}"
        if self._verbose > 0:
            self._line = self._line or make_line(self._verbose, self._n_iter)
            self._line.show(self._n_done, self._text(score))

    def _text(self, score: float) -> str:
        seconds = (time.monotonic() - self._start) / self._n_done
        left = seconds * max(0, self._n_iter - self._n_done)
        shown = "failed" if math.isnan(score) else f"{score:.4g}"
        best = f", best {self._best:.4g} ({self._best_at})" if self._best_at else ""
        rate = f"{format_seconds(left)} left, {seconds:.2g} s each"
        return f"score {shown}{best}, {rate}{self._tasks}"

    def close(self) -> None:
        """Leave the last line as it is."""
        if self._line is not None:
            self._line.close()


def _name(origin: str) -> str:
    """Where a candidate came from. Of the id of a past task, the random part is enough.

    >>> _name("task 20260102T030405000000-0123456789abcdef"), _name("model")
    ('past task 012345', 'model')
    """
    if not origin.startswith("task "):
        return origin
    id = origin.removeprefix("task ")
    return f"past task {id.rpartition('-')[2][:6] if '-' in id else id}"


def format_seconds(seconds: float) -> str:
    """A time span in its largest unit.

    >>> [format_seconds(each) for each in (0.4, 59, 90, 7300)]
    ['0 s', '59 s', '2 min', '2.0 h']
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def make_line(verbose: int, n_iter: int) -> Line:
    """A live line where one can be shown, or else plain lines."""
    if verbose == 1 and _is_live():
        for kind in (TqdmLine, RichLine):
            with contextlib.suppress(ImportError):
                return kind(n_iter)
    return PlainLines(n_iter)


def _is_live() -> bool:
    """Whether standard output is a terminal or a notebook, where a line can be rewritten."""
    is_terminal = getattr(sys.stdout, "isatty", lambda: False)()
    return bool(is_terminal) or "ipykernel" in sys.modules


class PlainLines:
    """One line for each candidate, at most one per second; the first and the last always."""

    def __init__(self, n_iter: int):
        self._n_iter, self._shown = n_iter, -math.inf
        self._waiting = ""

    def show(self, n_done: int, text: str) -> None:
        self._waiting = f"[{n_done}/{self._n_iter}] {text}"
        if time.monotonic() - self._shown >= SECONDS_PER_LINE or n_done == self._n_iter:
            self._print()

    def _print(self) -> None:
        print(self._waiting, flush=True)
        self._shown, self._waiting = time.monotonic(), ""

    def close(self) -> None:
        if self._waiting:
            self._print()


class TqdmLine:
    """A bar of tqdm, which suits a terminal and a notebook."""

    def __init__(self, n_iter: int):
        from tqdm.auto import tqdm

        form = "{n_fmt}/{total_fmt} |{bar:6}| {desc}"
        self._bar: Any = tqdm(total=n_iter, file=sys.stdout, bar_format=form, dynamic_ncols=True)

    def show(self, n_done: int, text: str) -> None:
        self._bar.set_description_str(text, refresh=False)
        self._bar.update(n_done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class RichLine:
    """A bar of rich."""

    def __init__(self, n_iter: int):
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        text = TextColumn("{task.description}", markup=False)
        self._progress: Any = RichProgress(MofNCompleteColumn(), BarColumn(6), text)
        self._task = self._progress.add_task("", total=n_iter)
        self._progress.start()

    def show(self, n_done: int, text: str) -> None:
        self._progress.update(self._task, completed=n_done, description=text, refresh=True)

    def close(self) -> None:
        self._progress.stop()
