"""`TransferOptimizer`: ask for configurations, tell their scores.

A proposal is made in this order: the settings that the surrogate wants tried first (the best of
past tasks), space-filling trials until the surrogate has observed enough, then the maximum of log
expected improvement under its posterior (of the lower confidence bound, while there is nothing to
improve on). Trials that were asked for and not observed yet are assumed to score as predicted, so
that a batch spreads out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from sktransfer.dataset import DatasetProfile, MatrixLike, TargetLike
from sktransfer.optimizer._acquisition import AcquisitionModel
from sktransfer.optimizer._arguments import (
    RandomState,
    as_profile,
    as_seed,
    check_count,
    check_direction,
    check_score,
    check_tasks,
)
from sktransfer.optimizer._exploration import explore, first_new
from sktransfer.optimizer._maximize import redraw
from sktransfer.optimizer._past_tasks import (
    PastScale,
    choose_past_setting,
    encode_on_scale,
    first_new_setting,
)
from sktransfer.optimizer._pool import Params, Pool
from sktransfer.optimizer._proposal import Proposal, Suggestion
from sktransfer.optimizer._score_prior import find_embedding, find_score_prior
from sktransfer.optimizer._suggestions import (
    find_sources,
    profile_like,
    suggest_defaults,
    suggest_from_past,
)
from sktransfer.optimizer._trials import (
    Pending,
    add_predicted_trials,
    encode_observed,
    encode_target,
    equivalent_keys,
    find_best,
    still_pending,
)
from sktransfer.space import Space, SpaceLike
from sktransfer.surrogates import (
    EncodedTask,
    ScorePrior,
    SearchHints,
    Surrogate,
    make_surrogate,
)
from sktransfer.task import Task, Trial
from sktransfer.utils._threads import numeric_context
from sktransfer.utils._values import params_identity, to_python

MAX_ENUMERATED = 3000  # a finite space up to this size is ranked as a whole at each trial
N_NEAR = 5  # best trials that the acquisition is searched around


class TransferOptimizer:
    """Propose configurations one by one or in batches, given past tasks and a surrogate.

    Parameters
    ----------
    space : dict, list of dict or Space
        What to search; see `Space.parse`.
    tasks : sequence of Task
        Past tasks to learn from: ``list(Archive())``, results of `to_task` of other optimizers, or
        of `Task.from_trials`. Their parameters have the names of the space.
    profile : DatasetProfile, dict or None
        What is known of the target's data: ``sktransfer.profile(X, y)``. Without it, and without
        profiles of the past tasks, tasks are compared by their trials only.
    surrogate : str or Surrogate
        A name, such as ``"auto"``, ``"dist-gp"`` or ``"gp"`` (see docs/surrogates.md), or an
        instance.
    metric : str or sequence of str
        The name of the score, or all names it may have in archives. Past tasks that recorded this
        metric are ranked by it.
    direction : {"maximize", "minimize"}
        Whether scores are to be maximized or minimized. Records hold scores that are to be
        maximized, so that `to_task` changes the sign and the name: ``loss`` becomes ``neg_loss``.
    random_state : int, numpy RandomState or None
        The same seed and the same scores give the same proposals.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> optimizer = TransferOptimizer({"C": loguniform(1e-3, 1e3)}, random_state=0)
    >>> for _ in range(8):
    ...     [params] = optimizer.ask()
    ...     optimizer.tell(params, score=-abs(params["C"] - 1))
    >>> optimizer.best_score > -0.9, list(optimizer.best_params)
    (True, ['C'])

    The trials become a past task of the next optimizer:

    >>> past = optimizer.to_task()
    >>> TransferOptimizer({"C": loguniform(1e-3, 1e3)}, tasks=[past])
    TransferOptimizer(Space(C: 0.001 to 1000 (log)), 1 past task, 0 trials)
    """

    def __init__(
        self,
        space: SpaceLike,
        tasks: Sequence[Task] = (),
        *,
        profile: DatasetProfile | Mapping[str, Any] | None = None,
        surrogate: str | Surrogate = "auto",
        metric: str | Sequence[str] = "score",
        direction: str = "maximize",
        random_state: RandomState = None,
    ):
        self.space = Space.parse(space)
        self.profile = as_profile(profile)
        self.surrogate = make_surrogate(surrogate)
        self.is_fitted = False  # whether the surrogate is fitted to the past tasks
        self.past_scale: PastScale | None = None  # of the scores that it was fitted to
        self.model_folders: tuple[Path, ...] = ()  # of pretrained models that replace the shipped
        self.avoids_pending = False  # whether all pending trials are sure to be observed
        self.contained: frozenset[str] = frozenset()  # ids of tasks whose rows the target has, too
        self.tasks = check_tasks(tasks, self.space)
        self.direction, self._sign = direction, check_direction(direction)
        names = (metric,) if isinstance(metric, str) else tuple(metric)
        self.metric = names if self._sign > 0 else tuple(f"neg_{name}" for name in names)
        self._seed = as_seed(random_state)
        self._forget_trials()

    def _forget_trials(self) -> None:
        self._n_asked = self._n_filled = 0  # the latter counts space-filling configurations
        self._is_repeating = False  # whether a finite space was proposed as a whole
        self._seen: set[frozenset] = set()
        self._pending: Pending = {}
        self._trials: list[Trial] = []
        self._told: list[dict[str, Any]] = []  # their configurations, as the user passed them
        self._codes: list[np.ndarray] = []
        self._pool: Pool | None = None

    def __repr__(self) -> str:
        counts = {"past task": len(self.tasks), "trial": len(self._trials)}
        parts = [f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items()]
        best = [] if self.best_score is None else [f"best {self.best_score:.6g}"]
        return f"TransferOptimizer({', '.join([repr(self.space), *parts, *best])})"

    @numeric_context()
    def fit_surrogate(self, warm_from: Surrogate | None = None) -> None:
        """Fit the surrogate to the past tasks. `ask` does it, too, if it has not been done.

        Parameters
        ----------
        warm_from : Surrogate or None
            A fitted surrogate to start training from.
        """
        tasks, self.past_scale = encode_on_scale(self.space, self.tasks, self.metric, self.prior)
        self.surrogate.fit(tasks, warm_from=warm_from)
        self.is_fitted = True

    @numeric_context()
    def extend_surrogate(self, tasks: Sequence[Task]) -> None:
        """Add past tasks to those that the surrogate was fitted to."""
        encoded, _ = encode_on_scale(self.space, tasks, self.metric, self.prior, self.past_scale)
        self.surrogate.extend(encoded)
        self.tasks = (*self.tasks, *tasks)

    @cached_property
    def prior(self) -> ScorePrior | None:
        """Pretrained predictions for this space; None if there are none or they are not used."""
        if not self.surrogate.uses_prior:
            return None
        return find_score_prior(self.space, self.profile, self.metric, self.model_folders)

    @property
    def embedding(self) -> np.ndarray | None:
        """The pretrained embedding of the target's data, (q,), if the surrogate uses it.

        None if too little is known of the data, or they are unlike all data of the training.
        """
        return find_embedding(self.prior, self.profile)

    @property
    def is_pretrained(self) -> bool:
        """Whether a pretrained model predicts scores of this estimator on the target's data."""
        return self.prior is not None and self.prior.has_scores and self.embedding is not None

    # -- ask -----------------------------------------------------------------------------------

    def ask(self, n: int = 1, pool: Sequence[Params] | Pool | None = None) -> list[dict[str, Any]]:
        """Propose `n` configurations that were neither proposed nor observed before.

        Parameters
        ----------
        n : int
        pool : sequence of dict, Pool or None
            If given, only its members are proposed, each once. When it runs out, there are fewer
            than `n`.

        Returns
        -------
        list of dict
            Configurations are repeated once a finite space has been proposed as a whole.
        """
        return [proposal.params for proposal in self.propose(n, pool)]

    @numeric_context()
    def propose(self, n: int = 1, pool: Sequence[Params] | Pool | None = None) -> list[Proposal]:
        """As `ask`, with the origin of each configuration and its predicted score."""
        n = check_count(n)
        if not self.is_fitted:
            self.fit_surrogate()
        members = self._members(pool)
        proposals: list[Proposal] = []
        while len(proposals) < n:
            if members is not None and not members.untried(self._seen):
                if pool is not None:
                    break
                members, self._is_repeating = None, True
                self._seen.clear()
            proposals.append(self._propose_one(members, batch=proposals))
        return proposals

    @numeric_context()
    def suggest(
        self,
        X: MatrixLike = None,
        y: TargetLike = None,
        n: int = 1,
        *,
        defaults: Params | None = None,
    ) -> list[Suggestion]:
        """Suggest configurations for new data from the past tasks, without evaluating anything.

        Parameters
        ----------
        X, y : array-like or None
            The new data. None stands for the data of this optimizer's own profile.
        n : int
            How many configurations, best first. A finite space gives at most all of its members.
        defaults : dict or None
            What to suggest first where no past task is similar.

        Returns
        -------
        list of Suggestion

        Examples
        --------
        >>> optimizer = TransferOptimizer({"C": [0.1, 1.0, 10.0]}, random_state=0)
        >>> [found] = optimizer.suggest([[1.0], [2.0]], defaults={"C": 1.0})
        >>> found.params, found.note
        ({'C': 1.0}, 'no similar past task: the defaults')
        """
        n = check_count(n)
        if not self.is_fitted:
            self.fit_surrogate()
        data = self.profile if X is None else profile_like(self.profile, X, y)
        n, restarted = min(n, self.space.size or n), self._restart(data, self.surrogate)
        sources = find_sources([task.id for task in self.tasks], restarted.similarity())
        names = {task.id: task.name for task in self.tasks}
        has_model = bool(sources) and self.surrogate.uses_past_tasks
        found = restarted.propose(n) if has_model or restarted.is_pretrained else []
        if any(proposal.is_from_past for proposal in found):
            restarted._sign = 1  # the best first are those with the highest scores
            predictions = restarted.predict([proposal.params for proposal in found])
            suggestions = suggest_from_past(found, predictions, sources)
            labels = tuple(names[id] for id, _ in suggestions[0].sources)
            return [
                replace(each, mean=self._sign * each.mean, names=labels) for each in suggestions
            ]
        # Without trials, a plain process fills the space.
        return suggest_defaults(defaults, self._restart(data, make_surrogate("gp")).ask(n), n)

    def _restart(self, profile: DatasetProfile | None, surrogate: Surrogate) -> TransferOptimizer:
        """This optimizer before its first trial, on other data, with a fitted surrogate."""
        restarted = copy(self)
        restarted._forget_trials()
        if profile is not self.profile:
            restarted.__dict__.pop("prior", None)
        restarted.contained = self.contained if profile is self.profile else frozenset()
        restarted.profile, restarted.surrogate = profile, surrogate
        return restarted

    @property
    def is_exhausted(self) -> bool:
        """Whether every configuration of a small finite space has been proposed or observed."""
        members = self._members(None)
        return self._is_repeating or (members is not None and not members.untried(self._seen))

    def _propose_one(self, members: Pool | None, batch: Sequence[Proposal]) -> Proposal:
        # A random stream of its own for each trial, so that a resumed search draws the same.
        rng = np.random.default_rng([self._seed, self._n_asked])
        target = self._target()
        hints = self.surrogate.hints(target)
        model = self._acquisition_model(target, hints, batch)
        params, origin = first_new_setting(self.space, members, target, hints, self._seen)
        if params is None and model is not None and model.best is None:
            settings, rank = hints.restrict_to, partial(model.rank, rng=rng)
            params, origin = choose_past_setting(
                self.space, self.surrogate, settings, rank, self._seen, members
            )
        if params is None and model is not None:
            params, origin = self._improve(members, target, hints, model, rng), "model"
        if params is None:
            params, origin = explore(
                self.space, members, hints, self._seen, self._n_filled, self._seed, rng
            )
            self._n_filled += 1
        key = params_identity(params)
        self._seen.add(key)
        self._pending[key] = params
        self._n_asked += 1
        return Proposal(params, origin, *self._predict(model, params))

    def _members(self, pool: Sequence[Params] | Pool | None) -> Pool | None:
        """The configurations that can be enumerated: the caller's pool, or a small finite space."""
        if isinstance(pool, Pool) or (
            pool is None and (self.space.size or math.inf) > MAX_ENUMERATED
        ):
            return pool
        if self._pool is None or not self._pool.is_made_of(pool):
            self._pool = Pool(self.space, self.space.grid() if pool is None else pool, source=pool)
        return self._pool

    def _improve(
        self,
        members: Pool | None,
        target: EncodedTask,
        hints: SearchHints,
        model: AcquisitionModel,
        rng: np.random.Generator,
    ) -> dict[str, Any] | None:
        """The new configuration with the best acquisition; None if none of the best is new."""
        # Only a maximum of expected improvement is redrawn, neither a first trial nor a suggestion.
        probability = 0.0 if model.best is None else hints.redraw
        if members is not None:
            untried = members.untried(self._seen)
            chosen = untried[int(model.rank(members.codes[untried], rng)[0])]
            if not probability:
                return members.params[chosen]
            moved = redraw(self.space, members.codes[[chosen]], probability, rng)[0]
            return members.nearest(moved, among=untried)
        order = np.argsort(-np.nan_to_num(target.z, nan=-np.inf), kind="stable")
        candidates = model.candidates(self.space, target.theta[order[:N_NEAR]], rng)
        if probability:
            candidates = redraw(self.space, candidates, probability, rng)
        return first_new(self.space.decode(candidates), self._seen)

    # -- tell ----------------------------------------------------------------------------------

    def tell(
        self,
        params: Mapping[str, Any],
        score: float,
        *,
        cost: float | None = None,
        metrics: Mapping[str, float] | None = None,
        std_error: float = 0.0,
    ) -> None:
        """Report the score of a configuration, whether it was asked for or not.

        Parameters
        ----------
        params : dict
        score : float
            To be maximized, or minimized if `direction` says so. NaN or infinite means that the
            configuration failed.
        cost : float or None
            Seconds it took.
        metrics : dict or None
            Other metrics, to be maximized, for surrogates with several objectives.
        std_error : float
            Standard error of the score beyond the noise that all scores have, such as that of a
            mean over fewer folds.
        """
        params = {name: to_python(value) for name, value in params.items()}
        seconds = math.nan if cost is None else float(cost)
        signed = score if check_score(score) is None else self._sign * score
        others = {"fit_time": seconds, "metrics": dict(metrics or {}), "std_error": std_error}
        trial = Trial.make(params, signed, **others)
        code = encode_observed(self.space, params)
        self._seen |= {params_identity(params), *equivalent_keys(self.space, code)}
        self._pending = still_pending(self.space, self._pending, observed=code)
        self._codes.append(code)
        self._told.append(params)
        self._trials.append(trial)

    @property
    def best_params(self) -> dict[str, Any] | None:
        """The observed configuration with the best score; None if there is no success yet."""
        number = find_best(self._trials)
        return None if number is None else dict(self._told[number])

    @property
    def best_score(self) -> float | None:
        """The best observed score; None if there is no success yet."""
        number = find_best(self._trials)
        return None if number is None else self._sign * self._trials[number].score

    def to_task(self, name: str = "") -> Task:
        """The record of the trials observed so far, for the next optimizer or an archive."""
        metrics = self.metric[:1]
        return Task.from_trials(self.space, self._trials, self.profile, metrics=metrics, name=name)

    # -- what the surrogate sees ---------------------------------------------------------------

    @numeric_context()
    def similarity(self) -> np.ndarray | None:
        """Similarity of each past task to the target, in [0, 1]; None if it is not defined.

        It includes what the trials of the target say about the past tasks.
        """
        return self.surrogate.similarity(self._target()) if self.is_fitted else None

    @numeric_context()
    def data_similarity(self) -> np.ndarray | None:
        """The same before the first trial: how similar the data are, whatever was observed."""
        return self._restart(self.profile, self.surrogate).similarity()

    @numeric_context()
    def similarity_basis(self) -> list[str] | None:
        """What each past task is compared by, in a few words; None if they are not compared."""
        return self.surrogate.similarity_basis(self._target()) if self.is_fitted else None

    @numeric_context()
    def predict(self, configurations: Sequence[Params]) -> list[tuple[float, float]]:
        """Predicted score of each configuration and its standard deviation, given the observed
        trials.

        NaN while there is no model.
        """
        target = self._target()
        model = self._observed_model(target, self.surrogate.hints(target))
        return [self._predict(model, params) for params in configurations]

    def _predict(self, model: AcquisitionModel | None, params: Params) -> tuple[float, float]:
        if model is None:
            return math.nan, math.nan
        mean, std = model.predict(self.space.encode([params]))
        return self._sign * mean, std

    def _target(self) -> EncodedTask:
        known = encode_target(self.space, self._trials, self._codes, self.profile, self.prior)
        return replace(known, contained=self.contained)

    def _observed_model(
        self, target: EncodedTask, hints: SearchHints, avoid: Sequence[np.ndarray] = ()
    ) -> AcquisitionModel | None:
        """The surrogate's posterior given the observed trials; None if it needs more of them."""
        if len(target.z) < hints.n_initial or (len(target.z) and not np.isfinite(target.z).any()):
            return None  # too few, or only failures: there is no scale to predict on
        if hints.n_initial and len(target.z) > 1 and target.is_flat:
            return None  # no difference yet, and no past task that tells where one might be
        posterior = self.surrogate.posterior(target)
        return None if posterior is None else AcquisitionModel(posterior, target, hints, avoid)

    def _acquisition_model(
        self, target: EncodedTask, hints: SearchHints, batch: Sequence[Proposal]
    ) -> AcquisitionModel | None:
        """The same, with pending trials taken as predicted, and apart from the batch so far."""
        model = self._observed_model(target, hints)
        if model is None or hints.thompson or not self._pending:  # draws are diverse already
            return model
        codes = self.space.encode(list(self._pending.values()))
        target = add_predicted_trials(target, codes, model.predict_scores(codes)[0])
        avoid = codes if self.avoids_pending else self.space.encode([each.params for each in batch])
        return self._observed_model(target, self.surrogate.hints(target), [*avoid])
