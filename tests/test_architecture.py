"""The layout of the package: which folder may import which, and how large files and functions may
grow.

Imports are read from the source, those inside functions included. The standard library, the errors
in `sktransfer.exceptions` and a folder's own files are always allowed.
"""

import ast
import importlib
import pkgutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import sktransfer

PACKAGE = Path(sktransfer.__file__).parent
MAX_FILE_LINES = 300  # of code: blank lines, comments and docstrings do not count
MAX_FUNCTION_LINES = 50

EVERYTHING = "everything"
ARRAYS = "numpy scipy"

# folder or module: (what it may import of the package, other packages it may import)
ARROWS = {
    "exceptions": ("", ""),
    "utils": ("", "numpy scipy sklearn joblib threadpoolctl torch rich tqdm"),
    "dataset": ("utils", "numpy scipy sklearn joblib"),
    "space": ("utils", ARRAYS),
    "task": ("space dataset utils", "numpy"),
    "archive": ("task space dataset utils", "numpy sklearn joblib fsspec pandas"),
    "pretrained": ("dataset utils", "numpy scipy torch"),
    "encoders": ("pretrained task dataset utils", "numpy sklearn torch"),
    "surrogates": ("encoders task dataset utils", "numpy scipy sklearn torch"),
    "optimizer": ("surrogates encoders pretrained task space dataset utils", ARRAYS),
    "model_selection": (
        "optimizer surrogates encoders pretrained archive task space dataset utils",
        "numpy scipy sklearn joblib cloudpickle pandas optuna ray",
    ),
    "inspection": (
        "model_selection optimizer surrogates encoders archive task space dataset utils",
        "numpy scipy sklearn matplotlib",
    ),
    "testing": (
        "model_selection optimizer surrogates encoders archive task space dataset utils",
        "numpy scipy sklearn",
    ),
    "_cli": ("inspection model_selection archive utils", ""),
    "__init__": (EVERYTHING, ""),
    "__main__": ("_cli", ""),
}
# Never at module level, so that `import sktransfer` neither needs nor waits for them.
LAZY = {"fsspec", "matplotlib", "optuna", "pandas", "pytest", "ray", "rich", "tqdm"}
PRIVATE_SKLEARN = "model_selection/_sklearn_compat.py"
ALWAYS = {"__version__", "exceptions"}


@dataclass(frozen=True)
class Import:
    path: tuple[str, ...]  # ("sklearn", "utils", "check_array"): module and imported name in one
    line: int
    lazy: bool  # inside a function or under TYPE_CHECKING

    def __str__(self):
        return ".".join(self.path)


class Problem(NamedTuple):
    file: str
    line: int
    text: str

    def __str__(self):
        return f"sktransfer/{self.file}:{self.line}: {self.text}"


# -- imports --------------------------------------------------------------------------------------


def imports_of(tree, file):
    """Every import in a parsed file; `file` is its path below the package ("space/_parsing.py")."""
    package = ("sktransfer", *Path(file).parts[:-1])

    def absolute(level, module):
        base = package[: len(package) - level + 1] if level else ()
        return base + tuple(part for part in module.split(".") if part)

    def walk(node, lazy):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(absolute(0, alias.name), node.lineno, lazy)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import(
                    (*absolute(node.level, node.module or ""), alias.name), node.lineno, lazy
                )
        elif isinstance(node, ast.Call) and (name := dynamic_import(node)):
            level = len(name) - len(name.lstrip("."))
            yield Import(absolute(level, name), node.lineno, lazy)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for child in node.body:
                yield from walk(child, True)
            for child in node.orelse:
                yield from walk(child, lazy)
            return
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, lazy)

    return list(walk(tree, False))


def dynamic_import(call):
    """The module in ``import_module("module")`` or ``__import__("module")``, else None."""
    function = ast.unparse(call.func).split(".")[-1]
    first = call.args[0] if call.args else None
    if function in {"import_module", "__import__"} and isinstance(first, ast.Constant):
        return str(first.value)
    return None


def import_problems(source, file):
    """Imports of one file that the table does not allow."""
    part = Path(file).parts[0].removesuffix(".py")
    if part not in ARROWS:
        return [Problem(file, 1, "has no row in ARROWS: add one that says what it may import")]
    found = imports_of(ast.parse(source), file)
    return [
        Problem(file, each.line, text) for each in found if (text := objection(each, part, file))
    ]


def objection(found, part, file):
    """Why the file may not have the import `found`, or None."""
    allowed, packages = (names.split() for names in ARROWS[part])
    top = found.path[0]
    if top in sys.stdlib_module_names:
        return None
    if top == "sktransfer":
        name = found.path[1] if len(found.path) > 1 else "__init__"
        target = name if name in ARROWS else "__init__"
        if target == part or name in ALWAYS or ARROWS[part][0] == EVERYTHING or target in allowed:
            return None
        return f"imports {found}, but `{part}` may not import `{target}`, only {listed(allowed)}"
    if top not in packages:
        holders = [name for name, row in ARROWS.items() if top in row[1].split()]
        return (
            f"imports {found}, but `{part}` may import of other packages only: {listed(packages)}; "
            f"{top} is allowed in: {listed(holders)}"
        )
    if top in LAZY and not found.lazy:
        return f"imports {top} at module level: import it inside the function that needs it"
    if top == "sklearn" and file != PRIVATE_SKLEARN:
        private = [name for name in found.path if name.startswith("_") and not name.endswith("__")]
        if private:
            return (
                f"imports {found}: {private[0]} is private to scikit-learn, use {PRIVATE_SKLEARN}"
            )
    return None


def listed(names):
    return ", ".join(names) or "none"


# -- sizes and names ------------------------------------------------------------------------------


def code_lines(source):
    """Numbers of the lines that are neither blank, nor a comment, nor part of a docstring."""
    prose = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            prose.update(range(first.lineno, first.end_lineno + 1))
    rows = enumerate(source.splitlines(), 1)
    return {
        n for n, row in rows if row.strip() and not row.strip().startswith("#") and n not in prose
    }


def size_problems(source, file):
    """Files and functions with too many lines of code."""
    code = code_lines(source)
    if len(code) > MAX_FILE_LINES:
        yield Problem(file, 1, f"the file has {len(code)} lines of code, at most {MAX_FILE_LINES}")
    for node in functions_of(source):
        size = sum(node.lineno <= line <= node.end_lineno for line in code)
        if size > MAX_FUNCTION_LINES:
            yield Problem(
                file,
                node.lineno,
                f"{node.name} has {size} lines of code, at most {MAX_FUNCTION_LINES}",
            )


def name_problems(source, file):
    """Modules and functions whose names hide a module."""
    stem = Path(file).stem
    if stem in sys.stdlib_module_names:
        yield Problem(file, 1, f"{stem} is a module of the standard library")
    if stem.endswith(("_parts", "_helpers")):
        yield Problem(file, 1, "name the file after what is inside")
    for node in functions_of(source):
        if node.name == stem:
            yield Problem(file, node.lineno, f"the function {node.name} has the name of its module")


def functions_of(source):
    nodes = ast.walk(ast.parse(source))
    return [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def over_package(check):
    """Run a check on every file of the package, and fail with all that it found."""
    files = sorted(PACKAGE.rglob("*.py"))
    assert files, f"no package in {PACKAGE}"
    problems = []
    for path in files:
        problems += check(path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).as_posix())
    if problems:
        pytest.fail("\n".join(map(str, problems)), pytrace=False)


# -- the package ----------------------------------------------------------------------------------


def test_imports_point_one_way():
    over_package(import_problems)


def test_sizes_are_bounded():
    over_package(size_problems)


def test_names_hide_nothing():
    over_package(name_problems)


def test_table_has_a_row_for_each_folder_and_no_other():
    there = {path.stem for path in PACKAGE.glob("*.py")}
    there |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(ARROWS) == there


def test_archive_and_models_do_not_import_each_other():
    models = {"encoders", "surrogates", "optimizer"}
    assert not models & set(ARROWS["archive"][0].split())
    assert not any("archive" in ARROWS[name][0].split() for name in models)


def test_package_root_has_no_other_files():
    root = {"__init__", "__main__", "_cli", "exceptions", "task", "testing"}
    assert {path.stem for path in PACKAGE.glob("*.py")} <= root


def test_importing_a_submodule_yields_a_module():
    for found in pkgutil.walk_packages(sktransfer.__path__, "sktransfer."):
        if found.name == "sktransfer.__main__":
            continue
        importlib.import_module(found.name)
        parent, _, name = found.name.rpartition(".")
        assert isinstance(getattr(sys.modules[parent], name), ModuleType), found.name


# -- the checks themselves ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "source", "words"),
    [
        (
            "archive/_a.py",
            "def f():\n    from ..surrogates import DistGP",
            "may not import `surrogates`",
        ),
        ("optimizer/_a.py", "from .. import archive", "may not import `archive`"),
        ("optimizer/_a.py", "import sktransfer.archive._storage", "may not import `archive`"),
        ("optimizer/_a.py", "from sktransfer import archive", "may not import `archive`"),
        ("space/a/b.py", "from ...task import Task", "may not import `task`"),
        ("task.py", "from sktransfer import TransferSearchCV", "may not import `__init__`"),
        (
            "task.py",
            "from importlib import import_module\nimport_module('.archive', 'x')",
            "`archive`",
        ),
        ("dataset/_a.py", "from ..archive import Archive", "`dataset` may not import `archive`"),
        (
            "model_selection/_a.py",
            "def f():\n    import torch",
            "torch is allowed in: utils, pretrained, encoders",
        ),
        ("optimizer/_a.py", "import torch.nn as nn", "torch is allowed in"),
        ("model_selection/_a.py", "from sklearn.utils._tags import Tags", "_tags is private"),
        (
            "model_selection/_a.py",
            "from sklearn.utils import _safe_indexing",
            "private to scikit-learn",
        ),
        ("model_selection/_a.py", "import pandas as pd", "pandas at module level"),
        ("model_selection/_a.py", "import requests", "requests is allowed in: none"),
        ("archive/_a.py", "try:\n    import fsspec\nexcept ImportError: pass", "module level"),
        ("surprise.py", "x = 1", "has no row in ARROWS"),
        ("surprise/__init__.py", "", "has no row in ARROWS"),
    ],
)
def test_checker_catches(file, source, words):
    (found,) = import_problems(source, file)
    assert words in str(found)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "model_selection/_a.py",
            "from ..archive import Archive\nfrom sktransfer.optimizer import B",
        ),
        (
            "model_selection/_a.py",
            "import numpy as np\nfrom sklearn.model_selection import GridSearchCV",
        ),
        (PRIVATE_SKLEARN, "from sklearn.model_selection._search import BaseSearchCV"),
        ("surrogates/gp.py", "import torch\nfrom . import _core\nfrom ._core import a"),
        ("surrogates/gp.py", "from ..utils import _torch\nfrom ..encoders import ManualEncoder"),
        ("dataset/_a.py", "from ._fingerprint import rows"),
        ("archive/_a.py", "def f():\n    import fsspec"),
        ("archive/_a.py", "from .. import __version__\nimport json, os.path"),
        ("archive/_a.py", "from sktransfer.exceptions import RecordError"),
        (
            "model_selection/_a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas",
        ),
        ("__init__.py", "from .model_selection import TransferSearchCV"),
    ],
)
def test_checker_lets_pass(file, source):
    assert import_problems(source, file) == []


def test_checker_names_the_line():
    (found,) = import_problems(
        "import json\n\ndef f():\n    import torch\n", "model_selection/_a.py"
    )
    assert str(found).startswith("sktransfer/model_selection/_a.py:4: imports torch")


def test_checker_counts_code_only():
    body = "\n".join(["    x = 1"] * MAX_FUNCTION_LINES)
    (found,) = size_problems(
        f'def short(): pass\n\ndef long():\n    """Doc."""\n\n    # why\n{body}\n', "a.py"
    )
    assert (
        found.text
        == f"long has {MAX_FUNCTION_LINES + 1} lines of code, at most {MAX_FUNCTION_LINES}"
    )
    assert not [*size_problems("# x\n\n" * (MAX_FILE_LINES + 1), "a.py")]
    (found,) = size_problems("x = 1\n" * (MAX_FILE_LINES + 1), "a.py")
    assert "the file has 301 lines of code" in found.text


def test_checker_sees_names_that_hide_something():
    assert [p.text for p in name_problems("", "surrogates/random.py")] == [
        "random is a module of the standard library"
    ]
    assert [p.line for p in name_problems("\ndef suggest(): pass", "suggest.py")] == [2]
    assert [*name_problems("", "optimizer/_optimizer_parts.py")]
