"""GaussianProcess compared with scikit-learn's, with finite differences and with autograd."""

import threading
import warnings

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_info

from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates._core import gaussian_process as core
from sktransfer.surrogates._core import torch_kernels
from sktransfer.surrogates._core.defaults import GP_JITTER
from sktransfer.surrogates._core.kernels import KERNELS, kernel_matrix
from sktransfer.surrogates.gp import default_priors
from sktransfer.utils._threads import single_threaded
from sktransfer.utils._torch import torch_context

REFERENCE = {
    "se": RBF,
    "matern32": lambda length_scale: Matern(length_scale, nu=1.5),
    "matern52": lambda length_scale: Matern(length_scale, nu=2.5),
}


def negative_log_posterior(h, squares, z, kernel, priors):
    """Minus log p(z | h) p(h), up to a constant, for autograd; squares (n, n, d)."""
    K = torch.exp(h[-2]) * torch_kernels.TORCH_KERNELS[kernel](squares @ torch.exp(-2 * h[:-2]))
    K = K + (torch.exp(h[-1]) + GP_JITTER) * torch.eye(len(z), dtype=torch.float64)
    return -(torch_kernels.log_likelihood(K, z) + priors.log_density(h))


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.sin(5 * X).sum(axis=1) + 0.1 * rng.standard_normal(n), rng


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 2), (40, 6)])
def test_posterior_equals_scikit_learn(kernel, n, d):
    X, z, rng = data(n, d)
    lengthscales, signal, noise = rng.uniform(0.2, 2, d), 1.7, 0.03
    process = core.GaussianProcess(
        X, z, np.log([*lengthscales, signal, noise]), np.zeros(d, dtype=bool), kernel=kernel
    )
    noise += GP_JITTER
    reference = GaussianProcessRegressor(
        ConstantKernel(signal) * REFERENCE[kernel](lengthscales) + WhiteKernel(noise),
        optimizer=None,
        alpha=0,
    ).fit(X, z)
    points = rng.random((50, d))
    mean, std = process.predict(points)
    their_mean, their_std = reference.predict(points, return_std=True)
    np.testing.assert_allclose(mean, their_mean, atol=1e-8)
    # theirs is the variance of a new observation, ours that of the function
    np.testing.assert_allclose(np.sqrt(std**2 + noise), their_std, atol=1e-8)
    evidence = process.log_evidence - 0.5 * n * np.log(2 * np.pi)
    assert evidence == pytest.approx(reference.log_marginal_likelihood_value_, abs=1e-8)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_categories_are_corners_of_a_simplex(kernel):
    """[x != x'] / l² is the squared distance of one-hot vectors scaled by l √2."""
    rng = np.random.default_rng(1)
    numeric, category = rng.random((25, 2)), rng.integers(0, 4, 25)
    z = rng.standard_normal(25)
    l1, l2, lc = 0.5, 0.8, 0.6
    process = core.GaussianProcess(
        np.column_stack([numeric, category / 4]),
        z,
        np.log([l1, l2, lc, 1.0, 0.1]),
        np.array([False, False, True]),
        kernel=kernel,
    )
    onehot = np.column_stack([numeric, np.eye(4)[category] / np.sqrt(2)])
    reference = GaussianProcessRegressor(
        REFERENCE[kernel]([l1, l2, lc, lc, lc, lc]), optimizer=None, alpha=0.1
    ).fit(onehot, z)
    their_mean, their_std = reference.predict(onehot, return_std=True)
    mean, std = process.predict(process.X)
    np.testing.assert_allclose(mean, their_mean, atol=1e-6)
    np.testing.assert_allclose(std, their_std, atol=1e-6)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_gradients_equal_finite_differences(kernel):
    X, z, rng = data(12, 3)
    X[5] = X[6]  # equal inputs: the root of the distance has no derivative there
    categorical = np.array([False, False, True])
    X[:, 2] = np.round(X[:, 2])
    squares = torch_kernels.squared_differences(torch.tensor(X), torch.tensor(X), categorical)
    priors = default_priors(3)

    def loss(h):
        return negative_log_posterior(
            torch.as_tensor(h, dtype=torch.float64), squares, torch.tensor(z), kernel, priors
        )

    h = rng.normal(-0.5, 0.3, 5)
    h_t = torch.tensor(h, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(h_t), h_t)
    numeric = [(loss(h + step) - loss(h - step)) / 2e-5 for step in 1e-5 * np.eye(5)]
    np.testing.assert_allclose(gradient.numpy(), [float(g) for g in numeric], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_closed_form_gradient_equals_autograd(kernel):
    X, z, rng = data(12, 3)
    X[5] = X[6]
    X[:, 2] = np.round(X[:, 2])
    squares = torch_kernels.squared_differences(
        torch.tensor(X), torch.tensor(X), np.array([False, False, True])
    )
    priors, h = default_priors(3), rng.normal(-0.5, 0.3, 5)
    h_t = torch.tensor(h, requires_grad=True)
    loss = negative_log_posterior(h_t, squares, torch.tensor(z), kernel, priors)
    (expected,) = torch.autograd.grad(loss, h_t)
    pairs = core.Pairs(X, np.array([False, False, True]))
    value, gradient = core.value_and_gradient(h, pairs, z, kernel, priors, GP_JITTER)
    assert value == pytest.approx(float(loss.detach()), rel=1e-10)
    np.testing.assert_allclose(gradient, expected.numpy(), rtol=1e-8, atol=1e-10)


def test_value_and_gradient_is_none_without_cholesky_factor():
    X, z, _ = data(4, 2)
    pairs = core.Pairs(np.zeros_like(X), np.zeros(2, dtype=bool))
    h = np.array([0.0, 0.0, 0.0, -60.0])
    assert core.value_and_gradient(h, pairs, z, "se", default_priors(2), 0.0) is None


def test_fit_hyperparameters_finds_maximum():
    X, z, rng = data(30, 2)
    categorical, priors = np.zeros(2, dtype=bool), default_priors(2)
    h = core.fit_hyperparameters(X, z, categorical, kernel="matern52", priors=priors)
    squares = torch_kernels.squared_differences(torch.tensor(X), torch.tensor(X), categorical)

    def loss(h):
        return float(
            negative_log_posterior(torch.tensor(h), squares, torch.tensor(z), "matern52", priors)
        )

    assert loss(h) < loss(priors.medians(2))
    assert all(loss(h) <= loss(h + 0.05 * rng.standard_normal(4)) for _ in range(20))


def test_fit_hyperparameters_finds_relevant_column():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    h = core.fit_hyperparameters(
        X, np.sin(8 * X[:, 0]), np.zeros(2, dtype=bool), kernel="matern52", priors=default_priors(2)
    )
    assert h[0] < h[1] - 0.5


def test_first_fit_to_a_part_ends_at_the_same_maximum(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((90, 2))
    z = np.sin(8 * X[:, 0]) + 0.1 * rng.normal(size=90)
    found, n_trials, full = [], [], core.value_and_gradient
    monkeypatch.setattr(
        core,
        "value_and_gradient",
        lambda h, pairs, *rest: n_trials.append(pairs.n) or full(h, pairs, *rest),
    )
    for most in (200, 40):
        monkeypatch.setattr(core, "MAX_FIRST_FIT", most)
        found.append(
            core.fit_hyperparameters(
                X, z, np.zeros(2, dtype=bool), kernel="matern52", priors=default_priors(2)
            )
        )
    np.testing.assert_allclose(found[1], found[0], atol=0.02)
    assert set(n_trials) == {90, 30}


def test_failed_fit_returns_medians_and_warns(monkeypatch):
    monkeypatch.setattr(core, "value_and_gradient", lambda *args: None)
    X, z, _ = data(5, 2)
    with pytest.warns(SurrogateWarning, match="default hyperparameters"):
        h = core.fit_hyperparameters(
            X, z, np.zeros(2, dtype=bool), kernel="matern52", priors=default_priors(2)
        )
    np.testing.assert_array_equal(h, default_priors(2).medians(2))


def test_shift_and_scale_map_predictions_to_scores():
    X, z, rng = data(12, 3)
    h, categorical, points = rng.normal(-0.5, 0.2, 5), np.zeros(3, dtype=bool), rng.random((10, 3))
    mean, std = core.GaussianProcess(X, z, h, categorical).predict(points)
    moved = core.GaussianProcess(X, z, h, categorical, shift=3.0, scale=2.0).predict(points)
    np.testing.assert_allclose(moved, [3 + 2 * mean, 2 * std])


def test_samples_have_predicted_moments():
    X, z, rng = data(8, 2)
    process = core.GaussianProcess(X, z, np.log([0.4, 0.4, 1.0, 1e-3]), np.zeros(2, dtype=bool))
    points = rng.random((6, 2))
    draws = process.sample(points, 20_000, rng)
    mean, std = process.predict(points)
    assert draws.shape == (20_000, 6)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(draws.std(axis=0), std, atol=0.03)


def test_gp_without_trials_is_prior():
    process = core.GaussianProcess(
        np.empty((0, 2)), np.empty(0), np.log([0.5, 0.5, 4.0, 0.1]), np.zeros(2, dtype=bool)
    )
    mean, std = process.predict(np.random.default_rng(0).random((3, 2)))
    assert mean.tolist() == [0, 0, 0]
    np.testing.assert_allclose(std, 2.0)


def test_fit_restores_number_of_threads():
    before = torch.get_num_threads()
    X, z, _ = data(5, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        core.fit_hyperparameters(
            X, z, np.zeros(2, dtype=bool), kernel="se", priors=default_priors(2)
        )
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("one", [torch_context, lambda: single_threaded])
def test_nested_contexts_restore_threads_at_last_exit(one):
    """Searches in several threads, as with joblib's threading backend, overlap in any order."""

    def blas():
        return sorted(
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        )

    torch.set_num_threads(2)
    before, inside = blas(), []
    first, second = one(), torch_context()
    first.__enter__()
    second.__enter__()
    inside += [torch.get_num_threads(), *blas()]
    first.__exit__(None, None, None)
    inside += [torch.get_num_threads(), *blas()]
    second.__exit__(None, None, None)
    assert set(inside) == {1}
    assert torch.get_num_threads() == 2
    assert blas() == before
    torch.set_num_threads(1)


def test_single_threaded_is_set_per_thread():
    """With OpenMP, torch's number of threads is a setting of each thread."""
    seen, first_in, second_in, first_out = {}, *(threading.Event() for _ in range(3))

    def use(n):
        torch.get_num_threads()  # the first call of a thread returns the last global value
        torch.set_num_threads(n)

    def first():
        use(2)
        with single_threaded:
            first_in.set()
            second_in.wait(10)
        seen["first after"] = torch.get_num_threads()
        first_out.set()

    def second():
        first_in.wait(10)
        use(3)
        with single_threaded:
            seen["second inside"] = torch.get_num_threads()
            second_in.set()
            first_out.wait(10)
            with single_threaded:
                seen["second still inside"] = torch.get_num_threads()
        seen["second after"] = torch.get_num_threads()

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {
        "first after": 2,
        "second inside": 1,
        "second still inside": 1,
        "second after": 3,
    }


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("categorical", [[False] * 3, [True, False, False], [True] * 3])
def test_numpy_and_torch_kernels_agree(kernel, categorical):
    rng, categorical = np.random.default_rng(0), np.array(categorical)
    A, B, lengths = (
        rng.integers(0, 4, (20, 3)) / 4,
        rng.integers(0, 4, (30, 3)) / 4,
        np.array([0.05, 0.3, 2.0]),
    )
    squares = torch_kernels.scaled_distances(
        *map(torch.from_numpy, (A, B, lengths**-2.0)), categorical
    )
    expected = torch_kernels.TORCH_KERNELS[kernel](squares).numpy()
    np.testing.assert_allclose(
        kernel_matrix(A, B, lengths, categorical, kernel), expected, atol=1e-9
    )
