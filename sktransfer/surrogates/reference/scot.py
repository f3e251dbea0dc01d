"""`SCoT`: a ranker puts all tasks on one scale, then a Gaussian process (Bardenet et al. 2013, "Collaborative
hyperparameter tuning"; as described by Yogatama & Mann 2014, sections 1, 3.5 and 4.1).

Notation: N trials of some past tasks and of the target, theta (N, d), f (N,) scores, x (3,) a task's data
features; phi(theta, x) (F,) random Fourier features of a squared-exponential kernel (Rahimi & Recht 2007).

    w = argmin |w|² / 2 + C sum over pairs i, j of one task with f_i > f_j of log(1 + exp(w phi_j - w phi_i))
    s = w phi                                                the latent score of each trial: one scale for all
    s ~ GP over [theta, x], squared exponential, a lengthscale per column

The first line is SVMrank with the logistic loss for the hinge, which has a gradient. It is trained anew at
each trial of the target, since the target's trials have a say in it: O(T²) pairs of each task of T trials,
then the process, O(N³). That is what Yogatama & Mann's surface does without.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.gaussian_process import GaussianProcess, fit_hyperparameters
from sktransfer.surrogates._core.kernels import KERNELS
from sktransfer.surrogates._core.model_averaging import GPPrior, average_posteriors
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.size_features import NAMES, DataFeatures, describe_features
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, Surrogate
from sktransfer.surrogates.gp import GP, default_priors
from sktransfer.utils._scores import impute_failures
from sktransfer.utils._threads import single_threaded

_N_TRAINING_TRIALS = 150  # trials that the hyperparameters are learned from
_MIN_NOISE = 1e-4  # variance of a latent score: two trials may be all but the same
_MIN_MISFIT = 0.1  # least variance of a task's scores about the latent ones, both standardized


class SCoT(TransferSurrogate):
    """Surrogate-based collaborative tuning: rank all trials of all tasks, then a Gaussian process.

    Needs trials of past tasks, two at least of some; of their data only the numbers of rows, columns and
    classes. Only the order of a task's scores counts, so metrics may be mixed. The ranker and the process
    are fitted anew at each trial: O(max_trials³). It is here to be compared with; `CommonSurface` does
    about as well and scales.

    Parameters
    ----------
    C : float
        Weight of the pairs against that of the prior.
    n_features : int
        Random Fourier features of the ranker.
    kernel : {"se", "matern52", "matern32"}
        Of the process.
    max_trials : int
        Past trials that are ranked: those of the tasks with the nearest data features. The paper takes all.
    max_iter : int
        Iterations of L-BFGS for the ranker.
    guard : bool
        Whether the belief is averaged with a Gaussian process on the target alone, by how well each foretold
        the target's scores. The paper has no such protection.
    n_initial : int
        Space-filling trials where there is no past.
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
        n_initial: int = 4,
        random_state: int = 0,
    ):
        self.C = C
        self.n_features = n_features
        self.kernel = kernel
        self.max_trials = max_trials
        self.max_iter = max_iter
        self.guard = guard
        self.n_initial = n_initial
        self.random_state = random_state

    def check_params(self) -> None:
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel={self.kernel!r} is not known. Give one of {sorted(KERNELS)}.")
        for name in ("n_features", "max_trials", "max_iter"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be at least 1.")
        if not self.C > 0:
            raise ValueError(f"C={self.C!r} must be positive.")

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._kept: tuple[np.ndarray, np.ndarray, _PastRanks] | None = None

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        """Data features, and hyperparameters of the process from the ranks of some tasks."""
        profiles = [task.profile for task in tasks]
        scale = DataFeatures.from_profiles(profiles)
        self.learned_ = {"low": scale.low, "high": scale.high, "features": scale.table(profiles)}
        self.learned_["basis"] = np.array([describe_features(each) for each in profiles], dtype=str)
        self.learned_["places"] = np.concatenate([_ranks(task.z) for task in tasks])
        order = np.random.default_rng(self.random_state).permutation(len(tasks))
        rows = self._first(order, _N_TRAINING_TRIALS)
        trials = self._past_trials(rows)
        d = trials.X.shape[1]
        h = fit_hyperparameters(
            trials.X,
            self._rank(trials),
            self._categorical,
            kernel=self.kernel,
            priors=default_priors(d),
        )
        h[-1] = max(h[-1], np.log(_MIN_NOISE))
        self.learned_["h"] = h

    @property
    def _categorical(self) -> np.ndarray:
        """Of the process's columns: the configuration's and the data features."""
        return np.append(self.past_.categorical, np.zeros(len(NAMES), dtype=bool))

    # -- ranking -------------------------------------------------------------------------------

    def _rank(self, trials: _Trials) -> np.ndarray:
        """Latent scores of all trials: mean 0, deviation 1 within an average task; -> (n,)."""
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
        """Features whose products are about exp(-r² / 2), lengthscales as in the process's prior; -> (n, F).

        A category is a corner of a simplex with edges of length 1, as everywhere.
        """
        d = self.past_.theta.shape[1]
        inputs = self.inputs_(X[:, :d])
        n_numbers = int((~self.past_.categorical).sum())
        length = np.repeat([0.5, np.sqrt(0.5)], [n_numbers, inputs.shape[1] - n_numbers])
        columns = (
            np.hstack([inputs * length, X[:, d:]]) / default_priors(X.shape[1]).lengthscale.median
        )
        rng = np.random.default_rng(self.random_state)
        waves = rng.standard_normal((columns.shape[1], self.n_features))
        phase = rng.uniform(0, 2 * np.pi, self.n_features)
        return np.sqrt(2 / self.n_features) * np.cos(columns @ waves + phase)

    def _past_trials(self, rows: np.ndarray) -> _Trials:
        past = self.past_
        X = np.hstack([past.theta[rows], self.learned_["features"][past.owner[rows]]])
        return _Trials(X, self.learned_["places"][rows], past.owner[rows])

    def _first(self, order: np.ndarray, room: int) -> np.ndarray:
        """Trials of the tasks in this order, until there is no more room; -> (n,), numbers of rows."""
        place = np.argsort(order)[self.past_.owner]
        return np.sort(np.argsort(place, kind="stable")[:room])

    # -- the target ----------------------------------------------------------------------------

    def posterior(self, target: EncodedTask) -> Posterior:
        """Rank all trials, fit the process to the ranks, and bring it to the scale of the target's scores."""
        if not self._has_past:
            return self.fallback_.posterior(target)
        past, x = self.past_, self._target_features(target)
        before = self._before(x)
        level = past.level(self._similarity_to(x), np.ones(len(past), dtype=bool), target.z)
        y = impute_failures(target.z)
        fair = ConditionedPosterior(before, target.theta, y, level)
        if not len(y):
            return fair
        trials = before.trials.with_task(_append_features(target.theta, x), _ranks(target.z))
        s = self._rank(trials)
        last = s[-len(y) :]
        # The order says nothing of the scale: the deviation is that of the target's scores so far, and the
        # best trial has its own score, which is what the next one has to beat.
        unit = y.std() / max(last.std(), 0.1) if y.std() > 0 else float(np.exp(level.log_scale))
        offset = float(y.max() - unit * last.max())
        gp = GaussianProcess(
            trials.X,
            s,
            self.learned_["h"],
            self._categorical,
            kernel=self.kernel,
            shift=offset,
            scale=float(unit),
        )
        belief = _Ranked(gp, x)
        if not self.guard:
            return belief
        alone = self.fallback_.posterior(target)
        # How probable the scores were by the past's ranks alone: the ranks above have seen them.
        other = ConditionedPosterior(GPPrior(alone), target.theta, y, level)
        return average_posteriors(belief, alone, fair.log_evidence - other.log_evidence)

    def _before(self, x: np.ndarray) -> _PastRanks:
        """The process on the past's ranks alone; the last one is kept: it is the same at the next trial."""
        order = np.argsort(((self.learned_["features"] - x) ** 2).sum(axis=1), kind="stable")
        rows = self._first(order, self.max_trials)
        kept = self._kept
        if kept is None or not (np.array_equal(kept[0], rows) and np.array_equal(kept[1], x)):
            trials = self._past_trials(rows)
            s = self._rank(trials)
            gp = GaussianProcess(
                trials.X, s, self.learned_["h"], self._categorical, kernel=self.kernel
            )
            misfit = max(float(np.mean((self.past_.z[rows] - s) ** 2)), _MIN_MISFIT)
            kept = self._kept = (rows, x, _PastRanks(gp, x, misfit, trials))
        return kept[2]

    def _target_features(self, target: EncodedTask) -> np.ndarray:
        return DataFeatures(self.learned_["low"], self.learned_["high"])(target.profile)

    def _similarity_to(self, x: np.ndarray) -> np.ndarray:
        lengths = np.exp(self.learned_["h"][-2 - len(NAMES) : -2])
        return np.exp(-0.5 * (((self.learned_["features"] - x) / lengths) ** 2).sum(axis=1))

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """exp(-r² / 2) of the data features, in the lengthscales of the process."""
        if not self._has_past:
            return self._scatter(np.empty(0))
        return self._scatter(self._similarity_to(self._target_features(target)))

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """What each task was compared by, and how many of its trials were ranked."""
        if not self._has_past:
            return self._scatter_text([])
        words = list(self.learned_["basis"])
        if target.profile is None:
            words = [f"{describe_features(None)} (target)"] * len(words)
        x = self._target_features(target)
        order = np.argsort(((self.learned_["features"] - x) ** 2).sum(axis=1), kind="stable")
        return self._scatter_text(
            self.past_.describe_usage(words, self._first(order, self.max_trials))
        )


class _Trials:
    """Trials of several tasks, one task after another: X = [theta, x] (n, d + 3), the place of each in the
    order of its task's scores (n,), and owner (n,), the number of its task."""

    def __init__(self, X: np.ndarray, places: np.ndarray, owner: np.ndarray):
        self.X, self.places, self.owner = X, places, owner

    def with_task(self, X: np.ndarray, places: np.ndarray) -> _Trials:
        """With those of another task behind them."""
        owner = np.append(self.owner, np.full(len(places), self.owner.max(initial=-1) + 1))
        return _Trials(np.vstack([self.X, X]), np.append(self.places, places), owner)

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the better and of the worse trial of each pair of a task that are not tied."""
        better, worse = [np.empty(0, dtype=int)], [np.empty(0, dtype=int)]
        starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        for rows in np.split(np.arange(len(self.places)), starts[1:]):
            i, j = np.nonzero(self.places[rows][:, None] > self.places[rows])
            better.append(rows[i])
            worse.append(rows[j])
        return np.concatenate(better), np.concatenate(worse)


def _ranks(z: np.ndarray) -> np.ndarray:
    """From the worst score, 0, upwards; ties share a place, and all failures are tied below the rest."""
    return np.unique(np.nan_to_num(z, nan=-np.inf, neginf=-np.inf), return_inverse=True)[1].reshape(
        -1
    )


class _PastRanks:
    """The process on the past's ranks, at the target's data: a prior of its standardized scores."""

    def __init__(self, gp: GaussianProcess, x: np.ndarray, noise: float, trials: _Trials):
        self._gp, self._x, self.noise, self.trials = gp, x, noise, trials

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._gp.moments(
            _append_features(theta, self._x), _append_features(anchors, self._x)
        )


class _Ranked(Posterior):
    """The process on all ranks, at the target's data."""

    def __init__(self, gp: GaussianProcess, x: np.ndarray):
        self._gp, self._x = gp, x

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._gp.predict(_append_features(theta, self._x))

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return self._gp.sample(_append_features(theta, self._x), n, rng)


def _append_features(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Each configuration with the task's data features; (n, d), (3,) -> (n, d + 3)."""
    return np.hstack([theta, np.repeat(x[None], len(theta), axis=0)])
