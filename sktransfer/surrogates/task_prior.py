"""`TaskPrior`: past tasks as draws from the prior of the target. The default surrogate ("auto").

Notation: m past tasks that are used, mu_i(theta) the mean of the process on the trials of task i,
in units of its standardized scores; w (m,) weights that sum to 1, by the similarity of the data.

    prior mean   mu(theta) = sum_i w_i mu_i(theta)
    covariance   S(theta, theta') = c sum_i w_i (mu_i - mu)(theta) (mu_i - mu)(theta')
                                    + r k(theta, theta')

with c = 1 / (1 - sum w²), the correction of a weighted covariance, and k a Matérn kernel for what
no past task shows. It is the prior of

    f = mu + sum_i a_i sqrt(c w_i) (mu_i - mu) + residual,  a_i ~ N(0, 1).

Given the target's trials, the posterior finds which past tasks the target resembles, and how it
differs from all of them.

    weights      w_i ~ exp(-d_i² / 2 bandwidth²),  d_i the distance of the meta-features,

each feature weighted by how well it predicts that past tasks differ (`feature_weights`). Bandwidth,
r and the noise are those that predict each past task best from the others (`leave_one_out`). If
nothing but noise is found, past tasks are ignored.

The first trial maximizes the lower confidence bound over the past tasks' best settings, because
between these the means are uncertain. One or two trials do not identify similar past tasks, and no
number does while no trial stands out. Until then the next trial is the setting that, together with
those tried, does best over the past tasks (`portfolio`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from sktransfer.encoders import ManualEncoder
from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.feature_weights import fit_feature_weights
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.kernels import kernel_matrix
from sktransfer.surrogates._core.leave_one_out import (
    DEFAULT_HYPERPARAMETERS,
    kernel_weights,
    loo_log_likelihood,
    select_by_likelihood,
    weighted_deviations,
)
from sktransfer.surrogates._core.model_averaging import AveragedPosterior, average_by_evidence
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.portfolio import select_greedily
from sktransfer.surrogates._core.task_processes import TaskProcesses
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.utils._scores import impute_failures

MAX_POINTS = 400  # at which the means of past tasks are kept; in between they are interpolated
MAX_DISTANCE = 2.0  # squared, of the most similar past task, in medians over pairs of past tasks
MIN_KNOWN_TASKS = 30  # past tasks with data, below which no target is called dissimilar
MIN_TRIALS_FOR_MODEL = 3  # from which on the model proposes, if the scores differ
MAX_VALIDATION_TASKS = 40  # past tasks that the hyperparameters are selected on
N_REFERENCE_SETTINGS = 300  # past settings at which tasks are compared
BEST_PER_TASK = 3  # best settings of each task, from which first trials are selected
PORTFOLIO_SIZE = 20


class TaskPrior(TaskProcesses):
    """Gaussian process whose prior mean and covariance are those of the past tasks.

    Each past task is a process on its own trials. The target is expected at their weighted mean,
    and varies like they do: where past tasks differ jointly, one trial of the target tells much
    about the others. A plain kernel models what the target shares with no past task. The weights
    come from the meta-features of the data. The result is averaged with a plain GP, weighted by how
    well each predicted the target's trials.

    Training fits a process to each past task once, O(m N³) for m tasks of N trials. A proposal uses
    the `max_tasks` past tasks with the most similar data. Past tasks without a profile count as
    average. It is a plain GP if there are no past tasks, if none is similar, or if their scores
    look like noise. Use it unless there is a reason for another surrogate.

    Parameters
    ----------
    max_tasks : int
        Maximum number of past tasks to use.
    max_trials : int
        Maximum number of trials for each past task's process: the best and the most distant ones.
    guard : bool
        Whether to average with a plain GP.
    kernel, n_initial
        As in `GP`. `n_initial` only matters without past tasks.

    Examples
    --------
    >>> from sktransfer.surrogates import EncodedTask
    >>> theta, number = np.linspace(0, 1, 7)[:, None], np.array([False])
    >>> z = [-((theta[:, 0] - best) ** 2) for best in (0.6, 0.7, 0.8)]
    >>> past = [EncodedTask(theta, row, number) for row in z]
    >>> no_trials = EncodedTask(np.empty((0, 1)), np.empty(0), number)
    >>> mean, _ = TaskPrior().fit(past).posterior(no_trials).predict(theta)
    >>> float(theta[mean.argmax(), 0].round(2))
    0.67
    """

    fallback_name: ClassVar[str] = ""  # no warning: a new machine has no past tasks
    encoder_: ManualEncoder

    def __init__(
        self,
        max_tasks: int = 30,
        max_trials: int = 50,
        guard: bool = True,
        kernel: str = "matern52",
        n_initial: int = 4,
    ):
        self.max_tasks = max_tasks
        self.max_trials = max_trials
        self.guard = guard
        self.kernel = kernel
        self.n_initial = n_initial

    def _make_encoder(self) -> ManualEncoder:
        return ManualEncoder()

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._means_cache: tuple[np.ndarray, _Means] | None = None

    # -- training ------------------------------------------------------------------------------

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        super()._train(tasks, warm_from)
        profiles = [task.profile for task in tasks]
        self.encoder_ = self._make_encoder().fit(profiles)
        features = self.encoder_.transform(profiles)
        known = np.array([profile is not None for profile in profiles])
        rows = np.unique(np.linspace(0, len(self.past_.z) - 1, N_REFERENCE_SETTINGS).astype(int))
        functions = self._processes.mean(self.past_.theta[rows])
        weights = fit_feature_weights(features[known], functions[known])
        plain = _squared_distances(features, features, np.ones_like(weights))
        weighted = _squared_distances(features, features, weights)
        units = [_median_distance(plain), _median_distance(weighted)]
        self.learned_ |= self._encoder_state() | {
            "features": features,
            "feature_weights": weights,
            "units": np.array(units),
            "known": known,
        }
        self.learned_ |= self._fit_hyperparameters(weighted / units[1])

    def _fit_hyperparameters(self, squares: np.ndarray) -> dict[str, np.ndarray]:
        """Hyperparameters that predict past tasks best, and whether all scores are noise."""
        m = len(self.past_)
        if m < 3:
            return {"hyperparameters": np.array(DEFAULT_HYPERPARAMETERS), "noise": np.array(False)}
        found, n_trials = [], []
        for task in np.unique(np.linspace(0, m - 1, min(m, MAX_VALIDATION_TASKS)).astype(int)):
            excluded = np.where(np.arange(m) == task, np.inf, 0)
            others = np.argsort(squares[task] + excluded, kind="stable")[
                : min(m - 1, self.max_tasks)
            ]
            rows = np.flatnonzero((self.past_.owner == task) & self.learned_["kept"])
            theta, z = self.past_.theta[rows], self.past_.z[rows]
            lengths = np.exp(self.learned_["h"][others, :-2].mean(axis=0))
            K = kernel_matrix(theta, theta, lengths, self.past_.categorical, self.kernel)
            F = self._processes.take(others).mean(theta)
            found.append(loo_log_likelihood(z, K, F, squares[task][others]))
            n_trials.append(len(z))
        best, is_noise = select_by_likelihood(np.array(found), np.array(n_trials))
        return {"hyperparameters": best, "noise": np.array(is_noise)}

    # -- similarity ----------------------------------------------------------------------------

    def _distances(self, target: EncodedTask, weighted: bool = True) -> np.ndarray:
        """Squared distance of each past task's data to the target's, in medians; (m,)."""
        learned = self.learned_
        if target.profile is None or not learned["known"].any():
            return np.zeros(len(self.past_))
        weights = learned["feature_weights"]
        weights = weights if weighted else np.ones_like(weights)
        own = self.encoder_.transform([target.profile])
        squares = _squared_distances(learned["features"], own, weights)[:, 0]
        squares = squares / learned["units"][int(weighted)]
        # Tasks without a profile are as far as the median of the others.
        return np.where(learned["known"], squares, np.median(squares[learned["known"]]))

    def _reason_ignored(self, target: EncodedTask) -> str:
        """Why past tasks are ignored for this target; empty if they are used."""
        if self.learned_["noise"]:
            return "past scores look like noise"
        if self.learned_["known"].sum() < MIN_KNOWN_TASKS:
            return ""
        # A target is dissimilar by any feature, so features are not weighted.
        if self._distances(target, weighted=False).min() > MAX_DISTANCE:
            return "no past data set is similar"
        return ""

    def _nearest_tasks(self, target: EncodedTask) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the past tasks with the most similar data, and their weights; (K,), (K,)."""
        squares = self._distances(target)
        order = np.sort(np.lexsort((-self._processes.sizes, squares))[: self.max_tasks])
        return order, kernel_weights(squares[order], self.learned_["hyperparameters"][0])

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """Weight of each past task relative to the largest, times the weight of the prior."""
        similarity = np.zeros(len(self.past_))
        if self._has_past and not self._reason_ignored(target):
            numbers, weights = self._nearest_tasks(target)
            posterior = self.posterior(target)
            share = posterior.weight if isinstance(posterior, AveragedPosterior) else 1.0
            similarity[numbers] = share * weights / weights.max()
        return self._scatter(similarity)

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each past task was compared by, or why it was excluded."""
        if not self._has_past:
            return self._scatter_text([])
        if reason := self._reason_ignored(target):
            return self._scatter_text([f"excluded: {reason}"] * len(self.past_))
        texts = [f"excluded: {self.max_tasks} other tasks are more similar"] * len(self.past_)
        own = target.profile.meta_features if target.profile is not None else {}
        n_known = sum(name in own for name in self.encoder_.names_)
        for number in self._nearest_tasks(target)[0]:
            is_compared = n_known and self.learned_["known"][number]
            texts[number] = f"{n_known} meta-features" if is_compared else "its trials only"
        return self._scatter_text(texts)

    # -- the target ----------------------------------------------------------------------------

    def hints(self, target: EncodedTask) -> SearchHints:
        """The first trial is one of the best past settings, the next ones are from a portfolio."""
        hints = super().hints(target)
        needs_portfolio = target.is_on_plateau or len(target.z) < MIN_TRIALS_FOR_MODEL
        if not self._has_past or not needs_portfolio or self._reason_ignored(target):
            return hints
        numbers, past = self._nearest_tasks(target)[0], self.past_
        rows = past.best_rows(BEST_PER_TASK, np.isin(np.arange(len(past)), numbers))
        if not len(target.z):
            return replace(hints, restrict_to=past.theta[rows])
        chosen = rows[self._select_complement(numbers, rows, target)]
        sources = tuple(str(past.ids[past.owner[row]]) for row in chosen)
        return replace(hints, first_settings=past.theta[chosen], sources=sources)

    def _select_complement(
        self, numbers: np.ndarray, rows: np.ndarray, target: EncodedTask
    ) -> list[int]:
        """The settings that, together with the target's trials, do best over the past tasks."""
        past = self.past_
        own = [past.z[past.owner == number] for number in numbers]
        median, best = (np.array([f(z) for z in own])[:, None] for f in (np.median, np.max))

        def relative_score(
            theta: np.ndarray,
        ) -> np.ndarray:  # 0 is a task's median trial, 1 its best
            means = self._processes.take(numbers).mean(theta)
            return np.clip((means - median) / np.maximum(best - median, 1e-9), -1, 1)

        reached = relative_score(target.theta).max(axis=1)
        return select_greedily(relative_score(past.theta[rows]), reached, PORTFOLIO_SIZE)

    def posterior(self, target: EncodedTask) -> Posterior | None:
        """The prior conditioned on the target's trials, averaged with a plain GP.

        None if past tasks are ignored and the trials are too few for a GP, so that the space is to
        be filled.
        """
        is_ignored = self._has_past and self._reason_ignored(target)
        if is_ignored and (len(target.z) < self.n_initial or target.is_flat):
            return None
        plain = self.fallback_.posterior(target)
        assert isinstance(plain, GaussianProcess)
        if not self._has_past or is_ignored:
            return plain
        numbers, weights = self._nearest_tasks(target)
        shares = np.zeros(len(self.past_))
        shares[numbers] = weights * len(weights)
        level = self.past_.level(shares, shares > 0, target.z)
        # Before the first success, failures have no score to be worse than.
        used = slice(None if np.isfinite(target.z).any() else 0)
        y = impute_failures(target.z, usual=float(np.exp(level.log_scale)))[used]
        theta, (residual, noise) = (
            target.theta[used],
            map(float, self.learned_["hyperparameters"][1:]),
        )
        prior = _Prior(self._means(numbers), weights, residual, noise)
        conditioned = ConditionedPosterior(prior, theta, y, level)
        if not len(y) or not self.guard:
            return conditioned
        # Even prior odds: the past tasks chose the first trials already.
        return average_by_evidence(conditioned, plain, theta, y, level, prior_log_odds=0.0)

    def _means(self, numbers: np.ndarray) -> _Means:
        """Means of these past tasks. They are cached: a target's similar tasks do not change."""
        if self._means_cache is None or not np.array_equal(self._means_cache[0], numbers):
            self._means_cache = numbers, _Means(self, numbers)
        return self._means_cache[1]


def _squared_distances(A: np.ndarray, B: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared distances of rows with weighted columns; (n, p), (k, p), (p,) -> (n, k)."""
    A, B = A * weights, B * weights
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * A @ B.T
    return np.where(squares > 1e-12, squares, 0)  # equal rows differ by rounding errors


def _median_distance(squares: np.ndarray) -> float:
    """The median over pairs of different tasks, (m, m); 1 if there are none or the median is 0."""
    distances = squares[~np.eye(len(squares), dtype=bool)]
    return (float(np.median(distances)) or 1.0) if len(distances) else 1.0


class _Means:
    """The means of past tasks, interpolated between representative trials.

    Evaluating each process at each configuration would take most of the time of a proposal. The
    means are smooth, so their values at some of the trials are nearly as good, and need one kernel
    for all tasks.
    """

    def __init__(self, model: TaskPrior, numbers: np.ndarray):
        past = model.past_
        self._categorical, self._kernel = past.categorical, model.kernel
        processes = model._processes.take(numbers)
        self.lengths = np.exp(model.learned_["h"][numbers, :-2].mean(axis=0))
        rows = np.isin(past.owner, numbers) & model.learned_["kept"]
        one_task = {"owner": np.zeros(rows.sum(), dtype=int), "ids": past.ids[:1]}
        together = replace(past, theta=past.theta[rows], z=past.z[rows], **one_task)
        order = together.farthest_point_order(self.lengths, MAX_POINTS)
        self._points = together.theta[order < MAX_POINTS]
        K = self.kernel(self._points, self._points) + 1e-4 * np.eye(len(self._points))
        self._weights = np.linalg.solve(K, processes.mean(self._points).T)

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Kernel with the average lengthscales of the past tasks; (n, d), (k, d) -> (n, k)."""
        return kernel_matrix(A, B, self.lengths, self._categorical, self._kernel)

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) -> (m, n)."""
        return (self.kernel(theta, self._points) @ self._weights).T


class _Prior:
    """The prior at one data set, as `ConditionedPosterior` needs it."""

    def __init__(self, means: _Means, weights: np.ndarray, residual: float, noise: float):
        self._means, self._w, self._residual, self.noise = means, weights, residual, noise
        self._anchors: tuple[np.ndarray, np.ndarray] | None = None

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        F = self._means(theta)
        if self._anchors is None or self._anchors[0] is not anchors:
            G = F if theta is anchors else self._means(anchors)
            self._anchors = anchors, weighted_deviations(self._w, G)
        D = weighted_deviations(self._w, F)
        covariance = D.T @ self._anchors[1] + self._residual * self._means.kernel(theta, anchors)
        return self._w @ F, (D * D).sum(axis=0) + self._residual, covariance
