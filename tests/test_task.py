"""The task record."""

import math
import time

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.svm import SVC

from sktransfer import Space, Task, Trial
from sktransfer.dataset import profile

SPACE = {"C": loguniform(1e-3, 1e3), "kernel": ["rbf", SVC()]}


@pytest.mark.parametrize(
    "trial",
    [
        ({"C": np.float64(1.0), "kernel": "rbf"}, 0.5),
        [{"C": 1.0, "kernel": "rbf"}, np.float32(0.5)],
        {"params": {"C": 1.0, "kernel": "rbf"}, "score": 0.5, "status": "ok"},
        Trial({"C": 1.0, "kernel": "rbf"}, 0.5),
    ],
)
def test_from_trials_accepts_pairs_dicts_and_trials(trial):
    [made] = Task.from_trials(SPACE, [trial]).trials
    assert (made.params, made.score, made.status) == ({"C": 1.0, "kernel": "rbf"}, 0.5, "ok")
    assert type(made.params["C"]) is float


@pytest.mark.parametrize(
    "trial",
    [
        ({"C": 1.0}, math.nan),
        ({"C": 1.0}, -math.inf),
        {"params": {"C": 1.0}, "score": 0.0, "status": "failed"},
        Trial({"C": 1.0}, math.nan),
    ],
)
def test_trial_without_finite_score_has_failed(trial):
    [made] = Task.from_trials(SPACE, [trial]).trials
    assert made.status == "failed"
    assert math.isnan(made.score)


def test_from_trials_describes_estimators():
    [made] = Task.from_trials(SPACE, [({"C": 1, "kernel": SVC(C=3)}, 0.5)]).trials
    assert made.params["kernel"]["class"] == "SVC"
    assert made.params["kernel"]["params"]["C"] == 3


@pytest.mark.parametrize("trial", [{"C": 1.0}, ({"C": 1.0}, 0.5, 3), "nonsense", 3])
def test_from_trials_raises_for_other_objects(trial):
    with pytest.raises(TypeError, match="A trial must be"):
        Task.from_trials(SPACE, [trial])


def test_from_trials_raises_for_parameters_outside_the_space():
    with pytest.raises(ValueError, match="'D'"):
        Task.from_trials(SPACE, [({"D": 3}, 0.5)])


def test_from_trials_takes_canonical_names_from_the_estimator():
    space = Space.parse({"C": [1, 2]})
    task = Task.from_trials(space, [({"C": 1}, 0.5)], estimator=SVC())
    assert task.space["canonical"] == {"C": "SVC.C"}


def test_best_ignores_failed_trials():
    task = Task.from_trials(SPACE, [({"C": 1.0}, 0.5), ({"C": 2.0}, math.nan), ({"C": 3.0}, 0.7)])
    assert task.best.params == {"C": 3.0}
    np.testing.assert_array_equal(task.scores, [0.5, math.nan, 0.7])
    assert Task.from_trials(SPACE, []).best is None


def test_from_trials_accepts_profiles_and_makes_unique_ids():
    data = profile([[1.0], [2.0]], [0, 1])
    one, two = (Task.from_trials(SPACE, [], given) for given in (data, data.to_dict()))
    assert one.profile == two.profile
    assert one.id != two.id
    assert one.created.endswith("+00:00")


def test_ids_created_within_a_second_sort_by_time():
    ids = []
    for _ in range(5):
        ids.append(Task.from_trials({"C": [1]}, []).id)
        time.sleep(0.02)
    assert ids == sorted(ids)
