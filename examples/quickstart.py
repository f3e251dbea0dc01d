"""Tune an SVC on data set after data set, and watch the search start where the last ones ended.

    python examples/quickstart.py

All data sets ship with scikit-learn. The archive is a temporary folder here; without the `archive`
argument it is your own, and lasts.
"""

import tempfile
import time

import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV

TRIALS = 10
SPACE = {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)}
PAST = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
}


def best_so_far(search):
    return np.maximum.accumulate(search.cv_results_["mean_test_score"])


def main():
    begun = time.perf_counter()
    pipeline = make_pipeline(StandardScaler(), SVC())
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(folder)
        print("Tuning", ", ".join(PAST), "one after the other:\n")
        for name, (X, y) in PAST.items():
            search = TransferSearchCV(
                pipeline, SPACE, n_iter=20, archive=archive, random_state=0
            ).fit(X, y)
            heard = sum(source["refused"] is None for source in search.source_tasks_)
            print(
                f"  {name:14} best accuracy {search.best_score_:.3f};  {heard} past tasks were "
                f"heard;  the archive holds {len(archive)}"
            )

        X, y = load_digits(return_X_y=True)
        X, y = X[:700], y[:700]
        print("\nNow a data set that is new to it: digits.\n")
        ours = TransferSearchCV(
            pipeline, SPACE, n_iter=TRIALS, archive=archive, random_state=0
        ).fit(X, y)
        print("  It leaned on:")
        for source in ours.source_tasks_:
            print(f"    {source['id']}  similarity {source['similarity']:.2f}")

    randomized = [
        best_so_far(RandomizedSearchCV(pipeline, SPACE, n_iter=TRIALS, random_state=seed).fit(X, y))
        for seed in range(5)
    ]
    print("\n  Best accuracy after                    1      3      5     10 trials")
    for label, curve in [
        ("TransferSearchCV", best_so_far(ours)),
        ("RandomizedSearchCV (mean of 5)", np.mean(randomized, axis=0)),
    ]:
        print(f"    {label:32}" + "".join(f"{curve[k - 1]:7.3f}" for k in (1, 3, 5, 10)))
    print(f"\n  Best parameters: {ours.best_params_}")
    print(f"  ({time.perf_counter() - begun:.0f} seconds)")


if __name__ == "__main__":
    main()
