"""
A dask cluster
==============

Fits run in joblib, so a cluster needs one more line.
"""

# %%
# The fits run on the workers of a local cluster, which are two threads here. ``Client()`` starts
# processes, and ``Client("tcp://...")`` connects to a cluster that is running elsewhere.
import joblib
from dask.distributed import Client
from scipy.stats import loguniform
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.inspection import SearchHistoryDisplay

X, y = load_wine(return_X_y=True)
search = TransferSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
    n_iter=12,
    batch_size=4,
    random_state=0,
)
options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
with Client(processes=False, **options) as client, joblib.parallel_config("dask"):
    search.fit(X, y)
    print(f"{len(client.ncores())} workers, best accuracy {search.best_score_:.3f}")

# %%
# Four candidates are proposed at a time. Those that are not evaluated yet are assumed to score as
# predicted, so that a batch spreads out.
SearchHistoryDisplay.from_estimator(search)
