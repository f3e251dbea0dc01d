"""Small versions of two experiments of Law et al. 2019, sections 5.1 and 5.2.

The paper lets a plain Gaussian process choose the sources' trials; here they are drawn at random
and around the best so far, which has a similar effect and takes no time.
"""

import pytest

from benchmarks.papers._distbo_tasks import counter_problem, toy_problem
from sktransfer import TransferOptimizer
from sktransfer.encoders import DistributionEncoder, ManualEncoder
from sktransfer.surrogates import DistGP

SEEDS = range(5)


def optimizer_of(problem, encoder, seed):
    surrogate = DistGP(encoder, scores="raw")
    return TransferOptimizer(
        problem.space,
        problem.tasks,
        profile=problem.profile,
        surrogate=surrogate,
        random_state=seed,
    )


def toy(seed):
    """Best score after three trials, and whether the three similar tasks are found."""
    problem = toy_problem(seed)
    optimizer = optimizer_of(problem, DistributionEncoder(standardize=False), seed)
    for _ in range(3):
        [params] = optimizer.ask()
        optimizer.tell(params, problem.score(params))
    similarity = optimizer.similarity()
    return optimizer.to_task().best.score, similarity[:3].min() > similarity[3:].max()


@pytest.mark.slow
def test_dist_gp_solves_toy_of_law_et_al():
    runs = [toy(seed) for seed in SEEDS]
    assert sum(best >= 0.95 for best, _ in runs) >= 4
    assert sum(ranked for _, ranked in runs) >= 4


def counterexample(seed):
    """First trial's score by the learned and by the handcrafted embedding."""
    problem = counter_problem(seed)
    found = []
    for encoder in (DistributionEncoder(hidden=40, features=20), ManualEncoder()):
        [params] = optimizer_of(problem, encoder, seed).ask()
        found.append(problem.score(params))
    return found


@pytest.mark.slow
def test_dist_gp_solves_counterexample_of_law_et_al():
    runs = [counterexample(seed) for seed in SEEDS]
    assert sum(learned > handcrafted for learned, handcrafted in runs) >= 4
