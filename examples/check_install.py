"""Check an installed package: run a search, plot it, and read it back from the archive.

`make dist` runs this file in a new environment, outside of the checkout.
"""

from pathlib import Path

from sklearn.datasets import load_iris, load_wine
from sklearn.svm import SVC

import sktransfer
from sktransfer.inspection import SearchHistoryDisplay

assert "site-packages" in sktransfer.__file__, f"not the installed package: {sktransfer.__file__}"
search = sktransfer.TransferSearchCV(SVC(), "auto", n_iter=6, random_state=0)
search.fit(*load_iris(return_X_y=True))
assert search.embedding_ is not None, "the pretrained models are missing from the package"
SearchHistoryDisplay.from_estimator(search).figure_.savefig("history.png")
assert Path("history.png").stat().st_size > 1000
[task] = sktransfer.Archive()
unpredicted = sktransfer.TransferSearchCV(SVC(), "auto", n_iter=1, surrogate="task-prior")
unpredicted.fit(*load_wine(return_X_y=True))
assert unpredicted.source_tasks_, "the starter archive is missing from the package"
print(f"{task}\nbest: {search.best_params_}, {search.best_score_:.3f}\n")
sktransfer.show_versions()
