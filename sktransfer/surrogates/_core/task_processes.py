"""`TaskProcesses` and `TaskEnsemble`: a process for each past task, and weighted sums of them.

Notation: K past tasks that are used, mean mu_i and variance s2_i of each one's process at a
configuration, in units of its own standardized scores; w (K + 1,) weights that sum to 1, the
target's last. The sum predicts the target's standardized scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.kernels import KERNELS
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.task_gaussian_processes import (
    CONSTANT_LOG_LENGTH,
    TaskGPs,
    fit_tasks,
    pad_tasks,
    select_trials,
)
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, Surrogate
from sktransfer.surrogates.gp import GP


def count_discordant_pairs(f: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Ordered pairs of trials that f and the scores order differently; (..., n), (n,) -> (...).

    Pairs of equal scores, which are frequent in cross-validation, do not count.
    """
    below = f[..., :, None] < f[..., None, :]
    return ((below != (z[:, None] < z)) & (z[:, None] != z)).sum(axis=(-2, -1))


class TaskProcesses(TransferSurrogate):
    """Base of the surrogates that fit a process to each past task."""

    kernel: str
    max_tasks: int
    max_trials: int
    max_past_tasks: ClassVar[int | None] = 100  # enough to compare tasks; `max_tasks` are used

    def check_params(self) -> None:
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel={self.kernel!r} is not known. Use one of {sorted(KERNELS)}.")
        for name in ("max_tasks", "max_trials"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least 1.")

    def _make_fallback(self) -> Surrogate:
        return GP(kernel=self.kernel, n_initial=self.n_initial, winsorize=self.winsorize)

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._processes_cache: TaskGPs | None = None

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        kept = select_trials(self.past_, self.max_trials)
        theta, z, real = pad_tasks(self.past_, kept)
        h = np.full((len(theta), theta.shape[2] + 2), np.nan)
        known = self._known_hyperparameters(warm_from)
        for task in range(len(theta)):
            h[task] = known.get(_trials_key(theta[task], z[task], real[task]), np.nan)
        new = np.isnan(h).any(axis=1)
        h[new] = fit_tasks(theta[new], z[new], real[new], self.past_.categorical, self.kernel)
        self.learned_ |= {"h": hide_unknown(h, tasks), "kept": kept}

    def _known_hyperparameters(self, warm_from: Surrogate | None) -> dict[bytes, np.ndarray]:
        """Hyperparameters of an earlier surrogate, by the trials that they were fitted to."""
        if not isinstance(warm_from, TaskProcesses) or warm_from.kernel != self.kernel:
            return {}
        old = warm_from.learned_
        if "h" not in old or old["h"].shape[1] != self.past_.theta.shape[1] + 2:
            return {}
        trials = zip(*pad_tasks(warm_from.past_, old["kept"]), strict=True)
        return {_trials_key(*one): h for one, h in zip(trials, old["h"], strict=True)}

    @property
    def _unknown_columns(self) -> np.ndarray:
        """Whether each past task does not know a column; (m, d)."""
        return self.learned_["h"][:, :-2] >= CONSTANT_LOG_LENGTH

    @property
    def _comparable_past(self) -> PastTrials:
        """The past trials at the codes that the processes know."""
        return self.past_

    @property
    def _processes(self) -> TaskGPs:
        if self._processes_cache is None:
            self._processes_cache = self._make_processes(self._comparable_past, self.learned_["h"])
        return self._processes_cache

    def _make_processes(self, past: PastTrials, h: np.ndarray) -> TaskGPs:
        trials = pad_tasks(past, self.learned_["kept"])
        return TaskGPs(*trials, h, past.categorical, self.kernel)


def hide_unknown(h: np.ndarray, tasks: Sequence[EncodedTask]) -> np.ndarray:
    """Hyperparameters (m, d + 2) of processes that are constant in columns that a task lacks."""
    unknown = [np.zeros(h.shape[1] - 2, bool) if t.unknown is None else t.unknown for t in tasks]
    return np.hstack([np.where(unknown, CONSTANT_LOG_LENGTH, h[:, :-2]), h[:, -2:]])


def _trials_key(theta: np.ndarray, z: np.ndarray, real: np.ndarray) -> bytes:
    return theta[real].tobytes() + z[real].tobytes()


class TaskEnsemble(TaskProcesses):
    """Base of the ensembles. A subclass defines the weights and the variance.

    If there are more than `max_tasks` past tasks, those are used whose means rank the target's
    trials with the fewest mistakes. Among equals, and before the second trial, those with the most
    trials are used.
    """

    # -- defined by subclasses -----------------------------------------------------------------

    def _compute_weights(self, tasks: TaskGPs, own: GaussianProcess) -> np.ndarray:
        """Weights of the past tasks and of the target's own process; (K + 1,)."""
        raise TypeError(f"{type(self).__name__} must define _compute_weights.")

    def _uses_target_variance(self, own: GaussianProcess) -> bool:
        """Whether the variance is that of the target's own process."""
        raise TypeError(f"{type(self).__name__} must define _uses_target_variance.")

    # -- the target ----------------------------------------------------------------------------

    def _nearest_tasks(self, own: GaussianProcess) -> np.ndarray:
        """Numbers of the past tasks that get a weight; (K,)."""
        tasks = self._processes
        if len(tasks) <= self.max_tasks:
            return np.arange(len(tasks))
        mistakes = count_discordant_pairs(tasks.mean(own.X), own.z)
        return np.sort(np.lexsort((-tasks.sizes, mistakes))[: self.max_tasks])

    def _weighted_tasks(self, own: GaussianProcess) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the past tasks, and the weights, the target's last; (K,), (K + 1,)."""
        numbers = self._nearest_tasks(own)
        weights = self._compute_weights(self._processes.take(numbers), own)
        return numbers, weights / weights.sum()

    def posterior(self, target: EncodedTask) -> Posterior:
        """The weighted sum of the past tasks' processes and of one on the target's trials."""
        own = self._target_gp(target)
        if not self._has_past:
            return own
        numbers, weights = self._weighted_tasks(own)
        used = weights[:-1] > 0
        ensemble = Ensemble(
            self._processes.take(numbers[used]),
            own,
            np.append(weights[:-1][used], weights[-1]),
            own_variance=self._uses_target_variance(own),
        )
        ok = np.isfinite(target.z)
        seen = target.z[ok]
        if not len(seen) or seen.min() == seen.max():
            # The target's scale is still unknown: assume that of the past tasks.
            share = np.zeros(len(self.past_))
            share[numbers] = weights[:-1]
            level = self.past_.level(share, np.ones(len(share), dtype=bool), seen)
            scale = float(np.exp(level.log_scale))
            if len(seen):
                predicted = ensemble.standardized(target.theta[ok])[0].mean()
                ensemble.set_level(float(seen[0] - scale * predicted), scale)
            else:
                ensemble.set_level(level.shift, scale, level.shift_std)
        return ensemble

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """Each past task's weight relative to the largest weight, the target's included."""
        similarity = np.zeros(len(self.past_))
        if self._has_past:
            numbers, weights = self._weighted_tasks(self._target_gp(target))
            similarity[numbers] = weights[:-1] / weights.max()
        return self._scatter(similarity)

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """The number of the target's trials that each past task was compared by."""
        reason = f"excluded: {self.max_tasks} other tasks agree better with the trials"
        texts = [reason] * len(self.past_)
        if self._has_past:
            for number in self._nearest_tasks(self._target_gp(target)):
                texts[number] = f"ranking of {len(target.z)} trials"
        return self._scatter_text(texts)

    def _target_gp(self, target: EncodedTask) -> GaussianProcess:
        own = self.fallback_.posterior(target)
        assert isinstance(own, GaussianProcess)
        return own


class Ensemble(Posterior):
    """The weighted sum of independent processes.

    Parameters
    ----------
    tasks : TaskGPs
        Processes of the past tasks.
    own : GaussianProcess
        Process of the target.
    weights : ndarray of shape (K + 1,)
        The target's last.
    own_variance : bool
        Whether the variance is that of `own`. Otherwise it is that of the sum, sum w_i² s2_i.
    """

    def __init__(
        self, tasks: TaskGPs, own: GaussianProcess, weights: np.ndarray, *, own_variance: bool
    ):
        self._tasks, self._own, self.weights = tasks, own, weights
        self._own_variance = own_variance
        self.set_level(own.shift, own.scale)

    def set_level(self, shift: float, scale: float, level_std: float = 0.0) -> None:
        """Set the map from standardized scores to scores, and the uncertainty of the shift."""
        self._shift, self._scale, self.level_std = shift, scale, level_std
        trials = self._own.X
        self._incumbent = float(self.predict(trials)[0].max()) if len(trials) else None

    def incumbent(self, z: np.ndarray) -> float | None:
        """The predicted score of the best trial.

        Past tasks have other levels than the target. Compared with the observed score, the
        prediction at an old trial could promise an improvement forever.
        """
        return self._incumbent

    def standardized(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the standardized score; (k, d) -> (k,), (k,)."""
        w, own = self.weights[:-1], self.weights[-1]
        own_mean, own_std = self._own.predict(theta)
        own_mean = (own_mean - self._own.shift) / self._own.scale
        own_variance = (own_std / self._own.scale) ** 2
        if self._own_variance:
            return w @ self._tasks.mean(theta) + own * own_mean, own_variance
        means, variances = self._tasks.moments(theta)
        return w @ means + own * own_mean, w**2 @ variances + own**2 * own_variance

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the score; (k, d) -> (k,), (k,)."""
        mean, variance = self.standardized(theta)
        return self._shift + self._scale * mean, self._scale * np.sqrt(variance)

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the score; (k, d) -> (n, k)."""
        w, own = self.weights[:-1], self.weights[-1]
        draws = (self._own.sample(theta, n, rng) - self._own.shift) / self._own.scale
        if self._own_variance:
            mean = (self._own.predict(theta)[0] - self._own.shift) / self._own.scale
            draws = w @ self._tasks.mean(theta) + own * mean + (draws - mean)
        else:
            draws = own * draws + np.einsum("i,ink->nk", w, self._tasks.sample(theta, n, rng))
        return self._shift + self._scale * draws
