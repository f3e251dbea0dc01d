"""`DistGP`: one Gaussian process over configurations and data sets; Law et al. 2019, section 4.2.

Notation as in `joint_surrogate`. The covariance of two trials (theta, D, s) and (theta', D', s') is

    C = nu k_theta(theta, theta') k_p([psi(D), s], [psi(D'), s']),   noise variance v,

both Matérn-3/2 with a lengthscale per column; k_p in [0, 1] is the similarity of the two data sets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sktransfer.encoders import Encoder
from sktransfer.surrogates._core.defaults import JOINT_JITTER
from sktransfer.surrogates._core.gaussian_process import LogNormal
from sktransfer.surrogates._core.joint_surrogate import JointSurrogate
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.torch_kernels import (
    TORCH_KERNELS,
    log_likelihood,
    scaled_distances,
    squared_differences,
)
from sktransfer.surrogates.base import EncodedTask, Surrogate
from sktransfer.surrogates.gp import default_priors
from sktransfer.utils._threads import single_threaded
from sktransfer.utils._torch import eye, tensor

NOISE = LogNormal(0.05, 1.5)  # prior of v


class DistGP(JointSurrogate):
    """Gaussian process on the product of configurations and data sets.

    It needs past tasks with a profile. The first trial maximizes the lower confidence bound, given
    past trials on similar data. Training costs O(steps max_batch³), a proposal O(max_trials²) for
    each candidate, for archives of any size. Prefer it up to some hundred past tasks. `DistBLR` is
    linear in all of their trials.

    Parameters
    ----------
    encoder : Encoder or None
        Turns a data set into a vector. None is ``PairEncoder()`` if past tasks kept rows, otherwise
        ``PretrainedEncoder()``. With ``ManualEncoder()`` it is the papers' manualGP, with
        ``TaskIndex()`` their multiGP.
    scores : {"standardize", "raw"}
        Whether to scale each task's scores to mean 0 and variance 1, or to assume one common scale.
    kernel : {"matern32", "matern52", "se"}
        Kernel of both factors.
    steps, learning_rate : int, float
        Number of Adam steps, and learning rate of the encoder. With few past tasks, longer or
        faster training overfits.
    max_batch : int
        Maximum number of trials in a training step. Of more, each step draws some of at least 20
        tasks.
    max_trials : int
        Maximum number of past trials to condition on; see `PastTrials.representative_trials`.
    relevance_spread : float
        Prior standard deviation of the log lengthscales of the vector's columns.
    guard : bool
        Whether to average with a plain GP, weighted by how well each predicted the target's scores.
        The paper does not.
    winsorize : bool
        Whether scores far below the median are raised (`clip_low_outliers`) before they are
        standardized. The paper does not.
    noise : {"shared", "task"}
        Whether all tasks have one noise variance, or each its own (footnote 5). Then that of the
        target is their geometric mean.
    n_initial : int
        Space-filling trials if there are no past ones.
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> from sktransfer import profile
    >>> from sktransfer.surrogates import EncodedTask
    >>> rng = np.random.default_rng(0)
    >>> theta, data = rng.random((10, 1)), profile(rng.random((20, 2)))
    >>> past = EncodedTask(theta, -abs(theta[:, 0] - 0.3), np.array([False]), data, "a")
    >>> surrogate = DistGP(steps=20).fit([past])
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]), data)
    >>> mean, std = surrogate.posterior(target).predict(np.array([[0.3], [0.9]]))
    >>> bool(mean[0] > mean[1]), surrogate.similarity(target).round(2).tolist()
    (True, [1.0])
    """

    def __init__(
        self,
        encoder: Encoder | None = None,
        scores: str = "standardize",
        kernel: str = "matern32",
        steps: int = 200,
        learning_rate: float = 0.002,
        max_batch: int = 150,
        relevance_spread: float = 1.0,
        max_trials: int = 600,
        guard: bool = True,
        winsorize: bool = True,
        noise: str = "shared",
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.encoder = encoder
        self.scores = scores
        self.kernel = kernel
        self.steps = steps
        self.learning_rate = learning_rate
        self.max_batch = max_batch
        self.max_trials = max_trials
        self.relevance_spread = relevance_spread
        self.guard = guard
        self.winsorize = winsorize
        self.noise = noise
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        super().check_params()
        if self.kernel not in TORCH_KERNELS:
            raise ValueError(
                f"kernel={self.kernel!r} is not known. Use one of {sorted(TORCH_KERNELS)}."
            )
        if self.noise not in ("shared", "task"):
            raise ValueError(f"noise={self.noise!r} must be 'shared' or 'task'.")
        if self.max_trials < 1:
            raise ValueError(f"max_trials={self.max_trials!r} must be at least 1.")

    def _setup(self, psi: np.ndarray, rng: np.random.Generator) -> None:
        d, q = self.past_.theta.shape[1], psi.shape[1]
        # The initial lengthscale is the typical distance of two tasks, whatever the units of psi.
        self.spread_ = max(float(np.sqrt(2 * psi.var(axis=0).sum())), 1e-3)
        self.trained_ = {
            "theta": tensor(np.log(np.full(d, default_priors(d).lengthscale.median))),
            "reach": tensor(np.array(np.log(self.spread_))),
            "psi": tensor(np.zeros(q)),
            "signal": tensor(np.zeros(())),
            "noise": tensor(np.full(self._noise_shape, np.log(NOISE.median))),
            "mean": tensor(np.zeros(())),
        }
        for weight in self.trained_.values():
            weight.requires_grad_(True)

    @property
    def _noise_shape(self) -> tuple[int, ...]:
        return (len(self.past_),) if self.noise == "task" else ()

    def _noise_of(self, tasks: np.ndarray) -> torch.Tensor:
        """Noise variances of trials of these tasks, (n,); one number if all tasks share it."""
        log_noise = self.trained_["noise"]
        return torch.exp(log_noise[torch.from_numpy(tasks)] if log_noise.ndim else log_noise)

    def _task_kernel(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        none = np.zeros(A.shape[1], dtype=bool)
        return TORCH_KERNELS[self.kernel](
            squared_differences(A, B, none)
            @ torch.exp(-2 * (self.trained_["reach"] + self.trained_["psi"]))
        )

    def _config_kernel(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        weights, categorical = torch.exp(-2 * self.trained_["theta"]), self.past_.categorical
        if torch.is_grad_enabled():  # the faster one has no derivative at equal rows
            return TORCH_KERNELS[self.kernel](squared_differences(A, B, categorical) @ weights)
        return TORCH_KERNELS[self.kernel](scaled_distances(A, B, weights, categorical))

    def _loss(
        self,
        theta: torch.Tensor,
        z: torch.Tensor,
        owner: np.ndarray,
        psi: torch.Tensor,
        numbers: np.ndarray,
    ) -> torch.Tensor:
        # (n, m) indicators: the gradient of a product is faster than that of indexing
        tasks = eye(len(psi))[torch.from_numpy(owner)]
        C = self._config_kernel(theta, theta) * (tasks @ self._task_kernel(psi, psi) @ tasks.T)
        noise = self._noise_of(numbers) + JOINT_JITTER
        K = torch.exp(self.trained_["signal"]) * C + noise * eye(len(z))
        return -log_likelihood(K, z - self.trained_["mean"])

    def _penalty(self) -> torch.Tensor:
        own, priors = self.trained_, default_priors(self.past_.theta.shape[1])
        log_prior = (
            priors.lengthscale.log_density(own["theta"])
            + LogNormal(self.spread_, 1.0).log_density(own["reach"])
            + LogNormal(1.0, self.relevance_spread).log_density(own["psi"])
            + priors.signal.log_density(own["signal"])
            + NOISE.log_density(own["noise"])
        )
        return -log_prior + 0.5 * own["mean"] ** 2

    # -- the target ----------------------------------------------------------------------------

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._factor_cache: tuple[np.ndarray, torch.Tensor] | None = None  # rows and their factor

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        super()._train(tasks, warm_from)
        if len(self.past_.z) > self.max_trials:
            lengths = np.exp(self.trained_["theta"].detach().numpy())
            self.learned_["order"] = self.past_.farthest_point_order(lengths)

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each past task was compared by, and how many of its trials were used."""
        texts, owner = super().similarity_basis(target), self.past_.owner
        psi = self._target_psi(target) if self._has_past and len(owner) > self.max_trials else None
        if psi is None:
            return texts
        return self.past_.describe_usage(texts, self._conditioning_rows(self._similarity_to(psi)))

    def _similarity_to(self, psi: np.ndarray) -> np.ndarray:
        with torch.no_grad(), single_threaded:
            return self._task_kernel(tensor(psi[None]), tensor(self.learned_["psi"]))[0].numpy()

    def _prior(self, psi: np.ndarray) -> _PastPrior:
        return _PastPrior(self, self._similarity_to(psi))

    def _root(self, rows: np.ndarray) -> torch.Tensor:
        """Cholesky factor of the covariance of some past trials, the same for every target."""
        if self._factor_cache is None or not np.array_equal(self._factor_cache[0], rows):
            tasks, owner = np.unique(self.past_.owner[rows], return_inverse=True)
            theta, psi = tensor(self.past_.theta[rows]), tensor(self.learned_["psi"][tasks])
            between = self._task_kernel(psi, psi)[owner][:, owner]
            K = torch.exp(self.trained_["signal"]) * self._config_kernel(theta, theta) * between
            noise = self._noise_of(self.past_.owner[rows]) + JOINT_JITTER
            self._factor_cache = rows, torch.linalg.cholesky(K + noise * eye(len(rows)))
        return self._factor_cache[1]

    def _conditioning_rows(self, similarity: np.ndarray) -> np.ndarray:
        # While the target's vector is searched for, each vector is tried on the same trials.
        if self.encoder_.needs_trials:
            similarity = np.ones(len(similarity))
        return self.past_.representative_trials(
            similarity, self.learned_["readable"], self.max_trials, self.learned_.get("order")
        )


class _PastPrior:
    """The process conditioned on past trials, at one data set."""

    @torch.no_grad()
    def __init__(self, model: DistGP, similarity: np.ndarray):
        self._model = model
        past, own = model.past_, model.trained_
        rows = model._conditioning_rows(similarity)
        self._theta = tensor(past.theta[rows])
        self._similarity = tensor(similarity[past.owner[rows]])
        self._signal = float(torch.exp(own["signal"]))
        self.noise = float(torch.exp(own["noise"].mean()))
        self._mean = float(own["mean"])
        with single_threaded:
            self._L = model._root(rows)
            z = tensor(past.z[rows] - self._mean)
            self._a = torch.cholesky_solve(z[:, None], self._L)[:, 0]
        self._anchors: tuple[np.ndarray, torch.Tensor] | None = None

    @torch.no_grad()
    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with single_threaded:
            k, white = self._whiten(theta)
            if self._anchors is None or self._anchors[0] is not anchors:
                self._anchors = (anchors, self._whiten(anchors)[1])
            mean = self._mean + k @ self._a
            variance = self._signal - (white * white).sum(0)
            prior = self._signal * self._model._config_kernel(tensor(theta), tensor(anchors))
            covariance = prior - white.T @ self._anchors[1]
        return mean.numpy(), variance.clamp_min(1e-10).numpy(), covariance.numpy()

    def _whiten(self, theta: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Covariance with the past trials, and L^-1 times it; (n, P), (P, n)."""
        k = self._model._config_kernel(tensor(theta), self._theta)
        k = k.mul_(self._signal).mul_(self._similarity)
        return k, torch.linalg.solve_triangular(self._L, k.T, upper=False)
