"""Fixtures: an archive in a temporary folder, and tasks to append to it."""

import pytest

from sktransfer.archive import Archive
from sktransfer.task import Task


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path / "past")


@pytest.fixture
def tasks_directory(archive):
    """The folder of the records of `archive`, which exists already."""
    directory = archive.path / "tasks"
    directory.mkdir(parents=True)
    return directory


@pytest.fixture(scope="session")
def make_task():
    """Make a small task; keywords as for `Task.from_trials`."""

    def make(space=None, trials=(({"C": 1.0}, 0.9), ({"C": 10.0}, float("nan"))), **options):
        return Task.from_trials(space or {"C": [1.0, 10.0]}, trials, **options)

    return make
