"""`TaskSimilarityDisplay`: the past tasks that a search used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sktransfer.inspection._axes_setup import BLUE, SKY, open_axes, write_sentence
from sktransfer.task import short_task_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_REASONS = 3
MAX_NAME_LENGTH = 32
MAX_LINE_LENGTH = 56


class TaskSimilarityDisplay:
    """The past tasks of a search: how similar they are, and how much they still count at its end.

    Use `from_estimator` to create one from a fitted search.

    Parameters
    ----------
    names : sequence of str
        Past tasks that were used.
    similarity : array-like of shape (n_tasks,)
        Similarity of their data in [0, 1], NaN if it is not defined.
    weight : array-like of shape (n_tasks,) or None, default=None
        How much each task counts after the last trial, in [0, 1]. NaN if it is not defined.
    n_settings : array-like of shape (n_tasks,) or None, default=None
        How many trials were settings of each task.
    n_trials : array-like of shape (n_tasks,) or None, default=None
        How many trials each task has.
    excluded : dict of str to int or None, default=None
        Reasons for which tasks were excluded, and for how many.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : matplotlib BarContainer or None
        The similarity of each task that is shown, most similar first. None if no task was used.
    weights_ : matplotlib BarContainer or None
        The weights of these tasks. None if they are not known.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris, load_wine
    >>> from sklearn.svm import SVC
    >>> from sktransfer import TransferSearchCV
    >>> from sktransfer.inspection import TaskSimilarityDisplay
    >>> search = TransferSearchCV(SVC(), {"C": loguniform(1e-2, 1e3)}, n_iter=5, random_state=0)
    >>> search = search.fit(*load_iris(return_X_y=True)).fit(*load_wine(return_X_y=True))
    >>> display = TaskSimilarityDisplay.from_estimator(search)
    >>> len(display.names), display.excluded
    (1, {})
    """

    def __init__(
        self,
        names: Sequence[str],
        similarity: Any,
        *,
        weight: Any = None,
        n_settings: Any = None,
        n_trials: Any = None,
        excluded: Mapping[str, int] | None = None,
    ):
        self.names = list(names)
        n = len(self.names)
        self.similarity = np.asarray(similarity, dtype=float).reshape(n)
        self.weight = np.full(n, np.nan) if weight is None else np.asarray(weight, dtype=float)
        self.n_settings = np.zeros(n, int) if n_settings is None else np.asarray(n_settings, int)
        self.n_trials = None if n_trials is None else np.asarray(n_trials, int)
        self.excluded = dict(excluded or {})

    @classmethod
    def from_estimator(cls, search: Any, *, max_shown: int = 15, ax: Axes | None = None) -> Self:
        """Plot the past tasks that a fitted search used.

        Parameters
        ----------
        search : fitted TransferSearchCV
        max_shown : int, default=15
            At most this many tasks, most similar first.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        TaskSimilarityDisplay
        """
        rows = source_rows(search)
        used = [row for row in rows if row["excluded"] is None]
        similarity, weight = (
            [np.nan if row[name] is None else row[name] for row in used]
            for name in ("similarity", "weight")
        )
        reasons = Counter(row["excluded"] for row in rows if row["excluded"] is not None)
        return cls(
            [task_name(row) for row in used],
            similarity,
            weight=weight,
            n_settings=[row["n_used"] for row in used],
            n_trials=[row["n_trials"] for row in used],
            excluded=dict(reasons.most_common()),
        ).plot(max_shown=max_shown, ax=ax)

    def plot(self, *, max_shown: int = 15, ax: Axes | None = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        max_shown : int, default=15
            At most this many tasks, most similar first.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        self
        """
        n = len(self.names)
        n_shown = min(n, max_shown)
        size = (7.2, 1.9 + 0.3 * max(n_shown, 1) + 0.2 * min(len(self.excluded), MAX_REASONS))
        self.figure_, self.ax_ = open_axes(ax, f"{type(self).__name__}.plot", size)
        self.bars_: Any = None
        self.weights_: Any = None
        if n == 0:
            write_sentence(self.ax_, "\n".join(["No past task was used.", *self._reasons()]))
            return self
        similarity, weight = np.nan_to_num(self.similarity), np.nan_to_num(self.weight)
        order = np.lexsort((-self.n_settings, -weight, -similarity))[:n_shown]
        at, ends = np.arange(n_shown), np.maximum(similarity, weight)[order]
        longest = float(ends.max()) or 1.0
        self.bars_ = self.ax_.barh(
            at, similarity[order], 0.7, color=SKY, alpha=0.45, label="similarity of the data"
        )
        if np.isfinite(self.weight).any():
            self.weights_ = self.ax_.barh(
                at, weight[order], 0.36, color=BLUE, label="weight after the last trial"
            )
        for row, i in enumerate(order):
            x = ends[row] + 0.01 * longest
            self.ax_.text(x, row, self._describe(int(i)), va="center", fontsize="small")
        self.ax_.set_yticks(at, labels=[self.names[i] for i in order], fontsize="small")
        self.ax_.invert_yaxis()
        shown = f"The {n_shown} most similar of {n} past tasks" if n_shown < n else "The past tasks"
        label = f"{shown} that were used"
        # Room for the text beside the longest bar, where no similarity can be.
        self.ax_.set(xlim=(0, 1.4 * longest), xlabel="\n".join([label, *self._reasons()]))
        self.ax_.set_xticks([tick for tick in self.ax_.get_xticks() if tick <= max(longest, 1.0)])
        self.ax_.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
        return self

    def _describe(self, i: int) -> str:
        is_known = np.isfinite(self.similarity[i])
        value = "< 0.01" if self.similarity[i] < 0.01 else f"{self.similarity[i]:.2f}"
        words = [value if is_known else "similarity unknown"]
        if self.n_trials is not None:
            words.append(f"{self.n_trials[i]} trials")
        if self.n_settings[i]:
            words.append(f"{self.n_settings[i]} of them tried here")
        return ", ".join(words)

    def _reasons(self) -> list[str]:
        """Sentences on the tasks that were excluded."""
        reasons = list(self.excluded.items())
        sentences = [f"{count} excluded: {reason}" for reason, count in reasons[:MAX_REASONS]]
        lines = [line for each in sentences for line in wrap(each, MAX_LINE_LENGTH)]
        rest = sum(count for _, count in reasons[MAX_REASONS:])
        return lines + [f"{rest} excluded for other reasons"] * bool(rest)


def source_rows(search: Any) -> list[dict[str, Any]]:
    """`source_tasks_` of a fitted search, or an error if it read no archive."""
    check_is_fitted(search)
    if not hasattr(search, "source_tasks_"):
        raise TypeError(f"{type(search).__name__} does not learn from past tasks.")
    if search.archive is None:
        raise ValueError(
            "The search was fitted with archive=None, so that there are no past tasks to show."
        )
    rows: list[dict[str, Any]] = search.source_tasks_
    return rows


def task_name(row: Mapping[str, Any]) -> str:
    """The name of a past task, or what tells it apart, at a length that fits beside a bar."""
    name = short_task_name(str(row["id"]), row.get("name") or "")
    return name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "…"
