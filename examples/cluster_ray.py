"""A search on ray.

    pip install sktransfer ray
    python examples/cluster_ray.py

``ray.init(address="auto")`` would use a cluster that runs elsewhere.
"""

import joblib
import ray
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
    ray.init(num_cpus=n_workers, include_dashboard=False)
    try:
        with joblib.parallel_config("ray", n_jobs=n_workers):
            search.fit(X, y)
    finally:
        ray.shutdown()
    return search


if __name__ == "__main__":
    found = main()
    print(found.best_params_, round(found.best_score_, 3))
