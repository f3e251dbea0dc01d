"""Archives at other places: ``s3://bucket/past``, or any other address that fsspec knows.

Records never change, so each is fetched once. A local copy of the directory is updated by names and
sizes, and everything else works on the copy. Records are written to the address first. Cached
models stay with the copy. The files at the address are untrusted and go through the usual reader.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sktransfer.archive import _locations, _storage
from sktransfer.archive._plain_pickle import MAX_BYTES
from sktransfer.archive._record import is_id
from sktransfer.exceptions import ArchiveWarning, RecordError
from sktransfer.utils._user_warnings import warn_user

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_BATCH_FILES, _BATCH_BYTES = 64, 32 * 2**20  # most files and bytes that are fetched at once
_confirmed_keys: set[str] = set()  # addresses whose key this process has read
S3_PROTOCOLS = {"s3", "s3a"}
S3_LIMITS = {"connect_timeout": 5, "read_timeout": 20, "retries": {"max_attempts": 1}}
BUCKET_PROTOCOLS = S3_PROTOCOLS | {"gs", "gcs", "abfs", "az", "oss", "oci"}
_lost: ContextVar[set[str] | None] = ContextVar("lost", default=None)  # inside `connect_once`
_warned: set[tuple[str, str, str]] = set()  # address, file and reason of warnings of this process


def open_storage(path: str | os.PathLike[str]) -> _storage.Storage:
    """Return the storage of the archive that `path` refers to now."""
    location = os.environ.get(_locations.VARIABLE, "") if path == "auto" else path
    if not _locations.is_remote(location):
        return _storage.Storage(_locations.archive_directory(path))
    check_installed(os.fspath(location))
    return RemoteStorage(os.fspath(location))


def check_installed(address: str) -> None:
    """Raise an ImportError that says what to install, unless `address` can be used."""
    try:
        import fsspec

        for link in address.split("::"):  # a chain, such as simplecache::s3://bucket/past
            fsspec.get_filesystem_class(link.partition("://")[0])
    except ImportError as error:
        raise ImportError(
            f"The archive {address!r} needs packages that are not installed ({error}). "
            "Install them with: pip install 'sktransfer[remote]'"
        ) from error


class OutOfReachError(OSError):
    """An address that was out of reach before, in the same search. The user has been warned."""


@contextlib.contextmanager
def connect_once() -> Iterator[None]:
    """Inside, an address that is out of reach is tried, and warned of, only once."""
    token = _lost.set(set())
    try:
        yield
    finally:
        _lost.reset(token)


def _connection_options(address: str) -> dict[str, Any]:
    """Short time limits for S3, unless the user has set some. By default, it waits for minutes."""
    import fsspec

    *outer, protocol = [link.partition("://")[0] for link in address.split("::")]
    if protocol not in S3_PROTOCOLS or "config_kwargs" in fsspec.config.conf.get(protocol, {}):
        return {}
    options = {"config_kwargs": S3_LIMITS}
    return {protocol: options} if outer else options


def _innermost(filesystem: AbstractFileSystem) -> Any:
    """The file system at the end of a chain, such as that of S3 below a cache."""
    while (below := getattr(filesystem, "fs", None)) is not None:
        filesystem = below
    return filesystem


def _protocol(filesystem: AbstractFileSystem) -> str:
    protocol = _innermost(filesystem).protocol
    return protocol if isinstance(protocol, str) else protocol[0]


class RemoteStorage(_storage.Storage):
    """The records at an address, and the local copy of them.

    Parameters
    ----------
    address : str
        Such as ``s3://bucket/past``.
    """

    def __init__(self, address: str) -> None:
        super().__init__(_locations.mirror_directory(address))
        self.address = address

    @cached_property
    def _root(self) -> tuple[AbstractFileSystem, str]:
        """The file system and the folder there. Some kinds connect at once, which may fail."""
        import fsspec

        filesystem, root = fsspec.core.url_to_fs(self.address, **_connection_options(self.address))
        if _protocol(filesystem) in S3_PROTOCOLS:
            _innermost(filesystem).retries = 1
        return filesystem, root

    @property
    def filesystem(self) -> AbstractFileSystem:
        return self._root[0]

    def _place(self, folder: str, name: str = "") -> str:
        return f"{self._root[1].rstrip('/')}/{folder}/{name}".rstrip("/")

    def exists(self, *folders: str) -> bool:
        return True

    def refresh(self) -> None:
        """Update the local copy. If the address is out of reach, warn and use the copy as it is."""
        lost = _lost.get()
        if lost is not None and self.address in lost:
            return
        try:
            missing = self._update()
        except Exception as error:  # each kind of file system has errors of its own
            if lost is not None:
                lost.add(self.address)
            warn_user(
                f"The archive {self.address} is out of reach ({type(error).__name__}: {error}). "
                "The local copy of it is used.",
                ArchiveWarning,
            )
            return
        for name, reason in missing.items():
            if (warning := (self.address, name, reason)) not in _warned:  # a search refreshes often
                _warned.add(warning)
                place = self._place("tasks", name)
                warn_user(f"Skipped {place}: {reason}.", ArchiveWarning)

    def fetch_all(self) -> dict[str, str]:
        try:
            missing = self._update(fetch_all=True)
        except Exception as error:
            raise OSError(f"The archive {self.address} is out of reach ({error}).") from error
        return {f"{self.address}/tasks/{name}": reason for name, reason in missing.items()}

    def _update(self, fetch_all: bool = False) -> dict[str, str]:
        """Update the local copy, or fetch all of it again. Return what is missing, and why."""
        if fetch_all and hasattr(
            self.filesystem, "clear_cache"
        ):  # of a chain: simplecache::s3://...
            self.filesystem.clear_cache()
        there, here = self._sizes(), self._copied()
        for name in here.keys() - there.keys():  # removed at the address
            with contextlib.suppress(OSError):
                (self.tasks / name).unlink()
        large = {name for name, size in there.items() if size > MAX_BYTES}
        wanted = [name for name, size in there.items() if fetch_all or here.get(name) != size]
        missing = self._fetch(sorted({*wanted} - large), there)
        return missing | dict.fromkeys(sorted(large), f"it is larger than {MAX_BYTES // 2**20} MiB")

    def _sizes(self) -> dict[str, int]:
        """Return the sizes of the record files at the address, by name."""
        folder = self._place("tasks")
        self.filesystem.invalidate_cache(folder)
        try:
            found = self.filesystem.ls(folder, detail=True)
        except FileNotFoundError:
            return {}
        sizes = {}
        for entry in found:
            name = str(entry["name"]).rpartition("/")[2]
            # It becomes a name on this disk: no separator of any system, not hidden, not too long.
            if name.endswith(_storage.SUFFIX) and is_id(name.removesuffix(_storage.SUFFIX)):
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
        """Copy some records. Return those that could not be fetched, and why."""
        missing = {}
        while names:
            # At least one, and not more than fit into memory together.
            total = np.cumsum([sizes[name] for name in names[:_BATCH_FILES]])
            n = max(1, sum(total <= _BATCH_BYTES))
            batch, names = names[:n], names[n:]
            places = {self._place("tasks", name): name for name in batch}
            fetched = self.filesystem.cat(list(places), on_error="return")
            for place, data in fetched.items():
                name = places.get(place) or place.rpartition("/")[2]
                if isinstance(data, bytes) and name in sizes:
                    if len(data) < sizes[name]:
                        missing[name] = f"only {len(data)} of {sizes[name]} bytes arrived"
                        continue
                    _storage.write_file(self.tasks / name, data)
                elif not isinstance(data, FileNotFoundError):  # else it has been removed since
                    missing[name] = f"it cannot be fetched ({type(data).__name__}: {data})"
        return missing

    def write(self, id: str, data: bytes, new: bool = False) -> None:
        """Write a record to the address. An object store shows it completely or not at all.

        With `new`, a FileExistsError if there is one of this id, whether or not it can be fetched.
        (If two are written at the very same moment, the later one stays: few stores can prevent
        it.)
        """
        name = self.file(id).name
        if self.address in (_lost.get() or ()):
            raise OutOfReachError(f"The archive {self.address} is out of reach.")
        try:
            place, folder = self._place("tasks", name), self._place("tasks")
            self._make_folder(folder)
            self.filesystem.invalidate_cache(folder)
            is_taken = new and self._is_there(place)
            if not is_taken:
                self.filesystem.pipe_file(place, data)
        except Exception as error:
            raise OSError(f"The archive {self.address} cannot be written to ({error}).") from error
        if is_taken:
            raise FileExistsError(errno.EEXIST, "The file exists", place)
        with contextlib.suppress(
            OSError
        ):  # without a copy, the record is fetched when it is needed
            _storage.write_file(self.tasks / name, data)

    def _make_folder(self, folder: str) -> None:
        # An object store has no folders: there, fsspec would create a bucket that was mistyped.
        if _protocol(self.filesystem) not in BUCKET_PROTOCOLS:
            self.filesystem.makedirs(folder, exist_ok=True)

    def _is_there(self, place: str) -> bool:
        try:
            self.filesystem.info(place)  # fsspec's own `exists` answers False after any error
        except FileNotFoundError:
            return False
        return True

    def read_key_file(self) -> bytes | None:
        """Return the key at the address. Once this process has seen it, the local copy is used."""
        here = super().read_key_file()
        if here is not None and self.address in _confirmed_keys:
            return here
        if self.address in (_lost.get() or ()):
            return here
        place = self._place("key")
        try:
            there = self.filesystem.cat_file(place)
        except FileNotFoundError:
            return None  # a copy belongs to an archive that was removed
        except Exception:  # out of reach
            return here
        if len(there) > _storage.MAX_KEY_BYTES:
            raise RecordError(place, "it is not the key of an archive")
        if there != here:
            _storage.write_file(self.key_file, there, mode=0o600)
        _confirmed_keys.add(self.address)
        return there

    def write_key_file(self, data: bytes) -> None:
        """Write the key to the address, unless there is one.

        (If two are written at the very same moment, the later one stays.)
        """
        if self.address in (_lost.get() or ()):
            raise OutOfReachError(f"The archive {self.address} is out of reach.")
        place = self._place("key")
        try:
            if not self._is_there(place):
                self._make_folder(self._place("tasks"))
                self.filesystem.pipe_file(place, data)
        except Exception as error:
            raise OSError(f"The archive {self.address} cannot be written to ({error}).") from error

    def remove(self, id: str) -> bool:
        file = self.file(id)
        if os.path.lexists(file):
            _storage.reject_symlink(file.parent)
            with contextlib.suppress(FileNotFoundError):
                self.filesystem.rm_file(self._place("tasks", file.name))
        return super().remove(id)

    def set_aside(self, file: Path) -> str:
        """Move a record to the folder ``damaged`` at the address. Other files move locally."""
        if file.parent.name != "tasks":
            return super().set_aside(file)
        target = self._place(_storage.DAMAGED_FOLDER, file.name)
        self._make_folder(self._place(_storage.DAMAGED_FOLDER))
        self.filesystem.mv(self._place("tasks", file.name), target)
        file.unlink(missing_ok=True)
        return target

    def is_damaged(self, file: Path) -> bool:
        """Fetch a record again, because the download may have been incomplete, and check it."""
        if file.parent.name != "tasks":
            return True
        try:
            place = self._place("tasks", file.name)
            self.filesystem.invalidate_cache(self._place("tasks"))
            data = self.filesystem.cat_file(place)
            if len(data) != int(self.filesystem.info(place)["size"]):
                return False
            _storage.write_file(file, data)
            _storage.parse_record(data, file)
        except RecordError as error:
            return not isinstance(error.__cause__, OSError)
        except Exception:  # not now
            return False
        return False
