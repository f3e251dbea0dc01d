"""A process that is forked after a search can run a search."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEARCH_THEN_FORK = """
import os, warnings
import numpy as np
from scipy.stats import loguniform
from sklearn.svm import SVC
from sktransfer import TransferSearchCV

warnings.simplefilter("ignore")  # Python warns of forks of a process with threads

def search(seed):
    X = np.random.default_rng(seed).normal(size=(60, 4))
    space = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 10)}
    params = {"n_iter": 4, "cv": 2, "surrogate": "dist-gp", "random_state": 0}
    return TransferSearchCV(SVC(), space, **params).fit(X, X[:, 0] > 0).best_score_

search(0)
child = os.fork()
if child == 0:
    os._exit(0 if search(1) > 0.5 else 3)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform == "darwin", reason="fork is missing or unsafe"
)
def test_forked_child_searches_with_the_starter_archive(monkeypatch):
    """The starter archive is large enough for torch to use threads, which a fork does not copy."""
    monkeypatch.delenv("SKTRANSFER_STARTER")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    done = subprocess.run([sys.executable, "-c", SEARCH_THEN_FORK], cwd=ROOT, timeout=120)
    assert done.returncode == 0
