"""Response curves: the closed forms against brute force, invariances, and odd data."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from sktransfer.dataset import _response_curves as rc
from sktransfer.dataset._response_curves import (
    DEPTHS,
    LEAF_SIZES,
    LOG_GAMMAS,
    LOG_RIDGES,
    LOG_SLOPES,
    N_NEIGHBORS,
    compute_curves,
    predict_left_out,
    relative_curves,
    response_curves,
)


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def regression_data(n=40, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = standardized(rng.standard_normal((n, p)))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.standard_normal(n)


def classification_data(n=60, k=3, seed=0):
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=k, random_state=seed, class_sep=1.5
    )
    return standardized(X), y


def skill(y, predicted):
    """Balanced accuracy, 0 at chance and 1 if perfect."""
    k = len(np.unique(y))
    return (balanced_accuracy_score(y, predicted) - 1 / k) / (1 - 1 / k)


def largest_difference(one, two):
    assert one.keys() == two.keys()
    return max(abs(one[name] - two[name]) for name in one)


# -- closed forms --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 8])
def test_neighbors_match_brute_force_in_regression(k):
    X, y = regression_data()
    predicted = cross_val_predict(KNeighborsRegressor(k), X, y, cv=LeaveOneOut())
    expected = max(-1.0, r2_score(y, predicted))
    assert response_curves(X, y)[f"knn_{k}"] == pytest.approx(expected, abs=1e-4)


def test_weighted_neighbors_match_brute_force():
    X, y = regression_data()
    model = KNeighborsRegressor(5, weights="distance")
    expected = r2_score(y, cross_val_predict(model, X, y, cv=LeaveOneOut()))
    assert response_curves(X, y)["weighted_5"] == pytest.approx(expected, abs=1e-4)


def test_neighbors_match_brute_force_in_classification():
    X, y = classification_data()
    curves = response_curves(X, y)
    predicted = cross_val_predict(KNeighborsClassifier(1), X, y, cv=LeaveOneOut())
    assert curves["knn_1"] == pytest.approx(skill(y, predicted), abs=1e-4)


def test_neighbors_loss_matches_brute_force():
    X, y = classification_data(k=2)
    P = cross_val_predict(KNeighborsClassifier(8), X, y, cv=LeaveOneOut(), method="predict_proba")
    shares = np.bincount(y) / len(y)
    own = ((8 * P + shares) / 9)[np.arange(len(y)), y]
    entropy = -np.sum(shares * np.log(shares))
    expected = 1 + np.mean(np.log(own)) / entropy
    assert response_curves(X, y)["knn_8_loss"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("log_gamma", "log_ridge"), [(-2.5, -3), (-1, -1), (0.5, 1)])
def test_kernel_ridge_matches_brute_force(log_gamma, log_ridge):
    X, y = regression_data()
    model = KernelRidge(kernel="rbf", gamma=10.0**log_gamma, alpha=10.0**log_ridge)
    z = (y - y.mean()) / y.std()
    expected = max(-1.0, r2_score(z, cross_val_predict(model, X, z, cv=LeaveOneOut())))
    found = response_curves(X, y)[f"kernel_{log_gamma:g}_{log_ridge:g}"]
    assert found == pytest.approx(expected, abs=1e-4)


def test_prediction_of_left_out_rows_matches_brute_force_for_several_columns():
    rng = np.random.default_rng(1)
    X, T = rng.standard_normal((30, 3)), rng.standard_normal((30, 2))
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    model = KernelRidge(kernel="rbf", gamma=0.2, alpha=0.5)
    centered = T - T.mean(axis=0)
    expected = cross_val_predict(model, X, centered, cv=LeaveOneOut()) + T.mean(axis=0)
    np.testing.assert_allclose(predict_left_out(np.exp(-0.2 * D), T, 0.5), expected, atol=1e-10)


def test_linear_ridge_matches_brute_force():
    X, y = regression_data()
    # Without a row the columns have another mean, as in the brute force: Ridge has an intercept.
    model = Ridge(alpha=len(X) * 1e-2)
    expected = r2_score(y, cross_val_predict(model, X, y, cv=LeaveOneOut()))
    assert response_curves(X, y)["linear_-2"] == pytest.approx(expected, abs=1e-4)


def test_depths_are_those_of_trees_grown_to_that_depth():
    X, y = regression_data(300, 5)
    X, T = X.astype(np.float32), y[:, None]
    train, test = np.arange(200), np.arange(200, 300)
    depths = [depth for depth in DEPTHS if depth <= 3]  # deeper nodes are small and have ties
    found = rc._grow_tree(X[train], T[train], X[test], 1, depths)
    for depth, predicted in zip(depths, found[1:], strict=True):
        model = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X[train], T[train])
        np.testing.assert_allclose(predicted[:, 0], model.predict(X[test]), atol=1e-9)


# -- meaning -------------------------------------------------------------------------------------


def test_curves_have_one_number_for_each_step():
    curves = response_curves(*load_diabetes(return_X_y=True))
    n_steps = len(N_NEIGHBORS) + 3 + len(LOG_GAMMAS) * len(LOG_RIDGES) + len(LOG_SLOPES)
    assert len(curves) == n_steps + len(LEAF_SIZES) + len(DEPTHS)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_diabetes])
def test_scores_are_between_minus_one_and_one(load):
    values = np.array(list(response_curves(*load(return_X_y=True)).values()))
    assert np.isfinite(values).all()
    assert values.min() >= -1 and values.max() <= 1


def test_smooth_function_favors_wide_kernels_and_parity_narrow_ones():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    plane = response_curves(X, X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(300))
    board = response_curves(X, np.sign(np.sin(9 * X[:, 0]) * np.sin(9 * X[:, 1])))
    assert plane["linear_-2"] > 0.5 > 0.2 > board["linear_-2"]
    assert plane["kernel_-2.5_-1"] > plane["kernel_0.5_-3"]
    assert board["kernel_0.5_-3"] > board["kernel_-2.5_-1"] + 0.3


def test_noise_scores_near_zero():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 5)), rng.integers(2, size=200)
    curves = response_curves(X, y)
    assert abs(curves["linear_0"]) < 0.25 and abs(curves["knn_21"]) < 0.25


def test_constant_predictions_score_as_chance():
    X, y = load_iris(return_X_y=True)  # a strong penalty leaves the shares of the classes
    curves = response_curves(X, y)
    assert curves["kernel_-4_1"] == pytest.approx(0.0, abs=0.05)
    assert curves["leaf_60"] == pytest.approx(0.0, abs=0.05)


def test_relative_curves_are_zero_at_the_best_step_of_each_learner():
    curves = response_curves(*load_wine(return_X_y=True))
    relative = relative_curves(curves)
    assert relative.keys() == curves.keys() and max(relative.values()) == 0.0
    for learner in ("knn", "weighted", "kernel", "linear", "leaf", "depth"):
        names = [name for name in curves if name.split("_")[0] == learner]
        plain = [name for name in names if not name.endswith(("_loss", "_square"))]
        assert max(relative[name] for name in plain) == 0.0
        best = max(plain, key=curves.get)
        assert relative[plain[0]] == curves[plain[0]] - curves[best]


# -- invariance ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [150, 500])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_order_of_rows_and_columns_does_not_matter(kind, n):
    X, y = classification_data(n) if kind == "classification" else regression_data(n)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(n), rng.permutation(X.shape[1])
    shuffled = response_curves(X[rows][:, columns], y[rows])
    assert largest_difference(response_curves(X, y), shuffled) < 1e-3


def test_names_of_classes_do_not_matter():
    X, y = classification_data(200)
    renamed = np.array(["c", "a", "b"])[y]
    assert largest_difference(response_curves(X, y), response_curves(X, renamed)) < 1e-3


def test_units_of_the_columns_do_not_matter():
    X, y = classification_data(150)
    units = np.array([1e-3, 10.0, 1.0, 500.0, 2.0])
    assert largest_difference(response_curves(X, y), response_curves(X * units + 7.0, y)) < 1e-3


def test_units_of_the_target_do_not_matter():
    X, y = regression_data(100)
    assert largest_difference(response_curves(X, y), response_curves(X, 1e4 * y - 3)) < 1e-3


def test_equal_rows_of_different_classes_are_not_sorted_by_class():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 60, axis=0)
    y = np.tile([0, 1], 60)
    curves = response_curves(X, y)  # coin flips: a fixed order of classes would score -1 or 1
    assert abs(curves["knn_1"]) < 0.4


def test_same_data_give_the_same_curves():
    X, y = classification_data(400)
    assert response_curves(X, y) == response_curves(X, y)


# -- odd data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (["a text", "another"] * 10, [0, 1] * 10),
        (np.ones((20, 3)), [0, 1] * 10),
        (np.arange(40.0).reshape(20, 2), [1] * 20),
        (np.arange(40.0).reshape(20, 2), None),
        (np.arange(18.0).reshape(9, 2), [0, 1, 0, 1, 0, 1, 0, 1, 0]),
    ],
    ids=["text", "constant columns", "one class", "no target", "nine rows"],
)
def test_nothing_where_there_is_nothing_to_learn(X, y):
    assert response_curves(X, y) == {}


def test_one_column_is_enough():
    x = np.linspace(-1, 1, 50)
    curves = response_curves(x[:, None], x > 0)
    assert curves["depth_1"] > 0.8 and curves["knn_3"] > 0.8


def test_ten_rows_have_the_curves_that_fit():
    X, y = regression_data(10)
    curves = response_curves(X, y)
    assert "knn_8" in curves and "knn_13" not in curves


def test_missing_cells_are_imputed_and_missing_targets_left_out():
    X, y = regression_data(80)
    whole = response_curves(X, y)
    X, y = X.copy(), y.copy()
    X[::7, 1], y[::9] = np.nan, np.nan
    curves = response_curves(X, y)
    assert curves.keys() == whole.keys()
    assert abs(curves["linear_-2"] - whole["linear_-2"]) < 0.3


def test_sparse_data_have_the_curves_of_the_dense():
    rng = np.random.default_rng(0)
    X = rng.random((120, 6)) * (rng.random((120, 6)) < 0.5)
    y = (X[:, 0] > 0.2).astype(int)
    found = response_curves(sparse.csr_matrix(X), y)
    assert largest_difference(found, response_curves(X, y)) < 1e-3


def test_of_several_outputs_the_first_is_used():
    X, y = regression_data(60)
    two = np.column_stack([y, np.random.default_rng(0).standard_normal(60)])
    assert response_curves(X, two) == response_curves(X, y)


def test_classes_of_one_row_do_no_harm():
    X, y = classification_data(100)
    y[:3] = [7, 8, 9]
    assert response_curves(X, y)["knn_5"] > 0.2


def test_rows_of_the_largest_classes_are_used():
    X, y = classification_data(400)
    rare = np.arange(60) + 10  # sixty further classes of one row
    more_X = np.vstack([X, np.random.default_rng(0).standard_normal((60, 5))])
    curves = response_curves(more_X, np.append(y, rare))
    # Three classes of 133 rows, and seventeen of one row that cannot be predicted.
    whole = response_curves(X, y)
    assert 0.5 * whole["knn_5"] * 3 / 20 < curves["knn_5"] < 1.5 * 3 / 20


def test_infinite_and_huge_cells_do_no_harm():
    X, y = regression_data(60)
    X[0, 0], X[1, 1] = np.inf, 1e300
    assert all(np.isfinite(value) for value in response_curves(X, y).values())


def test_kind_can_be_given():
    X, y = regression_data(60)
    whole = np.round(y).astype(int)
    assert "knn_1_loss" in response_curves(X, whole, "classification")
    assert "knn_1_loss" not in response_curves(X, whole, "regression")


def test_wide_data_have_curves():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3000))
    y = (X[:, 0] > 0).astype(int)
    curves = response_curves(X, y)
    assert "leaf_1" in curves


def test_few_numbers_are_kept():
    X, y = classification_data(300, k=2)
    assert len(compute_curves(X, y.astype(float), True)) < 100 < X.size / 10
