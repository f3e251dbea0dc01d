"""`RGPE`: the ranking-weighted Gaussian process ensemble; Feurer, Letham & Bakshy 2018.

Notation as in `task_processes`; n trials of the target, theta_j with score z_j; S draws f of each
process at the n trials' configurations, (S, n). The paper's definitions:

    loss of a draw   L(f) = sum_j sum_k [ (f(theta_j) < f(theta_k)) xor (z_j < z_k) ]
    of the target's  the same with f_-j(theta_j) and f_-j(theta_k), f_-j the process without trial j
    weight           w_i = share of the S draws in which process i has the lowest loss of all
    prediction       mean  sum_i w_i mu_i,   variance  sum_i w_i² s2_i

Pairs of equal scores, which the paper does not mention, do not count.
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.task_gaussian_processes import TaskGPs
from sktransfer.surrogates._core.task_processes import TaskEnsemble, count_discordant_pairs

MIN_TRIALS = 3  # of the target, below which all past tasks have the same weight
MAX_RANKED_TRIALS = 60  # last trials of the target that are ranked; the cost is O(n^4)


class RGPE(TaskEnsemble):
    """A Gaussian process for each past task, weighted by how well it ranks the target's trials.

    A past task's weight is the probability, estimated by draws, that its process ranks the target's
    trials better than all others and than the target's own process. The latter is evaluated by
    leaving out each trial in turn. Past tasks that are probably worse than the target's own process
    are excluded (median of the losses above the 95th percentile of the target's). Scores may have
    different scales, and profiles are not needed. Before the target's third trial all past tasks
    have the same weight and the target none, and the variance is that of the target's process.

    Training fits a process to each past task once: O(m N³) for m tasks of N trials, some
    milliseconds each. A proposal uses at most `max_tasks` of them, and ranks the last 60 trials.
    Prefer it if data sets have no profile or an uninformative one, and some tens of trials are
    affordable. Its first trials are good on average.

    Parameters
    ----------
    n_samples : int
        Number of draws S.
    max_tasks : int
        Maximum number of past tasks to use: those whose means rank the target's trials best.
    max_trials : int
        Maximum number of trials for each past task's process: the best and the most distant ones.
    kernel, winsorize, n_initial
        As in `GP`. `n_initial` only matters without past tasks.
    random_state : int

    References
    ----------
    Feurer, Letham, Bakshy (2018). Scalable meta-learning for Bayesian optimization using
    ranking-weighted Gaussian process ensembles. AutoML workshop at ICML.

    Examples
    --------
    >>> from sktransfer.surrogates import EncodedTask
    >>> theta, number = np.linspace(0, 1, 7)[:, None], np.array([False])
    >>> similar = EncodedTask(theta, 10 + np.sin(4 * theta[:, 0]), number, id="similar")
    >>> other = EncodedTask(theta, np.cos(9 * theta[:, 0]), number, id="other")
    >>> target = EncodedTask(theta[::2], np.sin(4 * theta[::2, 0]), number)
    >>> high, low = RGPE().fit([similar, other]).similarity(target)
    >>> bool(high > 0.5 > low)
    True
    """

    def __init__(
        self,
        n_samples: int = 256,
        max_tasks: int = 30,
        max_trials: int = 60,
        kernel: str = "matern52",
        winsorize: bool = True,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.n_samples = n_samples
        self.max_tasks = max_tasks
        self.max_trials = max_trials
        self.kernel = kernel
        self.winsorize = winsorize
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        super().check_params()
        if not self.n_samples >= 1:
            raise ValueError(f"n_samples={self.n_samples!r} must be at least 1.")

    def _uses_target_variance(self, own: GaussianProcess) -> bool:
        # The average of many tasks has so little variance that it would repeat its first trial.
        return len(own.z) < MIN_TRIALS

    def _compute_weights(self, tasks: TaskGPs, own: GaussianProcess) -> np.ndarray:
        if len(own.z) < MIN_TRIALS:
            return np.append(np.ones(len(tasks)), 0.0)
        if len(own.z) > MAX_RANKED_TRIALS:
            X, z = own.X[-MAX_RANKED_TRIALS:], own.z[-MAX_RANKED_TRIALS:]
            own = GaussianProcess(X, z, own.h, own.categorical, kernel=own.kernel)
        rng = np.random.default_rng(self.random_state)
        draws = tasks.sample(own.X, self.n_samples, rng)
        losses = [count_discordant_pairs(f, own.z) for f in draws]
        loo_draws = leave_one_out_gps(own).sample(own.X, self.n_samples, rng)
        return ranking_weights(np.array([*losses, leave_one_out_loss(loo_draws, own.z)]))


def leave_one_out_gps(own: GaussianProcess) -> TaskGPs:
    """n copies of the target's process, each without one of its trials."""
    n = len(own.z)
    real = ~np.eye(n, dtype=bool)
    theta, z = np.repeat(own.X[None], n, axis=0), np.where(real, own.z, 0.0)
    return TaskGPs(theta, z, real, np.repeat(own.h[None], n, axis=0), own.categorical, own.kernel)


def leave_one_out_loss(draws: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Loss of the target's process, from draws of `leave_one_out_gps`; (n, S, n), (n,) -> (S,)."""
    at_left_out = np.einsum("jsj->js", draws)[:, :, None]  # f_-j(theta_j)
    wrong = (at_left_out < draws) != (z[:, None] < z)[:, None, :]
    return (wrong & (z[:, None] != z)[:, None, :]).sum(axis=(0, 2))


def ranking_weights(losses: np.ndarray) -> np.ndarray:
    """Share of the draws in which each process is best, the target's last; (K + 1, S) -> (K + 1,).

    Ties go to the target's process if it is among the best. Otherwise they are shared.
    """
    diluting = np.median(losses[:-1], axis=1) > np.percentile(losses[-1], 95)
    losses = np.vstack([np.where(diluting[:, None], np.inf, losses[:-1]), losses[-1:]])
    best = losses == losses.min(axis=0)
    best[:-1] &= ~best[-1]
    return (best / best.sum(axis=0)).mean(axis=1)
