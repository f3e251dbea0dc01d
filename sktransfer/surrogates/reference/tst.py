"""`TST`: the two-stage transfer surrogate with ranking meta-features (TST-R); Wistuba et al. 2016.

Notation as in `task_processes`; n trials of the target. The first stage fits a process to each past
task and to the target. The second stage is a kernel regression (Nadaraya-Watson) over tasks:

    disagreement  delta_i = share of the target's pairs of trials that mu_i ranks in the wrong
                  order, among pairs of different scores; 1/2 if there is none (the paper has no
                  equal scores)
    kernel        k(t) = 3/4 (1 - t²) for t <= 1, otherwise 0  (Epanechnikov)
    weight        w_i ~ k(delta_i / bandwidth),  the target's  ~ k(0) = 3/4
    prediction    mean  sum_i w_i mu_i,   variance that of the target's process
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.task_gaussian_processes import TaskGPs
from sktransfer.surrogates._core.task_processes import TaskEnsemble, count_discordant_pairs


class TST(TaskEnsemble):
    """A Gaussian process for each past task, weighted by its agreement with the target.

    A past task is used if the share of pairs of the target's trials that it ranks in the wrong
    order is below `bandwidth`, with less weight the larger the share. The variance is that of the
    target's own process, so that configurations far from its trials are explored. Scores may have
    different scales, and profiles are not needed.

    Training fits a process to each past task once: O(m N³) for m tasks of N trials, some
    milliseconds each. A proposal uses the means of at most `max_tasks` of them, and is cheaper than
    that of `RGPE`. Prefer it to `RGPE` if past tasks are few or noisy: it explores more and
    excludes them sooner.

    Parameters
    ----------
    bandwidth : float
        Disagreement from which on a past task is excluded.
    max_tasks : int
        Maximum number of past tasks to use: those whose means rank the target's trials best.
    max_trials : int
        Maximum number of trials for each past task's process: the best and the most distant ones.
    kernel, winsorize, n_initial
        As in `GP`. `n_initial` only matters without past tasks.

    References
    ----------
    Wistuba, Schilling, Schmidt-Thieme (2016). Two-stage transfer surrogate model for automatic
    hyperparameter optimization. ECML PKDD. (2018) Scalable Gaussian process-based transfer
    surrogates for hyperparameter optimization. Machine Learning 107.

    Examples
    --------
    >>> from sktransfer.surrogates import EncodedTask
    >>> theta, number = np.linspace(0, 1, 7)[:, None], np.array([False])
    >>> similar = EncodedTask(theta, 10 + np.sin(4 * theta[:, 0]), number, id="similar")
    >>> other = EncodedTask(theta, np.cos(9 * theta[:, 0]), number, id="other")
    >>> target = EncodedTask(theta[::2], np.sin(4 * theta[::2, 0]), number)
    >>> TST().fit([similar, other]).similarity(target).tolist()
    [1.0, 0.0]
    """

    def __init__(
        self,
        bandwidth: float = 0.1,
        max_tasks: int = 30,
        max_trials: int = 60,
        kernel: str = "matern52",
        winsorize: bool = True,
        n_initial: int = 4,
    ):
        self.bandwidth = bandwidth
        self.max_tasks = max_tasks
        self.max_trials = max_trials
        self.kernel = kernel
        self.winsorize = winsorize
        self.n_initial = n_initial

    def check_params(self) -> None:
        super().check_params()
        if not self.bandwidth > 0:
            raise ValueError(f"bandwidth={self.bandwidth!r} must be positive.")

    def _uses_target_variance(self, own: GaussianProcess) -> bool:
        return True

    def _compute_weights(self, tasks: TaskGPs, own: GaussianProcess) -> np.ndarray:
        z = own.z
        pairs = (z[:, None] != z).sum()
        delta = count_discordant_pairs(tasks.mean(own.X), z) / max(pairs, 1)
        if len(z) > 1 and not pairs:
            delta[:] = 0.5  # the target has no differences, past tasks do
        return epanechnikov(np.append(delta, 0.0) / self.bandwidth)


def epanechnikov(t: np.ndarray) -> np.ndarray:
    """Epanechnikov kernel.

    >>> epanechnikov(np.array([0.0, 0.5, 1.0, 2.0])).tolist()
    [0.75, 0.5625, 0.0, 0.0]
    """
    return 0.75 * np.maximum(1 - t**2, 0.0)
