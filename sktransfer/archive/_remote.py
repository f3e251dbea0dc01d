"""Archives at other places: ``s3://bucket/past``, or any other address that fsspec knows.

Records never change, so each is fetched once: a local copy of the directory is kept up to date by names and
sizes, and everything else works on the copy. What is written goes to the address first. Cached models stay
with the copy. The files of the address are as untrusted as any: they go through the same reader.
"""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from functools import cached_property
from typing import Any

import numpy as np

from sktransfer.archive import _storage
from sktransfer.archive._address import mirror_directory

_BATCH, _BATCH_BYTES = 64, 32 * 2**20  # files that are fetched at once
_told: set[tuple[str, str, str]] = set()  # what this process has warned of


class Remote:
    """The folder at an address, and the local copy of its records.

    Parameters
    ----------
    address : str
        Such as ``s3://bucket/past``.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.tasks = mirror_directory(address) / "tasks"

    @cached_property
    def _folder(self) -> tuple[Any, str]:
        """The file system and the folder there; some kinds connect at once, which may fail."""
        import fsspec

        return fsspec.core.url_to_fs(self.address)

    @property
    def files(self) -> Any:
        return self._folder[0]

    def _place(self, folder: str, name: str = "") -> str:
        return f"{self._folder[1].rstrip('/')}/{folder}/{name}".rstrip("/")

    def refresh(self, max_bytes: int) -> None:
        """Bring the local copy up to date; out of reach, it is used as it is, with a warning."""
        try:
            missing = self.update(max_bytes)
        except Exception as error:  # each kind of file system has errors of its own
            warnings.warn(
                f"The archive {self.address} is out of reach ({type(error).__name__}: {error}); "
                "the local copy of it is used.",
                stacklevel=4,
            )
            return
        for name, reason in missing.items():
            if (told := (self.address, name, reason)) not in _told:  # a fit looks several times
                _told.add(told)
                warnings.warn(f"Skipped {self._place('tasks', name)}: {reason}.", stacklevel=4)

    def update(self, max_bytes: int, anew: bool = False) -> dict[str, str]:
        """Bring the local copy up to date, or fetch all of it anew; what could not be fetched, and why."""
        if anew and hasattr(self.files, "clear_cache"):  # of a chain such as simplecache::s3://...
            self.files.clear_cache()
        there, here = self._sizes(), self._copied()
        for name in here.keys() - there.keys():  # removed by somebody
            with contextlib.suppress(OSError):
                (self.tasks / name).unlink()
        large = {name for name, size in there.items() if size > max_bytes}
        wanted = [name for name, size in there.items() if anew or here.get(name) != size]
        missing = self._fetch(sorted({*wanted} - large), there)
        return missing | dict.fromkeys(sorted(large), f"it is larger than {max_bytes // 2**20} MiB")

    def _sizes(self) -> dict[str, int]:
        """Sizes of the record files at the address, by name."""
        folder = self._place("tasks")
        self.files.invalidate_cache(folder)
        try:
            found = self.files.ls(folder, detail=True)
        except FileNotFoundError:
            return {}
        sizes = {}
        for entry in found:
            name = str(entry["name"]).rpartition("/")[2]
            # The name becomes one on this disk: no separator of any system, and nothing hidden.
            if name.endswith(_storage.SUFFIX) and name[0] != "." and not set(name) & set('\\/:\0*?"<>|'):
                sizes[name] = int(entry.get("size") or 0)
        return sizes

    def _copied(self) -> dict[str, int]:
        try:
            with os.scandir(self.tasks) as entries:
                return {
                    entry.name: entry.stat(follow_symlinks=False).st_size
                    for entry in entries
                    if entry.name.endswith(_storage.SUFFIX) and entry.name[0] != "."
                }
        except FileNotFoundError:
            return {}

    def _fetch(self, names: list[str], sizes: dict[str, int]) -> dict[str, str]:
        """Copy some records; those that could not be fetched, and why."""
        missing = {}
        while names:
            # At least one, and not more than fit into memory together.
            n = max(1, sum(np.cumsum([sizes[name] for name in names[:_BATCH]]) <= _BATCH_BYTES))
            batch, names = names[:n], names[n:]
            places = {self._place("tasks", name): name for name in batch}
            fetched = self.files.cat(list(places), on_error="return")
            for place, data in fetched.items():
                name = places.get(place) or place.rpartition("/")[2]
                if isinstance(data, bytes) and name in sizes:
                    _storage.write(self.tasks / name, data)
                elif not isinstance(data, FileNotFoundError):  # which has been removed since
                    missing[name] = f"it cannot be fetched ({type(data).__name__}: {data})"
        return missing

    def write(self, name: str, data: bytes, new: bool) -> None:
        """Put a record at the address. An object store shows it as a whole or not at all.

        With `new` it is a FileExistsError if another is there, whether or not it could be fetched. (Of two
        that come at the very same moment the later one stays: few stores can tell.)
        """
        try:
            place, folder = self._place("tasks", name), self._place("tasks")
            self.files.makedirs(folder, exist_ok=True)
            self.files.invalidate_cache(folder)
            taken = new and self._is_there(place)
            if not taken:
                self.files.pipe_file(place, data)
        except Exception as error:
            raise OSError(f"The archive {self.address} cannot be written to ({error}).") from error
        if taken:
            raise FileExistsError(errno.EEXIST, "It is there already", place)
        with contextlib.suppress(OSError):  # the copy: without it the record is fetched when it is needed
            _storage.write(self.tasks / name, data)

    def _is_there(self, place: str) -> bool:
        try:
            self.files.info(place)  # fsspec's own `exists` takes any error for a no
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        """Remove a record at the address."""
        with contextlib.suppress(FileNotFoundError):
            self.files.rm_file(self._place("tasks", name))

    def set_aside(self, name: str) -> str:
        """Move a record to the folder ``damaged`` of the address; its new place."""
        target = self._place("damaged", name)
        self.files.makedirs(self._place("damaged"), exist_ok=True)
        self.files.mv(self._place("tasks", name), target)
        return target
