"""
The weekly retune
=================

The same table with more rows every week: start from what worked last week.
"""

# %%
# By default, past searches that share rows with the current data are excluded, so that nested
# cross-validation stays valid. There is one exception: last week's search is used if all its rows
# are in this week's table and the table has new rows.
import tempfile

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV

X, y = make_classification(600, 8, n_informative=5, flip_y=0.1, random_state=0)
space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 1e1)}
archive = Archive(tempfile.mkdtemp(), starter=False)

histories = {}
for week, n_rows in enumerate([200, 300, 400, 500, 600], 1):
    search = TransferSearchCV(SVC(), space, n_iter=6, cv=3, archive=archive, random_state=week)
    search.fit(X[:n_rows], y[:n_rows])
    histories[week] = search.cv_results_["mean_test_score"]
    used = [task for task in search.source_tasks_ if task["excluded"] is None]
    print(f"week {week}: {len(used)} past searches used, best accuracy {search.best_score_:.3f}")

# %%
# From the second week on, the first candidate is already close to the best one.
_, ax = plt.subplots(layout="constrained")
for week, scores in histories.items():
    ax.plot(np.arange(1, 7), np.maximum.accumulate(scores), "o-", label=f"week {week}")
ax.set(xlabel="Candidate", ylabel="Best accuracy so far")
ax.legend()
