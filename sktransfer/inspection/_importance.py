"""`ImportanceDisplay`: which parameters matter, by functional ANOVA."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.archive import Archive
from sktransfer.inspection._axes_setup import BLUE, SKY, open_axes, write_sentence
from sktransfer.inspection._functional_anova import Importances, decompose_variance
from sktransfer.inspection._parameter_axis import short_names
from sktransfer.inspection._score_model import ScoreModel
from sktransfer.model_selection import suggest_space
from sktransfer.optimizer._past_tasks import encode_tasks
from sktransfer.space import Estimator, Space, SpaceLike
from sktransfer.surrogates import EncodedTask
from sktransfer.utils._metric_names import Scoring, tuned_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_TASK_TRIALS = 8  # successful trials that a past task needs to count
MIN_SHOWN_INTERACTION = 0.01


class ImportanceDisplay:
    """How much of the variation of the scores each parameter explains.

    Use `from_estimator` for one search, or `from_archive` for past searches. The scores are those
    that a model predicts for all configurations of the space. Their variance is decomposed by
    functional ANOVA [1]_.

    Parameters
    ----------
    names : sequence of str
        The parameters.
    main : array-like of shape (n_tasks, n_parameters) or (n_parameters,)
        Share of the variance that each parameter explains alone. NaN where it is not known.
    total : array-like of the same shape
        Share that it explains together with all others.
    pairs : dict of (str, str) to float or None, default=None
        Share that two parameters explain together and neither alone, largest first. With several
        tasks it is the average.
    task_ids : sequence of str or None, default=None
        Ids of the tasks.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer or None
        The main effects. None if no task has enough trials.

    References
    ----------
    .. [1] F. Hutter, H. Hoos and K. Leyton-Brown (2014). An efficient approach for assessing
       hyperparameter importance. ICML.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from sktransfer import TransferSearchCV
    >>> from sktransfer.inspection import ImportanceDisplay
    >>> space = {"C": loguniform(1e-2, 1e3), "coef0": loguniform(1e-4, 1e1)}
    >>> search = TransferSearchCV(SVC(), space, n_iter=12, archive=None, random_state=0)
    >>> search = search.fit(*load_iris(return_X_y=True))
    >>> display = ImportanceDisplay.from_estimator(search)
    >>> display.names[display.total[0].argmax()]  # an rbf kernel has no coef0
    'C'
    """

    def __init__(
        self,
        names: Sequence[str],
        main: Any,
        total: Any,
        *,
        pairs: Mapping[tuple[str, str], float] | None = None,
        task_ids: Sequence[str] | None = None,
    ):
        self.names = list(names)
        self.main = np.asarray(main, dtype=float).reshape(-1, len(self.names))
        self.total = np.asarray(total, dtype=float).reshape(-1, len(self.names))
        self.pairs = dict(pairs or {})
        self.task_ids = list(task_ids or [])

    @classmethod
    def from_estimator(cls, search: Any, *, n_samples: int = 1024, ax: Axes | None = None) -> Self:
        """Compute the importances in a fitted search, and plot them.

        Parameters
        ----------
        search : fitted TransferSearchCV, GridSearchCV or RandomizedSearchCV
            Its surrogate predicts the scores, given all trials. Where a search has no model, a
            Gaussian process is fitted to its trials.
        n_samples : int, default=1024
            Number of configurations from which variances are estimated.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        ImportanceDisplay
        """
        model = ScoreModel.from_search(search)
        if model.space.n_columns == 0:
            raise ValueError("The search space has no parameters.")
        found = decompose_variance(model.mean, model.space, n_samples)
        ids = [search.task_id_] if getattr(search, "task_id_", None) else []
        return cls(found.names, found.main, found.total, pairs=found.pairs, task_ids=ids).plot(
            ax=ax
        )

    @classmethod
    def from_archive(
        cls,
        archive: str | os.PathLike[str] | Archive,
        estimator: Estimator,
        space: SpaceLike | str = "auto",
        *,
        scoring: Scoring = None,
        max_tasks: int = 50,
        n_samples: int = 256,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the importances in the past searches of an archive, and plot them.

        Parameters
        ----------
        archive : str, path or Archive
        estimator : estimator object
            Past searches of this estimator are used, if they have at least 8 successful trials. A
            Gaussian process is fitted to each.
        space : dict, list of dict, Space or "auto", default="auto"
            The parameters, as in `TransferSearchCV`.
        scoring : str, callable, list, tuple, dict or None, default=None
            Past searches are scored by this metric where they recorded it.
        max_tasks : int, default=50
            At most this many searches, newest first.
        n_samples : int, default=256
            Number of configurations from which variances are estimated.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        ImportanceDisplay
        """
        opened = archive if isinstance(archive, Archive) else Archive(archive)
        parsed = Space.parse(
            suggest_space(estimator) if isinstance(space, str) else space, estimator
        )
        tasks = sorted(opened.select(parsed).used, key=lambda task: task.created)[-max_tasks:]
        encoded = encode_tasks(parsed, tasks, tuned_metric(estimator, scoring, True))
        usable = [
            task
            for task in encoded
            if np.isfinite(task.z).sum() >= MIN_TASK_TRIALS and np.nanstd(task.z) > 0
        ]
        found = [_decompose_task(parsed, task, n_samples) for task in usable]
        names = found[0].names if found else list(dict.fromkeys(parsed.names))
        return cls(
            names,
            [each.main for each in found],
            [each.total for each in found],
            pairs=_average_pairs(found),
            task_ids=[task.id for task in usable],
        ).plot(ax=ax)

    def plot(self, *, max_shown: int = 12, ax: Axes | None = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        max_shown : int, default=12
            At most this many parameters, most important first.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        self
        """
        n_shown = min(len(self.names), max_shown)
        size = (6.4, 1.7 + 0.42 * n_shown)
        self.figure_, self.ax_ = open_axes(ax, f"{type(self).__name__}.plot", size)
        self.bars_: Any = None
        if not len(self.main):
            write_sentence(
                self.ax_,
                f"No past search of this estimator has {MIN_TASK_TRIALS} successful trials.",
            )
            return self
        main, total = _mean(self.main), _mean(self.total)
        order = np.argsort(-np.nan_to_num(total, nan=-1), kind="stable")[:n_shown]
        at, names = np.arange(n_shown), short_names(self.names)
        several = len(self.main) > 1
        self.ax_.barh(at, total[order], 0.68, color=SKY, alpha=0.45, label="with interactions")
        self.bars_ = self.ax_.barh(at, main[order], 0.36, color=BLUE, label="alone")
        if several:
            self._plot_tasks(order)
        self.ax_.set_yticks(at, labels=[names[i] for i in order])
        self.ax_.invert_yaxis()
        self.ax_.set(xlim=(0, 1.02), xlabel=self._label())
        self.ax_.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
        return self

    def _plot_tasks(self, order: np.ndarray) -> None:
        """A dot for the main effect in each task, spread out over the height of the bar."""
        spread = np.linspace(-0.28, 0.28, len(self.main))
        for row, i in enumerate(order):
            self.ax_.scatter(
                self.main[:, i],
                row + spread,
                s=7,
                color="black",
                alpha=0.6,
                linewidths=0,
                zorder=3,
                label="alone, each search" if row == 0 else None,
            )

    def _label(self) -> str:
        label = "Share of the variance of the predicted scores"
        if len(self.main) > 1:
            label += f", mean of {len(self.main)} searches"
        if self.pairs:
            pair, share = max(self.pairs.items(), key=lambda item: item[1])
            if share >= MIN_SHOWN_INTERACTION:
                one, other = short_names(pair)
                label += f"\nStrongest interaction: {one} and {other}, {share:.0%}"
        return label


def _decompose_task(space: Space, task: EncodedTask, n_samples: int) -> Importances:
    """The importances in one past task. What it did not vary is unknown."""
    theta = task.theta
    constant = {j: theta[0, j] for j in range(theta.shape[1]) if (theta[:, j] == theta[0, j]).all()}
    return decompose_variance(ScoreModel.from_task(space, task).mean, space, n_samples, constant)


def _average_pairs(found: Sequence[Importances]) -> dict[tuple[str, str], float]:
    names = dict.fromkeys(pair for each in found for pair in each.pairs)
    # A pair that is not among those of a task is not important there.
    return {pair: float(np.mean([each.pairs.get(pair, 0.0) for each in found])) for pair in names}


def _mean(table: np.ndarray) -> np.ndarray:
    """Mean over the tasks in which a parameter was varied; NaN if there is none."""
    known = np.isfinite(table)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, table, 0).sum(axis=0) / known.sum(axis=0))
