"""A few settings that together do well on the past tasks: what to try while nothing is known of the target.

Notation: m past tasks; c candidates, the best setting of each; S (m, c) the tasks' standardized scores there,
as a Gaussian process on each task's own trials expects them.
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates.gp import default_priors
from sktransfer.utils._scores import standardize

MIN_GAIN = 0.05  # standard deviations of a task's scores, averaged over the tasks
MAX_TASKS = 200  # that a portfolio is chosen for; of more tasks it would hardly differ


def select_portfolio(past: PastTrials, size: int) -> np.ndarray:
    """Rows of the past's table, best first, at most `size`; -> (k,).

    Greedy: always the setting that most raises what each task would reach with the best of those chosen.
    That is within 1 - 1/e of the best choice there is (the sum of maxima is submodular). It ends where a
    further setting promises next to nothing. A setting that today's space does not know is none.
    """
    known = (past.theta[:, past.categorical] >= 0).all(axis=1)
    tasks = np.unique(np.linspace(0, len(past) - 1, min(len(past), MAX_TASKS)).astype(int))
    own = [np.flatnonzero(past.owner == task) for task in tasks]
    usable = [rows[np.isin(rows, np.flatnonzero(known))] for rows in own]
    best = [rows[np.argmax(past.z[rows])] for rows in usable if len(rows)]
    if not best:
        return np.empty(0, dtype=int)
    candidates = np.array(best)
    S = np.array([_expected(past, rows, past.theta[candidates]) for rows in own])
    # An average setting is what a task reaches without advice.
    return candidates[select_greedily(S, np.zeros(len(tasks)), size, MIN_GAIN)]


def select_greedily(
    S: np.ndarray, reached: np.ndarray, size: int, min_gain: float = 0.0
) -> list[int]:
    """Candidates that most raise what the tasks have reached, each chosen given those before; (m, c), (m,).

    After the first, one that raises the mean by less than `min_gain` is not worth a trial.
    """
    chosen: list[int] = []
    for _ in range(min(size, S.shape[1])):
        gains = np.maximum(S - reached[:, None], 0).mean(axis=0)
        gains[chosen] = -1.0
        k = int(gains.argmax())
        if chosen and gains[k] < min_gain:
            break
        chosen.append(k)
        reached = np.maximum(reached, S[:, k])
    return chosen


def _expected(past: PastTrials, rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Scores of one task at other tasks' settings; near none of its trials it is its average, 0."""
    d = past.theta.shape[1]
    z, _, _ = standardize(past.z[rows])
    gp = GaussianProcess(past.theta[rows], z, default_priors(d).medians(d), past.categorical)
    return gp.predict(theta)[0]
