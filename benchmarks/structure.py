"""The structure of the package in numbers: files, imports, annotations, classes and calls.

    OMP_NUM_THREADS=1 python -m benchmarks.structure

The program measures the imported `sktransfer`. It prints a Markdown table with the commit, followed
by the lists behind the numbers. The first part only reads the source. The second part counts calls
during a small search, so it describes that search only.
"""

from __future__ import annotations

import ast
import importlib
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.call_trace import PACKAGE, Pair, is_in_package, profiled_search, two_way

NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


# -- files and lines -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Module:
    """A file of the package: its full name, its syntax tree and its line numbers with code."""

    name: str
    path: Path
    tree: ast.Module
    n_lines: int
    code: frozenset[int]

    @property
    def is_package(self) -> bool:
        """Whether this is the ``__init__`` of a folder, which then has the folder's name."""
        return self.path.name == "__init__.py"


def package_folder() -> Path:
    """Return the folder of the package that would be imported."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{PACKAGE} cannot be imported: run this in a checkout.")
    return Path(spec.origin).parent


def read_modules(folder: Path) -> dict[str, Module]:
    """Return all modules of the package by full name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        found[name] = Module(name, path, tree, text.count("\n"), code_lines(path, tree))
    return found


def code_lines(path: Path, tree: ast.Module) -> frozenset[int]:
    """Return the numbers of the lines that are neither blank, nor comment, nor docstring.

    Any string that is a statement counts as a docstring.
    """
    lines: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                lines.difference_update(range(first, last + 1))
    return frozenset(lines)


def longest_function(modules: dict[str, Module]) -> tuple[int, str]:
    """Return the lines of code, including the signature, and the name of the longest function."""
    return max(
        (len(module.code & set(range(node.lineno, (node.end_lineno or 0) + 1))), short(name))
        for module in modules.values()
        for name, node in functions(module)
    )


def functions(module: Module) -> Iterator[tuple[str, Function]]:
    """Yield all functions and methods, including nested ones, with their full names."""

    def below(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, Function | ast.ClassDef):
                inner = f"{prefix}.{child.name}"
            if isinstance(child, Function):
                yield inner, child
            yield from below(child, inner)

    return below(module.tree, module.name)


def short(name: str) -> str:
    """Return a full name without the name of the package."""
    return name.removeprefix(f"{PACKAGE}.")


# -- imports -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One imported name: its importer, its source, and whether it is imported at import time."""

    importer: str
    source: str  # the module after "from" or "import"
    name: str  # "" for "import module"
    bound: str  # name in the importer
    at_import: bool  # not in a function, not under TYPE_CHECKING


def imports_of(module: Module) -> list[Import]:
    """Return all imports of package names in a module."""
    found: list[Import] = []

    def visit(node: ast.AST, at_import: bool) -> None:
        found.extend(one for one in _imports(module, node, at_import) if is_in_package(one.source))
        later = isinstance(node, Function) or _is_type_checking(node)
        for child in ast.iter_child_nodes(node):
            visit(child, at_import and not later)

    visit(module.tree, True)
    return found


def _imports(module: Module, node: ast.AST, at_import: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            yield Import(module.name, alias.name, "", bound, at_import)
    elif isinstance(node, ast.ImportFrom):
        source = node.module or ""
        if node.level:
            parts = module.name.split(".")
            up = node.level - 1 if module.is_package else node.level
            source = ".".join([*parts[: len(parts) - up], *filter(None, [node.module])])
        for alias in node.names:
            yield Import(module.name, source, alias.name, alias.asname or alias.name, at_import)


def _is_type_checking(node: ast.AST) -> bool:
    if not isinstance(node, ast.If):
        return False
    names = (getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node.test))
    return "TYPE_CHECKING" in names


class Imports:
    """The import graph of the package.

    A name that an ``__init__`` re-exports counts for the module that defines it.

    Parameters
    ----------
    modules : dict of str to Module
    """

    def __init__(self, modules: dict[str, Module]):
        self._modules = modules
        self._imports = {name: imports_of(module) for name, module in modules.items()}
        packages = [module for module in modules.values() if module.is_package]
        self._exports = {module.name: self._exports_of(module) for module in packages}

    def pairs(self, at_import_only: bool = False) -> set[Pair]:
        """Return pairs (importer, imported), without the re-exports of an ``__init__``."""
        found = set()
        for name, module in self._modules.items():
            used = used_names(module.tree)
            for one in self._imports[name]:
                if module.is_package and one.bound not in used:
                    continue
                if one.at_import or not at_import_only:
                    found |= {(name, target) for target in self._targets(one, module.tree)}
        return {(importer, imported) for importer, imported in found if importer != imported}

    def _targets(self, one: Import, tree: ast.Module) -> set[str]:
        target = self._defining(one.source, one.name)
        if target in self._exports and target == f"{one.source}.{one.name}":
            # A folder imported as a whole: its used attributes count.
            return {self._defining(target, name) for name in attributes_used(tree, one.bound)}
        return {target}

    def _defining(self, source: str, name: str) -> str:
        """Return the module that defines a name imported from `source`."""
        if f"{source}.{name}" in self._modules:
            return f"{source}.{name}"
        if source in self._exports and name in self._exports[source]:
            return self._defining(*self._exports[source][name])
        return source

    def _exports_of(self, package: Module) -> dict[str, Pair]:
        """Map each name exported by an ``__init__`` to its module and its name there."""
        imports = self._imports[package.name]
        found = {one.bound: (one.source, one.name) for one in imports if one.name}
        for node in ast.walk(package.tree):
            if isinstance(node, ast.Dict):
                found |= self._lazy_exports(package.name, node)
        return found

    def _lazy_exports(self, package: str, table: ast.Dict) -> dict[str, Pair]:
        """Return exports from a dict of names to modules, as used by ``__getattr__``."""
        found = {}
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                source = str(value.value).lstrip(".")
                source = source if is_in_package(source) else f"{package}.{source}"
                if source in self._modules:
                    found[str(key.value)] = (source, str(key.value))
        return found


def used_names(tree: ast.Module) -> set[str]:
    """Return the names that a module reads."""
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Load)}


def attributes_used(tree: ast.Module, name: str) -> set[str]:
    """Return the x of every ``name.x`` in a module."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    return {node.attr for node in found if getattr(node.value, "id", None) == name}


def single_importers(pairs: set[Pair], modules: dict[str, Module]) -> list[Pair]:
    """Return (imported, importer) of modules with exactly one importer, without ``__init__``."""
    count = Counter(imported for _, imported in pairs)
    once = {(imported, importer) for importer, imported in pairs if count[imported] == 1}
    return sorted(pair for pair in once if not modules[pair[0]].is_package)


def cycles(pairs: set[Pair]) -> list[list[str]]:
    """Return groups of modules that import each other directly or indirectly."""
    following: dict[str, set[str]] = {}
    for importer, imported in pairs:
        following.setdefault(importer, set()).add(imported)
    reached = {start: _reachable(start, following) for start in following}
    groups = {
        frozenset(other for other in found if start in reached.get(other, ()))
        for start, found in reached.items()
    }
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _reachable(start: str, following: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        new = following.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


# -- annotations and classes ---------------------------------------------------------------------


def count_any(modules: dict[str, Module]) -> tuple[int, int]:
    """Return the number of parameters annotated Any and of all, without self and cls."""
    given = [
        argument
        for module in modules.values()
        for _, node in functions(module)
        for argument in parameters(node)
        if argument.arg not in ("self", "cls")
    ]
    return sum(is_any(argument.annotation) for argument in given), len(given)


def parameters(node: Function) -> list[ast.arg]:
    """Return all parameters of a function."""
    args = node.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return named + [extra for extra in (args.vararg, args.kwarg) if extra is not None]


def is_any(node: ast.expr | None) -> bool:
    """Return whether an annotation is Any, or a union with Any."""
    match node:
        case ast.Name(id="Any") | ast.Attribute(attr="Any"):
            return True
        case ast.Constant(value=str(text)):
            return is_any(ast.parse(text, mode="eval").body)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return is_any(left) or is_any(right)
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return is_any(inner)
        case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=members)):
            return any(is_any(member) for member in members)
    return False


@dataclass(frozen=True)
class Class:
    """A class: its methods and attributes; those of an estimator exclude its parameters."""

    name: str
    is_estimator: bool
    n_attributes: int
    n_parameters: int
    n_methods: int


def classes(modules: dict[str, Module]) -> list[Class]:
    """Return all classes of the package."""
    return [
        measure_class(module.name, node)
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    ]


def measure_class(module: str, node: ast.ClassDef) -> Class:
    """Count the contents of a class body, without inherited ones."""
    methods = [child for child in node.body if isinstance(child, Function)]
    attributes = {name for method in methods for name in assigned(method)}
    for child in node.body:
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            attributes.add(child.target.id)
    init = next((method for method in methods if method.name == "__init__"), None)
    given = {argument.arg for argument in parameters(init)[1:]} if init else set()
    estimator = is_estimator(module, node.name)
    attributes -= given if estimator else set()
    name = f"{short(module)}.{node.name}"
    return Class(name, estimator, len(attributes), len(given), len(methods))


def assigned(method: Function) -> set[str]:
    """Return the x of every ``self.x = ...`` in a method, including tuples, loops and with."""
    arguments = parameters(method)
    if not arguments:
        return set()
    return {
        node.attr
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == arguments[0].arg
    }


def is_estimator(module: str, name: str) -> bool:
    """Return whether a class has scikit-learn's `get_params`."""
    return hasattr(getattr(importlib.import_module(module), name, None), "get_params")


# -- report --------------------------------------------------------------------------------------


def commit(folder: Path) -> str:
    """Return the commit of the checkout, with "-dirty" if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() or "no commit"


def size_rows(modules: dict[str, Module], folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the rows about files and lines."""
    files = modules.values()
    yield "files", len(files)
    yield "lines", f"{sum(module.n_lines for module in files):,}"
    yield "lines of code", f"{sum(len(module.code) for module in files):,}"
    n_lines, path = max((len(module.code), module.path) for module in files)
    yield "longest file, lines of code", f"{n_lines} ({path.relative_to(folder)})"
    n_lines, name = longest_function(modules)
    yield "longest function, lines of code", f"{n_lines} ({name})"
    private = [path for path in folder.glob("_*.py") if not path.name.startswith("__")]
    yield "private files at the root", len(private)


def class_rows(modules: dict[str, Module]) -> Iterator[tuple[str, Any]]:
    """Yield the rows about annotations and classes."""
    n_any, n_all = count_any(modules)
    yield "parameters annotated Any", f"{n_any} of {n_all} ({n_any / n_all:.1%})"
    found = sorted(classes(modules), key=lambda each: (each.n_attributes, each.n_methods))
    plain = [each for each in found if not each.is_estimator][-1]
    numbers = f"{plain.n_attributes} attributes, {plain.n_methods} methods"
    yield "largest class", f"{plain.name}: {numbers}"
    largest = [each for each in found if each.is_estimator][-1]
    numbers = f"{largest.n_attributes} attributes, {largest.n_methods} methods"
    besides = f"{largest.n_parameters} constructor parameters"
    yield "largest estimator", f"{largest.name}: {numbers}, besides {besides}"


def lines_of(title: str, items: list[str]) -> str:
    """Return a Markdown list with a title."""
    return "\n".join([f"\n{title}:\n", *(f"- {item}" for item in items or ["none"])])


def arrows(calls: Counter[Pair]) -> list[str]:
    """Return calls as text, the most frequent first."""
    return [f"{short(a)} -> {short(b)}: {number}" for (a, b), number in calls.most_common()]


def main() -> None:
    """Print the table and the lists behind it."""
    folder = package_folder()
    modules = read_modules(folder)
    imports = Imports(modules)
    once = single_importers(imports.pairs(), modules)
    at_import, at_any_time = cycles(imports.pairs(at_import_only=True)), cycles(imports.pairs())
    rows = [*size_rows(modules, folder), ("modules that one other module imports", len(once))]
    rows += [("import cycles", len(at_import))]
    rows += [("import cycles with imports in functions and for types", len(at_any_time))]
    rows += class_rows(modules)
    calls = profiled_search()
    both, third = two_way(calls.all), calls.candidates[2]
    rows += [("pairs of modules that call each other during fit", len(both))]
    rows += [("calls across modules for one finished candidate", third.total())]
    rows += [("pairs of modules that these calls cross", len(third))]
    print(f"| | {commit(folder)} |", "|---|---|", sep="\n")
    print(*(f"| {name} | {value} |" for name, value in rows), sep="\n")
    by_one = [f"{short(imported)} by {short(importer)}" for imported, importer in once]
    print(lines_of("Modules that one other module imports", by_one))
    print(lines_of("Import cycles", [", ".join(map(short, group)) for group in at_any_time]))
    print(lines_of("Modules that call each other", [f"{short(a)}, {short(b)}" for a, b in both]))
    print(lines_of("Calls for one finished candidate", arrows(third)))


if __name__ == "__main__":
    main()
