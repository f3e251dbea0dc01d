"""Records: from a task and back, and invalid records."""

import enum
import math
import pickle
import subprocess
import sys
from collections import OrderedDict
from dataclasses import fields, replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from sktransfer.archive import Archive, NewerFormatError, RecordError
from sktransfer.archive._packed_numbers import pack_numbers, unpack_numbers
from sktransfer.archive._plain_pickle import dumps_plain, loads_plain
from sktransfer.archive._record import MAX_DEPTH, library_versions, record_to_task, task_to_record
from sktransfer.exceptions import ArchiveWarning
from sktransfer.task import TASK_FORMAT, Task, Trial

ASSETS = Path(__file__).parent / "assets"


class Color(str, enum.Enum):  # noqa: UP042 - str() of a StrEnum is the text already
    RED = "red"


def profile_record(task, profile):
    return task_to_record(replace(task, profile=profile))["profile"]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.int8(3), 3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (Color.RED, "red"),
        ((1, (2.0, None)), [1, [2.0, None]]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([0.5, 1.5], dtype=np.longdouble), [0.5, 1.5]),
        (np.array(["a", None], dtype=object), ["a", None]),
        (np.array(0.5), 0.5),
        (OrderedDict(a=np.zeros(2)), {"a": [0.0, 0.0]}),
    ],
)
def test_task_to_record_converts_numpy_and_tuples(make_task, value, plain):
    made = profile_record(make_task(), {"x": value})["x"]
    assert repr(made) == repr(plain)  # distinguishes 1, 1.0, True and numpy's numbers


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"profile": {"a": [0.5, {"b": {1, 2}}]}}, r"profile\['a'\]\[1\]\['b'\] is a set"),
        ({"profile": {"a": b"bytes"}}, r"profile\['a'\] is a bytes"),
        ({"profile": {"a": 1j}}, r"profile\['a'\] is a complex"),
        (
            {"profile": {"a": np.array(["2020-01-01"], dtype="M8[D]")}},
            r"profile\['a'\]\[0\] is a date",
        ),
        ({"profile": {"a": {3: 1}}}, r"profile\['a'\] has the key 3"),
        ({"profile": {"a": 2**64}}, r"profile\['a'\] is an integer of more than 64 bits"),
        ({"profile": {"a": -(2**63) - 1}}, r"profile\['a'\] is an integer of more than 64 bits"),
        ({"versions": {"numpy": np}}, r"versions\['numpy'\] is a module"),
        (
            {"trials": (Trial({"C": 1}, 0.5),) * 3 + (Trial({"kernel": len}, 0.5),)},
            r"trials\[3\]\.params\['kernel'\]",
        ),
        (
            {"trials": (Trial({}, 0.5, metrics={"f1": object()}),)},
            r"trials\[0\]\.metrics\['f1'\] is a object",
        ),
    ],
)
def test_task_to_record_reports_place_of_other_values(make_task, change, place):
    with pytest.raises(TypeError, match=place):
        task_to_record(replace(make_task(), **change))


def test_task_to_record_bounds_depth(make_task):
    """A list that contains itself is infinitely deep."""
    endless = []
    endless.append(endless)
    with pytest.raises(TypeError, match=f"more than {MAX_DEPTH} levels"):
        profile_record(make_task(), {"x": endless})


def wrap(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_limit_is_the_same_for_reading_and_writing(make_task):
    deepest = max(d for d in range(1, 60) if _fits(make_task(), d))
    assert deepest == MAX_DEPTH - 1  # one level is the profile itself
    sizes = {"kind": "x", "n_rows": 1}
    record = task_to_record(replace(make_task(), profile={**sizes, "x": wrap(deepest)}))
    assert record_to_task(record).profile == {**sizes, "x": wrap(deepest)}
    record["profile"] = {**sizes, "x": wrap(deepest + 1)}
    with pytest.raises(RecordError, match="nested more than"):
        record_to_task(record)


def _fits(task, depth):
    try:
        return bool(profile_record(task, {"x": wrap(depth)}))
    except TypeError:
        return False


def test_record_to_task_returns_equal_task_with_nan(make_task):
    task = make_task(trials=[Trial({"C": 1.0}, 0.5), Trial({"C": 10.0}, math.nan, status="failed")])
    assert record_to_task(task_to_record(task)) == task


def test_record_to_task_ignores_unknown_fields(make_task):
    task = make_task()
    record = task_to_record(task)
    record["color"] = "red"
    record["trials"][0]["color"] = "red"
    assert record_to_task(record) == record_to_task(task_to_record(task))


WRONG = {
    "format as text": (("format",), "1"),
    "format as bool": (("format",), True),
    "format 0": (("format",), 0),
    "id as number": (("id",), 3),
    "id as path": (("id",), "../one"),
    "created as number": (("created",), 3),
    "created empty": (("created",), ""),
    "complete as number": (("complete",), 1),
    "no metrics": (("metrics",), []),
    "metrics as text": (("metrics",), "score"),
    "metrics as numbers": (("metrics",), [1]),
    "profile as list": (("profile",), []),
    "profile with a number as key": (("profile",), {"a": {1: 2}}),
    "versions as list": (("versions",), []),
    "versions as numbers": (("versions",), {"numpy": 2}),
    "space as list": (("space",), []),
    "branches as dict": (("space", "branches"), {}),
    "branch as list": (("space", "branches"), [[]]),
    "branch of lists": (("space", "branches"), [{"C": []}]),
    "canonical as list": (("space", "canonical"), []),
    "canonical to numbers": (("space", "canonical"), {"C": 1}),
    "fixed as list": (("space", "fixed"), []),
    "predictors as text": (("space", "predictors"), "SVC"),
    "predictors as numbers": (("space", "predictors"), [1]),
    "trials as dict": (("trials",), {}),
    "trial as list": (("trials", 0), []),
    "params as list": (("trials", 0, "params"), []),
    "score as text": (("trials", 0, "score"), "0.5"),
    "score as bool": (("trials", 0, "score"), True),
    "no score": (("trials", 0, "score"), None),
    "score not finite": (("trials", 0, "score"), math.inf),
    "failed with a score": (("trials", 0, "status"), "failed"),
    "ok without a score": (("trials", 1, "status"), "ok"),
    "another status": (("trials", 0, "status"), "great"),
    "std as text": (("trials", 0, "std"), "0"),
    "time as list": (("trials", 0, "fit_time"), [0.5]),
    "trial metrics as list": (("trials", 0, "metrics"), []),
    "trial metrics as text": (("trials", 0, "metrics"), {"f1": "0.5"}),
}


@pytest.mark.parametrize(("path", "value"), WRONG.values(), ids=WRONG)
def test_record_to_task_refuses_wrong_fields(archive, tasks_directory, make_task, path, value):
    record = task_to_record(make_task(id="one"))
    assert record_to_task(record).id == "one"
    place = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(RecordError):
        record_to_task(record)
    (tasks_directory / "one.joblib").write_bytes(dumps_plain(record))
    with pytest.warns(ArchiveWarning, match=r"one\.joblib"):
        assert list(archive) == []


OPTIONAL = ("resume", "name")


@pytest.mark.parametrize("name", [f.name for f in fields(Task) if f.name not in OPTIONAL])
def test_record_to_task_refuses_missing_fields(make_task, name):
    record = task_to_record(make_task())
    del record[name]
    with pytest.raises(RecordError, match=f"'{name}' is missing"):
        record_to_task(record)


def test_append_refuses_what_cannot_be_read(archive, make_task):
    with pytest.raises(RecordError, match="status 'ok' and the score nan"):
        archive.append(replace(make_task(), trials=(Trial({"C": 1.0}, math.nan),)))
    with pytest.raises(RecordError, match="'branches' of the space is missing"):
        archive.append(replace(make_task(), space={}))
    assert not archive.path.exists()


def test_record_to_task_converts_integer_scores(make_task):
    record = task_to_record(make_task())
    record["trials"][0]["score"] = 1
    score = record_to_task(record).trials[0].score
    assert (type(score), score) == (float, 1.0)


def test_archive_skips_newer_format(archive, tasks_directory, make_task):
    newer = TASK_FORMAT + 1
    data = dumps_plain({"format": newer, "everything": ["else", "is", "different"]})
    (tasks_directory / "new.joblib").write_bytes(data)
    archive.append(make_task(id="one"))
    with pytest.warns(ArchiveWarning, match="Skipped") as caught:
        assert [task.id for task in archive] == ["one"]
    assert len(caught) == 1
    for part in ("new.joblib", f"format {newer}", f"up to {TASK_FORMAT}", "Update sktransfer"):
        assert part in str(caught[0].message)
    with pytest.raises(NewerFormatError, match=f"format {newer}.*up to {TASK_FORMAT}") as error:
        archive["new"]
    assert (error.value.found, error.value.known) == (newer, TASK_FORMAT)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    assert (tasks_directory / "new.joblib").read_bytes() == data


def test_append_refuses_newer_format(archive, make_task):
    with pytest.raises(NewerFormatError):
        archive.append(replace(make_task(), format=TASK_FORMAT + 1))


def test_library_versions_are_those_installed(monkeypatch):
    versions = library_versions()
    assert versions["numpy"] == np.__version__
    assert versions.keys() - {"sktransfer"} == {"python", "numpy", "scikit-learn"}

    def unknown(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", unknown)
    assert library_versions().keys() == {"python"}


# -- packed numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        [0.1 * n for n in range(100)],
        [math.inf, -math.inf, -0.0, 5e-324] * 4,
        [2**64 - 1, 0] * 8,
        [2**64, 0] * 8,
        [-1, 0] * 8,
        [True, False] * 8,
        [1, 1.0] * 8,
        [[1.5] * 20, [2] * 20, ["a"] * 20, {"b": [0.5] * 15}],
        ["packed:", "packed:float:!", {"packed:int:": "packed:text:"}],
        {f"a:{n}": n / 7 for n in range(16)},
        {f"a{n}": float(n) for n in range(15)},
        {f"a{n}": n for n in range(16)},
        {f"two\nlines{n}": 0.5 for n in range(16)},
        {"": 0.5, **{f"{n}": math.inf for n in range(16)}},
        [],
    ],
)
def test_unpack_numbers_returns_what_was_packed(value):
    assert repr(unpack_numbers(pack_numbers(value))) == repr(value)


def test_pack_numbers_packs_long_lists_only():
    assert pack_numbers([0.5] * 16).startswith("packed:float:")
    assert pack_numbers([5] * 16).startswith("packed:int:")
    assert pack_numbers({f"a{n}": 0.5 for n in range(16)}).startswith("packed:dict:a0\na1\n")
    array = np.arange(16, dtype=np.uint64)
    assert pack_numbers(array) == pack_numbers(array.tolist())
    assert pack_numbers(array[:2]) == [0, 1]
    assert pack_numbers([[0.5] * 15]) == [[0.5] * 15]


@pytest.mark.parametrize(
    "text",
    [
        "packed:",
        "packed:object:AAAA",
        "packed:float:AAA=",
        "packed:int:?",
        "packed:dict:",
        "packed:dict:a\nb:AAAAAAAAAAA=",
        "packed:dict:a\na:" + "A" * 21 + "=",
    ],
)
def test_record_to_task_refuses_damaged_numbers(make_task, text):
    record = {**task_to_record(make_task()), "profile": {"fingerprint": text}}
    with pytest.raises(RecordError, match="numbers"):
        record_to_task(record)


# -- the frozen file -----------------------------------------------------------------------------


@pytest.fixture
def frozen_archive(archive, tasks_directory):
    """An archive with the frozen record of the current format."""
    data = (ASSETS / f"format-{TASK_FORMAT}.joblib").read_bytes()
    (tasks_directory / "20250102T030405-0123456789abcdef.joblib").write_bytes(data)
    return Archive(archive.path, readonly=True)


def frozen_task():
    """The task in the frozen file."""
    return Task(
        trials=(
            Trial({"svc__C": 1.0, "svc__kernel": "rbf"}, 0.875, 0.0625, 0.25, "ok", {"f1": 0.75}),
            Trial(
                {"svc__C": 1000, "svc__kernel": None},
                math.nan,
                math.nan,
                0.5,
                "failed",
                {"f1": math.nan},
            ),
        ),
        space={
            "branches": [
                {
                    "svc__C": {"distribution": "loguniform", "args": [0.001, 1000.0], "kwds": {}},
                    "svc__kernel": {"values": ["rbf", None]},
                }
            ],
            "canonical": {"svc__C": "SVC.C", "svc__kernel": "SVC.kernel"},
            "fixed": {"SVC.degree": 3, "SVC.shrinking": True, "SVC.tol": 0.001},
            "predictors": ["SVC"],
        },
        metrics=("accuracy", "f1"),
        profile={
            "kind": "größe",
            "n_rows": 150,
            "fingerprint": [2**64 - n for n in range(1, 21)],
            "key": "0123456789abcdef",
            "sketch": {"format": 1, "pairs": [n / 8 for n in range(20)]},
            "numbers": [[2**63, -(2**63)]],
            "text": "packed:",
        },
        id="20250102T030405-0123456789abcdef",
        created="2025-01-02T03:04:05+00:00",
        versions={"python": "3.11.7", "numpy": "2.4.6"},
        complete=False,
        format=1,
        resume={
            "problem": {"the data": "0123"},
            "seed": 5,
            "folds": [[[0.25, 0.5, 50, None, 0.875, None]]],
        },
        origin="imported from a.zip",
    )


def test_archive_reads_frozen_record(frozen_archive):
    (task,) = frozen_archive
    assert task == frozen_task()


def test_select_uses_frozen_record(frozen_archive):
    selection = frozen_archive.select()
    assert [task.best.score for task in selection.used] == [0.875]


def test_verify_accepts_frozen_record(frozen_archive):
    assert frozen_archive.verify() == []


def test_append_writes_frozen_record_again(archive):
    """The writer makes the same record."""
    archive.append(frozen_task())
    assert archive[frozen_task().id] == frozen_task()
    file = archive.path / "tasks" / f"{frozen_task().id}.joblib"
    frozen = loads_plain((ASSETS / f"format-{TASK_FORMAT}.joblib").read_bytes())
    assert repr(loads_plain(file.read_bytes())) == repr(frozen)


def test_generator_makes_frozen_record(tmp_path):
    """Records are compared, not bytes, which depend on the version of pickle."""
    generator = ASSETS / f"make_format_{TASK_FORMAT}.py"
    subprocess.run([sys.executable, generator, tmp_path], check=True, cwd=ASSETS.parents[2])
    name = f"format-{TASK_FORMAT}.joblib"
    made, frozen = (loads_plain((folder / name).read_bytes()) for folder in (tmp_path, ASSETS))
    assert record_to_task(made) == record_to_task(frozen)
