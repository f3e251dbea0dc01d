"""`TaskPrior`: past tasks as draws from the prior that the target is drawn from; what "auto" stands for.

Notation: m past tasks that are listened to, mu_i(theta) the mean of the process on the trials of task i, on
the scale of its standardized scores; w (m,) weights that sum to 1, by how alike the data are.

    prior mean   mu(theta) = sum_i w_i mu_i(theta)
    covariance   S(theta, theta') = c sum_i w_i (mu_i - mu)(theta) (mu_i - mu)(theta') + r k(theta, theta')

with c = 1 / (1 - sum w²), the correction of a weighted covariance, and k a Matérn kernel for what no past
task shows. It is the prior of  f = mu + sum_i a_i sqrt(c w_i) (mu_i - mu) + residual,  a_i ~ N(0, 1).  Given
the target's trials, it finds out which past tasks the target is like, and what it shares with none of them.

    weights      w_i ~ exp(-d_i² / 2 bandwidth²),  d_i the distance of the handcrafted meta-features,

each feature weighted by how well it foretells that past tasks differ (`_metric`). Bandwidth, r and the noise
are those that foretell past tasks best from the others (leave one out, `_foretelling`); where all of that is
noise, the past is left alone.

The first trial is the best of the prior's lower confidence bounds at the past tasks' best settings: between
them the means of their processes are guesses. One or two trials say little of which past tasks the target is
like, and nothing while no trial stands out: until then the next trial is the setting that, with those tried,
does best over the past tasks (`_portfolio`).
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
    deviations,
    kernel_weights,
    loo_log_likelihood,
    select_by_likelihood,
)
from sktransfer.surrogates._core.model_averaging import AveragedPosterior, average_by_evidence
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.portfolio import select_greedily
from sktransfer.surrogates._core.task_processes import TaskProcesses
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.utils._scores import impute_failures

MAX_POINTS = 400
"""Points that the means of the past tasks are kept at; between them they are interpolated."""

MAX_DISTANCE, MIN_KNOWN_TASKS = 2.0, 30
"""A target is unlike everything if the nearest of at least MIN_KNOWN_TASKS past tasks is farther than MAX_DISTANCE, squared and in
units of the median of two past tasks."""

MIN_TRIALS_FOR_MODEL = 3
"""From this trial on the model proposes, if the target has shown a difference by then."""

MAX_VALIDATION_TASKS = 40  # past tasks that the settings are judged by
N_REFERENCE_SETTINGS = 300  # settings at which past tasks are compared
BEST_PER_TASK, PORTFOLIO_SIZE = (
    3,
    20,
)  # settings of a task that a portfolio is made of, and how many it has
_ENCODER = ("names", "low", "high")


class TaskPrior(TaskProcesses):
    """A Gaussian process whose prior mean and covariance are those of the past tasks, seen as functions.

    Each past task is a process on its own trials. Their weighted mean is where the target is expected, their
    covariance how it may differ: where past tasks differ together, one trial of the target tells much about
    the others. So the first trials are unlike each other in a way that the past made out to matter, and what
    the target does not share with any past task is left to an ordinary kernel. The weights come from the
    meta-features of the data. A guard weighs the whole against a plain GP by how well each foretold the
    target's trials.

    Training fits a process to each past task, once: O(m N³) for m tasks of N trials. A proposal asks the
    `max_tasks` past tasks whose data are most alike; those of which no data are known count alike. Without a
    past, where nothing in it is similar, or where its scores look like noise, it is a plain GP. To be
    preferred as long as nothing speaks for another.

    Parameters
    ----------
    max_tasks : int
        Past tasks that are listened to.
    max_trials : int
        Trials that a past task's process is made of; of more, the most telling.
    guard : bool
        Whether the prior is weighed against a plain GP.
    kernel, n_initial
        As in `GP`; `n_initial` counts only without a past.

    Examples
    --------
    >>> from sktransfer.surrogates import EncodedTask
    >>> theta, number = np.linspace(0, 1, 7)[:, None], np.array([False])
    >>> past = [EncodedTask(theta, -((theta[:, 0] - best) ** 2), number) for best in (0.6, 0.7, 0.8)]
    >>> nothing_yet = EncodedTask(np.empty((0, 1)), np.empty(0), number)
    >>> mean, _ = TaskPrior().fit(past).posterior(nothing_yet).predict(theta)
    >>> float(theta[mean.argmax(), 0].round(2))
    0.67
    """

    fallback_name: ClassVar[str] = ""  # the default: on a fresh machine there is nothing to warn of

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

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        super()._train(tasks, warm_from)
        profiles = [task.profile for task in tasks]
        encoder = ManualEncoder().fit(profiles)
        known = np.array([profile is not None for profile in profiles])
        features = encoder.transform(profiles)
        rows = np.unique(np.linspace(0, len(self.past_.z) - 1, N_REFERENCE_SETTINGS).astype(int))
        metric = fit_feature_weights(
            features[known], self._processes.mean(self.past_.theta[rows])[known]
        )
        plain, squares = (_squares(features, features, w) for w in (np.ones_like(metric), metric))
        units = [_typical(plain), _typical(squares)]
        self.learned_ |= {f"encoder.{name}": value for name, value in encoder.constants().items()}
        self.learned_ |= {
            "features": features,
            "metric": metric,
            "units": np.array(units),
            "known": known,
        }
        self.learned_ |= self._fit_hyperparameters(squares / units[1])

    def _fit_hyperparameters(self, squares: np.ndarray) -> dict[str, np.ndarray]:
        """Bandwidth, residual and noise by which past tasks foretell each other best, and whether they do."""
        m = len(self.past_)
        if m < 3:
            return {"settings": np.array(DEFAULT_HYPERPARAMETERS), "noise": np.array(False)}
        found, n_trials = [], []
        for task in np.unique(np.linspace(0, m - 1, min(m, MAX_VALIDATION_TASKS)).astype(int)):
            others = np.argsort(
                squares[task] + np.where(np.arange(m) == task, np.inf, 0), kind="stable"
            )
            others = others[: min(m - 1, self.max_tasks)]
            rows = np.flatnonzero((self.past_.owner == task) & self.learned_["kept"])
            theta, z = self.past_.theta[rows], self.past_.z[rows]
            lengths = np.exp(self.learned_["h"][others, :-2].mean(axis=0))
            K = kernel_matrix(theta, theta, lengths, self.past_.categorical, self.kernel)
            found.append(
                loo_log_likelihood(
                    z, K, self._processes.take(others).mean(theta), squares[task][others]
                )
            )
            n_trials.append(len(z))
        settings, noise = select_by_likelihood(np.array(found), np.array(n_trials))
        return {"settings": settings, "noise": np.array(noise)}

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._kept: tuple[np.ndarray, _Means] | None = None

    # -- the target ----------------------------------------------------------------------------

    def _means(self, numbers: np.ndarray) -> _Means:
        """Those of the past tasks that are listened to, which are the same for all trials of a target."""
        if self._kept is None or not np.array_equal(self._kept[0], numbers):
            self._kept = numbers, _Means(self, numbers)
        return self._kept[1]

    def _distances(self, target: EncodedTask, weighted: bool = True) -> np.ndarray:
        """Squared distance of each past task's data from the target's, features weighted or not; (m,)."""
        learned = self.learned_
        if target.profile is None or not learned["known"].any():
            return np.zeros(len(self.past_))
        encoder = ManualEncoder()
        encoder.restore({name: learned[f"encoder.{name}"] for name in _ENCODER})
        weights = learned["metric"] if weighted else np.ones_like(learned["metric"])
        squares = _squares(learned["features"], encoder.transform([target.profile]), weights)[:, 0]
        squares = squares / learned["units"][int(weighted)]
        # As far as the typical task that is known: neither alike nor not.
        return np.where(learned["known"], squares, np.median(squares[learned["known"]]))

    def _reason_ignored(self, target: EncodedTask) -> str:
        """Why the past has nothing to say about the target; empty where it has."""
        if self.learned_["noise"]:
            return "past scores look like noise"
        # Whichever feature one looks at, so features are not weighted.
        if (
            self.learned_["known"].sum() >= MIN_KNOWN_TASKS
            and self._distances(target, weighted=False).min() > MAX_DISTANCE
        ):
            return "nothing is similar to these data"
        return ""

    def _nearest_tasks(self, target: EncodedTask) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the past tasks whose data are most alike, and their weights; (K,), (K,)."""
        squares = self._distances(target)
        order = np.sort(np.lexsort((-self._processes.sizes, squares))[: self.max_tasks])
        return order, kernel_weights(squares[order], self.learned_["settings"][0])

    def _best_rows(self, numbers: np.ndarray) -> np.ndarray:
        """Rows of the best settings of some past tasks."""
        return self.past_.best_rows(BEST_PER_TASK, np.isin(np.arange(len(self.past_)), numbers))

    def hints(self, target: EncodedTask) -> SearchHints:
        """The first trial is among the best past settings, the next two are from a portfolio."""
        hints = super().hints(target)
        shows_little = target.is_on_plateau or len(target.z) < MIN_TRIALS_FOR_MODEL
        if not self._has_past or not shows_little or self._reason_ignored(target):
            return hints
        numbers = self._nearest_tasks(target)[0]
        rows = self._best_rows(numbers)
        if not len(target.z):
            return replace(hints, restrict_to=self.past_.theta[rows])
        chosen = rows[self._complement(numbers, rows, target)]
        sources = tuple(str(self.past_.ids[self.past_.owner[row]]) for row in chosen)
        return replace(hints, first_settings=self.past_.theta[chosen], sources=sources)

    def _complement(self, numbers: np.ndarray, rows: np.ndarray, target: EncodedTask) -> list[int]:
        """Which of these settings, beside the trials made, do best on the past tasks."""
        past = self.past_
        own = [past.z[past.owner == number] for number in numbers]
        middle, best = (
            np.array([statistic(z) for z in own])[:, None] for statistic in (np.median, np.max)
        )

        def reached(theta: np.ndarray) -> np.ndarray:  # 0 is a task's median trial, 1 its best
            means = self._processes.take(numbers).mean(theta)
            return np.clip((means - middle) / np.maximum(best - middle, 1e-9), -1, 1)

        return select_greedily(
            reached(past.theta[rows]), reached(target.theta).max(axis=1), PORTFOLIO_SIZE
        )

    def posterior(self, target: EncodedTask) -> Posterior | None:
        """The prior, conditioned on the target's trials, and weighed against a GP on these alone.

        None where the past is silent and the trials are too few for a GP: the space is to be filled.
        """
        silent = self._has_past and self._reason_ignored(target)
        if silent and (len(target.z) < self.n_initial or target.is_flat):
            return None
        alone = self.fallback_.posterior(target)
        assert isinstance(alone, GaussianProcess)
        if not self._has_past or silent:
            return alone
        numbers, weights = self._nearest_tasks(target)
        shares = np.zeros(len(self.past_))
        shares[numbers] = weights * len(weights)
        level = self.past_.level(shares, shares > 0, target.z)
        # Before the first success, failures have no score to be worse than.
        told = slice(None if np.isfinite(target.z).any() else 0)
        theta, y = (
            target.theta[told],
            impute_failures(target.z, usual=float(np.exp(level.log_scale)))[told],
        )
        settings = map(float, self.learned_["settings"][1:])
        belief = ConditionedPosterior(
            _Prior(self._means(numbers), weights, *settings), theta, y, level
        )
        if not len(y) or not self.guard:
            return belief
        # Even odds: the past has had its say by choosing the first trials.
        return average_by_evidence(belief, alone, theta, y, level, prior_log_odds=0.0)

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """The weight of each past task, as a share of the largest, times that of the past as a whole."""
        alike = np.zeros(len(self.past_))
        if self._has_past and not self._reason_ignored(target):
            numbers, weights = self._nearest_tasks(target)
            belief = self.posterior(target)
            whole = belief.weight if isinstance(belief, AveragedPosterior) else 1.0
            alike[numbers] = whole * weights / weights.max()
        return self._scatter(alike)

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each past task was compared by."""
        if self._has_past and (why := self._reason_ignored(target)):
            return self._scatter_text([f"left out: {why}"] * len(self.past_))
        words = [f"left out: {self.max_tasks} others are more alike"] * len(self.past_)
        own = target.profile.meta_features if target.profile is not None else {}
        n_known = (
            sum(name in own for name in self.learned_["encoder.names"]) if self._has_past else 0
        )
        for number in self._nearest_tasks(target)[0] if self._has_past else ():
            known = n_known and self.learned_["known"][number]
            words[number] = f"{n_known} meta-features" if known else "its trials alone"
        return self._scatter_text(words)


def _squares(A: np.ndarray, B: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared distances of rows, their columns weighted; (n, p), (k, p), (p,) -> (n, k)."""
    A, B = A * weights, B * weights
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * A @ B.T
    return np.where(squares > 1e-12, squares, 0)  # what is left of equal rows are rounding errors


def _typical(squares: np.ndarray) -> float:
    """The median of two different tasks, (m, m); 1 where there is none, or no distance."""
    apart = squares[~np.eye(len(squares), dtype=bool)]
    return (float(np.median(apart)) or 1.0) if len(apart) else 1.0


class _Means:
    """The means of past tasks, interpolated between the points where most is known of them.

    To ask each process at each configuration would take most of the time of a proposal. Smooth functions as
    they are, their values at some of the trials say nearly as much, and cost one kernel for all tasks.
    """

    def __init__(self, model: TaskPrior, numbers: np.ndarray):
        past = model.past_
        self._categorical, self._kernel = past.categorical, model.kernel
        processes = model._processes.take(numbers)
        self.lengths = np.exp(model.learned_["h"][numbers, :-2].mean(axis=0))
        rows = np.isin(past.owner, numbers) & model.learned_["kept"]
        together = replace(
            past, theta=past.theta[rows], z=past.z[rows], owner=np.zeros(rows.sum(), dtype=int)
        )
        together = replace(together, ids=past.ids[:1])
        self._points = together.theta[
            together.farthest_point_order(self.lengths, MAX_POINTS) < MAX_POINTS
        ]
        K = self.kernel(self._points, self._points) + 1e-4 * np.eye(len(self._points))
        self._weights = np.linalg.solve(K, processes.mean(self._points).T)

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """That of the average past task; (n, d), (k, d) -> (n, k)."""
        return kernel_matrix(A, B, self.lengths, self._categorical, self._kernel)

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) -> (m, n)."""
        return (self.kernel(theta, self._points) @ self._weights).T


class _Prior:
    """The prior at one data set, as `ConditionedPosterior` takes it."""

    def __init__(self, means: _Means, weights: np.ndarray, residual: float, noise: float):
        self._means, self._w, self._residual, self.noise = means, weights, residual, noise
        self._anchors: tuple[np.ndarray, np.ndarray] | None = None

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        F = self._means(theta)
        if self._anchors is None or self._anchors[0] is not anchors:
            G = F if theta is anchors else self._means(anchors)
            self._anchors = anchors, deviations(self._w, G)
        D = deviations(self._w, F)
        residual = self._residual * self._means.kernel(theta, anchors)
        return self._w @ F, (D * D).sum(axis=0) + self._residual, D.T @ self._anchors[1] + residual
