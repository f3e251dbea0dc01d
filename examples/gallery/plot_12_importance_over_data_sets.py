"""
What matters over many data sets
================================

The starter archive knows how gradient boosting did on dozens of data sets.
"""

# %%
# A Gaussian process is fitted to each past search, and its variance is decomposed by functional
# ANOVA. The dots are single data sets.
import tempfile

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

from sktransfer import Archive, Space, TransferSearchCV, suggest_space
from sktransfer.inspection import ImportanceDisplay, TaskMapDisplay

archive = Archive(tempfile.mkdtemp(), starter=True)
estimator = HistGradientBoostingClassifier(random_state=0)
ImportanceDisplay.from_archive(archive, estimator, max_tasks=30)

# %%
# ``space="auto"`` searches the parameters that matter, in the ranges that held the good settings.
print(Space.parse(suggest_space(estimator)))

# %%
# The current data among those of past searches. Similar data sets are close to each other.
X, y = load_breast_cancer(return_X_y=True)
search = TransferSearchCV(estimator, "auto", n_iter=4, cv=3, archive=archive, random_state=0)
search.fit(X, y)
TaskMapDisplay.from_estimator(search)
