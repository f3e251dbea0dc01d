"""`Box`: a search within the bounding box of the past tasks' best settings; Perrone et al. 2019.

Notation: m past tasks, best (m, d) the codes of each one's best setting. The box is

    numbers     low = min_i best_i,  high = max_i best_i,  column by column
    categories  those that are in some best_i

The search within the box uses a plain Gaussian process on the target's trials, or draws at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates.base import EncodedTask, Region, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP


class Box(GP):
    """Gaussian process on the target's own trials, in the smallest box that holds all past optima.

    It needs trials of past tasks, but no profiles. The box of a few optima is small by chance, the
    box of many diverse tasks is the whole space. There is nothing to train, and a proposal costs as
    much as one of `GP`. Prefer it if the good settings of all tasks are in one part of a space that
    is too large. It ignores which past tasks are similar.

    The box may be wrong. The first `n_inside` trials stay in it. Then every second trial is free,
    and the box is dropped once the best trial is outside.

    Parameters
    ----------
    n_inside : int or None
        Number of trials that stay in the box. None is all of them, as in the paper.
    model : bool
        Whether a Gaussian process chooses within the box. False is random search ("box-rs").
    min_width : float
        Minimum width of a side, as a share of the space. Shorter sides are widened around their
        center, because the box of one past task would be a point.
    kernel, n_initial, max_iter, winsorize
        As in `GP`.

    References
    ----------
    Perrone, Shen, Seeger, Archambeau, Jenatton (2019). Learning search spaces for Bayesian
    optimization: another view of hyperparameter transfer learning. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> theta, number = np.array([[0.2], [0.5], [0.9]]), np.array([False])
    >>> z = np.array([[3.0, 1.0, 2.0], [0.1, 0.3, 0.2]])
    >>> tasks = [EncodedTask(theta, row, number) for row in z]
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), number)
    >>> region = Box().fit(tasks).hints(target).region
    >>> region.low, region.high
    (array([0.2]), array([0.5]))
    """

    uses_past_tasks = True

    @property
    def fallback_name(self) -> str:  # type: ignore[override]
        return "a Gaussian process in the whole space" if self.model else "random search"

    def __init__(
        self,
        n_inside: int | None = 10,
        model: bool = True,
        min_width: float = 0.2,
        kernel: str = "matern52",
        n_initial: int = 4,
        max_iter: int = 50,
        winsorize: bool = True,
    ):
        super().__init__(kernel, n_initial, max_iter, winsorize)
        self.n_inside = n_inside
        self.model = model
        self.min_width = min_width

    def check_params(self) -> None:
        super().check_params()
        if self.n_inside is not None and not self.n_inside >= 0:
            raise ValueError(f"n_inside={self.n_inside!r} must be None or not negative.")
        if not 0 < self.min_width <= 1:
            raise ValueError(f"min_width={self.min_width!r} must be above 0 and at most 1.")

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> Self:
        """Store the best setting of each past task."""
        super().fit(tasks, warm_from)
        useful = [task for task in tasks if np.isfinite(task.z).any()]
        varied = [np.ptp(task.theta, axis=0) > 0 for task in useful]
        return self.set_state(
            {
                "best": np.array([_best_setting(task) for task in useful]),
                "varied": np.any(varied, axis=0) if varied else np.zeros(0, dtype=bool),
                "n_tasks": np.array(len(tasks)),
            }
        )

    def get_state(self) -> dict[str, np.ndarray]:
        """The best setting of each past task, and the columns that some task has varied."""
        return dict(self.past_)

    def set_state(self, state: dict[str, np.ndarray]) -> Self:
        self.past_ = dict(state)
        self.n_tasks_ = int(state["n_tasks"])
        return self

    def hints(self, target: EncodedTask) -> SearchHints:
        """The next trial is in the box, unless it is free."""
        hints = replace(super().hints(target), region=self._region(target))
        return hints if self.model else replace(hints, n_initial=0, space_filling=False)

    def posterior(self, target: EncodedTask) -> GaussianProcess | None:  # type: ignore[override]
        """Fit the process to the target's trials; None without a model."""
        return super().posterior(target) if self.model else None

    def _region(self, target: EncodedTask) -> Region | None:
        """The box for the next trial. Columns that no past task varied are free."""
        best, varied = self.past_["best"], self.past_["varied"]
        if not varied.any():
            return None  # no past task has searched
        numbers = varied & ~target.categorical
        low, high = np.zeros(len(varied)), np.ones(len(varied))
        low[numbers], high[numbers] = best[:, numbers].min(axis=0), best[:, numbers].max(axis=0)
        center, half = (low + high) / 2, np.maximum(high - low, self.min_width) / 2
        low, high = _shift_into_unit(center - half, center + half)
        categories = {
            int(c): _known_categories(best[:, c])
            for c in np.flatnonzero(varied & target.categorical)
        }
        box = Region(
            low, high, {column: codes for column, codes in categories.items() if len(codes)}
        )
        return box if self._is_restricted(box, target) else None

    def _is_restricted(self, box: Region, target: EncodedTask) -> bool:
        """Whether the next trial must be in the box."""
        if self.n_inside is None or len(target.z) < self.n_inside:
            return True
        if (len(target.z) - self.n_inside) % 2 == 0 or not np.isfinite(target.z).any():
            return False
        return bool(box.contains(target.theta[[np.nanargmax(target.z)]])[0])


def _best_setting(task: EncodedTask) -> np.ndarray:
    """Code of the best success, if possible one that exists in the target's space; (d,)."""
    ok = np.isfinite(task.z)
    known = ok & ~(task.theta[:, task.categorical] < 0).any(axis=1)
    rows = np.flatnonzero(known if known.any() else ok)
    # Numbers may be outside the target's bounds; -1 is an unknown category.
    return np.clip(task.theta[rows[np.argmax(task.z[rows])]], np.where(task.categorical, -1, 0), 1)


def _known_categories(codes: np.ndarray) -> np.ndarray:
    """The categories among these that exist in the target's space."""
    return np.unique(codes[codes >= 0])


def _shift_into_unit(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift an interval into [0, 1], keeping its width."""
    back = np.maximum(-low, 0) - np.maximum(high - 1, 0)
    return np.clip(low + back, 0, 1), np.clip(high + back, 0, 1)
