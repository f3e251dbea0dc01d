"""Addresses of archives: what is one, what it needs, and where the local copy is."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any


def is_remote(path: Any) -> bool:
    """Whether a path is an address.

    >>> is_remote("s3://bucket/past"), is_remote("/home/me/past")
    (True, False)
    """
    return isinstance(path, str) and "://" in path


def mirror_directory(address: str) -> Path:
    """Where the local copy of an address is; may be deleted at any time."""
    name = hashlib.blake2b(address.rstrip("/").encode(), digest_size=16).hexdigest()
    return user_directory("XDG_CACHE_HOME", ".cache", "Library/Caches") / "sktransfer" / "remote" / name


def user_directory(variable: str, home: str, home_on_mac: str) -> Path:
    """Where a user's files of one kind belong: by a variable of the XDG specification, or below home."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / home_on_mac
    xdg = os.environ.get(variable, "")
    return Path(xdg) if os.path.isabs(xdg) else Path.home() / home  # a relative path is to be ignored


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
