"""Attacks on an archive by the files of a stranger, and what they achieve.

A stranger sends records, or puts them into the folder of the archive: forged scores, files that are
small on disk and expensive to read, profiles whose fields are of another kind, names that an export
should have left out. Each attack is a function that returns how often it was tried and how often it
succeeded. `benchmarks.faults` runs them and writes the table.
"""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Archive, Task, TransferSearchCV, profile
from sktransfer.archive._plain_pickle import dumps_plain
from sktransfer.archive._record import task_to_record
from sktransfer.utils._array_text import encode_array

MAX_SECONDS, MAX_MEGABYTES = 2.0, 100.0
SECRET = "zwiebelkuchen"  # a word that no program uses by itself
DEPTHS = {"max_depth": [1, 2, 3, 4, 5, 6]}


def make_data(seed: int = 0, n: int = 120, p: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def make_search(archive: Archive, **params: Any) -> TransferSearchCV:
    tree = DecisionTreeClassifier(random_state=0)
    return TransferSearchCV(tree, DEPTHS, cv=3, archive=archive, random_state=0, **params)


def write_zip(file: Path, tasks: list[Task]) -> Path:
    """Write records to a file as `Archive.export` does, but leave nothing out."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
        for task in tasks:
            content.writestr(f"tasks/{task.id}.joblib", dumps_plain(task_to_record(task)))
    return file


# -- scores --------------------------------------------------------------------------------------


def forge_scores(folder: Path) -> tuple[int, int]:
    """Return how often a forged result of the very same search was taken for one's own.

    The stranger knows the data and the search, runs it, and writes 1.0 for every score.
    """
    X, y = make_data()
    stranger = Archive(folder / "stranger", starter=False)
    make_search(stranger).fit(X, y)
    forged = [_with_perfect_scores(task) for task in stranger]
    ways = {
        "import": lambda own: own.import_(write_zip(folder / "forged.zip", forged)),
        "merge": lambda own: own.merge(_write_records(folder / "forged", forged)),
        "copy": lambda own: _write_records(Path(own.path), forged),
        "append": lambda own: [own.append(task) for task in forged],
    }
    n_fooled = 0
    for name, bring in ways.items():
        own = Archive(folder / f"own-{name}", starter=False)
        make_search(own, n_iter=2).fit(*make_data(1))  # it has a key of its own
        bring(own)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = make_search(own, resume=True).fit(X, y)
        n_fooled += search.best_score_ > 0.999
    return len(ways), int(n_fooled)


def _with_perfect_scores(task: Task) -> Task:
    trials = tuple(replace(trial, score=1.0) for trial in task.trials)
    resume = copy.deepcopy(task.resume) or {}
    for rows in resume["folds"]:
        for row in rows:
            row[4] = 1.0  # the test score of a fold
    return replace(task, trials=trials, resume=resume, origin="")


def _write_records(folder: Path, tasks: list[Task]) -> Path:
    (folder / "tasks").mkdir(parents=True, exist_ok=True)
    for task in tasks:
        (folder / "tasks" / f"{task.id}.joblib").write_bytes(dumps_plain(task_to_record(task)))
    return folder


def replace_unfinished(folder: Path) -> tuple[int, int]:
    """Return how often a stranger's record took the place of one's own that begins like it."""
    n_replaced, n = 0, 0
    for way in ("merge", "import"):
        own = Archive(folder / way)
        trials = [({"max_depth": 1}, 0.5), ({"max_depth": 2}, 0.6)]
        task = Task.from_trials(DEPTHS, trials, id="mine")
        own.append(replace(task, complete=False))
        longer = Task.from_trials(DEPTHS, [*trials, ({"max_depth": 3}, 1.0)], id="mine")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if way == "merge":
                own.merge(_write_records(folder / "longer", [longer]))
            else:
                own.import_(write_zip(folder / "longer.zip", [longer]))
        n, n_replaced = n + 1, n_replaced + (len(own["mine"].trials) != 2)
    return n, n_replaced


# -- names ---------------------------------------------------------------------------------------


class ZwiebelkuchenClassifier(ClassifierMixin, BaseEstimator):
    """An estimator of the user's own, whose parameters are texts."""

    def __init__(self, mode: str = SECRET, path: str = f"/home/{SECRET}", weights=None, depth=1):
        self.mode, self.path, self.weights, self.depth = mode, path, weights, depth

    def fit(self, X, y):
        self.tree_ = DecisionTreeClassifier(max_depth=self.depth).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        return self.tree_.predict(X)


def zwiebelkuchen(X):
    return X


def zwiebelkuchen_score(y, predicted):
    return accuracy_score(y, predicted)


def find_names(folder: Path) -> tuple[int, int]:
    """Return how many searches use a private word, and how many of them still show it."""
    X, y = make_data()
    labels = np.array([f"{SECRET} {label}" for label in y])
    own = ZwiebelkuchenClassifier
    tree = DecisionTreeClassifier(random_state=0)
    pipe = Pipeline([(SECRET, FunctionTransformer()), ("tree", tree)])
    nested = Pipeline([("a", Pipeline([(SECRET, FunctionTransformer())])), ("tree", tree)])
    weights = [{f"{SECRET} 0": 1, f"{SECRET} 1": 2}, None]
    searches: list[tuple[Any, Any, dict[str, Any], Any]] = [
        (own(), {"depth": [1, 2]}, {}, y),
        (own(), {"mode": [SECRET, SECRET + "2"]}, {}, y),
        (own(), {"path": [f"/{SECRET}/a", f"/{SECRET}/b"]}, {}, y),
        (own(), {"weights": [{SECRET: 1}, {SECRET: 2}]}, {}, y),
        (own(), {"weights": [[SECRET], [SECRET, "b"]]}, {}, y),
        (own(), {"weights": [zwiebelkuchen, None]}, {}, y),
        (own(mode=SECRET + "3"), {"depth": [1, 2]}, {}, y),
        (own(path=f"C:\\{SECRET}"), {"depth": [1, 2]}, {}, y),
        (own(weights=[SECRET]), {"depth": [1, 2]}, {}, y),
        (pipe, {"tree__max_depth": [1, 2]}, {}, y),
        (pipe, {f"{SECRET}__func": [None, zwiebelkuchen]}, {}, y),
        (pipe, {SECRET: ["passthrough", FunctionTransformer()]}, {}, y),
        (pipe, {"tree": [DecisionTreeClassifier(), own()]}, {}, y),
        (pipe, {f"{SECRET}__validate": [True, False]}, {}, y),
        (nested, {"tree__max_depth": [1, 2]}, {}, y),
        (nested, {f"a__{SECRET}": ["passthrough", FunctionTransformer()]}, {}, y),
        (Pipeline([(SECRET, own())]), {f"{SECRET}__depth": [1, 2]}, {}, y),
        (tree, {"max_depth": [1, 2]}, {"name": SECRET}, y),
        (tree, {"max_depth": [1, 2]}, {"scoring": make_scorer(zwiebelkuchen_score)}, y),
        (
            tree,
            {"max_depth": [1, 2]},
            {"scoring": {SECRET: "accuracy", "b": "f1"}, "refit": SECRET},
            y,
        ),
        (
            tree,
            {"max_depth": [1, 2]},
            {"scoring": {SECRET: make_scorer(zwiebelkuchen_score)}, "refit": SECRET},
            y,
        ),
        (DecisionTreeClassifier(class_weight=weights[0]), {"max_depth": [1, 2]}, {}, labels),
        (tree, {"class_weight": weights}, {}, labels),
        (tree, [{"class_weight": weights}, {"max_depth": [1, 2]}], {}, labels),
        (pipe, [{SECRET: ["passthrough"]}, {"tree__max_depth": [1, 2]}], {}, y),
    ]
    n_shown = 0
    for number, (estimator, space, params, target) in enumerate(searches):
        archive = Archive(folder / str(number), starter=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TransferSearchCV(estimator, space, cv=2, archive=archive, **params).fit(X, target)
        file = folder / f"{number}.zip"
        archive.export(file, names=False)
        with zipfile.ZipFile(file) as content:
            data = b"".join(content.read(name) for name in content.namelist())
        n_shown += SECRET.encode() in data.lower()
    return len(searches), n_shown


# -- files that cost -----------------------------------------------------------------------------


def costly_files() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Yield names and functions that write one costly file to the folder of an archive."""
    record = task_to_record(Task.from_trials(DEPTHS, [({"max_depth": 1}, 0.5)], id="bad"))
    sizes = {"kind": "x", "n_rows": 1}
    long, packed = "a" * 10**6, "packed:float:" + encode_array(np.zeros(90_000))

    def write_record(**fields: Any) -> Callable[[Path], None]:
        return lambda folder: _write(folder, "tasks/bad.joblib", dumps_plain({**record, **fields}))

    yield "one text, used a thousand times", write_record(name=[long] * 1000)
    yield (
        "one text, used a thousand times in the space",
        write_record(
            space={
                "branches": [{"C": {"values": [long] * 1000}}],
                "canonical": {"C": "C"},
                "fixed": {},
                "predictors": [],
            }
        ),
    )
    yield (
        "packed numbers, used a thousand times",
        write_record(profile=sizes | {"x": [packed] * 1000}),
    )
    yield (
        "many packed numbers",
        write_record(profile=sizes | {"x": [packed[:-1] + str(n) for n in range(13)]}),
    )
    yield (
        "a journal of newlines",
        lambda folder: _write(folder, "running/bad.jsonl", b"\n" * 24 * 2**20),
    )
    yield (
        "a journal of short lines",
        lambda folder: _write(folder, "running/bad.jsonl", b"{}\n" * 8 * 2**20),
    )
    yield (
        "a thousand enclosing tables",
        write_record(profile=_nested_profile(1000, 16)),
    )
    yield "eight enclosing tables of many rows", write_record(profile=_nested_profile(8, 16384))
    modulus = 2**61 - 1
    dicts = [{modulus * k + n: 0 for k in range(1, 1000)} for n in range(400)]
    yield (
        "integers of equal hash",
        lambda folder: _write(folder, "tasks/bad.joblib", pickle.dumps(dicts, protocol=4)),
    )
    trial = record["trials"][0]
    yield (
        "two hundred thousand trials",
        write_record(trials=[copy.deepcopy(trial) for _ in range(200_000)]),
    )
    yield "nested lists", write_record(name=_nest(100_000))
    yield (
        "an index of one text",
        lambda folder: _write(
            folder, "index/entries.joblib", dumps_plain({"index": 1, "parts": [long] * 1000})
        ),
    )
    yield "a model of one-letter texts", _write_model


def _nested_profile(n: int, n_rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    data = profile(rng.normal(size=(n_rows, 1))).to_dict()
    inner = {name: data[name] for name in ("kind", "n_rows", "n_distinct", "fingerprint")}
    found = [
        {**inner, "fingerprint": sorted(rng.integers(0, 2**63, n_rows).tolist())} for _ in range(n)
    ]
    return {**data, "enclosing": found}


def _nest(depth: int) -> list:
    found: list = []
    for _ in range(depth):
        found = [found]
    return found


def _write_model(folder: Path) -> None:
    archive = Archive(folder)
    make_search(archive, surrogate="task-prior", n_iter=2).fit(*make_data(2))
    archive.model_cache.put({}, ["a"], {"texts": np.array(["ж"] * 5_000_000)})


def _write(folder: Path, name: str, data: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def read_costly(path: str) -> None:
    """Print seconds and megabytes of reading an archive twice; runs in a new process."""
    archive = Archive(path, starter=False)
    target = profile(*make_data(3))
    used, start = megabytes(), time.process_time()
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            archive.select(None, target)
            archive.model_cache.get({}, ["a"])
            seconds.append(time.process_time() - start)
            start = time.process_time()
    print(json.dumps([*seconds, megabytes() - used]))


def megabytes() -> float:
    """Return the peak memory of this process. `resource` would count that of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure_costs(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Return seconds of a first and a second reading, and megabytes, of each costly file."""
    found = {}
    for number, (name, write) in enumerate(costly_files()):
        path = folder / str(number)
        try:
            write(path)
        except (RecursionError, ValueError):
            continue
        command = [sys.executable, "-m", "benchmarks.attacks", str(path)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[name] = tuple(json.loads(output))
    return found


# -- profiles of the wrong kind ------------------------------------------------------------------

WRONG = ("text", -1, 1.5, True, None, [], ["text"], [[1.0]], {}, {"a": "text"}, {"a": []}, 2**63)


def mutate_profiles(folder: Path) -> tuple[int, int]:
    """Return how many changes of a profile were tried, and how many made a search fail or warn.

    A record that is refused with the archive's own warning counts as right.
    """
    archive = Archive(folder / "past", starter=False)
    make_search(archive).fit(*make_data(4))
    [task] = archive
    assert task.profile is not None
    n, n_failed = 0, 0
    for path, value in _mutations(task.profile):
        changed = copy.deepcopy(task.profile)
        _set(changed, path, value)
        record = {**task_to_record(replace(task, id="changed")), "profile": changed}
        file = Path(archive.path) / "tasks" / "changed.joblib"
        file.write_bytes(dumps_plain(record))
        n += 1
        n_failed += not _learns(archive)
    return n, n_failed


def _mutations(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    if path:
        yield from ((path, wrong) for wrong in WRONG)
    is_list = isinstance(value, list)
    items = (
        list(enumerate(value))
        if is_list
        else list(value.items())
        if value and isinstance(value, dict)
        else []
    )
    for key, item in items[:2] if path else items:  # below the fields, two stand for all
        yield from _mutations(item, (*path, key))


def _set(value: Any, path: tuple, new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


def _learns(archive: Archive) -> bool:
    from sktransfer.exceptions import ArchiveWarning

    X, y = make_data(5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = archive.select(None, profile(X, y)).loaded()
            if any(task.id == "changed" for task in found.used):
                make_search(archive, n_iter=2, refit=False).fit(X, y)
        except Exception:
            return False
    return all(issubclass(each.category, ArchiveWarning) for each in caught)


ATTACKS: dict[str, Callable[[Path], tuple[int, int]]] = {
    "forged results of the same search, then `resume=True`": forge_scores,
    "records that continue an unfinished one of the archive": replace_unfinished,
    "private words in `export(names=False)`": find_names,
    "fields of a profile of another kind, then a search": mutate_profiles,
}


if __name__ == "__main__":
    read_costly(sys.argv[1])
