"""Digests of values and of the code of user-defined functions and classes."""

import functools
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from sktransfer.utils._hashing import digest

ROOT = Path(__file__).parents[2]


def defined(text, name="f", **around):
    module = {"__name__": "notebook", **around}
    exec(text, module)
    return module[name]


PAIRS = {
    "a body": ("def f(x): return x", "def f(x): return -x"),
    "a constant": ("def f(x): return x + 1", "def f(x): return x + 2"),
    "a default": ("def f(x, y=1): return x + y", "def f(x, y=2): return x + y"),
    "arguments": ("f = lambda x: x", "f = lambda *x: x"),
    "a helper": (
        "def g(x): return x\ndef f(x): return g(x)",
        "def g(x): return -x\ndef f(x): return g(x)",
    ),
    "a cached helper": (
        "import functools\n@functools.lru_cache\ndef g(x): return x\ndef f(x): return g(x)",
        "import functools\n@functools.lru_cache\ndef g(x): return -x\ndef f(x): return g(x)",
    ),
    "a method": ("class f:\n def m(self): return 1", "class f:\n def m(self): return 2"),
    "a property": (
        "class f:\n @property\n def m(self): return 1",
        "class f:\n @property\n def m(self): return 2",
    ),
    "a static method": (
        "class f:\n @staticmethod\n def m(): return 1",
        "class f:\n @staticmethod\n def m(): return 2",
    ),
    "a closure": ("f = (lambda n: lambda x: x + n)(1)", "f = (lambda n: lambda x: x + n)(2)"),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_digest_detects_changed_code(pair):
    one, other = PAIRS[pair]
    assert digest(defined(one), code=True) == digest(defined(one), code=True) is not None
    assert digest(defined(one), code=True) != digest(defined(other), code=True)


def test_digest_depends_on_the_order_of_functions():
    a, b = (lambda x: x), (lambda x: -x)
    assert digest([a, b, a]) != digest([a, b, b])


def test_digest_ignores_assigned_and_unpicklable_closure_variables():
    def counting(start, lock=None):
        total = start

        def f(x, out=sys.stderr):
            nonlocal total
            with lock or threading.Lock():
                total += x
            return out

        return f

    f = counting(0, threading.Lock())
    before = digest(f, code=True)
    assert before is not None
    f(3)
    assert digest(f, code=True) == before


def test_digest_of_mutually_recursive_functions():
    text = "def f(x): return g(x)\ndef g(x): return f(x) if x else {}"
    assert digest(defined(text.format(1)), code=True) != digest(defined(text.format(2)), code=True)


def test_digest_of_an_unpicklable_value_is_none():
    assert digest(threading.Lock(), code=True) is None


SCRIPT = """
import numpy as np
from sklearn.base import BaseEstimator
from sktransfer.utils._hashing import digest

class Mine(BaseEstimator):
    def fit(self, X, y):
        if X not in {"raw", "log", "sqrt", 3}:
            return {"a", "b"}

def score(model, X, y):
    return model.how in {"raw", "log"}

print(digest([Mine(), score, {"x", "y", 3}, frozenset("abc"), np.arange(3)], code=True))
"""


@pytest.mark.slow
def test_digest_is_the_same_in_every_process():
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1 and found != {"None\n"}


@pytest.mark.parametrize(
    "value",
    [
        SVC(),
        make_pipeline(StandardScaler(), FunctionTransformer(np.log1p)),
        make_scorer(f1_score),
        functools.partial(max, 1),
        f1_score,
    ],
)
def test_library_code_is_identified_by_name(value):
    assert digest(value, code=True) == digest(value, code=False) is not None


def test_digest_follows_long_chains_of_calls():
    """The chain is longer than Python's recursion limit."""
    chain = "\n".join(f"def f{n}(x): return f{n + 1}(x)" for n in range(2000))
    one, other = (defined(f"{chain}\ndef f2000(x): return {n}", "f0") for n in (1, 2))
    assert digest(one, code=True) != digest(other, code=True)
    assert None not in (digest(one, code=True), digest(other, code=True))


@pytest.mark.slow
def test_digest_of_libraries_outside_site_packages(monkeypatch):
    monkeypatch.setattr("sktransfer.utils._hashing._LIBRARY_FOLDERS", set())
    monkeypatch.setattr("sktransfer.utils._hashing._STANDARD_LIBRARY", ("/nowhere",))
    assert digest(SVC(), code=True) == digest(SVC(), code=True) is not None
    assert digest(SVC(), code=True) != digest(SVC(C=2.0), code=True)


def test_digest_distinguishes_arrays_of_texts():
    nan = float("nan")
    tables = [
        *(["ab", "c"], ["a", "bc"], ["ab", "c", ""], ["", "ab", "c"], ["ab", None, "c"]),
        *(["ab", nan, "c"], ["ab", "c", None], [None, None, "abc"], ["ab", 1], ["ab", "1"]),
        *([["ab"], ["c"]], ["\ud800", "c"], []),
    ]
    found = [digest(np.array(table, dtype=object)) for table in tables]
    assert None not in found and len(set(found)) == len(tables)
    assert found == [digest(np.array(table, dtype=object)) for table in tables]
