"""CommonSurface: positive definite kernels, formulas of the paper, unusual input."""

import numpy as np
import pytest
import torch
from scipy.stats import binom, loguniform
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferOptimizer, TransferSearchCV
from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates import CommonSurface, EncodedTask
from sktransfer.surrogates._core.neighbor_kernel import distance_bound, neighbor_covariance
from tests.surrogates.comparisons import assert_same_prediction
from tests.surrogates.edge_cases import (
    PASTS,
    POINTS,
    assert_handles_past,
    assert_handles_unknown_columns,
    assert_predicts,
    fit_quietly,
    many_tasks,
)
from tests.surrogates.synthetic_tasks import NUMBERS, SPACE, data, past_tasks, score, search, target

KERNELS = ["mkl", "sqe"]


def quick(**parameters):
    return CommonSurface(**{"steps": 10, **parameters})


def fitted(tasks, **parameters):
    return fit_quietly(quick(**parameters), tasks)


# -- the kernel ------------------------------------------------------------------------------------


def random_case(rng):
    """Trials of some tasks, many at corners or repeated, which tasks are near, and a model."""
    d, n = int(rng.integers(1, 13)), int(rng.integers(2, 40))
    categorical = rng.random(d) < 0.3
    theta = rng.random((n, d))
    theta = np.where(rng.random((n, d)) < rng.random(), theta.round(), theta)
    theta = np.where(
        rng.random((n, d)) < 0.1, theta * 3 - 1, theta
    )  # outside of the target's bounds
    theta = np.where(categorical, rng.integers(-1, 4, (n, d)), theta)
    theta[rng.random(n) < 0.1] = theta[0]
    owner = np.sort(rng.integers(0, rng.integers(1, 8), n))
    near = rng.random(8)[owner] < rng.random()
    return theta, categorical, owner, near


def test_covariance_is_positive_definite():
    rng, model = np.random.default_rng(0), quick()
    for _ in range(1000):
        theta, categorical, owner, near = random_case(rng)
        weight = rng.choice([0.0, 0.3, 0.7])
        model.weights = (weight, 1 - weight)
        model.past_ = type("P", (), {"categorical": categorical})
        model.trained_ = {"theta": torch.from_numpy(rng.normal(0, 1.5, theta.shape[1]))}
        model.trained_["signal"] = torch.zeros((), dtype=torch.float64)
        codes = torch.from_numpy(theta)
        tasks = [torch.from_numpy(m) for m in (owner[:, None] == owner, near[:, None] & near)]
        with torch.no_grad():
            K = model._gram(codes, codes, tasks).numpy()
        assert np.linalg.eigvalsh(K).min() > -1e-12 * len(K)


def test_paper_bound_is_not_positive_definite():
    """In ten dimensions, the largest distance is too small for B at some corners.

    All corners of a cube have one weight, so the distances of two cubes' corners are averaged: k of
    their d signs differ with the binomial probability.
    """
    d, edges = 10, np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])
    k, (one, other) = np.arange(d + 1), np.meshgrid(edges, edges)
    squares = k * (one + other)[..., None] ** 2 / 4 + (d - k) * (one - other)[..., None] ** 2 / 4
    apart = np.sqrt(squares) @ binom.pmf(k, d, 0.5)
    assert np.linalg.eigvalsh(1 - apart / np.sqrt(d)).min() < -0.001
    assert np.linalg.eigvalsh(1 - apart / distance_bound(d)).min() > 0


@pytest.mark.parametrize("d", [1, 5, 12])
def test_distance_bound_equals_average_over_random_hyperplanes(d):
    rng = np.random.default_rng(0)
    normals = rng.standard_normal((200_000, d))
    extents = np.abs(normals).sum(axis=1)
    offsets = rng.uniform(-0.5, 0.5, len(normals)) * extents
    theta = rng.random((2, d))
    one, other = np.sign((theta - 0.5) @ normals.T - offsets)
    expected = 1 - np.linalg.norm(theta[0] - theta[1]) / (d / 2)
    assert np.average(one * other, weights=extents) == pytest.approx(expected, abs=0.01)
    assert distance_bound(d) >= d / 2


def test_neighbor_covariance_matches_paper():
    theta = torch.from_numpy(np.array([[0.1, 0.2, 1.0], [0.4, 0.6, 1.0], [0.4, 0.6, 0.0]]))
    kernel = neighbor_covariance(theta, theta[:1], np.array([False, False, True])).numpy()[:, 0]
    B = np.sqrt(3)
    np.testing.assert_allclose(kernel, [1, 1 - 0.5 / B, (1 - 0.5 / B) * (1 - 1 / B)])


def test_distant_tasks_drop_out_exactly():
    """The process over all trials of all tasks, with the mask 0 for distant ones, is the same."""
    tasks = past_tasks(6, 8)
    model = fitted(tasks, n_neighbors=3, scale="running", guard=False)
    observed = target(5)
    mean, std = model.posterior(observed).predict(POINTS)

    similarity = model.similarity(observed)
    past, owner = model.past_, np.append(model.past_.owner, [6] * 5)
    near = np.append(similarity[past.owner] > 0, [True] * 5)
    theta = torch.from_numpy(np.vstack([past.theta, observed.theta]))
    shift, scale = score(observed.theta).mean(), score(observed.theta).std()
    z = np.append(past.z, (score(observed.theta) - shift) / scale)
    with torch.no_grad():
        masks = [torch.from_numpy(m) for m in (owner[:, None] == owner, near[:, None] & near)]
        K = model._gram(theta, theta, masks).numpy()
        masks = [torch.from_numpy(m) for m in ((owner == 6)[None], near[None])]
        k = model._gram(torch.from_numpy(POINTS), theta, masks).numpy()
    K += np.exp(model.trained_["noise"].item()) * np.eye(len(K))
    signal = np.exp(model.trained_["signal"].item())
    np.testing.assert_allclose(mean, shift + scale * (k @ np.linalg.solve(K, z)), rtol=1e-3)
    explained = (k * np.linalg.solve(K, k.T).T).sum(axis=1)
    np.testing.assert_allclose(std, scale * np.sqrt(signal - explained), rtol=1e-3)


def test_mkl_uses_nearest_tasks():
    tasks = [
        EncodedTask(POINTS, score(POINTS), NUMBERS, data(i, n), f"n{n}")
        for i, n in enumerate([40, 90, 400, 900])
    ]
    model = fitted(tasks, n_neighbors=2)
    observed = EncodedTask(np.empty((0, 2)), np.empty(0), NUMBERS, data(9, 80))
    np.testing.assert_allclose(model.similarity(observed), [0.7, 0.7, 0, 0])
    assert model.similarity_basis(observed)[1].endswith(
        "rows, columns, classes; 30 of its 30 trials"
    )
    assert model.similarity_basis(observed)[3].endswith("; 0 of its 30 trials")
    by_feature = fitted(tasks, kernel="sqe").similarity(observed)
    assert by_feature.argmax() == 1
    assert by_feature.argmin() == 3
    assert 0 < by_feature.min() < by_feature.max() <= 1


# -- one more trial --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_past_block_is_factorized_once_per_target(kernel):
    model = fitted(past_tasks(5, 10), kernel=kernel)
    model.posterior(target(3))
    surface = model._surface_cache[2]
    model.posterior(target(4))
    assert model._surface_cache[2] is surface
    fresh = fitted(past_tasks(5, 10), kernel=kernel)
    expected = fresh.posterior(target(4)).predict(POINTS)
    assert_same_prediction(model.posterior(target(4)).predict(POINTS), expected)


def test_max_trials_is_shared_between_tasks():
    model = fitted(past_tasks(6, 20), n_neighbors=3, max_trials=30)
    words = model.similarity_basis(target())
    assert (
        sorted(word.split("; ")[1] for word in words)
        == ["0 of its 20 trials"] * 3 + ["10 of its 20 trials"] * 3
    )
    assert_predicts(model, target(3))


def test_proposals_after_the_first_are_redrawn():
    def ask(redraw):
        model = fitted(past_tasks(4, 10), redraw=redraw)
        optimizer = TransferOptimizer(SPACE, surrogate=model, profile=data(77), random_state=0)
        optimizer.surrogate, optimizer.is_fitted = model, True
        [first] = optimizer.ask()
        optimizer.tell(first, 0.5)
        return first, optimizer.ask()[0]

    (first, second), (same, other) = ask(0.0), ask(1.0)
    assert first == same
    assert second["a"] != other["a"]
    assert second["b"] != other["b"]
    assert fitted([]).hints(target()).redraw == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_running_scale_helps_as_well(kernel):
    paper = quick(kernel=kernel, scale="running", guard=False)
    assert search(paper, past_tasks(), 5)[-1] > 0.95


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"kernel": "rbf"}, "kernel='rbf' must be 'mkl' or 'sqe'"),
        ({"scale": "raw"}, "scale='raw' must be"),
        ({"n_neighbors": 0}, "n_neighbors=0 must be at least 1"),
        ({"weights": (0, 0)}, "weights="),
        ({"weights": (-1, 2)}, "weights="),
        ({"redraw": 2}, "redraw=2 must be a probability"),
        ({"max_trials": 0}, "max_trials=0"),
    ],
)
def test_common_surface_rejects_invalid_parameters(bad, words):
    with pytest.raises(ValueError, match=words):
        CommonSurface(**bad).fit(past_tasks(1))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("past", PASTS)
def test_common_surface_handles_any_past_and_target(past, kernel):
    assert_handles_past(quick(kernel=kernel), past())


def test_common_surface_with_past_does_not_warn(tmp_path, recwarn):
    X, y = load_iris(return_X_y=True)
    space = {"C": loguniform(1e-2, 1e2)}
    trials = [({"C": 10.0**power}, 0.9 + power / 100) for power in (-1, 0, 1)]
    Archive(tmp_path).append(Task.from_trials(space, trials, data(), estimator=SVC()))
    search = TransferSearchCV(SVC(), space, n_iter=2, cv=2, archive=tmp_path, surrogate=quick())
    search.fit(X, y)
    assert search.cv_results_["origin"][0] == "model"
    assert search.source_tasks_[0]["similarity"] == pytest.approx(0.7)
    assert not [each for each in recwarn if "no past" in str(each.message)]


def test_common_surface_without_past_warns():
    with pytest.warns(
        SurrogateWarning, match="CommonSurface has no past trials .* a plain Gaussian process"
    ):
        CommonSurface().fit([])


@pytest.mark.parametrize("kernel", KERNELS)
def test_common_surface_handles_unknown_columns(kernel):
    assert_handles_unknown_columns(quick(kernel=kernel))


@pytest.mark.parametrize("kernel", KERNELS)
def test_common_surface_fits_many_tasks(kernel):
    model = fitted(many_tasks(), kernel=kernel)
    assert_predicts(model, target(3))
    assert model.posterior(target()).predict(np.array([[0.75, 0.3], [0.1, 0.9]]))[0].argmax() == 0


def test_common_surface_continues_training_from_earlier_model():
    old = fitted(past_tasks(4), steps=40)
    stay = fitted(past_tasks(4), steps=0)
    warm = CommonSurface(steps=0).fit(past_tasks(5), warm_from=old)
    same = [torch.equal(warm.trained_[name], old.trained_[name]) for name in old.trained_]
    assert all(same)
    assert not torch.equal(stay.trained_["theta"], old.trained_["theta"])
