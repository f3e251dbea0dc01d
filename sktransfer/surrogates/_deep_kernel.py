"""A Gaussian process on a network that reads the trials seen so far: equations (3) to (5) of `dklm`.

Notation as there. Weights are matrices by name: f, g, phi with a number, matrix and bias (one row) in turn,
and h = log [l, s, v] (one row). Functions take one task, or a stack of tasks with weights of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from sktransfer._torch import single_thread, tensor
from sktransfer.encoders._network import forward
from sktransfer.surrogates._gp_core import KERNELS, GaussianProcess
from sktransfer.surrogates._inputs import Inputs

MAX_SETS = 32  # of trials before, in the evidence
MAX_SCORE = 10.0  # that f reads: one far off the scale of the past would make the features overflow
JITTER = 1e-6

Weights = dict[str, torch.Tensor]


class Trials(NamedTuple):
    """Trials of one task, or of a stack of tasks padded to one length."""

    x: torch.Tensor  # (..., n, p)
    z: torch.Tensor  # (..., n)
    here: torch.Tensor  # (..., n), 1 for a trial, 0 for padding


class DeepGP:
    """A Gaussian process on the features of configurations, given the trials seen."""

    def __init__(self, w: Weights, inputs: Inputs, trials: Trials, shift: float, scale: float):
        self._w, self._inputs, self._trials = w, inputs, trials
        l, s, v = w["h"][0].detach().numpy()  # noqa: E741
        X = self._map(trials.x)
        h = np.array([l] * X.shape[1] + [s, np.logaddexp(v, np.log(JITTER))])
        self.gp = GaussianProcess(
            X, trials.z.numpy(), h, np.zeros(X.shape[1], bool), shift=shift, scale=scale
        )

    @torch.no_grad()
    def _map(self, x: torch.Tensor) -> np.ndarray:
        with single_thread():
            return features(self._w, x, self._trials).numpy()

    def features(self, theta: np.ndarray) -> np.ndarray:
        """phi of configurations; (n, d) -> (n, M)."""
        return self._map(tensor(self._inputs(theta)))

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the noise-free score; (n, d) -> (n,), (n,)."""
        return self.gp.predict(self.features(theta))

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the noise-free score; (m, d) -> (n, m)."""
        return self.gp.sample(self.features(theta), n, rng)


def landmarks(w: Weights, seen: Trials) -> torch.Tensor:
    """phi2 (5); of the empty set, g(0); -> (..., 1, q)."""
    z = seen.z.clamp(-MAX_SCORE, MAX_SCORE)[..., None]
    units = forward(torch.cat([seen.x, z], -1), _part(w, "f"), torch.relu, activate_last=True)
    total = (units * seen.here[..., None]).sum(-2, keepdim=True)
    return forward(total / seen.here.sum(-1)[..., None, None].clamp_min(1), _part(w, "g"), torch.relu)


def features(w: Weights, x: torch.Tensor, seen: Trials) -> torch.Tensor:
    """phi (4); (..., n, p) -> (..., n, M)."""
    if "g00" in w:
        task = landmarks(w, seen)
        x = torch.cat([x, task.expand(*x.shape[:-1], task.shape[-1])], -1)
    return forward(x, _part(w, "phi"), torch.relu)


def covariance(w: Weights, batch: Trials, seen: Trials) -> torch.Tensor:
    """K (3); the rows of padding are those of the unit matrix; -> (..., n, n)."""
    Y = features(w, batch.x, seen)
    l, s, v = torch.exp(w["h"]).unbind(-1)  # noqa: E741
    Y = Y / l[..., None]
    squares = (Y * Y).sum(-1)
    r2 = (squares[..., :, None] + squares[..., None, :] - 2 * Y @ Y.mT).clamp_min(0)
    both = batch.here[..., :, None] * batch.here[..., None, :]
    diagonal = batch.here * (v + JITTER) + (1 - batch.here)
    return s[..., None] * KERNELS["matern52"](r2) * both + torch.diag_embed(diagonal)


@torch.no_grad()
def log_evidence(w: Weights, trials: Trials) -> float:
    """log p(z) by the weights that the past led to, up to a constant.

    Each score as foretold from the trials before it, which are its set H (the H^(t-1) of (7)): a kernel that
    has read a score does not foretell it. Of many trials some share the set of those before the first.
    """
    n = len(trials.z)
    sets = min(n, MAX_SETS) if "g00" in w else 1
    first = np.unique(np.linspace(0, n, sets, endpoint=False).astype(int))
    before = tensor(np.arange(n) < first[:, None])  # (k, n)
    x, z = trials.x.expand(len(first), -1, -1), trials.z.expand(len(first), -1)
    K = covariance(w, Trials(x, z, torch.ones_like(before)), Trials(x, z, before))
    L = torch.linalg.cholesky(K)
    # Row t of L^-1 z is the error of the t-th score, given those before it, in standard deviations L_tt.
    white = torch.linalg.solve_triangular(L, z[..., None], upper=False)[..., 0]
    errors = -0.5 * white * white - torch.log(torch.diagonal(L, dim1=-2, dim2=-1))
    its_set = np.searchsorted(first, np.arange(n), side="right") - 1
    return float(errors[its_set, np.arange(n)].sum())


def _part(w: Weights, name: str) -> list[torch.Tensor]:
    return [w[key] for key in sorted(w) if key.rstrip("0123456789") == name]
