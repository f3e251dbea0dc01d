"""What is stored of small tables, and how much of larger ones is rounded."""

import json

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.dataset import profile
from sktransfer.dataset._disclosure import SIZES, limit_disclosure

RNG = np.random.default_rng(0)


def data(n, p):
    X = RNG.normal(size=(n, p))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("n", "p", "is_small"),
    [(50, 3, True), (99, 5, True), (99, 1, True), (100, 1, False), (100, 5, False)],
)
def test_small_tables_keep_sizes_only(n, p, is_small):
    whole = profile(*data(n, p)).to_dict()
    assert whole["sketch"] is not None and len(whole["meta_features"]) > 20
    kept = limit_disclosure(whole)
    assert (kept["sketch"] is None) is is_small
    assert (kept["meta_features"].keys() <= {*SIZES}) is is_small
    assert kept["n_rows"] == n and kept["class_ratios"] == whole["class_ratios"]


def test_numbers_are_rounded_to_what_the_rows_justify():
    n = 400
    whole = profile(*data(n, 4)).to_dict()
    kept = limit_disclosure(whole)
    before, after = (np.array(each["sketch"]["pairs"]) for each in (whole, kept))
    assert 0 < np.abs(before - after).max() <= 0.00051
    assert np.abs(before - after).max() < 0.1 * 0.7 / np.sqrt(n)  # of the sampling error
    assert limit_disclosure(kept) == kept
    for name, value in kept["meta_features"].items():
        assert value == pytest.approx(whole["meta_features"][name], rel=1e-3)
        assert name in SIZES or len(f"{value:.15g}".lstrip("-0.").replace(".", "")) <= 6


@pytest.mark.parametrize("way", ["append", "journal", "import"])
def test_archive_stores_no_more(archive, make_task, tmp_path, way):
    X, y = data(30, 3)
    if way == "journal":
        sealed = archive.open_key().seal(profile(X, y))
        journal = archive.journals.start(make_task(profile=sealed, trials=()))
        journal.sync()
        content = journal.path.read_bytes()
        header = json.loads(content.split(b"\n")[1].partition(b" ")[2])
        found = header["task"]["profile"]
    else:
        id = archive.add(GridSearchCV(SVC(), {"C": [1, 10]}, cv=2).fit(X, y), X, y)
        if way == "import":
            archive.export(tmp_path / "a.zip")
            archive.remove(id)
            archive.import_(tmp_path / "a.zip")
        found = archive[id].profile
    assert found["sketch"] is None and found["meta_features"].keys() <= {*SIZES}


def test_small_table_is_searched_with_its_whole_profile(tmp_path):
    """Only what is stored is limited: the pretrained model reads the profile in memory."""
    archive = Archive(tmp_path, starter=False)

    def fit(n):
        space = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}
        search = TransferSearchCV(SVC(), space, n_iter=2, cv=2, archive=archive, random_state=0)
        return search.fit(*data(n, 4))

    first, later = fit(60), fit(99)
    assert first.embedding_ is not None
    assert archive[first.task_id_].profile["response_curves"] == {}
    assert later.embedding_ is not None
    assert [(row["id"], row["excluded"]) for row in later.source_tasks_] == [(first.task_id_, None)]
