"""How a target is started: by past settings, as far as past tasks are believed, and space-filling.

Past tasks may choose as many of the first trials as there are tasks. One past search says little
about a new data set, thirty of them say much. The other trials of the start fill the space, by the
same settings as without past tasks. The start is one trial longer than without past tasks, so that
with a single one all of these are tried. Two observations give the space-filling start back: a
first score far below its prediction, and scores that are equal, or nearly so, which do not tell
where to go.
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.portfolio import select_greedily
from sktransfer.surrogates._core.task_gaussian_processes import TaskGPs
from sktransfer.surrogates.base import EncodedTask, Posterior

MAX_SURPRISE = 3.0  # standard deviations of a prediction that a first score may lie below it
MIN_SPREAD = 0.2  # of the target's scores, in usual ones of past tasks, below which they are equal
BEST_PER_TASK = 3  # best settings of each task, from which first trials are selected
PORTFOLIO_SIZE = 20


class PastSettings:
    """Settings of past tasks, for the first trials of a target.

    Parameters
    ----------
    past : PastTrials
    processes : TaskGPs
        One for each past task.
    numbers : ndarray of int, shape (K,)
        The past tasks that are used.
    unknown : ndarray of bool, shape (m, d)
        Whether each past task does not know a column.
    """

    def __init__(
        self, past: PastTrials, processes: TaskGPs, numbers: np.ndarray, unknown: np.ndarray
    ):
        self._past, self._processes = past, processes
        self._numbers, self._unknown = numbers, unknown

    def best_rows(self, numbers: np.ndarray) -> np.ndarray:
        """Rows of the best trials of some tasks; -> (k,)."""
        is_used = np.isin(np.arange(len(self._past)), numbers)
        return self._past.best_rows(BEST_PER_TASK, is_used, self._unknown)

    def select_complement(self, target: EncodedTask) -> np.ndarray:
        """Rows of the settings that, together with the target's trials, do best; -> (k,)."""
        past, rows = self._past, self.best_rows(self._numbers)
        own = [past.z[past.owner == number] for number in self._numbers]
        median, best = (np.array([f(z) for z in own])[:, None] for f in (np.median, np.max))
        processes = self._processes.take(self._numbers)

        def relative_score(theta: np.ndarray) -> np.ndarray:
            """0 is a task's median trial, 1 its best."""
            means = processes.mean(theta)
            return np.clip((means - median) / np.maximum(best - median, 1e-9), -1, 1)

        reached = relative_score(target.theta).max(axis=1)
        return rows[select_greedily(relative_score(past.theta[rows]), reached, PORTFOLIO_SIZE)]

    def take(self, rows: np.ndarray, index: int) -> np.ndarray:
        """The settings in some rows, for trial number `index` of the target; -> (k, d)."""
        unknown = self._unknown[self._past.owner[rows]]
        return spread_unknown(self._past.theta[rows], unknown, index)


def is_surprise(before: Posterior, target: EncodedTask, count: float) -> bool:
    """Whether the first score is far below what was predicted before it was observed.

    The more past tasks there are, the farther it has to be.

    Parameters
    ----------
    before : Posterior
        The prediction without any trial of the target.
    target : EncodedTask
        With one trial at least.
    count : float
        Number of past tasks that the prediction comes from, at least 1.
    """
    first = target.z[0]
    if not before.has_unit or not np.isfinite(first):
        return False
    [mean], [std] = before.predict(target.theta[:1])
    reach = MAX_SURPRISE * np.sqrt(count) * np.hypot(std, before.level_std)
    return bool(first < mean - reach)


def filled_until(target: EncodedTask, usual_scale: float, n_start: int) -> int:
    """Number of trials up to which the start of a target fills the space.

    It is twice as long if the scores hardly differ: all trials may be on one plain.

    Parameters
    ----------
    target : EncodedTask
    usual_scale : float
        Standard deviation of the scores of a past task; 0 if a prediction chooses the start.
    n_start : int
        Usual length of the start.

    Examples
    --------
    >>> theta, numbers = np.zeros((4, 1)), np.array([False])
    >>> targets = [EncodedTask(theta, np.array([0.5, 0.51, 0.5, z]), numbers) for z in (0.5, 0.7)]
    >>> [filled_until(target, 0.1, 4) for target in targets]
    [8, 4]
    """
    if not usual_scale:
        return 0
    finite = target.z[np.isfinite(target.z)]
    is_narrow = len(finite) > 0 and finite.std() < MIN_SPREAD * usual_scale
    return 2 * n_start if is_narrow else n_start


def spread_unknown(theta: np.ndarray, unknown: np.ndarray, index: int) -> np.ndarray:
    """Past settings with new values in the columns that their tasks do not know; (n, d) -> (n, d).

    The values of trial number `index` are an additive recurrence, which fills the space evenly: the
    middle, then always 0.618 further, for a single column.

    Parameters
    ----------
    theta : ndarray of shape (n, d)
    unknown : ndarray of bool, shape (n, d)
    index : int

    Examples
    --------
    >>> setting, unknown = np.array([[0.2, 0.5]]), np.array([[False, True]])
    >>> [spread_unknown(setting, unknown, i)[0].round(2).tolist() for i in range(3)]
    [[0.2, 0.5], [0.2, 0.12], [0.2, 0.74]]
    """
    columns = np.flatnonzero(unknown.any(axis=0))
    values = np.full(theta.shape[1], 0.5)
    ratio = _generalized_golden_ratio(len(columns))
    values[columns] = (0.5 + index * ratio ** -np.arange(1.0, len(columns) + 1)) % 1
    return np.where(unknown, values, theta)


def _generalized_golden_ratio(d: int) -> float:
    """The root above 1 of x ** (d + 1) = x + 1, by fixed-point iteration."""
    x = 2.0
    for _ in range(30):
        x = (1 + x) ** (1 / (d + 1))
    return x
