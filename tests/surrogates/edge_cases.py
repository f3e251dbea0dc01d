"""Unusual past tasks and targets that every surrogate must handle, and the checks for them."""

import warnings

import numpy as np
from sklearn.base import clone

from sktransfer.surrogates import EncodedTask
from tests.surrogates.comparisons import assert_same_prediction, assert_same_state
from tests.surrogates.synthetic_tasks import NUMBERS, data, past_tasks, score, target

POINTS = np.random.default_rng(3).random((30, 2))


def no_past():
    return []


def one_task():
    return past_tasks(1)


def short_tasks():
    return past_tasks(3, 1)


def no_profiles():
    return past_tasks(3, profiles=False)


def equal_scores():
    return [EncodedTask(t.theta, np.full(len(t.z), 0.5), NUMBERS, t.profile) for t in past_tasks(3)]


def failures():
    fail = [
        EncodedTask(t.theta, np.where(t.theta[:, 0] < 0.5, np.nan, t.z), NUMBERS)
        for t in past_tasks(3)
    ]
    return [*fail, EncodedTask(POINTS, np.full(len(POINTS), np.nan), NUMBERS)]


def mixed_metrics():
    sizes = 10.0 ** np.arange(-6, 9, 3)
    return [
        EncodedTask(t.theta, s * t.z, NUMBERS, t.profile)
        for s, t in zip(sizes, past_tasks(5), strict=True)
    ]


def outside():
    return [EncodedTask(4 * t.theta - 1, t.z, NUMBERS, t.profile) for t in past_tasks(3)]


PASTS = [
    no_past,
    one_task,
    short_tasks,
    no_profiles,
    equal_scores,
    failures,
    mixed_metrics,
    outside,
]


def targets():
    yield target()
    yield target(1)
    yield EncodedTask(POINTS[:1], np.array([0.5]), NUMBERS)
    yield EncodedTask(POINTS[:4], np.full(4, 0.5), NUMBERS, data(50))
    yield EncodedTask(POINTS[:3], np.array([np.nan, 0.5, np.nan]), NUMBERS, data(50))
    yield EncodedTask(POINTS[:2], np.full(2, np.nan), NUMBERS)


def many_tasks():
    """500 tasks of 1 to 60 trials."""
    rng, tasks = np.random.default_rng(0), []
    profiles = [data(0, n) for n in range(20, 27)]
    for number in range(500):
        theta = rng.random((int(rng.integers(1, 61)), 2))
        tasks.append(EncodedTask(theta, rng.normal() + score(theta), NUMBERS, profiles[number % 7]))
    return tasks


def fit_quietly(surrogate, tasks):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing past trials
        return surrogate.fit(tasks)


def assert_predicts(surrogate, observed, points=POINTS):
    """Predictions are finite, with positive standard deviations."""
    mean, std = surrogate.posterior(observed).predict(points)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()


def assert_handles_past(surrogate, past):
    """It predicts, samples and compares for any target, also after a round trip of its state."""
    model = fit_quietly(surrogate, past)
    back = clone(model).set_state(model.get_state())
    assert_same_state(back.get_state(), model.get_state())
    for observed in targets():
        assert_predicts(model, observed)
        posterior, again = model.posterior(observed), back.posterior(observed)
        assert_same_prediction(again.predict(POINTS), posterior.predict(POINTS))
        draws = posterior.sample(POINTS, 3, np.random.default_rng(0))
        assert draws.shape == (3, len(POINTS))
        assert np.isfinite(draws).all()
        similarity = model.similarity(observed)
        assert_same_prediction(back.similarity(observed), similarity)
        assert len(similarity) == len(model.similarity_basis(observed)) == len(model.task_ids)
        assert ((similarity >= 0) & (similarity <= 1)).all()


def assert_handles_unknown_columns(surrogate):
    """A new category, a past category that does not exist any more, a new parameter."""
    categorical, rng = np.array([False, True, False]), np.random.default_rng(0)
    theta = np.column_stack([rng.random(20), np.repeat([0.0, -1.0], 10), np.full(20, 0.5)])
    past = [EncodedTask(theta, -abs(theta[:, 0] - 0.3), categorical, id=str(i)) for i in range(3)]
    points = np.column_stack([rng.random(9), np.tile([0.0, 0.5, 1.0], 3), rng.random(9)])
    model = surrogate.fit(past)
    assert_predicts(model, EncodedTask(points[:0], np.empty(0), categorical), points)
    assert_predicts(model, EncodedTask(points[:3], np.arange(3.0), categorical), points)
