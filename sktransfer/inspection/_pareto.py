"""`ParetoDisplay`: score against the time of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.inspection._axes_setup import GRAY, ORANGE, open_axes, score_limits, write_sentence
from sktransfer.inspection._parameter_axis import format_value, short_names
from sktransfer.inspection._search_results import metric_label, read_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_NAMED = 4  # parameters of a configuration that are written
MIN_TIME = 1e-6  # seconds; a shorter time has no place on a log scale


class ParetoDisplay:
    """The score of each trial against the time of one fit, and the trials that nothing dominates.

    Use `from_estimator` to create one from a fitted search. A trial is dominated if another one
    has at least its score in at most its time, and is better in one of them.

    Parameters
    ----------
    scores : array-like of shape (n_trials,)
        Scores, NaN for failed trials.
    fit_times : array-like of shape (n_trials,)
        Mean time of one fit in seconds.
    params : sequence of dict or None, default=None
        The configurations.
    metric : str, default="score"
        Name of the score.

    Attributes
    ----------
    front : ndarray of int
        Indices of the trials that nothing dominates, fastest first.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : matplotlib PathCollection or None
        All successful trials. None if there are none.
    line_ : matplotlib Line2D or None
        The front.

    Examples
    --------
    >>> from sktransfer.inspection import ParetoDisplay
    >>> display = ParetoDisplay([0.8, 0.9, 0.85], fit_times=[0.1, 2.0, 3.0])
    >>> display.front.tolist()  # the third trial is slower and worse than the second
    [0, 1]
    """

    def __init__(
        self,
        scores: Any,
        fit_times: Any,
        *,
        params: Sequence[dict[str, Any]] | None = None,
        metric: str = "score",
    ):
        self.scores = np.asarray(scores, dtype=float)
        self.fit_times = np.asarray(fit_times, dtype=float)
        if self.scores.shape != self.fit_times.shape:
            raise ValueError("scores and fit_times must have one length.")
        self.params = None if params is None else list(params)
        self.metric = metric
        self.front = find_front(self.scores, self.fit_times)

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Axes | None = None) -> Self:
        """Plot score against time of a fitted search.

        Parameters
        ----------
        search : fitted TransferSearchCV, GridSearchCV or RandomizedSearchCV
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        ParetoDisplay
        """
        results = read_results(search)
        return cls(
            results.scores, results.fit_times, params=results.params, metric=results.metric
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        self
        """
        self.figure_, self.ax_ = open_axes(ax, f"{type(self).__name__}.plot", (7.2, 4.8))
        self.points_: Any = None
        self.line_: Any = None
        if not len(self.front):
            write_sentence(self.ax_, "No trial succeeded.")
            return self
        unit, times = _choose_unit(np.maximum(self.fit_times, MIN_TIME))
        low, high = score_limits(self.scores)
        ok = np.isfinite(self.scores) & (self.scores >= low)
        self.points_ = self.ax_.scatter(times[ok], self.scores[ok], s=24, color=GRAY, label="trial")
        order = self.front[self.scores[self.front] >= low]
        [self.line_] = self.ax_.plot(
            times[order],
            self.scores[order],
            drawstyle="steps-post",
            marker="o",
            color=ORANGE,
            label="best score within the time",
        )
        if times[ok].max() > 10 * times[ok].min():
            self.ax_.set_xscale("log")
        if self.scores[ok].min() < self.scores[ok].max():
            low = self.scores[ok].min()
        span = high - low
        self.ax_.set_ylim(low - 0.06 * span, high + 0.06 * span)
        n_below = int((np.isfinite(self.scores) & ~ok).sum())
        below = f"; {n_below} of the trials below the range" if n_below else ""
        self.ax_.set(xlabel=f"Mean time of one fit ({unit}){below}")
        self.ax_.set(ylabel=metric_label(self.metric))
        self._mark_ends(order, times)
        n_columns = 2 if self.params is None else 1
        self.ax_.legend(
            fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=n_columns
        )
        return self

    def _mark_ends(self, order: np.ndarray, times: np.ndarray) -> None:
        """Mark both ends of the front; the legend names their configurations."""
        if self.params is None:
            return
        ends = [(order[0], "fastest", "s"), (order[-1], "best", "*")]
        if len(order) == 1:
            ends = [(order[0], "fastest and best", "*")]
        for number, title, marker in ends:
            params = self.params[number]
            pairs = zip(short_names(list(params)), params.values(), strict=True)
            words = [f"{name} = {format_value(value)}" for name, value in pairs]
            more = ", …" if len(words) > MAX_NAMED else ""
            self.ax_.plot(
                [times[number]],
                [self.scores[number]],
                marker,
                markersize=13 if marker == "*" else 9,
                color=ORANGE,
                markeredgecolor="black",
                label=f"{title}: {', '.join(words[:MAX_NAMED])}{more}",
            )


def _choose_unit(seconds: np.ndarray) -> tuple[str, np.ndarray]:
    return ("seconds", seconds) if np.nanmax(seconds) >= 1 else ("milliseconds", 1000 * seconds)


def find_front(scores: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Indices of the trials that nothing dominates, fastest first; (n,), (n,) -> (k,).

    >>> find_front(np.array([0.5, 0.5, np.nan, 0.7]), np.array([1.0, 2.0, 0.1, 3.0])).tolist()
    [0, 3]
    """
    known = np.flatnonzero(np.isfinite(scores) & np.isfinite(times))
    order = known[np.lexsort((-scores[known], times[known]))]
    best, front = -np.inf, []
    for number in order:
        if scores[number] > best:
            front.append(number)
            best = scores[number]
    return np.array(front, dtype=int)
