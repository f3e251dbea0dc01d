"""`CalibrationDisplay`: predicted against observed scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.inspection._axes_setup import BLUE, GRAY, open_axes, score_limits, write_sentence
from sktransfer.inspection._search_results import metric_label, read_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NORMAL_SHARES = {1: 0.68, 2: 0.95}  # of a normal distribution, within 1 and 2 deviations


class CalibrationDisplay:
    """The score that the model predicted for each trial, against the score that was observed.

    Use `from_estimator` to create one from a fitted search. If the model is calibrated, about 68 %
    of the scores are within one standard deviation of the prediction, and 95 % within two.

    Parameters
    ----------
    observed : array-like of shape (n_trials,)
        Scores, NaN for failed trials.
    predicted_mean, predicted_std : array-like of shape (n_trials,)
        What was predicted before each trial; NaN without a model.
    metric : str, default="score"
        Name of the score.

    Attributes
    ----------
    coverage : dict of int to float
        Share of the scores within 1 and 2 standard deviations of the prediction; NaN if there is
        no prediction.
    n_predicted : int
        Number of trials that have a prediction and a score.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : matplotlib ErrorbarContainer or None
        None if there is no prediction.

    Examples
    --------
    >>> from sktransfer.inspection import CalibrationDisplay
    >>> display = CalibrationDisplay([0.8, 0.9, 0.95], [0.7, 0.9, 0.95], [0.05, 0.05, 0.05])
    >>> round(display.coverage[1], 2), display.coverage[2]
    (0.67, 1.0)
    """

    def __init__(
        self, observed: Any, predicted_mean: Any, predicted_std: Any, *, metric: str = "score"
    ):
        arrays = [
            np.asarray(values, dtype=float) for values in (observed, predicted_mean, predicted_std)
        ]
        if len({values.shape for values in arrays}) > 1:
            raise ValueError("observed, predicted_mean and predicted_std must have one length.")
        self.observed, self.predicted_mean, self.predicted_std = arrays
        self.metric = metric
        self._known = np.isfinite(arrays).all(axis=0)
        self.n_predicted = int(self._known.sum())
        distance = np.abs(self.observed - self.predicted_mean)[self._known]
        std = self.predicted_std[self._known] * (1 + 1e-9)  # up to rounding
        self.coverage = {
            k: float((distance <= k * std).mean()) if self.n_predicted else np.nan
            for k in NORMAL_SHARES
        }

    @classmethod
    def from_estimator(cls, search: Any, *, ax: Axes | None = None) -> Self:
        """Plot predicted against observed scores of a fitted search.

        Parameters
        ----------
        search : fitted TransferSearchCV
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        CalibrationDisplay
        """
        results = read_results(search)
        return cls(
            results.scores, results.predicted_mean, results.predicted_std, metric=results.metric
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
        self.figure_, self.ax_ = open_axes(ax, f"{type(self).__name__}.plot", (5.2, 5.2))
        self.points_: Any = None
        if not self.n_predicted:
            write_sentence(self.ax_, "No score was predicted: the search had no model.")
            return self
        observed, mean, std = (
            values[self._known]
            for values in (self.observed, self.predicted_mean, self.predicted_std)
        )
        low, high = score_limits(np.concatenate([observed, mean]))
        margin = 0.06 * (high - low)
        ends = [low - margin, high + margin]
        self.ax_.plot(ends, ends, color=GRAY, lw=1, linestyle="--", label="predicted = observed")
        self.points_ = self.ax_.errorbar(
            mean,
            observed,
            xerr=std,
            fmt="o",
            ms=4.5,
            color=BLUE,
            ecolor=BLUE,
            elinewidth=0.8,
            alpha=0.75,
            label="trial, ± 1 std",
        )
        label = metric_label(self.metric)
        shares = [
            f"within {k} std: {self.coverage[k]:.0%} (calibrated: {share:.0%})"
            for k, share in NORMAL_SHARES.items()
        ]
        n_outside = int(((observed < ends[0]) | (mean < ends[0])).sum())
        outside = f", {n_outside} of them below the range" if n_outside else ""
        count = f"{self.n_predicted} prediction{'s' * (self.n_predicted != 1)}{outside}"
        lines = [f"Predicted: {label.lower()}", count, *shares]
        self.ax_.set(xlim=ends, ylim=ends, xlabel="\n".join(lines))
        self.ax_.set(ylabel=f"Observed: {label.lower()}")
        self.ax_.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
        return self
