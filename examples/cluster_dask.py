"""A search on a dask cluster of several processes.

    pip install sktransfer distributed
    python examples/cluster_dask.py

``Client("tcp://scheduler:8786")`` would use a cluster that runs elsewhere.
"""

import joblib
from distributed import Client, LocalCluster
from scipy.stats import loguniform
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import TransferSearchCV


def main(n_workers: int = 2, n_iter: int = 8) -> TransferSearchCV:
    X, y = load_wine(return_X_y=True)
    search = TransferSearchCV(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
        n_iter=n_iter,
        archive=None,
    )
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config("dask"),
    ):
        search.fit(X, y)
    return search


if __name__ == "__main__":  # the workers import this file
    found = main()
    print(found.best_params_, round(found.best_score_, 3))
