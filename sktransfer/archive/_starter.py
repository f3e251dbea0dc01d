"""The starter archive: tasks that ship with the package, so that the first search ever has a past.

``contents.joblib`` names the estimators, ``profiles.joblib`` holds what is known of the data sets, each once,
and ``<estimator>.joblib`` the tasks of one estimator, their trials as columns. Files are sealed and read as
every record is: plain data only. Nothing is ever written here but by `pack`, which makes the files of an
archive. No row of any data is in them: profiles are without a sample.
"""

from __future__ import annotations

import base64
import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sktransfer.archive import _storage
from sktransfer.archive._columns import columns_to_trials, trials_to_columns
from sktransfer.archive._reader import read_plain
from sktransfer.archive._record import record_to_task, task_to_record
from sktransfer.archive._selection import profiles_of
from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import RecordError
from sktransfer.space._estimator_tree import is_scaled
from sktransfer.task import Task
from sktransfer.utils._values import Plain

STARTER_FORMAT = 1
"""Raised when the files change their shape. They come with the program, so older ones need not be read."""

PREFIX = "starter"
CONTENTS, PROFILES = "contents", "profiles"


def starter_folder() -> Path:
    """Where the starter archive is, also if searches are to do without it."""
    return _storage.starter_directory() or _storage.PACKAGED_STARTER


class Starter:
    """The tasks in a folder that `pack` made.

    Parameters
    ----------
    folder : Path or None
        None for a starter archive without a task.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    @property
    def estimators(self) -> list[str]:
        """Class names of the estimators that there are tasks of."""
        return [] if self.folder is None else list(_read(*self._checked(CONTENTS))["estimators"])

    def tasks(self, estimator: str, scaled: bool | None = None) -> tuple[Task, ...]:
        """The tasks of an estimator; none of one that is not known.

        Parameters
        ----------
        estimator : str
            Name of its class.
        scaled : bool or None
            Whether a scaler came first. None asks for both, and so does an estimator that does not care
            about scales, of which there are not both.
        """
        if estimator not in self.estimators:
            return ()
        return _tasks_of(*(self._checked(name) for name in (estimator, PROFILES)), scaled)

    def get(self, id: str) -> Task | None:
        """The task of this id, if there is one."""
        prefix, _, rest = id.partition("-")
        known = self.tasks(rest.partition("-")[0]) if prefix == PREFIX else ()
        return next((task for task in known if task.id == id), None)

    def candidates(self, today: Mapping[str, Any] | None, profile: Any) -> list[Task]:
        """Tasks for `Archive.select`, which see; a warning and none if the files are bad."""
        if today is None:
            return []
        scaled = is_scaled(today)
        if scaled is False and any(map(looks_standardized, profiles_of(profile))):
            scaled = True
        try:
            return [task for name in today["predictors"] for task in self.tasks(name, scaled)]
        except Exception as error:  # whatever is wrong with these files, the user's own are not to blame
            warnings.warn(
                f"The starter archive cannot be used ({error}); the search goes on without. Install "
                "sktransfer again to repair it, or do without it: archive=Archive(starter=False).",
                stacklevel=2,
            )
            return []

    def _checked(self, name: str) -> tuple[Path, int, int]:
        """A file, its size and its time of change, by which what was read is known again."""
        assert self.folder is not None
        file = self.folder / (name + _storage.SUFFIX)
        facts = file.lstat()
        return file, facts.st_size, facts.st_mtime_ns


@lru_cache(maxsize=8)
def _read(path: Path, size: int, time: int) -> Any:
    content = read_plain(path)
    if type(content) is not dict or content.get("starter") != STARTER_FORMAT:
        raise RecordError(path, "it is not of the starter archive that belongs to this version")
    return content


@lru_cache(maxsize=16)
def _tasks_of(
    file: tuple[Path, int, int], profiles_file: tuple[Path, int, int], scaled: bool | None
) -> tuple[Task, ...]:
    """The tasks in a file, each with the profile of its data."""
    content, profiles = _read(*file), _read(*profiles_file)["profiles"]
    try:
        parts = dict(enumerate(content["parts"]))
        alike = {place: part for place, part in parts.items() if is_scaled(part["space"]) is scaled}
        parts = alike or parts
        records = [
            {
                **parts[entry["part"]],
                "id": entry["id"],
                "created": entry["created"],
                "profile": _with_hashes(json.loads(profiles[entry["data"]]), _from_text),
                "trials": columns_to_trials(entry["columns"]),
                "complete": True,
                "format": content["format"],
            }
            for entry in content["tasks"]
            if entry["part"] in parts
        ]
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise RecordError(file[0], f"it is damaged ({error!r})") from None
    return tuple(record_to_task(record, file[0]) for record in records)


def looks_standardized(profile: DatasetProfile) -> bool:
    """Whether all columns have a standard deviation of about one, so that somebody has scaled them already.

    A profile does not keep deviations, but covariances, as sign(c) log(1 + |c|), and correlations: without a
    scale they are the same.
    """
    known = profile.meta_features
    for end in ("min", "max"):
        if f"correlation_{end}" not in known or f"covariance_{end}" not in known:
            return False
        r = known[f"correlation_{end}"]
        if abs(np.sign(r) * np.log1p(abs(r)) - known[f"covariance_{end}"]) > 0.1:
            return False
    return known["correlation_max"] > known["correlation_min"]


# -- making the files ----------------------------------------------------------------------------


def pack(tasks: Iterable[Task], folder: Path) -> None:
    """Write tasks of many estimators as a starter archive. Files of that folder are replaced.

    Parameters
    ----------
    tasks : iterable of Task
        Each about one estimator; its id ends in the class of the estimator and one more word, each after a
        dash, and what comes before names the data.
    folder : Path
    """
    profiles: dict[str, Plain] = {}
    by_estimator: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: task.id):
        [estimator] = task.space["predictors"]
        by_estimator.setdefault(estimator, []).append(task)
    for estimator, own in sorted(by_estimator.items()):
        _write(folder, estimator, _estimator_content(own, profiles))
    _write(folder, PROFILES, {"profiles": profiles})
    _write(folder, CONTENTS, {"estimators": sorted(by_estimator)})
    for file in _storage.record_files(folder):
        if file.stem not in (CONTENTS, PROFILES, *by_estimator):
            file.unlink()


def _write(folder: Path, name: str, content: dict[str, Plain]) -> None:
    _storage.write(folder / (name + _storage.SUFFIX), _storage.dump({"starter": STARTER_FORMAT, **content}))


def _estimator_content(tasks: list[Task], profiles: dict[str, Plain]) -> dict[str, Plain]:
    parts: list[Plain] = []
    entries: list[Plain] = []
    for task in tasks:
        record = task_to_record(task)
        part = {name: record[name] for name in ("space", "metrics", "versions")}
        if part not in parts:
            parts.append(part)
        data, estimator, form = task.id.rsplit("-", 2)
        kind = DatasetProfile.from_dict(task.profile or {}).kind
        profiles[f"{kind}/{data}"] = json.dumps(_with_hashes(_lean(task.profile or {}), _to_text))
        columns = trials_to_columns(task.trials)
        # With other trials it is another task: models that were trained on it are cached by its id.
        digest = hashlib.blake2b(repr(columns).encode(), digest_size=4).hexdigest()
        entries.append(
            {
                "id": f"{PREFIX}-{estimator}-{data}-{form}-{digest}",
                "created": task.created,
                "part": parts.index(part),
                "data": f"{kind}/{data}",
                "columns": columns,
            }
        )
    return {"format": tasks[0].format, "parts": parts, "tasks": entries}


def _lean(profile: Mapping[str, Any]) -> dict[str, Any]:
    """A profile without a sample, and without the second set of hashes where the first tells rows apart.

    `DatasetProfile.overlap` needs the second only for rows that are alike without the order of columns.
    """
    whole = DatasetProfile.from_dict(profile)
    lean = {name: value for name, value in whole.to_dict().items() if name != "sample"}
    if not whole.needs_column_order:
        lean |= {"ordered_fingerprint": [], "n_ordered": 0}
    return lean | {"enclosing": [_lean(part.to_dict()) for part in whole.enclosing]}


# A profile is one text, and so are its hashes in there: the reader looks through a text at once, and only the
# profiles that are needed are made.


def _with_hashes(profile: Mapping[str, Any], translate: Callable[[Any], Plain]) -> dict[str, Any]:
    """A profile with its hashes, also those of the data around, translated."""
    hashes = {name: translate(value) for name, value in profile.items() if name.endswith("fingerprint")}
    return {
        **profile,
        **hashes,
        "enclosing": [_with_hashes(part, translate) for part in profile["enclosing"]],
    }


def _to_text(hashes: list[int]) -> str:
    return base64.b64encode(np.array(hashes, dtype="<u8").tobytes()).decode()


def _from_text(text: str) -> list[int]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8").tolist()
