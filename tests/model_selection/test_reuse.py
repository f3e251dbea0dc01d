"""Widening the space: trials on the same data, folds, estimator and scoring are not repeated."""

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, load_wine

from sktransfer import Archive, Space, TransferSearchCV
from sktransfer.exceptions import ResumeWarning
from sktransfer.space._membership import find_edges, find_member

X, y = load_iris(return_X_y=True)
NARROW = {"a": uniform(0, 1), "kind": ["x", "y"]}
WIDE = {"a": uniform(0, 3), "kind": ["x", "y"]}


class Rising(ClassifierMixin, BaseEstimator):
    """The larger `a`, the better. Counts its fits, and is interrupted after `max_fits`."""

    n_fits, max_fits = 0, np.inf

    def __init__(self, a=0.0, kind="x", other=0):
        self.a, self.kind, self.other = a, kind, other

    def fit(self, X, y):
        if type(self).n_fits == type(self).max_fits:
            raise KeyboardInterrupt
        type(self).n_fits += 1
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return self.a + 0.01 * (self.kind == "y")


def fit(archive, space, data=(X, y), estimator=None, **params):
    params = {"n_iter": 5, "cv": 2, "random_state": 0, "surrogate": "gp", "refit": False} | params
    search = TransferSearchCV(estimator or Rising(), space, archive=archive, **params)
    Rising.n_fits = 0
    return search.fit(*data)


def test_trials_in_the_wider_space_count_as_observed(tmp_path, capsys):
    first = fit(tmp_path, NARROW)
    second = fit(tmp_path, WIDE, resume=True, verbose=1)
    assert capsys.readouterr().out.splitlines()[0] == (
        f"Reusing 5 trials of {first.task_id_}: the same data, folds, estimator and scoring in "
        "another space."
    )
    assert Rising.n_fits == 2 * 5
    assert second.cv_results_["params"][:5] == first.cv_results_["params"]
    old, new = (search.cv_results_["mean_test_score"] for search in (first, second))
    assert new[:5].tolist() == old.tolist() and len(new) == 10
    origins = list(second.cv_results_["origin"])
    assert origins[:5] == [f"earlier search {first.task_id_}"] * 5
    assert not any(origin.startswith("earlier") for origin in origins[5:])
    assert set(origins[5:]) == {"model"}  # the observed trials are enough for a model
    assert second.best_score_ > first.best_score_


def test_wider_search_takes_the_place_of_the_narrow_one(tmp_path):
    first = fit(tmp_path, NARROW)
    second = fit(tmp_path, WIDE, resume=True)
    selection = Archive(tmp_path).select()
    assert [task.id for task in selection.used] == [second.task_id_]
    [(excluded, reason)] = selection.excluded
    assert excluded.id == first.task_id_ and reason == f"continued in {second.task_id_}"


def test_narrower_space_uses_the_trials_inside_and_keeps_the_record(tmp_path):
    first = fit(tmp_path, WIDE, n_iter=8)
    inside = [params for params in first.cv_results_["params"] if params["a"] <= 1]
    assert 0 < len(inside) < 8
    second = fit(tmp_path, NARROW, resume=True)
    assert second.cv_results_["params"][: len(inside)] == inside
    assert Rising.n_fits == 2 * 5
    assert len(Archive(tmp_path).select().used) == 2


def test_grid_evaluates_only_what_is_new(tmp_path):
    fit(tmp_path, {"a": [0.1, 0.2, 0.3]}, n_iter=25)
    second = fit(tmp_path, {"a": [0.1, 0.2, 0.3, 0.4, 0.5]}, n_iter=25, resume=True)
    assert Rising.n_fits == 2 * 2
    assert second.cv_results_["mean_test_score"].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert set(second.cv_results_["origin"]) == {"grid"}


def test_interrupted_wider_search_is_resumed_as_it_began(tmp_path, monkeypatch):
    fit(tmp_path / "one", NARROW)
    whole = fit(tmp_path / "one", WIDE, resume=True)
    fit(tmp_path / "two", NARROW)
    with monkeypatch.context() as patch:
        patch.setattr(Rising, "max_fits", 4)
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "two", WIDE, resume=True)
    resumed = fit(tmp_path / "two", WIDE, resume=True)
    assert Rising.n_fits == 2 * 3
    assert resumed.cv_results_["params"] == whole.cv_results_["params"]


def test_search_that_reused_nothing_is_resumed_without(tmp_path):
    fit(tmp_path, NARROW)
    whole = fit(tmp_path, WIDE)
    again = fit(tmp_path, WIDE, resume=True)
    assert Rising.n_fits == 0
    assert again.cv_results_["params"] == whole.cv_results_["params"]


def test_nothing_is_reused_without_resume_but_it_is_mentioned(tmp_path, capsys):
    first = fit(tmp_path, NARROW, name="monday")
    fit(tmp_path, WIDE, verbose=1)
    assert Rising.n_fits == 2 * 5
    line = (
        f"This space holds 5 trials of {first.task_id_} (monday), with the same data, folds, "
        "estimator and scoring. resume=True counts them as observed."
    )
    assert line in capsys.readouterr().out.splitlines()
    fit(tmp_path, WIDE, verbose=1)  # the same search again is not one in a wider space
    fit(tmp_path, WIDE, verbose=1, cv=3)
    assert "This space holds" not in capsys.readouterr().out


def test_reused_trials_have_the_name_of_their_search_and_are_counted(tmp_path, capsys):
    first = fit(tmp_path, NARROW, name="monday")
    second = fit(tmp_path, WIDE, resume=True, verbose=1)
    assert second.cv_results_["origin"][0] == f"earlier search {first.task_id_} (monday)"
    assert "[10/10] score" in capsys.readouterr().out


def test_reused_trials_do_not_use_up_patience(tmp_path, capsys):
    fit(tmp_path, NARROW, n_iter=8)
    second = fit(tmp_path, WIDE, resume=True, n_iter=20, patience=2, verbose=1)
    assert len(second.cv_results_["params"]) >= 10
    assert "candidates: no better score in the last 2 candidates." in capsys.readouterr().out
    fit(tmp_path, WIDE | {"a": uniform(0, 5)}, resume=True, target_score=0.1)
    assert Rising.n_fits == 0  # it was reached before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cv": 3}, "the folds, the space"),
        ({"scoring": "accuracy"}, "the scoring, the space"),
        ({"estimator": Rising(other=1)}, "the estimator, the space"),
        ({"data": (X, 2 - y)}, "the space, the target"),
    ],
    ids=["cv", "scoring", "estimator", "target"],
)
def test_other_problem_is_not_reused(tmp_path, change, words):
    fit(tmp_path, NARROW)
    with pytest.warns(ResumeWarning, match=rf"differs in {words}\.$"):
        fit(tmp_path, WIDE, resume=True, **change)
    assert Rising.n_fits == change.get("cv", 2) * 5


def test_other_data_are_not_reused(tmp_path):
    fit(tmp_path, NARROW)
    fit(tmp_path, WIDE, data=load_wine(return_X_y=True), resume=True)
    assert Rising.n_fits == 2 * 5


# -- edges -----------------------------------------------------------------------------------------


def test_best_setting_at_an_edge_gives_advice(tmp_path, capsys):
    advice = (
        "The best setting is at an edge of the space: a=0.3 is at the upper end of 0.1 to 0.3. To "
        "look beyond, widen the range"
    )
    fit(tmp_path, {"a": [0.1, 0.2, 0.3]}, n_iter=25, verbose=1)
    again = " and run again with resume=True. Known trials are not repeated."
    assert capsys.readouterr().out.splitlines()[-1] == advice + again
    fit(None, {"a": [0.1, 0.2, 0.3]}, n_iter=25, verbose=1)
    assert capsys.readouterr().out.splitlines()[-1] == f"{advice}."
    fit(None, {"a": [0.1, 0.2, 0.3], "kind": ["x", "y"]}, n_iter=25)
    assert capsys.readouterr().out == ""


def test_edges_of_each_kind_of_axis():
    space = Space.parse(
        {
            "log": loguniform(1e-3, 1e3),
            "linear": uniform(0, 1),
            "integer": randint(1, 200),
            "list": [1, 2, 4, 8],
            "pair": [1, 2],
            "category": ["a", "b", "c"],
        }
    )
    middle = {"log": 1.0, "linear": 0.5, "integer": 50, "list": 2, "pair": 1, "category": "a"}
    assert find_edges(space, middle) == []
    assert find_edges(space, middle | {"log": 1e-3}) == [
        "log=0.001 is at the lower end of 0.001 to 1000.0"
    ]
    assert find_edges(space, middle | {"linear": 0.995, "integer": 199, "list": 8}) == [
        "integer=199 is at the upper end of 1 to 199",
        "linear=0.995 is at the upper end of 0.0 to 1.0",
        "list=8 is at the upper end of 1 to 8",
    ]


def test_member_has_the_values_of_the_space():
    estimator = Rising(a=1.0)
    space = Space.parse([{"m": [estimator, None]}, {"n": randint(1, 5)}])
    described = {"class": "Rising", "params": estimator.get_params()}
    assert find_member(space, {"m": described})["m"] is estimator
    assert find_member(space, {"n": 4}) == {"n": 4}
    for other in ({"n": 5}, {"n": 2.5}, {"n": "2"}, {"m": 1}, {"m": None, "n": 1}):
        assert find_member(space, other) is None
