"""Results of a search as a table of pandas, and as a study of Optuna."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sktransfer.space import Space
from sktransfer.space._axes import is_number
from sktransfer.utils._values import identity

if TYPE_CHECKING:
    import optuna
    import pandas

OTHER_COLUMNS = {
    "mean_fit_time": "fit_time",
    "origin": "origin",
    "predicted_mean": "predicted_mean",
    "predicted_std": "predicted_std",
}


def results_to_frame(results: Mapping[str, Any]) -> pandas.DataFrame:
    """One row per candidate: its parameters under their own names, its scores, its origin."""
    import pandas as pd

    params = results["params"]
    names = list(dict.fromkeys(name for each in params for name in each))
    columns: dict[str, Any] = {
        name: pd.Series([each.get(name, np.nan) for each in params], dtype=_dtype(params, name))
        for name in names
    }
    for key, values in results.items():
        for statistic in ("mean", "std", "rank"):
            metric = key.removeprefix(f"{statistic}_test_")
            if metric != key:
                columns[metric if statistic == "mean" else f"{statistic}_{metric}"] = values
    columns |= {new: results[old] for old, new in OTHER_COLUMNS.items() if old in results}
    return pd.DataFrame(columns)


def _dtype(params: Sequence[Mapping[str, Any]], name: str) -> type | None:
    """The type of a column of numbers; `object` keeps None, tuples and estimators as they are."""
    are_numbers = all(is_number(each[name]) for each in params if name in each)
    return None if are_numbers else object


def results_to_study(
    results: Mapping[str, Any], scores: Sequence[float], space: Space
) -> optuna.Study:
    """A study with one trial per candidate, to be maximized; failed ones have failed there, too."""
    import optuna

    study = optuna.create_study(direction="maximize")
    params = results["params"]
    distributions = {
        name: _make_distribution(space, name, [each[name] for each in params if name in each])
        for name in dict.fromkeys(name for each in params for name in each)
    }
    for number, (own, score) in enumerate(zip(params, scores, strict=True)):
        is_ok = math.isfinite(score)
        study.add_trial(
            optuna.trial.create_trial(
                state=getattr(optuna.trial.TrialState, "COMPLETE" if is_ok else "FAIL"),
                value=float(score) if is_ok else None,
                params={name: _to_choice(value) for name, value in own.items()},
                distributions={name: distributions[name] for name in own},
                user_attrs={"origin": str(results["origin"][number])},
            )
        )
    return study


def _make_distribution(space: Space, name: str, values: Sequence[Any]) -> Any:
    """The distribution of Optuna that contains an entry of the space and all values tried."""
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    entries = [branch[name] for branch in space.branches if name in branch]
    if any(isinstance(entry, list) for entry in entries) or not all(map(is_number, values)):
        listed = [value for entry in entries if isinstance(entry, list) for value in entry]
        unique = {identity(value): _to_choice(value) for value in [*listed, *values]}
        return CategoricalDistribution(list(dict.fromkeys(unique.values())))
    supports = [entry.support() for entry in entries if not isinstance(entry, list)]
    ends = [float(end) for support in supports for end in support if np.isfinite(end)]
    low, high = min([*ends, *values]), max([*ends, *values])
    if all(isinstance(value, int) for value in values):
        return IntDistribution(math.floor(low), math.ceil(high))
    is_log = low > 0 and space.is_log_scale(name)
    return FloatDistribution(low, high, log=is_log)


def _to_choice(value: Any) -> Any:
    """A value that Optuna stores: None, a boolean, a number or a text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
