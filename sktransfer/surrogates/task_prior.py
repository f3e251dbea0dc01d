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
that, together with those tried, does best over the past tasks (`portfolio`). There are at most as
many of these as past tasks, then the start fills the space (`search_start`).

A past task whose data are a part of the target's counts as CONTAINED_COUNT tasks at distance 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from sktransfer.encoders import ManualEncoder
from sktransfer.surrogates._core.conditioning import ConditionedPosterior, Prior
from sktransfer.surrogates._core.extended_past import extend_past
from sktransfer.surrogates._core.feature_weights import (
    fit_feature_weights,
    median_distance,
    squared_distances,
)
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.leave_one_out import kernel_weights
from sktransfer.surrogates._core.model_averaging import AveragedPosterior, average_by_evidence
from sktransfer.surrogates._core.past_prior import (
    PastMeans,
    PastPrior,
    PretrainedPrior,
    join_trials,
)
from sktransfer.surrogates._core.past_trials import Level, PastTrials
from sktransfer.surrogates._core.search_start import PastSettings, filled_until, is_surprise
from sktransfer.surrogates._core.task_comparison import TaskComparison
from sktransfer.surrogates._core.task_gaussian_processes import average_lengths
from sktransfer.surrogates._core.task_processes import TaskProcesses
from sktransfer.surrogates._core.transported_past import (
    TargetPrediction,
    describe_past,
    describe_target,
    fit_prediction,
    offset_past,
    offset_target,
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
PRIOR_COUNT = 3.0  # past tasks that a pretrained prediction counts for
PLAIN_COUNT = 3.0  # past tasks that the plain GP counts for, when both are averaged
CONTAINED_COUNT = 20.0  # past tasks that one counts for whose data are a part of the target's


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

    @property
    def n_similar_tasks(self) -> int:  # type: ignore[override]
        return self.max_tasks

    def _make_encoder(self) -> ManualEncoder:
        return ManualEncoder()

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._means_cache: tuple[tuple, TargetPrediction | None, PastMeans] | None = None

    # -- training ------------------------------------------------------------------------------

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        super()._train(tasks, warm_from)
        prior, descriptions = tasks[0].prior, describe_past(tasks) if self.pretrained else None
        if descriptions is not None and prior is not None:
            self.learned_ |= {"descriptions": descriptions}
            self.learned_["offsets"] = offset_past(prior, descriptions)
        profiles = [task.profile for task in tasks]
        self.encoder_ = self._make_encoder().fit(profiles)
        features = self.encoder_.transform(profiles)
        known = np.array([profile is not None for profile in profiles])
        rows = np.unique(np.linspace(0, len(self.past_.z) - 1, N_REFERENCE_SETTINGS).astype(int))
        F = self._processes.mean(self._comparable_past.theta[rows])
        weights = fit_feature_weights(features[known], F[known])
        plain, weighted = (squared_distances(features, features, w) for w in (weights**0, weights))
        units = [median_distance(plain), median_distance(weighted)]
        self.learned_ |= self._encoder_state() | {
            "features": features,
            "feature_weights": weights,
            "units": np.array(units),
            "known": known,
        }
        if descriptions is None or prior is None:
            self.learned_ |= self._compare_tasks().fit_hyperparameters(weighted / units[1])[0]
            return
        distances = prior.embedding(descriptions), weighted / units[1]
        given = self._fit_gain(prior, descriptions), descriptions
        self.learned_ |= self._compare_tasks().choose_distance(*distances, *given)

    def extend(self, tasks: Sequence[EncodedTask]) -> Self:
        """Add past tasks. What tasks have in common stays as `fit` learned it."""
        return extend_past(self, tasks)

    def _fit_gain(self, prior: ScorePrior, descriptions: np.ndarray) -> TargetPrediction | None:
        """Find how much past scores follow their predictions; None without predictions."""
        if not prior.has_scores:
            return None
        prediction = fit_prediction(prior, self.past_, descriptions)
        self.learned_["gain"] = np.array(prediction.gain)
        return prediction

    def _compare_tasks(self) -> TaskComparison:
        return TaskComparison(
            self._comparable_past,
            self._processes,
            self.learned_["kept"],
            self.learned_["h"][:, :-2],
            self.kernel,
            self.max_tasks,
            self._prior_count,
        )

    @property
    def _comparable_past(self) -> PastTrials:
        offsets = self.learned_.get("offsets", np.zeros((len(self.past_), 1)))
        return replace(self.past_, theta=self.past_.theta + offsets[self.past_.owner])

    def _offset(self, target: EncodedTask) -> np.ndarray:
        return offset_target(target, self.learned_.get("offsets"))

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
            squares = squared_distances(np.nan_to_num(past), own, np.ones(own.shape[1]))[:, 0]
            squares = squares / float(learned["embedding_unit"])
        else:
            known = learned["known"]
            own = self.encoder_.transform([target.profile])
            squares = squared_distances(learned["features"], own, weights)[:, 0]
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
        order, squares, copies = self._rank_tasks(target)
        bandwidth = self.learned_["hyperparameters"][0]
        return order, kernel_weights(squares, bandwidth, self._prior_count, copies)

    def _count_tasks(self, target: EncodedTask) -> float:
        """Number of past tasks that are used, each as often as it counts."""
        return float(self._rank_tasks(target)[2].sum())

    def _rank_tasks(self, target: EncodedTask) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of the tasks to use, their squared distances, how often each counts."""
        contained = self._is_contained(target)
        squares = np.where(contained, 0.0, self._distances(target))
        ranking = np.lexsort((-self._processes.sizes, squares, ~contained))
        order = np.sort(ranking[: self.max_tasks])
        return order, squares[order], np.where(contained[order], CONTAINED_COUNT, 1.0)

    def _is_contained(self, target: EncodedTask) -> np.ndarray:
        """Whether the data of each past task are a part of the target's; (m,)."""
        return np.isin(self.past_.ids, list(target.contained))

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

        With one, the model proposes from the first trial on. Past tasks and prediction choose as
        many trials of the start as they count for.
        """
        hints, n = super().hints(target), len(target.z)
        is_pretrained = self._predict_target(target) is not None
        uses_past = self._has_past and not self._reason_ignored(target)
        if not uses_past and not is_pretrained:
            return hints
        count = self._count_tasks(target) if uses_past else 0.0
        if self._fills_space(target, count, is_pretrained):
            return replace(hints, n_initial=n + 1)
        hints, is_contained = replace(hints, n_initial=0), self._is_contained(target)
        if not uses_past or (is_pretrained and (n or not is_contained.any())):
            return hints
        numbers = self._nearest_tasks(target)[0]
        past, offset = self._comparable_past, self._offset(target)
        settings = PastSettings(past, self._processes, numbers, self._unknown_columns)
        if not n:
            first = numbers[is_contained[numbers]] if is_contained.any() else numbers
            return replace(hints, restrict_to=settings.take(settings.best_rows(first), n) - offset)
        if not target.is_on_plateau and n >= MIN_TRIALS_FOR_MODEL:
            return hints
        rows = settings.select_complement(replace(target, theta=target.theta + offset))
        sources = tuple(map(str, past.ids[past.owner[rows]]))
        return replace(hints, first_settings=settings.take(rows, n) - offset, sources=sources)

    def _fills_space(self, target: EncodedTask, count: float, is_pretrained: bool) -> bool:
        """Whether the next trial fills the space, given the number of past tasks that are used."""
        n = len(target.z)
        if n >= count + PRIOR_COUNT * is_pretrained:
            scale = float(np.median(self.past_.scales)) if count and not is_pretrained else 0.0
            return target.is_flat or n < filled_until(target, scale, self.n_initial + 1)
        # The level of a few past tasks says little about that of a prediction from the data.
        if not 0 < n <= self.n_initial or (is_pretrained and count):
            return False
        before = self.posterior(target.without_trials())
        return before is not None and is_surprise(before, target, max(count, 1.0))

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
        errors = None if target.std_error is None else target.std_error[used]
        conditioned = ConditionedPosterior(prior, theta := target.theta[used], y, level, errors)
        if prediction is not None and not uses_past and not len(y):
            conditioned.has_unit = prediction.has_unit
        if not len(y) or not self.guard:
            return conditioned
        # At most even prior odds: the past tasks chose the first trials already.
        count = PRIOR_COUNT if prediction is not None else self._count_tasks(target)
        odds = min(0.0, float(np.log(count / PLAIN_COUNT)))
        return average_by_evidence(
            conditioned, plain, theta, y, level, prior_log_odds=odds, std_error=errors
        )

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
        means = self._means(numbers, prediction, self._offset(target))
        return PastPrior(means, weights, residual, noise, prediction), level

    def _means(
        self, numbers: np.ndarray, prediction: TargetPrediction | None, offset: np.ndarray
    ) -> PastMeans:
        """What these past tasks add. It is cached: a target's similar tasks do not change."""
        key, cached = (numbers.tobytes(), offset.tobytes()), self._means_cache
        if cached is None or cached[0] != key or cached[1] != prediction:
            rows = np.isin(self.past_.owner, numbers) & self.learned_["kept"]
            lengths, unknown = average_lengths(self.learned_["h"][numbers, :-2])
            processes = self._processes.take(numbers)

            def evaluate(theta: np.ndarray) -> np.ndarray:
                theta = theta + offset
                means = processes.mean(theta)
                if prediction is None:
                    return means
                return means - prediction.of_past(theta, self.learned_["descriptions"][numbers])

            trials = join_trials(self._comparable_past, rows)
            trials = replace(trials, theta=trials.theta - offset)
            made = PastMeans(trials, lengths, unknown, self.kernel, evaluate)
            self._means_cache = cached = key, prediction, made
        return cached[2]
