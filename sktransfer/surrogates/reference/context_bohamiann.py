"""`ContextBohamiann`: a Bayesian neural network of all tasks; Perrone et al. 2018, supplement B.3.

It is their BOHAMIANN transfer (ctx): the network of `bohamiann` reads [x, c], x (n, p) the inputs
of a configuration, c (3,) the context of its task, the numbers of rows, columns and classes. It is
sampled given the standardized scores z of past trials and the target's. The target's scores are put
on the scale of the past ones by the shift and scale of `conditioning`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.model_averaging import average_posteriors, plain_evidence
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.size_features import DataFeatures, describe_features
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, Surrogate
from sktransfer.surrogates.gp import GP
from sktransfer.surrogates.reference.bohamiann import NOISE, Bohamiann, Networks
from sktransfer.utils._scores import impute_failures
from sktransfer.utils._torch import tensor, torch_context


class ContextBohamiann(TransferSurrogate):
    """A Bayesian neural network on the trials of all tasks, with a context of each task.

    It needs past trials, and of their data the numbers of rows, columns and classes. Tasks without
    them count as average. Each proposal samples again, a second or more. It serves for comparison.

    Parameters
    ----------
    max_trials : int
        Maximum number of past trials, evenly from all tasks.
    layers, n_chains, n_samples, burn_in, thin, step_size
        As in `Bohamiann`.
    guard : bool
        Whether to average with a plain GP, weighted by how well each predicted the target's scores.
        The paper does not.
    winsorize : bool
        Whether scores far below the median are raised before they are standardized. The paper does
        not.
    n_initial : int
        Space-filling trials if there are no past ones.
    random_state : int

    Examples
    --------
    >>> theta = np.random.default_rng(0).random((20, 1))
    >>> past = EncodedTask(theta, -abs(theta[:, 0] - 0.3), np.array([False]), id="a")
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> posterior = ContextBohamiann().fit([past]).posterior(target)
    >>> mean, std = posterior.predict(np.array([[0.3], [0.9]]))
    >>> bool(mean[0] > mean[1])
    True
    """

    fallback_: GP

    def __init__(
        self,
        max_trials: int = 150,
        layers: tuple[int, ...] = (50, 50, 50),
        n_chains: int = 10,
        n_samples: int = 2,
        burn_in: int = 120,
        thin: int = 20,
        step_size: float = 0.02,
        guard: bool = True,
        winsorize: bool = True,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.max_trials = max_trials
        self.layers = layers
        self.n_chains = n_chains
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.step_size = step_size
        self.guard = guard
        self.winsorize = winsorize
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        self._sampler().check_params()
        if self.max_trials < 1:
            raise ValueError(f"max_trials={self.max_trials!r} must be at least 1.")

    def _sampler(self) -> Bohamiann:
        return Bohamiann(
            layers=self.layers,
            n_chains=self.n_chains,
            n_samples=self.n_samples,
            burn_in=self.burn_in,
            thin=self.thin,
            step_size=self.step_size,
            random_state=self.random_state,
        )

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._weights_cache: list[torch.Tensor] | None = None

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        profiles = [task.profile for task in tasks]
        sizes = DataFeatures.from_profiles(profiles)
        order = np.argsort(_rank_in_task(self.past_.owner), kind="stable")
        self.learned_ = {
            "low": sizes.low,
            "high": sizes.high,
            "sizes": sizes.table(profiles),
            "rows": np.sort(order[: self.max_trials]),
            "basis": np.array([describe_features(each) for each in profiles], dtype=str),
        }

    # -- the target ----------------------------------------------------------------------------

    def posterior(self, target: EncodedTask) -> Posterior:
        """Networks sampled given all trials, averaged with a plain GP."""
        if not self._has_past:
            return self.fallback_.posterior(target)
        inputs = _ContextInputs(self, self._context_of(target))
        known = np.ones(len(self.past_), dtype=bool)
        level = self.past_.level(1.0 * known, known, target.z)
        y = impute_failures(target.z, winsorize=self.winsorize)
        from_past = ConditionedPosterior(
            _NetworkPrior(self._past_networks(), inputs), target.theta, y, level
        )
        if not len(y):
            return from_past
        z = (y - from_past.shift) / from_past.scale
        with torch_context():
            x, z_past = self._past_inputs()
            x = torch.cat([x, tensor(inputs(target.theta))])
            kept = self._sampler().sample_networks(x, torch.cat([z_past, tensor(z)]))
        networks = Networks(inputs, kept, from_past.shift, from_past.scale)
        if not self.guard:
            return networks
        plain = self.fallback_.posterior(target)
        evidence = plain_evidence(plain, target.theta, y, level)
        return average_posteriors(networks, plain, from_past.log_evidence - evidence)

    def _past_inputs(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and scores of the past trials; (N, p + 3), (N,)."""
        past, rows = self.past_, self.learned_["rows"]
        contexts = 2 * self.learned_["sizes"][past.owner[rows]] - 1
        return tensor(np.hstack([self.inputs_(past.theta[rows]), contexts])), tensor(past.z[rows])

    def _past_networks(self) -> list[torch.Tensor]:
        """Networks sampled given the past trials, the same for every target."""
        if self._weights_cache is None:
            with torch_context():
                self._weights_cache = self._sampler().sample_networks(*self._past_inputs())
        return self._weights_cache

    def _context_of(self, target: EncodedTask) -> np.ndarray:
        return DataFeatures(self.learned_["low"], self.learned_["high"])(target.profile)

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """1 minus the mean difference of the contexts."""
        if not self._has_past:
            return self._scatter(np.empty(0))
        apart = np.abs(self.learned_["sizes"] - self._context_of(target)).mean(axis=1)
        return self._scatter(np.clip(1 - apart, 0, 1))

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each task was compared by, and how many of its trials were used."""
        if not self._has_past:
            return self._scatter_text([])
        texts = list(self.learned_["basis"])
        return self._scatter_text(self.past_.describe_usage(texts, self.learned_["rows"]))


class _ContextInputs:
    """Inputs of the network for configurations of one task."""

    def __init__(self, model: ContextBohamiann, context: np.ndarray):
        self._inputs, self._context = model.inputs_, 2 * context - 1

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) -> (n, p + 3)."""
        return np.hstack([self._inputs(theta), np.tile(self._context, (len(theta), 1))])


class _NetworkPrior:
    """Mean and covariance over networks: a prior of the target's standardized scores."""

    noise = NOISE.median

    def __init__(self, weights: list[torch.Tensor], inputs: _ContextInputs):
        self._networks = Networks(inputs, weights, 0.0, 1.0)

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        f, g = self._networks.predict_all(theta), self._networks.predict_all(anchors)
        mean, degrees = f.mean(axis=0), len(f) - 1
        f, g = f - mean, g - g.mean(axis=0)
        return mean, (f * f).sum(axis=0) / degrees + 1e-6, f.T @ g / degrees


def _rank_in_task(owner: np.ndarray) -> np.ndarray:
    """Number of each trial within its task, from 0; owner is sorted; (N,) -> (N,)."""
    return np.arange(len(owner)) - np.searchsorted(owner, owner)
