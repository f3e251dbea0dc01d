"""A record for others: without what its owner wants to keep to himself."""

from __future__ import annotations

import hashlib
from typing import Any

from sklearn.metrics import get_scorer_names

from sktransfer._values import Plain

UNDATED = "1970-01-01T00:00:00+00:00"  # of a record whose owner keeps its date to himself
_PUBLIC = ("sklearn.", "numpy.", "scipy.", "builtins.")
_NO_ROWS: dict[str, Any] = {
    "fingerprint": [],
    "n_distinct": 0,
    "ordered_fingerprint": [],
    "n_ordered": 0,
    "enclosing": [],
}


def redact(
    record: dict[str, Any], *, samples: bool, fingerprints: bool, names: bool, times: bool
) -> dict[str, Any]:
    """A copy of a record of plain data, with only what is asked for; see `Archive.export`.

    >>> record = {"id": "a", "created": "2025-01-02", "trials": [], "profile": {"sample": {"X": [[1.0]]}}}
    >>> redact(record, samples=False, fingerprints=True, names=True, times=True)["profile"]
    {'sample': None}
    """
    record = dict(record)
    if not (fingerprints and names and times):
        record["resume"] = _continuation(record.get("resume"), times)
    profile = record["profile"]
    if profile is not None and not samples:
        profile = _without_samples(profile)
    if profile is not None and not fingerprints:
        # By name and by kind: whatever else a later version calls a fingerprint goes as well.
        profile = {key: [] if "fingerprint" in key else value for key, value in profile.items()}
        profile.update(_NO_ROWS)
    record["profile"] = profile
    if not times:
        record = _without_times(record)
    return record if names else _without_names(record)


def _without_samples(profile: dict[str, Any]) -> dict[str, Any]:
    profile = {**profile, "sample": None}
    if isinstance(profile.get("enclosing"), list):
        parts = profile["enclosing"]
        profile["enclosing"] = [_without_samples(part) for part in parts if isinstance(part, dict)]
    return profile


def _without_times(record: dict[str, Any]) -> dict[str, Any]:
    """Ids begin with the moment of their making; the new one is always the same for the same record."""
    trials = [{**trial, "fit_time": float("nan")} for trial in record["trials"]]
    return {**record, "id": _shared_id(record["id"]), "created": UNDATED, "trials": trials}


def _shared_id(id: str) -> str:
    return f"shared-{hashlib.blake2b(id.encode(), digest_size=12).hexdigest()}"


def _continuation(resume: Any, times: bool) -> Any:
    """Of what resuming needs, only which records a search goes on from: their trials must not count twice.

    The rest are digests of the data, and the times of every fold.
    """
    ids = resume.get("continues") if isinstance(resume, dict) else None
    ids = [id for id in ids if isinstance(id, str)] if isinstance(ids, list) else []
    return {"continues": ids if times else list(map(_shared_id, ids))} if ids else None


def _without_names(record: dict[str, Any]) -> dict[str, Any]:
    """Parameters go by their canonical names, not by those of pipeline steps; scorers by a number.

    The names of classes stay: they are what a past tuning is found by.
    """
    space = record["space"]
    own = {name: f"{canonical.partition('@')[0]}" for name, canonical in space["canonical"].items()}
    taken: dict[str, int] = {}
    for name, canonical in own.items():
        # Two SVCs in one pipeline: without their steps a number tells them apart.
        taken[canonical] = taken.get(canonical, 0) + 1
        own[name] = canonical if taken[canonical] == 1 else f"{canonical}@{taken[canonical]}"
    metrics = {
        name: name if name == "score" or name in get_scorer_names() else f"metric {number}"
        for number, name in enumerate(record["metrics"], start=1)
    }
    return {
        **record,
        "space": {
            **space,
            "branches": [_renamed(branch, own) for branch in space["branches"]],
            "canonical": {own[name]: own[name] for name in space["canonical"]},
            "fixed": {name.partition("@")[0]: _hidden(value) for name, value in space["fixed"].items()},
        },
        "metrics": [metrics[name] for name in record["metrics"]],
        "trials": [
            {
                **trial,
                "params": _renamed(trial["params"], own),
                "metrics": {metrics.get(name, "metric"): value for name, value in trial["metrics"].items()},
            }
            for trial in record["trials"]
        ],
    }


def _renamed(params: dict[str, Any], own: dict[str, str]) -> dict[str, Any]:
    return {own.get(name, name): _hidden(value) for name, value in params.items()}


def _hidden(value: Plain) -> Any:
    """A described value, without the names of somebody's own functions and objects."""
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if not isinstance(value, dict):
        return value
    name = value.get("object")
    if isinstance(name, str) and not name.startswith(_PUBLIC):
        # The same name gives the same stand-in: what was equal stays equal.
        return {"object": "object " + hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}
    return {key: _hidden(item) for key, item in value.items()}
