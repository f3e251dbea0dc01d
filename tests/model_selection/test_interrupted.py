"""What a search holds after Ctrl-C, and what it prints when it is resumed."""

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris

from sktransfer import Archive, TransferSearchCV

X, y = load_iris(return_X_y=True)
SPACE = {"a": uniform(0, 1)}
GRID = {"a": [0.1, 0.4, 0.2, 0.3]}


class Interrupted(ClassifierMixin, BaseEstimator):
    """Raises KeyboardInterrupt after `n_left` fits. Its score is `a`; it fails at 0.4."""

    n_left = np.inf

    def __init__(self, a=0.0):
        self.a = a

    def fit(self, X, y):
        if type(self).n_left == 0:
            raise KeyboardInterrupt
        type(self).n_left -= 1
        if self.a == 0.4:
            raise ValueError("a is 0.4")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return self.a


@pytest.fixture(autouse=True)
def without_limit(monkeypatch):
    monkeypatch.setattr(Interrupted, "n_left", np.inf)


def make_search(space, archive, **params):
    return TransferSearchCV(
        Interrupted(), space, cv=2, archive=archive, random_state=0, surrogate="random", **params
    )


def interrupt(search, n_fits):
    Interrupted.n_left = n_fits
    with pytest.raises(KeyboardInterrupt) as caught:
        search.fit(X, y)
    Interrupted.n_left = np.inf
    return getattr(caught.value, "__notes__", [])


def test_interrupted_search_holds_its_results(tmp_path):
    whole = make_search(SPACE, None, n_iter=12).fit(X, y)
    search = make_search(SPACE, tmp_path, n_iter=12)
    notes = interrupt(search, 13)
    assert notes == [
        "Interrupted after 6 of 12 candidates. cv_results_ and best_params_ hold their results. "
        "Nothing was refitted. To continue, run the same search with resume=True."
    ]
    assert search.cv_results_["params"] == whole.cv_results_["params"][:6]
    scores = whole.cv_results_["mean_test_score"][:6]
    assert search.cv_results_["mean_test_score"].tolist() == scores.tolist()
    assert list(search.cv_results_["origin"]) == list(whole.cv_results_["origin"][:6])
    assert search.best_score_ == scores.max()
    assert search.best_params_ == whole.cv_results_["params"][scores.argmax()]
    assert not hasattr(search, "best_estimator_")
    task = Archive(tmp_path)[search.task_id_]
    assert len(task.trials) == 6 and not task.complete


def test_interrupted_grid_holds_the_candidates_of_its_only_batch(tmp_path):
    search = make_search(GRID, tmp_path)
    notes = interrupt(search, 7)
    assert notes[0].startswith("Interrupted after 3 of 4 candidates.")
    np.testing.assert_equal(search.cv_results_["mean_test_score"].tolist(), [0.1, np.nan, 0.2])
    assert search.best_params_ == {"a": 0.2}


def test_search_without_archive_cannot_be_resumed():
    search = make_search(GRID, None)
    assert interrupt(search, 5) == [
        "Interrupted after 2 of 4 candidates. cv_results_ and best_params_ hold their results. "
        "Nothing was refitted."
    ]


def test_search_that_is_interrupted_at_once_holds_nothing(tmp_path):
    search = make_search(SPACE, tmp_path).fit(X, y)
    assert interrupt(search, 1) == []
    assert not hasattr(search, "cv_results_") and not hasattr(search, "best_estimator_")


def test_resumed_search_says_what_is_known(tmp_path, capsys):
    search = make_search(SPACE, tmp_path, n_iter=12, resume=True, verbose=1)
    interrupt(search, 13)
    assert "Resuming" not in capsys.readouterr().out
    id = search.task_id_
    search.fit(X, y)
    first = capsys.readouterr().out.splitlines()[0]
    assert first == f"Resuming {id}: 6 of 12 candidates are known."
    assert len(search.cv_results_["params"]) == 12
