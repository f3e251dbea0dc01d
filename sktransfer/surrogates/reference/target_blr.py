"""`TargetBLR`: the regression of `dist_blr` on the target's trials alone; Law et al. 2019.

It is the paper's noneBLR. Notation of `dist_blr`: Y = v(theta), (n, D), v a network of three layers
of tanh units, z (n,) standardized scores;

    z | beta ~ N(Y beta, noise I),   beta ~ N(0, alpha I),

network, alpha and noise trained together on the marginal likelihood with their log priors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sktransfer.surrogates._core.linear_regression import LinearRegression
from sktransfer.surrogates._core.network_inputs import Inputs
from sktransfer.surrogates._core.training import train
from sktransfer.surrogates.base import EncodedTask, Surrogate
from sktransfer.surrogates.dist_blr import ALPHA
from sktransfer.surrogates.reference.dngo import NOISE, HeadPosterior
from sktransfer.utils._networks import Network, forward
from sktransfer.utils._scores import standardize
from sktransfer.utils._torch import tensor, torch_context


class TargetBLR(Surrogate):
    """Bayesian linear regression on a network, trained on the target's own trials.

    It uses no past tasks. Unlike `DNGO`, it trains the network on the marginal likelihood, as
    `DistBLR` does. It serves for comparison.

    Parameters
    ----------
    layers : tuple of int
        Units of the network's tanh layers. The last is the number D of features.
    steps, learning_rate : int, float
        Adam steps and their rate.
    winsorize : bool
        Whether scores far below the median are raised before they are standardized. The paper does
        not.
    n_initial : int
        Space-filling trials before the model is used.
    random_state : int
        Seed of the initial weights.

    Examples
    --------
    >>> theta = np.array([[0.1], [0.5], [0.9]])
    >>> target = EncodedTask(theta, np.array([0.2, 0.9, 0.3]), np.array([False]))
    >>> mean, std = TargetBLR().fit([]).posterior(target).predict(np.array([[0.5], [0.0]]))
    >>> bool(mean[0] > mean[1])
    True
    """

    def __init__(
        self,
        layers: tuple[int, ...] = (50, 50, 50),
        steps: int = 100,
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

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> TargetBLR:
        """Check the parameters. Nothing is learned from past tasks."""
        super().fit(tasks, warm_from)
        return self

    def posterior(self, target: EncodedTask) -> HeadPosterior | None:
        """Train on the target's trials; None without trials."""
        if not len(target.z):
            return None
        z, shift, scale = standardize(target.z, winsorize=self.winsorize)
        inputs = Inputs.from_codes(target.theta, target.categorical)
        x, z_t = tensor(inputs(target.theta)), tensor(z)
        network = Network([inputs.width, *self.layers], np.random.default_rng(self.random_state))
        log_alpha, log_noise = (
            tensor(np.array(np.log(prior.median))).requires_grad_(True) for prior in (ALPHA, NOISE)
        )

        def regression() -> LinearRegression:
            Y = forward(x, network.weights, activate_last=True)
            return LinearRegression(Y, z_t, torch.exp(-log_alpha), torch.exp(-log_noise))

        def loss() -> torch.Tensor:
            log_prior = ALPHA.log_density(log_alpha) + NOISE.log_density(log_noise)
            return regression().loss() + network.penalty() - log_prior

        own = [*network.weights, log_alpha, log_noise]
        with torch_context():
            train(loss, [(own, self.learning_rate)], self.steps)
            with torch.no_grad():
                weights = [weight.detach() for weight in network.weights]
                return HeadPosterior(inputs, weights, regression(), shift, scale)
