"""`Space`: a search space as GridSearchCV and RandomizedSearchCV take it, made of columns in [0, 1].

A configuration is a dict of plain values; its code is a row of the columns: first, where there are
several branches, the branch, then one column per axis. Notation: n configurations, d columns.

A parameter that the configuration's branch does not have sits at a fixed coordinate of its column
(`INACTIVE` among categories, 0.5 on a scale), so rows of one branch agree there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sktransfer.space import _parameter_names, _parsing
from sktransfer.space._axes import INACTIVE, Categorical, Ordered, is_number, nearest
from sktransfer.utils._values import Plain, identity


class Space:
    """A search space; make one with `Space.parse`.

    Attributes
    ----------
    names : list of str
        Parameter names, in the order of the columns (without the branch's).
    n_columns : int
        Width of the code.
    categorical : ndarray of bool, shape (n_columns,)
        Columns in which only equality counts.
    canonical : dict
        Declared name -> canonical name.
    fixed : dict
        Canonical name -> plain value of the estimator's parameters that are not searched.
    size : int or None
        Number of configurations; None if there is no end of them.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> space = Space.parse({"C": loguniform(1e-3, 1e3), "kernel": ["rbf", "linear"]})
    >>> code = space.encode({"C": 1.0, "kernel": "rbf"})
    >>> code.tolist(), space.decode(code)
    ([0.5, 0.25], {'C': 1.0, 'kernel': 'rbf'})
    """

    def __init__(self, branches: list[_parsing.Branch], estimator: Any = None):
        self.branches = branches
        self._axes, self.names, self._places = _parsing.make_axes(branches)
        self._offset = int(len(branches) > 1)
        self.n_columns = self._offset + len(self._axes)
        kinds = [True] * self._offset + [axis.categorical for axis in self._axes]
        self.categorical = np.array(kinds, dtype=bool)
        names = _parameter_names.Names(branches, estimator)
        self.canonical, self.predictors = names.canonical(), names.predictors()
        self.fixed = names.fixed(self.canonical)
        # Which values of a shared axis a branch owns: branch -> column -> sorted coordinates.
        self._allowed = [
            {place: self._own_coordinates(place, branch[name]) for name, place in places.items()}
            for branch, places in zip(branches, self._places, strict=True)
        ]

    @classmethod
    def parse(cls, space: Any, estimator: Any = None) -> Space:
        """Read a dict, or a list of dicts, of lists and distributions.

        Parameters
        ----------
        space : dict, list of dict or Space
            What GridSearchCV takes as ``param_grid`` or RandomizedSearchCV as ``param_distributions``.
        estimator : estimator or None
            If given, names are checked against its parameters and made canonical.
        """
        if isinstance(space, Space) and estimator is None:
            return space
        branches = space.branches if isinstance(space, Space) else _parsing.parse_branches(space)
        _parameter_names.check_names(branches, estimator)
        return cls(branches, estimator)

    def _own_coordinates(self, place: int, values: Any) -> np.ndarray | None:
        axis = self._axes[place]
        return np.unique(axis.encode(values)) if isinstance(axis, (Categorical, Ordered)) else None

    def __repr__(self) -> str:
        size = "infinite" if self.size is None else f"{self.size} configurations"
        return f"Space({', '.join(dict.fromkeys(self.names))}; {size})"

    # -- size and enumeration ------------------------------------------------------------------

    @property
    def size(self) -> int | None:
        total = 0
        for b in range(len(self.branches)):
            values = self._finite_values(b)
            if values is None:
                return None
            total += math.prod(len(entry) for entry in values)
        return total

    def _finite_values(self, b: int) -> list[Sequence[Any]] | None:
        """Values of each parameter of a branch; None if there is no end of them."""
        values = []
        for name, entry in self.branches[b].items():
            own = entry if _parsing.is_list(entry) else self._axes[self._places[b][name]].values
            if own is None:
                return None
            values.append(own)
        return values

    def grid(self) -> list[dict[str, Any]]:
        """Every configuration of a finite space, in the order of scikit-learn's ParameterGrid."""
        rows = []
        for b, branch in enumerate(self.branches):
            values = self._finite_values(b)
            if values is None:
                raise ValueError("A space with a continuous or unbounded parameter has no grid.")
            rows += [dict(zip(branch, row, strict=True)) for row in itertools.product(*values)]
        return rows

    # -- sampling ------------------------------------------------------------------------------

    def sample(self, n: int = 1, random_state: Any = None) -> list[dict[str, Any]]:
        """Draw `n` configurations independently, each branch as often as the others.

        Parameters
        ----------
        n : int
        random_state : None, int, numpy Generator or RandomState
        """
        if isinstance(random_state, np.random.RandomState):
            random_state = random_state.randint(2**31 - 1)
        rng = np.random.default_rng(random_state)
        return self.decode(self.from_cube(rng.random((n, self.n_columns))))

    def from_cube(self, cube: np.ndarray) -> np.ndarray:
        """Codes of the configurations at points of the unit cube; (n, d) -> (n, d).

        Equal volumes of the cube go to equally probable configurations, so a space-filling set of
        points becomes a space-filling set of configurations.
        """
        codes = np.empty_like(cube, dtype=float)
        branch = self.branch_of(cube)
        for rows, column, axis, own in self._active_cells(branch):
            u = cube[rows, column]
            codes[rows, column] = axis.snap(u) if own is None else own[_cell(u, len(own))]
        return self.settle(codes, branch)

    def snap(self, codes: np.ndarray) -> np.ndarray:
        """The nearest valid codes, column by column, within each row's branch; (n, d) -> (n, d)."""
        codes = np.array(codes, dtype=float)
        branch = self.branch_of(codes)
        for rows, column, axis, own in self._active_cells(branch):
            u = codes[rows, column]
            codes[rows, column] = axis.snap(u) if own is None else own[nearest(own, u)]
        return self.settle(codes, branch)

    def settle(self, codes: np.ndarray, branch: np.ndarray) -> np.ndarray:
        """Codes of rows whose active columns are given, with their branches; (n, d), (n,) -> (n, d).

        What a branch does not have is idle, and a number that is not known (NaN) is in the middle.
        """
        codes = np.where(np.isnan(codes) & ~self.categorical, 0.5, codes)
        for b in range(len(self.branches)):
            idle = np.setdiff1d(np.arange(self._offset, self.n_columns), self.active(b))
            codes[np.ix_(np.flatnonzero(branch == b), idle)] = self._idle_row()[idle]
        if self._offset:
            codes[:, 0] = self._branch_code(branch)
        return codes

    def _active_cells(self, branch: np.ndarray) -> Iterator[tuple[np.ndarray, int, Any, np.ndarray | None]]:
        """Rows, column, axis and own coordinates of every parameter that is active in some branch."""
        for b, allowed in enumerate(self._allowed):
            rows = np.flatnonzero(branch == b)
            for place, coordinates in allowed.items():
                yield rows, self._offset + place, self._axes[place], coordinates

    def choices(self, branch: int, column: int) -> np.ndarray | None:
        """Sorted coordinates a finite column may take in a branch; None if continuous or not active."""
        return self._allowed[branch].get(column - self._offset)

    def active(self, branch: int) -> np.ndarray:
        """Columns of the parameters that the branch has."""
        return np.array(sorted(self._allowed[branch]), dtype=int) + self._offset

    def branch_of(self, codes: np.ndarray) -> np.ndarray:
        """Index of each row's branch; (n, d) -> (n,)."""
        if not self._offset:
            return np.zeros(len(codes), dtype=int)
        return _cell(np.clip(codes[:, 0], 0, 1), len(self.branches))

    def _branch_code(self, branch: Any) -> Any:
        return (branch + 0.5) / len(self.branches)

    def _idle_row(self) -> np.ndarray:
        return np.where(self.categorical, INACTIVE, 0.5)

    # -- encode and decode ---------------------------------------------------------------------

    def encode(self, params: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Codes in [0, 1]: of one configuration, shape (d,), or of a sequence of them, (n, d)."""
        if isinstance(params, Mapping):
            return self.encode([params])[0]
        codes = np.tile(self._idle_row(), (len(params), 1))
        branch = np.array([self._find_branch(configuration) for configuration in params], dtype=int)
        if self._offset:
            codes[:, 0] = self._branch_code(branch)
        for b, places in enumerate(self._places):
            rows = np.flatnonzero(branch == b)
            for name, place in places.items():
                values = [params[int(row)][name] for row in rows]
                codes[rows, self._offset + place] = self._axes[place].encode(values)
        return codes

    def _find_branch(self, params: Mapping[str, Any]) -> int:
        fitting = [b for b, branch in enumerate(self.branches) if branch.keys() == params.keys()]
        if not fitting:
            raise ValueError(
                f"The configuration {dict(params)!r} does not have the parameters of this space: "
                f"{[list(branch) for branch in self.branches]}."
            )
        if len(fitting) == 1:
            return fitting[0]
        known = {name: identity(value) for name, value in params.items()}
        exact = (b for b in fitting if all(known[name] in own for name, own in self._listed[b].items()))
        if (b := next(exact, None)) is not None and len(self._listed[b]) == len(params):
            return b
        return max(fitting, key=lambda b: self._fit(b, params, known))

    @cached_property
    def _listed(self) -> list[dict[str, frozenset]]:
        """Identities of the values in the lists of each branch."""
        return [
            {name: frozenset(map(identity, entry)) for name, entry in b.items() if _parsing.is_list(entry)}
            for b in self.branches
        ]

    def _fit(self, b: int, params: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[int, int]:
        """How well a configuration fits a branch: minus what does not belong there, then what is its own."""
        misfits = own = 0
        for name, entry in self.branches[b].items():
            value, axis = params[name], self._axes[self._places[b][name]]
            if _parsing.is_list(entry):
                belongs = known[name] in self._listed[b][name]
                own += belongs
            else:
                low, high = entry.support()
                right_type = isinstance(value, int) == hasattr(entry, "pmf")
                belongs = right_type and is_number(value) and low <= value <= high
                own += belongs and axis.decode(axis.encode([value])) == [value]
            misfits += not belongs
        return -misfits, own

    def decode(self, codes: np.ndarray) -> Any:
        """Configuration of one code, a dict, or of each row, a list of dicts; the nearest valid ones."""
        codes = np.asarray(codes, dtype=float)
        if codes.ndim == 1:
            return self.decode(codes[None])[0]
        codes, branch = self.snap(codes), self.branch_of(codes)
        rows: list[dict[str, Any]] = [{} for _ in codes]
        for b, places in enumerate(self._places):
            own = np.flatnonzero(branch == b)
            for name, place in places.items():
                values = self._axes[place].decode(codes[own, self._offset + place])
                for row, value in zip(own, values, strict=True):
                    rows[row][name] = value
        return rows

    # -- other spaces --------------------------------------------------------------------------

    def describe(self) -> dict[str, Plain]:
        """The space as plain data, for the record."""
        return {
            "branches": [
                {name: _parsing.describe_values(values) for name, values in branch.items()}
                for branch in self.branches
            ],
            "canonical": dict(self.canonical),
            "fixed": dict(self.fixed),
            "predictors": list(self.predictors),
        }

    def encode_column(self, column: int, values: Iterable[Any]) -> np.ndarray:
        """Coordinates of values from anywhere in one column; see `axis` for what is out of bounds."""
        return self._axes[column - self._offset].encode(list(values))

    def column_names(self) -> list[str | None]:
        """Declared name of each column; None for the branch."""
        return [None] * self._offset + self.names


def _cell(u: np.ndarray, n: int) -> np.ndarray:
    """Which of n equal parts of [0, 1] each u lies in."""
    return np.minimum((u * n).astype(int), n - 1)
