"""`CopulaGP`: a prior of Gaussian copula scores, a process on the residuals; Salinas et al. 2020.

Notation
--------
x (n, p)                   inputs of the network
z = psi(y)                 normal scores of one task's trials (section 3, `normal_scores`)
mu_w(x), sigma_w(x)        outputs of the network: z ~ N(mu_w(x), sigma_w(x)²) for a new task
r = (z - mu_w) / sigma_w   residuals, a Gaussian process on the target's trials (section 4.2)

Several metrics are averaged on the normal scale, z = (psi(y1) + psi(y2)) / 2 (section 4.3),
whatever their units. The paper minimizes. Here everything is maximized, and less time is better.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from scipy.spatial import cKDTree
from scipy.special import ndtr

from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.model_averaging import average_posteriors
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.score_estimators import (
    fit_linear,
    predict_linear,
    predict_neighbors,
)
from sktransfer.surrogates._core.training import train
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, SearchHints, Surrogate
from sktransfer.surrogates.gp import fit_gaussian_process
from sktransfer.utils._networks import Activation, Network, forward
from sktransfer.utils._scores import normal_scores, standardize
from sktransfer.utils._torch import tensor, torch_context

_NORMAL_LEVELS = np.linspace(-2.5, 2.5, 21)  # at which the past tasks' quantiles are stored
_MIN_TRIALS_FOR_SCALE = 5  # of the target, to estimate the distribution of its scores
_MIN_STD = 0.01
TRANSFORMS = ("copula", "error-copula", "standardize")
ESTIMATORS = ("network", "linear", "neighbors")


class CopulaGP(TransferSurrogate):
    """Gaussian copula process (CGP): a process on the residuals of a prior from past tasks.

    The first `n_thompson` trials are Thompson samples: the best of one draw z ~ N(mu_w(x),
    sigma_w(x)²) for each of a thousand candidates. Then follows expected improvement under g(x) =
    mu_w(x) + sigma_w(x) r(x), with a Matérn-5/2 process r fitted to the target's residuals. With
    ``n_thompson=None`` all trials are Thompson samples: CRS, ``"copula-ts"``.

    It needs past trials, but no profiles, and metrics may differ between tasks. Training takes a
    fixed number of steps, one to three seconds for archives of any size. A proposal is O(n³) in the
    target's trials. Prefer it if past tasks are similar as a whole, whatever their metrics and
    scales, and ``"copula-ts"`` for many cheap trials in parallel.

    Parameters
    ----------
    objective : "score", "score+time" or sequence of str
        The objective: the score, score and fit time, or metrics by name (including "score" and
        "time"), with equal weights. ``best_params_`` of a search are still the best by score.
    transform : {"copula", "error-copula", "standardize"}
        How to make scores comparable. "copula" maps the share of trials that are not better to a
        quantile of the normal distribution. "error-copula" maps the share that are not worse, as
        the paper does, which ranks errors. With five trials the best one has 1.44 and 0.84.
    estimator : {"network", "linear", "neighbors"}
        What the prior is learned by. With the last two, sigma_w is the same everywhere, resp. that
        of the nearest past trials (Table 6).
    n_neighbors : int
        Number of nearest past trials.
    heteroskedastic : bool
        Whether sigma_w depends on the configuration. Otherwise it is 1.
    layers, dropout, batch_size, learning_rate, steps, rounds
        The network's units and its training: `rounds` times `steps` Adam steps, each round with a
        tenth of the rate of the one before. The paper's dropout of 0.5, batches of 64 and 100 steps
        underfitted here.
    winsorize : bool
        Whether scores far below the median are raised before they are standardized, with
        ``transform="standardize"``. The paper does not.
    n_thompson : int or None
        Number of trials by Thompson sampling. None is all of them.
    guard : bool
        Whether to average with a plain GP, weighted by the evidence. The paper does not, and its
        Thompson sampling never learns from the target.
    n_initial : int
        Space-filling trials if there are no past ones.
    random_state : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.random((30, 1))
    >>> past = EncodedTask(theta, -abs(theta[:, 0] - 0.3), np.array([False]))
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> mean, std = CopulaGP().fit([past]).posterior(target).predict(np.array([[0.3], [0.9]]))
    >>> bool(mean[0] > mean[1])
    True
    """

    def __init__(
        self,
        objective: str | Sequence[str] = "score",
        transform: str = "copula",
        estimator: str = "network",
        n_neighbors: int = 10,
        heteroskedastic: bool = True,
        layers: tuple[int, ...] = (50, 50, 50),
        dropout: float = 0.1,
        batch_size: int = 256,
        learning_rate: float = 0.01,
        steps: int = 300,
        rounds: int = 3,
        winsorize: bool = True,
        n_thompson: int | None = 5,
        guard: bool = True,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.objective = objective
        self.transform = transform
        self.estimator = estimator
        self.n_neighbors = n_neighbors
        self.heteroskedastic = heteroskedastic
        self.layers = layers
        self.dropout = dropout
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.steps = steps
        self.rounds = rounds
        self.winsorize = winsorize
        self.n_thompson = n_thompson
        self.guard = guard
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        for name, known in (("transform", TRANSFORMS), ("estimator", ESTIMATORS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {known}.")
        if self.n_neighbors < 1:
            raise ValueError(f"n_neighbors={self.n_neighbors!r} must be at least 1.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout={self.dropout!r} must be in [0, 1).")
        if not self._names or not all(isinstance(name, str) and name for name in self._names):
            raise ValueError(
                f"objective={self.objective!r} must be 'score', 'score+time' or names of metrics."
            )

    @property
    def _names(self) -> list[str]:
        return (
            self.objective.split("+") if isinstance(self.objective, str) else list(self.objective)
        )

    @property
    def _score_transform(self) -> Callable[[EncodedTask], np.ndarray]:
        return self._normal_scores

    def _normal_scores(self, task: EncodedTask) -> np.ndarray:
        """The objective of a task's trials on the normal scale; (n,)."""
        columns = []
        for name in self._names:
            values = _metric(task, name)
            known = np.isfinite(values)
            if known.any():
                columns.append(np.full(len(values), np.nan))
                columns[-1][known] = self._comparable(values[known])
        failed = ~np.isfinite(task.z)
        # A task without these metrics is represented by its score.
        if not columns or self._names == ["score"]:
            return self._comparable(task.z)
        table = np.array(columns)
        count = np.isfinite(table).sum(axis=0)
        z = np.where(count, np.nansum(table, axis=0) / np.maximum(count, 1), 0.0)
        # Failing fast is not good: failures are no better than the worst success.
        return np.where(failed, z[~failed].min(initial=0.0), z)

    def _comparable(self, z: np.ndarray) -> np.ndarray:
        """Scores of one task, comparable with those of others; (n,) -> (n,)."""
        if self.transform == "standardize":
            return standardize(z, winsorize=self.winsorize)[0]
        return normal_scores(z, rank_errors=self.transform == "error-copula")

    # -- the prior -----------------------------------------------------------------------------

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._tree: cKDTree | None = None

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        quantiles = [np.nanquantile(task.z, ndtr(_NORMAL_LEVELS)) for task in tasks]
        medians = [np.nanmedian(task.z) for task in tasks]
        self.learned_ = {"quantiles": np.mean(quantiles, axis=0), "level_std": np.std(medians)}
        if self.estimator == "network":
            self._train_network()
        elif self.estimator == "linear":
            self.learned_["linear"] = fit_linear(self.inputs_(self.past_.theta), self.past_.z)

    def _train_network(self) -> None:
        rng = np.random.default_rng(self.random_state)
        # The scale preserves the variance of rectified units from layer to layer.
        network = Network([self.inputs_.width, *self.layers, 2], rng, scale=np.sqrt(2))
        with torch.no_grad():
            for bias in network.weights[1::2]:
                bias.zero_()
        self.trained_ = {f"w{number:02}": weight for number, weight in enumerate(network.weights)}
        x, z = tensor(self.inputs_(self.past_.theta)), tensor(self.past_.z)
        n, keep = len(z), 1 - self.dropout

        def drop(units: torch.Tensor) -> torch.Tensor:
            return units * tensor(rng.random(units.shape) < keep) / keep

        def loss() -> torch.Tensor:
            """Negative log density of a batch, eq. 1 without its constant Jacobian."""
            rows = torch.from_numpy(rng.integers(n, size=min(n, self.batch_size)))
            mean, std = self._moments(x[rows], drop if self.dropout else None)
            return (0.5 * ((z[rows] - mean) / std) ** 2 + torch.log(std)).mean()

        for number in range(self.rounds):
            train(loss, [(network.weights, self.learning_rate / 10**number)], self.steps, decay=0.0)

    def _moments(
        self, x: torch.Tensor, dropout: Activation | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """mu_w and sigma_w; (n, p) -> (n,), (n,)."""
        weights = [self.trained_[name] for name in sorted(self.trained_)]
        mean, raw = forward(x, weights, torch.relu, dropout=dropout).unbind(dim=1)
        if not self.heteroskedastic:
            return mean, torch.ones_like(mean)
        return mean, torch.nn.functional.softplus(raw) + _MIN_STD

    @torch.no_grad()
    def prior(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Prior mean and standard deviation of the normal score; (n, d) -> (n,), (n,)."""
        x = self.inputs_(theta)
        if self.estimator == "linear":
            return predict_linear(self.learned_["linear"], x)
        if self.estimator == "neighbors":
            if self._tree is None:
                self._tree = cKDTree(self.inputs_(self.past_.theta))
            return predict_neighbors(self._tree, self.past_.z, x, self.n_neighbors)
        with torch_context():
            mean, std = self._moments(tensor(x))
        return mean.numpy(), std.numpy()

    # -- the target ----------------------------------------------------------------------------

    def hints(self, target: EncodedTask) -> SearchHints:
        """Thompson sampling if there are past tasks and few trials of the target."""
        thompson = self._has_past and self._has_few_trials(target.z)
        return replace(super().hints(target), thompson=thompson)

    def _has_few_trials(self, z: np.ndarray) -> bool:
        return self.n_thompson is None or len(z) < self.n_thompson

    def posterior(self, target: EncodedTask) -> Posterior | None:
        """Predictions on the normal scale, from past tasks and the target's trials."""
        if not self._has_past and self._names == ["score"]:
            return self.fallback_.posterior(target)
        self._warn_if_unmeasured(target)
        z = self._normal_scores(target)
        if not self._has_past:
            return _NormalScale(self._plain_gp(target, z), target, z)
        transfer = self._transfer_posterior(target, z)
        # Ranks among a few trials tell little about their quality: past tasks that led to good
        # trials at once would lose weight.
        if not self.guard or len(z) < _MIN_TRIALS_FOR_SCALE:
            return _NormalScale(transfer, target, z, self.learned_)
        plain = self._plain_gp(target, z)
        # Both are fitted to the same scores with the same priors, so these are left out.
        averaged = average_posteriors(transfer, plain, transfer.log_evidence - plain.log_evidence)
        return _NormalScale(averaged, target, z, self.learned_)

    def _warn_if_unmeasured(self, target: EncodedTask) -> None:
        unknown = [n for n in self._names if n not in ("score", "time") and n not in target.metrics]
        if unknown and len(target.z):
            known = ["score", "time", *sorted(set(target.metrics) - {"fit_time"})]
            warnings.warn(
                f"objective={self.objective!r}: {', '.join(unknown)} was not measured. "
                f"Available metrics: {', '.join(known)}.",
                SurrogateWarning,
                stacklevel=2,
            )

    def _plain_gp(self, target: EncodedTask, z: np.ndarray) -> GaussianProcess:
        return fit_gaussian_process(target.theta, z, target.categorical)

    def _transfer_posterior(self, target: EncodedTask, z: np.ndarray) -> _Independent | _Residual:
        return (_Independent if self._has_few_trials(z) else _Residual)(self, target.theta, z)


class _Independent(Posterior):
    """The network's prior with independent scores: a trial does not inform about other settings."""

    def __init__(self, model: CopulaGP, theta: np.ndarray, z: np.ndarray):
        self._prior = model.prior
        mean, std = model.prior(theta)
        self.log_evidence = float(-0.5 * (((z - mean) / std) ** 2).sum() - np.log(std).sum())

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._prior(theta)

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        mean, std = self.predict(theta)
        return mean + std * rng.standard_normal((n, len(theta)))


class _Residual(Posterior):
    """g = mu_w + sigma_w r, r a Gaussian process (section 4.2)."""

    def __init__(self, model: CopulaGP, theta: np.ndarray, z: np.ndarray):
        self._prior = model.prior
        mean, std = model.prior(theta)
        self._r = fit_gaussian_process(theta, (z - mean) / std, model.past_.categorical)
        self.log_evidence = self._r.log_evidence - float(np.log(std).sum())

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (mean, std), (r_mean, r_std) = self._prior(theta), self._r.predict(theta)
        return mean + std * r_mean, std * r_std

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        mean, std = self._prior(theta)
        return mean + std * self._r.sample(theta, n, rng)


class _NormalScale(Posterior):
    """A posterior of normal scores, with the map back to scores.

    The map interpolates the target's trials. While these are few, it is that of the average past
    task, shifted to their level.
    """

    def __init__(
        self,
        posterior: Posterior,
        target: EncodedTask,
        z: np.ndarray,
        past: dict[str, np.ndarray] | None = None,
    ):
        self._posterior = posterior
        self._incumbent = float(z.max()) if len(z) else None
        ok = np.isfinite(target.z)
        order = np.argsort(z[ok], kind="stable")
        self._normal, self._scores = z[ok][order], np.sort(target.z[ok])
        self.level_std = 0.0
        if past is not None and ok.sum() < _MIN_TRIALS_FOR_SCALE:
            offset = target.z[ok] - np.interp(z[ok], _NORMAL_LEVELS, past["quantiles"])
            self._normal, self._scores = (
                _NORMAL_LEVELS,
                past["quantiles"] + (offset.mean() if ok.any() else 0.0),
            )
            self.level_std = 0.0 if ok.any() else float(past["level_std"])

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._posterior.predict(theta)

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return self._posterior.sample(theta, n, rng)

    def incumbent(self, z: np.ndarray) -> float | None:
        return self._incumbent

    def to_scores(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the same rank, and half their difference from one deviation below to above."""
        low, middle, high = (self._score(mean + k * std) for k in (-1, 0, 1))
        return middle, (high - low) / 2

    def _score(self, normal: np.ndarray) -> np.ndarray:
        """Interpolate; beyond the trials, on the line from the middle one through the last."""
        at, scores = self._normal, self._scores
        found = np.interp(normal, at, scores)
        if len(at) < 3 or at[-1] == at[0]:
            return found
        middle = len(at) // 2
        for end, beyond in ((-1, normal > at[-1]), (0, normal < at[0])):
            slope = (scores[end] - scores[middle]) / (at[end] - at[middle] or np.inf)
            found = np.where(beyond, scores[end] + slope * (normal - at[end]), found)
        return found


def _metric(task: EncodedTask, name: str) -> np.ndarray:
    """Values of a metric, to be maximized, NaN if not measured; (n,)."""
    if name == "score":
        return task.z
    if name == "time":
        return -np.asarray(task.metrics.get("fit_time", np.full(len(task.z), np.nan)))
    return np.asarray(task.metrics.get(name, np.full(len(task.z), np.nan)))
