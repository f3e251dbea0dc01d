"""Who may import whom: the package's rooms, read from the source, and the size of its files.

A room is a folder or a file of `sktransfer/`, with the private files that only help it. Imports inside
functions count as well; the standard library and a room's own files are always allowed.
"""

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "sktransfer"
MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 80

EVERY_ROOM = "every room"
ARRAYS = "numpy scipy"
PLAIN = "numpy scipy sklearn joblib pandas"

# room: (rooms it may import, packages it may import)
ROOMS = {
    "_content": ("", "joblib numpy"),
    "_values": ("_content", "numpy"),
    "task": ("_values space", "numpy"),
    "_metric_names": ("task _content", "sklearn"),
    "space": ("_values", ARRAYS),
    "scores": ("", ARRAYS),
    "profile": ("_threads", "numpy scipy sklearn joblib"),
    "encoders": ("profile _torch _threads", "numpy sklearn torch"),
    "surrogates": ("scores encoders profile _torch _threads", "numpy scipy sklearn torch"),
    "acquisition": ("surrogates space", ARRAYS),
    "archive": ("task space profile _metric_names _values", "numpy sklearn joblib fsspec"),
    "optimizer": ("space profile surrogates acquisition task scores _threads _values", ARRAYS),
    "search": (EVERY_ROOM, PLAIN),
    "inspection": ("", "numpy sklearn matplotlib"),
    "testing": (EVERY_ROOM, PLAIN + " pytest"),
    "cli": ("archive", ""),
    "_compat": ("", "sklearn"),
    "_threads": ("", "numpy threadpoolctl"),
    "_torch": ("_threads", "numpy torch"),
    "__init__": (EVERY_ROOM, ""),
    "__main__": ("cli", ""),
}
# Private files beside a room that are part of it.
HELPERS = {
    "_column_shapes": "profile",
    "_fingerprint": "profile",
    "_meta_features": "profile",
    "_sketch": "profile",
    "_evaluations": "search",
    "_meta_model": "search",
    "_optimizer_parts": "optimizer",
    "_past_scores": "optimizer",
    "_problem": "search",
    "_progress": "search",
    "_run": "search",
    "_run_parts": "search",
    "_suggest": "search",
    "_suggest_space": "search",
}
# Never at module level, so that `import sktransfer` neither needs nor waits for them.
LAZY = {"fsspec", "matplotlib", "pandas", "pytest"}
PRIVATE_SKLEARN = "_compat"
# Not a way into a room: anybody may ask for the version.
ALWAYS = {"__version__"}


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


def room_of(name):
    """The room of a file, folder or module name right below `sktransfer`, or None."""
    room = HELPERS.get(name, name)
    return room if room in ROOMS else None


def imports_of(tree, file):
    """Every import in a parsed file; `file` is its path below the package ("space/_parse.py")."""
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
                yield Import((*absolute(node.level, node.module or ""), alias.name), node.lineno, lazy)
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
    """What the imports of one file do against the table."""
    room = room_of(Path(file).parts[0].removesuffix(".py"))
    if room is None:
        text = "belongs to no room: give it a row in ROOMS (or HELPERS), and say there what it may import"
        return [Problem(file, 1, text)]
    found = imports_of(ast.parse(source), file)
    return [Problem(file, each.line, text) for each in found if (text := objection(each, room))]


def objection(found, room):
    """Why `room` may not have the import `found`, or None."""
    rooms, packages = (allowed.split() for allowed in ROOMS[room])
    top = found.path[0]
    if top in sys.stdlib_module_names:
        return None
    if top == "sktransfer":
        name = found.path[1] if len(found.path) > 1 else "__init__"
        target = room_of(name) or "__init__"
        if target == room or name in ALWAYS or ROOMS[room][0] == EVERY_ROOM or target in rooms:
            return None
        seen = "the package's front door (sktransfer/__init__.py)" if target == "__init__" else f"`{target}`"
        return f"imports {found}, but `{room}` may not know {seen}; it may import the rooms: {listed(rooms)}"
    if top not in packages:
        holders = [name for name, row in ROOMS.items() if top in row[1].split()]
        return (
            f"imports {found}, but `{room}` may import of packages only: {listed(packages)}; "
            f"{top} is allowed in: {listed(holders)}"
        )
    if top in LAZY and not found.lazy:
        return f"imports {top} at module level: import it inside the function that needs it"
    if top == "sklearn" and room != PRIVATE_SKLEARN:
        private = [part for part in found.path if part.startswith("_") and not part.endswith("__")]
        if private:
            return f"imports {found}, but {private[0]} is private to scikit-learn: import it in _compat.py"
    return None


def listed(names):
    return ", ".join(names) or "none"


def size_problems(source, file):
    """Files and functions that have grown too long; a docstring counts, a decorator does not."""
    lines = len(source.splitlines())
    if lines > MAX_FILE_LINES:
        yield Problem(file, lines, f"the file has {lines} lines, at most {MAX_FILE_LINES}: split it")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                text = f"{node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}: split it"
                yield Problem(file, node.lineno, text)


def over_package(check):
    """Run a check on every file of the package, and fail with all that it found."""
    files = sorted(PACKAGE.rglob("*.py"))
    assert files, f"no package in {PACKAGE}"
    problems = []
    for path in files:
        problems += check(path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).as_posix())
    if problems:
        pytest.fail("\n".join(map(str, problems)), pytrace=False)


def test_imports_keep_to_their_rooms():
    over_package(import_problems)


def test_sizes():
    over_package(size_problems)


def test_torch_has_three_homes():
    assert {room for room, (_, packages) in ROOMS.items() if "torch" in packages.split()} == {
        "_torch",
        "encoders",
        "surrogates",
    }


@pytest.mark.parametrize("room", ROOMS)
def test_table_names_only_rooms(room):
    rooms = ROOMS[room][0]
    assert rooms == EVERY_ROOM or set(rooms.split()) <= set(ROOMS)


@pytest.mark.parametrize(
    ("file", "source", "words"),
    [
        ("archive/_store.py", "def f():\n    from ..surrogates import DistGP", "may not know `surrogates`"),
        ("optimizer.py", "from . import archive", "may not know `archive`"),
        ("optimizer.py", "import sktransfer.archive._store", "may not know `archive`"),
        ("optimizer.py", "from sktransfer import archive", "may not know `archive`"),
        ("space/a/b.py", "from ...task import Task", "may not know `task`"),
        ("task.py", "from sktransfer import TransferSearchCV", "front door"),
        ("task.py", "from importlib import import_module\nimport_module('.search', 'x')", "`search`"),
        ("_meta_features.py", "from .archive import Archive", "`profile` may not know `archive`"),
        ("search.py", "def f():\n    import torch", "_torch"),
        ("acquisition/ei.py", "import torch.nn as nn", "torch is allowed in: encoders, surrogates, _torch"),
        ("search.py", "from sklearn.utils._tags import Tags", "_tags is private to scikit-learn"),
        ("search.py", "from sklearn.utils import _safe_indexing", "private to scikit-learn"),
        ("search.py", "import pandas as pd", "pandas at module level"),
        ("search.py", "import requests", "requests is allowed in: none"),
        ("inspection/plot.py", "try:\n    import matplotlib\nexcept ImportError: pass", "module level"),
        ("surprise.py", "x = 1", "belongs to no room"),
        ("surprise/__init__.py", "", "belongs to no room"),
    ],
)
def test_checker_catches(file, source, words):
    (found,) = import_problems(source, file)
    assert words in str(found)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("search.py", "from .archive import Archive\nfrom sktransfer.optimizer import TransferOptimizer"),
        ("search.py", "import numpy as np\nfrom sklearn.model_selection import GridSearchCV"),
        ("_compat.py", "from sklearn.model_selection._search import BaseSearchCV"),
        ("surrogates/gp.py", "import torch\nfrom . import _core\nfrom ._core import a"),
        ("surrogates/gp.py", "from .. import _torch, scores\nfrom ..encoders import Handcrafted"),
        ("profile.py", "from ._fingerprint import rows"),
        ("_fingerprint.py", "from sktransfer.profile import DatasetProfile"),
        ("inspection/plot.py", "def plot():\n    import matplotlib.pyplot as plt"),
        ("archive/_format.py", "from .. import __version__\nimport json, os.path"),
        ("search.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas as pd"),
        ("__init__.py", "from .search import TransferSearchCV"),
    ],
)
def test_checker_lets_pass(file, source):
    assert import_problems(source, file) == []


def test_checker_names_the_line():
    (found,) = import_problems("import json\n\ndef f():\n    import torch\n", "search.py")
    assert str(found).startswith("sktransfer/search.py:4: imports torch")


def test_checker_measures():
    body = "\n".join(["    x = 1"] * MAX_FUNCTION_LINES)
    (found,) = size_problems(f"def short(): pass\n\ndef long():\n{body}\n", "search.py")
    assert (found.line, found.text.split()[0]) == (3, "long")
    (found,) = size_problems("x = 1\n" * (MAX_FILE_LINES + 1), "search.py")
    assert "the file has 351 lines" in found.text
