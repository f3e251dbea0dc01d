"""Archives at addresses: in memory, and on an S3 server."""

import builtins
import os
import shutil
import stat
import time
import uuid
import warnings

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.archive import Archive, _locations, _remote, _storage
from sktransfer.archive._plain_pickle import MAX_BYTES
from sktransfer.archive._remote import RemoteStorage, _connection_options
from sktransfer.dataset import profile
from sktransfer.exceptions import ArchiveWarning

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Put local copies into a temporary folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)


@pytest.fixture(scope="module")
def s3():
    """Address of a new bucket on a local server."""
    pytest.importorskip("s3fs")
    pytest.importorskip("flask_cors")
    server_module = pytest.importorskip("moto.server")
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    settings = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        files = fsspec.filesystem("s3")
        files.mkdir("past")
        yield "s3://past"
    fsspec.filesystem("s3").clear_instance_cache()
    server.stop()


@pytest.fixture(params=["memory", "s3"])
def address(request):
    """A new folder at an address."""
    base = "memory://past" if request.param == "memory" else request.getfixturevalue("s3")
    return f"{base}/{uuid.uuid4().hex}"


def place(address, name):
    files, root = fsspec.core.url_to_fs(address)
    return files, f"{root}/{name}"


def test_remote_archive_returns_appended_tasks(address, make_task):
    archive = Archive(address)
    assert len(archive) == 0 and list(archive) == []
    tasks = [make_task() for _ in range(3)]
    for task in tasks:
        archive.append(task)
    assert list(archive) == sorted(tasks, key=lambda task: task.id)
    files, file = place(address, f"tasks/{tasks[0].id}.joblib")
    assert files.exists(file)
    assert [task.id for task in Archive(address, readonly=True).select().used] == [
        t.id for t in archive
    ]
    assert archive.verify() == []


def test_remote_archive_is_shared_between_machines(address, make_task, tmp_path, monkeypatch):
    """Another machine has another local copy. Removed records disappear there as well."""
    archive = Archive(address)
    archive.append(make_task(id="one"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert "one" in archive
    archive.append(make_task(id="two"))
    archive.remove("one")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [task.id for task in archive] == ["two"]
    with pytest.raises(KeyError, match="There is no task 'one'"):
        archive.remove("one")


def test_object_of_overlong_name_hides_no_record(address, make_task):
    remote = Archive(address)
    remote.append(make_task(id="one"))
    files, long = place(address, f"tasks/{'x' * 300}.joblib")
    files.pipe_file(long, b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [task.id for task in remote.select().used] == ["one"]


def test_machines_share_the_key_of_an_address(address, make_task, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 3))
    Archive(address).append(make_task(id="one", profile=profile(X)))
    files, key = place(address, "key")
    secret = files.cat_file(key)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    monkeypatch.setattr(_remote, "_confirmed_keys", set())
    other = Archive(address)
    assert list(other.select(profile=profile(X[:30])).excluded)
    other.append(make_task(id="two", profile=profile(X + 1)))
    assert files.cat_file(key) == secret
    mode = (other._directory() / "key").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600 or os.name != "posix"


def test_verify_does_not_move_records_after_incomplete_download(address, make_task, monkeypatch):
    remote = Archive(address)
    remote.append(make_task(id="one"))
    files, file = place(address, "tasks/one.joblib")
    original = files.cat_file(file)
    copy = remote._directory() / "tasks" / "one.joblib"
    with monkeypatch.context() as patch:
        connection = remote._open().filesystem
        patch.setattr(connection, "cat", lambda paths, **_: dict.fromkeys(paths, original[:99]))
        findings = remote.verify(repair=True)
    assert [found.moved for found in findings] == [None]
    assert "99 of" in findings[0].problem
    copy.write_bytes(original[:99])  # an incomplete copy of an older version of this package
    with monkeypatch.context() as patch:
        patch.setattr(RemoteStorage, "fetch_all", lambda self: {})
        assert [found.moved for found in remote.verify(repair=True)] == [None]
    assert files.cat_file(file) == original and remote.verify() == []


def test_verify_moves_record_that_is_damaged_at_the_address(address, make_task):
    remote = Archive(address)
    remote.append(make_task(id="one"))
    files, file = place(address, "tasks/one.joblib")
    files.pipe_file(file, b"nonsense")
    assert [found.moved is not None for found in remote.verify(repair=True)] == [True]
    assert not files.exists(file)


def test_remote_archive_fetches_records_once(address, make_task, monkeypatch):
    archive = Archive(address)
    for id in "abc":
        archive.append(make_task(id=id))
    assert len(list(archive)) == 3
    monkeypatch.setattr(
        RemoteStorage,
        "_fetch",
        lambda self, names, sizes: pytest.fail("fetched again") if names else {},
    )
    assert len(list(archive)) == 3


def test_remote_archive_skips_bad_files(address, make_task):
    """They go through the usual reader. Unsafe file names are not fetched."""
    archive = Archive(address)
    archive.append(make_task(id="good"))
    files, bad = place(address, "tasks/bad.joblib")
    files.pipe_file(bad, b"nonsense")
    files.pipe_file(place(address, "tasks/..\\evil.joblib")[1], b"nonsense")
    with pytest.warns(ArchiveWarning, match=r"Skipped .*bad\.joblib") as caught:
        assert [task.id for task in archive] == ["good"]
    assert len(caught) == 1
    (finding,) = archive.verify(repair=True)
    assert finding.moved.endswith("damaged/bad.joblib")
    assert files.cat_file(place(address, "damaged/bad.joblib")[1]) == b"nonsense"
    assert not files.exists(bad)
    assert archive.verify() == []


def test_remote_archive_merges_exports_and_imports(address, archive, make_task, tmp_path):
    archive.append(make_task(id="one"))
    remote = Archive(address)
    assert remote.merge(archive).added == ("one",)
    assert remote.export(tmp_path / "a.zip") == 1
    assert archive.merge(remote).known == ("one",)
    remote.remove("one")
    assert remote.import_(tmp_path / "a.zip").added == ("one",)


def test_export_works_without_local_copy(make_task, tmp_path):
    address = f"memory://{uuid.uuid4().hex}"
    Archive(address).append(make_task(id="one"))
    shutil.rmtree(_locations.archive_directory(address))
    assert Archive(address).export(tmp_path / "a.zip") == 1


def test_verify_replaces_damaged_copy(make_task):
    """`verify` fetches all files again."""
    archive = Archive(f"memory://{uuid.uuid4().hex}")
    archive.append(make_task(id="one"))
    copied = _locations.archive_directory(archive.path) / "tasks" / "one.joblib"
    copied.write_bytes(b"x" * copied.stat().st_size)
    assert archive.verify() == []
    assert archive["one"].id == "one"


def test_archive_out_of_reach_uses_copy(make_task, monkeypatch):
    archive = Archive(f"memory://{uuid.uuid4().hex}")
    archive.append(make_task(id="one"))

    def lost(*_, **__):
        raise ConnectionError("no route")

    monkeypatch.setattr(RemoteStorage, "_sizes", lost)
    with pytest.warns(ArchiveWarning, match="out of reach .*no route.* local copy") as caught:
        assert [task.id for task in archive] == ["one"]
    assert len(caught) == 1


def test_verify_out_of_reach_keeps_copy(make_task, monkeypatch):
    archive = Archive(f"memory://{uuid.uuid4().hex}")
    archive.append(make_task(id="one"))
    with monkeypatch.context() as patch:
        patch.setattr(RemoteStorage, "_sizes", lambda self: 1 / 0)
        with pytest.raises(OSError, match="out of reach"):
            archive.verify()
        with pytest.warns(ArchiveWarning, match="local copy"):
            assert [task.id for task in archive] == ["one"]


def test_append_raises_if_address_cannot_be_written(make_task, monkeypatch):
    archive = Archive(f"memory://{uuid.uuid4().hex}")

    def full(*_, **__):
        raise RuntimeError("quota")

    monkeypatch.setattr(type(RemoteStorage(archive.path).filesystem), "pipe_file", full)
    with pytest.raises(OSError, match=r"cannot be written to \(quota\)"):
        archive.append(make_task())
    assert len(archive) == 0


@pytest.fixture
def elsewhere(make_task, monkeypatch, tmp_path):
    """An archive with the record "first", on a machine that has no copy yet."""
    archive = Archive(f"memory://{uuid.uuid4().hex}")
    archive.append(make_task(id="first"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path / "elsewhere")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "elsewhere"))
    return archive


def failing(error):
    def fail(*_, **__):
        raise error

    return fail


def test_append_keeps_record_that_cannot_be_fetched(elsewhere, make_task, monkeypatch):
    files, file = place(elsewhere.path, "tasks/first.joblib")
    before = files.cat_file(file)
    with monkeypatch.context() as patch:
        patch.setattr(type(files), "cat_file", failing(PermissionError("403")))
        with pytest.warns(
            ArchiveWarning, match=r"Skipped .*first\.joblib: it cannot be fetched \(.*403"
        ):
            assert len(elsewhere) == 0
        [finding] = elsewhere.verify()
        assert "403" in finding.problem and finding.file.endswith("first.joblib")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # there was one warning already
            with pytest.raises(ValueError, match="another record of this id"):
                elsewhere.append(make_task(id="first"))
    assert files.cat_file(file) == before
    assert elsewhere["first"].id == "first"


def test_append_keeps_record_that_cannot_be_listed(elsewhere, make_task, monkeypatch):
    files, file = place(elsewhere.path, "tasks/first.joblib")
    before = files.cat_file(file)
    monkeypatch.setattr(RemoteStorage, "_sizes", failing(TimeoutError("slow")))
    with (
        pytest.warns(ArchiveWarning, match="out of reach"),
        pytest.raises(ValueError, match="another record of this id"),
    ):
        elsewhere.append(make_task(id="first"))
    assert files.cat_file(file) == before


def test_archive_uses_copy_if_connecting_fails(make_task, monkeypatch):
    archive = Archive(f"memory://{uuid.uuid4().hex}")
    archive.append(make_task(id="one"))
    monkeypatch.setattr(fsspec.core, "url_to_fs", failing(ConnectionError("no route")))
    with pytest.warns(ArchiveWarning, match=r"out of reach .*no route.* local copy"):
        assert [task.id for task in archive] == ["one"]
    with pytest.raises(OSError, match="out of reach"):
        archive.verify()


def test_verify_that_fails_midway_keeps_copy(make_task, monkeypatch):
    archive = Archive(f"memory://{uuid.uuid4().hex}")
    archive.append(make_task(id="one"))
    with monkeypatch.context() as patch:
        patch.setattr(RemoteStorage, "_fetch", failing(TimeoutError("slow")))
        with pytest.raises(OSError, match="out of reach"):
            archive.verify()
    monkeypatch.setattr(RemoteStorage, "_sizes", failing(TimeoutError("slow")))
    with pytest.warns(ArchiveWarning, match="local copy"):
        assert len(archive) == 1


def test_verify_reports_files_that_are_too_large(elsewhere):
    files, file = place(elsewhere.path, "tasks/large.joblib")
    files.pipe_file(file, bytes(MAX_BYTES + 1))
    [finding] = elsewhere.verify()
    assert finding.problem == "it is larger than 16 MiB"
    with pytest.warns(ArchiveWarning, match="larger than 16 MiB"):
        assert [task.id for task in elsewhere] == ["first"]


def test_append_works_if_copy_cannot_be_written(make_task, monkeypatch):
    """The record is at the address."""
    archive = Archive(f"memory://{uuid.uuid4().hex}")
    monkeypatch.setattr(_storage, "write_file", failing(OSError("a disk that is read only")))
    assert archive.append(make_task(id="one")) == "one"
    files, file = place(archive.path, "tasks/one.joblib")
    assert files.exists(file)
    with pytest.warns(ArchiveWarning, match="read only"):
        assert len(archive) == 0


def test_append_raises_if_folder_cannot_be_created(make_task, monkeypatch):
    archive = Archive(f"memory://{uuid.uuid4().hex}")
    monkeypatch.setattr(
        type(RemoteStorage(archive.path).filesystem), "makedirs", failing(FileExistsError("a file"))
    )
    with pytest.raises(OSError, match="cannot be written to"):
        archive.append(make_task())


def test_verify_bypasses_cache_of_file_system(make_task):
    name = uuid.uuid4().hex
    archive = Archive(f"simplecache::memory://{name}")
    archive.append(make_task(id="one"))
    assert archive["one"].id == "one" and archive.verify() == []
    files, file = place(f"memory://{name}", "tasks/one.joblib")
    files.pipe_file(file, bytes(files.size(file)))
    assert len(archive.verify()) == 1


def test_archive_accepts_chain_of_addresses(make_task, tmp_path):
    archive = Archive(f"simplecache::file://{(tmp_path / 'past').as_posix()}")
    archive.append(make_task(id="one"))
    assert [task.id for task in archive] == ["one"]
    assert (tmp_path / "past" / "tasks" / "one.joblib").is_file()
    with pytest.raises(ValueError, match="nonsense"):
        Archive("simplecache::nonsense://past")


def test_address_in_environment_variable_is_used(make_task, monkeypatch):
    monkeypatch.setenv("SKTRANSFER_ARCHIVE", f"memory://{uuid.uuid4().hex}")
    Archive().append(make_task(id="one"))
    files, file = place(os.environ["SKTRANSFER_ARCHIVE"], "tasks/one.joblib")
    assert files.exists(file)


def test_address_without_fsspec_raises(monkeypatch):
    imported = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "fsspec":
            raise ImportError("No module named 'fsspec'")
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'sktransfer\[remote\]'"):
        Archive("s3://bucket/past")
    Archive("past")


def test_unknown_protocol_raises():
    with pytest.raises(ValueError, match="nonsense"):
        Archive("nonsense://past")


# -- searches --------------------------------------------------------------------------------------


def search_on(address, **params):
    space = {"C": loguniform(0.1, 10), "gamma": loguniform(0.01, 1)}
    params = {"n_iter": 3, "cv": 2, "random_state": 0} | params
    return TransferSearchCV(SVC(), space, archive=address, **params)


def test_search_creates_no_bucket(s3):
    with pytest.warns(ArchiveWarning, match="cannot be added to .*nobucket-xyz") as caught:
        search_on("s3://nobucket-xyz/past").fit(*load_iris(return_X_y=True))
    assert [str(each.message).split(" cannot be ")[0] for each in caught] == [
        "The journal of this search",
        "The trials",
    ]
    names = [name.rstrip("/") for name in fsspec.filesystem("s3").ls("", refresh=True)]
    assert "nobucket-xyz" not in names and "past" in names


def test_search_tries_an_address_out_of_reach_once(monkeypatch, make_task):
    address = f"memory://{uuid.uuid4().hex}"
    calls = []

    def lost(self):
        calls.append(self.address)
        raise ConnectionError("no route")

    monkeypatch.setattr(RemoteStorage, "_sizes", lost)
    with pytest.warns(ArchiveWarning) as caught:
        search = search_on(address).fit(*load_iris(return_X_y=True))
    assert len(caught) == len(calls) == 1
    assert str(caught[0].message) == (
        f"The archive {address} is out of reach (ConnectionError: no route). The local copy of it "
        "is used."
    )
    assert caught[0].filename == __file__
    assert search.task_id_ is None and search.best_score_ > 0.5
    assert [len(task.trials) for task in Archive(address).journals.tasks()] == [3]
    with pytest.warns(ArchiveWarning, match="out of reach"):  # the next search tries again
        search_on(address).fit(*load_iris(return_X_y=True))
    assert len(calls) == 2


def test_s3_out_of_reach_takes_little_time(monkeypatch):
    pytest.importorskip("s3fs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    fsspec.filesystem("s3").clear_instance_cache()
    start = time.monotonic()
    with pytest.warns(ArchiveWarning, match="s3://gone/past is out of reach") as caught:
        search_on("s3://gone/past").fit(*load_iris(return_X_y=True))
    assert len(caught) == 1
    assert time.monotonic() - start < 20
    fsspec.filesystem("s3").clear_instance_cache()


def test_limits_of_the_user_are_respected(monkeypatch):
    assert _connection_options("memory://a") == {}
    assert _connection_options("s3://a/b")["config_kwargs"]["connect_timeout"] == 5
    assert "config_kwargs" in _connection_options("simplecache::s3://a/b")["s3"]
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": {"connect_timeout": 60}})
    assert _connection_options("s3://a/b") == {}
