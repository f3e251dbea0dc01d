"""`TransferOptimizer`, ask and tell: no duplicates, batches, pools, failures, seeds."""

import math

import numpy as np
import pytest
from scipy.stats import loguniform, poisson, randint, uniform

from sktransfer import Archive, Space, Task, TransferOptimizer
from sktransfer.dataset import profile
from sktransfer.optimizer import Pool
from sktransfer.surrogates import ABLR, Posterior, Surrogate
from sktransfer.utils._values import params_identity

SPACE = {"a": uniform(0, 1), "b": uniform(0, 1)}
SURROGATES = ["gp", "warm-start", "random", "auto"]


def bowl(params):
    return -((params["a"] - 0.3) ** 2 + (params["b"] - 0.6) ** 2)


def run(optimizer, n, score=bowl):
    """Ask and tell `n` times. Returns the configurations."""
    asked = []
    for _ in range(n):
        [params] = optimizer.ask()
        optimizer.tell(params, score(params))
        asked.append(params)
    return asked


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_same_seed_gives_same_proposals(surrogate):
    first, second, other = (
        run(TransferOptimizer(SPACE, surrogate=surrogate, random_state=seed), 8)
        for seed in (3, 3, 4)
    )
    assert first == second
    assert first != other


def test_random_state_may_be_seed_generator_or_none():
    for state in (0, np.int64(0), np.random.RandomState(0), np.random.default_rng(0), None):
        assert len(TransferOptimizer(SPACE, random_state=state).ask(2)) == 2


def test_gp_finds_the_optimum_of_a_quadratic():
    best = max(map(bowl, run(TransferOptimizer(SPACE, surrogate="gp", random_state=0), 20)))
    assert best > -1e-3


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize(
    "space",
    [
        {"a": [1, 2, 3, 4], "b": ["x", "y", None], "c": [True, False]},
        {"a": randint(0, 24)},
        [{"a": [1, 2, 3]}, {"b": [(1, 2), (3,)], "c": list(range(10))}],
    ],
    ids=["grid", "integers", "branches"],
)
def test_finite_space_is_not_repeated_before_it_is_exhausted(surrogate, space):
    size = Space.parse(space).size
    optimizer = TransferOptimizer(space, surrogate=surrogate, random_state=0)
    asked = run(optimizer, size, score=lambda p: len(str(p)) % 7)
    assert len({params_identity(p) for p in asked}) == size
    [repeated] = optimizer.ask()  # the space is exhausted, so configurations are repeated
    assert params_identity(repeated) in {params_identity(p) for p in asked}


def test_large_finite_space_is_not_repeated():
    space = {"a": list(range(60)), "b": list(range(60))}
    optimizer = TransferOptimizer(space, surrogate="random", random_state=0)
    assert len({params_identity(p) for p in optimizer.ask(3600)}) == 3600


def test_first_proposal_is_of_the_model_if_it_needs_no_trial():
    class PredictsWithoutTrials(Surrogate):
        """Predicts without a trial that a = 0.8 is best."""

        uses_past_tasks = True

        def posterior(self, target):
            class PeakPosterior(Posterior):
                def predict(self, theta):
                    return -np.abs(theta[:, 0] - 0.8), np.full(len(theta), 0.1)

            return PeakPosterior()

    [first, second] = TransferOptimizer(
        SPACE, surrogate=PredictsWithoutTrials(), random_state=0
    ).propose(2)
    assert first.origin == "model"
    assert first.params["a"] == pytest.approx(0.8, abs=0.01)
    assert second.params != first.params


def test_failures_are_avoided_if_all_successes_score_the_same():
    """Failures are worse than successes, even if all successes are equal."""
    shares = []
    for seed in range(3):
        optimizer = TransferOptimizer(SPACE, surrogate="gp", random_state=seed)
        asked = run(optimizer, 25, score=lambda p: math.nan if p["a"] > 0.5 else 0.9)
        shares.append(np.mean([p["a"] > 0.5 for p in asked[10:]]))
    assert np.mean(shares) < 0.25


def test_tell_accepts_equal_value_of_another_type():
    optimizer = TransferOptimizer({"n": [1, 2]}, random_state=0)
    optimizer.tell({"n": 2.0}, 0.5)
    assert optimizer.ask() == [{"n": 1}]


@pytest.mark.parametrize(
    ("space", "convert"),
    [({"n": randint(1, 1000)}, float), ({"a": uniform(0, 1)}, lambda value: round(value, 6))],
    ids=["converted", "rounded"],
)
def test_tell_ends_pending_trial_with_rounded_or_converted_values(space, convert):
    optimizer = TransferOptimizer(space, random_state=0)
    for params in optimizer.ask(5):
        optimizer.tell({name: convert(value) for name, value in params.items()}, 1.0)
    assert not optimizer._pending


@pytest.mark.parametrize(
    "arguments",
    [{"score": None}, {"score": "x"}, {"score": 1.0, "cost": "1 s"}, {"score": 1.0, "metrics": 3}],
    ids=["score None", "score text", "cost text", "metrics number"],
)
def test_invalid_tell_changes_nothing(arguments):
    optimizer, untouched = (TransferOptimizer(SPACE, random_state=0) for _ in range(2))
    [params], _ = optimizer.ask(), untouched.ask()
    with pytest.raises((TypeError, ValueError)):
        optimizer.tell(params, **arguments)
    optimizer.tell(params, 0.5)
    untouched.tell(params, 0.5)
    assert optimizer.ask() == untouched.ask()


def test_improbable_values_are_proposed_before_a_repetition():
    optimizer = TransferOptimizer({"n": poisson(3, loc=1)}, surrogate="gp", random_state=0)
    asked = [params["n"] for params in run(optimizer, 12, score=lambda params: -params["n"])]
    assert len(set(asked)) == len(asked)


def test_pool_may_change_between_calls():
    a, b, c = ({"a": v, "b": v} for v in (0.1, 0.2, 0.3))
    pool = [a, b]
    optimizer = TransferOptimizer(SPACE, random_state=0)
    optimizer.tell(a, 0.5)
    assert optimizer.ask(pool=[a]) == []
    pool.remove(b)
    pool.append(c)
    assert optimizer.ask(2, pool=pool) == [c]


def test_profile_may_be_a_dict():
    data = profile([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    assert TransferOptimizer(SPACE, profile=data.to_dict()).profile.n_rows == 2


def test_negative_seed_raises_error():
    with pytest.raises(ValueError, match="-1"):
        TransferOptimizer(SPACE, random_state=-1)


def test_observed_configurations_are_not_proposed():
    space = {"a": [1, 2, 3]}
    optimizer = TransferOptimizer(space, random_state=0)
    optimizer.tell({"a": 2}, 0.5)
    optimizer.tell({"a": np.int64(3)}, 0.4)
    assert optimizer.ask() == [{"a": 1}]


@pytest.mark.parametrize("surrogate", ["gp", "warm-start"])
def test_proposals_of_a_batch_are_apart(surrogate):
    optimizer = TransferOptimizer(SPACE, surrogate=surrogate, random_state=0)
    run(optimizer, 8)
    batch = np.array([list(p.values()) for p in optimizer.ask(6)])
    distances = np.abs(batch[:, None] - batch[None]).max(axis=2) + np.eye(6)
    assert distances.min() > 0.01


def test_batch_equals_single_asks_with_pending_trials():
    in_batch, one_by_one = (
        TransferOptimizer(SPACE, surrogate="gp", random_state=0) for _ in range(2)
    )
    run(in_batch, 8)
    run(one_by_one, 8)
    assert in_batch.ask(3) == [one_by_one.ask()[0] for _ in range(3)]


def test_failures_are_recorded_and_not_proposed_again():
    optimizer = TransferOptimizer(SPACE, surrogate="gp", random_state=0)
    asked = run(optimizer, 25, score=lambda p: math.nan if p["a"] > 0.5 else bowl(p))
    assert len({params_identity(p) for p in asked}) == 25
    assert np.mean([p["a"] > 0.5 for p in asked[10:]]) < 0.35
    task = optimizer.to_task()
    assert {t.status for t in task.trials} == {"ok", "failed"}
    assert task.best.score > -0.01


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, None])
def test_search_continues_if_all_trials_fail(score):
    optimizer = TransferOptimizer(SPACE, surrogate="gp", random_state=0)
    asked = run(optimizer, 12, score=lambda p: math.nan if score is None else score)
    assert len({params_identity(p) for p in asked}) == 12
    assert optimizer.to_task().best is None


def test_equal_scores_do_not_repeat_configurations():
    asked = run(TransferOptimizer(SPACE, surrogate="gp", random_state=0), 12, score=lambda p: 0.5)
    assert len({params_identity(p) for p in asked}) == 12


# -- pools -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_pool_is_exhausted_member_by_member(surrogate):
    pool = Space.parse(SPACE).sample(15, 0)
    optimizer = TransferOptimizer(SPACE, surrogate=surrogate, random_state=0)
    asked = []
    while batch := optimizer.ask(4, pool=pool):
        for params in batch:
            optimizer.tell(params, bowl(params))
        asked += batch
    assert len(asked) == 15
    assert {params_identity(p) for p in asked} == {params_identity(p) for p in pool}


def test_first_settings_are_taken_once_from_a_shrinking_pool():
    past = Task.from_trials(SPACE, [({"a": 0.3, "b": 0.6}, 1.0), ({"a": 0.9, "b": 0.9}, 0.0)])
    pool = Space.parse(SPACE).sample(40, 0)
    optimizer = TransferOptimizer(SPACE, [past], surrogate="warm-start", random_state=0)
    origins = []
    for _ in range(12):
        [proposal] = optimizer.propose(pool=pool)
        pool.remove(proposal.params)
        optimizer.tell(proposal.params, bowl(proposal.params))
        origins.append(proposal.origin.split()[0])
    assert origins[0] == "task" and "task" not in origins[2:]  # the past task has two settings


@pytest.mark.parametrize("kind", ["list", "pool", "pool without it"])
def test_first_trial_is_a_past_setting_in_lists_and_pools(kind):
    """The best past settings are the first choice wherever the space or the pool holds them."""
    best, other = {"a": 0.3, "b": 0.6}, {"a": 0.9, "b": 0.9}
    past = Task.from_trials(SPACE, [(best, 1.0), (other, 0.0)], id="t")
    pool = Space.parse(SPACE).sample(40, 0)
    pool += [best] * (kind == "pool")
    space = {"a": [0.1, 0.3, 0.9], "b": [0.6, 0.9]} if kind == "list" else SPACE
    surrogate = ABLR(steps=20, epochs=1, n_settings=1)
    optimizer = TransferOptimizer(space, [past], surrogate=surrogate, random_state=0)
    [proposal] = optimizer.propose(pool=None if kind == "list" else pool)
    assert (proposal.params == best) == (kind != "pool without it")
    assert (proposal.origin == "task t") == (kind != "pool without it")


def test_encoded_pool_gives_same_proposals_as_its_members():
    members = Space.parse(SPACE).sample(30, 0)
    subset = Pool(Space.parse(SPACE), members).subset([4, 7, 11, 20, 29])
    assert subset.params == [members[i] for i in (4, 7, 11, 20, 29)]
    asked = []
    for pool in (subset, subset.params):
        optimizer = TransferOptimizer(SPACE, surrogate="gp", random_state=0)
        asked.append(optimizer.ask(7, pool=pool))
    assert asked[0] == asked[1] and len(asked[0]) == 5


def test_best_member_of_a_pool_is_found_early():
    found = []
    for seed in range(5):
        pool = Space.parse(SPACE).sample(200, seed)
        optimizer = TransferOptimizer(SPACE, surrogate="gp", random_state=seed)
        best, asked = max(map(bowl, pool)), []
        for _ in range(20):
            [params] = optimizer.ask(pool=pool)
            optimizer.tell(params, bowl(params))
            asked.append(bowl(params))
        found.append(max(asked) == best)
    assert sum(found) >= 4


def test_warm_start_proposes_the_nearest_member_of_a_pool():
    past = Task.from_trials(SPACE, [({"a": 0.31, "b": 0.6}, 1.0), ({"a": 0.9, "b": 0.9}, 0.0)])
    pool = [{"a": 0.9, "b": 0.1}, {"a": 0.3, "b": 0.59}, {"a": 0.1, "b": 0.6}]
    assert TransferOptimizer(SPACE, [past], random_state=0).ask(pool=pool) == [pool[1]]


# -- proposals and their predictions ---------------------------------------------------------------


def test_proposals_have_origin_and_prediction():
    optimizer = TransferOptimizer(SPACE, surrogate="gp", random_state=0)
    origins = []
    for _ in range(6):
        [proposal] = optimizer.propose()
        origins.append(proposal.origin)
        assert math.isnan(proposal.mean) == (proposal.origin == "space-filling")
        optimizer.tell(proposal.params, bowl(proposal.params))
    assert origins == ["space-filling"] * 4 + ["model"] * 2


def test_prediction_is_within_four_standard_deviations():
    optimizer = TransferOptimizer(SPACE, surrogate="gp", random_state=0)
    run(optimizer, 15)
    [proposal] = optimizer.propose()
    assert abs(bowl(proposal.params) - proposal.mean) < max(4 * proposal.std, 0.01)


def test_to_task_holds_observed_trials():
    optimizer = TransferOptimizer({"C": loguniform(1e-3, 1e3)}, random_state=0)
    optimizer.tell({"C": 1.0}, 0.5, cost=2.0)
    task = optimizer.to_task()
    assert [(t.params, t.score, t.fit_time) for t in task.trials] == [({"C": 1.0}, 0.5, 2.0)]
    assert task.space["branches"][0]["C"]["distribution"] in ("loguniform", "reciprocal")


def test_past_task_with_other_parameters_and_bounds_is_projected():
    past = Task.from_trials(
        {"a": uniform(0, 2), "b": uniform(0, 1), "extra": [1, 2, 3]},
        [({"a": 1.7, "b": 0.5, "extra": 2}, 1.0), ({"a": 0.2, "b": 0.2, "extra": 1}, 0.5)],
    )
    [params] = TransferOptimizer(SPACE, [past], surrogate="warm-start", random_state=0).ask()
    assert params == {"a": 1.0, "b": 0.5}  # the nearest configuration of the target's space


@pytest.mark.parametrize("n", [0, -1])
def test_ask_for_less_than_one_raises_error(n):
    with pytest.raises(ValueError, match=f"n={n}"):
        TransferOptimizer(SPACE).ask(n)


def test_tell_of_unknown_parameters_raises_error():
    with pytest.raises(ValueError, match="does not have the parameters"):
        TransferOptimizer(SPACE).tell({"c": 1}, 0.5)


def test_space_of_thirty_parameters_and_nine_branches_is_not_repeated():
    space = [{f"x{i}": uniform(0, 1) for i in range(30)}, *({f"y{i}": [1, 2, 3]} for i in range(8))]
    optimizer = TransferOptimizer(space, surrogate="gp", random_state=0)
    asked = run(optimizer, 12, score=lambda p: -sum((v - 0.5) ** 2 for v in p.values()))
    assert len({params_identity(p) for p in asked}) == 12


def test_plateau_is_left_by_filling_the_space():
    """On a plateau, the largest uncertainty would lead from corner to corner."""
    space = {"x": uniform(0, 1), "y": uniform(0, 1), "z": uniform(0, 1)}
    optimizer = TransferOptimizer(space, random_state=0)
    for _ in range(24):
        [params] = optimizer.ask()
        inside = all(0.3 < value < 0.7 for value in params.values())
        optimizer.tell(params, float(inside))
        if inside:
            break
    assert inside
    corners = [
        all(min(v, 1 - v) < 0.05 for v in t.params.values()) for t in optimizer.to_task().trials
    ]
    assert sum(corners) <= 2


@pytest.mark.parametrize("surrogate", ["multi-gp", "dklm"])
def test_single_trial_is_no_plateau(surrogate):
    """One trial has no spread of scores, but a surrogate with past tasks can learn from it."""
    rng = np.random.default_rng(0)
    tasks = []
    for k in range(3):
        draws = Space.parse(SPACE).sample(12, rng)
        tasks.append(
            Task.from_trials(SPACE, [(p, -abs(p["a"] - 0.2 * k)) for p in draws], id=str(k))
        )
    optimizer = TransferOptimizer(SPACE, tasks, surrogate=surrogate, random_state=0)
    optimizer.tell({"a": 0.4, "b": 0.5}, 0.0)
    optimizer.fit_surrogate()
    assert np.isfinite(optimizer.predict([{"a": 0.1, "b": 0.5}])).all()


# -- invalid and extreme values --------------------------------------------------------------------


@pytest.mark.parametrize("bad", [None, "1", np.nan, np.inf])
def test_tell_of_non_numeric_value_raises_error(bad):
    optimizer = TransferOptimizer({"C": loguniform(1e-3, 1e3), "n": [1, 2, 3]}, random_state=0)
    for score in (0.1, 0.5, 0.3, 0.2, 0.4):
        optimizer.tell(*optimizer.ask(), score)
    with pytest.raises(ValueError, match=r"C=.* is not a number"):
        optimizer.tell({"C": bad, "n": 1}, 0.1)
    assert len(optimizer.to_task().trials) == 5
    assert optimizer.ask()


@pytest.mark.parametrize(
    "metrics", [{"m": "x"}, {"m": None}, {3: 0.1}], ids=["text", "None", "numeric name"]
)
def test_tell_of_invalid_metric_raises_error(metrics):
    optimizer = TransferOptimizer({"C": loguniform(1e-3, 1e3)}, random_state=0)
    with pytest.raises((TypeError, ValueError)):
        optimizer.tell({"C": 1.0}, 0.1, metrics=metrics)
    assert not optimizer.to_task().trials


@pytest.mark.parametrize("surrogate", ["auto", "gp"])
def test_value_far_outside_of_space_does_not_break_the_model(surrogate):
    space = {"a": uniform(0, 1)}
    past = [
        Task.from_trials(
            {"a": [0.2, 0.5, 0.8]}, [({"a": a}, -abs(a - 0.5)) for a in (0.2, 0.5, 0.8, 1e300)]
        )
        for _ in range(12)
    ]
    optimizer = TransferOptimizer(space, past, surrogate=surrogate, random_state=0)
    optimizer.tell({"a": 1e300}, -1e3)
    for _ in range(5):
        [params] = optimizer.ask()
        optimizer.tell(params, -abs(params["a"] - 0.5))
    assert optimizer.propose()[0].origin.startswith(("model", "task"))


def test_suggestions_are_at_most_the_size_of_the_space():
    found = TransferOptimizer({"C": [1, 2, 3]}, random_state=0).suggest(n=6, defaults={"C": 1.0})
    assert sorted(each.params["C"] for each in found) == [1, 2, 3]


def test_integers_beyond_64_bits_are_recorded_and_transferred(tmp_path):
    optimizer = TransferOptimizer({"seed": [1, 2**70, 3**60]}, random_state=0)
    for params in optimizer.ask(3):
        optimizer.tell(params, float(params["seed"] == 2**70))
    archive = Archive(tmp_path)
    archive.append(optimizer.to_task())
    [task] = archive
    warm = TransferOptimizer(
        {"seed": [1, 2**70, 3**60]}, [task], surrogate="warm-start", random_state=0
    )
    assert warm.ask() == [{"seed": 2**70}]


@pytest.mark.parametrize("surrogate", ["gp", "auto", "rgpe", "warm-start"])
def test_proposals_are_the_same_if_numpy_raises_floating_point_errors(surrogate):
    past = [
        Task.from_trials(SPACE, [(p, bowl(p)) for p in Space.parse(SPACE).sample(8, seed)])
        for seed in range(3)
    ]
    with np.errstate(all="raise"):
        optimizer = TransferOptimizer(SPACE, past, surrogate=surrogate, random_state=0)
        asked = run(optimizer, 8, score=lambda params: 1e-100 * bowl(params))
        assert np.geterr()["under"] == "raise"
    assert asked == run(
        TransferOptimizer(SPACE, past, surrogate=surrogate, random_state=0),
        8,
        score=lambda params: 1e-100 * bowl(params),
    )


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e5, 1e-5])
@pytest.mark.parametrize(
    "surrogate", ["auto", "dist-gp", "dist-blr", "ablr", "common-surface", "rgpe", "tst"]
)
def test_target_scores_may_have_another_scale_than_past_scores(surrogate, unit):
    """The scale of past scores is not transferred, but their shape may be."""

    def error(params, place):
        return -0.2 - (params["a"] - place) ** 2 - 0.3 * (params["b"] - 0.5) ** 2

    def make_profile(seed):
        return profile(np.random.default_rng(seed).random((40, 3)), np.arange(40.0))

    past = [
        Task.from_trials(
            SPACE,
            [(p, error(p, 0.1 + 0.05 * n)) for p in Space.parse(SPACE).sample(12, n)],
            make_profile(n),
            id=f"{n}",
        )
        for n in range(5)
    ]
    optimizer = TransferOptimizer(
        SPACE, past, profile=make_profile(9), surrogate=surrogate, random_state=0
    )
    predicted, observed = [], []
    for _ in range(12):
        [proposal] = optimizer.propose()
        predicted.append((proposal.mean / unit, proposal.std / unit))
        observed.append(error(proposal.params, 0.7))  # another optimum than in the past tasks
        optimizer.tell(proposal.params, unit * observed[-1])
    assert max(observed) > -0.22
    # Scores that surprise or hardly differ are followed by trials that fill the space, without a
    # prediction.
    errors = [abs(y - m) / s for (m, s), y in zip(predicted[4:], observed[4:], strict=True)]
    assert np.nanmedian(errors) < 10  # in standard deviations


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["gp", "auto", "dist-gp", "ablr"])
def test_batch_in_one_dimension_has_no_near_duplicates(surrogate):
    space = {"a": uniform(0, 1)}
    past = [
        Task.from_trials(
            space,
            [(p, -((p["a"] - 0.4) ** 2)) for p in Space.parse(space).sample(10, n)],
            profile(np.random.default_rng(n).random((30, 2)), np.arange(30.0)),
            id=str(n),
        )
        for n in range(4)
    ]
    target = profile(np.random.default_rng(9).random((30, 2)), np.arange(30.0))
    optimizer = TransferOptimizer(space, past, profile=target, surrogate=surrogate, random_state=0)
    for _ in range(3):
        batch = optimizer.ask(6)
        for params in batch:
            optimizer.tell(params, -((params["a"] - 0.5) ** 2))
    gaps = np.diff(sorted(params["a"] for params in batch))
    assert np.sum(gaps < 0.015) <= 1  # settings of past tasks may be close to each other
    assert max(trial.score for trial in optimizer.to_task().trials) > -1e-3


def test_exhausted_space_stays_exhausted():
    optimizer = TransferOptimizer({"a": [1, 2, 3]}, random_state=0)
    assert not optimizer.is_exhausted
    run(optimizer, 4, score=lambda params: 1.0)
    assert optimizer.is_exhausted


@pytest.mark.parametrize("n", [0, -1, 1.5, "a", None])
def test_number_of_proposals_must_be_a_positive_integer(n):
    optimizer = TransferOptimizer(SPACE, random_state=0)
    for ask in (optimizer.ask, lambda n: optimizer.suggest(n=n)):
        with pytest.raises(ValueError, match="must be an integer"):
            ask(n)
    assert len(optimizer.ask(np.int64(2))) == 2


@pytest.mark.filterwarnings("ignore:.*nothing to learn")
@pytest.mark.parametrize(
    "surrogate", ["auto", "dist-gp", "dist-blr", "ablr", "common-surface", "multi-gp"]
)
def test_past_scores_whose_squares_overflow_do_not_break_the_model(surrogate):
    past = [
        Task.from_trials(
            SPACE,
            [(p, 1e160 * bowl(p)) for p in Space.parse(SPACE).sample(6, n)],
            profile(np.random.default_rng(n).random((30, 2)), np.arange(30.0)),
            id=str(n),
        )
        for n in range(3)
    ]
    target = profile(np.random.default_rng(9).random((30, 2)), np.arange(30.0))
    optimizer = TransferOptimizer(SPACE, past, profile=target, surrogate=surrogate, random_state=0)
    run(optimizer, 8)
    assert max(trial.score for trial in optimizer.to_task().trials) > -0.2


def test_unfinished_trials_do_not_block_their_neighborhood():
    """A worker may die, or round a value before it is observed."""
    optimizer = TransferOptimizer({"a": uniform(0, 1)}, surrogate="gp", random_state=0)
    run(optimizer, 6, score=lambda params: -((params["a"] - 0.37) ** 2))
    optimizer.ask(3)
    found = run(optimizer, 10, score=lambda params: -((params["a"] - 0.37) ** 2))
    assert min(abs(params["a"] - 0.37) for params in found) < 2e-3


def test_pool_of_close_members_is_ranked_by_the_model():
    pool = [{"a": a} for a in np.linspace(0.55, 0.56, 40)]
    optimizer = TransferOptimizer({"a": uniform(0, 1)}, surrogate="gp", random_state=0)
    for a in (0.1, 0.3, 0.5, 0.6, 0.9):
        optimizer.tell({"a": a}, -((a - 0.8) ** 2))
    assert min(params["a"] for params in optimizer.ask(2, pool)) > 0.559  # not the first members


@pytest.mark.parametrize("surrogate", ["auto", "rgpe", "ablr"])
def test_rounding_error_of_equal_scores_is_no_scale(surrogate):
    """The standard deviation of three scores of 0.7 is 1e-16, not 0."""
    past = [
        Task.from_trials(SPACE, [(p, 0.8 + 0.1 * bowl(p)) for p in Space.parse(SPACE).sample(8, n)])
        for n in range(5)
    ]
    optimizer = TransferOptimizer(SPACE, past, surrogate=surrogate, random_state=0)
    run(optimizer, 3, score=lambda params: 0.7)
    assert optimizer.propose()[0].std > 1e-4


@pytest.mark.parametrize(
    ("space", "outside"),
    [
        ({"C": [1, 10, 100]}, {"C": 1000}),
        ({"C": [1, 10, 100]}, {"C": 20}),
        ({"C": randint(1, 4)}, {"C": 50}),
        ({"C": ["a", "b", "c"]}, {"C": "z"}),
    ],
    ids=["above list", "within list", "above integers", "category"],
)
def test_observation_outside_of_space_hides_no_member(space, outside):
    optimizer = TransferOptimizer(space, random_state=0)
    optimizer.tell(outside, 0.9)
    asked = {optimizer.ask()[0]["C"] for _ in range(3)}
    assert len(asked) == 3 and outside["C"] not in asked
    assert optimizer.is_exhausted


def test_score_none_raises_type_error():
    with pytest.raises(TypeError, match="Pass NaN if the configuration failed"):
        TransferOptimizer({"C": [1, 10]}).tell({"C": 1}, None)
