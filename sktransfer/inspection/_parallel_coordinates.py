"""`ParallelCoordinatesDisplay`: every trial as a line through its parameters to its score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.inspection._axes_setup import COLORMAP, GRAY, open_axes, score_limits
from sktransfer.inspection._parameter_axis import (
    ParameterAxis,
    format_value,
    round_steps,
    short_names,
)
from sktransfer.inspection._search_results import metric_label, read_results, read_space
from sktransfer.space import Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ticks = tuple[np.ndarray, list[str]]


class ParallelCoordinatesDisplay:
    """Every trial as a line through the values of its parameters to its score.

    Use `from_estimator` to create one from a fitted search.

    Parameters
    ----------
    names : sequence of str
        The parameters, from left to right.
    trials : array-like of shape (n_trials, n_parameters)
        Coordinates of the trials in [0, 1]. NaN where a configuration does not have a parameter.
    scores : array-like of shape (n_trials,)
        Their scores, NaN for failed ones.
    ticks : sequence of (ndarray, list of str)
        For each parameter, coordinates of the ticks and their labels.
    metric : str, default="score"
        Name of the score.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One line for each trial, in their order.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from sktransfer import TransferSearchCV
    >>> from sktransfer.inspection import ParallelCoordinatesDisplay
    >>> space = {"C": loguniform(1e-2, 1e3), "kernel": ["rbf", "linear"]}
    >>> search = TransferSearchCV(SVC(), space, n_iter=8, archive=None, random_state=0)
    >>> search = search.fit(*load_iris(return_X_y=True))
    >>> display = ParallelCoordinatesDisplay.from_estimator(search)
    >>> display.names, display.trials.shape
    (['C', 'kernel'], (8, 2))
    """

    def __init__(
        self,
        names: Sequence[str],
        trials: Any,
        scores: Any,
        *,
        ticks: Sequence[Ticks],
        metric: str = "score",
    ):
        self.names, self.ticks, self.metric = list(names), list(ticks), metric
        self.trials = np.asarray(trials, dtype=float)
        self.scores = np.asarray(scores, dtype=float)
        if self.trials.shape != (len(self.scores), len(self.names)):
            raise ValueError(
                f"trials has the shape {self.trials.shape}, but there are {len(self.scores)} "
                f"scores and {len(self.names)} names."
            )

    @classmethod
    def from_estimator(
        cls, search: Any, params: Sequence[str] | None = None, *, ax: Axes | None = None
    ) -> Self:
        """Plot the trials of a fitted search.

        Parameters
        ----------
        search : fitted TransferSearchCV, GridSearchCV or RandomizedSearchCV
        params : sequence of str or None, default=None
            Names of the parameters, from left to right. None takes all.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        ParallelCoordinatesDisplay
        """
        results, space = read_results(search), read_space(search)
        axes = _axes_by_name(space)
        if params is None:
            params = list(axes)
        if unknown := [name for name in params if name not in axes]:
            raise ValueError(f"{unknown[0]!r} is not a parameter of the search: {sorted(axes)}.")
        if not params:
            raise ValueError("The search space has no parameters.")
        codes = space.encode(results.params)
        trials = [
            [_coordinate(axes[name], name, each, code) for name in params]
            for each, code in zip(results.params, codes, strict=True)
        ]
        ticks = [_merge_ticks(axes[name]) for name in params]
        return cls(params, trials, results.scores, ticks=ticks, metric=results.metric).plot(ax=ax)

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
        n = len(self.names)
        size = (max(5.5, 2.2 + 1.5 * n), 4.4)
        self.figure_, self.ax_ = open_axes(ax, f"{type(self).__name__}.plot", size)
        import matplotlib

        low, high = score_limits(self.scores)
        height = np.clip((self.scores - low) / (high - low), 0, 1)
        colors = matplotlib.colormaps[COLORMAP]
        self.lines_ = []
        for row in range(len(self.scores)):
            is_ok = np.isfinite(height[row])
            [line] = self.ax_.plot(
                np.arange(n + 1),
                [*self.trials[row], height[row]],
                color=colors(height[row]) if is_ok else GRAY,
                linestyle="-" if is_ok else ":",
                marker="o",
                markersize=3,
                lw=1.3,
                alpha=0.85 if is_ok else 0.5,
                zorder=2 + (height[row] if is_ok else -1),  # the best lie on top
            )
            self.lines_.append(line)
            self._bridge_gaps(row, line.get_color())
        for position, (at, labels) in enumerate([*self.ticks, _score_ticks(low, high)]):
            self._draw_axis(position, at, labels)
        names = [*short_names(self.names), metric_label(self.metric).replace(" (", "\n(")]
        self.ax_.set_xticks(np.arange(n + 1), labels=names)
        self.ax_.set(xlim=(-0.25, n + 0.45), ylim=(-0.04, 1.04), yticks=[])
        self.ax_.tick_params(axis="x", length=0, pad=8)
        self.ax_.spines[:].set_visible(False)
        return self

    def _bridge_gaps(self, row: int, color: Any) -> None:
        """Pass by the parameters that a configuration does not have, with a dotted line."""
        has = np.append(np.isfinite(self.trials[row]), np.isfinite(self.scores[row]))
        if has[:-1].all():
            return
        y = np.asarray(self.lines_[row].get_ydata())
        self.ax_.plot(np.flatnonzero(has), y[has], ":", color=color, lw=0.9, alpha=0.6, zorder=1)

    def _draw_axis(self, position: int, at: np.ndarray, labels: Sequence[str]) -> None:
        self.ax_.plot([position] * 2, [0, 1], color="black", lw=0.8, zorder=1)
        for y, label in zip(at, labels, strict=True):
            self.ax_.text(
                position + 0.04,
                y,
                label,
                fontsize="small",
                va="center",
                zorder=5,
                bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.8},
            )


def _axes_by_name(space: Space) -> dict[str, list[list[ParameterAxis]]]:
    """The axes of each parameter: by column, and for each column by branch.

    It has several columns if branches give it values of several kinds.
    """
    found: dict[str, dict[int, list[ParameterAxis]]] = {}
    for branch in range(len(space.branches)):
        for axis in ParameterAxis.all_of(space, branch):
            found.setdefault(axis.name, {}).setdefault(axis.column, []).append(axis)
    return {name: list(by_column.values()) for name, by_column in found.items()}


def _coordinate(
    axes: Sequence[Sequence[ParameterAxis]], name: str, params: dict[str, Any], code: np.ndarray
) -> float:
    """Where a trial crosses the axis of a parameter. Several kinds of values share its height."""
    if name not in params:
        return np.nan
    space = axes[0][0].space
    active = set(space.active(int(space.branch_of(code[None])[0])).tolist())
    for number, [axis, *_] in enumerate(axes):
        if axis.column in active:
            return (number + min(max(float(code[axis.column]), 0.0), 1.0)) / len(axes)
    return np.nan


def _merge_ticks(axes: Sequence[Sequence[ParameterAxis]]) -> Ticks:
    """Ticks of all columns, one above the other. Branches may list different values."""
    merged: dict[str, float] = {}
    for number, by_branch in enumerate(axes):
        for axis in by_branch:
            for place, label in zip(*axis.ticks(), strict=True):
                merged.setdefault(label, (number + float(place)) / len(axes))
    return np.array([*merged.values()]), [*merged]


def _score_ticks(low: float, high: float) -> Ticks:
    numbers = np.array(round_steps(low, high))
    labels = [format_value(number) for number in numbers.tolist()]
    if len(set(labels)) < len(labels):
        labels = [f"{number:.8g}" for number in numbers]
    return (numbers - low) / (high - low), labels
