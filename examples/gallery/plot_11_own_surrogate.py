"""
Writing your own surrogate
==========================

A surrogate is a class with two methods. This one is a forest.
"""

# %%
# The posterior predicts a mean and a standard deviation for codes of configurations, which are
# arrays in [0, 1]. The trees of a forest disagree where there are few trials, and their spread is
# the uncertainty.
import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.inspection import CalibrationDisplay, SurfaceDisplay
from sktransfer.surrogates import Posterior, SearchHints, Surrogate


class ForestPosterior(Posterior):
    """Predictions of a forest that was fitted to the trials."""

    def __init__(self, forest):
        self._forest = forest

    def predict(self, theta):
        trees = np.array([tree.predict(theta) for tree in self._forest.estimators_])
        return trees.mean(axis=0), trees.std(axis=0) + 1e-4

    def sample(self, theta, n, rng):
        trees = rng.integers(len(self._forest.estimators_), size=n)
        return np.array([self._forest.estimators_[tree].predict(theta) for tree in trees])


class Forest(Surrogate):
    """A surrogate that is a forest of extremely randomized trees.

    Parameters
    ----------
    n_trees : int, default=50
    """

    def __init__(self, n_trees=50):
        self.n_trees = n_trees

    def hints(self, target):
        return SearchHints(n_initial=5)

    def posterior(self, target):
        ok = np.isfinite(target.z)
        forest = ExtraTreesRegressor(self.n_trees, bootstrap=True, random_state=0)
        return ForestPosterior(forest.fit(target.theta[ok], target.z[ok])) if ok.any() else None


X, y = load_wine(return_X_y=True)
search = TransferSearchCV(
    SVC(),
    {"C": loguniform(1e-2, 1e4), "gamma": loguniform(1e-6, 1e-1)},
    n_iter=20,
    surrogate=Forest(),
    archive=None,
    random_state=0,
)
search.fit(X, y)
print(f"{search.best_score_:.3f} with {search.best_params_}")

# %%
# The surface of a forest has edges.
SurfaceDisplay.from_estimator(search)

# %%
# Is its uncertainty right? See how many scores are within one and two standard deviations.
CalibrationDisplay.from_estimator(search)
