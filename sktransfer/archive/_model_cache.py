"""Meta-models that were trained on past tasks, kept so that the next search need not train them again.

``models/<settings>-<tasks>.npz``: the name says what a model was trained under and on, so that nothing is
opened in vain. All of it may be deleted at any time, and whatever is wrong with a file, it is "not there".

The files may come from a stranger, and numpy trusts what they claim. So a file is put to tests first, which
bound what reading it costs by its size: no compression, members that fit into the file together, arrays
that are as large as their headers say, and no dtype that could hold an object.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import stat
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from sktransfer.archive import _storage
from sktransfer.utils._values import describe

MODEL_FORMAT = 1
"""Part of every name, so that files of another format are not found, and go with time.

To be raised when a file that is there must not be used any more: if the members of a file, the way a name
is made, or the meaning of either changes. Not for the arrays of a surrogate: those are its own matter, and
a number of its own belongs into the settings.
"""

MAX_PER_SETTINGS, MAX_FILES = 12, 200
MAX_BYTES = 256 * 2**20
MAX_DIRECTORY_BYTES = 2**20  # of the list of members at the end of a file; one takes about 80
STALE_SECONDS = 24 * 3600  # nobody takes longer to write a file

_SUFFIX = ".npz"
_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}\.npz")
_ASIDE = re.compile(r"\.[0-9a-f]{32}-[0-9a-f]{32}\..*\.tmp")
_KEY = re.compile(r"[\w.:/ -]{1,200}")  # what a ZIP file gives back as it was, on every system
_KINDS = "biufU"
# Every array has one of two prefixes: no key of a model can be taken for a name of the store's own, nor
# for a parameter of numpy.savez.
_STORE, _MODEL = "store/", "model/"


@dataclass(frozen=True)
class ModelStore:
    """The cached meta-models of an archive; see `Archive.model_cache`.

    A model is a dict of arrays of numbers, truth values or text. It is known by its settings and by the
    ids of the tasks it was trained on. Records never change, so neither does what an id stands for.

    Parameters
    ----------
    directory : Path
        Where the files are. It is made by the first `put`.
    readonly : bool, default=False
        Whether `put` does nothing.

    Notes
    -----
    Settings are plain data: the surrogate's class and parameters, the space, and whatever else a model
    depends on. They are compared as JSON, hence ``1`` is not ``1.0``; a value that is not plain goes by
    its description, as in a record.

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

    def get(self, settings: Mapping[str, Any], tasks: Iterable[str]) -> dict[str, np.ndarray] | None:
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
        """Whether there is a model of exactly these settings and tasks; its arrays are not looked at."""
        wanted = frozenset(tasks)
        return _tasks_of(self._file(settings, wanted)) == wanted

    def nearest(self, settings: Mapping[str, Any], tasks: Iterable[str]) -> dict[str, np.ndarray] | None:
        """Return the model of these settings that was trained on most of these tasks, to go on from it.

        One that was trained on any other task is not taken: that one may have been refused, because it
        saw rows of today's data.

        Parameters
        ----------
        settings : mapping of plain data
        tasks : iterable of str
            Ids, in any order.

        Returns
        -------
        dict of str to ndarray, or None
            The newest if there are several; None if there is none.

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
        """Keep a model, and drop the oldest ones if there are many.

        A model that cannot be written is a reason for a warning, not for an error: it can be trained again.

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
            If an array holds anything but numbers, truth values and text.
        ValueError
            If the name of an array is not made of letters, digits, blanks and ``_ . : / -``.

        Examples
        --------
        >>> from sktransfer.archive import Archive
        >>> Archive().model_cache.put({}, ["t1"], {"kernel": np.array([None])})
        Traceback (most recent call last):
        TypeError: The array 'kernel' has the dtype object; a model holds numbers, truth values and text.
        """
        if self.readonly:
            return
        known = frozenset(tasks)
        file, data = self._file(settings, known), _dump(known, arrays)
        try:
            if len(data) > MAX_BYTES:
                raise OSError(errno.EFBIG, f"It has more than {MAX_BYTES // 2**20} MiB")
            _storage.write(file, data)
            self._prune(file)
        except OSError as error:
            warnings.warn(
                f"A trained model was not kept in {self.directory}, and will have to be trained again: "
                f"{error.strerror or error}.",
                stacklevel=2,
            )

    def _file(self, settings: Mapping[str, Any], tasks: frozenset[str]) -> Path:
        return self.directory / f"{_digest_of_settings(settings)}-{_digest(sorted(tasks))}{_SUFFIX}"

    def _files(self, pattern: re.Pattern[str] = _NAME) -> list[tuple[int, Path]]:
        """Time of change and path of each file of our own; other files in the folder are left alone."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                if pattern.fullmatch(entry.name):
                    with contextlib.suppress(OSError):  # removed by somebody since
                        found.append((entry.stat().st_mtime_ns, Path(entry.path)))
        return found

    def _prune(self, newest: Path) -> None:
        """Drop what is too much; never `newest`, even if the clock says that it is old."""
        files = sorted(self._files(), key=lambda found: (found[1] == newest, found), reverse=True)
        kept: Counter[str] = Counter()
        for _, file in files:
            group = file.name.partition("-")[0]
            if kept[group] < MAX_PER_SETTINGS and kept.total() < MAX_FILES:
                kept[group] += 1
            else:
                _remove(file)
        # What writers leave who were killed; those at work are younger.
        for time_ns, file in self._files(_ASIDE):
            if time.time() - time_ns / 1e9 > STALE_SECONDS:
                _remove(file)


def _remove(file: Path) -> None:
    # Gone already, open elsewhere (Windows), somebody else's: the next `put` tries again.
    with contextlib.suppress(OSError):
        _storage.remove(file)


def _digest_of_settings(settings: Mapping[str, Any]) -> str:
    return _digest([MODEL_FORMAT, describe(settings)])


def _digest(plain: Any) -> str:
    text = json.dumps(plain, sort_keys=True, allow_nan=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# -- the file ------------------------------------------------------------------------------------


def _dump(tasks: frozenset[str], arrays: Mapping[str, Any]) -> bytes:
    members = {
        _STORE + "format": np.array(MODEL_FORMAT),
        _STORE + "tasks": np.array(sorted(tasks), dtype=str),
    }
    for key, value in arrays.items():
        array = np.asarray(value)
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} cannot be the name of an array: letters, digits, blanks and _ . : / -")
        if not _is_sound(array.dtype):
            found = f"The array {key!r} has the dtype {array.dtype}"
            raise TypeError(f"{found}; a model holds numbers, truth values and text.")
        members[_MODEL + key] = array
    buffer = io.BytesIO()
    np.savez(buffer, **members)  # type: ignore[arg-type]  # none of them is called allow_pickle
    return buffer.getvalue()


def _is_sound(dtype: np.dtype) -> bool:
    # A text of no length (<U0) takes no bytes, so a file could claim any number of them. Foreign byte order:
    # an archive that was moved to another kind of machine; torch would refuse the array.
    return dtype.kind in _KINDS and dtype.itemsize > 0 and dtype.isnative


def is_sound_model(file: Path) -> bool:
    """Whether a file can be used; for `Archive.verify`."""
    return _tasks_of(file) is not None and _read(file, _MODEL) is not None


def _tasks_of(file: Path) -> frozenset[str] | None:
    """Ids of the tasks that a model was trained on; None if the file is no model."""
    held = _read(file, _STORE) or {}
    ids = held.get("tasks")
    if ids is None or ids.ndim != 1 or not np.array_equal(held.get("format", 0), MODEL_FORMAT):
        return None
    return frozenset(ids.tolist())


def _read(path: Path, prefix: str) -> dict[str, np.ndarray] | None:
    """The arrays whose names begin with `prefix`; None if anything is wrong with the file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):  # a pipe would wait for ever, a link lead anywhere
            return None
        with path.open("rb") as file:
            size, n_members = _checked_end(file)
            with zipfile.ZipFile(file) as content:
                return {
                    member.filename.removeprefix(prefix).removesuffix(".npy"): _array(content, member)
                    for member in _checked_members(content, size, n_members)
                    if member.filename.startswith(prefix)
                }
    except Exception:  # zipfile and numpy raise almost anything on bytes that make no sense
        return None


def _checked_end(file: BinaryIO) -> tuple[int, int]:
    """Size and number of members of a ZIP file, after a look at its last record.

    ZipFile makes an object of each member that is listed, so a list of millions must not get there. The
    record is one without a comment, and not of the ZIP64 kind, which would point to another one.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 42))
    tail = file.read(42)
    end = tail[-22:]
    plain = end[:4] == b"PK\5\6" and end[-2:] == b"\0\0" and tail[:4] != b"PK\6\7"
    if not plain or size > MAX_BYTES or int.from_bytes(end[12:16], "little") > MAX_DIRECTORY_BYTES:
        raise ValueError("not a file of this store")
    return size, int.from_bytes(end[10:12], "little")


def _checked_members(content: zipfile.ZipFile, size: int, n_members: int) -> list[zipfile.ZipInfo]:
    members = [each for each in content.infolist() if each.filename.startswith((_STORE, _MODEL))]
    if len(members) != n_members:
        raise ValueError("a member or its name was lost: the model would not be whole")
    if sum(member.file_size for member in members) > size:
        raise ValueError("members overlap, and could be the same bytes many times over")
    return members


def _array(content: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError("compressed: it could be a thousand times as large as the file")
    with content.open(member) as stream:
        if npy.read_magic(stream) != (1, 0):
            raise ValueError("not an array as numpy.savez writes it")
        shape, _, dtype = npy.read_array_header_1_0(stream)
        n_bytes = math.prod(shape) * dtype.itemsize
        if not _is_sound(dtype) or n_bytes != member.file_size - stream.tell():
            raise ValueError("the header does not fit the bytes")
        if not all(0 <= n <= MAX_BYTES for n in shape):
            raise ValueError("an empty array, but one that is very long in another direction")
        stream.seek(0)
        array = np.load(stream, allow_pickle=False)
    if dtype.kind == "U":
        array.ravel().tolist()  # raises an error if a character is none: better here than where it is used
    return array
