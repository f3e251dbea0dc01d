"""`ABLR`: a Bayesian linear regression for each task on one shared network; Perrone et al. 2018.

Notation (of the supplement)
--------
theta (N_t, d), z (N_t,)      trials of task t, with standardized scores
c_t (q,)                      its context, q = 0: none
Phi_t = phi_w([theta, c_t])   (N_t, D) features, a network of tanh layers with weights w

    z_t | v_t ~ N(Phi_t v_t, 1/beta_t),   v_t ~ N(v_0, 1/alpha_t),   v_0 = 0 in the paper,

    rho = - sum_t log N(z_t; Phi_t v_0, I/beta_t + Phi_t Phi_t'/alpha_t),                    (1)

is minimized over w, alpha, beta, contexts and v_0 with their log priors. `linear_regression`
computes (1) for N > D and for N <= D.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.base import clone

from sktransfer.encoders import Encoder, TaskIndex
from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.contexts import (
    Contexts,
    data_key,
    find_vector,
    most_probable_context,
)
from sktransfer.surrogates._core.defaults import WARM_SHARE
from sktransfer.surrogates._core.gaussian_process import LogNormal
from sktransfer.surrogates._core.head_training import (
    HeadPrior,
    Heads,
    as_weight,
    loss_with_target,
)
from sktransfer.surrogates._core.linear_regression import LinearRegression, feature_correlations
from sktransfer.surrogates._core.model_averaging import average_by_evidence
from sktransfer.surrogates._core.past_trials import Level
from sktransfer.surrogates._core.portfolio import select_portfolio
from sktransfer.surrogates._core.training import task_batches, train
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP
from sktransfer.utils._networks import Network, forward
from sktransfer.utils._scores import impute_failures, standardize
from sktransfer.utils._torch import tensor, torch_context

NOISE = LogNormal(0.03, 1.5)  # prior of 1/beta_t
DEVIATION = LogNormal(0.5, 1.5)  # prior of a task's own variance, about D/2 / alpha_t
CONTEXT_RATE = 0.05  # learning rate of contexts, which only the steps of their own task use
INITIAL_DEVIATION = 0.05  # heads start nearly equal, so that contexts explain what they can
PRECISION_RATE = 0.05  # learning rate of alpha and beta, which few steps use
MAX_CONTEXTS = 100  # past contexts that are tried for a target
N_REFERENCE = 20  # past settings at which two tasks are compared


class ABLR(TransferSurrogate):
    """A Bayesian linear regression for each task, on the features of a shared network.

    It needs trials of past tasks, and profiles only for an `encoder`. Training is linear in the
    past trials: each of ``max(steps, epochs * tasks / batch_tasks)`` steps uses `batch_tasks`
    tasks, and is linear in their trials and cubic in the width of the last layer. A proposal costs
    O(n³) in the target's n trials. Prefer it for archives of hundreds of tasks. With a few tasks a
    Gaussian process learns more.

    Parameters
    ----------
    encoder : Encoder or None
        Computes the context c_t from the data, such as ``ManualEncoder()`` or ``PairEncoder()``. It
        is trained as well.
    context : {None, "learned"}
        "learned" learns a context of four numbers for each task. That of a target is found from its
        trials.
    embeddings : dict of str to array, or None
        Given contexts, which are not trained: the `embeddings_` of an ABLR for another estimator on
        the same data sets. Tasks are identified by their id or their data (`data_key`). Contexts of
        other tasks are learned.
    head : {"shared", "zero"}
        Prior mean v_0 of the heads: learned from all tasks, so that it predicts scores of a new
        one, or zero as in the paper.
    signals : sequence of str, "all" or None
        Other metrics of the same trials that become heads of their own, "fit_time" included. They
        shape the features that all heads share.
    retrain : int
        Adam steps after each trial, with the target as one more task, from the weights that were
        learned from the past tasks. The paper trains all tasks together again. 0 keeps the weights.
    guard : bool
        Whether to average with a plain GP, weighted by the evidence. The paper does not.
    winsorize : bool
        Whether scores far below the median are raised (`clip_low_outliers`) before they are
        standardized. The paper does not.
    layers : tuple of int
        Units of the network's tanh layers. The last is the number D of features.
    steps, epochs, batch_tasks, learning_rate : int, int, int, float
        Minimum number of Adam steps, minimum number of epochs, tasks in a step, and learning rate.
    max_trials : int
        Maximum number of trials of a task in a step. Of a longer task, a random subset is drawn.
    n_settings : int
        Number of best settings of each past task that the first trial is chosen from, because
        networks do not extrapolate well.
    n_initial : int
        Space-filling trials if there are no past ones.
    random_state : int

    Attributes
    ----------
    embeddings_ : dict of str to ndarray of shape (q,)
        Context of each past task by its id, and by its data if they are known. Empty without
        contexts.

    Examples
    --------
    >>> import numpy as np
    >>> theta, z = np.array([[0.1], [0.4], [0.9]]), np.array([0.1, 0.9, 0.2])
    >>> number = np.array([False])
    >>> past = EncodedTask(theta, z, number)
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> mean, _ = ABLR(steps=100).fit([past]).posterior(target).predict(np.array([[0.4], [0.9]]))
    >>> bool(mean[0] > mean[1])
    True
    """

    fallback_: GP

    max_past_tasks: ClassVar[int | None] = None  # training time is linear

    def __init__(
        self,
        encoder: Encoder | None = None,
        context: str | None = None,
        embeddings: Mapping[str, ArrayLike] | None = None,
        head: str = "shared",
        signals: Sequence[str] | str | None = None,
        retrain: int = 0,
        guard: bool = True,
        winsorize: bool = True,
        layers: tuple[int, ...] = (50, 50, 50),
        steps: int = 300,
        epochs: int = 40,
        batch_tasks: int = 20,
        learning_rate: float = 0.01,
        max_trials: int = 100,
        n_settings: int = 3,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.encoder = encoder
        self.context = context
        self.embeddings = embeddings
        self.head = head
        self.signals = signals
        self.retrain = retrain
        self.guard = guard
        self.winsorize = winsorize
        self.layers = layers
        self.steps = steps
        self.epochs = epochs
        self.batch_tasks = batch_tasks
        self.learning_rate = learning_rate
        self.max_trials = max_trials
        self.n_settings = n_settings
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        if self.encoder is not None and not isinstance(self.encoder, Encoder):
            raise ValueError(
                f"encoder={self.encoder!r} must be an Encoder (e.g. ManualEncoder()) or None."
            )
        if self.context not in (None, "learned"):
            raise ValueError(f"context={self.context!r} must be 'learned' or None.")
        if self.encoder is not None and (self.context or self.embeddings):
            raise ValueError("Pass either encoder or context='learned' (embeddings), not both.")
        if self.head not in ("shared", "zero"):
            raise ValueError(f"head={self.head!r} must be 'shared' or 'zero'.")
        if not self.layers or min(self.layers) < 1:
            raise ValueError(f"layers={self.layers!r} must be one or more numbers of units.")
        for name in ("steps", "epochs", "batch_tasks", "max_trials", "n_settings"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least 1.")
        if self.retrain < 0:
            raise ValueError(f"retrain={self.retrain!r} must not be negative.")
        if isinstance(self.signals, str) and self.signals != "all":
            raise ValueError(
                f"signals={self.signals!r} must be 'all', a sequence of names or None."
            )
        shapes = {np.shape(vector) for vector in (self.embeddings or {}).values()}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise ValueError("embeddings must be vectors of one length, by task id or data key.")

    def _make_encoder(self) -> Encoder | None:
        if self.embeddings:
            return TaskIndex(np.size(next(iter(self.embeddings.values()))), self.random_state)
        if self.context == "learned":
            return TaskIndex(random_state=self.random_state)
        return None if self.encoder is None else clone(self.encoder)

    # -- training ------------------------------------------------------------------------------

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        rng = np.random.default_rng(self.random_state)
        past = self.past_
        heads = Heads(past.theta, past.z, past.owner, np.arange(len(tasks)))
        heads = heads.with_signals(tasks, self.signals, self.winsorize)
        m = len(heads.task)
        self.encoder_ = self._make_encoder()
        contexts = Contexts(self.encoder_, tasks, self.embeddings or {})
        outputs = [1] if self.head == "shared" else []  # v_0 is the output layer of the network
        q = contexts.vectors().shape[1]
        network = Network([self.inputs_.width + q, *self.layers, *outputs], rng)
        self.trained_ = {f"w{number:02}": weight for number, weight in enumerate(network.weights)}
        warm = self._can_continue(warm_from, contexts) and self._start_from(warm_from)
        medians = np.log([self.layers[-1] / 2 / INITIAL_DEVIATION, 1 / NOISE.median])
        log_alpha, log_beta = (tensor(np.full(m, h)).requires_grad_(True) for h in medians)
        size = min(self.batch_tasks, m)
        batches = task_batches(heads.owner, size, self.max_trials, rng)
        x, z = tensor(self.inputs_(heads.theta)), tensor(heads.z)

        def loss() -> torch.Tensor:
            chosen, rows, real = next(batches)  # (k,), (k, N), (k, N)
            c = contexts(heads.task[chosen], rng)[:, None, :].expand(-1, rows.shape[1], -1)
            Phi, mean = self._features(torch.cat([x[rows], c], dim=-1))
            alpha, beta = log_alpha[chosen], log_beta[chosen]
            Phi, own = Phi * real[..., None], (z[rows] - mean) * real
            n = real.sum(dim=1)
            regressions = LinearRegression(Phi, own, torch.exp(alpha), torch.exp(beta), n=n)
            rho = regressions.loss().sum() + self._precision_penalty(alpha, beta)  # equation (1)
            return m / size * rho + network.penalty() + contexts.penalty()

        context_rate = CONTEXT_RATE if contexts.are_learned_per_task else self.learning_rate
        groups = [
            (contexts.parameters(), context_rate),
            (network.weights, self.learning_rate),
            ([log_alpha, log_beta], PRECISION_RATE),
        ]
        steps = max(self.steps, round(self.epochs * m / size))
        train(loss, [g for g in groups if g[0]], round(steps * WARM_SHARE) if warm else steps)
        self.learned_ = self._encoder_state()
        self.learned_ |= {
            "first": select_portfolio(past, int(self.head == "zero")),
            "log_alpha": log_alpha.detach().numpy()[: len(tasks)],  # of the scores
            "log_beta": log_beta.detach().numpy()[: len(tasks)],
            "contexts": contexts.vectors(),
            "data": np.array([data_key(task.profile) or "" for task in tasks], dtype=str),
            "basis": contexts.basis(),
        }

    def _features(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Phi, and Phi v_0; (..., inputs) -> (..., D), (...)."""
        weights = [self.trained_[name] for name in sorted(self.trained_)]
        Phi = forward(x, weights[: 2 * len(self.layers)], activate_last=True)
        shared = weights[2 * len(self.layers) :]
        mean = forward(Phi, shared)[..., 0] if shared else Phi.new_zeros(Phi.shape[:-1])
        return Phi, mean

    def _features_at(self, theta: np.ndarray, c: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, d), (q,) or (n, q) -> (n, D), (n,)."""
        return self._features(self._inputs_at(theta, c))

    def _inputs_at(self, theta: np.ndarray, c: np.ndarray) -> torch.Tensor:
        """(n, d), (q,) or (n, q) -> (n, p)."""
        contexts = np.broadcast_to(c, (len(theta), c.shape[-1]))
        return tensor(np.hstack([self.inputs_(theta), contexts]))

    def _precision_penalty(self, alpha: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        deviation = np.log(self.layers[-1] / 2) - alpha
        return -DEVIATION.log_density(deviation) - NOISE.log_density(-beta)

    def _can_continue(self, warm_from: Surrogate | None, contexts: Contexts) -> bool:
        """Whether an earlier model has the same inputs. If so, its contexts are copied."""
        return (
            isinstance(warm_from, ABLR)
            and bool(getattr(warm_from, "trained_", None))
            and self.inputs_.is_compatible(warm_from.inputs_)
            and contexts.start_from(warm_from.encoder_, warm_from.embeddings_)
        )

    # -- the target ----------------------------------------------------------------------------

    def posterior(self, target: EncodedTask) -> Posterior | None:
        """The target's own head, conditioned on its trials."""
        if not self._has_past:
            return self._posterior_without_past(target)
        y = impute_failures(target.z, winsorize=self.winsorize)
        c = self._context_of(target, y)
        level = self._level(c, target.z)
        model = self._retrained(c, target) if self.retrain and len(y) >= 2 else self
        conditioned = model._condition(c, target.theta, y, level)
        if not self.guard or not len(y):
            return conditioned
        plain = self.fallback_.posterior(target)
        return average_by_evidence(conditioned, plain, target.theta, y, level)

    def _retrained(self, c: np.ndarray, target: EncodedTask) -> ABLR:
        """This model with the weights that are trained further with the target as one more task."""
        past, learned, made = self.past_, self.learned_, copy(self)
        z = standardize(target.z, winsorize=self.winsorize)[0]
        own = Heads(target.theta, z, np.zeros(len(z), dtype=int), np.zeros(1, dtype=int))
        own = own.with_signals([target], self.signals, self.winsorize)
        with torch_context():
            x = tensor(np.hstack([self.inputs_(past.theta), learned["contexts"][past.owner]]))
            made.trained_ = {
                name: as_weight(w.detach().numpy()) for name, w in self.trained_.items()
            }
            precisions = [
                as_weight(np.append(logs, np.full(len(own.task), logs.mean())))
                for logs in (learned["log_alpha"], learned["log_beta"])
            ]
            inputs, z_own = self._inputs_at(own.theta, c), tensor(own.z)
            rows = [torch.from_numpy(own.owner == number) for number in range(len(own.task))]
            heads = [(inputs[each], z_own[each]) for each in rows]
            size, rng = min(self.batch_tasks, len(past)), np.random.default_rng(self.random_state)
            batches = task_batches(past.owner, size, self.max_trials, rng)
            trials, weights = (x, tensor(past.z)), list(made.trained_.values())
            parts = (made._features, batches, trials, heads, precisions)
            loss = loss_with_target(*parts, self._precision_penalty)
            train(loss, [(weights + precisions, self.learning_rate)], self.retrain)
        return made

    def _level(self, c: np.ndarray, seen: np.ndarray) -> Level:
        all_tasks = np.ones(len(self.past_), dtype=bool)
        similarity = self._similarity_to(c) if len(c) else 1.0 * all_tasks
        return self.past_.level(similarity, all_tasks, seen)

    def _condition(
        self, c: np.ndarray, theta: np.ndarray, y: np.ndarray, level: Level
    ) -> ConditionedPosterior:
        """The head given the trials, with the most probable alpha and beta."""
        logs = np.stack([self.learned_["log_alpha"], self.learned_["log_beta"]])  # (2, m)
        center, spread = logs.mean(axis=1), np.hypot(logs.std(axis=1), 0.5)

        def condition(h: np.ndarray) -> ConditionedPosterior:
            return ConditionedPosterior(
                HeadPrior(self._features_at, c, *np.exp(h)), theta, y, level
            )

        def loss(h: np.ndarray) -> float:
            return 0.5 * float((((h - center) / spread) ** 2).sum()) - condition(h).log_evidence

        if len(y) < 2:
            return condition(center)
        bounds = list(zip(center - 4 * spread, center + 4 * spread, strict=True))
        options = {"maxiter": 10, "ftol": 1e-4}
        best = minimize(loss, center, method="L-BFGS-B", bounds=bounds, options=options)
        found = condition(best.x)
        found.log_evidence = -float(best.fun)  # with the prior of what was fitted to the scores
        return found

    def _context_of(self, target: EncodedTask, y: np.ndarray) -> np.ndarray:
        """The target's context: given, computed from its data, or most probable by its trials."""
        known = self.learned_["contexts"]
        given = find_vector(self.embeddings or {}, target)
        if given is not None or not known.shape[1]:
            return known[0] if given is None else given
        average = known.mean(axis=0)
        assert self.encoder_ is not None
        if not self.encoder_.needs_trials:
            if (inputs := self.encoder_.read(target.profile)) is None:
                return average
            with torch.no_grad(), torch_context():
                return self.encoder_.embed([inputs])[0].numpy()
        if not len(y):
            return average
        level = self._level(average, target.z)
        typical = [np.exp(self.learned_[name].mean()) for name in ("log_alpha", "log_beta")]

        def evidence(c: np.ndarray) -> float:
            return ConditionedPosterior(
                HeadPrior(self._features_at, c, *typical), target.theta, y, level
            ).log_evidence

        rng = np.random.default_rng(self.random_state)
        if len(known) > MAX_CONTEXTS:
            known = known[np.sort(rng.choice(len(known), MAX_CONTEXTS, replace=False))]
        return most_probable_context(known, evidence, rng)

    def hints(self, target: EncodedTask) -> SearchHints:
        """The first trial is one of the past tasks' best settings.

        A head whose prior mean is zero cannot tell them apart. Then it is the one that does best on
        average over the past tasks.
        """
        hints = super().hints(target)
        if len(target.z) or not self._has_past:
            return hints
        if self.head == "zero":
            rows = self.learned_["first"]
            sources = tuple(str(name) for name in self.past_.ids[self.past_.owner[rows]])
            return replace(hints, first_settings=self.past_.theta[rows], sources=sources)
        all_tasks = np.ones(len(self.past_), dtype=bool)
        return replace(hints, restrict_to=self.past_.best_settings(self.n_settings, all_tasks))

    def similarity(self, target: EncodedTask) -> np.ndarray | None:
        """Prior correlation of the scores at past settings; None without contexts."""
        if not self.embeddings_:
            return None
        y = impute_failures(target.z, winsorize=self.winsorize)
        return self._scatter(self._similarity_to(self._context_of(target, y)))

    def similarity_basis(self, target: EncodedTask) -> list[str] | None:
        return self._scatter_text(self.learned_["basis"].tolist()) if self.embeddings_ else None

    @torch.no_grad()
    def _similarity_to(self, c: np.ndarray) -> np.ndarray:
        rng, theta = np.random.default_rng(self.random_state), self.past_.theta
        theta = theta[rng.choice(len(theta), min(len(theta), N_REFERENCE), replace=False)]
        contexts = np.vstack([c, self.learned_["contexts"]])
        everywhere = np.tile(theta, (len(contexts), 1))
        with torch_context():
            Phi, _ = self._features_at(everywhere, contexts.repeat(len(theta), axis=0))
            return feature_correlations(Phi.reshape(len(contexts), len(theta), -1)).numpy()

    # -- contexts ------------------------------------------------------------------------------

    @property
    def embeddings_(self) -> dict[str, np.ndarray]:
        """Contexts by task id, and by data: the average of the tasks on the same data."""
        vectors = self.learned_.get("contexts", np.empty((0, 0)))
        if not vectors.shape[1]:
            return {}
        data = self.learned_["data"]
        by_data = {str(key): vectors[data == key].mean(axis=0) for key in data if key}
        by_id = zip(self.past_.ids.tolist(), vectors, strict=True)
        return by_data | {name: vector for name, vector in by_id if name}
