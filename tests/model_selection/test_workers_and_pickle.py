"""Workers without torch, and small pickles that are loaded without it."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris, load_wine
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferSearchCV, profile
from sktransfer.utils._user_warnings import without_filters_of

ROOT = Path(__file__).parents[2]
IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}

IN_WORKERS = """
import os, sys, warnings
import torch
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sktransfer import TransferSearchCV

assert any(each[2].__module__.startswith("torch") for each in warnings.filters)

class Watched(ClassifierMixin, BaseEstimator):
    def __init__(self, a=0.0):
        self.a = a
    def fit(self, X, y):
        self.classes_ = [0, 1, 2]
        self.pid_, self.has_torch_ = os.getpid(), "torch" in sys.modules
        return self
    def predict(self, X):
        return [0] * len(X)
    def score(self, X, y):
        assert self.pid_ != MAIN
        return 0.0 if self.has_torch_ else 1.0

MAIN = os.getpid()
search = TransferSearchCV(
    Watched(), {"a": uniform(0, 1)}, n_iter=4, cv=2, n_jobs=2, refit=False, archive=None,
    surrogate=%s, error_score="raise", random_state=0,
)
search.fit(*load_iris(return_X_y=True))
print(search.best_score_, search.cv_results_["mean_test_score"].min())
"""


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ['"auto"', "__import__('sktransfer').surrogates.DistGP()"])
def test_workers_do_not_import_torch(surrogate):
    code = "import sktransfer.surrogates\n" + IN_WORKERS % surrogate
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split() == ["1.0", "1.0"], done.stdout + done.stderr


def test_filters_of_other_packages_stay():
    class Foreign(UserWarning):
        __module__ = "torch.jit"

    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", "some text", UserWarning, "a.module", 3)
        warnings.simplefilter("ignore", Foreign)
        warnings.simplefilter("error", RuntimeWarning)
        before = list(warnings.filters)
        with without_filters_of("torch"):
            inside = list(warnings.filters)
        assert list(warnings.filters) == before
    assert [each[2] for each in inside] == [RuntimeWarning, UserWarning]
    action, message, _, module, line = inside[1]
    assert (action, message.pattern, module.pattern, line) == ("ignore", "some text", "a.module", 3)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A search that learned from 40 past tasks."""
    archive = Archive(tmp_path_factory.mktemp("past"))
    data = profile(*WINE)
    for number in range(40):
        trials = [({"C": c, "gamma": 0.1}, 0.9 - c / 100) for c in (0.1, 1.0, 5.0, 10.0, 50.0)]
        archive.append(Task.from_trials(SPACE, trials, data, estimator=SVC(), id=f"t{number}"))
    search = TransferSearchCV(SVC(), SPACE, n_iter=4, cv=2, archive=archive, random_state=0)
    return search.fit(*IRIS)


def test_pickle_is_small_and_predicts_and_suggests(fitted):
    content = pickle.dumps(fitted)
    assert len(content) - len(pickle.dumps(fitted.best_estimator_)) < 100_000
    assert fitted.surrogate_ is not None  # only the copy lacks it
    loaded = pickle.loads(content)
    assert loaded.surrogate_ is None
    assert (loaded.predict(IRIS[0]) == fitted.predict(IRIS[0])).all()
    other = load_wine(return_X_y=True)[0][:, :4] * 3 + 1, WINE[1]
    assert loaded.suggest(*other)[0].params == fitted.suggest(*other)[0].params


def test_search_without_archive_pickles_its_own_task():
    search = TransferSearchCV(SVC(), SPACE, n_iter=4, cv=2, archive=None, random_state=0).fit(*IRIS)
    content = pickle.dumps(search)
    assert len(content) - len(pickle.dumps(search.best_estimator_)) < 100_000
    assert pickle.loads(content).suggest(*WINE)[0].sources


def test_pickle_is_loaded_without_torch(tmp_path):
    search = TransferSearchCV(
        SVC(), SPACE, n_iter=2, cv=2, archive=None, surrogate="dist-gp", random_state=0
    )
    (tmp_path / "search.pickle").write_bytes(pickle.dumps(search.fit(*IRIS)))
    code = (
        "import pickle, sys\n"
        f"search = pickle.load(open({str(tmp_path / 'search.pickle')!r}, 'rb'))\n"
        "print(search.predict([[5.0, 3.5, 1.4, 0.2]])[0], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["0", "False"], done.stderr
