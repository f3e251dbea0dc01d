"""TaskPrior with predictions from the data: helpful, misleading, and together with past tasks."""

from dataclasses import replace

import numpy as np
import pytest

from sktransfer import profile
from sktransfer.surrogates import EncodedTask, ScorePrior, TaskPrior
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.transported_past import GAIN_STRENGTH, fit_gain, predict_past
from tests.surrogates.comparisons import assert_same_prediction, assert_same_state

NUMBERS = np.array([False, False])
GRID = np.stack(np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9)), -1).reshape(-1, 2)
DATA = profile(np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2)


def bump(theta, best):
    return -(((theta - best) ** 2).sum(axis=1))


class Peaks(ScorePrior):
    """Predicts a peak at the place that the number of rows of a data set encodes."""

    def __init__(self, sign=1.0, strangeness=0.0, level=None):
        self.sign, self._strangeness, self._level = sign, strangeness, level

    def describe(self, profile):
        return None if profile is None else np.array([profile.n_rows / 1000, 0.5])

    def predict(self, theta, descriptions):
        mean = np.array([self.sign * 4 * (bump(theta, d) + 0.2) for d in descriptions])
        return mean, np.full_like(mean, 0.5)

    def level(self, description):
        return self._level

    def strangeness(self, description):
        return self._strangeness


class LearnedPeaks(Peaks):
    """The same, with a learned kernel: what it misses does not depend on the second column."""

    has_residual, residual_variance, residual_noise = True, 1.0, 0.005

    def correlation(self, theta, anchors, description):
        apart = (theta[:, None, 0] - anchors[None, :, 0]) / 0.5
        return np.exp(-0.5 * apart**2)


class SharedPeaks(LearnedPeaks):
    """The same, and what it misses on data sets is correlated if their peaks are near."""

    near = 0.7

    def shared(self, A, B):
        squares = (A[:, None, 0] - B[None, :, 0]) ** 2
        return self.near * np.exp(-np.where(np.isfinite(squares), squares, np.inf) / 0.01) + 0.05


def data_with_peak(x):
    return replace(DATA, n_rows=round(1000 * x))


def target(peak, n=0, seed=0, prior=None, actual=None):
    theta = np.random.default_rng(seed).random((n, 2))
    z = bump(theta, (actual or peak, 0.5))
    prior = Peaks() if prior is None else prior
    return EncodedTask(theta, z, NUMBERS, data_with_peak(peak), prior=prior)


def past_task(peak, actual=None, seed=0, prior=None):
    made = target(peak, n=20, seed=seed, prior=prior, actual=actual)
    return EncodedTask(
        made.theta, made.z, NUMBERS, made.profile, id=f"{peak} {seed}", prior=made.prior
    )


def best_guess(model, target):
    return GRID[model.posterior(target).predict(GRID)[0].argmax()]


@pytest.mark.parametrize("peak", [0.25, 0.75])
def test_prediction_alone_finds_the_best_setting(peak):
    model = TaskPrior().fit([])
    np.testing.assert_allclose(best_guess(model, target(peak)), [peak, 0.5], atol=0.01)
    assert model.hints(target(peak)).n_initial == 0


def test_prediction_is_not_used_without_pretrained():
    model = TaskPrior(pretrained=False).fit([])
    assert model.hints(target(0.25)).n_initial == model.n_initial and not model.uses_prior


def test_strange_data_are_not_predicted():
    model = TaskPrior().fit([])
    assert model.hints(target(0.25, prior=Peaks(strangeness=2.0))).n_initial == model.n_initial


def test_trials_correct_a_wrong_prediction():
    model = TaskPrior().fit([])
    guess = best_guess(model, target(0.1, n=25, actual=0.9))
    np.testing.assert_allclose(guess, [0.9, 0.5], atol=0.13)


@pytest.mark.parametrize("n_past", [0, 3])
def test_learned_kernel_tells_where_a_trial_says_something(n_past):
    past = [past_task(0.5, seed=seed, prior=LearnedPeaks()) for seed in range(n_past)]
    model = TaskPrior(guard=False).fit(past)
    other = replace(
        target(0.5, prior=LearnedPeaks()), theta=np.array([[0.2, 0.1]]), z=np.array([0.0])
    )
    column, row = np.array([[0.2, 0.9]]), np.array([[0.9, 0.1]])
    before = model.posterior(replace(other, theta=np.empty((0, 2)), z=np.empty(0)))
    after = model.posterior(other)
    shrunk = [
        after.predict(each)[1] / after.scale / (before.predict(each)[1] / before.scale)
        for each in (column, row)
    ]
    assert shrunk[0] < 0.75 * shrunk[1]


def test_few_past_tasks_change_a_learned_prediction_little():
    """What a prediction misses on other data is hardly what it misses on the target's."""
    guesses = []
    for prior in (Peaks(), LearnedPeaks()):
        past = [past_task(0.3, actual=0.55, seed=seed, prior=prior) for seed in range(2)]
        model = TaskPrior().fit(past)
        std = model.posterior(target(0.3, prior=prior)).predict(GRID)[1]
        guesses.append((best_guess(model, target(0.3, prior=prior))[0], std))
    assert abs(guesses[1][0] - 0.3) < 0.15
    # A learned deviation is that of the prediction, 0.5, and not that of the past tasks.
    assert np.ptp(guesses[1][1]) < np.ptp(guesses[0][1])


def test_similar_data_share_what_predictions_miss():
    """A past search tells more of the target if its data are similar, in absolute terms."""
    guesses = []
    for peak in (0.3, 0.45):  # the actual one of the past task is 0.2 farther
        past = [past_task(peak, actual=peak + 0.2, prior=SharedPeaks())]
        guesses.append(best_guess(TaskPrior().fit(past), target(0.3, prior=SharedPeaks()))[0])
    assert guesses[0] > guesses[1] + 0.05
    assert abs(guesses[1] - 0.3) < 0.1


def test_weights_are_those_of_the_best_linear_prediction():
    prior = SharedPeaks()
    past = [past_task(peak, seed=seed, prior=prior) for seed, peak in enumerate((0.3, 0.32, 0.9))]
    model = TaskPrior().fit(past)
    numbers, weights, rest = model._similar.nearest(target(0.3, prior=prior))
    peaks = np.array([[0.3], [0.32], [0.9]])[numbers]
    S, s = prior.shared(peaks, peaks), prior.shared(np.array([[0.3]]), peaks)[0]
    np.fill_diagonal(S, 1.0)
    np.testing.assert_allclose(weights, np.linalg.solve(S, s))
    np.testing.assert_allclose(rest, 1 - s @ np.linalg.solve(S, s))


def test_rest_is_that_of_the_weights_where_they_are_limited():
    prior = SharedPeaks()
    prior.near = 0.9
    past = [past_task(peak, prior=prior) for peak in (0.25, 0.35)]
    _, weights, rest = TaskPrior().fit(past)._similar.nearest(target(0.3, prior=prior))
    peaks = np.array([[0.25], [0.35]])
    S, s = prior.shared(peaks, peaks), prior.shared(np.array([[0.3]]), peaks)[0]
    np.fill_diagonal(S, 1.0)
    assert np.linalg.solve(S, s).sum() > 1
    np.testing.assert_allclose(weights, 0.5)
    np.testing.assert_allclose(rest, 1 - 2 * s @ weights + weights @ S @ weights)


def test_past_data_that_are_not_known_share_as_little_as_any():
    prior = SharedPeaks()
    unknown = replace(past_task(0.3, prior=prior), profile=None, id="unknown")
    model = TaskPrior().fit([past_task(0.9, prior=prior), unknown])
    numbers, weights, _ = model._similar.nearest(target(0.3, prior=prior))
    assert len(numbers) == 2
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-3)


class UsualPeaks(SharedPeaks):
    """The same, and average data have their peak in the middle."""

    usual = np.array([0.5, 0.5])


def test_past_tasks_on_unknown_data_leave_the_prediction():
    """Small tables are not described in the archive, so the first past searches may tell little."""
    prior = UsualPeaks()
    past = [replace(past_task(0.8, seed=i, prior=prior), profile=None) for i in range(2)]
    here = target(0.25, prior=prior)
    model = TaskPrior().fit(past)
    assert model.hints(here).n_initial == 0
    np.testing.assert_allclose(best_guess(model, here), [0.25, 0.5], atol=0.13)
    added = TaskPrior().fit(past[:1]).extend(past[1:])
    mixed = TaskPrior().fit(past).extend([past_task(0.3, seed=5, prior=prior)])
    for each in (added, mixed, TaskPrior().set_state(model.get_state())):
        np.testing.assert_allclose(best_guess(each, here), [0.25, 0.5], atol=0.13)
    assert set(model.similarity_basis(here)) == {"its trials only"}


def test_past_searches_on_a_part_of_the_rows_share_nearly_all():
    prior = SharedPeaks()
    past = [past_task(0.3, seed=seed, prior=prior) for seed in range(2)]
    model = TaskPrior().fit(past)
    other = target(0.3, prior=prior)
    weights = {
        contained: model._similar.nearest(replace(other, contained=contained)).weights.sum()
        for contained in ((), (past[0].id,), (past[0].id, past[1].id))
    }
    assert weights[()] < 0.9 < weights[past[0].id, past[1].id] <= 1.0
    assert weights[()] < weights[(past[0].id,)]


def test_level_of_prediction_is_that_of_the_scores():
    model = TaskPrior().fit([])
    found = model.posterior(target(0.25, prior=Peaks(level=(0.8, np.log(0.05)))))
    mean, _ = found.predict(GRID)
    assert 0.6 < mean.min() < 0.8 < mean.max() < 0.9


def test_levels_of_two_past_tasks_do_not_rule_out_another():
    """Two past tasks agree on a level by chance. A first score far below is no other unit."""
    prior = Peaks(level=(0.6, np.log(0.1)))
    past = [past_task(0.5, seed=seed, prior=prior) for seed in range(2)]
    past = [replace(each, z=0.9 + 0.1 * each.z) for each in past]
    model = TaskPrior().fit(past)
    level_std = model.posterior(target(0.5, prior=prior)).level_std
    assert level_std > 0.15
    first = replace(target(0.5, prior=prior), theta=np.array([[0.5, 0.5]]), z=np.array([0.5]))
    assert model.posterior(first).scale > 0.01


def test_prediction_without_a_level_has_no_unit_before_the_first_trial():
    model = TaskPrior().fit([])
    assert not model.posterior(target(0.25)).has_unit
    assert model.posterior(target(0.25, n=1)).has_unit
    assert model.posterior(target(0.25, prior=Peaks(level=(0.8, -3.0)))).has_unit


def test_past_tasks_are_compared_with_their_own_predictions():
    """Past peaks were 0.2 to the right of what their data predicted: the target's is too."""
    past = [past_task(p, actual=p + 0.25, seed=i) for i, p in enumerate((0.1, 0.3, 0.5, 0.2, 0.4))]
    model = TaskPrior().fit(past)
    np.testing.assert_allclose(best_guess(model, target(0.5)), [0.75, 0.5], atol=0.13)


def test_prediction_stands_where_past_searches_did_not_look():
    """Past trials are near the best settings only, as those of a search are."""
    past = []
    for i, peak in enumerate((0.3, 0.4, 0.5, 0.6)):
        theta = np.array([peak, 0.5]) + np.random.default_rng(i).uniform(-0.1, 0.1, (20, 2))
        z = bump(theta, (peak, 0.5))
        past.append(EncodedTask(theta, z, NUMBERS, data_with_peak(peak), id=str(i), prior=Peaks()))
    model, new = TaskPrior().fit(past), target(0.45)
    mean, _ = model.posterior(new).predict(GRID)
    [predicted], _ = new.prior.predict(GRID, np.array([[0.45, 0.5]]))
    assert np.corrcoef(mean, predicted)[0, 1] > 0.88


@pytest.mark.parametrize("peaks", [Peaks, SharedPeaks])
def test_predictions_of_another_direction_lose_their_gain(peaks):
    prior = peaks(sign=-1.0)
    past = [past_task(p, seed=i, prior=prior) for i, p in enumerate((0.45, 0.5, 0.55))]
    model = TaskPrior().fit(past * 4)
    assert float(model.learned_["gain"]) < 0.2
    found = model.posterior(target(0.5, prior=prior))
    np.testing.assert_allclose(best_guess(model, target(0.5, prior=prior)), [0.5, 0.5], atol=0.13)
    # That predictions are wrong does not make the scores certain.
    assert found.predict(GRID)[1].min() > 0.1 * found.scale


def test_past_tasks_on_other_data_do_not_change_the_prediction():
    """Their scores contradict the predictions, but nothing is learned from such data."""
    rng, past = np.random.default_rng(0), []
    for i in range(40):
        meta = {name: value + rng.normal() for name, value in DATA.meta_features.items()}
        data = replace(data_with_peak(0.5), meta_features=meta)
        past.append(replace(past_task(0.5, seed=i, prior=Peaks(sign=-1.0)), profile=data))
    prior = Peaks(sign=-1.0)
    far = {name: value + 1e3 for name, value in DATA.meta_features.items()}
    here = replace(
        target(0.5, prior=prior), profile=replace(data_with_peak(0.5), meta_features=far)
    )
    model = TaskPrior().fit(past)
    assert set(model.similarity_basis(here)) == {"excluded: no past data set is similar"}
    found, alone = (each.posterior(here).predict(GRID) for each in (model, TaskPrior().fit([])))
    np.testing.assert_allclose(found, alone)


def test_gain_is_shrunken_slope():
    tasks = [past_task(p, seed=i) for i, p in enumerate((0.2, 0.8))]
    past = PastTrials.from_tasks(tasks, "standardize")
    descriptions = np.array([[0.2, 0.5], [0.8, 0.5]])
    predicted = predict_past(Peaks(), past, descriptions)
    product = variance = GAIN_STRENGTH
    for number, h in enumerate(predicted):
        z = past.z[past.owner == number]
        product += np.mean((h - h.mean()) * (z - z.mean()))
        variance += h.var()
    assert fit_gain(past, predicted) == pytest.approx(product / variance)
    assert fit_gain(past, [None, None]) == 1.0


def test_past_tasks_without_profile_count_as_they_are():
    known = [past_task(0.5, seed=i) for i in range(4)]
    bare = [
        EncodedTask(t.theta, t.z, NUMBERS, None, id=f"b{i}", prior=Peaks())
        for i, t in enumerate(known)
    ]
    model = TaskPrior().fit(known + bare)
    np.testing.assert_allclose(best_guess(model, target(0.5)), [0.5, 0.5], atol=0.13)


def test_one_misleading_past_task_counts_little():
    model = TaskPrior().fit([past_task(0.8, actual=0.2)])
    assert best_guess(model, target(0.75))[0] > 0.35


@pytest.mark.parametrize("peaks", [Peaks, SharedPeaks])
def test_shuffled_past_scores_do_not_silence_the_prediction(peaks):
    rng = np.random.default_rng(0)
    past = []
    for i, p in enumerate(np.linspace(0.1, 0.9, 12)):
        each = past_task(p, seed=i, prior=peaks())
        past.append(
            EncodedTask(
                each.theta,
                rng.permutation(each.z),
                NUMBERS,
                each.profile,
                id=each.id,
                prior=each.prior,
            )
        )
    guess = best_guess(TaskPrior().fit(past), target(0.25, prior=peaks()))
    np.testing.assert_allclose(guess, [0.25, 0.5], atol=0.26)


@pytest.mark.parametrize("peaks", [Peaks, SharedPeaks])
def test_state_is_restored(peaks):
    past = [past_task(p, seed=i, prior=peaks()) for i, p in enumerate((0.2, 0.5, 0.8))]
    model = TaskPrior().fit(past)
    copy = TaskPrior().set_state(model.get_state())
    assert_same_state(model.get_state(), copy.get_state())
    here = target(0.4, n=4, prior=peaks())
    assert_same_prediction(copy.posterior(here).predict(GRID), model.posterior(here).predict(GRID))


class Places(Peaks):
    """Compares data sets, but predicts nothing."""

    has_scores = False


def test_embedding_without_scores_weighs_past_tasks():
    peaks = (0.1, 0.12, 0.14, 0.86, 0.88, 0.9)
    past = [past_task(p, seed=i, prior=Places()) for i, p in enumerate(peaks)]
    model = TaskPrior().fit(past)
    here = target(0.13, prior=Places())
    similarity = model.similarity(here)
    assert similarity[:3].min() > 2 * similarity[3:].max()
    assert set(model.similarity_basis(here)) == {"the pretrained embedding"}
    assert model.hints(here).restrict_to is not None  # as without pretrained predictions


class Scaled(Peaks):
    """The best setting moves with the scale of the data; predictions tell nothing about it."""

    def predict(self, theta, descriptions):
        mean = np.zeros((len(descriptions), len(theta)))
        return mean, mean + 0.5

    def offsets(self, descriptions):
        return np.column_stack([-descriptions[:, 0], np.zeros(len(descriptions))])


def test_past_settings_are_read_in_the_units_of_the_target():
    peaks = [0.2, 0.3, 0.4, 0.3]
    tasks = [past_task(peak, seed=i, prior=Scaled()) for i, peak in enumerate(peaks)]
    model = TaskPrior().fit(tasks)
    now = target(0.75, prior=Scaled())
    np.testing.assert_allclose(best_guess(model, now), [0.75, 0.5], atol=0.13)
    again = TaskPrior().set_state(model.get_state())
    ours, theirs = (each.posterior(now).predict(GRID) for each in (model, again))
    assert_same_prediction(ours, theirs)
    # Without the offset, past tasks speak for where their own best settings were.
    raw = TaskPrior().fit([replace(each, prior=None) for each in tasks])
    assert best_guess(raw, replace(now, prior=None))[0] < 0.5


def test_past_settings_of_strange_data_are_read_in_its_units():
    prior = Scaled(strangeness=2.0)
    tasks = [past_task(0.3, seed=i, prior=prior) for i in range(3)]
    hints = TaskPrior().fit(tasks).hints(target(0.75, prior=prior))
    assert abs(np.median(hints.restrict_to[:, 0]) - 0.75) < 0.2


def test_first_past_task_may_have_no_profile():
    tasks = [past_task(0.3, seed=i, prior=Scaled()) for i in range(4)]
    tasks[0] = replace(tasks[0], profile=None)
    now = target(0.3, prior=Scaled())
    mean, std = TaskPrior().fit(tasks).posterior(now).predict(GRID)
    assert np.isfinite(mean).all() and np.isfinite(std).all()
    assert abs(GRID[mean.argmax(), 0] - 0.3) < 0.13
