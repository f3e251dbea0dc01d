"""From a task to a record and back. A record is a dict of plain data.

Plain data are str, int, float, bool, None, lists and dicts. `task_to_record` makes plain data, or
says where it cannot. `record_to_task` trusts nothing, because a record may come from an untrusted
source. It accepts exactly these types, and ignores unknown fields (see `task.TASK_FORMAT`).

The many numbers of a profile are written as texts (see `_packed_numbers`).
"""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from importlib import metadata
from typing import Any, cast

import numpy as np

from sktransfer.archive._packed_numbers import (
    MAX_PACKED_BYTES,
    pack_numbers,
    packed_size,
    unpack_numbers,
)
from sktransfer.archive._profile_schema import check_profile
from sktransfer.dataset._profile import HASH_FIELDS
from sktransfer.exceptions import NewerFormatError, RecordError
from sktransfer.task import TASK_FORMAT, Task, Trial
from sktransfer.utils._values import Plain, identity

MAX_DEPTH = 40
"""Deepest nesting of a record, so that functions that walk through it may recurse."""

MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1
"""Integers outside are refused: unbounded ones can be chosen to make a dict of them very slow."""

_ONLY_STRINGS, _CONTAINERS = frozenset([str]), frozenset([list, dict])
_SIMPLE = frozenset([float, str, bool, type(None)])
"""Types that are plain as they are. Most values are of these, and their place need not be
formatted."""
_MISSING = object()
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,127}")


def is_id(name: object) -> bool:
    """Whether `name` can be the id of a record, which is also the name of its file.

    >>> is_id("20250101T120000-0123456789abcdef"), is_id("../other")
    (True, False)
    """
    return isinstance(name, str) and _ID.fullmatch(name) is not None


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that make a record, of those that are installed.

    >>> sorted(library_versions().keys() - {"sktransfer"})
    ['numpy', 'python', 'scikit-learn']
    """
    versions = {"python": platform.python_version()}
    for library in ("sktransfer", "scikit-learn", "numpy"):
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:  # imported from a checkout
            continue
    return versions


# -- task -> record ------------------------------------------------------------------------------


def task_to_record(task: Task) -> dict[str, Plain]:
    """Make a record of a task. Arrays become lists, numpy's numbers become Python's.

    Raises
    ------
    TypeError
        If the task holds anything else. The message says where: ``trials[3].params['kernel']``.

    Examples
    --------
    >>> task = Task.from_trials({"C": [1, 10]}, [({"C": 1}, 0.5)], id="example")
    >>> task_to_record(task)["trials"][0]["params"]
    {'C': 1}
    """
    record = {
        field.name: _plain(getattr(task, field.name), field.name, 1) for field in fields(task)
    }
    if not task.name:
        del record["name"]
    return {**record, "profile": pack_numbers(record["profile"])}


def plain_profile(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Make plain data of a profile. Raise a ValueError if a field is not of its kind."""
    # Thousands of integers, whose range `check_profile` checks.
    hashes = {name: profile[name] for name in HASH_FIELDS if _has_integers(profile.get(name))}
    others = dict(profile) | dict.fromkeys(hashes)
    plain = cast(dict[str, Any], _plain(others, "profile", 1)) | hashes
    check_profile(plain)
    return plain


def _has_integers(value: object) -> bool:
    return type(value) is list and set(map(type, value)) <= {int}


def _plain(value: object, where: str, depth: int) -> Plain:
    if depth > MAX_DEPTH:
        raise TypeError(
            f"{where} is nested more than {MAX_DEPTH} levels deep, the limit of a record."
        )
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, (int, np.integer)):
        return _plain_int(int(value), where)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, str):
        return str.__str__(
            value
        )  # the text itself, of a subclass as well (numpy's, an enumeration's)
    if isinstance(value, Trial):
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        if not value.std_error:  # all folds were evaluated, as nearly always
            del own["std_error"]
        return {
            name: item if type(item) in _SIMPLE else _plain(item, f"{where}.{name}", depth + 1)
            for name, item in own.items()
        }
    if isinstance(value, Mapping):
        return {
            _key(key, where): item
            if type(item) in _SIMPLE
            else _plain(item, f"{where}[{key!r}]", depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), where, depth)
    if isinstance(value, (list, tuple)):
        return _plain_list(value, where, depth)
    raise TypeError(
        f"{where} is a {type(value).__name__}, which is not plain data; see Trial.make."
    )


def _plain_list(values: list | tuple, where: str, depth: int) -> list:
    types = set(map(type, values))
    if types == {int} and min(values) >= MIN_INTEGER and max(values) <= MAX_INTEGER:
        return list(values)  # thousands of hashes
    return [
        item if type(item) in _SIMPLE else _plain(item, f"{where}[{index}]", depth + 1)
        for index, item in enumerate(values)
    ]


def _plain_int(value: int, where: str) -> int:
    if not MIN_INTEGER <= value <= MAX_INTEGER:
        raise TypeError(f"{where} is an integer of more than 64 bits, which a record cannot hold.")
    return value


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{where} has the key {key!r}; the keys of a record are strings.")
    return str.__str__(key)


# -- record -> task ------------------------------------------------------------------------------


def record_to_task(record: object, path: str | os.PathLike[str] = "record") -> Task:
    """Check every field of a record and make a task from it.

    Parameters
    ----------
    record : dict
        Plain data, as `task_to_record` makes it.
    path : str or os.PathLike
        Where it comes from, for error messages.

    Raises
    ------
    RecordError
        If it is not a task record. `NewerFormatError` if it has a later format.

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
            raise ValueError(f"the format {found} does not exist")
        check_containers(record)
        return _task(record)
    except RecordError:
        raise
    except (ValueError, OverflowError) as error:  # OverflowError: an integer too large for a float
        raise RecordError(path, str(error)) from None


def check_containers(record: dict) -> None:
    """Raise a ValueError if plain data are nested too deeply, or have keys other than strings.

    This function does not recurse, because the depth is what it checks.
    """
    todo: list[tuple[Any, int]] = [(record, 0)]
    while todo:
        container, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
        if type(container) is dict and not _ONLY_STRINGS.issuperset(map(type, container)):
            raise ValueError("a key in it is not a string")
        items = container.values() if type(container) is dict else container
        if not _CONTAINERS.isdisjoint(
            map(type, items)
        ):  # most contain none, and this check is fast
            todo += [(item, depth + 1) for item in items if type(item) in _CONTAINERS]


def _task(record: dict) -> Task:
    if not is_id(_typed(record, "id", str)):
        raise ValueError("its id is not made of at most 128 letters, digits, '.', '_' and '-'")
    if not _typed(record, "created", str):
        raise ValueError("the field 'created' is empty")
    metrics = _strings(_typed(record, "metrics", list), "'metrics'")
    if not metrics:
        raise ValueError("the field 'metrics' is empty")
    check_space(_typed(record, "space", dict))
    versions = _typed(record, "versions", dict)
    _strings(list(versions.values()), "'versions'")
    return Task(
        trials=tuple(
            _trial(trial, f"trials[{n}]") for n, trial in enumerate(_typed(record, "trials", list))
        ),
        space=record["space"],
        metrics=tuple(metrics),
        # Missing is not None: a record that lost its profile could not be excluded for shared rows.
        profile=None if record.get("profile", ...) is None else _profile(record),
        id=record["id"],
        created=record["created"],
        versions=versions,
        complete=_typed(record, "complete", bool),
        format=record["format"],
        resume=resume if type(resume := record.get("resume")) is dict else None,
        name=name if type(name := record.get("name")) is str else "",
        origin=_typed(record, "origin", str),
    )


def _profile(record: dict) -> dict:
    packed = _typed(record, "profile", dict)
    check_packed_size(packed)
    profile = unpack_numbers(packed)
    check_profile(profile)
    return profile


def check_packed_size(profile: Plain) -> None:
    """Raise a ValueError if a profile is too large for a record."""
    if packed_size(profile) > MAX_PACKED_BYTES:
        raise ValueError(f"its profile is larger than {MAX_PACKED_BYTES // 2**20} MiB")


def check_space(space: dict) -> None:
    """Raise a ValueError if `space` is not the description of a space in a record."""
    where = "the space"
    for branch in _typed(space, "branches", list, where):
        if type(branch) is not dict or not all(type(entry) is dict for entry in branch.values()):
            raise ValueError("a branch of the space is not a dict of dicts")
    _strings(list(_typed(space, "canonical", dict, where).values()), "the canonical names")
    _typed(space, "fixed", dict, where)
    _strings(_typed(space, "predictors", list, where), "the predictors")


def _trial(record: object, where: str) -> Trial:
    if type(record) is not dict:
        raise ValueError(f"{where} is a {type(record).__name__}, not a dict")
    status, score = _typed(record, "status", str, where), _number(record, "score", where)
    if status not in ("ok", "failed"):
        raise ValueError(
            f"{where} has the status {status[:20]!r}, which is neither 'ok' nor 'failed'"
        )
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
        std_error=_number(record, "std_error", where) if "std_error" in record else 0.0,
    )


def _typed(record: dict, name: str, kind: type, where: str = "") -> Any:
    value = record.get(name, _MISSING)
    if type(value) is kind:
        return value
    where = f" of {where}" if where else ""
    if value is _MISSING:
        raise ValueError(f"the field {name!r}{where} is missing")
    raise ValueError(
        f"the field {name!r}{where} is a {type(value).__name__}, not a {kind.__name__}"
    )


def _number(record: dict, name: str, where: str) -> float:
    number = record.get(name)
    if type(number) is int:
        return float(number)
    if type(number) is not float:
        number = _typed(record, name, float, where)  # raises the error
    # One NaN object for all: comparing tasks compares identity first, and so finds NaNs equal.
    return number if number == number else math.nan


def _strings(values: list, where: str) -> list[str]:
    if not all(type(value) is str for value in values):
        raise ValueError(f"an entry of {where} is not a string")
    return values


# -- comparing -----------------------------------------------------------------------------------


def is_same_task(task: Task, other: Task) -> bool:
    """Whether two tasks have the same record. Unlike ``==``, this finds any two NaNs equal."""
    return identity(task_to_record(task)) == identity(task_to_record(other))


def is_same_search(task: Task, other: Task) -> bool:
    """Whether two tasks are about the same search, however much was left out of either."""
    parts = [(each.space, each.metrics, each.created, each.complete) for each in (task, other)]
    trials = [[asdict(trial) for trial in each.trials] for each in (task, other)]
    return identity(parts[0]) == identity(parts[1]) and identity(trials[0]) == identity(trials[1])


def has_same_trials(task: Task, other: Task) -> bool:
    """Whether two tasks hold the same results, whatever their ids, names and dates are."""
    if task.metrics != other.metrics or _sizes_of(task) != _sizes_of(other):
        return False
    first, second = ([asdict(trial) for trial in each.trials] for each in (task, other))
    return identity(first) == identity(second)


def _sizes_of(task: Task) -> tuple[Any, ...]:
    """Kind and sizes of a task's data, which a stored profile has as they were measured."""
    profile = task.profile or {}
    return tuple(profile.get(name) for name in ("kind", "n_rows", "n_features", "n_classes"))


def is_continuation(task: Task, earlier: Task) -> bool:
    """Whether `earlier` is an incomplete record that holds the first trials of `task`."""
    is_longer = len(task.trials) > len(earlier.trials)
    return is_longer and not earlier.complete and is_beginning(earlier, task)


def is_beginning(task: Task, whole: Task) -> bool:
    """Whether the trials of a task are the first ones of another task, or all of them."""
    first, known = (
        [asdict(trial) for trial in trials]
        for trials in (whole.trials[: len(task.trials)], task.trials)
    )
    return identity(first) == identity(known)
