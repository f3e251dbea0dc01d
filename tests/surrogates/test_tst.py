"""TST: weights and predictions compared with a direct implementation."""

import numpy as np
import pytest

from sktransfer.surrogates import TST
from tests.surrogates.synthetic_tasks import past_tasks, target


def slow_delta(f, z):
    pairs = [(j, k) for j in range(len(z)) for k in range(len(z)) if z[j] != z[k]]
    return sum((f[j] > f[k]) != (z[j] > z[k]) for j, k in pairs) / len(pairs)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_tst_predictions_match_definition(n):
    surrogate, observed = (
        TST(bandwidth=0.6).fit([*past_tasks(3), *past_tasks(2, shuffled=True)]),
        target(n),
    )
    own, points = surrogate.fallback_.posterior(observed), np.random.default_rng(0).random((20, 2))
    at_trials, at_points = (surrogate._processes.mean(theta) for theta in (observed.theta, points))
    own_mean, own_std = own.predict(points)
    upper, lower = 0.75 * (own_mean - own.shift) / own.scale, 0.75
    for task in range(5):
        t = slow_delta(at_trials[task], own.z) / 0.6
        kernel = 0.75 * (1 - t * t) if t <= 1 else 0
        upper, lower = upper + kernel * at_points[task], lower + kernel
        assert surrogate.similarity(observed)[task] == pytest.approx(kernel / 0.75)
    mean, std = surrogate.posterior(observed).predict(points)
    assert lower > 0.75  # some past task is used
    np.testing.assert_allclose(mean, own.shift + own.scale * upper / lower)
    np.testing.assert_allclose(std, own_std)


def test_tst_excludes_disagreeing_tasks():
    surrogate = TST(bandwidth=0.4).fit([*past_tasks(3), *past_tasks(3, sign=-1.0)])
    assert surrogate.similarity(target(0)).tolist() == [1] * 6
    similarity = surrogate.similarity(target(8))
    assert (similarity[:3] > 0.3).all()
    assert (similarity[3:] == 0).all()


def test_tst_excludes_all_tasks_for_equal_scores():
    observed = target(5)
    observed.z[:] = 0.5
    assert (TST().fit(past_tasks(3)).similarity(observed) == 0).all()


def test_tst_rejects_invalid_bandwidth():
    with pytest.raises(ValueError, match=r"bandwidth=0\.0"):
        TST(bandwidth=0.0).fit([])
