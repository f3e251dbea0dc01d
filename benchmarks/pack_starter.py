"""Write tasks as a starter archive, in the layout of `sktransfer.archive._starter`.

python -m benchmarks.pack_starter   # write the profiles of the shipped archive again
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import data_folder, load_classification, load_regression
from sktransfer import DatasetProfile, Task, Trial, profile
from sktransfer.archive import starter_folder
from sktransfer.archive._key import COUNTS, HASHES
from sktransfer.archive._plain_pickle import dumps_plain
from sktransfer.archive._record import task_to_record
from sktransfer.archive._starter import (
    CONTENTS,
    NO_VALUE,
    PREFIX,
    PROFILES,
    STARTER_FORMAT,
    TRIAL_FIELDS,
    pack_content,
    unpack_content,
)
from sktransfer.archive._storage import SUFFIX, read_plain, record_files, write_file
from sktransfer.utils._hashing import hash_bytes
from sktransfer.utils._values import Plain, identity

N_DIGITS = 5  # of parameters and scores
N_DIGITS_OF_METRIC = 4
N_DIGITS_OF_FIELD = {"score": N_DIGITS, "std": 2, "fit_time": 2}
MAX_ROWS = 1000  # of a data set that are used
MAX_STORED_ROWS = 5000  # of a data file; the data set itself may have more
_MISSING = object()


def pack_starter(tasks: Iterable[Task], folder: Path) -> None:
    """Write tasks of many estimators as a starter archive. Files in that folder are replaced.

    Parameters
    ----------
    tasks : iterable of Task
        Each is about one estimator. Its id consists of the name of the data, the class of the
        estimator and one more word, separated by dashes.
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
    for file in record_files(folder):
        if file.stem not in (CONTENTS, PROFILES, *by_estimator):
            file.unlink()


def _write(folder: Path, name: str, content: dict[str, Plain]) -> None:
    packed = {"starter": STARTER_FORMAT, "packed": pack_content(content)}
    write_file(folder / (name + SUFFIX), dumps_plain(packed))


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
        profiles[f"{kind}/{data}"] = json.dumps(encode_profile(task.profile or {}))
        columns = trials_to_columns(task.trials)
        # With other trials it is another task: trained models are cached by its id.
        digest = hash_bytes(repr(columns).encode(), 4).hex()
        entries.append(
            {
                "id": f"{PREFIX}-{estimator}-{data}-{form}-{digest}",
                "created": task.created,
                "part": parts.index(part),
                "data": f"{kind}/{data}",
                "columns": columns,
            }
        )
    return {"parts": parts, "tasks": entries}


def encode_profile(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile as it is packed: without a sample and without any hash of the data.

    The data set is recognized by its sizes instead: `forms` lists the numbers of rows and columns
    of the whole data set and of its other versions. A number of rows that is not known is None.

    >>> whole = {"n_rows": 2338, "n_features": None, "fingerprint": [1]}
    >>> known = {"kind": "x", "n_rows": 1000, "n_features": 8, "enclosing": [whole], "key": ""}
    >>> encode_profile(known)
    {'kind': 'x', 'n_rows': 1000, 'n_features': 8, 'forms': [[1000, 8], [2338, 8]]}
    """
    left_out = {*HASHES, *COUNTS, "enclosing", "key", "sample"}
    lean = {name: value for name, value in profile.items() if name not in left_out}
    if "forms" not in lean:
        versions = [profile, *profile.get("enclosing", ())]
        sizes = [(each["n_rows"], each["n_features"] or profile["n_features"]) for each in versions]
        lean["forms"] = [[n if n < MAX_STORED_ROWS else None, p] for n, p in dict.fromkeys(sizes)]
    return lean


def repack_profiles(folder: Path, data: Path) -> None:
    """Write the profiles of a starter archive again, as `encode_profile` packs them.

    Response curves and scales are measured again on the data sets.
    """
    file: Any = read_plain(folder / (PROFILES + SUFFIX))
    profiles: dict[str, Plain] = {}
    for name, text in unpack_content(file["packed"])["profiles"].items():
        kind, _, data_set = name.partition("/")
        read = load_classification if kind == "classification" else load_regression
        measured = profile(*read(data_set, data, MAX_ROWS))
        known = json.loads(text) | {
            "response_curves": measured.response_curves,
            "scales": measured.scales,
        }
        profiles[name] = json.dumps(encode_profile(known))
    _write(folder, PROFILES, {"profiles": profiles})


# -- trials as columns ---------------------------------------------------------------------------


def trials_to_columns(trials: Sequence[Trial]) -> dict[str, dict[str, Plain]]:
    """Return the table of some trials. `_starter.columns_to_trials` reads it.

    >>> first = Trial({"C": 1.0, "kernel": "rbf"}, 0.5)
    >>> second = Trial({"C": 10.0, "kernel": "poly"}, 0.25)
    >>> trials_to_columns([first, second])
    {'params': {'C': '1.0 10.0', 'kernel': {'values': ['rbf', 'poly'], 'at': '0 1'}},
     'metrics': {},
     'facts': {'score': '0.5 0.25', 'std': 'nan nan', 'fit_time': 'nan nan'}}
    """
    names = dict.fromkeys(name for trial in trials for name in trial.params)
    metrics = dict.fromkeys(name for trial in trials for name in trial.metrics)
    return {
        "params": {
            name: _to_column([trial.params.get(name, _MISSING) for trial in trials])
            for name in names
        },
        "metrics": {
            name: _to_column(
                [trial.metrics.get(name, _MISSING) for trial in trials], N_DIGITS_OF_METRIC
            )
            for name in metrics
        },
        "facts": {
            field: _to_column([getattr(trial, field) for trial in trials], N_DIGITS_OF_FIELD[field])
            for field in TRIAL_FIELDS
        },
    }


def _to_column(values: list[Any], n_digits: int = N_DIGITS) -> Plain:
    present = [value for value in values if value is not _MISSING]
    if all(type(value) in (int, float) for value in present):
        return " ".join(_format_number(value, n_digits) for value in values)
    distinct = {identity(value): value for value in reversed(present)}
    positions = {key: str(n) for n, key in enumerate(reversed(distinct))}
    at = [NO_VALUE if value is _MISSING else positions[identity(value)] for value in values]
    return {"values": list(reversed(distinct.values())), "at": " ".join(at)}


def _format_number(number: Any, n_digits: int) -> str:
    if number is _MISSING:
        return NO_VALUE
    if type(number) is int:
        return str(number)
    text = f"{number:.{n_digits}g}"
    # 1.0 must not become 1. nan and inf contain an n.
    return text if any(mark in text for mark in ".en") else text + ".0"


if __name__ == "__main__":
    repack_profiles(starter_folder(), data_folder())
