"""The archive as its user sees it: write, read, many at once, and nothing lost half way."""

import copy
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest

from sktransfer.archive import Archive, RecordError, _files, _reader
from sktransfer.task import Task, Trial

ROOT = Path(__file__).parents[2]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes start quickly only by fork")


def start(function, *arguments):
    """Run `function` in a process of its own."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    return process


# -- the object ----------------------------------------------------------------------------------


def test_making_one_touches_nothing(tmp_path):
    archive = Archive(tmp_path / "nowhere", keep="no such option", readonly=True)
    assert (archive.path, archive.keep, archive.readonly) == (tmp_path / "nowhere", "no such option", True)
    assert len(Archive(tmp_path / "nowhere")) == 0
    assert list(Archive(tmp_path / "nowhere")) == []
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("again", [copy.deepcopy, copy.copy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_are_equal(again):
    archive = Archive("somewhere", keep="sample", readonly=True)
    assert again(archive) == archive
    assert hash(again(archive)) == hash(archive)


def test_equality_goes_by_the_parameters():
    assert Archive("a") == Archive(Path("a"))
    assert Archive("a") != Archive("b")
    assert Archive("a") != Archive("a", keep="sample")
    assert Archive("a") != Archive("a", readonly=True)
    assert Archive("a") != "a"


def test_repr_shows_what_is_not_default():
    assert repr(Archive()) == "Archive('auto')"
    archive = Archive(Path("a"), keep="sample", readonly=True)
    assert repr(archive) == "Archive('a', keep='sample', readonly=True)"


def test_an_empty_archive_is_true(archive):
    """So that ``if archive`` asks whether there is one."""
    assert len(archive) == 0
    assert archive


def test_import_is_light():
    """Nothing heavy beyond what scikit-learn itself imports (pandas, where it is installed)."""
    code = (
        "import sklearn.model_selection, sys; before = set(sys.modules); import sktransfer.archive\n"
        "print('done', *{'torch', 'pandas', 'matplotlib'} & (set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["done"], done.stderr


# -- where it is ---------------------------------------------------------------------------------


def test_auto_is_resolved_when_used(monkeypatch, tmp_path, make_task):
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
def test_user_data_directory(monkeypatch, tmp_path, platform, variable, value, expected, unset):
    monkeypatch.setattr(_files.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    if unset:
        monkeypatch.delenv("SKTRANSFER_ARCHIVE")
    else:
        monkeypatch.setenv("SKTRANSFER_ARCHIVE", "")
    monkeypatch.delenv(variable, raising=False)
    if value is not None:
        monkeypatch.setenv(variable, value.format(tmp=tmp_path))
    found = _files.archive_directory("auto")
    assert found == Path(expected.format(tmp=tmp_path)) / "sktransfer" / "archive"


def test_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert _files.archive_directory("~/past") == tmp_path / "past"


def test_a_file_as_path(tmp_path, make_task):
    file = tmp_path / "file"
    file.write_text("not a directory")
    archive = Archive(file)
    for use in (len, list, lambda a: a.append(make_task()), lambda a: a["x"], lambda a: a.select()):
        with pytest.raises(NotADirectoryError, match=r"An archive is a directory.*give another path.*file"):
            use(archive)
    assert file.read_text() == "not a directory"


# -- append and read -----------------------------------------------------------------------------


def rich_task():
    return Task(
        trials=(
            Trial({"C": 1.0, "kernel": "rbf", "sizes": [50, 10], "none": None, "flag": True}, 0.5, 0.1, 0.01),
            Trial({"C": 2}, math.nan, status="failed", metrics={"f1": 0.25}),
        ),
        space={
            "branches": [{"C": {"values": [1.0, 2]}}],
            "canonical": {"C": "SVC.C"},
            "fixed": {"SVC.tol": 1e-3},
            "predictors": ["SVC"],
        },
        metrics=("accuracy", "f1"),
        profile={"sketch": [0.5, 0.25], "n_rows": 2**40},
        versions={"python": "3.11"},
        complete=False,
    )


def test_round_trip(archive):
    tasks = [rich_task() for _ in range(3)]
    ids = [archive.append(task) for task in tasks]
    assert ids == [task.id for task in tasks]
    assert len(archive) == 3
    assert list(archive) == sorted(tasks, key=lambda task: task.id)
    for task in tasks:
        assert archive[task.id] == archive.get(task.id) == task
        assert task.id in archive


def test_joblib_opens_a_record(archive):
    task = rich_task()
    archive.append(task)
    record = joblib.load(archive.path / "tasks" / f"{task.id}.joblib")
    assert type(record) is dict
    assert record["profile"] == {"sketch": [0.5, 0.25], "n_rows": 2**40}
    assert record["trials"][0]["params"] == task.trials[0].params
    assert record["format"] == 1


def test_sorted_by_id(archive, make_task):
    for id in ("b", "a-1", "a", "a.1"):
        archive.append(make_task(id=id))
    assert [task.id for task in archive] == ["a", "a-1", "a.1", "b"]


def test_only_tasks_makes_a_directory(archive, make_task):
    archive.append(make_task(id="one"))
    assert [file.name for file in archive.path.iterdir()] == ["tasks"]
    assert [file.name for file in (archive.path / "tasks").iterdir()] == ["one.joblib"]


def test_other_files_are_ignored(archive, tasks_directory, make_task):
    for name in (".half.1-2.tmp", ".hidden.joblib", "notes.txt", "one.joblib.bak"):
        (tasks_directory / name).write_bytes(b"nonsense")
    archive.append(make_task(id="one"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [task.id for task in archive] == ["one"]
    assert len(archive) == 1


def test_len_opens_nothing(archive, tasks_directory):
    (tasks_directory / "bad.joblib").write_bytes(b"nonsense")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(archive) == 1


@pytest.mark.parametrize("id", ["nothing", "../tasks/one", "", "a/b", 3])
def test_unknown_id(archive, make_task, id):
    archive.append(make_task(id="one"))
    assert id not in archive
    with pytest.raises(KeyError, match=r"There is no task .* in the archive"):
        archive[id]


def test_get_says_what_is_wrong_with_a_file(archive, tasks_directory):
    (tasks_directory / "bad.joblib").write_bytes(b"nonsense")
    with pytest.raises(RecordError, match=r"bad\.joblib: it is not an uncompressed joblib file") as caught:
        archive["bad"]
    assert caught.value.path == str(tasks_directory / "bad.joblib")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_vanished_file_is_skipped_in_silence(archive, make_task):
    ids = sorted(archive.append(make_task()) for _ in range(3))
    reading = iter(archive)
    assert next(reading).id == ids[0]
    (archive.path / "tasks" / f"{ids[1]}.joblib").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [task.id for task in reading] == ids[2:]


def test_same_record_again_changes_nothing(archive):
    task = rich_task()
    archive.append(task)
    file = archive.path / "tasks" / f"{task.id}.joblib"
    before = file.stat().st_mtime_ns, file.read_bytes()
    assert archive.append(archive[task.id]) == task.id
    assert archive.append(pickle.loads(pickle.dumps(task))) == task.id
    assert (file.stat().st_mtime_ns, file.read_bytes()) == before


def test_another_record_of_the_same_id(archive, make_task):
    task = make_task(id="one")
    archive.append(task)
    with pytest.raises(ValueError, match=r"another record of this id.*one\.joblib"):
        archive.append(make_task(id="one", trials=[({"C": 1.0}, 0.1)], created=task.created))
    assert list(archive) == [task]


def test_a_bad_file_is_not_overwritten(archive, tasks_directory, make_task):
    (tasks_directory / "one.joblib").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="another record of this id"):
        archive.append(make_task(id="one"))
    assert (tasks_directory / "one.joblib").read_bytes() == b"nonsense"


@pytest.mark.parametrize("id", ["../one", "a/b", ".hidden", "a b", "x" * 129, "a\n"])
def test_id_must_be_a_file_name(archive, make_task, id):
    with pytest.raises(ValueError, match="id"):
        archive.append(make_task(id=id))
    assert not archive.path.exists()


def test_only_tasks_can_be_appended(archive):
    with pytest.raises(TypeError, match="An archive holds tasks, not a dict"):
        archive.append({"trials": []})


def test_not_plain_data(archive, make_task):
    task = make_task(trials=[Trial({"C": 1.0}, 0.5), Trial({"C": np.dtype("f4")}, 0.5)])
    with pytest.raises(TypeError, match=r"trials\[1\]\.params\['C'\]"):
        archive.append(task)
    assert not archive.path.exists()


def test_readonly(archive, make_task):
    archive.append(make_task(id="one"))
    reader = Archive(archive.path, readonly=True)
    assert [task.id for task in reader] == ["one"]
    for write in (lambda: reader.append(make_task()), lambda: reader.add(None, None)):
        with pytest.raises(PermissionError, match="readonly: nothing can be written"):
            write()
    assert len(archive) == 1


# -- whole or not at all -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_writer_stopped_before_the_rename(archive, make_task, monkeypatch, error):
    def stop(*_):
        assert [file.suffix for file in (archive.path / "tasks").iterdir()] == [".tmp"]
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(type(error)):
            archive.append(make_task(id="one"))
    assert list((archive.path / "tasks").iterdir()) == []
    assert archive.append(make_task(id="one")) == "one"


def append_and_die(archive, task):
    os.replace = lambda *_: os._exit(9)
    archive.append(task)


@needs_fork
def test_writer_killed_before_the_rename(archive, make_task):
    """A process that ends at once cannot clean up; what it leaves does not count."""
    process = start(append_and_die, archive, make_task(id="one"))
    process.join()
    assert process.exitcode == 9
    left = list((archive.path / "tasks").iterdir())
    assert len(left) == 1
    assert left[0].name.startswith(".one.")
    assert (len(archive), list(archive), "one" in archive) == (0, [], False)
    archive.append(make_task(id="one"))
    assert len(archive) == 1


def test_data_are_safe_before_the_name_is_there(archive, make_task, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda *names: (calls.append("replace"), replace(*names)))
    archive.append(make_task())
    assert calls[:2] == ["fsync", "replace"]
    if os.name == "posix":
        assert calls == ["fsync", "replace", "fsync"]  # the second for the directory


def test_directory_that_cannot_be_written(archive, make_task, monkeypatch):
    archive.append(make_task(id="one"))

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match=r"cannot be written.*another path"):
        archive.append(make_task(id="two"))
    monkeypatch.undo()
    assert [task.id for task in archive] == ["one"]


def append_all(archive, tasks, barrier):
    barrier.wait()
    for task in tasks:
        archive.append(task)


@needs_fork
def test_many_writers_and_a_reader(archive, make_task):
    tasks = [make_task(trials=[({"C": 1.0}, n)] * 50) for n in range(100)]
    barrier = multiprocessing.get_context("fork").Barrier(4)
    writers = [start(append_all, archive, tasks[n::4], barrier) for n in range(4)]
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no moment at which a record is there and not whole
        while any(writer.is_alive() for writer in writers):
            seen.add(sum(len(task.trials) == 50 for task in archive))
            time.sleep(0.005)
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert len(seen) > 1, "nothing was read while they wrote"
    assert list(archive) == sorted(tasks, key=lambda task: task.id)


# -- memory of the process -----------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """Names of the files that were really read."""
    names = []
    read = _reader._read_plain
    monkeypatch.setattr(_reader, "_cache", _reader._Cache())

    def noted(path, facts):
        names.append(path.stem)
        return read(path, facts)

    monkeypatch.setattr(_reader, "_read_plain", noted)
    return names


def test_a_record_is_parsed_once(archive, make_task, reads):
    for id in "abc":
        archive.append(make_task(id=id))
    assert list(archive) == list(Archive(str(archive.path)))
    assert reads == ["a", "b", "c"]


def test_a_changed_file_is_parsed_again(archive, make_task, reads):
    archive.append(make_task(id="one"))
    file = archive.path / "tasks" / "one.joblib"
    before = archive["one"]
    file.write_bytes(_files.dump(joblib.load(file) | {"created": "2000-01-01T00:00:00+00:00"}))
    os.utime(file, ns=(0, 0))
    assert archive["one"].created == "2000-01-01T00:00:00+00:00" != before.created
    assert reads == ["one", "one"]


@pytest.mark.parametrize(("limit", "value"), [("CACHED_RECORDS", 2), ("CACHED_BYTES", 1500)])
def test_the_memory_is_bounded(archive, make_task, reads, monkeypatch, limit, value):
    monkeypatch.setattr(_reader, limit, value)
    for id in "abcde":
        archive.append(make_task(id=id))
    assert len(list(archive)) == 5
    assert 1 <= len(_reader._cache.tasks) <= 2
    assert _reader._cache.n_bytes == sum(key[1] for key in _reader._cache.tasks)
