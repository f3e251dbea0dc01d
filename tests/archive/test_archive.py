"""`Archive`: the object itself, appending and reading tasks, and its errors."""

import copy
import errno
import math
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest

from sktransfer.archive import Archive, RecordError
from sktransfer.archive._storage import Storage
from sktransfer.task import Task, Trial

ROOT = Path(__file__).parents[2]


# -- the object ----------------------------------------------------------------------------------


def test_constructor_touches_no_file(tmp_path):
    archive = Archive(tmp_path / "nowhere", keep="no such option", readonly=True)
    assert (archive.path, archive.keep, archive.readonly) == (
        tmp_path / "nowhere",
        "no such option",
        True,
    )
    assert len(Archive(tmp_path / "nowhere")) == 0
    assert list(Archive(tmp_path / "nowhere")) == []
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "again", [copy.deepcopy, copy.copy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_copies_of_archive_are_equal(again):
    archive = Archive("somewhere", keep="sample", readonly=True)
    assert again(archive) == archive
    assert hash(again(archive)) == hash(archive)


def test_archives_are_equal_if_parameters_are():
    assert Archive("a") == Archive(Path("a"))
    assert Archive("a") != Archive("b")
    assert Archive("a") != Archive("a", keep="sample")
    assert Archive("a") != Archive("a", readonly=True)
    assert Archive("a") != "a"


def test_path_and_repr_show_the_real_directory(own_archive, monkeypatch, tmp_path):
    assert Archive().path == own_archive
    assert repr(Archive()) == f"Archive('{own_archive}')"
    archive = Archive(Path("a"), keep="sample", readonly=True)
    assert archive.path == Path("a").absolute()
    assert repr(archive) == f"Archive('{Path('a').absolute()}', keep='sample', readonly=True)"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Archive("~/past").path == tmp_path / "past"
    monkeypatch.delenv("SKTRANSFER_ARCHIVE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if sys.platform == "linux":
        assert Archive().path == tmp_path / "data" / "sktransfer" / "archive"


def test_resolved_archive_does_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    archive = Archive("past", keep="sample", starter=False).resolved()
    monkeypatch.chdir(tmp_path)
    assert archive == Archive(archive.path, keep="sample", starter=False)
    assert archive.path != Archive("past").path


def test_archive_can_be_switched_off(monkeypatch, make_task):
    monkeypatch.setenv("SKTRANSFER_ARCHIVE", "none")
    assert Archive().path is None
    assert repr(Archive()) == "Archive('auto')"
    expected = "SKTRANSFER_ARCHIVE=none switches the user's own archive off. Pass the path of"
    with pytest.raises(ValueError, match=expected):
        Archive().append(make_task())
    assert Archive("other").path == Path("other").absolute()


@pytest.mark.skipif(sys.platform != "linux", reason="sets the data directory by XDG_DATA_HOME")
def test_first_record_says_once_where_it_is(monkeypatch, tmp_path, make_task, capsys):
    monkeypatch.delenv("SKTRANSFER_ARCHIVE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    Archive().append(make_task(id="one"))
    place = tmp_path / "sktransfer" / "archive"
    assert capsys.readouterr().err == (
        f"sktransfer: the first search was added to your archive, {place}. Later searches learn "
        "from it. archive=None, or SKTRANSFER_ARCHIVE=none in the environment, turns this off.\n"
    )
    Archive().append(make_task(id="two"))
    Archive(tmp_path / "chosen").append(make_task(id="one"))
    assert capsys.readouterr().err == ""


def test_empty_archive_is_true(archive):
    """``if archive`` means that there is one."""
    assert len(archive) == 0
    assert archive


def test_import_loads_no_heavy_package():
    """Only what scikit-learn itself imports (pandas, if it is installed)."""
    code = (
        "import sklearn.model_selection, sys; before = set(sys.modules)\n"
        "import sktransfer.archive\n"
        "print('done', *{'torch', 'pandas', 'matplotlib'} & (set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["done"], done.stderr


# -- append and read -----------------------------------------------------------------------------


def rich_task():
    return Task(
        trials=(
            Trial(
                {"C": 1.0, "kernel": "rbf", "sizes": [50, 10], "none": None, "flag": True},
                0.5,
                0.1,
                0.01,
            ),
            Trial({"C": 2}, math.nan, status="failed", metrics={"f1": 0.25}),
        ),
        space={
            "branches": [{"C": {"values": [1.0, 2]}}],
            "canonical": {"C": "SVC.C"},
            "fixed": {"SVC.tol": 1e-3},
            "predictors": ["SVC"],
        },
        metrics=("accuracy", "f1"),
        profile={"kind": "x", "n_rows": 2**40, "notes": ["a"], "key": "0123456789abcdef"},
        versions={"python": "3.11"},
        complete=False,
    )


def test_archive_returns_appended_tasks(archive):
    tasks = [rich_task() for _ in range(3)]
    ids = [archive.append(task) for task in tasks]
    assert ids == [task.id for task in tasks]
    assert len(archive) == 3
    assert list(archive) == sorted(tasks, key=lambda task: task.id)
    for task in tasks:
        assert archive[task.id] == archive.get(task.id) == task
        assert task.id in archive


def test_joblib_loads_record(archive):
    task = rich_task()
    archive.append(task)
    record = joblib.load(archive.path / "tasks" / f"{task.id}.joblib")
    assert type(record) is dict
    assert record["profile"] == task.profile
    assert record["trials"][0]["params"] == task.trials[0].params
    assert record["format"] == 1


def test_iteration_is_sorted_by_id(archive, make_task):
    for id in ("b", "a-1", "a", "a.1"):
        archive.append(make_task(id=id))
    assert [task.id for task in archive] == ["a", "a-1", "a.1", "b"]


def test_append_creates_only_the_folder_of_tasks(archive, make_task):
    archive.append(make_task(id="one"))
    assert [file.name for file in archive.path.iterdir()] == ["tasks"]
    assert [file.name for file in (archive.path / "tasks").iterdir()] == ["one.joblib"]


def test_archive_ignores_other_files(archive, tasks_directory, make_task):
    for name in (".half.1-2.tmp", ".hidden.joblib", "notes.txt", "one.joblib.bak"):
        (tasks_directory / name).write_bytes(b"nonsense")
    archive.append(make_task(id="one"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [task.id for task in archive] == ["one"]
    assert len(archive) == 1


def test_len_opens_no_file(archive, tasks_directory):
    (tasks_directory / "bad.joblib").write_bytes(b"nonsense")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(archive) == 1


@pytest.mark.parametrize("id", ["nothing", "../tasks/one", "", "a/b", 3])
def test_get_raises_for_unknown_id(archive, make_task, id):
    archive.append(make_task(id="one"))
    assert id not in archive
    with pytest.raises(KeyError, match=r"There is no task .* in the archive"):
        archive[id]


def test_get_reports_invalid_file(archive, tasks_directory):
    (tasks_directory / "bad.joblib").write_bytes(b"nonsense")
    with pytest.raises(
        RecordError, match=r"bad\.joblib: it is not an uncompressed joblib file"
    ) as caught:
        archive["bad"]
    assert caught.value.path == str(tasks_directory / "bad.joblib")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_iteration_skips_removed_file_silently(archive, make_task):
    ids = sorted(archive.append(make_task()) for _ in range(3))
    reading = iter(archive)
    assert next(reading).id == ids[0]
    (archive.path / "tasks" / f"{ids[1]}.joblib").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [task.id for task in reading] == ids[2:]


def test_append_of_same_record_changes_nothing(archive):
    task = rich_task()
    archive.append(task)
    file = archive.path / "tasks" / f"{task.id}.joblib"
    before = file.stat().st_mtime_ns, file.read_bytes()
    assert archive.append(archive[task.id]) == task.id
    assert archive.append(pickle.loads(pickle.dumps(task))) == task.id
    assert (file.stat().st_mtime_ns, file.read_bytes()) == before


def test_append_refuses_other_record_of_same_id(archive, make_task):
    task = make_task(id="one")
    archive.append(task)
    with pytest.raises(ValueError, match=r"another record of this id.*one\.joblib"):
        archive.append(make_task(id="one", trials=[({"C": 1.0}, 0.1)], created=task.created))
    assert list(archive) == [task]


def test_append_does_not_overwrite_invalid_file(archive, tasks_directory, make_task):
    (tasks_directory / "one.joblib").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="another record of this id"):
        archive.append(make_task(id="one"))
    assert (tasks_directory / "one.joblib").read_bytes() == b"nonsense"


@pytest.mark.parametrize("id", ["../one", "a/b", ".hidden", "a b", "x" * 129, "a\n"])
def test_append_refuses_ids_that_are_no_file_names(archive, make_task, id):
    with pytest.raises(ValueError, match="id"):
        archive.append(make_task(id=id))
    assert not archive.path.exists()


def test_append_refuses_other_objects(archive):
    with pytest.raises(TypeError, match="An archive holds tasks, not a dict"):
        archive.append({"trials": []})


def test_append_refuses_values_that_are_not_plain(archive, make_task):
    task = replace(make_task(), trials=(Trial({"C": 1.0}, 0.5), Trial({"C": np.dtype("f4")}, 0.5)))
    with pytest.raises(TypeError, match=r"trials\[1\]\.params\['C'\]"):
        archive.append(task)
    assert not archive.path.exists()


def test_readonly_archive_refuses_append_and_add(archive, make_task):
    archive.append(make_task(id="one"))
    reader = Archive(archive.path, readonly=True)
    assert [task.id for task in reader] == ["one"]
    for write in (lambda: reader.append(make_task()), lambda: reader.add(None, None)):
        with pytest.raises(PermissionError, match="readonly, nothing can be written"):
            write()
    assert len(archive) == 1


def test_append_keeps_record_of_same_id_written_meanwhile(archive, make_task, monkeypatch):
    """Both writers find no record. The second one must not replace the first one's."""
    one, other = (replace(make_task(), id="same", created=f"2020-01-0{n}") for n in (1, 2))
    archive.append(one)
    looks, find = [], Storage.find

    def too_early(storage, id):
        looks.append(id)
        return find(storage, id) if len(looks) % 2 == 0 else None

    monkeypatch.setattr(Storage, "find", too_early)
    with pytest.raises(ValueError, match="which is kept"):
        archive.append(other)
    assert archive.append(one) == "same"  # the same record, written by two processes
    assert archive["same"].created == one.created


def test_append_works_without_hard_links(archive, make_task, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)
    archive.append(make_task())
    assert len(archive) == 1


def test_constructor_refuses_empty_path():
    with pytest.raises(ValueError, match="needs a path"):
        Archive("")


def test_archive_follows_folder_that_is_removed_and_created(archive, make_task):
    for _ in range(3):
        archive.append(make_task())
        assert len(archive.select().used) == 1
        shutil.rmtree(archive.path)
        assert not archive.select().used
