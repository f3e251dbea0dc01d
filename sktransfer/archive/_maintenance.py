"""What is wrong in an archive, file by file; and bad files moved aside, where they do no harm."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sktransfer.archive import _storage
from sktransfer.archive._journal import Journals, read_journal
from sktransfer.archive._model_cache import STALE_SECONDS, is_sound_model
from sktransfer.archive._reader import MAX_BYTES, read_record
from sktransfer.exceptions import NewerFormatError, RecordError

ASIDE = "damaged"
_LEFT = re.compile(r"\..*\.tmp")


@dataclass(frozen=True)
class Finding:
    """A file that is not as it should be.

    Parameters
    ----------
    file : str
        The file.
    problem : str
        What is wrong with it.
    moved : str or None
        Where it was moved to, if it was.

    Examples
    --------
    >>> print(Finding("tasks/a.joblib", "it is empty"))
    tasks/a.joblib: it is empty
    """

    file: str
    problem: str
    moved: str | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}" + (f"; moved to {self.moved}" if self.moved else "")


def verify(archive: Any, repair: bool) -> list[Finding]:
    """Read every file from the disk; see `Archive.verify`."""
    remote, directory, found = archive._remote(), archive._directory(), []
    if remote is not None:
        try:
            missing = remote.update(MAX_BYTES, anew=True)
        except Exception as error:
            raise OSError(f"The archive {remote.address} is out of reach ({error}).") from error
        found += [Finding(f"{remote.address}/tasks/{name}", reason) for name, reason in missing.items()]
    for file, problem, movable in _problems(directory):
        moved = None
        if repair and movable and not file.parent.is_symlink():
            aside = None if remote is None or file.parent.name != "tasks" else remote.set_aside(file.name)
            moved = aside or str(_move(file, directory))
            if aside:
                file.unlink()
        found.append(Finding(str(file), problem, moved))
    return found


def _problems(directory: Path) -> Iterator[tuple[Path, str, bool]]:
    """File, what is wrong with it, and whether it may be moved."""
    for folder in (directory / name for name in ("tasks", "running", "models", "index")):
        if folder.is_symlink():
            yield folder, "it is a link, which may lead out of the archive; nothing there is moved", False
    for file in _storage.record_files(directory / "tasks"):
        try:
            read_record(file)
        except FileNotFoundError:  # removed by somebody since
            continue
        except RecordError as error:
            yield file, error.reason, _is_bad(error)
    for file in Journals(directory / "running").files().values():
        try:
            read_journal(file)
        except FileNotFoundError:  # the fit has ended since
            continue
        except RecordError as error:
            yield file, error.reason, _is_bad(error)
    for file in _listed(directory / "models"):
        if file.suffix == ".npz" and file.name[0] != "." and not is_sound_model(file):
            yield file, "it is not a sound model", True
    for name in ("tasks", "models", "index"):
        for file in _listed(directory / name):
            if _LEFT.fullmatch(file.name) and _age(file) > STALE_SECONDS:
                yield file, "it was left by a writer that was stopped", True


def _is_bad(error: RecordError) -> bool:
    """Whether it is the file's fault: not where it is for a later version, or out of reach for the moment."""
    return not isinstance(error, NewerFormatError) and not isinstance(error.__cause__, OSError)


def _age(file: Path) -> float:
    """Seconds since it was written; 0 if it is not there any more."""
    try:
        return time.time() - file.lstat().st_mtime
    except FileNotFoundError:
        return 0.0


def _listed(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in sorted(os.listdir(folder))]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _move(file: Path, directory: Path) -> Path:
    """Move a file, a folder or a link itself to where no reader looks; nothing there is overwritten."""
    _storage.refuse_link(file.parent)
    folder = directory / ASIDE
    folder.mkdir(exist_ok=True)
    _storage.refuse_link(folder)
    target = folder / file.name
    if os.path.lexists(target):
        target = folder / f"{file.name}.{uuid.uuid4().hex[:8]}"
    os.rename(file, target)
    return target
