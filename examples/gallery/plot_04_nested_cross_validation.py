"""
Nested cross-validation
=======================

A search may learn from past searches, but never from the rows it is evaluated on.
"""

# %%
# ``cross_val_score`` fits one search for each outer fold. All of them add their trials to the same
# archive.
import tempfile

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV

X, y = load_wine(return_X_y=True)
archive = Archive(tempfile.mkdtemp())
search = TransferSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
    n_iter=8,
    cv=3,
    archive=archive,
    random_state=0,
)
outer = cross_validate(search, X, y, cv=5, return_estimator=True)
print("outer scores:", outer["test_score"].round(3))

# %%
# The searches of the other folds are in the archive, and each of them is excluded: it saw rows of
# the same data.
for fold, fitted in enumerate(outer["estimator"], 1):
    excluded = [row for row in fitted.source_tasks_ if row["excluded"]]
    used = len(fitted.source_tasks_) - len(excluded)
    print(f"fold {fold}: {used} used, {len(excluded)} excluded")
print("for example:", excluded[0]["excluded"])

# %%
# The inner scores choose the parameters and are therefore optimistic. The outer scores are not.
inner = [fitted.best_score_ for fitted in outer["estimator"]]
_, ax = plt.subplots(layout="constrained")
folds = np.arange(1, 6)
ax.vlines(folds, outer["test_score"], inner, color="lightgray")
ax.plot(folds, inner, "s", label="inner: best score of the search")
ax.plot(folds, outer["test_score"], "o", label="outer: score on the test fold")
ax.set(xlabel="Outer fold", ylabel="Accuracy", xticks=folds)
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
