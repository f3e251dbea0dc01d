"""
Resuming after a kill
=====================

Every finished candidate is on disk before the next batch is proposed.
"""

# %%
# A module that runs a search. The estimator counts its fits and can end the process, as a power cut
# or ``kill -9`` would: nothing has a chance to be saved any more.
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from sktransfer import Archive
from sktransfer.inspection import SearchHistoryDisplay

MODULE = """
import os

from scipy.stats import loguniform
from sklearn.datasets import load_wine
from sklearn.svm import SVC

from sktransfer import TransferSearchCV

counter = {"fits": 0, "limit": 1000}


class CountedSVC(SVC):
    def fit(self, X, y):
        counter["fits"] += 1
        if counter["fits"] > counter["limit"]:
            os._exit(1)
        return super().fit(X, y)


def run_search(archive):
    space = {"C": loguniform(1e-2, 1e4), "gamma": loguniform(1e-6, 1e-1)}
    search = TransferSearchCV(
        CountedSVC(), space, n_iter=10, cv=3, archive=archive, resume=True, random_state=0
    )
    return search.fit(*load_wine(return_X_y=True))
"""
folder = Path(tempfile.mkdtemp())
(folder / "tuning.py").write_text(MODULE)

# %%
# A first process runs the search and ends at its thirteenth fit.
FIRST_RUN = """
import tuning
from sktransfer import Archive

tuning.counter["limit"] = 12
tuning.run_search(Archive("past", starter=False))
"""
ended = subprocess.run([sys.executable, "-c", FIRST_RUN], cwd=folder)
print("exit code of the process:", ended.returncode)
archive = Archive(folder / "past", starter=False)
for task in archive:
    print(task)

# %%
# The same search again, in this process. The candidates that are known are not fitted again.
sys.path.insert(0, str(folder))
tuning = import_module("tuning")
search = tuning.run_search(archive)
n_candidates = len(search.cv_results_["params"])
n_fits = tuning.counter["fits"]
print(f"{n_candidates} candidates, {n_fits} fits instead of {n_candidates * 3 + 1}")
SearchHistoryDisplay.from_estimator(search)
