"""SCoT: the order of scores is all that counts, the target has a say in the ranks, bad input is met."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from sktransfer.surrogates import EncodedTask, SCoT
from sktransfer.surrogates.reference.scot import _ranks, _RankedTrials
from tests.surrogates.edge_cases import (
    PASTS,
    POINTS,
    assert_handles_past,
    assert_handles_unknown_columns,
    assert_predicts,
    fit_quietly,
    many_tasks,
)
from tests.surrogates.synthetic_tasks import NUMBERS, data, past_tasks, score, search, target


def test_pairs_are_within_a_task_and_not_tied():
    trials = _RankedTrials(np.zeros((5, 3)), np.array([0, 1, 1, 1, 0]), np.array([0, 0, 0, 3, 3]))
    better, worse = trials.pairs()
    assert sorted(zip(better.tolist(), worse.tolist(), strict=True)) == [(1, 0), (2, 0), (3, 4)]


def test_failures_are_tied_below_the_rest():
    assert _ranks(np.array([0.5, np.nan, 0.1, 0.5, np.nan])).tolist() == [2, 0, 1, 2, 0]


def test_the_ranker_finds_the_common_order():
    model = SCoT().fit(past_tasks(8))
    trials = model._past_trials(np.arange(len(model.past_.z)))
    latent = model._rank(trials)
    for task in range(8):
        own = trials.owner == task
        assert spearmanr(latent[own], trials.ranks[own])[0] > 0.95
    within = np.concatenate(
        [latent[trials.owner == t] - latent[trials.owner == t].mean() for t in range(8)]
    )
    assert within.std() == pytest.approx(1)


def test_only_the_order_of_past_scores_counts():
    def first(tasks):
        return SCoT().fit(tasks).posterior(target(3))

    tasks = past_tasks(5)
    bent = [
        EncodedTask(t.theta, np.exp(3 * (t.z - 10 * i)), NUMBERS, t.profile)
        for i, t in enumerate(tasks)
    ]
    ranks = [
        SCoT()
        .fit(each)
        ._prior(np.full(3, 0.5))
        ._gp.predict(np.hstack([POINTS, np.full((30, 3), 0.5)]))
        for each in (tasks, bent)
    ]
    np.testing.assert_allclose(ranks[0], ranks[1])
    assert first(tasks).predict(POINTS)[0].argmax() == first(bent).predict(POINTS)[0].argmax()


def test_the_targets_trials_change_the_ranks():
    model = SCoT(guard=False).fit(past_tasks(3))
    theta = np.random.default_rng(0).random((25, 2))
    right = model.posterior(EncodedTask(theta, score(theta), NUMBERS, data(50)))
    wrong = model.posterior(EncodedTask(theta, -score(theta), NUMBERS, data(50)))
    truth = score(POINTS)
    assert spearmanr(right.predict(POINTS)[0], truth)[0] > 0.9
    assert spearmanr(wrong.predict(POINTS)[0], truth)[0] < 0.75


def test_a_past_that_misleads_is_noticed():
    model, today = SCoT().fit(past_tasks()), target(12)
    negated = SCoT().fit(past_tasks(sign=-1.0)).posterior(today)
    assert negated.weight < 0.05 < 0.3 < model.posterior(today).weight
    assert search(SCoT(guard=False), past_tasks(sign=-1.0), 4)[-1] < 0.5


def test_predictions_are_on_the_scale_of_the_scores():
    theta = np.random.default_rng(0).random((15, 2))
    today = EncodedTask(theta, 500 + 20 * score(theta), NUMBERS, data(50))
    belief = SCoT(guard=False).fit(past_tasks()).posterior(today)
    apart = np.abs(belief.predict(POINTS)[0] - 500 - 20 * score(POINTS))
    assert np.median(apart) < 5  # the scores' own deviation is 8
    best = int(today.z.argmax())  # whose score is what the next trial has to beat
    assert abs(belief.predict(theta[[best]])[0][0] - today.z[best]) < 4


def test_there_is_room_for_the_nearest_tasks():
    tasks = [
        EncodedTask(POINTS, score(POINTS), NUMBERS, data(i, n), str(n))
        for i, n in enumerate([900, 40, 90, 400])
    ]
    model = SCoT(max_trials=45).fit(tasks)
    words = model.similarity_basis(EncodedTask(np.empty((0, 2)), np.empty(0), NUMBERS, data(9, 95)))
    used = [int(word.split("; ")[1].split(" of ")[0]) for word in words]
    assert used == [0, 15, 30, 0]
    assert words[2].startswith("numbers of rows, columns, classes; 30 of its 30")


@pytest.mark.parametrize("past", PASTS)
def test_any_past_and_target(past):
    assert_handles_past(SCoT(), past())


def test_unknown_categories_and_parameters():
    assert_handles_unknown_columns(SCoT())


def test_many_tasks_of_different_lengths():
    model = SCoT().fit(many_tasks())
    assert_predicts(model, target(3))
    assert model.posterior(target()).predict(np.array([[0.75, 0.3], [0.1, 0.9]]))[0].argmax() == 0


def test_no_past_is_said():
    with pytest.warns(
        UserWarning, match="SCoT has no past trials .* a Gaussian process on the target"
    ):
        SCoT().fit([])
    assert fit_quietly(SCoT(), []).hints(target()).n_initial == 4


@pytest.mark.parametrize(
    "bad", [{"C": 0}, {"C": float("nan")}, {"kernel": "rbf"}, {"max_trials": 0}, {"n_features": 0}]
)
def test_parameters_are_checked_at_fit(bad):
    [name] = bad
    with pytest.raises(ValueError, match=f"{name}="):
        SCoT(**bad).fit(past_tasks(1))
