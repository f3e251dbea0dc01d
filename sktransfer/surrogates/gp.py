"""`GP`: a Gaussian process on the target's own trials, without transfer (the papers' noneGP).

Scores far below the median are pulled up, all are standardized, and failed trials count as worse
than the worst success. The kernel is Matérn-5/2 with a lengthscale per column. Its priors keep the
first fits sane: with a few trials the hyperparameters stay near their medians, with more trials the
data take over.
"""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates._core.gaussian_process import (
    GaussianProcess,
    LogNormal,
    Priors,
    fit_hyperparameters,
)
from sktransfer.surrogates._core.kernels import KERNELS
from sktransfer.surrogates.base import EncodedTask, Surrogate
from sktransfer.utils._scores import standardize


class GP(Surrogate):
    """Gaussian process on the target's own trials.

    It uses no past tasks. One fit costs O(n³) in the target's trials n, which is less than an
    evaluation up to some hundred trials.

    Parameters
    ----------
    kernel : {"matern52", "matern32", "se"}
    n_initial : int
        Space-filling trials before the model is used.
    max_iter : int
        Maximum number of L-BFGS iterations for the hyperparameters.
    winsorize : bool
        Whether scores far below the median are raised (`clip_low_outliers`) before they are
        standardized. The papers do not.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.array([[0.1], [0.5], [0.9]])
    >>> target = EncodedTask(theta, np.array([0.2, 0.9, 0.3]), np.array([False]))
    >>> mean, std = GP().fit([]).posterior(target).predict(np.array([[0.5], [0.0]]))
    >>> bool(mean[0] > mean[1] and std[0] < std[1])
    True
    """

    def __init__(
        self,
        kernel: str = "matern52",
        n_initial: int = 4,
        max_iter: int = 50,
        winsorize: bool = True,
    ):
        self.kernel = kernel
        self.n_initial = n_initial
        self.max_iter = max_iter
        self.winsorize = winsorize

    def check_params(self) -> None:
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel={self.kernel!r} is not known. Use one of {sorted(KERNELS)}.")

    def posterior(self, target: EncodedTask) -> GaussianProcess:
        """Fit the hyperparameters to the target's trials and condition on them."""
        z, shift, scale = standardize(target.z, winsorize=self.winsorize)
        return fit_gaussian_process(
            target.theta,
            z,
            target.categorical,
            kernel=self.kernel,
            max_iter=self.max_iter if np.isfinite(target.z).sum() >= 2 else 0,
            shift=shift,
            scale=scale,
            std_error=target.std_error,
        )


def fit_gaussian_process(
    theta: np.ndarray,
    z: np.ndarray,
    categorical: np.ndarray,
    *,
    kernel: str = "matern52",
    max_iter: int = 50,
    shift: float = 0.0,
    scale: float = 1.0,
    std_error: np.ndarray | None = None,
) -> GaussianProcess:
    """A process with the most probable hyperparameters, conditioned on these trials.

    `std_error` is in the unit of the scores, ``shift + scale * z``.
    """
    extra = np.zeros(len(z)) if std_error is None else (std_error / scale) ** 2
    d = theta.shape[1]
    priors = default_priors(d)
    h = priors.medians(d)
    if len(z) >= 2 and max_iter:
        h = fit_hyperparameters(
            theta, z, categorical, kernel=kernel, priors=priors, max_iter=max_iter, extra=extra
        )
    return GaussianProcess(
        theta, z, h, categorical, kernel=kernel, shift=shift, scale=scale, extra=extra
    )


def default_priors(d: int) -> Priors:
    """Priors for d columns in [0, 1] and scores of unit variance.

    The median lengthscale grows with the square root of d, as typical distances do, so that
    functions of the prior vary as much in 20 dimensions as in 2.
    """
    return Priors(
        lengthscale=LogNormal(0.25 * np.sqrt(d), 0.8),
        signal=LogNormal(1.0, 0.7),
        noise=LogNormal(1e-3, 1.5),
    )
