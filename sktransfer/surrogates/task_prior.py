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

With a pretrained prediction of the scores, the mu_i are what past tasks add to the predictions from
their data (`transported_past`), and the model proposes from the first trial on. The embedding
replaces the meta-features where it predicts past tasks better.

Without one, the first trial maximizes the lower confidence bound over the past tasks' best
settings, because between these the means are uncertain. One or two trials do not identify similar
past tasks, and no number does while no trial stands out. Until then the next trial is the setting
that, together with those tried, does best over the past tasks (`portfolio`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from sktransfer.encoders import ManualEncoder
from sktransfer.surrogates._core.conditioning import ConditionedPosterior, Prior
from sktransfer.surrogates._core.feature_weights import fit_feature_weights
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.leave_one_out import (
    kernel_weights,
)
from sktransfer.surrogates._core.model_averaging import AveragedPosterior, average_by_evidence
from sktransfer.surrogates._core.past_prior import (
    PastMeans,
    PastPrior,
    PretrainedPrior,
    join_trials,
)
from sktransfer.surrogates._core.past_trials import Level, PastTrials
from sktransfer.surrogates._core.portfolio import select_greedily
from sktransfer.surrogates._core.task_comparison import TaskComparison
from sktransfer.surrogates._core.task_processes import TaskProcesses
from sktransfer.surrogates._core.transported_past import (
    TargetPrediction,
    describe_past,
    describe_target,
    fit_gain,
    predict_past,
)
from sktransfer.surrogates.base import (
    EncodedTask,
    Posterior,
    ScorePrior,
    SearchHints,
    Surrogate,
)
from sktransfer.utils._scores import impute_failures

MAX_DISTANCE = 2.0  # squared, of the most similar past task, in medians over pairs of past tasks
MIN_KNOWN_TASKS = 30  # past tasks with data, below which no target is called dissimilar
MIN_TRIALS_FOR_MODEL = 3  # from which on the model proposes, if the scores differ
N_REFERENCE_SETTINGS = 300  # past settings at which tasks are compared
BEST_PER_TASK = 3  # best settings of each task, from which first trials are selected
PORTFOLIO_SIZE = 20
PRIOR_COUNT = 3.0  # past tasks that a pretrained prediction counts for


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
    pretrained : bool
        Whether to use the predictions of the pretrained model, where it knows the estimator.
    kernel, n_initial
        As in `GP`. `n_initial` only matters without past tasks and pretrained predictions.

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
        pretrained: bool = True,
        kernel: str = "matern52",
        n_initial: int = 4,
    ):
        self.max_tasks = max_tasks
        self.max_trials = max_trials
        self.guard = guard
        self.pretrained = pretrained
        self.kernel = kernel
        self.n_initial = n_initial

    @property
    def uses_prior(self) -> bool:  # type: ignore[override]
        return self.pretrained

    def _make_encoder(self) -> ManualEncoder:
        return ManualEncoder()

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._means_cache: tuple[np.ndarray, TargetPrediction | None, PastMeans] | None = None

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
        descriptions = describe_past(tasks) if self.pretrained else None
        if descriptions is None or tasks[0].prior is None:
            self.learned_ |= self._compare_tasks().fit_hyperparameters(weighted / units[1])[0]
            return
        self.learned_ |= {"descriptions": descriptions}
        prediction = self._fit_gain(tasks[0].prior)
        embedded = tasks[0].prior.embedding(descriptions)
        self.learned_ |= self._choose_distance(weighted / units[1], embedded, prediction)

    def _fit_gain(self, prior: ScorePrior) -> TargetPrediction | None:
        """Find how much past scores follow their predictions; None without predictions."""
        if not prior.has_scores:
            return None
        descriptions = self.learned_["descriptions"]
        gain = fit_gain(self.past_, predict_past(prior, self.past_, descriptions))
        self.learned_["gain"] = np.array(gain)
        return TargetPrediction(prior, descriptions[0], gain)

    def _choose_distance(
        self, by_features: np.ndarray, embedded: np.ndarray, prediction: TargetPrediction | None
    ) -> dict[str, np.ndarray]:
        """Compare data sets by the embedding, or by meta-features where these predict better."""
        is_known = np.isfinite(embedded).all(axis=1)
        filled = np.where(is_known[:, None], embedded, embedded[is_known].mean(axis=0))
        squares = _squared_distances(filled, filled, np.ones(filled.shape[1]))
        unit = _median_distance(squares)
        comparison = self._compare_tasks()
        if prediction is not None:
            expected = comparison.predict_all(prediction, self.learned_["descriptions"])
            comparison = replace(comparison, expected=expected)
        found = [comparison.fit_hyperparameters(each) for each in (squares / unit, by_features)]
        uses_embedding = found[0][1] >= found[1][1]
        chosen = found[0] if uses_embedding else found[1]
        return chosen[0] | {
            "uses_embedding": np.array(uses_embedding),
            "embedding_unit": np.array(unit),
        }

    def _compare_tasks(self) -> TaskComparison:
        return TaskComparison(
            self.past_,
            self._processes,
            self.learned_["kept"],
            self.learned_["h"][:, :-2],
            self.kernel,
            self.max_tasks,
            self._prior_count,
        )

    @property
    def _prior_count(self) -> float:
        """Number of past tasks that the pretrained prediction counts for."""
        return PRIOR_COUNT if "gain" in self.learned_ else 0.0

    # -- similarity ----------------------------------------------------------------------------

    def _distances(self, target: EncodedTask, weighted: bool = True) -> np.ndarray:
        """Squared distance of each past task's data to the target's, in medians; (m,)."""
        learned = self.learned_
        if target.profile is None or not learned["known"].any():
            return np.zeros(len(self.past_))
        weights = learned["feature_weights"]
        weights = weights if weighted else np.ones_like(weights)
        description = describe_target(target) if weighted and self._uses_embedding else None
        if description is not None:
            assert target.prior is not None
            past, own = map(target.prior.embedding, (learned["descriptions"], description[None]))
            known = np.isfinite(past).all(axis=1)
            squares = _squared_distances(np.nan_to_num(past), own, np.ones(own.shape[1]))[:, 0]
            squares = squares / float(learned["embedding_unit"])
        else:
            known = learned["known"]
            own = self.encoder_.transform([target.profile])
            squares = _squared_distances(learned["features"], own, weights)[:, 0]
            squares = squares / learned["units"][int(weighted)]
        # Tasks whose data are not known are as far as the median of the others.
        return np.where(known, squares, np.median(squares[known]))

    @property
    def _uses_embedding(self) -> bool:
        return bool(self.learned_.get("uses_embedding", False))

    def _predict_target(self, target: EncodedTask) -> TargetPrediction | None:
        """The pretrained prediction of the target's scores; None if there is none."""
        description = describe_target(target) if self.pretrained else None
        if description is None or target.prior is None or not target.prior.has_scores:
            return None
        if not self._has_past:
            return TargetPrediction(target.prior, description, 1.0)
        past = self.learned_.get("descriptions")
        if past is None or past.shape[1] != len(description) or "gain" not in self.learned_:
            return None
        # If past scores are noise, they do not tell how good predictions are either.
        gain = 1.0 if self.learned_["noise"] else float(self.learned_["gain"])
        return TargetPrediction(target.prior, description, gain)

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
        bandwidth = self.learned_["hyperparameters"][0]
        return order, kernel_weights(squares[order], bandwidth, self._prior_count)

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
        basis, is_known = f"{n_known} meta-features", self.learned_["known"] & bool(n_known)
        if self._uses_embedding and describe_target(target) is not None:
            basis = "the pretrained embedding"
            is_known = np.isfinite(self.learned_["descriptions"]).all(axis=1)
        for number in self._nearest_tasks(target)[0]:
            texts[number] = basis if is_known[number] else "its trials only"
        return self._scatter_text(texts)

    # -- the target ----------------------------------------------------------------------------

    def hints(self, target: EncodedTask) -> SearchHints:
        """Without a pretrained prediction, first trials are past settings and a portfolio of them.

        With one, the model proposes from the first trial on.
        """
        hints = super().hints(target)
        if self._predict_target(target) is not None:
            return replace(hints, n_initial=0)
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

        None if there is no prior and the trials are too few for a GP, so that the space is to be
        filled.
        """
        prediction = self._predict_target(target)
        uses_past = self._has_past and not self._reason_ignored(target)
        is_ignored = self._has_past and not uses_past and prediction is None
        if is_ignored and (len(target.z) < self.n_initial or target.is_flat):
            return None
        plain = self.fallback_.posterior(target)
        assert isinstance(plain, GaussianProcess)
        if not uses_past and prediction is None:
            return plain
        prior, level = self._make_prior(target, prediction, uses_past)
        # Before the first success, failures have no score to be worse than.
        used = slice(None if np.isfinite(target.z).any() else 0)
        y = impute_failures(target.z, usual=float(np.exp(level.log_scale)))[used]
        conditioned = ConditionedPosterior(prior, theta := target.theta[used], y, level)
        if prediction is not None and not uses_past and not len(y):
            conditioned.has_unit = prediction.has_unit
        if not len(y) or not self.guard:
            return conditioned
        # Even prior odds: the past tasks chose the first trials already.
        return average_by_evidence(conditioned, plain, theta, y, level, prior_log_odds=0.0)

    def _make_prior(
        self, target: EncodedTask, prediction: TargetPrediction | None, uses_past: bool
    ) -> tuple[Prior, Level]:
        """The prior of the target's scores, and the prior of their level."""
        if not uses_past:
            assert prediction is not None
            prior = PretrainedPrior(prediction, target.categorical, self.kernel)
            return prior, prediction.level(target.z)
        numbers, weights = self._nearest_tasks(target)
        shares = np.zeros(len(self.past_))
        shares[numbers] = weights * len(weights)
        level = self.past_.level(shares, shares > 0, target.z)
        residual, noise = map(float, self.learned_["hyperparameters"][1:])
        means = self._means(numbers, prediction)
        return PastPrior(means, weights, residual, noise, prediction), level

    def _means(self, numbers: np.ndarray, prediction: TargetPrediction | None = None) -> PastMeans:
        """What these past tasks add. It is cached: a target's similar tasks do not change."""
        cached = self._means_cache
        if cached is None or not np.array_equal(cached[0], numbers) or cached[1] != prediction:
            rows = np.isin(self.past_.owner, numbers) & self.learned_["kept"]
            lengths = np.exp(self.learned_["h"][numbers, :-2].mean(axis=0))
            processes = self._processes.take(numbers)

            def evaluate(theta: np.ndarray) -> np.ndarray:
                means = processes.mean(theta)
                if prediction is None:
                    return means
                return means - prediction.of_past(theta, self.learned_["descriptions"][numbers])

            trials = join_trials(self.past_, rows)
            made = PastMeans(trials, lengths, self.kernel, evaluate)
            self._means_cache = cached = numbers, prediction, made
        return cached[2]


def _squared_distances(A: np.ndarray, B: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared distances of rows with weighted columns; (n, p), (k, p), (p,) -> (n, k)."""
    A, B = A * weights, B * weights
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * A @ B.T
    return np.where(squares > 1e-12, squares, 0)  # equal rows differ by rounding errors


def _median_distance(squares: np.ndarray) -> float:
    """The median over pairs of different tasks, (m, m); 1 if there are none or the median is 0."""
    distances = squares[~np.eye(len(squares), dtype=bool)]
    return (float(np.median(distances)) or 1.0) if len(distances) else 1.0
