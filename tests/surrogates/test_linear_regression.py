"""Bayesian linear regression: both forms compared with each other and with the Gaussian."""

import numpy as np
import pytest
import torch

from sktransfer.surrogates._core.gaussian_process import LogNormal
from sktransfer.surrogates._core.linear_regression import (
    LinearRegression,
    feature_correlations,
    fit_precisions,
)
from sktransfer.surrogates._core.training import task_batches
from sktransfer.utils._torch import tensor

SIZES = [(3, 8), (8, 8), (30, 8), (1, 5)]


def problem(n, d, seed=0):
    rng = np.random.default_rng(seed)
    Phi, z, phi = rng.standard_normal((n, d)), rng.standard_normal(n), rng.standard_normal((6, d))
    return tensor(Phi), tensor(z), tensor(phi), tensor(np.array(0.7)), tensor(np.array(5.0))


def brute_force(Phi, z, phi, alpha, beta):
    """Negative log likelihood up to a constant, mean and covariance at phi, computed directly."""
    Phi, z, phi, alpha, beta = (np.asarray(each) for each in (Phi, z, phi, alpha, beta))
    K = Phi @ Phi.T / alpha + np.eye(len(z)) / beta
    k = phi @ Phi.T / alpha
    loss = 0.5 * (np.linalg.slogdet(K)[1] + z @ np.linalg.solve(K, z))
    return loss, k @ np.linalg.solve(K, z), phi @ phi.T / alpha - k @ np.linalg.solve(K, k.T)


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("dual", [True, False, None])
def test_both_forms_equal_gaussian(n, d, dual):
    Phi, z, phi, alpha, beta = problem(n, d)
    loss, mean, covariance = brute_force(Phi, z, phi, alpha, beta)
    regression = LinearRegression(Phi, z, alpha, beta, dual=dual)
    found = regression.moments(phi, phi)
    assert float(regression.loss()) == pytest.approx(loss, abs=1e-8)
    np.testing.assert_allclose(found[0], mean, atol=1e-8)
    np.testing.assert_allclose(found[1], np.diag(covariance), atol=1e-8)
    np.testing.assert_allclose(found[2], covariance, atol=1e-8)


@pytest.mark.parametrize("dual", [True, False])
def test_padding_has_no_effect(dual):
    """A stack of tasks of different lengths is each task by itself."""
    alphas, betas, longest = (
        tensor(np.array([0.5, 1.0, 2.0, 4.0])),
        tensor(np.array([9.0, 3.0, 1.0, 2.0])),
        30,
    )
    tasks = [problem(n, 8, seed)[:2] for seed, n in enumerate((3, 30, 8, 1))]
    Phi = torch.stack([torch.nn.functional.pad(P, (0, 0, 0, longest - len(P))) for P, _ in tasks])
    z = torch.stack([torch.nn.functional.pad(each, (0, longest - len(each))) for _, each in tasks])
    lengths = tensor(np.array([len(each) for _, each in tasks]))
    stacked = LinearRegression(Phi, z, alphas, betas, n=lengths, dual=dual).loss()
    phi = problem(1, 8)[2]
    for k, (P, each) in enumerate(tasks):
        loss, mean, covariance = brute_force(P, each, phi, alphas[k], betas[k])
        assert float(stacked[k]) == pytest.approx(loss, abs=1e-8)
        padded = LinearRegression(Phi[k], z[k], alphas[k], betas[k], n=lengths[k], dual=dual)
        found = padded.moments(phi, phi[:0])
        np.testing.assert_allclose(found[0], mean, atol=1e-8)
        np.testing.assert_allclose(found[1], np.diag(covariance), atol=1e-8)


def test_fit_precisions_finds_most_probable():
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((200, 5))
    z = Phi @ rng.standard_normal(5) * 0.5 + 0.1 * rng.standard_normal(200)
    alpha, beta = LogNormal(1.0, 3.0), LogNormal(1.0, 3.0)
    h = fit_precisions(tensor(Phi), tensor(z), alpha, beta)
    assert np.exp(-0.5 * h[1]) == pytest.approx(0.1, rel=0.15)

    def loss(h):
        regression = LinearRegression(tensor(Phi), tensor(z), *torch.exp(tensor(h)))
        return float(
            regression.loss() - alpha.log_density(tensor(h[0])) - beta.log_density(tensor(h[1]))
        )

    best = loss(h)
    assert all(loss(h + move) > best for move in 0.2 * np.vstack([np.eye(2), -np.eye(2)]))


def test_feature_correlations_separate_tasks():
    Y = np.random.default_rng(0).standard_normal((3, 20, 4))
    Y[1] = Y[0]
    same, other = feature_correlations(tensor(Y))
    assert float(same) == pytest.approx(1.0)
    assert 0 <= float(other) < 0.5


def test_task_batches_hold_trials_of_their_tasks():
    owner = np.repeat(np.arange(5), [1, 4, 2, 9, 3])
    batches = task_batches(owner, 2, 4, np.random.default_rng(0))
    seen = []
    for _ in range(2):
        chosen, rows, real = next(batches)
        seen.extend(chosen)
        for task, own, counts in zip(chosen, rows.numpy(), real.numpy().astype(bool), strict=True):
            assert (owner[own[counts]] == task).all()
            assert counts.sum() == min((owner == task).sum(), 4) == len(set(own[counts]))
    assert len(set(seen)) == 4
    whole = next(task_batches(owner, 5, 100, np.random.default_rng(0)))
    assert whole[2].sum() == len(owner)
