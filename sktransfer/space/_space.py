"""`Space`: a search space as GridSearchCV and RandomizedSearchCV take it, encoded in [0, 1].

A configuration is a dict of plain values. Its code is a row of columns: first the branch, if there
are several, then one column per axis. Notation: n configurations, d columns, b the index of a
branch.

A parameter that the branch of a configuration does not have is inactive. Its column has a fixed
coordinate (`INACTIVE_CATEGORY` among categories, 0.5 on a scale), so all rows of a branch agree
there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sktransfer.space._axes import (
    INACTIVE_CATEGORY,
    Axis,
    Categorical,
    Ordered,
    is_number,
    nearest,
)
from sktransfer.space._estimator_tree import Estimator
from sktransfer.space._formatting import format_range
from sktransfer.space._parameter_names import CanonicalNames, check_names
from sktransfer.space._parsing import Branch, Entry, describe_values, make_axes, parse_branches
from sktransfer.utils._values import Plain, identity


class Space:
    """A search space. Use `Space.parse` to make one.

    Attributes
    ----------
    names : list of str
        Parameter names in the order of the columns, without the branch.
    n_columns : int
        Number of columns of a code.
    categorical : ndarray of bool, shape (n_columns,)
        Columns whose coordinates have no order.
    canonical : dict
        Declared name -> canonical name.
    predictors : list of str
        Classes of the estimators that can make the predictions.
    fixed : dict
        Canonical name -> plain value of the estimator's parameters that are not searched.
    size : int or None
        Number of configurations; None if it is infinite.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> space = Space.parse({"C": loguniform(1e-3, 1e3), "kernel": ["rbf", "linear"]})
    >>> code = space.encode({"C": 1.0, "kernel": "rbf"})
    >>> code.tolist(), space.decode(code)
    ([0.5, 0.25], {'C': 1.0, 'kernel': 'rbf'})
    >>> space
    Space(C: 0.001 to 1000 (log), kernel: 'rbf', 'linear')
    """

    def __init__(self, branches: list[Branch], estimator: Estimator | None = None):
        self.branches = branches
        self._axes, self.names, self._axis_indices = make_axes(branches)
        self._offset = int(len(branches) > 1)
        self.n_columns = self._offset + len(self._axes)
        kinds = [True] * self._offset + [axis.is_categorical for axis in self._axes]
        self.categorical = np.array(kinds, dtype=bool)
        names = CanonicalNames(branches, estimator)
        self.canonical, self.predictors = names.canonical(), names.predictors()
        self.fixed = names.fixed(self.canonical)
        # Values of a shared axis that each branch has: axis index -> sorted coordinates.
        self._branch_coordinates = [
            {index: self._entry_coordinates(index, branch[name]) for name, index in indices.items()}
            for branch, indices in zip(branches, self._axis_indices, strict=True)
        ]

    @classmethod
    def parse(
        cls,
        space: Mapping[str, Any] | Sequence[Mapping[str, Any]] | Space,
        estimator: Estimator | None = None,
    ) -> Space:
        """Read a dict, or a list of dicts, of lists and distributions.

        Parameters
        ----------
        space : dict, list of dict or Space
            ``param_grid`` of GridSearchCV or ``param_distributions`` of RandomizedSearchCV.
        estimator : estimator or None
            If given, names are checked against its parameters and made canonical.
        """
        if isinstance(space, Space) and estimator is None:
            return space
        branches = space.branches if isinstance(space, Space) else parse_branches(space)
        check_names(branches, estimator)
        return cls(branches, estimator)

    def _entry_coordinates(self, index: int, entry: Entry) -> np.ndarray | None:
        axis = self._axes[index]
        if isinstance(axis, (Categorical, Ordered)) and isinstance(entry, list):
            return np.unique(axis.encode(entry))
        return None

    def __repr__(self) -> str:
        branches = [
            ", ".join(
                f"{name}: {format_range(entry, self._axes[indices[name]])}"
                for name, entry in branch.items()
            )
            for branch, indices in zip(self.branches, self._axis_indices, strict=True)
        ]
        parts = [" | ".join(branches)] if any(branches) else []
        if self.size is not None:
            parts.append(f"{self.size} configuration{'s' * (self.size != 1)}")
        return f"Space({'; '.join(parts)})"

    # -- size and enumeration ----------------------------------------------------------------------

    @property
    def size(self) -> int | None:
        """Number of configurations; None if it is not finite."""
        total = 0
        for b in range(len(self.branches)):
            values = self._finite_values(b)
            if values is None:
                return None
            total += math.prod(len(entry) for entry in values)
        return total

    def _finite_values(self, b: int) -> list[Sequence[Any]] | None:
        """Values of each parameter of a branch; None if one of them has infinitely many."""
        values: list[Sequence[Any]] = []
        for name, entry in self.branches[b].items():
            axis = self._axes[self._axis_indices[b][name]]
            found = entry if isinstance(entry, list) else axis.values
            if found is None:
                return None
            values.append(found)
        return values

    def grid(self) -> list[dict[str, Any]]:
        """List all configurations of a finite space in the order of ParameterGrid."""
        rows = []
        for b, branch in enumerate(self.branches):
            values = self._finite_values(b)
            if values is None:
                raise ValueError("A space with a continuous or unbounded parameter has no grid.")
            rows += [dict(zip(branch, row, strict=True)) for row in itertools.product(*values)]
        return rows

    # -- sampling ----------------------------------------------------------------------------------

    def sample(
        self,
        n: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> list[dict[str, Any]]:
        """Draw `n` independent configurations. All branches are equally probable.

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

        Equal volumes of the cube map to equally probable configurations. So space-filling points
        become space-filling configurations.
        """
        codes = np.empty_like(cube, dtype=float)
        branch = self.branch_of(cube)
        for rows, column, axis, coordinates in self._active_cells(branch):
            u = cube[rows, column]
            if coordinates is None:
                codes[rows, column] = axis.snap(u)
            else:
                codes[rows, column] = coordinates[_cell(u, len(coordinates))]
        return self.fill_inactive(codes, branch)

    def snap(self, codes: np.ndarray) -> np.ndarray:
        """The nearest valid codes, column by column, within each row's branch; (n, d) -> (n, d)."""
        codes = np.array(codes, dtype=float)
        branch = self.branch_of(codes)
        for rows, column, axis, coordinates in self._active_cells(branch):
            u = codes[rows, column]
            if coordinates is None:
                codes[rows, column] = axis.snap(u)
            else:
                codes[rows, column] = coordinates[nearest(coordinates, u)]
        return self.fill_inactive(codes, branch)

    def fill_inactive(self, codes: np.ndarray, branch: np.ndarray) -> np.ndarray:
        """Complete rows whose active columns and branches are given; (n, d), (n,) -> (n, d).

        Inactive columns get their fixed coordinates. Unknown numbers (NaN) are placed in the
        middle.
        """
        codes = np.where(np.isnan(codes) & ~self.categorical, 0.5, codes)
        for b in range(len(self.branches)):
            inactive = np.setdiff1d(np.arange(self._offset, self.n_columns), self.active(b))
            rows = np.flatnonzero(branch == b)
            codes[np.ix_(rows, inactive)] = self._inactive_row()[inactive]
        if self._offset:
            codes[:, 0] = self._branch_code(branch)
        return codes

    def _active_cells(
        self, branch: np.ndarray
    ) -> Iterator[tuple[np.ndarray, int, Axis, np.ndarray | None]]:
        """Yield rows, column, axis and coordinates of each parameter in each branch."""
        for b, by_axis in enumerate(self._branch_coordinates):
            rows = np.flatnonzero(branch == b)
            for index, coordinates in by_axis.items():
                yield rows, self._offset + index, self._axes[index], coordinates

    def choices(self, branch: int, column: int) -> np.ndarray | None:
        """Sorted coordinates of a finite column in a branch; None if continuous or inactive."""
        return self._branch_coordinates[branch].get(column - self._offset)

    def active(self, branch: int) -> np.ndarray:
        """Columns of the parameters that a branch has."""
        return np.array(sorted(self._branch_coordinates[branch]), dtype=int) + self._offset

    def branch_of(self, codes: np.ndarray) -> np.ndarray:
        """Index of each row's branch; (n, d) -> (n,)."""
        if not self._offset:
            return np.zeros(len(codes), dtype=int)
        return _cell(np.clip(codes[:, 0], 0, 1), len(self.branches))

    def _branch_code(self, branch: np.ndarray) -> np.ndarray:
        return (branch + 0.5) / len(self.branches)

    def _inactive_row(self) -> np.ndarray:
        return np.where(self.categorical, INACTIVE_CATEGORY, 0.5)

    # -- encode and decode -------------------------------------------------------------------------

    def encode(self, params: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Encode one configuration, shape (d,), or a sequence of them, shape (n, d), in [0, 1]."""
        if isinstance(params, Mapping):
            return self.encode([params])[0]
        codes = np.tile(self._inactive_row(), (len(params), 1))
        branch = np.array([self._find_branch(configuration) for configuration in params], dtype=int)
        if self._offset:
            codes[:, 0] = self._branch_code(branch)
        for b, indices in enumerate(self._axis_indices):
            rows = np.flatnonzero(branch == b)
            for name, index in indices.items():
                values = [params[int(row)][name] for row in rows]
                codes[rows, self._offset + index] = self._axes[index].encode(values)
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
        keys = {name: identity(value) for name, value in params.items()}
        for b in fitting:
            listed = self._listed_values[b]
            if all(keys[name] in values for name, values in listed.items()):
                if len(listed) == len(params):
                    return b
                break
        return max(fitting, key=lambda b: self._rate_fit(b, params, keys))

    @cached_property
    def _listed_values(self) -> list[dict[str, frozenset]]:
        """For each branch, name -> identities of the values in its list."""
        return [
            {
                name: frozenset(map(identity, entry))
                for name, entry in branch.items()
                if isinstance(entry, list)
            }
            for branch in self.branches
        ]

    def _rate_fit(
        self, b: int, params: Mapping[str, Any], keys: Mapping[str, Any]
    ) -> tuple[int, int]:
        """Rate how a configuration fits a branch: (-number of misfits, number of exact values)."""
        misfits = exact = 0
        for name, entry in self.branches[b].items():
            value, axis = params[name], self._axes[self._axis_indices[b][name]]
            if isinstance(entry, list):
                fits = keys[name] in self._listed_values[b][name]
                exact += fits
            else:
                low, high = entry.support()
                has_type = isinstance(value, int) == hasattr(entry, "pmf")
                fits = has_type and is_number(value) and low <= value <= high
                exact += fits and axis.decode(axis.encode([value])) == [value]
            misfits += not fits
        return -misfits, exact

    def decode(self, codes: np.ndarray) -> Any:
        """Decode one code to a dict, or each row to a list of dicts: the nearest configurations."""
        codes = np.asarray(codes, dtype=float)
        if codes.ndim == 1:
            return self.decode(codes[None])[0]
        codes, branch = self.snap(codes), self.branch_of(codes)
        configurations: list[dict[str, Any]] = [{} for _ in codes]
        for b, indices in enumerate(self._axis_indices):
            rows = np.flatnonzero(branch == b)
            for name, index in indices.items():
                values = self._axes[index].decode(codes[rows, self._offset + index])
                for row, value in zip(rows, values, strict=True):
                    configurations[row][name] = value
        return configurations

    # -- other spaces ------------------------------------------------------------------------------

    def describe(self) -> dict[str, Plain]:
        """Describe the space as plain data, for the record."""
        return {
            "branches": [
                {name: describe_values(values) for name, values in branch.items()}
                for branch in self.branches
            ],
            "canonical": dict(self.canonical),
            "fixed": dict(self.fixed),
            "predictors": list(self.predictors),
        }

    def encode_column(self, column: int, values: Iterable[object]) -> np.ndarray:
        """Coordinates in one column of values that need not belong to the space (see `_axes`)."""
        return self._axes[column - self._offset].encode(list(values))

    def decode_column(self, column: int, u: np.ndarray) -> list[Any]:
        """Values in one column at some coordinates."""
        return self._axes[column - self._offset].decode(u)

    def list_column(self, column: int, max_values: int) -> tuple[np.ndarray, list[Any] | None]:
        """Sorted coordinates of a finite column, and its values; None if there are more values."""
        axis = self._axes[column - self._offset]
        values = axis.values
        if values is None or len(values) > max_values:
            return np.empty(0), None
        return axis.encode(values), list(values)

    def is_log_scale(self, name: str) -> bool:
        """Whether the numbers of a parameter lie on a logarithmic scale."""
        return getattr(self._axes[self.names.index(name)], "scale", None) == "log"

    def column_names(self) -> list[str | None]:
        """Declared name of each column; None for the branch."""
        return [None] * self._offset + self.names


def _cell(u: np.ndarray, n: int) -> np.ndarray:
    """Which of n equal parts of [0, 1] contains each u."""
    return np.minimum((u * n).astype(int), n - 1)
