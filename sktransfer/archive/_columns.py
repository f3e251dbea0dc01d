"""Trials as a table of texts: a third of the size of a record, and as quick to read.

A column of numbers is one text, ``"0.5 12 nan -"``: a number with a point or an exponent is a float, any
other an integer, and a dash is a gap (a parameter that the trial did not have). Numbers are rounded. Any
other column is a dict of its distinct values and a text of their places,
``{"values": ["rbf", None], "at": "0 1 -"}``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sktransfer.task import Trial
from sktransfer.utils._values import Plain, identity

DIGITS, FEW_DIGITS = 5, 3
GAP = "-"
FACTS = {"score": DIGITS, "std": FEW_DIGITS, "fit_time": FEW_DIGITS}
_MISSING = object()


def trials_to_columns(trials: Sequence[Trial]) -> dict[str, dict[str, Plain]]:
    """The table of some trials.

    >>> first, second = Trial({"C": 1.0, "kernel": "rbf"}, 0.5), Trial({"C": 10.0, "kernel": "poly"}, 0.25)
    >>> trials_to_columns([first, second])
    {'params': {'C': '1.0 10.0', 'kernel': {'values': ['rbf', 'poly'], 'at': '0 1'}},
     'metrics': {},
     'facts': {'score': '0.5 0.25', 'std': 'nan nan', 'fit_time': 'nan nan'}}
    """
    names = dict.fromkeys(name for trial in trials for name in trial.params)
    metrics = dict.fromkeys(name for trial in trials for name in trial.metrics)
    return {
        "params": {name: _column([trial.params.get(name, _MISSING) for trial in trials]) for name in names},
        "metrics": {
            name: _column([trial.metrics.get(name, _MISSING) for trial in trials]) for name in metrics
        },
        "facts": {name: _column([getattr(trial, name) for trial in trials], n) for name, n in FACTS.items()},
    }


def columns_to_trials(columns: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The trials of a table, as they stand in a record.

    >>> columns = trials_to_columns([Trial({"C": 1.0}, 0.5), Trial({"gamma": 2}, 0.25)])
    >>> [trial["params"] for trial in columns_to_trials(columns)]
    [{'C': 1.0}, {'gamma': 2}]
    """
    score, std, fit_time = (_cells(columns["facts"][name]) for name in FACTS)
    params, metrics = (_rows(columns[part], len(score)) for part in ("params", "metrics"))
    return [
        {
            "params": params[n],
            "score": score[n],
            "std": std[n],
            "fit_time": fit_time[n],
            "status": "ok" if score[n] == score[n] else "failed",
            "metrics": metrics[n],
        }
        for n in range(len(score))
    ]


def _column(values: list[Any], digits: int = DIGITS) -> Plain:
    present = [value for value in values if value is not _MISSING]
    if all(type(value) in (int, float) for value in present):
        return " ".join(_text(value, digits) for value in values)
    distinct = {identity(value): value for value in reversed(present)}
    places = {key: str(place) for place, key in enumerate(reversed(distinct))}
    at = [GAP if value is _MISSING else places[identity(value)] for value in values]
    return {"values": list(reversed(distinct.values())), "at": " ".join(at)}


def _text(number: Any, digits: int) -> str:
    if number is _MISSING:
        return GAP
    if type(number) is int:
        return str(number)
    text = f"{number:.{digits}g}"
    return text if any(mark in text for mark in ".en") else text + ".0"  # 1.0 is not 1; nan and inf have an n


def _cells(column: Any) -> list[Any]:
    """The values of a column, `_MISSING` in the gaps; a ValueError or TypeError if it is not one."""
    if isinstance(column, dict):
        values = column["values"]
        return [_MISSING if place == GAP else values[int(place)] for place in column["at"].split()]
    return [
        float(cell) if "." in cell or "e" in cell or "n" in cell else _MISSING if cell == GAP else int(cell)
        for cell in column.split()
    ]


def _rows(columns: dict[str, Any], n: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(n)]
    for name, column in columns.items():
        for row, value in zip(rows, _cells(column), strict=True):
            if value is not _MISSING:
                row[name] = value
    return rows
