"""The schema of a profile: every field of the wrong kind is refused when the record is read."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.svm import SVC

from sktransfer import TransferOptimizer
from sktransfer.archive import ArchiveKey
from sktransfer.archive._plain_pickle import dumps_plain
from sktransfer.archive._profile_schema import _RULES, check_profile
from sktransfer.archive._record import record_to_task, task_to_record
from sktransfer.dataset import profile
from sktransfer.dataset._fingerprint import MAX_HASHES
from sktransfer.dataset._profile import MAX_ENCLOSING
from sktransfer.exceptions import RecordError

rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
DATA = {
    "usual": (X, y),
    "regression": (X, X[:, 0]),
    "two outputs": (X, X[:, :2]),
    "no target": (X, None),
    "text": (["to be", "or not"], [0, 1]),
    "objects": ([object()] * 3, [0, 1, 1]),
    "kernel": (X @ X.T, y),
    "nothing": ([], None),
}
WRONG = [
    "text",
    1.5,
    -1,
    [],
    {},
    None,
    True,
    [1, "a"],
    [[1.0], [2.0, 3.0]],
    {"a": "b"},
    ["a"],
    10**30,
]
"""Values of every kind. A field accepts the few that are of its own kind."""


def plain(data=(X, y), **options):
    return ArchiveKey(bytes(32)).seal(profile(*data, keep="sample", **options)).to_dict()


@pytest.mark.parametrize("name", DATA)
def test_schema_accepts_every_profile(name):
    check_profile(plain(DATA[name]))


def test_schema_has_a_rule_for_every_field():
    assert {*plain()} - {"enclosing"} == {*_RULES} - {"forms"}


@pytest.mark.parametrize("name", [*_RULES, "enclosing"])
def test_schema_refuses_fields_of_another_kind(make_task, name):
    """What it accepts can be learned from."""
    known, n_refused = plain(), 0
    for value in WRONG:
        record = task_to_record(make_task()) | {"profile": {**known, name: value}}
        try:
            task = record_to_task(record)
        except RecordError:
            n_refused += 1
        else:
            optimizer = TransferOptimizer(
                {"C": loguniform(1e-2, 1e2)}, [task], profile=profile(X, y), random_state=0
            )
            assert "C" in optimizer.ask()[0]
    assert n_refused >= len(WRONG) - 4


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": list(range(MAX_HASHES + 1))},
        {"fingerprint": [2**64]},
        {"class_ratios": [0.1] * 51},
        {"meta_features": {"a": float("nan")}},
        {"enclosing": [plain()] * (MAX_ENCLOSING + 1)},
        {"enclosing": [plain(enclosing=[X * 2])]},
        {"enclosing": [{**plain(), "key": ""}]},
        {"sample": {"X": [[1.0]], "y": [1.0, 2.0]}},
        {"sample": {"X": [[1.0, 2.0], [1.0]], "y": None}},
        {"sketch": {"format": 1, "pairs": ["a"]}},
        {"key": "../../etc"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_schema_bounds_content(change):
    with pytest.raises(ValueError, match="of the profile is invalid"):
        check_profile({**plain(), **change})


def test_search_keeps_outermost_enclosing_data():
    tables = [X + n for n in range(1, 12)]
    found = profile(X, enclosing=tables).enclosing
    assert len(found) == MAX_ENCLOSING
    assert found[-1].overlap(profile(tables[-1])) == 1.0


def test_select_skips_record_of_invalid_profile_with_warning(archive, make_task):
    archive.append(make_task(id="good", estimator=SVC()))
    record = task_to_record(make_task(id="bad")) | {"profile": {"kind": "x", "n_rows": "many"}}
    (archive.path / "tasks" / "bad.joblib").write_bytes(dumps_plain(record))
    with pytest.warns(UserWarning, match="'n_rows' of the profile is invalid"):
        assert [task.id for task in archive.select().used] == ["good"]
