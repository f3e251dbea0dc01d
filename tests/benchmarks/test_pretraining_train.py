"""Training of the shipped models: heads that are added to a model."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.pretraining.residuals import fit_residual, fit_shared
from benchmarks.pretraining.surfaces import DataSets, Surface
from benchmarks.pretraining.train import add_heads
from sktransfer.pretrained._configurations import ConfigurationEncoder, Parameter
from sktransfer.pretrained._inputs import name_numbers
from sktransfer.pretrained._model import PretrainedModel
from tests.pretrained.models import FAST, make_arrays, make_profiles

ENCODER = ConfigurationEncoder("Ridge", [Parameter("alpha", low=1e-3, high=1e3, log=True)])


def make_data_sets():
    profiles = make_profiles()
    names = sorted(name_numbers(profiles[0]))
    features = np.array([[name_numbers(each)[name] for name in names] for each in profiles])
    numbers = np.arange(len(profiles))
    return DataSets(numbers, np.array(["synthetic"] * len(numbers)), profiles, names, features)


def make_surface(n_data_sets, best, n=30):
    """Scores that are best where the code of alpha is `best`."""
    codes = np.random.default_rng(0).uniform(-1, 1, size=(n_data_sets, n, ENCODER.width))
    scores = np.repeat(1 - (codes[:, :, :1] - best) ** 2, 4, axis=2)
    rows, noise = np.arange(n_data_sets), np.zeros(n_data_sets)
    return Surface("Ridge", False, ENCODER, rows, codes.astype(np.float32), scores, noise)


@pytest.fixture(scope="module")
def extended():
    """A model before and after a head is added."""
    model, data = PretrainedModel(make_arrays()), make_data_sets()
    surface, is_used = make_surface(len(data.numbers), best=-0.4), np.arange(12) < 9
    arrays = add_heads(model, data, [surface], is_used, replace(FAST, n_epochs=150), command="c")
    return model, PretrainedModel(arrays)


def test_added_head_learns_where_scores_are_best(extended):
    _, model = extended
    codes = np.zeros((1, 41, ENCODER.width + 1))
    codes[0, :, 0] = np.linspace(-1, 1, 41)
    psi = model.embed(make_profiles()[11])
    mean, _ = model.predict("Ridge", codes, psi[None], metric=0)
    assert abs(codes[0, mean[0].argmax(), 0] + 0.4) < 0.25


def test_added_head_leaves_the_others_alone(extended):
    before, after = extended
    assert set(after.owners) == {"SVC", "Ridge"}
    arrays = after.arrays()
    for name, array in before.arrays().items():
        if name != "about":
            np.testing.assert_array_equal(arrays[name], array, err_msg=name)


def test_residual_kernel_is_that_of_the_residuals():
    """Residuals that depend on the first column only, with a lengthscale of 0.4."""
    rng = np.random.default_rng(0)
    codes = rng.uniform(-1, 1, size=(200, 15, 2))
    d = np.sqrt(5) * np.abs(codes[:, :, None, 0] - codes[:, None, :, 0]) / 0.4
    stds = np.full((200, 15), 0.5)
    K = 0.25 * (1 + d + d * d / 3) * np.exp(-d) + 0.02 * np.eye(15)
    residuals = np.linalg.cholesky(K) @ rng.standard_normal((200, 15, 1))
    found = fit_residual([(codes, residuals[:, :, 0], stds, np.ones(200))])
    assert found["lengths"][0] == pytest.approx(0.4, rel=0.25) and found["lengths"][1] > 2
    assert found["variances"][0] == pytest.approx(1.0, rel=0.25)
    assert found["variances"][1] == pytest.approx(0.02, abs=0.02)


def test_shared_residuals_are_found_by_their_distance():
    rng = np.random.default_rng(0)
    squares, rho = rng.exponential(size=3000), rng.standard_normal((3000, 20))
    share = 0.5 * np.exp(-squares / 0.3) + 0.05
    r = share[:, None] * rho + 0.5 * rng.standard_normal(rho.shape)
    pairs = np.stack([np.zeros(3000), squares, (r * rho).sum(axis=1), (rho * rho).sum(axis=1)], 1)
    near, length, far = fit_shared(pairs)
    assert near == pytest.approx(0.5, abs=0.05) and far == pytest.approx(0.05, abs=0.02)
    assert length**2 == pytest.approx(0.3, abs=0.07)


def test_provenance_tells_what_was_added(extended):
    _, model = extended
    assert model.provenance["data_sets_of"] == {"Ridge": 9}
    assert model.provenance["added"]["Ridge"]["command"] == "c"
    assert model.provenance["made"] == "x"
