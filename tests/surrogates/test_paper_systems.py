"""Systems that the papers compare with, and options that make ours those of the papers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sktransfer import TransferOptimizer
from sktransfer.surrogates import (
    ABLR,
    DKLM,
    DNGO,
    GP,
    RGPE,
    Bohamiann,
    Box,
    CommonSurface,
    ContextBohamiann,
    CopulaGP,
    DistBLR,
    DistGP,
    EncodedTask,
    NearestTaskGP,
    SCoT,
    TargetBLR,
    WarmStart,
    make_surrogate,
)
from sktransfer.surrogates._core.head_training import Heads
from sktransfer.surrogates._core.kernels import kernel_matrix
from sktransfer.surrogates._core.neighbor_kernel import neighbor_covariance
from sktransfer.surrogates._core.neighbor_process import NeighborProcess
from sktransfer.utils._scores import normal_scores, standardize
from tests.surrogates.synthetic_tasks import NUMBERS, SPACE, data, past_tasks, score, search, target

THETA = np.random.default_rng(7).random((40, 2))


def with_outlier(task):
    """The same task with one score far below the others."""
    return replace(task, z=np.where(np.arange(len(task.z)) == 0, task.z - 100, task.z))


# -- without additions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "surrogate",
    [
        GP(),
        DistGP(steps=5),
        DistBLR(steps=5),
        ABLR(steps=5, epochs=1),
        DKLM(steps=2),
        CommonSurface(steps=5),
        SCoT(max_iter=5),
        RGPE(),
        DNGO(steps=5),
        Bohamiann(layers=(5,), burn_in=5),
        CopulaGP(transform="standardize", steps=5),
        NearestTaskGP(),
        TargetBLR(steps=5),
        ContextBohamiann(layers=(5,), burn_in=5),
    ],
    ids=lambda surrogate: type(surrogate).__name__,
)
def test_scores_are_winsorized_unless_switched_off(surrogate):
    """An outlier sets the scale of the scores only where it is not raised."""
    tasks, observed = [with_outlier(task) for task in past_tasks(3)], with_outlier(target(6))
    spreads = []
    for winsorize in (True, False):
        model = surrogate.set_params(winsorize=winsorize).fit(tasks)
        if surrogate.uses_past_tasks:
            spreads.append(np.ptp(np.quantile(model.past_.z, [0.25, 0.75])))
        else:
            spreads.append(model.posterior(observed).scale)
    raised, plain = spreads
    assert plain < 0.1 * raised if surrogate.uses_past_tasks else plain > 10 * raised


@pytest.mark.parametrize("method", [DistGP, DistBLR])
def test_joint_models_run_without_guard(method):
    guarded, plain = (method(steps=20, guard=guard).fit(past_tasks(4)) for guard in (True, False))
    observed = target(5)
    alone = plain._condition(plain._target_psi(observed), observed)[0]
    np.testing.assert_array_equal(plain.posterior(observed).predict(THETA), alone.predict(THETA))
    assert hasattr(guarded.posterior(observed), "weight")


def test_error_ranks_are_those_of_the_paper():
    z = np.array([0.3, 0.1, 0.2, 0.9, 0.8])
    share = np.array([(-z <= error).mean() for error in -z])  # of errors that are not larger
    delta = 1 / (4 * 5**0.25 * np.sqrt(np.pi * np.log(5)))
    from scipy.stats import norm

    expected = -norm.ppf(np.clip(share, delta, 1 - delta))
    np.testing.assert_allclose(normal_scores(z, rank_errors=True), expected)
    assert normal_scores(z).max() == pytest.approx(1.44, abs=0.01)
    assert normal_scores(z, rank_errors=True).max() == pytest.approx(0.84, abs=0.01)
    failed = normal_scores(np.array([0.5, np.nan, 0.7]), rank_errors=True)
    assert failed[1] < failed[0] < failed[2]


# -- ABLR ------------------------------------------------------------------------------------------


def test_ablr_trains_with_the_target_as_one_more_task():
    """Retrained features explain the target's scores better than those of the past alone."""
    tasks = past_tasks(4, profiles=False)
    observed = EncodedTask(THETA[:20], np.sin(9 * THETA[:20, 0]), NUMBERS)
    paper = {"head": "zero", "guard": False, "steps": 60}
    frozen, joint = (ABLR(retrain=steps, **paper).fit(tasks) for steps in (0, 60))
    before = {name: weight.detach().clone() for name, weight in joint.trained_.items()}
    fits = [model.posterior(observed).log_evidence for model in (frozen, joint)]
    assert fits[1] > fits[0] + 1
    assert all(torch.equal(before[name], joint.trained_[name]) for name in before)  # it is kept


def test_ablr_signals_are_heads_of_their_own():
    tasks = past_tasks(3, profiles=False)
    tasks[0] = replace(tasks[0], metrics={"fit_time": np.full(20, np.nan)})
    tasks[1] = replace(tasks[1], metrics={"score": tasks[1].z})  # the score itself
    past = ABLR(steps=2, epochs=1).fit(tasks).past_
    heads = Heads(past.theta, past.z, past.owner, np.arange(3))
    assert len(heads.with_signals(tasks, None, True).task) == 3
    more = heads.with_signals(tasks, "all", True)
    assert more.task.tolist() == [0, 1, 2, 2] and len(more.z) == 80
    np.testing.assert_allclose(more.z[60:], standardize(tasks[2].metrics["fit_time"])[0])
    plain, wider = (ABLR(signals=s, steps=20, epochs=1).fit(tasks) for s in (None, ["fit_time"]))
    assert len(wider.learned_["log_alpha"]) == 3  # of the scores only
    assert not torch.equal(plain.trained_["w00"], wider.trained_["w00"])
    with pytest.raises(ValueError, match="signals='time'"):
        ABLR(signals="time").fit([])


def test_ablr_with_zero_head_begins_with_the_best_setting_on_average():
    tasks = past_tasks(5, profiles=False)
    hints = ABLR(head="zero", steps=2, epochs=1).fit(tasks).hints(target())
    assert hints.restrict_to is None and len(hints.first_settings) == len(hints.sources) == 1
    assert score(hints.first_settings[0]) > 0.95


# -- Gaussian processes with the trials of other tasks ---------------------------------------------


def test_neighbor_process_is_a_process_with_the_kernel_mkl():
    rng = np.random.default_rng(0)
    theta, z, owner = rng.random((12, 2)), rng.standard_normal(12), np.repeat([0, 1, 9], 4)
    h = np.log([0.3, 0.5, 1.3, 0.1])
    found = NeighborProcess(theta, z, owner, 9, h, NUMBERS)
    everything, who = np.vstack([theta, THETA]), np.append(owner, np.full(len(THETA), 9))
    same = who[:, None] == who
    near = neighbor_covariance(torch.tensor(everything), torch.tensor(everything), NUMBERS).numpy()
    own = kernel_matrix(everything, everything, np.array([0.3, 0.5]), NUMBERS, "se")
    K = 1.3 * (0.3 * own * same + 0.7 * near)
    A = np.linalg.inv(K[:12, :12] + 0.1 * np.eye(12))
    mean, std = found.predict(THETA)
    np.testing.assert_allclose(mean, K[12:, :12] @ A @ z, atol=1e-4)
    left = K[12:, 12:] - K[12:, :12] @ A @ K[:12, 12:]
    np.testing.assert_allclose(std**2, np.diag(left), atol=1e-4)
    draws = found.sample(THETA[:3], 4000, rng)
    np.testing.assert_allclose(np.cov(draws.T), left[:3, :3], atol=0.06)


def test_scot_conditions_on_the_nearest_tasks_only_with_mkl():
    surrogate = SCoT(kernel="mkl", guard=False).fit(past_tasks(30, 5))
    assert surrogate._prior(np.full(3, 0.5))._gp._process.theta.shape == (100, 2)
    mean, _ = surrogate.posterior(target(4)).predict(THETA)
    assert np.corrcoef(mean, score(THETA))[0, 1] > 0.5


def similar_and_other():
    """Two past tasks of opposite scores; the first one's data are the target's."""
    theta = np.random.default_rng(0).random((30, 2))
    similar = EncodedTask(theta, score(theta), NUMBERS, data(50), "similar")
    other = EncodedTask(theta, -score(theta), NUMBERS, data(3, n=900), "other")
    return [other, similar]


@pytest.mark.parametrize("name", ["gp-nearest", "gp-context-l1"])
def test_process_has_the_trials_of_the_nearest_task(name):
    surrogate = make_surrogate(name).fit(similar_and_other())
    assert surrogate.similarity(target()).tolist() == [0.0, 1.0]
    mean, _ = surrogate.posterior(target()).predict(THETA)
    assert np.corrcoef(mean, score(THETA))[0, 1] > 0.8
    process = surrogate._process(1)
    assert process.X.shape == (30, 2 if name == "gp-nearest" else 5)


def test_nearest_task_gp_keeps_the_best_trials():
    process = NearestTaskGP(n_trials=5).fit(similar_and_other())._process(1)
    z = similar_and_other()[1].z
    np.testing.assert_allclose(np.sort(process.z), np.sort(standardize(z, winsorize=True)[0])[-5:])


def test_bohamiann_reads_the_context():
    """With opposite past tasks, the prediction is that of the task with the target's data."""
    surrogate = ContextBohamiann(layers=(20, 20), n_chains=6, burn_in=150, guard=False)
    surrogate.fit(similar_and_other())
    mean, _ = surrogate.posterior(target()).predict(THETA)
    assert np.corrcoef(mean, score(THETA))[0, 1] > 0.5


# -- others ----------------------------------------------------------------------------------------


def test_box_rs_draws_in_the_box_at_random():
    optimizer = TransferOptimizer(SPACE, surrogate=Box(None, model=False), random_state=0)
    optimizer.surrogate.fit(past_tasks(6))
    optimizer.is_fitted = True
    region = optimizer.surrogate.hints(target()).region
    proposals = optimizer.propose(20)
    codes = optimizer.space.encode([proposal.params for proposal in proposals])
    assert {proposal.origin for proposal in proposals} == {"random"}
    assert region.contains(codes).all() and np.ptp(codes, axis=0).min() > 0.1


def test_init_blr_continues_with_the_regression():
    tasks, observed = past_tasks(3), target(6)
    surrogate = make_surrogate("init-blr").fit(tasks)
    first = surrogate.hints(target()).first_settings
    np.testing.assert_array_equal(first, WarmStart().fit(tasks).hints(target()).first_settings)
    ours = surrogate.posterior(observed).predict(THETA)
    np.testing.assert_array_equal(ours, TargetBLR().fit([]).posterior(observed).predict(THETA))
    with pytest.raises(ValueError, match="model='forest'"):
        WarmStart(model="forest").fit([])


def test_target_blr_learns_the_surface():
    observed = target(40)
    mean, std = TargetBLR(winsorize=False).fit([]).posterior(observed).predict(THETA)
    assert np.corrcoef(mean, score(THETA))[0, 1] > 0.95 and (std > 0).all()


@pytest.mark.slow
def test_target_blr_finds_the_optimum():
    """With a noise prior for the scores of many tasks it stayed at 0.87 to 0.92 of 1."""
    assert search(TargetBLR(), [], 14)[-1] > 0.97


def test_dist_gp_learns_the_noise_of_each_task():
    clean, noisy = past_tasks(2, 40)
    noise = np.random.default_rng(0).normal(0, 1.0, 40)
    noisy = replace(noisy, z=noisy.z + noise)
    learned = DistGP(noise="task", steps=150).fit([clean, noisy]).trained_["noise"].detach().numpy()
    assert learned.shape == (2,) and learned[1] > learned[0] + 1
    with pytest.raises(ValueError, match="noise='own'"):
        DistGP(noise="own").fit([])


@pytest.mark.parametrize("estimator", ["linear", "neighbors"])
def test_copula_prior_by_simple_estimators(estimator):
    """Each explains a surface that suits it, better than the mean does."""
    rng = np.random.default_rng(0)
    theta = rng.random((200, 2))
    z = theta[:, 0] + 0.1 * rng.standard_normal(200)
    surrogate = CopulaGP(estimator=estimator).fit([EncodedTask(theta, z, NUMBERS)])
    mean, std = surrogate.prior(THETA)
    assert np.corrcoef(mean, THETA[:, 0])[0, 1] > 0.8 and (std > 0).all()
    error = normal_scores(THETA[:, 0]) - mean
    assert np.sqrt(np.mean(error**2)) < 0.7
    again = CopulaGP(estimator=estimator).set_state(surrogate.get_state())
    np.testing.assert_array_equal(again.prior(THETA), (mean, std))
