"""Errors and warnings of the package."""

import os
import pickle
import warnings

import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from sktransfer import TransferSearchCV, exceptions
from sktransfer.exceptions import (
    ArchiveWarning,
    NewerFormatError,
    RecordError,
    ResumeWarning,
    SktransferWarning,
    SpaceWarning,
    SurrogateWarning,
    TransferWarning,
)

WARNING_CLASSES = [
    ArchiveWarning,
    ResumeWarning,
    SpaceWarning,
    TransferWarning,
    SurrogateWarning,
]


@pytest.mark.parametrize("category", WARNING_CLASSES)
def test_warning_is_a_sktransfer_warning_and_a_user_warning(category):
    assert issubclass(category, SktransferWarning)
    assert issubclass(category, UserWarning)


def test_all_lists_every_class_of_the_module():
    defined = [
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and value.__module__ == exceptions.__name__
    ]
    assert sorted(exceptions.__all__) == sorted(defined)


@pytest.mark.parametrize("category", WARNING_CLASSES)
def test_one_filter_silences_every_warning(category):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=SktransferWarning)
        warnings.warn("from sktransfer", category, stacklevel=1)
        warnings.warn("from elsewhere", UserWarning, stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["from elsewhere"]


@pytest.fixture
def search_with_unreadable_archive(tmp_path, monkeypatch):
    def deny(*args):
        raise PermissionError("permission denied")

    monkeypatch.setattr(os, "listdir", deny)
    return TransferSearchCV(
        SVC(), {"C": loguniform(0.1, 10)}, n_iter=2, cv=2, archive=tmp_path, surrogate="random"
    )


def test_search_warns_of_unreadable_archive(search_with_unreadable_archive):
    with pytest.warns(ArchiveWarning, match="out of reach"):
        search_with_unreadable_archive.fit(*load_iris(return_X_y=True))


def test_filter_silences_archive_warning_of_search(search_with_unreadable_archive):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=SktransferWarning)
        fitted = search_with_unreadable_archive.fit(*load_iris(return_X_y=True))
    assert fitted.task_id_ is None and fitted.best_score_ > 0.5


@pytest.mark.parametrize(
    "error",
    [RecordError("tasks/a.joblib", "it is empty"), NewerFormatError("tasks/a.joblib", 9, 1)],
)
def test_error_survives_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)
    assert isinstance(error, ValueError) and str(error).startswith("tasks/a.joblib: ")
