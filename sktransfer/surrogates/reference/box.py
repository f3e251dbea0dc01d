"""`Box`: a search within the bounding box of the past tasks' best settings; Perrone et al. 2019.

Notation: m past tasks, best (m, d) the codes of each one's best setting. The box:

    numbers     low = min_i best_i,  high = max_i best_i,  column by column
    categories  those that are in some best_i

Within the box a plain Gaussian process on the target's own trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sktransfer.surrogates.base import EncodedTask, Region, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP


class Box(GP):
    """Gaussian process on the target's own trials, in the smallest box that holds all past optima.

    Needs trials of past tasks, nothing of their data: a box of few optima is small by chance, one of many
    odd tasks is the whole space. There is nothing to train, and a proposal costs as much as one of `GP`.
    To be preferred where good settings of all tasks lie in one part of a space that was made too large;
    which of the past tasks are alike does not matter to it.

    A box may be wrong. The first `n_inside` trials stay in it; afterwards every second trial is free, and
    once the best trial so far lies outside, the box is given up.

    Parameters
    ----------
    n_inside : int or None
        Trials that stay in the box; None, all of them, as in the paper.
    min_width : float
        Sides shorter than this share of the space are widened to it, around their middle: the box of one
        past task would be a point.
    kernel, n_initial, max_iter
        As in `GP`.

    References
    ----------
    Perrone, Shen, Seeger, Archambeau, Jenatton (2019). Learning search spaces for Bayesian optimization:
    another view of hyperparameter transfer learning. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> theta, number = np.array([[0.2], [0.5], [0.9]]), np.array([False])
    >>> tasks = [EncodedTask(theta, np.array(z), number) for z in ([3.0, 1.0, 2.0], [0.1, 0.3, 0.2])]
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), number)
    >>> region = Box().fit(tasks).hints(target).region
    >>> region.low, region.high
    (array([0.2]), array([0.5]))
    """

    uses_past_tasks = True
    fallback_name = "a Gaussian process in the whole space"

    def __init__(
        self,
        n_inside: int | None = 10,
        min_width: float = 0.2,
        kernel: str = "matern52",
        n_initial: int = 4,
        max_iter: int = 50,
    ):
        super().__init__(kernel=kernel, n_initial=n_initial, max_iter=max_iter)
        self.n_inside = n_inside
        self.min_width = min_width

    def check_params(self) -> None:
        super().check_params()
        if self.n_inside is not None and not self.n_inside >= 0:
            raise ValueError(f"n_inside={self.n_inside!r} must be None or not negative.")
        if not 0 < self.min_width <= 1:
            raise ValueError(f"min_width={self.min_width!r} must be above 0 and at most 1.")

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> Box:
        """Note the best setting of each past task; there is nothing to train."""
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
        """The best setting of each past task, and the columns in which some task has tried two values."""
        return dict(self.past_)

    def set_state(self, state: dict[str, np.ndarray]) -> Box:
        self.past_ = dict(state)
        self.n_tasks_ = int(state["n_tasks"])
        return self

    def hints(self, target: EncodedTask) -> SearchHints:
        """The box, unless the next trial is free."""
        return replace(super().hints(target), region=self._region(target))

    def _region(self, target: EncodedTask) -> Region | None:
        """The box, where the next trial is to be in it; columns that the past never varied are free."""
        best, varied = self.past_["best"], self.past_["varied"]
        if not varied.any():
            return None  # no optimum was ever looked for
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
        """Whether the next trial has to be in the box; the paper's is for ever."""
        if self.n_inside is None or len(target.z) < self.n_inside:
            return True
        if (len(target.z) - self.n_inside) % 2 == 0 or not np.isfinite(target.z).any():
            return False
        return bool(box.contains(target.theta[[np.nanargmax(target.z)]])[0])


def _best_setting(task: EncodedTask) -> np.ndarray:
    """Code of the best success, of those that exist in today's space if there are any; (d,)."""
    ok = np.isfinite(task.z)
    known = ok & ~(task.theta[:, task.categorical] < 0).any(axis=1)
    rows = np.flatnonzero(known if known.any() else ok)
    # Numbers may lie outside of today's bounds, and -1 is no category of ours.
    return np.clip(task.theta[rows[np.argmax(task.z[rows])]], np.where(task.categorical, -1, 0), 1)


def _known_categories(codes: np.ndarray) -> np.ndarray:
    """The categories of today's space among these."""
    return np.unique(codes[codes >= 0])


def _shift_into_unit(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An interval that sticks out of [0, 1] moved back into it, its width kept."""
    back = np.maximum(-low, 0) - np.maximum(high - 1, 0)
    return np.clip(low + back, 0, 1), np.clip(high + back, 0, 1)
