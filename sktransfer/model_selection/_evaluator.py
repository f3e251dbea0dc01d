"""Fits done piece by piece, so that what is finished can be put on disk before the rest is.

A row is what scikit-learn's ``_fit_and_score`` returns of one fit; a candidate has one for each fold.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, takewhile
from typing import Any

import numpy as np

from sktransfer.optimizer import Proposal
from sktransfer.task import Trial
from sktransfer.utils._values import to_python

Rows = list[dict[str, Any]]

SHORT_SECONDS = 0.5  # what a kill may cost of a grid of fast fits
ROUNDS = 8  # fits of each worker between two reports: waiting for the slowest then costs little
MORE = 8  # times as many of fast ones: what a kill may cost where slow fits follow them


class Evaluations:
    """In the place of the `Parallel` that scikit-learn evaluates candidates with: same fits, same rows.

    Parameters
    ----------
    parallel : callable
        Does fits and returns their rows, in their order.
    n_splits, n_workers : int
    known : callable
        From a proposal to the rows it had in an earlier run, or None.
    report : callable
        Called with a proposal, its rows and whether they are new, as soon as they are there.
    flush : callable
        Called every half second at least, as far as fits end, and after the last one.
    """

    def __init__(
        self,
        parallel: Callable[[Iterable], Rows],
        n_splits: int,
        n_workers: int,
        known: Callable[[Proposal], Rows | None],
        report: Callable[[Proposal, Rows, bool], None],
        flush: Callable[[], None],
    ):
        self._parallel, self._n_splits = parallel, n_splits
        self._known, self._report, self._flush = known, report, flush
        # With one worker a piece is a candidate; several have to wait for each other after each piece.
        self._least = 1 if n_workers == 1 else math.ceil(ROUNDS * n_workers / max(1, n_splits))
        self._most = 1 if n_workers == 1 else MORE * self._least
        self._step, self._flushed = self._least, 0.0
        self.batch: Sequence[Proposal] = ()

    def __call__(self, fits: Iterable) -> Rows:
        """The rows of the fits of the candidates in `batch`."""
        fits, rows = iter(fits), Rows()
        known = [self._known(proposal) for proposal in self.batch]
        position = 0
        while position < len(known):
            found = known[position]
            if found is None:
                piece = sum(1 for _ in takewhile(lambda each: each is None, known[position:]))
                piece = min(piece, self._step)
                rows += self._fit(self.batch[position : position + piece], fits)
                position += piece
            else:
                for _ in islice(fits, self._n_splits):
                    pass  # it need not be done
                self._report(self.batch[position], found, False)
                rows += found
                position += 1
        self._flush()
        # More of them than the splitter announced: scikit-learn has an error for that.
        return rows + self._parallel(fits)

    def _fit(self, proposals: Sequence[Proposal], fits: Iterable) -> Rows:
        n, begun = self._n_splits, time.monotonic()
        rows = self._parallel(islice(fits, len(proposals) * n))
        if rows and len(rows) == len(proposals) * n:  # otherwise scikit-learn will complain
            for i, proposal in enumerate(proposals):
                self._report(proposal, rows[i * n : (i + 1) * n], True)
        now = time.monotonic()
        self._step = min(2 * self._step, self._most) if now - begun < SHORT_SECONDS else self._least
        if now - self._flushed >= SHORT_SECONDS:  # after each of many fast fits it would take longest
            self._flush()
            self._flushed = now
        return rows


# -- what a candidate's rows say -----------------------------------------------------------------------


def scores_of(rows: Rows) -> dict[str, list[float]]:
    """The test scores in each fold, by metric."""
    found = [row["test_scores"] for row in rows]
    names = next((list(scores) for scores in found if isinstance(scores, dict)), None)
    if names is None:
        return {"score": found}
    # Where a scorer is a function, a failed fit has one score in the place of all.
    return {name: [s[name] if isinstance(s, dict) else math.nan for s in found] for name in names}


def trial_of(params: dict[str, Any], rows: Rows, metric: str) -> Trial:
    """The trial of a candidate: the numbers that `cv_results_` shows, to the last bit."""
    means, stds = {}, {}
    for name, scores in scores_of(rows).items():
        means[name], stds[name] = _mean_std(scores)
    # An error score that is a number would hide that a fit failed.
    failed = any(row["fit_error"] is not None for row in rows)
    return Trial.make(
        params,
        math.nan if failed else means[metric],
        std=stds[metric],
        fit_time=_mean_std([row["fit_time"] for row in rows])[0],
        metrics={str(name): mean for name, mean in means.items() if name != metric},
    )


def _mean_std(values: list[float]) -> tuple[float, float]:
    with np.errstate(invalid="ignore"):
        array = np.array([values], dtype=np.float64)
        mean = np.average(array, axis=1)
        return float(mean[0]), float(np.sqrt(np.average((array - mean[:, None]) ** 2, axis=1))[0])


# -- rows as plain data --------------------------------------------------------------------------------


def rows_to_plain(rows: Rows) -> list[list]:
    """Rows for the archive. Of an error only its kind: the message may quote the data."""
    return [
        [
            float(row["fit_time"]),
            float(row["score_time"]),
            int(row["n_test_samples"]),
            None if row["fit_error"] is None else _kind(row["fit_error"]),
            _plain_scores(row["test_scores"]),
            _plain_scores(row.get("train_scores")),
        ]
        for row in rows
    ]


def rows_from_plain(plain: Any, n_splits: int, train: bool) -> Rows | None:
    """Rows from the archive; None if they are not rows of so many folds, with train scores if needed."""
    if not isinstance(plain, list) or len(plain) != n_splits:
        return None
    rows = Rows()
    for each in plain:
        if not isinstance(each, list) or len(each) != 6:
            return None
        fit_time, score_time, n_test, error, test, with_train = each
        sound = isinstance(n_test, int) and isinstance(error, str | None) and _is_score(test)
        if not (sound and isinstance(fit_time, float) and isinstance(score_time, float)):
            return None
        row = {"fit_error": error, "test_scores": test, "n_test_samples": n_test}
        row |= {"fit_time": fit_time, "score_time": score_time}
        if train:
            if not _is_score(with_train):
                return None
            row["train_scores"] = with_train
        rows.append(row)
    return rows


def _plain_scores(scores: Any) -> Any:
    if isinstance(scores, dict):
        return {str(name): _plain_scores(score) for name, score in scores.items()}
    scores = to_python(scores)
    return scores if scores is None or isinstance(scores, (int, float)) else float(scores)


def _is_score(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(score, (int, float)) for score in value.values())
    return isinstance(value, (int, float))


def _kind(traceback: str) -> str:
    """The class of the error that a traceback ends with.

    >>> _kind("Traceback (most recent call last):\\n  ...\\nValueError: could not convert 'Ann'\\n")
    'ValueError, in an earlier run\\n'
    """
    last = traceback.strip().rpartition("\n")[2].partition(":")[0]
    return f"{last if last.replace('.', '').isidentifier() else 'An error'}, in an earlier run\n"
