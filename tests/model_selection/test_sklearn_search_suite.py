"""scikit-learn's own tests of its searches, run on `TransferSearchCV`.

The module ships in scikit-learn's wheel. It is executed once more, under another name, with the
adapters in the place of GridSearchCV and RandomizedSearchCV; its tests become tests of this module.
"""

import importlib.util
import sys
from unittest import mock

import pytest
import sklearn.model_selection

from tests.model_selection import sklearn_adapter

NAME = "sklearn_test_search_on_transfer_search"

# test -> why it cannot hold
EXCEPTIONS = {
    "test_search_with_2d_array": "it expects the very draws of RandomizedSearchCV's random stream",
}


def load():
    original = importlib.util.find_spec("sklearn.model_selection.tests.test_search")
    spec = importlib.util.spec_from_file_location(NAME, original.origin)
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module  # classes defined in it must be found again by pickle
    searches = {
        "GridSearchCV": sklearn_adapter.GridSearchCV,
        "RandomizedSearchCV": sklearn_adapter.RandomizedSearchCV,
    }
    with mock.patch.multiple(sklearn.model_selection, **searches):
        spec.loader.exec_module(module)
    return module


def adopt(module, namespace):
    for name, item in vars(module).items():
        if name.startswith("test_") or hasattr(item, "_fixture_function") or name == "pytestmark":
            if name in EXCEPTIONS:
                item = pytest.mark.xfail(reason=EXCEPTIONS[name], strict=True)(item)
            namespace[name] = item


adopt(load(), globals())


def test_exceptions_are_few():
    assert len(EXCEPTIONS) <= 3
