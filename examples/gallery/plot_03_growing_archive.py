"""
Growing an archive over twenty data sets
========================================

Every search adds its trials to the archive, and later searches start from them.
"""

# %%
# Twenty data sets arrive one after the other. The archive is empty at first, and the starter
# archive is not used, to see what our own searches contribute.
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


first_scores, best_scores, plain_scores = [], [], []
for seed in range(20):
    X, y = make_data(seed)
    search = TransferSearchCV(SVC(), space, n_iter=8, cv=3, archive=archive, random_state=seed)
    scores = search.fit(X, y).cv_results_["mean_test_score"]
    plain = TransferSearchCV(SVC(), space, n_iter=8, cv=3, archive=None, random_state=seed)
    plain_scores.append(plain.fit(X, y).cv_results_["mean_test_score"][0])
    first_scores.append(scores[0])
    best_scores.append(scores.max())

# %%
# How much the first trial loses to the best one. With an archive, it is a good setting of earlier
# data sets. Without, it is the middle of the space.
_, ax = plt.subplots(layout="constrained")
ax.plot(np.arange(1, 21), np.subtract(best_scores, first_scores), "o-", label="with the archive")
ax.plot(np.arange(1, 21), np.subtract(best_scores, plain_scores), "o-", label="without")
ax.set(xlabel="Data set", ylabel="Best score minus score of the first trial")
ax.xaxis.get_major_locator().set_params(integer=True)
ax.legend()

# %%
# The data sets of the archive on a map of their meta-features.
TaskMapDisplay.from_archive(archive)

# %%
# Which parameter matters, over all searches.
ImportanceDisplay.from_archive(archive, SVC(), space)
