"""The contract of a surrogate: score as a function of (configuration, task).

Notation: theta codes of configurations, (n, d), in [0, 1]; z their scores, (n,), to be maximized,
NaN if a trial failed. Surrogates see arrays and profiles, never spaces, records or estimators.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import SurrogateWarning


class ScorePrior:
    """Predictions of scores from the data alone, in the coordinates of the target's space.

    They come from a model that was trained on other data sets before. A data set enters by its
    description, a vector. Scores are comparable ones: standardized over random configurations.

    Attributes
    ----------
    has_scores : bool
        Whether it predicts scores. Otherwise its descriptions only serve to compare data sets.
    known : ndarray of bool, shape (d,), or None
        Columns of the space that predictions depend on. None if they depend on all.
    has_residual : bool
        Whether it was learned what predictions miss, so that `correlation` is known.
    residual_variance : float
        Variance of what predictions miss, in predicted variances.
    residual_noise : float
        Variance of the noise of comparable scores.
    usual : ndarray of shape (q,) or None
        The description of average data. It stands for past tasks on unknown data. Where there is
        none, predictions are not used if the data of all past tasks are unknown.

    Examples
    --------
    >>> class Middle(ScorePrior):
    ...     def describe(self, profile):
    ...         return None if profile is None else np.array([profile.n_rows])
    ...
    ...     def predict(self, theta, descriptions):
    ...         mean = -abs(theta[:, 0] - 0.5) * np.ones((len(descriptions), 1))
    ...         return mean, np.full_like(mean, 0.3)
    >>> Middle().predict(np.array([[0.5], [1.0]]), np.array([[100.0]]))[0].tolist()
    [[-0.0, -0.5]]
    """

    has_scores: bool = True
    known: np.ndarray | None = None
    has_residual: bool = False
    residual_variance: float = 0.5
    residual_noise: float = 0.03
    usual: np.ndarray | None = None

    def describe(self, profile: DatasetProfile | None) -> np.ndarray | None:
        """The description of a data set, (q,); None if too little is known of it."""
        raise TypeError(f"{type(self).__name__} must define describe.")

    def predict(self, theta: np.ndarray, descriptions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations on several data sets; (n, d), (K, q) -> (K, n) twice."""
        raise TypeError(f"{type(self).__name__} must define predict.")

    def correlation(
        self, theta: np.ndarray, anchors: np.ndarray, description: np.ndarray
    ) -> np.ndarray | None:
        """How what predictions miss on a data set is correlated; None if it is not known.

        (n, d), (k, d), (q,) -> (n, k)
        """
        return None

    def shared(self, A: np.ndarray, B: np.ndarray) -> np.ndarray | None:
        """How what predictions miss on data sets is correlated with that on others.

        None if it is not known; descriptions (K, q), (L, q) -> (K, L) in [0, 1]
        """
        return None

    def embedding(self, descriptions: np.ndarray) -> np.ndarray:
        """The part of descriptions by which data sets are compared; (K, q) -> (K, p)."""
        return descriptions

    def offsets(self, descriptions: np.ndarray) -> np.ndarray:
        """What to add to codes on several data sets, to compare them; (K, q) -> (K, d) or (K, 1).

        It is not 0 for parameters whose meaning depends on the scale of the data.
        """
        return np.zeros((len(descriptions), 1))

    def level(self, description: np.ndarray) -> tuple[float, float] | None:
        """Shift and log scale of the scores on a data set; None if their unit is not known."""
        return None

    def strangeness(self, description: np.ndarray) -> float:
        """How unusual a data set is; above 1 it is unlike all data sets of the training."""
        return 0.0


@dataclass(frozen=True)
class EncodedTask:
    """The trials of one task in the coordinates of the target's space.

    Parameters
    ----------
    theta : ndarray of shape (n, d)
    z : ndarray of shape (n,)
    categorical : ndarray of bool, shape (d,)
        Columns whose codes can only be equal or different.
    profile : DatasetProfile or None
    id : str
    metrics : dict of str to ndarray of shape (n,)
        Other metrics of each trial, to be maximized, NaN if not measured. "fit_time" is in seconds.
    prior : ScorePrior or None
        Predictions of scores from the data alone, if there are any for this space.
    unknown : ndarray of bool, shape (d,), or None
        Columns that a past task says nothing about, because it does not have the parameter. Their
        codes mean nothing. None if there are no such columns.
    contained : frozenset of str
        Ids of past tasks whose data are a part of the target's, such as those of last week.
    std_error : ndarray of shape (n,) or None
        Standard errors of the scores beyond the usual noise, in their unit; None is 0 for all.

    Examples
    --------
    >>> theta, z = np.array([[0.2], [0.8]]), np.array([0.5, 0.9])
    >>> EncodedTask(theta, z, categorical=np.array([False])).is_flat
    False
    """

    theta: np.ndarray
    z: np.ndarray
    categorical: np.ndarray
    profile: DatasetProfile | None = None
    id: str = ""
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)
    prior: ScorePrior | None = None
    unknown: np.ndarray | None = None
    contained: frozenset[str] = frozenset()
    std_error: np.ndarray | None = None

    def without_trials(self) -> EncodedTask:
        """The same task before its first trial."""
        return replace(self, theta=self.theta[:0], z=self.z[:0], metrics={}, std_error=None)

    @property
    def is_flat(self) -> bool:
        """Whether there are trials, none failed, and all have the same score."""
        return len(self.z) > 0 and bool((self.z == self.z[0]).all())

    @property
    def is_on_plateau(self) -> bool:
        """Whether no trial failed and most have the best score, so that none stands out.

        >>> theta, numbers = np.zeros((3, 1)), np.array([False])
        >>> [EncodedTask(theta, np.array([0.5, 0.5, z]), numbers).is_on_plateau for z in (0.4, 0.6)]
        [True, False]
        """
        best = self.z.max(initial=-np.inf)  # NaN if one failed
        return 2 * int((self.z == best).sum()) > len(self.z)


@dataclass(frozen=True)
class Region:
    """A part of the space that the search is limited to.

    Parameters
    ----------
    low, high : ndarray of shape (d,)
        Bounds of the numeric columns.
    values : dict of int to ndarray
        Codes that are allowed in a categorical column.

    Examples
    --------
    >>> region = Region(low=np.array([0.2]), high=np.array([0.4]), values={})
    >>> region.contains(np.array([[0.3], [0.9]])).tolist()
    [True, False]
    """

    low: np.ndarray
    high: np.ndarray
    values: Mapping[int, np.ndarray]

    def stretch(self, cube: np.ndarray) -> np.ndarray:
        """Map points of the unit cube to codes in the region; (n, d) -> (n, d).

        The caller snaps them to the codes that exist in the space.
        """
        codes = self.low + cube * (self.high - self.low)
        for column, values in self.values.items():
            part = np.minimum((cube[:, column] * len(values)).astype(int), len(values) - 1)
            codes[:, column] = values[part]
        return codes

    def contains(self, theta: np.ndarray) -> np.ndarray:
        """Whether each code is in the region; (n, d) -> (n,), bool."""
        inside = ((theta >= self.low - 1e-9) & (theta <= self.high + 1e-9)).all(axis=1)
        for column, values in self.values.items():
            inside &= np.isin(theta[:, column], values)
        return np.asarray(inside)


class Posterior:
    """Predictions of the target's scores, given its trials so far.

    Attributes
    ----------
    level_std : float
        Uncertainty of the common level of all predictions before the first trial. `predict` leaves
        it out, because it favors no configuration.
    has_unit : bool
        Whether predictions have the unit of the scores. Otherwise they only rank configurations.

    Examples
    --------
    >>> class Constant(Posterior):
    ...     def predict(self, theta):
    ...         return np.full(len(theta), 0.5), np.full(len(theta), 0.1)
    >>> Constant().predict(np.zeros((2, 3)))[0].tolist()
    [0.5, 0.5]
    >>> Constant().incumbent(np.array([0.3, np.nan, 0.7]))
    0.7
    """

    level_std: float = 0.0
    has_unit: bool = True

    def predict(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation; (n, d) -> (n,), (n,)."""
        raise TypeError(f"{type(self).__name__} must define predict.")

    def sample(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws; (m, d) -> (n, m)."""
        raise TypeError(f"{type(self).__name__} must define sample.")

    def incumbent(self, z: np.ndarray) -> float | None:
        """The value to beat, on the scale of `predict`, given the observed scores z, (n,)."""
        return float(np.nanmax(z)) if len(z) else None

    def to_scores(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From the scale of `predict` to the scale of the scores."""
        return mean, std


@dataclass(frozen=True)
class SearchHints:
    """How a surrogate wants the target to be searched.

    Parameters
    ----------
    n_initial : int
        Trials of the target to observe before the posterior is asked.
    space_filling : bool
        Whether these trials fill the space evenly. False draws them at random.
    first_settings : ndarray of shape (k, d) or None
        Codes to try before the posterior is asked, best first.
    sources : tuple of str
        Id of the past task that each of `first_settings` comes from.
    restrict_to : ndarray of shape (k, d) or None
        Codes that the posterior's first choice is limited to. None allows the whole space.
    region : Region or None
        The part of the space to search. None is all of it.
    thompson : bool
        Whether the next trial is the best of a draw from the posterior, not of expected
        improvement.
    redraw : float
        Probability that each coordinate of a proposal is redrawn at random, once a trial was
        observed.

    Examples
    --------
    >>> hints = SearchHints(n_initial=4)
    >>> hints.space_filling, hints.first_settings is None
    (True, True)
    """

    n_initial: int = 0
    space_filling: bool = True
    first_settings: np.ndarray | None = None
    sources: tuple[str, ...] = ()
    restrict_to: np.ndarray | None = None
    region: Region | None = None
    thompson: bool = False
    redraw: float = 0.0


class Surrogate(BaseEstimator):
    """Base of all surrogates.

    Attributes
    ----------
    n_initial : int
        Space-filling trials of the target that are needed before the posterior is used.
    uses_past_tasks : bool
        Whether it learns from past tasks.
    uses_prior : bool
        Whether it reads the `prior` of tasks.
    max_past_tasks : int or None
        How many past tasks a search passes to `fit` at most, those with the most similar data.
    n_similar_tasks : int or None
        If given, `fit` learns what past tasks have in common, and `extend` adds others. A search
        then fits it to a sample of the past tasks once, and adds so many similar ones.
    is_cacheable : bool
        Whether `fit` takes long enough for its result to be cached.
    fallback_name : str
        What it works as without past trials. If not empty, `fit` warns if there are none.

    Examples
    --------
    >>> class Lazy(Surrogate):
    ...     def hints(self, target):
    ...         return SearchHints(n_initial=100)  # fills the space, and never uses a model
    >>> target = EncodedTask(np.zeros((0, 1)), np.zeros(0), np.array([False]))
    >>> Lazy().fit([]).posterior(target) is None
    True
    """

    n_initial: int = 0
    uses_past_tasks: ClassVar[bool] = False
    uses_prior: bool = False
    max_past_tasks: ClassVar[int | None] = 1000
    n_similar_tasks: int | None = None
    is_cacheable: ClassVar[bool] = False
    fallback_name: ClassVar[str] = ""

    def check_params(self) -> None:
        """Raise a ValueError if a parameter is invalid. `fit` calls it."""

    def fit(self, tasks: Sequence[EncodedTask], warm_from: Surrogate | None = None) -> Self:
        """Learn from past tasks.

        Parameters
        ----------
        tasks : sequence of EncodedTask
            The past tasks. There may be none.
        warm_from : Surrogate or None
            A fitted surrogate to start training from.
        """
        self.check_params()
        self.n_tasks_ = len(tasks)
        if self.fallback_name and not any(np.isfinite(task.z).any() for task in tasks):
            warnings.warn(
                f"{type(self).__name__} has no past trials to learn from and works as "
                f"{self.fallback_name}.",
                SurrogateWarning,
                stacklevel=2,
            )
        return self

    def extend(self, tasks: Sequence[EncodedTask]) -> Self:
        """Add past tasks to those it was fitted to, if it has `n_similar_tasks`."""
        raise TypeError(f"{type(self).__name__} cannot be extended.")

    @property
    def task_ids(self) -> list[str]:
        """Ids of the past tasks, in the order of `similarity`. A cacheable surrogate has them."""
        return []

    def posterior(self, target: EncodedTask) -> Posterior | None:
        """Predictions for the target given its trials so far, of which there may be none.

        None means that there is no model, so that any trial is as good as another.
        """
        return None

    def hints(self, target: EncodedTask) -> SearchHints:
        """How to search the target, given its trials so far."""
        return SearchHints(n_initial=self.n_initial, space_filling=self.n_initial > 0)

    def similarity(self, target: EncodedTask) -> np.ndarray | None:
        """Similarity of each past task to the target, in [0, 1]; None if it is not defined."""
        return None

    def similarity_basis(self, target: EncodedTask) -> list[str] | None:
        """What each past task was compared by, or why it was excluded, in a few words.

        None if past tasks are not compared.
        """
        return None

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as plain arrays."""
        return {}

    def set_state(self, state: dict[str, np.ndarray]) -> Self:
        """Restore the result of `get_state`."""
        self.n_tasks_ = 0
        return self
