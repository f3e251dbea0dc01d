"""When a search ends before its budget is used up, and when a single fit does."""

from __future__ import annotations

import functools
import math
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StoppingRule:
    """When a search starts no further batch.

    Parameters
    ----------
    deadline : float
        Value of ``time.monotonic()`` after which it stops.
    patience : int or None
        Number of candidates in a row without a better score after which it stops.
    target_score : float or None
        Score at which it stops.

    Examples
    --------
    >>> rule = StoppingRule(patience=2, target_score=0.9)
    >>> rule.reason([0.5, 0.6, 0.6]), rule.reason([0.5, 0.6, 0.6, 0.4])
    (None, 'no better score in the last 2 candidates')
    >>> rule.reason([0.5, 0.95])
    'a score of 0.95 reaches target_score=0.9'
    """

    deadline: float = math.inf
    patience: int | None = None
    target_score: float | None = None

    @property
    def is_never(self) -> bool:
        """Whether the search always runs to its end."""
        return math.isinf(self.deadline) and self.patience is None and self.target_score is None

    def reason(self, scores: list[float], n_known: int = 0) -> str | None:
        """Why to stop after candidates with these scores, NaN for failures; None to continue.

        The first `n_known` were not evaluated, so that they do not use up patience.
        """
        best, n_since_best = -math.inf, 0
        for number, score in enumerate(scores, 1):
            n_since_best = 0 if score > best or number <= n_known else n_since_best + 1
            best = max(best, score) if not math.isnan(score) else best
        if self.target_score is not None and best >= self.target_score:
            return f"a score of {best:.6g} reaches target_score={self.target_score!r}"
        # Failures before the first success say nothing about what is still to be found.
        has_score = best > -math.inf
        if self.patience is not None and has_score and n_since_best >= self.patience:
            return f"no better score in the last {self.patience} candidates"
        return "the timeout is over" if time.monotonic() >= self.deadline else None


def can_limit_fits() -> bool:
    """Whether this platform has the timer that interrupts a fit."""
    return hasattr(signal, "setitimer")


def limit_fit(evaluate: Callable, seconds: float, estimator: Any, /, *args: Any, **kw: Any) -> Any:
    """Call `evaluate` with an estimator whose `fit` raises a TimeoutError after some seconds.

    Only `fit` is limited, because scikit-learn records what it raises as a failed fit. The timer
    interrupts Python code in the main thread of a process, which is where joblib's processes fit.
    Compiled code ends first. In other threads there is no limit.
    """
    if threading.current_thread() is threading.main_thread():
        estimator.fit = functools.partial(_call_limited, seconds, estimator.fit)
    return evaluate(estimator, *args, **kw)


def _call_limited(seconds: float, function: Callable, *args: Any, **kwargs: Any) -> Any:
    def interrupt(*_: object) -> None:
        raise TimeoutError(f"The fit took longer than fit_timeout={seconds!r} seconds.")

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return function(*args, **kwargs)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
