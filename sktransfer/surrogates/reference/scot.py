"""`SCoT`: a ranker maps all tasks to one scale, then a Gaussian process; Bardenet et al. 2013.

"Collaborative hyperparameter tuning", as described by Yogatama & Mann 2014, sections 1, 3.5, 4.1.

Notation: N trials of some past tasks and of the target, theta (N, d), f (N,) scores, x (3,) a
task's data features; phi(theta, x) (F,) random Fourier features of a squared-exponential kernel
(Rahimi & Recht 2007).

    w = argmin |w|² / 2 + C sum_{i, j of one task, f_i > f_j} log(1 + exp(w phi_j - w phi_i))
    s = w phi                          the latent score of each trial, on one scale for all tasks
    s ~ GP over [theta, x], squared exponential, a lengthscale per column          (SQE)
    s ~ GP over theta with the kernel of `neighbor_process`                        (MKL)

The first line is SVMrank with the logistic loss in place of the hinge, so that it has a gradient.
The ranker is retrained at each trial of the target, because it ranks these trials as well: O(T²)
pairs of each task of T trials, then the process, O(N³). Yogatama & Mann's surface avoids this cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.gaussian_process import (
    GaussianProcess,
    fit_hyperparameters,
)
from sktransfer.surrogates._core.kernels import KERNELS
from sktransfer.surrogates._core.model_averaging import average_posteriors, plain_evidence
from sktransfer.surrogates._core.neighbor_process import N_NEIGHBORS, NeighborProcess
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.size_features import NAMES, DataFeatures, describe_features
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, Surrogate
from sktransfer.surrogates.gp import GP, default_priors
from sktransfer.utils._scores import impute_failures
from sktransfer.utils._threads import single_threaded

_N_TRAINING_TRIALS = 150  # that the hyperparameters are learned from
_MIN_NOISE = 1e-4  # variance of latent scores, because two trials may be nearly equal
_MIN_MISFIT = 0.1  # variance of a task's scores around the latent ones, both standardized


class SCoT(TransferSurrogate):
    """Surrogate-based collaborative tuning: rank all trials, then fit a Gaussian process.

    It needs trials of past tasks, at least two of some task, and of their data only the numbers of
    rows, columns and classes. Only the order of a task's scores counts, so metrics may differ
    between tasks. Ranker and process are refitted at each trial, O(max_trials³). It serves for
    comparison; `CommonSurface` does about as well and scales.

    Parameters
    ----------
    C : float
        Weight of the pairs relative to the prior.
    n_features : int
        Number of random Fourier features of the ranker.
    kernel : {"se", "matern52", "matern32", "mkl"}
        Kernel of the process. "mkl" is that of Yogatama & Mann, who combined it with this method:
        one kernel for trials of the same task, one that the 20 nearest tasks share. Only their
        trials are then conditioned on, but all are ranked.
    max_trials : int
        Maximum number of past trials to rank, of the tasks with the nearest data features. The
        paper ranks all.
    max_iter : int
        Maximum number of L-BFGS iterations for the ranker.
    guard : bool
        Whether to average with a plain GP, weighted by how well each predicted the target's scores.
        The paper does not.
    winsorize : bool
        Whether scores far below the median are raised (`clip_low_outliers`) before they are
        standardized. The paper does not.
    n_initial : int
        Space-filling trials if there are no past ones.
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.random.default_rng(0).random((20, 1))
    >>> past = EncodedTask(theta, -((theta[:, 0] - 0.3) ** 2), np.array([False]), id="a")
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> mean, std = SCoT().fit([past]).posterior(target).predict(np.array([[0.3], [0.9]]))
    >>> bool(mean[0] > mean[1])
    True
    """

    fallback_: GP

    def __init__(
        self,
        C: float = 1.0,
        n_features: int = 200,
        kernel: str = "se",
        max_trials: int = 400,
        max_iter: int = 50,
        guard: bool = True,
        winsorize: bool = True,
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.C = C
        self.n_features = n_features
        self.kernel = kernel
        self.max_trials = max_trials
        self.max_iter = max_iter
        self.guard = guard
        self.winsorize = winsorize
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        known = sorted([*KERNELS, "mkl"])
        if self.kernel not in known:
            raise ValueError(f"kernel={self.kernel!r} is not known. Use one of {known}.")
        for name in ("n_features", "max_trials", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least 1.")
        if not self.C > 0:
            raise ValueError(f"C={self.C!r} must be positive.")

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._prior_cache: tuple[np.ndarray, np.ndarray, _PastRanks] | None = None

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        """Learn data features, and hyperparameters from the latent scores of some tasks."""
        profiles = [task.profile for task in tasks]
        scale = DataFeatures.from_profiles(profiles)
        self.learned_ = {"low": scale.low, "high": scale.high, "features": scale.table(profiles)}
        self.learned_["basis"] = np.array([describe_features(each) for each in profiles], dtype=str)
        self.learned_["ranks"] = np.concatenate([_ranks(task.z) for task in tasks])
        order = np.random.default_rng(self.random_state).permutation(len(tasks))
        rows = self._first_rows(order, _N_TRAINING_TRIALS)
        trials = self._past_trials(rows)
        d = trials.X.shape[1]
        h = fit_hyperparameters(
            trials.X,
            self._rank(trials),
            self._categorical,
            kernel="se" if self.kernel == "mkl" else self.kernel,
            priors=default_priors(d),
        )
        h[-1] = max(h[-1], np.log(_MIN_NOISE))
        self.learned_["h"] = h

    @property
    def _categorical(self) -> np.ndarray:
        """Which columns of the process are categorical: configuration, then data features."""
        return np.append(self.past_.categorical, np.zeros(len(NAMES), dtype=bool))

    # -- ranking -------------------------------------------------------------------------------

    def _rank(self, trials: _RankedTrials) -> np.ndarray:
        """Latent scores of all trials: mean 0, deviation 1 within the average task; -> (n,)."""
        better, worse = trials.pairs()
        Phi = self._fourier(trials.X)

        def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
            s = Phi @ w
            margin = s[better] - s[worse]
            pull = expit(-margin)
            slope = np.bincount(worse, pull, len(s)) - np.bincount(better, pull, len(s))
            value = 0.5 * w @ w + self.C * np.logaddexp(0, -margin).sum()
            return value, w + self.C * (Phi.T @ slope)

        with single_threaded:
            found = minimize(
                loss,
                np.zeros(Phi.shape[1]),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": self.max_iter},
            )
            s = Phi @ found.x
        means = np.bincount(trials.owner, s) / np.maximum(np.bincount(trials.owner), 1)
        within = np.sqrt(np.mean((s - means[trials.owner]) ** 2))
        return (s - s.mean()) / within if within > 1e-12 else np.zeros(len(s))

    def _fourier(self, X: np.ndarray) -> np.ndarray:
        """Features whose products approximate exp(-r² / 2); -> (n, F).

        The lengthscales are those of the process's prior. A category is a corner of a simplex with
        edges of length 1, as in `kernels`.
        """
        d = self.past_.theta.shape[1]
        inputs = self.inputs_(X[:, :d])
        n_numbers = int((~self.past_.categorical).sum())
        length = np.repeat([0.5, np.sqrt(0.5)], [n_numbers, inputs.shape[1] - n_numbers])
        median = default_priors(X.shape[1]).lengthscale.median
        columns = np.hstack([inputs * length, X[:, d:]]) / median
        rng = np.random.default_rng(self.random_state)
        waves = rng.standard_normal((columns.shape[1], self.n_features))
        phase = rng.uniform(0, 2 * np.pi, self.n_features)
        return np.sqrt(2 / self.n_features) * np.cos(columns @ waves + phase)

    def _past_trials(self, rows: np.ndarray) -> _RankedTrials:
        past = self.past_
        X = np.hstack([past.theta[rows], self.learned_["features"][past.owner[rows]]])
        return _RankedTrials(X, self.learned_["ranks"][rows], past.owner[rows])

    def _first_rows(self, order: np.ndarray, max_rows: int) -> np.ndarray:
        """Rows of the first `max_rows` trials, with the tasks in this order; -> (n,)."""
        position = np.argsort(order)[self.past_.owner]
        return np.sort(np.argsort(position, kind="stable")[:max_rows])

    # -- the target ----------------------------------------------------------------------------

    def posterior(self, target: EncodedTask) -> Posterior:
        """Rank all trials, fit the process to the latent scores, and scale these."""
        if not self._has_past:
            return self.fallback_.posterior(target)
        past, x = self.past_, self._target_features(target)
        prior = self._prior(x)
        level = past.level(self._similarity_to(x), np.ones(len(past), dtype=bool), target.z)
        y = impute_failures(target.z, winsorize=self.winsorize)
        from_past = ConditionedPosterior(prior, target.theta, y, level)
        if not len(y):
            return from_past
        trials = prior.trials.with_task(_append_features(target.theta, x), _ranks(target.z))
        s = self._rank(trials)
        own = s[-len(y) :]
        # Ranks do not determine the scale. So the deviation is that of the target's scores so far,
        # and the best trial has its observed score, the value to beat.
        unit = y.std() / max(own.std(), 0.1) if y.std() > 0 else float(np.exp(level.log_scale))
        offset = float(y.max() - unit * own.max())
        process = self._process(trials, s, x, trials.owner[-1], offset, float(unit))
        ranked = _RankedPosterior(process, x)
        if not self.guard:
            return ranked
        plain = self.fallback_.posterior(target)
        # The evidence is computed from the past trials' latent scores, because those above depend
        # on the scores.
        evidence = plain_evidence(plain, target.theta, y, level)
        return average_posteriors(ranked, plain, from_past.log_evidence - evidence)

    def _prior(self, x: np.ndarray) -> _PastRanks:
        """The process on the past trials' latent scores, cached for the next trial."""
        rows = self._first_rows(self._nearest_first(x), self.max_trials)
        cached = self._prior_cache
        if cached is None or not (np.array_equal(cached[0], rows) and np.array_equal(cached[1], x)):
            trials = self._past_trials(rows)
            s = self._rank(trials)
            process = self._process(trials, s, x)
            misfit = max(float(np.mean((self.past_.z[rows] - s) ** 2)), _MIN_MISFIT)
            cached = self._prior_cache = (rows, x, _PastRanks(process, x, misfit, trials))
        return cached[2]

    def _process(
        self,
        trials: _RankedTrials,
        s: np.ndarray,
        x: np.ndarray,
        target: int = -1,
        shift: float = 0.0,
        scale: float = 1.0,
    ) -> Process:
        """The process given latent scores s, (n,); `target` is the target's number, if any."""
        h = self.learned_["h"]
        if self.kernel != "mkl":
            return GaussianProcess(
                trials.X, s, h, self._categorical, kernel=self.kernel, shift=shift, scale=scale
            )
        d = self.past_.theta.shape[1]
        near = np.isin(trials.owner, [*self._nearest_first(x)[:N_NEIGHBORS], target])
        return _WithFeatures(
            NeighborProcess(
                trials.X[near, :d],
                s[near],
                trials.owner[near],
                target,
                np.append(h[:d], h[-2:]),
                self.past_.categorical,
                shift=shift,
                scale=scale,
            )
        )

    def _nearest_first(self, x: np.ndarray) -> np.ndarray:
        """Numbers of the past tasks, by the distance of their data features; (3,) -> (m,)."""
        squares = ((self.learned_["features"] - x) ** 2).sum(axis=1)
        return np.argsort(squares, kind="stable")

    def _target_features(self, target: EncodedTask) -> np.ndarray:
        return DataFeatures(self.learned_["low"], self.learned_["high"])(target.profile)

    def _similarity_to(self, x: np.ndarray) -> np.ndarray:
        lengths = np.exp(self.learned_["h"][-2 - len(NAMES) : -2])
        return np.exp(-0.5 * (((self.learned_["features"] - x) / lengths) ** 2).sum(axis=1))

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """exp(-r² / 2) of the data features, with the lengthscales of the process."""
        if not self._has_past:
            return self._scatter(np.empty(0))
        return self._scatter(self._similarity_to(self._target_features(target)))

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each task was compared by, and how many of its trials were ranked."""
        if not self._has_past:
            return self._scatter_text([])
        texts = list(self.learned_["basis"])
        if target.profile is None:
            texts = [f"{describe_features(None)} (target)"] * len(texts)
        x = self._target_features(target)
        rows = self._first_rows(self._nearest_first(x), self.max_trials)
        return self._scatter_text(self.past_.describe_usage(texts, rows))


class _RankedTrials:
    """Trials of several tasks, one task after another.

    X = [theta, x] (n, d + 3), rank (n,) of each trial within its task, owner (n,) the number of its
    task.
    """

    def __init__(self, X: np.ndarray, ranks: np.ndarray, owner: np.ndarray):
        self.X, self.ranks, self.owner = X, ranks, owner

    def with_task(self, X: np.ndarray, ranks: np.ndarray) -> _RankedTrials:
        """With the trials of another task appended."""
        owner = np.append(self.owner, np.full(len(ranks), self.owner.max(initial=-1) + 1))
        return _RankedTrials(np.vstack([self.X, X]), np.append(self.ranks, ranks), owner)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the better and of the worse trial of each untied pair of one task."""
        better, worse = [np.empty(0, dtype=int)], [np.empty(0, dtype=int)]
        starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        for rows in np.split(np.arange(len(self.ranks)), starts[1:]):
            i, j = np.nonzero(self.ranks[rows][:, None] > self.ranks[rows])
            better.append(rows[i])
            worse.append(rows[j])
        return np.concatenate(better), np.concatenate(worse)


def _ranks(z: np.ndarray) -> np.ndarray:
    """Ranks from the worst score, 0, upwards; ties share a rank, failures are last."""
    values = np.nan_to_num(z, nan=-np.inf, neginf=-np.inf)
    return np.unique(values, return_inverse=True)[1].reshape(-1)


class _PastRanks:
    """The process on past trials at the target's data: a prior of its standardized scores."""

    def __init__(self, gp: Process, x: np.ndarray, noise: float, trials: _RankedTrials):
        self._gp, self._x, self.noise, self.trials = gp, x, noise, trials

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._gp.moments(
            _append_features(theta, self._x), _append_features(anchors, self._x)
        )


class _RankedPosterior(Posterior):
    """The process on all trials, at the target's data."""

    def __init__(self, gp: Process, x: np.ndarray):
        self._gp, self._x = gp, x

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._gp.predict(_append_features(theta, self._x))

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return self._gp.sample(_append_features(theta, self._x), n, rng)


class _WithFeatures(Posterior):
    """A process over configurations, given [theta, x] as the others are."""

    def __init__(self, process: NeighborProcess):
        self._process, self._d = process, process.theta.shape[1]

    def moments(
        self, X: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._process.moments(X[:, : self._d], anchors[:, : self._d])

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._process.predict(X[:, : self._d])

    def sample(self, X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return self._process.sample(X[:, : self._d], n, rng)


Process = GaussianProcess | _WithFeatures


def _append_features(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Append the task's data features to each configuration; (n, d), (3,) -> (n, d + 3)."""
    return np.hstack([theta, np.repeat(x[None], len(theta), axis=0)])
