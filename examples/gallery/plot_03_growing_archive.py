"""
Growing an archive over twenty data sets
========================================

Every search adds its trials to the archive, and later searches start from them.
"""

# %%
# Twenty data sets arrive one after the other. The archive is empty at first. To see what our own
# searches contribute, neither the starter archive nor the pretrained model is used
# (``surrogate="task-prior"``). Each search is run a second time without the archive.
import tempfile

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.inspection import ImportanceDisplay, TaskMapDisplay

space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 1e1)}
archive = Archive(tempfile.mkdtemp(), starter=False)


def make_data(seed):
    return make_classification(
        n_samples=120, n_features=4 + seed % 5, n_informative=3, n_redundant=1, random_state=seed
    )


def run_search(seed, archive):
    search = TransferSearchCV(
        SVC(), space, n_iter=8, cv=3, archive=archive, surrogate="task-prior", random_state=seed
    )
    return search.fit(*make_data(seed)).cv_results_["mean_test_score"]


scores = {
    "with the archive": np.array([run_search(seed, archive) for seed in range(20)]),
    "without": np.array([run_search(seed, None) for seed in range(20)]),
}

# %%
# How much accuracy the best trial so far is short of the best one that either search found, on the
# last ten data sets. With the archive, the first trial is a setting that worked on earlier data.
highest = np.max([each.max(axis=1) for each in scores.values()], axis=0)
_, ax = plt.subplots(layout="constrained")
for name, each in scores.items():
    short = highest[10:, None] - np.maximum.accumulate(each[10:], axis=1)
    ax.plot(np.arange(1, 9), short.mean(axis=0), "o-", label=name)
ax.set(xlabel="Trial", ylabel="Accuracy below the best, mean of 10 data sets", ylim=(0, None))
ax.legend()

# %%
# The data sets of the archive on a map of their meta-features.
TaskMapDisplay.from_archive(archive)

# %%
# Which parameter matters, over all searches.
ImportanceDisplay.from_archive(archive, SVC(), space)
