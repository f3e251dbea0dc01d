"""Readers of an archive's files, and the damaged or forged files that they are given.

An input is a sequence of bytes, which are read as choices: a kind of file, whether it is damaged or
forged, and what is changed in it. Bytes of a *damaged* file are changed at random, so a reader must
refuse it or find what was written. A *forged* file has other contents, with valid checksums. A
reader may accept it, but then all of it must be of the right kind. See `benchmarks.fuzz`.
"""

from __future__ import annotations

import copy
import io
import json
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from sktransfer import Space, Task, profile
from sktransfer.archive import ArchiveKey, make_outline, select_past_tasks
from sktransfer.archive import _index as index
from sktransfer.archive import _journal as journal
from sktransfer.archive import _model_cache as models
from sktransfer.archive._encoding import encode_task
from sktransfer.archive._exchange import import_records
from sktransfer.archive._lazy_task import LazyTask
from sktransfer.archive._plain_pickle import dumps_plain, loads_plain
from sktransfer.archive._storage import Storage, parse_record
from sktransfer.archive._summary import summarize_task
from sktransfer.exceptions import RecordError

MAX_SECONDS = 2.0
MAX_CHANGES = 6
KEY = ArchiveKey(bytes(32))
SPACE = Space.parse({"C": [0.1, 1.0, 10.0], "kernel": ["rbf", "linear"]})
ODD_VALUES: list[Any] = [None, True, False, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 10**30]
ODD_VALUES += [0.5, -0.0, 1e308, float("nan"), float("inf"), "", "x", "a" * 300, "../b", "a\nb"]
ODD_VALUES += ["\0", "SVC.C", "ok", "key", [], {}, [[]], [None], {"a": {}}, {"": 0}, [0] * 50]
ODD_SHAPES = [(), (0,), (10**9,), (2**40, 0), (3, 3), (2, 2, 2), (-1,)]
ODD_DTYPES = ["<f8", "<f4", "|O", "<U0", "<U4", "|S3", ">f8", "<i8", "|b1", "<M8[s]", "V8"]
RAN_CODE = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class")


class Choices:
    """Numbers read from bytes; zeros when they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        width = 1 if n <= 256 else 3
        part = self._data[self._place : self._place + width]
        self._place += width
        return int.from_bytes(part, "little") % n


def damage(data: bytes, choices: Choices) -> bytes:
    """Change bytes of a file."""
    for _ in range(1 + choices.below(MAX_CHANGES)):
        kind, place = choices.below(6), choices.below(max(1, len(data)))
        length, byte = 1 + choices.below(64), choices.below(256)
        part = data[place : place + length]
        new = [bytes([byte]), b"", part * 2, bytes([byte]) * length, part[::-1]]
        if kind == 5:  # cut off
            data = data[:place]
        elif kind == 0:  # one byte
            data = data[:place] + new[0] + data[place + 1 :]
        else:
            data = data[:place] + new[kind] + data[place + length :]
    return data


def change_plain(plain: Any, choices: Choices) -> Any:
    """Replace, remove and move values of plain data."""
    plain = copy.deepcopy(plain)
    for _ in range(1 + choices.below(MAX_CHANGES)):
        containers = [plain]
        for each in containers:
            items = each.values() if isinstance(each, dict) else each
            containers += [item for item in items if isinstance(item, dict | list)]
        owner = containers[choices.below(len(containers))]
        places = list(owner) if isinstance(owner, dict) else list(range(len(owner)))
        if not places:
            continue
        place, kind = places[choices.below(len(places))], choices.below(5)
        if kind == 0:
            del owner[place]
        elif kind == 1 and isinstance(owner, dict):
            owner["x" * choices.below(3)] = owner.pop(place)
        elif kind == 2:
            owner[place] = copy.deepcopy(containers[choices.below(len(containers))])
        else:
            # A copy, because a list that contains itself would never end.
            owner[place] = copy.deepcopy(ODD_VALUES[choices.below(len(ODD_VALUES))])
    return plain


# -- the readers -----------------------------------------------------------------------------------


class MemoryStorage(Storage):
    """An archive that holds nothing, and keeps in memory what is added to it."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"))
        self.written: dict[str, bytes] = {}

    def read_key_file(self) -> bytes:
        return KEY.secret.hex().encode()

    def find(self, id: str) -> None:
        return None

    def write(self, id: str, data: bytes, new: bool = False) -> None:
        self.written[id] = data


def make_tasks() -> list[Task]:
    X = np.random.default_rng(0).normal(size=(120, 3))
    trials = [({"C": 10.0 ** (k % 3 - 1), "kernel": "rbf"}, k / 10) for k in range(5)]
    data = [None, profile(X, (X[:, 0] > 0).astype(int), enclosing=[X * 2]), profile(X * 3)]
    return [Task.from_trials(SPACE, trials, each, id=f"t{n}") for n, each in enumerate(data)]


class Readers:
    """Makes files, reads them, and judges what was read.

    Attributes
    ----------
    counts : Counter
        Inputs by kind, those that were accepted, and findings.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.counts, self.slowest = folder, Counter[str](), 0.0
        self.tasks = make_tasks()
        self.by_id = {task.id: task for task in self.tasks}
        self.data = profile(np.random.default_rng(1).normal(size=(150, 3)))
        self.records = [encode_task(task, lambda: KEY)[0] for task in self.tasks]
        for name in ("running", "index", "models"):
            (folder / name).mkdir(parents=True)
        self.journal = self._make_journal()
        self.index = self._make_index()
        self.arrays = {"weights": np.arange(6.0).reshape(2, 3), "names": np.array(["ab", "c"])}
        self.model = models._dump(frozenset(["t1", "t2"]), self.arrays)
        self.zip = self._make_zip([(f"tasks/t{n}.joblib", r) for n, r in enumerate(self.records)])
        self.kinds: list[tuple[str, Callable[[Choices, bool], None]]] = [
            ("record", self.read_record),
            ("journal", self.read_journal),
            ("index", self.read_index),
            ("model", self.read_model),
            ("ZIP", self.read_zip),
        ]
        sys.addaudithook(self._note_code)

    def _note_code(self, event: str, _: tuple) -> None:
        if event in RAN_CODE:
            self.counts["code run"] += 1

    def run(self, data: bytes) -> None:
        """Read one input, and count what was found."""
        choices = Choices(data)
        name, read = self.kinds[choices.below(len(self.kinds))]
        is_forged, start = choices.below(2) == 1, time.process_time()
        self.counts[name] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(choices, is_forged)
        except (RecordError, FileNotFoundError):  # refused; the latter is an empty journal
            self.counts["refused"] += 1
        except WrongScoreError as error:
            self._report("wrong", name, data, error)
        except Exception as error:
            self._report("other errors", name, data, error)
        seconds = time.process_time() - start
        self.slowest = max(self.slowest, seconds)
        if seconds > MAX_SECONDS:
            self._report("slow", name, data, seconds)

    def _report(self, finding: str, name: str, data: bytes, reason: object) -> None:
        self.counts[finding] += 1
        if self.counts[finding] < 20:
            print(f"{finding}, {name}: {reason!r} {data.hex()}", file=sys.stderr, flush=True)

    def read_record(self, choices: Choices, is_forged: bool) -> None:
        n = choices.below(len(self.records))
        content = self._change_record(n, choices) if is_forged else damage(self.records[n], choices)
        task = parse_record(content, Path(f"t{n}.joblib"))
        self._check(task, is_forged)

    def _change_record(self, n: int, choices: Choices) -> bytes:
        return dumps_plain(change_plain(loads_plain(self.records[n]), choices))

    def _check(self, task: Task, is_forged: bool) -> None:
        """Compare a task with what was written, or use it as a search would."""
        if not is_forged:
            if task != self.by_id.get(task.id, task) and not _are_equal(task, self.by_id[task.id]):
                raise WrongScoreError(task.id)
            return
        summarize_task(task)
        make_outline(task.profile)
        select_past_tasks([task], SPACE, self.data, "exclude", KEY)

    def _make_journal(self) -> bytes:
        file = self.folder / "running" / "t1.jsonl"
        written = journal.Journal(file, self.tasks[1])
        for trial in self.tasks[1].trials:
            written.add(trial, folds=[[0.5, 1.0, None, "", 0.25]])
        written.sync()
        return file.read_bytes()

    def read_journal(self, choices: Choices, is_forged: bool) -> None:
        content = self._change_journal(choices) if is_forged else damage(self.journal, choices)
        file = self.folder / "running" / "t1.jsonl"
        file.write_bytes(content)
        task, _ = journal.read_journal(file)
        known = [(trial.params, trial.score) for trial in self.tasks[1].trials]
        if not is_forged and not all((t.params, t.score) in known for t in task.trials):
            raise WrongScoreError(task.id)
        if is_forged:
            self._check(task, is_forged)

    def _change_journal(self, choices: Choices) -> bytes:
        lines = [line for line in self.journal.split(b"\n") if line]
        payloads = [json.loads(line.partition(b" ")[2]) for line in lines]
        return b"".join(map(journal._make_line, map(_as_dict, change_plain(payloads, choices))))

    def _make_index(self) -> dict[str, Any]:
        entries = {t.id: index._make_entry(t, 10, 10, {}) for t in self.tasks}
        return index._to_plain(entries)

    def read_index(self, choices: Choices, is_forged: bool) -> None:
        content = dumps_plain(self.index)
        if is_forged:
            content = dumps_plain(change_plain(self.index, choices))
        else:
            content = damage(content, choices)
        (self.folder / "index" / "entries.joblib").write_bytes(content)
        found = index._read_index(self.folder)[1]
        if not is_forged and {id: entry.n_ok for id, entry in found.items()} not in (
            {},
            {task.id: 5 for task in self.tasks},
        ):
            raise WrongScoreError("index")
        for id, entry in found.items():
            task = LazyTask.from_entry(entry, id, self.folder)
            _ = summarize_task(task), task.continues, task.succeeded, task.label
            task.shares_no_row(np.arange(5, dtype=np.uint32), KEY.id)

    def read_model(self, choices: Choices, is_forged: bool) -> None:
        content = self._change_model(choices) if is_forged else damage(self.model, choices)
        file = self.folder / "models" / "model.npz"
        file.write_bytes(content)
        models._tasks_of(file)
        found = models._read(file, models._MODEL)
        models.find_model_problem(file)
        if is_forged or found is None:
            return
        names = self.arrays.keys()
        if found.keys() != names or any((found[n] != self.arrays[n]).any() for n in names):
            raise WrongScoreError("model")

    def _change_model(self, choices: Choices) -> bytes:
        names = ["store/format", "store/tasks", "model/weights", "model/names", "model/../x", "y"]
        members = []
        for _ in range(choices.below(6)):
            stream = io.BytesIO()
            shape = ODD_SHAPES[choices.below(len(ODD_SHAPES))]
            dtype = ODD_DTYPES[choices.below(len(ODD_DTYPES))]
            header = {"descr": dtype, "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(stream, header)
            stream.write(bytes([choices.below(256)]) * choices.below(100))
            content = stream.getvalue()
            content = damage(content, choices) if choices.below(2) else content
            members.append((names[choices.below(len(names))] + ".npy", content))
        return self._make_zip(members, choices)

    def _make_zip(self, members: list[tuple[str, bytes]], choices: Choices | None = None) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as content, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that occur twice
            for name, data in members:
                packing = zipfile.ZIP_STORED
                if choices is not None and choices.below(4) == 3:
                    packing = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2][choices.below(2)]
                content.writestr(name, data, packing)
        return stream.getvalue()

    def read_zip(self, choices: Choices, is_forged: bool) -> None:
        content = self._change_zip(choices) if is_forged else damage(self.zip, choices)
        file = self.folder / "a.zip"
        file.write_bytes(content)
        storage = MemoryStorage()
        import_records(storage, file, None)
        for id, data in storage.written.items():
            self._check(parse_record(data, Path(f"{id}.joblib")), is_forged)

    def _change_zip(self, choices: Choices) -> bytes:
        members = []
        for _ in range(choices.below(4)):
            n = choices.below(len(self.records))
            ways = [self.records[n], self._change_record(n, choices)]
            data = [*ways, damage(ways[choices.below(2)], choices)][choices.below(3)]
            names = [f"tasks/t{n}.joblib", f"t{n}.joblib", "tasks/../t.joblib", "seal", "tasks/"]
            members.append((names[max(0, choices.below(20) - 15)], data))
        return self._make_zip(members, choices)


class WrongScoreError(Exception):
    """A damaged file was read, with other contents than were written."""


def _are_equal(one: Task, other: Task) -> bool:
    return one.trials == other.trials and one.space == other.space


def _as_dict(payload: Any) -> dict[str, Any]:
    return payload if isinstance(payload, dict) else {"n": payload}
