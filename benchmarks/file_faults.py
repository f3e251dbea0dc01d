"""Searches while operations on the files of their archive fail.

Each operation of Python's on a file or folder is replaced by one that counts its calls below the
folder of the archive, and that raises an error at some of them: at one call, or from one call on.
Either one kind of operation fails (from its first, its middle or its last call on), or whatever
operation comes at some moment of the search. The errors are all that an operating system is likely
to give, and a lack of memory. A search goes wrong if it raises an error, evaluates another number
of candidates, goes on at random though it has a model, leaves neither a record nor a warning, or if
records that were there before are lost or damaged.

    python -m benchmarks.file_faults [SCENE ...]
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import itertools
import os
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.attacks import make_data, make_search
from benchmarks.mishaps import make_task
from sktransfer import Archive
from sktransfer.archive import _plain_pickle
from sktransfer.exceptions import ArchiveWarning

CODES = """
    EPERM ENOENT EINTR EIO ENXIO EBADF EAGAIN ENOMEM EACCES EBUSY EEXIST EXDEV ENODEV ENOTDIR
    EISDIR EINVAL ENFILE EMFILE ETXTBSY EFBIG ENOSPC EROFS EMLINK ENAMETOOLONG ENOLCK ENOSYS
    ENOTEMPTY ELOOP EILSEQ ENOTSUP ETIMEDOUT ENOTCONN ESTALE EDQUOT
"""
ERRORS = {name: getattr(errno, name) for name in CODES.split()}
NO_MEMORY = "no memory"
FUNCTIONS = """
    open stat lstat listdir scandir mkdir makedirs rename replace link unlink remove rmdir chmod
    utime access fsync write read fdopen readlink truncate
"""
METHODS = ("read", "write", "flush", "seek", "tell", "fileno", "close")


@dataclass
class Faults:
    """Errors of the file operations below a folder.

    Parameters
    ----------
    folder : Path
    error : str
        A key of ERRORS, or NO_MEMORY.
    operation : str or None
        Which operation fails; None for any.
    first : int
        Number of the first call that fails.
    is_lasting : bool
        Whether the calls after it fail as well.
    """

    folder: Path
    error: str = ""
    operation: str | None = None
    first: int = 0
    is_lasting: bool = True
    calls: Counter[str] = field(default_factory=Counter)
    n_calls: int = 0

    def check(self, operation: str, path: Any = None) -> None:
        """Count a call, and raise the error if it is due."""
        if not self._is_below(path):
            return
        n = self.calls[operation] if self.operation else self.n_calls
        self.calls[operation] += 1
        self.n_calls += 1
        if not self.error or (self.operation or operation) != operation:
            return
        if n == self.first or (self.is_lasting and n > self.first):
            if self.error == NO_MEMORY:
                raise MemoryError
            raise OSError(ERRORS[self.error], os.strerror(ERRORS[self.error]), str(path))

    def _is_below(self, path: Any) -> bool:
        if isinstance(path, int):
            try:
                path = _READLINK(f"/proc/self/fd/{path}")
            except OSError:
                return False
        return path is None or os.fsdecode(path).startswith(str(self.folder))

    @contextlib.contextmanager
    def install(self) -> Iterator[Faults]:
        """Replace the operations."""
        with contextlib.ExitStack() as stack:
            for name in FUNCTIONS.split():
                function = self._wrap(name, getattr(os, name))
                stack.enter_context(mock.patch.object(os, name, function))
            for owner in (io, builtins):
                stack.enter_context(mock.patch.object(owner, "open", self._open))
            if self.error == NO_MEMORY:
                for name in ("loads_plain", "dumps_plain"):
                    function = self._wrap(name, getattr(_plain_pickle, name))
                    for module in [m for n, m in sys.modules.items() if n.startswith("sktransfer")]:
                        if hasattr(module, name):
                            stack.enter_context(mock.patch.object(module, name, function))
            yield self

    def _wrap(self, name: str, function: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.check(name, None if name.endswith("_plain") else args[0] if args else ".")
            found = function(*args, **kwargs)
            return Entries(found, self) if name == "scandir" else found

        return call

    def _open(self, path: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, int) or not self._is_below(path):
            return _OPEN(path, *args, **kwargs)
        self.check("file", path)
        return File(_OPEN(path, *args, **kwargs), self)


_OPEN, _READLINK = io.open, os.readlink


class File:
    """An open file whose methods may fail."""

    def __init__(self, file: Any, faults: Faults) -> None:
        self._file, self._faults = file, faults

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._file, name)
        if name not in METHODS:
            return method

        def call(*args: Any) -> Any:
            if name != "close":
                self._faults.check(f"file.{name}")
                return method(*args)
            was_closed = self._file.closed
            method()
            if not was_closed:
                self._faults.check("file.close")

        return call

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        self._faults.check("file.read")
        return iter(self._file)


class Entries:
    """The entries of a folder, whose methods may fail."""

    def __init__(self, entries: Any, faults: Faults) -> None:
        self._entries, self._faults = entries, faults

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self._entries.close()

    def __iter__(self) -> Iterator[Any]:
        for entry in self._entries:
            self._faults.check("entry", entry.path)
            yield Entry(entry, self._faults)


class Entry:
    """One entry of a folder."""

    def __init__(self, entry: os.DirEntry, faults: Faults) -> None:
        self._entry, self._faults = entry, faults
        self.name, self.path = entry.name, entry.path

    def stat(self, **kwargs: Any) -> os.stat_result:
        self._faults.check("entry.stat", self.path)
        return self._entry.stat(**kwargs)


# -- searches ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A search, and what its archive holds before.

    Parameters
    ----------
    about : str
        What it is, for the report.
    is_new : bool
        Whether there is no archive yet.
    data : int
        Seed of the data; that of the search that was killed is 7.
    params : dict
    """

    about: str
    is_new: bool = False
    data: int = 2
    params: dict[str, Any] = field(default_factory=dict)

    def search(self, path: Path) -> Any:
        """Return a search that was not run yet."""
        archive = Archive(path, starter=False)
        return make_search(archive, surrogate="random", n_iter=2).set_params(**self.params)

    def prepare(self, template: Path, path: Path) -> None:
        """Make the archive that the search finds."""
        if not self.is_new:
            shutil.copytree(template, path)


RESUMED = {"resume": True, "n_iter": 3}
MODEL = {"surrogate": "auto", "n_iter": 3}
CACHED = {"surrogate": "dist-gp", "n_iter": 2}
SCENES = {
    "first": Scene("the first search of an archive", is_new=True),
    "second": Scene("a later search, at random"),
    "resumed": Scene("a search that resumes a killed one", data=7, params=RESUMED),
    "space": Scene('a search with `space="auto"`', params={"space": "auto", "verbose": 1}),
    "past": Scene("a search from past settings", params={"surrogate": "warm-start"}),
    "model": Scene("a search with the default surrogate", params=MODEL),
    "cached model": Scene("a search with a cached model", params=CACHED),
}
N_MOMENTS = 60  # of a search, at which any operation fails
N_CODES: int | None = 1  # errors of each kind and moment, in turn; None for all of them
IDS = [f"task-{n}" for n in range(3)]


def fill_archive(path: Path) -> None:
    """Make an archive of six records and the journal of a killed search."""
    from sktransfer.archive._journal import Journal

    archive = Archive(path, starter=False)
    for n, task_id in enumerate(IDS):
        assert archive.append(make_task(n)) == task_id
    for seed in range(3, 6):
        make_search(archive, n_iter=3, surrogate="random").fit(*make_data(seed))
    with mock.patch.object(Journal, "remove"), mock.patch.object(Archive, "append"):
        SCENES["resumed"].search(path).set_params(n_iter=2, resume=False).fit(*make_data(7))
    SCENES["cached model"].search(path).fit(*make_data(8))


def count_calls(scene: Scene, template: Path, path: Path) -> Faults:
    """Run a search without faults, and return how often it uses each operation."""
    scene.prepare(template, path)
    with warnings.catch_warnings(), Faults(path).install() as faults, _quiet():
        warnings.simplefilter("ignore")
        scene.search(path).fit(*make_data(scene.data))
    return faults


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def find_harm(scene: Scene, path: Path, faults: Faults) -> str:
    """Run a search with faults; return what went wrong, or nothing."""
    search = scene.search(path)
    n_iter = search.n_iter
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with faults.install(), _quiet():
                search.fit(*make_data(scene.data))
        except Exception as error:
            return f"raised {error!r}"
    if len(search.cv_results_["params"]) != n_iter:
        return f"evaluated {len(search.cv_results_['params'])} candidates"
    is_warned = any(issubclass(each.category, ArchiveWarning) for each in caught)
    if any("continues at random" in str(each.message) for each in caught):
        return "continued at random"
    if search.task_id_ is None and not is_warned:
        return "left no record and no warning"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive = Archive(path, starter=False)
        if problems := archive.verify():
            return f"left {problems}"
        if not scene.is_new and not {*IDS} <= {task.id for task in archive}:
            return "lost a record"
    return ""


def list_faults(counted: Faults, path: Path, n_codes: int | None) -> Iterator[Faults]:
    """Yield the faults of a search: kinds of operations, and moments, with each of the errors.

    If `n_codes` is given, each kind and moment has so many errors, in turn.
    """
    codes = itertools.cycle([*ERRORS, NO_MEMORY])

    def some() -> list[str]:
        return list(itertools.islice(codes, n_codes or len(ERRORS) + 1))

    for operation, n in sorted(counted.calls.items()):
        for first in sorted({0, n // 2, n - 1}):
            for error in some():
                for is_lasting in (True, False):
                    yield Faults(path, error, operation, first, is_lasting)
    for first in np.unique(np.linspace(0, counted.n_calls - 1, N_MOMENTS).astype(int)).tolist():
        for error in some()[: n_codes or 8]:
            for is_lasting in (True, False):
                yield Faults(path, error, None, first, is_lasting)


def fail_during(name: str, folder: Path) -> tuple[int, int]:
    """Searches of one scene with each fault: their number, and those that went wrong."""
    scene, template = SCENES[name], folder / "template"
    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        fill_archive(template)
    counted = count_calls(scene, template, folder / "counted")
    n = wrong = 0
    for faults in list_faults(counted, folder, N_CODES):
        faults.folder = path = folder / str(n)
        scene.prepare(template, path)
        harm = find_harm(scene, path, faults)
        if harm:
            wrong += 1
            when = f"{faults.operation} {faults.error} {faults.first} {faults.is_lasting}"
            print(f"{name}: {when}: {harm}", file=sys.stderr, flush=True)
        shutil.rmtree(path, ignore_errors=True)
        n += 1
    return n, wrong


def describe_faults() -> tuple[list[str], bool]:
    """Run the searches of all scenes; return the lines of the report, and whether one was lost."""
    lines = [
        "Made by `python -m benchmarks.faults`, see `benchmarks/file_faults.py`. One "
        f"operation on the files of the archive fails, or all from one on, with {len(ERRORS)} "
        "error codes and a lack of memory in turn: each kind of operation at its first, "
        f"middle and last call, and whatever operation comes at up to {N_MOMENTS} moments. A "
        "search is lost if it raises an error, evaluates too few candidates, goes on without "
        "its model, leaves neither a record nor a warning, or damages earlier records.",
        "",
        "| search | tried | lost |",
        "|---|---:|---:|",
    ]
    total = np.zeros(2, dtype=int)
    for name, scene in SCENES.items():
        with tempfile.TemporaryDirectory() as folder:
            found = fail_during(name, Path(folder))
        total += found
        lines.append(f"| {scene.about} | {found[0]} | {found[1]} |")
    lines.append(f"| all | {total[0]} | {total[1]} |")
    return lines, bool(total[1])


def main() -> None:
    for name in sys.argv[1:] or SCENES:
        with tempfile.TemporaryDirectory() as folder:
            print(name, *fail_during(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
