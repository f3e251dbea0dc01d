"""`TaskMapDisplay`: a map of data sets, in which similar ones are close to each other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.archive import Archive
from sktransfer.inspection._axes_setup import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    PINK,
    SKY,
    open_axes,
    write_sentence,
)
from sktransfer.inspection._data_sets import (
    HANDCRAFTED,
    DataSet,
    ProfileEncoder,
    choose_encoder,
    find_data_sets,
    project,
)
from sktransfer.inspection._search_results import read_profile, read_space
from sktransfer.inspection._task_similarity import source_rows, task_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = {"used": BLUE, "excluded": GRAY, "classification": BLUE, "regression": GREEN}
OTHER_COLORS = (PINK, SKY, ORANGE)
MAX_NAMED = 12  # more names than this would overlap


class TaskMapDisplay:
    """The data sets of past searches and, if there is one, that of the current search.

    Use `from_estimator` for a fitted search, or `from_archive` for all tasks of an archive. An
    encoder describes each data set by a vector, and the map shows the first two principal
    components of all vectors.

    Parameters
    ----------
    vectors : array-like of shape (n_data_sets, n_dimensions)
        What the encoder says about each data set.
    target : array-like of shape (n_dimensions,) or None, default=None
        The vector of the current data.
    groups : sequence of str or None, default=None
        The group of each data set, which determines its color.
    n_rows : array-like of shape (n_data_sets,) or None, default=None
        Number of rows of each data set, which determines the size of its mark.
    names : sequence of str or None, default=None
        Names of the data sets. They are written on the map if there are at most 12.
    encoder_name : str, default="vectors"
        What the vectors are, for the labels.

    Attributes
    ----------
    positions : ndarray of shape (n_data_sets, 2)
        Places on the map.
    target_position : ndarray of shape (2,) or None
        Place of the current data.
    explained : ndarray of shape (2,)
        Share of the variance of the vectors that each axis shows.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : dict of str to matplotlib PathCollection
        The data sets of each group. Empty if there are too few for a map.

    Examples
    --------
    >>> from sklearn.datasets import load_iris, load_wine
    >>> from sktransfer import Archive, Task, profile
    >>> from sktransfer.inspection import TaskMapDisplay
    >>> archive = Archive()
    >>> for load in (load_iris, load_wine):
    ...     data = profile(*load(return_X_y=True))
    ...     task = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.9)], data)
    ...     name = archive.append(task)
    >>> display = TaskMapDisplay.from_archive(archive)
    >>> display.positions.shape
    (2, 2)
    """

    def __init__(
        self,
        vectors: Any,
        *,
        target: Any = None,
        groups: Sequence[str] | None = None,
        n_rows: Any = None,
        names: Sequence[str] | None = None,
        encoder_name: str = "vectors",
    ):
        self.vectors = np.asarray(vectors, dtype=float)
        if self.vectors.ndim != 2:
            raise ValueError(
                f"vectors must have two dimensions, got an array of shape {self.vectors.shape}."
            )
        n, q = self.vectors.shape
        self.target = None if target is None else np.asarray(target, dtype=float).ravel()
        if self.target is not None and n and len(self.target) != q:
            raise ValueError(f"target has {len(self.target)} dimensions, the vectors have {q}.")
        self.groups = ["data set"] * n if groups is None else list(groups)
        self.n_rows = np.full(n, 100.0) if n_rows is None else np.asarray(n_rows, dtype=float)
        self.names = [""] * n if names is None else list(names)
        if not len(self.groups) == len(self.n_rows) == len(self.names) == n:
            raise ValueError("vectors, groups, n_rows and names must have the same length.")
        self.encoder_name = encoder_name
        rows = [self.vectors] if self.target is None or not n else [self.vectors, self.target[None]]
        places, self.explained = project(np.vstack(rows))
        self.positions = places[:n]
        self.target_position = places[n] if len(places) > n else None

    @classmethod
    def from_estimator(
        cls, search: Any, *, encoder: ProfileEncoder | None = None, ax: Axes | None = None
    ) -> Self:
        """Plot the data of a fitted search among those of past searches.

        Parameters
        ----------
        search : fitted TransferSearchCV
        encoder : object with a `transform` method or None, default=None
            From profiles to vectors. None takes the learned encoder if the search has an
            `embedding_`, or else the handcrafted meta-features of the profiles.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        TaskMapDisplay
        """
        excluded = {row["id"]: row["excluded"] is not None for row in source_rows(search)}
        archive = search.archive if isinstance(search.archive, Archive) else Archive(search.archive)
        current = read_profile(search)
        selection = archive.select(read_space(search), current)
        tasks = [*selection.used, *(task for task, _ in selection.excluded)]
        sets = find_data_sets(
            [task for task in tasks if task.id in excluded],
            lambda task: "excluded" if excluded[task.id] else "used",
        )
        target = getattr(search, "embedding_", None) if encoder is None else None
        return cls._from_sets(sets, encoder, current, target).plot(ax=ax)

    @classmethod
    def from_archive(
        cls,
        archive: str | os.PathLike[str] | Archive,
        *,
        encoder: ProfileEncoder | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the data sets of all tasks of an archive, by the kind of their target.

        Parameters
        ----------
        archive : str, path or Archive
        encoder : object with a `transform` method or None, default=None
            From profiles to vectors. None takes the handcrafted meta-features of the profiles.
        ax : matplotlib Axes or None, default=None
            Where to plot. None makes a new figure.

        Returns
        -------
        TaskMapDisplay
        """
        opened = archive if isinstance(archive, Archive) else Archive(archive)
        sets = find_data_sets(opened, lambda task: str((task.profile or {}).get("kind")))
        return cls._from_sets(sets, encoder).plot(ax=ax)

    @classmethod
    def _from_sets(
        cls,
        sets: Sequence[DataSet],
        encoder: ProfileEncoder | None,
        current: Any = None,
        target: Any = None,
    ) -> Self:
        profiles = [each.profile for each in sets]
        known = [*profiles, current] if current is not None else profiles
        name = type(encoder).__name__
        if encoder is None:
            encoder, name = choose_encoder(known, is_learned=target is not None)
            target = None if name == HANDCRAFTED else target
        if target is None and current is not None:
            target = encoder.transform([current])[0]
        vectors = encoder.transform(profiles) if profiles else np.zeros((0, np.size(target)))
        return cls(
            vectors,
            target=target,
            groups=[each.group for each in sets],
            n_rows=[each.profile.n_rows for each in sets],
            names=[task_name(vars(each.tasks[0])) for each in sets],
            encoder_name=name,
        )

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
        self.figure_, self.ax_ = open_axes(ax, f"{type(self).__name__}.plot", (6.4, 5.2))
        self.points_: dict[str, Any] = {}
        n = len(self.positions)
        if n < 2:
            count = {0: "no past data set", 1: "one past data set"}[n]
            write_sentence(self.ax_, f"There is {count}. A map needs at least two.")
            return self
        others = iter(OTHER_COLORS * n)
        groups = np.array(self.groups, dtype=object)
        for group in dict.fromkeys(self.groups):
            rows = groups == group
            x, y = self.positions[rows].T
            self.points_[group] = self.ax_.scatter(
                x,
                y,
                self._areas()[rows],
                color=COLORS.get(group) or next(others),
                edgecolors="white",
                linewidths=0.6,
                alpha=0.8,
                label=f"{group} ({rows.sum()})",
            )
        if self.target_position is not None:
            x, y = self.target_position
            self.ax_.scatter(
                x, y, 190, marker="*", color=ORANGE, edgecolors="black", label="current data"
            )
        if n <= MAX_NAMED:
            self._write_names()
        first, second = self.explained
        self.ax_.set(
            xlabel=f"First component of the {self.encoder_name} ({first:.0%} of the variance)",
            ylabel=f"Second component ({second:.0%})",
        )
        self.ax_.margins(0.12)
        self.ax_.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4)
        return self

    def _areas(self) -> np.ndarray:
        """Areas of the marks: larger for data sets of more rows, on a log scale."""
        return np.asarray(20 + 28 * np.clip(np.log10(np.maximum(self.n_rows, 10)) - 1, 0, 5))

    def _write_names(self) -> None:
        """Write the names of the data sets, except where they would overlap another."""
        written: list[np.ndarray] = []
        size = np.ptp(self.positions, axis=0) + 1e-12
        for name, place in zip(self.names, self.positions, strict=True):
            if any((np.abs(place - other) < size * (0.28, 0.05)).all() for other in written):
                continue
            written.append(place)
            self.ax_.annotate(
                name,
                (float(place[0]), float(place[1])),
                xytext=(0, -7),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize="x-small",
            )
