"""Anonymization: records for export, without what their owner wants to keep private."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sklearn.metrics import get_scorer_names
from sklearn.utils import all_estimators

from sktransfer.utils._hashing import hash_bytes
from sktransfer.utils._values import Plain

UNDATED = "1970-01-01T00:00:00+00:00"  # the date of a record exported without its date
_NO_STEP = ("passthrough", "drop")
_ESTIMATOR_PARAMETERS = {
    "estimator",
    "final_estimator",
    "regressor",
    "classifier",
    "transformer",
    "kernel",
}
"""Parameters of scikit-learn that hold an estimator. Any other name of one is that of a step."""
_PUBLIC_PREFIXES = ("sklearn.", "numpy.", "scipy.", "builtins.")
_OTHER_CLASSES = frozenset(
    f"{library}{kind}"
    for library in ("LGBM", "XGB", "CatBoost")
    for kind in ("Classifier", "Regressor")
)
_OBJECT_DIGEST = re.compile(r"#[0-9a-f]{12}$")
_METRIC_DIGEST = re.compile(r"(?<=[ =])[0-9a-f]{8}\b")


def redact(record: dict[str, Any], *, samples: bool, names: bool, times: bool) -> dict[str, Any]:
    """Return a copy of a record that contains only what the choices allow. See `Archive.export`.

    Whatever the choices, digests of the user's functions and objects become numbers, because those
    who guess a function could check their guess.

    >>> record = {"id": "a", "created": "2025-01-02", "trials": [], "metrics": [], "space": {}}
    >>> record["profile"] = {"sample": {"X": [[1.0]]}}
    >>> redact(record, samples=False, names=True, times=True)["profile"]
    {'sample': None}
    """
    record = {**record, "origin": "", "resume": keep_continuation(record.get("resume"))}
    if record["profile"] is not None and not samples:
        record["profile"] = {**record["profile"], "sample": None}
    if not times:
        record = _without_times(record)
    record = _without_digests(record)
    return record if names else _without_names(record)


def _without_digests(record: dict[str, Any]) -> dict[str, Any]:
    """Number the digests in the values and in the names of metrics, in the order they occur in."""
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"#{len(numbers) + 1}")

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("object"), str):
            return {**value, "object": _OBJECT_DIGEST.sub(number, value["object"])}
        content = value.get("content")
        if "class" in value and isinstance(content, str):
            value = {**value, "content": numbers.setdefault(content, f"#{len(numbers) + 1}")}
        return {key: walk(item) for key, item in value.items()}

    def rename(metrics: Iterable[str]) -> dict[str, str]:
        return {name: _METRIC_DIGEST.sub(number, name) for name in metrics}

    names = rename(record["metrics"])
    trials = [
        {
            **trial,
            "params": walk(trial["params"]),
            "metrics": {rename([k])[k]: value for k, value in trial["metrics"].items()},
        }
        for trial in record["trials"]
    ]
    metrics = [names[name] for name in record["metrics"]]
    return {**record, "space": walk(record["space"]), "metrics": metrics, "trials": trials}


def _without_times(record: dict[str, Any]) -> dict[str, Any]:
    """Remove times. Ids begin with a time, so the record gets another id, always the same one."""
    trials = [{**trial, "fit_time": float("nan")} for trial in record["trials"]]
    resume = record["resume"]
    if resume is not None:
        resume = {"continues": list(map(_shared_id, resume["continues"]))}
    return {
        **record,
        "id": _shared_id(record["id"]),
        "created": UNDATED,
        "trials": trials,
        "resume": resume,
    }


def _shared_id(id: str) -> str:
    return f"shared-{hash_bytes(id.encode(), 12).hex()}"


def keep_continuation(resume: Plain) -> dict[str, Plain] | None:
    """Keep only the ids of the records that a search continues: their trials must not count twice.

    The rest of what resuming needs are digests of the data, and the times of every fold.
    """
    ids = resume.get("continues") if isinstance(resume, dict) else None
    ids = [id for id in ids if isinstance(id, str)] if isinstance(ids, list) else []
    return {"continues": ids} if ids else None


def _without_names(record: dict[str, Any]) -> dict[str, Any]:
    """Replace the names of steps by classes, and those of scorers and of own classes by numbers.

    The names of public classes stay, because past tasks are selected by them.
    """
    space, anonymizer = record["space"], _Anonymizer()
    own = {
        name: anonymizer.canonical(canonical.partition("@")[0])
        for name, canonical in space["canonical"].items()
    }
    # A step that is itself searched has no canonical name.
    steps = [name for name in own if _is_searched_step(name, space)]
    for number, name in enumerate(steps, start=1):
        owner, dot, _ = own[name].rpartition(".")
        own[name] = f"{owner}{dot}step {number}"
    # If a pipeline has two SVCs, a number replaces the path of the one that does not predict.
    places = dict.fromkeys(
        each.partition("@")[2] for each in space["canonical"].values() if "@" in each
    )
    number_of = {place: number for number, place in enumerate(places, start=1)}
    for name, canonical in space["canonical"].items():
        if "@" in canonical:
            own[name] += f"@#{number_of[canonical.partition('@')[2]]}"  # no step can have this name
    metrics = {
        name: name if name == "score" or name in get_scorer_names() else f"metric {number}"
        for number, name in enumerate(record["metrics"], start=1)
    }
    profile = record["profile"]
    return {
        **record,
        "name": "",
        "profile": profile if profile is None else {**profile, "notes": []},
        "space": {
            **space,
            "branches": [
                {own.get(name, name): anonymizer.entry(entry) for name, entry in branch.items()}
                for branch in space["branches"]
            ],
            "canonical": {own[name]: own[name] for name in space["canonical"]},
            "predictors": [anonymizer.class_name(name) for name in space["predictors"]],
            "fixed": {
                anonymizer.canonical(name): anonymizer.value(value)
                for name, value in space["fixed"].items()
                # In these cases the name is, or contains, that of a step.
                if value not in _NO_STEP and "@" not in name
            },
        },
        "metrics": [metrics[name] for name in record["metrics"]],
        "trials": [
            {
                **trial,
                "params": {own.get(k, k): anonymizer.value(v) for k, v in trial["params"].items()},
                "metrics": {metrics.get(k, "metric"): v for k, v in trial["metrics"].items()},
            }
            for trial in record["trials"]
        ],
    }


def _is_searched_step(name: str, space: dict[str, Any]) -> bool:
    if name.rpartition("__")[2] in _ESTIMATOR_PARAMETERS:
        return False
    values = [value for b in space["branches"] for value in b.get(name, {}).get("values", ())]
    return any(
        value in _NO_STEP or (isinstance(value, dict) and "class" in value) for value in values
    )


class _Anonymizer:
    """Replaces the names of the user's classes, functions, objects, steps and labels in one record.

    Texts are replaced unless they are options of scikit-learn: they may be paths, words or names.

    Names are numbered in the order in which they occur. Equal names stay equal, and a number,
    unlike a digest, cannot be looked up in a list of words.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def _replacement(self, kind: str, name: str) -> str:
        same = sum(k == kind for k, _ in self._numbers)
        return f"{kind} {self._numbers.setdefault((kind, name), same + 1)}"

    def _public(self, name: str, public: frozenset[str], kind: str) -> str:
        return name if name in public else self._replacement(kind, name)

    def class_name(self, name: str) -> str:
        """Replace the name of a class, unless it is one of scikit-learn or a well-known library."""
        return self._public(name, _public_classes(), "class")

    def canonical(self, name: str) -> str:
        """Replace the classes in a canonical name such as ``LogisticRegression|SVC.C``."""
        classes, dot, parameter = name.rpartition(".")
        owners = "|".join(map(self.class_name, classes.split("|"))) if dot else ""
        return f"{owners}{dot}{parameter}"

    def entry(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Anonymize a list of values of the space. A distribution contains no names."""
        return {**entry, "values": self.value(entry["values"])} if "values" in entry else entry

    def value(self, value: Plain) -> Any:
        if isinstance(value, list):
            return [
                [f"step {number}", *map(self.value, item[1:])]
                if _is_step(item)
                else self.value(item)
                for number, item in enumerate(value, start=1)
            ]
        if isinstance(value, str):
            return value if value in _NO_STEP else self._public(value, _public_texts(), "text")
        if not isinstance(value, dict):
            return value
        name = value.get("object")
        if isinstance(name, str) and not name.startswith(_PUBLIC_PREFIXES):
            return {"object": self._replacement("object", name)}
        if name is not None:
            return value
        if "class" in value and isinstance(value.get("params"), dict):
            return {
                **value,
                "class": self.class_name(value["class"]),
                "params": {key: self.value(item) for key, item in value["params"].items()},
            }
        return {self._label(key): self.value(item) for key, item in value.items()}

    def _label(self, key: str) -> str:
        """Replace a key of a dict, unless it is a number."""
        return key if key.lstrip("-").isdigit() else self._replacement("key", key)


@lru_cache(maxsize=1)
def _public_classes() -> frozenset[str]:
    """Return the names of classes that anyone may have used."""
    return _OTHER_CLASSES | {name for name, _ in all_estimators()}


@lru_cache(maxsize=1)
def _public_texts() -> frozenset[str]:
    """Return the texts that scikit-learn's estimators accept as options."""
    constraints = [getattr(cls, "_parameter_constraints", {}) for _, cls in all_estimators()]
    rules = [rule for each in constraints for one in each.values() for rule in _as_list(one)]
    options = [option for rule in rules for option in getattr(rule, "options", ())]
    return frozenset(option for option in options if isinstance(option, str))


def _as_list(constraint: Any) -> list:
    return constraint if isinstance(constraint, list) else []


def _is_step(value: Plain) -> bool:
    """Whether a value is a name and an estimator, as in a pipeline."""
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[0], str):
        return False
    return value[1] in _NO_STEP or (isinstance(value[1], dict) and "class" in value[1])
