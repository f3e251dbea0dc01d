"""
Importing results of GridSearchCV and Optuna
============================================

Past searches need not have been run with this package.
"""

# %%
# A fitted search of scikit-learn can be added as it is. The data make it possible to compare it
# with later data, and to exclude it where rows are shared.
import tempfile

import optuna
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.inspection import SearchHistoryDisplay

archive = Archive(tempfile.mkdtemp(), starter=False)
model = make_pipeline(StandardScaler(), SVC())
X, y = load_iris(return_X_y=True)
grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.001, 0.01, 0.1, 1]}
archive.add(GridSearchCV(model, grid).fit(X, y), X, y)

# %%
# So can a study of Optuna. Its parameters are named as those of the estimator.
optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = load_wine(return_X_y=True)


def objective(trial):
    C = trial.suggest_float("C", 1e-2, 1e3, log=True)
    gamma = trial.suggest_float("gamma", 1e-4, 1e1, log=True)
    return cross_val_score(make_pipeline(StandardScaler(), SVC(C=C, gamma=gamma)), X, y).mean()


study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
study.optimize(objective, n_trials=20)
archive.add(study, X, y, estimator=SVC(), metric="accuracy")
for task in archive:
    print(task)

# %%
# ``svc__C`` of the pipeline and ``C`` of the study are the same parameter, so the next search
# learns from both.
X, y = load_breast_cancer(return_X_y=True)
search = TransferSearchCV(
    model,
    {"svc__C": loguniform(1e-2, 1e3), "svc__gamma": loguniform(1e-4, 1e1)},
    n_iter=10,
    archive=archive,
    random_state=0,
)
search.fit(X, y)
SearchHistoryDisplay.from_estimator(search, name="Learning from GridSearchCV and Optuna")
