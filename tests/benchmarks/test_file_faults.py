"""Searches survive failing file operations. `python -m benchmarks.file_faults` tries thousands."""

import os

import pytest

from benchmarks import file_faults
from benchmarks.file_faults import SCENES, Faults, count_calls, find_harm, list_faults


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("faults") / "template"
    file_faults.fill_archive(path)
    return path


@pytest.mark.parametrize("name", SCENES)
def test_no_search_is_lost(name, template, tmp_path):
    scene = SCENES[name]
    counted = count_calls(scene, template, tmp_path / "counted")
    every = list(list_faults(counted, tmp_path, 1))
    for n, faults in enumerate(every[:: len(every) // 5]):
        faults.folder = path = tmp_path / str(n)
        scene.prepare(template, path)
        assert find_harm(scene, path, faults) == ""


def test_only_operations_below_the_folder_fail(tmp_path):
    (tmp_path / "past").mkdir()
    (tmp_path / "other").write_text("x")
    with Faults(tmp_path / "past", "EIO").install() as faults:
        assert (tmp_path / "other").read_text() == "x"
        for function in (os.listdir, os.stat, os.scandir):
            with pytest.raises(OSError, match="Input/output error"):
                function(tmp_path / "past")
        with pytest.raises(OSError, match="Input/output error"):
            (tmp_path / "past" / "new").write_text("x")
    assert faults.calls == {"listdir": 1, "stat": 1, "scandir": 1, "file": 1}
    assert os.listdir(tmp_path / "past") == []


@pytest.mark.parametrize(("is_lasting", "n_failed"), [(True, 3), (False, 1)])
def test_failures_begin_at_a_call(tmp_path, is_lasting, n_failed):
    failed = 0
    with Faults(tmp_path, "ENOSPC", "stat", 2, is_lasting).install():
        for _ in range(5):
            os.listdir(tmp_path)
            try:
                os.stat(tmp_path)
            except OSError:
                failed += 1
    assert failed == n_failed


@pytest.mark.parametrize("method", ["read", "close", "seek"])
def test_methods_of_open_files_fail(tmp_path, method):
    (tmp_path / "a").write_bytes(b"abc")

    def read():
        with open(tmp_path / "a", "rb") as file:
            file.seek(1)
            return file.read()

    with Faults(tmp_path, "no memory", f"file.{method}", first=1).install():
        assert read() == b"bc"
        with pytest.raises(MemoryError):
            read()


def test_harm_is_found(template, tmp_path, monkeypatch):
    scene = SCENES["second"]
    scene.prepare(template, tmp_path / "past")
    (tmp_path / "past" / "tasks" / "task-0.joblib").write_bytes(b"nonsense")
    assert find_harm(scene, tmp_path / "past", Faults(tmp_path / "past")).startswith("left [Find")
    (tmp_path / "past" / "tasks" / "task-0.joblib").unlink()
    assert find_harm(scene, tmp_path / "past", Faults(tmp_path / "past")) == "lost a record"

    def fail(*args):
        raise OSError("unguarded")

    monkeypatch.setattr("sktransfer.model_selection._search.find_history", fail)
    assert "unguarded" in find_harm(scene, tmp_path / "past", Faults(tmp_path / "past"))
