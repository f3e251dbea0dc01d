"""Configurations as a head reads them: places on axes, units of the data, resolved values."""

import numpy as np
import pytest

from sktransfer import profile
from sktransfer.pretrained._configurations import (
    ConfigurationEncoder,
    Parameter,
    Units,
    resolve,
)

UNITS = Units(n_rows=200, n_columns=10, variance=4.0, cell_variance=9.0, target_std=5.0)
C = Parameter("C", low=1e-3, high=1e3, log=True, default=1.0)
GAMMA = Parameter("gamma", low=1e-4, high=1e2, log=True, default="scale")
DEPTH = Parameter("max_depth", low=1, high=30, log=True)
KERNEL = Parameter("kernel", values=("rbf", "poly"), default="rbf")


def test_number_lies_between_bounds_on_its_axis():
    codes = C.encode("SomeSVM", [1e-3, 1.0, 1e3, 1e9, 0.0], UNITS)[:, 0]
    np.testing.assert_allclose(codes, [-1, 0, 1, 1.5, -4 / 3])


def test_missing_limit_is_marked_and_lies_at_upper_bound():
    np.testing.assert_allclose(DEPTH.encode("Tree", [None, 30], UNITS), [[1, 1], [1, 0]])


def test_relative_number_follows_units():
    wide = Units(n_rows=200, n_columns=1000, variance=4.0)
    near, far = (GAMMA.encode("SVC", [0.1], units)[0] for units in (UNITS, wide))
    assert near[0] == far[0]
    assert far[2] - near[2] == pytest.approx(2 / 3)  # two decades, of three


def test_scaled_target_and_scaled_penalty_are_the_same_to_svr():
    penalty = Parameter("C", low=1e-3, high=1e3, log=True)
    other = Units(n_rows=200, n_columns=10, target_std=50.0)
    one = Units(n_rows=200, n_columns=10, target_std=5.0)
    assert penalty.encode("SVR", [1.0], one)[0, 2] == pytest.approx(
        penalty.encode("SVR", [10.0], other)[0, 2]
    )


@pytest.mark.parametrize(
    ("value", "name", "number"),
    [
        ("scale", "gamma", 1 / 90),
        ("auto", "gamma", 0.1),
        ("sqrt", "max_features", 10**-0.5),
        ("log2", "max_features", np.log2(10) / 10),
        (None, "max_features", 1.0),
        (5, "max_features", 0.5),
        (0.3, "max_features", 0.3),
        (50, "max_samples", 0.25),
        (0.1, "min_samples_leaf", 20),
        (3, "min_samples_leaf", 3),
        ("auto", "batch_size", 200),
        (None, "max_depth", None),
        (object(), "C", None),
    ],
)
def test_resolve_turns_values_into_numbers(value, name, number):
    assert resolve(value, name, UNITS) == pytest.approx(number)


def test_categories_are_indicators_and_unknown_ones_zero():
    codes = KERNEL.encode("SVC", ["poly", "rbf", "sigmoid"], UNITS)
    assert codes.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_criterion_aliases_are_the_same_category():
    criterion = Parameter("criterion", values=("gini", "entropy"))
    assert np.array_equal(*(criterion.encode("Tree", [v], UNITS) for v in ("log_loss", "entropy")))


def test_layers_are_described_by_width_and_depth():
    layers = Parameter("hidden_layer_sizes", values=((100,), (50,)))
    codes = layers.encode("MLP", [(100,), (100, 50), 100, "odd"], UNITS)
    np.testing.assert_allclose(codes, [[0.5, 0], [0.5, 1], [0.5, 0], [0.5, 0]])


def test_encoder_fills_defaults_and_finds_columns():
    encoder = ConfigurationEncoder("SVC", [C, GAMMA, KERNEL])
    codes = encoder.encode([{"C": 1e3}, {"kernel": "poly", "C": 1e3}], UNITS)
    assert codes.shape == (2, encoder.width) == (2, 8)
    assert codes[:, encoder.columns_of(2)].tolist() == [[1, 0], [0, 1]]
    assert (codes[0, :6] == codes[1, :6]).all()


def test_units_of_scaled_data_do_not_depend_on_columns():
    X = np.random.default_rng(0).normal(size=(100, 3)) * [1, 10, 100]
    data = profile(X, X[:, 0] * 7)
    scaled, bare = (Units.from_profile(data, is_scaled) for is_scaled in (True, False))
    assert scaled.variance == scaled.cell_variance == 1.0
    assert bare.variance == pytest.approx(X.var(axis=0).mean(), rel=0.01)
    assert scaled.target_std == bare.target_std == pytest.approx(7 * X[:, 0].std(), rel=0.01)
    assert (scaled.n_rows, scaled.n_columns) == (100, 3)
