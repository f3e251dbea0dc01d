"""
A figure of a paper
===================

The toy problem of Law et al. (2019), in which the optimum is the mean of the data.
"""

# %%
# A data set has 500 draws from a normal distribution, and the score is highest where the parameter
# equals their mean. Three past tasks have data like the target, twelve have others. A surrogate
# that compares the data learns which tasks to follow. The experiment with all methods is in
# :doc:`/results/papers/distbo-toy`. Here are three methods and three seeds. The means are around 4
# and 0, not 0 and 4, because a search without past tasks starts in the middle of the space.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import uniform

from sktransfer import Task, TransferOptimizer, profile
from sktransfer.encoders import DistributionEncoder
from sktransfer.surrogates import GP, DistGP, WarmStart

SPACE = {"theta": uniform(-8, 16)}
N_TRIALS = 8


def make_data(gamma, rng):
    return rng.normal(rng.normal(gamma, 0.5), 1, size=(500, 1))


def score(params, X):
    return float(np.exp(-((params["theta"] - X.mean()) ** 2) / 2))


def make_task(X, rng):
    trials = [({"theta": theta}, score({"theta": theta}, X)) for theta in rng.uniform(-8, 8, 20)]
    return Task.from_trials(SPACE, trials, profile(X, keep="sample"))


def run_search(surrogate, tasks, X, seed):
    optimizer = TransferOptimizer(
        SPACE, tasks, profile=profile(X, keep="sample"), surrogate=surrogate, random_state=seed
    )
    scores = []
    for _ in range(N_TRIALS):
        [params] = optimizer.ask()
        scores.append(score(params, X))
        optimizer.tell(params, scores[-1])
    return np.maximum.accumulate(scores), optimizer.similarity()


# The mean of the data is the optimum and must not be removed by standardization.
methods = {
    "gp, without past tasks": GP(),
    "warm-start": WarmStart(),
    "dist-gp": DistGP(encoder=DistributionEncoder(standardize=False)),
}
best = {name: [] for name in methods}
for seed in range(3):
    rng = np.random.default_rng(seed)
    tasks = [make_task(make_data(gamma, rng), rng) for gamma in [4] * 3 + [0] * 12]
    target = make_data(4, rng)
    for name, surrogate in methods.items():
        history, similarity = run_search(surrogate, tasks, target, seed)
        best[name].append(history)

# %%
# The embedding of the data finds the optimum in the first trials.
_, ax = plt.subplots(layout="constrained")
for name, histories in best.items():
    ax.plot(np.arange(1, N_TRIALS + 1), np.mean(histories, axis=0), "o-", label=name)
ax.set(xlabel="Trial", ylabel="Best score so far (highest possible: 1)")
ax.legend()

# %%
# Similarity to the target, as dist-gp sees it: the first three tasks have data like the target.
_, ax = plt.subplots(layout="constrained")
ax.bar(np.arange(1, 16), similarity, color=["tab:orange"] * 3 + ["tab:blue"] * 12)
ax.set(xlabel="Past task (orange: data like the target)", ylabel="Similarity")
ax.set_xticks(np.arange(1, 16))
