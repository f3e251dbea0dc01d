"""`SurfaceDisplay`: the posterior of the surrogate over one or two parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.inspection._axes_setup import BLUE, COLORMAP, ORANGE, import_pyplot, open_axes
from sktransfer.inspection._parameter_axis import ParameterAxis, default_branch, short_names
from sktransfer.inspection._score_model import ScoreModel
from sktransfer.inspection._search_results import metric_label, read_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Ticks = tuple[np.ndarray, list[str]]


class SurfaceDisplay:
    """Predicted scores and their uncertainty over one or two parameters, with the trials.

    Use `from_estimator` to create one from a fitted search. The other parameters have their values
    in the best configuration. All coordinates are those of the search space, in [0, 1].

    Parameters
    ----------
    names : sequence of str
        The one or two parameters.
    grid : sequence of ndarray
        Coordinates at which the scores were predicted, one array for each parameter.
    mean, std : ndarray of shape (n,) or (n, m)
        Predicted score and its standard deviation at the points of the grid.
    ticks : sequence of (ndarray, list of str)
        For each parameter, coordinates of the ticks and their labels.
    trials : ndarray of shape (k, 1) or (k, 2)
        Coordinates of the trials.
    scores : ndarray of shape (k,)
        Their scores, NaN for failed ones.
    best : int
        Index of the best trial.
    metric : str, default="score"
        Name of the score.
    is_list : bool, default=False
        Whether a single parameter is a list of values, which are not connected by a curve.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the mean.
    axes_ : list of matplotlib Axes
        With two parameters, the axes of the mean and those of the standard deviation.
    figure_ : matplotlib Figure
    surface_ : matplotlib artist
        The curve or the colored surface of the mean.
    points_ : matplotlib PathCollection
        The trials.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from sktransfer import TransferSearchCV
    >>> from sktransfer.inspection import SurfaceDisplay
    >>> space = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1e1)}
    >>> search = TransferSearchCV(SVC(), space, n_iter=8, archive=None, random_state=0)
    >>> search = search.fit(*load_iris(return_X_y=True))
    >>> display = SurfaceDisplay.from_estimator(search, ["C", "gamma"])
    >>> display.mean.shape, display.ax_.get_xlabel()
    ((80, 80), 'C')
    """

    def __init__(
        self,
        names: Sequence[str],
        grid: Sequence[np.ndarray],
        mean: np.ndarray,
        std: np.ndarray,
        *,
        ticks: Sequence[Ticks],
        trials: np.ndarray,
        scores: np.ndarray,
        best: int,
        metric: str = "score",
        is_list: bool = False,
    ):
        if len(names) not in (1, 2):
            raise ValueError(f"names={names!r} must have one or two parameters.")
        self.names, self.grid, self.ticks = list(names), list(grid), list(ticks)
        self.mean, self.std = mean, std
        self.trials, self.scores, self.best, self.metric = trials, scores, best, metric
        self.is_list = is_list

    @classmethod
    def from_estimator(
        cls,
        search: Any,
        params: str | Sequence[str] | None = None,
        *,
        grid_resolution: int = 80,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Predict the scores over one or two parameters of a fitted search, and plot them.

        Parameters
        ----------
        search : fitted TransferSearchCV, GridSearchCV or RandomizedSearchCV
            Where a search has no model, a Gaussian process is fitted to its trials.
        params : str, sequence of str or None, default=None
            One or two names of parameters. None takes the first two parameters that are numbers,
            or the first ones if there are fewer.
        grid_resolution : int, default=80
            Number of points of each parameter that is not a list of values.
        ax : matplotlib Axes, sequence of two Axes or None, default=None
            Where to plot. With two parameters, a single Axes shows the mean only. None makes a new
            figure.

        Returns
        -------
        SurfaceDisplay
        """
        results, model = read_results(search), ScoreModel.from_search(search)
        axes = _choose_axes(model, params)
        grid = [axis.grid(grid_resolution) for axis in axes]
        shape = tuple(len(coordinates) for coordinates in grid)
        points = np.stack([each.ravel() for each in np.meshgrid(*grid, indexing="ij")], axis=1)
        codes = np.tile(model.best_code(), (len(points), 1))
        columns = [axis.column for axis in axes]
        codes[:, columns] = points
        mean, std = model.predict(codes)
        in_branch = model.space.branch_of(model.target.theta) == axes[0].branch
        return cls(
            [axis.name for axis in axes],
            grid,
            mean.reshape(shape),
            std.reshape(shape),
            ticks=[axis.ticks() for axis in axes],
            trials=model.target.theta[in_branch][:, columns],
            scores=results.scores[in_branch],
            best=int(np.nanargmax(results.scores[in_branch])),
            metric=results.metric,
            is_list=model.space.choices(axes[0].branch, axes[0].column) is not None,
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of two Axes or None, default=None
            Where to plot. With two parameters, a single Axes shows the mean only. None makes a new
            figure.

        Returns
        -------
        self
        """
        plt = import_pyplot(f"{type(self).__name__}.plot")
        if ax is None and len(self.names) == 2:
            _, ax = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
        given: list[Any] = [*ax] if np.iterable(ax) else [ax]
        if len(given) > len(self.names):
            raise ValueError(f"{len(self.names)} parameter needs one Axes, got {len(given)}.")
        self.figure_, self.ax_ = open_axes(given[0], f"{type(self).__name__}.plot")
        self.axes_: list[Axes] = [self.ax_, *given[1:]]
        self.surface_: Any = None
        if len(self.names) == 1:
            self._plot_curve(self.ax_)
        else:
            label = f"Predicted: {metric_label(self.metric).lower()}".replace(" (", "\n(")
            self.surface_ = self._plot_surface(self.ax_, self.mean, label)
            for other in self.axes_[1:]:
                self._plot_surface(other, self.std, "Standard deviation of the prediction")
        return self

    def _plot_curve(self, ax: Axes) -> None:
        x, mean, std = self.grid[0], self.mean, self.std
        if self.is_list:
            self.surface_ = ax.errorbar(
                x,
                mean,
                2 * std,
                fmt="_",
                ms=24,
                lw=8,
                color=BLUE,
                alpha=0.5,
                label="predicted ± 2 std",
            )
        else:
            [self.surface_] = ax.plot(x, mean, color=BLUE, label="predicted ± 2 std")
            ax.fill_between(x, mean - 2 * std, mean + 2 * std, color=BLUE, alpha=0.18, lw=0)
        self.points_ = ax.scatter(
            self.trials[:, 0], self.scores, s=26, color="black", zorder=3, label="trials"
        )
        ax.scatter(
            self.trials[self.best, 0],
            self.scores[self.best],
            s=110,
            marker="*",
            color=ORANGE,
            zorder=4,
            label="best",
        )
        [name] = short_names(self.names)
        ax.set(xlabel=name, ylabel=metric_label(self.metric), xlim=(-0.03, 1.03))
        _set_ticks(ax.xaxis, self.ticks[0])
        ax.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)

    def _plot_surface(self, ax: Axes, values: np.ndarray, label: str) -> Any:
        x, y = (_edges(coordinates) for coordinates in self.grid)
        surface = ax.pcolormesh(x, y, values.T, cmap=COLORMAP, rasterized=True)
        ax.figure.colorbar(surface, ax=ax, label=label)
        ok, failed = np.isfinite(self.scores), ~np.isfinite(self.scores)
        x, y = self.trials.T
        # Trials at the bounds of the space are drawn whole.
        style: dict[str, Any] = {"s": 26, "clip_on": False, "zorder": 3}
        points = ax.scatter(
            x[ok], y[ok], color="white", edgecolors="black", linewidths=0.8, label="trial", **style
        )
        if failed.any():
            ax.scatter(x[failed], y[failed], color="black", marker="x", label="failed", **style)
        best, style = self.best, style | {"s": 130}
        ax.scatter(
            x[best], y[best], marker="*", color=ORANGE, edgecolors="black", label="best", **style
        )
        ax.set(**dict(zip(("xlabel", "ylabel"), short_names(self.names), strict=True)))
        _set_ticks(ax.xaxis, self.ticks[0])
        _set_ticks(ax.yaxis, self.ticks[1])
        ax.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
        if ax is self.ax_:
            self.points_ = points
        return surface


def _choose_axes(model: ScoreModel, params: str | Sequence[str] | None) -> list[ParameterAxis]:
    branch = default_branch(model.space, model.best_code())
    if params is None:
        axes = ParameterAxis.all_of(model.space, branch)
        if not axes:
            raise ValueError("The search space has no parameters.")
        return sorted(axes, key=lambda axis: axis.is_categorical)[:2]
    names = [params] if isinstance(params, str) else list(params)
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
        raise ValueError(f"params={params!r} must be one or two different names of parameters.")
    return [ParameterAxis.find(model.space, name, branch) for name in names]


def _edges(centers: np.ndarray) -> np.ndarray:
    """Edges of the cells around sorted centers; (n,) -> (n + 1,)."""
    if len(centers) == 1:
        return np.array([0.0, 1.0])
    middles = (centers[1:] + centers[:-1]) / 2
    first, last = 2 * centers[0] - middles[0], 2 * centers[-1] - middles[-1]
    return np.concatenate([[first], middles, [last]])


def _set_ticks(axis: Any, ticks: Ticks) -> None:
    axis.set_ticks(ticks[0], labels=ticks[1])
