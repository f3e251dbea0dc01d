"""Past tasks on disk: append them, read them, and select those to use for a target task."""

from sktransfer.archive._archive import Archive
from sktransfer.archive._exchange import ImportReport
from sktransfer.archive._journal import Journal
from sktransfer.archive._key import ArchiveKey
from sktransfer.archive._locations import is_remote
from sktransfer.archive._maintenance import Finding
from sktransfer.archive._outline import Outline, make_outline, tabulate_outlines
from sktransfer.archive._record import library_versions
from sktransfer.archive._remote import OutOfReachError, connect_once
from sktransfer.archive._selection import (
    Limit,
    Selection,
    check_overlap,
    load_tasks,
    outlines_of,
    select_past_tasks,
)
from sktransfer.archive._starter import Starter, starter_folder
from sktransfer.exceptions import NewerFormatError, RecordError

__all__ = [
    "Archive",
    "ArchiveKey",
    "Finding",
    "ImportReport",
    "Journal",
    "Limit",
    "NewerFormatError",
    "OutOfReachError",
    "Outline",
    "RecordError",
    "Selection",
    "Starter",
    "check_overlap",
    "connect_once",
    "is_remote",
    "library_versions",
    "load_tasks",
    "make_outline",
    "outlines_of",
    "select_past_tasks",
    "starter_folder",
    "tabulate_outlines",
]
