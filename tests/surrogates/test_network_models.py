"""DNGO and Bohamiann: networks on the target's own trials."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from sktransfer.surrogates import DNGO, Bohamiann, EncodedTask, make_surrogate
from tests.surrogates.comparisons import assert_same_prediction
from tests.surrogates.synthetic_tasks import NUMBERS, past_tasks, score, search, target

POINTS = np.random.default_rng(9).random((30, 2))
SMALL = [
    DNGO(layers=(20, 20), steps=60),
    Bohamiann(layers=(20,), n_chains=3, n_samples=2, burn_in=60, thin=5),
]
names = pytest.mark.parametrize("name", ["dngo", "bohamiann"])
models = pytest.mark.parametrize("surrogate", SMALL, ids=["dngo", "bohamiann"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "surrogate",
    [DNGO(), Bohamiann(layers=(30, 30), n_chains=6, n_samples=2, burn_in=80)],
    ids=["dngo", "bohamiann"],
)
def test_network_models_beat_random_search(surrogate):
    random = np.mean([search("random", [], 20, seed)[-1] for seed in range(3)])
    assert 1 - search(surrogate, [], 20)[-1] < 0.3 * (1 - random)


@names
def test_network_models_depend_on_direction_of_scores(name):
    grid, own = np.random.default_rng(1).random((200, 2)), target(20)
    turned = EncodedTask(own.theta, -own.z, NUMBERS)

    def favorite(task):
        return grid[make_surrogate(name).fit([]).posterior(task).predict(grid)[0].argmax()]

    assert score(favorite(own)) > 0.9
    assert score(favorite(turned)) < 0.3


@names
def test_std_is_smaller_near_trials(name):
    theta = np.array([[0.1, 0.1], [0.15, 0.1], [0.1, 0.2], [0.2, 0.2], [0.15, 0.15]])
    task = EncodedTask(theta, score(theta), NUMBERS)
    _, std = (
        make_surrogate(name).fit([]).posterior(task).predict(np.array([[0.15, 0.15], [0.95, 0.95]]))
    )
    assert std[0] < 0.5 * std[1]


@models
@pytest.mark.parametrize(
    "z",
    [
        [0.5],
        [0.5, 0.5, 0.5],
        [np.nan],
        [np.nan, np.nan, 0.5],
        [1e-12, 2e-12, 3e-12],
        [1e12, -1e12, 0.0],
    ],
)
def test_posterior_is_finite_for_any_scores(surrogate, z):
    theta = np.random.default_rng(0).random((len(z), 2))
    posterior = surrogate.fit([]).posterior(EncodedTask(theta, np.array(z), NUMBERS))
    mean, std = posterior.predict(POINTS)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert posterior.sample(POINTS, 4, np.random.default_rng(0)).shape == (4, 30)


@models
def test_posterior_without_trials_is_none(surrogate):
    assert surrogate.fit(past_tasks(2)).posterior(target(0)) is None
    assert surrogate.hints(target()).n_initial == 4 and not surrogate.uses_past_tasks


@models
def test_network_models_predict_low_scores_near_failures(surrogate):
    theta = np.array([[0.1, 0.1], [0.15, 0.1], [0.9, 0.9], [0.5, 0.5]])
    posterior = surrogate.fit([]).posterior(
        EncodedTask(theta, np.array([np.nan, np.nan, 0.8, 0.6]), NUMBERS)
    )
    mean, _ = posterior.predict(np.array([[0.12, 0.1], [0.88, 0.9]]))
    assert mean[0] < mean[1]


@models
def test_network_models_accept_unknown_category(surrogate):
    categorical = np.array([False, True])
    task = EncodedTask(
        np.array([[0.1, 0.0], [0.5, 0.5], [0.9, 0.0]]), np.array([1.0, 2.0, 3.0]), categorical
    )
    mean, _ = surrogate.fit([]).posterior(task).predict(np.array([[0.5, 1.0], [0.5, 0.5]]))
    assert np.isfinite(mean).all() and mean[0] != mean[1]


@models
def test_network_models_are_invariant_to_scale_and_shift(surrogate):
    own = target(8)
    mean, std = surrogate.fit([]).posterior(own).predict(POINTS)
    moved = EncodedTask(own.theta, 1000 + 50 * own.z, NUMBERS)
    other_mean, other_std = surrogate.posterior(moved).predict(POINTS)
    np.testing.assert_allclose(other_mean, 1000 + 50 * mean, rtol=1e-4)
    np.testing.assert_allclose(other_std, 50 * std, rtol=1e-2)


@models
def test_posterior_depends_on_trials_only(surrogate):
    first = surrogate.fit([]).posterior(target(6)).predict(POINTS)
    surrogate.posterior(target(9, seed=3))
    back = clone(surrogate).set_state(pickle.loads(pickle.dumps(surrogate.get_state())))
    for again in (surrogate, back):
        assert_same_prediction(again.posterior(target(6)).predict(POINTS), first)


@models
def test_samples_agree_with_prediction(surrogate):
    posterior = surrogate.fit([]).posterior(target(8))
    mean, std = posterior.predict(POINTS)
    draws = posterior.sample(POINTS, 4000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1 * std.max())
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.2)


@pytest.mark.parametrize(
    ("surrogate", "words"),
    [
        (DNGO(layers=()), "layers"),
        (DNGO(steps=-1), "steps=-1"),
        (Bohamiann(layers=(0,)), "layers"),
        (Bohamiann(burn_in=0), "burn_in=0"),
        (Bohamiann(n_chains=1, n_samples=1), "at least 2"),
        (Bohamiann(step_size=2.0), "step_size=2.0"),
    ],
)
def test_network_models_reject_invalid_parameters(surrogate, words):
    with pytest.raises(ValueError, match=words):
        surrogate.fit([])
