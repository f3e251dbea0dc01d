"""Every transfer surrogate uses helpful past tasks and overcomes misleading ones."""

import numpy as np
import pytest

from sktransfer.surrogates import make_surrogate
from tests.surrogates.synthetic_tasks import past_tasks, score, search, target

# dist-gp and dist-blr, which need data to compare, are in test_joint.
NAMES = [
    "ablr",
    "box",
    "common-surface",
    "copula-gp",
    "copula-ts",
    "dklm",
    "fsbo",
    "rgpe",
    "scot",
    "task-prior",
    "tst",
]
SEEDS = (0, 1, 2)
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
def test_helpful_past_beats_no_past(name):
    helped = np.mean([search(name, past_tasks(), 8, seed) for seed in SEEDS], axis=0)
    without = np.mean([search(name, [], 8, seed) for seed in SEEDS], axis=0)
    assert helped.mean() > without.mean()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", [{"sign": -1.0}, {"shuffled": True}])
def test_misleading_past_is_overcome(name, how):
    assert search(name, past_tasks(**how), 25)[-1] > 0.97


@pytest.mark.parametrize("name", NAMES)
def test_predictions_depend_on_direction_of_scores(name):
    theta = np.random.default_rng(1).random((200, 2))

    def favorite(tasks):
        surrogate, observed = make_surrogate(name).fit(tasks), target(trials=2)
        settings = surrogate.hints(target()).first_settings
        if settings is not None and len(settings):  # a kernel has no direction, first trials have
            return settings[0]
        region = surrogate.hints(observed).region
        inside = theta if region is None else theta[region.contains(theta)]
        return inside[np.argmax(surrogate.posterior(observed).predict(inside)[0])]

    right, wrong = favorite(past_tasks()), favorite(past_tasks(sign=-1.0))
    assert np.abs(right - wrong).max() > 0.1
    assert score(right) > score(wrong)
