"""The contract of surrogates, and the transfer of WarmStart."""

import pickle

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import clone

from sktransfer import Task, TransferOptimizer
from sktransfer.dataset import profile
from sktransfer.surrogates import GP, REGISTRY, EncodedTask, Random, WarmStart, make_surrogate
from tests.surrogates.comparisons import assert_same_prediction, assert_same_state

CONTINUOUS = np.array([False, False])
SPACE = {"a": uniform(0, 1), "b": uniform(0, 1)}


def encoded(n=0, seed=0, **facts):
    rng = np.random.default_rng(seed)
    theta = rng.random((n, 2))
    return EncodedTask(theta, -((theta - 0.3) ** 2).sum(axis=1), CONTINUOUS, **facts)


def test_make_surrogate_accepts_every_name():
    for name in REGISTRY:
        surrogate = make_surrogate(name).fit([])
        assert repr(clone(surrogate)) == repr(surrogate)


@pytest.mark.parametrize("bad", ["gpp", "", 3, None])
def test_unknown_name_error_lists_known_names(bad):
    with pytest.raises(ValueError) as caught:
        make_surrogate(bad)
    assert repr(bad) in str(caught.value)
    assert all(name in str(caught.value) for name in REGISTRY)


def test_make_surrogate_clones_instance():
    mine = GP(n_initial=7)
    made = make_surrogate(mine)
    assert made is not mine
    assert made.n_initial == 7


@pytest.mark.parametrize("surrogate", [GP(), WarmStart()])
@pytest.mark.parametrize(
    "z",
    [
        [],
        [0.5],
        [0.5, 0.5, 0.5],
        [np.nan],
        [np.nan, np.nan, 0.5],
        [1e-12, 2e-12, 3e-12],
        [1e12, -1e12, 0.0],
        [0.5, 0.6, -np.inf],
    ],
)
def test_posterior_is_finite_for_any_scores(surrogate, z):
    theta = np.random.default_rng(0).random((len(z), 2))
    z = np.where(np.isfinite(z), z, np.nan) if z else np.empty(0)
    posterior = surrogate.fit([]).posterior(EncodedTask(theta, z, CONTINUOUS))
    mean, std = posterior.predict(np.random.default_rng(1).random((20, 2)))
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()


def test_gp_predicts_low_scores_near_failures():
    theta = np.array([[0.1, 0.1], [0.15, 0.1], [0.9, 0.9], [0.5, 0.5]])
    z = np.array([np.nan, np.nan, 0.8, 0.6])
    mean, _ = (
        GP()
        .fit([])
        .posterior(EncodedTask(theta, z, CONTINUOUS))
        .predict(np.array([[0.12, 0.1], [0.88, 0.9]]))
    )
    assert mean[0] < mean[1]


def test_gp_is_invariant_to_scale_and_shift():
    target = encoded(10)
    points = np.random.default_rng(1).random((5, 2))
    mean, std = GP().fit([]).posterior(target).predict(points)
    moved = EncodedTask(target.theta, 1000 + 50 * target.z, CONTINUOUS)
    other_mean, other_std = GP().fit([]).posterior(moved).predict(points)
    np.testing.assert_allclose(other_mean, 1000 + 50 * mean, rtol=1e-5)
    np.testing.assert_allclose(other_std, 50 * std, rtol=1e-3)


@pytest.mark.parametrize("surrogate", [GP(), WarmStart(), Random()])
def test_state_round_trip(surrogate):
    past, target = encoded(8, 1, id="past"), encoded(6)
    fitted = surrogate.fit([past])
    back = clone(surrogate).set_state(pickle.loads(pickle.dumps(fitted.get_state())))
    assert_same_state(back.get_state(), fitted.get_state())
    assert back.hints(target).sources == fitted.hints(target).sources
    np.testing.assert_array_equal(
        back.hints(target).first_settings, fitted.hints(target).first_settings
    )
    if fitted.posterior(target) is not None:
        points = np.random.default_rng(1).random((5, 2))
        assert_same_prediction(
            back.posterior(target).predict(points), fitted.posterior(target).predict(points)
        )


def test_gp_posterior_depends_on_data_only():
    gp, points = GP().fit([]), np.random.default_rng(1).random((5, 2))
    first = gp.posterior(encoded(9)).predict(points)
    gp.posterior(encoded(20, seed=5))
    assert_same_prediction(first, gp.posterior(encoded(9)).predict(points))


# -- warm start ------------------------------------------------------------------------------------


def task_with_best_at(a, b, profile_of=None, name=""):
    rng = np.random.default_rng(0)
    trials = [
        ({"a": x, "b": y}, -((x - a) ** 2 + (y - b) ** 2))
        for x, y in [*rng.random((30, 2)), (a, b)]
    ]
    return Task.from_trials(SPACE, trials, profile_of, id=name)


def data_like(n, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return profile(X, (X[:, 0] + noise * rng.standard_normal(n) > 0).astype(int))


def test_warm_start_uses_nearest_tasks_first():
    tasks = [
        task_with_best_at(0.9, 0.9, data_like(2000, 20.0, 1), "far"),
        task_with_best_at(0.2, 0.2, data_like(100, 0.1, 2), "near"),
        task_with_best_at(0.5, 0.5, None, "unknown"),
    ]
    observed = data_like(110, 0.1, 3)
    optimizer = TransferOptimizer(
        SPACE, tasks, profile=observed, surrogate="warm-start", random_state=0
    )
    first = optimizer.propose(3)
    assert [p.origin for p in first] == ["task near", "task far", "task unknown"]
    assert first[0].params == pytest.approx({"a": 0.2, "b": 0.2})
    far, near, unknown = optimizer.similarity()
    assert 1 >= near > far > unknown == 0


def test_warm_start_alternates_tasks_and_skips_near_settings():
    surrogate = WarmStart(n_tasks=2, n_settings=2, min_distance=0.1).fit(
        [
            EncodedTask(
                np.array([[0.5, 0.5], [0.51, 0.5], [0.9, 0.9]]),
                np.array([3.0, 2, 1]),
                CONTINUOUS,
                id="x",
            ),
            EncodedTask(
                np.array([[0.52, 0.5], [0.1, 0.1]]), np.array([2.0, 1]), CONTINUOUS, id="y"
            ),
        ]
    )
    hints = surrogate.hints(encoded())
    assert hints.first_settings.tolist() == [[0.5, 0.5], [0.1, 0.1], [0.9, 0.9]]
    assert hints.sources == ("x", "y", "x")


def test_warm_start_skips_tasks_without_trials():
    empty = [
        EncodedTask(np.empty((0, 2)), np.empty(0), CONTINUOUS, data_like(100, 0.1, i), f"e{i}")
        for i in range(3)
    ]
    good = EncodedTask(
        np.array([[0.3, 0.3]]), np.array([1.0]), CONTINUOUS, data_like(2000, 20.0, 9), "good"
    )
    target = EncodedTask(np.empty((0, 2)), np.empty(0), CONTINUOUS, data_like(100, 0.1, 5))
    assert WarmStart().fit([*empty, good]).hints(target).sources == ("good",)


@pytest.mark.parametrize("surrogate", [GP(kernel="rbf"), WarmStart(kernel="rbf")])
def test_unknown_kernel_is_rejected(surrogate):
    with pytest.raises(ValueError, match=r"kernel='rbf'.*matern52"):
        surrogate.fit([])


def test_warm_start_skips_unknown_categories():
    task = EncodedTask(np.array([[-1.0], [0.25]]), np.array([2.0, 1.0]), np.array([True]), id="x")
    target = EncodedTask(np.empty((0, 1)), np.empty(0), np.array([True]))
    assert WarmStart().fit([task]).hints(target).first_settings.tolist() == [[0.25]]


def regret_after(n, tasks, seed, sign=1):
    optimizer = TransferOptimizer(SPACE, tasks, surrogate="warm-start", random_state=seed)
    scores = []
    for _ in range(n):
        [params] = optimizer.ask()
        scores.append(-((params["a"] - 0.8) ** 2 + (params["b"] - 0.7) ** 2))
        optimizer.tell(params, sign * scores[-1])
    return -max(scores)


def mean_regret(n, tasks, **options):
    return np.mean([regret_after(n, tasks, seed, **options) for seed in range(5)])


HELPFUL = [task_with_best_at(0.78, 0.72, name="helpful")]
MISLEADING = [task_with_best_at(x, 0.1, name=f"misleading {x}") for x in (0.0, 0.1, 0.2)]


def test_helpful_archive_beats_empty_one():
    for n in (1, 3):
        assert mean_regret(n, HELPFUL) < 0.2 * mean_regret(n, [])


def test_misleading_archive_does_no_lasting_harm():
    assert mean_regret(3, MISLEADING) > mean_regret(3, [])
    assert mean_regret(25, MISLEADING) < 0.01


def test_search_depends_on_direction_of_scores():
    assert mean_regret(15, []) < 0.005
    assert mean_regret(15, [], sign=-1) > 10 * mean_regret(15, [])


def test_warm_start_depends_on_direction_of_past_scores():
    turned = [
        Task.from_trials(SPACE, [(t.params, -t.score) for t in task.trials], id="turned")
        for task in HELPFUL
    ]
    assert mean_regret(3, turned) > 5 * mean_regret(3, HELPFUL)
