"""`SearchHistoryDisplay`: the trials of a search, the best so far and what was predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.inspection._axes_setup import (
    BLUE,
    ORIGIN_COLORS,
    PINK,
    best_so_far,
    import_pyplot,
    open_axes,
    origin_groups,
    score_limits,
)
from sktransfer.inspection._search_results import metric_label, read_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BELOW = 0.04
"""Where trials below the limits are marked, as a share of the range of scores."""


class SearchHistoryDisplay:
    """The score of each trial, the best so far, and the score that was predicted.

    Use `from_estimator` to create one from a fitted search.

    Parameters
    ----------
    scores : array-like of shape (n_trials,)
        Scores in the order of the trials, NaN for failed ones.
    origins : sequence of str or None, default=None
        Where each trial came from, as in ``cv_results_["origin"]``.
    predicted_mean, predicted_std : array-like of shape (n_trials,) or None, default=None
        What the model predicted before each trial; NaN without a model.
    metric : str, default="score"
        Name of the score.
    name : str or None, default=None
        Name of the search, for the title or the legend.

    Attributes
    ----------
    best_scores : ndarray of shape (n_trials,)
        The best score after each trial.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : dict of str to matplotlib PathCollection
        The trials of each origin that are not below the limits; empty with ``kind="best"``.
    line_ : matplotlib Line2D
        The best so far.
    band_ : matplotlib artist or None
        The predictions.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from sktransfer import TransferSearchCV
    >>> from sktransfer.inspection import SearchHistoryDisplay
    >>> search = TransferSearchCV(SVC(), {"C": loguniform(1e-2, 1e3)}, n_iter=6, archive=None)
    >>> search = search.fit(*load_iris(return_X_y=True))
    >>> display = SearchHistoryDisplay.from_estimator(search)
    >>> len(display.scores), display.ax_.get_xlabel()
    (6, 'Trial')
    """

    def __init__(
        self,
        scores: Any,
        *,
        origins: Sequence[str] | None = None,
        predicted_mean: Any = None,
        predicted_std: Any = None,
        metric: str = "score",
        name: str | None = None,
    ):
        self.scores = np.asarray(scores, dtype=float)
        n = len(self.scores)
        self.origins = ["trial"] * n if origins is None else list(origins)
        self.predicted_mean = _floats(predicted_mean, n)
        self.predicted_std = _floats(predicted_std, n)
        if not len(self.origins) == len(self.predicted_mean) == len(self.predicted_std) == n:
            raise ValueError("scores, origins and predictions must have the same length.")
        self.metric, self.name = metric, name
        self.best_scores = best_so_far(self.scores)

    @classmethod
    def from_estimator(
        cls,
        search: Any,
        *,
        name: str | None = None,
        kind: str = "trials",
        ax: Axes | None = None,
    ) -> Self:
        """Plot the history of a fitted search.

        Parameters
        ----------
        search : fitted TransferSearchCV, GridSearchCV or RandomizedSearchCV
        name : str or None, default=None
            Name of the search, for the title or the legend.
        kind : {"trials", "best"}, default="trials"
            "best" draws only the best so far. Use it to compare several searches in one
            picture, with the `ax_` of the first.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        SearchHistoryDisplay
        """
        return cls._read(search, name).plot(kind=kind, ax=ax)

    @classmethod
    def _read(cls, search: Any, name: str | None) -> Self:
        results = read_results(search)
        return cls(
            results.scores,
            origins=results.origins,
            predicted_mean=results.predicted_mean,
            predicted_std=results.predicted_std,
            metric=results.metric,
            name=name,
        )

    @classmethod
    def from_estimators(cls, searches: Mapping[str, Any]) -> list[Self]:
        """Plot several fitted searches side by side, on the same scale.

        Parameters
        ----------
        searches : dict of str to fitted search
            Names and searches.

        Returns
        -------
        list of SearchHistoryDisplay
        """
        plt = import_pyplot(f"{cls.__name__}.from_estimators")
        if not searches:
            raise ValueError("Pass at least one search.")
        made = [cls._read(search, name) for name, search in searches.items()]
        limits = score_limits(np.concatenate([display.scores for display in made]))
        size = (5.4 * len(made), 4.4)
        _, axes = plt.subplots(1, len(made), figsize=size, squeeze=False, layout="constrained")
        for display, ax in zip(made, axes[0], strict=True):
            display.plot(ax=ax, limits=limits)
        return made

    def plot(
        self,
        *,
        kind: str = "trials",
        limits: tuple[float, float] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the display.

        Parameters
        ----------
        kind : {"trials", "best"}, default="trials"
            "best" draws only the best so far.
        limits : tuple of float or None, default=None
            Lowest and highest score to show. Trials below are marked at the bottom. None leaves
            out a few scores that are much lower than the others.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        self
        """
        if kind not in ("trials", "best"):
            raise ValueError(f"kind={kind!r} must be 'trials' or 'best'.")
        self.figure_, self.ax_ = open_axes(ax, f"{type(self).__name__}.plot")
        self.band_: Any = None
        self.points_: dict[str, Any] = {}
        style: dict[str, Any] = {"label": self.name or "best so far"}
        best = self.best_scores
        if kind == "trials":
            low, high = limits or score_limits(self.scores)
            span = high - low
            self._plot_predictions(low - 0.1 * span)
            self._plot_trials(low, high)
            best = np.where(best < low, low - BELOW * span, best)  # at the marks of these trials
            style = {"label": "best so far", "color": "black"}
            self.ax_.set_title(self.name or "")
            # The legend has room below the lowest trial.
            self.ax_.set_ylim(low - 0.42 * span, self._top(high, span, limits) + 0.08 * span)
            self.ax_.set_xlim(0.4, len(self.scores) + 0.6)
        trials = np.arange(1, len(self.scores) + 1)
        [self.line_] = self.ax_.step(trials, best, where="post", lw=1.5, **style)
        self.ax_.set(xlabel="Trial", ylabel=metric_label(self.metric))
        locator: Any = self.ax_.xaxis.get_major_locator()
        locator.set_params(integer=True, min_n_ticks=1)
        self.ax_.legend(fontsize="small", loc="lower right", ncols=3 if kind == "trials" else 1)
        return self

    def _top(self, high: float, span: float, limits: tuple[float, float] | None) -> float:
        """The highest score or prediction to show. Predictions far above all scores are cut off."""
        if limits is not None:
            return high
        return float(np.nanmax([high, *np.minimum(self.predicted_mean, high + 0.3 * span)]))

    def _plot_predictions(self, floor: float) -> None:
        """Draw the predictions, cut off at `floor`, below which the legend is."""
        mean, std = self.predicted_mean, self.predicted_std
        known = np.isfinite(mean) & np.isfinite(std) & (mean + std > floor)
        if not known.any():
            return
        trials = np.flatnonzero(known) + 1
        mean, std = mean[known], std[known]
        self.band_ = self.ax_.vlines(
            trials,
            np.maximum(mean - std, floor),
            mean + std,
            color=BLUE,
            alpha=0.35,
            lw=4,
            label="predicted ± 1 std",
            zorder=1,
        )
        shown = mean > floor
        self.ax_.plot(trials[shown], mean[shown], "_", color=BLUE, alpha=0.35, ms=9, zorder=1)

    def _plot_trials(self, low: float, high: float) -> None:
        groups = np.array(origin_groups(self.origins), dtype=object)
        trials, failed = np.arange(1, len(self.scores) + 1), ~np.isfinite(self.scores)
        below = ~failed & (self.scores < low)
        known = [*ORIGIN_COLORS, *dict.fromkeys(groups)]
        for group in [name for name in dict.fromkeys(known) if name in groups]:
            rows, color = (groups == group) & ~failed, ORIGIN_COLORS.get(group, PINK)
            self.points_[group] = self.ax_.scatter(
                trials[rows & ~below],
                self.scores[rows & ~below],
                s=30,
                color=color,
                edgecolors="white",
                linewidths=0.5,
                label=group,
                zorder=3,
            )
            where = trials[rows & below]
            y = np.full(len(where), low - BELOW * (high - low))
            self.ax_.scatter(where, y, s=30, marker="v", color=color, zorder=3)
        if below.any():
            self.ax_.scatter([], [], s=30, marker="v", color="black", label=f"below {low:.3g}")
        if failed.any():
            y = np.full(failed.sum(), low - 0.09 * (high - low))
            self.points_["failed"] = self.ax_.scatter(
                trials[failed], y, s=30, marker="x", color="black", label="failed", zorder=3
            )


def _floats(values: Any, n: int) -> np.ndarray:
    return np.full(n, np.nan) if values is None else np.asarray(values, dtype=float)
