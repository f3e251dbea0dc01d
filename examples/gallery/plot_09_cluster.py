"""
A dask cluster
==============

Fits run in joblib, so a cluster needs one more line.
"""

# %%
# With dask installed, the fits run on the workers of a local cluster. ``Client("tcp://...")`` would
# connect to a remote one. Without dask, this example uses threads.
import contextlib

import joblib
from scipy.stats import loguniform
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.inspection import SearchHistoryDisplay

try:
    from dask.distributed import Client
except ImportError:
    Client = None

X, y = load_wine(return_X_y=True)
search = TransferSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
    n_iter=12,
    batch_size=4,
    random_state=0,
)
with contextlib.ExitStack() as stack:
    if Client is not None:
        stack.enter_context(Client(processes=False, dashboard_address=None))
    backend = "threading" if Client is None else "dask"
    stack.enter_context(joblib.parallel_config(backend, n_jobs=2))
    search.fit(X, y)
print(f"on {backend}: {search.best_score_:.3f}")

# %%
# Four candidates are proposed at a time. Those that are not evaluated yet are assumed to score as
# predicted, so that a batch spreads out.
SearchHistoryDisplay.from_estimator(search)
