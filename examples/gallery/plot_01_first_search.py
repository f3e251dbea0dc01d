"""
A first search
==============

Replace ``RandomizedSearchCV`` by ``TransferSearchCV`` and look at what the search did.
"""

# %%
# The search has the parameters, methods and attributes of scikit-learn's searches. By default, it
# uses the pretrained models that ship with the package and your own past searches.
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import TransferSearchCV
from sktransfer.inspection import (
    ImportanceDisplay,
    SearchHistoryDisplay,
    SurfaceDisplay,
    TaskSimilarityDisplay,
)

X, y = load_breast_cancer(return_X_y=True)
search = TransferSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
    n_iter=15,
    random_state=0,
)
search.fit(X, y)
print(search.best_params_, round(search.best_score_, 4))

# %%
# The first candidate is what the pretrained model expects to be best on these data. The bars are
# the scores that were predicted before each evaluation.
SearchHistoryDisplay.from_estimator(search)

# %%
# The model knows most where there are trials.
SurfaceDisplay.from_estimator(search)

# %%
# How much each parameter matters, alone and together with the other.
ImportanceDisplay.from_estimator(search)

# %%
# The search is in the archive now, so that a search on other data learns from it, too.
later = clone(search).fit(*load_wine(return_X_y=True))
TaskSimilarityDisplay.from_estimator(later, max_shown=8)
