"""Damaged and disguised files, costly ZIP files, and many processes at once.

Each trial is a function that returns how often it was tried and how often something went wrong.
`benchmarks.faults` runs them and writes the tables.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import platform
import shutil
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.attacks import DEPTHS, make_data, megabytes
from benchmarks.mishaps import make_task, run_at_once
from sktransfer import Archive, Task, profile
from sktransfer.archive._plain_pickle import dumps_plain
from sktransfer.archive._record import task_to_record
from sktransfer.archive._storage import parse_record
from sktransfer.exceptions import RecordError
from sktransfer.task import Trial

N_MUTATIONS = 505_000

# -- damaged and disguised files -----------------------------------------------------------------


def mutate_bytes(folder: Path) -> tuple[int, int]:
    """Records with changed bytes: those that are read, with other trials."""
    trials = [({"max_depth": k % 6 + 1}, k / 50) for k in range(25)]
    task = Task.from_trials(DEPTHS, trials, profile(*make_data()), id="one")
    archive = Archive(folder)
    archive.append(task)
    file = Path(folder) / "tasks" / "one.joblib"
    data, rng, wrong = file.read_bytes(), np.random.default_rng(0), 0
    known = parse_record(data, file)
    for kind, place, other in zip(
        rng.integers(0, 5, N_MUTATIONS).tolist(),
        rng.integers(0, len(data), N_MUTATIONS).tolist(),
        rng.integers(0, len(data), N_MUTATIONS).tolist(),
        strict=True,
    ):
        changed = _mutate(data, kind, place, other)
        with contextlib.suppress(RecordError):
            wrong += parse_record(changed, file).trials != known.trials
    return N_MUTATIONS, wrong


def _mutate(data: bytes, kind: int, place: int, other: int) -> bytes:
    if kind == 0:  # one bit
        return data[:place] + bytes([data[place] ^ 1 << other % 8]) + data[place + 1 :]
    if kind == 1:  # one byte
        return data[:place] + bytes([other % 256]) + data[place + 1 :]
    if kind == 2:  # cut off
        return data[:place]
    if kind == 3:  # a part is repeated
        return data[:place] + data[min(place, other) : max(place, other)] + data[place:]
    return data[:place] + data[place + other % 64 + 1 :]  # a part is missing


class Trap:
    """An object whose unpickling makes a file or folder."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> tuple:
        return self.call[0], self.call[1:]


class LateTrap(Trap):
    """The same, when its state is set."""

    def __reduce__(self) -> tuple:
        return dict, (), None, None, iter([(1, Trap(*self.call))])


def make_traps(marker: Path) -> list[Trap]:
    """Objects that make the marker, each in another way."""
    text = str(marker)
    calls: list[tuple] = [
        (open, text, "w"),
        (os.mkdir, text),
        (os.system, f"touch {text}"),
        (subprocess.call, ["touch", text]),
        (eval, f"open({text!r}, 'w')"),
        (exec, f"open({text!r}, 'w')"),
        (Path.touch, marker),
        (np.save, text + ".npy", 0),
        (shutil.copy, __file__, text),
    ]
    return [*(Trap(*call) for call in calls), LateTrap(*calls[0]), LateTrap(*calls[1])]


DISGUISED = 360  # files that each trap is in


def disguise_files(folder: Path) -> tuple[int, int]:
    """Pickles that run code, in place of each file of an archive: those that ran."""
    marker, n, wrong = folder / "marker", 0, 0
    record = task_to_record(make_task(0))
    forms = list(product(range(6), (None, *record), enumerate(_names_of_files())))
    for trap in make_traps(marker):
        for protocol, place, (number, name) in forms[:: len(forms) // DISGUISED]:
            data: Any = trap if place is None else {**record, place: trap}
            path = folder / f"{protocol}-{place}-{number}"
            (path / name).parent.mkdir(parents=True)
            (path / name).write_bytes(pickle.dumps(data, protocol=protocol))
            _use_archive(path, folder)
            made = list(folder.glob("marker*"))
            n, wrong = n + 1, wrong + bool(made)
            shutil.rmtree(path)
            for each in made:
                each.rmdir() if each.is_dir() else each.unlink()
    return n, wrong


def _names_of_files() -> tuple[str, ...]:
    model = Path("models") / "0123456789abcdef-0123456789abcdef.npz"
    return "tasks/task-0.joblib", "running/task-0.jsonl", "index/entries.joblib", str(model), "key"


def _use_archive(path: Path, folder: Path) -> None:
    archive = Archive(path, starter=False)
    with warnings.catch_warnings(), contextlib.suppress(RecordError, OSError, ValueError):
        warnings.simplefilter("ignore")
        archive.select()
        list(archive)
        archive.verify()
        archive.export(folder / "out.zip", overwrite=True)
        for file in path.rglob("*.*"):
            archive.import_(file)


def name_members(folder: Path) -> tuple[int, int]:
    """ZIP files with names that are no text: errors other than those of a refused file."""
    wrong, names = 0, [bytes([k]) * 12 for k in range(128, 256)]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as content:
        content.writestr("tasks/" + "x" * 12 + ".joblib", b"")
    plain = bytearray(buffer.getvalue())
    plain[6:8] = plain[plain.index(b"PK\1\2") + 8 : plain.index(b"PK\1\2") + 10] = b"\0\x08"
    for name in names:
        file = folder / "names.zip"
        file.write_bytes(bytes(plain).replace(b"x" * 12, name))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Archive(folder / "own").import_(file)
        except RecordError:
            pass
        except Exception:
            wrong += 1
    return len(names), wrong


def import_pipe(folder: Path) -> tuple[int, int]:
    """A pipe in place of a file: imports that wait for ever."""
    os.mkfifo(folder / "pipe.zip")
    code = (
        "import sys; from sktransfer import Archive\n"
        "try: Archive(sys.argv[1]).import_(sys.argv[2])\n"
        "except ValueError: pass\n"
    )
    command = [sys.executable, "-c", code, str(folder / "own"), str(folder / "pipe.zip")]
    try:
        return 1, int(subprocess.run(command, timeout=60, check=False).returncode != 0)
    except subprocess.TimeoutExpired:
        return 1, 1


def costly_zips() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Yield names and members of ZIP files that are small and expensive to unpack."""
    record = task_to_record(make_task(0))
    long = dumps_plain({**record, "name": "a" * (15 * 2**20)})
    yield "a ZIP of one long text", [("tasks/task-0.joblib", long)]
    members = [(f"tasks/task-{k}.joblib", long) for k in range(50)]
    yield "a ZIP of fifty records of 15 MB", members
    zeros = [(f"tasks/task-{k}.joblib", bytes(64 * 2**20)) for k in range(8)]
    yield "a ZIP of 512 MB of zeros", zeros
    yield "a ZIP of 20,000 empty members", [(f"tasks/{k}.joblib", b"") for k in range(20_000)]


def measure_zips(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Return seconds of a first and a second import of each ZIP file, and megabytes."""
    found = {}
    for number, (name, members) in enumerate(costly_zips()):
        file = folder / f"{number}.zip"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
            for member, data in members:
                content.writestr(member, data)
        command = [sys.executable, "-m", "benchmarks.damage", str(file)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[name] = tuple(json.loads(output))
    return found


def import_costly(file: str) -> None:
    """Print seconds and megabytes of importing a file twice; runs in a new process."""
    archive = Archive(Path(file).with_suffix(""), starter=False)
    used, seconds = megabytes(), []
    for _ in range(2):
        start = time.process_time()
        with warnings.catch_warnings(), contextlib.suppress(RecordError):
            warnings.simplefilter("ignore")
            archive.import_(file)
        seconds.append(time.process_time() - start)
    print(json.dumps([*seconds, megabytes() - used]))


# -- many processes, and other machines ----------------------------------------------------------

N_WRITTEN = 60


def work_at_once(folder: Path) -> tuple[int, int]:
    """Twelve processes write, verify, prune, merge and export: records that are lost."""
    own, other = folder / "own", folder / "other"
    for n in range(40):
        Archive(other).append(make_task(10_000 + n))
    jobs = [("write", k) for k in range(6)]
    jobs += [(job, 0) for job in ("verify", "verify", "prune", "merge", "merge", "export")]
    failed = run_at_once(_work, [(own, other, folder, *job) for job in jobs])
    known = {task.id for task in Archive(own)}
    expected = {f"task-{k * 1000 + n}" for k in range(6) for n in range(N_WRITTEN)}
    expected |= {f"task-{10_000 + n}" for n in range(40)}
    return len(expected), len(expected - known) + failed


def _work(own: Path, other: Path, folder: Path, job: str, number: int) -> None:
    archive = Archive(own)
    for n in range(N_WRITTEN if job == "write" else 10):
        if job == "write":
            archive.append(make_task(number * 1000 + n))
        elif job == "verify":
            assert not archive.verify(repair=True)
        elif job == "prune":
            archive.prune(older_than=365)
        elif job == "merge":
            assert not archive.merge(other).refused
        elif own.exists():
            archive.export(folder / "out.zip", overwrite=True)


def repair_after_incomplete_downloads(folder: Path) -> tuple[int, int]:
    """Downloads that are cut off at any byte, then a repair: sound originals that it moves."""
    with mock.patch.dict(os.environ, XDG_CACHE_HOME=str(folder)):
        remote = Archive("memory://benchmark")
        remote.append(make_task(0))
        files = remote._open().filesystem  # type: ignore[attr-defined]
        [file] = [name for name in files.find("/benchmark") if name.endswith(".joblib")]
        original, wrong = files.cat_file(file), 0
        places = np.linspace(0, len(original) - 1, 233).astype(int).tolist()
        for n in places:
            part = original[:n]
            with mock.patch.object(
                files, "cat", lambda paths, p=part, **_: dict.fromkeys(paths, p)
            ):
                remote.verify(repair=True)
            wrong += not files.exists(file) or files.cat_file(file) != original
        files.pipe_file("/benchmark/tasks/" + "x" * 300 + ".joblib", b"x")
        wrong += [task.id for task in remote] != ["task-0"]
    return len(places) + 1, wrong


def repair_without_reading(folder: Path) -> tuple[int, int]:
    """Models, records and journals that cannot be read now: those that a repair moves."""
    archive = Archive(folder / "past")
    archive.append(make_task(0))
    archive.model_cache.put({}, ["a"], {"weights": np.zeros(3)})
    archive.journals.start(make_task(1)).sync()
    targets = {
        "sktransfer.archive._plain_pickle._PlainUnpickler.load": MemoryError(),
        "sktransfer.archive._journal.json.loads": MemoryError(),
        "sktransfer.archive._model_cache._array": MemoryError(),
        "pathlib.Path.open": OSError(5, "Input/output error"),
    }
    wrong = 0
    for target, error in targets.items():
        with mock.patch(target, side_effect=error):
            wrong += any(found.moved for found in archive.verify(repair=True))
    return len(targets), wrong + bool(archive.verify())


def repair_cut_journals(folder: Path) -> tuple[int, int]:
    """Journals that are cut off before the end of their header: those reported more than once."""
    archive = Archive(folder / "past", starter=False)
    journal = archive.journals.start(make_task(0))
    journal.sync()
    content = journal.path.read_bytes()
    journal.path.unlink()
    wrong, places = 0, range(0, len(content) - 1, 7)  # a header and nothing else
    for n in places:
        journal.path.write_bytes(content[:n])
        archive.verify(repair=True)
        wrong += bool(archive.verify())
    return len(places), wrong


def prune_elsewhere(folder: Path) -> tuple[int, int]:
    """`prune` on another machine while a search runs: its journal is removed."""
    archive = Archive(folder / "past", starter=False)
    with mock.patch.object(platform, "node", return_value="elsewhere"):
        journal = archive.journals.start(Task((), make_task(0).space, id="running"))
        journal.add(Trial.make({"max_depth": 1}, 0.5), folds=[])
        journal.sync()
    archive.prune(max_records=0)
    return 1, int(not journal.path.exists())


DISGUISES: dict[str, Callable[[Path], tuple[int, int]]] = {
    "records with changed bytes, read with other trials": mutate_bytes,
    "pickles in place of the files of an archive, run": disguise_files,
    "ZIP files with names that are no text, errors of another kind": name_members,
    "a pipe in place of a ZIP file, waited for": import_pipe,
}
FAULTS: dict[str, Callable[[Path], tuple[int, int]]] = {
    "records of twelve processes that write, verify, prune, merge and export": work_at_once,
    "incomplete downloads and overlong names at an address": repair_after_incomplete_downloads,
    "repairs while files cannot be read": repair_without_reading,
    "journals that are cut off in their header": repair_cut_journals,
    "`prune` on another machine while a search runs": prune_elsewhere,
}

if __name__ == "__main__":
    import_costly(sys.argv[1])
