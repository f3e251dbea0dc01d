"""What all Displays have in common."""

import subprocess
import sys

import pytest
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from sktransfer import TransferSearchCV, inspection

DISPLAYS = [name for name in inspection.__all__ if name.endswith("Display")]


@pytest.mark.parametrize("name", DISPLAYS)
def test_unfitted_search_raises_not_fitted(name):
    display = getattr(inspection, name)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        display.from_estimator(TransferSearchCV(SVC(), {"C": [1, 2]}))


@pytest.mark.parametrize("name", DISPLAYS)
def test_missing_matplotlib_is_said_by_plot(name, search, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf"{name}\.plot requires matplotlib\. You can install"):
        getattr(inspection, name).from_estimator(search)


@pytest.mark.parametrize("name", DISPLAYS)
def test_plot_returns_the_display_and_can_be_repeated(name, search):
    display = getattr(inspection, name).from_estimator(search)
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first


@pytest.mark.parametrize("name", DISPLAYS)
def test_docstring_has_an_example(name):
    display = getattr(inspection, name)
    for heading in ("Parameters\n", "Attributes\n", "Examples\n"):
        assert heading in display.__doc__, heading
    assert ">>> " in display.__doc__


def test_import_does_not_load_matplotlib():
    code = "import sys, sktransfer.inspection; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
