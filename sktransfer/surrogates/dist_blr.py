"""`DistBLR`: Bayesian linear regression on a network of (configuration, data set); Law et al. 2019.

Notation as in `joint_surrogate`; Y = v([theta, psi(D), s]), (N, D), v a network of three layers of
tanh units;

    z | beta ~ N(Y beta, noise I),   beta ~ N(0, alpha I),   one beta for all tasks.

The cost is linear in N; see `linear_regression`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch

from sktransfer.encoders import Encoder
from sktransfer.surrogates._core.gaussian_process import LogNormal
from sktransfer.surrogates._core.joint_surrogate import JointSurrogate
from sktransfer.surrogates._core.linear_regression import LinearRegression, feature_correlations
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates.base import EncodedTask, SearchHints
from sktransfer.utils._networks import Network, forward
from sktransfer.utils._threads import single_threaded
from sktransfer.utils._torch import tensor

NOISE, ALPHA = LogNormal(0.1, 1.5), LogNormal(1.0, 1.5)
N_REFERENCE = 50  # past settings at which two tasks are compared


class DistBLR(JointSurrogate):
    """Bayesian linear regression on a network, for archives too large for a Gaussian process.

    It needs past tasks with a profile. The cost is linear in their trials. The first trial is one
    of the past tasks' best settings, by the lower confidence bound, because networks do not
    extrapolate well.

    Parameters
    ----------
    encoder : Encoder or None
        As in `DistGP`. With ``ManualEncoder()`` it is the papers' manualBLR, with ``TaskIndex()``
        their multiBLR.
    scores, guard, winsorize, n_initial, random_state
        As in `DistGP`.
    layers : tuple of int
        Units of the network's tanh layers. The last is the number of features of the regression.
    steps, learning_rate : int, float
        Number of Adam steps, and learning rate of the encoder.
    max_batch : int
        Maximum number of trials in a training step. Of more, each step draws some of at least 20
        tasks.
    n_settings : int
        Number of best settings of each past task that the first trial is chosen from.

    Examples
    --------
    >>> import numpy as np
    >>> theta, z = np.array([[0.1], [0.4], [0.9]]), np.array([0.1, 0.9, 0.2])
    >>> past = EncodedTask(theta, z, np.array([False]))
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> DistBLR(steps=20, n_settings=1).fit([past]).hints(target).restrict_to
    array([[0.4]])
    """

    _own_rate = 0.01

    max_past_tasks: ClassVar[int | None] = None  # training time is linear

    def __init__(
        self,
        encoder: Encoder | None = None,
        scores: str = "standardize",
        layers: tuple[int, ...] = (50, 50, 50),
        steps: int = 400,
        learning_rate: float = 0.003,
        max_batch: int = 1000,
        n_settings: int = 3,
        guard: bool = True,
        winsorize: bool = True,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.encoder = encoder
        self.scores = scores
        self.layers = layers
        self.steps = steps
        self.learning_rate = learning_rate
        self.max_batch = max_batch
        self.n_settings = n_settings
        self.guard = guard
        self.winsorize = winsorize
        self.n_initial = n_initial
        self.random_state = random_state

    def _setup(self, psi: np.ndarray, rng: np.random.Generator) -> None:
        network = Network([self.inputs_.width + psi.shape[1], *self.layers], rng)
        self.trained_ = {f"w{number:02}": weight for number, weight in enumerate(network.weights)}
        for name, prior in (("noise", NOISE), ("alpha", ALPHA)):
            self.trained_[name] = tensor(np.array(np.log(prior.median))).requires_grad_(True)

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._regression_cache: LinearRegression | None = None

    def _features(self, theta: torch.Tensor, psi: torch.Tensor) -> torch.Tensor:
        """(n, d), (n, q) -> (n, D)."""
        weights = [self.trained_[name] for name in sorted(self.trained_) if name.startswith("w")]
        x = torch.cat([tensor(self.inputs_(theta.numpy())), psi], dim=1)
        return forward(x, weights, activate_last=True)

    def _regression(
        self, theta: torch.Tensor, z: torch.Tensor, psi: torch.Tensor
    ) -> LinearRegression:
        own = self.trained_
        return LinearRegression(
            self._features(theta, psi),
            z,
            torch.exp(-own["alpha"]),
            torch.exp(-own["noise"]),
            dual=False,
        )

    def _loss(
        self,
        theta: torch.Tensor,
        z: torch.Tensor,
        owner: np.ndarray,
        psi: torch.Tensor,
        numbers: np.ndarray,
    ) -> torch.Tensor:
        return self._regression(theta, z, psi[torch.from_numpy(owner)]).loss()

    def _penalty(self) -> torch.Tensor:
        own = self.trained_
        matrices = [t for name, t in own.items() if name.startswith("w") and t.ndim == 2]
        weights = sum((0.5 * len(t) * (t * t).sum() for t in matrices), tensor(np.zeros(())))
        return weights - NOISE.log_density(own["noise"]) - ALPHA.log_density(own["alpha"])

    # -- the target ----------------------------------------------------------------------------

    @torch.no_grad()
    def _prior(self, psi: np.ndarray) -> _PastPrior:
        past = self.past_
        if self._regression_cache is None:
            rows = np.flatnonzero(self.learned_["readable"][past.owner])
            with single_threaded:
                vectors = tensor(self.learned_["psi"][past.owner[rows]])
                self._regression_cache = self._regression(
                    tensor(past.theta[rows]), tensor(past.z[rows]), vectors
                )
        return _PastPrior(self, psi, self._regression_cache)

    @torch.no_grad()
    def _similarity_to(self, psi: np.ndarray) -> np.ndarray:
        """Prior correlation of two tasks' scores, averaged over past settings."""
        rng = np.random.default_rng(self.random_state)
        theta = self.past_.theta
        theta = tensor(theta[rng.choice(len(theta), min(len(theta), N_REFERENCE), replace=False)])
        with single_threaded:
            vectors = tensor(np.vstack([psi, self.learned_["psi"]]))
            k, m = len(theta), len(vectors)
            Y = self._features(theta.repeat(m, 1), vectors.repeat_interleave(k, dim=0)).reshape(
                m, k, -1
            )
            return feature_correlations(Y).numpy()

    def hints(self, target: EncodedTask) -> SearchHints:
        """The first trial is one of the past tasks' best settings (section 4.3)."""
        hints = super().hints(target)
        if len(target.z) or not self._has_past:
            return hints
        return replace(
            hints, restrict_to=self.past_.best_settings(self.n_settings, self.learned_["readable"])
        )


class _PastPrior:
    """The regression conditioned on past trials, at one data set."""

    def __init__(self, model: DistBLR, psi: np.ndarray, regression: LinearRegression):
        self._model, self._psi, self._regression = model, psi, regression
        self.noise = float(torch.exp(model.trained_["noise"]))

    @torch.no_grad()
    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with single_threaded:
            mean, variance, covariance = self._regression.moments(
                self._features(theta), self._features(anchors)
            )
        return mean.numpy(), variance.numpy(), covariance.numpy()

    def _features(self, theta: np.ndarray) -> torch.Tensor:
        psi = tensor(np.repeat(self._psi[None], len(theta), axis=0))
        return self._model._features(tensor(theta), psi)
