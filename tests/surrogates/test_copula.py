"""copula-ts and copula-gp: prior, residual process, several metrics, unusual past tasks."""

import warnings
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import clone

from sktransfer import Task, TransferOptimizer
from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates import CopulaGP, EncodedTask
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.utils._scores import normal_scores
from tests.surrogates.comparisons import assert_same_prediction, assert_same_state
from tests.surrogates.synthetic_tasks import NUMBERS, SPACE, past_tasks, score, search, target

CopulaTS = partial(CopulaGP, n_thompson=None)
BOTH = pytest.mark.parametrize("method", [CopulaTS, CopulaGP], ids=["ts", "gp"])
THETA = np.random.default_rng(3).random((40, 2))


@cache
def fitted(method, **params):
    """A fitted surrogate, cached: it must not be fitted again."""
    return method(**params).fit(past_tasks())


def changed(task, **changes):
    return replace(task, **changes)


# -- the prior -------------------------------------------------------------------------------------


def test_copula_prior_ranks_settings_like_past_tasks():
    mean, std = fitted(CopulaTS).prior(THETA)
    assert np.corrcoef(mean, normal_scores(score(THETA)))[0, 1] > 0.8
    assert (std > 0).all()


def test_copula_prior_is_wider_at_noisy_settings():
    rng = np.random.default_rng(0)
    tasks = []
    for number in range(20):
        theta = rng.random((40, 2))
        noise = (theta[:, 0] > 0.5) * rng.standard_normal(40)
        tasks.append(EncodedTask(theta, theta[:, 1] + noise, NUMBERS, id=str(number)))
    surrogate = CopulaTS().fit(tasks)
    quiet, noisy = THETA * [0.45, 1], THETA * [0.45, 1] + [0.55, 0]
    assert surrogate.prior(noisy)[1].mean() > 1.3 * surrogate.prior(quiet)[1].mean()
    assert set(CopulaTS(heteroskedastic=False, steps=5).fit(tasks).prior(THETA)[1]) == {1.0}


def test_copula_prior_ignores_past_scales():
    tasks = past_tasks()
    other = [changed(task, z=np.exp(3 * task.z - 20 * number)) for number, task in enumerate(tasks)]
    np.testing.assert_array_equal(fitted(CopulaTS).prior(THETA), CopulaTS().fit(other).prior(THETA))
    few = {"transform": "standardize", "steps": 50}
    ours, theirs = (CopulaTS(**few).fit(each).prior(THETA)[0] for each in (tasks, other))
    assert np.abs(ours - theirs).max() > 0.01


# -- the target ------------------------------------------------------------------------------------


def test_copula_gp_is_process_on_residuals():
    surrogate, observed = fitted(CopulaGP, guard=False), target(trials=8)
    mean, std = surrogate.prior(observed.theta)
    z = normal_scores(observed.z)
    posterior = surrogate.posterior(observed)
    r = posterior._posterior._r
    assert isinstance(r, GaussianProcess)
    np.testing.assert_allclose(r.z, (z - mean) / std, atol=1e-12)
    (m, s), (r_mean, r_std), (found, spread) = (
        f(THETA) for f in (surrogate.prior, r.predict, posterior.predict)
    )
    np.testing.assert_allclose(found, m + s * r_mean, atol=1e-12)
    np.testing.assert_allclose(spread, s * r_std, atol=1e-12)
    assert posterior.incumbent(observed.z) == z.max()
    draws = posterior.sample(THETA, 3000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), found, atol=0.1)


@BOTH
def test_copula_evidence_is_density_of_normal_scores(method):
    surrogate, observed = fitted(method, guard=False), target(trials=8)
    z, (mean, std) = normal_scores(observed.z), surrogate.prior(observed.theta)
    posterior = surrogate._transfer_posterior(observed, z)
    K = np.eye(8)
    if method is CopulaGP:
        r = posterior._r
        K = r.prior_covariance(observed.theta, observed.theta) + (np.exp(r.h[-1]) + 1e-9) * np.eye(
            8
        )
    K = K * np.outer(std, std)
    direct = -0.5 * (z - mean) @ np.linalg.solve(K, z - mean) - 0.5 * np.linalg.slogdet(K)[1]
    assert posterior.log_evidence == pytest.approx(direct, rel=1e-8)


def test_copula_gp_draws_first_trials_only():
    few, many = target(trials=4), target(trials=5)
    assert [fitted(CopulaGP).hints(each).thompson for each in (few, many)] == [True, False]
    assert [fitted(CopulaTS).hints(each).thompson for each in (few, many)] == [True, True]


def test_copula_predictions_are_reported_as_scores():
    optimizer = TransferOptimizer(SPACE, surrogate="copula-gp", random_state=0)
    tasks = [
        replace(task, z=task.z - 10 * n) for n, task in enumerate(past_tasks())
    ]  # all on one level
    optimizer.surrogate.fit(tasks)
    optimizer.is_fitted = True
    predicted, found = [], []
    for _ in range(12):
        [proposal] = optimizer.propose()
        theta = np.array([proposal.params["a"], proposal.params["b"]])
        optimizer.tell(proposal.params, float(score(theta)))
        predicted.append(proposal.mean)
        found.append(score(theta))
    assert np.isfinite(predicted).all()
    assert np.abs(np.array(predicted) - found)[6:].mean() < 0.15  # the first five are drawn


def test_copula_guard_waits_for_enough_trials():
    """All trials near the best: by rank some of them are bad."""
    theta = np.array([0.75, 0.3]) + 0.05 * np.random.default_rng(0).standard_normal((4, 2))
    for n in range(1, 5):
        observed = EncodedTask(theta[:n], score(theta[:n]), NUMBERS)
        np.testing.assert_array_equal(
            fitted(CopulaGP).posterior(observed).predict(THETA), fitted(CopulaGP).prior(THETA)
        )


def test_to_scores_extrapolates_beyond_best_trial():
    observed = target(trials=9)
    posterior = fitted(CopulaGP).posterior(observed)
    mean, std = posterior.to_scores(
        np.array([posterior.incumbent(observed.z), posterior.incumbent(observed.z) + 0.5]),
        np.full(2, 0.1),
    )
    assert mean[0] == pytest.approx(observed.z.max())
    assert mean[1] > observed.z.max()
    assert (std > 0).all()


def test_unmeasured_objective_warns():
    with pytest.warns(SurrogateWarning, match="acuracy was not measured"):
        CopulaGP(objective=("acuracy", "time"), steps=5).fit(past_tasks(2)).posterior(
            target(trials=3)
        )


def test_copula_batch_is_diverse():
    optimizer = TransferOptimizer(SPACE, surrogate="copula-gp", random_state=0)
    optimizer.surrogate, optimizer.is_fitted = fitted(CopulaGP), True
    for theta in THETA[:6]:
        optimizer.tell({"a": theta[0], "b": theta[1]}, float(score(theta)))
    batch = np.array([[p["a"], p["b"]] for p in optimizer.ask(4)])
    apart = np.linalg.norm(batch[:, None] - batch[None], axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 0.005


# -- several metrics -------------------------------------------------------------------------------


def test_objectives_are_averaged_on_normal_scale():
    observed = changed(target(trials=9), metrics={"fit_time": THETA[:9, 1], "auc": THETA[:9, 0]})
    np.testing.assert_allclose(
        CopulaTS(objective="score+time")._normal_scores(observed),
        (normal_scores(observed.z) + normal_scores(-THETA[:9, 1])) / 2,
    )
    np.testing.assert_allclose(
        CopulaTS(objective=("score", "auc"))._normal_scores(observed),
        (normal_scores(observed.z) + normal_scores(THETA[:9, 0])) / 2,
    )
    # a task without the metric is represented by its score
    np.testing.assert_allclose(
        CopulaTS(objective=["f1"])._normal_scores(observed), normal_scores(observed.z)
    )


def test_fast_failures_are_not_rewarded():
    observed = target(trials=6)
    z, seconds = observed.z.copy(), np.arange(1.0, 7.0)
    z[0] = np.nan
    objective = CopulaTS(objective="score+time")._normal_scores(
        changed(observed, z=z, metrics={"fit_time": seconds})
    )
    assert objective[0] == objective[1:].min()


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("tasks", [[], past_tasks()], ids=["no past", "past"])
def test_score_and_time_finds_fast_good_settings(method, tasks):
    """Time grows with b, the score hardly depends on it: with time in the objective, b is small."""

    def seconds_of(objective):
        optimizer = TransferOptimizer(SPACE, surrogate=method(objective=objective), random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer.surrogate.fit(tasks)
        optimizer.is_fitted = True
        seconds = []
        for _ in range(15):
            [params] = optimizer.ask()
            theta = np.array([params["a"], params["b"]])
            seconds.append(1 + 10 * theta[1])
            optimizer.tell(params, float(score(theta)), cost=seconds[-1])
        return np.mean(seconds[5:])

    assert seconds_of("score+time") < seconds_of("score") - 0.5


def test_fit_time_is_learned_from_task_records():
    rng = np.random.default_rng(0)
    theta = rng.random(40)
    trials = [{"params": {"a": a}, "score": 0.5, "fit_time": 1 + 9 * a} for a in theta]
    task = Task.from_trials({"a": uniform(0, 1)}, trials)
    optimizer = TransferOptimizer(
        {"a": uniform(0, 1)}, [task], surrogate=CopulaTS(objective="score+time"), random_state=0
    )
    assert np.mean([p["a"] for p in optimizer.ask(8)]) < 0.35


# -- unusual past tasks and input ------------------------------------------------------------------


@BOTH
def test_copula_without_past_is_plain_gp_and_warns(method):
    with pytest.warns(SurrogateWarning, match="no past trials"):
        surrogate = method().fit([])
    assert isinstance(surrogate.posterior(target(trials=6)), GaussianProcess)
    assert surrogate.hints(target()).n_initial == 4
    assert not surrogate.hints(target()).thompson


@BOTH
@pytest.mark.parametrize(
    "tasks",
    [
        past_tasks(1),
        past_tasks(3, trials=1),
        [changed(task, z=np.full(20, 0.5)) for task in past_tasks(3)],
        [changed(task, z=np.where(np.arange(20) % 2, task.z, np.nan)) for task in past_tasks(3)],
        [changed(past_tasks(1)[0], z=np.full(20, np.nan)), *past_tasks(2)],
        [
            changed(task, z=10.0 ** (8 * number) * task.z)
            for number, task in enumerate(past_tasks(3))
        ],
        [changed(task, theta=3 * task.theta - 1) for task in past_tasks(3)],
    ],
    ids=["one", "single trials", "equal", "failures", "a failed task", "scales", "outside"],
)
@pytest.mark.parametrize("trials", [0, 1, 7])
def test_copula_accepts_unusual_past_tasks(method, tasks, trials):
    surrogate = method(steps=20).fit(tasks)
    observed = target(trials=trials)
    for each in (
        observed,
        changed(observed, z=np.full(trials, 0.5)),
        changed(observed, z=np.where(np.arange(trials), 0.1, np.nan)),
    ):
        posterior = surrogate.posterior(each)
        for mean, std in (posterior.predict(THETA), posterior.to_scores(*posterior.predict(THETA))):
            assert np.isfinite(mean).all()
            assert (std >= 0).all()
        assert np.isfinite(posterior.sample(THETA, 2, np.random.default_rng(0))).all()


@pytest.mark.slow
def test_copula_fits_many_tasks():
    rng = np.random.default_rng(0)
    tasks = []
    for number in range(500):
        theta = rng.random((rng.integers(1, 60), 2))
        tasks.append(EncodedTask(theta, number + score(theta), NUMBERS, id=str(number)))
    assert search(CopulaGP(), tasks, 3)[-1] > 0.9


def test_copula_accepts_unknown_categories():
    category = np.array([False, True])
    past = EncodedTask(
        np.column_stack([THETA[:, 0], np.arange(40) % 3 - 1.0]), THETA[:, 0], category
    )
    surrogate = CopulaGP(steps=30).fit([past])
    theta = np.column_stack([THETA[:8, 0], np.full(8, 0.5)])
    observed = EncodedTask(theta, THETA[:8, 0], category)
    assert np.isfinite(surrogate.posterior(observed).predict(theta)[0]).all()


@BOTH
def test_copula_state_round_trip(method):
    surrogate, observed = method(steps=20).fit(past_tasks(3)), target(trials=7)
    again = clone(surrogate).set_state(surrogate.get_state())
    assert again.task_ids == ["t0", "t1", "t2"]
    assert_same_state(again.get_state(), surrogate.get_state())
    assert_same_prediction(
        again.posterior(observed).predict(THETA), surrogate.posterior(observed).predict(THETA)
    )


@pytest.mark.parametrize(
    "params", [{"transform": "rank"}, {"dropout": 1.0}, {"objective": ""}, {"objective": [3]}]
)
def test_copula_rejects_invalid_parameters(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        CopulaGP(**params).fit(past_tasks(1))
