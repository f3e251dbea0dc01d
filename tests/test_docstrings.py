"""Every public name is in the reference, documented in numpydoc style, with an example."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import sktransfer
from sktransfer import encoders, inspection, surrogates

API = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
MODULES = (sktransfer, inspection, surrogates, encoders)
INTERNAL = {"REGISTRY", "check_surrogate"}  # shared by folders of the package


def names_of_reference():
    """Pairs of a module and a name, as docs/api.md lists them."""
    module = ""
    for line in API.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   (\w+)", line):
            yield module, found[1]


def public_objects():
    for module, name in names_of_reference():
        yield pytest.param(getattr(import_module(module), name), id=f"{module}.{name}")


def test_reference_is_complete():
    listed = set(names_of_reference())
    for module in MODULES:
        missing = {name for name in module.__all__ if (module.__name__, name) not in listed}
        assert missing <= INTERNAL, module.__name__


def documented_names(docstring, *sections):
    """Names in some sections of a docstring: "a, b : type" and "a, b" alone both count."""
    names = set()
    for section in sections:
        match = re.search(
            rf"^ *{section}\n *-+\n(.*?)(?=\n\n *\w[\w ]*\n *---|\Z)", docstring, re.S | re.M
        )
        for line in match.group(1).splitlines() if match else []:
            if re.match(r"^\s*\*{0,2}\w+(, \*{0,2}\w+)*(, \.\.\.)?( :|$)", line):
                names |= set(re.findall(r"\w+", line.split(" :")[0]))
    return names


@pytest.mark.parametrize("found", [*public_objects()])
def test_public_name_has_an_example(found):
    docstring = inspect.getdoc(found) or ""
    assert ">>> " in docstring
    assert docstring.splitlines()[0].endswith("."), "the first line is a sentence"


@pytest.mark.parametrize("found", [*public_objects()])
def test_parameters_are_documented(found):
    docstring = inspect.getdoc(found) or ""
    signature = inspect.signature(found)
    given = {name for name in signature.parameters if name not in {"self", "args", "kwargs"}}
    # A surrogate may document the parameters that it shares with another only there.
    if "As `" in docstring or not given:
        return
    missing = given - documented_names(docstring, "Parameters", "Other Parameters", "Attributes")
    assert not missing or found is sktransfer.Space


@pytest.mark.parametrize("name", inspection.__all__)
def test_attributes_of_a_display_are_documented(name):
    display = getattr(inspection, name)
    if inspect.isclass(display):
        assert {"ax_", "figure_"} <= documented_names(inspect.getdoc(display), "Attributes")


def public_methods():
    for module, name in names_of_reference():
        found = getattr(import_module(module), name)
        for key, value in vars(found).items() if inspect.isclass(found) else ():
            function = getattr(value, "__func__", value)
            is_method = inspect.isfunction(function) or isinstance(value, property)
            if is_method and not key.startswith("_"):
                yield pytest.param(found, key, id=f"{module}.{name}.{key}")


@pytest.mark.parametrize(("found", "name"), [*public_methods()])
def test_public_method_is_documented(found, name):
    assert inspect.getdoc(getattr(found, name)), "has no docstring"
