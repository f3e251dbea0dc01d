"""ABLR: a head for each task on one network."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone

from sktransfer.encoders import ManualEncoder, PairEncoder, TaskIndex
from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates import ABLR, EncodedTask, make_surrogate
from sktransfer.surrogates._core.conditioning import ConditionedPosterior
from sktransfer.surrogates._core.contexts import data_key
from sktransfer.surrogates._core.head_training import HeadPrior
from sktransfer.surrogates._core.linear_regression import LinearRegression
from sktransfer.surrogates._core.past_trials import Level
from sktransfer.utils._torch import tensor
from tests.surrogates.comparisons import assert_same_prediction, assert_same_state
from tests.surrogates.synthetic_tasks import BEST, NUMBERS, data, past_tasks, score, target

POINTS = np.random.default_rng(9).random((30, 2))
QUICK = {"layers": (16, 16), "steps": 40, "epochs": 2}
KINDS = {
    "plain": {},
    "zero head": {"head": "zero"},
    "paper": {"head": "zero", "guard": False},
    "manual": {"encoder": ManualEncoder()},
    "pairs": {"encoder": PairEncoder()},
    "learned": {"context": "learned"},
}


def quick(**params):
    return ABLR(**{**QUICK, **params})


def finite(posterior, points=POINTS):
    mean, std = posterior.predict(points)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.isfinite(posterior.sample(points[:4], 3, np.random.default_rng(0))).all()
    return mean, std


# -- the model -------------------------------------------------------------------------------------


def test_ablr_posterior_is_targets_own_regression():
    """With a known scale, the head is the supplement's regression, in both forms."""
    surrogate = quick().fit(past_tasks(4, profiles=False))
    theta = np.random.default_rng(0).random((30, 2))
    z, alpha, beta, none = score(theta), 3.0, 50.0, np.empty(0)
    known = Level(shift=0.0, shift_std=0.0, log_scale=0.0, log_scale_std=0.0)
    posterior = ConditionedPosterior(
        HeadPrior(surrogate._features_at, none, alpha, beta), theta, z, known
    )
    with torch.no_grad():
        Phi, mean = surrogate._features_at(theta, none)
        phi, mean_at = surrogate._features_at(POINTS, none)
        precisions = (tensor(np.array(alpha)), tensor(np.array(beta)))
        for dual in (True, False):
            head = LinearRegression(Phi, tensor(z) - mean, *precisions, dual=dual)
            own, variance, _ = head.moments(phi, phi[:0])
            found, std = posterior.predict(POINTS)
            np.testing.assert_allclose(found, (mean_at + own).numpy(), atol=1e-5)
            np.testing.assert_allclose(std**2, variance.numpy(), atol=1e-5)
            evidence = -float(head.loss()) - 0.5 * len(z) * np.log(2 * np.pi)
            assert posterior.log_evidence == pytest.approx(evidence, abs=1e-3)


def test_shared_head_predicts_new_task_and_zero_head_does_not():
    tasks = past_tasks(8, profiles=False)
    grid = np.random.default_rng(0).random((300, 2))
    shared, _ = ABLR(steps=150).fit(tasks).posterior(target()).predict(grid)
    assert np.abs(grid[shared.argmax()] - BEST).max() < 0.15
    zero, _ = quick(head="zero").fit(tasks).posterior(target()).predict(grid)
    assert np.ptp(zero) < 1e-9


def test_ablr_learns_precisions_of_each_task():
    rng = np.random.default_rng(0)
    clean, noisy = past_tasks(2, 40, profiles=False)
    noisy = EncodedTask(noisy.theta, noisy.z + rng.normal(0, 1.0, 40), NUMBERS, id="noisy")
    log_beta = ABLR(steps=150).fit([clean, noisy]).learned_["log_beta"]
    assert log_beta[0] > log_beta[1] + 0.5


def test_ablr_restricts_first_trial_to_best_past_settings():
    tasks = past_tasks(3, profiles=False)
    choices = quick(n_settings=2).fit(tasks).hints(target()).restrict_to
    assert choices.shape == (6, 2)
    best = [task.theta[task.z.argmax()] for task in tasks]
    np.testing.assert_array_equal(choices[::2], best)
    assert quick().fit(tasks).hints(target(1)).restrict_to is None


def test_ablr_guard_is_optional_and_averages():
    good, bad = (
        ABLR(steps=150).fit(past_tasks(4, profiles=False, shuffled=wrong))
        for wrong in (False, True)
    )
    assert bad.posterior(target(12)).weight < 0.1
    assert good.posterior(target(6)).weight > 0.9
    assert not hasattr(good.set_params(guard=False).posterior(target(12)), "weight")


# -- contexts --------------------------------------------------------------------------------------


def two_families(n=6, trials=25, flip=0.0, estimator="svm"):
    """Tasks whose best setting depends on the data set: left for even ones, right for odd ones."""
    tasks = []
    for number in range(n):
        rng = np.random.default_rng([number, estimator == "svm"])
        theta = rng.random((trials, 2))
        best = 0.2 if (number % 2) == flip else 0.8
        z = -((theta[:, 0] - best) ** 2) + 0.01 * theta[:, 1]
        tasks.append(
            EncodedTask(theta, z, NUMBERS, data(number, n=60 + number), f"{estimator}-{number}")
        )
    return tasks


def test_learned_contexts_separate_families_of_tasks():
    surrogate = ABLR(context="learned", steps=300).fit(two_families(8))
    vectors = np.array([surrogate.embeddings_[f"svm-{number}"] for number in range(8)])
    assert vectors.shape == (8, 4)
    asked = EncodedTask(
        np.array([[0.2, 0.5], [0.8, 0.5], [0.5, 0.5]]), np.array([0.0, -0.36, -0.09]), NUMBERS
    )
    similar = surrogate.similarity(asked)
    assert ((similar >= 0) & (similar <= 1)).all()
    assert similar[::2].mean() > similar[1::2].mean()
    assert surrogate.similarity_basis(asked) == ["its trials only"] * 8


def test_embeddings_transfer_to_another_estimator():
    """Tasks of another estimator are found by their data, and their contexts are not trained."""
    svm = quick(context="learned").fit(two_families(5))
    forest = quick(embeddings=svm.embeddings_).fit(two_families(5, estimator="forest"))
    for number in range(5):
        np.testing.assert_array_equal(
            forest.embeddings_[f"forest-{number}"], svm.embeddings_[f"svm-{number}"]
        )


def test_encoder_context_improves_first_trial():
    past = two_families(6)
    sides = {data_key(data(n, n=60 + n)): np.array([1.0 - 2 * (n % 2)]) for n in range(8)}
    surrogate = ABLR(embeddings=sides, steps=200).fit(past)
    points = np.array([[0.2, 0.5], [0.8, 0.5]])
    for number in (6, 7):  # left for even ones, right for odd ones
        new = EncodedTask(np.empty((0, 2)), np.empty(0), NUMBERS, data(number, n=60 + number))
        mean, _ = surrogate.posterior(new).predict(points)
        assert mean.argmax() == number % 2


def test_embeddings_match_by_id_and_others_are_learned():
    tasks = past_tasks(3, profiles=False)
    given = {"t1": np.array([1.0, -1.0])}
    found = quick(embeddings=given).fit(tasks).embeddings_
    np.testing.assert_array_equal(found["t1"], given["t1"])
    first = TaskIndex(2).fit([None] * 3).transform([0, 1, 2])
    assert found["t0"].shape == (2,) and not np.array_equal(found["t0"], first[0])
    assert quick().fit(tasks).embeddings_ == {}


def test_data_key_distinguishes_data_sets():
    assert data_key(data(1)) == data_key(data(1)) != data_key(data(2))
    assert data_key(None) is None


def test_encoder_computes_context_from_data():
    surrogate = quick(encoder=ManualEncoder()).fit(two_families(6))
    near, far = data(2, n=62), data(3, n=5000)
    similar = surrogate.similarity(EncodedTask(np.empty((0, 2)), np.empty(0), NUMBERS, near))
    assert similar[2] == pytest.approx(1.0)
    assert (
        similar.mean()
        > surrogate.similarity(EncodedTask(np.empty((0, 2)), np.empty(0), NUMBERS, far)).mean()
    )
    assert "meta-features" in surrogate.similarity_basis(target())[0]


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"encoder": "manual"}, "encoder='manual'.*ManualEncoder"),
        ({"context": "known"}, "context='known'.*learned"),
        ({"encoder": ManualEncoder(), "context": "learned"}, "either encoder or"),
        ({"head": "mean"}, "head='mean'.*shared.*zero"),
        ({"layers": ()}, "layers"),
        ({"steps": 0}, "steps=0"),
        ({"embeddings": {"a": [1.0], "b": [1.0, 2.0]}}, "embeddings"),
    ],
)
def test_ablr_rejects_invalid_parameters(params, words):
    with pytest.raises(ValueError, match=words):
        ABLR(**params).fit([])


@pytest.mark.parametrize("kind", KINDS)
def test_ablr_without_past_is_plain_gp_and_warns(kind):
    with pytest.warns(SurrogateWarning, match="ABLR has no past trials.*Gaussian process"):
        surrogate = quick(**KINDS[kind]).fit([])
    assert surrogate.hints(target()).n_initial == 4
    assert_same_prediction(
        finite(surrogate.posterior(target(6))),
        make_surrogate("gp").fit([]).posterior(target(6)).predict(POINTS),
    )
    assert surrogate.posterior(target(0)) is None
    assert surrogate.hints(target(0)).restrict_to is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_tasks", [1, 3])
def test_ablr_accepts_few_trials_and_few_tasks(kind, n_tasks):
    surrogate = quick(**KINDS[kind]).fit(past_tasks(n_tasks, trials=1))
    assert surrogate.hints(target()).n_initial == 0
    for n in (0, 1, 2, 5):
        finite(surrogate.posterior(target(n)))


@pytest.mark.parametrize("kind", ["plain", "paper", "learned"])
def test_ablr_accepts_equal_failed_and_mixed_scores(kind):
    a, b, c, d = past_tasks(4, profiles=False)
    tasks = [
        EncodedTask(a.theta, np.full(20, 0.5), NUMBERS, id="equal"),
        EncodedTask(b.theta, np.where(np.arange(20) % 2, b.z, np.nan), NUMBERS, id="half failed"),
        EncodedTask(c.theta, np.full(20, np.nan), NUMBERS, id="all failed"),
        EncodedTask(d.theta, 1e6 * d.z, NUMBERS, id="large"),
        EncodedTask(d.theta, -1e-6 * d.z, NUMBERS, id="small"),
    ]
    surrogate = quick(**KINDS[kind]).fit(tasks)
    assert surrogate.task_ids == [task.id for task in tasks]
    assert "all failed" not in surrogate.embeddings_
    if surrogate.embeddings_:
        assert surrogate.similarity(target(3)).shape == (5,)
        assert (
            surrogate.similarity_basis(target(3))[2]
            == "no successful trial with the parameters that are fixed now"
        )
    own = target(5)
    for z in (own.z, np.full(5, 0.5), np.array([np.nan, *own.z[1:]]), np.full(5, np.nan)):
        finite(surrogate.posterior(EncodedTask(own.theta, z, NUMBERS, own.profile)))
    with pytest.warns(SurrogateWarning, match="no past trials"):
        assert quick(**KINDS[kind]).fit(tasks[2:3]).hints(target()).n_initial == 4


def test_ablr_predicts_low_scores_near_failures():
    theta = np.array([[0.1, 0.1], [0.15, 0.1], [0.9, 0.9], [0.5, 0.5]])
    surrogate = quick().fit(past_tasks(3, profiles=False))
    failed = EncodedTask(theta, np.array([np.nan, np.nan, 0.8, 0.6]), NUMBERS)
    fine = EncodedTask(theta, np.array([0.9, 0.9, 0.8, 0.6]), NUMBERS)
    means = [surrogate.posterior(t).predict(theta[:1])[0][0] for t in (failed, fine)]
    assert means[0] < means[1]


def test_ablr_accepts_unknown_categories_and_parameters():
    rng = np.random.default_rng(0)
    categorical = np.array([False, True, False])
    theta = np.column_stack([rng.random(20), rng.choice([-1.0, 0.0, 0.5], 20), np.full(20, 0.5)])
    surrogate = quick().fit([EncodedTask(theta, theta[:, 0], categorical, id="old")])
    points = np.column_stack(
        [rng.random(10), np.full(10, 1.0), rng.random(10)]
    )  # a category never seen
    mean, _ = finite(
        surrogate.posterior(EncodedTask(points[:3], points[:3, 0], categorical)), points
    )
    assert len(mean) == 10
    choices = surrogate.hints(EncodedTask(np.empty((0, 3)), np.empty(0), categorical)).restrict_to
    assert len(choices) and (choices[:, 1] >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_ablr_state_round_trip(kind):
    surrogate = quick(**KINDS[kind]).fit(past_tasks(4))
    back = clone(surrogate).set_state(pickle.loads(pickle.dumps(surrogate.get_state())))
    assert_same_state(back.get_state(), surrogate.get_state())
    assert back.task_ids == surrogate.task_ids
    for n in (0, 4):
        ours, theirs = (s.posterior(target(n)).predict(POINTS) for s in (back, surrogate))
        assert_same_prediction(ours, theirs)
    assert back.embeddings_.keys() == surrogate.embeddings_.keys()


@pytest.mark.parametrize("kind", ["plain", "pairs", "learned"])
def test_ablr_posterior_depends_on_data_only(kind):
    one, two = (quick(**KINDS[kind]).fit(past_tasks(3)) for _ in range(2))
    one.posterior(target(7, seed=3))
    ours, theirs = (s.posterior(target(3)).predict(POINTS) for s in (one, two))
    assert_same_prediction(ours, theirs)


@pytest.mark.parametrize("kind", ["plain", "pairs", "learned"])
def test_ablr_continues_training_from_earlier_model(kind):
    tasks = past_tasks(5)
    earlier = quick(**KINDS[kind]).fit(tasks[:4])
    later = quick(**KINDS[kind]).set_params(learning_rate=1e-9).fit(tasks, warm_from=earlier)
    for name, weight in later.trained_.items():
        np.testing.assert_allclose(weight.detach(), earlier.trained_[name].detach(), atol=1e-6)
    if kind == "learned":
        moved = np.abs(later.embeddings_["t2"] - earlier.embeddings_["t2"]).max()
        assert moved < 0.2 * np.abs(earlier.embeddings_["t2"]).max()
    other = EncodedTask(
        np.array([[0.1, 0.0], [0.2, 0.5]]), np.array([1.0, 2.0]), np.array([False, True])
    )
    quick(**KINDS[kind]).fit([other], warm_from=earlier)  # another space: trained from scratch


def test_ablr_fits_500_tasks_of_any_length():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 61, 500)
    tasks = [
        EncodedTask(theta, score(theta), NUMBERS, id=str(number))
        for number, theta in enumerate(rng.random((n, 2)) for n in lengths)
    ]
    surrogate = ABLR(layers=(20, 20), steps=50, epochs=3).fit(tasks)
    assert finite(surrogate.posterior(target(3)))[0].shape == (30,)


def test_ablr_fit_raises_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(past_tasks(3)).posterior(target(5)).predict(POINTS)
