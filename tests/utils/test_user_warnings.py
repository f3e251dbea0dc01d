"""Warnings at the user's line."""

import inspect

import pytest

from sktransfer.exceptions import TransferWarning
from sktransfer.utils import _user_warnings
from sktransfer.utils._user_warnings import warn_user


def as_library(function, name):
    """The same function, as if it were defined in another module."""
    return type(function)(function.__code__, {**function.__globals__, "__name__": name})


def inner():
    warn_user("Look here.", TransferWarning)


def outer():
    call(inner)  # noqa: F821


def test_warning_points_past_the_libraries_in_between():
    library = as_library(inner, "sktransfer.archive._a")
    through = as_library(outer, "sklearn.utils")
    through.__globals__["call"] = as_library(lambda f: f(), "heapq")
    through.__globals__["inner"] = library
    with pytest.warns(TransferWarning, match="Look here") as caught:
        through()
    line = inspect.currentframe().f_lineno - 1
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_warning_without_a_user_points_to_the_outermost_frame(monkeypatch):
    monkeypatch.setattr(
        _user_warnings, "LIBRARIES", {__name__.partition(".")[0], "_pytest", "pluggy"}
    )
    with pytest.warns(TransferWarning) as caught:
        inner()
    assert caught[0].filename != __file__
