"""Pretrained predictions in the coordinates of a space, and what searches do without them."""

import os
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import loguniform, randint
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Space, TransferOptimizer, profile
from sktransfer.exceptions import TransferWarning
from sktransfer.optimizer._score_prior import PretrainedScores, find_score_prior
from sktransfer.pretrained import PretrainedModel, Units, load_model
from sktransfer.pretrained._model import write_model
from tests.pretrained.models import ENCODER, make_arrays, make_data

SPACE = {
    "C": loguniform(1e-3, 1e3),
    "gamma": ["scale", 0.01, 0.1],
    "kernel": ["poly", "rbf", "sigmoid"],
    "degree": randint(2, 5),
}
METRIC = ("accuracy", "score")


@pytest.fixture(scope="module")
def arrays():
    return make_arrays()


@pytest.fixture(scope="module")
def model(arrays):
    return PretrainedModel(arrays)


@pytest.fixture(scope="module")
def data():
    return profile(*make_data(3))


def test_codes_are_those_of_decoded_configurations(model, data):
    space = Space.parse(SPACE, SVC())
    prior = PretrainedScores(space, model, "SVC", False, metric=0, has_level=True)
    assert dict(zip(space.names, prior.known, strict=True)) == {
        "C": True,
        "gamma": True,
        "kernel": True,
        "degree": False,
    }
    drawn = space.sample(50, 0)
    units = Units.from_profile(data, False)
    expected = np.column_stack([ENCODER.encode(drawn, units), np.zeros(50)])
    description = prior.describe(data)
    found = prior._encode(space.encode(drawn), description[-5:])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_parameters_that_do_not_matter_change_nothing(data):
    space = {"C": loguniform(1e-2, 1e3), "coef0": loguniform(1e-4, 1e1), "degree": [2, 3, 4]}
    theta = np.array([[0.5, 0.1, 0.0], [0.5, 0.9, 1.0]])
    found = []
    for kernel in ("rbf", "poly"):
        prior = find_score_prior(Space.parse(space, SVC(kernel=kernel)), data, METRIC)
        description = prior.describe(data)
        mean, _ = prior.predict(theta, description[None])
        found.append((np.ptp(mean), prior.correlation(theta, theta, description)[0, 1]))
    assert found[0][0] < 1e-6 and found[0][1] == 1.0
    assert found[1][0] > 0.01 and found[1][1] < 0.9


def test_fixed_values_are_those_of_the_estimator(model, data):
    theta = np.array([[0.5]])
    means = []
    for estimator in (SVC(kernel="rbf"), SVC(kernel="poly"), make_pipeline(SVC(kernel="poly"))):
        name = "svc__C" if hasattr(estimator, "steps") else "C"
        space = Space.parse({name: loguniform(1e-3, 1e3)}, estimator)
        prior = PretrainedScores(space, model, "SVC", False, metric=0, has_level=True)
        means.append(prior.predict(theta, prior.describe(data)[None])[0][0, 0])
    assert means[1] == means[2] != means[0]


def test_unknown_column_does_not_change_predictions(model, data):
    space = Space.parse(SPACE, SVC())
    prior = PretrainedScores(space, model, "SVC", False, metric=0, has_level=True)
    theta = np.tile(space.encode(space.sample(1, 0)), (3, 1))
    theta[:, space.names.index("degree")] = [0.1, 0.5, 0.9]
    mean, std = prior.predict(theta, prior.describe(data)[None])
    # Rows of a product of matrices in single precision may differ in the last digit.
    assert max(np.ptp(mean), np.ptp(std)) < 1e-6


def test_residual_is_that_of_the_learned_kernel(arrays, data):
    lengths = np.linspace(0.3, 0.9, ENCODER.width)
    learned = {"residual.SVC.lengths": lengths, "residual.SVC.variances": np.array([1.5, 0.01])}
    space = Space.parse(SPACE, SVC())
    prior = PretrainedScores(space, PretrainedModel(arrays | learned), "SVC", False, 0, True)
    description, theta = prior.describe(data), space.encode(space.sample(6, 0))
    codes = prior._encode(theta, description[-5:])[:, :-1] / lengths
    d = np.sqrt(5 * ((codes[:, None] - codes[None, :4]) ** 2).sum(axis=2))
    expected = (1 + d + d * d / 3) * np.exp(-d)
    found = prior.correlation(theta, theta[:4], description)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (prior.residual_variance, prior.residual_noise) == (1.5, 0.01)


def test_what_is_shared_decreases_with_the_distance_of_the_embeddings(arrays, data):
    model = PretrainedModel(arrays | {"residual.shared": np.array([0.6, 2.0, 0.03])})
    prior = PretrainedScores(Space.parse(SPACE, SVC()), model, "SVC", False, 0, True)
    own = prior.describe(data)
    near, unknown = own.copy(), np.full_like(own, np.nan)
    near[0] += 2.0  # the units behind psi do not count
    near[-1] += 9.0
    found = prior.shared(own[None], np.stack([own, near, unknown]))
    np.testing.assert_allclose(found, [[0.63, 0.6 * np.exp(-1) + 0.03, 0.03]])


def test_model_without_residuals_has_the_usual_ones(model, data):
    space = Space.parse(SPACE, SVC())
    prior = PretrainedScores(space, model, "SVC", False, metric=0, has_level=True)
    theta = space.encode(space.sample(2, 0))
    assert prior.correlation(theta, theta, prior.describe(data)) is None
    assert prior.shared(prior.describe(data)[None], prior.describe(data)[None]) is None
    assert prior.residual_variance == PretrainedScores.residual_variance


def test_transformed_target_has_no_units(data):
    X, _ = make_data(0)
    target = profile(X, 1000 * X[:, 0])
    space = {"regressor__C": loguniform(1e-3, 1e3)}
    plain = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    prior = find_score_prior(Space.parse(space, plain), target, ("r2",))
    unit = find_score_prior(
        Space.parse({"C": loguniform(1e-3, 1e3)}, SVR()),
        profile(X, X[:, 0] / X[:, 0].std()),
        ("r2",),
    )
    fixed = [each._read_tables(each.describe(d)[-5:])[2][0] for each, d in ((prior, target),)]
    other = unit._read_tables(unit.describe(profile(X, X[:, 0] / X[:, 0].std()))[-5:])[2][0]
    np.testing.assert_allclose(fixed[0], other, atol=0.01)


@pytest.mark.parametrize(
    ("space", "estimator", "problem"),
    [
        ({"var_smoothing": loguniform(1e-9, 1)}, GaussianNB(), "no head"),
        ({"degree": [2, 3]}, SVC(), "unknown parameters only"),
        ({"x": loguniform(1, 2)}, None, "no estimator"),
        (
            {"clf": [SVC(), RandomForestClassifier()]},
            make_pipeline(SVC()).set_params(steps=[("clf", SVC())]),
            "two estimators",
        ),
    ],
)
def test_there_is_no_prior_where_nothing_is_known(
    space, estimator, problem, model, data, monkeypatch
):
    monkeypatch.setattr("sktransfer.optimizer._score_prior.load_model", lambda *_: model)
    prior = find_score_prior(Space.parse(space, estimator), data, METRIC)
    assert prior is None or not prior.has_scores, problem


def test_metrics_choose_the_output_of_the_head(data):
    space = Space.parse({"C": loguniform(1e-3, 1e3)}, SVC())
    numbers = {
        name: find_score_prior(space, data, (name,))._metric
        for name in ("balanced_accuracy", "accuracy", "roc_auc", "neg_log_loss", "f1", "own")
    }
    assert list(numbers.values()) == [0, 1, 2, 3, 0, 1]
    description = find_score_prior(space, data, ("accuracy",)).describe(data)
    assert find_score_prior(space, data, ("own",)).level(description) is None
    shift, log_scale = find_score_prior(space, data, ("accuracy",)).level(description)
    assert 0.3 < shift < 1.1 and -6 < log_scale < 0


def test_damaged_array_warns_and_search_runs(arrays, tmp_path, data):
    path = tmp_path / "classification.npz"
    write_model(path, arrays)
    raw = bytearray(path.read_bytes())
    place = raw.find(b"head.SVC.1.w.npy") + 60
    raw[place : place + 40] = bytes(40)
    path.write_bytes(bytes(raw))
    optimizer = TransferOptimizer(
        Space.parse({"C": loguniform(1e-3, 1e3)}, SVC()), profile=data, random_state=0
    )
    optimizer.model_folders = (tmp_path,)
    with pytest.warns(TransferWarning, match="pretrained model of SVC cannot be used"):
        [params] = optimizer.ask()
    assert optimizer.embedding is None and params["C"] > 0


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("residual.SVC.lengths", np.ones(3)),
        ("residual.SVC.variances", np.array([np.nan, 0.1])),
        ("residual.shared", np.full(3, np.nan)),
        ("residual.shared", np.ones(2)),
    ],
)
def test_damaged_arrays_of_what_predictions_miss_warn(arrays, tmp_path, data, name, array):
    learned = {
        "residual.SVC.lengths": np.ones(ENCODER.width),
        "residual.SVC.variances": np.array([1.5, 0.01]),
        "residual.shared": np.array([0.6, 2.0, 0.03]),
    }
    path = tmp_path / "classification.npz"
    space = Space.parse({"C": loguniform(1e-3, 1e3)}, SVC())
    write_model(path, arrays | learned)
    assert find_score_prior(space, data, ["accuracy"], [tmp_path]).has_residual
    write_model(path, arrays | learned | {name: array})
    os.utime(path, (0, 0))  # models are read again if their file has another time
    with pytest.warns(TransferWarning, match="pretrained model of SVC cannot be used") as caught:
        assert find_score_prior(space, data, ["accuracy"], [tmp_path]) is None
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.arange(40.0)[:, None], np.arange(40) % 2),
        (np.random.default_rng(0).normal(size=(10, 3)), np.arange(10) % 2),
        (np.where(np.random.default_rng(0).random((60, 4)) < 0.3, np.nan, 1.0), np.arange(60) % 3),
        (["some words", "other words"] * 30, ["a", "b"] * 30),
        (sparse.random(60, 30, density=0.2, format="csr", random_state=0), np.arange(60) % 2),
        (np.random.default_rng(0).normal(size=(50, 3)), np.zeros(50, dtype=int)),
        (1e9 * np.random.default_rng(0).normal(size=(60, 200)) ** 9, np.arange(60) % 20),
        (np.random.default_rng(0).normal(size=(10**6, 3)), np.arange(10**6) % 2),
    ],
    ids=[
        "one column",
        "ten rows",
        "missing cells",
        "text",
        "sparse",
        "one class",
        "large numbers",
        "a million rows",
    ],
)
def test_odd_data_get_a_proposal(X, y):
    space = Space.parse({"max_depth": randint(1, 20)}, DecisionTreeClassifier())
    optimizer = TransferOptimizer(space, profile=profile(X, y), metric=METRIC, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for score in (0.5, 0.6, 0.55):
            [params] = optimizer.ask()
            optimizer.tell(params, score)
    assert 1 <= params["max_depth"] < 20


@pytest.mark.parametrize(("metric", "is_known"), [("accuracy", True), ("own score", False)])
def test_first_prediction_needs_the_unit_of_the_metric(data, metric, is_known):
    space = Space.parse({"C": loguniform(1e-3, 1e3)}, SVC())
    optimizer = TransferOptimizer(space, profile=data, metric=metric, random_state=0)
    first, *_ = optimizer.propose(3)
    assert np.isfinite(first.mean) == np.isfinite(first.std) == is_known
    optimizer.tell(first.params, 17.0)
    assert np.isfinite(optimizer.propose()[0].mean)


def test_data_unlike_any_other_have_no_embedding(data, monkeypatch):
    space = Space.parse({"C": loguniform(1e-3, 1e3)}, SVC())
    optimizer = TransferOptimizer(space, profile=data, random_state=0)
    assert optimizer.embedding is not None
    monkeypatch.setattr(PretrainedModel, "strangeness", lambda self, psi: 1.1)
    strange = TransferOptimizer(space, profile=data, random_state=0)
    assert strange.embedding is None
    assert strange.propose()[0].origin == "space-filling"


def test_regression_and_classification_have_their_own_model():
    X, _ = make_data(0)
    prior = find_score_prior(
        Space.parse({"alpha": loguniform(1e-3, 1e3)}, Ridge()), profile(X, X[:, 1]), ("r2",)
    )
    assert prior.embedding(prior.describe(profile(X, X[:, 1]))[None]).shape[1] == len(
        load_model("regression")._center
    )


def test_offsets_follow_the_scale_of_the_data():
    X, y = 5 * np.random.default_rng(0).normal(size=(2, 80, 3))
    names = ("C", "gamma", "tol")
    space = {f"svr__{name}": loguniform(1e-3, 1e3) for name in names}
    # A target that is 100 times as large needs such a C, and columns that are 10 times as large a
    # gamma that is 100 times smaller, unless they are scaled.
    for steps, expected in (([StandardScaler()], [2, 0, 0]), ([], [2, -2, 0])):
        parsed = Space.parse(space, make_pipeline(*steps, SVR()))
        prior = find_score_prior(parsed, profile(X, y[:, 0]), ("r2",))
        data = profile(X, y[:, 0]), profile(10 * X, 100 * y[:, 0])
        offsets = prior.offsets(np.stack([prior.describe(each) for each in data]))
        np.testing.assert_allclose((offsets[0] - offsets[1]) * 6, expected, atol=0.02)
