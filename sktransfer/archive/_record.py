"""From a task to a record and back. A record is a dict of str, int, float, bool, None, list and dict.

What is written can be read: `task_to_record` makes plain data or says where it cannot, and
`record_to_task` trusts nothing, because a record may come from a stranger. It takes exactly the types
that a record holds; a field it does not know is left alone (see `task.TASK_FORMAT`).
"""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import fields
from importlib import metadata
from typing import Any

import numpy as np

from sktransfer.archive._pack import pack, unpack
from sktransfer.exceptions import NewerFormatError, RecordError
from sktransfer.task import TASK_FORMAT, Task, Trial
from sktransfer.utils._values import Plain

MAX_DEPTH = 40
"""Nesting of a record, so that whoever walks through it may recurse."""

SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""Integers outside are refused: unbounded ones can be chosen to make a dict of them very slow."""

_ONLY_STRINGS, _CONTAINERS = frozenset([str]), frozenset([list, dict])
_MISSING = object()
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")


def is_id(name: Any) -> bool:
    """Whether `name` can be the id of a record, which is also the name of its file.

    >>> is_id("20250101T120000-0123456789abcdef"), is_id("../other")
    (True, False)
    """
    return isinstance(name, str) and _ID.fullmatch(name) is not None


def library_versions() -> dict[str, str]:
    """Versions of what made a record; a library that is not installed as a package is left out.

    >>> sorted(library_versions().keys() - {"sktransfer"})
    ['numpy', 'python', 'scikit-learn']
    """
    versions = {"python": platform.python_version()}
    for library in ("sktransfer", "scikit-learn", "numpy"):
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:  # a checkout on the path, not installed
            continue
    return versions


# -- task -> record ------------------------------------------------------------------------------


def task_to_record(task: Task) -> dict[str, Plain]:
    """Make plain data of a task, of today's format: arrays become lists, numpy's numbers become Python's.

    Raises
    ------
    TypeError
        For anything else, with its place: ``trials[3].params['kernel']``.

    Examples
    --------
    >>> task = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], id="example")
    >>> task_to_record(task)["trials"][0]["params"]
    {'C': 1}
    """
    record = {field.name: _plain(getattr(task, field.name), field.name, 1) for field in fields(task)}
    return {**record, "profile": pack(record["profile"]), "format": max(task.format, TASK_FORMAT)}


def _plain(value: Any, where: str, depth: int) -> Plain:
    if depth > MAX_DEPTH:
        raise TypeError(f"{where} is nested more than {MAX_DEPTH} levels deep, which a record cannot hold.")
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        return _plain_int(int(value), where)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)  # of a subclass (numpy's, an enumeration's) the text itself
    if isinstance(value, Trial):
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _plain(item, f"{where}.{name}", depth + 1) for name, item in own.items()}
    if isinstance(value, Mapping):
        return {_key(key, where): _plain(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), where, depth)
    if isinstance(value, (list, tuple)):
        return _plain_list(value, where, depth)
    raise TypeError(f"{where} is a {type(value).__name__}, which is not plain data; see Trial.make.")


def _plain_list(values: list | tuple, where: str, depth: int) -> list:
    # Most entries are floats: no place has to be spelt out for them.
    return [
        item if type(item) is float else _plain(item, f"{where}[{index}]", depth + 1)
        for index, item in enumerate(values)
    ]


def _plain_int(value: int, where: str) -> int:
    if not SMALLEST <= value <= LARGEST:
        raise TypeError(f"{where} is an integer of more than 64 bits, which a record cannot hold.")
    return value


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{where} has the key {key!r}; the keys of a record are strings.")
    return str.__str__(key)


# -- record -> task ------------------------------------------------------------------------------


def record_to_task(record: Any, path: str | os.PathLike[str] = "record") -> Task:
    """Check every field of a record and make a task of it.

    Parameters
    ----------
    record : dict
        Plain data, as `task_to_record` makes it.
    path : str or os.PathLike
        Where it is from, for the message.

    Raises
    ------
    RecordError
        If it is not a task record; `NewerFormatError` if it is one of a later format.

    Examples
    --------
    >>> record_to_task({"format": 1})
    Traceback (most recent call last):
    sktransfer.exceptions.RecordError: record: the field 'id' is missing
    """
    try:
        if type(record) is not dict:
            raise ValueError(f"it holds a {type(record).__name__}, not the dict of a task record")
        found = _typed(record, "format", int)
        if found > TASK_FORMAT:
            raise NewerFormatError(path, found, TASK_FORMAT)
        if found < 1:
            raise ValueError(f"there is no format {found}")
        _check_containers(record)
        return _task(record)
    except RecordError:
        raise
    except (ValueError, OverflowError) as error:  # the latter of an integer that no float can hold
        raise RecordError(path, str(error)) from None


def _check_containers(record: dict) -> None:
    """Without recursion, because the depth is what is in doubt."""
    todo: list[tuple[Any, int]] = [(record, 0)]
    while todo:
        container, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
        if type(container) is dict and not _ONLY_STRINGS.issuperset(map(type, container)):
            raise ValueError("a key in it is not a string")
        items = container.values() if type(container) is dict else container
        if not _CONTAINERS.isdisjoint(map(type, items)):  # most hold none, and this is quick to see
            todo += [(item, depth + 1) for item in items if type(item) in _CONTAINERS]


def _task(record: dict) -> Task:
    if not is_id(_typed(record, "id", str)):
        raise ValueError("its id is not letters, digits, '.', '_' and '-' only, 128 of them at most")
    if not _typed(record, "created", str):
        raise ValueError("the field 'created' is empty")
    metrics = _strings(_typed(record, "metrics", list), "'metrics'")
    if not metrics:
        raise ValueError("the field 'metrics' is empty")
    _check_space(_typed(record, "space", dict))
    versions = _typed(record, "versions", dict)
    _strings(list(versions.values()), "'versions'")
    return Task(
        trials=tuple(_trial(trial, f"trials[{n}]") for n, trial in enumerate(_typed(record, "trials", list))),
        space=record["space"],
        metrics=tuple(metrics),
        # Missing is not None: a record that lost its profile could not be refused for shared rows.
        profile=None
        if record.get("profile", ...) is None
        else _profile(_typed(record, "profile", dict), record),
        id=record["id"],
        created=record["created"],
        versions=versions,
        complete=_typed(record, "complete", bool),
        format=record["format"],
        resume=resume if type(resume := record.get("resume")) is dict else None,  # not in older records
    )


def _profile(profile: dict, record: dict) -> dict:
    return unpack(profile) if record["format"] > 1 else profile


def _check_space(space: dict) -> None:
    where = "the space"
    for branch in _typed(space, "branches", list, where):
        if type(branch) is not dict or not all(type(entry) is dict for entry in branch.values()):
            raise ValueError("a branch of the space is not a dict of dicts")
    _strings(list(_typed(space, "canonical", dict, where).values()), "the canonical names")
    _typed(space, "fixed", dict, where)
    _strings(_typed(space, "predictors", list, where), "the predictors")


def _trial(record: Any, where: str) -> Trial:
    if type(record) is not dict:
        raise ValueError(f"{where} is a {type(record).__name__}, not a dict")
    status, score = _typed(record, "status", str, where), _number(record, "score", where)
    if status not in ("ok", "failed"):
        raise ValueError(f"{where} has the status {status[:20]!r}, which is neither 'ok' nor 'failed'")
    if (status == "ok") != math.isfinite(score):
        raise ValueError(f"{where} has the status {status!r} and the score {score}")
    metrics = _typed(record, "metrics", dict, where)
    return Trial(
        params=_typed(record, "params", dict, where),
        score=score,
        std=_number(record, "std", where),
        fit_time=_number(record, "fit_time", where),
        status=status,
        metrics={name: _number(metrics, name, where) for name in metrics} if metrics else {},
    )


def _typed(record: dict, name: str, kind: type, where: str = "") -> Any:
    value = record.get(name, _MISSING)
    if type(value) is kind:
        return value
    where = f" of {where}" if where else ""
    if value is _MISSING:
        raise ValueError(f"the field {name!r}{where} is missing")
    raise ValueError(f"the field {name!r}{where} is a {type(value).__name__}, not a {kind.__name__}")


def _number(record: dict, name: str, where: str) -> float:
    number = record.get(name)
    if type(number) is int:
        return float(number)
    if type(number) is not float:
        number = _typed(record, name, float, where)  # which says what is wrong
    # One NaN for all: the comparison of two tasks goes by identity first, and finds them equal.
    return number if number == number else math.nan


def _strings(values: list, where: str) -> list[str]:
    if not all(type(value) is str for value in values):
        raise ValueError(f"an entry of {where} is not a string")
    return values
