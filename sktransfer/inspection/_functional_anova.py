"""Functional ANOVA: which parameters the variation of a function over the space comes from.

Notation: f a function of codes of configurations, (n, d) -> (n,). u one parameter, or a pair. Its
columns are those of all branches in which it occurs. All configurations of the space are equally
probable, in its own distributions. V = Var f.

    main_u   = Var E[f | u] / V              what u explains alone (for a pair: without its members)
    total_u  = E Var[f | all but u] / V      what u explains together with all others

They are estimated by pick and freeze, from two quasi-random samples A and B and samples AB_u, which
are A with the columns of u from B:

    V main_u = mean f(B) (f(AB_u) - f(A))        Saltelli et al. 2010, table 2 (b)
    V total_u = mean (f(A) - f(AB_u))² / 2       Jansen 1999

Hutter, Hoos and Leyton-Brown (2014) proposed the decomposition for hyperparameters, of a forest.
Here f is the mean of the posterior of a surrogate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import qmc

from sktransfer.space import Space

BRANCH = "(branch of the space)"
MAX_PAIRED = 6  # parameters whose interactions are computed, most important first
MIN_RELATIVE_VARIANCE = 1e-12  # a function that varies less is constant, up to rounding


@dataclass(frozen=True)
class Importances:
    """Shares of the variance of a function.

    Parameters
    ----------
    names : list of str
        The parameters.
    main, total : ndarray of shape (n_parameters,)
        Share that each explains alone, and together with all others. NaN for those that are fixed.
    pairs : dict of (str, str) to float
        Share that two parameters explain together and neither alone, largest first.
    """

    names: list[str]
    main: np.ndarray
    total: np.ndarray
    pairs: dict[tuple[str, str], float]


def decompose_variance(
    function: Callable[[np.ndarray], np.ndarray],
    space: Space,
    n_samples: int = 1024,
    fixed: Mapping[int, float] | None = None,
) -> Importances:
    """Decompose the variance of a function over a space.

    Parameters
    ----------
    function : callable
        Codes of configurations, (n, d), to values, (n,).
    space : Space
    n_samples : int
        Size of the samples. It is rounded up to a power of two.
    fixed : dict of int to float or None
        Columns that have the same coordinate everywhere.

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> space = Space.parse({"a": uniform(0, 1), "b": uniform(0, 1)})
    >>> found = decompose_variance(lambda codes: 2 * codes[:, 0] + codes[:, 1], space)
    >>> found.names, found.main.round(2).tolist(), found.total.round(2).tolist()
    (['a', 'b'], [0.8, 0.2], [0.8, 0.2])
    """
    if n_samples < 2:
        raise ValueError(f"n_samples={n_samples!r} must be at least 2.")
    fixed = fixed or {}
    groups = _columns_by_name(space)
    free = [name for name, columns in groups.items() if not fixed.keys() >= set(columns)]
    sample = _PickFreeze(function, space, n_samples, fixed)
    unknown = dict.fromkeys(groups, np.nan)
    main, total = dict(unknown), dict(unknown)
    for name in free:
        main[name], total[name] = sample.shares(groups[name])
    paired = sorted(free, key=lambda name: -total[name])[:MAX_PAIRED]
    pairs = {}
    for one, other in combinations([name for name in free if name in paired], 2):
        together, _ = sample.shares(groups[one] + groups[other])
        pairs[one, other] = max(0.0, together - main[one] - main[other])
    return Importances(
        list(groups),
        np.clip(list(main.values()), 0, 1),
        np.clip(list(total.values()), 0, 1),
        dict(sorted(pairs.items(), key=lambda pair: -pair[1])),
    )


def _columns_by_name(space: Space) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(space.column_names()):
        groups.setdefault(BRANCH if name is None else name, []).append(column)
    return groups


class _PickFreeze:
    """The samples A and B, and the function on them."""

    def __init__(
        self,
        function: Callable[[np.ndarray], np.ndarray],
        space: Space,
        n_samples: int,
        fixed: Mapping[int, float],
    ):
        self._function, self._space, self._fixed = function, space, fixed
        d = space.n_columns
        # Both samples are parts of one sequence, so that they are independent of each other.
        points = qmc.Sobol(2 * d, seed=0).random_base2(int(np.ceil(np.log2(n_samples))))
        self._cube_a, self._cube_b = points[:, :d], points[:, d:]
        a, b = self._evaluate(self._cube_a), self._evaluate(self._cube_b)
        both = np.concatenate([a, b])
        center = both.mean()
        self._a, self._b, self._center = a - center, b - center, center
        self._variance = both.var()
        self._is_constant = self._variance <= MIN_RELATIVE_VARIANCE * (both**2).mean()

    def _evaluate(self, cube: np.ndarray) -> np.ndarray:
        codes = self._space.from_cube(cube)
        for column, coordinate in self._fixed.items():
            codes[:, column] = coordinate
        return np.asarray(self._function(codes), dtype=float)

    def shares(self, columns: list[int]) -> tuple[float, float]:
        """Main and total effect of some columns together."""
        if self._is_constant:
            return 0.0, 0.0
        cube = self._cube_a.copy()
        cube[:, columns] = self._cube_b[:, columns]
        mixed = self._evaluate(cube) - self._center
        main = np.mean(self._b * (mixed - self._a)) / self._variance
        total = np.mean((self._a - mixed) ** 2) / 2 / self._variance
        return float(main), float(total)
