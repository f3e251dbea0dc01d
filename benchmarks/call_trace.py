"""Which modules of the package call which during one search; part of `benchmarks.structure`."""

from __future__ import annotations

import dis
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

PACKAGE = "sktransfer"
Pair = tuple[str, str]


def is_in_package(name: str) -> bool:
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")


@dataclass
class Calls:
    """A profile function for `sys.setprofile` that counts calls between modules of the package.

    The caller is the nearest enclosing frame of the package, even if frames of other libraries lie
    between. Module bodies, generator expressions and resumed generators do not count as calls.

    Attributes
    ----------
    all : Counter
        Calls by (caller, callee), two different modules.
    candidates : list of Counter
        The same for each finished candidate: from the end of its last fit until the return of the
        package function that scikit-learn's `evaluate_candidates` called.
    """

    all: Counter[Pair] = field(default_factory=Counter)
    candidates: list[Counter[Pair]] = field(default_factory=list)
    _open: Counter[Pair] | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self._called(frame)
        elif event == "return":
            self._returned(frame)

    def _called(self, frame: FrameType) -> None:
        callee, code = module_of(frame), frame.f_code
        if not is_in_package(callee) or code.co_name in ("<module>", "<genexpr>"):
            return
        if frame.f_lasti > first_instruction(code):
            return  # a resumed generator
        caller = calling_module(frame)
        if caller not in ("", callee):
            self.all[caller, callee] += 1
            if self._open is not None:
                self._open[caller, callee] += 1

    def _returned(self, frame: FrameType) -> None:
        if frame.f_code.co_name == "_fit_and_score" and module_of(frame).startswith("sklearn."):
            self._open = Counter()
        elif self._open is not None and is_in_package(module_of(frame)) and is_from_sklearn(frame):
            self.candidates.append(self._open)
            self._open = None


def module_of(frame: FrameType) -> str:
    """Return the name of the module whose code a frame runs."""
    return str(frame.f_globals.get("__name__", ""))


def calling_module(frame: FrameType) -> str:
    """Return the module of the nearest enclosing frame of the package, or ""."""
    around = frame.f_back
    while around is not None and not is_in_package(module_of(around)):
        around = around.f_back
    return "" if around is None else module_of(around)


def is_from_sklearn(frame: FrameType) -> bool:
    """Return whether scikit-learn's `evaluate_candidates` called this frame directly."""
    around = frame.f_back
    return (
        around is not None
        and around.f_code.co_name == "evaluate_candidates"
        and module_of(around).startswith("sklearn.")
    )


@cache
def first_instruction(code: CodeType) -> int:
    """Return the offset of a function's first instruction after its setup."""
    found = (step.offset for step in dis.get_instructions(code) if step.opname == "RESUME")
    return next(found, 0)


def profiled_search() -> Calls:
    """Count the calls of a search of three candidates, in an archive with one other search."""
    from scipy.stats import loguniform
    from sklearn.datasets import make_classification
    from sklearn.svm import SVC

    from sktransfer import TransferSearchCV

    space = {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1e1)}
    calls = Calls()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {"n_iter": 3, "cv": 2, "archive": folder, "random_state": 0}
        TransferSearchCV(SVC(), space, **settings).fit(*make_classification(random_state=1))
        search = TransferSearchCV(SVC(), space, **settings)
        data = make_classification(random_state=0)
        with clock_stopped():
            sys.setprofile(calls)
            try:
                search.fit(*data)
            finally:
                sys.setprofile(None)
        if len(search.source_tasks_) != 1:
            raise SystemExit("The first search is not in the archive.")
    if len(calls.candidates) != 3:
        raise SystemExit(f"Three candidates were evaluated, but {len(calls.candidates)} were seen.")
    return calls


@contextmanager
def clock_stopped() -> Iterator[None]:
    """Stop the clocks, so that periodic work does not depend on the machine."""
    with ExitStack() as stack:
        for name in ("monotonic", "perf_counter"):
            stack.enter_context(patch.object(time, name, return_value=getattr(time, name)()))
        yield


def two_way(calls: Counter[Pair]) -> list[Pair]:
    """Return the pairs of modules that call each other."""
    return sorted((a, b) for a, b in calls if a < b and (b, a) in calls)
