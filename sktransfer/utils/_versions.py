"""Versions of everything that a report of a problem should name."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

REQUIRED = ("sktransfer", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "torch")
OPTIONAL = ("matplotlib", "pandas", "polars", "fsspec", "s3fs", "tqdm", "rich")


def library_versions() -> dict[str, str | None]:
    """Versions of the libraries that the package uses; None for those that are not installed."""
    found: dict[str, str | None] = {}
    for name in (*REQUIRED, *OPTIONAL):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    if found["sktransfer"] is None and (module := sys.modules.get("sktransfer")):
        found["sktransfer"] = f"{module.__version__} (not installed)"
    return found


def show_versions() -> None:
    """Print the versions of Python, the system and all libraries that the package uses.

    Please include the output when you report a problem.

    Examples
    --------
    >>> import sktransfer
    >>> sktransfer.show_versions()
    System:
        python: ...
    Libraries:
        sktransfer: ...
    """
    system = {
        "python": sys.version.replace("\n", " "),
        "executable": sys.executable,
        "machine": platform.platform(),
        "cores": os.cpu_count(),
    }
    print("System:")
    for name, value in system.items():
        print(f"{name:>14}: {value}")
    print("\nLibraries:")
    for name, version in library_versions().items():
        print(f"{name:>14}: {version}")
