"""`DKLM`: a Gaussian process on a network that reads the target's trials so far; Jomaa et al. 2021.

Notation
--------
x (n, p) inputs made of n configurations (see `Inputs`), z (n,) their scores, H a set of trials
(x_i, z_i)

    phi2(H)   = g(mean_i f([x_i, z_i]))          (5)   q landmark features of a task, in any order
    phi(x, H) = phi1([x, phi2(H)])               (4)   M features of a configuration, given the task
    K         = s k(|phi - phi'|² / l²) + v I    (3)   k Matérn-5/2
    L         = z' K^-1 z + log|K|               (7)   to be minimized over w, h

with the weights w of the networks f, g, phi1 and h = log [l, s, v]. Without f and g it is FSBO
(Wistuba & Grabocka 2021). A stack of B tasks has one more leading dimension everywhere, also in the
weights: each task moves a copy. With `prior`, phi1 has one more output, the mean m(x, H) of a
score, and the kernel also depends on x:

    K         = s k(|phi - phi'|² / l² + sum_j (x_j - x'_j)² / l_j²) + v I,   z - m replaces z
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import torch

from sktransfer.surrogates._core.deep_kernel import (
    DeepGP,
    Trials,
    Weights,
    fit_scale,
    landmarks,
    prior_moments,
)
from sktransfer.surrogates._core.gaussian_process import LogNormal, Priors
from sktransfer.surrogates._core.model_averaging import average_posteriors, log_prior
from sktransfer.surrogates._core.network_inputs import Inputs
from sktransfer.surrogates._core.portfolio import select_portfolio
from sktransfer.surrogates._core.torch_kernels import log_likelihood
from sktransfer.surrogates._core.training import train
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP, default_priors
from sktransfer.utils._networks import Network
from sktransfer.utils._progress_line import track
from sktransfer.utils._scores import standardize
from sktransfer.utils._torch import tensor, torch_context

PRIORS = Priors(LogNormal(1.0, 1.0), LogNormal(1.0, 1.0), LogNormal(1e-2, 1.5))  # of l, s and v
WARM_SHARE = 0.4  # of the REPTILE steps, if training continues from earlier weights


class DKLM(TransferSurrogate):
    """Deep-kernel Gaussian process with landmark features, meta-trained on the past tasks.

    The kernel is Matérn-5/2 on the output of a network. Its inputs are the configuration and a
    description of the task, an average over the trials so far. Network and kernel are trained on
    the past tasks by REPTILE (algorithm 1), and conditioned exactly on the target's trials. Unlike
    the paper's, the network also predicts the mean score, and the kernel also depends on the
    configuration itself. The first trials are a portfolio of past settings.

    It needs past trials, but no profiles, and ten or more past tasks. Training takes some seconds
    for archives of any size. A proposal is O(n³) in the target's trials. Prefer it if the same
    estimator was tuned on many data sets with tens of trials each. With fewer tasks, a plain GP
    after good first settings ("warm-start") does as well.

    Parameters
    ----------
    landmarks : bool
        Whether the kernel depends on the trials so far. False is FSBO.
    meta : bool
        Whether to learn from past tasks. False trains on the target's trials only, from random
        weights: DKLM (RI) of the paper, and without landmarks the deep Gaussian process,
        ``"deep-gp"``.
    scores : {"standardize", "raw"}
        Whether to standardize each task's scores, or to assume one common scale.
    guard : bool
        Whether to average with a plain GP, weighted by how well each predicted the target's scores.
        The paper does not.
    prior : bool
        Whether the network predicts a mean, and the kernel depends on the configuration beside the
        features. The paper has a mean of zero and the features only. It has no effect without
        `meta`.
    winsorize : bool
        Whether scores far below the median are raised (`clip_low_outliers`) before they are
        standardized. The paper does not.
    history : {"set", "sequence"}
        What the kernel reads of the trials: all of them (algorithm 1), or for each trial those
        before it, the H^(t-1) of equation 7.
    n_landmarks : int
        Number q of landmark features.
    layers : tuple of int
        Units of the layers of f and phi1. The last is the number M of features.
    steps, inner_steps : int
        Number of REPTILE steps, and of Adam steps in each.
    learning_rate, meta_rate : float
        Learning rates of Adam and of REPTILE.
    adapt_steps : int or None
        Adam steps on the target's trials. None is 60 without `meta`, otherwise 0 with `prior` and
        10 without.
    n_tasks : int
        Number of tasks in a REPTILE step.
    n_trials, n_seen : int
        Maximum number of trials of each task in the likelihood, and in the set H.
    n_initial : int
        Maximum size of the portfolio. Without past trials, number of space-filling trials.
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.linspace(0, 1, 8)[:, None]
    >>> z, number = np.sin(5 * theta[:, 0] + np.arange(3)[:, None]), np.array([False])
    >>> past = [EncodedTask(theta, row, number) for row in z]
    >>> surrogate = DKLM(steps=5).fit(past)
    >>> target = EncodedTask(theta[:4], np.sin(5 * theta[:4, 0] + 0.5), np.array([False]))
    >>> mean, std = surrogate.posterior(target).predict(theta)
    >>> mean.shape, bool((std > 0).all()), surrogate.landmark_features(target).shape
    ((8,), True, (32,))
    """

    fallback_: GP

    def __init__(
        self,
        landmarks: bool = True,
        meta: bool = True,
        scores: str = "standardize",
        guard: bool = True,
        prior: bool = True,
        winsorize: bool = True,
        history: str = "set",
        n_landmarks: int = 32,
        layers: tuple[int, ...] = (32, 32, 32, 32),
        steps: int = 100,
        inner_steps: int = 3,
        learning_rate: float = 0.01,
        meta_rate: float = 1.0,
        adapt_steps: int | None = None,
        n_tasks: int = 10,
        n_trials: int = 64,
        n_seen: int = 100,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.landmarks = landmarks
        self.meta = meta
        self.scores = scores
        self.guard = guard
        self.prior = prior
        self.winsorize = winsorize
        self.history = history
        self.n_landmarks = n_landmarks
        self.layers = layers
        self.steps = steps
        self.inner_steps = inner_steps
        self.learning_rate = learning_rate
        self.meta_rate = meta_rate
        self.adapt_steps = adapt_steps
        self.n_tasks = n_tasks
        self.n_trials = n_trials
        self.n_seen = n_seen
        self.n_initial = n_initial
        self.random_state = random_state

    # Without meta-training nothing is transferred or worth caching.
    @property
    def uses_past_tasks(self) -> bool:  # type: ignore[override]
        return self.meta

    @property
    def is_cacheable(self) -> bool:  # type: ignore[override]
        return self.meta

    @property
    def fallback_name(self) -> str:  # type: ignore[override]
        return TransferSurrogate.fallback_name if self.meta else ""

    @property
    def _score_transform(self) -> str:
        return self.scores

    @property
    def _by_trial(self) -> bool:
        return self.history == "sequence"

    @property
    def _has_prior(self) -> bool:
        return self.prior and self.meta

    def check_params(self) -> None:
        if self.scores not in ("standardize", "raw"):
            raise ValueError(f"scores={self.scores!r} must be 'standardize' or 'raw'.")
        if self.history not in ("set", "sequence"):
            raise ValueError(f"history={self.history!r} must be 'set' or 'sequence'.")
        minimum = {
            "n_landmarks": 1,
            "steps": 0,
            "inner_steps": 1,
            "n_tasks": 1,
            "n_trials": 2,
            "n_seen": 2,
        }
        for name, value in minimum.items():
            if not getattr(self, name) >= value:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least {value}.")
        if not self.layers or min(self.layers) < 1:
            raise ValueError(f"layers={self.layers!r} must be one or more numbers of units.")
        if self.adapt_steps is not None and self.adapt_steps < 0:
            raise ValueError(f"adapt_steps={self.adapt_steps!r} must be None or not negative.")

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> Self:
        """Learn from the past tasks, if `meta`."""
        super().fit(tasks if self.meta else [], warm_from)
        return self

    # -- the model -----------------------------------------------------------------------------

    def _make_weights(self, p: int) -> Weights:
        """Random weights for p inputs, all of two dimensions so that a stack of them has three."""
        rng = np.random.default_rng(self.random_state)
        (*hidden, M), q = self.layers, self.n_landmarks
        sizes = {"f": [p + 1, *hidden, M], "g": [M, M, q]} if self.landmarks else {}
        sizes["phi"] = [p + q if self.landmarks else p, *hidden, M + self._has_prior]
        w = {"h": tensor(PRIORS.medians(1))[None].requires_grad_(True)}
        if self._has_prior:
            log_median = np.log(_input_lengthscale_prior(p).median)
            w["x"] = tensor(np.full((1, p), log_median)).requires_grad_(True)
        for name, units in sizes.items():
            for number, weight in enumerate(Network(units, rng, scale=np.sqrt(2)).weights):
                # Biases as small as a unit's other inputs: larger ones would hide the effect of a
                # task's scores.
                share = 1.0 if weight.ndim == 2 else units[number // 2] ** -0.5
                rows = share * weight.detach().reshape(-1, weight.shape[-1])
                if self._has_prior and name == "phi" and number // 2 == len(hidden):
                    rows[:, -1] = 0.0  # the initial mean is zero
                w[f"{name}{number:02}"] = rows.requires_grad_(True)
        return w

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        """Algorithm 1, REPTILE: the weights move towards the results of each task's own steps."""
        rng = np.random.default_rng(self.random_state)
        past = self.past_
        w = self.trained_ = self._make_weights(self.inputs_.width)
        steps = round(self.steps * WARM_SHARE) if self._start_from(warm_from) else self.steps
        rows = [np.flatnonzero(past.owner == task) for task in range(len(past))]
        longest = max(map(len, rows))
        for step in track(range(steps), "Training the surrogate"):
            t = int(rng.integers(2, max(2, min(self.n_seen, longest)) + 1))
            chosen = rng.choice(len(past), min(self.n_tasks, len(past)), replace=False)
            seen = self._stack([_subsample(rows[i], t - 1, rng) for i in chosen])
            batch = self._stack([_subsample(rows[i], self.n_trials, rng) for i in chosen])
            copies = {
                name: weight.detach().expand(len(chosen), -1, -1) for name, weight in w.items()
            }
            moved = self._descend(copies, batch, seen, self.inner_steps)
            rate = self.meta_rate * (1 - 0.9 * step / steps)
            with torch.no_grad():
                for name, weight in w.items():
                    weight += rate * (moved[name].mean(0) - weight)
        self.learned_ = {"portfolio": select_portfolio(past, self.n_initial)}

    def _stack(self, rows: list[np.ndarray]) -> Trials:
        """Trials of some past tasks, padded to the longest."""
        mask = np.arange(max(map(len, rows))) < np.array([len(own) for own in rows])[:, None]
        rows_padded = np.zeros(mask.shape, dtype=int)
        rows_padded[mask] = np.concatenate(rows)
        x = self.inputs_(self.past_.theta[rows_padded.ravel()]).reshape(*rows_padded.shape, -1)
        return Trials(tensor(x), tensor(self.past_.z[rows_padded] * mask), tensor(mask))

    def _descend(self, start: Weights, batch: Trials, seen: Trials, steps: int) -> Weights:
        """Adam on (7) and the priors of l, s, v. (The paper's algorithm misprints a plus sign.)"""
        # All weights of a task in one row: ten times fewer and larger operations.
        row = torch.cat([weight.detach().flatten(-2) for weight in start.values()], -1)
        row.requires_grad_(True)
        sizes = [weight.shape[-2] * weight.shape[-1] for weight in start.values()]

        def weights() -> Weights:
            parts = zip(start, row.split(sizes, -1), strict=True)
            return {name: part.reshape(start[name].shape) for name, part in parts}

        def loss() -> torch.Tensor:
            w = weights()
            priors = (PRIORS.lengthscale, PRIORS.signal, PRIORS.noise)
            pairs = zip(w["h"].unbind(-1), priors, strict=True)
            log_prior = sum(prior.log_density(value) for value, prior in pairs)
            if "x" in w:
                log_prior += _input_lengthscale_prior(w["x"].shape[-1]).log_density(w["x"])
            mean, K = prior_moments(w, batch, None if self._by_trial else seen)
            return -(log_likelihood(K, batch.z - mean).sum() + log_prior)

        train(loss, [([row], self.learning_rate)], steps, decay=0.0)
        with torch.no_grad():
            return weights()

    # -- the target ----------------------------------------------------------------------------

    def hints(self, target: EncodedTask) -> SearchHints:
        """The first trials are a portfolio: settings that together do well on the past tasks.

        It ends after `n_initial` trials if a mean was learned: the model then proposes better
        settings. One trial is needed in any case, because a kernel alone does not tell
        where good settings are.
        """
        hints = super().hints(target)
        if not self._has_past:
            return hints
        hints, rows = replace(hints, n_initial=1), self.learned_["portfolio"]
        if self._has_prior and len(target.z) >= self.n_initial:
            return hints
        sources = tuple(str(name) for name in self.past_.ids[self.past_.owner[rows]])
        return replace(hints, first_settings=self.past_.theta[rows], sources=sources)

    def posterior(self, target: EncodedTask) -> Posterior:
        """Adapt to the target's trials, condition on them, and average with a plain GP."""
        if self.meta and not self._has_past:
            return self.fallback_.posterior(target)
        z, shift, scale = self._standard(target)
        inputs = self.inputs_ if self.meta else Inputs.from_codes(target.theta, target.categorical)
        trials = Trials(tensor(inputs(target.theta)), tensor(z), tensor(np.ones(len(z))))
        with torch_context():
            start = self.trained_ if self.meta else self._make_weights(inputs.width)
            needs_scale = self.meta and len(z) and (self.prior or self.guard)
            fit, evidence = fit_scale(start, trials) if needs_scale else (start, 0.0)
            adapted = self._adapt(fit if self.prior else start, trials)
            transfer = DeepGP(adapted, inputs, trials, shift, scale, self._by_trial)
            if not (self.meta and self.guard and len(z)):
                return transfer
            plain = self.fallback_.posterior(target)
            rescaled = len(z) * np.log(plain.scale / scale)  # both evidences on one scale
            return average_posteriors(
                transfer, plain, evidence - plain.log_evidence - log_prior(plain) + rescaled
            )

    def _standard(self, target: EncodedTask) -> tuple[np.ndarray, float, float]:
        """The target's scores on the model's scale, and its shift and scale."""
        if self.scores == "standardize" or not self.meta:
            return standardize(target.z, winsorize=self.winsorize)
        z, shift, scale = standardize(target.z)  # it imputes failed trials
        own_shift, own_scale = float(self.past_.shifts[0]), float(self.past_.scales[0])
        return (shift + scale * z - own_shift) / own_scale, own_shift, own_scale

    def _adapt(self, start: Weights, trials: Trials) -> Weights:
        """Adam steps from the same start, so that the posterior depends on the trials only."""
        default = 60 if not self.meta else 0 if self.prior else 10
        steps = default if self.adapt_steps is None else self.adapt_steps
        return self._descend(start, trials, trials, steps if len(trials.z) >= 2 else 0)

    # -- landmarks -----------------------------------------------------------------------------

    @torch.no_grad()
    def landmark_features(self, target: EncodedTask) -> np.ndarray:
        """phi2 of the target's trials, with the meta-trained weights; -> (q,)."""
        if not (self.landmarks and self._has_past):
            raise ValueError(
                "Landmark features need landmarks=True, meta=True and past trials to learn from."
            )
        x, z = tensor(self.inputs_(target.theta)), tensor(self._standard(target)[0])
        with torch_context():
            return landmarks(self.trained_, Trials(x, z, torch.ones_like(z)))[0].numpy()


def _subsample(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= n else rng.choice(rows, n, replace=False)


def _input_lengthscale_prior(p: int) -> LogNormal:
    """Prior of the lengthscales of p inputs: twice that of a plain GP, for inputs in [-1, 1]."""
    codes = default_priors(p).lengthscale
    return LogNormal(2 * codes.median, codes.spread)
