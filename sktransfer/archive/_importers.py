"""Importers: tasks from searches that scikit-learn has fitted, and from tables of trials."""

from __future__ import annotations

import contextlib
import csv
import math
import os
from collections.abc import Container, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from sktransfer.archive._record import library_versions
from sktransfer.archive._studies import parameter_prefix, score_columns
from sktransfer.dataset import profile, target_kind
from sktransfer.exceptions import ArchiveWarning
from sktransfer.space import Space
from sktransfer.task import Task, Trial
from sktransfer.utils._metric_names import recorded_metrics, recorded_name
from sktransfer.utils._user_warnings import warn_user
from sktransfer.utils._values import identity, to_python

_SPACE_ATTRIBUTES = ("space", "param_distributions", "param_grid", "search_spaces")
_MEAN = "mean_test_"
_SCORE_COLUMNS = ("score", "mean_test_score", "value")
# Columns that are not parameters, by the names of `Trial` and of `cv_results_`.
_OTHER_COLUMNS = {
    "std": "std",
    "std_test_score": "std",
    "fit_time": "fit_time",
    "mean_fit_time": "fit_time",
}
_MISSING_TYPES = ("NAType", "NaTType", "MaskedConstant")
_MISSING = object()
_WORDS = {"": _MISSING, "True": True, "False": False, "None": None}


class FittedSearch(Protocol):
    """A fitted search, such as GridSearchCV. It also has one of `_SPACE_ATTRIBUTES`."""

    estimator: BaseEstimator
    cv_results_: Mapping[str, Any]


class DataFrame(Protocol):
    """A table of any library."""

    columns: Any

    def __getitem__(self, name: Any) -> Any: ...


DeclaredSpace = Space | Mapping[str, Any] | Sequence[Mapping[str, Any]]
Table = DataFrame | Mapping[str, Sequence] | list[Mapping[str, Any]]


# -- searches ------------------------------------------------------------------------------------


def task_from_search(
    search: FittedSearch, X: object, y: object = None, *, keep: str = "sketch"
) -> Task:
    """Make a task from a fitted search. See `Archive.add`."""
    space = _find_space(search)
    if not hasattr(search, "cv_results_"):
        raise NotFittedError(
            f"This {type(search).__name__} is not fitted yet. Call fit before adding it."
        )
    if X is None:
        warn_user(
            "Without X, the rows that this search used are unknown, so later searches will exclude "
            "its record. Pass the X and y that it was fitted to.",
            ArchiveWarning,
        )
    keys, scoring = _score_keys(search), getattr(search, "scoring", None)
    tuned = keys[0].removeprefix(_MEAN)
    rows, estimator, dropped = _full_resources(search)
    return Task.from_trials(
        space,
        trials := [_trial(search, row, keys, dropped) for row in rows],
        profile(X, y, keep=keep, kind=target_kind(estimator)),
        estimator=estimator,
        metrics=(
            recorded_name(tuned, scoring),
            *dict.fromkeys(name for trial in trials for name in trial.metrics),
        ),
        versions=library_versions(),
    )


def _find_space(search: FittedSearch) -> Any:
    for name in ("space_", *_SPACE_ATTRIBUTES):
        if hasattr(search, name) and hasattr(search, "estimator"):
            space = getattr(search, name)
            if name == "search_spaces" and isinstance(space, list):  # with their budgets
                space = [each[0] if isinstance(each, tuple) else each for each in space]
            return space
    raise TypeError(
        f"An object of type {type(search).__name__} cannot be added. Pass a search such as "
        f"GridSearchCV, with an 'estimator' and one of {', '.join(map(repr, _SPACE_ATTRIBUTES))}; "
        "an Optuna study; a TransferOptimizer; a table of trials; or the path of a CSV file."
    )


def _score_keys(search: FittedSearch) -> list[str]:
    """Return the columns of scores. The one that was optimized comes first."""
    keys = [key for key in search.cv_results_ if key.startswith(_MEAN)]
    if not keys:
        raise ValueError(
            f"The cv_results_ of this {type(search).__name__} hold no mean test score."
        )
    refit = getattr(search, "refit", None)
    tuned = f"{_MEAN}{refit}" if isinstance(refit, str) else f"{_MEAN}score"
    return sorted(keys, key=lambda key: key != tuned)


def _full_resources(search: FittedSearch) -> tuple[np.ndarray, BaseEstimator, str | None]:
    """Return the rows to use, their estimator, and a name to leave out of their params.

    Successive halving evaluates most candidates on little data or few iterations. Only the last and
    largest amount is comparable with other searches. If the resource is a parameter, it is not
    tuned.
    """
    results, estimator = search.cv_results_, search.estimator
    if "n_resources" not in results:
        return np.arange(len(results["params"])), estimator, None
    amounts = np.asarray(results["n_resources"])
    resource = getattr(search, "resource", "n_samples")
    if resource == "n_samples":
        return np.flatnonzero(amounts == amounts[-1]), estimator, None
    estimator = clone(estimator).set_params(**{resource: int(amounts[-1])})
    return np.flatnonzero(amounts == amounts[-1]), estimator, resource


def _trial(search: FittedSearch, row: int, keys: list[str], dropped: str | None) -> Trial:
    results = search.cv_results_
    score, std = results[keys[0]][row], _cell(results, keys[0].replace("mean", "std", 1), row)
    # If every fold has the error score, all fits failed.
    failed = score == getattr(search, "error_score", None) and std == 0
    params = {name: value for name, value in results["params"][row].items() if name != dropped}
    means = {key.removeprefix(_MEAN): _cell(results, key, row) for key in keys}
    tuned = keys[0].removeprefix(_MEAN)
    return Trial.make(
        params,
        score,
        status="failed" if failed else "ok",
        std=std,
        fit_time=_cell(results, "mean_fit_time", row),
        metrics=recorded_metrics(means, tuned, getattr(search, "scoring", None)),
    )


def _cell(results: Mapping[str, Any], key: str, row: int) -> float:
    return float(results[key][row]) if key in results else float("nan")


# -- tables --------------------------------------------------------------------------------------


def is_table(thing: object) -> TypeGuard[Table]:
    """Whether `thing` is a DataFrame (of any library), a dict of columns or a list of rows.

    >>> is_table([{"C": 1, "score": 0.9}]), is_table({"C": [1], "score": [0.9]}), is_table("C")
    (True, True, False)
    """
    return hasattr(thing, "columns") or isinstance(thing, (Mapping, list))


def read_csv(path: str | os.PathLike[str]) -> dict[str, list]:
    """Read the columns of a CSV file. Cells that are numbers, booleans or None become values.

    An empty cell is missing. Everything else is text.
    """
    with open(os.path.expanduser(path), newline="", encoding="utf-8-sig") as file:
        names, *rows = list(csv.reader(file)) or [[]]
    if any(len(row) != len(names) for row in rows):
        raise ValueError(f"The rows of {os.fspath(path)} have different lengths.")
    return {
        name: [_parse_cell(row[number]) for row in rows if row] for number, name in enumerate(names)
    }


def _parse_cell(text: str) -> Any:
    """The value that a text stands for.

    >>> [_parse_cell(text) for text in ("5", "0.1", "1e-3", "True", "None", "rbf")]
    [5, 0.1, 0.001, True, None, 'rbf']
    """
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def task_from_table(
    table: Table,
    X: object = None,
    y: object = None,
    *,
    estimator: BaseEstimator | None = None,
    space: DeclaredSpace | None = None,
    score: str | None = None,
    metric: str | None = None,
    direction: str = "maximize",
    keep: str = "sketch",
) -> Task:
    """Make a task from a table. See `Archive.add`.

    >>> task = task_from_table({"C": [1, 10], "score": [0.9, 0.8]})
    >>> task.best.params, task.space["branches"][0]["C"]["values"]
    ({'C': 1}, [1, 10])
    """
    if direction not in ("maximize", "minimize"):
        raise ValueError(f"direction must be 'maximize' or 'minimize', got {direction!r}.")
    sign = 1.0 if direction == "maximize" else -1.0
    columns = _columns(table)
    score = _score_column(columns, score)
    names = _parameters(columns, score, space)
    cells = {name: _values(columns[column]) for name, column in names.items()}
    # A missing cell is a parameter that the trial did not have, as in the branches of a grid.
    rows = [
        {name: values[row] for name, values in cells.items() if values[row] is not _MISSING}
        for row in range(len(columns[score]))
    ]
    # The table does not say which metric "mean_test_score" is.
    metric = metric or (score if score == "mean_test_score" else _metric_name(score))
    metric = metric if sign > 0 else f"neg_{metric}"
    others = _other_metrics(columns, {score, *names.values()}, metric)
    fields = {field: columns[name] for name, field in _OTHER_COLUMNS.items() if name in columns}
    if (std := score.replace("mean", "std", 1)) in columns and score.startswith(_MEAN):
        fields["std"] = columns[std]
    trials = [
        {
            "params": params,
            "score": sign * _number(columns[score][row]),
            **{field: _number(values[row]) for field, values in fields.items()},
            "metrics": {name: _number(values[row]) for name, values in others.items()},
        }
        for row, params in enumerate(rows)
    ]
    return _make_task(
        _infer_space(rows) if space is None else space,
        trials,
        None if X is None else profile(X, y, keep=keep, kind=target_kind(estimator)),
        estimator=estimator,
        metrics=(metric, *others),
        versions=library_versions(),
    )


def _other_metrics(
    columns: Mapping[str, Sequence], used: Container[str], metric: str
) -> dict[str, Sequence]:
    """Return the columns of other metrics by their names."""
    found = {
        name.removeprefix(_MEAN): values
        for name, values in columns.items()
        if name.startswith(_MEAN) and name not in used
    }
    return {name: v for name, v in found.items() if name != metric and _are_numbers(v)}


def _make_task(space: Any, trials: list, data: Any, **others: Any) -> Task:
    try:
        return Task.from_trials(space, trials, data, **others)
    except ValueError as error:
        if "Invalid parameter" not in str(error):
            raise
        raise ValueError(
            f"{error} If this column is not a parameter, pass space= with the parameters only, for "
            "example space={'C': [0.1, 1, 10]}."
        ) from None


def _metric_name(column: str) -> str:
    """The name of a metric, given its column.

    >>> _metric_name("mean_test_f1"), _metric_name("metrics.f1"), _metric_name("value")
    ('f1', 'f1', 'score')
    """
    name = column.removeprefix(_MEAN).removeprefix("metrics.")
    return "score" if name == "value" else name


def _columns(table: Table) -> dict[str, list]:
    if isinstance(table, list):
        if not all(isinstance(row, Mapping) for row in table):
            raise TypeError("A list of trials must be a list of dicts, one per trial.")
        names: Any = dict.fromkeys(name for row in table for name in row)
        columns = {name: [row.get(name, _MISSING) for row in table] for name in names}
    else:
        given: Any = table if isinstance(table, Mapping) else table.columns
        columns = {name: list(table[name]) for name in given}
    if hasattr(table, "to_dicts"):  # polars has None for missing cells of every type
        columns = {
            name: [_MISSING if cell is None else cell for cell in cells]
            for name, cells in columns.items()
        }
    if unnamed := [name for name in columns if not isinstance(name, str)]:
        raise TypeError(f"The names of columns must be strings, but one is {unnamed[0]!r}.")
    if not columns or not next(iter(columns.values())):
        raise ValueError("The table has no trials.")
    if len({len(values) for values in columns.values()}) > 1:
        raise ValueError("The columns of the table have different lengths.")
    return columns


def _score_column(columns: Mapping[str, Sequence], score: str | None) -> str:
    if score is not None and score not in columns and f"metrics.{score}" in columns:
        score = f"metrics.{score}"
    wanted = [score] if score is not None else score_columns(columns)
    if not wanted or wanted[0] not in columns:
        names = repr(score) if score is not None else " or ".join(map(repr, _SCORE_COLUMNS))
        raise ValueError(
            f"The table has no column {names}; its columns are {', '.join(columns)}. "
            "Pass the name of the column of scores as score=..."
        )
    return wanted[0]


def _parameters(
    columns: Mapping[str, Sequence],
    score: str,
    space: DeclaredSpace | None,
) -> dict[str, str]:
    """Return the names of the parameters, and of their columns."""
    prefix = parameter_prefix(columns)
    if space is not None:
        if isinstance(space, Space):
            branches: Sequence[Mapping[str, Any]] = space.branches
        else:
            branches = [space] if isinstance(space, Mapping) else space
        wanted = list(dict.fromkeys(name for branch in branches for name in branch))
    elif prefix is not None:
        wanted = [name.removeprefix(prefix) for name in columns if name.startswith(prefix)]
    else:
        return {name: name for name in columns if name != score and name not in _OTHER_COLUMNS}
    found = {name: f"{prefix}{name}" if f"{prefix}{name}" in columns else name for name in wanted}
    absent = [name for name, column in found.items() if column not in columns]
    if absent:
        raise ValueError(f"The table has no column for the parameter {absent[0]!r}.")
    return found


def _values(column: Sequence) -> list[Any]:
    """Return the cells of a column as Python values, with `_MISSING` where there is none."""
    values: list[Any] = [_MISSING if _is_missing(cell) else to_python(cell) for cell in column]
    if all(isinstance(value, str) for value in values if value is not _MISSING):
        values = _parse_texts(values)
    present = [value for value in values if value is not _MISSING]
    # A DataFrame turns integers into floats if a cell is missing: 5.0 was max_depth=5.
    is_incomplete = len(present) < len(values)
    if is_incomplete and all(isinstance(value, float) and value.is_integer() for value in present):
        return [value if value is _MISSING else int(value) for value in values]
    return values


def _parse_texts(values: list[Any]) -> list[Any]:
    """Read numbers that a library stored as text, if every cell is a number, a boolean or None."""
    parsed = [value if value is _MISSING else _parse_cell(value) for value in values]
    return values if any(isinstance(value, str) for value in parsed) else parsed


def _is_missing(cell: object) -> bool:
    """Whether a cell is missing: NaN, NA or masked. None is a value, such as ``max_depth=None``."""
    cell = to_python(cell)
    is_nan = isinstance(cell, float) and cell != cell
    return cell is _MISSING or type(cell).__name__ in _MISSING_TYPES or is_nan


def _number(cell: Any) -> float:
    return math.nan if cell is None or _is_missing(cell) else float(cell)


def _are_numbers(cells: Sequence) -> bool:
    try:
        return bool([_number(cell) for cell in cells])
    except (TypeError, ValueError):
        return False


def _infer_space(rows: list[dict[str, Any]]) -> list[dict[str, list]]:
    """Return the values that occur, with a branch for each set of parameters that occurs."""
    branches: dict[tuple[str, ...], dict[str, dict[Any, Any]]] = {}
    for params in rows:
        branch = branches.setdefault(tuple(params), {name: {} for name in params})
        for name, value in params.items():
            branch[name].setdefault(identity(value), value)
    return [
        {name: list(values.values()) for name, values in branch.items()}
        for branch in branches.values()
    ]
