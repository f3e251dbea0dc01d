"""`Bohamiann`: a Bayesian neural network, sampled; Springenberg et al. 2016. No transfer.

Notation: x (n, p) inputs of the target's n trials, z (n,) standardized scores; f(x; w) a network
with one output; t = [w, log s²] all that is sampled. K chains run in parallel: each weight has a
leading axis of K.

    U(t) = sum_i [(z_i - f(x_i; w))² / 2 s² + log s² / 2] - log p(w) - log p(s²)          (eq. 4)

Stochastic-gradient Hamiltonian Monte Carlo, with the scale adapted to each weight (section 4.2): V
is the running mean of the squared gradients, g that of the gradients, T the number of steps that
both average over,

    burn-in   T += 1 - g² T / V,   g += (grad U - g) / T,   V += (grad U² - V) / T   (eq. 8, 9)
    always    v += - e² V^-1/2 grad U - a v + N(0, 2 e² a V^-1/2),   t += v          (eq. 10)

with a = e V^-1/2 C = 0.05. The paper subtracts e⁴ from the variance of the noise, because
minibatches make the gradient noisy. Here all trials are in one batch. The paper runs one chain for
thousands of steps. Here several short chains start from draws of the prior, so that a proposal
takes less time than an evaluation. The spread of their predictions is that of the noise-free score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from sktransfer.surrogates._core.gaussian_process import LogNormal
from sktransfer.surrogates._core.network_inputs import Inputs
from sktransfer.surrogates.base import EncodedTask, Posterior, Surrogate
from sktransfer.utils._networks import Network, forward
from sktransfer.utils._scores import standardize
from sktransfer.utils._torch import tensor, torch_context

NOISE = LogNormal(0.01, 1.0)  # prior of s², for scores of unit variance
FRICTION = 0.05  # a


class Bohamiann(Surrogate):
    """A Bayesian neural network on the target's own trials, by Hamiltonian Monte Carlo.

    It uses no past tasks. The cost is linear in the trials. Each proposal samples again from the
    same seed, so that the posterior depends on the trials alone. It serves for comparison; prefer
    it to `GP` if scores jump, or for very many trials.

    Parameters
    ----------
    layers : tuple of int
        Units of the network's tanh layers.
    n_chains, n_samples : int
        Number of chains, each from its own draw of the prior, and networks kept of each.
    burn_in, thin : int
        Steps before the first kept network, and between two kept ones.
    step_size : float
        The e of the update.
    winsorize : bool
        Whether scores far below the median are raised (`clip_low_outliers`) before they are
        standardized. The paper does not.
    n_initial : int
        Space-filling trials before the model is used.
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.array([[0.1], [0.5], [0.9]])
    >>> target = EncodedTask(theta, np.array([0.2, 0.9, 0.3]), np.array([False]))
    >>> mean, std = Bohamiann().fit([]).posterior(target).predict(np.array([[0.5], [0.1]]))
    >>> bool(mean[0] > mean[1])
    True
    """

    def __init__(
        self,
        layers: tuple[int, ...] = (50, 50, 50),
        n_chains: int = 10,
        n_samples: int = 2,
        burn_in: int = 120,
        thin: int = 20,
        step_size: float = 0.02,
        winsorize: bool = True,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.layers = layers
        self.n_chains = n_chains
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.step_size = step_size
        self.winsorize = winsorize
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        if not self.layers or min(self.layers) < 1:
            raise ValueError(f"layers={self.layers!r} must be one or more numbers of units.")
        for name in ("n_chains", "n_samples", "burn_in", "thin"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least 1.")
        if self.n_chains * self.n_samples < 2:
            raise ValueError("n_chains * n_samples must be at least 2: one network has no spread.")
        if not 0 < self.step_size < 1:
            raise ValueError(f"step_size={self.step_size!r} must be between 0 and 1.")

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> Bohamiann:
        """Check the parameters. Nothing is learned from past tasks."""
        super().fit(tasks, warm_from)
        return self

    def posterior(self, target: EncodedTask) -> Networks | None:
        """Sample networks given the target's trials; None without trials."""
        if not len(target.z):
            return None
        z, shift, scale = standardize(target.z, winsorize=self.winsorize)
        inputs = Inputs.from_codes(target.theta, target.categorical)
        with torch_context():
            kept = self.sample_networks(tensor(inputs(target.theta)), tensor(z))
        return Networks(inputs, kept, shift, scale)

    def sample_networks(self, x: torch.Tensor, z: torch.Tensor) -> list[torch.Tensor]:
        """Weights of the kept networks, a matrix and a bias for each layer, with a leading axis."""
        rng = np.random.default_rng(self.random_state)
        shapes, t = _prior_draws([x.shape[1], *self.layers, 1], self.n_chains, rng)
        v, g = torch.zeros_like(t), torch.zeros_like(t)
        V, T = torch.ones_like(t), torch.ones_like(t)
        precisions = _prior_precisions(shapes)
        kept = []
        for step in range(1, self.burn_in + self.thin * (self.n_samples - 1) + 1):
            t.requires_grad_(True)
            (gradient,) = torch.autograd.grad(_energy(t, shapes, precisions, x, z), t)
            t = t.detach()
            if step <= self.burn_in:
                rate = 1 / T
                T += 1 - g * g * T / V
                g += rate * (gradient - g)
                V += rate * (gradient * gradient - V)
                # The squared gradients estimate the curvature, which is at least the prior's.
                # A gradient that is small by chance must not cause a giant step.
                V = torch.maximum(V, precisions)
            pace = self.step_size**2 / V.sqrt()
            noise = tensor(rng.standard_normal(t.shape))
            v = (1 - FRICTION) * v - pace * gradient + (2 * FRICTION * pace).sqrt() * noise
            t = t + v
            if step >= self.burn_in and (step - self.burn_in) % self.thin == 0:
                kept.append(t)
        return _split(torch.cat(kept), shapes)[:-1]


def _prior_draws(
    sizes: list[int], k: int, rng: np.random.Generator
) -> tuple[list[tuple[int, int]], torch.Tensor]:
    """Shapes of the weights and log s², and k draws of the weights, one per row; -> (k, P)."""
    draws = [[w.detach() for w in Network(sizes, rng).weights] for _ in range(k)]
    shapes = [(w.shape[0], w.shape[1]) if w.ndim == 2 else (1, len(w)) for w in draws[0]]
    noise = tensor([np.log(NOISE.median)])
    rows = [torch.cat([*(w.reshape(-1) for w in weights), noise]) for weights in draws]
    return [*shapes, (1, 1)], torch.stack(rows)


def _prior_precisions(shapes: list[tuple[int, int]]) -> torch.Tensor:
    """Prior precisions: number of inputs of a layer, 1 for biases and log s²; -> (P,)."""
    return tensor(np.concatenate([np.full(rows * columns, rows) for rows, columns in shapes]))


def _split(t: torch.Tensor, shapes: list[tuple[int, int]]) -> list[torch.Tensor]:
    """Split the rows into weights; (K, P) -> (K, inputs, units), or (K, 1, units) for biases."""
    parts = t.split([rows * columns for rows, columns in shapes], dim=1)
    return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]


def _energy(
    t: torch.Tensor,
    shapes: list[tuple[int, int]],
    precisions: torch.Tensor,
    x: torch.Tensor,
    z: torch.Tensor,
) -> torch.Tensor:
    """U of equation 4, summed over the independent chains."""
    *weights, log_noise = _split(t, shapes)
    error = z - forward(x, weights)[..., 0]  # (K, n)
    log_noise = log_noise[:, 0, 0]
    misfit = 0.5 * (error * error).sum(dim=1) / torch.exp(log_noise) + 0.5 * len(z) * log_noise
    prior = 0.5 * (precisions[:-1] * t[:, :-1] * t[:, :-1]).sum()
    return misfit.sum() + prior - NOISE.log_density(log_noise)


class Networks(Posterior):
    """Sampled networks as a posterior, in units of the score."""

    def __init__(
        self,
        inputs: Callable[[np.ndarray], np.ndarray],
        weights: list[torch.Tensor],
        shift: float,
        scale: float,
    ):
        self._inputs, self._weights, self.shift, self.scale = inputs, weights, shift, scale

    @torch.no_grad()
    def predict_all(self, theta: np.ndarray) -> np.ndarray:
        """Scores by each network; (m, d) -> (S, m)."""
        with torch_context():
            return forward(tensor(self._inputs(theta)), self._weights)[..., 0].numpy()

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation over the networks; (m, d) -> (m,), (m,)."""
        f = self.predict_all(theta)
        std = np.maximum(f.std(axis=0, ddof=1), 1e-6)
        return self.shift + self.scale * f.mean(axis=0), self.scale * std

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Functions drawn among the networks; (m, d) -> (n, m)."""
        f = self.predict_all(theta)
        return self.shift + self.scale * f[rng.integers(len(f), size=n)]
