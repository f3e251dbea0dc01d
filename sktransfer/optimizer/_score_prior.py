"""`PretrainedScores`: predictions of a pretrained head in the coordinates of a search space.

A head reads all parameters of its estimator. Those that the space searches come from the codes of
configurations, the others have the values of the estimator. Notation: theta (n, d) codes; a
description (q + 5,) of a data set: its embedding psi (q,), and the logarithms of its units.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.dataset._scales import looks_standardized
from sktransfer.exceptions import TransferWarning
from sktransfer.pretrained import PretrainedModel, Units, load_model, scale_of
from sktransfer.space import Space, is_scaled
from sktransfer.space._axes import is_number
from sktransfer.surrogates import ScorePrior
from sktransfer.surrogates._core.kernels import kernel_matrix
from sktransfer.surrogates._core.transported_past import MAX_STRANGENESS

N_KNOTS = 65  # of a continuous axis, between which codes are interpolated
MAX_LISTED = 200  # values of an axis that are encoded one by one
N_UNITS = 5
USUAL_UNITS = Units(n_rows=200.0, n_columns=10.0)
METRICS = {
    "classification": (
        ("balanced_accuracy", "recall_macro", "f1_macro", "f1", "matthews_corrcoef", "recall"),
        ("accuracy", "f1_micro", "f1_weighted", "precision_weighted", "recall_weighted"),
        ("roc_auc_ovr", "roc_auc", "roc_auc_ovo", "roc_auc_ovr_weighted", "average_precision"),
        ("neg_log_loss", "neg_brier_score", "d2_log_loss_score", "d2_brier_score"),
    ),
    "regression": (
        ("r2", "explained_variance"),
        ("neg_mean_absolute_error", "d2_absolute_error_score", "neg_median_absolute_error"),
        ("neg_mean_squared_error", "neg_root_mean_squared_error"),
    ),
}
"""For each metric of the heads, the metrics that mostly agree with it. The first of a row has the
unit of the head's scores, if it has one that does not depend on the target."""

USUAL_METRIC = {"classification": 1, "regression": 0}
SAME_UNIT = {"balanced_accuracy", "accuracy", "roc_auc_ovr", "roc_auc", "neg_log_loss", "r2"}


class _Column(NamedTuple):
    """A column of the space that the head knows.

    Parameters
    ----------
    column : int
        In the space.
    parameter : int
        In the head.
    coordinates : ndarray of shape (g,)
    values : list
        The values at the coordinates.
    is_list : bool
        Whether there are no values in between.
    """

    column: int
    parameter: int
    coordinates: np.ndarray
    values: list[Any]
    is_list: bool


class PretrainedEmbedding(ScorePrior):
    """The pretrained embedding, for an estimator without a head: it compares data sets only.

    Parameters
    ----------
    model : PretrainedModel
    """

    has_scores = False

    def __init__(self, model: PretrainedModel):
        self._model = model

    def describe(self, profile: DatasetProfile | None) -> np.ndarray | None:
        return self._model.embed(profile)

    def strangeness(self, description: np.ndarray) -> float:
        return self._model.strangeness(description)


class PretrainedScores(ScorePrior):
    """A pretrained head, bound to a space.

    Parameters
    ----------
    space : Space
    model : PretrainedModel
    owner : str
        Class of the estimator.
    scaled : bool
        Whether the columns of X are scaled first.
    metric : int
        The metric of the head.
    has_level : bool
        Whether the unit of the scores is that of the head.

    Attributes
    ----------
    known : ndarray of bool, shape (d,)
        Columns that the head knows. It predicts the same for all values of the others.
    """

    known: np.ndarray

    def __init__(
        self,
        space: Space,
        model: PretrainedModel,
        owner: str,
        scaled: bool,
        metric: int,
        has_level: bool,
    ):
        self._model, self._owner, self._scaled = model, owner, scaled
        self._metric, self._has_level = metric, has_level
        self._encoder = model.encoder_of(owner)
        self._columns = list(_match_columns(space, owner, self._encoder.parameters))
        self.known = np.zeros(space.n_columns, dtype=bool)
        self.known[[each.column for each in self._columns]] = True
        self._fixed = {
            name.partition(".")[2]: value
            for name, value in space.fixed.items()
            if name.partition(".")[0] == owner and "@" not in name
        }
        self._has_own_target = any(n.startswith("TransformedTarget") for n in space.fixed)
        self.usual = np.concatenate([model.usual_embedding, np.log10(astuple(USUAL_UNITS))])
        self._residual = model.residual_of(owner)
        self.has_residual = self._residual is not None
        if self._residual is not None:
            _, self.residual_variance, self.residual_noise = self._residual
        ends = [self._encoder.columns_of(each.parameter) for each in self._columns]
        numbers = {each.parameter for each in self._columns}
        self._conditions = [
            each
            for each in self._encoder.conditions()
            if not numbers.isdisjoint((each.parameter, each.other))
        ]
        self._searched = [column for end in ends for column in range(end.start, end.stop)]
        self._tables: dict[bytes, tuple[np.ndarray, np.ndarray, list[np.ndarray]]] = {}
        self._described: tuple[DatasetProfile | None, np.ndarray | None] = None, None
        self._encoded: list[tuple[np.ndarray, bytes, np.ndarray]] = []

    # -- data sets -----------------------------------------------------------------------------

    def describe(self, profile: DatasetProfile | None) -> np.ndarray | None:
        if self._described[0] is not profile:  # that of the target is asked for at every trial
            psi, made = self._model.embed(profile), None
            if psi is not None and profile is not None:
                units = astuple(Units.from_profile(profile, self._scaled))
                made = np.concatenate([psi, np.log10(np.maximum(units, 1e-12))])
            self._described = profile, made
        return self._described[1]

    def embedding(self, descriptions: np.ndarray) -> np.ndarray:
        return descriptions[:, :-N_UNITS]

    def strangeness(self, description: np.ndarray) -> float:
        return self._model.strangeness(description[:-N_UNITS])

    def offsets(self, descriptions: np.ndarray) -> np.ndarray:
        """On logarithmic axes, a scale of the data is an offset. Unknown ones are NaN."""
        units = [self._read_units(each) for each in descriptions[:, -N_UNITS:]]
        found = np.zeros((len(descriptions), len(self.known)))
        for each in self._columns:
            scale = scale_of(self._owner, self._encoder.parameters[each.parameter].name)
            decades = _count_decades(each)
            if scale is not None and decades:
                found[:, each.column] = [-np.log10(scale(unit)) / decades for unit in units]
        return found

    def level(self, description: np.ndarray) -> tuple[float, float] | None:
        if not self._has_level:
            return None
        psi = description[:-N_UNITS]
        return self._model.predict_level(self._owner, self._scaled, psi, self._metric)

    # -- scores --------------------------------------------------------------------------------

    def predict(self, theta: np.ndarray, descriptions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes = np.stack([self._encode(theta, each[-N_UNITS:]) for each in descriptions])
        return self._model.predict(self._owner, codes, self.embedding(descriptions), self._metric)

    def correlation(
        self, theta: np.ndarray, anchors: np.ndarray, description: np.ndarray
    ) -> np.ndarray | None:
        if self._residual is None:
            return None
        units, lengths = description[-N_UNITS:], self._residual.lengths[self._searched]
        A, B = (self._encode(codes, units)[:, self._searched] for codes in (theta, anchors))
        return kernel_matrix(A, B, lengths, np.zeros(len(lengths), dtype=bool), "matern52")

    def shared(self, A: np.ndarray, B: np.ndarray) -> np.ndarray | None:
        return self._model.shared(self.embedding(A), self.embedding(B))

    def check_arrays(self, profile: DatasetProfile) -> None:
        """Read all arrays, and raise an error if one is damaged: it must not stop a search."""
        description, middle = self.describe(profile), np.full((1, len(self.known)), 0.5)
        if description is None:
            return
        rows = description[None]
        found = [
            (self.residual_variance, self.residual_noise),
            *self.predict(middle, rows),
            self.level(description),
            self.correlation(middle, middle, description),
            self.shared(rows, rows),
        ]
        if not all(np.isfinite(each).all() for each in found if each is not None):
            raise ValueError("its predictions are not finite")

    def _encode(self, theta: np.ndarray, log_units: np.ndarray) -> np.ndarray:
        """What the head reads of configurations; (n, d) -> (n, k).

        The last two are kept, because predictions and their correlations are asked for in turn.
        """
        key = log_units.tobytes()
        for known, units, codes in self._encoded:
            if known is theta and units == key:
                return codes
        codes = self._make_codes(theta, log_units)
        self._encoded = [(theta, key, codes), *self._encoded[:1]]
        return codes

    def _make_codes(self, theta: np.ndarray, log_units: np.ndarray) -> np.ndarray:
        fixed, default, tables = self._read_tables(log_units)
        codes = np.repeat(fixed, len(theta), axis=0)
        for each, table in zip(self._columns, tables, strict=True):
            block = _look_up(theta[:, each.column], each.coordinates, table, each.is_list)
            codes[:, self._encoder.columns_of(each.parameter)] = block
        self._encoder.reset_inactive(codes, default, self._conditions)
        return codes

    def _read_units(self, log_units: np.ndarray) -> Units:
        units = Units(*10.0**log_units)
        if self._has_own_target:  # its transformer scales the target
            units = replace(units, target_std=1.0)
        return units

    def _read_tables(
        self, log_units: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Codes of the fixed values, (1, k), of the defaults, (k,), and of each column's values."""
        key = log_units.tobytes()
        if key not in self._tables:
            units = self._read_units(log_units)
            fixed = self._encoder.encode([self._fixed], units)
            flag = np.array([[float(self._scaled)]])
            tables = [
                self._encoder.parameters[each.parameter].encode(self._owner, each.values, units)
                for each in self._columns
            ]
            default = self._encoder.encode([{}], units)[0]
            self._encoder.reset_inactive(fixed, default, self._encoder.conditions())
            self._tables[key] = np.hstack([fixed, flag]), default, tables
        return self._tables[key]


def _count_decades(column: _Column) -> float:
    """Width of a logarithmic axis; 0 for another."""
    ends = column.values[0], column.values[-1]
    if column.is_list or not all(is_number(value) and value > 0 for value in ends):
        return 0.0
    low, high = np.log10(np.array(ends, dtype=float))
    middle = np.log10(float(column.values[len(column.values) // 2]))
    return high - low if abs(middle - (low + high) / 2) < 1e-6 else 0.0


def _look_up(
    u: np.ndarray, coordinates: np.ndarray, table: np.ndarray, is_list: bool
) -> np.ndarray:
    """Rows of a table at coordinates; (n,), (g,), (g, k) -> (n, k)."""
    if is_list:
        middles = (coordinates[1:] + coordinates[:-1]) / 2
        return table[np.searchsorted(middles, u)]
    place = np.clip(u, 0, 1) * (len(table) - 1)
    below = np.minimum(place.astype(int), len(table) - 2)
    share = (place - below)[:, None]
    return (1 - share) * table[below] + share * table[below + 1]


def _match_columns(space: Space, owner: str, parameters: Sequence[Any]) -> Any:
    """Yield the columns of the space that search a parameter of the head."""
    numbers = {f"{owner}.{parameter.name}": i for i, parameter in enumerate(parameters)}
    for column, name in enumerate(space.column_names()):
        number = None if name is None else numbers.get(space.canonical.get(name, ""))
        if number is None:
            continue
        coordinates, values = space.list_column(column, MAX_LISTED)
        if values is None:
            coordinates = np.linspace(0, 1, N_KNOTS)
            values = space.decode_column(column, coordinates)
            yield _Column(column, number, coordinates, values, is_list=False)
        else:
            yield _Column(column, number, coordinates, values, is_list=True)


class HeadMetric(NamedTuple):
    """The output of a head that stands for a metric.

    Parameters
    ----------
    number : int
    has_unit : bool
        Whether its scores have the unit of the metric.
    """

    number: int
    has_unit: bool


def metric_of_head(kind: str, names: Sequence[str]) -> HeadMetric:
    """The output that agrees best with a metric, given all its names.

    >>> metric_of_head("classification", ["f1"]), metric_of_head("regression", ["r2", "score"])
    (HeadMetric(number=0, has_unit=False), HeadMetric(number=0, has_unit=True))
    """
    rows = enumerate(METRICS[kind])
    found = [number for number, related in rows if not set(related).isdisjoint(names)]
    if not found:
        return HeadMetric(USUAL_METRIC[kind], False)
    return HeadMetric(found[0], not SAME_UNIT.isdisjoint(names))


def find_score_prior(
    space: Space,
    profile: DatasetProfile | None,
    metric: Sequence[str],
    folders: Sequence[Path] = (),
) -> PretrainedScores | PretrainedEmbedding | None:
    """The pretrained predictions for a space; only the embedding without a head that knows it.

    None if there is no model of the target's kind.

    Parameters
    ----------
    space : Space
    profile : DatasetProfile or None
        The target's data, whose kind decides between the models.
    metric : sequence of str
        All names of the target's metric.
    folders : sequence of Path
        Folders of models that replace the shipped one, if they have one of this kind.
    """
    model = None if profile is None else load_model(profile.kind, folders)
    if profile is None or model is None or not space.predictors:
        return None
    owner = space.predictors[0]
    if len(space.predictors) > 1 or owner not in model.owners:
        return PretrainedEmbedding(model)
    scaled = are_columns_scaled(space, profile)
    found = metric_of_head(model.kind, metric)
    try:
        made = PretrainedScores(space, model, owner, scaled, found.number, found.has_unit)
        made.check_arrays(profile)
    except Exception as error:
        warnings.warn(
            f"The pretrained model of {owner} cannot be used ({type(error).__name__}: {error}). "
            "The search continues without it. Install sktransfer again to repair it.",
            TransferWarning,
            stacklevel=2,
        )
        return None
    return made if made.known.any() else PretrainedEmbedding(model)


def are_columns_scaled(space: Space, profile: DatasetProfile | None) -> bool:
    """Whether the estimator reads scaled columns of X. Predictions depend on it."""
    if profile is None or is_scaled(space.describe()) is not False:
        return True
    return looks_standardized(profile.scales)


def find_embedding(prior: ScorePrior | None, profile: DatasetProfile | None) -> np.ndarray | None:
    """The embedding of a data set; None if there is none, or it is unlike all of the training."""
    description = None if prior is None else prior.describe(profile)
    if prior is None or description is None or prior.strangeness(description) > MAX_STRANGENESS:
        return None
    return prior.embedding(description[None])[0]
