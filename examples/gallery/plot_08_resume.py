"""
Resuming after a kill
=====================

Every finished candidate is on disk before the next batch is proposed.
"""

# %%
# An estimator that stops the program at its thirteenth fit, as a power cut would.
import tempfile

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_wine
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.inspection import SearchHistoryDisplay

X, y = load_wine(return_X_y=True)
space = {"C": loguniform(1e-2, 1e4), "gamma": loguniform(1e-6, 1e-1)}
counter = {"fits": 0, "limit": 12}


class Interrupted(SVC):
    """An SVC that is interrupted after a number of fits."""

    def fit(self, X, y):
        counter["fits"] += 1
        if counter["fits"] > counter["limit"]:
            raise KeyboardInterrupt
        return super().fit(X, y)


archive = Archive(tempfile.mkdtemp(), starter=False)
search = TransferSearchCV(
    Interrupted(), space, n_iter=10, cv=3, archive=archive, resume=True, random_state=0
)
try:
    search.fit(X, y)
except KeyboardInterrupt:
    print("interrupted")
for task in archive:
    print(task)

# %%
# The same search again. The candidates that are known are not fitted again.
counter.update(fits=0, limit=np.inf)
search.fit(X, y)
n_candidates = len(search.cv_results_["params"])
print(f"{n_candidates} candidates, {counter['fits']} fits in place of {n_candidates * 3 + 1}")
SearchHistoryDisplay.from_estimator(search)
