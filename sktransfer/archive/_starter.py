"""The starter archive: past tasks that ship with the package, so that the first search has some.

``contents.joblib`` lists the estimators. ``profiles.joblib`` holds the profiles of the data sets,
each once, as JSON. ``<estimator>.joblib`` holds the tasks of one estimator, with their trials as
columns. The files have checksums and are read as every record is: plain data only. They contain no
row of any data and no hash of a row. A profile lists the sizes of its data set instead, ``forms``,
by which `_row_comparison` recognizes it. ``benchmarks/pack_starter.py`` writes the files.

The content of a file is compressed to a quarter of its size (`pack_content`).

A table of trials takes a third of the size of a record. A column of numbers is one text, such as
``"0.5 12 nan -"``: a number with a point or an exponent is a float, any other an integer, and a
dash means that the trial does not have the parameter. Numbers are rounded. Any other column is a
dict of its distinct values and a text of their positions, ``{"values": ["rbf", None], "at": "0 1
-"}``.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from sktransfer.archive import _locations, _storage
from sktransfer.archive._plain_pickle import MAX_BYTES, dumps_plain, loads_plain
from sktransfer.archive._record import record_to_task
from sktransfer.archive._selection import ProfileLike, as_profiles
from sktransfer.dataset._scales import looks_standardized
from sktransfer.exceptions import ArchiveWarning, RecordError
from sktransfer.space._estimator_tree import is_scaled
from sktransfer.task import TASK_FORMAT, Task
from sktransfer.utils._user_warnings import warn_user
from sktransfer.utils._values import Plain

STARTER_FORMAT = 2
"""Raise it when the layout of the files changes. Only files of the same number are read, because
they are part of the package."""

PREFIX = "starter"
CONTENTS, PROFILES = "contents", "profiles"
NO_VALUE = "-"
TRIAL_FIELDS = ("score", "std", "fit_time")
_MISSING = object()


def starter_folder() -> Path:
    """Return the folder of the starter archive, even if searches do not use it."""
    return _locations.starter_directory() or _locations.PACKAGED_STARTER


class Starter:
    """The tasks of a starter archive.

    Parameters
    ----------
    folder : Path or None
        The folder of its files. None means that there are no tasks.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @property
    def estimators(self) -> list[str]:
        """Class names of the estimators that have tasks."""
        return [] if self.folder is None else list(_read(*self._file_key(CONTENTS))["estimators"])

    def tasks(self, estimator: str, scaled: bool | None = None) -> tuple[Task, ...]:
        """Return the tasks of an estimator; none if it is unknown.

        Parameters
        ----------
        estimator : str
            Name of its class.
        scaled : bool or None
            Whether a scaler came first. None returns both. An estimator that is insensitive to
            scales has only one kind, which is returned in any case.
        """
        if estimator not in self.estimators:
            return ()
        return _tasks_of(*(self._file_key(name) for name in (estimator, PROFILES)), scaled)

    def get(self, id: str) -> Task | None:
        """Return the task of this id; None if there is none."""
        prefix, _, rest = id.partition("-")
        known = self.tasks(rest.partition("-")[0]) if prefix == PREFIX else ()
        return next((task for task in known if task.id == id), None)

    def candidates(self, target: Mapping[str, Any] | None, profile: ProfileLike) -> list[Task]:
        """Return the tasks for `Archive.select`. If files are invalid, warn and return none.

        Parameters
        ----------
        target : dict or None
            Description of the target's space. Without one, no tasks are returned.
        profile : DatasetProfile, its ``to_dict()``, a sequence of them or None
            The target's data. Data that look standardized count as scaled.
        """
        if target is None:
            return []
        scaled = is_scaled(target)
        if scaled is False and any(looks_standardized(p.scales) for p in as_profiles(profile)):
            scaled = True
        try:
            return [task for name in target["predictors"] for task in self.tasks(name, scaled)]
        except Exception as error:  # whatever is wrong with these files, the user's own can be used
            warn_user(
                f"The starter archive cannot be used ({error}). The search continues without it. "
                "Install sktransfer again to repair it, or pass archive=Archive(starter=False).",
                ArchiveWarning,
            )
            return []

    def _file_key(self, name: str) -> tuple[Path, int, int]:
        """Return a file with its size and time of change, the key of what was read from it."""
        assert self.folder is not None
        file = self.folder / (name + _storage.SUFFIX)
        status = file.lstat()
        return file, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=8)
def _read(path: Path, size: int, time: int) -> Any:
    content = _storage.read_plain(path)
    if type(content) is not dict or content.get("starter") != STARTER_FORMAT:
        raise RecordError(path, "it is not a file of the starter archive of this version")
    try:
        return unpack_content(content["packed"])
    except (ValueError, TypeError, LookupError, zlib.error) as error:
        raise RecordError(path, f"it is damaged ({error!r})") from None


def pack_content(content: dict[str, Plain]) -> str:
    """Compress the content of a file to a text.

    >>> unpack_content(pack_content({"estimators": ["SVC"]}))
    {'estimators': ['SVC']}
    """
    return base64.b64encode(zlib.compress(dumps_plain(content), 9)).decode()


def unpack_content(packed: str) -> Any:
    """Return what `pack_content` compressed, if it is plain data of a bounded size."""
    return loads_plain(zlib.decompressobj().decompress(base64.b64decode(packed), MAX_BYTES))


@lru_cache(maxsize=16)
def _tasks_of(
    file: tuple[Path, int, int], profiles_file: tuple[Path, int, int], scaled: bool | None
) -> tuple[Task, ...]:
    """Read the tasks in a file, each with the profile of its data."""
    content, profiles = _read(*file), _read(*profiles_file)["profiles"]
    try:
        parts = dict(enumerate(content["parts"]))
        matching = {n: part for n, part in parts.items() if is_scaled(part["space"]) is scaled}
        parts = matching or parts
        records = [
            {
                **parts[entry["part"]],
                "id": entry["id"],
                "created": entry["created"],
                "profile": json.loads(profiles[entry["data"]]),
                "trials": columns_to_trials(entry["columns"]),
                "complete": True,
                "origin": "",
                "format": TASK_FORMAT,
            }
            for entry in content["tasks"]
            if entry["part"] in parts
        ]
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise RecordError(file[0], f"it is damaged ({error!r})") from None
    return tuple(record_to_task(record, file[0]) for record in records)


# -- trials as columns ---------------------------------------------------------------------------


def columns_to_trials(columns: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials of a table, as they are in a record.

    >>> numbers = {"score": "0.5 0.25", "std": "nan nan", "fit_time": "0.1 0.2"}
    >>> params = {"C": "1.0 -", "kernel": {"values": ["rbf", None], "at": "0 1"}}
    >>> columns = {"params": params, "metrics": {}, "facts": numbers}
    >>> [trial["params"] for trial in columns_to_trials(columns)]
    [{'C': 1.0, 'kernel': 'rbf'}, {'kernel': None}]
    """
    score, std, fit_time = (_parse_column(columns["facts"][name]) for name in TRIAL_FIELDS)
    params, metrics = (_to_rows(columns[part], len(score)) for part in ("params", "metrics"))
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


def _parse_column(column: str | dict[str, Any]) -> list[Any]:
    """Return the values of a column, `_MISSING` where there is none."""
    if isinstance(column, dict):
        values = column["values"]
        return [_MISSING if n == NO_VALUE else values[int(n)] for n in column["at"].split()]
    return [_parse_number(cell) for cell in column.split()]


def _parse_number(cell: str) -> Any:
    if "." in cell or "e" in cell or "n" in cell:  # nan and inf contain an n
        return float(cell)
    return _MISSING if cell == NO_VALUE else int(cell)


def _to_rows(columns: dict[str, Any], n: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{} for _ in range(n)]
    for name, column in columns.items():
        for row, value in zip(rows, _parse_column(column), strict=True):
            if value is not _MISSING:
                row[name] = value
    return rows
