"""The default path runs in numpy and scipy: it does not import torch."""

import subprocess
import sys

import pytest

SEARCH = """
import sys
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.svm import SVC
from sktransfer import TransferSearchCV

space = {{"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1)}}
for seed in range(4):
    search = TransferSearchCV(
        SVC(),
        space,
        n_iter=6,
        cv=2,
        archive={archive!r},
        surrogate={surrogate!r},
        random_state=seed,
    )
    search.fit(*make_classification(40 + 10 * seed, 4, random_state=seed))
assert len(search.source_tasks_) == {n_past}, search.source_tasks_
assert "torch" not in sys.modules
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("surrogate", "n_past"),
    [("auto", 3), ("gp", 0), ("rgpe", 3), ("tst", 3), ("warm-start", 3), ("box", 3), ("random", 0)],
)
def test_search_with_archive_imports_no_torch(tmp_path, surrogate, n_past):
    code = SEARCH.format(archive=str(tmp_path), surrogate=surrogate, n_past=n_past)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
