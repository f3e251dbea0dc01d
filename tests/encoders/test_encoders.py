"""Encoders: formulas of the embeddings, invariances, unusual data, state."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from sktransfer import profile
from sktransfer.encoders import DistributionEncoder, ManualEncoder, PairEncoder, TaskIndex
from sktransfer.encoders._distribution import conditional_embedding


def classes(n=60, p=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) ** 3
    return X, rng.permutation(np.arange(n) % k)


def regression(n=60, p=4, seed=0):
    X, _ = classes(n, p, seed=seed)
    return X, X[:, 0] ** 2 + 0.1 * X[:, 1]


def profiles(make=classes, **how):
    return [profile(*make(seed=seed, n=50 + 10 * seed, **how), keep="sample") for seed in range(4)]


ENCODERS = [
    ManualEncoder(),
    PairEncoder(rows="sketch"),
    PairEncoder(rows="sample"),
    DistributionEncoder(),
    DistributionEncoder(parts=("marginal", "conditional", "joint", "joint-mean")),
]


# -- mathematics -----------------------------------------------------------------------------------


def test_conditional_embedding_equals_textbook_form():
    rng = np.random.default_rng(0)
    phi_x, phi_y = rng.standard_normal((40, 7)), rng.standard_normal((40, 3))
    for ridge in (1e-2, 1.0, 30.0):
        direct = phi_y.T @ np.linalg.inv(phi_x @ phi_x.T + ridge * np.eye(40)) @ phi_x
        fast = conditional_embedding(torch.tensor(phi_x), torch.tensor(phi_y), torch.tensor(ridge))
        np.testing.assert_allclose(fast.numpy(), direct, atol=1e-8, rtol=0)


def test_distribution_parts_match_their_formulas():
    data = profiles(regression)
    encoder = DistributionEncoder(parts=("marginal", "joint", "joint-mean")).fit(data)
    X, Y = encoder.read(data[0])
    with torch.no_grad():
        phi_x, phi_y = (
            encoder.networks_[name](torch.tensor(part)).numpy()
            for name, part in zip("xy", (X, Y), strict=True)
        )
        phi_xy = encoder.networks_["xy"](torch.tensor(np.hstack([X, Y]))).numpy()
    expected = [phi_x.mean(axis=0), (phi_x.T @ phi_y / len(X)).ravel(), phi_xy.mean(axis=0)]
    np.testing.assert_allclose(encoder.transform(data[:1])[0], np.concatenate(expected), atol=1e-12)


def test_distribution_embeds_each_class_and_class_ratios():
    data = profiles()
    encoder = DistributionEncoder().fit(data)
    vector = encoder.transform(data[:1])[0]
    X, Y = encoder.read(data[0])
    assert len(vector) == 10 * 3 + 3
    np.testing.assert_allclose(vector[-3:], Y.mean(axis=0))
    with torch.no_grad():
        by_class = encoder.networks_["x"](torch.tensor(X)).numpy().T @ Y / len(X)
    np.testing.assert_allclose(vector[:-3], by_class.ravel(), atol=1e-12)


@pytest.mark.parametrize("encoder", ENCODERS[1:])
@pytest.mark.parametrize("make", [classes, regression])
def test_gradients_equal_finite_differences(encoder, make):
    data = profiles(make)
    encoder = clone(encoder).fit(data)
    inputs = [encoder.read(each) for each in data]
    direction = torch.tensor(
        np.random.default_rng(0).standard_normal(encoder.transform(data).shape)
    )

    def value():
        return (encoder.embed(inputs) * direction).sum() + encoder.penalty()

    found = torch.autograd.grad(value(), encoder.parameters())
    rng = np.random.default_rng(1)
    for weight, gradient in zip(encoder.parameters(), found, strict=True):
        place = tuple(rng.integers(size) for size in weight.shape)
        with torch.no_grad():
            step, ends = 1e-6, []
            for sign in (1, -2):
                weight[place] += sign * step
                ends.append(float(value()))
            weight[place] += step
        assert float(gradient[place]) == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-5
        )


# -- invariances --------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ENCODERS)
def test_vectors_ignore_order_of_rows(encoder):
    data = profiles()
    encoder = clone(encoder).fit(data)
    X, y = classes(n=60, seed=1)
    rows = np.random.default_rng(3).permutation(len(X))
    same, moved = profile(X, y, keep="sample"), profile(X[rows], y[rows], keep="sample")
    np.testing.assert_allclose(*encoder.transform([same, moved]), atol=1e-3)


@pytest.mark.parametrize("rows", ["sketch", "sample"])
def test_pair_encoder_ignores_order_of_columns_labels_and_units(rows):
    data = profiles()
    encoder = PairEncoder(rows=rows).fit(data)
    X, y = classes(n=60, seed=1)
    columns = np.random.default_rng(3).permutation(X.shape[1])
    moved = [
        (X[:, columns], y),
        (X, np.array([1, 2, 0])[y]),
        (X * [1e-3, 1, 10, 1e5] + [0, 5, -3, 10], y),
    ]
    vectors = encoder.transform([profile(*each, keep="sample") for each in [(X, y), *moved]])
    np.testing.assert_allclose(vectors[1:], vectors[[0, 0, 0]], atol=1e-3)


def test_pair_encoder_depends_on_sizes_and_noise():
    encoder = PairEncoder(rows="sketch").fit([profile(*classes(40 * p, p, p)) for p in (2, 3, 7)])
    X, y = classes(n=60, seed=1)
    y = (X[:, 0] > 0).astype(int)
    others = [
        (np.vstack([X] * 3), np.tile(y, 3)),
        (np.hstack([X] * 3), y),
        (X, (X[:, 0] > 0) + (X[:, 0] > 1).astype(int)),
        (X, np.random.default_rng(0).permutation(y)),
    ]
    same, *vectors = encoder.transform([profile(*each) for each in [(X, y), *others]])
    assert all(np.abs(vector - same).max() > 1e-2 for vector in vectors)


def test_pair_encoder_accepts_any_number_of_columns_and_classes():
    shapes = [(60, 2, 2), (50, 30, 5), (40, 1, 2), (80, 150, 12)]
    data = [profile(*classes(n, p, k, seed=p), keep="sample") for n, p, k in shapes]
    data += [profile(*regression(), keep="sample"), profile(regression()[0], keep="sample")]
    for rows in ("sketch", "sample"):
        assert np.isfinite(PairEncoder(rows=rows).fit(data).transform(data)).all()


# -- unusual data ---------------------------------------------------------------------------------

X0, Y0 = classes(60)
UNUSUAL = {
    "no profile": None,
    "text": profile(["some words"] * 30, [0, 1] * 15, keep="sample"),
    "image": profile(X0.reshape(60, 2, 2), Y0, keep="sample"),
    "kernel": profile(np.exp(-np.abs(X0 @ X0.T)) + 3 * np.eye(60), Y0, keep="sample"),
    "single class": profile(X0, np.zeros(60, dtype=int), keep="sample"),
    "constant columns": profile(np.ones((60, 4)), Y0, keep="sample"),
    "two features": profile(X0[:, :2], Y0, keep="sample"),
    "missing": profile(np.where(X0 > 1, np.nan, X0), Y0, keep="sample"),
    "infinite": profile(np.where(X0 > 1, np.inf, X0), Y0, keep="sample"),
    "few rows": profile(X0[:3], Y0[:3], keep="sample"),
    "two outputs": profile(X0, X0[:, :2], keep="sample"),
}


@pytest.mark.parametrize(
    "encoder", [ManualEncoder(), PairEncoder(rows="sketch"), PairEncoder(rows="sample")]
)
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_data_have_vector_and_basis(encoder, name):
    encoder = clone(encoder).fit(profiles())
    assert np.isfinite(encoder.transform([UNUSUAL[name]])).all()
    assert encoder.basis(UNUSUAL[name])
    single = clone(encoder).fit([UNUSUAL[name]])
    assert np.isfinite(single.transform([UNUSUAL[name]])).all()


def test_pair_encoder_basis_names_source_of_vector():
    encoder = PairEncoder(rows="sketch").fit(profiles())
    assert encoder.basis(UNUSUAL["two features"]) == "its sketch"
    assert encoder.basis(UNUSUAL["text"]).startswith("sizes and labels only: X is text")
    assert "precomputed kernel" in encoder.basis(UNUSUAL["kernel"])
    assert PairEncoder(rows="sample").fit(profiles()).basis(UNUSUAL["two features"]) == "its rows"


def test_distribution_encoder_excludes_other_input_spaces():
    encoder = DistributionEncoder().fit(profiles())
    known = profile(*classes(60), keep="sample")
    vectors = encoder.transform([known, UNUSUAL["two features"], profile(*classes(60)), None])
    assert np.isfinite(vectors[0]).all()
    assert np.isnan(vectors[1:]).all()
    assert "columns or classes" in encoder.basis(UNUSUAL["two features"])
    assert "no sample" in encoder.basis(None)


TOPICS = {"pets": ["cat", "dog", "bird", "fish"], "tools": ["saw", "nail", "hammer", "drill"]}


def texts(topic, seed, n=40):
    rng = np.random.default_rng(seed)
    words = [" ".join(rng.choice(TOPICS[topic], 6)) for _ in range(n)]
    return profile(words, np.arange(n) % 2, keep="sample")


def images(dark_half, size, seed, n=40):
    """Images whose left or upper half is dark; `size` is that of the whole image."""
    pixels = np.random.default_rng(seed).random((n, *size))
    half = np.s_[:, : size[0] // 2] if dark_half == "upper" else np.s_[:, :, : size[1] // 2]
    pixels[half] *= 0.1
    return profile(pixels, np.arange(n) % 2, keep="sample")


@pytest.mark.parametrize(
    "data",
    [
        [texts("pets", 0), texts("pets", 1), texts("tools", 2)],
        # They share an input space whatever their size and channels.
        [images("left", (16, 16), 0), images("left", (24, 20, 3), 1), images("upper", (16, 16), 2)],
    ],
    ids=["text", "images"],
)
def test_distribution_encoder_compares_texts_and_images(data):
    encoder = DistributionEncoder(standardize=False).fit(data)
    psi = encoder.transform(data)
    assert [encoder.basis(each) for each in data] == ["its rows"] * 3
    same, other = np.linalg.norm(psi[0] - psi[1:], axis=1)
    assert same < 0.5 * other


def test_sample_of_texts_and_images_holds_neither():
    text = profile(["a secret word", None, "another"], keep="sample")
    assert text.sample["X"].shape == (3, 128) and not text.sample["X"][1].any()
    assert "secret" not in str(text.to_dict())
    pixels = np.random.default_rng(0).integers(0, 255, (5, 3, 32, 32))  # channels first
    found = profile(pixels, keep="sample").sample["X"]
    blocks = pixels.mean(axis=1).reshape(5, 8, 4, 8, 4).mean(axis=(2, 4))
    np.testing.assert_allclose(found, blocks.reshape(5, 64))
    assert profile([{"a": 1}, {"b": 2}], keep="sample").sample is None


def test_pair_encoder_handles_million_rows_and_ten_thousand_columns():
    rng = np.random.default_rng(0)
    many = profile(rng.standard_normal((1_000_000, 2)).astype(np.float32), np.arange(1_000_000) % 2)
    wide = profile(rng.standard_normal((50, 10_000)), np.arange(50) % 2, keep="sample")
    vectors = PairEncoder().fit([many, wide]).transform([many, wide])
    assert np.isfinite(vectors).all()
    assert wide.sample["X"].shape == (50, 200)


def test_pair_encoder_uses_rows_only_if_all_past_tasks_kept_them():
    kept, not_kept = profile(*classes(), keep="sample"), profile(*classes(seed=1))
    assert PairEncoder().fit([kept]).draws_rows
    assert not PairEncoder().fit([kept, not_kept]).draws_rows
    assert np.isfinite(PairEncoder().fit([kept]).transform([not_kept])).all()


def test_embed_draws_new_batches_of_rows():
    data = profiles()
    for encoder in (DistributionEncoder(batch_size=20), PairEncoder(batch_size=20)):
        encoder.fit(data)
        inputs = [encoder.read(each) for each in data]
        rng = np.random.default_rng(0)
        with torch.no_grad():
            one, two = encoder.embed(inputs, rng), encoder.embed(inputs, rng)
        assert not torch.allclose(one, two)


@pytest.mark.parametrize("bad", [(), ("marginal", "median"), "joint"])
def test_distribution_encoder_rejects_unknown_parts(bad):
    with pytest.raises(ValueError, match="conditional"):
        DistributionEncoder(parts=bad).fit([])


def test_pair_encoder_rejects_unknown_rows():
    with pytest.raises(ValueError, match="sketch"):
        PairEncoder(rows="all").fit([])


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ENCODERS)
def test_state_round_trip_restores_vectors(encoder):
    data = profiles()
    fitted = clone(encoder).fit(data)
    with torch.no_grad():
        for weight in fitted.parameters():
            weight += 0.1
    back = clone(encoder).set_state(fitted.get_state())
    np.testing.assert_array_equal(back.transform(data), fitted.transform(data))


def test_start_from_rejects_other_shapes():
    small, large = PairEncoder(size=4).fit(profiles()), PairEncoder(size=8).fit(profiles())
    before = large.transform(profiles())
    assert not large.start_from(small.get_state())
    np.testing.assert_array_equal(large.transform(profiles()), before)


def test_task_index_has_vectors_for_past_tasks_only():
    encoder = TaskIndex(size=3).fit([None, None])
    vectors = encoder.transform([0, 1, None])
    assert np.isfinite(vectors[:2]).all() and np.isnan(vectors[2]).all()
    assert not np.allclose(vectors[0], vectors[1])
