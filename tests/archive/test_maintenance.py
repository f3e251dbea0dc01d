"""Maintenance: remove and prune records, and verify files."""

import os
import platform
import time
import warnings
from datetime import UTC, datetime, timedelta

import pytest
from sklearn.datasets import load_iris

from sktransfer.archive import Archive
from sktransfer.dataset import profile
from sktransfer.task import Trial

X, y = load_iris(return_X_y=True)


# -- remove and prune ----------------------------------------------------------------------------


def test_remove_deletes_record(archive, make_task):
    archive.append(make_task(id="one"))
    archive.append(make_task(id="two"))
    archive.remove("one")
    archive.remove(archive["two"])
    assert len(archive) == 0
    for id in ("one", "../one", "", 3):
        with pytest.raises(KeyError, match="There is no task"):
            archive.remove(id)


def days_ago(n):
    return (datetime.now(UTC) - timedelta(days=n)).isoformat(timespec="seconds")


@pytest.fixture
def aged(archive, make_task):
    """Four records of one data set, two of unknown data, one without date; 0 to 50 days old."""
    p = profile(X, y)
    for n in range(4):
        archive.append(make_task(id=f"iris-{n}", created=days_ago(10 * n), profile=p))
    archive.append(make_task(id="unknown-4", created=days_ago(40)))
    archive.append(make_task(id="unknown-5", created=days_ago(50)))
    archive.append(make_task(id="no-date", created="long ago"))
    return archive


@pytest.mark.parametrize(
    ("rules", "gone"),
    [
        ({"older_than": 35}, ["unknown-5", "unknown-4"]),
        ({"older_than": timedelta(days=25)}, ["unknown-5", "unknown-4", "iris-3"]),
        ({"older_than": datetime(2000, 1, 1)}, []),
        ({"keep_newest": 2}, ["iris-3", "iris-2"]),
        ({"max_records": 2}, ["no-date", "unknown-5", "unknown-4", "iris-3", "iris-2"]),
        (
            {"keep_newest": 1, "max_records": 2},
            ["no-date", "unknown-5", "iris-3", "iris-2", "iris-1"],
        ),
    ],
)
def test_prune_removes_records_by_rule(aged, rules, gone):
    before = {task.id for task in aged}
    assert aged.prune(**rules, dry_run=True) == gone
    assert {task.id for task in aged} == before
    assert aged.prune(**rules) == gone
    assert {task.id for task in aged} == before - set(gone)


def test_prune_keeps_record_without_date(archive, make_task, tmp_path):
    archive.append(make_task(id="one"))
    archive.export(tmp_path / "shared.zip", times=False)
    other = Archive(tmp_path / "other")
    other.import_(tmp_path / "shared.zip")
    assert len(other) == 1 and not other.prune(older_than=1)


@pytest.mark.parametrize(
    "rules",
    [{}, {"older_than": "old"}, {"keep_newest": -1}, {"max_records": 1.5}, {"older_than": True}],
)
def test_prune_refuses_invalid_rules(aged, rules):
    with pytest.raises(ValueError, match=r"older_than|keep_newest|max_records"):
        aged.prune(**rules)
    assert len(aged) == 7


def test_prune_does_not_believe_dates_in_the_future(archive, make_task):
    for n in range(3):
        archive.append(make_task(id=f"own-{n}", created=days_ago(n)))
        archive.append(make_task(id=f"future-{n}", created="9999-12-31T23:59:59+00:00"))
    assert sorted(archive.prune(max_records=3)) == ["future-0", "future-1", "future-2"]


@pytest.mark.parametrize("origin", ["gift.zip", "imported from gift.zip"])
def test_prune_by_origin_takes_out_imported_records(archive, make_task, tmp_path, origin):
    other = Archive(tmp_path / "other")
    for n in range(3):
        other.append(make_task(id=f"theirs-{n}"))
    other.export(tmp_path / "gift.zip")
    archive.append(make_task(id="own"))
    archive.import_(tmp_path / "gift.zip")
    assert len(archive.prune(origin=origin, dry_run=True)) == 3
    assert archive.prune(origin=origin) == ["theirs-0", "theirs-1", "theirs-2"]
    assert [task.id for task in archive] == ["own"]
    assert archive.prune(origin="another.zip") == []
    with pytest.raises(ValueError, match="origin must be a text"):
        archive.prune(origin="")


def test_prune_keeps_journal_of_another_machine(archive, make_task, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(platform, "node", lambda: "elsewhere")
        journal = archive.journals.start(make_task(id="running", trials=()))
        journal.add(Trial.make({"C": 1.0}, 0.5), folds=[])
        journal.sync()
    assert [task.id for task in archive] == ["running"]
    assert archive.prune(max_records=0) == [] and journal.path.exists()
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(journal.path, (two_days_ago, two_days_ago))
    assert archive.prune(max_records=0) == ["running"] and not journal.path.exists()


# -- verify --------------------------------------------------------------------------------------


def test_verify_moves_old_temporary_files(archive, tasks_directory):
    old, young = tasks_directory / ".one.1-2.tmp", tasks_directory / ".two.1-2.tmp"
    for file in (old, young):
        file.write_bytes(b"half")
    os.utime(old, (time.time() - 3 * 24 * 3600,) * 2)
    (finding,) = archive.verify(repair=True)
    assert finding.file == str(old) and "stopped" in finding.problem
    assert young.exists() and not old.exists()


def test_verify_overwrites_no_moved_file(archive, tasks_directory):
    for content in (b"first", b"second"):
        (tasks_directory / "bad.joblib").write_bytes(content)
        archive.verify(repair=True)
    kept = [file.read_bytes() for file in sorted((archive.path / "damaged").iterdir())]
    assert sorted(kept) == [b"first", b"second"]


def test_verify_reads_files_that_are_cached(archive, make_task):
    """Damage is found even if size and time of the file are unchanged."""
    archive.append(make_task(id="one"))
    file = archive.path / "tasks" / "one.joblib"
    status = file.stat()
    assert archive["one"]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [finding.file for finding in archive.verify()] == [str(file)]


@pytest.mark.skipif(os.name == "nt", reason="links need a right on Windows")
def test_verify_and_remove_do_not_follow_links(archive, make_task, tmp_path):
    """A folder of an untrusted archive may be a link."""
    archive.append(make_task(id="mine"))
    (archive.path / "tasks" / "other.joblib").write_bytes(b"a model of mine")
    evil = Archive(tmp_path / "evil")
    evil.path.mkdir()
    for folder in ("tasks", "models"):
        (evil.path / folder).symlink_to(archive.path / "tasks")
    before = sorted(os.listdir(archive.path / "tasks"))
    problems = evil.verify(repair=True)
    assert {finding.moved for finding in problems} == {None}
    assert sum("is a link" in finding.problem for finding in problems) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the file that is no record
        with pytest.raises(OSError, match="is a link"):
            evil.remove("mine")
        with pytest.raises(OSError, match="is a link"):
            evil.prune(max_records=0)
    assert sorted(os.listdir(archive.path / "tasks")) == before
