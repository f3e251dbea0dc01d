"""Search the hyperparameters of an SVC on several data sets, where later searches use earlier ones.

    python examples/quickstart.py

All data sets ship with scikit-learn. The archive of this example is a temporary folder. Without the
`archive` argument, searches use your own archive, which is permanent.
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

N_TRIALS = 10
SPACE = {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)}
PAST_DATA = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
}


def best_so_far(search):
    """Return the best mean test score after each trial."""
    return np.maximum.accumulate(search.cv_results_["mean_test_score"])


def main():
    """Fill an archive with three searches, and compare a fourth one to random search."""
    start = time.perf_counter()
    pipeline = make_pipeline(StandardScaler(), SVC())
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(folder, starter=False)  # so that the past is these searches alone
        print(f"Searches on {', '.join(PAST_DATA)}:\n")
        for name, (X, y) in PAST_DATA.items():
            search = TransferSearchCV(pipeline, SPACE, n_iter=20, archive=archive, random_state=0)
            search.fit(X, y)
            n_used = sum(source["excluded"] is None for source in search.source_tasks_)
            print(
                f"  {name:14} best accuracy {search.best_score_:.3f}, past tasks used: {n_used}, "
                f"tasks in the archive: {len(archive)}"
            )

        X, y = load_digits(return_X_y=True)
        X, y = X[:700], y[:700]
        print("\nSearch on a new data set, digits:\n")
        ours = TransferSearchCV(pipeline, SPACE, n_iter=N_TRIALS, archive=archive, random_state=0)
        ours.fit(X, y)
        print("  Past tasks used:")
        for source in ours.source_tasks_:
            print(f"    {source['id']}  similarity {source['similarity']:.2f}")

    randomized = [
        best_so_far(
            RandomizedSearchCV(pipeline, SPACE, n_iter=N_TRIALS, random_state=seed).fit(X, y)
        )
        for seed in range(5)
    ]
    print("\n  Best accuracy after                    1      3      5     10 trials")
    for label, curve in [
        ("TransferSearchCV", best_so_far(ours)),
        ("RandomizedSearchCV (mean of 5)", np.mean(randomized, axis=0)),
    ]:
        print(f"    {label:32}" + "".join(f"{curve[k - 1]:7.3f}" for k in (1, 3, 5, 10)))
    print(f"\n  Best parameters: {ours.best_params_}")
    print(f"  Total time: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
