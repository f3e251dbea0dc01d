"""Every public name is documented in numpydoc style, with an example."""

import inspect
import re

import pytest

import sktransfer
from sktransfer import encoders, inspection, surrogates

ABSTRACT = {"EncodedTask", "Encoder", "Posterior", "Region", "SearchHints", "Surrogate"}


def public_objects():
    for module in (sktransfer, inspection, surrogates, encoders):
        for name in module.__all__:
            found = getattr(module, name)
            is_documented = inspect.isclass(found) or inspect.isfunction(found)
            if is_documented and name not in {*ABSTRACT, "check_surrogate", "make_surrogate"}:
                yield pytest.param(found, id=f"{module.__name__}.{name}")


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
