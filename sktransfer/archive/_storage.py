"""Where an archive is, and how a record gets there: whole or not at all, without locks."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import uuid
from pathlib import Path

from sktransfer.archive import _checksum
from sktransfer.archive._address import is_remote, mirror_directory, user_directory
from sktransfer.utils._values import Plain

SUFFIX = ".joblib"
VARIABLE = "SKTRANSFER_ARCHIVE"
STARTER_VARIABLE = "SKTRANSFER_STARTER"
PACKAGED_STARTER = Path(__file__).parent / "starter"


def archive_directory(path: str | os.PathLike[str]) -> Path:
    """The absolute directory that `path` stands for at this moment; "auto" is the user's own archive.

    For an address such as ``s3://...`` it is the local copy.
    """
    if path == "auto":
        data = user_directory("XDG_DATA_HOME", ".local/share", "Library/Application Support")
        path = os.environ.get(VARIABLE) or data / "sktransfer" / "archive"
    if is_remote(path):
        return mirror_directory(os.fspath(path))
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise NotADirectoryError(
            errno.ENOTDIR, "There is no such home directory; give another path", expanded
        )
    directory = Path(os.path.abspath(expanded))
    for part in (directory / "tasks", directory, *directory.parents):
        if part.exists() and not part.is_dir():
            raise NotADirectoryError(
                errno.ENOTDIR, "An archive is a directory, but this is a file; give another path", str(part)
            )
    return directory


def starter_directory() -> Path | None:
    """The folder of the starter archive: the package's, another one, or None if it is not wanted."""
    said = os.environ.get(STARTER_VARIABLE)
    return None if said == "none" else Path(said) if said else PACKAGED_STARTER


def record_files(directory: Path) -> list[Path]:
    """Record files, sorted by id. Files of writers at work begin with a dot."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    ids = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX) and name[0] != "."]
    return [directory / (name + SUFFIX) for name in sorted(ids)]


def dump(record: Plain) -> bytes:
    """The bytes of a record file: a pickle of plain data, which is what `joblib.load` opens.

    `joblib.dump` would write the same, for it adds something for arrays only, but takes ten times as long.
    A dict, as every record is, ends with its checksum.
    """
    if type(record) is not dict:
        return pickle.dumps(record, protocol=4)
    return _checksum.seal(pickle.dumps(_checksum.with_place(record), protocol=4))


def write(path: Path, data: bytes, new: bool = False) -> None:
    """Write a file that nobody sees before it is complete and safe on disk.

    With `new` it is a FileExistsError if another is there, even if that came this very moment.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        refuse_link(path.parent)
        write_aside(path, data, new)
    except PermissionError as error:
        raise PermissionError(
            error.errno,
            "The archive cannot be written to; give another path, or open it readonly",
            str(path.parent),
        ) from error
    sync_directory(path.parent)


def refuse_link(folder: Path) -> None:
    """Raise an OSError if a folder of the archive is a link: a copied archive could lead anywhere by it."""
    if folder.is_symlink():
        raise OSError(
            errno.ELOOP,
            "This folder is a link, which may lead out of the archive; nothing in it is changed",
            folder,
        )


def remove(file: Path) -> None:
    """Delete a file of the archive; one that is gone already is no error."""
    refuse_link(file.parent)
    file.unlink(missing_ok=True)


def write_aside(path: Path, data: bytes, new: bool = False) -> None:
    """Write a file under another name, and give it its own when it is complete and safe on disk."""
    aside = path.with_name(f".{path.stem}.{os.getpid()}-{uuid.uuid4().hex}.tmp")
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not new or not _named(aside, path):
            os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def _named(aside: Path, path: Path) -> bool:
    """Give a file a name that nothing has yet; False where the file system cannot do that."""
    try:
        os.link(aside, path)
    except FileExistsError:
        raise
    except OSError:  # no links here; of a disk that fails `os.replace` will tell
        if path.exists():
            raise FileExistsError(errno.EEXIST, "It is there already", str(path)) from None
        return False
    aside.unlink()
    return True


def sync_directory(directory: Path) -> None:
    """Make the new name itself safe. Not every system can (Windows opens no directories)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
