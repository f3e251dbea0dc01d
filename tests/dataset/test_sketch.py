"""The sketch is reproducible, small, and invariant under order and units."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from sktransfer import profile
from sktransfer.dataset._sketch import MIN_ROWS, SKETCH_FORMAT, random_features

FROZEN = [
    3.8728370891496415,
    74.65202487847955,
    5.349328911039949,
    63.83953871680786,
    200.60498250370625,
]
PROGRAM = """
import numpy as np
from sktransfer import profile
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
print(profile(X, (X[:, 0] > 0).astype(int)).sketch)
"""


def data(n=80, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) ** 3
    y = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(n), [-0.5, 0.5])
    return X, y


def numbers(X, y=None):
    sketch = profile(X, y).sketch
    return np.array(sketch["pairs"] + sketch["kernels"])


def test_sketch_is_the_same_in_two_processes():
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert "pairs" in runs[0]


def test_random_features_are_frozen():
    w, v, b = random_features()
    sums = [w.sum(), np.abs(w).sum(), v.sum(), np.abs(v).sum(), b.sum()]
    np.testing.assert_allclose(sums, FROZEN, rtol=1e-10)


def test_sketch_ignores_order_of_rows_columns_and_labels_and_units():
    X, y = data()
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    same = numbers(X, y)
    for other in (
        numbers(X[rows], y[rows]),
        numbers(X[:, columns], y),
        numbers(X, np.array([2, 0, 1])[y]),
        numbers(X, np.array(["b", "c", "a"])[y]),
        numbers(X * [1e-3, 1, 10, 1e6] + [0, 5, -3, 1e3], y),
    ):
        np.testing.assert_allclose(other, same, atol=3e-5)  # rounded to 5 digits


def test_sketch_ignores_order_of_rows_and_units_of_a_regression_target():
    X, _ = data()
    y = X[:, 0] ** 2
    rows = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_allclose(numbers(X[rows], 1e5 * y[rows] - 7), numbers(X, y), atol=3e-5)


def test_sketch_separates_dependence_from_noise():
    X, y = data(400)
    shuffled = np.random.default_rng(0).permutation(y)
    again = data(400, seed=5)
    near = slice(-22, -11)  # similarity of the targets of neighboring rows, by width of the kernel
    apart = np.abs(numbers(X, y) - numbers(X, shuffled))[near].sum()
    assert apart > 3 * np.abs(numbers(X, y) - numbers(*again))[near].sum()


def test_sketch_is_small_and_hardly_depends_on_one_row():
    X, y = data(1000, 50)
    sketch = profile(X, y).sketch
    assert sketch["format"] == SKETCH_FORMAT
    assert len(pickle.dumps(sketch, protocol=4)) < 4000
    X2 = X.copy()
    X2[7] = np.random.default_rng(9).standard_normal(50)
    assert np.abs(numbers(X2, y) - numbers(X, y)).max() < 0.02


def test_too_few_rows_have_no_sketch():
    X, y = data(MIN_ROWS - 1)
    assert profile(X, y).sketch is None


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (["some text"] * 30, [0, 1] * 15),
        (np.ones((30, 3)), [0, 1] * 15),
        (np.full((30, 2), np.nan), [0, 1] * 15),
    ],
)
def test_text_and_constant_columns_have_no_sketch(X, y):
    assert profile(X, y).sketch is None


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (data()[0], None),
        (data()[0], np.zeros(80)),
        (data()[0], np.where(np.arange(80) % 3, 1.0, np.nan)),
        (np.where(data()[0] > 1, np.inf, data()[0]), data()[1]),
        (np.where(data()[0] > 1, np.nan, data()[0]), data()[1]),
        (data()[0], np.column_stack([data()[1], data()[0][:, 0]])),
        (data()[0] * 1e300, data()[0][:, 0] * 1e300),
    ],
)
def test_sketch_of_unusual_data_is_finite(X, y):
    assert np.isfinite(numbers(X, y)).all()


def test_sketch_survives_to_dict_and_from_dict():
    from sktransfer import DatasetProfile

    found = profile(*data())
    assert DatasetProfile.from_dict(found.to_dict()).sketch == found.sketch
