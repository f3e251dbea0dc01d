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

A past task whose data are a part of the target's counts as several tasks at distance 0
(`similar_tasks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from sklearn.base import clone

from sktransfer.encoders import ManualEncoder
from sktransfer.surrogates._core.conditioning import ConditionedPosterior, Prior
from sktransfer.surrogates._core.feature_weights import (
    fit_feature_weights,
    median_distance,
    squared_distances,
)
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.model_averaging import AveragedPosterior, average_by_evidence
from sktransfer.surrogates._core.past_prior import (
    PastMeans,
    PastPrior,
    PretrainedPrior,
    join_trials,
)
from sktransfer.surrogates._core.past_trials import Level, PastTrials
from sktransfer.surrogates._core.search_start import PastSettings, filled_until, is_surprise
from sktransfer.surrogates._core.similar_tasks import SimilarTasks
from sktransfer.surrogates._core.task_comparison import TaskComparison
from sktransfer.surrogates._core.task_gaussian_processes import (
    TaskGPs,
    average_lengths,
    fit_tasks,
    pad_tasks,
)
from sktransfer.surrogates._core.task_processes import TaskProcesses, hide_unknown
from sktransfer.surrogates._core.transported_past import (
    TargetPrediction,
    describe_past,
    describe_target,
    fill_unknown,
    fit_gain,
    offset_target,
    predict_past,
    subtract_predictions,
    usual_description,
)
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.utils._scores import impute_failures
from sktransfer.utils._threads import single_threaded

MIN_TRIALS_FOR_MODEL = 3  # from which on the model proposes, if the scores differ
N_REFERENCE_SETTINGS = 300  # past settings at which tasks are compared
PRIOR_COUNT = 10.0  # past tasks that a pretrained prediction counts for
START_COUNT = 3.0  # trials that it proposes before the search may fill the space
PLAIN_COUNT = 3.0  # past tasks that the plain GP counts for, when both are averaged


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
        """Number of past tasks with the most similar data that `extend` is to add."""
        return self.max_tasks

    def _make_encoder(self) -> ManualEncoder:
        return ManualEncoder()

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._means_cache: tuple[tuple, PastMeans] | None = None
        self._residual_cache: TaskGPs | None = None

    # -- training ------------------------------------------------------------------------------

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        super()._train(tasks, warm_from)
        prior, descriptions = tasks[0].prior, describe_past(tasks) if self.pretrained else None
        if descriptions is not None and prior is not None:
            filled = fill_unknown(descriptions, usual_description(descriptions, prior))
            offsets = prior.offsets(filled)
            self.learned_ |= {"descriptions": descriptions, "offsets": offsets}
        profiles = [task.profile for task in tasks]
        self.encoder_ = self._make_encoder().fit(profiles)
        features = self.encoder_.transform(profiles)
        known = np.array([profile is not None for profile in profiles])
        rows = np.unique(np.linspace(0, len(self.past_.z) - 1, N_REFERENCE_SETTINGS).astype(int))
        functions = self._processes.mean(self._comparable_past.theta[rows])
        weights = fit_feature_weights(features[known], functions[known])
        plain = squared_distances(features, features, np.ones_like(weights))
        weighted = squared_distances(features, features, weights)
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
        if prior.has_scores:
            predicted = predict_past(prior, self.past_, filled)
            known = np.isfinite(descriptions).all(axis=1)
            pairs = zip(predicted, known, strict=True)
            gain = fit_gain(self.past_, [h if is_known else None for h, is_known in pairs])
            self.learned_ |= self._fit_residuals(predicted, gain, tasks) | {"gain": np.array(gain)}
        embedded = prior.embedding(descriptions)
        self.learned_ |= self._compare_tasks().choose_distance(embedded, weighted / units[1])

    def extend(self, tasks: Sequence[EncodedTask]) -> Self:
        """Add past tasks. What tasks have in common stays as `fit` learned it."""
        if not (used := self._append_ids(tasks)):
            return self
        added = clone(self)
        added.learned_ = {}
        added._set_up(PastTrials.from_tasks(used, self._score_transform, self.winsorize))
        with single_threaded:
            if not self._has_past:  # what was fitted had no successful trial
                added._train(used, None)
                self.encoder_, self.learned_ = added.encoder_, added.learned_
                self._set_up(added.past_)
                return self
            TaskProcesses._train(added, used, None)
            new = added.learned_ | self._describe_added(added, used)
        self.learned_ |= {n: np.concatenate([self.learned_[n], new[n]]) for n in new}
        self._set_up(self.past_.join(added.past_))
        return self

    def _describe_added(
        self, added: TaskPrior, tasks: Sequence[EncodedTask]
    ) -> dict[str, np.ndarray]:
        """The entries of ``learned_`` about the data and the predictions of added tasks."""
        profiles = [task.profile for task in tasks]
        found = {
            "features": self.encoder_.transform(profiles),
            "known": np.array([profile is not None for profile in profiles]),
        }
        past, prior = self.learned_.get("descriptions"), tasks[0].prior
        if past is None or prior is None:
            return found
        descriptions = describe_past(tasks)
        if descriptions is None:
            descriptions = np.full((len(tasks), past.shape[1]), np.nan)
        filled = fill_unknown(descriptions, usual_description(past, prior))
        found |= {"descriptions": descriptions, "offsets": prior.offsets(filled)}
        if "gain" in self.learned_:
            predicted = predict_past(prior, added.past_, filled)
            found |= added._fit_residuals(predicted, float(self.learned_["gain"]), tasks)
        return found

    def _fit_residuals(
        self, predicted: Sequence[np.ndarray | None], gain: float, tasks: Sequence[EncodedTask]
    ) -> dict[str, np.ndarray]:
        """Fit a process to what each past task adds to the predictions from its data."""
        residuals = subtract_predictions(self.past_, predicted, gain)
        trials = pad_tasks(replace(self.past_, z=residuals), self.learned_["kept"])
        h = hide_unknown(fit_tasks(*trials, self.past_.categorical, self.kernel), tasks)
        return {"residuals": residuals, "residual_h": h}

    def _compare_tasks(self) -> TaskComparison:
        past, processes, h = self._past_processes("residuals" in self.learned_)
        kept, count = self.learned_["kept"], self._prior_count
        return TaskComparison(past, processes, kept, h[:, :-2], self.kernel, self.max_tasks, count)

    def _past_processes(self, is_residual: bool) -> tuple[PastTrials, TaskGPs, np.ndarray]:
        """Past trials, a process for each task, and hyperparameters; of scores or of residuals."""
        if not is_residual:
            return self._comparable_past, self._processes, self.learned_["h"]
        past = replace(self._comparable_past, z=self.learned_["residuals"])
        h = self.learned_["residual_h"]
        if self._residual_cache is None:
            self._residual_cache = self._make_processes(past, h)
        return past, self._residual_cache, h

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

    @property
    def _similar(self) -> SimilarTasks:
        """How past tasks are selected and weighed."""
        ids, sizes, count = self.past_.ids, self._processes.sizes, self._prior_count
        return SimilarTasks(ids, sizes, self.learned_, self.encoder_, self.max_tasks, count)

    def _uses_past(self, target: EncodedTask) -> bool:
        return self._has_past and not self._similar.reason_ignored(target)

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
        # Past tasks that are not used do not tell how good predictions are either.
        gain = float(self.learned_["gain"]) if self._uses_past(target) else 1.0
        return TargetPrediction(target.prior, description, gain)

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """Weight of each past task relative to the largest, times the weight of the prior."""
        similarity = np.zeros(len(self.past_))
        if self._uses_past(target):
            numbers, weights, _ = self._similar.nearest(target)
            posterior = self.posterior(target)
            share = posterior.weight if isinstance(posterior, AveragedPosterior) else 1.0
            similarity[numbers] = share * weights / weights.max()
        return self._scatter(similarity)

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each past task was compared by, or why it was excluded."""
        return self._scatter_text(self._similar.basis(target) if self._has_past else [])

    # -- the target ----------------------------------------------------------------------------

    def hints(self, target: EncodedTask) -> SearchHints:
        """Without a pretrained prediction, first trials are past settings and a portfolio of them.

        With one, the model proposes from the first trial on. Past tasks and prediction choose as
        many trials of the start as they count for.
        """
        hints, n = super().hints(target), len(target.z)
        is_pretrained = self._predict_target(target) is not None
        uses_past = self._uses_past(target)
        if not uses_past and not is_pretrained:
            return hints
        count = self._similar.count(target) if uses_past else 0.0
        if self._fills_space(target, count, is_pretrained):
            return replace(hints, n_initial=n + 1)
        hints = replace(hints, n_initial=0)
        if not uses_past:
            return hints
        is_contained = self._similar.is_contained(target)
        if is_pretrained and (n or not is_contained.any()):
            return hints
        numbers = self._similar.nearest(target).numbers
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
        if n >= count + START_COUNT * is_pretrained:
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
        uses_past = self._uses_past(target)
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
        # A plain GP is no alternative before it would be used without a past.
        if not self.guard or len(y) < self.n_initial:
            return conditioned
        # At most even prior odds: the past tasks chose the first trials already.
        count = PRIOR_COUNT if prediction is not None else self._similar.count(target)
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
        numbers, weights, rest = self._similar.nearest(target)
        shares = np.zeros(len(self.past_))
        shares[numbers] = weights * len(weights)
        level = self.past_.level(shares, shares > 0, target.z[:0])
        if prediction is not None and prediction.has_unit:
            # The levels of a few past tasks may agree by chance.
            level = level.mixed(prediction.level(target.z[:0]), float(weights.sum()))
        level = level.recentered(target.z)
        residual, noise = map(float, self.learned_["hyperparameters"][1:])
        means = self._means(numbers, prediction is not None, self._offset(target))
        return PastPrior(means, weights, residual, noise, prediction, rest), level

    def _means(self, numbers: np.ndarray, is_predicted: bool, offset: np.ndarray) -> PastMeans:
        """What these past tasks add. It is cached: a target's similar tasks do not change."""
        key = (numbers.tobytes(), is_predicted, offset.tobytes())
        if self._means_cache is None or self._means_cache[0] != key:
            past, processes, h = self._past_processes(is_predicted)
            rows = np.isin(past.owner, numbers) & self.learned_["kept"]
            lengths, unknown = average_lengths(h[numbers, :-2])
            chosen, trials = processes.take(numbers), join_trials(past, rows)
            trials = replace(trials, theta=trials.theta - offset)
            made = PastMeans(
                trials, lengths, unknown, self.kernel, lambda theta: chosen.mean(theta + offset)
            )
            self._means_cache = key, made
        return self._means_cache[1]
