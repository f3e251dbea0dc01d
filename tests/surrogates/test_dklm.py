"""dklm, fsbo and deep-gp: formulas, the paper's sines, unusual past tasks, state."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone

from benchmarks import sines
from sktransfer.exceptions import SurrogateWarning
from sktransfer.surrogates import DKLM, EncodedTask, make_surrogate
from sktransfer.surrogates._core import deep_kernel as module
from sktransfer.surrogates._core.gaussian_process import GaussianProcess
from sktransfer.surrogates._core.past_trials import PastTrials
from sktransfer.surrogates._core.portfolio import select_portfolio
from sktransfer.surrogates._core.torch_kernels import log_likelihood
from sktransfer.utils._scores import clip_low_outliers, standardize
from tests.surrogates.comparisons import assert_same_prediction, assert_same_state
from tests.surrogates.synthetic_tasks import NUMBERS, past_tasks, score, search, target

NAMES = ["dklm", "fsbo", "deep-gp"]
POINTS = np.random.default_rng(1).random((7, 2))


def quick(name="dklm", **settings):
    return make_surrogate(name).set_params(**{"steps": 3, "adapt_steps": 3} | settings)


def shuffled(task):
    order = np.random.default_rng(3).permutation(len(task.z))
    return EncodedTask(task.theta[order], task.z[order], task.categorical)


def fit_of(w, trials):
    mean, K = module.prior_moments(w, trials, trials)
    return log_likelihood(K, trials.z - mean)


# -- mathematics -----------------------------------------------------------------------------------


def test_landmark_features_ignore_order_of_trials():
    surrogate = quick(guard=False, prior=False).fit(past_tasks(4))
    observed = target(9)
    features = surrogate.landmark_features(observed)
    np.testing.assert_allclose(
        surrogate.landmark_features(shuffled(observed)), features, rtol=1e-10
    )
    other = EncodedTask(
        observed.theta, observed.z[::-1].copy(), NUMBERS
    )  # the same scores at other settings
    assert np.abs(surrogate.landmark_features(other) - features).max() > 1e-3
    for ours, theirs in zip(
        surrogate.posterior(observed).predict(POINTS),
        surrogate.posterior(shuffled(observed)).predict(POINTS),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("prior", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_dklm_is_gaussian_process_on_its_features(name, prior):
    observed = target(8)
    posterior = quick(name, guard=False, prior=prior).fit(past_tasks(4)).posterior(observed)
    w = {key: weight.detach().numpy() for key, weight in posterior._w.items()}

    def network(x, part, activate_last=False):
        keys = sorted(key for key in w if key[:-2] == part)
        for matrix, bias in zip(keys[::2], keys[1::2], strict=True):
            x = x @ w[matrix] + w[bias]
            x = np.maximum(x, 0) if activate_last or bias != keys[-1] else x
        return x

    z, shift, scale = standardize(clip_low_outliers(observed.z))

    def features(
        theta,
    ):  # equations (4) and (5), and the mean with a prior
        x, seen = 2 * theta - 1, 2 * observed.theta - 1
        inputs = x
        if "g00" in w:
            units = network(np.column_stack([seen, z]), "f", activate_last=True)
            inputs = np.column_stack([x, np.tile(network(units.mean(axis=0), "g"), (len(x), 1))])
        phi = network(inputs, "phi")
        return (np.hstack([phi[:, :32], x]), phi[:, 32]) if "x" in w else (phi, np.zeros(len(x)))

    assert ("x" in w) == (prior and name != "deep-gp")
    length, signal, noise = w["h"][0]
    h = np.array([length] * 32 + ([*w["x"][0]] if "x" in w else []) + [signal, noise])
    X, before = features(observed.theta)
    plain = GaussianProcess(X, z - before, h, np.zeros(X.shape[1], bool))
    if prior and name != "deep-gp":  # the expected level is added
        K = plain.prior_covariance(X, X) + np.exp(noise) * np.eye(len(z))
        level = np.linalg.solve(K, z - before).sum() / (1 + np.linalg.inv(K).sum())
        plain = GaussianProcess(X, z - before - level, h, np.zeros(X.shape[1], bool), shift=level)
    X, before = features(POINTS)
    mean, std = plain.predict(X)
    expected = shift + scale * (before + mean), scale * std
    for ours, theirs in zip(posterior.predict(POINTS), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=1e-3)
    draws = posterior.sample(POINTS, 3000, np.random.default_rng(0))
    mean, std = posterior.predict(POINTS)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * std.max() / np.sqrt(3000))


def test_stacked_likelihood_equals_single_likelihoods():
    surrogate = quick(steps=1).fit(past_tasks(3, 6))
    rows = [np.arange(6), np.arange(6, 9), np.arange(12, 13)]  # padded to six
    stack = surrogate._stack(rows)
    w = {name: weight.detach() for name, weight in surrogate.trained_.items()}
    copies = {name: weight.expand(3, -1, -1) for name, weight in w.items()}
    together = fit_of(copies, stack)
    moved = surrogate._descend(copies, stack, stack, 4)
    for number, own in enumerate(rows):
        one = module.Trials(*(part[0] for part in surrogate._stack([own])))
        single = fit_of(w, one)
        assert float(together[number]) == pytest.approx(float(single), rel=1e-9)
        for name, weight in surrogate._descend(w, one, one, 4).items():
            torch.testing.assert_close(weight, moved[name][number], rtol=1e-5, atol=1e-7)


def test_training_reduces_loss():
    """The paper's algorithm misprints the sign of the step."""
    tasks = past_tasks()
    before, after = (quick("fsbo", steps=steps).fit(tasks) for steps in (0, 40))
    everything = after._stack(
        [np.flatnonzero(after.past_.owner == task) for task in range(len(tasks))]
    )

    def fits(surrogate):
        copies = {k: t.detach().expand(len(tasks), -1, -1) for k, t in surrogate.trained_.items()}
        return float(fit_of(copies, everything).mean())

    assert fits(after) > fits(before) + 2


@pytest.mark.parametrize("name", ["dklm", "fsbo"])
def test_evidence_is_product_of_sequential_predictions(name):
    surrogate = quick(name).fit(past_tasks(4))
    observed = target(7)
    z, _, _ = surrogate._standard(observed)
    trials = module.Trials(
        torch.tensor(2 * observed.theta - 1), torch.tensor(z), torch.ones(7, dtype=torch.float64)
    )
    expected = 0.0
    for t in range(7):
        before, until = (module.Trials(*(part[:n] for part in trials)) for n in (t, t + 1))
        prior, K = (
            part.detach().numpy()
            for part in module.prior_moments(surrogate.trained_, until, before)
        )
        weights = np.linalg.solve(K[:t, :t], K[:t, t])
        mean, variance = prior[t] + weights @ (z[:t] - prior[:t]), K[t, t] - weights @ K[:t, t]
        expected += -0.5 * (z[t] - mean) ** 2 / variance - 0.5 * np.log(variance)
    errors, stds = module.sequential_errors(surrogate.trained_, trials)
    assert -0.5 * errors @ errors - np.log(stds).sum() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["dklm", "fsbo"])
def test_signal_and_noise_are_fitted_to_target(name):
    surrogate = quick(name, guard=False, adapt_steps=0).fit(past_tasks())
    clear, rng = target(40), np.random.default_rng(0)
    noisy = EncodedTask(clear.theta, clear.z + rng.normal(0, 2 * clear.z.std(), 40), NUMBERS)
    before = surrogate.trained_["h"][0].detach().numpy()
    share = {}
    for observed in (clear, noisy):
        z, _, _ = surrogate._standard(observed)
        trials = module.Trials(
            torch.tensor(2 * observed.theta - 1),
            torch.tensor(z),
            torch.ones(40, dtype=torch.float64),
        )
        w, evidence = module.fit_scale(surrogate.trained_, trials)
        errors, stds = module.sequential_errors(w, trials)
        apart = w["h"][0].detach().numpy() - before
        penalty = 0.5 * (apart[1] / 0.7) ** 2 + 0.5 * ((apart[2] - apart[1]) / 1.5) ** 2
        # The variance of the level does not grow with the signal's, which makes a small difference.
        assert evidence == pytest.approx(
            -0.5 * errors @ errors - np.log(stds).sum() - penalty, abs=1.5
        )
        length, signal, noise = surrogate.posterior(observed)._w["h"][0].detach().numpy()
        assert length == pytest.approx(before[0])
        share[observed is noisy] = noise - signal
    assert share[True] > share[False] + 1


# -- the paper's section 5 -------------------------------------------------------------------------


@pytest.mark.slow
def test_dklm_beats_fsbo_on_sines():
    dklm, fsbo = (
        np.mean([sines.densities(sines.trained(name, seed), seed, 4).mean() for seed in range(5)])
        for name in ("dklm", "fsbo")
    )
    assert dklm < fsbo - 0.1


@pytest.mark.slow
def test_landmark_feature_of_sines_is_amplitude():
    """The median of three models, because single ones may stay below 0.9."""
    found = []
    for seed in range(3):
        pairs = sines.feature_and_amplitude(sines.trained_on_amplitudes(seed), seed, 300)
        found.append(abs(np.corrcoef(*pairs)[0, 1]))
    assert np.median(found) > 0.9


# -- transfer --------------------------------------------------------------------------------------


def test_portfolio_covers_all_kinds_of_tasks():
    """Two tasks of one kind, one of another, each with a best setting of its own."""

    def task(best, name):
        theta = np.array([[0.2, 0.5], [0.5, 0.5], [0.8, 0.5]])
        return EncodedTask(theta, 1 - np.abs(theta[:, 0] - best), NUMBERS, id=name)

    surrogate = quick().fit([task(0.8, "a"), task(0.2, "b"), task(0.2, "c")])
    hints = surrogate.hints(target())
    assert hints.first_settings[:, 0].tolist() == [
        0.2,
        0.8,
    ]  # no third one: it would not help any task
    assert hints.sources == ("b", "a")
    assert surrogate.hints(target()).n_initial == 1


def test_portfolio_skips_unknown_categories():
    kind = np.array([True])
    unknown = EncodedTask(np.array([[-1.0], [-1.0]]), np.array([1.0, 2.0]), kind)
    known = EncodedTask(np.array([[-1.0], [0.5]]), np.array([2.0, 1.0]), kind)
    assert len(select_portfolio(PastTrials.from_tasks([unknown], "standardize"), 4)) == 0
    assert select_portfolio(PastTrials.from_tasks([unknown, known], "standardize"), 4).tolist() == [
        3
    ]


def test_fsbo_depends_on_direction_of_scores():
    """The paper's kernel is the same for negated scores, but the first trials are not."""
    tasks = past_tasks()
    turned = [EncodedTask(task.theta, -task.z, NUMBERS) for task in tasks]
    right, wrong = (quick("fsbo", scores="raw", prior=False).fit(each) for each in (tasks, turned))
    good, bad = (surrogate.hints(target()).first_settings[0] for surrogate in (right, wrong))
    assert score(good) > 0.9 > 0.3 > score(bad)
    for name, weight in right.trained_.items():
        torch.testing.assert_close(weight, wrong.trained_[name], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dklm", "fsbo"])
def test_prior_mean_predicts_scores(name):
    """Far from the trials, all bad, the paper's kernel predicts its mean of zero."""
    theta = np.array([[0.1, 0.9], [0.15, 0.95], [0.1, 0.8]])
    observed = EncodedTask(theta, score(theta), NUMBERS)
    settings = np.random.default_rng(5).random((50, 2))

    def agreement(prior):
        posterior = (
            make_surrogate(name)
            .set_params(prior=prior, guard=False)
            .fit(past_tasks())
            .posterior(observed)
        )
        return np.corrcoef(posterior.predict(settings)[0], score(settings))[0, 1]

    assert agreement(True) > 0.85
    assert agreement(False) < 0.6


def test_prior_kernel_separates_settings_equal_on_past_tasks():
    """No past task depends on b, so no feature does; the target does."""
    rng = np.random.default_rng(0)

    def task(weight, n=20):
        theta = rng.random((n, 2))
        return EncodedTask(theta, -((theta[:, 0] - 0.7) ** 2) + weight * theta[:, 1], NUMBERS)

    past, observed, rest = [task(0.0) for _ in range(10)], task(1.0), task(1.0, 50)
    error = {}
    for prior in (True, False):
        posterior = (
            make_surrogate("fsbo")
            .set_params(prior=prior, guard=False)
            .fit(past)
            .posterior(observed)
        )
        error[prior] = np.abs(posterior.predict(rest.theta)[0] - rest.z).mean()
    assert error[True] < 0.7 * error[False]


def test_portfolio_ends_after_n_initial_trials():
    surrogate = quick().fit(past_tasks())
    assert len(surrogate.hints(target(3)).first_settings)
    assert surrogate.hints(target(4)).first_settings is None
    assert len(quick(prior=False).fit(past_tasks()).hints(target(4)).first_settings)


@pytest.mark.slow
def test_dklm_guard_excludes_misleading_past():
    tasks = past_tasks(shuffled=True)
    guarded = make_surrogate("fsbo").fit(tasks)
    assert guarded.posterior(target(25)).weight < 0.2
    helpful = make_surrogate("fsbo").fit(past_tasks())
    assert helpful.posterior(target(25)).weight > 0.5


@pytest.mark.slow
def test_deep_gp_ignores_past_tasks_without_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        surrogates = [quick("deep-gp").fit(tasks) for tasks in ([], past_tasks())]
    one, two = (surrogate.posterior(target(6)).predict(POINTS)[0] for surrogate in surrogates)
    assert_same_prediction(one, two)
    assert not surrogates[1].uses_past_tasks and not surrogates[1].is_cacheable
    hints = surrogates[1].hints(target())
    assert hints.n_initial == 4 and hints.first_settings is None
    bests = [search(quick("deep-gp", adapt_steps=50), [], 12, seed)[-1] for seed in range(3)]
    assert np.median(bests) > 0.9  # a single search may keep to the wrong end


def test_dklm_without_past_is_plain_gp_and_warns():
    with pytest.warns(SurrogateWarning, match="DKLM has no past trials"):
        surrogate = quick().fit([])
    assert_same_prediction(
        surrogate.posterior(target(6)).predict(POINTS),
        make_surrogate("gp").fit([]).posterior(target(6)).predict(POINTS),
    )
    assert surrogate.hints(target()).n_initial == 4


# -- unusual input ---------------------------------------------------------------------------------


def unusual_task(z, seed=0, name="unusual"):
    theta = np.random.default_rng(seed).random((len(z), 2))
    return EncodedTask(theta, np.array(z, dtype=float), NUMBERS, None, name)


TARGETS = [
    [],
    [0.5],
    [np.nan, 0.3],
    [np.nan],
    [0.5, 0.5, 0.5],
    [1e9, 0.0, -1e9],
    [0.1, 0.4, np.nan, 0.2],
]


def assert_finite(surrogate, observed, theta=POINTS):
    mean, std = surrogate.posterior(observed).predict(theta)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scores", ["standardize", "raw"])
@pytest.mark.parametrize(
    "tasks",
    [
        [unusual_task([0.5])],
        [unusual_task([0.5, 0.5, 0.5])],
        [unusual_task([np.nan, 0.5, np.nan]), unusual_task([np.nan, np.nan]), unusual_task([])],
        [unusual_task([1e9, -1e9, 0.0]), unusual_task([1e-9, 2e-9]), unusual_task([0.8, 0.9, 0.7])],
    ],
)
def test_dklm_accepts_unusual_past_tasks(name, scores, tasks):
    surrogate = quick(name, scores=scores).fit(tasks)
    for z in TARGETS:
        assert_finite(surrogate, unusual_task(z, 5))


@pytest.mark.parametrize("name", NAMES)
def test_dklm_accepts_unknown_categories(name):
    kind, rng = np.array([True, False]), np.random.default_rng(0)

    def task(codes, n=12):
        theta = np.column_stack([rng.choice(codes, n), rng.random(n)])
        return EncodedTask(theta, theta[:, 1] + theta[:, 0], kind)

    surrogate = quick(name).fit([task([0.0, 0.5, -1.0]) for _ in range(3)])
    assert_finite(surrogate, task([0.5, 1.0]), task([0.0, 0.5, 1.0]).theta)
    gone = EncodedTask(
        np.column_stack([np.zeros(6), np.full(6, 0.5)]), np.arange(6.0), kind
    )  # a code at 0.5
    assert_finite(quick(name).fit([gone] * 3), task([0.0]), task([0.0]).theta)


@pytest.mark.slow
def test_dklm_fits_500_tasks_of_any_length():
    rng = np.random.default_rng(0)
    tasks = [unusual_task(rng.random(rng.integers(1, 61)), seed, f"t{seed}") for seed in range(500)]
    surrogate = make_surrogate("dklm").fit(tasks)
    assert_finite(surrogate, target(5))
    assert len(surrogate.task_ids) == 500


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scores", "copula"),
        ("n_landmarks", 0),
        ("layers", ()),
        ("steps", -1),
        ("adapt_steps", -1),
        ("n_seen", 1),
    ],
)
def test_dklm_rejects_invalid_parameters(name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        DKLM(**{name: value}).fit([])


# -- state -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_dklm_state_round_trip(name):
    fitted = quick(name).fit(past_tasks(4, 6))
    state = fitted.get_state()
    assert all(array.dtype.kind in "biufU" for array in state.values())
    back = quick(name).set_state(pickle.loads(pickle.dumps(state)))
    assert_same_state(back.get_state(), state)
    assert back.task_ids == fitted.task_ids
    np.testing.assert_array_equal(
        back.hints(target()).first_settings, fitted.hints(target()).first_settings
    )
    for observed in (target(1), target(6)):
        assert_same_prediction(
            back.posterior(observed).predict(POINTS), fitted.posterior(observed).predict(POINTS)
        )


def test_dklm_posterior_depends_on_data_only():
    surrogate = quick().fit(past_tasks(4))
    first = surrogate.posterior(target(6)).predict(POINTS)
    surrogate.posterior(target(20))
    assert_same_prediction(surrogate.posterior(target(6)).predict(POINTS), first)
    assert_same_prediction(
        clone(surrogate).fit(past_tasks(4)).posterior(target(6)).predict(POINTS), first
    )


def test_dklm_continues_training_from_earlier_model():
    earlier = quick().fit(past_tasks(5))
    warm = quick(steps=0).fit(past_tasks(6), warm_from=earlier)
    cold = quick(steps=0).fit(past_tasks(6))
    for key, weight in warm.trained_.items():
        assert torch.equal(weight, earlier.trained_[key])
    assert any(not torch.equal(cold.trained_[key], weight) for key, weight in warm.trained_.items())


def test_history_by_trial_is_the_features_of_the_trials_before():
    """Equation 7: row t of the kernel reads H^(t-1), a new configuration reads all trials."""
    surrogate = quick(history="sequence", guard=False, prior=False).fit(past_tasks())
    observed = target(5)
    x = torch.tensor(surrogate.inputs_(observed.theta))
    z = torch.tensor(surrogate._standard(observed)[0])
    trials = module.Trials(x, z, torch.ones(5, dtype=x.dtype))
    found = module.landmarks_by_trial(surrogate.trained_, trials).detach().numpy()
    for t in range(5):
        before = module.Trials(x[:t], z[:t], torch.ones(t, dtype=x.dtype))
        direct = module.landmarks(surrogate.trained_, before).detach().numpy()[0]
        np.testing.assert_allclose(found[t], direct, atol=1e-12)
    as_set = quick(guard=False, prior=False).fit(past_tasks()).posterior(observed)
    by_trial = surrogate.posterior(observed)
    assert not np.allclose(by_trial.predict(observed.theta)[0], as_set.predict(observed.theta)[0])
    with pytest.raises(ValueError, match="history='list'"):
        DKLM(history="list").fit([])
