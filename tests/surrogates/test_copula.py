"""copula-ts and copula-gp: the prior, the residual process, several metrics, odd pasts."""

import warnings
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import clone

from sktransfer import Task, TransferOptimizer
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
    """A surrogate that has learned from the past tasks; not to be fitted again."""
    return method(**params).fit(past_tasks())


def told(task, **changes):
    return replace(task, **changes)


# -- the prior -------------------------------------------------------------------------------------


def test_the_prior_ranks_new_settings_as_the_past_did():
    mean, std = fitted(CopulaTS).prior(THETA)
    assert np.corrcoef(mean, normal_scores(score(THETA)))[0, 1] > 0.8
    assert (std > 0).all()


def test_the_prior_is_less_sure_where_the_past_was_noisy():
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


def test_past_metrics_and_scales_do_not_matter():
    tasks = past_tasks()
    other = [told(task, z=np.exp(3 * task.z - 20 * number)) for number, task in enumerate(tasks)]
    np.testing.assert_array_equal(fitted(CopulaTS).prior(THETA), CopulaTS().fit(other).prior(THETA))
    few = {"transform": "standardize", "steps": 50}
    ours, theirs = (CopulaTS(**few).fit(each).prior(THETA)[0] for each in (tasks, other))
    assert np.abs(ours - theirs).max() > 0.01


# -- the target ------------------------------------------------------------------------------------


def test_copula_gp_is_a_process_on_the_residuals():
    surrogate, today = fitted(CopulaGP, guard=False), target(trials=8)
    mean, std = surrogate.prior(today.theta)
    z = normal_scores(today.z)
    posterior = surrogate.posterior(today)
    r = posterior._belief._r
    assert isinstance(r, GaussianProcess)
    np.testing.assert_allclose(r.z, (z - mean) / std, atol=1e-12)
    (m, s), (r_mean, r_std), (found, spread) = (
        f(THETA) for f in (surrogate.prior, r.predict, posterior.predict)
    )
    np.testing.assert_allclose(found, m + s * r_mean, atol=1e-12)
    np.testing.assert_allclose(spread, s * r_std, atol=1e-12)
    assert posterior.incumbent(today.z) == z.max()
    draws = posterior.sample(THETA, 3000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), found, atol=0.1)


@BOTH
def test_the_evidence_is_the_density_of_the_normal_scores(method):
    surrogate, today = fitted(method, guard=False), target(trials=8)
    z, (mean, std) = normal_scores(today.z), surrogate.prior(today.theta)
    belief = surrogate._transfer_posterior(today, z)
    K = np.eye(8)
    if method is CopulaGP:
        r = belief._r
        K = r.prior_covariance(today.theta, today.theta) + (np.exp(r.h[-1]) + 1e-9) * np.eye(8)
    K = K * np.outer(std, std)
    direct = -0.5 * (z - mean) @ np.linalg.solve(K, z - mean) - 0.5 * np.linalg.slogdet(K)[1]
    assert belief.log_evidence == pytest.approx(direct, rel=1e-8)


def test_first_trials_are_drawn_then_improvement_is_looked_for():
    few, many = target(trials=4), target(trials=5)
    assert [fitted(CopulaGP).hints(each).thompson for each in (few, many)] == [True, False]
    assert [fitted(CopulaTS).hints(each).thompson for each in (few, many)] == [True, True]


def test_predictions_are_reported_as_scores():
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


def test_a_good_past_is_not_punished_for_good_trials():
    """All trials near the best: by rank some of them are bad."""
    theta = np.array([0.75, 0.3]) + 0.05 * np.random.default_rng(0).standard_normal((4, 2))
    for n in range(1, 5):
        today = EncodedTask(theta[:n], score(theta[:n]), NUMBERS)
        np.testing.assert_array_equal(
            fitted(CopulaGP).posterior(today).predict(THETA), fitted(CopulaGP).prior(THETA)
        )


def test_a_prediction_may_exceed_the_best_so_far():
    today = target(trials=9)
    posterior = fitted(CopulaGP).posterior(today)
    mean, std = posterior.to_scores(
        np.array([posterior.incumbent(today.z), posterior.incumbent(today.z) + 0.5]),
        np.full(2, 0.1),
    )
    assert mean[0] == pytest.approx(today.z.max())
    assert mean[1] > today.z.max()
    assert (std > 0).all()


def test_a_metric_that_nobody_measured_is_named():
    with pytest.warns(UserWarning, match="acuracy was not measured"):
        CopulaGP(objective=("acuracy", "time"), steps=5).fit(past_tasks(2)).posterior(
            target(trials=3)
        )


def test_a_batch_spreads_out():
    optimizer = TransferOptimizer(SPACE, surrogate="copula-gp", random_state=0)
    optimizer.surrogate, optimizer.is_fitted = fitted(CopulaGP), True
    for theta in THETA[:6]:
        optimizer.tell({"a": theta[0], "b": theta[1]}, float(score(theta)))
    batch = np.array([[p["a"], p["b"]] for p in optimizer.ask(4)])
    apart = np.linalg.norm(batch[:, None] - batch[None], axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 0.005


# -- several metrics -------------------------------------------------------------------------------


def test_metrics_are_averaged_on_the_normal_scale():
    today = told(target(trials=9), metrics={"fit_time": THETA[:9, 1], "auc": THETA[:9, 0]})
    np.testing.assert_allclose(
        CopulaTS(objective="score+time")._scores(today),
        (normal_scores(today.z) + normal_scores(-THETA[:9, 1])) / 2,
    )
    np.testing.assert_allclose(
        CopulaTS(objective=("score", "auc"))._scores(today),
        (normal_scores(today.z) + normal_scores(THETA[:9, 0])) / 2,
    )
    # of a task that did not measure it, the score alone
    np.testing.assert_allclose(CopulaTS(objective=["f1"])._scores(today), normal_scores(today.z))


def test_to_fail_quickly_is_no_merit():
    today = target(trials=6)
    z, seconds = today.z.copy(), np.arange(1.0, 7.0)
    z[0] = np.nan
    objective = CopulaTS(objective="score+time")._scores(
        told(today, z=z, metrics={"fit_time": seconds})
    )
    assert objective[0] == objective[1:].min()


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("tasks", [[], past_tasks()], ids=["alone", "past"])
def test_score_and_time_find_the_quick_among_the_good(method, tasks):
    """The time grows with b, and the score hardly depends on it: with time in the objective, b is small."""

    def seconds_of(objective):
        optimizer = TransferOptimizer(SPACE, surrogate=method(objective=objective), random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer.surrogate.fit(tasks)
        optimizer.is_fitted = True
        told = []
        for _ in range(15):
            [params] = optimizer.ask()
            theta = np.array([params["a"], params["b"]])
            told.append(1 + 10 * theta[1])
            optimizer.tell(params, float(score(theta)), cost=told[-1])
        return np.mean(told[5:])

    assert seconds_of("score+time") < seconds_of("score") - 0.5


def test_time_is_learned_from_records():
    rng = np.random.default_rng(0)
    theta = rng.random(40)
    trials = [{"params": {"a": a}, "score": 0.5, "fit_time": 1 + 9 * a} for a in theta]
    task = Task.from_trials({"a": uniform(0, 1)}, trials)
    optimizer = TransferOptimizer(
        {"a": uniform(0, 1)}, [task], surrogate=CopulaTS(objective="score+time"), random_state=0
    )
    assert np.mean([p["a"] for p in optimizer.ask(8)]) < 0.35


# -- odd pasts and bad input -----------------------------------------------------------------------


@BOTH
def test_without_a_past_it_is_a_gaussian_process_and_says_so(method):
    with pytest.warns(UserWarning, match="no past trials"):
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
        [told(task, z=np.full(20, 0.5)) for task in past_tasks(3)],
        [told(task, z=np.where(np.arange(20) % 2, task.z, np.nan)) for task in past_tasks(3)],
        [told(past_tasks(1)[0], z=np.full(20, np.nan)), *past_tasks(2)],
        [told(task, z=10.0 ** (8 * number) * task.z) for number, task in enumerate(past_tasks(3))],
        [told(task, theta=3 * task.theta - 1) for task in past_tasks(3)],
    ],
    ids=["one", "single trials", "equal", "failures", "a failed task", "scales", "outside"],
)
@pytest.mark.parametrize("trials", [0, 1, 7])
def test_odd_pasts(method, tasks, trials):
    surrogate = method(steps=20).fit(tasks)
    today = target(trials=trials)
    for each in (
        today,
        told(today, z=np.full(trials, 0.5)),
        told(today, z=np.where(np.arange(trials), 0.1, np.nan)),
    ):
        posterior = surrogate.posterior(each)
        for mean, std in (posterior.predict(THETA), posterior.to_scores(*posterior.predict(THETA))):
            assert np.isfinite(mean).all()
            assert (std >= 0).all()
        assert np.isfinite(posterior.sample(THETA, 2, np.random.default_rng(0))).all()


def test_many_tasks_of_different_lengths():
    rng = np.random.default_rng(0)
    tasks = []
    for number in range(500):
        theta = rng.random((rng.integers(1, 60), 2))
        tasks.append(EncodedTask(theta, number + score(theta), NUMBERS, id=str(number)))
    assert search(CopulaGP(), tasks, 3)[-1] > 0.9


def test_a_category_never_seen_and_one_that_is_not_known():
    category = np.array([False, True])
    past = EncodedTask(
        np.column_stack([THETA[:, 0], np.arange(40) % 3 - 1.0]), THETA[:, 0], category
    )
    surrogate = CopulaGP(steps=30).fit([past])
    theta = np.column_stack([THETA[:8, 0], np.full(8, 0.5)])
    today = EncodedTask(theta, THETA[:8, 0], category)
    assert np.isfinite(surrogate.posterior(today).predict(theta)[0]).all()


@BOTH
def test_state_comes_back(method):
    surrogate, today = method(steps=20).fit(past_tasks(3)), target(trials=7)
    again = clone(surrogate).set_state(surrogate.get_state())
    assert again.task_ids == ["t0", "t1", "t2"]
    assert_same_state(again.get_state(), surrogate.get_state())
    assert_same_prediction(
        again.posterior(today).predict(THETA), surrogate.posterior(today).predict(THETA)
    )


@pytest.mark.parametrize(
    "params", [{"transform": "rank"}, {"dropout": 1.0}, {"objective": ""}, {"objective": [3]}]
)
def test_wrong_parameters_are_named(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        CopulaGP(**params).fit(past_tasks(1))
