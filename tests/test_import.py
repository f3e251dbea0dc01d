"""`import sktransfer` loads no submodule. Public names are loaded when they are first used."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import sktransfer

ROOT = Path(__file__).parents[1]
PUBLIC_NAMES = [
    "Archive",
    "DatasetProfile",
    "Space",
    "Suggestion",
    "Task",
    "TransferOptimizer",
    "TransferSearchCV",
    "Trial",
    "profile",
    "show_versions",
    "suggest",
    "suggest_space",
]


def run_in_new_interpreter(code):
    """Run `code` and return the words that it prints."""
    command = [sys.executable, "-c", f"import sys\n{code}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def modules_after_import():
    """Names of all modules that are loaded after ``import sktransfer``."""
    return run_in_new_interpreter("import sktransfer; print(*sys.modules)")


@pytest.mark.parametrize("module", ["torch", "sklearn.model_selection", "numpy"])
def test_import_does_not_load_dependency(modules_after_import, module):
    assert module not in modules_after_import


def test_import_loads_no_submodule(modules_after_import):
    assert [name for name in modules_after_import if name.startswith("sktransfer.")] == []


def test_all_is_the_list_of_public_names():
    assert sorted(sktransfer.__all__) == PUBLIC_NAMES


def test_first_use_loads_only_the_submodule_of_the_name():
    code = "import sktransfer; sktransfer.Space; print(*sys.modules)"
    loaded = run_in_new_interpreter(code)
    assert "sktransfer.space" in loaded
    assert "sktransfer.model_selection" not in loaded and "torch" not in loaded


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_public_name_is_available(name):
    assert getattr(sktransfer, name).__name__ == name


def test_dir_lists_public_names_before_their_first_use():
    listed = run_in_new_interpreter("import sktransfer; print(*dir(sktransfer))")
    assert set(PUBLIC_NAMES) <= set(listed)
    assert "__version__" in listed and listed == sorted(listed)


def test_dir_lists_each_public_name_once_after_its_first_use():
    code = "import sktransfer; sktransfer.Space; print(*dir(sktransfer))"
    assert run_in_new_interpreter(code).count("Space") == 1


def test_star_import_gives_all_public_names():
    given = run_in_new_interpreter("from sktransfer import *; print(*globals())")
    assert set(PUBLIC_NAMES) <= set(given)


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="module 'sktransfer' has no attribute 'nonsense'"):
        sktransfer.nonsense  # noqa: B018
    with pytest.raises(ImportError, match="nonsense"):
        from sktransfer import nonsense  # noqa: F401


def test_function_profile_is_no_module():
    with pytest.raises(ModuleNotFoundError, match=r"sktransfer\.profile"):
        importlib.import_module("sktransfer.profile")
