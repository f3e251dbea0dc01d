"""`CommonSurface`: one response surface for all tasks; Yogatama & Mann 2014.

Notation: m past tasks, N trials in all, theta (N, d); f a trial's score, mu and sigma the running
mean and standard deviation of its own task's scores (a sigma of 0 counts as 1); x (3,) a task's
data features.

    y = (f - mu) / sigma                                                        (section 3.2)

is one function for all tasks, a Gaussian process with noise variance v and covariance s K, where

    "sqe"   K = exp(-|theta - theta'|²_l / 2) exp(-|x - x'|²_q / 2),  lengthscales l (d,), q (3,)
    "mkl"   K = w1 exp(-|theta - theta'|²_l / 2) [same task]
              + w2 (1 - |theta - theta'| / B) [both near the target]  (section 3.4)

with w = (0.3, 0.7); the target and its 20 nearest tasks are near. Both are sums of products of a
kernel of configurations and one of tasks. Those of tasks are positive semi-definite: [same task] is
a block matrix of ones, and the last factor is g g' for the vector g of ones and zeros (the paper's,
which only depends on the second trial, is not even symmetric). For 1 - |.| / B see
`neighbor_kernel`. Hence so are the products (Schur) and their sum.

Trials of tasks that are not near have covariance 0 with all others and drop out exactly. So "mkl"
conditions only on the P trials of the nearest tasks. Past tasks do not change: their y
are computed once, and their (P, P) block is factorized once for a target. A new trial of the target
changes only mu, sigma and its own rows. Finding the nearest tasks is linear in m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.defaults import JOINT_JITTER, WARM_SHARE
from sktransfer.surrogates._core.gaussian_process import LogNormal
from sktransfer.surrogates._core.model_averaging import average_posteriors, plain_evidence
from sktransfer.surrogates._core.neighbor_kernel import neighbor_covariance
from sktransfer.surrogates._core.past_trials import Level, PastTrials
from sktransfer.surrogates._core.size_features import NAMES, DataFeatures, describe_features
from sktransfer.surrogates._core.torch_kernels import (
    TORCH_KERNELS,
    log_likelihood,
    scaled_distances,
    squared_differences,
)
from sktransfer.surrogates._core.training import train
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.surrogates.gp import GP, default_priors
from sktransfer.utils._scores import standardize
from sktransfer.utils._torch import eye, tensor, torch_context

NOISE = LogNormal(0.05, 1.5)  # prior of v
TASK_LENGTHSCALE = LogNormal(0.5, 1.0)  # prior of q
LEARNING_RATE = 0.05
BATCH_TASKS = 20  # in a training step, with "sqe"


class CommonSurface(TransferSurrogate):
    """One Gaussian process on the standardized scores of all tasks.

    It needs trials of past tasks, and of their data only the numbers of rows, columns and classes.
    Tasks without these count as average. Training is O(steps max_batch³), then linear in the past
    trials. Adding a trial is linear in the past tasks, and O(max_trials²) for each candidate.
    Prefer it if the archive is large or knows little about the data, and the tasks have surfaces of
    the same shape.

    Parameters
    ----------
    kernel : {"mkl", "sqe"}
        "mkl" uses the nearest tasks with equal weights, "sqe" uses all by their distance.
    n_neighbors : int
        Number of tasks that "mkl" uses.
    weights : tuple of two floats
        Weights of the target's own kernel and of the one it shares with its neighbors, with "mkl".
    scale : {"inferred", "running"}
        Mean and standard deviation of the target's scores. "running" uses those of its trials so
        far, as the paper does. "inferred" estimates both from the trials and the past tasks,
        because the trials are few and not random.
    redraw : float
        Probability that each coordinate of a proposal after the first is redrawn at random, so that
        the running mean is not that of good settings only (section 4.3).
    guard : bool
        Whether to average with a plain GP, weighted by how well each predicted the target's scores.
        The paper does not.
    winsorize : bool
        Whether scores far below the median are raised (`clip_low_outliers`) before they are
        standardized. The paper does not.
    steps, max_batch : int
        Number of Adam steps for the hyperparameters, and of trials in each.
    max_trials : int
        Maximum number of past trials to condition on; see `PastTrials.representative_trials`.
    n_initial : int
        Space-filling trials if there are no past ones.
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.random.default_rng(0).random((20, 1))
    >>> past = EncodedTask(theta, 100 - abs(theta[:, 0] - 0.3), np.array([False]), id="a")
    >>> surrogate = CommonSurface(steps=20).fit([past])
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> mean, std = surrogate.posterior(target).predict(np.array([[0.3], [0.9]]))
    >>> bool(mean[0] > mean[1]), surrogate.similarity(target).round(2).tolist()
    (True, [0.7])
    """

    fallback_: GP

    def __init__(
        self,
        kernel: str = "mkl",
        n_neighbors: int = 20,
        weights: tuple[float, float] = (0.3, 0.7),
        scale: str = "inferred",
        redraw: float = 0.25,
        guard: bool = True,
        winsorize: bool = True,
        steps: int = 100,
        max_batch: int = 150,
        max_trials: int = 600,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.scale = scale
        self.redraw = redraw
        self.guard = guard
        self.winsorize = winsorize
        self.steps = steps
        self.max_batch = max_batch
        self.max_trials = max_trials
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        if self.kernel not in ("mkl", "sqe"):
            raise ValueError(f"kernel={self.kernel!r} must be 'mkl' or 'sqe'.")
        if self.scale not in ("inferred", "running"):
            raise ValueError(f"scale={self.scale!r} must be 'inferred' or 'running'.")
        for name in ("n_neighbors", "max_batch", "max_trials"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least 1.")
        if len(self.weights) != 2 or min(self.weights) < 0 or not sum(self.weights) > 0:
            raise ValueError(
                f"weights={self.weights!r} must be two numbers, not negative and not both 0."
            )
        if not 0 <= self.redraw <= 1:
            raise ValueError(f"redraw={self.redraw!r} must be a probability.")

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._surface_cache: tuple[np.ndarray, np.ndarray, _Surface] | None = None

    # -- the surface ---------------------------------------------------------------------------

    def _gram(
        self, A: torch.Tensor, B: torch.Tensor, task_kernels: Sequence[torch.Tensor | float]
    ) -> torch.Tensor:
        """s K without noise, given the kernels of tasks; -> (n, m)."""
        signal = torch.exp(self.trained_["signal"])
        if self.kernel == "sqe":
            return signal * self._own_kernel(A, B) * task_kernels[0]
        w1, w2 = (weight / sum(self.weights) for weight in self.weights)
        K = w2 * neighbor_covariance(A, B, self.past_.categorical) * task_kernels[1]
        if isinstance(task_kernels[0], torch.Tensor) or task_kernels[0]:
            K = K + w1 * self._own_kernel(A, B) * task_kernels[0]
        return signal * K

    def _own_kernel(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """exp(-|theta - theta'|²_l / 2); -> (n, m)."""
        inverse, categorical = torch.exp(-2 * self.trained_["theta"]), self.past_.categorical
        if torch.is_grad_enabled():  # the faster one has no derivative at equal rows
            return TORCH_KERNELS["se"](squared_differences(A, B, categorical) @ inverse)
        return TORCH_KERNELS["se"](scaled_distances(A, B, inverse, categorical))

    def _between(self, tasks: np.ndarray, others: np.ndarray) -> list[torch.Tensor]:
        """The kernels of the tasks of two lists of trials; -> (n, m) each."""
        if self.kernel == "mkl":
            return [tensor(tasks[:, None] == others), tensor(np.ones((len(tasks), len(others))))]
        rows, i = np.unique(tasks, return_inverse=True)
        columns, j = np.unique(others, return_inverse=True)
        x, y = (tensor(self.learned_["features"][each]) for each in (rows, columns))
        return [self._feature_kernel(x, y)[torch.from_numpy(i)][:, torch.from_numpy(j)]]

    def _feature_kernel(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """(n, 3), (m, 3) -> (n, m)."""
        numbers = np.zeros(x.shape[1], dtype=bool)
        return TORCH_KERNELS["se"](
            squared_differences(x, y, numbers) @ torch.exp(-2 * self.trained_["features"])
        )

    # -- training ------------------------------------------------------------------------------

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        profiles = [task.profile for task in tasks]
        features, d = DataFeatures.from_profiles(profiles), self.past_.theta.shape[1]
        self.learned_ = {
            "low": features.low,
            "high": features.high,
            "features": features.table(profiles),
        }
        self.learned_["basis"] = np.array([describe_features(each) for each in profiles], dtype=str)
        priors = default_priors(d)
        self.trained_ = {
            "theta": tensor(np.full(d, np.log(priors.lengthscale.median))),
            "signal": tensor(np.zeros(())),
            "noise": tensor(np.array(np.log(NOISE.median))),
        }
        if self.kernel == "sqe":
            self.trained_["features"] = tensor(np.full(len(NAMES), np.log(TASK_LENGTHSCALE.median)))
        for weight in self.trained_.values():
            weight.requires_grad_(True)
        steps = round(self.steps * WARM_SHARE) if self._start_from(warm_from) else self.steps
        rng = np.random.default_rng(self.random_state)
        train(lambda: self._loss(rng), [(list(self.trained_.values()), LEARNING_RATE)], steps)
        if len(self.past_.z) > self.max_trials:
            lengthscales = np.exp(self.trained_["theta"].detach().numpy())
            self.learned_["order"] = self.past_.farthest_point_order(lengthscales)

    def _loss(self, rng: np.random.Generator) -> torch.Tensor:
        """Negative log posterior of the hyperparameters, from the trials of a few tasks."""
        past, own = self.past_, self.trained_
        rows = self._batch(rng)
        theta, owner = tensor(past.theta[rows]), past.owner[rows]
        K = self._gram(theta, theta, self._between(owner, owner))
        noise = torch.exp(own["noise"]) + JOINT_JITTER
        value = -log_likelihood(K + noise * eye(len(rows)), tensor(past.z[rows]))
        priors = default_priors(past.theta.shape[1])
        log_prior = (
            priors.lengthscale.log_density(own["theta"])
            + priors.signal.log_density(own["signal"])
            + NOISE.log_density(own["noise"])
        )
        if self.kernel == "sqe":
            log_prior = log_prior + TASK_LENGTHSCALE.log_density(own["features"])
        return len(past.z) / len(rows) * value - log_prior

    def _batch(self, rng: np.random.Generator) -> np.ndarray:
        """Rows of a task and its neighbors ("mkl"), or of random tasks ("sqe"), evenly."""
        past, features = self.past_, self.learned_["features"]
        if self.kernel == "mkl":
            chosen = self._nearest(features[rng.integers(len(past))])
        else:
            chosen = rng.permutation(len(past))[:BATCH_TASKS]
        starts = np.searchsorted(past.owner, [chosen, chosen + 1])
        quota = max(2, self.max_batch // len(chosen))
        drawn = [
            start + rng.permutation(end - start)[:quota] for start, end in zip(*starts, strict=True)
        ]
        return np.sort(np.concatenate(drawn)[: self.max_batch])

    def _nearest(self, x: np.ndarray) -> np.ndarray:
        """The `n_neighbors` tasks with the nearest data features, nearest first."""
        squares = ((self.learned_["features"] - x) ** 2).sum(axis=1)
        return np.argsort(squares, kind="stable")[: self.n_neighbors]

    # -- the target ----------------------------------------------------------------------------

    def hints(self, target: EncodedTask) -> SearchHints:
        """Coordinates are redrawn only if there are past tasks."""
        hints = super().hints(target)
        return replace(hints, redraw=self.redraw) if self._has_past else hints

    def posterior(self, target: EncodedTask) -> Posterior:
        """The common surface given the target's trials, averaged with a plain GP."""
        if not self._has_past:
            return self.fallback_.posterior(target)
        similarity = self._similarity_to(target)
        prior = self._surface(similarity)
        z, shift, scale = standardize(target.z, winsorize=self.winsorize)
        y = shift + scale * z
        level = self.past_.level(similarity, np.ones(len(similarity), dtype=bool), target.z)
        trials = (target.theta, y)
        inferred = posterior = ConditionedPosterior(prior, *trials, level, target.std_error)
        if not len(y):
            return inferred
        if self.scale == "running":
            own = Level(shift, 0.0, math.log(scale), 0.0)
            posterior = ConditionedPosterior(prior, *trials, own, target.std_error)
        if not self.guard:
            return posterior
        plain = self.fallback_.posterior(target)
        # Both evidences are those of scores whose mean and deviation are unknown.
        evidence = plain_evidence(plain, *trials, level, target.std_error)
        return average_posteriors(posterior, plain, inferred.log_evidence - evidence)

    def _surface(self, similarity: np.ndarray) -> _Surface:
        """The process given the past trials. It is cached: the next trial needs the same."""
        rows = self._conditioning_rows(similarity)
        cached = self._surface_cache
        if cached is None or not (
            np.array_equal(cached[0], rows) and np.array_equal(cached[1], similarity)
        ):
            cached = self._surface_cache = (rows, similarity, _Surface(self, rows, similarity))
        return cached[2]

    def _conditioning_rows(self, similarity: np.ndarray) -> np.ndarray:
        return self.past_.representative_trials(
            similarity, similarity > 0, self.max_trials, self.learned_.get("order")
        )

    def _similarity_to(self, target: EncodedTask) -> np.ndarray:
        """Prior correlation of the target's and each task's score of one setting; -> (m,)."""
        x = DataFeatures(self.learned_["low"], self.learned_["high"])(target.profile)
        if self.kernel == "mkl":
            similarity = np.zeros(len(self.past_))
            similarity[self._nearest(x)] = self.weights[1] / sum(self.weights)
            return similarity
        with torch.no_grad(), torch_context():
            kernel = self._feature_kernel(tensor(x[None]), tensor(self.learned_["features"]))
            return kernel[0].numpy()

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """Prior correlation of the scores of one setting; with "mkl" equal for all neighbors."""
        return self._scatter(self._similarity_to(target) if self._has_past else np.empty(0))

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each task was compared by, and how many of its trials were used."""
        if not self._has_past:
            return self._scatter_text([])
        texts = list(self.learned_["basis"])
        if target.profile is None:
            texts = [f"{describe_features(None)} (target)"] * len(texts)
        return self._scatter_text(
            self.past_.describe_usage(texts, self._conditioning_rows(self._similarity_to(target)))
        )


class _Surface:
    """The process at the target, conditioned on past trials: the prior of its own."""

    @torch.no_grad()
    def __init__(self, model: CommonSurface, rows: np.ndarray, similarity: np.ndarray):
        self._model, past = model, model.past_
        self._theta, owner = tensor(past.theta[rows]), past.owner[rows]
        self.noise = float(torch.exp(model.trained_["noise"]))
        # Kernels of tasks between the target and the past tasks: not the same task, near.
        self._task_kernels: list = (
            [0.0, 1.0] if model.kernel == "mkl" else [tensor(similarity[owner])]
        )
        with torch_context():
            K = model._gram(self._theta, self._theta, model._between(owner, owner))
            self._L = torch.linalg.cholesky(K + (self.noise + JOINT_JITTER) * eye(len(rows)))
            self._a = torch.cholesky_solve(tensor(past.z[rows])[:, None], self._L)[:, 0]
        self._anchors: tuple[np.ndarray, torch.Tensor] | None = None

    @torch.no_grad()
    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means, variances, and covariances with the anchors, as in `Prior`."""
        with torch_context():
            k, white = self._whiten(theta)
            if self._anchors is None or self._anchors[0] is not anchors:
                self._anchors = (anchors, self._whiten(anchors)[1])
            signal = torch.exp(self._model.trained_["signal"])  # both kernels are 1 on the diagonal
            variance = (signal - (white * white).sum(0)).clamp_min(1e-10)
            prior = self._model._gram(tensor(theta), tensor(anchors), [1.0, 1.0])
            covariance = prior - white.T @ self._anchors[1]
            return (k @ self._a).numpy(), variance.numpy(), covariance.numpy()

    def _whiten(self, theta: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Covariance with the past trials, and L^-1 times it; (n, P), (P, n)."""
        k = self._model._gram(tensor(theta), self._theta, self._task_kernels)
        return k, torch.linalg.solve_triangular(self._L, k.T, upper=False)
