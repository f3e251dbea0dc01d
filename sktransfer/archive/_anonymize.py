"""A record for others: without what its owner wants to keep to himself."""

from __future__ import annotations

import hashlib
from typing import Any

from sklearn.metrics import get_scorer_names

from sktransfer.utils._values import Plain

UNDATED = "1970-01-01T00:00:00+00:00"  # of a record whose owner keeps its date to himself
_NO_STEP = ("passthrough", "drop")
_PARAMETERS = {"estimator", "final_estimator", "regressor", "classifier", "transformer", "kernel"}
"""Parameters of scikit-learn that take an estimator; what else does is a step."""
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
    own = {name: canonical.partition("@")[0] for name, canonical in space["canonical"].items()}
    # A step that is searched itself has no class to go by.
    steps = [name for name in own if _is_searched_step(name, space)]
    for number, name in enumerate(steps, start=1):
        owner, dot, _ = own[name].rpartition(".")
        own[name] = f"{owner}{dot}step {number}"
    # Two SVCs in one pipeline: without their paths a number tells them from what predicts.
    places = dict.fromkeys(each.partition("@")[2] for each in space["canonical"].values() if "@" in each)
    number_of = {place: number for number, place in enumerate(places, start=1)}
    for name, canonical in space["canonical"].items():
        if "@" in canonical:
            own[name] += f"@#{number_of[canonical.partition('@')[2]]}"  # which no step can be called
    metrics = {
        name: name if name == "score" or name in get_scorer_names() else f"metric {number}"
        for number, name in enumerate(record["metrics"], start=1)
    }
    hide = _Hider()
    return {
        **record,
        "space": {
            **space,
            "branches": [
                {own.get(name, name): hide.entry(entry) for name, entry in branch.items()}
                for branch in space["branches"]
            ],
            "canonical": {own[name]: own[name] for name in space["canonical"]},
            "fixed": {
                name: hide.value(value)
                for name, value in space["fixed"].items()
                # Then the name is, or has in it, that of a step.
                if value not in _NO_STEP and "@" not in name
            },
        },
        "metrics": [metrics[name] for name in record["metrics"]],
        "trials": [
            {
                **trial,
                "params": {own.get(name, name): hide.value(v) for name, v in trial["params"].items()},
                "metrics": {metrics.get(name, "metric"): value for name, value in trial["metrics"].items()},
            }
            for trial in record["trials"]
        ],
    }


def _is_searched_step(name: str, space: dict[str, Any]) -> bool:
    if name.rpartition("__")[2] in _PARAMETERS:
        return False
    values = [value for b in space["branches"] for value in b.get(name, {}).get("values", ())]
    return any(value in _NO_STEP or (isinstance(value, dict) and "class" in value) for value in values)


class _Hider:
    """Values of one record, without the names of somebody's own functions, objects, steps and labels.

    Names are numbered in the order they are met: what was equal in a record stays equal, and a number, other
    than a digest, cannot be looked up in a list of words.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def _stand_in(self, kind: str, name: str) -> str:
        same = sum(k == kind for k, _ in self._numbers)
        return f"{kind} {self._numbers.setdefault((kind, name), same + 1)}"

    def entry(self, entry: dict[str, Any]) -> dict[str, Any]:
        """A list of values of the space; a distribution has nothing to hide."""
        return {**entry, "values": self.value(entry["values"])} if "values" in entry else entry

    def value(self, value: Plain) -> Any:
        if isinstance(value, list):
            return [
                [f"step {number}", *map(self.value, item[1:])] if _is_step(item) else self.value(item)
                for number, item in enumerate(value, start=1)
            ]
        if not isinstance(value, dict):
            return value
        name = value.get("object")
        if isinstance(name, str) and not name.startswith(_PUBLIC):
            return {"object": self._stand_in("object", name)}
        if name is not None:
            return value
        if "class" in value and isinstance(value.get("params"), dict):
            return {**value, "params": {key: self.value(item) for key, item in value["params"].items()}}
        return {self._label(key): self.value(item) for key, item in value.items()}

    def _label(self, key: str) -> str:
        """A key of a dict: a number says nothing of anybody."""
        return key if key.lstrip("-").isdigit() else self._stand_in("key", key)


def _is_step(value: Any) -> bool:
    """Whether it is a name and an estimator, as pipelines have them."""
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[0], str):
        return False
    return value[1] in _NO_STEP or (isinstance(value[1], dict) and "class" in value[1])
