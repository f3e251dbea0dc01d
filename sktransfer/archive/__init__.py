"""Past tunings on disk: append, read, and select those that may speak about today's problem."""

from sktransfer.archive._address import is_remote
from sktransfer.archive._archive import Archive
from sktransfer.archive._errors import NewerFormatError, RecordError
from sktransfer.archive._format import library_versions
from sktransfer.archive._select import Selection, check_overlap
from sktransfer.archive._share import Received
from sktransfer.archive._starter import Starter, starter_folder
from sktransfer.archive._verify import Finding

__all__ = [
    "Archive",
    "Finding",
    "NewerFormatError",
    "Received",
    "RecordError",
    "Selection",
    "Starter",
    "check_overlap",
    "is_remote",
    "library_versions",
    "starter_folder",
]
