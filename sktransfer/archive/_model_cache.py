"""The model cache: surrogates trained on past tasks, so that the next search need not train.

``models/<settings>-<tasks>.npz``: the name contains hashes of the settings and of the tasks, so
that only matching files are opened. The cache may be deleted at any time. An invalid file is
ignored.

The files may come from an untrusted source, and numpy trusts their headers. So a file is checked
first, which bounds the cost of reading by its size: no compression, members that fit into the file
together, arrays that are as large as their headers say, and no dtype that could hold an object.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import re
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from sktransfer.archive import _storage
from sktransfer.exceptions import ArchiveWarning, RecordError
from sktransfer.utils._hashing import hash_bytes
from sktransfer.utils._user_warnings import warn_user
from sktransfer.utils._values import Plain, describe

MODEL_FORMAT = 1
"""Part of every name, so that files of another format are not found, and are pruned in time.

Raise it when existing files must not be used any more: when the members of a file, the way a name
is made, or the meaning of either changes. Do not raise it when the arrays of a surrogate change:
those have a number of their own, in the settings.
"""

MAX_PER_SETTINGS, MAX_FILES = 12, 200
MAX_BYTES = 64 * 2**20
MAX_TEXTS = 2**18  # in one file; a model of ten thousand tasks names each of them
MAX_LIST_BYTES = 2**20  # of the list of members at the end of a file; a member takes about 80
STALE_SECONDS = 24 * 3600  # writing a file never takes longer

_SUFFIX = ".npz"
_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}\.npz")
_TEMPORARY_NAME = re.compile(r"\.[0-9a-f]{32}-[0-9a-f]{32}\..*\.tmp")
_KEY = re.compile(r"[\w.:/ -]{1,200}")  # names that a ZIP file returns unchanged, on every system
_KINDS = "biufU"
# Every array has one of two prefixes, so that no key of a model is taken for a name of the cache
# itself or for a parameter of numpy.savez.
_STORE, _MODEL = "store/", "model/"


@dataclass(frozen=True)
class ModelCache:
    """The cached models of an archive. See `Archive.model_cache`.

    A model is a dict of arrays of numbers, booleans or text. It is identified by its settings and
    by the ids of the tasks it was trained on. Records never change, so an id always means the same
    task.

    Parameters
    ----------
    directory : Path
        Where the files are. It is created by the first `put`.
    readonly : bool, default=False
        Whether `put` does nothing.

    Notes
    -----
    Settings are plain data: the surrogate's class and parameters, the space, and everything else a
    model depends on. They are compared as JSON, hence ``1`` is not ``1.0``. A value that is not
    plain is represented by its description, as in a record.

    Examples
    --------
    >>> from sktransfer.archive import Archive
    >>> models = Archive().model_cache
    >>> models.put({"surrogate": "A"}, ["t1", "t2", "t3"], {"weights": np.array([0.5, 2.0])})
    >>> models.get({"surrogate": "A"}, ["t3", "t2", "t1"])
    {'weights': array([0.5, 2. ])}
    """

    directory: Path
    readonly: bool = False

    def get(
        self, settings: Mapping[str, Any], tasks: Iterable[str]
    ) -> dict[str, np.ndarray] | None:
        """Return the model of exactly these settings and tasks.

        Parameters
        ----------
        settings : mapping of plain data
        tasks : iterable of str
            Ids, in any order.

        Returns
        -------
        dict of str to ndarray, or None
            None if there is no such model.

        Examples
        --------
        >>> from sktransfer.archive import Archive
        >>> Archive().model_cache.get({"surrogate": "A"}, ["t1"]) is None
        True
        """
        wanted = frozenset(tasks)
        return _read(self._file(settings, wanted), _MODEL) if self.has(settings, wanted) else None

    def has(self, settings: Mapping[str, Any], tasks: Iterable[str]) -> bool:
        """Whether there is a model of exactly these settings and tasks. Its arrays are not read."""
        wanted = frozenset(tasks)
        return _tasks_of(self._file(settings, wanted)) == wanted

    def nearest(
        self, settings: Mapping[str, Any], tasks: Iterable[str]
    ) -> dict[str, np.ndarray] | None:
        """Return the model of these settings that was trained on most of these tasks.

        Training may start from it. A model that was trained on any other task is not returned: that
        task may be excluded because it saw rows of the target's data.

        Parameters
        ----------
        settings : mapping of plain data
        tasks : iterable of str
            Ids, in any order.

        Returns
        -------
        dict of str to ndarray, or None
            The newest if there are several. None if there is none.

        Examples
        --------
        >>> from sktransfer.archive import Archive
        >>> models = Archive().model_cache
        >>> models.put({}, ["t1", "t2"], {"bias": np.array(1)})
        >>> models.nearest({}, ["t1", "t2", "t3"])
        {'bias': array(1)}
        >>> models.nearest({}, ["t2", "t3"]) is None
        True
        """
        wanted = frozenset(tasks)
        group = _digest_of_settings(settings)
        candidates = []
        for time_ns, file in self._files():
            if file.name.startswith(group):
                known = _tasks_of(file) or frozenset()
                if known and known <= wanted:
                    candidates.append((len(known), time_ns, file))
        for _, _, file in sorted(candidates, reverse=True):
            if (model := _read(file, _MODEL)) is not None:
                return model
        return None

    def put(
        self, settings: Mapping[str, Any], tasks: Iterable[str], arrays: Mapping[str, np.ndarray]
    ) -> None:
        """Write a model, and delete the oldest ones if there are many.

        A model that cannot be written causes a warning, not an error, because it can be trained
        again.

        Parameters
        ----------
        settings : mapping of plain data
        tasks : iterable of str
            Ids of the tasks it was trained on, in any order.
        arrays : mapping of str to ndarray
            The model.

        Raises
        ------
        TypeError
            If an array holds anything but numbers, booleans and text.
        ValueError
            If the name of an array is not made of letters, digits, blanks and ``_ . : / -``.

        Examples
        --------
        >>> from sktransfer.archive import Archive
        >>> Archive().model_cache.put({}, ["t1"], {"kernel": np.array([None])})
        Traceback (most recent call last):
        TypeError: The array 'kernel' has dtype object; a model holds numbers, booleans and text.
        """
        if self.readonly:
            return
        known = frozenset(tasks)
        try:
            file, data = self._file(settings, known), _dump(known, arrays)
            if len(data) > MAX_BYTES:
                raise OSError(errno.EFBIG, f"it has more than {MAX_BYTES // 2**20} MiB")
            _storage.write_file(file, data)
            self._prune(file)
        except _storage.FAULTS as error:
            reason = _storage.describe_fault(error)
            warn_user(
                f"A trained model was not cached in {self.directory} ({reason}). It "
                "will have to be trained again.",
                ArchiveWarning,
            )

    def _file(self, settings: Mapping[str, Any], tasks: frozenset[str]) -> Path:
        name = f"{_digest_of_settings(settings)}-{_digest(sorted(tasks))}{_SUFFIX}"
        return self.directory / name

    def _files(self, pattern: re.Pattern[str] = _NAME) -> list[tuple[int, Path]]:
        """List time of change and path of each model file. Other files are ignored."""
        found = []
        with contextlib.suppress(*_storage.FAULTS), os.scandir(self.directory) as entries:
            for entry in entries:
                if pattern.fullmatch(entry.name):
                    with contextlib.suppress(*_storage.FAULTS):  # removed since
                        found.append((entry.stat().st_mtime_ns, Path(entry.path)))
        return found

    def _prune(self, newest: Path) -> None:
        """Delete the oldest files if there are too many. `newest` stays in any case."""
        files = sorted(self._files(), key=lambda found: (found[1] == newest, found), reverse=True)
        kept: Counter[str] = Counter()
        for _, file in files:
            group = file.name.partition("-")[0]
            if kept[group] < MAX_PER_SETTINGS and kept.total() < MAX_FILES:
                kept[group] += 1
            else:
                _remove(file)
        # Files of killed writers. Those of running ones are younger.
        for time_ns, file in self._files(_TEMPORARY_NAME):
            if time.time() - time_ns / 1e9 > STALE_SECONDS:
                _remove(file)


def _remove(file: Path) -> None:
    # If it is open elsewhere (Windows) or belongs to another user, the next `put` tries again.
    with contextlib.suppress(*_storage.FAULTS):
        _storage.remove_file(file)


def _digest_of_settings(settings: Mapping[str, Any]) -> str:
    return _digest([MODEL_FORMAT, describe(settings)])


def _digest(plain: Plain) -> str:
    text = json.dumps(plain, sort_keys=True, allow_nan=True)
    return hash_bytes(text.encode(), 16).hex()


# -- the file ------------------------------------------------------------------------------------


def _dump(tasks: frozenset[str], arrays: Mapping[str, np.ndarray]) -> bytes:
    members = {
        _STORE + "format": np.array(MODEL_FORMAT),
        _STORE + "tasks": np.array(sorted(tasks), dtype=str),
    }
    for key, value in arrays.items():
        array = np.asarray(value)
        if not _KEY.fullmatch(key):
            raise ValueError(
                f"{key!r} cannot be the name of an array. Use letters, digits, blanks and _ . : / -"
            )
        if not _is_allowed(array.dtype):
            found = f"The array {key!r} has dtype {array.dtype}"
            raise TypeError(f"{found}; a model holds numbers, booleans and text.")
        members[_MODEL + key] = array
    buffer = io.BytesIO()
    np.savez(buffer, **members)  # type: ignore[arg-type]  # none of them is called allow_pickle
    return buffer.getvalue()


def _is_allowed(dtype: np.dtype) -> bool:
    # A text of no length (<U0) takes no bytes, so a file could claim any number of them. An archive
    # that was copied from another kind of machine has another byte order, which torch would refuse.
    return dtype.kind in _KINDS and dtype.itemsize > 0 and dtype.isnative


def find_model_problem(file: Path) -> tuple[str, bool] | None:
    """Say what is wrong with a file, and whether this is certain. For `Archive.verify`."""
    try:
        for prefix in (_STORE, _MODEL):
            _read_arrays(file, prefix)
    except FileNotFoundError:  # removed since
        return None
    except RecordError as error:
        return error.reason, not isinstance(error.__cause__, OSError)
    except Exception:
        return "it is not a valid model", True
    return None if _tasks_of(file) is not None else ("it is not a valid model", True)


def _tasks_of(file: Path) -> frozenset[str] | None:
    """Return the ids of the tasks that a model was trained on; None if the file is not a model."""
    held = _read(file, _STORE) or {}
    ids = held.get("tasks")
    if ids is None or ids.ndim != 1 or not np.array_equal(held.get("format", 0), MODEL_FORMAT):
        return None
    return frozenset(ids.tolist())


def _read(path: Path, prefix: str) -> dict[str, np.ndarray] | None:
    """Return the arrays whose names begin with `prefix`; None if the file is invalid."""
    try:
        return _read_arrays(path, prefix)
    except Exception:  # zipfile and numpy can raise almost anything on invalid bytes
        return None


def _read_arrays(path: Path, prefix: str) -> dict[str, np.ndarray]:
    with _storage.open_bounded(path, MAX_BYTES) as file:
        size, n_members = _storage.check_zip_end(file, MAX_LIST_BYTES)
        with zipfile.ZipFile(file) as content:
            return {
                member.filename.removeprefix(prefix).removesuffix(".npy"): _array(content, member)
                for member in _checked_members(content, size, n_members)
                if member.filename.startswith(prefix)
            }


def _checked_members(content: zipfile.ZipFile, size: int, n_members: int) -> list[zipfile.ZipInfo]:
    members = [each for each in content.infolist() if each.filename.startswith((_STORE, _MODEL))]
    if len(members) != n_members:
        raise ValueError("a member or its name was lost, so the model would be incomplete")
    if sum(member.file_size for member in members) > size:
        raise ValueError("members overlap, and could be the same bytes many times")
    return members


def _array(content: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError("compressed members could be a thousand times as large as the file")
    with content.open(member) as stream:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError("this is not an array as numpy.savez writes it")
        shape, _, dtype = npy.read_array_header_1_0(stream)
        n_bytes = math.prod(shape) * dtype.itemsize
        if not _is_allowed(dtype) or n_bytes != member.file_size - stream.tell():
            raise ValueError("the header does not match the bytes")
        if not all(0 <= n <= MAX_BYTES for n in shape):
            raise ValueError("this array is empty, but very long in another direction")
        stream.seek(0)
        array = np.load(stream, allow_pickle=False)
    if dtype.kind == "U":
        if array.size > MAX_TEXTS:
            raise ValueError("a text takes many times its size in the file")
        # An error here, not later, if a character is invalid.
        if np.frombuffer(array.tobytes(), np.uint32).max(initial=0) > sys.maxunicode:
            raise ValueError("this is not a text")
    return array
