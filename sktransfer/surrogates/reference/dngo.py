"""`DNGO`: Bayesian linear regression on a network, without transfer; Snoek et al. 2015.

Notation: x (n, p) inputs of the target's n trials, z (n,) standardized scores;
Phi = phi_w(x) (n, D) the last hidden layer of a network with weights w and a linear output v.

    first    min over w, v of |z - Phi v|² / 2, by a few steps of Adam   (section 3.1)
    then     v is dropped: z | v ~ N(Phi v, 1/beta), v ~ N(0, 1/alpha)    (section 3.2, eq. 2 to 6)

The weights start from a draw of their prior, and training stops early. A penalty would shrink
weights that a few trials do not need to zero, and with them the uncertainty. alpha and beta
maximize the marginal likelihood with log-normal priors. The paper integrates over them by slice
sampling and has a quadratic prior mean. Here the mean is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sktransfer.surrogates._core.gaussian_process import LogNormal
from sktransfer.surrogates._core.linear_regression import LinearRegression, fit_precisions
from sktransfer.surrogates._core.network_inputs import Inputs
from sktransfer.surrogates._core.training import train
from sktransfer.surrogates.base import EncodedTask, Posterior, Surrogate
from sktransfer.utils._networks import Network, forward
from sktransfer.utils._scores import standardize
from sktransfer.utils._torch import tensor, torch_context

NOISE = LogNormal(1e-3, 1.5)  # prior of 1/beta, for scores of unit variance
SIGNAL = LogNormal(1.0, 1.0)  # prior of D/2 / alpha, about the variance of Phi v


class DNGO(Surrogate):
    """Bayesian linear regression on a network, trained on the target's own trials.

    It uses no past tasks. The network is retrained after each trial from the same initial weights,
    so that the posterior depends on the trials alone. The cost is linear in their number. It serves
    for comparison; prefer it to `GP` only for thousands of trials.

    Parameters
    ----------
    layers : tuple of int
        Units of the network's tanh layers. The last is the number D of features.
    steps, learning_rate : int, float
        Adam steps and their rate.
    winsorize : bool
        Whether scores far below the median are raised (`clip_low_outliers`) before they are
        standardized. The paper does not.
    n_initial : int
        Space-filling trials before the model is used.
    random_state : int
        Seed of the initial weights.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.array([[0.1], [0.5], [0.9]])
    >>> target = EncodedTask(theta, np.array([0.2, 0.9, 0.3]), np.array([False]))
    >>> mean, std = DNGO().fit([]).posterior(target).predict(np.array([[0.5], [0.0]]))
    >>> bool(mean[0] > mean[1] and std[0] < std[1])
    True
    """

    def __init__(
        self,
        layers: tuple[int, ...] = (50, 50, 50),
        steps: int = 120,
        learning_rate: float = 0.01,
        winsorize: bool = True,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.layers = layers
        self.steps = steps
        self.learning_rate = learning_rate
        self.winsorize = winsorize
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        if not self.layers or min(self.layers) < 1:
            raise ValueError(f"layers={self.layers!r} must be one or more numbers of units.")
        if self.steps < 0:
            raise ValueError(f"steps={self.steps!r} must not be negative.")

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> DNGO:
        """Check the parameters. Nothing is learned from past tasks."""
        super().fit(tasks, warm_from)
        return self

    def posterior(self, target: EncodedTask) -> HeadPosterior | None:
        """Train the network on the target's trials, then regress on its features."""
        if not len(target.z):
            return None
        z, shift, scale = standardize(target.z, winsorize=self.winsorize)
        inputs = Inputs.from_codes(target.theta, target.categorical)
        x, z_t = tensor(inputs(target.theta)), tensor(z)
        network = Network([inputs.width, *self.layers, 1], np.random.default_rng(self.random_state))

        def loss() -> torch.Tensor:
            error = z_t - network(x)[:, 0]
            return 0.5 * (error * error).sum()

        with torch_context():
            train(loss, [(network.weights, self.learning_rate)], self.steps)
            weights = [weight.detach() for weight in network.weights[:-2]]
            Phi, D = forward(x, weights, activate_last=True), self.layers[-1]
            alpha = LogNormal(D / 2 / SIGNAL.median, SIGNAL.spread)
            h = fit_precisions(Phi, z_t, alpha, LogNormal(1 / NOISE.median, NOISE.spread))
            head = LinearRegression(Phi, z_t, *torch.exp(tensor(h)))
        return HeadPosterior(inputs, weights, head, shift, scale)


class HeadPosterior(Posterior):
    """Posterior of a linear regression on the features of a network, in units of the score."""

    def __init__(
        self,
        inputs: Inputs,
        weights: list[torch.Tensor],
        head: LinearRegression,
        shift: float,
        scale: float,
    ):
        self._inputs, self._weights, self._head = inputs, weights, head
        self.shift, self.scale = shift, scale

    def _features(self, theta: np.ndarray) -> torch.Tensor:
        return forward(tensor(self._inputs(theta)), self._weights, activate_last=True)

    @torch.no_grad()
    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the noise-free score; (m, d) -> (m,), (m,)."""
        with torch_context():
            phi = self._features(theta)
            mean, variance, _ = self._head.moments(phi, phi[:0])
            std = variance.clamp_min(1e-12).sqrt()
        return self.shift + self.scale * mean.numpy(), self.scale * std.numpy()

    @torch.no_grad()
    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the noise-free score; (m, d) -> (n, m)."""
        with torch_context():
            phi = self._features(theta)
            mean, _, covariance = self._head.moments(phi, phi)
            values, vectors = torch.linalg.eigh(covariance)
            root = (vectors * values.clamp_min(0).sqrt()).numpy()
        return self.shift + self.scale * (
            mean.numpy() + rng.standard_normal((n, len(theta))) @ root.T
        )
