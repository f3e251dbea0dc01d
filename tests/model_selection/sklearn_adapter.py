"""`TransferSearchCV` under the names and signatures of GridSearchCV and RandomizedSearchCV.

They run scikit-learn's own tests, without an archive and with the whole grid as budget. Those tests
list every column and attribute that may exist. So `fit` removes what `TransferSearchCV` adds: three
columns of ``cv_results_`` and six attributes.
"""

import sys
import warnings

import numpy as np

from sktransfer import TransferSearchCV
from sktransfer.exceptions import SpaceWarning

ADDED_COLUMNS = ("origin", "predicted_mean", "predicted_std")
ADDED_ATTRIBUTES = (
    "embedding_",
    "n_other_tasks_",
    "source_tasks_",
    "space_",
    "surrogate_",
    "task_id_",
)


class _Adapter(TransferSearchCV):
    n_iter = sys.maxsize
    archive = None
    surrogate = "random"
    batch_size = None
    timeout = None
    fit_timeout = None
    patience = None
    target_score = None
    resume = False
    racing = False
    initial = None
    name = None
    random_state = None

    def _set_attributes(self, **params):
        for name, value in params.items():
            setattr(self, name, value)

    def fit(self, X, y=None, **params):
        with warnings.catch_warnings():
            # GridSearchCV has no budget that a grid could be smaller than.
            warnings.filterwarnings("ignore", category=SpaceWarning)
            super().fit(X, y, **params)
        for column in ADDED_COLUMNS:
            del self.cv_results_[column]
        for attribute in ADDED_ATTRIBUTES:
            delattr(self, attribute)
        return self


class GridSearchCV(_Adapter):
    _required_parameters = ("estimator", "param_grid")
    _parameter_constraints = {**TransferSearchCV._parameter_constraints, "param_grid": [dict, list]}

    def __init__(
        self,
        estimator,
        param_grid,
        *,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        pre_dispatch="2*n_jobs",
        error_score=np.nan,
        return_train_score=False,
    ):
        self._set_attributes(
            estimator=estimator,
            param_grid=param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    @property
    def space(self):
        return self.param_grid


class RandomizedSearchCV(_Adapter):
    _required_parameters = ("estimator", "param_distributions")
    _parameter_constraints = {
        **TransferSearchCV._parameter_constraints,
        "param_distributions": [dict, list],
    }

    def __init__(
        self,
        estimator,
        param_distributions,
        *,
        n_iter=10,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        pre_dispatch="2*n_jobs",
        random_state=None,
        error_score=np.nan,
        return_train_score=False,
    ):
        self._set_attributes(
            estimator=estimator,
            param_distributions=param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    @property
    def space(self):
        return self.param_distributions
