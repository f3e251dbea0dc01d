"""RGPE: weights compared with a direct implementation of their definition."""

import numpy as np
import pytest

from sktransfer.surrogates import GP, RGPE
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates.reference.rgpe import (
    count_discordant_pairs,
    leave_one_out_gps,
    leave_one_out_loss,
    ranking_weights,
)
from tests.surrogates.synthetic_tasks import NUMBERS, past_tasks, target


def slow_loss(f, z):
    n = len(z)
    return sum((f[j] < f[k]) ^ (z[j] < z[k]) for j in range(n) for k in range(n) if z[j] != z[k])


def slow_left_out_loss(draws, z, s):
    n = len(z)
    pairs = [(j, k) for j in range(n) for k in range(n) if z[j] != z[k]]
    return sum((draws[j, s, j] < draws[j, s, k]) ^ (z[j] < z[k]) for j, k in pairs)


def slow_weights(losses):
    """The definition: exclude bad tasks, count the best ones, ties to the target or shared."""
    target, weights = losses[-1], np.zeros(len(losses))
    stay = [i for i in range(len(losses) - 1) if np.median(losses[i]) <= np.percentile(target, 95)]
    for s in range(losses.shape[1]):
        lowest = min([losses[i, s] for i in stay] + [target[s]])
        if target[s] == lowest:
            weights[-1] += 1
        else:
            winners = [i for i in stay if losses[i, s] == lowest]
            for i in winners:
                weights[i] += 1 / len(winners)
    return weights / losses.shape[1]


@pytest.mark.parametrize("n", [3, 6, 11])
def test_rgpe_weights_match_definition(n):
    surrogate, observed = (
        RGPE(n_samples=40).fit([*past_tasks(4), *past_tasks(3, sign=-1.0)]),
        target(n),
    )
    observed.z[1] = observed.z[0]
    own = surrogate.fallback_.posterior(observed)
    rng = np.random.default_rng(
        0
    )  # random_state of the surrogate: the same draws in the same order
    draws = surrogate._processes.sample(own.X, 40, rng)
    left_out = leave_one_out_gps(own).sample(own.X, 40, rng)
    losses = [[slow_loss(f, own.z) for f in task] for task in draws]
    losses.append([slow_left_out_loss(left_out, own.z, s) for s in range(40)])
    np.testing.assert_array_equal([count_discordant_pairs(f, own.z) for f in draws], losses[:-1])
    np.testing.assert_array_equal(leave_one_out_loss(left_out, own.z), losses[-1])
    expected = slow_weights(np.array(losses))
    _, weights = surrogate._weighted_tasks(own)
    np.testing.assert_allclose(weights, expected, rtol=1e-12)
    assert expected[:-1].max() > 0  # some past task is used, so the comparison is not of zeros


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([[1, 1, 5, 5], [1, 3, 1, 5], [2, 0, 2, 9]], [0.25, 0.5, 0.25]),
        ([[2, 2], [2, 2], [2, 2]], [0, 0, 1]),  # ties go to the target
        ([[9, 0, 9], [0, 9, 0], [8, 8, 8]], [0, 2 / 3, 1 / 3]),  # the first one is excluded
    ],
)
def test_ranking_weights_match_hand_computed_example(losses, expected):
    losses = np.array(losses, dtype=float)
    np.testing.assert_allclose(ranking_weights(losses), expected)
    np.testing.assert_allclose(slow_weights(losses), expected)


def test_leave_one_out_gps_omit_one_trial_each():
    own = GP().fit([]).posterior(target(6))
    mean, variance = leave_one_out_gps(own).moments(own.X)
    for j in range(6):
        rest = np.arange(6) != j
        process = GaussianProcess(own.X[rest], own.z[rest], own.h, NUMBERS)
        expected_mean, expected_std = process.predict(own.X)
        np.testing.assert_allclose(mean[j], expected_mean, atol=1e-7)
        np.testing.assert_allclose(variance[j], expected_std**2, atol=1e-7)


def test_rgpe_mean_and_variance_are_weighted_sums():
    surrogate, observed = RGPE().fit(past_tasks(4)), target(6)
    own, points = surrogate.fallback_.posterior(observed), np.random.default_rng(0).random((30, 2))
    numbers, w = surrogate._weighted_tasks(own)
    means, variances = surrogate._processes.take(numbers).moments(points)
    own_mean, own_std = own.predict(points)
    mean, std = surrogate.posterior(observed).predict(points)
    assert len(set(w)) > 2
    expected = own.shift + own.scale * (w[:-1] @ means) + w[-1] * (own_mean - own.shift)
    np.testing.assert_allclose(mean, expected)
    variance = own.scale**2 * (w[:-1] ** 2 @ variances) + w[-1] ** 2 * own_std**2
    np.testing.assert_allclose(std**2, variance)


def test_rgpe_weights_are_equal_before_third_trial():
    surrogate = RGPE().fit([*past_tasks(3), *past_tasks(2, sign=-1.0)])
    for n in range(3):
        assert surrogate.similarity(target(n)).tolist() == [1] * 5
    similarity = surrogate.similarity(target(12))
    assert similarity[:3].max() > 0.2
    assert similarity[3:].max() < 0.05


def test_rgpe_ranks_last_trials_of_long_search():
    surrogate, own = RGPE(n_samples=16).fit(past_tasks(2)), GP().fit([]).posterior(target(70))
    last = GaussianProcess(own.X[-60:], own.z[-60:], own.h, NUMBERS)
    np.testing.assert_array_equal(
        surrogate._compute_weights(surrogate._processes, own),
        surrogate._compute_weights(surrogate._processes, last),
    )


def test_rgpe_does_not_modify_arrays():
    tasks, observed = past_tasks(3), target(5)
    before = [task.z.copy() for task in [*tasks, observed]]
    RGPE().fit(tasks).posterior(observed).predict(observed.theta)
    for task, z in zip([*tasks, observed], before, strict=True):
        np.testing.assert_array_equal(task.z, z)


def test_rgpe_rejects_invalid_n_samples():
    with pytest.raises(ValueError, match="n_samples=0"):
        RGPE(n_samples=0).fit([])
