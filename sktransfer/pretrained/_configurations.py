"""Configurations of an estimator as vectors that a head reads.

A head reads every parameter of its estimator that may be tuned, whether a search tunes it or holds
it fixed. A number is its place on an axis, where -1 and 1 are the bounds that the head was trained
on. If the meaning of a number depends on the data, it has a second place, relative to its unit: the
share of the rows for ``min_samples_leaf``, the typical squared distance for ``gamma``, the standard
deviation of the target for ``epsilon``. Values that depend on the data are resolved:
``gamma="scale"`` is 1 / (p v), ``max_features="sqrt"`` is 1 / sqrt(p).

Notation: n rows, p columns, v the mean variance of the columns, V the variance of all cells of X, s
the standard deviation of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sktransfer.dataset import DatasetProfile

MAX_PLACE = 1.5  # numbers beyond the bounds are clipped here
RELATIVE_DECADES = 3.0  # of a relative number, on each side of its unit
ALIASES = {"log_loss": "entropy", "friedman_mse": "squared_error", "poisson": "squared_error"}


@dataclass(frozen=True)
class Units:
    """What the meaning of numbers depends on.

    Parameters
    ----------
    n_rows : float
        Rows of X, as used for training: two of three folds.
    n_columns : float
    variance : float
        Mean variance of the columns; 1 behind a scaler.
    cell_variance : float
        Variance of all cells, which ``gamma="scale"`` refers to; 1 behind a scaler.
    target_std : float
    """

    n_rows: float
    n_columns: float
    variance: float = 1.0
    cell_variance: float = 1.0
    target_std: float = 1.0

    @classmethod
    def from_profile(cls, profile: DatasetProfile, is_scaled: bool) -> Units:
        """The units of a data set. What its profile does not hold is 1."""
        logs = profile.scales
        variance, cells = (
            1.0 if is_scaled else 10.0 ** logs.get(name, 0.0)
            for name in ("log_mean_variance", "log_cell_variance")
        )
        target_std = 10.0 ** logs.get("log_target_std", 0.0)
        columns = max(profile.n_features or 1, 1)
        return cls(max(profile.n_rows, 1), columns, variance, cells, target_std)


Unit = Callable[[Units], float]
_UNITS: dict[str, Unit] = {
    "gamma": lambda u: 1.0 / (u.n_columns * u.variance),
    "min_samples_leaf": lambda u: u.n_rows,
    "min_samples_split": lambda u: u.n_rows,
    "n_neighbors": lambda u: u.n_rows,
    "batch_size": lambda u: u.n_rows,
    "max_features": lambda u: 1.0 / u.n_columns,
    "epsilon": lambda u: u.target_std,
}
_UNITS_OF_CLASS: dict[str, Unit] = {
    "SVR.C": lambda u: u.target_std,
    "SVC.C": lambda u: 1.0 / u.variance,
    "LinearSVC.C": lambda u: 1.0 / (u.n_rows * u.variance),
    "LogisticRegression.C": lambda u: 1.0 / (u.n_rows * u.variance),
    "ElasticNet.alpha": lambda u: u.target_std * u.variance**0.5,
    "Lasso.alpha": lambda u: u.target_std * u.variance**0.5,
    "Ridge.alpha": lambda u: u.n_rows * u.variance,
}


_SCALES: dict[str, Unit] = {
    "gamma": lambda u: 1.0 / u.variance,
    "epsilon": lambda u: u.target_std,
    "SVR.C": lambda u: u.target_std,
    "LinearSVC.C": lambda u: 1.0 / u.variance,
    "LogisticRegression.C": lambda u: 1.0 / u.variance,
    "Lasso.alpha": lambda u: u.target_std * u.variance**0.5,
    "Ridge.alpha": lambda u: u.variance,
}


_KERNELS = {
    "gamma": ("kernel", ("rbf", "poly", "sigmoid")),
    "degree": ("kernel", ("poly",)),
    "coef0": ("kernel", ("poly", "sigmoid")),
}
_BOOTSTRAP = {"max_samples": ("bootstrap", (True,))}
_CONDITIONS: dict[str, dict[str, tuple[str, tuple[Any, ...]]]] = {
    "SVC": _KERNELS,
    "SVR": _KERNELS,
    "RandomForestClassifier": _BOOTSTRAP,
    "RandomForestRegressor": _BOOTSTRAP,
    "ExtraTreesClassifier": _BOOTSTRAP,
    "ExtraTreesRegressor": _BOOTSTRAP,
}
"""Parameters that only matter with some values of another one."""


def scale_of(owner: str, name: str) -> Unit | None:
    """What a parameter is proportional to, if only the scale of columns or target changes.

    If the data are multiplied by a number and the parameter changes like this, the estimator
    predicts the same as before, with its usual penalty. None if there is no such rule: in
    ``ElasticNet``, one part of the penalty would have to change and the other not.

    >>> scale_of("SVR", "C")(Units(100, 5, target_std=20.0)), scale_of("ElasticNet", "alpha")
    (20.0, None)
    """
    return _SCALES.get(f"{owner}.{name}", _SCALES.get(name))


def unit_of(owner: str, name: str) -> Unit | None:
    """How the unit of a parameter follows from the data; None if it does not."""
    return _UNITS_OF_CLASS.get(f"{owner}.{name}", _UNITS.get(name))


@dataclass(frozen=True)
class Parameter:
    """One parameter that a head reads.

    Parameters
    ----------
    name : str
    values : tuple
        Categories; empty for a number.
    low, high : float
        Bounds of a number during training.
    log : bool
        Whether the axis of a number is logarithmic.
    default : object
        The value if nothing is known.
    """

    name: str
    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    default: Any = None

    def width(self, owner: str) -> int:
        """Number of columns of its code."""
        if self.name == "hidden_layer_sizes":
            return 2
        if self.values:
            return len(self.values)
        return 2 + (unit_of(owner, self.name) is not None)

    def encode(self, owner: str, values: Sequence[Any], units: Units) -> np.ndarray:
        """Codes of some values; of shape (len(values), width)."""
        if self.name == "hidden_layer_sizes":
            return np.array([_describe_layers(value) for value in values], dtype=float)
        if self.values:
            names = [ALIASES.get(v, v) if isinstance(v, str) else v for v in values]
            return np.array([[float(v == option) for option in self.values] for v in names])
        return self._encode_numbers(values, unit_of(owner, self.name), units)

    def _encode_numbers(self, values: Sequence[Any], unit: Unit | None, units: Units) -> np.ndarray:
        """The place of numbers, whether there is no limit, and the place relative to their unit."""
        resolved = [resolve(value, self.name, units) for value in values]
        is_unlimited = np.array([number is None for number in resolved])
        numbers = np.array([self.high if number is None else number for number in resolved])
        columns = [self._place(numbers), is_unlimited.astype(float)]
        if unit is not None:
            ratio = np.log10(np.maximum(numbers, 1e-12) / max(unit(units), 1e-12))
            columns.append(np.clip(ratio / RELATIVE_DECADES, -MAX_PLACE, MAX_PLACE))
        return np.column_stack(columns)

    def _place(self, numbers: np.ndarray) -> np.ndarray:
        """Where numbers lie between the bounds, from -1 to 1; (n,) -> (n,)."""
        low, high = self.low, self.high
        if self.log:
            # Zero lies one decade below the lower bound.
            numbers = np.log10(np.maximum(numbers, low / 10.0))
            low, high = np.log10(low), np.log10(high)
        return np.clip(2.0 * (numbers - low) / (high - low) - 1.0, -MAX_PLACE, MAX_PLACE)


def resolve(value: Any, name: str, units: Units) -> float | None:
    """A value as a number; None if it sets no limit or is not understood."""
    if type(value) is float and name not in ("min_samples_leaf", "min_samples_split"):
        return value
    p, is_whole = units.n_columns, isinstance(value, (int, np.integer))
    if isinstance(value, bool) or value is None:
        return {"max_features": 1.0, "max_samples": 1.0}.get(name)
    if name == "gamma" and isinstance(value, str):
        return 1.0 / (p * (units.cell_variance if value == "scale" else 1.0))
    if name == "max_features" and isinstance(value, str):
        return p**-0.5 if value in ("sqrt", "auto") else max(1.0, np.log2(p)) / p
    if name == "max_features" and is_whole:
        return min(value / p, 1.0)
    if name == "max_samples" and is_whole:
        return min(value / units.n_rows, 1.0)
    if name in ("min_samples_leaf", "min_samples_split") and not is_whole:
        return max(1.0, float(value) * units.n_rows)  # a share of the rows
    if name == "batch_size" and isinstance(value, str):
        return min(200.0, units.n_rows)
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _describe_layers(value: Any) -> tuple[float, float]:
    """Width of the widest layer on a log scale, and the number of layers beyond the first."""
    try:
        sizes = [float(size) for size in np.atleast_1d(value)]
        return np.log10(max(sizes)) - 1.5, float(min(len(sizes) - 1, 3))
    except (TypeError, ValueError):
        return 0.5, 0.0


class Condition(NamedTuple):
    """A parameter of a head that only matters with some values of another one.

    Parameters
    ----------
    parameter, other : int
        Their numbers.
    off : list of int
        Columns of the codes. If one of them is not 0, the parameter does not matter.
    """

    parameter: int
    other: int
    off: list[int]


class ConfigurationEncoder:
    """Turns configurations of one estimator into vectors.

    Parameters
    ----------
    owner : str
        Class of the estimator.
    parameters : sequence of Parameter

    Examples
    --------
    >>> encoder = ConfigurationEncoder("Ridge", [Parameter("alpha", low=0.01, high=100, log=True)])
    >>> encoder.encode([{"alpha": 1.0}], Units(n_rows=100, n_columns=5)).round(2).tolist()
    [[0.0, 0.0, -0.67]]
    """

    def __init__(self, owner: str, parameters: Sequence[Parameter]):
        self.owner, self.parameters = owner, tuple(parameters)
        widths = [parameter.width(owner) for parameter in self.parameters]
        self._ends = np.cumsum(widths).tolist()
        self.width = self._ends[-1] if self._ends else 0

    def columns_of(self, index: int) -> slice:
        """Columns of the parameter with this index."""
        return slice(self._ends[index - 1] if index else 0, self._ends[index])

    def encode(self, configurations: Sequence[Mapping[str, Any]], units: Units) -> np.ndarray:
        """Encode configurations; (k,) -> (k, width). Missing parameters have their defaults."""
        blocks = [
            each.encode(self.owner, [c.get(each.name, each.default) for c in configurations], units)
            for each in self.parameters
        ]
        return np.column_stack(blocks) if blocks else np.empty((len(configurations), 0))

    def conditions(self) -> list[Condition]:
        """When parameters do not matter."""
        numbers = {parameter.name: i for i, parameter in enumerate(self.parameters)}
        found = []
        for name, (other, values) in _CONDITIONS.get(self.owner, {}).items():
            if name in numbers and other in numbers:
                options = self.parameters[numbers[other]].values
                start = self.columns_of(numbers[other]).start
                off = [start + i for i, option in enumerate(options) if option not in values]
                found.append(Condition(numbers[name], numbers[other], off))
        return found

    def reset_inactive(
        self, codes: np.ndarray, default: np.ndarray, conditions: Sequence[Condition]
    ) -> None:
        """Give parameters that do not matter their default code, in place; (n, k), (k,).

        Configurations that differ in nothing else are the same to the estimator.
        """
        for condition in conditions:
            own = self.columns_of(condition.parameter)
            is_inactive = codes[:, condition.off].any(axis=1)
            if is_inactive.any():
                codes[is_inactive, own] = default[own]
