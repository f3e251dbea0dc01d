"""A digest of what a value holds, the same in every process.

A library's functions and classes are known by their names, as in a pickle. Those of the user's own are known
by their code: a scorer that was edited in a notebook is another scorer under the same name, and a lambda has
no name. Constants that code reads from its module or class are not seen.
"""

from __future__ import annotations

import sys
import sysconfig
import weakref
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from joblib.hashing import NumpyHasher

_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_known: dict[int, tuple[weakref.ref, str | None]] = {}


def digest(value: Any, code: bool = False) -> str | None:
    """Hash of a value's content; None if it cannot be seen (a lock, an open file).

    Parameters
    ----------
    value : object
    code : bool
        Whether the code of the user's own functions and classes counts. Otherwise only that of functions
        without a name does.

    Examples
    --------
    >>> digest(lambda x: x + 1) == digest(lambda x: x + 1), digest(lambda x: x + 1) == digest(lambda x: x + 2)
    (True, False)
    """
    try:
        return _Hasher(code).hash(value)
    except Exception:
        return None


def kept_digest(value: Any) -> str | None:
    """As `digest`, found again as long as the value is there: a fitted model takes its time."""
    key = id(value)
    reference, found = _known.get(key, (None, None))
    if reference is None or reference() is not value:
        found = digest(value)
        with suppress(TypeError):  # nothing weak can refer to it: it is small
            _known[key] = weakref.ref(value, partial(_forget, key)), found
    return found


def _forget(key: int, _: Any) -> None:
    _known.pop(key, None)


def has_name(thing: Any) -> bool:
    """Whether a function or class is what its module has under its name."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in getattr(thing, "__qualname__", "<none>").split("."):
        found = getattr(found, part, None)
    return found is thing


class _Hasher(NumpyHasher):
    def __init__(self, code: bool):
        super().__init__("md5", coerce_mmap=True)
        self._code = code
        self._met: set[int] = set()

    def save(self, obj: Any) -> None:
        if isinstance(obj, FunctionType | type) and self._by_code(obj):
            if id(obj) in self._met:  # it calls itself, or was hashed before
                obj = obj.__qualname__
            else:
                self._met.add(id(obj))
                obj = _function(obj) if isinstance(obj, FunctionType) else _class(obj)
        super().save(obj)

    def _by_code(self, thing: Any) -> bool:
        return _is_own(thing) if self._code else isinstance(thing, FunctionType) and not has_name(thing)


def _is_own(thing: Any) -> bool:
    """Whether it is from no installed library."""
    file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    is_main = thing.__module__ == "__main__"
    return is_main or not has_name(thing) or (file is not None and not file.startswith(_LIBRARIES))


def _function(function: FunctionType) -> tuple:
    code = function.__code__
    given = function.__defaults__, function.__kwdefaults__
    helpers = [function.__globals__.get(name) for name in _names(code)]
    called = [each for each in helpers if isinstance(each, FunctionType | type) and _is_own(each)]
    return "function", function.__qualname__, _code(code), given, _enclosed(function), called


def _class(cls: type) -> tuple:
    parts = [(name, getattr(value, "__func__", value)) for name, value in sorted(vars(cls).items())]
    methods = [(name, getattr(value, "fget", value)) for name, value in parts]
    return "class", cls.__qualname__, cls.__bases__, [p for p in methods if isinstance(p[1], FunctionType)]


def _code(code: CodeType) -> tuple:
    constants = [_code(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants


def _names(code: CodeType) -> list[str]:
    """Everything global that the code, and code within it, speaks of."""
    inner = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names(each)]
    return [*code.co_names, *inner]


def _enclosed(function: FunctionType) -> list:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            found.append(None)
    return found
