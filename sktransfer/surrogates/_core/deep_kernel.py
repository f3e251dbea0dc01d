"""A Gaussian process on a network that reads the trials so far: equations (3) to (5) of `dklm`.

Notation as there. Weights are matrices by name: f, g, phi with a number, matrix and bias (one row)
in turn, and h = log [l, s, v] (one row). With a prior there is also x, the log lengthscales of the
inputs (one row), and the last output of phi is the mean. Functions take one task, or a stack of
tasks with weights of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from sktransfer.surrogates._core.defaults import JOINT_JITTER
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.network_inputs import Inputs
from sktransfer.surrogates._core.torch_kernels import TORCH_KERNELS
from sktransfer.surrogates.base import Posterior
from sktransfer.utils._networks import forward
from sktransfer.utils._torch import tensor, torch_context

MAX_SETS = 8  # sets of earlier trials that later ones are predicted from
SCALES = np.exp(np.linspace(-3, 3, 25))  # of a target's signal and noise, relative to past tasks
NOISES = np.array([0.1, 1.0, 10.0, 100.0])  # additional factors of its noise
SCALE_SPREAD, NOISE_SPREAD = 0.7, 1.5  # prior deviations of their logarithms
MAX_SCORE = 10.0  # input of f, because extreme scores would make the features overflow
LEVEL_VARIANCE = 1.0  # of the common offset of a target's scores from the mean

Weights = dict[str, torch.Tensor]


class Trials(NamedTuple):
    """Trials of one task, or of a stack of tasks padded to one length."""

    x: torch.Tensor  # (..., n, p)
    z: torch.Tensor  # (..., n)
    mask: torch.Tensor  # (..., n), 1 for a trial, 0 for padding


class DeepGP(Posterior):
    """A Gaussian process on the features of configurations, given the trials so far.

    If `by_trial`, the features of a trial read the trials before it only, those of a new
    configuration all of them.
    """

    def __init__(
        self,
        w: Weights,
        inputs: Inputs,
        trials: Trials,
        shift: float,
        scale: float,
        by_trial: bool = False,
    ):
        self._w, self._inputs, self._trials = w, inputs, trials
        _, s, v = w["h"][0].detach().numpy()
        X, mean = self._map(trials.x, by_trial)
        h = np.array([0.0] * X.shape[1] + [s, np.logaddexp(v, np.log(JOINT_JITTER))])
        b = expected_level(w, trials)
        residuals = trials.z.numpy() - mean - b
        numeric = np.zeros(X.shape[1], bool)
        self.gp = GaussianProcess(X, residuals, h, numeric, shift=shift + scale * b, scale=scale)

    @torch.no_grad()
    def _map(self, x: torch.Tensor, by_trial: bool = False) -> tuple[np.ndarray, np.ndarray]:
        with torch_context():
            Y, mean = embed(self._w, x, None if by_trial else self._trials, self._trials)
        return Y.numpy(), mean.numpy()

    def _embed(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs of the kernel, and prior means; (n, d) -> (n, k), (n,)."""
        return self._map(tensor(self._inputs(theta)))

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the noise-free score; (n, d) -> (n,), (n,)."""
        X, prior_mean = self._embed(theta)
        mean, std = self.gp.predict(X)
        return mean + self.gp.scale * prior_mean, std

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the noise-free score; (m, d) -> (n, m)."""
        X, prior_mean = self._embed(theta)
        return self.gp.sample(X, n, rng) + self.gp.scale * prior_mean


def landmarks(w: Weights, seen: Trials) -> torch.Tensor:
    """phi2 of (5); g(0) for the empty set; -> (..., 1, q)."""
    z = seen.z.clamp(-MAX_SCORE, MAX_SCORE)[..., None]
    units = forward(torch.cat([seen.x, z], -1), _part(w, "f"), torch.relu, activate_last=True)
    total = (units * seen.mask[..., None]).sum(-2, keepdim=True)
    count = seen.mask.sum(-1)[..., None, None].clamp_min(1)
    return forward(total / count, _part(w, "g"), torch.relu)


def landmarks_by_trial(w: Weights, trials: Trials) -> torch.Tensor:
    """phi2 of the trials before each one, the H^(t-1) of (7); -> (..., n, q)."""
    z = trials.z.clamp(-MAX_SCORE, MAX_SCORE)[..., None]
    units = forward(torch.cat([trials.x, z], -1), _part(w, "f"), torch.relu, activate_last=True)
    units = units * trials.mask[..., None]
    before = units.cumsum(-2) - units
    count = (trials.mask.cumsum(-1) - trials.mask).clamp_min(1)[..., None]
    return forward(before / count, _part(w, "g"), torch.relu)


def features(
    w: Weights, x: torch.Tensor, seen: Trials | None, trials: Trials | None = None
) -> torch.Tensor:
    """phi of (4); (..., n, p) -> (..., n, M), or M + 1 with a prior.

    Without `seen`, x are those of `trials`, and each reads the trials before it.
    """
    if "g00" in w:
        if seen is None:
            assert trials is not None
            task = landmarks_by_trial(w, trials)
        else:
            task = landmarks(w, seen)
        x = torch.cat([x, task.expand(*x.shape[:-1], task.shape[-1])], -1)
    return forward(x, _part(w, "phi"), torch.relu)


def embed(
    w: Weights, x: torch.Tensor, seen: Trials | None, trials: Trials | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled inputs of the kernel, and prior means; -> (..., n, k), (..., n).

    With a prior they include x beside phi: settings that are equivalent on past tasks, so that phi
    is the same, may differ on the target.
    """
    Y, l = features(w, x, seen, trials), torch.exp(w["h"][..., :1])  # noqa: E741
    if "x" not in w:
        return Y / l, torch.zeros_like(Y[..., 0])
    return torch.cat([Y[..., :-1] / l, x / torch.exp(w["x"])], -1), Y[..., -1]


def prior_moments(
    w: Weights, batch: Trials, seen: Trials | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and K of (3); padding has mean 0 and unit rows; -> (..., n), (..., n, n).

    Without `seen`, each trial of the batch reads those before it, as in (7).
    """
    Y, mean = embed(w, batch.x, seen, batch)
    _, s, v = torch.exp(w["h"]).unbind(-1)
    squares = (Y * Y).sum(-1)
    r2 = (squares[..., :, None] + squares[..., None, :] - 2 * Y @ Y.mT).clamp_min(0)
    both = batch.mask[..., :, None] * batch.mask[..., None, :]
    diagonal = batch.mask * (v + JOINT_JITTER) + (1 - batch.mask)
    K = s[..., None] * TORCH_KERNELS["matern52"](r2) + (LEVEL_VARIANCE if "x" in w else 0.0)
    return mean * batch.mask, K * both + torch.diag_embed(diagonal)


@torch.no_grad()
def expected_level(w: Weights, trials: Trials) -> float:
    """Expected common offset of the scores from the mean, given the trials; 0 without a prior.

    Scores are standardized by the target's own trials, and a search chooses better trials than the
    past tasks had.
    """
    if "x" not in w:
        return 0.0
    mean, K = prior_moments(w, trials, trials)
    return float(LEVEL_VARIANCE * torch.linalg.solve(K, trials.z - mean).sum())


@torch.no_grad()
def fit_scale(w: Weights, trials: Trials) -> tuple[Weights, float]:
    """Weights with the target's own signal and noise, and log p(z, signal, noise) up to a constant.

    A target may be more or less noisy than the past tasks, and its scale is estimated from few
    trials. This mismatch says nothing about the features, and the plain GP that they are compared
    with is fitted as well.
    """
    found = []
    for noise in NOISES:
        h = w["h"] + tensor(np.log([1.0, 1.0, noise]))
        errors, stds = sequential_errors({**w, "h": h}, trials)
        # With signal, noise and level c times as large, errors in deviations are 1 / sqrt(c) as
        # large.
        evidence = -0.5 * (errors @ errors / SCALES + len(errors) * np.log(SCALES))
        evidence -= np.log(stds).sum()
        log_prior = -0.5 * (np.log(SCALES) / SCALE_SPREAD) ** 2
        evidence += log_prior - 0.5 * (np.log(noise) / NOISE_SPREAD) ** 2
        best = int(evidence.argmax())
        scale = np.log(SCALES[best])
        found.append((float(evidence[best]), {**w, "h": h + tensor([0.0, scale, scale])}))
    evidence, fit = max(found, key=lambda each: each[0])
    return fit, evidence


@torch.no_grad()
def sequential_errors(w: Weights, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the predicted scores in standard deviations, and these; (n,), (n,).

    Each score is predicted from the trials before it, which are its set H (the H^(t-1) of (7)),
    because a kernel that has read a score does not predict it. If there are many trials, some share
    the set of those before the first of them.
    """
    n = len(trials.z)
    sets = min(n, MAX_SETS) if "g00" in w else 1
    first = np.unique(np.linspace(0, n, sets, endpoint=False).astype(int))
    earlier = tensor(np.arange(n) < first[:, None])  # (k, n)
    x, z = trials.x.expand(len(first), -1, -1), trials.z.expand(len(first), -1)
    mean, K = prior_moments(w, Trials(x, z, torch.ones_like(earlier)), Trials(x, z, earlier))
    L = torch.linalg.cholesky(K)
    # Row t of L^-1 (z - mean) is the error of score t given those before it, in deviations L_tt.
    white = torch.linalg.solve_triangular(L, (z - mean)[..., None], upper=False)[..., 0]
    set_of_trial = np.searchsorted(first, np.arange(n), side="right") - 1
    stds = torch.diagonal(L, dim1=-2, dim2=-1)
    return white[set_of_trial, np.arange(n)].numpy(), stds[set_of_trial, np.arange(n)].numpy()


def _part(w: Weights, name: str) -> list[torch.Tensor]:
    return [w[key] for key in sorted(w) if key.rstrip("0123456789") == name]
