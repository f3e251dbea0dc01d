"""Box: the bounds of the box, and when it is dropped."""

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import clone

from sktransfer import Task, TransferOptimizer
from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates import Box, EncodedTask, Region
from tests.surrogates.synthetic_tasks import NUMBERS, SPACE, past_tasks, target

MIXED = np.array([False, True])


def tasks_with_best(*best, categorical=NUMBERS):
    """Tasks of three trials, the best of them given."""
    corners = np.array([[0.0, 0.0], [1.0, 1.0]])
    return [
        EncodedTask(np.vstack([corners, row]), np.array([0.1, 0.2, 0.9]), categorical, id=str(i))
        for i, row in enumerate(best)
    ]


def trials(theta, z, categorical=NUMBERS):
    return EncodedTask(
        np.array(theta, dtype=float).reshape(len(z), 2), np.array(z, dtype=float), categorical
    )


NONE = trials([], [])


def test_box_bounds_best_settings():
    region = Box().fit(tasks_with_best([0.2, 0.8], [0.5, 0.4], [0.3, 0.7])).hints(NONE).region
    np.testing.assert_allclose([region.low, region.high], [[0.2, 0.4], [0.5, 0.8]])
    assert region.values == {}


@pytest.mark.parametrize(
    ("best", "low", "high"),
    [([0.5, 0.5], [0.4, 0.4], [0.6, 0.6]), ([0.0, 0.97], [0.0, 0.8], [0.2, 1.0])],
)
def test_box_of_one_point_is_widened(best, low, high):
    region = Box(min_width=0.2).fit(tasks_with_best(best)).hints(NONE).region
    np.testing.assert_allclose([region.low, region.high], [low, high])


def test_box_clips_optima_outside_bounds():
    region = Box().fit(tasks_with_best([-3.0, 0.2], [0.5, 7.0])).hints(NONE).region
    np.testing.assert_allclose([region.low, region.high], [[0.0, 0.2], [0.5, 1.0]])


def test_box_holds_best_categories():
    tasks = tasks_with_best([0.2, 0.25], [0.5, 0.75], [0.4, -1.0], categorical=MIXED)
    region = Box().fit(tasks).hints(trials([], [], MIXED)).region
    # The third task's best setting does not exist in the target's space; its next best has category
    # 1.
    assert region.values[1].tolist() == [0.25, 0.75, 1.0]
    assert region.contains(np.array([[0.3, 0.25], [0.3, 0.1]])).tolist() == [True, False]


def test_box_leaves_unvaried_columns_free():
    theta = np.array([[0.1, 0.5], [0.3, 0.5], [0.9, 0.5]])
    region = Box().fit([trials(theta, [0.2, 0.9, 0.1])]).hints(NONE).region
    np.testing.assert_allclose([region.low, region.high], [[0.2, 0.0], [0.4, 1.0]])


@pytest.mark.parametrize("z", [[0.4], [0.4, 0.6]])
def test_box_needs_varied_settings(z):
    assert Box().fit([trials([[0.5, 0.5]] * len(z), z)]).hints(NONE).region is None


@pytest.mark.parametrize("tasks", [[], [trials([[0.1, 0.2], [0.3, 0.4]], [np.nan, np.nan])]])
def test_box_without_past_is_plain_gp_and_warns(tasks):
    with pytest.warns(SurrogateWarning, match="no past trials"):
        box = Box().fit(tasks)
    assert box.hints(target(5)).region is None


def test_box_accepts_failures_and_equal_scores():
    theta = np.array([[0.1, 0.1], [0.9, 0.9], [0.5, 0.5]])
    region = (
        Box().fit([trials(theta, [np.nan, 0.3, 0.2]), trials(theta, [1, 1, 1])]).hints(NONE).region
    )
    np.testing.assert_allclose([region.low, region.high], [[0.1, 0.1], [0.9, 0.9]])


def test_box_is_dropped_when_best_trial_is_outside():
    box = Box(n_inside=3).fit(tasks_with_best([0.2, 0.2], [0.4, 0.4]))
    inside, outside = [[0.3, 0.3]] * 6, [*[[0.3, 0.3]] * 5, [0.9, 0.9]]
    assert box.hints(trials(inside[:2], [1, 1])).region is not None
    assert box.hints(trials(outside[-2:], [1, 2])).region is not None  # not yet
    held = [box.hints(trials(inside[:n], np.arange(n))).region is not None for n in (3, 4, 5, 6)]
    assert held == [False, True, False, True]
    assert box.hints(trials(outside, [1, 1, 1, 1, 1, 0.5])).region is not None
    assert box.hints(trials(outside, [1, 1, 1, 1, 1, 2])).region is None  # the best lies outside
    assert box.hints(trials(inside[:4], [np.nan] * 4)).region is None  # all trials in it failed
    forever = Box(n_inside=None).fit(tasks_with_best([0.2, 0.2], [0.4, 0.4]))
    assert forever.hints(trials(outside, [1, 1, 1, 1, 1, 2])).region is not None


def test_box_state_round_trip_and_clone():
    box = Box(n_inside=5).fit(past_tasks(4))
    back = clone(box).set_state(box.get_state())
    assert back.n_tasks_ == 4
    ours, theirs = back.hints(NONE).region, box.hints(NONE).region
    np.testing.assert_array_equal([ours.low, ours.high], [theirs.low, theirs.high])


@pytest.mark.parametrize(
    ("name", "value"), [("n_inside", -1), ("min_width", 0.0), ("min_width", 1.5)]
)
def test_box_rejects_invalid_parameters(name, value):
    with pytest.raises(ValueError, match=f"{name}={value}"):
        Box(**{name: value}).fit([])


# -- in a search -----------------------------------------------------------------------------------


def test_region_stretch_maps_cube_into_region():
    region = Region(np.array([0.2, 0.0]), np.array([0.4, 1.0]), {1: np.array([0.1, 0.7])})
    cube = np.random.default_rng(0).random((200, 2))
    codes = region.stretch(cube)
    assert region.contains(codes).all()
    assert set(codes[:, 1]) == {0.1, 0.7}


@pytest.mark.parametrize("b", [uniform(0, 1), ["x", "y", "z"], [1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("a", [uniform(0, 1), np.linspace(0, 1, 11).tolist()])
def test_first_trials_are_inside_box(a, b):
    space = {"a": a, "b": b}
    values = [0.1, 0.9, 0.5] if not isinstance(b, list) else [b[0], b[-1], b[1]]
    past = [
        ([0.0, values[0]], [1.0, values[1]], [0.4, values[2]]),
        ([0.2, values[2]], [1.0, values[1]], [0.6, values[2]]),
    ]
    tasks = [
        Task.from_trials(space, [({"a": x, "b": y}, i) for i, (x, y) in enumerate(rows)])
        for rows in past
    ]
    optimizer = TransferOptimizer(space, tasks, surrogate=Box(n_inside=6), random_state=0)
    chosen = []
    for number in range(8):
        [params] = optimizer.ask()
        optimizer.tell(params, float(number))
        chosen.append(params)
    space = optimizer.space
    region = optimizer.surrogate.hints(trials([], [], space.categorical)).region
    n = 6 if space.size is None else int(region.contains(space.encode(space.grid())).sum())
    codes = space.encode(chosen)[: min(n, 6)]  # a grid may run out of members inside the box
    assert region.contains(codes).all()
    assert codes[:, 0].min() > 0.39
    assert codes[:, 0].max() < 0.61


def test_misleading_box_is_left_unless_n_inside_is_none():
    tasks = tasks_with_best([0.1, 0.8], [0.25, 0.9])

    def best(surrogate):
        optimizer = TransferOptimizer(SPACE, surrogate=surrogate, random_state=0)
        optimizer.surrogate.fit(tasks)
        optimizer.is_fitted = True
        for _ in range(20):
            [params] = optimizer.ask()
            optimizer.tell(params, -((params["a"] - 0.75) ** 2) - (params["b"] - 0.3) ** 2)
        return optimizer.to_task().best

    assert best(Box()).score > -0.01
    stuck = best(Box(n_inside=None))
    assert stuck.score < -0.3
    assert stuck.params["a"] <= 0.28
