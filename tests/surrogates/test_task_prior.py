"""TaskPrior: formulas, weights, hyperparameters, exclusion of past tasks, guard."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import clone

from sktransfer import Space, Task, TransferOptimizer, profile
from sktransfer.archive import Selection
from sktransfer.model_selection._proposers import format_transfer_summary
from sktransfer.surrogates import EncodedTask
from sktransfer.surrogates import TaskPrior as AnyTaskPrior
from sktransfer.surrogates._core.feature_weights import fit_feature_weights
from sktransfer.surrogates._core.leave_one_out import (
    DEFAULT_HYPERPARAMETERS,
    kernel_weights,
    weighted_deviations,
)
from sktransfer.surrogates._core.model_averaging import AveragedPosterior
from sktransfer.surrogates._core.past_prior import PastPrior
from tests.surrogates.comparisons import assert_same_prediction, assert_same_state
from tests.surrogates.synthetic_tasks import SPACE

NUMBERS = np.array([False, False])
GRID = np.stack(np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9)), -1).reshape(-1, 2)
RNG = np.random.default_rng(0)
SMALL = profile(RNG.normal(size=(30, 3)), np.arange(30) % 2)
LARGE = profile(RNG.normal(size=(900, 12)), np.arange(900) % 5)


def TaskPrior(**params):
    """Without pretrained predictions, which these tests leave out."""
    return AnyTaskPrior(pretrained=False, **params)


def bump(theta, best):
    return -(((theta - best) ** 2).sum(axis=1))


def task(best, n=25, data=None, seed=0, scale=1.0, id=""):
    theta = np.random.default_rng([seed, int(1000 * best[0])]).random((n, 2))
    return EncodedTask(theta, scale * bump(theta, best), NUMBERS, profile=data, id=id)


def target(best=(0.5, 0.5), n=0, data=None, seed=9):
    theta = np.random.default_rng(seed).random((n, 2))
    return EncodedTask(theta, bump(theta, best), NUMBERS, profile=data)


def best_guess(model, target):
    return GRID[model.posterior(target).predict(GRID)[0].argmax()]


def test_kernel_weights_and_deviations_match_formulas():
    w = kernel_weights(np.array([0.0, 1.0, 4.0]), 1.0)
    np.testing.assert_allclose(w, np.exp([0, -0.5, -2]) / np.exp([0, -0.5, -2]).sum())
    np.testing.assert_allclose(kernel_weights(np.array([5.0, 9.0]), 1e3), [0.5, 0.5], rtol=1e-4)
    F = RNG.normal(size=(3, 4))
    D = weighted_deviations(w, F)
    expected = np.cov(
        F, rowvar=False, aweights=w, ddof=1
    )  # numpy's correction of a weighted covariance
    np.testing.assert_allclose(D.T @ D, expected, atol=1e-12)


def test_prior_moments_match_formula():
    model = TaskPrior(guard=False).fit([task((0.2, 0.3)), task((0.6, 0.7)), task((0.8, 0.2))])
    numbers, w, _ = model._similar.nearest(target())
    r = model.learned_["hyperparameters"][1]
    means = model._means(numbers, None, np.zeros((1, 1)))
    prior = PastPrior(means, w, r, 0.01)
    mean, variance, covariance = prior.moments(GRID, GRID[:5])
    F = means(GRID)
    np.testing.assert_allclose(mean, w @ F)
    D = F - w @ F
    between = (D * w[:, None]).T @ D[:, :5] / (1 - w @ w)
    residual = covariance - between
    np.testing.assert_allclose(np.diag(residual[:5]), r, rtol=1e-9)
    assert residual.max() <= r * (1 + 1e-9)
    np.testing.assert_allclose(variance[:5], np.diag(covariance[:5]), rtol=1e-9)


def test_interpolated_means_are_accurate(monkeypatch):
    past = [task(best, n=40, seed=i) for i, best in enumerate(RNG.random((8, 2)))]
    monkeypatch.setattr("sktransfer.surrogates._core.past_prior.MAX_POINTS", 60)  # of 320 trials
    model = TaskPrior().fit(past)
    exact, kept = (
        model._processes.mean(GRID),
        model._means(np.arange(8), None, np.zeros((1, 1)))(GRID),
    )
    assert np.abs(kept - exact).max() < 0.1 * np.ptp(exact)


def test_one_trial_identifies_similar_past_tasks():
    """With two kinds of past tasks, a single trial at the peak of one kind identifies the other."""
    past = [task((0.1, y), seed=i) for i, y in enumerate((0.4, 0.5, 0.6))]
    past += [task((0.9, y), seed=i) for i, y in enumerate((0.4, 0.5, 0.6))]
    model = TaskPrior(guard=False).fit(past)
    for best, other in ((0.1, 0.9), (0.9, 0.1)):
        seen = EncodedTask(np.array([[other, 0.5], [best, 0.5]]), np.array([-0.64, -0.0]), NUMBERS)
        assert abs(best_guess(model, seen)[0] - best) < 0.2


def test_similar_data_get_more_weight():
    near = [task((0.2, 0.2), data=SMALL, seed=i) for i in range(4)]
    far = [task((0.8, 0.8), data=LARGE, seed=i) for i in range(4)]
    model = TaskPrior().fit(near + far)
    np.testing.assert_allclose(best_guess(model, target(data=SMALL)), 0.2, atol=0.13)
    np.testing.assert_allclose(best_guess(model, target(data=LARGE)), 0.8, atol=0.13)
    similarity = model.similarity(target(data=SMALL))
    assert similarity[:4].min() == 1.0 and similarity[4:].max() < 0.5


def test_hyperparameters_are_learned_from_past_tasks():
    rng = np.random.default_rng(0)
    exact = [task(rng.random(2), seed=i) for i in range(6)]
    noisy = [replace(each, z=each.z + 0.1 * rng.standard_normal(len(each.z))) for each in exact]
    noise = [TaskPrior().fit(past).learned_["hyperparameters"][2] for past in (exact, noisy)]
    assert noise == [0.001, 0.1]
    np.testing.assert_array_equal(
        TaskPrior().fit([task((0.5, 0.5))]).learned_["hyperparameters"],
        DEFAULT_HYPERPARAMETERS,
    )


def shuffled(task, seed=0):
    return replace(task, z=np.random.default_rng(seed).permutation(task.z))


def test_noisy_looking_past_is_excluded():
    past = [task((0.3 + 0.02 * i, 0.5), seed=i, id=str(i)) for i in range(12)]
    model = TaskPrior().fit([shuffled(each, i) for i, each in enumerate(past)])
    assert model.posterior(target()) is None and model.hints(target(n=2)).first_settings is None
    assert model.hints(target()).restrict_to is None and not model.similarity(target(n=6)).any()
    assert set(model.similarity_basis(target())) == {"excluded: past scores look like noise"}
    expected = model.fallback_.posterior(target(n=6)).predict(GRID)
    assert_same_prediction(model.posterior(target(n=6)).predict(GRID), expected)
    back = clone(model).set_state(model.get_state())
    assert not back.similarity(target(n=6)).any()


def test_search_with_excluded_past_equals_search_without():
    tasks = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        theta = rng.random((20, 2))
        z = rng.permutation(bump(theta, (0.6, 0.4)))
        tasks.append(
            Task.from_trials(
                SPACE, [({"a": a, "b": b}, s) for (a, b), s in zip(theta, z, strict=True)]
            )
        )
    misled, without = (TransferOptimizer(SPACE, past, random_state=0) for past in (tasks, []))
    for _ in range(8):
        [ours], [theirs] = misled.ask(), without.ask()
        assert ours == theirs
        for optimizer in (misled, without):
            optimizer.tell(ours, float(bump(np.array([[ours["a"], ours["b"]]]), (0.2, 0.8))[0]))
    assert format_transfer_summary(misled, Selection((), ())).startswith(
        "None of 12 past searches is used (past scores look like noise)"
    )


def test_few_or_short_past_tasks_are_never_called_noise():
    past = [task((0.3 + 0.02 * i, 0.5), seed=i) for i in range(12)]
    noise = [shuffled(each, i) for i, each in enumerate(past)]
    short = [replace(each, theta=each.theta[:4], z=each.z[:4]) for each in noise]
    for past_tasks in (past, noise[:9], short, past[:8] + noise[:4]):
        assert TaskPrior().fit(past_tasks).similarity(target(n=2)).any()


def test_moderately_noisy_past_is_used():
    rng = np.random.default_rng(0)
    past = [task((0.3 + 0.02 * i, 0.5), seed=i) for i in range(12)]
    past = [replace(each, z=each.z + 0.5 * each.z.std() * rng.standard_normal(25)) for each in past]
    model = TaskPrior().fit(past)
    assert model.similarity(target()).any()
    assert np.abs(best_guess(model, target()) - [0.4, 0.5]).max() < 0.2


def test_task_prior_ignores_scales_of_past_scores():
    one = TaskPrior().fit([task((0.3, 0.7), seed=i) for i in range(4)])
    other = TaskPrior().fit([task((0.3, 0.7), seed=i, scale=10.0**i) for i in range(4)])
    assert tuple(best_guess(one, target())) == tuple(best_guess(other, target()))


def test_guard_keeps_helpful_past_and_drops_misleading_one():
    past = [task((0.5, 0.5), seed=i) for i in range(5)]
    model = TaskPrior().fit(past)
    true, false = (model.posterior(target(best, n=15)) for best in ((0.5, 0.5), (0.0, 1.0)))
    assert isinstance(true, AveragedPosterior) and true.weight > 0.5
    assert false.weight < true.weight
    assert model.similarity(target((0.0, 1.0), n=15)).max() == pytest.approx(false.weight)
    assert not isinstance(
        TaskPrior(guard=False).fit(past).posterior(target(n=15)),
        AveragedPosterior,
    )


def test_task_prior_avoids_failures():
    past = [task((0.5, 0.5), seed=i) for i in range(5)]
    here = target((0.5, 0.5), n=12)
    fails = here.theta[:, 0] > 0.4
    failed = replace(here, z=np.where(fails, np.nan, here.z))
    assert 0 < fails.sum() < 12
    assert best_guess(TaskPrior().fit(past), here)[0] > 0.4
    assert best_guess(TaskPrior().fit(past), failed)[0] <= 0.4
    # With one success, failures are worse on the scale of the past, whatever the unit of its
    # scores.
    once = replace(failed, z=np.where(np.arange(12) == fails.argmin(), here.z, np.nan))
    for unit in (1e-3, 1e3):
        model = TaskPrior(guard=False).fit([replace(each, z=unit * each.z) for each in past])
        predicted = model.posterior(replace(once, z=unit * once.z)).predict(once.theta)[0] / unit
        assert predicted.argmax() == fails.argmin() and np.ptp(predicted) < 3 * np.ptp(here.z)
    # Before the first success there is no score that a failure could be worse than.
    nothing = replace(here, z=np.full(12, np.nan))
    mean, _ = TaskPrior().fit(past).posterior(nothing).predict(GRID)
    assert np.isfinite(mean).all()


def test_max_tasks_selects_most_similar_tasks():
    past = [task((0.5, 0.5), data=SMALL if i < 3 else LARGE, seed=i, id=str(i)) for i in range(6)]
    model = TaskPrior(max_tasks=3).fit(past)
    assert np.flatnonzero(model.similarity(target(data=LARGE))).tolist() == [3, 4, 5]
    words = model.similarity_basis(target(data=LARGE))
    assert words[0].startswith("excluded") and words[3].endswith("meta-features")
    few = replace(LARGE, meta_features={"log_rows": 3.0})  # as for text data
    assert sorted(model.similarity_basis(target(data=few)))[:3] == ["1 meta-features"] * 3
    assert TaskPrior().fit(past[:1]).similarity_basis(target(data=few)) == ["its trials only"]


def test_predictive_features_get_more_weight():
    rng = np.random.default_rng(1)
    features = rng.random((20, 3))
    functions = np.array([bump(GRID, (f, 0.5)) for f in features[:, 1]])
    weights = fit_feature_weights(features, functions)
    assert weights[1] > 2 * max(weights[0], weights[2]) > 0
    np.testing.assert_array_equal(
        fit_feature_weights(features[:4], functions[:4]), 1
    )  # too few tasks
    np.testing.assert_array_equal(fit_feature_weights(features, functions * 0), 1)  # no differences


def test_second_trial_complements_the_first():
    past = [task((0.2, 0.5), seed=i, id=str(i)) for i in range(4)]
    past += [task((0.8, 0.5), seed=i, id=str(i)) for i in (8, 9)]
    model = TaskPrior().fit(past)
    first = EncodedTask(np.array([[0.2, 0.5]]), np.array([0.3]), NUMBERS)
    hints = model.hints(first)
    assert hints.first_settings[0, 0] > 0.6 and hints.sources[0] in ("8", "9")


def test_portfolio_continues_on_plateau():
    model = TaskPrior().fit([task((0.2 + 0.1 * i, 0.5), seed=i) for i in range(7)])
    theta = np.random.default_rng(0).random((6, 2))

    def has_portfolio(*z):
        seen = EncodedTask(theta[: len(z)], np.array(z, dtype=float), NUMBERS)
        return model.hints(seen).first_settings is not None

    assert has_portfolio(*[0.5] * 6) and has_portfolio(0.5, 0.4, 0.5, 0.5, 0.3, 0.5)
    assert (
        not has_portfolio(*range(6))
        and not has_portfolio(*[0.5] * 5, 0.6)
        and not has_portfolio(*[0.5] * 5, np.nan)
    )
    assert not has_portfolio()  # the first trial is the prior's


def seen_as(*z, seed=0):
    """A target with these scores."""
    theta = np.random.default_rng(seed).random((len(z), 2))
    return EncodedTask(theta, np.array(z, dtype=float), NUMBERS)


@pytest.mark.parametrize("n_tasks", [1, 2, 3])
def test_past_tasks_choose_as_many_first_trials_as_there_are(n_tasks):
    model = TaskPrior().fit([task((0.2 + 0.2 * i, 0.5), seed=i) for i in range(n_tasks)])
    scores = [-0.01, -0.2, -0.1, -0.3, -0.2, -0.1]
    filled = [n for n in range(7) if model.hints(seen_as(*scores[:n])).n_initial > n]
    assert filled == list(range(n_tasks, 5))  # without past tasks, the first 4 trials


def test_far_worse_first_score_than_predicted_gives_the_space_filling_start_back():
    model = TaskPrior().fit([task((0.4 + 0.05 * i, 0.5), seed=i) for i in range(4)])
    first = EncodedTask(np.array([[0.5, 0.5]]), np.array([-0.01]), NUMBERS)
    assert model.hints(first).first_settings is not None
    surprise = replace(first, z=np.array([-9.0]))
    hints = model.hints(surprise)
    assert hints.n_initial == 2 and hints.first_settings is None
    # A score above the prediction is none to be worried about.
    assert model.hints(replace(first, z=np.array([9.0]))).first_settings is not None


def test_start_with_one_past_task_has_all_settings_of_the_start_without():
    past = Task.from_trials(SPACE, [(p, -p["a"]) for p in Space.parse(SPACE).sample(9, 0)])
    starts = []
    for tasks in ([past], []):
        optimizer = TransferOptimizer(SPACE, tasks, surrogate=TaskPrior(), random_state=0)
        for n in range(5):
            [params] = optimizer.ask()
            optimizer.tell(params, -0.1 * n)
            starts.append(params)
    assert starts[1:5] == starts[5:9]


def test_equal_scores_fill_the_space_after_as_many_trials_as_past_tasks():
    model = TaskPrior().fit([task((0.2 + 0.1 * i, 0.5), seed=i) for i in range(5)])
    assert model.hints(seen_as(*[-0.1] * 4)).n_initial == 0
    assert model.hints(seen_as(*[-0.1] * 5)).n_initial == 6
    assert model.hints(seen_as(*[-0.1] * 5, -0.101)).n_initial == 7  # nearly equal
    assert model.hints(seen_as(*[-0.1] * 5, -0.3)).n_initial == 0
    assert model.hints(seen_as(*[-0.1] * 10, -0.101)).n_initial == 0


def test_one_past_task_has_less_prior_weight_than_three():
    first = EncodedTask(np.array([[0.5, 0.5]]), np.array([-0.01]), NUMBERS)
    averaged = [
        TaskPrior(n_initial=1).fit([task((0.5, 0.5), seed=i) for i in range(n)]).posterior(first)
        for n in (1, 3)
    ]
    odds = [posterior.weight / (1 - posterior.weight) for posterior in averaged]
    assert odds[0] < 0.5 * odds[1]


def test_plain_gp_is_no_alternative_before_it_would_be_used_alone():
    model = TaskPrior().fit([task((0.5, 0.5), seed=i) for i in range(3)])
    z = np.array([-0.01, -0.3, -0.2, -0.1])
    theta = np.array([[0.5, 0.5], [0.1, 0.9], [0.8, 0.2], [0.3, 0.3]])
    posteriors = [model.posterior(EncodedTask(theta[:n], z[:n], NUMBERS)) for n in (1, 3, 4)]
    assert [hasattr(each, "weight") for each in posteriors] == [False, False, True]


def test_search_recovers_from_one_misleading_past_task():
    """Good settings are where the past task had its worst ones, and the rest is a plain."""
    space = {"a": uniform(), "b": uniform()}
    drawn = Space.parse(space).sample(20, 1)
    trials = [(p, 0.97 - 0.05 * np.hypot(p["a"] - 0.9, p["b"] - 0.9)) for p in drawn]
    past = Task.from_trials(space, trials)
    found = []
    for seed in range(4):
        optimizer = TransferOptimizer(space, [past], surrogate=TaskPrior(), random_state=seed)
        for _ in range(12):
            [params] = optimizer.ask()
            distance = np.hypot(params["a"] - 0.25, params["b"] - 0.3)
            optimizer.tell(params, 0.1 + 0.85 * max(0.0, 1 - 2 * distance))
        found.append(optimizer.best_score)
    assert min(found) > 0.7


def test_unknown_column_is_constant_for_the_past():
    """Two past tasks know column 1 only in the middle, because they do not have the parameter."""

    def without_second(seed):
        made = task((0.3, 0.5), seed=seed)
        theta = np.column_stack([made.theta[:, 0], np.full(25, 0.5)])
        return replace(made, theta=theta, unknown=np.array([False, True]))

    model = TaskPrior(guard=False).fit([without_second(0), without_second(1)])
    along = np.column_stack([np.full(9, 0.3), np.linspace(0, 1, 9)])
    mean, std = model.posterior(target()).predict(along)
    np.testing.assert_allclose(mean, mean[0], atol=1e-3)
    across, _ = model.posterior(target()).predict(along[:, ::-1])
    assert np.ptp(across) > 0.01
    # One trial of the target tells about its own surroundings only.
    seen = replace(target(), theta=along[:1], z=np.array([0.5]))
    mean, std = model.posterior(seen).predict(along)
    assert std[0] < 0.5 * std[-1]


def test_low_score_is_the_effect_of_the_unknown_column():
    """A low score where the past expects a good one makes its value of the column bad for all."""
    codes = [np.random.default_rng(seed).random((25, 2)) for seed in range(3)]
    past = [
        EncodedTask(theta, -((theta[:, 0] - 0.7) ** 2), NUMBERS, unknown=np.array([False, True]))
        for theta in codes
    ]
    first = EncodedTask(np.array([[0.7, 0.1]]), np.array([-0.3]), NUMBERS)
    posterior = TaskPrior().fit(past).posterior(first)
    line = np.linspace(0, 1, 21)
    same, other = (
        posterior.predict(np.column_stack([line, np.full(21, value)]))[0] for value in (0.1, 0.9)
    )
    assert (same < other).all()  # also where the known column is far from the trial
    assert abs(line[other.argmax()] - 0.7) <= 0.1  # what the past knows is kept


def test_first_trials_spread_unknown_columns():
    made = [task((0.2 + 0.1 * i, 0.5), seed=i) for i in range(6)]
    past = [replace(each, unknown=np.array([False, True])) for each in made]
    model = TaskPrior().fit(past)
    settings = [model.hints(target()).restrict_to]
    settings += [model.hints(seen_as(*[-0.1] * n)).first_settings for n in (1, 2, 3, 4)]
    values = [np.unique(each[:, 1]) for each in settings]
    assert all(len(each) == 1 for each in values)
    assert np.ptp(np.concatenate(values)) > 0.5


def test_contained_past_task_counts_most():
    past = [task((0.2, 0.5), seed=i, id=str(i)) for i in range(4)] + [task((0.8, 0.5), id="last")]
    model = TaskPrior().fit(past)
    plain, weekly = target(), replace(target(), contained=frozenset({"last"}))
    assert best_guess(model, plain)[0] < 0.5 < best_guess(model, weekly)[0]
    similarity = model.similarity(weekly)
    assert similarity[-1] == 1.0 and similarity[:-1].max() < 0.1
    best = past[-1].theta[np.argsort(-past[-1].z)[:3]]
    np.testing.assert_array_equal(model.hints(weekly).restrict_to, best)


def test_first_trial_is_restricted_to_best_past_settings():
    past = [task((0.2, 0.5), seed=i) for i in range(3)] + [task((0.8, 0.5), seed=9)]
    choices = TaskPrior().fit(past).hints(target()).restrict_to
    best = np.vstack([each.theta[np.argsort(-each.z)[:3]] for each in past])
    np.testing.assert_array_equal(choices, best)
    assert TaskPrior().fit([]).hints(target()).restrict_to is None


def test_dissimilar_target_ignores_past_tasks():
    sets = [profile(RNG.normal(size=(40 + 3 * i, 3)), np.arange(40 + 3 * i) % 2) for i in range(30)]
    past = [
        task((0.2 + 0.02 * i, 0.5), data=data, seed=i, id=str(i)) for i, data in enumerate(sets)
    ]
    model = TaskPrior().fit(past)
    wide = profile(1e6 * RNG.normal(size=(50, 900)) ** 3, np.arange(50) % 9)
    assert (
        model.posterior(target(data=wide)) is None
        and model.hints(target(n=2, data=wide)).first_settings is None
    )
    assert not model.similarity(target(data=wide)).any()
    assert set(model.similarity_basis(target(data=wide))) == {
        "excluded: no past data set is similar"
    }
    expected = model.fallback_.posterior(target(n=6)).predict(GRID)
    assert_same_prediction(model.posterior(target(n=6, data=wide)).predict(GRID), expected)
    assert model.similarity(target(data=sets[3])).any()
    assert TaskPrior().fit(past[1:]).similarity(target(data=wide)).any()  # too few past tasks


def test_tasks_without_profile_have_equal_similarity():
    model = TaskPrior().fit(
        [task((0.5, 0.5), data=SMALL), task((0.4, 0.5)), task((0.6, 0.5), data=LARGE)]
    )
    assert model.similarity(target()).tolist() == [1.0, 1.0, 1.0]
    assert model.similarity_basis(target()) == ["its trials only"] * 3


def test_task_prior_without_past_is_plain_gp_without_warning(recwarn):
    model = TaskPrior().fit([])
    assert not recwarn.list and model.hints(target()).n_initial == 4
    expected = model.fallback_.posterior(target(n=6)).predict(GRID)
    assert_same_prediction(model.posterior(target(n=6)).predict(GRID), expected)


def test_task_prior_state_round_trip():
    model = TaskPrior().fit(
        [task((0.3, 0.6), data=SMALL), task((0.4, 0.5), data=LARGE), task((0.6, 0.5))]
    )
    again = clone(model).set_state(model.get_state())
    assert_same_state(again.get_state(), model.get_state())
    for seen in (target(data=SMALL), target(n=5, data=LARGE)):
        assert_same_prediction(
            again.posterior(seen).predict(GRID), model.posterior(seen).predict(GRID)
        )


@pytest.mark.parametrize(
    ("name", "value"), [("max_tasks", 0), ("max_trials", 0), ("kernel", "cubic")]
)
def test_task_prior_rejects_invalid_parameters(name, value):
    with pytest.raises(ValueError, match=name):
        TaskPrior(**{name: value}).fit([])


def test_extension_adds_processes_and_keeps_what_is_shared():
    data = [SMALL, LARGE]
    tasks = [task((0.3 + 0.04 * i, 0.5), data=data[i % 2], id=f"t{i}") for i in range(12)]
    failed = replace(tasks[0], z=np.full(25, np.nan), id="failed")
    fitted = TaskPrior().fit(tasks[:10])
    extended = TaskPrior().set_state(fitted.get_state()).extend([tasks[10], failed, tasks[11]])
    whole = TaskPrior().fit([*tasks[:11], failed, tasks[11]])
    assert extended.task_ids == whole.task_ids == [*(f"t{i}" for i in range(11)), "failed", "t11"]
    for name in ("hyperparameters", "feature_weights", "units"):
        np.testing.assert_array_equal(extended.learned_[name], fitted.learned_[name])
    np.testing.assert_allclose(extended.learned_["h"], whole.learned_["h"], atol=1e-6)
    here = target(n=3, data=SMALL)
    assert extended.similarity(here)[11] == 0  # it has no successful trial
    mean, std = extended.posterior(here).predict(GRID)
    expected, _ = whole.posterior(here).predict(GRID)
    np.testing.assert_allclose(mean, expected, atol=0.3 * np.median(std))


def test_extension_of_a_model_without_past_trials_is_a_fit():
    failed = replace(task((0.5, 0.5)), z=np.full(25, np.nan), id="failed")
    tasks = [task((0.6, 0.5), id="a", seed=1), task((0.7, 0.5), id="b", seed=2)]
    extended, whole = TaskPrior().fit([failed]).extend(tasks), TaskPrior().fit([failed, *tasks])
    assert_same_prediction(*(m.posterior(target()).predict(GRID) for m in (extended, whole)))
    assert extended.task_ids == ["failed", "a", "b"]
