"""Exchange of records: merge, export with all options, and import."""

import io
import json
import os
import re
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from sktransfer.archive import Archive, RecordError, _exchange
from sktransfer.archive._key import HASHES
from sktransfer.archive._packed_numbers import pack_numbers
from sktransfer.archive._plain_pickle import dumps_plain, loads_plain
from sktransfer.archive._record import record_to_task, task_to_record
from sktransfer.archive._storage import Storage
from sktransfer.dataset import profile
from sktransfer.exceptions import ArchiveWarning
from sktransfer.space import Space
from sktransfer.task import Task, Trial

X, y = load_iris(return_X_y=True)


@pytest.fixture
def other(tmp_path):
    return Archive(tmp_path / "other")


# -- merge ---------------------------------------------------------------------------------------


def test_merge_adds_new_records(archive, other, make_task):
    archive.append(make_task(id="mine"))
    both = make_task(id="both")
    archive.append(both)
    other.append(both)
    task = make_task(id="theirs")
    other.append(task)
    received = archive.merge(other)
    assert (received.added, received.known, received.refused) == (("theirs",), ("both",), ())
    assert archive["theirs"] == replace(task, origin=f"merged from {other.path}")
    assert [task.id for task in other] == ["both", "theirs"]
    assert archive.merge(str(other.path)).added == ()


def test_merge_keeps_own_record_of_same_id(archive, other, make_task):
    archive.append(make_task(id="one"))
    other.append(make_task(id="one", trials=[({"C": 1.0}, 0.1)]))
    with pytest.warns(ArchiveWarning, match="another record of this id, and keeps it"):
        received = archive.merge(other)
    assert len(received.refused) == 1
    assert archive["one"].best.score == 0.9


def test_merge_refuses_newer_format(archive, other, make_task):
    """The newer record stays where it is."""
    other.append(make_task(id="known"))
    newer = dumps_plain({**task_to_record(make_task(id="newer")), "format": 7})
    (other.path / "tasks" / "newer.joblib").write_bytes(newer)
    with pytest.warns(
        ArchiveWarning,
        match=r"newer\.joblib: the record has format 7, this version reads .* up to 1",
    ):
        received = archive.merge(other)
    assert received.added == ("known",)
    assert (other.path / "tasks" / "newer.joblib").read_bytes() == newer


def test_merge_raises_without_archive(archive, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no archive to merge from"):
        archive.merge(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="There is no archive to merge from"):
        archive.merge(archive.path.parent)  # the parent folder
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError):
        archive.merge(tmp_path / "file")


# -- export and import ---------------------------------------------------------------------------


def test_import_returns_exported_records(archive, other, make_task, tmp_path):
    tasks = [make_task() for _ in range(3)]
    for task in tasks:
        archive.append(task)
    assert archive.export(tmp_path / "all.zip") == 3
    received = other.import_(tmp_path / "all.zip")
    assert set(received.added) == {task.id for task in tasks}
    assert list(other) == [replace(task, origin="imported from all.zip") for task in archive]
    assert set(archive.import_(tmp_path / "all.zip").known) == {task.id for task in tasks}


def function_of_mine(x):
    return x


@pytest.fixture
def private(tmp_path):
    """An archive with a record that contains private data."""
    archive = Archive(tmp_path / "private", keep="sample")
    pipeline = make_pipeline(SVC())
    pipeline.steps = [("secret_step", SVC())]
    space = {"secret_step__C": [1, 10], "secret_step__kernel": [function_of_mine, "rbf"]}
    trials = [({"secret_step__C": 1, "secret_step__kernel": function_of_mine}, 0.9)]
    trial = {
        "params": trials[0][0],
        "score": 0.9,
        "fit_time": 0.125,
        "metrics": {"secret_metric": 0.25},
    }
    archive.append(
        Task.from_trials(
            space,
            [trial],
            profile(X, y, keep="sample"),
            estimator=pipeline,
            metrics=("accuracy", "secret_metric"),
        )
    )
    return archive


def exported(archive, file, **choices):
    archive.export(file, **choices, overwrite=True)
    with zipfile.ZipFile(file) as content:
        (name,) = content.namelist()
        with content.open(name) as stream:
            return name, joblib.load(stream)


def test_export_leaves_out_samples_by_default(private, tmp_path):
    (task,) = private
    assert task.profile["sample"] is not None
    assert exported(private, tmp_path / "a.zip")[1]["profile"]["sample"] is None
    found = exported(private, tmp_path / "a.zip", samples=True)[1]["profile"]["sample"]
    assert found == pack_numbers(task.profile["sample"])


def test_export_leaves_out_fingerprints(private, tmp_path, other):
    _, record = exported(private, tmp_path / "a.zip")
    assert {name: record["profile"][name] for name in (*HASHES, "enclosing", "key")} == {
        **{name: [] for name in (*HASHES, "enclosing")},
        "key": "",
    }
    assert record["profile"]["meta_features"]
    other.import_(tmp_path / "a.zip")
    selection = other.select(profile=profile(X, y))
    assert list(selection.overlap.values()) == ["unknown"] and not selection.excluded


def test_key_of_both_sides_carries_fingerprints(private, tmp_path, other):
    private.export(tmp_path / "a.zip", key="between us")
    other.import_(tmp_path / "a.zip", key="between us")
    ((_, reason),) = other.select(profile=profile(X, y)).excluded
    assert "shares about 100 %" in reason
    assert not other.select(profile=profile(X**2, y)).excluded
    third = Archive(tmp_path / "third")
    third.import_(tmp_path / "a.zip")
    assert list(third.select(profile=profile(X, y)).overlap.values()) == ["unknown"]
    with pytest.raises(ValueError, match="not the one with which"):
        third.import_(tmp_path / "a.zip", key="another")
    private.export(tmp_path / "b.zip")
    with pytest.raises(ValueError, match=r"contains no hashes .* without a key"):
        third.import_(tmp_path / "b.zip", key="between us")


def test_exports_under_the_same_key_cannot_be_compared_by_others(private, tmp_path):
    """Otherwise a third party could count the rows that two owners have in common."""
    found = []
    for file in ("a.zip", "b.zip"):
        private.export(tmp_path / file, key="between us")
        with zipfile.ZipFile(tmp_path / file) as content:
            [name] = [name for name in content.namelist() if name != "seal"]
            record = record_to_task(loads_plain(content.read(name)))
        found.append(set(record.profile["fingerprint"]))
    assert len(found[0]) > 100 and not found[0] & found[1]


def test_merge_carries_fingerprints_of_readable_archive(private, other):
    other.merge(private)
    ((_, reason),) = other.select(profile=profile(X, y)).excluded
    assert "shares about 100 %" in reason
    (private.path / "key").unlink()
    third = Archive(other.path.parent / "third")
    third.merge(private)
    assert list(third.select(profile=profile(X, y)).overlap.values()) == ["unknown"]


def test_export_numbers_digests_of_functions(archive, make_task, tmp_path):
    functions = [lambda x: x, lambda x: x + 1]
    trials = [({"f": functions[0]}, 0.5), ({"f": functions[1]}, 0.6)]
    archive.append(make_task(space={"f": functions}, trials=trials, metrics=["<lambda> 0123abcd"]))
    [before] = archive
    assert re.search("#[0-9a-f]{12}", repr(before.trials))
    _, record = exported(archive, tmp_path / "a.zip")
    assert not re.search("[0-9a-f]{8}", repr(record["trials"]) + repr(record["space"]))
    values = [trial["params"]["f"]["object"] for trial in record["trials"]]
    assert len(set(values)) == 2 and all(re.search(r"#\d$", value) for value in values)
    assert re.fullmatch(r"<lambda> #\d", record["metrics"][0])


def test_export_leaves_out_names(private, tmp_path, other):
    (task,) = private
    _, record = exported(private, tmp_path / "a.zip", names=False)
    assert "secret" not in json.dumps(record) and "function_of_mine" not in json.dumps(record)
    assert record["metrics"] == ["accuracy", "metric 2"]
    assert record["trials"][0]["params"]["SVC.C"] == 1
    assert record["trials"][0]["metrics"] == {"metric 2": 0.25}
    other.import_(tmp_path / "a.zip")
    # It is still selected for the same problem.
    (found,) = other.select(Space.parse({"C": [1, 10]}, SVC())).used
    assert found.id == task.id
    assert (
        found.best.params["SVC.kernel"] == record["space"]["branches"][0]["SVC.kernel"]["values"][0]
    )


def test_export_leaves_out_names_of_steps_and_labels(archive, tmp_path):
    inner = Pipeline([("secret_inner", StandardScaler())])
    pipeline = Pipeline([("secret_scaler", StandardScaler()), ("secret_model", SVC())])
    spec = {
        "secret_scaler": [inner, MinMaxScaler(), "passthrough"],
        "secret_model": [SVC(class_weight={"secret_label": 2}), LogisticRegression()],
    }
    space = Space.parse(spec, pipeline)
    trials = [(params, 0.5) for params in space.grid()]
    archive.append(Task.from_trials(space, trials))
    _, record = exported(archive, tmp_path / "a.zip", names=False)
    assert "secret" not in json.dumps(record)
    assert record["space"]["branches"][0].keys() == {"Pipeline.step 1", "Pipeline.step 2"}
    scaler, model = (record["trials"][0]["params"][f"Pipeline.step {n}"] for n in (2, 1))
    assert scaler["params"]["steps"][0][0] == "step 1"
    [(key, weight)] = model["params"]["class_weight"].items()
    assert key.startswith("key ") and weight == 2


class SecretSVC(SVC):
    """A class of the user."""


def test_export_leaves_out_texts_and_own_classes(archive, tmp_path, other):
    pipeline = Pipeline([("scaler", StandardScaler()), ("model", SecretSVC(kernel="poly"))])
    pipeline.set_params(memory="/home/secret/cache")
    spec = [
        {"model": [SecretSVC(), SVC()], "model__C": [1, 10]},
        {"model__kernel": ["rbf", "secret"], "scaler": ["passthrough", StandardScaler()]},
        {"model__class_weight": [{"secret": 1}, "balanced"], "memory": ["secret/path", None]},
        {"model__gamma": [Path("secret.txt"), "scale"], "model__tol": [("secret", 1)]},
    ]
    space = Space.parse(spec, pipeline)
    archive.append(Task.from_trials(space, [(params, 0.5) for params in space.grid()]))
    _, record = exported(archive, tmp_path / "a.zip", names=False)
    text = json.dumps(record).lower()
    assert "secret" not in text and "home" not in text
    assert record["space"]["predictors"] == ["SVC", "class 1"]
    assert {"SVC|class 1.C", "class 1.kernel"} <= {*record["space"]["canonical"]}
    kernels = record["space"]["branches"][1]["class 1.kernel"]["values"]
    assert kernels[0] == "rbf" and kernels[1].startswith("text ")
    trials = [trial["params"] for trial in record["trials"]]
    assert {p["class 1.kernel"] for p in trials if "class 1.kernel" in p} == {*kernels}
    other.import_(tmp_path / "a.zip")
    assert len(other.select(Space.parse({"C": [1, 10]}, SVC())).used) == 1


def test_export_leaves_out_names_of_disabled_steps(archive, tmp_path):
    steps = [("secret_step", "passthrough"), ("secret_none", None), ("clf", SVC())]
    search = GridSearchCV(Pipeline(steps), {"clf__C": [1, 10]}, cv=2).fit(X, y)
    archive.add(search, X, y)
    _, record = exported(archive, tmp_path / "a.zip", names=False)
    assert "secret" not in json.dumps(record)
    assert record["space"]["fixed"]["SVC.kernel"] == "rbf"


def test_export_numbers_labels_instead_of_hashing(archive, tmp_path):
    """A digest of a word could be looked up in a list. Equal labels stay equal."""
    weights = [{"yes": 2, "no": 1}, {"no": 2, "yes": 1}]
    spec = {"class_weight": weights}
    archive.append(
        Task.from_trials(Space.parse(spec, SVC()), [({"class_weight": w}, 0.5) for w in weights])
    )
    _, record = exported(archive, tmp_path / "a.zip", names=False)
    values = record["space"]["branches"][0]["SVC.class_weight"]["values"]
    assert values == [{"key 1": 2, "key 2": 1}, {"key 2": 2, "key 1": 1}]
    assert [trial["params"]["SVC.class_weight"] for trial in record["trials"]] == values


def test_import_refuses_other_compression(archive, make_task, tmp_path, other):
    archive.append(make_task())
    archive.export(tmp_path / "a.zip")
    with (
        zipfile.ZipFile(tmp_path / "a.zip") as old,
        zipfile.ZipFile(tmp_path / "b.zip", "w") as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name), compress_type=zipfile.ZIP_LZMA)
    damaged = bytearray((tmp_path / "b.zip").read_bytes())
    damaged[80:120] = bytes(40)
    (tmp_path / "c.zip").write_bytes(damaged)
    for file in ("b.zip", "c.zip"):
        with pytest.warns(ArchiveWarning, match="were refused"):
            received = other.import_(tmp_path / file)
        assert not received.added and len(received.refused) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are none")
def test_export_replaces_no_pipe_and_follows_link(archive, make_task, tmp_path):
    archive.append(make_task())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        archive.export(tmp_path / "pipe")
    (tmp_path / "link.zip").symlink_to(tmp_path / "real.zip")
    archive.export(tmp_path / "link.zip")
    assert (tmp_path / "link.zip").is_symlink() and (tmp_path / "real.zip").stat().st_size


def test_import_reads_repacked_file(archive, make_task, tmp_path, other):
    archive.append(make_task())
    archive.export(tmp_path / "a.zip")
    with (
        zipfile.ZipFile(tmp_path / "a.zip") as old,
        zipfile.ZipFile(tmp_path / "b.zip", "w") as new,
    ):
        new.writestr("tasks/", b"")
        for name in old.namelist():
            new.writestr(name, old.read(name))
    received = other.import_(tmp_path / "b.zip")
    assert len(received.added) == 1 and not received.refused


def test_export_leaves_out_times(private, tmp_path, other):
    (task,) = private
    name, record = exported(private, tmp_path / "a.zip", times=False)
    assert task.id[:8] not in name + json.dumps(record) and task.created not in json.dumps(record)
    assert np.isnan(record["trials"][0]["fit_time"])
    assert other.import_(tmp_path / "a.zip").added == other.import_(tmp_path / "a.zip").known
    assert exported(private, tmp_path / "b.zip", times=False)[0] == name


def test_export_and_import_raise_for_wrong_paths(archive, make_task, tmp_path):
    archive.append(make_task())
    with pytest.raises(IsADirectoryError):
        archive.export(tmp_path)
    with pytest.raises(FileNotFoundError):
        archive.import_(tmp_path / "nothing.zip")


def test_export_refuses_too_many_records(archive, make_task, tmp_path, monkeypatch):
    archive.append(make_task())
    monkeypatch.setattr(_exchange, "MAX_RECORDS", 0)
    with pytest.raises(ValueError, match="at most 0 records"):
        archive.export(tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_readonly_archive_refuses_changes(archive, other, make_task, tmp_path):
    archive.append(make_task(id="one"))
    archive.export(tmp_path / "a.zip")
    reader = Archive(archive.path, readonly=True)
    for write in (
        lambda: reader.merge(other),
        lambda: reader.import_(tmp_path / "a.zip"),
        lambda: reader.remove("one"),
        lambda: reader.prune(max_records=0),
        lambda: reader.verify(repair=True),
    ):
        with pytest.raises(PermissionError, match="readonly"):
            write()
    assert reader.verify() == [] and reader.prune(max_records=0, dry_run=True) == ["one"]
    assert len(archive) == 1


@pytest.mark.parametrize("choices", [{"names": False}, {"times": False}, {}])
def test_exported_stages_of_one_search_are_used_once(archive, other, make_task, tmp_path, choices):
    archive.append(make_task(id="first", resume={"problem": {}, "continues": []}))
    trials = [({"C": 1.0}, 0.9), ({"C": 10.0}, 0.5), ({"C": 3.0}, 0.7)]
    archive.append(
        make_task(id="second", trials=trials, resume={"problem": {}, "continues": ["first"]})
    )
    archive.export(tmp_path / "a.zip", **choices)
    other.import_(tmp_path / "a.zip")
    assert [task.n_trials for task in other.select().used] == [3]


def test_merge_updates_incomplete_record(archive, other, make_task):
    whole = make_task(id="one")
    other.append(replace(whole, trials=whole.trials[:1], complete=False))
    assert archive.merge(other).added == ("one",)
    other.remove("one")
    other.append(whole)
    assert archive.merge(other).added == ("one",)
    assert archive["one"] == replace(whole, origin=f"merged from {other.path}")
    assert archive.merge(other).known == ("one",)


def test_merge_keeps_own_incomplete_record(archive, other, make_task):
    """A stranger's record that begins with the same trials does not take its place."""
    own = replace(make_task(id="one"), complete=False)
    archive.append(own)
    other.append(replace(own, trials=(*own.trials, Trial({"C": 1.0}, 1.0)), complete=True))
    with pytest.warns(ArchiveWarning, match="and keeps it"):
        archive.merge(other)
    assert archive["one"] == own


def test_merge_refuses_itself(archive, make_task):
    archive.append(make_task())
    with pytest.raises(ValueError, match="itself"):
        archive.merge(archive.path)


@pytest.mark.parametrize("is_same", [True, False])
def test_merge_compares_record_written_meanwhile(archive, other, make_task, monkeypatch, is_same):
    task = make_task(id="one")
    other.append(task)
    archive.append(task if is_same else replace(task, created="2020-01-01"))
    find, calls = Storage.find, []

    def find_later(self, id):  # it is written after the first check
        calls.append(id)
        return None if len(calls) == 1 else find(self, id)

    monkeypatch.setattr(Storage, "find", find_later)
    if is_same:
        assert archive.merge(other).known == ("one",)
    else:
        with pytest.warns(ArchiveWarning, match="and keeps it"):
            assert not archive.merge(other).added
        assert archive["one"].created == "2020-01-01"


# -- untrusted and damaged files ------------------------------------------------------------------


def test_import_refuses_bzip2_bomb(archive, tmp_path):
    """Python unpacks a whole bzip2 block at once, whatever its listed size."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w") as content:
        content.writestr("tasks/a.joblib", bytes(10**6), compress_type=zipfile.ZIP_BZIP2)
        content.infolist()[0].file_size = 1000  # the listed size
    with pytest.warns(ArchiveWarning, match="its compression is not"):
        assert archive.import_(tmp_path / "bomb.zip").added == ()


def test_import_refuses_duplicate_members(archive, other, make_task, tmp_path):
    archive.append(make_task())
    archive.export(tmp_path / "a.zip")
    with (
        zipfile.ZipFile(tmp_path / "a.zip") as old,
        zipfile.ZipFile(tmp_path / "b.zip", "w") as new,
    ):
        [name] = old.namelist()
        new.writestr(name, old.read(name))
        new.infolist().append(new.infolist()[0])
    with pytest.raises(RecordError, match="list of members"):
        other.import_(tmp_path / "b.zip")


def test_import_reads_highly_compressible_record(archive, other, make_task, tmp_path):
    archive.append(make_task(trials=[({"C": "x" * 300_000}, 0.5)], space={"C": ["x" * 300_000]}))
    archive.export(tmp_path / "a.zip")
    assert len(other.import_(tmp_path / "a.zip").added) == 1


def test_merge_reports_own_damaged_record(archive, other, make_task):
    archive.append(make_task(id="one"))
    other.append(make_task(id="one"))
    file = archive.path / "tasks" / "one.joblib"
    file.write_bytes(file.read_bytes()[:50])
    with pytest.warns(ArchiveWarning, match="own file of this id is damaged") as caught:
        archive.merge(other)
    assert caught[0].filename == __file__
    archive.verify(repair=True)
    assert archive.merge(other).added == ("one",)


def test_export_raises_without_archive(archive, make_task, tmp_path):
    archive.append(make_task())
    archive.export(tmp_path / "a.zip")
    before = (tmp_path / "a.zip").read_bytes()
    with pytest.raises(FileNotFoundError, match="no archive to export"):
        Archive(tmp_path / "mistyped").export(tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == before


@pytest.mark.parametrize("place", ["member", "list", "both"])
def test_import_refuses_name_that_is_no_text(archive, other, make_task, tmp_path, place):
    archive.append(make_task(id="one"))
    archive.export(tmp_path / "a.zip")
    data = (tmp_path / "a.zip").read_bytes()
    parts = {"member": [(b"PK\3\4", 6)], "list": [(b"PK\1\2", 8)]}
    for mark, flags in parts.get(place, [*parts["member"], *parts["list"]]):
        start = data.index(mark)
        name = data.index(b"tasks/one", start)
        data = data[: start + flags] + b"\0\x08" + data[start + flags + 2 :]  # names are UTF-8
        data = data[: name + 6] + b"\xff\xfe\xff" + data[name + 9 :]
    (tmp_path / "b.zip").write_bytes(data)
    if place == "member":
        with pytest.warns(ArchiveWarning, match="cannot be unpacked"):
            assert not other.import_(tmp_path / "b.zip").added
    else:
        with pytest.raises(RecordError, match="not an exported archive"):
            other.import_(tmp_path / "b.zip")


@pytest.mark.parametrize("size", range(42_000, 46_000, 97))
def test_compressed_size_is_predicted_exactly(size):
    """`export` decides by this size whether to store a record uncompressed."""
    data = bytes(size)
    packed = len(zlib.compress(data, wbits=-15))
    with zipfile.ZipFile(io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("a", data)
        assert content.getinfo("a").compress_size == packed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_import_of_named_pipe_raises_and_does_not_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe.zip")
    with pytest.raises(RecordError, match="not a regular file"):
        Archive(tmp_path / "archive").import_(tmp_path / "pipe.zip")


def test_import_follows_a_link_to_the_file(tmp_path, make_task):
    source = Archive(tmp_path / "source")
    source.append(make_task(id="one"))
    source.export(tmp_path / "export.zip")
    (tmp_path / "link.zip").symlink_to(tmp_path / "export.zip")
    assert len(Archive(tmp_path / "archive").import_(tmp_path / "link.zip").added) == 1
