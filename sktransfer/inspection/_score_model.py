"""`ScoreModel`: the posterior of a search's surrogate, as a function of configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sktransfer.inspection._search_results import read_profile, read_results, read_space
from sktransfer.space import Space
from sktransfer.surrogates import EncodedTask, Posterior, Surrogate, make_surrogate
from sktransfer.utils._threads import numeric_context

MIN_TRIALS = 3  # successful trials that a plain Gaussian process needs to say anything


class ScoreModel:
    """Predicted scores of all configurations, given all trials of a search.

    Parameters
    ----------
    space : Space
    target : EncodedTask
        The trials.
    posterior : Posterior
    """

    def __init__(self, space: Space, target: EncodedTask, posterior: Posterior):
        self.space, self.target, self._posterior = space, target, posterior

    @numeric_context()
    def predict(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation on the scale of the scores; (n, d) -> (n,), (n,)."""
        return self._posterior.to_scores(*self._posterior.predict(codes))

    def mean(self, codes: np.ndarray) -> np.ndarray:
        """Predicted score; (n, d) -> (n,)."""
        return self.predict(codes)[0]

    def best_code(self) -> np.ndarray:
        """Code of the best trial; (d,)."""
        return np.asarray(self.target.theta[int(np.nanargmax(self.target.z))])

    @classmethod
    def from_search(cls, search: Any) -> ScoreModel:
        """The model of a fitted search.

        A search without a model, such as a grid, gets a plain Gaussian process.
        """
        results, space = read_results(search), read_space(search)
        codes = space.encode(results.params)
        target = EncodedTask(codes, results.scores, space.categorical, read_profile(search))
        surrogate = getattr(search, "surrogate_", None)
        return cls._fit(space, target, [] if surrogate is None else [surrogate])

    @classmethod
    def from_task(cls, space: Space, task: EncodedTask) -> ScoreModel:
        """A plain Gaussian process of the trials of one past task."""
        return cls._fit(space, task, [])

    @classmethod
    @numeric_context()
    def _fit(cls, space: Space, target: EncodedTask, surrogates: Sequence[Surrogate]) -> ScoreModel:
        n_ok = int(np.isfinite(target.z).sum())
        if n_ok < MIN_TRIALS:
            raise ValueError(
                f"At least {MIN_TRIALS} successful trials are needed to model the scores, "
                f"got {n_ok}."
            )
        for surrogate in (*surrogates, make_surrogate("gp").fit([])):
            posterior = surrogate.posterior(target)
            if posterior is not None:
                return cls(space, target, posterior)
        raise AssertionError("a Gaussian process always has a posterior")
