"""Storage: directories, atomic writes, many processes, and the cache of records."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import joblib
import pytest

from sktransfer.archive import Archive, RecordError, _locations, _storage
from sktransfer.archive._plain_pickle import dumps_plain

needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="processes start quickly only by fork"
)


def start(function, *arguments):
    """Run `function` in another process."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    return process


# -- directories ---------------------------------------------------------------------------------


def test_auto_path_is_resolved_when_used(monkeypatch, tmp_path, make_task):
    archive = Archive()
    monkeypatch.setenv("SKTRANSFER_ARCHIVE", str(tmp_path / "later"))
    id = archive.append(make_task())
    assert (tmp_path / "later" / "tasks" / f"{id}.joblib").is_file()


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_DATA_HOME", "{tmp}/xdg", "{tmp}/xdg"),
        ("linux", "XDG_DATA_HOME", "relative", "{tmp}/.local/share"),
        ("linux", "XDG_DATA_HOME", None, "{tmp}/.local/share"),
        ("darwin", "XDG_DATA_HOME", "{tmp}/xdg", "{tmp}/Library/Application Support"),
        ("win32", "LOCALAPPDATA", "{tmp}/local", "{tmp}/local"),
        ("win32", "LOCALAPPDATA", None, "{tmp}/AppData/Local"),
    ],
)
@pytest.mark.parametrize("unset", [True, False])
def test_archive_directory_follows_platform(
    monkeypatch, tmp_path, platform, variable, value, expected, unset
):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    if unset:
        monkeypatch.delenv("SKTRANSFER_ARCHIVE")
    else:
        monkeypatch.setenv("SKTRANSFER_ARCHIVE", "")
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value.format(tmp=tmp_path))
    found = _locations.archive_directory("auto")
    assert found == Path(expected.format(tmp=tmp_path)) / "sktransfer" / "archive"


def test_archive_directory_expands_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert _locations.archive_directory("~/past") == tmp_path / "past"


def test_archive_raises_if_path_is_file(tmp_path, make_task):
    file = tmp_path / "file"
    file.write_text("not a directory")
    archive = Archive(file)
    for use in (len, list, lambda a: a.append(make_task()), lambda a: a["x"], lambda a: a.select()):
        with pytest.raises(
            NotADirectoryError, match=r"An archive is a directory.*Pass another path.*file"
        ):
            use(archive)
    assert file.read_text() == "not a directory"


# -- atomic writes -------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_append_stopped_before_rename_leaves_nothing(archive, make_task, monkeypatch, error):
    def stop(*_):
        assert [file.suffix for file in (archive.path / "tasks").iterdir()] == [".tmp"]
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", stop)
        patch.setattr(os, "replace", stop)
        with pytest.raises(type(error)):
            archive.append(make_task(id="one"))
    assert list((archive.path / "tasks").iterdir()) == []
    assert archive.append(make_task(id="one")) == "one"


def append_and_die(archive, task):
    os.link = lambda *_: os._exit(9)
    archive.append(task)


@needs_fork
def test_append_killed_before_rename_leaves_no_record(archive, make_task):
    """A killed process cannot clean up. Its temporary file is ignored."""
    process = start(append_and_die, archive, make_task(id="one"))
    process.join()
    assert process.exitcode == 9
    left = list((archive.path / "tasks").iterdir())
    assert len(left) == 1
    assert left[0].name.startswith(".one.")
    assert (len(archive), list(archive), "one" in archive) == (0, [], False)
    archive.append(make_task(id="one"))
    assert len(archive) == 1


def test_append_syncs_before_rename(archive, make_task, monkeypatch):
    calls = []
    fsync, link = os.fsync, os.link
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "link", lambda *names: (calls.append("link"), link(*names)))
    archive.append(make_task())
    assert calls[:2] == ["fsync", "link"]
    if os.name == "posix":
        assert calls == ["fsync", "link", "fsync"]  # the second for the directory


def test_append_raises_if_directory_cannot_be_written(archive, make_task, monkeypatch):
    archive.append(make_task(id="one"))

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"cannot be written to.*another path"):
        archive.append(make_task(id="two"))
    monkeypatch.undo()
    assert [task.id for task in archive] == ["one"]


def test_archive_variable_works_without_home_directory(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("SKTRANSFER_ARCHIVE", str(tmp_path / "past"))
    assert _locations.archive_directory("auto") == tmp_path / "past"


@pytest.mark.skipif(sys.platform != "linux", reason="file names are not bytes elsewhere")
def test_path_that_cannot_be_encoded_costs_a_warning(tmp_path):
    """Under LC_ALL=C without the UTF-8 mode."""
    program = """
        import warnings
        from sklearn.datasets import load_iris
        from sklearn.svm import SVC
        from sktransfer import TransferSearchCV
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search = TransferSearchCV(
                SVC(), {"C": [0.1, 1, 10]}, n_iter=2, cv=2, archive="/tmp/\\u00e4/\\u4e2d"
            )
            search.fit(*load_iris(return_X_y=True))
        print(sorted({each.category.__name__ for each in caught}), search.best_score_ > 0.5)
    """
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        env=environment,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("['ArchiveWarning'] True"), done.stderr[-500:]


def append_all(archive, tasks, barrier):
    barrier.wait()
    for task in tasks:
        archive.append(task)


@needs_fork
def test_archive_supports_many_writers_and_a_reader(archive, make_task):
    tasks = [make_task(trials=[({"C": 1.0}, n)] * 50) for n in range(100)]
    barrier = multiprocessing.get_context("fork").Barrier(4)
    writers = [start(append_all, archive, tasks[n::4], barrier) for n in range(4)]
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a record is never visible before it is complete
        while any(writer.is_alive() for writer in writers):
            seen.add(sum(len(task.trials) == 50 for task in archive))
            time.sleep(0.005)
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert len(seen) > 1, "nothing was read while they wrote"
    assert list(archive) == sorted(tasks, key=lambda task: task.id)


# -- cache of records ----------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """Names of the records that were read from disk."""
    names = []
    read = _storage.read_record
    monkeypatch.setattr(_storage, "_cache", _storage._Cache())

    def noted(path):
        found = read(path)
        names.append(path.stem)
        return found

    monkeypatch.setattr(_storage, "read_record", noted)
    return names


def test_record_is_parsed_once(archive, make_task, reads):
    for id in "abc":
        archive.append(make_task(id=id))
    assert list(archive) == list(Archive(str(archive.path)))
    assert reads == ["a", "b", "c"]


def test_changed_record_is_parsed_again(archive, make_task, reads):
    archive.append(make_task(id="one"))
    file = archive.path / "tasks" / "one.joblib"
    before = archive["one"]
    file.write_bytes(dumps_plain(joblib.load(file) | {"created": "2000-01-01T00:00:00+00:00"}))
    os.utime(file, ns=(0, 0))
    assert archive["one"].created == "2000-01-01T00:00:00+00:00" != before.created
    assert reads == ["one", "one"]


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_CACHED_RECORDS", 2), ("MAX_CACHED_BYTES", 1500)]
)
def test_cache_of_records_is_bounded(archive, make_task, reads, monkeypatch, limit, value):
    monkeypatch.setattr(_storage, limit, value)
    for id in "abcde":
        archive.append(make_task(id=id))
    assert len(list(archive)) == 5
    assert 1 <= len(_storage._cache.tasks) <= 2
    assert _storage._cache.n_bytes == sum(key[1] for key in _storage._cache.tasks)


# -- many writers --------------------------------------------------------------------------------


def append_with_a_clock(archive, make_task, n, hours, barrier):
    """Append `n` tasks with a clock that is some hours ahead or behind."""
    from datetime import UTC, datetime, timedelta

    from sktransfer import task as task_module

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(UTC) + timedelta(hours=hours)

    task_module.datetime = Clock
    barrier.wait()
    for _ in range(n):
        archive.append(make_task())


@needs_fork
def test_archive_supports_writers_with_different_clocks(archive, make_task):
    barrier = multiprocessing.get_context("fork").Barrier(16)
    writers = [
        start(append_with_a_clock, archive, make_task, 50, hours, barrier)
        for hours in range(-80, 80, 10)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while any(writer.is_alive() for writer in writers):
            list(archive)
            archive.select()
    assert [writer.exitcode for writer in writers] == [0] * 16
    assert len(archive) == len({task.id for task in archive}) == 800
    assert len({task.created[:13] for task in archive}) >= 16
    assert archive.verify() == []
    assert not [file for file in (archive.path / "tasks").iterdir() if file.suffix == ".tmp"]


# -- bounded reading -----------------------------------------------------------------------------


def test_read_bounded_returns_file_up_to_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert _storage.read_bounded(tmp_path / "file", 5) == b"12345"
    with pytest.raises(RecordError, match=r"file: it is larger than 0 MiB"):
        _storage.read_bounded(tmp_path / "file", 4)


def test_read_bounded_raises_for_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        _storage.read_bounded(tmp_path / "file", 5)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink(__file__, path)])
def test_read_bounded_refuses_what_is_not_a_regular_file(tmp_path, make):
    make(tmp_path / "other")
    with pytest.raises(RecordError, match="not a regular file"):
        _storage.read_bounded(tmp_path / "other", 10**6)


def test_read_bounded_notices_file_that_grows(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"1")
    opened = Path.open

    def grow(path, *mode):
        path.write_bytes(b"12345")
        return opened(path, *mode)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", lambda path, data: os.truncate(path, len(data)))
        patch.setattr(Path, "open", grow)
        with pytest.raises(RecordError, match="larger"):
            _storage.read_bounded(tmp_path / "file", 4)
