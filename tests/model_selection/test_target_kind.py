"""The estimator decides whether whole numbers are classes or amounts."""

import numpy as np
from scipy.stats import loguniform
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from sktransfer import Archive, TransferSearchCV, suggest
from sktransfer.dataset import target_kind

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
GRADES = (10 + 3 * X[:, 0] + RNG.normal(size=200)).astype(int)
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}


def test_kinds_of_estimators():
    assert target_kind(make_pipeline(StandardScaler(), SVR())) == "regression"
    assert target_kind(SVC()) == "classification"
    assert target_kind(KMeans()) is None
    assert target_kind(BaseEstimator()) is None
    assert target_kind(object()) is None


def test_regressor_of_grades_uses_the_pretrained_model(tmp_path):
    search = TransferSearchCV(SVR(), SPACE, n_iter=2, cv=3, archive=tmp_path, random_state=0)
    search.fit(X, GRADES)
    assert search.embedding_ is not None
    assert search.cv_results_["origin"][0] == "model"
    [record] = Archive(tmp_path, starter=False)
    assert record.profile["kind"] == "regression"
    [found] = suggest(SVR(), SPACE, X[:150], GRADES[:150], archive=None)
    assert "pretrained" in found.note


def test_added_searches_have_the_kind_of_their_estimator(tmp_path):
    search = RandomizedSearchCV(SVR(), SPACE, n_iter=2, cv=2, random_state=0).fit(X, GRADES)
    archive = Archive(tmp_path, starter=False)
    archive.add(search, X, GRADES)
    [record] = archive
    assert record.profile["kind"] == "regression"
