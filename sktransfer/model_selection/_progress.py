"""Progress of a search with ``verbose=1``: one live line, or plain lines.

With ``verbose=2`` or more, scikit-learn prints a line for each fit, and the lines are always plain.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence

from sktransfer.model_selection._results import Candidate
from sktransfer.task import short_task_name
from sktransfer.utils._progress_line import Line, format_seconds, make_line


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

    def begin_batch(self, origins: Sequence[str]) -> None:
        """Announce where the candidates that are evaluated next come from."""
        self._origins = list(origins)

    def add(self, candidate: Candidate) -> None:
        """Report an evaluated candidate of the batch; they come in their order."""
        self._n_done += 1
        origin = self._origins.pop(0) if self._origins else "unknown"
        score = candidate.trial.score
        if score > self._best:
            self._best, self._best_at = score, f"candidate {self._n_done}, {_name(origin)}"
        if self._verbose > 0:
            self._line = self._line or make_line(self._n_iter, is_live=self._verbose == 1)
            self._line.show(self._n_done, self._text(candidate))

    def _text(self, candidate: Candidate) -> str:
        seconds = (time.monotonic() - self._start) / self._n_done
        left = seconds * max(0, self._n_iter - self._n_done)
        score, n_folds = candidate.trial.score, len(candidate.rows)
        shown = "failed" if math.isnan(score) else f"{score:.4g}"
        if candidate.n_folds < n_folds:
            shown += f" (stopped after {candidate.n_folds} of {n_folds} folds)"
        best = f", best {self._best:.4g} ({self._best_at})" if self._best_at else ""
        return f"score {shown}{best}, {format_seconds(left)} left, {seconds:.2g} s each"

    def close(self) -> None:
        """Leave the last line as it is."""
        if self._line is not None:
            self._line.close()


def _name(origin: str) -> str:
    """Where a candidate came from.

    >>> _name("task 20260102T030405000000-0123456789abcdef (last-year)"), _name("model")
    ('past task last-year', 'model')
    """
    found = re.fullmatch(r"task (\S+)(?: \((.*)\))?", origin)
    return f"past task {short_task_name(found[1], found[2] or '')}" if found else origin
