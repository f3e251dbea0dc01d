"""Mishaps of an archive's environment, and what is lost by them.

Repairs at the same time, too little memory, processes that are killed between two file operations,
folders that come and go, wrong clocks, missing home directories. Each mishap is a function that
returns how often it was tried and how often something went wrong. `benchmarks.faults` runs them and
writes the table.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks import DEPTHS, make_data, make_search
from sktransfer import Archive, Task, profile
from sktransfer.archive import _index

FORK = multiprocessing.get_context("fork")


def make_task(n: int, **fields: Any) -> Task:
    return Task.from_trials(DEPTHS, [({"max_depth": 1}, n / 1000)], id=f"task-{n}", **fields)


def run_at_once(target: Callable[..., None], arguments: list[tuple]) -> int:
    """Run a function in several processes at once; return how many of them failed."""
    barrier = FORK.Barrier(len(arguments))
    processes = [
        FORK.Process(target=_run_quietly, args=(target, barrier, each)) for each in arguments
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return sum(process.exitcode != 0 for process in processes)


def _run_quietly(target: Callable[..., None], barrier: Any, arguments: tuple) -> None:
    warnings.simplefilter("ignore")
    barrier.wait()
    try:
        target(*arguments)
    except BaseException:
        os._exit(1)
    os._exit(0)


def run_python(code: str, environment: dict[str, str] | None = None, options: tuple = ()) -> str:
    """Run a program in a new process; return its errors, or nothing if it succeeded."""
    command = [sys.executable, *options, "-c", code]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return ended.stderr or "failed" if ended.returncode else ""


# -- repairs -------------------------------------------------------------------------------------


def _repair(path: Path) -> None:
    Archive(path).verify(repair=True)


def repair_at_once(folder: Path) -> tuple[int, int]:
    """Two repairs of the same archive at the same time: errors, and sound files that moved."""
    n, wrong = 25, 0
    for number in range(n):
        archive = Archive(folder / str(number))
        for k in range(3):
            archive.append(make_task(k))
        for k in range(20):
            (archive._directory() / "tasks" / f"bad-{k}.joblib").write_bytes(b"nonsense")
        failed = run_at_once(_repair, [(archive._directory(),)] * 2)
        wrong += bool(failed) or len(archive) != 3
    return n, wrong


def repair_with_little_memory(folder: Path) -> tuple[int, int]:
    """A repair that runs out of memory: sound records that it moves away."""
    archive = Archive(folder / "past")
    rng = np.random.default_rng(0)
    for n in range(20):
        archive.append(make_task(n, profile=profile(rng.normal(size=(15_000, 2)))))
    wrong, limits = 0, range(1, 23)
    for megabytes in limits:
        code = (
            "import resource, warnings\n"
            "from sktransfer import Archive\n"
            f"archive = Archive({str(archive.path)!r})\n"
            "archive.verify(); used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
            f"resource.setrlimit(resource.RLIMIT_AS, (used + {megabytes} * 2**17,) * 2)\n"
            "archive.verify(repair=True)\n"
        )
        run_python(code)
        wrong += len(archive) != 20
    return len(limits), wrong


def repair_during_fits(folder: Path) -> tuple[int, int]:
    """Repairs while searches with large journals run: journals that are moved away."""
    archive = Archive(folder / "past", starter=False)
    X = np.random.default_rng(0).normal(size=(15_000, 3))
    data = profile(X, enclosing=[X * 2, X * 3])
    key = archive.open_key()
    assert key is not None
    n, wrong = 40, 0
    for number in range(n):
        task = make_task(number, profile=key.seal(data))
        child = FORK.Process(target=_write_journal, args=(archive, task))
        child.start()
        while child.is_alive():
            archive.verify(repair=True)
        child.join()
        wrong += child.exitcode != 0 or not (archive.journals.files().get(task.id))
    return n, wrong


def _write_journal(archive: Archive, task: Task) -> None:
    journal = archive.journals.start(task)
    for trial in task.trials * 5:
        journal.add(trial, folds=[])
        journal.sync()


# -- kills and runs ------------------------------------------------------------------------------


def keep_finished_journal(folder: Path) -> tuple[int, int]:
    """A kill between the record and the removal of its journal: journals that stay, and doubles."""
    n, wrong = 20, 0
    for number in range(n):
        archive = Archive(folder / str(number), starter=False)
        child = FORK.Process(target=_search_without_removal, args=(archive, number))
        child.start()
        child.join()
        assert archive.journals.files()
        tasks = list(archive)
        wrong += len(tasks) != 1 or bool(archive.journals.files())
    return n, wrong


def _search_without_removal(archive: Archive, seed: int) -> None:
    from sktransfer.archive._journal import Journal

    Journal.remove = lambda self: os._exit(0)  # type: ignore[method-assign]
    make_search(archive, n_iter=2).fit(*make_data(seed))


def resume_twice(folder: Path) -> tuple[int, int]:
    """A search that was killed twice, or is resumed by two processes: past tasks beyond one."""
    wrong = 0
    for number, ways in enumerate(("killed twice", "two at once")):
        archive = Archive(folder / str(number), starter=False)
        for stop in (2, 4) if ways == "killed twice" else (2,):
            child = FORK.Process(target=_search_until, args=(archive, stop))
            child.start()
            child.join()
        calls = [(archive, 99)] * (1 if ways == "killed twice" else 2)
        run_at_once(_search_until, calls)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong += len(archive.select().used) != 1
    return 2, wrong


def _search_until(archive: Archive, n_trials: int) -> None:
    from sktransfer.archive._journal import Journal

    add, count = Journal.add, [0]

    def add_and_count(self, trial, folds):
        if count[0] >= n_trials:
            os._exit(0)
        count[0] += 1
        add(self, trial, folds)
        self.sync()

    Journal.add = add_and_count  # type: ignore[method-assign]
    make_search(archive, resume=True, surrogate="random", n_iter=6).fit(*make_data())


# -- rows of large tables ------------------------------------------------------------------------


def miss_subsamples(n_rows: int, n_sampled: int, n_repeats: int) -> tuple[int, int]:
    """Searches on a sample of a large table that was searched before: those that are not found."""
    wrong = 0
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    seen = profile(X)
    for _ in range(n_repeats):
        sample = profile(X[rng.choice(n_rows, n_sampled, replace=False)])
        wrong += sample.overlap(seen) < 0.01
    return n_repeats, wrong


# -- the environment -----------------------------------------------------------------------------


def prune_with_wrong_dates(folder: Path) -> tuple[int, int]:
    """Records of the year 9999, and journals of another machine: own ones that `prune` removes."""
    archive = Archive(folder / "past")
    for n in range(5):
        archive.append(replace(make_task(n), created="9999-01-01T00:00:00+00:00"))
    own = make_task(99)
    archive.append(own)
    removed = archive.prune(max_records=1)
    return 1, int(own.id in removed)


def run_without_home(folder: Path) -> tuple[int, int]:
    """No home directory and no entry for the user, with a path in the environment: errors."""
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "USER", "LOGNAME")}
    environment |= {"SKTRANSFER_ARCHIVE": str(folder / "past")}
    code = (
        "import pwd; pwd.getpwuid = {}.__getitem__  # as for a user without an entry\n"
        "from benchmarks.attacks import *\n"
        "make_search('auto', n_iter=2).fit(*make_data())\n"
        "assert len(Archive()) == 1\n"
    )
    return 1, int(bool(run_python(code, environment)))


def run_with_c_locale(folder: Path) -> tuple[int, int]:
    """A path that the file system's encoding cannot express: tracebacks instead of a warning."""
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    path = ascii(str(folder / "vergangene-l\u00e4ufe"))
    code = (
        "from benchmarks.attacks import *\n"
        f"path = {path}\n"
        "make_search(Archive(path), n_iter=2).fit(*make_data())\n"
    )
    return 1, int(bool(run_python(code, environment)))


def read_large_index(folder: Path) -> tuple[int, int]:
    """An index of 150,000 records: whether it is written in parts that can be read again."""
    entry = _index._make_entry(make_task(0), 1, 1, {})
    entries = {f"2026-{n:06d}": entry for n in range(150_000)}
    _index._write_index(folder, entries)
    return 1, int(len(_index._read_index(folder)[1]) != len(entries))


def _merge(one: Path, other: Path) -> None:
    if Archive(one).merge(other).refused:
        raise AssertionError


def merge_at_once(folder: Path) -> tuple[int, int]:
    """Two merges of the same records at once: identical records that are reported as refused."""
    source = Archive(folder / "source")
    for n in range(100):
        source.append(make_task(n))
    wrong = sum(
        bool(run_at_once(_merge, [(folder / str(k), source._directory())] * 2)) for k in range(10)
    )
    return 10, wrong


def _export_often(path: Path, file: Path) -> None:
    for _ in range(30):
        try:
            Archive(path).export(file, overwrite=True)
        except FileNotFoundError as error:
            if "There is no archive to export" not in str(error):
                raise


def _come_and_go(path: Path) -> None:
    archive = Archive(path)
    for n in range(60):
        archive.append(make_task(n))
        if n % 2:
            archive.remove(f"task-{n}")


def export_while_changing(folder: Path) -> tuple[int, int]:
    """Exports while records come and go: errors other than that there is no archive yet."""
    wrong = 0
    for number in range(10):
        path, file = folder / str(number), folder / f"{number}.zip"
        with FORK.Pool(2) as pool:
            pool.apply_async(_come_and_go, (path,))
            done = pool.apply_async(_export_often, (path, file))
            try:
                done.get()
            except Exception:
                wrong += 1
    return 10, wrong


MISHAPS: dict[str, Callable[[Path], tuple[int, int]]] = {
    "two repairs at once": repair_at_once,
    "repairs that run out of memory": repair_with_little_memory,
    "repairs while journals are written": repair_during_fits,
    "kills between the record and the removal of its journal": keep_finished_journal,
    "searches killed twice, or resumed by two processes": resume_twice,
    "100 rows of 100,000": lambda _: miss_subsamples(100_000, 100, 50),
    "500 rows of a million": lambda _: miss_subsamples(1_000_000, 500, 20),
    "records of the year 9999, then `prune`": prune_with_wrong_dates,
    "no home directory": run_without_home,
    "a path that the locale cannot express": run_with_c_locale,
    "an index of 150,000 records": read_large_index,
    "two merges at once": merge_at_once,
    "exports while records come and go": export_while_changing,
}
