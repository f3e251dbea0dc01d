"""Expected improvement against Monte Carlo and its limits, and its maximization in mixed spaces."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, randint, uniform

from sktransfer import Space
from sktransfer.optimizer._acquisition import log_expected_improvement
from sktransfer.optimizer._maximize import maximize, neighbors


@pytest.mark.parametrize(
    ("mean", "std", "best"), [(0, 1, 0), (0.5, 0.2, 0.9), (2, 0.1, 1), (-1, 3, 2)]
)
def test_expected_improvement_equals_monte_carlo(mean, std, best):
    draws = np.random.default_rng(0).normal(mean, std, 400_000)
    expected = np.maximum(draws - best, 0).mean()
    log_ei = log_expected_improvement(np.array([mean]), np.array([std]), best)
    assert np.exp(log_ei[0]) == pytest.approx(expected, rel=0.05, abs=1e-4)


@pytest.mark.parametrize("v", [-30.0, -8.0, -1.0001, -0.9999, 0.0, 3.0])
def test_log_expected_improvement_equals_its_integral(v):
    integral = quad(lambda t: t * np.exp(-0.5 * t * t + v * t), 0, 40)[0]  # h(v) / phi(v)
    expected = np.log(integral) + norm.logpdf(v)
    assert log_expected_improvement(np.array([v]), np.array([1.0]), 0.0)[0] == pytest.approx(
        expected, rel=1e-6
    )


def test_log_expected_improvement_is_finite_and_monotone():
    v = np.concatenate([-np.geomspace(1e8, 1e-3, 4000), np.linspace(0, 10, 100)])
    values = log_expected_improvement(v, np.ones_like(v), 0.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) > 0).all()


MIXED = [
    {"kind": ["a"], "x": uniform(0, 1), "n": randint(0, 50)},
    {"kind": ["b", "c"], "x": uniform(0, 1), "list": [1, 2, 4, 8, 16, 32]},
]


def test_maximize_finds_the_maximum_in_a_mixed_space():
    space = Space.parse(MIXED)
    goal = space.encode({"kind": "c", "x": 0.37, "list": 8})
    weights = np.where(space.categorical, 0.5, 1.0)

    def acquisition(codes):
        distance = np.where(space.categorical, codes != goal, np.abs(codes - goal))
        return -(distance * weights).sum(axis=1)

    found = maximize(
        acquisition, space, np.random.default_rng(0), near=np.empty((0, space.n_columns))
    )
    best = space.decode(found[0])
    assert best["kind"] == "c"
    assert best["list"] == 8
    assert best["x"] == pytest.approx(0.37, abs=0.01)
    values = acquisition(found[:8])
    assert (np.diff(values) <= 0).all()


def test_neighbors_are_valid_and_differ_from_their_origin():
    space = Space.parse(MIXED)
    rng = np.random.default_rng(0)
    codes = space.encode(space.sample(300, 0))
    moved = neighbors(space, codes, 0.05, rng)
    np.testing.assert_allclose(space.snap(moved), moved, atol=1e-12)
    np.testing.assert_array_equal(space.branch_of(moved), space.branch_of(codes))
    assert (moved != codes).any(axis=1).mean() > 0.8
    x = space.column_names().index("x")
    assert np.abs(moved[:, x] - codes[:, x]).max() < 0.3
