"""Settings that together do well on the past tasks, for the first trials of a target.

Notation: m past tasks; c candidates, the best setting of each task; S (m, c) the tasks'
standardized scores at these, as predicted by a Gaussian process on each task's own trials.
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates.gp import default_priors
from sktransfer.utils._scores import standardize

MIN_GAIN = 0.05  # standard deviations of a task's scores, averaged over the tasks
MAX_TASKS = 200  # that a portfolio is selected for; with more it would hardly differ


def select_portfolio(past: PastTrials, size: int) -> np.ndarray:
    """Rows of at most `size` past trials, best first; -> (k,).

    The selection is greedy: each step takes the setting that most improves the tasks' best scores
    so far. The sum of maxima is submodular, so the result is within 1 - 1/e of the optimum. It ends
    when the gain is negligible. Settings that do not exist in the target's space are skipped.
    """
    known = (past.theta[:, past.categorical] >= 0).all(axis=1)
    tasks = np.unique(np.linspace(0, len(past) - 1, min(len(past), MAX_TASKS)).astype(int))
    own = [np.flatnonzero(past.owner == task) for task in tasks]
    usable = [rows[np.isin(rows, np.flatnonzero(known))] for rows in own]
    best = [rows[np.argmax(past.z[rows])] for rows in usable if len(rows)]
    if not best:
        return np.empty(0, dtype=int)
    candidates = np.array(best)
    S = np.array([_predict_scores(past, rows, past.theta[candidates]) for rows in own])
    # Without a portfolio a task reaches an average score, 0.
    return candidates[select_greedily(S, np.zeros(len(tasks)), size, MIN_GAIN)]


def select_greedily(
    S: np.ndarray, reached: np.ndarray, size: int, min_gain: float = 0.0
) -> list[int]:
    """Candidates that most improve the tasks' best scores so far, each given those before.

    Parameters
    ----------
    S : ndarray of shape (m, c)
        Score of each task at each candidate.
    reached : ndarray of shape (m,)
        Best score of each task so far.
    size : int
        Maximum number of candidates.
    min_gain : float
        After the first one, a candidate must raise the mean by this much.
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


def _predict_scores(past: PastTrials, rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Scores of one task at other tasks' settings; far from its trials this is its average, 0."""
    d = past.theta.shape[1]
    z, _, _ = standardize(past.z[rows])
    gp = GaussianProcess(past.theta[rows], z, default_priors(d).medians(d), past.categorical)
    return gp.predict(theta)[0]
