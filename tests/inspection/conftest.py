"""Fitted searches and archives that the tests of pictures share."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris, make_classification
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV

X, y = load_iris(return_X_y=True)
SPACE = {
    "C": loguniform(1e-2, 1e3),
    "gamma": loguniform(1e-4, 1e1),
    "kernel": ["rbf", "sigmoid"],
}


@pytest.fixture(autouse=True)
def close_figures():
    """Draw into memory, and close what a test has drawn."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    """An archive of four searches on other data."""
    archive = Archive(tmp_path_factory.mktemp("past"))
    for seed in range(4):
        data = make_classification(60 + 20 * seed, 4 + seed, random_state=seed)
        search = TransferSearchCV(SVC(), SPACE, n_iter=8, cv=3, archive=None, random_state=seed)
        archive.add(search.fit(*data), *data)
    return archive


@pytest.fixture(scope="session")
def search(archive):
    """A fitted search that used the archive."""
    readonly = Archive(archive.path, readonly=True)
    search = TransferSearchCV(
        SVC(),
        SPACE,
        n_iter=14,
        cv=3,
        archive=readonly,
        surrogate="task-prior",  # its first trials are settings of past tasks
        random_state=0,
    )
    return search.fit(X, y)


@pytest.fixture(scope="session")
def grid():
    """A search that evaluated a whole grid."""
    space = {"C": [0.01, 0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}
    return TransferSearchCV(SVC(), space, cv=3, archive=None).fit(X, y)


@pytest.fixture(scope="session")
def plain():
    """A search without an archive."""
    search = TransferSearchCV(SVC(), SPACE, n_iter=8, cv=3, archive=None, random_state=0)
    return search.fit(X, y)


@pytest.fixture
def texts():
    """All texts of a figure, after drawing it."""

    def texts(figure):
        import matplotlib.text

        figure.canvas.draw()
        found = [text.get_text() for text in figure.findobj(matplotlib.text.Text)]
        return [text for text in found if text]

    return texts


@pytest.fixture
def rng():
    return np.random.default_rng(0)
