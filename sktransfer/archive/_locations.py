"""Where archives are: the user's own, that of a path, the copy of an address, the starter's."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path

from sktransfer.utils._hashing import hash_bytes

VARIABLE = "SKTRANSFER_ARCHIVE"
STARTER_VARIABLE = "SKTRANSFER_STARTER"
OFF = "none"  # value of both variables
PACKAGED_STARTER = Path(__file__).parent / "starter"


def is_remote(path: object) -> bool:
    """Whether a path is an address, not a directory.

    >>> is_remote("s3://bucket/past"), is_remote("/home/me/past")
    (True, False)
    """
    return isinstance(path, str) and "://" in path


def archive_directory(path: str | os.PathLike[str]) -> Path:
    """Return the absolute directory that `path` refers to now. "auto" is the user's own archive.

    For an address such as ``s3://...`` it is the local copy.
    """
    path = resolve_path(path)
    if is_remote(path):
        return mirror_directory(os.fspath(path))
    expanded = os.fspath(path)
    if expanded.startswith("~"):
        raise NotADirectoryError(
            errno.ENOTDIR, "This home directory does not exist. Pass another path", expanded
        )
    directory = Path(os.path.abspath(expanded))
    for part in (directory / "tasks", directory, *directory.parents):
        if _is_file(part):
            raise NotADirectoryError(
                errno.ENOTDIR,
                "An archive is a directory, but this is a file. Pass another path",
                str(part),
            )
    return directory


def _is_file(path: Path) -> bool:
    """Whether something other than a directory is there. If the system does not say, it is not."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except (OSError, MemoryError, ValueError):  # also for a path that cannot be encoded
        return False


def resolve_path(path: str | os.PathLike[str]) -> Path | str:
    """Return the absolute path, or the address, that `path` refers to now."""
    if path == "auto":
        if is_switched_off(path):
            raise ValueError(
                f"{VARIABLE}={OFF} switches the user's own archive off. Pass the path of another."
            )
        path = os.environ.get(VARIABLE) or default_directory()
    if is_remote(path):
        return os.fspath(path)
    expanded = os.path.expanduser(path)
    return Path(expanded if expanded.startswith("~") else os.path.abspath(expanded))


def is_switched_off(path: object) -> bool:
    """Whether `path` is the user's own archive, and the user has switched it off."""
    return path == "auto" and os.environ.get(VARIABLE) == OFF


def default_directory() -> Path:
    """Return the directory of the user's own archive, unless the environment names another."""
    data = user_directory("XDG_DATA_HOME", ".local/share", "Library/Application Support")
    return data / "sktransfer" / "archive"


def is_default_directory(path: object) -> bool:
    """Whether `path` is the user's own archive at a place that the user did not choose."""
    with contextlib.suppress(RuntimeError):  # there is no home directory
        return path == default_directory()
    return False


def mirror_directory(address: str) -> Path:
    """Return the directory of the local copy of an address. It may be deleted at any time."""
    name = hash_bytes(address.rstrip("/").encode(), 16).hex()
    caches = user_directory("XDG_CACHE_HOME", ".cache", "Library/Caches")
    return caches / "sktransfer" / "remote" / name


def user_directory(variable: str, home: str, home_on_mac: str) -> Path:
    """Return the user's directory of one kind, by an XDG variable or below home."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / home_on_mac
    xdg = os.environ.get(variable, "")
    # The specification says that a relative path must be ignored.
    return Path(xdg) if os.path.isabs(xdg) else Path.home() / home


def starter_directory() -> Path | None:
    """Return the folder of the starter archive, or None if the user has switched it off."""
    setting = os.environ.get(STARTER_VARIABLE)
    return None if setting == OFF else Path(setting) if setting else PACKAGED_STARTER
