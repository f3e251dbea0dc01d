"""Transformations that make scores comparable."""

import numpy as np
import pytest
from scipy.stats import norm

from sktransfer.utils._scores import clip_low_outliers, normal_scores, standardize

NAN = np.nan


@pytest.mark.parametrize("z", [[1.0, 2.0, 4.0], [1e9, 1e9 + 1], [-3.0, NAN, 5.0, 6.0]])
def test_standardize_removes_mean_and_scale(z):
    z = np.array(z)
    out, mean, scale = standardize(z)
    ok = np.isfinite(z)
    np.testing.assert_allclose([out[ok].mean(), out[ok].std()], [0, 1], atol=1e-6)
    np.testing.assert_allclose(mean + scale * out[ok], z[ok])
    np.testing.assert_allclose(standardize(10 * z + 7)[0], out, atol=1e-6)


@pytest.mark.parametrize("z", [[0.7], [0.7, 0.7, 0.7], [0.1 + 0.2, 0.3]])
def test_standardize_equal_scores_has_scale_one(z):
    out, _, scale = standardize(np.array(z))
    assert scale == 1.0
    np.testing.assert_allclose(out, 0, atol=1e-12)


def test_standardize_places_failures_below_the_worst():
    assert standardize(np.array([3.0, NAN, 1.0]))[0].tolist() == [1.0, -2.0, -1.0]
    assert standardize(np.array([0.9, NAN, 0.9]))[0].tolist() == [0.0, -1.0, 0.0]
    assert standardize(np.array([NAN, NAN]))[0].tolist() == [-1.0, -1.0]
    assert standardize(np.array([]))[0].tolist() == []


def test_clip_low_outliers_keeps_order_best_and_failures():
    z = np.array([0.0, 0.5, 0.90, 0.91, 0.92, 0.93, NAN, 0.94])
    out = clip_low_outliers(z)
    assert out[-1] == 0.94
    assert np.isnan(out[6])
    assert out[0] == out[1] == pytest.approx(0.91 - 2 * 0.03)
    assert (np.diff(out[:6]) >= 0).all()


@pytest.mark.parametrize("z", [[], [NAN], [0.5], [0.9, 0.9, 0.9, 0.1], [0.9, NAN]])
def test_clip_low_outliers_without_a_scale_changes_nothing(z):
    np.testing.assert_array_equal(clip_low_outliers(np.array(z)), z)


def test_score_functions_leave_the_input_unchanged():
    z = np.array([0.0, 0.9, 0.91, 0.92, NAN])
    before = z.copy()
    clip_low_outliers(z)
    standardize(z)
    np.testing.assert_array_equal(z, before)


def by_definition(z):
    """Phi^-1 of the clipped empirical distribution, one score at a time."""
    n = len(z)
    delta = 1 / (4 * n**0.25 * np.sqrt(np.pi * np.log(n)))
    shares = [sum(other <= score for other in z) / n for score in z]
    return [norm.ppf(min(max(share, delta), 1 - delta)) for share in shares]


@pytest.mark.parametrize(
    "z",
    [
        [1.0, 2.0],
        [3.0, 1.0, 2.0],
        [1.0, 1.0, 2.0],
        [1.0, 2.0, 2.0, 2.0, 5.0],
        np.random.default_rng(0).exponential(size=50).round(1).tolist(),
    ],
)
def test_normal_scores_match_their_definition(z):
    np.testing.assert_allclose(normal_scores(np.array(z)), by_definition(z), atol=1e-12)


def test_normal_scores_depend_on_ranks_only():
    z = np.random.default_rng(1).standard_normal(30)
    np.testing.assert_array_equal(normal_scores(z), normal_scores(np.exp(5 * z)))
    assert (np.diff(normal_scores(np.sort(z))) >= 0).all()
    assert abs(normal_scores(np.arange(1000.0)).std() - 1) < 0.05


@pytest.mark.parametrize("z", [[], [0.3], [0.3, 0.3, 0.3], [NAN, NAN]])
def test_normal_scores_without_ranks_are_zero(z):
    assert normal_scores(np.array(z)).tolist() == [0.0] * len(z)


def test_normal_scores_tie_failures_below_the_worst():
    out = normal_scores(np.array([NAN, 1.0, -np.inf, 2.0]))
    assert out[0] == out[2] < out[1] < out[3]


@pytest.mark.parametrize("unit", [1e-100, 1e-14, 1.0, 1e14])
def test_standardize_works_in_any_unit(unit):
    """Squared errors in micrometers differ as much as those in meters."""
    z = np.array([-3.0, -1.0, -2.0])
    assert np.allclose(standardize(unit * z)[0], standardize(z)[0])
    rounding = unit * (1 + 1e-15 * np.arange(3))
    assert standardize(rounding)[2] == 1.0


@pytest.mark.parametrize("value", [-1e30, 1e50, 0.1, 1e-200])
def test_standardize_equal_scores_has_no_rounding_errors(value):
    z, mean, scale = standardize(np.array([value] * 6 + [np.nan]))
    assert z.tolist() == [0.0] * 6 + [-1.0]
    assert (mean, scale) == (pytest.approx(value), 1.0)
