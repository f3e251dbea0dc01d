"""The pretrained model: training, numpy against torch, files, data unlike any other."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_moons

from sktransfer import profile
from sktransfer.exceptions import TransferWarning
from sktransfer.pretrained import load_model
from sktransfer.pretrained._model import KINDS, PretrainedModel, read_model, write_model
from sktransfer.pretrained._networks import run_layers
from sktransfer.pretrained._training import TrainingOptions, _ranking_loss, train_model
from sktransfer.pretrained._training import run_layers as run_torch
from tests.pretrained.models import ENCODER, FAST, make_arrays, make_data, make_surface


@pytest.fixture(scope="module")
def arrays():
    return make_arrays()


@pytest.fixture(scope="module")
def model(arrays):
    return PretrainedModel(arrays)


@pytest.mark.slow
def test_head_learns_where_scores_are_best(model):
    codes = np.zeros((1, 41, ENCODER.width + 1))
    codes[0, :, 0] = np.linspace(-1, 1, 41)
    psi = model.embed(profile(*make_data(100)))
    mean, std = model.predict("SVC", codes, psi[None], metric=0)
    assert abs(codes[0, mean[0].argmax(), 0] - 0.5) < 0.25
    assert (std > 0).all()


def test_numpy_networks_match_torch():
    rng = np.random.default_rng(0)
    weights = {
        f"net.{i}.{part}": rng.normal(size=shape)
        for i, sizes in enumerate([(3, 5), (5, 2)])
        for part, shape in (("w", sizes), ("b", sizes[1:]))
    }
    x = rng.normal(size=(4, 3))
    expected = run_torch({k: torch.tensor(v) for k, v in weights.items()}, "net", torch.tensor(x))
    layers = [(weights[f"net.{i}.w"][None], weights[f"net.{i}.b"][None]) for i in range(2)]
    np.testing.assert_allclose(run_layers(layers, x)[0], expected.numpy(), rtol=1e-12)


def test_prediction_is_mean_and_spread_of_members(arrays):
    codes = np.random.default_rng(0).uniform(-1, 1, size=(2, 5, ENCODER.width + 1))
    whole = PretrainedModel(arrays)
    psi = np.random.default_rng(1).normal(size=(2, 6))
    mean, std = whole.predict("SVC", codes, psi, metric=1)
    members = []
    for number in range(2):
        single = {
            name: value[[number]] if name.endswith((".w", ".b")) else value
            for name, value in arrays.items()
        }
        own = psi.reshape(2, 2, 3)[:, number]
        members.append(PretrainedModel(single).predict("SVC", codes, own, metric=1))
    means, stds = (np.array(part) for part in zip(*members, strict=True))
    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=1e-5, atol=1e-6)
    variance = (stds**2).mean(axis=0) + means.var(axis=0)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-4)


def test_training_is_reproducible_and_seeds_differ():
    features = np.random.default_rng(0).normal(size=(6, 4))
    surface = make_surface([None] * 6)
    quick = TrainingOptions(**{**vars(FAST), "n_epochs": 2})
    one, two = (train_model(features, [surface], quick) for _ in range(2))
    other = train_model(features, [surface], TrainingOptions(**{**vars(quick), "seed": 1}))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert not np.array_equal(one["encoder.0.w"], other["encoder.0.w"])


def test_surfaces_without_weight_teach_nothing():
    features = np.random.default_rng(0).normal(size=(6, 4))
    surface = make_surface([None] * 6, best=0.9)
    other = make_surface([None] * 6, best=-0.9, seed=1)
    silent = replace(other, weights=np.zeros_like(other.weights))
    codes = np.zeros((6, 41, ENCODER.width + 1))
    codes[:, :, 0] = np.linspace(-1, 1, 41)
    weights = train_model(features, [surface, silent], FAST)
    psi = run_torch(
        {k: torch.tensor(v) for k, v in weights.items()},
        "encoder",
        torch.tensor(features, dtype=torch.float32),
    )
    inputs = np.concatenate([codes, np.repeat(psi.numpy()[:, None], 41, axis=1)], axis=2)
    layers = [
        (weights[f"head.SVC.{i}.w"][None], weights[f"head.SVC.{i}.b"][None]) for i in range(3)
    ]
    mean = run_layers(layers, inputs.reshape(6 * 41, -1))[0, :, 0].reshape(6, 41)
    assert (codes[0, mean.argmax(axis=1), 0] > 0.4).all()


def test_file_returns_same_predictions_in_half_precision(arrays, model, tmp_path):
    path = tmp_path / "classification.npz"
    write_model(path, arrays)
    read = read_model(path)
    data = profile(*make_data(5))
    np.testing.assert_allclose(read.embed(data), model.embed(data), atol=0.02)
    assert read.owners == ("SVC",) and read.provenance == {"made": "x"}
    assert read.encoder_of("SVC").parameters == ENCODER.parameters


def test_unusual_data_are_recognized():
    model = load_model("classification")
    for data in (make_data(50), load_iris(return_X_y=True), make_moons(200, noise=0.2)):
        psi = model.embed(profile(*data))
        assert model.strangeness(psi) < 1 < model.strangeness(psi + 100)


def test_profiles_without_curves_are_not_embedded(model):
    X, y = make_data(0)
    assert model.embed(None) is None
    assert model.embed(profile(["some text", "other text"] * 20, [0, 1] * 20)) is None
    assert model.embed(profile(X, X[:, 0])) is None  # regression
    assert model.embed(profile(X, np.zeros(len(y), dtype=int))) is None  # one class
    assert model.embed(profile(X[:8], y[:8])) is None


def test_other_format_is_refused(arrays):
    with pytest.raises(ValueError, match="format 99"):
        PretrainedModel({**arrays, "format": np.array(99)})


@pytest.mark.parametrize("content", [None, b"", b"no zip file", "cut"])
def test_missing_or_damaged_file_warns(arrays, tmp_path, monkeypatch, content):
    monkeypatch.setattr("sktransfer.pretrained._model.FOLDER", tmp_path)
    path = tmp_path / "classification.npz"
    if content == "cut":
        write_model(path, arrays)
        path.write_bytes(path.read_bytes()[:500])
    elif content is not None:
        path.write_bytes(content)
    with pytest.warns(TransferWarning, match="continues without it"):
        assert load_model("classification") is None


def test_models_of_other_folders_come_first(arrays, tmp_path):
    write_model(tmp_path / "classification.npz", arrays)
    assert load_model("classification", [tmp_path]).provenance == {"made": "x"}
    assert load_model("unsupervised") is None


@pytest.mark.parametrize("kind", KINDS)
def test_shipped_models_can_be_read(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = load_model(kind)
    assert model.kind == kind and len(model.owners) >= 4
    assert {"command", "commit", "data_sets", "seeds"} <= model.provenance.keys()
    json.dumps(model.provenance)
    for owner in model.owners:
        codes = np.zeros((1, 3, model.encoder_of(owner).width + 1))
        mean, std = model.predict(owner, codes, np.zeros((1, len(model._center))), metric=0)
        assert np.isfinite(mean).all() and (std > 0).all()


def test_ranking_loss_alone_teaches_the_order():
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(size=(4, 10, 2)), dtype=torch.float32)
    z[0, :3] = torch.nan  # unknown scores, and data sets without any, teach nothing
    z[1] = torch.nan
    weights = torch.ones(4, 2)
    right, wrong = (_ranking_loss(sign * torch.nan_to_num(z), z, weights) for sign in (1, -1))
    assert right < wrong
    moved = torch.nan_to_num(z).clone()
    moved[0, :3], moved[1] = 9.0, -9.0
    assert torch.isclose(_ranking_loss(moved, z, weights), right)
