"""
The weekly retune
=================

The same table with more rows every week: start from what worked last week.
"""

# %%
# By default, past searches that share rows with the current data are excluded, so that nested
# cross-validation stays valid. There is one exception: last week's search is used if all its rows
# are in this week's table and the table has new rows.
#
# Each week is tuned twice, with the archive of the earlier weeks and without. To see what the
# archive contributes, neither the starter archive nor the pretrained model is used
# (``surrogate="task-prior"``).
import tempfile

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV

X, y = load_digits(return_X_y=True)
space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-6, 1e1)}
archive = Archive(tempfile.mkdtemp(), starter=False)
weeks = np.arange(1, 6)

first = {"with the archive": [], "without": []}
best = []
for week in weeks:
    rows = slice(0, 200 + 100 * week)
    fitted = []
    for name, past in zip(first, [archive, None], strict=True):
        search = TransferSearchCV(
            SVC(), space, n_iter=8, cv=3, archive=past, surrogate="task-prior", random_state=0
        )
        fitted.append(search.fit(X[rows], y[rows]))
        first[name].append(search.cv_results_["mean_test_score"][0])
    best.append(max(search.best_score_ for search in fitted))
    overlaps = [task["overlap"] for task in fitted[0].source_tasks_]
    print(f"week {week}: {len(X[rows])} rows, past searches used: {overlaps}")

# %%
# From the second week on, the first candidate of the search with the archive is nearly as good as
# the best one. Without it, every week starts in the middle of the space.
_, ax = plt.subplots(layout="constrained")
ax.plot(weeks, best, "--", color="gray", label="best candidate of both searches")
for name, scores in first.items():
    ax.plot(weeks, scores, "o-", label=f"first candidate, {name}")
ax.set(xlabel="Week", ylabel="Accuracy", xticks=weeks)
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), fontsize="small")
