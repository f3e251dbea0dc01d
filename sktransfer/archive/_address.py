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
    return _user_cache() / "sktransfer" / "remote" / name


def _user_cache() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache"


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
