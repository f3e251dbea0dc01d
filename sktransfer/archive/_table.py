"""A task from a table of trials: evaluations that were made elsewhere, and written down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sktransfer.archive._record import library_versions
from sktransfer.dataset import profile
from sktransfer.task import Task
from sktransfer.utils._values import identity, to_python

_PREFIX, _MEAN = "param_", "mean_test_"
_SCORES = ("score", "mean_test_score")
# Columns that are no parameters, by the names of `Trial` and by those of `cv_results_`.
_FACTS = {"std": "std", "std_test_score": "std", "fit_time": "fit_time", "mean_fit_time": "fit_time"}
_GAPS = ("NAType", "NaTType", "MaskedConstant")
_MISSING = object()


def is_table(thing: Any) -> bool:
    """Whether `thing` is a DataFrame (of any library), a dict of columns or a list of rows.

    >>> is_table([{"C": 1, "score": 0.9}]), is_table({"C": [1], "score": [0.9]}), is_table("C")
    (True, True, False)
    """
    return hasattr(thing, "columns") or isinstance(thing, (Mapping, list))


def task_from_table(
    table: Any,
    X: Any = None,
    y: Any = None,
    *,
    estimator: Any = None,
    space: Any = None,
    score: str | None = None,
    metric: str | None = None,
    keep: str = "sketch",
) -> Task:
    """Make a task of a table; see `Archive.add`.

    >>> task = task_from_table({"C": [1, 10], "score": [0.9, 0.8]})
    >>> task.best.params, task.space["branches"][0]["C"]["values"]
    ({'C': 1}, [1, 10])
    """
    columns = _columns(table)
    score = _score_column(columns, score)
    names = _parameters(columns, score, space)
    cells = {name: _values(columns[column]) for name, column in names.items()}
    # A missing cell is a parameter that this trial did not have, as in the branches of a grid.
    rows = [
        {name: values[row] for name, values in cells.items() if values[row] is not _MISSING}
        for row in range(len(columns[score]))
    ]
    # "mean_test_score" is whatever that search tuned, which a table does not tell.
    metric = metric or (score if score == "mean_test_score" else score.removeprefix(_MEAN))
    others = {
        name.removeprefix(_MEAN): values
        for name, values in columns.items()
        if name.startswith(_MEAN) and name != score and name not in names.values()
    }
    others = {name: values for name, values in others.items() if name != metric and _are_numbers(values)}
    facts = {fact: columns[column] for column, fact in _FACTS.items() if column in columns}
    if (std := score.replace("mean", "std", 1)) in columns and score.startswith(_MEAN):
        facts["std"] = columns[std]
    trials = [
        {
            "params": params,
            "score": _number(columns[score][row]),
            **{fact: _number(values[row]) for fact, values in facts.items()},
            "metrics": {name: _number(values[row]) for name, values in others.items()},
        }
        for row, params in enumerate(rows)
    ]
    return Task.from_trials(
        _space_of(rows) if space is None else space,
        trials,
        None if X is None else profile(X, y, keep=keep),
        estimator=estimator,
        metrics=(metric, *others),
        versions=library_versions(),
    )


def _columns(table: Any) -> dict[str, list]:
    if isinstance(table, list):
        if not all(isinstance(row, Mapping) for row in table):
            raise TypeError("A list of trials is a list of dicts, one per trial.")
        names: Any = dict.fromkeys(name for row in table for name in row)
        columns = {name: [row.get(name, _MISSING) for row in table] for name in names}
    else:
        given: Any = table if isinstance(table, Mapping) else table.columns
        columns = {name: list(table[name]) for name in given}
    if hasattr(table, "to_dicts"):  # polars: None is its gap, in every column
        columns = {name: [_MISSING if v is None else v for v in cells] for name, cells in columns.items()}
    strange = [name for name in columns if not isinstance(name, str)]
    if strange:
        raise TypeError(f"The columns of a table of trials have names; one is called {strange[0]!r}.")
    if not columns or not next(iter(columns.values())):
        raise ValueError("The table has no trials.")
    if len({len(values) for values in columns.values()}) > 1:
        raise ValueError("The columns of the table are not equally long.")
    return columns


def _score_column(columns: Mapping[str, Sequence], score: str | None) -> str:
    wanted = [score] if score is not None else [name for name in _SCORES if name in columns]
    if not wanted or wanted[0] not in columns:
        said = repr(score) if score is not None else " or ".join(map(repr, _SCORES))
        raise ValueError(
            f"The table has no column {said}; its columns are {', '.join(columns)}. Say which with score=."
        )
    return wanted[0]


def _parameters(columns: Mapping[str, Sequence], score: str, space: Any) -> dict[str, str]:
    """Names of the parameters, and of their columns."""
    if space is not None:
        branches = space if isinstance(space, (list, tuple)) else [space]
        declared = getattr(space, "branches", branches)
        wanted = list(dict.fromkeys(name for branch in declared for name in branch))
    elif any(name.startswith(_PREFIX) for name in columns):
        wanted = [name.removeprefix(_PREFIX) for name in columns if name.startswith(_PREFIX)]
    else:
        return {name: name for name in columns if name != score and name not in _FACTS}
    found = {name: _PREFIX + name if _PREFIX + name in columns else name for name in wanted}
    absent = [name for name, column in found.items() if column not in columns]
    if absent:
        raise ValueError(f"The table has no column for the parameter {absent[0]!r}.")
    return found


def _values(column: Sequence) -> list[Any]:
    """Cells as plain Python values, with `_MISSING` where there is none."""
    values: list[Any] = [_MISSING if _is_missing(cell) else to_python(cell) for cell in column]
    present = [value for value in values if value is not _MISSING]
    # A DataFrame has no room for a gap among integers, and makes floats of them: 5.0 was max_depth=5.
    gaps = len(present) < len(values)
    if gaps and all(isinstance(value, float) and value.is_integer() for value in present):
        return [value if value is _MISSING else int(value) for value in values]
    return values


def _is_missing(cell: Any) -> bool:
    """Whether there is nothing: NaN, NA, a masked cell. None is a value, such as ``max_depth=None``."""
    cell = to_python(cell)
    return cell is _MISSING or type(cell).__name__ in _GAPS or (isinstance(cell, float) and cell != cell)


def _number(cell: Any) -> float:
    return math.nan if cell is None or _is_missing(cell) else float(cell)


def _are_numbers(cells: Sequence) -> bool:
    try:
        return bool([_number(cell) for cell in cells])
    except (TypeError, ValueError):
        return False


def _space_of(rows: list[dict[str, Any]]) -> list[dict[str, list]]:
    """The values that occur, a branch for each set of parameters that occurs together."""
    branches: dict[tuple[str, ...], dict[str, dict[Any, Any]]] = {}
    for params in rows:
        branch = branches.setdefault(tuple(params), {name: {} for name in params})
        for name, value in params.items():
            branch[name].setdefault(identity(value), value)
    return [{name: list(values.values()) for name, values in branch.items()} for branch in branches.values()]
