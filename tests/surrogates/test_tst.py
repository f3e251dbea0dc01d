"""TST: weights and predictions against a slow reading of their definition."""

import numpy as np
import pytest

from sktransfer.surrogates import TST
from tests.surrogates.synthetic_tasks import past_tasks, target


def slow_delta(f, z):
    pairs = [(j, k) for j in range(len(z)) for k in range(len(z)) if z[j] != z[k]]
    return sum((f[j] > f[k]) != (z[j] > z[k]) for j, k in pairs) / len(pairs)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_predictions_are_those_of_the_definition(n):
    surrogate, today = (
        TST(bandwidth=0.6).fit([*past_tasks(3), *past_tasks(2, shuffled=True)]),
        target(n),
    )
    own, points = surrogate.fallback_.posterior(today), np.random.default_rng(0).random((20, 2))
    at_trials, at_points = (surrogate._processes.mean(theta) for theta in (today.theta, points))
    own_mean, own_std = own.predict(points)
    upper, lower = 0.75 * (own_mean - own.shift) / own.scale, 0.75
    for task in range(5):
        t = slow_delta(at_trials[task], own.z) / 0.6
        kernel = 0.75 * (1 - t * t) if t <= 1 else 0
        upper, lower = upper + kernel * at_points[task], lower + kernel
        assert surrogate.similarity(today)[task] == pytest.approx(kernel / 0.75)
    mean, std = surrogate.posterior(today).predict(points)
    assert lower > 0.75  # some past task has a say
    np.testing.assert_allclose(mean, own.shift + own.scale * upper / lower)
    np.testing.assert_allclose(std, own_std)


def test_what_disagrees_has_no_say():
    surrogate = TST(bandwidth=0.4).fit([*past_tasks(3), *past_tasks(3, sign=-1.0)])
    assert surrogate.similarity(target(0)).tolist() == [1] * 6
    alike = surrogate.similarity(target(8))
    assert (alike[:3] > 0.3).all()
    assert (alike[3:] == 0).all()


def test_equal_scores_agree_with_nobody():
    today = target(5)
    today.z[:] = 0.5
    assert (TST().fit(past_tasks(3)).similarity(today) == 0).all()


def test_a_bad_bandwidth_is_named():
    with pytest.raises(ValueError, match=r"bandwidth=0\.0"):
        TST(bandwidth=0.0).fit([])
