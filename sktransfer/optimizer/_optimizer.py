"""`TransferOptimizer`: ask for configurations, tell their scores. Knows no disk and no cross-validation.

A proposal is made in this order: what the surrogate wants tried first (the past's best settings), then
space-filling trials until the surrogate has seen enough, then the maximum of log expected improvement
under its posterior (of the lower confidence bound, while there is nothing to improve on). Trials that
were asked for and not yet told are taken to turn out as predicted, so that a batch spreads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sktransfer.dataset import DatasetProfile, profile
from sktransfer.optimizer._maximize import redraw
from sktransfer.optimizer._optimizer_parts import (
    Belief,
    Members,
    Pool,
    Proposal,
    Suggestion,
    as_seed,
    checked_count,
    metrics_of,
    predicted,
    same_in,
    scores_of,
    space_filling,
    told_code,
    under_way,
    with_trials,
)
from sktransfer.optimizer._past_tasks import encode_tasks
from sktransfer.space import Space
from sktransfer.surrogates import EncodedTask, Surrogate, make_surrogate
from sktransfer.task import Task, Trial
from sktransfer.utils._threads import numeric_context
from sktransfer.utils._values import params_identity, to_python

_SEARCHED_WHOLE = 3000  # a finite space up to this size is searched whole at each trial
SIMILAR = 0.05  # from this similarity on a past task has something to say about new data
MAX_SOURCES = 10  # that a suggestion names
_LISTED_AT_ALL = 10**6  # up to this size what is left of a finite space can be listed


class TransferOptimizer:
    """Propose configurations one by one or in batches, given past tasks and a surrogate.

    Parameters
    ----------
    space : dict, list of dict or Space
        What to search; see `Space.parse`.
    tasks : sequence of Task
        Past tunings to learn from.
    profile : DatasetProfile, dict or None
        What is known of today's data.
    surrogate : str or Surrogate
        A name, such as ``"auto"``, ``"dist-gp"`` or ``"gp"`` (see docs/surrogates.md), or an instance.
    metric : str or sequence of str
        What the score is called, or may be called in archives: past tasks are judged by it if they can be.
    random_state : int, numpy RandomState or None
        The same seed and the same scores give the same proposals.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> optimizer = TransferOptimizer({"C": loguniform(1e-3, 1e3)}, random_state=0)
    >>> for _ in range(8):
    ...     [params] = optimizer.ask()
    ...     optimizer.tell(params, score=-abs(params["C"] - 1))
    >>> optimizer.to_task().best.score > -0.9
    True
    """

    def __init__(
        self,
        space: Any,
        tasks: Sequence[Task] = (),
        *,
        profile: DatasetProfile | Mapping[str, Any] | None = None,
        surrogate: str | Surrogate = "auto",
        metric: str | Sequence[str] = "score",
        random_state: Any = None,
    ):
        self.space = Space.parse(space)
        self.profile = DatasetProfile.from_dict(profile) if isinstance(profile, Mapping) else profile
        self.surrogate = make_surrogate(surrogate)
        self.tasks = tuple(tasks)
        self.metric = (metric,) if isinstance(metric, str) else tuple(metric)
        self._seed, self._asked = as_seed(random_state), 0  # how many trials were asked for
        self.learned = self._repeats = False  # whether the past was looked at; whether all has been tried
        self._seen: set[frozenset] = set()
        self._pending: dict[frozenset, dict[str, Any]] = {}
        self._trials: list[Trial] = []
        self._codes: list[np.ndarray] = []
        self._pool: Pool | None = None

    @numeric_context()
    def learn(self, warm_from: Surrogate | None = None) -> None:
        """Fit the surrogate to the past tasks, going on from an earlier one if given. `ask` does it, too."""
        self.surrogate.fit(encode_tasks(self.space, self.tasks, self.metric), warm_from=warm_from)
        self.learned = True

    # -- ask -----------------------------------------------------------------------------------

    def ask(self, n: int = 1, pool: Members | None = None) -> list[dict[str, Any]]:
        """Propose `n` configurations that were not proposed or told before.

        Parameters
        ----------
        n : int
        pool : sequence of dict, Pool or None
            If given, only its members are proposed, each once: fewer than `n` when it runs out.

        Returns
        -------
        list of dict
            From a finite space that has been proposed whole, configurations are repeated.
        """
        return [proposal.params for proposal in self.propose(n, pool)]

    @numeric_context()
    def propose(self, n: int = 1, pool: Members | None = None) -> list[Proposal]:
        """As `ask`, with where each configuration came from and what is predicted of it."""
        n = checked_count(n)
        if not self.learned:
            self.learn()
        members = self._members(pool)
        proposals: list[Proposal] = []
        while len(proposals) < n:
            if members is not None and not members.fresh(self._seen):
                if pool is not None:
                    break
                members, self._repeats = None, True  # the finite space is used up
                self._seen.clear()
            proposals.append(self._propose_one(members, batch=proposals))
        return proposals

    @numeric_context()
    def suggest(
        self, X: Any = None, y: Any = None, n: int = 1, *, defaults: Mapping[str, Any] | None = None
    ) -> list[Suggestion]:
        """Suggest configurations for new data from the past tasks, without evaluating anything.

        Parameters
        ----------
        X, y : array-like or None
            The new data; None asks for the data of this optimizer's own profile.
        n : int
            How many configurations, best first; of a finite space at most all.
        defaults : dict or None
            What to suggest first where nothing in the past is similar.

        Returns
        -------
        list of Suggestion

        Examples
        --------
        >>> optimizer = TransferOptimizer({"C": [0.1, 1.0, 10.0]}, random_state=0)
        >>> [found] = optimizer.suggest([[1.0], [2.0]], defaults={"C": 1.0})
        >>> found.params, found.note
        ({'C': 1.0}, 'nothing similar: these are the defaults')
        """
        n = checked_count(n)
        if not self.learned:
            self.learn()
        n, data = min(n, self.space.size or n), self.profile if X is None else profile(X, y, keep="sample")
        fresh = TransferOptimizer(self.space, self.tasks, profile=data, random_state=self._seed)
        fresh.surrogate, fresh.learned = self.surrogate, True
        if (alike := fresh.similarity()) is None:
            alike = np.full(len(self.tasks), np.nan)
        order = [i for i in np.argsort(-alike, kind="stable") if not alike[i] < SIMILAR]
        belief = fresh._belief()  # before the first suggestion counts as a trial under way
        found = fresh.propose(n) if order and self.surrogate.transfers else []
        if not any(each.from_past for each in found):
            return fresh._suggest_defaults(n, defaults)
        sources = tuple((self.tasks[i].id, float(alike[i])) for i in order[:MAX_SOURCES])
        note = f"from {len(order)} similar past tasks" if len(order) > 1 else "from one similar past task"
        notes = [note if each.from_past else "space-filling" for each in found]
        foretold = [(each.params, *predicted(belief, self.space, each.params)) for each in found]
        suggestions = [Suggestion(*what, sources, why) for what, why in zip(foretold, notes, strict=True)]
        return suggestions if belief is None else sorted(suggestions, key=lambda each: -each.mean)

    def _suggest_defaults(self, n: int, defaults: Mapping[str, Any] | None) -> list[Suggestion]:
        self.surrogate = make_surrogate("gp")  # which fills the space while it knows nothing
        self._seen.clear()
        found = [dict(defaults)] if defaults else []
        # By value: what the space calls 1 may be a default of 1.0.
        found += [params for params in self.ask(n) if params not in found][: n - len(found)]
        notes = ["these are the defaults"] * bool(defaults) + ["space-filling"] * n
        named = zip(found, notes, strict=False)
        return [Suggestion(p, math.nan, math.nan, (), f"nothing similar: {note}") for p, note in named]

    @property
    def used_up(self) -> bool:
        """True if every configuration of a small finite space has been proposed or told."""
        members = self._members(None)
        return self._repeats or (members is not None and not members.fresh(self._seen))

    def _propose_one(self, members: Pool | None, batch: Sequence[Proposal]) -> Proposal:
        # A stream of its own for each trial: a search that is taken up again draws the same.
        rng = np.random.default_rng([self._seed, self._asked])
        belief = self._belief(batch)
        params, origin = self._warm(members)
        if params is None and belief is not None:
            params, origin = self._improve(members, belief, rng), "model"
        if params is None:
            params, origin = self._explore(members, rng)
        key = params_identity(params)
        self._seen.add(key)
        self._pending[key] = params
        self._asked += 1
        return Proposal(params, origin, *predicted(belief, self.space, params))

    def _members(self, pool: Members | None) -> Pool | None:
        """What can be enumerated: the caller's pool, or a small finite space."""
        if isinstance(pool, Pool) or (pool is None and (self.space.size or math.inf) > _SEARCHED_WHOLE):
            return pool
        if self._pool is None or not self._pool.is_made_of(pool):
            self._pool = Pool(self.space, self.space.grid() if pool is None else pool, source=pool)
        return self._pool

    def _warm(self, members: Pool | None) -> tuple[dict[str, Any] | None, str]:
        """The first of the surrogate's own wishes that is new."""
        codes, sources = self.surrogate.proposals(target := self._target())
        if members is not None:
            wishes = [members.nearer(code, target.theta) for code in codes]
        else:
            wishes = self.space.decode(self.space.snap(np.clip(codes, 0, 1)))
        for params, source in zip(wishes, sources, strict=True):
            if params is not None and params_identity(params) not in self._seen:
                return params, f"task {source}"
        return None, ""

    def _improve(
        self, members: Pool | None, belief: Belief, rng: np.random.Generator
    ) -> dict[str, Any] | None:
        """Maximize the acquisition among what is new; None if the search met nothing new."""
        # What is redrawn is the maximum of expected improvement: a first trial or a suggestion is not.
        probability = 0.0 if belief.best is None else self.surrogate.redraw_
        if members is not None:
            fresh = members.fresh(self._seen)
            chosen = fresh[int(belief.ranked(members.codes[fresh], rng)[0])]
            if not probability:
                return members.params[chosen]
            moved = redraw(self.space, members.codes[[chosen]], probability, rng)[0]
            return members.nearest(moved, among=fresh)
        target = self._target()
        choices = self.surrogate.first_choices(target) if belief.best is None else None
        if choices is not None and len(choices):
            choices = self.space.snap(np.clip(choices, 0, 1))
            if params := self._first_new(self.space.decode(choices[belief.ranked(choices, rng)])):
                return params
        near = target.theta[np.argsort(-np.nan_to_num(target.z, nan=-np.inf), kind="stable")[:5]]
        candidates = belief.candidates(self.space, near, rng)
        if probability:
            candidates = redraw(self.space, candidates, probability, rng)
        return self._first_new(self.space.decode(candidates))

    def _explore(self, members: Pool | None, rng: np.random.Generator) -> tuple[dict[str, Any], str]:
        """A configuration from where nothing is known."""
        region = self.surrogate.region(self._target())
        if members is None and self.surrogate.n_initial:
            codes = space_filling(self.space, self._asked, self._seed, region, rng)
            if params := self._first_new(self.space.decode(codes)):
                return params, "space-filling"
        if members is None:
            for n in (64, 4096):  # a discrete distribution without end may have few probable values
                if params := self._first_new(draws := self.space.sample(n, rng)):
                    return params, "random"
            if (self.space.size or math.inf) > _LISTED_AT_ALL:
                return draws[0], "random"
            members = Pool(self.space, self.space.grid(), source=None)
        left = members.fresh(self._seen) or range(len(members.params))
        if region is not None:
            left = np.asarray(left)[region.contains(members.codes[left])].tolist() or left
        return members.params[rng.choice(left)], "random"

    def _first_new(self, candidates: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        return next((params for params in candidates if params_identity(params) not in self._seen), None)

    # -- tell ----------------------------------------------------------------------------------

    def tell(
        self,
        params: Mapping[str, Any],
        score: float,
        *,
        cost: float | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> None:
        """Report the score of a configuration, whether it was asked for or not.

        Parameters
        ----------
        params : dict
        score : float
            To be maximized; NaN or infinite means that the configuration failed.
        cost : float or None
            Seconds it took.
        metrics : dict or None
            What else was measured, to be maximized; for surrogates with several objectives.
        """
        params = {name: to_python(value) for name, value in params.items()}
        seconds = math.nan if cost is None else float(cost)
        trial = Trial.make(params, score, fit_time=seconds, metrics=dict(metrics or {}))
        code = told_code(self.space, params)
        self._seen |= {params_identity(params), *same_in(self.space, code)}
        self._pending = under_way(self.space, self._pending, told=code)
        self._codes.append(code)
        self._trials.append(trial)

    def to_task(self) -> Task:
        """The record of what has been told so far."""
        return Task.from_trials(self.space, self._trials, self.profile, metrics=self.metric[:1])

    # -- what the surrogate sees ---------------------------------------------------------------

    @numeric_context()
    def similarity(self) -> np.ndarray | None:
        """How alike each past task is to today's, in [0, 1]; None if the surrogate has no such notion."""
        return self.surrogate.similarity(self._target()) if self.learned else None

    @numeric_context()
    def basis(self) -> list[str] | None:
        """What each past task was compared by, in a few words; None if they are not compared."""
        return self.surrogate.basis(self._target()) if self.learned else None

    def _target(self) -> EncodedTask:
        codes = np.array(self._codes).reshape(len(self._trials), self.space.n_columns)
        z, metrics = scores_of(self._trials), metrics_of(self._trials)
        return EncodedTask(codes, z, self.space.categorical, self.profile, metrics=metrics)

    def _belief(self, batch: Sequence[Proposal] = ()) -> Belief | None:
        """What the surrogate believes once it has seen enough, trials under way taken as predicted."""
        target, n_initial = self._target(), self.surrogate.n_initial_
        if len(target.z) < n_initial or (len(target.z) and not np.isfinite(target.z).any()):
            return None  # too little, or nothing but failures: there is no scale to believe on
        if n_initial and len(target.z) > 1 and target.flat:
            return None  # no difference yet, and no past that tells where one might be
        belief = Belief.of(self.surrogate, target)
        if belief is None or belief.draws or not self._pending:  # draws differ by themselves
            return belief
        codes = self.space.encode(list(self._pending.values()))
        guessed = with_trials(target, codes, belief.scores(codes)[0])
        return Belief.of(self.surrogate, guessed, [*self.space.encode([each.params for each in batch])])
