"""Outlines: similar data and similar searches are found by the index alone."""

from dataclasses import replace

import numpy as np
import pytest

from sktransfer.archive import Limit, _index, _storage, outlines_of
from sktransfer.archive._lazy_task import LazyTask
from sktransfer.archive._outline import (
    NOTHING,
    make_outline,
    outlines_from_plain,
    outlines_to_plain,
    tabulate_outlines,
)
from sktransfer.dataset import profile


def data_of(log_rows, **curves):
    return {
        "kind": "regression",
        "n_rows": 100,
        "n_features": 3,
        "meta_features": {"log_rows": float(log_rows)},
        "response_curves": curves,
    }


@pytest.fixture
def many(archive, make_task, monkeypatch):
    """An archive of ten records with an index, as a new process finds it."""
    monkeypatch.setattr(_index, "MIN_WRITTEN", 5)
    for n in range(10):
        archive.append(make_task(id=f"task-{n}", profile=data_of(n)))
    for name in ("_known", "_written", "_settled", "_unsaved"):
        monkeypatch.setattr(_index, name, {})
    monkeypatch.setattr(_storage, "_cache", _storage._Cache())
    return archive


def distances_to(value):
    def distances(tasks):
        return np.abs(tabulate_outlines(outlines_of(tasks), ["meta.log_rows"])[:, 0] - value)

    return distances


def test_outlines_survive_the_index():
    outlines = [make_outline(data_of(1.5, knn_1=0.25)), NOTHING, make_outline(data_of(1e9))]
    found = outlines_from_plain(outlines_to_plain(outlines), 3)
    table = tabulate_outlines(found, ["meta.log_rows", "curve.knn_1", "scale.unknown"])
    np.testing.assert_array_equal(table[:, 0], [1.5, np.nan, 6e4])
    np.testing.assert_array_equal(table[:, 1], [0.25, np.nan, np.nan])
    assert np.isnan(table[:, 2]).all()


@pytest.mark.parametrize(
    "change", [{"rows": "AwAAAA=="}, {"values": ""}, {"names": [1]}, {"names": []}]
)
def test_outlines_of_another_kind_are_refused(change):
    [plain] = outlines_to_plain([make_outline(data_of(1))])
    with pytest.raises(ValueError, match="outlines"):
        outlines_from_plain([{**plain, **change}], 1)


def test_limit_uses_most_similar_tasks_without_reading_any(many, monkeypatch):
    monkeypatch.setattr(_storage, "read_record", None)  # reading would raise an error
    selection = many.select(limit=Limit(3, distances_to(6.2)))
    assert [task.id for task in selection.used] == ["task-5", "task-6", "task-7"]
    reasons = {reason for _, reason in selection.excluded}
    assert reasons == {"3 other past tasks have more similar data"}
    assert len(selection.excluded) == 7


def test_limit_takes_the_next_task_for_one_that_shares_rows(archive, make_task):
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(120, 3)) for _ in range(4)]
    for n, X in enumerate(tables):
        archive.append(make_task(id=f"task-{n}", profile=profile(X)))
    order = {f"task-{n}": n for n in range(4)}
    limit = Limit(2, lambda tasks: np.array([order[task.id] for task in tasks]))
    selection = archive.select(profile=profile(tables[0]), limit=limit)
    assert [task.id for task in selection.used] == ["task-1", "task-2"]
    assert selection.overlap == {"task-1": "none", "task-2": "none"}
    reasons = {task.id: reason for task, reason in selection.excluded}
    assert "rows" in reasons["task-0"]
    assert "more similar" in reasons["task-3"]


def test_limit_takes_the_same_sample_for_every_target_and_adds_similar_tasks(many):
    near, far = (
        [t.id for t in many.select(limit=Limit(4, distances_to(x), n_nearest=2)).used]
        for x in (8.9, 0.1)
    )
    assert near[:4] == far[:4]
    assert near[4:] == ["task-8"]  # task-9 is in the sample
    assert set(far) >= {"task-0", "task-1"}


def test_sample_changes_only_when_the_archive_has_grown(many, make_task):
    limit = Limit(8, distances_to(0), n_nearest=1)
    first = [task.id for task in many.select(limit=limit).used][:8]
    many.append(make_task(id="task-a", profile=data_of(10)))
    assert [task.id for task in many.select(limit=limit).used][:8] == first
    many.append(make_task(id="task-b", profile=data_of(11)))
    assert [task.id for task in many.select(limit=limit).used][:8] != first


def test_limit_beyond_the_number_of_tasks_changes_nothing(many):
    assert many.select(limit=Limit(10, distances_to(0))) == many.select()


def test_summaries_read_no_record(many, monkeypatch):
    monkeypatch.setattr(_storage, "read_record", None)
    first, *_ = found = many.summaries()
    assert len(found) == 10
    assert (first["best"], first["n_rows"], first["n_features"]) == (0.9, 100, 3)


def test_only_similar_searches_are_read(archive, make_task, monkeypatch):
    digests = {name: 32 * "a" for name in ("the data", "the target", "the estimator")}
    others = {
        "same": digests,
        "another target": {**digests, "the target": 32 * "b"},
        "another problem": {**digests, "the target": 32 * "b", "the data": 32 * "b"},
    }
    for name, problem in others.items():
        task = make_task(id=name.replace(" ", "-"))
        archive.append(replace(task, resume={"problem": problem}))
    read = []
    original = LazyTask._read
    monkeypatch.setattr(LazyTask, "_read", lambda task: read.append(task.id) or original(task))
    assert [task.id for task in archive.find_searches(digests)] == ["another-target", "same"]
    assert "another-problem" not in read
