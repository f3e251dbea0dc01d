"""Whether columns are scaled before they reach the estimator, as far as the description of a space tells.

The width of a kernel, a penalty or a distance means one thing on raw columns and another behind a scaler, so
that the best settings on one side say little about the other. Nothing new is written down for this: a
description holds the parameters of every step, and with them the steps' classes. Old records tell it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sktransfer.space._estimator_tree import is_described, pairs

SCALERS = frozenset(
    [
        "MaxAbsScaler",
        "MinMaxScaler",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
    ]
)


def is_scaled(space: Mapping[str, Any]) -> bool | None:
    """Whether a scaler comes before the estimator; None if that cannot be told.

    Parameters
    ----------
    space : dict
        ``Space.describe()``. It cannot be told of a table without an estimator, or if the scaler is itself
        searched for.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from sktransfer.space import Space
    >>> bare, scaled = SVC(), make_pipeline(StandardScaler(), SVC())
    >>> is_scaled(Space.parse({"C": [1, 10]}, bare).describe())
    False
    >>> is_scaled(Space.parse({"svc__C": [1, 10]}, scaled).describe())
    True
    """
    if not space.get("predictors"):
        return None
    entries = [entry for branch in space["branches"] for entry in branch.values()]
    searched = [value for entry in entries for value in entry.get("values", ())]
    searched += [step for value in searched for _, step, *_ in pairs(value)]
    if any(is_described(value) and value["class"] in SCALERS for value in searched):
        return None
    # One that is searched and has a path behind its name may be aside; that of the target, for example.
    names = [*space["fixed"], *(name for name in space["canonical"].values() if "@" not in name)]
    return any(owner in SCALERS for name in names for owner in name.partition(".")[0].split("|"))
