"""`TaskSimilarityDisplay`: past tasks that were used and excluded."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.inspection import TaskSimilarityDisplay
from sktransfer.inspection._task_similarity import task_name
from tests.inspection.conftest import SPACE, X, y


def test_bars_are_the_tasks_that_were_used(search):
    display = TaskSimilarityDisplay.from_estimator(search)
    rows = search.source_tasks_
    assert len(display.names) == len(rows) == 4
    np.testing.assert_allclose(display.similarity, [row["similarity"] for row in rows])
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, sorted(display.similarity, reverse=True))
    assert display.n_settings.sum() == sum(row["n_used"] for row in rows) > 0
    weights = [row["weight"] for row in rows]
    np.testing.assert_allclose([bar.get_width() for bar in display.weights_], weights)
    assert "The past tasks that were used" in display.ax_.get_xlabel()


def test_only_the_most_similar_are_shown():
    display = TaskSimilarityDisplay(list("abcd"), [0.1, 0.9, np.nan, 0.5]).plot(max_shown=2)
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["b", "d"]
    assert "The 2 most similar of 4 past tasks" in display.ax_.get_xlabel()
    assert display.weights_ is None


def test_excluded_tasks_are_counted_by_reason(texts):
    reasons = {"shares rows": 3, "another estimator": 2, "no trials": 1, "p": 1, "q": 1}
    display = TaskSimilarityDisplay(["a"], [0.5], excluded=reasons).plot()
    label = display.ax_.get_xlabel()
    assert "3 excluded: shares rows" in label and "2 excluded for other reasons" in label
    nothing = TaskSimilarityDisplay([], [], excluded={"shares rows": 3}).plot()
    assert texts(nothing.figure_) == ["No past task was used.\n3 excluded: shares rows"]
    assert nothing.bars_ is None


def test_empty_archive_gives_a_sentence(tmp_path, texts):
    search = TransferSearchCV(SVC(), SPACE, n_iter=3, cv=3, archive=Archive(tmp_path)).fit(X, y)
    display = TaskSimilarityDisplay.from_estimator(search)
    assert texts(display.figure_) == ["No past task was used."]


def test_searches_without_an_archive_raise(plain):
    with pytest.raises(ValueError, match="fitted with archive=None"):
        TaskSimilarityDisplay.from_estimator(plain)
    grid = GridSearchCV(SVC(), {"C": [1, 2]}).fit(X, y)
    with pytest.raises(TypeError, match="GridSearchCV does not learn from past tasks"):
        TaskSimilarityDisplay.from_estimator(grid)


def test_names_are_short():
    row = {"id": "20260102T030405000000-0123456789abcdef", "created": "2026-01-02T03:04:05"}
    assert task_name(row) == "2026-01-02 012345"
    assert task_name({**row, "name": "weekly"}) == "weekly"
    assert task_name({**row, "id": "first"}) == "first"
    assert len(task_name({**row, "name": "x" * 99})) == 32
    assert task_name({**row, "id": "starter-SVC-iris-bare-b33d0618"}) == "starter: iris"


def test_long_reasons_are_wrapped():
    reasons = {"may be about these data, which have the same kind and sizes": 2}
    display = TaskSimilarityDisplay(["a"], [0.5], excluded=reasons).plot()
    _, *lines = display.ax_.get_xlabel().split("\n")
    assert len(lines) == 2 and max(map(len, lines)) <= 56
    assert max(display.ax_.get_xticks()) <= 1
