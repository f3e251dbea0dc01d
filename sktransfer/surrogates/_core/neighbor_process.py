"""`NeighborProcess`: a Gaussian process with the kernel MKL of Yogatama & Mann 2014, section 3.4.

Notation of `common_surface`: trials of the target and of its nearest tasks, theta (n, d), owner
(n,) the number of each trial's task; z (n,) comparable scores.

    K = s (w1 exp(-|theta - theta'|²_l / 2) [same task] + w2 (1 - |theta - theta'| / B)) + v I
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.defaults import JOINT_JITTER
from sktransfer.surrogates._core.gaussian_process import whiten
from sktransfer.surrogates._core.kernels import kernel_matrix
from sktransfer.surrogates._core.neighbor_kernel import neighbor_covariance
from sktransfer.surrogates.base import Posterior
from sktransfer.utils._torch import tensor

MKL_WEIGHTS = (0.3, 0.7)
N_NEIGHBORS = 20
_MIN_VARIANCE = 1e-10


class NeighborProcess(Posterior):
    """Posterior of the target's scores.

    Parameters
    ----------
    theta, z, owner : ndarray of shape (n, d), (n,), (n,)
    target : int
        Number of the target among the owners; any other number if it has no trials.
    h : ndarray of shape (d + 2,)
        Logarithms of the lengthscales of the first kernel, signal and noise variance.
    categorical : ndarray of bool, shape (d,)
    shift, scale : float
        They turn z back into scores, ``shift + scale * z``.
    """

    def __init__(
        self,
        theta: np.ndarray,
        z: np.ndarray,
        owner: np.ndarray,
        target: int,
        h: np.ndarray,
        categorical: np.ndarray,
        *,
        shift: float = 0.0,
        scale: float = 1.0,
    ):
        self.theta, self.categorical, self.shift, self.scale = theta, categorical, shift, scale
        self._lengths, self._signal, self._noise = np.exp(h[:-2]), np.exp(h[-2]), np.exp(h[-1])
        self._is_target = owner == target
        K = self._covariance(theta, theta, owner[:, None] == owner)
        self._L = np.linalg.cholesky(K + (self._noise + JOINT_JITTER) * np.eye(len(z)))
        self._a = whiten(self._L, whiten(self._L, z), transposed=True)

    def _covariance(self, A: np.ndarray, B: np.ndarray, same_task: np.ndarray | bool) -> np.ndarray:
        """(n, d), (m, d) -> (n, m)."""
        w1, w2 = MKL_WEIGHTS
        own = kernel_matrix(A, B, self._lengths, self.categorical, "se") * same_task
        shared = neighbor_covariance(tensor(A), tensor(B), self.categorical).numpy()
        return self._signal * (w1 * own + w2 * shared)

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, variances, and covariances with the anchors, on the scale of z.

        (n, d), (k, d) -> (n,), (n,), (n, k)
        """
        k, other = (
            self._covariance(each, self.theta, self._is_target) for each in (theta, anchors)
        )
        white, white_other = whiten(self._L, k.T), whiten(self._L, other.T)
        variance = np.maximum(self._signal - (white * white).sum(axis=0), _MIN_VARIANCE)
        joint = self._covariance(theta, anchors, True) - white.T @ white_other
        return k @ self._a, variance, joint

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the noise-free score; (m, d) -> (m,), (m,)."""
        mean, variance, _ = self.moments(theta, theta[:0])
        return self.shift + self.scale * mean, self.scale * np.sqrt(variance)

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the noise-free score; (m, d) -> (n, m)."""
        mean, _, joint = self.moments(theta, theta)
        values, vectors = np.linalg.eigh(joint)
        root = vectors * np.sqrt(np.maximum(values, 0))
        return self.shift + self.scale * (mean + rng.standard_normal((n, len(theta))) @ root.T)
