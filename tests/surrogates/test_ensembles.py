"""RGPE, TST and Box: many processes at once, unusual input, the limit on tasks, state."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from sktransfer import Task, TransferOptimizer
from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates import RGPE, TST, Box, EncodedTask
from sktransfer.surrogates._core import gaussian_process as core
from sktransfer.surrogates._core import task_processes
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.task_gaussian_processes import (
    TaskGPs,
    fit_tasks,
    pad_tasks,
    select_trials,
)
from sktransfer.surrogates.gp import default_priors
from tests.surrogates.comparisons import assert_same_prediction, assert_same_state
from tests.surrogates.synthetic_tasks import NUMBERS, SPACE, past_tasks, score, target

MIXED = np.array([False, True])
BOTH = pytest.mark.parametrize("surrogate", [RGPE(), TST()])
ALL = pytest.mark.parametrize("surrogate", [RGPE(), TST(), Box()])
POINTS = np.random.default_rng(1).random((20, 2))


def lengths(*sizes, d=2, seed=0):
    """Tasks of these lengths."""
    rng = np.random.default_rng(seed)
    tasks = []
    for number, n in enumerate(sizes):
        theta = rng.random((n, d))
        tasks.append(
            EncodedTask(theta, score(theta[:, :2]), np.zeros(d, dtype=bool), id=f"t{number}")
        )
    return tasks


def processes(tasks):
    past = PastTrials.from_tasks(tasks, "standardize")
    theta, z, real = pad_tasks(past, select_trials(past, 60))
    h = fit_tasks(theta, z, real, past.categorical, "matern52")
    return past, h, TaskGPs(theta, z, real, h, past.categorical, "matern52")


def predicted(surrogate, observed, points=POINTS):
    mean, std = surrogate.posterior(observed).predict(points)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()
    return mean, std


# -- many processes at once ------------------------------------------------------------------------


@pytest.mark.parametrize("categorical", [NUMBERS, MIXED])
def test_task_gps_equal_single_gps(categorical):
    tasks = lengths(1, 9, 3, 14)
    for task in tasks:
        task.theta[:, categorical] = np.round(task.theta[:, categorical])
    tasks = [EncodedTask(task.theta, task.z, categorical) for task in tasks]
    past, h, stack = processes(tasks)
    mean, variance = stack.moments(POINTS)
    draws = stack.take([3, 1]).sample(POINTS[:4], 4000, np.random.default_rng(0))
    for number in range(4):
        own = past.owner == number
        process = core.GaussianProcess(past.theta[own], past.z[own], h[number], categorical)
        expected_mean, expected_std = process.predict(POINTS)
        np.testing.assert_allclose(mean[number], expected_mean, atol=1e-8)
        np.testing.assert_allclose(stack.mean(POINTS)[number], expected_mean, atol=1e-8)
        np.testing.assert_allclose(variance[number], expected_std**2, atol=1e-8)
    for drawn, number in zip(draws, [3, 1], strict=True):
        np.testing.assert_allclose(drawn.mean(axis=0), mean[number, :4], atol=0.06)
        np.testing.assert_allclose(drawn.var(axis=0), variance[number, :4], atol=0.06)
    np.testing.assert_allclose(stack.take([3, 1]).moments(POINTS)[0], mean[[3, 1]], atol=1e-12)


def test_fit_tasks_finds_most_probable_hyperparameters():
    past, h, _ = processes(lengths(25, 2, 12, 1, 24))
    priors = default_priors(2)
    for number in (0, 1, 2, 4):
        own = past.owner == number
        X, z = past.theta[own], past.z[own]
        best = core.fit_hyperparameters(X, z, NUMBERS, kernel="matern52", priors=priors)
        losses = [
            core.value_and_gradient(v, core.Pairs(X, NUMBERS), z, "matern52", priors)[0]
            for v in (h[number], best, priors.medians(2))
        ]
        assert losses[0] < losses[1] + 0.15
        assert losses[0] < losses[2] or number == 1
    np.testing.assert_array_equal(h[3], priors.medians(2))  # one trial is not informative


# -- bad input -------------------------------------------------------------------------------------


def failed(task, rows):
    z = task.z.copy()
    z[rows] = np.nan
    return EncodedTask(task.theta, z, task.categorical, id=task.id)


def on_scales(*scales):
    tasks = past_tasks(len(scales))
    return [
        EncodedTask(task.theta, scale * task.z, NUMBERS)
        for task, scale in zip(tasks, scales, strict=True)
    ]


PASTS = {
    "one task": past_tasks(1),
    "one trial": lengths(1),
    "fewer trials than parameters": lengths(1, 2, 1),
    "equal scores": [EncodedTask(POINTS, np.full(20, 0.3), NUMBERS)] * 2,
    "failures": [failed(task, slice(0, 15)) for task in past_tasks(3)],
    "a task of failures": [failed(past_tasks(1)[0], slice(None)), *past_tasks(2)],
    "scales": on_scales(1e-9, 1.0, -1e9),
    "the same trial twice": [EncodedTask(np.full((4, 2), 0.5), np.arange(4.0), NUMBERS)],
    "outside the target's bounds": [EncodedTask(3 * POINTS - 1, score(POINTS), NUMBERS)],
}
TARGETS = {
    "none": target(0),
    "one": target(1),
    "two": target(2),
    "some": target(7),
    "equal": EncodedTask(POINTS[:5], np.full(5, 0.2), NUMBERS),
    "failed": failed(target(6), [0, 3]),
    "all failed": failed(target(3), slice(None)),
    "repeated": EncodedTask(np.full((4, 2), 0.5), np.array([0.1, 0.2, 0.1, 0.3]), NUMBERS),
}


@ALL
@pytest.mark.parametrize("past", PASTS)
def test_ensembles_handle_any_past_and_target(surrogate, past):
    fitted = clone(surrogate).fit(PASTS[past])
    for observed in TARGETS.values():
        posterior = fitted.posterior(observed)
        mean, std = posterior.predict(POINTS)
        assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
        assert np.isfinite(posterior.sample(POINTS, 3, np.random.default_rng(0))).all()
    back, observed = clone(surrogate).set_state(fitted.get_state()), TARGETS["some"]
    assert_same_state(back.get_state(), fitted.get_state())
    assert_same_prediction(predicted(fitted, observed), predicted(back, observed))
    if fitted.similarity(observed) is not None:
        similarity = fitted.similarity(observed)
        assert ((similarity >= 0) & (similarity <= 1)).all()
        assert len(similarity) == len(fitted.similarity_basis(observed)) == len(PASTS[past])
        assert_same_prediction(similarity, back.similarity(observed))


@BOTH
@pytest.mark.parametrize("tasks", [[], [failed(past_tasks(1)[0], slice(None))]])
def test_ensembles_without_past_are_plain_gp_and_warn(surrogate, tasks):
    with pytest.warns(SurrogateWarning, match="no past trials"):
        fitted = clone(surrogate).fit(tasks)
    assert fitted.hints(target()).n_initial == surrogate.n_initial
    plain = fitted.fallback_.posterior(target(5)).predict(POINTS)
    assert_same_prediction(predicted(fitted, target(5)), plain)
    assert fitted.similarity(target(5)).tolist() == [0] * len(tasks)
    assert len(fitted.similarity_basis(target(5))) == len(tasks)


@BOTH
def test_ensembles_accept_unknown_categories(surrogate):
    rng = np.random.default_rng(0)
    codes = np.column_stack(
        [rng.random(12), rng.choice([-1.0, 0.25], 12)]
    )  # -1: not a category of the target
    past = EncodedTask(codes, codes[:, 0] + (codes[:, 1] > 0), MIXED)
    observed = EncodedTask(
        np.array([[0.1, 0.75], [0.9, 0.75], [0.5, 0.25]]), np.array([0.1, 0.9, 1.5]), MIXED
    )
    points = np.array([[0.2, 0.25], [0.2, 0.75], [0.9, 0.75]])
    predicted(clone(surrogate).fit([past]), observed, points)
    mean, _ = predicted(
        clone(surrogate).fit([past]), EncodedTask(np.empty((0, 2)), np.empty(0), MIXED), points
    )
    assert mean[0] > mean[1]


@BOTH
def test_similarity_keeps_position_of_failed_task(surrogate):
    good, bad = past_tasks(2), failed(past_tasks(1)[0], slice(None))
    fitted = clone(surrogate).fit([bad, *good])
    assert fitted.task_ids == [bad.id, good[0].id, good[1].id]
    assert fitted.similarity(target(0)).tolist() == [0, 1, 1]
    assert (
        fitted.similarity_basis(target(4))[0]
        == "no successful trial with the parameters that are fixed now"
    )
    assert fitted.similarity_basis(target(4))[1] == "ranking of 4 trials"


@BOTH
@pytest.mark.parametrize(
    ("name", "value"), [("max_tasks", 0), ("max_trials", 0), ("kernel", "rbf")]
)
def test_ensembles_reject_invalid_parameters(surrogate, name, value):
    with pytest.raises(ValueError, match=name):
        clone(surrogate).set_params(**{name: value}).fit([])


# -- many tasks ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ensembles_fit_500_tasks_of_any_length():
    sizes = np.random.default_rng(0).integers(1, 61, 500)
    rgpe = RGPE().fit(lengths(*sizes))
    tst = TST().fit(lengths(*sizes), warm_from=rgpe)
    np.testing.assert_array_equal(tst.learned_["h"], rgpe.learned_["h"])
    for fitted in (rgpe, tst):
        for n in (0, 6):
            assert len(fitted.posterior(target(n)).weights) <= 31
            predicted(fitted, target(n))
        assert fitted.similarity_basis(target(0)).count("ranking of 0 trials") == 30


@BOTH
def test_ensembles_use_tasks_that_agree_with_trials(surrogate):
    tasks = [*past_tasks(4, sign=-1.0), *past_tasks(2), *past_tasks(4, shuffled=True)]
    similarity = clone(surrogate).set_params(max_tasks=2).fit(tasks).similarity(target(10))
    assert similarity[[4, 5]].max() > 0.5
    assert similarity.sum() == similarity[[4, 5]].sum()


def test_task_gps_use_representative_trials():
    [task] = lengths(50)
    fitted = TST(max_trials=10).fit([task])
    kept = fitted.past_.theta[fitted.learned_["kept"]]
    assert len(kept) == 10
    assert task.theta[np.argmax(task.z)].tolist() in kept.tolist()


@BOTH
def test_ensembles_reuse_fitted_hyperparameters(surrogate, monkeypatch):
    tasks, counts = past_tasks(6), []

    def counting(theta, *rest):
        counts.append(len(theta))
        return fit_tasks(theta, *rest)

    monkeypatch.setattr(task_processes, "fit_tasks", counting)
    first = clone(surrogate).fit(tasks[:5])
    longer = EncodedTask(
        np.vstack([tasks[0].theta, [[0.5, 0.5]]]), np.append(tasks[0].z, 0.5), NUMBERS
    )
    second = clone(surrogate).fit([longer, *tasks[1:]], warm_from=first)
    afresh = clone(surrogate).fit([longer, *tasks[1:]])
    assert counts == [5, 2, 6]
    np.testing.assert_allclose(second.learned_["h"], afresh.learned_["h"], atol=1e-6)


# -- in a search -----------------------------------------------------------------------------------


@BOTH
def test_ensemble_without_trials_has_level_of_past_tasks(surrogate):
    theta = np.random.default_rng(0).random((20, 2))
    tasks = [EncodedTask(theta, 0.9 + 0.01 * score(theta), NUMBERS)] * 3
    fitted = clone(surrogate).fit(tasks)
    mean, _ = predicted(fitted, target(0))
    assert ((mean > 0.85) & (mean < 0.95)).all()
    assert fitted.posterior(target(0)).level_std > 0
    one = EncodedTask(theta[:1], np.array([0.5]), NUMBERS)
    mean, _ = predicted(fitted, one)
    assert ((mean > 0.4) & (mean < 0.6)).all()
    np.testing.assert_allclose(fitted.posterior(one).predict(theta[:1])[0], 0.5)


@BOTH
def test_suggest_reports_source_tasks(surrogate):
    rng = np.random.default_rng(0)
    tasks = []
    for name in "ab":
        theta = rng.random((15, 2))
        trials = [({"a": x, "b": y}, float(score([x, y]))) for x, y in theta]
        tasks.append(Task.from_trials(SPACE, trials, id=name))
    optimizer = TransferOptimizer(SPACE, tasks, surrogate=clone(surrogate), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [found] = optimizer.suggest()
    assert score([found.params["a"], found.params["b"]]) > 0.9
    assert [source for source, _ in found.sources] == [task.id for task in tasks]


@BOTH
def test_ensembles_explore_after_equal_scores(surrogate):
    """The past optimum is a plateau of the target, so the search must leave it."""
    fitted = clone(surrogate).fit(past_tasks(5))
    observed = EncodedTask(
        np.array([[0.75, 0.3], [0.76, 0.3], [0.74, 0.31]]), np.full(3, 0.6), NUMBERS
    )
    assert (fitted.similarity(observed) == 0).all()


@BOTH
def test_ensemble_incumbent_is_predicted_score(surrogate):
    fitted, observed = clone(surrogate).fit(past_tasks(5)), target(4)
    posterior = fitted.posterior(observed)
    assert posterior.incumbent(observed.z) == posterior.predict(observed.theta)[0].max()
    assert fitted.posterior(target(0)).incumbent(np.empty(0)) is None
