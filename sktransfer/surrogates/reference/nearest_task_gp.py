"""`NearestTaskGP`: a Gaussian process on the target's trials and on those of the nearest past task.

It is the warm-start GP of Salinas et al. 2020, section 5 (the 100 best evaluations of the most
similar task), and the GP transfer (ctx, L1) of Perrone et al. 2018, supplement B.3 (300 evaluations
of the closest task by the L1 distance, with a context).

Notation: t the nearest task by its meta-features; theta (n, d), z (n,) its trials and standardized
scores; c the context, the numbers of rows, columns and classes of a task.

    z ~ GP over theta, or over [theta, c], Matérn-5/2, a lengthscale per column

The hyperparameters are those that make the past trials most probable. The target's scores are
shifted and scaled as in `conditioning`, because they are not on the scale of the past ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.model_averaging import average_by_evidence
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.size_features import DataFeatures
from sktransfer.surrogates._core.transfer_surrogate import TransferSurrogate
from sktransfer.surrogates.base import EncodedTask, Posterior, Surrogate
from sktransfer.surrogates.gp import GP, fit_gaussian_process
from sktransfer.surrogates.warm_start import feature_distances, feature_table
from sktransfer.utils._scores import impute_failures

MAX_FITTED = 150  # trials that the hyperparameters are fitted to


class NearestTaskGP(TransferSurrogate):
    """Gaussian process on the target's trials and on those of the most similar past task.

    It needs profiles to find that task: without meta-features it is the first one. It serves for
    comparison. One past task may mislead, and its trials stay in the process.

    Parameters
    ----------
    n_trials : int
        Maximum number of trials of the past task.
    best_only : bool
        Whether these are its best ones. Otherwise they are the first.
    context : bool
        Whether the numbers of rows, columns and classes are inputs of the kernel.
    metric : {"l2", "l1"}
        Distance of the meta-features.
    guard : bool
        Whether to average with a plain GP, weighted by the evidence. The papers do not.
    winsorize : bool
        Whether scores far below the median are raised before they are standardized. The papers do
        not.
    n_initial : int
        Space-filling trials if there are no past ones.

    Examples
    --------
    >>> theta = np.random.default_rng(0).random((20, 1))
    >>> past = EncodedTask(theta, -abs(theta[:, 0] - 0.3), np.array([False]), id="a")
    >>> target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([False]))
    >>> mean, std = NearestTaskGP().fit([past]).posterior(target).predict(np.array([[0.3], [0.9]]))
    >>> bool(mean[0] > mean[1])
    True
    """

    fallback_: GP

    def __init__(
        self,
        n_trials: int = 100,
        best_only: bool = True,
        context: bool = False,
        metric: str = "l2",
        guard: bool = True,
        winsorize: bool = True,
        n_initial: int = 4,
    ):
        self.n_trials = n_trials
        self.best_only = best_only
        self.context = context
        self.metric = metric
        self.guard = guard
        self.winsorize = winsorize
        self.n_initial = n_initial

    def check_params(self) -> None:
        if self.n_trials < 1:
            raise ValueError(f"n_trials={self.n_trials!r} must be at least 1.")
        if self.metric not in ("l2", "l1"):
            raise ValueError(f"metric={self.metric!r} must be 'l2' or 'l1'.")

    def _set_up(self, past: PastTrials) -> None:
        super()._set_up(past)
        self._process_cache: tuple[int, GaussianProcess] | None = None

    def _train(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None) -> None:
        profiles = [task.profile for task in tasks]
        sizes = DataFeatures.from_profiles(profiles)
        names, table = feature_table(profiles)
        self.learned_ = {"names": names, "features": table, "sizes": sizes.table(profiles)}
        self.learned_ |= {"low": sizes.low, "high": sizes.high}

    # -- the target ----------------------------------------------------------------------------

    def posterior(self, target: EncodedTask) -> Posterior:
        """The process given the past trials and the target's, averaged with a plain GP."""
        if not self._has_past:
            return self.fallback_.posterior(target)
        nearest = int(np.argmin(self._distances(target)))
        prior = _AtContext(self._process(nearest), self._context_of(target))
        y = impute_failures(target.z, winsorize=self.winsorize)
        is_nearest = np.arange(len(self.past_)) == nearest
        level = self.past_.level(1.0 * is_nearest, is_nearest, target.z)
        conditioned = ConditionedPosterior(prior, target.theta, y, level)
        if not len(y) or not self.guard:
            return conditioned
        plain = self.fallback_.posterior(target)
        return average_by_evidence(conditioned, plain, target.theta, y, level)

    def _process(self, task: int) -> GaussianProcess:
        """The process on the trials of a past task, cached for the next trial."""
        if self._process_cache is None or self._process_cache[0] != task:
            past = self.past_
            rows = np.flatnonzero(past.owner == task)
            if self.best_only:
                rows = rows[np.argsort(-past.z[rows], kind="stable")]
            rows = rows[: self.n_trials]
            context = self.learned_["sizes"][task] if self.context else np.empty(0)
            X = np.hstack([past.theta[rows], np.tile(context, (len(rows), 1))])
            categorical = np.append(past.categorical, np.zeros(len(context), dtype=bool))
            few = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MAX_FITTED)).astype(int))
            h = fit_gaussian_process(X[few], past.z[rows[few]], categorical).h
            process = GaussianProcess(X, past.z[rows], h, categorical)
            self._process_cache = task, process
        return self._process_cache[1]

    def _context_of(self, target: EncodedTask) -> np.ndarray:
        if not self.context:
            return np.empty(0)
        return DataFeatures(self.learned_["low"], self.learned_["high"])(target.profile)

    def _distances(self, target: EncodedTask) -> np.ndarray:
        names, table = self.learned_["names"], self.learned_["features"]
        own = feature_table([target.profile], names)[1][0]
        return feature_distances(table, own, order=1 if self.metric == "l1" else 2)

    def similarity(self, target: EncodedTask) -> np.ndarray:
        """1 for the past task that is used, 0 for the others."""
        if not self._has_past:
            return self._scatter(np.empty(0))
        nearest = int(np.argmin(self._distances(target)))
        return self._scatter(1.0 * (np.arange(len(self.past_)) == nearest))

    def similarity_basis(self, target: EncodedTask) -> list[str]:
        """The number of meta-features that each past task was compared by."""
        if not self._has_past:
            return self._scatter_text([])
        known = np.isfinite(self.learned_["features"]).sum(axis=1)
        n = len(self.learned_["names"])
        return self._scatter_text([f"{k} of {n} handcrafted meta-features" for k in known])


class _AtContext:
    """The process on past trials at the target's context: a prior of its standardized scores."""

    def __init__(self, process: GaussianProcess, context: np.ndarray):
        self._process, self._context = process, context
        self.noise = float(np.exp(process.h[-1]))

    def moments(
        self, theta: np.ndarray, anchors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._process.moments(self._append(theta), self._append(anchors))

    def _append(self, theta: np.ndarray) -> np.ndarray:
        return np.hstack([theta, np.tile(self._context, (len(theta), 1))])
