"""SCoT: only the order of scores counts, the target's trials are ranked, unusual input."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates import EncodedTask, SCoT
from sktransfer.surrogates.reference.scot import _RankedTrials, _ranks
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


def test_pairs_are_within_task_and_not_tied():
    trials = _RankedTrials(np.zeros((5, 3)), np.array([0, 1, 1, 1, 0]), np.array([0, 0, 0, 3, 3]))
    better, worse = trials.pairs()
    assert sorted(zip(better.tolist(), worse.tolist(), strict=True)) == [(1, 0), (2, 0), (3, 4)]


def test_ranks_tie_failures_below_the_rest():
    assert _ranks(np.array([0.5, np.nan, 0.1, 0.5, np.nan])).tolist() == [2, 0, 1, 2, 0]


def test_ranker_finds_common_order():
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


def test_scot_uses_only_order_of_past_scores():
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


def test_target_trials_change_latent_scores():
    model = SCoT(guard=False).fit(past_tasks(3))
    theta = np.random.default_rng(0).random((25, 2))
    right = model.posterior(EncodedTask(theta, score(theta), NUMBERS, data(50)))
    wrong = model.posterior(EncodedTask(theta, -score(theta), NUMBERS, data(50)))
    truth = score(POINTS)
    assert spearmanr(right.predict(POINTS)[0], truth)[0] > 0.9
    assert spearmanr(wrong.predict(POINTS)[0], truth)[0] < 0.75


def test_scot_guard_excludes_misleading_past():
    model, observed = SCoT().fit(past_tasks()), target(12)
    negated = SCoT().fit(past_tasks(sign=-1.0)).posterior(observed)
    assert negated.weight < 0.05 < 0.3 < model.posterior(observed).weight
    assert search(SCoT(guard=False), past_tasks(sign=-1.0), 4)[-1] < 0.5


def test_scot_predicts_on_scale_of_scores():
    theta = np.random.default_rng(0).random((15, 2))
    observed = EncodedTask(theta, 500 + 20 * score(theta), NUMBERS, data(50))
    posterior = SCoT(guard=False).fit(past_tasks()).posterior(observed)
    apart = np.abs(posterior.predict(POINTS)[0] - 500 - 20 * score(POINTS))
    assert np.median(apart) < 5  # the scores' own deviation is 8
    best = int(observed.z.argmax())  # its score is the value to beat
    assert abs(posterior.predict(theta[[best]])[0][0] - observed.z[best]) < 4


def test_scot_ranks_nearest_tasks_first():
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
def test_scot_handles_any_past_and_target(past):
    assert_handles_past(SCoT(), past())


def test_scot_handles_unknown_columns():
    assert_handles_unknown_columns(SCoT())


def test_scot_fits_many_tasks():
    model = SCoT().fit(many_tasks())
    assert_predicts(model, target(3))
    assert model.posterior(target()).predict(np.array([[0.75, 0.3], [0.1, 0.9]]))[0].argmax() == 0


def test_scot_without_past_warns():
    with pytest.warns(
        SurrogateWarning, match="SCoT has no past trials .* a plain Gaussian process"
    ):
        SCoT().fit([])
    assert fit_quietly(SCoT(), []).hints(target()).n_initial == 4


@pytest.mark.parametrize(
    "bad", [{"C": 0}, {"C": float("nan")}, {"kernel": "rbf"}, {"max_trials": 0}, {"n_features": 0}]
)
def test_scot_rejects_invalid_parameters(bad):
    [name] = bad
    with pytest.raises(ValueError, match=f"{name}="):
        SCoT(**bad).fit(past_tasks(1))
